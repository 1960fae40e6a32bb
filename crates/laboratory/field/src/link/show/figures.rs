//! A link's log as figures: throughput, delay and queue over time.

use std::collections::BTreeMap;

use headstart_emu::record::{ParsedEvent, ParsedLine, ParsedLog};
use headstart_net::Direction;
use headstart_units::{Bytes, Rate, Span, Time};

use super::capacity::{Capacity, DOWN_CAPACITY, UP_CAPACITY};
use headstart_report::figure::{Axis, Figure, Mark, PacketKind, Point, Series, Style, Svg};

/// Most marks of a kind in a plot: more cannot be distinguished.
const MAX_MARKS: usize = 3000;
/// Bins of the throughput's figure.
const BINS: u64 = 200;
/// Full packets that a bin of it holds at least, at the highest rate.
const PACKETS_IN_A_BIN: u64 = 10;

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(MAX_MARKS).max(1);
    points.into_iter().step_by(step).collect()
}

/// The figures, each with the name of its file and a caption.
#[must_use]
pub fn figures(record: &ParsedLog) -> [(&'static str, &'static str, Svg); 3] {
    [
        (
            "throughput",
            "Throughput in each direction, IP headers included. The shaded area is the capacity of the first link.",
            throughput(record),
        ),
        (
            "delay",
            "From a packet's arrival to its departure: queueing, serialisation and propagation.",
            delay(record),
        ),
        (
            "queue",
            "Packets that wait before the first link, over time, and packets that are lost.",
            queue(record),
        ),
    ]
}

/// Towards the program first: most bytes go there.
const DIRECTIONS: [(Direction, usize); 2] = [(Direction::Down, 0), (Direction::Up, 1)];

fn throughput(record: &ParsedLog) -> Svg {
    let end = record.entries.iter().map(|entry| entry.at).max().unwrap_or(Time::ZERO);
    let capacity = |name: &str| {
        let line = record.header.iter().find(|(found, _)| found == name);
        line.and_then(|(_, text)| text.parse::<Capacity>().ok())
    };
    let capacities = [capacity(DOWN_CAPACITY), capacity(UP_CAPACITY)];
    // Several packets long at the highest rate: shorter bins show the size of packets.
    let peak = capacities.iter().flatten().map(Capacity::peak).max().unwrap_or_default();
    let packets = if peak.is_zero() { Span::ZERO } else { Bytes::new(PACKETS_IN_A_BIN * 1500) / peak };
    let bin = (end.as_nanos() / BINS).max(packets.as_nanos()).max(1_000_000);
    let mut figure = Figure::new("", Axis::linear("time", "s"), Axis::linear("throughput", "Mbit/s"));
    let is_one = capacities[0] == capacities[1];
    for ((direction, slot), capacity) in DIRECTIONS.into_iter().zip(&capacities) {
        let Some(capacity) = capacity.as_ref().filter(|_| slot == 0 || !is_one) else { continue };
        let name =
            if is_one { "capacity (both ways)".to_owned() } else { format!("capacity {}", direction.name()) };
        let points = capacity.until(end).into_iter().map(|(at, rate)| {
            let mbit = rate.as_bits_per_sec() as f64 / 1e6;
            Point::new(at.as_secs_f64(), mbit).with_y_range(0.0, mbit)
        });
        let style = Style::steps().with_band().with_slot(slot + 2);
        figure.series.push(Series::new(&name, style, points));
    }
    for (direction, slot) in DIRECTIONS {
        let peak = capacities[slot].as_ref().map(Capacity::peak).unwrap_or_default();
        let bytes = departed(record, direction, bin, peak);
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

/// Bytes that departed in each bin. A packet counts in two bins where the link sent it in both, so
/// that none has more than the link could carry.
fn departed(record: &ParsedLog, direction: Direction, bin: u64, peak: Rate) -> Vec<u64> {
    let end = record.entries.iter().map(|entry| entry.at.as_nanos()).max().unwrap_or(0);
    let mut bytes = vec![0_u64; (end / bin + 1) as usize];
    for entry in record.entries.iter().filter(|entry| entry.direction == direction) {
        if !matches!(entry.event, ParsedEvent::Departure { .. }) {
            continue;
        }
        let (all, at) = (u64::from(entry.bytes), entry.at.as_nanos());
        let since = at % bin;
        let last = if peak.is_zero() { all } else { (peak * Span::from_nanos(since)).get().min(all) };
        let number = (at / bin) as usize;
        bytes[number] += last;
        bytes[number.saturating_sub(1)] += all - last;
    }
    bytes
}

fn delay(record: &ParsedLog) -> Svg {
    let mut figure = Figure::new("", Axis::linear("time", "s"), Axis::linear("delay", "ms"));
    for (direction, slot) in DIRECTIONS {
        let mut arrived = BTreeMap::new();
        let mut points = vec![];
        for entry in record.entries.iter().filter(|entry| entry.direction == direction) {
            match entry.event {
                ParsedEvent::Arrival { .. } => {
                    arrived.insert(entry.number, entry.at);
                }
                ParsedEvent::Departure { .. } => {
                    // A copy leaves after the packet itself, and has no arrival of its own.
                    if let Some(at) = arrived.remove(&entry.number) {
                        points.push((entry.at.as_secs_f64(), entry.at.since(at).as_millis_f64()));
                    }
                }
                ParsedEvent::Drop { .. } => {
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

/// The queue before the first link: the length that each packet found, one less as each left it.
///
/// The log has the time when a packet leaves the path. That is later than leaving the queue by its
/// transmission and the rest of the path: the least time of packets of this size or a larger one.
/// A packet that waited and is alone of its size is drawn early by a part of a transmission.
fn queue_steps<'a>(entries: impl Iterator<Item = &'a ParsedLine>) -> Vec<(Time, u32)> {
    let (mut arrived, mut passed) = (BTreeMap::new(), vec![]);
    // At the same time packets that waited leave first, then one arrives, which may leave at once.
    let mut events: Vec<(Time, u8, Option<u32>)> = vec![];
    for entry in entries {
        match entry.event {
            ParsedEvent::Arrival { queue_packets } => {
                arrived.insert(entry.number, (entry.at, queue_packets));
                events.push((entry.at, 1, Some(queue_packets)));
            }
            ParsedEvent::Departure { due } => {
                let since = arrived.remove(&entry.number);
                passed.extend(since.map(|(at, found)| (entry.bytes, at, found, due)));
            }
            ParsedEvent::Drop { .. } => {
                arrived.remove(&entry.number);
            }
        }
    }
    let mut least: BTreeMap<u32, Span> = BTreeMap::new();
    for (bytes, at, _, due) in &passed {
        let took = due.since(*at);
        least.entry(*bytes).and_modify(|least| *least = took.min(*least)).or_insert(took);
    }
    let mut of_larger = Span::MAX;
    for took in least.values_mut().rev() {
        of_larger = of_larger.min(*took);
        *took = of_larger;
    }
    for (bytes, at, found, due) in passed {
        if found > 0 {
            let waited = due.since(at).saturating_sub(least[&bytes]);
            events.push((at + waited, if waited.is_zero() { 2 } else { 0 }, None));
        }
    }
    events.sort_by_key(|(at, order, _)| (*at, *order));
    let mut level = 0_u32;
    let steps = events.into_iter().map(|(at, _, found)| {
        level = found.unwrap_or_else(|| level.saturating_sub(1));
        (at, level)
    });
    steps.collect()
}

fn queue(record: &ParsedLog) -> Svg {
    let mut figure = Figure::new("", Axis::linear("time", "s"), Axis::linear("queue", "packets"));
    let mut lost = vec![];
    for (direction, slot) in DIRECTIONS {
        let entries = || record.entries.iter().filter(|entry| entry.direction == direction);
        let steps = queue_steps(entries());
        for entry in entries().filter(|entry| matches!(entry.event, ParsedEvent::Drop { .. })) {
            let before = steps.partition_point(|(at, _)| *at <= entry.at);
            let level = before.checked_sub(1).map_or(0, |last| steps[last].1);
            lost.push((entry.at.as_secs_f64(), f64::from(level)));
        }
        let points = steps.iter().map(|(at, level)| (at.as_secs_f64(), f64::from(*level))).collect();
        figure.series.push(Series::new(direction.name(), Style::steps().with_slot(slot), envelope(points)));
    }
    if !lost.is_empty() {
        figure.series.push(Series::packets(PacketKind::Lost, thinned(lost)));
    }
    figure.svg()
}

/// Of neighbouring points that cannot be distinguished the lowest and the highest: no peak is lost.
fn envelope(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MAX_MARKS {
        return points;
    }
    let chunk = (2 * points.len()).div_ceil(MAX_MARKS);
    let ends = |chunk: &[(f64, f64)]| {
        let by = |one: &(usize, &(f64, f64)), other: &(usize, &(f64, f64))| one.1.1.total_cmp(&other.1.1);
        let low = chunk.iter().enumerate().min_by(by).map_or(0, |(place, _)| place);
        let high = chunk.iter().enumerate().max_by(by).map_or(0, |(place, _)| place);
        [chunk[low.min(high)], chunk[low.max(high)]]
    };
    let last = points.last().copied();
    points.chunks(chunk).flat_map(ends).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 25 Mbit/s, so 480 us for a packet of 1500 bytes, and 25 ms behind it.
    const SENT: u64 = 480;
    const PROPAGATION: u64 = 25_000;

    fn entry(micros: u64, number: u64, event: ParsedEvent) -> ParsedLine {
        let at = Time::from_nanos(micros * 1000);
        ParsedLine { at, direction: Direction::Down, number, bytes: 1500, event }
    }

    /// Eight packets arrive at 100 ms; at 150 ms one arrives, and another during its transmission.
    fn record() -> ParsedLog {
        let mut entries = vec![];
        for number in 0..8_u64 {
            entries.push(entry(100_000, number, ParsedEvent::Arrival { queue_packets: number as u32 }));
        }
        for number in 0..8 {
            let due = 100_000 + (number + 1) * SENT + PROPAGATION;
            entries.push(entry(
                due + 30,
                number,
                ParsedEvent::Departure { due: Time::from_nanos(due * 1000) },
            ));
        }
        for (at, number, queue_packets, begins) in [(150_000, 8, 0, 150_000), (150_100, 9, 1, 150_480)] {
            entries.push(entry(at, number, ParsedEvent::Arrival { queue_packets }));
            let due = begins + SENT + PROPAGATION;
            entries.push(entry(due, number, ParsedEvent::Departure { due: Time::from_nanos(due * 1000) }));
        }
        entries.push(entry(150_200, 10, ParsedEvent::Drop { cause: "queue full".to_owned() }));
        entries.sort_by_key(|entry| entry.at);
        ParsedLog { header: vec![], entries }
    }

    #[test]
    fn a_queue_drains_at_departures_not_at_the_next_arrival() {
        let steps = queue_steps(record().entries.iter());
        let level = |micros: u64| {
            let before = steps.partition_point(|(at, _)| *at <= Time::from_nanos(micros * 1000));
            before.checked_sub(1).map_or(0, |last| steps[last].1)
        };
        assert_eq!(level(99_999), 0);
        assert_eq!(level(100_000), 7, "one is being sent");
        for gone in 1..8 {
            let at = 100_000 + gone * SENT;
            assert_eq!((level(at - 1), level(at)), (8 - gone as u32, 7 - gone as u32), "{at} us");
        }
        assert_eq!((level(120_000), level(149_999)), (0, 0), "no ramp to the next arrival");
        assert_eq!((level(150_050), level(150_100), level(150_479), level(150_480)), (0, 1, 1, 0));
    }

    #[test]
    fn a_packet_alone_of_its_size_leaves_the_queue() {
        let level_after = |sizes: [u32; 2]| {
            let mut record = record();
            for (line, bytes) in record.entries.iter_mut().filter(|line| line.number == 9).zip(sizes) {
                line.bytes = bytes;
            }
            queue_steps(record.entries.iter()).last().expect("steps").1
        };
        assert_eq!(level_after([166, 166]), 0, "smaller than all others");
        assert_eq!(level_after([1600, 1600]), 0, "larger than all others");
    }

    #[test]
    fn thinning_keeps_the_peaks() {
        let points: Vec<(f64, f64)> =
            (0..100_000).map(|n| (f64::from(n), if n == 77_777 { 9.0 } else { f64::from(n % 2) })).collect();
        let thin = envelope(points);
        assert!(thin.len() <= MAX_MARKS + 2, "{}", thin.len());
        assert!(thin.contains(&(77_777.0, 9.0)) && thin.last() == Some(&(99_999.0, 1.0)));
        assert!(thin.is_sorted_by(|one, other| one.0 <= other.0));
    }

    #[test]
    fn no_bin_has_more_than_the_link_could_carry() {
        // 10 Mbit/s: a packet of 1500 bytes each 1.2 ms, and 16.7 of them in a bin of 20 ms.
        let mut record = record();
        let one = record.entries.iter().find(|entry| matches!(entry.event, ParsedEvent::Departure { .. }));
        let one = one.expect("a departure").clone();
        record.entries = (1..100)
            .map(|number| ParsedLine { at: Time::from_nanos(number * 1_200_000), bytes: 1500, ..one.clone() })
            .collect();
        let bytes = departed(&record, one.direction, 20_000_000, Rate::from_mbit_per_sec(10));
        assert_eq!(bytes[..5], [25_000; 5]);
        assert_eq!(
            departed(&record, one.direction, 20_000_000, Rate::ZERO)[0],
            24_000,
            "where it is not known"
        );
    }

    #[test]
    fn the_capacity_is_drawn_behind_the_throughput() {
        let mut record = record();
        assert!(!throughput(&record).as_str().contains("capacity"));
        record.header = vec![(DOWN_CAPACITY.to_owned(), "0:25000".to_owned())];
        assert!(throughput(&record).as_str().contains("capacity down"));
        record.header.push((UP_CAPACITY.to_owned(), "0:5000".to_owned()));
        assert!(throughput(&record).as_str().contains("capacity up"));
    }
}
