//! `headstart list schemes`: the catalogue, or the parameters of one scheme.

use anyhow::Result;
use clap::Args;
use headstart_startup::catalogue::{self, Entry, Needs};

use super::format::Format;
use headstart_report::table::{Cell, Column, Table};
use headstart_study::options::SchemeName;
use headstart_study::schemes;

/// Options of `schemes`.
#[derive(Args, Debug)]
pub struct SchemesArgs {
    /// The scheme
    pub name: Option<SchemeName>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Prints the catalogue, or one scheme.
pub fn run(args: &SchemesArgs) -> Result<()> {
    args.format.print_table(&table(args))
}

/// The catalogue, or the parameters of one scheme.
pub fn table(args: &SchemesArgs) -> Table {
    args.name.map_or_else(all, |name| parameters(name.0))
}

fn all() -> Table {
    let mut table =
        Table::new("", [Column::text("scheme"), Column::text("needs"), Column::text("what it is")]);
    let found = catalogue::families().iter().filter_map(|family| schemes::find(family.about().name).ok());
    // Some are rows already, under the name of a preset.
    let is_row = |entry: &&Entry| schemes::all().iter().any(|row| row.name == entry.name);
    let by_name: Vec<&Entry> = found.filter(|entry| !is_row(entry)).collect();
    for entry in schemes::all().iter().chain(by_name.iter().copied()) {
        table.row([Cell::text(&entry.name), Cell::text(entry.needs.as_str()), Cell::text(entry.summary)]);
    }
    let names: Vec<&str> = by_name.iter().map(|entry| entry.name.as_str()).collect();
    table.note(&format!("Run only where --schemes names them: {}", names.join(", ")));
    table.note("Parameters of a scheme, with defaults and sources: headstart list schemes halfback");
    table
}

/// The parameters of one scheme, and the source of each default.
fn parameters(entry: &Entry) -> Table {
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
    table
}
