//! `headstart list paths`: the names that `--path` accepts.

use anyhow::Result;
use clap::{Args, ValueEnum as _};

use super::format::Format;
use headstart_report::table::{Cell, Column, Table};
use headstart_study::options::PathPreset;
use headstart_study::options::presets::Number;

/// Options of `paths`.
#[derive(Args, Debug)]
pub struct PathsArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Prints the list of paths.
///
/// # Errors
/// If nothing can be printed.
pub fn run(args: &PathsArgs) -> Result<()> {
    args.format.print_table(&table())
}

/// A row for each number of each path.
pub fn table() -> Table {
    let mut table = Table::new("", ["path", "option", "value", "source"].map(Column::text));
    for preset in PathPreset::value_variants() {
        for number in preset.numbers() {
            let Number { option, value, source } = number;
            let option = format!("--{option}");
            table.row([&preset.name(), option.as_str(), value, source].map(Cell::text));
        }
    }
    table.note(
        "Both directions have --buffer. Other options override the path's numbers: --path lte --rtt 40ms",
    );
    table
}
