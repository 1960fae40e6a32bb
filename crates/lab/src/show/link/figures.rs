//! A link's log as figures: throughput, delay and queue over time.

use std::collections::BTreeMap;

use headstart_emu::record::{Record, What};
use headstart_net::Direction;
use headstart_units::Time;

use crate::figure::{Axis, Figure, Mark, PacketKind, Series, Style, Svg};

/// A plot holds no more marks of a kind than this: more cannot be told apart.
const MOST_MARKS: usize = 3000;
/// Bins of the throughput's figure.
const BINS: u64 = 200;

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(MOST_MARKS).max(1);
    points.into_iter().step_by(step).collect()
}

/// The figures, each with the name of its file and a caption.
#[must_use]
pub fn figures(record: &Record) -> [(&'static str, &'static str, Svg); 3] {
    [
        ("throughput", "What left the path in each direction, IP headers included.", throughput(record)),
        (
            "delay",
            "From a packet's arrival to its departure: what it waited, took to be sent and travelled.",
            delay(record),
        ),
        (
            "queue",
            "Packets that waited before the first link as each packet arrived, and those that were lost.",
            queue(record),
        ),
    ]
}

/// Towards the program first: most bytes go there.
const DIRECTIONS: [(Direction, usize); 2] = [(Direction::Down, 0), (Direction::Up, 1)];

fn throughput(record: &Record) -> Svg {
    let end = record.entries.iter().map(|entry| entry.at).max().unwrap_or(Time::ZERO).as_nanos();
    // A millisecond at least: below it is the size of packets that is seen.
    let bin = (end / BINS).max(1_000_000);
    let mut figure = Figure::new("", Axis::linear("time", "s"), Axis::linear("throughput", "Mbit/s"));
    for (direction, slot) in DIRECTIONS {
        let mut bytes = vec![0_u64; (end / bin + 1) as usize];
        for entry in record.entries.iter().filter(|entry| entry.direction == direction) {
            if matches!(entry.what, What::Departure { .. }) {
                bytes[(entry.at.as_nanos() / bin) as usize] += u64::from(entry.bytes);
            }
        }
        let points = bytes
            .iter()
            .zip(0_u64..)
            .map(|(bytes, number)| ((number * bin) as f64 / 1e9, *bytes as f64 * 8e3 / bin as f64));
        figure.series.push(Series::new(
            direction.name(),
            Style::steps().with_slot(slot),
            points.collect::<Vec<_>>(),
        ));
    }
    figure.svg()
}

fn delay(record: &Record) -> Svg {
    let mut figure = Figure::new("", Axis::linear("time", "s"), Axis::linear("delay", "ms"));
    for (direction, slot) in DIRECTIONS {
        let mut arrived = BTreeMap::new();
        let mut points = vec![];
        for entry in record.entries.iter().filter(|entry| entry.direction == direction) {
            match entry.what {
                What::Arrival { .. } => {
                    arrived.insert(entry.number, entry.at);
                }
                What::Departure { .. } => {
                    // A copy leaves after the packet itself, and has no arrival of its own.
                    if let Some(at) = arrived.remove(&entry.number) {
                        points.push((entry.at.as_secs_f64(), entry.at.since(at).as_millis_f64()));
                    }
                }
                What::Lost { .. } => {
                    arrived.remove(&entry.number);
                }
            }
        }
        figure.series.push(Series::new(
            direction.name(),
            Style::marks(Mark::Dot).with_slot(slot),
            thinned(points),
        ));
    }
    figure.svg()
}

fn queue(record: &Record) -> Svg {
    let mut figure = Figure::new("", Axis::linear("time", "s"), Axis::linear("queue", "packets"));
    let mut lost = vec![];
    for (direction, slot) in DIRECTIONS {
        let (mut points, mut latest) = (vec![], 0.0);
        for entry in record.entries.iter().filter(|entry| entry.direction == direction) {
            let at = entry.at.as_secs_f64();
            match entry.what {
                What::Arrival { queue_packets } => {
                    latest = f64::from(queue_packets);
                    points.push((at, latest));
                }
                What::Lost { .. } => lost.push((at, latest)),
                What::Departure { .. } => {}
            }
        }
        figure.series.push(Series::new(direction.name(), Style::line().with_slot(slot), thinned(points)));
    }
    if !lost.is_empty() {
        figure.series.push(Series::packets(PacketKind::Lost, thinned(lost)));
    }
    figure.svg()
}
