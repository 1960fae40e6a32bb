//! The object decides as the Rust schemes do: the same priors and events are given to both, and
//! window, pace and hand-over are compared as integers.
//!
//! The object is the one that is loaded into the kernel: its program `hs_replay` applies one event
//! at a time (BPF_PROG_TEST_RUN). Priors and events are drawn with a fixed seed over the ranges in
//! which both compute exactly (see `decide.h`). Events are in an order that a transport could give:
//! time advances, and only sent data is acknowledged.
//!
//! Not compared, because the kernel takes over there (`HS_GROW`): slow start after the start,
//! `WiseStart`'s Probe among it.
//!
//! The conformance vectors (`vectors/`) are played on the object as well.
#![cfg(feature = "load")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Mutex;

use headstart_ebpf::layout::{self, EVENTS, NEXT, NONE, Params, Start};
use headstart_ebpf::needs::Machine;
use headstart_ebpf::replay::Replay;
use headstart_ebpf::scheme::Scheme as Kernel;
use headstart_startup::allowance::{Allowance, FlightPlan, HandOver, Next};
use headstart_startup::catalogue::{About, Entry, Needs};
use headstart_startup::conformance;
use headstart_startup::event::{Ack, Congestion, Sent, Signal, Timeout, Transmission};
use headstart_startup::history::{
    FirstContacts, FixedHash, FlightOutcome, MemoryStore, Record, RecordUpdate, Revision, SharedCredit,
    SharedRecord, Store as _,
};
use headstart_startup::path::{RateSample, Rtt};
use headstart_startup::prior::{Access, Hint, Prior};
use headstart_startup::scheme::foreign::{self, ForeignScheme, Response};
use headstart_startup::scheme::{
    Blitzstart, CarefulResume, Headstart, JumpStart, LaterFlights, SCubic, Scheme, SlowStart, Startup,
    TcpCache, WiseStart, blitzstart, careful_resume, headstart, jump_start, s_cubic, slow_start, tcp_cache,
    wise_start,
};
use headstart_units::{Bytes, Rate, Span, Time};

/// A start in the object.
struct Object<'a> {
    replay: &'a Replay,
    params: Params,
    start: Start,
}

impl<'a> Object<'a> {
    fn new(replay: &'a Replay, scheme: Kernel) -> Self {
        let params = Params { lifetime: Span::from_secs(600).as_nanos(), cap: u64::MAX, ..scheme.params() };
        Self { replay, params, start: Start::default() }
    }

    fn run(&self, event: &str, with: impl FnOnce(&mut layout::Replay)) -> layout::Replay {
        let event = EVENTS.iter().position(|it| *it == event).expect("an event") as u64;
        let (params, start) = (self.params, self.start);
        let mut call = layout::Replay { params, start, event, ..Default::default() };
        with(&mut call);
        self.replay.apply(&mut call).expect("the object applies it");
        call
    }

    fn apply(&mut self, event: &str, with: impl FnOnce(&mut layout::Replay)) -> Start {
        self.start = self.run(event, with).start;
        self.start
    }

    /// If the connection ends now, the credit that follows `before`, and the rate on record after
    /// the one of `record` if `measured`. Also the credit of first contacts with the prefix of
    /// `peer` and the doubt in its records, which the outcome then revises.
    fn outcome(
        &self,
        before: Option<Bytes>,
        record: Rate,
        measured: Rate,
        peer: IpAddr,
    ) -> (Bytes, Rate, (Option<Bytes>, u32)) {
        let call = self.run("outcome", |call| {
            call.prior.btl_bw = record.as_bytes_per_sec();
            call.prior.window = measured.as_bytes_per_sec();
            call.prior.credit = before.map_or(0, Bytes::get);
            call.prior.hint = match peer {
                IpAddr::V4(four) => u64::from(four.to_bits()),
                IpAddr::V6(six) => (six.to_bits() >> 64) as u64,
            };
        });
        let first_contact = Some(Bytes::new(call.prior.ssthresh)).filter(|credit| !credit.is_zero());
        let first_contact = (first_contact, call.prior.doubt);
        (Bytes::new(call.prior.credit), Rate::from_bytes_per_sec(call.prior.btl_bw), first_contact)
    }

    fn establish(&mut self, prior: &Prior) -> Start {
        let record = prior.history.map(|it| it.record);
        let of = |field: fn(&Record) -> u64| record.as_ref().map_or(0, field);
        let room = prior.shared_credit.unwrap_or_default();
        let prior = layout::Prior {
            now: prior.now.as_nanos(),
            handshake_rtt: prior.handshake_rtt.as_nanos(),
            flow_size: prior.flow_size.map_or(NONE, Bytes::get),
            receive_window: prior.receive_window.get(),
            initial_window: prior.initial_window.get(),
            saved_at: of(|it| it.saved_at.as_nanos()),
            btl_bw: of(|it| it.btl_bw.as_bytes_per_sec()),
            rt_prop: of(|it| it.rt_prop.as_nanos()),
            window: of(|it| it.window.get()),
            ssthresh: of(|it| it.ssthresh.get()),
            hint: prior.hint.map_or(0, |it| it.bandwidth.as_bytes_per_sec()),
            credit: room.credit.map_or(0, Bytes::get),
            reserved: room.reserved.get(),
            live: prior.history.map_or(0, |it| it.live),
            mss: prior.mss.get() as u32,
            lossy: record.is_some_and(|it| it.outcome == FlightOutcome::Lossy).into(),
            doubt: room.doubt,
        };
        self.apply("establish", |call| call.prior = prior)
    }

    fn tell(&mut self, event: &Event) -> Start {
        match *event {
            Event::Sent(Sent { now, bytes, in_flight, .. }) => self.apply("sent", |call| {
                let (bytes, in_flight) = (bytes.get(), in_flight.get());
                call.sent = layout::Sent { now: now.as_nanos(), bytes, in_flight };
            }),
            Event::Ack(ack) => self.apply("ack", |call| {
                call.ack = layout::Ack {
                    now: ack.now.as_nanos(),
                    newest_sent_at: ack.newest_sent_at.as_nanos(),
                    newly_acked: ack.newly_acked.get(),
                    first_flight_acked: ack.first_flight_acked.get(),
                    rtt_sample: ack.rtt_sample.map_or(NONE, Span::as_nanos),
                    min_rtt: ack.rtt.min.as_nanos(),
                    smoothed: ack.rtt.smoothed.as_nanos(),
                    in_flight: ack.in_flight.get(),
                    delivered: ack.delivered.get(),
                    is_window_limited: ack.is_window_limited.into(),
                    in_recovery: ack.in_recovery.into(),
                };
            }),
            Event::Congestion(signal) => self.apply("congestion", |call| {
                call.congestion = layout::Congestion {
                    lost: signal.lost.get(),
                    first_flight_lost: signal.first_flight_lost.get(),
                    in_flight: signal.in_flight.get(),
                    delivered: signal.delivered.get(),
                    is_mark: (signal.signal == Signal::CongestionExperienced).into(),
                    is_timeout: 0,
                };
            }),
            Event::Timeout(timeout) => self.apply("timeout", |call| {
                call.congestion.delivered = timeout.delivered.get();
                call.congestion.is_timeout = 1;
            }),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Sent(Sent),
    Ack(Ack),
    Congestion(Congestion),
    Timeout(Timeout),
}

fn tell(scheme: &mut Scheme, event: &Event) -> Next {
    match event {
        Event::Sent(sent) => {
            scheme.on_sent(sent);
            Next::Stay
        }
        Event::Ack(ack) => scheme.on_ack(ack),
        Event::Congestion(signal) => scheme.on_congestion(signal),
        Event::Timeout(timeout) => scheme.on_timeout(timeout),
    }
}

/// The Rust scheme with the parameters that the object has.
fn twin(kernel: Kernel) -> Scheme {
    match kernel {
        Kernel::SlowStart(initial_window) => Scheme::SlowStart(SlowStart::new(slow_start::Params {
            initial_window: initial_window.into(),
            ..Default::default()
        })),
        Kernel::JumpStart => {
            Scheme::JumpStart(LaterFlights::new(JumpStart::new(jump_start::Params::default())))
        }
        Kernel::SCubic => Scheme::SCubic(SCubic::new(s_cubic::Params::default())),
        Kernel::TcpCache => Scheme::TcpCache(TcpCache::new(tcp_cache::Params { initial_window: 10 })),
        Kernel::WiseStart => Scheme::WiseStart(WiseStart::new(wise_start::Params::default())),
        Kernel::WiseStartWa => {
            Scheme::WiseStart(WiseStart::new(wise_start::Params { adaptation: false, ..Default::default() }))
        }
        Kernel::CarefulResume => Scheme::CarefulResume(CarefulResume::new(careful_resume::Params::default())),
        Kernel::Blitzstart => Scheme::Blitzstart(Blitzstart::new(blitzstart::Params::default())),
        Kernel::Headstart => Scheme::Headstart(Headstart::new(headstart::Params::default())),
    }
}

/// SplitMix64: the same numbers everywhere.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.next().is_multiple_of(of)
    }
}

fn record(btl_bw: Rate, rt_prop: Span) -> Record {
    Record { btl_bw, rt_prop, ..Record::default() }
}

fn prior(draw: &mut Draw) -> Prior {
    let mss = Bytes::new(draw.within(536, 8948));
    let rtt = Span::from_micros(draw.within(100, 700_000));
    let now = Time::from_millis(draw.within(1_000_000, 2_000_000));
    let mut prior = Prior::bare(now, mss, rtt, Bytes::new(draw.within(1_000, 4 << 20)));
    let magnitude = draw.within(11, 29);
    let rate = Rate::from_bytes_per_sec(draw.within(1_000, 1 << magnitude));
    if !draw.one_in(8) {
        let rt_prop = Span::from_micros(draw.within(50, 2 * rtt.as_nanos() / 1000));
        let saved_at =
            now - Span::from_secs(if draw.one_in(2) { draw.within(0, 700) } else { draw.within(0, 400_000) });
        let record = Record {
            saved_at,
            window: Bytes::new(draw.within(0, 1 << 22)),
            ssthresh: if draw.one_in(3) { Bytes::MAX } else { Bytes::new(draw.within(0, 1 << 22)) },
            outcome: if draw.one_in(2) { FlightOutcome::Clean } else { FlightOutcome::Lossy },
            ..record(rate, rt_prop)
        };
        prior.history = Some(SharedRecord { record, live: u32::from(draw.one_in(10)) });
    }
    if !draw.one_in(4) {
        prior.hint = Some(Hint {
            bandwidth: Rate::from_bytes_per_sec(draw.within(1_000, 1 << 27)),
            access: Access::Lte,
        });
    }
    if !draw.one_in(4) {
        prior.shared_credit = Some(SharedCredit {
            reserved: if draw.one_in(2) { Bytes::ZERO } else { Bytes::new(draw.within(0, 1 << 20)) },
            credit: (!draw.one_in(4)).then(|| Bytes::new(draw.within(1, 1 << 22))),
            doubt: if draw.one_in(2) { 0 } else { draw.within(0, 1_000_000) as u32 },
        });
    }
    if draw.one_in(2) {
        prior.flow_size = Some(Bytes::new(draw.within(1, 1 << 22)));
    }
    if draw.one_in(3) {
        prior.initial_window = mss * 10;
    }
    prior
}

/// A transport that sends as it is allowed to, or less, over a path that delivers, loses and marks.
struct Transport {
    now: Time,
    mss: Bytes,
    rtt: Span,
    sent: Bytes,
    in_flight: Bytes,
    delivered: Bytes,
    flight_delivered: Bytes,
    in_recovery: bool,
    min_rtt: Span,
    oldest: Vec<Time>,
}

impl Transport {
    fn new(prior: &Prior) -> Self {
        Self {
            now: prior.now,
            mss: prior.mss,
            rtt: prior.handshake_rtt,
            sent: Bytes::ZERO,
            in_flight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            flight_delivered: Bytes::ZERO,
            in_recovery: false,
            min_rtt: Span::MAX,
            oldest: Vec::new(),
        }
    }

    fn next(&mut self, draw: &mut Draw, window: Bytes, flight: Bytes) -> Event {
        let has_room = self.in_flight + self.mss <= window;
        let sends = self.oldest.is_empty() || (has_room && self.oldest.len() < 40 && draw.one_in(2));
        self.now += Span::from_nanos(draw.within(0, self.rtt.as_nanos() / 10));
        if sends {
            self.in_flight += self.mss;
            self.sent += self.mss;
            self.oldest.push(self.now);
            return Event::Sent(Sent {
                now: self.now,
                bytes: self.mss,
                in_flight: self.in_flight,
                transmission: Transmission::Original,
                is_app_limited: false,
            });
        }
        let rtt = Rtt { latest: self.rtt, smoothed: self.rtt, variation: Span::ZERO, min: self.min_rtt };
        match draw.within(0, 60) {
            0 => Event::Timeout(Timeout {
                now: self.now,
                prior_in_flight: self.in_flight,
                delivered: self.delivered,
                consecutive: 1,
            }),
            kind @ 1..=3 => {
                let is_mark = kind == 1;
                let lost = if is_mark { Bytes::ZERO } else { self.mss };
                if !is_mark {
                    self.oldest.remove(0);
                    self.in_recovery = true;
                }
                let prior_in_flight = self.in_flight;
                self.in_flight = self.in_flight.saturating_sub(lost);
                let is_of_flight = self.delivered < flight;
                Event::Congestion(Congestion {
                    now: self.now,
                    signal: if is_mark { Signal::CongestionExperienced } else { Signal::Loss },
                    opens_episode: true,
                    lost,
                    first_flight_lost: if is_of_flight { lost } else { Bytes::ZERO },
                    newest_lost_sent_at: self.now,
                    prior_in_flight,
                    in_flight: self.in_flight,
                    delivered: self.delivered,
                    first_flight_delivered: self.flight_delivered,
                    rtt,
                })
            }
            _ => {
                let newest_sent_at = self.oldest.remove(0);
                let sample = self.now.since(newest_sent_at).max(Span::from_nanos(1));
                self.min_rtt = self.min_rtt.min(sample);
                let first = self.mss.min(flight.saturating_sub(self.flight_delivered));
                self.in_flight = self.in_flight.saturating_sub(self.mss);
                self.delivered += self.mss;
                self.flight_delivered += first;
                self.in_recovery &= !draw.one_in(3);
                Event::Ack(Ack {
                    now: self.now,
                    newest_sent_at,
                    newly_acked: self.mss,
                    first_flight_acked: first,
                    rtt_sample: (!draw.one_in(5)).then_some(sample),
                    rtt: Rtt { min: self.min_rtt, ..rtt },
                    in_flight: self.in_flight,
                    delivered: self.delivered,
                    rate: RateSample::default(),
                    is_window_limited: !draw.one_in(3),
                    in_recovery: self.in_recovery,
                    is_all_sent: false,
                    marked: Bytes::ZERO,
                    stamped: None,
                })
            }
        }
    }
}

/// In charge after the event.
fn next_of(answer: &Start) -> &'static str {
    NEXT[answer.next as usize]
}

/// A first contact with `peer` ends with `revision`: credit and doubt of those before it.
fn first_contact(store: &mut MemoryStore, peer: IpAddr, revision: &Revision) -> (Option<Bytes>, u32) {
    let (_, mut lease) = store.open(peer);
    let mut before = (None, 0);
    store.reserve(&mut lease, &mut |shared| {
        before = (shared.credit, shared.doubt);
        Bytes::new(1)
    });
    store.release(&mut lease, revision);
    store.close(lease, RecordUpdate::Keep);
    before
}

/// Replays one connection on both. Returns the number of events compared.
fn compare(replay: &Replay, contacts: &mut MemoryStore, kernel: Kernel, seed: u64) -> usize {
    let draw = &mut Draw(seed);
    let prior = prior(draw);
    let mut rust = twin(kernel);
    let mut object = Object::new(replay, kernel);
    let plan = rust.establish(&prior);
    let answer = object.establish(&prior);
    let context = |what: &str| format!("{kernel} seed {seed} {what}: {prior:?}");
    let found = (answer.window, answer.pace, answer.burst);
    let pace = plan.allowance.pace.map_or(0, Rate::as_bytes_per_sec);
    assert_eq!(found, (plan.allowance.window.get(), pace, plan.burst.get()), "{}", context("plan"));
    // Careful Resume counts its initial data as it leaves.
    if kernel != Kernel::CarefulResume {
        assert_eq!(answer.flight, plan.flight.get(), "{}", context("flight"));
    }
    if next_of(&answer) == "grow" {
        return 1;
    }
    let mut transport = Transport::new(&prior);
    for step in 0..200 {
        let event = transport.next(draw, rust.allowance().window, plan.flight);
        let next = tell(&mut rust, &event);
        let answer = object.tell(&event);
        let why = || context(&format!("step {step} {event:?} -> {next:?}, {answer:?}, {}", rust.phase()));
        let sent = matches!(event, Event::Sent(_));
        if kernel == Kernel::Headstart {
            assert_eq!(answer.settled != 0, rust.credit_revision(false).is_some(), "{}", why());
            let before = prior.shared_credit.and_then(|room| room.credit);
            let revision = rust.credit_revision(true).expect("Headstart always has one");
            let known = prior.history.map(|it| it.record);
            let measured = Rate::from_bytes_per_sec(draw.within(1, 100_000_000));
            let stored = match rust.record_update(Some(record(measured, transport.min_rtt))) {
                RecordUpdate::Replace(stored) => stored,
                other => panic!("{other:?}"),
            };
            let known = known.filter(|it| !it.rt_prop.is_zero()).map_or(Rate::ZERO, |it| it.btl_bw);
            // Some prefixes have many first contacts, others few.
            let network = draw.within(0, 30).pow(2) as u32;
            let host = draw.within(1, 254) as u32;
            let peer = if draw.one_in(2) {
                Ipv4Addr::from_bits((network << 8) | host).into()
            } else {
                Ipv6Addr::from([0x2001, 0xdb8, network as u16, host as u16 * 0x101, 0, 0, 0, 1]).into()
            };
            let (credit, rate, of_contacts) = object.outcome(before, known, measured, peer);
            assert_eq!(of_contacts, first_contact(contacts, peer, &revision), "{peer} {}", why());
            assert_eq!(credit, revision.of(before), "{} {revision:?}", why());
            assert_eq!(rate, stored.btl_bw, "{}", why());
        }
        match next {
            Next::Stay if !sent && next_of(&answer) == "grow" => {
                // The kernel goes on in slow start, where the Rust scheme does so itself.
                assert!(matches!(rust.phase(), "Probe" | "slow start"), "{}", why());
                assert_eq!(answer.window, rust.allowance().window.get(), "{}", why());
                return step + 1;
            }
            Next::Stay => {
                assert!(sent || next_of(&answer) == "stay", "{}", why());
                let pace = rust.allowance().pace.map_or(0, Rate::as_bytes_per_sec);
                assert_eq!((answer.window, answer.pace), (rust.allowance().window.get(), pace), "{}", why());
            }
            Next::HandOver(HandOver { window, ssthresh, cut, .. }) => {
                assert_eq!(next_of(&answer), if cut { "cut" } else { "avoid" }, "{}", why());
                assert_eq!(answer.window, window.get(), "{}", why());
                if !cut {
                    assert_eq!(answer.ssthresh, ssthresh.get(), "{}", why());
                }
                return step + 1;
            }
        }
    }
    200
}

#[test]
fn the_object_decides_as_the_rust_schemes_do() {
    let missing = Machine::detect().missing(headstart_ebpf::needs::Level::Control);
    if !missing.is_empty() {
        return headstart_host::not_run(&format!(
            "vectors against the loaded object: {}",
            missing.join("; ")
        ));
    }
    let replay = Replay::load().expect("the object");
    let mut contacts = MemoryStore::shard(0, FixedHash::default(), FirstContacts::by_network());
    let seeds = if cfg!(debug_assertions) { 300 } else { 3_000 };
    for kernel in [
        Kernel::SlowStart(10),
        Kernel::SlowStart(32),
        Kernel::JumpStart,
        Kernel::SCubic,
        Kernel::TcpCache,
        Kernel::WiseStart,
        Kernel::WiseStartWa,
        Kernel::CarefulResume,
        Kernel::Blitzstart,
        Kernel::Headstart,
    ] {
        let events: usize = (0..seeds).map(|seed| compare(&replay, &mut contacts, kernel, seed)).sum();
        println!("{kernel}: {events} events of {seeds} connections");
        assert!(events >= seeds as usize);
    }
}

/// The object as the scheme of connections, for a player of conformance vectors. Where the kernel
/// takes over in slow start, this does slow start in its place (RFC 5681 §3.1).
#[derive(Debug)]
struct InKernel {
    about: &'static About,
    kernel: Kernel,
    replay: Mutex<Replay>,
    starts: Mutex<Vec<Start>>,
}

impl InKernel {
    fn with<T>(&self, connection: u64, work: impl FnOnce(&mut Object<'_>) -> T) -> T {
        let replay = self.replay.lock().expect("no panic");
        let mut object = Object::new(&replay, self.kernel);
        let mut starts = self.starts.lock().expect("no panic");
        object.start = starts[connection as usize];
        let result = work(&mut object);
        starts[connection as usize] = object.start;
        result
    }
}

fn allowance_of(answer: &Start) -> Allowance {
    let pace = Some(answer.pace).filter(|pace| *pace > 0).map(Rate::from_bytes_per_sec);
    Allowance { pace, ..Allowance::window(Bytes::new(answer.window)) }
}

impl ForeignScheme for InKernel {
    fn about(&self) -> &'static About {
        self.about
    }

    fn establish(&self, prior: &Prior) -> (u64, FlightPlan) {
        let connection = {
            let mut starts = self.starts.lock().expect("no panic");
            starts.push(Start::default());
            starts.len() as u64 - 1
        };
        let mut answer = self.with(connection, |object| object.establish(prior));
        if self.kernel == Kernel::CarefulResume {
            // Careful Resume counts its initial data as it leaves.
            answer.flight = answer.flight.max(answer.window);
        }
        let allowance = allowance_of(&answer);
        let burst = Bytes::new(answer.burst);
        (connection, FlightPlan { flight: Bytes::new(answer.flight), burst, allowance })
    }

    fn on_sent(&self, connection: u64, sent: &Sent) -> Option<Allowance> {
        let answer = self.with(connection, |object| match next_of(&object.start) {
            "grow" => object.start,
            _ => object.tell(&Event::Sent(*sent)),
        });
        Some(allowance_of(&answer))
    }

    fn on_event(&self, connection: u64, event: &foreign::Event<'_>) -> Response {
        let event = match event {
            foreign::Event::Ack(ack) => Event::Ack(**ack),
            foreign::Event::Congestion(signal) => Event::Congestion(**signal),
            foreign::Event::Timeout(timeout) => Event::Timeout(**timeout),
        };
        let answer = self.with(connection, |object| {
            if next_of(&object.start) != "grow" {
                return object.tell(&event);
            }
            match event {
                Event::Ack(ack) if ack.is_window_limited => object.start.window += ack.newly_acked.get(),
                Event::Ack(_) | Event::Sent(_) => {}
                Event::Congestion(_) | Event::Timeout(_) => {
                    object.start.next = NEXT.iter().position(|it| *it == "cut").expect("an answer") as _;
                }
            }
            object.start
        });
        let window = Bytes::new(answer.window);
        let next = match next_of(&answer) {
            "stay" | "grow" => Next::Stay,
            "cut" => Next::HandOver(HandOver::to_be_cut(window)),
            _ => Next::HandOver(HandOver {
                ssthresh: Bytes::new(answer.ssthresh),
                ..HandOver::avoiding(window)
            }),
        };
        Response { next, allowance: allowance_of(&answer) }
    }

    fn needs_sent_events(&self) -> bool {
        true
    }

    fn end(&self, _: u64) {}
}

#[test]
fn the_object_gives_the_answers_of_the_conformance_vectors() {
    let missing = Machine::detect().missing(headstart_ebpf::needs::Level::Control);
    if !missing.is_empty() {
        return headstart_host::not_run(&format!(
            "conformance vectors against the loaded object: {}",
            missing.join("; ")
        ));
    }
    for kernel in headstart_ebpf::scheme::ALL {
        let name = kernel.to_string();
        let text =
            std::fs::read_to_string(format!("{}/../../../vectors/{name}.txt", env!("CARGO_MANIFEST_DIR")));
        let text = text.expect("vectors of each scheme");
        let name = Box::leak(format!("{name}-in-kernel").into_boxed_str());
        let scheme: &'static InKernel = Box::leak(Box::new(InKernel {
            about: Box::leak(Box::new(About::new(name, Needs::Nothing, "of the object"))),
            kernel,
            replay: Mutex::new(Replay::load().expect("the object")),
            starts: Mutex::default(),
        }));
        let entry = Entry::foreign(scheme).expect("no name of the catalogue");
        for scenario in text.split("\nscenario ").skip(1) {
            let title = scenario.lines().next().expect("a title");
            let played = conformance::replay(|| entry.scheme(), &format!("scenario {scenario}"));
            let error = played.map_or_else(|error| error.to_string(), |_| String::new());
            let differs_at = match (kernel, title.split(' ').next()) {
                // Linux begins with ten segments where the paper's host does with two.
                (Kernel::TcpCache, Some("unknown")) => "line 2: begin",
                // After the first flight the kernel paces by its own rule.
                (Kernel::Blitzstart, _) => "pace=-, expected window=",
                _ => "",
            };
            assert!(error.contains(differs_at), "{kernel}, {title}: {error}");
            assert_eq!(error.is_empty(), differs_at.is_empty(), "{kernel}, {title}: {error}");
        }
    }
}
