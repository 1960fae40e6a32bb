//! Kinds of paths that the distributions lack: a drawn path with one thing changed.

use std::sync::Arc;

use headstart_net::changing::LinkChange;
use headstart_net::trace::Trace;
use headstart_net::trace::mobile::{Kind, Mobile};
use headstart_net::{ElementPlan, Limit, LinkPlan, LinkRate};
use headstart_sim::Seed;
use headstart_sim::workload::page::Fetch;
use headstart_startup::hint::Steps;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Bytes, Rate, Span, Time};

use super::path::{Crossing, DrawnPath, between, units};
use super::sets;

/// The kinds; path `number` is of kind `number` modulo their count.
const KINDS: [&str; 9] = [
    "1-10Gbit/s",
    "three bottlenecks",
    "mobile trace",
    "ack aggregation",
    "RTT changes",
    "eight users at one address",
    "poisoned records",
    "BBR beside",
    "traffic that crosses the last of three bottlenecks",
];

/// Kinds of the set `more`, as [`KINDS`].
const MORE_KINDS: [&str; 4] = ["multiplexed pages", "coarse hints", "no hints", "10Gbit/s"];

/// Path `number` of the set `more`.
#[must_use]
pub fn drawn_of_more(number: u64, repeat: u64) -> DrawnPath {
    let kind = (number % MORE_KINDS.len() as u64) as usize;
    let rates = if kind == 3 { (1e10, 1e10) } else { sets::RATES };
    let mut path = sets::drawn("more", number, repeat, rates);
    match kind {
        0 => {
            let mut unit = units(Seed(number).child("more").child("kind"));
            let objects = 1 + (unit() * 29.0) as usize;
            path.pages = Some((vec![sets::page(objects, &mut unit)], Fetch::Multiplexed));
        }
        1 => {
            path.hint = path.hint.and_then(|bandwidth| {
                let hint = Hint { bandwidth, access: Access::Unknown };
                hint.quantised(Steps::Five).map(|hint| hint.bandwidth)
            });
        }
        2 => path.hint = None,
        _ => {}
    }
    path.text = format!("{}: {}", MORE_KINDS[kind], path.text);
    path
}

/// Path `number` of the set `wide`.
#[must_use]
pub fn drawn(number: u64, repeat: u64) -> DrawnPath {
    let kind = (number % KINDS.len() as u64) as usize;
    let rates = match kind {
        0 => (1e9, 1e10),
        2 | 3 => (5e5, 1e8),
        _ => sets::RATES,
    };
    let mut path = sets::drawn("wide", number, repeat, rates);
    let mut unit = units(Seed(number).child("wide").child("kind"));
    let rtt = path.plan.rtt(0);
    let Some(ElementPlan::Link(first)) = path.plan.down.first_mut() else { return path };
    match kind {
        1 | 8 => {
            for _ in 0..2 {
                let rate = Rate::from_bytes_per_sec(
                    (path.rate.as_bytes_per_sec() as f64 * between(0.7, 2.0, unit())) as u64,
                );
                let buffer = (rate * rtt).get() as f64 * between(0.05, 8.0, unit());
                let limit = Limit::bytes(Bytes::new(buffer as u64).max(Bytes::new(6_000)));
                path.plan.down.push(ElementPlan::Link(LinkPlan::new(rate, Span::ZERO, limit)));
                if kind == 8 {
                    let load = path.load / 2.0;
                    path.crossing = Some(Crossing { rate, load });
                }
            }
        }
        2 => {
            let kind = Kind::ALL[(unit() * 2.999) as usize];
            let trace = Mobile { kind, mean: path.rate, length: Span::from_secs(60), seed: number }.trace();
            play(&mut path, Arc::new(trace.expect("a rate up to 100 Mbit/s fits")));
        }
        3 => {
            // Acks wait for a transmission opportunity that takes all of them.
            let gap = between(2.0, 20.0, unit()) as u32;
            let opportunities = (path.rate * Span::from_millis(u64::from(gap))).get() / 1500 + 10;
            let times = std::iter::repeat_n(gap, opportunities as usize);
            if let Some(ElementPlan::Link(back)) = path.plan.up.first_mut() {
                back.rate = LinkRate::Trace(Arc::new(Trace::from_millis(times).expect("it has a period")));
            }
        }
        4 => {
            let delay = Span::from_nanos((first.delay.as_nanos() as f64 * between(0.2, 5.0, unit())) as u64);
            first.changes.push((Time::ZERO + path.duration / 2, LinkChange::Delay(delay)));
        }
        5 => {
            path.peers = 1;
            path.plan.access = (0..8).map(|user| rtt * user / 8).collect();
        }
        6 => path.is_poisoned = true,
        7 => {
            path.long = path.long.max(1);
            path.long_scheme = "bbr";
        }
        _ => {}
    }
    path.text = format!("{}: {}", KINDS[kind], path.text);
    path
}

/// Path `number` of a set of its own, whose first link has the opportunities of this trace.
#[must_use]
pub fn on_trace(name: &str, trace: &Arc<Trace>, number: u64, repeat: u64) -> DrawnPath {
    let mean = trace.mean_rate().as_bits_per_sec() as f64;
    let mut path = sets::drawn("traces", number, repeat, (mean, mean));
    play(&mut path, Arc::clone(trace));
    path.text = format!("{name}: {}", path.text);
    path
}

/// Replaces the rate of the first link; a trace has no changes.
fn play(path: &mut DrawnPath, trace: Arc<Trace>) {
    if let Some(ElementPlan::Link(link)) = path.plan.down.first_mut() {
        link.changes.clear();
        link.rate = LinkRate::Trace(trace);
        path.change = None;
    }
}
