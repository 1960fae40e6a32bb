//! Conformance vectors: `vectors/SCHEME.txt`, whose form docs/conformance.md defines.
//!
//! Each file is replayed line by line. `HEADSTART_BLESS=1` writes the files anew: a small closed
//! loop of packets and a drop-tail bottleneck makes the events.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use headstart_startup::history::{Record, SharedCredit, SharedRecord};
use headstart_startup::prior::{Access, Hint};
use headstart_startup::sending::Sender;
use headstart_startup::{Controller, Prior, base, catalogue};
use headstart_units::{Bytes, Rate, Span, Time};

const VERSION: &str = "1";
const PACKET: u64 = 1200;
const RTT: u64 = 50_000_000;
/// RFC 9002 §6.1.1: a packet is lost once one that left three later has arrived.
const PACKET_THRESHOLD: u64 = 3;

/// A beginning, and the path that its events were made with.
struct Scenario {
    name: &'static str,
    why: &'static str,
    packets: u64,
    /// The rate on record, in the hint and of the grant, in bit/s; none of an unknown peer.
    known: Option<u64>,
    rate: u64,
    buffer: u64,
}

const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "unknown",
        why: "nothing is known of the peer, and the path has room",
        packets: 50,
        known: None,
        rate: 10_000_000,
        buffer: 62_500,
    },
    Scenario {
        name: "known",
        why: "the rate that is on record, in the hint and granted is that of the path",
        packets: 50,
        known: Some(10_000_000),
        rate: 10_000_000,
        buffer: 62_500,
    },
    Scenario {
        name: "wrong",
        why: "that rate is eight times that of the path, whose buffer is short: packets are lost",
        packets: 50,
        known: Some(40_000_000),
        rate: 5_000_000,
        buffer: 12_000,
    },
];

/// A sender that events are given to, and its answers as text.
struct Player {
    sender: Sender,
    /// Departures by number.
    departures: Vec<u64>,
}

impl Player {
    /// A sender whose first flight begins, and the answer to that.
    fn begin(scheme: &str, packets: u64, known: Option<u64>) -> (Self, String, u64) {
        let entry = catalogue::find(scheme).expect("it is in the catalogue");
        let packet = Bytes::new(PACKET);
        let mut sender = Sender::new(Controller::new(entry.scheme(), base::Kind::Cubic, packet), packet);
        let rate = known.map(Rate::from_bits_per_sec);
        let rtt = Span::from_nanos(RTT);
        let record = |btl_bw| Record {
            btl_bw,
            rt_prop: rtt,
            window: btl_bw * rtt,
            ssthresh: btl_bw * rtt,
            credit: btl_bw * rtt,
            ..Record::default()
        };
        let prior = Prior {
            flow_size: Some(packet * packets),
            history: rate.map(|rate| SharedRecord { record: record(rate), live: 0 }),
            shared_credit: Some(SharedCredit { reserved: Bytes::ZERO, credit: rate.map(|rate| rate * rtt) }),
            hint: rate.map(|bandwidth| Hint { bandwidth, access: Access::Unknown }),
            granted: rate,
            ..Prior::bare(Time::ZERO, packet, rtt, Bytes::new(1 << 20))
        };
        sender.on_rtt_sample(rtt);
        let plan = sender.update(|controller| controller.establish(&prior));
        sender.begin(plan.flight.min(packet * packets));
        let player = Self { sender, departures: vec![] };
        let answer = format!("burst={} flight={} {}", plan.burst.get(), plan.flight.get(), player.answer());
        (player, answer, plan.burst.get())
    }

    fn answer(&self) -> String {
        let controller = self.sender.controller();
        let allowance = controller.allowance();
        let pace = allowance.pace.map_or_else(|| "-".to_owned(), |pace| pace.as_bytes_per_sec().to_string());
        let phase = controller.phase().replace(' ', "-").to_lowercase();
        format!("window={} pace={pace} phase={phase}", allowance.window.get())
    }

    /// An event of packets, and the answer to it if it is one that may change something. Of packets
    /// that were sent `limit` says what held back the next one.
    fn play(&mut self, event: &str, now: u64, packets: &[u64], limit: Option<&str>) -> Option<String> {
        let at = Time::from_nanos(now);
        match event {
            "sent" => {
                for &number in packets {
                    assert_eq!(number, self.departures.len() as u64, "packets leave in order");
                    self.departures.push(now);
                    self.sender.on_sent(at, number, Bytes::new(PACKET));
                }
                match limit {
                    Some("limited") => self.sender.on_limited(),
                    Some("idle") => self.sender.on_app_limited(),
                    other => panic!("found {other:?} behind packets, expected `limited` or `idle`"),
                }
                return None;
            }
            "acked" => {
                let smoothed = self.sender.rtt().smoothed;
                self.sender.opens_batch(|| smoothed);
                for &number in packets {
                    self.sender.on_delivered(number, Time::from_nanos(self.departures[number as usize]));
                }
                let newest = packets.iter().max().expect("an ack is of a packet");
                let sample = Span::from_nanos(now - self.departures[*newest as usize]);
                self.sender.on_rtt_sample(sample);
                self.sender.end_of_acks(at, Some(sample), false);
            }
            "lost" => {
                for &number in packets {
                    self.sender.on_lost(number, Bytes::new(PACKET));
                }
                let newest = packets.iter().max().expect("a loss is of a packet");
                self.sender.end_of_losses(at, Time::from_nanos(self.departures[*newest as usize]), false);
            }
            other => panic!("found the event `{other}`, expected one of docs/conformance.md"),
        }
        Some(self.answer())
    }
}

/// Plays a scenario in a closed loop; returns its lines.
struct Loop<'a> {
    player: Player,
    lines: String,
    scenario: &'a Scenario,
    /// Arrivals of acks, in order: time and packet.
    acks: VecDeque<(u64, u64)>,
    /// When the bottleneck has sent all that it has.
    free_at: u64,
    in_flight: Vec<u64>,
    burst_left: u64,
    next_send_at: u64,
}

impl Loop<'_> {
    fn event(&mut self, event: &str, now: u64, packets: &[u64], limit: Option<&str>) {
        let list: Vec<String> = packets.iter().map(u64::to_string).collect();
        let _ = write!(self.lines, "{event} {now} {}", list.join(","));
        let answer = self.player.play(event, now, packets, limit);
        let _ = match (answer, limit) {
            (Some(answer), _) => writeln!(self.lines, " -> {answer}"),
            (None, limit) => writeln!(self.lines, " {}", limit.unwrap_or_default()),
        };
    }

    /// Sends what window and pace allow; returns the time at which the pacer allows more.
    fn send(&mut self, now: u64) -> Option<u64> {
        let mut leaving = vec![];
        let mut wakes_at = None;
        let is_all_sent = loop {
            let next = (self.player.departures.len() + leaving.len()) as u64;
            // Lost data leaves in further packets.
            if next >= self.scenario.packets + self.player.sender.tally().lost.get() / PACKET {
                break true;
            }
            let allowance = self.player.sender.controller().allowance();
            if (self.in_flight.len() as u64 + 1) * PACKET > allowance.window.get() {
                break false;
            }
            if let Some(pace) = allowance.pace.filter(|_| self.burst_left < PACKET) {
                if self.next_send_at > now {
                    wakes_at = Some(self.next_send_at);
                    break false;
                }
                self.next_send_at = now + (Bytes::new(PACKET) / pace).as_nanos();
            } else if let Some(pace) = allowance.pace {
                self.burst_left -= PACKET;
                self.next_send_at = now + (Bytes::new(PACKET) / pace).as_nanos();
            }
            leaving.push(next);
            self.in_flight.push(next);
            let waiting = self.free_at.saturating_sub(now) * self.scenario.rate / 8 / 1_000_000_000;
            if waiting + PACKET <= self.scenario.buffer {
                self.free_at = self.free_at.max(now) + PACKET * 8 * 1_000_000_000 / self.scenario.rate;
                self.acks.push_back((self.free_at + RTT, next));
            }
        };
        if !leaving.is_empty() {
            self.event("sent", now, &leaving, Some(if is_all_sent { "idle" } else { "limited" }));
        }
        wakes_at
    }

    fn run(mut self) -> String {
        let mut wakes_at = self.send(0);
        loop {
            let arrives = self.acks.front().map(|(at, _)| *at);
            let Some(now) = arrives.into_iter().chain(wakes_at).min() else { return self.lines };
            if arrives == Some(now) {
                let mut acked = vec![];
                // A receiver that acknowledges every second packet.
                while acked.len() < 2
                    && let Some((at, number)) = self.acks.front().copied()
                    && (acked.is_empty() || at <= now + 2_000_000)
                {
                    self.acks.pop_front();
                    acked.push((at, number));
                }
                let now = acked.last().map_or(now, |(at, _)| *at);
                let acked: Vec<u64> = acked.into_iter().map(|(_, number)| number).collect();
                self.in_flight.retain(|number| !acked.contains(number));
                let newest = *acked.last().expect("one at least");
                let lost: Vec<u64> =
                    self.in_flight.iter().copied().filter(|it| it + PACKET_THRESHOLD <= newest).collect();
                self.in_flight.retain(|number| !lost.contains(number));
                if !lost.is_empty() {
                    self.event("lost", now, &lost, None);
                }
                self.event("acked", now, &acked, None);
                wakes_at = self.send(now);
            } else {
                wakes_at = self.send(now);
            }
        }
    }
}

fn made(scheme: &str) -> String {
    let mut text = format!("# Conformance vectors of headstart, version {VERSION}: docs/conformance.md\n");
    let _ = writeln!(text, "scheme {scheme}");
    for scenario in &SCENARIOS {
        let Scenario { name, why, packets, known, rate, buffer } = *scenario;
        let (player, answer, burst_left) = Player::begin(scheme, packets, known);
        let shown = known.map_or_else(|| "-".to_owned(), |bits| bits.to_string());
        let _ = writeln!(text, "\n# {why}\nscenario {name} rate={rate} buffer={buffer}");
        let _ = writeln!(text, "begin packet={PACKET} packets={packets} rtt={RTT} known={shown} -> {answer}");
        let run = Loop {
            player,
            lines: String::new(),
            scenario,
            acks: VecDeque::new(),
            free_at: 0,
            in_flight: vec![],
            burst_left,
            next_send_at: 0,
        };
        text += &run.run();
    }
    text
}

/// Replays a file; returns the number of answers compared.
fn replay(scheme: &str, text: &str) -> usize {
    let mut player = None;
    let mut compared = 0;
    for (line, number) in text.lines().zip(1..) {
        let (event, expected) = line.split_once(" -> ").map_or((line, None), |(it, then)| (it, Some(then)));
        let words: Vec<&str> = event.split(' ').collect();
        let found = match words[..] {
            [] | [""] | ["#" | "scheme" | "scenario", ..] => continue,
            ["begin", ref settings @ ..] => {
                let value = |name: &str| -> &str {
                    let setting = settings.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
                    setting.unwrap_or_else(|| panic!("{scheme}, line {number}: no {name}"))
                };
                assert_eq!((value("packet"), value("rtt")), ("1200", "50000000"));
                let packets = value("packets").parse().expect("a number");
                let (begun, answer, _) = Player::begin(scheme, packets, value("known").parse().ok());
                player = Some(begun);
                Some(answer)
            }
            [event, at, packets, ref limit @ ..] => {
                let numbers = packets.split(',').map(|number| number.parse().expect("a packet"));
                let numbers: Vec<u64> = numbers.collect();
                let player = player.as_mut().expect("a scenario begins first");
                player.play(event, at.parse().expect("a time"), &numbers, limit.first().copied())
            }
            _ => panic!("{scheme}, line {number}: found `{line}`"),
        };
        assert_eq!(found.as_deref(), expected, "{scheme}, line {number}: {event}");
        compared += usize::from(expected.is_some());
    }
    compared
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors"))
}

#[test]
fn every_scheme_gives_the_answers_of_its_vectors() {
    let is_blessed = std::env::var_os("HEADSTART_BLESS").is_some();
    let names: Vec<String> = catalogue::all().iter().map(|entry| entry.name.to_string()).collect();
    for name in &names {
        let file = folder().join(format!("{name}.txt"));
        if is_blessed {
            fs::create_dir_all(folder()).expect("a folder");
            fs::write(&file, made(name)).expect("a file");
        }
        let text = fs::read_to_string(&file).unwrap_or_else(|error| {
            panic!(
                "{}: {error}: HEADSTART_BLESS=1 cargo test -p headstart-startup --test conformance",
                file.display()
            )
        });
        assert!(replay(name, &text) > 3 * 10, "{name}: each scenario has some answers");
    }
    let kept = fs::read_dir(folder()).expect("a folder").count();
    assert_eq!(kept, names.len(), "a file for each scheme, and none of another");
}

/// A changed answer is found, in each kind of line that has one.
#[test]
fn a_wrong_answer_is_found() {
    let text = made("wise-start");
    for (event, from, to) in
        [("begin ", "window=", "window=1"), ("acked ", "pace=", "pace=1"), ("lost ", "window=", "window=1")]
    {
        let at = text.find(&format!("\n{event}")).expect("such a line") + 1;
        let end = at + text[at..].find('\n').expect("its end");
        let wrong = text[..at].to_owned() + &text[at..end].replacen(from, to, 1) + &text[end..];
        let result = std::panic::catch_unwind(|| replay("wise-start", &wrong));
        assert!(result.is_err(), "{event}");
    }
    assert!(replay("wise-start", &text) > 30);
}
