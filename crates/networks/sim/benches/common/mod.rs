//! Shared by the benches: the two plans of `benches/peers/ns3`, set up in our simulator.
#![allow(dead_code, reason = "each bench uses its part")]

use std::path::PathBuf;
use std::time::Instant;

use headstart_net::{AnyElement, Limit, Link, PathPlan, Seed};
use headstart_sim::tcp::{DelayedAck, Detection, Probe};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::{FlowSpec, Opener, Order, Workload};
use headstart_sim::{Group, Path, PathBuilder, Scenario, TcpConfig};
use headstart_startup::base;
use headstart_startup::scheme::slow_start::Params;
use headstart_startup::scheme::{Scheme, SlowStart};
use headstart_units::{Bytes, Rate, Span, Time};

/// Sender-receiver pairs of the short plan; flow n uses pair n mod 10.
pub const PAIRS: u16 = 10;
/// The short plan's flow.
pub const FLOW: Bytes = Bytes::new(100_000);
/// The short plan's bottleneck.
pub const SHORT: Bottleneck = Bottleneck {
    rate: Rate::from_mbit_per_sec(15),
    one_way: Span::from_millis(30),
    buffer: Bytes::new(115_000),
};
pub const BULK: Bottleneck = Bottleneck {
    rate: Rate::from_mbit_per_sec(100),
    one_way: Span::from_millis(20),
    buffer: Bytes::new(500_000),
};
pub const BULK_FLOWS: u16 = 4;
pub const BULK_LENGTH: Time = Time::from_millis(60_000);

/// The link that everything crosses, with the same buffer in each direction.
#[derive(Clone, Copy)]
pub struct Bottleneck {
    pub rate: Rate,
    pub one_way: Span,
    pub buffer: Bytes,
}

impl Bottleneck {
    fn link(&self) -> Link<headstart_sim::packet::Packet> {
        Link::new(self.rate, self.one_way, Limit::bytes(self.buffer))
    }

    /// The bottleneck alone. Element 0 is its data direction.
    pub fn path(&self) -> Path {
        let plan = PathPlan::dumbbell(self.rate, self.one_way * 2, Limit::bytes(self.buffer));
        Path::new(&plan, Seed(1))
    }

    /// The peer's dumbbell: each pair (a class) has access links of 1 Gbit/s without delay.
    pub fn dumbbell(&self, pairs: u16) -> Path {
        let mut path = PathBuilder::default();
        let forward = path.element("forward", AnyElement::Link(self.link()));
        let back = path.element("back", AnyElement::Link(self.link()));
        for _ in 0..pairs {
            let mut access = || {
                let link = Link::new(Rate::from_mbit_per_sec(1000), Span::ZERO, Limit::NONE);
                path.element("access", AnyElement::Link(link))
            };
            let (out, away, from, home) = (access(), access(), access(), access());
            path.class(vec![out, forward, away], vec![from, back, home]);
        }
        path.build()
    }
}

/// The peer's settings, as far as both models have them. Sizes include the link's two bytes.
pub fn like_ns3(ack_every: u32) -> TcpConfig {
    let delayed_ack = if ack_every == 1 {
        DelayedAck::IMMEDIATE
    } else {
        DelayedAck { every: ack_every, quick: 1, ..DelayedAck::SECOND }
    };
    TcpConfig {
        header: Bytes::new(54),
        syn: Bytes::new(58),
        receive_window: Bytes::new(4 << 20),
        detection: Detection::Rfc6675,
        probe: Probe::None,
        delayed_ack,
        min_rto: Span::from_secs(1),
        initial_rto: Span::from_secs(3),
        idle_restart: false,
        ..TcpConfig::default()
    }
}

/// Plain slow start, then `base`.
pub fn group(initial_window: u64, base: base::Kind, tcp: TcpConfig) -> Group {
    let params = Params { initial_window, ..Params::default() };
    Group { base, ..Group::new(Scheme::SlowStart(SlowStart::new(params)), tcp) }
}

/// Four endless flows, a tenth of a second apart, on `path`.
pub fn bulk(path: Path, classes: u16, tcp: TcpConfig) -> Scenario {
    let start = |n: u16| Start {
        at: Time::from_millis(u64::from(n) * 100),
        group: 0,
        class: n % classes,
        bytes: Bytes::new(1 << 40),
        size_known: false,
    };
    Scenario {
        path,
        groups: vec![group(10, base::Kind::Cubic, tcp)],
        workload: Box::new(Listed::new((0..BULK_FLOWS).map(start).collect(), Opener::Sender)),
        until: BULK_LENGTH,
    }
}

/// Equal flows at given times, by pair in turn.
#[derive(Debug)]
pub struct Turns {
    pub arrivals: Vec<Time>,
    pub bytes: Bytes,
    pub pairs: u16,
    pub opened: usize,
}

impl Turns {
    pub fn new(arrivals: Vec<Time>, bytes: Bytes, pairs: u16) -> Self {
        Self { arrivals, bytes, pairs, opened: 0 }
    }
}

impl Workload for Turns {
    fn next_at(&self) -> Time {
        self.arrivals.get(self.opened).copied().unwrap_or(Time::NEVER)
    }

    fn on_time(&mut self, _: Time, orders: &mut Vec<Order>) {
        orders.push(Order::Open(FlowSpec {
            class: (self.opened % usize::from(self.pairs)) as u16,
            opener: Opener::Sender,
            bytes: self.bytes,
            ..FlowSpec::default()
        }));
        self.opened += 1;
    }
}

/// The 64-bit Mersenne Twister (Matsumoto and Nishimura 2004), seeded as C++'s `mt19937_64`.
struct Twister {
    words: [u64; 312],
    at: usize,
}

impl Twister {
    fn new(seed: u64) -> Self {
        let mut words = [seed; 312];
        for n in 1..312 {
            let last = words[n - 1];
            words[n] = (last ^ (last >> 62)).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n as u64);
        }
        Self { words, at: 0 }
    }

    fn draw(&mut self) -> u64 {
        let n = self.at;
        self.at = (n + 1) % 312;
        let mixed = (self.words[n] & !0x7fff_ffff) | (self.words[self.at] & 0x7fff_ffff);
        let twist = if mixed & 1 == 1 { 0xb502_6f5a_a966_19e9 } else { 0 };
        self.words[n] = self.words[(n + 156) % 312] ^ (mixed >> 1) ^ twist;
        let mut word = self.words[n];
        word ^= (word >> 29) & 0x5555_5555_5555_5555;
        word ^= (word << 17) & 0x71d6_7fff_eda6_0000;
        word ^= (word << 37) & 0xfff7_eee0_0000_0000;
        word ^ (word >> 43)
    }
}

/// The peer's arrivals of the short plan over [0, `seconds`), rounded to nanoseconds as there.
pub fn arrivals(load: f64, seed: u64, seconds: f64) -> Vec<Time> {
    let mut words = Twister::new(seed);
    let per_second = load * 15e6 / 800_000.0;
    let mut time = 0.0;
    let mut times = Vec::new();
    loop {
        let uniform = words.draw() as f64 / (u64::MAX as f64);
        time += -(1.0 - uniform).ln() / per_second;
        if time >= seconds {
            return times;
        }
        times.push(Time::from_nanos((time * 1e9).round() as u64));
    }
}

/// Panics if the generator above is not C++'s, whose 10 000th word is standardised (rand.predef).
pub fn check_twister() {
    let mut words = Twister::new(5489);
    let tenth_thousandth = (0..10_000).map(|_| words.draw()).last();
    assert_eq!(tenth_thousandth, Some(9_981_545_732_273_789_042), "not the generator that the plan asks for");
}

/// The peer's folder.
pub fn ns3() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../benches/peers/ns3")
}

/// Runs something and returns its result with the seconds of wall time that it took.
#[expect(clippy::disallowed_methods, reason = "how long a run takes on the wall is what a bench is for")]
pub fn timed<T>(run: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let outcome = run();
    (outcome, began.elapsed().as_secs_f64())
}

/// Peak of the resident memory in kB, as the kernel reports it.
pub fn peak_resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Processor time of this thread so far, which other programs do not add to; Linux only.
pub fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanos / 1e9)
}

/// The middle one; of an even number, the lower of the two.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((sorted.len().max(1) - 1) / 2).copied().unwrap_or(f64::NAN)
}

/// The value behind `--name` on the command line.
pub fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next().and(arguments.next())
}
