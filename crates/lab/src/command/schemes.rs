//! `headstart schemes`: the catalogue.

use anyhow::Result;
use headstart_startup::catalogue;

use super::terminal::print_table;
use crate::table::{Cell, Column, Table};

/// Prints it.
pub fn run() -> Result<()> {
    let mut table =
        Table::new("", [Column::text("scheme"), Column::text("needs"), Column::text("what it is")]);
    for entry in catalogue::ALL {
        let needs = match entry.needs {
            catalogue::Needs::Nothing => "",
            catalogue::Needs::FlowSize => "flow size",
            catalogue::Needs::History => "history",
            catalogue::Needs::Hint => "hint",
            catalogue::Needs::Routers => "routers",
        };
        table.row([Cell::text(entry.name), Cell::text(needs), Cell::text(entry.summary)]);
    }
    print_table(&table)
}
