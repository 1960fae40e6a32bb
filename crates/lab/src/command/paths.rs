//! `headstart paths`: the names that `--path` accepts.

use anyhow::Result;
use clap::ValueEnum as _;

use super::terminal::print_table;
use crate::options::PathPreset;
use crate::options::presets::Number;
use crate::table::{Cell, Column, Table};

/// Prints it.
///
/// # Errors
/// If nothing can be printed.
pub fn run() -> Result<()> {
    let mut table = Table::new("", ["path", "option", "value", "source"].map(Column::text));
    for preset in PathPreset::value_variants() {
        for number in preset.numbers() {
            let Number { option, value, source } = number;
            let option = format!("--{option}");
            table.row([&preset.name(), option.as_str(), value, source].map(Cell::text));
        }
    }
    table.note("--buffer is that of both directions. Options beside --path override its numbers: --path lte --rtt 40ms");
    print_table(&table)
}
