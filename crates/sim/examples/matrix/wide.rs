//! Kinds of paths that the matrix lacks. Each is a path of the matrix with one thing changed.

use std::sync::Arc;

use headstart_net::changing::LinkChange;
use headstart_net::trace::Trace;
use headstart_net::trace::mobile::{Kind, Mobile};
use headstart_net::{ElementPlan, Limit, LinkPlan, LinkRate};
use headstart_sim::Seed;
use headstart_units::{Bytes, Rate, Span, Time};

use crate::cell::{Cell, between, units};
use crate::paths;

/// The kinds; path `number` is of kind `number` modulo their count.
const KINDS: [&str; 8] = [
    "1-10Gbit/s",
    "three bottlenecks",
    "mobile trace",
    "ack aggregation",
    "RTT changes",
    "eight users at one address",
    "poisoned records",
    "BBR beside",
];

pub fn drawn(number: u64, repeat: u64) -> Cell {
    let kind = (number % KINDS.len() as u64) as usize;
    let rates = match kind {
        0 => (1e9, 1e10),
        2 | 3 => (5e5, 1e8),
        _ => paths::RATES,
    };
    let mut cell = paths::drawn("wide", number, repeat, rates);
    let mut unit = units(Seed(number).child("wide").child("kind"));
    let rtt = cell.path.rtt(0);
    let Some(ElementPlan::Link(first)) = cell.path.down.first_mut() else { return cell };
    match kind {
        1 => {
            for _ in 0..2 {
                let rate = Rate::from_bytes_per_sec(
                    (cell.rate.as_bytes_per_sec() as f64 * between(0.7, 2.0, unit())) as u64,
                );
                let buffer = (rate * rtt).get() as f64 * between(0.05, 8.0, unit());
                let limit = Limit::bytes(Bytes::new(buffer as u64).max(Bytes::new(6_000)));
                cell.path.down.push(ElementPlan::Link(LinkPlan::new(rate, Span::ZERO, limit)));
            }
        }
        2 => {
            // A trace has no changes.
            first.changes.clear();
            cell.change = None;
            let kind = Kind::ALL[(unit() * 2.999) as usize];
            let trace = Mobile { kind, mean: cell.rate, length: Span::from_secs(60), seed: number }.trace();
            first.rate = LinkRate::Trace(Arc::new(trace.expect("a rate up to 100 Mbit/s fits")));
        }
        3 => {
            // Acks wait for a transmission opportunity that takes all of them.
            let gap = between(2.0, 20.0, unit()) as u32;
            let opportunities = (cell.rate * Span::from_millis(u64::from(gap))).get() / 1500 + 10;
            let times = std::iter::repeat_n(gap, opportunities as usize);
            if let Some(ElementPlan::Link(back)) = cell.path.up.first_mut() {
                back.rate = LinkRate::Trace(Arc::new(Trace::from_millis(times).expect("it has a period")));
            }
        }
        4 => {
            let delay = Span::from_nanos((first.delay.as_nanos() as f64 * between(0.2, 5.0, unit())) as u64);
            first.changes.push((Time::ZERO + cell.duration / 2, LinkChange::Delay(delay)));
        }
        5 => {
            cell.peers = 1;
            cell.path.access = (0..8).map(|user| rtt * user / 8).collect();
        }
        6 => cell.is_poisoned = true,
        7 => {
            cell.long = cell.long.max(1);
            cell.long_scheme = "bbr";
        }
        _ => {}
    }
    cell.text = format!("{}: {}", KINDS[kind], cell.text);
    cell
}
