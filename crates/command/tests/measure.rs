//! `headstart measure` on captures: of flows in the simulator at both ends of the path, where every
//! number is known, and of damaged files.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use headstart_field::measure::capture::{Segment, read};
use headstart_field::measure::{Estimate, Measured, measure};
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
    let found = read(&one_syn()[..]).expect("it is a capture");
    let [segment] = &found.segments[..] else { panic!("{found:?}") };
    assert!(segment.is_syn && segment.acknowledges.is_none() && !found.is_cut);
    assert_eq!((segment.at, segment.sequence, segment.payload), (Time::from_millis(7_250), 5, 0));
    assert_eq!(segment.from, ([192, 0, 2, 1], 443).into());
}

#[test]
fn damaged_captures_are_refused_or_read_in_part_and_never_a_panic() {
    let whole = one_syn();
    for length in 0..whole.len() {
        let _ = read(&whole[..length]).map(|found| measure(&found.segments));
    }
    for place in 0..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = [&whole[..], &whole[24..]].concat();
            bytes[place] = value;
            let _ = read(&bytes[..]).map(|found| measure(&found.segments));
        }
    }
}

/// Form of the capture of a download.
#[derive(Clone, Copy)]
struct Capturing {
    /// Bytes before each IP packet.
    link: &'static [u8],
    link_type: u32,
    /// IPv6 with destination options of 8 bytes (RFC 8200 §4.6).
    has_extension: bool,
    /// IPv4 within IPv6.
    is_tunnelled: bool,
    /// The length of data in the IP header is 0.
    is_offloaded: bool,
    /// The clock is set back in mid-capture by so many microseconds.
    step: u64,
    /// Every tenth packet is written before the one that was captured before it.
    is_unordered: bool,
    /// A pcapng of two interfaces, of which each has one direction.
    is_tap: bool,
    /// Ticks in a second as pcapng writes it, where it is not microseconds.
    resolution: Option<u8>,
}

/// 400 packets at 20 Mbit/s and an RTT of 40 ms, seen at the receiver.
fn download(how: Capturing) -> Vec<u8> {
    let mut frames = vec![(0, false, 1000, 0, 2, 0), (40_000, true, 5000, 1001, 18, 0)];
    frames.push((40_100, false, 1001, 5001, 16, 0));
    for number in 0..400_u32 {
        let at = 90_000 + u64::from(number) * 605;
        frames.push((at, true, 5001 + number * 1448, 1001, 16, 1448));
        frames.push((at + 10, false, 1001, 5001 + (number + 1) * 1448, 16, 0));
    }
    let mut frames: Vec<_> = frames
        .into_iter()
        .enumerate()
        .map(|(number, (at, is_down, sequence, acknowledged, flags, size))| {
            let at = 1_000_000_000 + at - if number > 400 { how.step } else { 0 };
            (at, is_down, packet(how, is_down, sequence, acknowledged, flags, size))
        })
        .collect();
    if how.is_unordered {
        (10..frames.len()).step_by(10).for_each(|place| frames.swap(place, place - 1));
    }
    let is_new = how.is_tap || how.resolution.is_some();
    let block = |kind: u32, content: &[u8]| {
        let content = [content, &vec![0; content.len().wrapping_neg() % 4]].concat();
        let length = (content.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &length, &content[..], &length].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    if !is_new {
        let header = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, how.link_type]);
        let records = frames.iter().flat_map(|(at, _, frame)| {
            let length = frame.len() as u32;
            [words(&[(at / 1_000_000) as u32, (at % 1_000_000) as u32, length, length]), frame.clone()]
                .concat()
        });
        return header.into_iter().chain(records).collect();
    }
    let mut bytes = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let resolution = how.resolution.unwrap_or(6);
    let mut option = words(&[how.link_type, 0, 0x0001_0009]);
    option.extend([resolution, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([block(1, &option), block(1, &option)].concat());
    for (at, is_down, frame) in frames {
        let ticks =
            if resolution == 6 { at } else { (u128::from(at) << (resolution & 0x7f)) as u64 / 1_000_000 };
        let interface = u32::from(how.is_tap && is_down);
        let length = frame.len() as u32;
        let head = words(&[interface, (ticks >> 32) as u32, ticks as u32, length, length]);
        bytes.extend(block(6, &[head, frame].concat()));
    }
    bytes
}

fn packet(
    how: Capturing,
    is_down: bool,
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    size: usize,
) -> Vec<u8> {
    let ports: [u16; 2] = if is_down { [80, 4000] } else { [4000, 80] };
    let mut tcp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
    tcp.extend([sequence, acknowledged].iter().flat_map(|word| word.to_be_bytes()));
    tcp.extend([0x50, flags, 255, 255, 0, 0, 0, 0]);
    tcp.resize(20 + size, 0);
    let ends = if is_down { [1, 2] } else { [2, 1] };
    let six = |next: u8, content: &[u8]| {
        let length = (content.len() as u16).to_be_bytes();
        let mut ip = [&[0x60, 0, 0, 0], &length[..], &[next, 64]].concat();
        ends.iter().for_each(|end| ip.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, *end]));
        [&ip, content].concat()
    };
    let ip = if how.has_extension {
        six(60, &[&[6, 0, 1, 4, 0, 0, 0, 0], &tcp[..]].concat())
    } else {
        let length = if how.is_offloaded && size > 0 { 0 } else { 20 + tcp.len() as u16 };
        let length = length.to_be_bytes();
        let mut ip = [&[0x45, 0], &length[..], &[0, 1, 64, 0, 64, 6, 0, 0]].concat();
        ends.iter().for_each(|end| ip.extend([10, 0, 0, *end]));
        let packet = [ip, tcp].concat();
        if how.is_tunnelled { six(4, &packet) } else { packet }
    };
    [how.link, &ip].concat()
}

const ETHERNET: Capturing = Capturing {
    link: &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 8, 0],
    link_type: 1,
    has_extension: false,
    is_tunnelled: false,
    is_offloaded: false,
    step: 0,
    is_unordered: false,
    is_tap: false,
    resolution: None,
};

#[test]
fn a_download_has_its_rate_and_round_trip_however_it_was_captured() {
    const SIX: &[u8] = &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0x86, 0xdd];
    const PPPOE: &[u8] = &[2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0x88, 0x64, 0x11, 0, 0, 1, 5, 0xde, 0, 0x21];
    const ANY_VLAN: &[u8] = &[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 2, 2, 0x81, 0, 0, 0x64, 8, 0];
    let cases = [
        ("plain", ETHERNET),
        ("extension", Capturing { link: SIX, has_extension: true, ..ETHERNET }),
        ("tunnel", Capturing { link: SIX, is_tunnelled: true, ..ETHERNET }),
        ("offload", Capturing { is_offloaded: true, ..ETHERNET }),
        ("PPPoE", Capturing { link: PPPOE, ..ETHERNET }),
        ("VLAN behind any", Capturing { link: ANY_VLAN, link_type: 113, ..ETHERNET }),
        ("length of the checksum", Capturing { link_type: 0x1400_0001, ..ETHERNET }),
        ("step", Capturing { step: 100_000, ..ETHERNET }),
        ("unordered", Capturing { is_unordered: true, ..ETHERNET }),
        ("tap", Capturing { is_tap: true, ..ETHERNET }),
        ("powers of two", Capturing { resolution: Some(0x94), ..ETHERNET }),
    ];
    for (name, how) in cases {
        let found = read(&download(how)[..]).expect("it is a capture");
        let measured = measure(&found.segments);
        let value = |estimate: Option<Estimate>| estimate.map_or(0.0, |estimate| estimate.value);
        assert_eq!((found.segments.len(), measured.packets, measured.losses), (803, 400, (0, 0)), "{name}");
        assert!((0.0395..0.0405).contains(&value(measured.rtt)), "{name}: {measured:?}");
        assert!((1.9e7..2.1e7).contains(&value(measured.rate)), "{name}: {measured:?}");
        assert_eq!(found.steps.0, u32::from(name == "step"), "{name}: {:?}", found.steps);
    }
}

#[test]
fn frames_that_are_no_tcp_are_counted_by_name() {
    let [pppoe, arp] = [[0x88, 0x63], [8, 6]].map(|kind| [[2; 12].as_slice(), &kind].concat());
    for (link, expected) in [(pppoe, "PPPoE's discovery"), (arp, "ARP")] {
        let capture = download(Capturing { link: link.leak(), ..ETHERNET });
        let found = read(&capture[..]).expect("it is a capture");
        assert_eq!(found.others.get(expected), Some(&803), "{:?}", found.others);
        let output = Command::new(env!("CARGO_BIN_EXE_headstart"));
        let file = file(&format!("{}.pcap", expected.len()), &capture);
        let output = { output }.arg("measure").arg(file).output().expect("the command was built");
        let message = String::from_utf8(output.stderr).expect("messages are text");
        assert!(message.contains(&format!("803 of {expected}")), "{message}");
    }
}

#[test]
fn a_pipe_is_read_as_a_file_is_and_a_clock_that_was_set_back_is_told() {
    let capture = download(Capturing { step: 100_000, ..ETHERNET });
    let mut child = Command::new(env!("CARGO_BIN_EXE_headstart"))
        .args(["measure", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    child.stdin.take().expect("it is piped").write_all(&capture).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let [options, words] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(options.starts_with("--rate ") && options.contains("--loss 0%"), "{options} {words}");
    assert!(words.contains("times go backwards once, by 9"), "{words}");
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
