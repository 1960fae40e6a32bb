//! `headstart measure`: options of a path from records of its traffic.

use std::fs::File;
use std::io::{BufReader, Cursor, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use headstart_units::{Bytes, Rate, Ratio, Span};

use super::terminal::print;
use headstart_field::measure::capture::{self, Capture};
use headstart_field::measure::{Estimate, Measured, logs, measure, qlog, texts};
use headstart_report::errors::Refuse as _;

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

/// The path by a file, and words on the file.
struct Record {
    measured: Measured,
    segments: usize,
    /// Frames of a capture that are no TCP, most first.
    others: String,
}

/// Reads a file by what it begins with: once, for it may be a pipe.
fn read(file: &Path) -> Result<Record> {
    let mut begin = vec![];
    let mut rest = File::open(file)?;
    rest.by_ref().take(4096).read_to_end(&mut begin)?;
    let is_wide = begin.starts_with(&[0xff, 0xfe]) || begin.starts_with(&[0xfe, 0xff]);
    let is_text = !begin.is_empty() && (is_wide || !begin.contains(&0));
    let is_link = begin.starts_with(b"# headstart link log");
    let kind = begin.iter().find(|byte| !byte.is_ascii_whitespace() && **byte != 0x1e).copied();
    let mut content = Cursor::new(begin).chain(rest);
    if is_link {
        return Ok(logs::link(BufReader::new(content))?.into());
    }
    if !is_text {
        return Ok(capture::read(content)?.into());
    }
    let mut text = vec![];
    content.by_ref().take(MOST_BYTES + 1).read_to_end(&mut text)?;
    ensure!(
        text.len() as u64 <= MOST_BYTES,
        "found more than {} MiB, expected less of a text",
        MOST_BYTES >> 20
    );
    let measured = match kind {
        Some(b'{') => qlog::qlog(&text)?,
        _ => texts::read(&texts::decoded(&text))?,
    };
    Ok(measured.into())
}

impl From<Measured> for Record {
    fn from(measured: Measured) -> Self {
        Self { measured, segments: 0, others: String::new() }
    }
}

impl From<Capture> for Record {
    fn from(capture: Capture) -> Self {
        let segments = capture.segments.len();
        let mut measured = measure(&capture.segments);
        if capture.is_cut {
            measured
                .notes
                .push(format!("only the first {} million TCP segments are read", segments / 1_000_000));
        }
        if let (count @ 1.., longest) = capture.steps {
            let often = if count == 1 { "once".to_owned() } else { format!("{count} times") };
            measured.notes.push(format!(
                "times go backwards {often}, by {longest} at most: the clock was set back. What follows is \
                 moved on by that, so that rate and delays are near to those of a clock that was not set"
            ));
        }
        let mut others: Vec<_> = capture.others.into_iter().collect();
        others.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others =
            others.iter().take(3).map(|(name, count)| format!("; {count} of {name}, which is not read"));
        Self { measured, segments, others: others.collect() }
    }
}

/// Prints the options on standard output, and how they were found on standard error.
///
/// # Errors
/// The file is no capture, or too little was sent in it.
pub fn run(args: &MeasureArgs) -> Result<()> {
    let mut found: Vec<Found> = vec![];
    for file in &args.files {
        let name = file.display().to_string();
        let Record { measured, segments, others } = read(file).context(name.clone()).or_refuse()?;
        let lines = self::found(&measured);
        if lines.iter().all(|line| line.option.is_none()) {
            let packets = measured.packets;
            let reason = format!(
                "{name}: found {segments} TCP segments and {packets} packets of data in one direction, expected a \
                 download of at least 30 packets, or a handshake{others}"
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
        for note in &measured.notes {
            eprintln!("headstart: {name}: {note}");
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
        None if !measured.has_sizes => unknown("rate", "no sizes of packets"),
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
        None if !measured.has_sizes => unknown("buffer", "no sizes of packets"),
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
            let high = if short == 0 { 3.0 / packets as f64 } else { (share + error).min(1.0) };
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
