//! Start-up schemes over paths drawn from written distributions: the search for Headstart's
//! parameters, the results on paths that the search did not use, and the bound.
//!
//! `cargo run --profile ci -p headstart-sim --example matrix -- SET FROM..TO[xREPEATS] SCHEME...`
//! writes one line of CSV for each path, repeat and scheme. SET is `default` (the paper's path at
//! many loads, with the harm to others), or the name of a set of drawn paths. Parameters were
//! chosen on `search`; `unseen` was run only afterwards; `wide` has kinds of paths that those lack.
//! Any other name is another set. FROM..TO are the numbers of paths (of `default`: seeds). SCHEME
//! is a name of the catalogue, with other parameters or without:
//! `headstart(price=4,initial-credit=30)`; or `clairvoyant`, the bound. The same path and repeat
//! have the same arrivals, sizes, peers and losses for every scheme.
//!
//! `... --example matrix -- summary < RESULTS` compares every scheme with `iw10`, pair by pair,
//! with 95 % confidence intervals over the repeats.

mod cell;
mod clairvoyant;
mod paths;
mod summary;
mod wide;

use cell::{Cell, Tested};

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
    println!("{}", summary::COLUMNS);
    for number in from..to {
        for (at, cell) in cells(&set, number, repeats).iter().enumerate() {
            for (name, scheme) in &schemes {
                println!("{set},{number}.{at},\"{name}\",{},{}", cell.text, cell.run(*scheme));
            }
        }
    }
}

/// The loads of the default path, or the repeats of a drawn one.
fn cells(set: &str, number: u64, repeats: u64) -> Vec<Cell> {
    match set {
        "default" => paths::default_path(number),
        "wide" => (0..repeats).map(|repeat| wide::drawn(number, repeat)).collect(),
        _ => (0..repeats).map(|repeat| paths::drawn(set, number, repeat, paths::RATES)).collect(),
    }
}

fn stop(message: &str) -> ! {
    eprintln!("matrix: {message}");
    std::process::exit(2);
}
