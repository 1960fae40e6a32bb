//! Times as tables, CSV and JSON.

use std::time::Duration;

use anyhow::Result;
use headstart_web::client::{Page, Visit};
use serde_json::{Value, json};

use super::{Format, GetArgs, Sample};
use crate::command::terminal;
use headstart_report::statistics::{mean, mean_interval, quantile};
use headstart_report::table::{Better, Cell, Column, Table};

/// Prints the measurements.
pub fn print(args: &GetArgs, samples: &[Sample]) -> Result<()> {
    match args.format {
        Format::Table => args.format.print_table(&match samples {
            [only] => pages(args, &only.visit),
            _ => summary(args, samples),
        }),
        Format::Json => terminal::print(&format!("{:#}\n", Value::from_iter(records(args, samples)))),
        Format::Csv | Format::Parquet => args.format.print_table(&lines(args, samples)),
    }
}

/// To a microsecond: more is not measured.
fn ms(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

/// One fetch: a row for each page.
fn pages(args: &GetArgs, visit: &Visit) -> Table {
    let early = if visit.early_data { ", request in the first packet" } else { "" };
    let mut table = Table::new(
        "",
        [
            Column::text("page"),
            Column::number("status", "").priority(8),
            Column::number("size", "kB").priority(7),
            Column::number("first byte", "ms").priority(6),
            Column::number("complete", "ms").priority(9),
            Column::number("rate", "Mbit/s").priority(5),
        ],
    );
    for (url, page) in args.urls.iter().zip(&visit.pages) {
        table.row([
            Cell::text(url.path()),
            Cell::count(page.status.as_u16().into()),
            Cell::number(page.bytes as f64 / 1000.0, 1),
            Cell::number(ms(page.first_byte), 1),
            Cell::number(ms(page.complete), 1),
            Cell::number(page.bytes as f64 * 8.0 / page.complete.as_secs_f64() / 1e6, 2),
        ]);
    }
    let (handshake, rtt) = (ms(visit.established), ms(visit.rtt));
    table.note(&format!(
        "Handshake {handshake:.1} ms, RTT {rtt:.1} ms{early}. Times count from the first packet."
    ));
    table
}

/// Several fetches: a row for each scheme.
fn summary(args: &GetArgs, samples: &[Sample]) -> Table {
    let mut table = Table::new(
        "",
        [
            Column::text("scheme"),
            Column::number("first", "ms").priority(8),
            Column::number("mean of the others", "ms").better(Better::Lower),
            Column::number("median", "ms").priority(5),
            Column::number("least", "ms").priority(4),
            Column::number("most", "ms").priority(4),
            Column::number("handshake", "ms").priority(3),
            Column::number("against the first scheme", "%").priority(9),
        ],
    );
    let schemes: Vec<Option<&str>> = match &args.compare {
        None => vec![None],
        Some(all) => all.0.iter().map(|choice| Some(choice.name())).collect(),
    };
    let mut baseline = None;
    for scheme in schemes {
        let of: Vec<&Sample> = samples.iter().filter(|sample| sample.scheme.as_deref() == scheme).collect();
        let times: Vec<f64> = of.iter().map(|sample| ms(sample.visit.complete())).collect();
        // On the first connection the server had no record, if it was this client's first at all.
        let (first, others) = match times.as_slice() {
            [first, others @ ..] if !others.is_empty() => (*first, others),
            [first, ..] => (*first, times.as_slice()),
            [] => continue,
        };
        let average = mean(others).unwrap_or(f64::NAN);
        let base = *baseline.get_or_insert(average);
        let handshakes: Vec<f64> = of.iter().map(|sample| ms(sample.visit.established)).collect();
        let of_quantile = |q| quantile(others, q).map_or(Cell::Missing, |value| Cell::number(value, 1));
        let shown = Cell::number(average, 1);
        table.row([
            Cell::text(scheme.unwrap_or("the server's own")),
            Cell::number(first, 1),
            match mean_interval(others) {
                Some(interval) => shown.with_interval(interval.low, interval.high),
                None => shown,
            },
            of_quantile(0.5),
            of_quantile(0.0),
            of_quantile(1.0),
            mean(&handshakes).map_or(Cell::Missing, |value| Cell::number(value, 1)),
            Cell::number((average / base - 1.0) * 100.0, 0),
        ]);
    }
    table.note("Completion times of all pages from the first packet on, handshake and all; 95 % intervals. The first fetch of each scheme \
                meets a server that may know nothing of this client, and is not among the others.");
    table
}

const COLUMNS: [&str; 11] = [
    "scheme",
    "round",
    "url",
    "status",
    "bytes",
    "handshake_ms",
    "first_byte_ms",
    "complete_ms",
    "rtt_ms",
    "early_data",
    "lost_packets",
];

fn records<'a>(args: &'a GetArgs, samples: &'a [Sample]) -> impl Iterator<Item = Value> + 'a {
    each(args, samples).map(|(sample, url, page)| {
        json!({
            "scheme": sample.scheme,
            "round": sample.round,
            "url": url,
            "status": page.status.as_u16(),
            "bytes": page.bytes,
            "handshake_ms": ms(sample.visit.established),
            "first_byte_ms": ms(page.first_byte),
            "complete_ms": ms(page.complete),
            "rtt_ms": ms(sample.visit.rtt),
            "early_data": sample.visit.early_data,
            "lost_packets": sample.visit.lost,
        })
    })
}

fn each<'a>(
    args: &'a GetArgs,
    samples: &'a [Sample],
) -> impl Iterator<Item = (&'a Sample, String, &'a Page)> {
    samples.iter().flat_map(|sample| {
        let pages = args.urls.iter().zip(&sample.visit.pages);
        pages.map(move |(url, page)| (sample, url.to_string(), page))
    })
}

fn lines(args: &GetArgs, samples: &[Sample]) -> Table {
    let mut table = Table::new("", COLUMNS.map(Column::text));
    for record in records(args, samples) {
        let cell = |name: &str| match &record[name] {
            Value::String(text) => Cell::text(text),
            Value::Null => Cell::text(""),
            Value::Number(number) => number.as_f64().map_or(Cell::Missing, |value| Cell::number(value, 3)),
            other => Cell::text(&other.to_string()),
        };
        table.row(COLUMNS.map(cell));
    }
    table
}
