//! `headstart measure`: options of a path from records of its traffic.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use headstart_units::{Bytes, Rate, Ratio, Span};

use super::terminal::print;
use crate::errors::Refuse as _;
use crate::measure::{Estimate, Measured, capture, logs, measure, texts};

/// Options of `measure`.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// Captures of TCP from anywhere on the path; a sender's qlog or `ss -tin`, again and again
    ///
    /// Also logs of `headstart link`, output of `ping` and of `headstart get --format json`. Of
    /// several files each quantity is the first one's that is no bound.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// Most bytes of a file that is no capture.
const MOST_BYTES: u64 = 256 << 20;

/// Reads a file by what it begins with.
fn read(file: &Path) -> Result<(Measured, usize)> {
    let mut begin = vec![];
    File::open(file)?.take(4096).read_to_end(&mut begin)?;
    let is_text = !begin.contains(&0) && !begin.is_empty();
    if begin.starts_with(b"# headstart link log") {
        return Ok((logs::link(BufReader::new(File::open(file)?))?, 0));
    }
    if !is_text {
        let (segments, is_cut) = capture::read(file)?;
        if is_cut {
            eprintln!(
                "headstart: only the first {} million TCP segments are read",
                segments.len() / 1_000_000
            );
        }
        return Ok((measure(&segments), segments.len()));
    }
    let mut content = vec![];
    File::open(file)?.take(MOST_BYTES + 1).read_to_end(&mut content)?;
    ensure!(
        content.len() as u64 <= MOST_BYTES,
        "found more than {} MiB, expected less of a text",
        MOST_BYTES >> 20
    );
    let found = match begin.iter().find(|byte| !byte.is_ascii_whitespace() && **byte != 0x1e) {
        Some(b'{') => logs::qlog(&content)?,
        _ => texts::read(&String::from_utf8_lossy(&content))?,
    };
    Ok((found, 0))
}

/// Prints the options on standard output, and how they were found on standard error.
///
/// # Errors
/// The file is no capture, or too little was sent in it.
pub fn run(args: &MeasureArgs) -> Result<()> {
    let mut found: Vec<Found> = vec![];
    for file in &args.files {
        let name = file.display().to_string();
        let (measured, segments) = read(file).context(name.clone()).or_refuse()?;
        let lines = self::found(&measured);
        if lines.iter().all(|line| line.option.is_none()) {
            let packets = measured.packets;
            let reason = format!(
                "{name}: found {segments} TCP segments and {packets} packets of data in one direction, expected a \
                 download of at least 30 packets, or a handshake"
            );
            return (|| -> Result<()> { bail!(reason) })().or_refuse();
        }
        if found.is_empty() {
            found = lines;
        } else {
            for (known, new) in found.iter_mut().zip(lines) {
                if new.rank() > known.rank() {
                    *known = new;
                }
            }
        }
        if measured.both_ways {
            eprintln!(
                "headstart: {name}: data went both ways at once, and acknowledgements waited behind it: rate and buffer may be \
                 wrong by a third. Take a capture at the receiver, or of one direction"
            );
        }
    }
    for line in &found {
        eprintln!("{:8} {:14} {}", line.name, line.value, line.basis);
    }
    let options: Vec<_> = found.iter().filter_map(|line| line.option.clone()).collect();
    print(&format!("{}\n", options.join(" ")))
}

/// A quantity of the path.
struct Found {
    name: &'static str,
    value: String,
    /// Events that it was measured on, or the reason why it is unknown.
    basis: String,
    option: Option<String>,
}

impl Found {
    /// Unknown, a bound, or known.
    fn rank(&self) -> u8 {
        let is_bound = self.basis.contains("at least") || self.basis.contains("at most");
        self.option.as_ref().map_or(0, |_| if is_bound { 1 } else { 2 })
    }
}

fn found(measured: &Measured) -> Vec<Found> {
    let range =
        |estimate: Estimate, text: &dyn Fn(f64) -> String| match (text(estimate.low), text(estimate.high)) {
            (low, high) if low == high => String::new(),
            (low, high) => format!("{low} to {high}; "),
        };
    let unknown =
        |name, basis: &str| Found { name, value: "unknown".into(), basis: basis.into(), option: None };
    let known = |name, value: String, basis: String| Found {
        name,
        option: Some(format!("--{name} {}", value.replace(' ', ""))),
        value,
        basis,
    };
    let rate = match measured.rate {
        None => unknown("rate", "too few packets of data"),
        Some(rate) => {
            let basis = match measured.was_busy {
                true => "spacing of packets while a queue stood",
                false => {
                    "at least: no queue ever stood, so that the sender may have been slower than the path"
                }
            };
            known("rate", rate_text(rate.value), range(rate, &rate_text) + basis)
        }
    };
    let rtt = match measured.rtt {
        None => unknown("rtt", "no handshake and no timestamps"),
        Some(rtt) if !measured.has_handshake => {
            let basis = "at most: without a handshake, a queue may have stood all the time";
            known("rtt", time_text(rtt.value), basis.into())
        }
        Some(rtt) => {
            known("rtt", time_text(rtt.value), range(rtt, &time_text) + "handshakes and least delays of data")
        }
    };
    let buffer = match measured.buffer {
        Some(buffer) => {
            let bound = if measured.has_handshake { "" } else { "at least, without a handshake; " };
            let basis =
                format!("{bound}queueing delay of {} as packets were lost", time_text(measured.queue));
            known("buffer", bytes_text(buffer.value), range(buffer, &bytes_text) + &basis)
        }
        None if !measured.was_busy => unknown("buffer", "no queue was seen"),
        None => {
            let held = measured.rate.map_or(0.0, |rate| rate.value / 8.0 * measured.queue);
            known("buffer", bytes_text(held), "at least: it never overflowed, as far as can be seen".into())
        }
    };
    let (full, short) = measured.losses;
    let loss = match measured.packets {
        _ if !measured.has_packets => unknown("loss", "a capture or a qlog tells it"),
        0..=29 => unknown("loss", "too few packets of data"),
        packets => {
            let share = short as f64 / packets as f64;
            let error = 1.96 * (share * (1.0 - share) / packets as f64).sqrt();
            let high = if short == 0 { 3.0 / packets as f64 } else { share + error };
            let estimate = Estimate { value: share, low: (share - error).max(0.0), high };
            let basis =
                format!("{short} of {packets} packets while the queue was short, {full} while it was long");
            known("loss", share_text(share), range(estimate, &share_text) + &basis)
        }
    };
    vec![rate, rtt, buffer, loss]
}

/// Three significant digits are more than a capture gives.
fn rounded(value: f64) -> u64 {
    let step = 10_f64.powi((value.max(1.0).log10().floor() as i32 - 2).max(0));
    ((value / step).round() * step) as u64
}

fn rate_text(rate: f64) -> String {
    Rate::from_bits_per_sec(rounded(rate)).to_string()
}

fn time_text(seconds: f64) -> String {
    Span::from_micros(rounded(seconds * 1e6)).to_string()
}

fn bytes_text(bytes: f64) -> String {
    Bytes::new(rounded(bytes)).to_string()
}

fn share_text(share: f64) -> String {
    Ratio::new((share * 1e5).round() as u32, 100_000).to_string()
}
