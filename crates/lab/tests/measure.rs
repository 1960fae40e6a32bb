//! `headstart measure` on captures: of flows in the simulator at both ends of the path, where every
//! number is known, and of damaged files.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use headstart::measure::capture::{Segment, read};
use headstart::measure::{Estimate, Measured, measure};
use headstart_net::{ElementPlan, Limit, PathPlan, Seed};
use headstart_sim::packet::{Body, Packet};
use headstart_sim::record::ElementEvent;
use headstart_sim::workload::Opener;
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::{Group, Path, Recorder, Scenario, Simulation, TcpConfig};
use headstart_startup::catalogue;
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

/// Packets that leave and reach both ends, as segments of a real TCP.
#[derive(Default)]
struct Taps {
    /// Behind the link to the receiver there is a loss: element 2, after the link back.
    has_loss: bool,
    at_sender: Vec<Segment>,
    at_receiver: Vec<Segment>,
    /// Timestamp of the latest acknowledgement that reached the sender, by connection.
    latest: BTreeMap<u32, u32>,
    /// Timestamps of packets on their way: data by its transmission, acknowledgements by the
    /// packet that caused them.
    echoes: BTreeMap<(u32, u32), u32>,
    values: BTreeMap<(u32, u32, u32), u32>,
}

const PAYLOAD: u32 = 1448;

impl Recorder for Taps {
    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        let has_left = matches!(event, ElementEvent::Accepted | ElementEvent::Refused(_)) && element < 2;
        let is_last = element == 1 || (element == 2) == self.has_loss;
        let has_come = matches!(event, ElementEvent::Delivered | ElementEvent::Passed) && is_last;
        if !has_left && !has_come {
            return;
        }
        let ends: [SocketAddr; 2] =
            [([192, 0, 2, 1], 443).into(), ([192, 0, 2, 2], 50_000 + packet.slot as u16).into()];
        let is_forward = matches!(packet.body, Body::Syn { .. } | Body::Data { .. });
        let [from, to] = if is_forward { ends } else { [ends[1], ends[0]] };
        // Sequence numbers wrap around within the first megabyte.
        let place = |segment: u32| (u32::MAX - 1_000_000).wrapping_add(segment * PAYLOAD);
        let stamp = (now.as_nanos() / 1_000_000) as u32;
        let mut segment = Segment {
            at: now,
            from,
            to,
            sequence: place(0),
            acknowledges: Some(1),
            payload: 0,
            headers: 52,
            is_syn: false,
            maximum_segment: None,
            timestamps: None,
            behind_hole: None,
            interface: 1,
        };
        let latest = self.latest.get(&packet.slot).copied().unwrap_or_default();
        match packet.body {
            Body::Syn { .. } => (segment.is_syn, segment.acknowledges) = (true, None),
            Body::SynAck { .. } => {
                (segment.is_syn, segment.maximum_segment, segment.acknowledges) =
                    (true, Some(1460), Some(place(0)));
            }
            Body::Data { segment: number, transmission, .. } => {
                let echo = *self.echoes.entry((packet.slot, transmission)).or_insert(latest);
                (segment.sequence, segment.payload, segment.timestamps) =
                    (place(number), PAYLOAD, Some((stamp, echo)));
            }
            Body::Ack(ack, ..) => {
                let value = *self.values.entry((packet.slot, ack.trigger, ack.transmission)).or_insert(stamp);
                if !has_left {
                    self.latest.insert(packet.slot, latest.max(value));
                }
                segment.acknowledges = Some(place(ack.cumulative));
                segment.timestamps = Some((value, 0));
                let newest = ack.blocks.iter().find(|block| block.end > block.start);
                segment.behind_hole = newest.map(|block| place(block.end));
            }
            _ => return,
        }
        let tap = if is_forward == has_left { &mut self.at_sender } else { &mut self.at_receiver };
        tap.push(segment);
    }
}

/// Captures at the sender and at the receiver of `flows` at once, of `bytes` each.
fn captures(plan: &PathPlan, flows: usize, bytes: u64) -> [Vec<Segment>; 2] {
    let scheme = catalogue::find("iw10").expect("it is in the catalogue").scheme();
    let tcp = TcpConfig { receive_window: Bytes::new(1 << 28), ..TcpConfig::default() };
    let group = Group::new(scheme, tcp);
    let start = Start::new(Time::ZERO, Bytes::new(bytes));
    let scenario = Scenario {
        path: Path::new(plan, Seed(1)),
        groups: vec![group],
        workload: Box::new(Listed::new(vec![start; flows], Opener::Sender)),
        until: Time::from_millis(4_000_000),
    };
    let taps = Taps { has_loss: plan.down.len() > 1, ..Taps::default() };
    let taps = Simulation::new(scenario, taps).run().recorder;
    [taps.at_sender, taps.at_receiver]
}

fn captured(plan: &PathPlan, bytes: u64) -> [Measured; 2] {
    captures(plan, 1, bytes).map(|segments| measure(&segments))
}

/// 20 Mbit/s, 40 ms and 150 kB.
fn usual() -> PathPlan {
    PathPlan::dumbbell(Rate::from_mbit_per_sec(20), Span::from_millis(40), Limit::bytes(Bytes::new(150_000)))
}

fn is_usual(measured: &Measured) -> bool {
    let near = |found: Option<Estimate>, expected: f64, share: f64| {
        found.is_some_and(|found| (found.value / expected - 1.0).abs() <= share)
    };
    near(measured.rate, 2e7, 0.05) && near(measured.rtt, 0.04, 0.05) && near(measured.buffer, 150e3, 0.2)
}

#[test]
fn connections_that_share_the_path_are_measured_together() {
    for measured in captures(&usual(), 5, 4_000_000).map(|segments| measure(&segments)) {
        assert!(is_usual(&measured) && measured.losses.1 == 0, "{measured:?}");
    }
}

#[test]
fn data_that_went_the_other_way_too_is_told() {
    for segments in captures(&usual(), 1, 2_000_000) {
        assert!(!measure(&segments).both_ways);
        let turned = |it: &Segment| {
            let [from, to] = [it.to, it.from].map(|end| SocketAddr::new(end.ip(), end.port() + 1));
            Segment { from, to, ..it.clone() }
        };
        let mut both: Vec<_> = segments.iter().flat_map(|it| [it.clone(), turned(it)]).collect();
        both.sort_by_key(|it| it.at);
        assert!(measure(&both).both_ways);
    }
}

#[test]
fn packets_that_two_interfaces_captured_count_once() {
    for segments in captures(&usual(), 1, 8_000_000) {
        let again = |it: &Segment| Segment { at: it.at + Span::from_micros(200), interface: 2, ..it.clone() };
        let mut both: Vec<_> = segments.iter().flat_map(|it| [it.clone(), again(it)]).collect();
        both.sort_by_key(|it| it.at);
        assert_eq!(format!("{:?}", measure(&both)), format!("{:?}", measure(&segments)));
    }
}

#[test]
fn a_capture_without_the_beginning_says_that_its_round_trip_is_a_bound() {
    for segments in captures(&usual(), 1, 20_000_000) {
        let whole = measure(&segments);
        let rest = measure(&segments[segments.len() / 3..]);
        assert!(whole.has_handshake && is_usual(&whole), "{whole:?}");
        let rtt = |measured: &Measured| measured.rtt.map_or(0.0, |rtt| rtt.value);
        assert!(!rest.has_handshake && rtt(&rest) > rtt(&whole), "{rest:?}");
    }
}

#[test]
fn both_ends_find_rate_round_trip_and_buffer_of_paths_that_were_filled() {
    // 10 kbit/s to 10 Gbit/s, loopback to a satellite.
    let paths = [
        (10_000, 800, 30_000, 300_000),
        (1_000_000, 100, 30_000, 2_000_000),
        (15_000_000, 60, 115_000, 10_000_000),
        (100_000_000, 10, 250_000, 40_000_000),
        (1_000_000_000, 20, 2_000_000, 60_000_000),
        (10_000_000_000, 1, 3_000_000, 80_000_000),
    ];
    for (rate, rtt_ms, buffer, bytes) in paths {
        let limit = Limit::bytes(Bytes::new(buffer));
        let plan = PathPlan::dumbbell(Rate::from_bits_per_sec(rate), Span::from_millis(rtt_ms), limit);
        for (place, measured) in ["sender", "receiver"].iter().zip(captured(&plan, bytes)) {
            let found = |estimate: Option<Estimate>| estimate.map_or(0.0, |it| it.value);
            let near = |found: f64, expected: f64, share: f64| (found / expected - 1.0).abs() <= share;
            let case = format!("{rate} bit/s, {rtt_ms} ms, {buffer} bytes, at the {place}: {measured:?}");
            assert!(measured.was_busy && near(found(measured.rate), rate as f64, 0.05), "{case}");
            // A full packet's transmission is part of what the shortest round trip took.
            let packet = 2.0 * 1500.0 * 8.0 / rate as f64;
            let rtt = rtt_ms as f64 / 1000.0;
            assert!((rtt * 0.99..rtt * 1.05 + packet).contains(&found(measured.rtt)), "{case}");
            let range = measured.buffer.map_or(0.0..0.0, |it| it.low * 0.8..it.high * 1.2);
            assert!(range.contains(&(buffer as f64)) && range.end < 3.0 * range.start, "{case}");
            assert_eq!(measured.losses.1, 0, "{case}");
        }
    }
}

#[test]
fn losses_of_the_path_are_told_from_those_of_its_queue() {
    let mut plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(50), Span::from_millis(10), Limit::NONE);
    plan.down.push(ElementPlan::loss(Ratio::percent(1)));
    for measured in captured(&plan, 20_000_000) {
        let share = measured.losses.1 as f64 / measured.packets as f64;
        assert!((0.007..0.013).contains(&share) && measured.losses.0 == 0, "{measured:?}");
        assert_eq!(measured.buffer, None, "{measured:?}");
    }
}

#[test]
fn a_flow_that_never_fills_the_path_gives_a_lower_bound_and_says_so() {
    let plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(1000), Span::from_millis(100), Limit::NONE);
    for measured in captured(&plan, 100_000) {
        assert!(!measured.was_busy && measured.buffer.is_none(), "{measured:?}");
        assert!(measured.rate.is_none_or(|rate| rate.low <= 1.05e9), "{measured:?}");
    }
}

/// A capture of one SYN over raw IP: the little-endian header of pcap, a record, IPv4 and TCP.
fn one_syn() -> Vec<u8> {
    let mut bytes = vec![];
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101, 7, 250_000, 40, 40] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    bytes.extend([1, 187, 195, 80, 0, 0, 0, 5, 0, 0, 0, 0, 0x50, 2, 255, 255, 0, 0, 0, 0]);
    bytes
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, bytes).expect("a file in the build's folder can be written");
    file
}

#[test]
fn a_segment_is_read_as_it_was_captured() {
    let (segments, is_cut) = read(&file("syn.pcap", &one_syn())).expect("it is a capture");
    let [segment] = &segments[..] else { panic!("{segments:?}") };
    assert!(segment.is_syn && segment.acknowledges.is_none() && !is_cut);
    assert_eq!((segment.at, segment.sequence, segment.payload), (Time::from_millis(7_250), 5, 0));
    assert_eq!(segment.from, ([192, 0, 2, 1], 443).into());
}

#[test]
fn damaged_captures_are_refused_or_read_in_part_and_never_a_panic() {
    let whole = one_syn();
    for length in 0..whole.len() {
        let _ = read(&file("cut.pcap", &whole[..length])).map(|(segments, _)| measure(&segments));
    }
    for place in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = [&whole[..], &whole[24..]].concat();
            bytes[place] = value;
            let _ = read(&file("changed.pcap", &bytes)).map(|(segments, _)| measure(&segments));
        }
    }
}

#[test]
fn what_is_no_capture_is_refused_with_one_line() {
    for (bytes, expected) in
        [(&b""[..], "empty file"), (b"GET / HTTP/1.1\r\n", "no header"), (&one_syn(), "1 TCP")]
    {
        let file = file("refused.pcap", bytes);
        let output = Command::new(env!("CARGO_BIN_EXE_headstart")).arg("measure").arg(&file).output();
        let output = output.expect("the command was built");
        let message = String::from_utf8(output.stderr).expect("messages are text");
        assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
        assert!(message.contains(expected) && message.contains("refused.pcap"), "{message}");
    }
}
