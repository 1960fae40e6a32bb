//! Conformance vectors: `vectors/SCHEME.txt`, whose form docs/conformance.md defines.
//!
//! Each file is replayed line by line. `HEADSTART_BLESS=1` writes the files anew: a small closed
//! loop of packets and a drop-tail bottleneck makes the events.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use headstart_startup::conformance::{self, Beginning, Player};
use headstart_startup::{Scheme, catalogue};
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
        why: "the rate that is on record, in the hint and granted is the path's",
        packets: 50,
        known: Some(10_000_000),
        rate: 10_000_000,
        buffer: 62_500,
    },
    Scenario {
        name: "wrong",
        why: "the rate is eight times the path's, whose buffer is short: packets are lost",
        packets: 50,
        known: Some(40_000_000),
        rate: 5_000_000,
        buffer: 12_000,
    },
];

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
        let answer = self.player.play(event, Time::from_nanos(now), packets, limit).expect("an event");
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
            let next = self.player.sent() + leaving.len() as u64;
            // Lost data leaves in further packets.
            if next >= self.scenario.packets + self.player.sender().tally().lost.get() / PACKET {
                break true;
            }
            let allowance = self.player.sender().controller().allowance();
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
        let flow = Beginning {
            packet: Bytes::new(PACKET),
            packets,
            rtt: Span::from_nanos(RTT),
            known: known.map(Rate::from_bits_per_sec),
        };
        let (player, answer) = Player::begin(scheme_of(scheme), &flow);
        let burst = answer.strip_prefix("burst=").and_then(|it| it.split(' ').next()?.parse().ok());
        let burst_left = burst.expect("an answer begins with it");
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

fn replay(scheme: &str, text: &str) -> Result<usize, conformance::Error> {
    conformance::replay(|| scheme_of(scheme), text)
}

fn scheme_of(name: &str) -> Scheme {
    catalogue::find(name).expect("it is in the catalogue").scheme()
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../vectors"))
}

#[test]
fn every_scheme_gives_the_answers_of_its_vectors() {
    let is_blessed = std::env::var_os("HEADSTART_BLESS").is_some();
    let others = catalogue::families().iter().filter_map(|it| catalogue::find(it.about().name).ok());
    let names: BTreeSet<String> =
        catalogue::all().into_iter().chain(others).map(|entry| entry.name.to_string()).collect();
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
        let compared = replay(name, &text).unwrap_or_else(|error| panic!("{name}, {error}"));
        assert!(compared > 3 * 10, "{name}: each scenario has some answers");
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
        let line = text[..at].lines().count() + 1;
        assert_eq!(replay("wise-start", &wrong).expect_err("it is wrong").line, line, "{event}");
    }
    assert!(replay("wise-start", &text).expect("its own answers") > 30);
}

/// Lines of another form are refused with what was found, and hostile numbers do no harm.
#[test]
fn a_line_of_another_form_is_refused() {
    let begin = "begin packet=1200 packets=50 rtt=50000000 known=-";
    for (wrong, message) in [
        ("acked 0 1", "line 2: found an event, expected `begin`"),
        ("begin packet=0 packets=1 rtt=1 known=-", "line 2: packet: found 0, expected 1 to 65536"),
        ("begin packet=1200 packets=1 known=-", "line 2: found no `rtt=`, expected it after `begin`"),
        ("begin packet=1200 packets=1 rtt=1 known=x", "line 2: found `x`, expected a number"),
        (&format!("{begin} -> burst=1"), "line 2: begin"),
    ] {
        let error = replay("iw10", &format!("scheme iw10\n{wrong}")).expect_err(wrong).to_string();
        assert!(error.starts_with(message), "{error}");
    }
    for (wrong, message) in [
        ("sent 0 1 idle", "found packet 1 sent, expected packet 0"),
        ("sent 0 0 perhaps", "found Some(\"perhaps\") after packets, expected `limited` or `idle`"),
        ("acked 0 7 -> window=1", "found acked of [7], expected packets that were sent before"),
        ("acked 18446744073709551616 0", "found `18446744073709551616`, expected a number"),
        ("eaten 9 0", "found eaten of [0], expected packets that were sent before"),
        ("sent", "found `sent`, expected an event of docs/conformance.md"),
    ] {
        let begun = made("iw10").lines().skip(5).take(1).collect::<String>();
        let error = replay("iw10", &format!("{begun}\n{wrong}")).expect_err(wrong).to_string();
        assert_eq!(error, format!("line 2: {message}"));
    }
    // Packets that are acknowledged or lost twice, and times that go back.
    let text = format!("{begin} -> burst=12000 flight=12000 window=12000 pace=- phase=slow-start");
    for rest in ["acked 9 0", "lost 9 0", "acked 5 0,0", "lost 18446744073709551615 1,0,1"] {
        let events = format!("{text}\nsent 5 0,1 idle\n{rest} -> window=0\n{rest} -> window=0\n");
        let error = replay("iw10", &events).expect_err("another window");
        assert!(error.to_string().contains("found window="), "{error}");
    }
}
