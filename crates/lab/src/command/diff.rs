//! `headstart diff`: two results side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::format::{self, Format};
use super::terminal::{print, print_table};
use crate::diff::{Compared, Difference, compare};
use crate::errors::Refuse as _;
use crate::statistics::Interval;
use crate::table::{Cell, Column, Table};

/// Measures compared by default.
const DEFAULT_MEASURES: [&str; 5] = ["mean_ms", "p99_ms", "loss_percent", "bytes_sent_over_useful", "harm"];

/// Options of `diff`.
#[derive(Args, Debug)]
pub struct DiffArgs {
    /// A folder of `race` or `sweep`
    pub one: PathBuf,
    /// Another one, of the same schemes and seeds
    pub other: PathBuf,
    /// Measures to compare, as seeds.csv names them, or `all` [default: times, loss, bytes and
    /// harm]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub measures: Vec<String>,
    /// Compare rows that both have, and list those left out
    #[arg(long)]
    pub common: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Compares, prints the table, and ends as `diff` does: 0 if nothing differs, 1 if something does.
///
/// # Errors
/// If the results cannot be compared; all of them are refusals, so that 1 has one meaning.
pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let is_usual = args.measures.is_empty();
    let wanted = if args.measures == ["all"] { &[][..] } else { &args.measures };
    let mut found = compare(&args.one, &args.other, wanted, args.common).or_refuse()?;
    if is_usual && found.compared.iter().any(|one| DEFAULT_MEASURES.contains(&one.measure.as_str())) {
        found.compared.retain(|one| DEFAULT_MEASURES.contains(&one.measure.as_str()));
    }
    let count = found.compared.iter().filter(|one| one.differs()).count();
    let ended = Ok(ExitCode::from(u8::from(count > 0)));
    let rows = || found.compared.iter().map(|one| row(one, found.seeds)).collect::<Vec<_>>();
    match args.format {
        Format::Table => print_table(&table(&found)).or_refuse()?,
        other => {
            let (header, rows) = (header(&found), rows());
            let document = || format::document(&super::terminal::command_line(), &header, &rows);
            return other.print(&header, &rows, document).or_refuse().and(ended);
        }
    }
    let equal = found.compared.iter().filter(|one| one.is_equal).count();
    let all = found.compared.len();
    print(&format!(
        "\n{count} of {all} differ beyond chance, {equal} are equal to the last digit. A: {}, B: {}.\n",
        args.one.display(),
        args.other.display()
    ))
    .or_refuse()?;
    ended
}

/// The columns of a difference for programs.
fn header(found: &Difference) -> Vec<&str> {
    let measures = [
        "scheme",
        "measure",
        "a",
        "b",
        "difference",
        "difference_low",
        "difference_high",
        "seeds",
        "differs",
    ];
    found.varied.iter().map(String::as_str).chain(measures).collect()
}

/// A measure for programs; numbers that there are none of are empty.
fn row(one: &Compared, seeds: usize) -> Vec<String> {
    let number = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    let Interval { value, low, high } = one.difference;
    let mut row = one.point.clone();
    row.extend([one.scheme.clone(), one.measure.clone()]);
    row.extend([one.one, one.other, value, low, high].map(number));
    row.extend([seeds.to_string(), u8::from(one.differs()).to_string()]);
    row
}

fn table(found: &Difference) -> Table {
    let mut columns: Vec<Column> = found.varied.iter().map(|name| Column::text(name)).collect();
    columns.extend([
        Column::text("scheme"),
        Column::text("measure"),
        Column::number("A", ""),
        Column::number("B", ""),
        Column::number("B - A", ""),
        Column::number("B - A", "%").priority(1),
        Column::text(""),
    ]);
    let mut table = Table::new("", columns);
    for one in &found.compared {
        let decimals = decimals(one.one.abs().max(one.other.abs()));
        let difference = Cell::number(one.difference.value, decimals);
        let share = 100.0 * one.difference.value / one.one;
        let mut cells: Vec<Cell> = one.point.iter().map(|text| Cell::text(text)).collect();
        cells.extend([
            Cell::text(&one.scheme),
            Cell::text(&one.measure),
            Cell::number(one.one, decimals),
            Cell::number(one.other, decimals),
            if one.difference.low.is_finite() && !one.is_equal {
                difference.with_interval(one.difference.low, one.difference.high)
            } else {
                difference
            },
            if share.is_finite() { Cell::number(share, 1) } else { Cell::Missing },
            Cell::text(if one.differs() { "*" } else { "" }),
        ]);
        table.row(cells);
    }
    table.note(&format!(
        "B - A with its 95 % interval over {} seeds, paired; * where it does not hold zero, which of twenty equal numbers one does by chance",
        found.seeds
    ));
    if found.seeds == 1 {
        table.note("One seed tells no difference from chance: race both with --repeats 8");
    }
    for [name, one, other] in &found.conditions {
        table.note(&format!("{name}: {} in A, {} in B", displayed(one), displayed(other)));
    }
    for left_out in &found.left_out {
        table.note(&format!("left out: {left_out}"));
    }
    table
}

fn displayed(value: &str) -> &str {
    if value.is_empty() { "nothing" } else { value }
}

/// Four digits where people read it.
fn decimals(value: f64) -> u8 {
    match value {
        value if value >= 1000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        _ => 3,
    }
}
