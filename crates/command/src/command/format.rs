//! `--format`: the output format of results.

use std::io::{self, IsTerminal as _};

use anyhow::{Result, anyhow, ensure};
use clap::ValueEnum;
use headstart_report::rows;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::terminal;
use headstart_report::output::csv_text;
use headstart_report::table::Table;

/// Output format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// One line for each row, with a header
    Csv,
    /// The rows, with explanations
    Json,
    /// The rows in columns with types, to a file or a pipe
    Parquet,
}

impl Format {
    /// Checks that this program writes it, and that standard output can take it.
    ///
    /// # Errors
    /// If not; says what to do.
    pub fn check_available(self) -> Result<()> {
        if self != Self::Parquet {
            return Ok(());
        }
        rows::can_write_parquet("parquet", "one of table, csv, json")
            .map_err(|error| anyhow!("--format: {error}"))?;
        ensure!(
            !std::io::stdout().is_terminal(),
            "--format: found parquet on a terminal, expected a file or a pipe, as in `> rows.parquet`"
        );
        Ok(())
    }

    /// Prints rows in this format; as JSON the given document. Of a table, nothing.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub fn print<Name: AsRef<str>>(
        self,
        header: &[Name],
        rows: &[Vec<String>],
        document: impl FnOnce() -> Result<String>,
    ) -> Result<()> {
        match self {
            Self::Table => Ok(()),
            Self::Csv => {
                let header: Vec<&str> = header.iter().map(AsRef::as_ref).collect();
                terminal::print(&csv_text(&header, rows))
            }
            Self::Json => terminal::print(&document()?),
            Self::Parquet => {
                terminal::print_bytes(&rows::parquet_bytes(&rows::inferred(header, rows), rows)?)
            }
        }
    }

    /// Prints a table in this format.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub fn print_table(self, table: &Table) -> Result<()> {
        if self == Self::Table {
            return terminal::print_table(table);
        }
        let (header, rows) = table.records();
        self.print(&header, &rows, || document(&terminal::command_line(), &header, &rows))
    }
}

/// A row as a JSON object: numbers as numbers, empty cells as null.
fn object<Name: AsRef<str>>(header: &[Name], row: &[String]) -> Map<String, Value> {
    let value = |text: &String| match serde_json::from_str::<serde_json::Number>(text) {
        Ok(number) => Value::Number(number),
        Err(_) if text.is_empty() => Value::Null,
        Err(_) => Value::String(text.clone()),
    };
    header.iter().map(|name| name.as_ref().to_owned()).zip(row.iter().map(value)).collect()
}

/// Rows as JSON objects, of which one at a time is in memory: they take a multiple of their text.
#[derive(Debug)]
pub struct Objects<'a, Name>(pub &'a [Name], pub &'a [Vec<String>]);

impl<Name: AsRef<str>> Serialize for Objects<'_, Name> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.1.iter().map(|row| object(self.0, row)))
    }
}

#[derive(Serialize)]
#[serde(bound = "Name: AsRef<str>")]
struct Document<'a, Name> {
    headstart: &'a str,
    command: &'a str,
    rows: Objects<'a, Name>,
}

/// A document of these rows, with the program and the command that they are of.
///
/// # Errors
/// None that can be: names and values are text and numbers.
pub fn document<Name: AsRef<str>>(command: &str, header: &[Name], rows: &[Vec<String>]) -> Result<String> {
    let mut text = vec![];
    write_document(&mut text, command, header, rows)?;
    Ok(String::from_utf8(text)?)
}

/// Writes [`document`], of which one row at a time is in memory.
///
/// # Errors
/// If it cannot be written.
pub fn write_document<Name: AsRef<str>>(
    mut to: impl io::Write,
    command: &str,
    header: &[Name],
    rows: &[Vec<String>],
) -> io::Result<()> {
    let document = Document { headstart: headstart_compare::VERSION, command, rows: Objects(header, rows) };
    serde_json::to_writer_pretty(&mut to, &document)?;
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_numbers_and_empty_cells_are_null() {
        let row = ["iw10", "1.50", "", "0b", "-3"].map(str::to_owned).to_vec();
        let header = ["scheme", "mean_ms", "harm", "hash", "count"];
        let objects = serde_json::to_value(Objects(&header, &[row])).expect("text and numbers");
        // The order of the names is that of the build's JSON.
        let expected = serde_json::json!([
            { "count": -3, "harm": null, "hash": "0b", "mean_ms": 1.5, "scheme": "iw10" }
        ]);
        assert_eq!(objects, expected);
    }
}
