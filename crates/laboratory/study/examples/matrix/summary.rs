//! Every scheme compared with `iw10` on the same paths and arrivals.
//!
//! A path's ratio is the mean over its repeats over `iw10`'s, with Fieller's 95 % interval. A
//! path is beyond a bar if the ratio is, and surely beyond it if the whole interval is. Of 200
//! paths at a bar exactly, five are surely beyond it by chance. The row `iw10, other seeds` pairs
//! each repeat of `iw10` with the next one: what chance alone makes of one run, where the other
//! rows have the same arrivals on both sides.

use std::collections::BTreeMap;
use std::io::Read;

use headstart_report::statistics::{Interval, mean, mean_interval, quantile};
use headstart_study::drawn_paths::ratio_of;

pub const COLUMNS: &str = "set,cell,scheme,path,mean_ms,p50_ms,p99_ms,flows,unfinished,loss,first_flight_loss,\
                           long_mbit,beside_ms,least_ms,larger_ms";

const MEAN: usize = 4;
const P99: usize = 6;
const LOSS: usize = 9;
const LONG: usize = 11;
const LEAST: usize = 13;

/// The repeats of one path: a value for each, by column.
type Repeats = BTreeMap<u64, Vec<f64>>;

/// Reads results and prints the comparison as a table, and the paths that are surely beyond a bar.
pub fn print(input: impl Read) {
    let mut schemes: BTreeMap<String, BTreeMap<u64, Repeats>> = BTreeMap::new();
    let mut paths = BTreeMap::new();
    let mut order = vec![];
    for record in csv::Reader::from_reader(input).records() {
        let record = record.unwrap_or_else(|error| crate::stop(&error.to_string()));
        let cell =
            record[1].split_once('.').and_then(|(path, at)| Some((path.parse().ok()?, at.parse().ok()?)));
        let Some((path, repeat)) = cell else { crate::stop(&format!("found the cell {}", &record[1])) };
        let values = record.iter().map(|text| text.parse().unwrap_or(0.0)).collect();
        if !order.contains(&record[2].to_owned()) {
            order.push(record[2].to_owned());
        }
        paths.insert(path, record[3].to_owned());
        schemes.entry(record[2].to_owned()).or_default().entry(path).or_default().insert(repeat, values);
    }
    let Some(base) = schemes.get("iw10") else { crate::stop("found no results of iw10 to compare with") };
    println!(
        "| scheme | paths (count) | geometric mean (ratio) | 5 % (ratio) | median (ratio) | 95 % (ratio) | worst (ratio) \
         | above 1.05 (paths; surely) | p99 above 1.10 (paths; surely; worst ratio) \
         | long flows below 0.95 (paths; surely; least ratio) | losses above 1.5x (paths; surely) |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut notes = vec![];
    for name in &order {
        row(name, &schemes[name], base, &paths, &mut notes);
    }
    let repeats = base.values().map(BTreeMap::len).max().unwrap_or(0);
    if repeats > 1 {
        let next = |repeats: &Repeats| {
            let values: Vec<_> = repeats.values().cloned().collect();
            let first = values.first().cloned();
            repeats.keys().copied().zip(values.into_iter().skip(1).chain(first)).collect()
        };
        let one =
            |repeats: &Repeats| repeats.iter().take(1).map(|(at, values)| (*at, values.clone())).collect();
        let shifted = base.iter().map(|(path, repeats)| (*path, one(&next(repeats)))).collect();
        let first = base.iter().map(|(path, repeats)| (*path, one(repeats))).collect();
        row("iw10, other seeds", &shifted, &first, &paths, &mut vec![]);
    }
    let least = base.iter().map(|(path, repeats)| (*path, floors(repeats))).collect();
    row("best order of service", &least, base, &paths, &mut vec![]);
    println!();
    for note in notes {
        println!("- {note}");
    }
}

/// The fastest that a path allows, in the place of the mean.
fn floors(repeats: &Repeats) -> Repeats {
    let floor = |values: &Vec<f64>| {
        let mut floor = values.clone();
        floor[MEAN] = values.get(LEAST).copied().unwrap_or(0.0);
        floor
    };
    repeats.iter().map(|(at, values)| (*at, floor(values))).collect()
}

fn row(
    name: &str,
    mine: &BTreeMap<u64, Repeats>,
    base: &BTreeMap<u64, Repeats>,
    paths: &BTreeMap<u64, String>,
    notes: &mut Vec<String>,
) {
    let (mut means, mut tails, mut longs, mut losses) = (vec![], vec![], vec![], vec![]);
    for (path, base) in base {
        let Some(mine) = mine.get(path) else { continue };
        // A repeat in which nothing was finished says nothing.
        let common: Vec<_> = base
            .iter()
            .filter_map(|(at, base)| Some((mine.get(at)?, base)))
            .filter(|(mine, base)| mine[MEAN] > 0.0 && base[MEAN] > 0.0)
            .collect();
        let column = |at: usize| -> (Vec<f64>, Vec<f64>) {
            common.iter().map(|(mine, base)| (mine[at], base[at])).unzip()
        };
        let ratio = |at| {
            let (mine, base) = column(at);
            ratio_of(&mine, &base)
        };
        let text = &paths[path];
        for (what, at, is_beyond, all) in [
            ("mean", MEAN, (|it| it.low > 1.05) as fn(&Interval) -> bool, &mut means),
            ("p99", P99, |it| it.low > 1.10, &mut tails),
            ("long", LONG, |it| it.high < 0.95, &mut longs),
        ] {
            let Some(it) = ratio(at) else { continue };
            if is_beyond(&it) {
                let Interval { value, low, high } = it;
                notes.push(format!("{name}: {what} {value:.2} ({low:.2} to {high:.2}) on {path}: {text}"));
            }
            all.push(it);
        }
        if mean(&column(LOSS).1).is_some_and(|loss| loss > 0.01) {
            losses.extend(ratio(LOSS));
        }
    }
    let values: Vec<f64> = means.iter().map(|it| it.value).collect();
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let geometric = mean_interval(&logs).map_or((0.0, 0.0), |it| (it.value.exp(), it.half_width()));
    let at = |q| quantile(&values, q).unwrap_or(0.0);
    let count = |all: &[Interval], is: &dyn Fn(f64) -> bool, end: fn(&Interval) -> f64| {
        (all.iter().filter(|it| is(it.value)).count(), all.iter().filter(|it| is(end(it))).count())
    };
    let slow = count(&means, &|it| it > 1.05, |it| it.low);
    let tail = count(&tails, &|it| it > 1.10, |it| it.low);
    let long = count(&longs, &|it| it < 0.95, |it| it.high);
    let lossy = count(&losses, &|it| it > 1.5, |it| it.low);
    println!(
        "| `{name}` | {} | {:.3} +- {:.3} | {:.2} | {:.3} | {:.2} | {:.2} | {}; {} | {}; {} ({:.2}) | {}; {} of {} ({:.2}) | {}; {} of {} |",
        values.len(),
        geometric.0,
        geometric.1,
        at(0.05),
        at(0.5),
        at(0.95),
        at(1.0),
        slow.0,
        slow.1,
        tail.0,
        tail.1,
        tails.iter().map(|it| it.value).fold(0.0, f64::max),
        long.0,
        long.1,
        longs.len(),
        longs.iter().map(|it| it.value).fold(1.0, f64::min),
        lossy.0,
        lossy.1,
        losses.len(),
    );
}
