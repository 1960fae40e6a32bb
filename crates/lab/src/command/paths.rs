//! `headstart paths`: the names that `--path` accepts.

use anyhow::Result;
use clap::ValueEnum as _;

use super::terminal::print_table;
use crate::options::PathPreset;
use crate::options::presets::PresetPath;
use crate::table::{Cell, Column, Table};

/// Prints it.
///
/// # Errors
/// If nothing can be printed.
pub fn run() -> Result<()> {
    let columns = ["path", "rate", "up-rate", "rtt", "buffer", "source of rates and time", "of the buffer"];
    let mut table = Table::new("", columns.map(Column::text));
    for preset in PathPreset::value_variants() {
        let PresetPath { rate, up_rate, rtt, buffer, source, buffer_source } = preset.path();
        let name = preset.name();
        table.row([&name, rate, up_rate, rtt, buffer, source, buffer_source].map(Cell::text));
    }
    table.note("The buffer is that of both directions. Options beside --path override its numbers: --path lte --rtt 40ms");
    print_table(&table)
}
