//! What holds of every run, whatever the path, the scheme, the settings and the workload.
//!
//! Cases are drawn by a generator with a fixed seed, so that everybody tests the same ones.
//! `HEADSTART_CASES=5000 cargo test -p headstart-sim --test properties` tests more of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use headstart_net::jitter::Order;
use headstart_net::trace_link::AtEnd;
use headstart_net::{
    AnyElement, BurstLoss, Delay, Duplicate, Jitter, Limit, Link, Loss, ManagedLink, Queue, Trace, TraceLink,
    burst_loss,
};
use headstart_sim::packet::Packet;
use headstart_sim::record::{MessageReport, SenderEvent, SenderTrace};
use headstart_sim::tcp::{DelayedAck, Detection, ImmediateAck, Pacing, Probe};
use headstart_sim::workload::exchange::{Exchange, SessionSpec, Sessions};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::page::{Fetch, Object, PageSpec, Pages};
use headstart_sim::workload::{Mixed, Opener, PageReport, Workload};
use headstart_sim::{
    Checker, Claim, FlowReport, Group, NullRecorder, Path, PathBuilder, Recorder, Scenario, Seed, Simulation,
    Summary, TcpConfig,
};
use headstart_startup::catalogue::{self, Entry};
use headstart_startup::prior::{Access, Hint};
use headstart_startup::{Transmission, base};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};

// --- cases ------------------------------------------------------------------------------------------

/// A part of a path, to be built as often as needed.
#[derive(Clone, Debug)]
enum Part {
    Link(Rate, Span, Limit),
    Managed(Rate, Span, Limit, Law),
    Traced(Arc<Trace>, Span, Limit, Law),
    Delay(Span),
    Loss(Ratio),
    Burst(Ratio, Ratio),
    Jitter(Span, Order),
    Duplicate(Ratio),
}

#[derive(Clone, Copy, Debug)]
enum Law {
    DropTail,
    CoDel,
    Red,
}

impl Law {
    fn queue<P: headstart_net::Packet>(self, rate: Rate, limit: Limit, seed: u64) -> Queue<P> {
        match self {
            Self::DropTail => Queue::drop_tail(limit),
            Self::CoDel => Queue::codel(limit),
            Self::Red => Queue::red(rate, limit, seed),
        }
    }
}

impl Part {
    fn build(&self, seed: u64) -> AnyElement<Packet> {
        match self.clone() {
            Self::Link(rate, delay, limit) => AnyElement::Link(Link::new(rate, delay, limit)),
            Self::Managed(rate, delay, limit, law) => {
                let queue = law.queue(rate, limit, seed);
                AnyElement::ManagedLink(Box::new(ManagedLink::new(rate, delay, queue)))
            }
            Self::Traced(trace, delay, limit, law) => {
                let queue = law.queue(trace.mean_rate(), limit, seed);
                AnyElement::TraceLink(Box::new(TraceLink::new(trace, AtEnd::Repeat, delay, queue)))
            }
            Self::Delay(delay) => AnyElement::Delay(Delay::new(delay)),
            Self::Loss(share) => AnyElement::Loss(Loss::new(share, seed)),
            Self::Burst(enter, leave) => {
                AnyElement::BurstLoss(BurstLoss::new(burst_loss::Params::all_or_nothing(enter, leave), seed))
            }
            Self::Jitter(bound, order) => AnyElement::Jitter(Jitter::new(bound, order, seed)),
            Self::Duplicate(share) => AnyElement::Duplicate(Duplicate::new(share, seed)),
        }
    }

    /// What no packet can be faster than.
    fn least_delay(&self) -> Span {
        match *self {
            Self::Link(_, delay, _)
            | Self::Managed(_, delay, ..)
            | Self::Traced(_, delay, ..)
            | Self::Delay(delay) => delay,
            _ => Span::ZERO,
        }
    }

    fn claim(&self) -> Claim {
        match *self {
            Self::Link(rate, delay, limit) => Claim::Link { rate, delay, limit },
            _ => Claim::Counted,
        }
    }
}

/// What is transferred.
#[derive(Clone, Debug)]
enum Transfer {
    /// Flows of a size, at a time in milliseconds.
    Flows(Vec<(u64, u64)>, Opener, bool),
    /// Responses after think times in milliseconds; so many milliseconds between sessions.
    Sessions(Vec<(u64, u64)>, u64),
    /// Objects of an origin and a size.
    Pages(Vec<(u16, u64)>, Fetch, u64),
}

#[derive(Clone, Debug)]
struct Case {
    forward: Vec<Part>,
    reverse: Vec<Part>,
    entry: &'static Entry,
    base: base::Kind,
    tcp: TcpConfig,
    hint: Option<Hint>,
    history_capacity: usize,
    transfer: Vec<Transfer>,
    peers: u32,
    seed: u64,
}

/// Long enough for everything that makes any progress at all.
const UNTIL: Time = Time::from_millis(20_000_000_000);
/// No flow, session or page begins later.
const LAST_START: Time = Time::from_millis(4_000);

impl Case {
    fn path(&self) -> (Path, Vec<Claim>) {
        let mut builder = PathBuilder::default();
        let mut claims = vec![];
        let mut add = |parts: &[Part], way: &str| -> Vec<u16> {
            let place = |(at, part): (usize, &Part)| {
                claims.push(part.claim());
                let name = format!("{way} {at}");
                let seed = Seed(self.seed).child(&name).0;
                builder.element(name, part.build(seed))
            };
            parts.iter().enumerate().map(place).collect()
        };
        let (forward, reverse) = (add(&self.forward, "forward"), add(&self.reverse, "reverse"));
        builder.class(forward, reverse);
        (builder.build(), claims)
    }

    fn least_rtt(&self) -> Span {
        let parts = self.forward.iter().chain(&self.reverse);
        parts.fold(Span::from_nanos(1), |sum, part| sum + part.least_delay())
    }

    fn workload(&self, transfer: &Transfer, seed: Seed) -> Box<dyn Workload> {
        match transfer {
            Transfer::Flows(flows, opener, size_known) => {
                let start = |&(at, bytes): &(u64, u64)| Start {
                    at: Time::from_millis(at),
                    group: 0,
                    class: 0,
                    bytes: Bytes::new(bytes),
                    size_known: *size_known,
                };
                Box::new(Listed::new(flows.iter().map(start).collect(), *opener))
            }
            Transfer::Sessions(script, gap) => {
                let exchange = |&(think, bytes): &(u64, u64)| Exchange {
                    think: Span::from_millis(think),
                    bytes: Bytes::new(bytes),
                };
                let spec = SessionSpec {
                    scripts: vec![script.iter().map(exchange).collect()],
                    gap: Span::from_millis(*gap),
                    until: LAST_START,
                    group: 0,
                    peers: self.peers,
                };
                Box::new(Sessions::new(spec, seed))
            }
            Transfer::Pages(objects, fetch, gap) => {
                let object = |&(origin, bytes): &(u16, u64)| Object { origin, bytes: Bytes::new(bytes) };
                let spec = PageSpec {
                    pages: vec![objects.iter().map(object).collect()],
                    fetch: *fetch,
                    gap: Span::from_millis(*gap),
                    until: LAST_START,
                    groups: vec![(0, 1)],
                    peers: self.peers,
                };
                Box::new(Pages::new(spec, seed))
            }
        }
    }

    fn run<R: Recorder>(&self, recorder: R) -> (Summary, Path, R) {
        let workloads = self.transfer.iter().enumerate().map(|(number, transfer)| {
            self.workload(transfer, Seed(self.seed).child(&format!("workload {number}")))
        });
        let scenario = Scenario {
            path: self.path().0,
            groups: vec![Group {
                scheme: self.entry.scheme(),
                base: self.base,
                tcp: self.tcp,
                hint: self.hint,
                history_capacity: self.history_capacity,
            }],
            workload: Box::new(Mixed::new(workloads.collect())),
            until: UNTIL,
        };
        let finished = Simulation::new(scenario, recorder).run();
        (finished.summary, finished.path, finished.recorder)
    }
}

// --- how cases are drawn ----------------------------------------------------------------------------

/// Any number between the two, small ones as likely as large ones.
fn logarithmic(least: u64, most: u64) -> impl Strategy<Value = u64> {
    let octaves = (most as f64 / least as f64).log2();
    (0..=1_000_000_u32).prop_map(move |at| {
        let value = least as f64 * (f64::from(at) / 1e6 * octaves).exp2();
        (value as u64).clamp(least, most)
    })
}

fn rate() -> impl Strategy<Value = Rate> {
    logarithmic(50_000, 1_000_000_000).prop_map(Rate::from_bits_per_sec)
}

fn delay() -> impl Strategy<Value = Span> {
    prop_oneof![
        1 => Just(Span::ZERO),
        4 => (0..=100_u64).prop_map(Span::from_millis),
        1 => (0..=400_000_u64).prop_map(Span::from_micros),
    ]
}

fn limit(least_bytes: u64, least_packets: u64) -> impl Strategy<Value = Limit> {
    prop_oneof![
        (least_bytes..=20_000).prop_map(|bytes| Limit::bytes(Bytes::new(bytes))),
        (20_000..=1_000_000_u64).prop_map(|bytes| Limit::bytes(Bytes::new(bytes))),
        (least_packets..=700).prop_map(|packets| Limit::packets(Packets::new(packets))),
    ]
}

fn law() -> impl Strategy<Value = Law> {
    prop_oneof![Just(Law::DropTail), Just(Law::CoDel), Just(Law::Red)]
}

fn trace() -> impl Strategy<Value = Arc<Trace>> {
    proptest::collection::vec(0..300_u32, 1..60).prop_map(|mut millis| {
        millis.push(300);
        millis.sort_unstable();
        Arc::new(Trace::from_millis(millis).expect("rising and not empty"))
    })
}

fn link() -> impl Strategy<Value = Part> {
    prop_oneof![
        6 => (rate(), delay(), limit(0, 0)).prop_map(|(rate, delay, limit)| Part::Link(rate, delay, limit)),
        2 => (rate(), delay(), limit(3_100, 2), law()).prop_map(|(rate, delay, limit, law)| Part::Managed(rate, delay, limit, law)),
        1 => (trace(), delay(), limit(3_100, 2), law()).prop_map(|(trace, delay, limit, law)| Part::Traced(trace, delay, limit, law)),
    ]
}

/// Nothing, often; else something that disturbs.
fn disturbance() -> impl Strategy<Value = Option<Part>> {
    prop_oneof![
        4 => Just(None),
        2 => prop_oneof![0..=3_u32, 0..=40_u32].prop_map(|percent| Some(Part::Loss(Ratio::percent(percent)))),
        1 => (1..=40_u32, 2..=20_u32).prop_map(|(enter, length)| {
            // At most 40 % in all, however long a burst is.
            Some(Part::Burst(Ratio::new(enter, 60 * length), Ratio::new(1, length)))
        }),
        1 => (0..=60_u64).prop_map(|bound| Some(Part::Jitter(Span::from_millis(bound), Order::Free))),
        1 => (0..=60_u64).prop_map(|bound| Some(Part::Jitter(Span::from_millis(bound), Order::Kept))),
        1 => (0..=30_u32).prop_map(|percent| Some(Part::Duplicate(Ratio::percent(percent)))),
        1 => (0..=100_u64).prop_map(|delay| Some(Part::Delay(Span::from_millis(delay)))),
    ]
}

/// One to three links, what disturbs anywhere between.
fn way() -> impl Strategy<Value = Vec<Part>> {
    proptest::collection::vec((disturbance(), link()), 1..=3).prop_map(|parts| {
        let mut seen_loss = false;
        parts
            .into_iter()
            .flat_map(|(disturbance, link)| [disturbance, Some(link)])
            .flatten()
            // Loss once for each way: three times 40 % would be a cut wire.
            .filter(|part| match part {
                Part::Loss(_) | Part::Burst(..) => !std::mem::replace(&mut seen_loss, true),
                _ => true,
            })
            .collect()
    })
}

fn tcp() -> impl Strategy<Value = TcpConfig> {
    let detection = prop_oneof![2 => Just(Detection::Rack), 1 => Just(Detection::Rfc6675)];
    let probe = prop_oneof![Just(Probe::None), Just(Probe::TailLoss), Just(Probe::Quic)];
    let delayed_ack = prop_oneof![
        Just(DelayedAck::IMMEDIATE),
        Just(DelayedAck::SECOND),
        (1..=4_u32, 0..=200_u64, 0..=20_u32, 0..=4_u32).prop_map(|(every, timeout, quick, gap)| DelayedAck {
            every,
            timeout: Span::from_millis(timeout),
            quick,
            immediate: if gap == 0 { ImmediateAck::OutOfOrder } else { ImmediateAck::NewGap(gap) },
            ack_on_push: quick % 2 == 0,
        }),
    ];
    let receive_window = prop_oneof![
        4 => Just(141_000),
        1 => Just(1_448),
        2 => 1_448..=20_000_u64,
        2 => 20_000..=4_000_000_u64,
    ];
    let pacing = prop_oneof![Just(Pacing::Off), Just(Pacing::Linux)];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let min_rto = prop_oneof![Just(200_u64), 1..=1000_u64];
    (detection, probe, delayed_ack, receive_window, pacing, flags, 1..=10_u32, min_rto).prop_map(
        |(
            detection,
            probe,
            delayed_ack,
            receive_window,
            pacing,
            (ecn, prr, idle_restart, window_validation, as_linux),
            quantum,
            min_rto,
        )| {
            TcpConfig {
                receive_window: Bytes::new(receive_window),
                detection,
                probe,
                prr,
                delayed_ack,
                min_rto: Span::from_millis(min_rto),
                pacing,
                quantum,
                ecn,
                idle_restart,
                window_validation,
                as_linux,
                ..TcpConfig::default()
            }
        },
    )
}

fn transfer() -> impl Strategy<Value = Transfer> {
    let flow = || (0..=3_000_u64, prop_oneof![3 => logarithmic(1, 300_000), 1 => logarithmic(1, 3_000_000)]);
    let opener = prop_oneof![Just(Opener::Sender), Just(Opener::Receiver)];
    let fetch = prop_oneof![
        (1..=6_u16).prop_map(Fetch::Parallel),
        (1..=6_u16).prop_map(Fetch::Persistent),
        Just(Fetch::Multiplexed),
    ];
    let script = proptest::collection::vec((0..=3_000_u64, logarithmic(1, 200_000)), 1..=8);
    let objects = proptest::collection::vec((0..=2_u16, logarithmic(1, 100_000)), 1..=20);
    prop_oneof![
        3 => (proptest::collection::vec(flow(), 1..=5), opener, any::<bool>())
            .prop_map(|(flows, opener, known)| Transfer::Flows(flows, opener, known)),
        1 => (script, 500..=4_000_u64).prop_map(|(script, gap)| Transfer::Sessions(script, gap)),
        1 => (objects, fetch, 500..=4_000_u64).prop_map(|(page, fetch, gap)| Transfer::Pages(page, fetch, gap)),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let hint = proptest::option::of(
        prop_oneof![logarithmic(8, u64::MAX / 2), logarithmic(50_000, 1_000_000_000)]
            .prop_map(|bits| Hint { bandwidth: Rate::from_bits_per_sec(bits), access: Access::Unknown }),
    );
    let base = prop_oneof![Just(base::Kind::Cubic), Just(base::Kind::Reno)];
    let history = prop_oneof![Just(0_usize), Just(1), 1..=10_usize];
    (
        (way(), way()),
        0..catalogue::ALL.len(),
        base,
        tcp(),
        hint,
        history,
        proptest::collection::vec(transfer(), 1..=2),
        (1..=4_u32, any::<u64>()),
    )
        .prop_map(
            |((forward, reverse), scheme, base, tcp, hint, history_capacity, transfer, (peers, seed))| Case {
                forward,
                reverse,
                entry: &catalogue::ALL[scheme],
                base,
                tcp,
                hint,
                history_capacity,
                transfer,
                peers,
                seed,
            },
        )
}

// --- what is watched --------------------------------------------------------------------------------

/// What one sender did.
#[derive(Clone, Debug, Default)]
struct Watched {
    established: Option<(Time, SenderTrace)>,
    /// Something was acknowledged or lost: the first flight is no longer alone in charge.
    answered: bool,
    originals: u64,
    originals_in_flight: u64,
    original_bytes: u64,
    copies: u64,
    /// Window at the last trace of an undisturbed recovery of the base controller.
    recovering_from: Option<Bytes>,
    timed_out: bool,
}

/// Listens to senders and notes what must not be.
#[derive(Debug)]
struct Watch {
    name: &'static str,
    hint: Option<Hint>,
    tcp: TcpConfig,
    serial: u64,
    flows: BTreeMap<u64, Watched>,
    reports: Vec<FlowReport>,
    read: BTreeMap<u64, u64>,
    pages: u64,
    faults: Vec<String>,
}

impl Watch {
    fn new(case: &Case) -> Self {
        Self {
            name: case.entry.name,
            hint: case.hint,
            tcp: case.tcp,
            serial: 0,
            flows: BTreeMap::new(),
            reports: vec![],
            read: BTreeMap::new(),
            pages: 0,
            faults: vec![],
        }
    }

    fn fault(&mut self, what: String) {
        if self.faults.len() < 10 {
            self.faults.push(format!("flow {}: {what}", self.serial));
        }
    }

    /// The most that a scheme may pace its first flight at, given what it was granted.
    fn granted(&self, at_start: &SenderTrace) -> Option<f64> {
        let rtt = at_start.smoothed_rtt.as_secs_f64();
        let window = at_start.window.get() as f64;
        match self.name {
            "blitzstart" => {
                // RFC 5681: two segments whatever the hint.
                let least = 2.0 * self.tcp.mss.get() as f64 / rtt / 0.75;
                self.hint.map(|hint| (hint.bandwidth.as_bytes_per_sec() as f64 / 0.75).max(least))
            }
            "jump-start" | "halfback" | "halfback-forward" | "halfback-burst" => Some(window / rtt),
            "wise-start" | "wise-start-wa" | "s-cubic" | "careful-resume" => {
                at_start.pace.map(|pace| pace.as_bytes_per_sec() as f64)
            }
            _ => None,
        }
    }

    fn check_first_flight(&mut self, now: Time, trace: &SenderTrace) {
        let Some(watched) = self.flows.get(&self.serial) else { return };
        let Some((began, at_start)) = watched.established else { return };
        let Some(granted) = self.granted(&at_start) else { return };
        let pace = trace.pace.map(|pace| pace.as_bytes_per_sec() as f64);
        if let Some(pace) = pace
            && pace > granted * 1.000_1 + 2.0
        {
            self.fault(format!("pace of {pace} B/s in the first flight, {granted} B/s granted"));
        }
        if at_start.pace.is_some() {
            // One segment at once, and what a pacer's quantum lets go early.
            let mss = self.tcp.mss.get() as f64;
            let early = mss * f64::from(self.tcp.quantum + 1);
            let most = granted * 1.000_1 * now.since(began).as_secs_f64() + early + 2.0;
            let sent = self.flows[&self.serial].original_bytes as f64;
            if sent > most {
                self.fault(format!("{sent} bytes sent in the first flight, {most} granted"));
            }
        }
    }
}

impl Recorder for Watch {
    fn focus(&mut self, serial: u64) {
        self.serial = serial;
    }

    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        let trace = trace();
        let watched = self.flows.entry(self.serial).or_default();
        let mut faults = vec![];
        if trace.window < self.tcp.mss {
            faults.push(format!("a window of {} bytes in {}", trace.window.get(), trace.phase));
        }
        match trace.event {
            SenderEvent::Established => {
                if watched.established.is_some() {
                    faults.push("established twice".into());
                }
                watched.established = Some((now, trace));
            }
            SenderEvent::Sent { offset, payload, transmission } => {
                let Some((_, at_start)) = watched.established else {
                    return self.fault("sends before it is established".into());
                };
                match transmission {
                    Transmission::Original => {
                        if offset != watched.original_bytes {
                            faults
                                .push(format!("original at {offset} after {} bytes", watched.original_bytes));
                        }
                        watched.originals += 1;
                        watched.original_bytes += payload.get();
                        if offset < at_start.window.get() {
                            watched.originals_in_flight += 1;
                        }
                    }
                    Transmission::Copy => {
                        watched.copies += 1;
                        let budget = match self.name {
                            "proactive" => watched.originals,
                            name if name.starts_with("halfback") => watched.originals_in_flight / 2,
                            _ => 0,
                        };
                        if watched.copies > budget {
                            faults.push(format!("copy number {} of {budget}", watched.copies));
                        }
                    }
                    _ => {}
                }
            }
            SenderEvent::Acked { acknowledged, newly } => {
                watched.answered = true;
                if newly.is_zero() || acknowledged > watched.original_bytes {
                    faults.push(format!("{acknowledged} acknowledged of {}", watched.original_bytes));
                }
            }
            SenderEvent::Lost { .. } => watched.answered = true,
            SenderEvent::Timeout => {
                watched.answered = true;
                watched.timed_out = true;
            }
        }
        // RFC 9438, RFC 5681: no growth while lost data is being repaired.
        watched.timed_out &= trace.in_recovery;
        let is_base = matches!(trace.phase, "avoidance") && self.name != "blitzstart";
        watched.recovering_from = if trace.in_recovery && !watched.timed_out && is_base {
            if let Some(before) = watched.recovering_from
                && trace.window > before
            {
                faults.push(format!(
                    "the window grows in recovery, {} to {}",
                    before.get(),
                    trace.window.get()
                ));
            }
            Some(trace.window)
        } else {
            None
        };
        let is_first_flight = !watched.answered;
        for fault in faults {
            self.fault(fault);
        }
        if is_first_flight {
            self.check_first_flight(now, &trace);
        }
    }

    fn message(&mut self, report: &MessageReport) {
        *self.read.entry(report.serial).or_default() += report.bytes.get();
    }

    fn page(&mut self, _: &PageReport) {
        self.pages += 1;
    }

    fn flow(&mut self, report: &FlowReport) {
        self.reports.push(*report);
    }
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let (_, claims) = case.path();
    let (summary, path, checker) = case.run(Checker::new(&claims, Watch::new(case)));
    let (faults, watch) = checker.finish(&path);
    prop_assert!(faults.is_empty(), "the checker: {faults:#?}");
    prop_assert!(watch.faults.is_empty(), "the watch: {:#?}", watch.faults);

    prop_assert_eq!(summary.unfinished, 0, "flows were left over at {} s", summary.ended_at.as_secs_f64());
    for ((name, account), part) in path.accounts().zip(case.forward.iter().chain(&case.reverse)) {
        // Nothing is left to happen, so nothing is left inside.
        let out = account.delivered + account.dropped_in_all();
        let least_and_most = match part {
            Part::Duplicate(_) => account.offered..=account.offered * 2,
            _ => account.offered..=account.offered,
        };
        prop_assert!(least_and_most.contains(&out), "{name}: {account:?}");
    }
    prop_assert_eq!(watch.reports.len() as u64, summary.flows);
    for report in &watch.reports {
        let counts = &report.counts;
        prop_assert!(report.completed_at.is_some(), "not complete: {report:?}");
        prop_assert_eq!(report.read, report.written, "bytes read and written");
        prop_assert_eq!(report.delivered, report.written, "bytes delivered and written");
        let messages = watch.read.get(&report.serial).copied().unwrap_or_default();
        prop_assert_eq!(messages, report.read.get(), "bytes of messages and bytes read");
        prop_assert!(counts.bytes_sent >= report.delivered.get(), "{report:?}");
        let watched = &watch.flows[&report.serial];
        prop_assert_eq!(watched.original_bytes, report.written.get(), "each byte an original once");
        prop_assert_eq!(watched.originals + counts.retransmissions + counts.copies, counts.packets_sent);
        prop_assert_eq!(watched.copies, counts.copies);
        // Forty of a hundred lost there and back: a segment takes four transmissions, storms take more.
        prop_assert!(counts.packets_sent <= 100 + 30 * watched.originals, "a storm: {report:?}");
        // From the eighth on, SYNs share a number, and the handshake may be timed by the wrong one.
        if report.handshake_retransmissions < 7 {
            prop_assert!(report.min_rtt >= case.least_rtt(), "no path is that short: {report:?}");
        }
    }
    if case.transfer.iter().all(|transfer| matches!(transfer, Transfer::Pages(..))) {
        prop_assert!(watch.pages > 0 || summary.flows == 0);
    }
    prop_assert!(summary.events <= 100 * summary.data_packets + 10_000 * (1 + summary.flows), "{summary:?}");

    // A run does not depend on who listens, and is the same each time.
    let (again, _, second) = case.run(Watch::new(case));
    prop_assert_eq!(summary, again);
    prop_assert_eq!(format!("{:?}", watch.reports), format!("{:?}", second.reports));
    let (unrecorded, _, NullRecorder) = case.run(NullRecorder);
    prop_assert_eq!(summary, unrecorded);
    Ok(())
}

/// Runs `test` over `cases` cases, always the same ones.
fn over<S: Strategy>(cases: u32, strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let wanted = std::env::var("HEADSTART_CASES").ok().and_then(|text| text.parse().ok());
    let config = ProptestConfig {
        cases: wanted.unwrap_or(cases),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..ProptestConfig::default()
    };
    let source = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, source);
    match runner.run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => panic!("{reason}\nin the case {value:?}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_run_ends_with_everything_delivered_once() {
    over(5_000, case(), |case| check(&case));
}

/// One flow at a time over a path that reorders and loses acks.
fn disturbed(tcp: TcpConfig, transfer: Transfer, seed: u64) -> Case {
    let link = Part::Link(Rate::from_mbit_per_sec(10), Span::from_millis(20), Limit::NONE);
    Case {
        forward: vec![
            link.clone(),
            Part::Jitter(Span::from_millis(30), Order::Free),
            Part::Loss(Ratio::percent(10)),
        ],
        reverse: vec![Part::Loss(Ratio::percent(20)), link],
        entry: catalogue::find("iw10").expect("in the catalogue"),
        base: base::Kind::Cubic,
        tcp,
        hint: None,
        history_capacity: 0,
        transfer: vec![transfer],
        peers: 1,
        seed,
    }
}

/// Requests that follow one another on one connection: data that answers an earlier one says nothing of a later one.
#[test]
fn a_lost_request_is_repeated_though_earlier_answers_arrive() {
    for seed in 0..100 {
        let page = Transfer::Pages(vec![(0, 10_000); 8], Fetch::Multiplexed, 1_000);
        let (summary, _, NullRecorder) = disturbed(TcpConfig::default(), page, seed).run(NullRecorder);
        assert_eq!(summary.unfinished, 0, "seed {seed}");
    }
}

/// The reordering timer finds losses, the window lets nothing go, and the rest of what is in flight is lost too: without
/// a probe nothing would ever happen again.
#[test]
fn a_quic_probe_stays_armed_when_the_reordering_timer_finds_losses() {
    for seed in 0..100 {
        let tcp = TcpConfig { probe: Probe::Quic, prr: false, ..TcpConfig::default() };
        let flows = Transfer::Flows(vec![(0, 300_000)], Opener::Sender, true);
        let (summary, _, NullRecorder) = disturbed(tcp, flows, seed).run(NullRecorder);
        assert_eq!(summary.unfinished, 0, "seed {seed}");
    }
}

/// A burst of losses that lasts for packets, not for time: each probe is one step out of it.
#[test]
fn a_quic_probe_comes_back_within_the_longest_timeout() {
    for seed in 0..100 {
        let tcp = TcpConfig { probe: Probe::Quic, ..TcpConfig::default() };
        let flows = Transfer::Flows(vec![(0, 100_000)], Opener::Sender, true);
        let mut case = disturbed(tcp, flows, seed);
        case.forward.push(Part::Burst(Ratio::percent(2), Ratio::new(1, 30)));
        let (summary, _, NullRecorder) = case.run(NullRecorder);
        // Some bursts are three hundred packets long, and there are about two of them for each hundred packets.
        assert!(summary.ended_at < Time::from_millis(40_000_000), "seed {seed}: {summary:?}");
    }
}

/// One to three plain links with as much buffer as it takes, and packets late but in order.
fn faultless_way() -> impl Strategy<Value = Vec<Part>> {
    let late = proptest::option::of(
        (0..=60_u64).prop_map(|bound| Part::Jitter(Span::from_millis(bound), Order::Kept)),
    );
    let link = (rate(), delay()).prop_map(|(rate, delay)| Part::Link(rate, delay, Limit::NONE));
    proptest::collection::vec((late, link), 1..=3)
        .prop_map(|parts| parts.into_iter().flat_map(|(late, link)| [late, Some(link)]).flatten().collect())
}

fn faultless_case() -> impl Strategy<Value = Case> {
    (case(), faultless_way(), faultless_way()).prop_map(|(case, forward, reverse)| Case {
        forward,
        reverse,
        // No timer goes off: whatever is sent twice then was declared lost although it was not.
        tcp: TcpConfig {
            probe: Probe::None,
            min_rto: Span::from_secs(100_000),
            initial_rto: Span::from_secs(100_000),
            max_rto: Span::from_secs(100_000),
            ..case.tcp
        },
        ..case
    })
}

/// Where nothing is lost and nothing is overtaken, nothing is sent twice but copies, and nothing waits for a timeout.
#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    over(2_000, faultless_case(), |case| {
        let (summary, _, watch) = case.run(Watch::new(&case));
        prop_assert_eq!(summary.unfinished, 0);
        for report in &watch.reports {
            let counts = &report.counts;
            let probes = if case.entry.name == "reactive" { counts.probes } else { 0 };
            // A probe may carry new data.
            prop_assert!(counts.retransmissions <= probes, "{report:?}");
            prop_assert_eq!((counts.lost, counts.timeouts), (0, 0), "{:?}", report);
            let makes_copies = case.entry.name == "proactive" || case.entry.name.starts_with("halfback");
            prop_assert!(counts.copies == 0 || makes_copies, "{report:?}");
            // A copy may still be on its way when everything is acknowledged.
            prop_assert!(u64::from(report.duplicates) <= counts.copies + probes, "{report:?}");
        }
        Ok(())
    });
}

/// A path with time to spare before every timer: there none goes off.
fn calm_case() -> impl Strategy<Value = Case> {
    let rate = (20_000_000..=1_000_000_000_u64).prop_map(Rate::from_bits_per_sec);
    let delay = (1..=50_u64).prop_map(Span::from_millis);
    let ack = prop_oneof![
        Just(DelayedAck::IMMEDIATE),
        Just(DelayedAck { every: 2, timeout: Span::from_millis(40), ..DelayedAck::SECOND }),
        Just(DelayedAck { every: 2, timeout: Span::from_millis(40), quick: 16, ..DelayedAck::SECOND }),
    ];
    (case(), rate, delay, ack, logarithmic(1, 300_000)).prop_map(|(case, rate, delay, delayed_ack, size)| {
        let link = vec![Part::Link(rate, delay, Limit::NONE)];
        Case {
            forward: link.clone(),
            reverse: link,
            tcp: TcpConfig {
                delayed_ack,
                receive_window: Bytes::new(141_000),
                min_rto: Span::from_millis(200),
                ..case.tcp
            },
            transfer: vec![Transfer::Flows(
                vec![(0, size), (60_000, size), (120_000, size)],
                Opener::Sender,
                true,
            )],
            ..case
        }
    })
}

#[test]
fn no_timer_goes_off_where_nothing_is_late() {
    over(2_000, calm_case(), |case| {
        let (_, _, watch) = case.run(Watch::new(&case));
        for report in &watch.reports {
            let counts = &report.counts;
            prop_assert_eq!(
                (counts.retransmissions, counts.timeouts, counts.probes, counts.lost),
                (0, 0, 0, 0),
                "{:?}",
                report
            );
        }
        Ok(())
    });
}

/// Of two SYNs that arrive, the first set the SYN-ACK off that was answered.
#[test]
fn a_copy_of_the_syn_does_not_shorten_the_handshake() {
    for seed in 0..100 {
        let mut case =
            disturbed(TcpConfig::default(), Transfer::Flows(vec![(0, 1000)], Opener::Receiver, true), seed);
        let link = Part::Link(Rate::from_mbit_per_sec(1000), Span::from_millis(40), Limit::NONE);
        case.forward = vec![link.clone()];
        case.reverse =
            vec![Part::Duplicate(Ratio::ONE), Part::Jitter(Span::from_millis(60), Order::Free), link];
        let (_, _, watch) = case.run(Watch::new(&case));
        let (_, established) = watch.flows[&0].established.expect("nothing is lost");
        assert!(established.smoothed_rtt >= case.least_rtt(), "seed {seed}: {}", established.smoothed_rtt);
    }
}

/// A client whose second SYN was too early has the answer to its first one: that is what its request echoes, however
/// often it is sent.
#[test]
fn a_repeated_request_echoes_the_syn_that_was_answered() {
    for seed in 0..1_000 {
        let flows = Transfer::Flows(vec![(0, 1000)], Opener::Receiver, true);
        let mut case = disturbed(TcpConfig::default(), flows, seed);
        let link = Part::Link(Rate::from_mbit_per_sec(10), Span::from_millis(505), Limit::NONE);
        case.forward = vec![link.clone()];
        case.reverse =
            vec![Part::Loss(Ratio::percent(30)), Part::Jitter(Span::from_millis(60), Order::Free), link];
        let (_, _, watch) = case.run(Watch::new(&case));
        let report = &watch.reports[0];
        assert!(
            report.handshake_retransmissions > 6 || report.min_rtt >= case.least_rtt(),
            "seed {seed}: {report:?}"
        );
    }
}

#[test]
fn what_the_network_duplicates_arrives_twice() {
    let flows = Transfer::Flows(vec![(0, 100_000)], Opener::Sender, true);
    let mut case = disturbed(TcpConfig::default(), flows, 1);
    let link = Part::Link(Rate::from_mbit_per_sec(10), Span::from_millis(20), Limit::NONE);
    case.forward = vec![link.clone(), Part::Duplicate(Ratio::ONE)];
    case.reverse = vec![link];
    let (_, _, watch) = case.run(Watch::new(&case));
    let report = watch.reports[0];
    // The last copy finds the connection closed, or not: it is acknowledged at once.
    assert!(u64::from(report.duplicates) + 1 >= report.counts.packets_sent, "{report:?}");
}

/// WiseStart §3.3.1: twice the bottleneck rate that was measured; and no measurement is above the bottleneck's rate.
#[test]
fn wise_start_paces_at_twice_the_bottleneck_at_most() {
    let path =
        (case(), 500_000..=100_000_000_u64, 1..=100_u64, logarithmic(20_000, 1_000_000), any::<bool>());
    over(1_000, path, |(case, bits, delay, size, adapts)| {
        let rate = Rate::from_bits_per_sec(bits);
        let link = Part::Link(rate, Span::from_millis(delay), Limit::bytes(Bytes::new(100_000)));
        let case = Case {
            entry: catalogue::find(if adapts { "wise-start" } else { "wise-start-wa" })
                .expect("in the catalogue"),
            forward: vec![link.clone()],
            reverse: vec![link],
            history_capacity: 1,
            peers: 1,
            transfer: vec![Transfer::Flows(
                (0..4).map(|number| (number * 200_000, size)).collect(),
                Opener::Sender,
                true,
            )],
            ..case
        };
        let (_, _, watch) = case.run(Watch::new(&case));
        for (serial, watched) in &watch.flows {
            let Some((_, trace)) = watched.established else { continue };
            let pace = trace.pace.map_or(0.0, |pace| pace.as_bytes_per_sec() as f64);
            // RFC 5681: two segments in a round trip whatever the rate. A tenth more, because an ack for several
            // segments counts some that arrived before its interval began.
            let least = 2.0 * 2.0 * case.tcp.mss.get() as f64 / trace.smoothed_rtt.as_secs_f64();
            let most = (2.0 * rate.as_bytes_per_sec() as f64).max(least) * 1.1;
            prop_assert!(pace <= most, "flow {serial} is paced at {pace} B/s of {most}");
        }
        Ok(())
    });
}
