//! `headstart schemes`: the catalogue, or the parameters of one scheme.

use anyhow::Result;
use headstart_startup::catalogue::{Entry, Needs};

use super::terminal::print_table;
use crate::schemes;
use crate::table::{Cell, Column, Table};

/// Prints it.
pub fn run() -> Result<()> {
    let mut table =
        Table::new("", [Column::text("scheme"), Column::text("needs"), Column::text("what it is")]);
    for entry in schemes::all() {
        table.row([Cell::text(&entry.name), Cell::text(entry.needs.as_str()), Cell::text(entry.summary)]);
    }
    table.note("Parameters of a scheme, with defaults and sources: headstart schemes halfback");
    print_table(&table)
}

/// Prints the parameters of one scheme, and the source of each default.
pub fn run_for(entry: &Entry) -> Result<()> {
    let needs = match entry.needs {
        Needs::Nothing => String::new(),
        needs => format!("; needs: {}", needs.as_str()),
    };
    let mut table = Table::new(
        &format!("{}: {}{needs}", entry.name, entry.summary),
        [
            Column::text("parameter"),
            Column::text("type"),
            Column::text("default"),
            Column::text("values"),
            Column::text("what it is"),
            Column::text("source of the default"),
        ],
    );
    let (about, parameters) = (entry.about(), entry.parameters());
    for parameter in &parameters {
        table.row([
            Cell::text(&parameter.name),
            Cell::text(parameter.kind),
            Cell::text(&parameter.default),
            Cell::text(&parameter.expected),
            Cell::text(parameter.about),
            Cell::text(parameter.source),
        ]);
    }
    if let Some(parameter) = parameters.first() {
        let example = format!("{}({}={})", about.name, parameter.name, parameter.ends[0]);
        table.note(&format!("To set one: --schemes '{example}'"));
    }
    for preset in about.presets {
        table.note(&format!("{} is {}", preset.name, preset.text));
    }
    print_table(&table)
}
