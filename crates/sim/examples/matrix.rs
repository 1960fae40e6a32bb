//! Start-up schemes over paths drawn from written distributions: the search for Headstart's
//! parameters, and the results on paths that the search did not use.
//!
//! `cargo run --profile ci -p headstart-sim --example matrix -- SET FROM..TO SCHEME...` writes one
//! line of CSV for each path and scheme. SET is `default` (the paper's path at many loads, with the
//! harm to others), or names a set of drawn paths: `search` is the one that parameters were chosen
//! on, `unseen` the one that was run only afterwards; any other name is another set. FROM..TO are
//! the numbers of paths (of `default`: seeds). SCHEME is a name of the catalogue, with other
//! parameters or without: `headstart(price=4,initial-credit=30)`. The same path has the same
//! arrivals, sizes, peers and losses for every scheme.

use headstart_net::changing::LinkChange;
use headstart_net::jitter::Order;
use headstart_net::{ElementPlan, Limit, LinkPlan, PathPlan, QueueDiscipline, burst_loss};
use headstart_sim::random::Random;
use headstart_sim::sizes::Sizes;
use headstart_sim::tcp::config::Probe;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::page::{Fetch, Object, PageSpec, Pages};
use headstart_sim::workload::{Mixed, Opener, Workload};
use headstart_sim::{Collector, Group, Path, Scenario, Seed, Simulation, TcpConfig};
use headstart_startup::Scheme;
use headstart_startup::prior::{Access, Hint};
use headstart_startup::{base, catalogue};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

/// The scheme under test, `iw10` beside it, and the long flows.
const GROUPS: usize = 3;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(set), Some(range)) = (arguments.next(), arguments.next()) else {
        eprintln!("matrix: found no set and range, expected: matrix SET FROM..TO SCHEME...");
        std::process::exit(2);
    };
    let bounds = range.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let Some((from, to)) = bounds else {
        eprintln!("matrix: found {range}, expected a range such as 0..100");
        std::process::exit(2);
    };
    let schemes: Vec<(String, Scheme)> = arguments.map(|text| (text.clone(), scheme(&text))).collect();
    println!(
        "set,cell,scheme,path,mean_ms,p50_ms,p99_ms,flows,unfinished,loss,first_flight_loss,long_mbit,beside_ms"
    );
    for number in from..to {
        let cells = if set == "default" { default_path(number) } else { vec![drawn(&set, number)] };
        for (at, cell) in cells.iter().enumerate() {
            for (name, scheme) in &schemes {
                println!("{set},{number}.{at},\"{name}\",{},{}", cell.text, cell.run(*scheme));
            }
        }
    }
}

fn scheme(text: &str) -> Scheme {
    match catalogue::find(text) {
        Ok(entry) => entry.scheme(),
        Err(error) => {
            eprintln!("matrix: {error}");
            std::process::exit(2);
        }
    }
}

/// One path and its traffic.
struct Cell {
    text: String,
    path: PathPlan,
    rate: Rate,
    load: f64,
    sizes: Sizes,
    /// Objects of pages, and the connections that fetch them; otherwise single flows.
    pages: Option<(Vec<Vec<Object>>, Fetch)>,
    peers: u32,
    history: usize,
    hint: Rate,
    long: u32,
    mixed: bool,
    duration: Span,
    warm_up: Span,
    tcp: TcpConfig,
    seed: Seed,
}

impl Cell {
    fn run(&self, tested: Scheme) -> String {
        let tcp = TcpConfig { probe: Probe::Quic, ..self.tcp };
        let hint = Some(Hint { bandwidth: self.hint, access: Access::Unknown });
        let group =
            |scheme| Group { scheme, base: base::Kind::Cubic, tcp, hint, history_capacity: self.history };
        let iw10 = scheme("iw10");
        let until = Time::ZERO + self.duration;
        let groups = if self.mixed { vec![(0, 1), (1, 1)] } else { vec![(0, 1)] };
        let load = Rate::from_bytes_per_sec((self.rate.as_bytes_per_sec() as f64 * self.load) as u64);
        let seed = self.seed.child("workload");
        let short: Box<dyn Workload> = match &self.pages {
            Some((pages, fetch)) => {
                let bytes: Bytes = pages.iter().flatten().map(|object| object.bytes).sum();
                let gap = bytes / pages.len() as u64 / load;
                let (pages, peers) = (pages.clone(), self.peers);
                Box::new(Pages::new(
                    PageSpec { pages, fetches: vec![*fetch], gap, until, groups, peers },
                    seed,
                ))
            }
            None => Box::new(Arrivals::new(
                ArrivalSpec {
                    gaps: GapSpec::Poisson(self.sizes.gap_at(load)),
                    sizes: self.sizes.clone(),
                    until,
                    groups,
                    classes: 1,
                    peers: self.peers,
                    opener: Opener::Sender,
                },
                seed,
            )),
        };
        let mut parts = vec![short];
        if self.long > 0 {
            let bytes = self.rate * self.duration * 4 + Bytes::new(1_000_000);
            let start =
                |at| Start { at: Time::from_millis(at * 100), group: 2, class: 0, bytes, size_known: false };
            parts.push(Box::new(Listed::new((0..u64::from(self.long)).map(start).collect(), Opener::Sender)));
        }
        let scenario = Scenario {
            path: Path::new(&self.path, self.seed),
            groups: vec![group(tested), group(iw10), group(iw10)],
            workload: Box::new(Mixed::new(parts)),
            until: until + if self.long > 0 { Span::ZERO } else { Span::from_secs(20) },
        };
        let collector = Collector::new(GROUPS, Time::ZERO + self.warm_up);
        let finished = Simulation::new(scenario, collector).run();
        let groups = finished.recorder.groups;
        let totals = &groups[0];
        let times = if self.pages.is_some() { &totals.pages } else { &totals.completion };
        let ms = |span: Option<Span>| span.map_or(0.0, |span| span.as_nanos() as f64 / 1e6);
        let counts = &totals.counts;
        let packets = counts.packets_sent.max(1) as f64;
        let long = groups[2].delivered.get() as f64 * 8e-6 / (self.duration.as_nanos() as f64 * 1e-9);
        format!(
            "{:.4},{:.4},{:.4},{},{},{:.5},{:.5},{:.4},{:.4}",
            ms(times.mean()),
            ms(times.quantile(500)),
            ms(times.quantile(990)),
            times.count(),
            totals.unfinished,
            counts.lost as f64 / packets,
            counts.first_flight_lost as f64 / 1448.0 / packets,
            long,
            ms(groups[1].completion.mean()),
        )
    }
}

/// 15 Mbit/s, 60 ms, 115 kB, flows of 100 kB, 20 peers: loads without other traffic, and with
/// `iw10` for half of the flows.
fn default_path(seed: u64) -> Vec<Cell> {
    let alone = [5, 25, 50, 60, 65, 70, 75, 80, 85, 90, 95].map(|load| (load, false));
    let mixed = [30, 60, 80].map(|load| (load, true));
    let reference = [30, 60, 80].map(|load| (load, false));
    let cell = |(load, mixed): (u32, bool)| {
        let rate = Rate::from_mbit_per_sec(15);
        Cell {
            text: format!("load={load} {}", if mixed { "beside iw10" } else { "alone" }),
            path: PathPlan::dumbbell(rate, Span::from_millis(60), Limit::bytes(Bytes::new(115_000))),
            rate,
            load: f64::from(load) / 100.0,
            sizes: Sizes::Fixed(Bytes::new(100_000)),
            pages: None,
            peers: 20,
            history: 1000,
            hint: rate,
            long: 0,
            mixed,
            duration: Span::from_secs(600),
            warm_up: Span::ZERO,
            tcp: TcpConfig::default(),
            seed: Seed(seed).child("default"),
        }
    };
    alone.into_iter().chain(mixed).chain(reference).map(cell).collect()
}

/// A path of a set: where every value is drawn from stands here and nowhere else.
fn drawn(set: &str, number: u64) -> Cell {
    let seed = Seed(number).child(set);
    let mut random = Random::new(seed.child("path"));
    let mut unit = move || random.draw() as f64 / u64::MAX as f64;
    let between = |from: f64, to: f64, share: f64| (from.ln() + (to / from).ln() * share).exp();
    let rate = Rate::from_bits_per_sec(between(5e5, 2e9, unit()) as u64);
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
        let mut object =
            || Object { bytes: Bytes::new(between(2e3, 2e5, unit()) as u64), ..Object::default() };
        (vec![(0..objects).map(|_| object()).collect::<Vec<_>>()], fetch)
    });
    let peers = [1, 20, 200, 4000][(unit() * 3.999) as usize];
    let hint = [1.0, 1.0, 10.0, 0.1][(unit() * 3.999) as usize];
    let long = [0, 0, 0, 1, 8][(unit() * 4.999) as usize];
    let change = (unit() < 0.15).then(|| between(0.1, 10.0, unit()));
    let receive_window = Bytes::new(if unit() < 0.5 { 141_000 } else { 6_000_000 });

    let mean = match &pages {
        Some((pages, _)) => pages[0].iter().map(|object| object.bytes.get()).sum::<u64>() as f64,
        None => sizes.mean(),
    };
    // Enough flows for a mean, and no more than some ten thousands of packets a run.
    let flows = (1e8 / mean).clamp(60.0, 500.0);
    let seconds = (flows * mean / (rate.as_bytes_per_sec() as f64 * load)).max(2.0);
    let seconds =
        if long > 0 { seconds.min((3e8 / rate.as_bytes_per_sec() as f64).max(2.0)) } else { seconds };
    let duration = Span::from_nanos((seconds * 1e9) as u64);
    let mut link = LinkPlan { discipline: queue, ..LinkPlan::new(rate, rtt / 2, Limit::bytes(buffer)) };
    let back = LinkPlan::new(rate, rtt / 2, Limit::bytes(buffer.max(Bytes::new(60_000))));
    if let Some(factor) = change {
        let other = Rate::from_bytes_per_sec((rate.as_bytes_per_sec() as f64 * factor) as u64);
        link.changes.push((Time::ZERO + duration / 2, LinkChange::Rate(other)));
    }
    let mut path = PathPlan::links(link, back);
    let share = |value: f64| Ratio::new((value * 1e6) as u32, 1_000_000);
    if loss > 0.0 {
        // Bursts of four packets on average.
        let bursts = burst_loss::Params::all_or_nothing(share(loss / 4.0), Ratio::new(1, 4));
        let each = ElementPlan::Loss { share: share(loss), changes: vec![] };
        path.down.push(if in_bursts { ElementPlan::BurstLoss(bursts) } else { each });
    }
    if jitter > 0.0 {
        path.down
            .push(ElementPlan::Jitter { bound: Span::from_nanos((jitter * 1e6) as u64), order: Order::Kept });
    }
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
        change.unwrap_or(1.0),
        receive_window.get() / 1000,
    );
    Cell {
        text,
        path,
        rate,
        load,
        sizes,
        pages,
        peers,
        history: 100_000,
        hint: Rate::from_bytes_per_sec((rate.as_bytes_per_sec() as f64 * hint) as u64),
        long,
        mixed: false,
        duration,
        warm_up: Span::ZERO,
        tcp: TcpConfig { receive_window, ecn, ..TcpConfig::default() },
        seed,
    }
}
