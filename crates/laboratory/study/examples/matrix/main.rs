//! Start-up schemes over paths drawn from written distributions, among them paths that the search
//! for Headstart's parameters did not use, and the bound.
//!
//! `cargo run --release -p headstart-study --example matrix -- SET FROM..TO[xREPEATS] SCHEME...`
//! writes one line of CSV for each path, repeat and scheme. SET is `default` (the paper's path at
//! many loads, with the harm to others), or the name of a set of drawn paths. Parameters were
//! chosen on `search`; `unseen` was run only afterwards; `wide` and `more` have kinds of paths that
//! those lack. `traces=FOLDER` has packet-delivery traces of a folder in turn. Any other name is
//! another set. `known` is a peer that comes back, one line for each visit. FROM..TO are the
//! numbers of paths (of `default` and `known`: seeds). SCHEME is a name of the catalogue, with
//! other parameters or without: `headstart(price=4,initial-credit=30)`. Or it is `clairvoyant`, the
//! informed start, or `hindsight`, the best first flight of each flow. The same path and repeat
//! have the same arrivals, sizes, peers and losses for every scheme.
//!
//! On the paths `SET+50%x2000%` half of the peers hint their rate, and the others 20 times that.
//! The set `loads` has paths at several loads, with `iw10` for half of the flows. The column
//! `larger_ms` has the mean time of flows of more than ten segments.
//!
//! `... --example matrix -- summary < RESULTS` compares every scheme with `iw10`, pair by pair,
//! with 95 % confidence intervals over the repeats.

mod hindsight;
mod known;
mod summary;

use std::path::Path;

use headstart_net::{Limit, PathPlan};
use headstart_sim::sizes::Sizes;
use headstart_sim::{Seed, TcpConfig};
use headstart_startup::{Scheme, catalogue};
use headstart_study::drawn_paths::path::{DrawnPath, Outcome};
use headstart_study::drawn_paths::{kinds, path_of};
use headstart_study::history::trace_folder::TraceFolder;
use headstart_units::{Bytes, Rate, Ratio, Span};

use headstart_study::informed::Informed;

/// A start to run.
#[derive(Clone, Debug)]
enum Tested {
    Scheme(Box<Scheme>),
    /// The informed start.
    Clairvoyant,
    /// The best first flight of each flow, chosen afterwards.
    Hindsight,
}

impl Tested {
    /// The start of this name: `clairvoyant`, `hindsight`, or a name of the catalogue.
    fn find(text: &str) -> Result<Self, String> {
        match text {
            "clairvoyant" => Ok(Self::Clairvoyant),
            "hindsight" => Ok(Self::Hindsight),
            _ => catalogue::find(text)
                .map(|it| Self::Scheme(Box::new(it.scheme())))
                .map_err(|it| it.to_string()),
        }
    }

    fn run(&self, path: &DrawnPath) -> Option<Outcome> {
        match self {
            Self::Scheme(scheme) => Some(path.run(**scheme)),
            Self::Clairvoyant => {
                let start = Informed::new(&path.plan, path.rate, path.buffer, path.change);
                Some(path.run_informed(Box::new(start)))
            }
            Self::Hindsight => hindsight::best(path),
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let set = arguments.next().unwrap_or_default();
    if set == "summary" {
        return summary::print(std::io::stdin().lock());
    }
    let range = arguments.next().unwrap_or_default();
    let (bounds, repeats) = range.split_once('x').unwrap_or((&range, "1"));
    let bounds = bounds.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let (Some((from, to)), Ok(repeats)) = (bounds, repeats.parse::<u64>()) else {
        stop(&format!("found {set} {range}, expected SET FROM..TO[xREPEATS] SCHEME..., as unseen 0..100x5"));
    };
    let schemes: Vec<(String, Tested)> = arguments
        .map(|text| match Tested::find(&text) {
            Ok(scheme) => (text, scheme),
            Err(error) => stop(&error),
        })
        .collect();
    let traces = set.strip_prefix("traces=").map(|folder| match folder.parse::<TraceFolder>() {
        Ok(traces) => traces,
        Err(error) => stop(&error),
    });
    if set == "known" {
        println!("{}", known::COLUMNS);
        for seed in from..to {
            for (name, tested) in &schemes {
                let Tested::Scheme(scheme) = tested else { stop("known runs schemes of the catalogue") };
                known::print(seed, name, **scheme);
            }
        }
        return;
    }
    println!("{}", summary::COLUMNS);
    for number in from..to {
        for (at, path) in paths(&set, traces.as_ref(), number, repeats).iter().enumerate() {
            for (name, scheme) in &schemes {
                let Some(run) = scheme.run(path) else { continue };
                println!("{set},{number}.{at},\"{name}\",{},{}", path.text, row(&run));
            }
        }
    }
}

fn row(run: &Outcome) -> String {
    format!(
        "{:.4},{:.4},{:.4},{},{},{:.5},{:.5},{:.4},{:.4},{:.4},{:.4}",
        run.mean_ms,
        run.p50_ms,
        run.p99_ms,
        run.finished,
        run.unfinished,
        run.loss,
        run.first_flight_loss,
        run.long_mbit,
        run.beside_ms,
        run.least_ms,
        run.larger_ms,
    )
}

/// Approximate number of packets of a run.
fn packets(path: &DrawnPath) -> f64 {
    let busy = if path.long > 0 { 1.0 } else { path.load };
    let seconds = path.duration.as_nanos() as f64 * 1e-9;
    path.rate.as_bytes_per_sec() as f64 * busy * seconds / 1500.0
}

/// The loads of the default path, or the repeats of a drawn one.
fn paths(set: &str, traces: Option<&TraceFolder>, number: u64, repeats: u64) -> Vec<DrawnPath> {
    let (set, hints) = set.split_once('+').map_or((set, None), |(set, hints)| (set, Some(hints)));
    let with_hints = |mut path: DrawnPath| {
        match hints.map(hints_of) {
            Some(Some((share, lie))) => (path.hint_share, path.hint_lie) = (Some(share), lie),
            Some(None) => stop("found wrong hints, expected SET+SHARE%[xFACTOR%], as people+50%x2000%"),
            None => {}
        }
        path
    };
    if set == "default" {
        return default_path(number);
    }
    if set == "loads" {
        return loads(number).into_iter().map(with_hints).collect();
    }
    let one = |repeat| match traces {
        Some(TraceFolder(files)) => {
            let file = &files[number as usize % files.len()];
            let name = Path::new(&file.name).file_name().unwrap_or_default().to_string_lossy();
            kinds::on_trace(&name, &file.trace, number, repeat)
        }
        None => path_of(set, number, repeat),
    };
    (0..repeats).map(one).map(with_hints).collect()
}

/// Share of the peers that hint the truth, and the factor of the others' hints, as in `50%x2000%`.
/// Without a factor the others do not hint.
fn hints_of(text: &str) -> Option<(Ratio, Option<Ratio>)> {
    let (share, factor) = text.split_once('x').map_or((text, None), |(share, factor)| (share, Some(factor)));
    Some((share.parse().ok()?, factor.map(str::parse).transpose().ok()?))
}

/// Paths beside `iw10`, for the harm. The default path has known peers, first contacts, or a buffer
/// of 30 kB, each at four loads. The last path has 50 Mbit/s and flows of 300 kB.
fn loads(seed: u64) -> Vec<DrawnPath> {
    let seed = Seed(seed).child("loads");
    let cell = |(what, peers, buffer, load): (&str, u32, u64, u32)| {
        let (rate, buffer) = (Rate::from_mbit_per_sec(15), Bytes::new(buffer));
        let plan = PathPlan::dumbbell(rate, Span::from_millis(60), Limit::bytes(buffer));
        let text = format!("{what} load={load}");
        let load = f64::from(load) / 100.0;
        DrawnPath { text, load, mixed: true, peers, ..DrawnPath::new(plan, rate, buffer, seed) }
    };
    let kinds = [("known", 20, 115_000), ("first", 1_000_000, 115_000), ("30kB", 20, 30_000)];
    let mut cells: Vec<_> = kinds
        .into_iter()
        .flat_map(|(what, peers, buffer)| [25, 30, 60, 80].map(|load| (what, peers, buffer, load)))
        .map(cell)
        .collect();
    let (rate, rtt) = (Rate::from_mbit_per_sec(50), Span::from_millis(30));
    let buffer = rate * rtt;
    let fast = DrawnPath::new(PathPlan::dumbbell(rate, rtt, Limit::bytes(buffer)), rate, buffer, seed);
    let tcp = TcpConfig { receive_window: Bytes::new(1_000_000), ..TcpConfig::default() };
    let sizes = Sizes::Fixed(Bytes::new(300_000));
    let text = "fast load=25".to_owned();
    cells.push(DrawnPath { text, sizes, tcp, mixed: true, duration: Span::from_secs(300), ..fast });
    cells
}

/// 15 Mbit/s, 60 ms, 115 kB, flows of 100 kB, 20 peers: loads without other traffic, and with
/// `iw10` for half of the flows.
fn default_path(seed: u64) -> Vec<DrawnPath> {
    let alone = [5, 25, 50, 60, 65, 70, 75, 80, 85, 90, 95].map(|load| (load, false));
    let mixed = [30, 60, 80].map(|load| (load, true));
    let reference = [30, 60, 80].map(|load| (load, false));
    let cell = |(load, mixed): (u32, bool)| {
        let rate = Rate::from_mbit_per_sec(15);
        let buffer = Bytes::new(115_000);
        let plan = PathPlan::dumbbell(rate, Span::from_millis(60), Limit::bytes(buffer));
        DrawnPath {
            text: format!("load={load} {}", if mixed { "beside iw10" } else { "alone" }),
            load: f64::from(load) / 100.0,
            mixed,
            ..DrawnPath::new(plan, rate, buffer, Seed(seed).child("default"))
        }
    };
    alone.into_iter().chain(mixed).chain(reference).map(cell).collect()
}

fn stop(message: &str) -> ! {
    eprintln!("matrix: {message}");
    std::process::exit(2);
}
