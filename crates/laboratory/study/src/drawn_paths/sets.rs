//! The distributions that paths are drawn from.

use headstart_net::changing::LinkChange;
use headstart_net::jitter::Order;
use headstart_net::{ElementPlan, Limit, LinkPlan, PathPlan, QueueDiscipline, burst_loss};
use headstart_sim::sizes::Sizes;
use headstart_sim::workload::page::{Fetch, Object};
use headstart_sim::{Seed, TcpConfig};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::path::{DrawnPath, between, units};

/// Lowest and highest rate in bits a second, unless a kind of path has others.
pub const RATES: (f64, f64) = (5e5, 2e9);

/// Path `number` of a set; `rates` are the lowest and the highest in bits a second. Every repeat
/// has other arrivals and losses.
pub fn drawn(set: &str, number: u64, repeat: u64, rates: (f64, f64)) -> DrawnPath {
    let seed = Seed(number).child(set);
    let mut unit = units(seed.child("path"));
    let rate = Rate::from_bits_per_sec(between(rates.0, rates.1, unit()) as u64);
    let rtt = Span::from_nanos((between(0.2, 800.0, unit()) * 1e6) as u64);
    let depth = between(0.05, 8.0, unit());
    let buffer = Bytes::new(((rate * rtt).get() as f64 * depth) as u64).max(Bytes::new(6_000));
    let (queue, ecn) = match (unit() * 20.0) as u32 {
        0..=11 => (QueueDiscipline::DropTail, false),
        12..=14 => (QueueDiscipline::CoDel, false),
        15..=16 => (QueueDiscipline::CoDel, true),
        17..=18 => (QueueDiscipline::Red, false),
        _ => (QueueDiscipline::Red, true),
    };
    let loss = if unit() < 0.7 { 0.0 } else { between(0.000_5, 0.03, unit()) };
    let in_bursts = unit() < 0.25;
    let jitter = if unit() < 0.7 { 0.0 } else { between(0.5, 20.0, unit()) };
    let load = [0.05, 0.1, 0.25, 0.4, 0.6, 0.8, 0.9, 0.95][(unit() * 7.999) as usize];
    let sizes = if unit() < 0.6 {
        Sizes::Fixed(Bytes::new(between(1e3, 1e7, unit()) as u64))
    } else {
        Sizes::internet(Bytes::new(10_000_000))
    };
    let objects = 1 + (unit() * 29.0) as usize;
    let pages = (unit() < 0.25).then(|| {
        let fetch = if unit() < 0.5 { Fetch::Persistent(6) } else { Fetch::Parallel(6) };
        (vec![page(objects, &mut unit)], fetch)
    });
    let peers = [1, 20, 200, 4000][(unit() * 3.999) as usize];
    let hint = [1.0, 1.0, 10.0, 0.1][(unit() * 3.999) as usize];
    let long = [0, 0, 0, 1, 8][(unit() * 4.999) as usize];
    let factor = (unit() < 0.15).then(|| between(0.1, 10.0, unit()));
    let receive_window = Bytes::new(if unit() < 0.5 { 141_000 } else { 6_000_000 });

    let mean = mean_bytes(pages.as_ref(), &sizes);
    // Enough flows for a mean, and no more than some ten thousands of packets a run.
    let flows = (1e8 / mean).clamp(60.0, 500.0);
    let seconds = (flows * mean / (rate.as_bytes_per_sec() as f64 * load)).max(2.0);
    let seconds =
        if long > 0 { seconds.min((3e8 / rate.as_bytes_per_sec() as f64).max(2.0)) } else { seconds };
    let duration = Span::from_nanos((seconds * 1e9) as u64);
    let change = factor.map(|factor| changed(rate, factor, duration));
    let link = LinkPlan { discipline: queue, ..LinkPlan::new(rate, rtt / 2, Limit::bytes(buffer)) };
    let plan = links(link, rate, change, (loss, in_bursts), jitter);
    let text = format!(
        "{:.2}Mbit/s {:.2}ms {depth:.2}BDP {}{} loss={:.2}%{} jitter={jitter:.1}ms load={load} {} peers={peers} hint={hint} \
         long={long} change={:.2} rwnd={}k",
        rate.as_bits_per_sec() as f64 / 1e6,
        rtt.as_nanos() as f64 / 1e6,
        queue.name(),
        if ecn { "+ecn" } else { "" },
        loss * 100.0,
        if in_bursts { "b" } else { "" },
        match (&pages, &sizes) {
            (Some((_, fetch)), _) =>
                format!("page={objects}/{}", if *fetch == Fetch::Parallel(6) { "new" } else { "kept" }),
            (None, Sizes::Fixed(bytes)) => format!("size={}", bytes.get()),
            _ => "size=internet".to_owned(),
        },
        factor.unwrap_or(1.0),
        receive_window.get() / 1000,
    );
    DrawnPath {
        text,
        change,
        load,
        sizes,
        pages,
        peers,
        history: 100_000,
        hint: Some(Rate::from_bytes_per_sec((rate.as_bytes_per_sec() as f64 * hint) as u64)),
        long,
        duration,
        tcp: TcpConfig { receive_window, ecn, ..TcpConfig::default() },
        ..DrawnPath::new(plan, rate, buffer, repeated(seed, repeat))
    }
}

/// Path `number` of a set whose shares follow where people are: most at 10 to 300 Mbit/s and 20 to
/// 80 ms behind a home router. Pages come over kept connections, and a peer has up to 30 visits. In
/// a third of the paths the rate changes and makes the records stale.
///
/// The sets whose names end in `beside` have the paths of the set before that word, with `iw10` for
/// half of the flows.
pub fn drawn_for_people(set: &str, number: u64, repeat: u64) -> DrawnPath {
    let (set, mixed) = set.strip_suffix("beside").map_or((set, false), |set| (set, true));
    let seed = Seed(number).child(set);
    let mut unit = units(seed.child("path"));
    let (low, high) = match (unit() * 25.0) as u32 {
        0..=19 => (1e7, 3e8),
        20..=22 => (1e6, 1e7),
        _ => (3e8, 1e9),
    };
    let rate = Rate::from_bits_per_sec(between(low, high, unit()) as u64);
    // Log-normal by Box and Muller: median 40 ms, two thirds within a factor of two.
    let normal = (-2.0 * unit().max(1e-9).ln()).sqrt() * (unit() * std::f64::consts::TAU).cos();
    let rtt = Span::from_nanos(((40.0 * (0.69 * normal).exp()).clamp(5.0, 300.0) * 1e6) as u64);
    let queue = match (unit() * 10.0) as u32 {
        0..=4 => QueueDiscipline::DropTail,
        5..=6 => QueueDiscipline::CoDel,
        _ => QueueDiscipline::FqCoDel,
    };
    let depth = between(0.1, 4.0, unit());
    let buffer = Bytes::new(((rate * rtt).get() as f64 * depth) as u64).max(Bytes::new(15_000));
    let loss = if unit() < 0.6 { 0.0 } else { between(0.000_1, 0.01, unit()) };
    let jitter = if unit() < 0.6 { 0.0 } else { between(0.3, 5.0, unit()) };
    let load = [0.05, 0.1, 0.15, 0.2, 0.3, 0.1, 0.2, 0.4, 0.5, 0.6][(unit() * 9.999) as usize];
    let sizes = if unit() < 0.6 {
        Sizes::Fixed(Bytes::new(between(1e4, 5e6, unit()) as u64))
    } else {
        Sizes::internet(Bytes::new(5_000_000))
    };
    let objects = 2 + (unit() * 28.0) as usize;
    let pages = (unit() < 0.35).then(|| {
        let fetch = if unit() < 0.6 { Fetch::Multiplexed } else { Fetch::Persistent(6) };
        (vec![page(objects, &mut unit)], fetch)
    });
    let visits = between(1.0, 30.0, unit());
    let long = u32::from(unit() < 0.33);
    let factor = (unit() < 0.33).then(|| between(0.25, 4.0, unit()));
    let receive_window = Bytes::new(if unit() < 0.3 { 141_000 } else { 6_000_000 });

    let mean = mean_bytes(pages.as_ref(), &sizes);
    let flows = (1e8 / mean).clamp(60.0, 400.0);
    let bytes_per_sec = rate.as_bytes_per_sec() as f64;
    let mut seconds = (flows * mean / (bytes_per_sec * load)).max(2.0);
    if long > 0 {
        seconds = seconds.min((2e8 / bytes_per_sec).max(4.0));
    }
    let duration = Span::from_nanos((seconds * 1e9) as u64);
    let peers = ((seconds * bytes_per_sec * load / mean / visits) as u32).max(1);
    let change = factor.map(|factor| changed(rate, factor, duration));
    let link = LinkPlan { discipline: queue, ..LinkPlan::new(rate, rtt / 2, Limit::bytes(buffer)) };
    let up = Rate::from_bits_per_sec((bytes_per_sec * 0.8) as u64);
    let plan = links(link, up, change, (loss, false), jitter);
    let what = match (&pages, &sizes) {
        (Some((_, fetch)), _) => format!("page={objects}/{fetch:?}"),
        (None, Sizes::Fixed(bytes)) => format!("size={}", bytes.get()),
        _ => "size=internet".to_owned(),
    };
    let text = format!(
        "{:.2}Mbit/s {:.2}ms {depth:.2}BDP {} loss={:.2}% jitter={jitter:.1}ms load={load} {what} visits={visits:.0} \
         long={long} change={:.2} rwnd={}k",
        bytes_per_sec * 8e-6,
        rtt.as_nanos() as f64 / 1e6,
        queue.name(),
        loss * 100.0,
        factor.unwrap_or(1.0),
        receive_window.get() / 1000,
    );
    DrawnPath {
        text,
        change,
        load,
        sizes,
        pages,
        peers,
        history: 100_000,
        hint: Some(rate),
        long,
        mixed,
        duration,
        tcp: TcpConfig { receive_window, several_responses: true, ..TcpConfig::default() },
        ..DrawnPath::new(plan, rate, buffer, repeated(seed, repeat))
    }
}

/// Objects of a page.
pub fn page(count: usize, unit: &mut impl FnMut() -> f64) -> Vec<Object> {
    let object = |_| Object { bytes: Bytes::new(between(2e3, 2e5, unit()) as u64), ..Object::default() };
    (0..count).map(object).collect()
}

fn mean_bytes(pages: Option<&(Vec<Vec<Object>>, Fetch)>, sizes: &Sizes) -> f64 {
    match pages {
        Some((pages, _)) => pages[0].iter().map(|object| object.bytes.get()).sum::<u64>() as f64,
        None => sizes.mean(),
    }
}

/// A change to `factor` of the rate in the middle of the run.
fn changed(rate: Rate, factor: f64, duration: Span) -> (Time, Rate) {
    let other = Rate::from_bytes_per_sec((rate.as_bytes_per_sec() as f64 * factor) as u64);
    (Time::ZERO + duration / 2, other)
}

/// A path of this link and of one back; share of losses, in bursts or not, and ms of jitter.
fn links(
    mut link: LinkPlan,
    back: Rate,
    change: Option<(Time, Rate)>,
    (loss, in_bursts): (f64, bool),
    jitter: f64,
) -> PathPlan {
    let back = LinkPlan::new(back, link.delay, Limit::bytes(link.limit.bytes.max(Bytes::new(60_000))));
    link.changes.extend(change.map(|(at, rate)| (at, LinkChange::Rate(rate))));
    let mut plan = PathPlan::links(link, back);
    let share = |value: f64| Ratio::new((value * 1e6) as u32, 1_000_000);
    if loss > 0.0 {
        // Bursts of four packets on average.
        let bursts = burst_loss::Params::all_or_nothing(share(loss / 4.0), Ratio::new(1, 4));
        let each = ElementPlan::loss(share(loss));
        plan.down.push(if in_bursts { ElementPlan::BurstLoss(bursts) } else { each });
    }
    if jitter > 0.0 {
        let bound = Span::from_nanos((jitter * 1e6) as u64);
        plan.down.push(ElementPlan::jitter(bound, Order::Kept));
    }
    plan
}

/// The seed of a repeat: other arrivals and losses.
fn repeated(seed: Seed, repeat: u64) -> Seed {
    if repeat == 0 { seed } else { seed.child("repeat").child(&repeat.to_string()) }
}
