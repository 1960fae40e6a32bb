//! `headstart measure`: options of a path from a capture of its traffic.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use headstart_units::{Bytes, Rate, Ratio, Span};

use super::terminal::print;
use crate::errors::Refuse as _;
use crate::measure::{Estimate, Measured, capture, measure};

/// Options of `measure`.
#[derive(Args, Debug)]
pub struct MeasureArgs {
    /// Packet capture of TCP (pcap or pcapng), taken anywhere on the path
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the options on standard output, and how they were found on standard error.
///
/// # Errors
/// The file is no capture, or too little was sent in it.
pub fn run(args: &MeasureArgs) -> Result<()> {
    let file = args.file.display();
    let (segments, is_cut) = capture::read(&args.file).with_context(|| file.to_string()).or_refuse()?;
    if is_cut {
        eprintln!("headstart: only the first {} million TCP segments are read", segments.len() / 1_000_000);
    }
    let measured = measure(&segments);
    let found = found(&measured);
    if found.iter().all(|line| line.option.is_none()) {
        let (count, packets) = (segments.len(), measured.packets);
        let reason = format!(
            "{file}: found {count} TCP segments and {packets} packets of data in one direction, expected a \
             download of at least 30 packets, or a handshake"
        );
        return (|| -> Result<()> { bail!(reason) })().or_refuse();
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
            let basis = "at most: without a handshake in the capture, a queue may have stood all the time";
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
