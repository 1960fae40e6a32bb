//! Cost of a scheme per ack: `cargo bench -p headstart-quinn --bench schemes`.
//!
//! *start*: connections of 70 acks (100 kB over 15 Mbit/s and 60 ms), each with a new controller.
//! Building and establishing it is included. *avoidance*: a thousand acks after a cut. For each ack
//! a controller gets a sent and an ack event, and its allowance is read. Compared are ours and the
//! CUBIC of quinn-proto gets the same through its public trait.
//!
//! Nanoseconds are the median of eleven rounds, each of which runs all of them. Instructions come
//! from valgrind's callgrind, if it is installed. This program runs itself under it with few and
//! with many acks and divides the difference, so they repeat exactly where the compiler does. The
//! cost of the empty loop is subtracted from both.

mod quinn;

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use headstart_startup::base::Kind;
use headstart_startup::catalogue;
use headstart_startup::history::{Record, SharedRecord};
use headstart_startup::prior::{Access, Hint};
use headstart_startup::{Ack, Congestion, Controller, Prior, RateSample, Rtt, Sent, Signal, Transmission};
use headstart_units::{Bytes, Rate, Span, Time};
use quinn::Peer;

/// Payload of a segment.
pub const MSS: Bytes = Bytes::new(1448);
/// The path's round-trip time.
pub const RTT: Span = Span::from_millis(60);
/// From one packet to the next: 1500 bytes at 15 Mbit/s.
pub const SPACING: Span = Span::from_micros(800);
/// When connections are established.
const BEGIN: Time = Time::from_millis(10_000);
/// Acks of a flow of 100 kB.
const FLOW: u32 = 70;
/// Acks between two cuts.
const STRETCH: u32 = 1000;
/// Acks in a round of the clock; under callgrind, in the longer of two runs.
const ROUND: u64 = 1_400_000;
const COUNTED: u64 = 140_000;
const ROUNDS: usize = 11;

/// The events of one ack, and of the packet sent with it.
struct Step {
    sent: Sent,
    ack: Ack,
}

fn steps(count: u32) -> Vec<Step> {
    let per_round = RTT.as_nanos() / SPACING.as_nanos();
    let rtt = Rtt { latest: RTT, smoothed: RTT, variation: Span::from_millis(1), min: RTT };
    let step = |n: u64| {
        let sent_at = BEGIN + SPACING * n;
        let delivered = MSS * (n + 1);
        let prior_delivered = MSS * n.saturating_sub(per_round);
        let rate = RateSample {
            delivered: delivered - prior_delivered,
            interval: RTT,
            prior_delivered,
            is_app_limited: false,
        };
        let ack = Ack {
            now: sent_at + RTT,
            newest_sent_at: sent_at,
            newly_acked: MSS,
            first_flight_acked: if n < 10 { MSS } else { Bytes::ZERO },
            rtt_sample: Some(RTT),
            rtt,
            in_flight: MSS * per_round,
            delivered,
            rate,
            is_window_limited: true,
            in_recovery: false,
            is_all_sent: false,
            marked: Bytes::ZERO,
            stamped: None,
        };
        let sent = Sent {
            now: sent_at,
            bytes: MSS,
            in_flight: MSS * per_round,
            transmission: Transmission::Original,
            is_app_limited: false,
        };
        Step { sent, ack }
    };
    (0..u64::from(count)).map(step).collect()
}

/// A prior with every value set.
fn prior() -> Prior {
    let rate = Rate::from_mbit_per_sec(15);
    let record = Record {
        saved_at: Time::from_millis(5_000),
        btl_bw: rate,
        rt_prop: RTT,
        window: MSS * 75,
        ssthresh: MSS * 75,
        ..Record::default()
    };
    Prior {
        flow_size: Some(Bytes::new(100_000)),
        history: Some(SharedRecord { record, live: 0 }),
        hint: Some(Hint { bandwidth: rate, access: Access::Cable }),
        ..Prior::bare(BEGIN, MSS, RTT, Bytes::new(4 << 20))
    }
}

/// Feeds a controller all steps, and reads its allowance after each.
#[inline]
fn play(mut controller: Controller, steps: &[Step]) -> u64 {
    let mut sum = 0;
    for step in steps {
        let step = black_box(step);
        if controller.needs_sent_events() {
            controller.on_sent(&step.sent);
        }
        controller.on_ack(&step.ack);
        let allowance = controller.allowance();
        sum += allowance.window.get() + allowance.pace.map_or(0, Rate::as_bytes_per_sec);
    }
    sum
}

/// Slow start from twice the path's window, and then a loss: avoidance.
fn cut(kind: Kind) -> Controller {
    let scheme = catalogue::find("iw64").expect("in the catalogue").scheme();
    let mut controller = Controller::new(scheme, kind, MSS);
    let _ = controller.establish(&Prior { now: Time::ZERO, ..prior() });
    for step in &steps(96) {
        controller.on_ack(&step.ack);
    }
    let rtt = Rtt { latest: RTT, smoothed: RTT, variation: Span::from_millis(1), min: RTT };
    controller.on_congestion(&Congestion {
        now: BEGIN,
        signal: Signal::Loss,
        opens_episode: true,
        lost: MSS,
        first_flight_lost: Bytes::ZERO,
        newest_lost_sent_at: BEGIN,
        prior_in_flight: MSS * 160,
        in_flight: MSS * 159,
        delivered: MSS * 96,
        first_flight_delivered: MSS * 64,
        rtt,
    });
    assert!(controller.is_handed_over(), "a loss ends slow start");
    controller
}

/// A subject of measurement: processes a number of acks.
struct Subject {
    name: String,
    what: &'static str,
    run: Box<dyn Fn(u64) -> u64>,
}

fn subjects(only: Option<&str>) -> Vec<Subject> {
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut all = Vec::new();
    let mut add = |name: String, what, run: Box<dyn Fn(u64) -> u64>| all.push(Subject { name, what, run });
    let loops = |acks: u64, each: u32| 0..acks / u64::from(each);

    if is_wanted("nothing") {
        let script = steps(FLOW);
        add(
            "nothing".into(),
            "loop",
            Box::new(move |acks| {
                let one =
                    || script.iter().fold(0, |sum: u64, step| sum + black_box(step).ack.newly_acked.get());
                loops(acks, FLOW).map(|_| one()).fold(0, u64::wrapping_add)
            }),
        );
    }
    let own = catalogue::families().iter().map(|family| family.about().name);
    let named = own.filter_map(|name| catalogue::find(name).ok());
    let mut entries = catalogue::all();
    for entry in named {
        if !entries.iter().any(|one| one.name == entry.name) {
            entries.push(entry);
        }
    }
    for entry in entries.into_iter().filter(|entry| is_wanted(&entry.name)) {
        let (script, prior) = (steps(FLOW), prior());
        add(
            entry.name.to_string(),
            "start",
            Box::new(move |acks| {
                let start = |_| {
                    let scheme = entry.scheme();
                    let mut controller = Controller::new(scheme, Kind::Cubic, MSS);
                    let plan = controller.establish(black_box(&prior));
                    play(controller, &script) + plan.flight.get()
                };
                loops(acks, FLOW).map(start).fold(0, u64::wrapping_add)
            }),
        );
    }
    let bases =
        [("cubic", Kind::Cubic), ("cuback", Kind::Cuback), ("abba", Kind::Abba), ("reno", Kind::Reno)];
    for (name, kind) in bases {
        if is_wanted(name) {
            let (script, controller) = (steps(STRETCH), cut(kind));
            add(
                name.into(),
                "avoidance",
                Box::new(move |acks| {
                    loops(acks, STRETCH)
                        .map(|_| play(black_box(controller), &script))
                        .fold(0, u64::wrapping_add)
                }),
            );
        }
    }
    for (name, what, each, in_avoidance) in
        [("quinn-cubic-start", "start", FLOW, false), ("quinn-cubic", "avoidance", STRETCH, true)]
    {
        if is_wanted(name) {
            let peer = Peer::new(each, in_avoidance);
            add(
                name.into(),
                what,
                Box::new(move |acks| loops(acks, each).map(|_| peer.play()).fold(0, u64::wrapping_add)),
            );
        }
    }
    all
}

/// Nanoseconds of one round for each ack.
#[expect(clippy::disallowed_methods, reason = "how long an ack takes on the clock is what a bench is for")]
fn nanos(subject: &Subject) -> f64 {
    let began = Instant::now();
    black_box((subject.run)(ROUND));
    began.elapsed().as_nanos() as f64 / ROUND as f64
}

/// Instructions for each ack; `None` where valgrind cannot be run.
fn instructions(name: &str) -> Option<f64> {
    let count = |acks: u64| -> Option<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe().ok()?)
            .args(["--child", name, &acks.to_string()])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.split("Collected : ").nth(1)?.split_whitespace().next()?.parse().ok()
    };
    Some((count(COUNTED)? - count(COUNTED / 2)?) / (COUNTED / 2) as f64)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, acks] = &arguments[..]
        && flag == "--child"
    {
        for subject in subjects(Some(name)) {
            black_box((subject.run)(acks.parse().expect("--child: a number of acks")));
        }
        return;
    }
    let subjects = subjects(None);
    let mut rounds = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for (times, subject) in rounds.iter_mut().zip(&subjects) {
            times.push(nanos(subject));
        }
    }
    let times: Vec<f64> = rounds.iter_mut().map(|round| median(round)).collect();
    let counts: Vec<Option<f64>> = subjects.iter().map(|subject| instructions(&subject.name)).collect();
    if counts.contains(&None) {
        println!("No instructions: valgrind is not installed or does not run here.\n");
    }
    let at = |name: &str| subjects.iter().position(|subject| subject.name == name).expect("a subject");
    let (empty, peer) = (at("nothing"), at("quinn-cubic"));
    let net = |n: usize| times[n] - times[empty];
    let net_count = |n: usize| Some(counts[n]? - counts[empty]?);
    println!(
        "| scheme | work | instructions per ack (count) | over quinn's CUBIC (ratio) | time per ack (ns) | over quinn's CUBIC (ratio) |\n|---|---|--:|--:|--:|--:|"
    );
    for (n, subject) in subjects.iter().enumerate().filter(|(n, _)| *n != empty) {
        let count = net_count(n).map_or("-".into(), |count| format!("{count:.0}"));
        let ratio = net_count(n).zip(net_count(peer)).map_or("-".into(), |(a, b)| format!("{:.2}", a / b));
        println!(
            "| {} | {} | {count} | {ratio} | {:.1} | {:.2} |",
            subject.name,
            subject.what,
            net(n),
            net(n) / net(peer)
        );
    }
}
