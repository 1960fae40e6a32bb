//! Write a table for programs: one header line, all digits, the unit in the column's name.

use super::{Cell, Table};
use crate::output::csv_text;

impl Table {
    /// Comma-separated values; lines end in `\n`, a missing value is empty.
    ///
    /// A column that has uncertainties anywhere is followed by two more, `_low` and `_high`.
    #[must_use]
    pub fn csv(&self) -> String {
        let (header, rows) = self.records();
        csv_text(&header, &rows)
    }

    /// The table as a header and rows of fields.
    #[must_use]
    pub fn records(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let has_interval: Vec<bool> = (0..self.columns.len())
            .map(|column| (0..self.rows.len()).any(|row| interval(self.cell(row, column)).is_some()))
            .collect();
        let rows = (0..self.rows.len()).map(|row| self.fields(row, &has_interval)).collect();
        (self.header(&has_interval), rows)
    }

    fn header(&self, has_interval: &[bool]) -> Vec<String> {
        let mut header = vec![];
        for (column, &with_interval) in self.columns.iter().zip(has_interval) {
            let key = key(&column.title, &column.unit);
            header.push(key.clone());
            if with_interval {
                header.extend([format!("{key}_low"), format!("{key}_high")]);
            }
        }
        header
    }

    fn fields(&self, row: usize, has_interval: &[bool]) -> Vec<String> {
        let mut fields = vec![];
        for (column, &with_interval) in has_interval.iter().enumerate() {
            let cell = self.cell(row, column);
            fields.push(match cell {
                Cell::Text(text) => text.clone(),
                Cell::Number { value, .. } => digits(*value),
                Cell::Missing => String::new(),
            });
            if with_interval {
                let (low, high) = interval(cell).unwrap_or((f64::NAN, f64::NAN));
                fields.extend([digits(low), digits(high)]);
            }
        }
        fields
    }
}

fn interval(cell: &Cell) -> Option<(f64, f64)> {
    if let Cell::Number { interval, .. } = cell { *interval } else { None }
}

/// The shortest digits that give the same number back; nothing for what is not a number.
fn digits(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{}", if value == 0.0 { 0.0 } else { value }) }
}

/// A name for programs: lower case, words joined by underscores, the unit last.
fn key(title: &str, unit: &str) -> String {
    let unit = unit.replace('%', "percent").replace("/s", "_per_s").replace('\u{b5}', "u");
    let mut out = String::new();
    for character in format!("{title} {unit}").chars() {
        if character.is_alphanumeric() {
            out.extend(character.to_lowercase());
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.trim_matches('_').into()
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Column, Table};
    use super::*;

    #[test]
    fn units_become_part_of_the_name() {
        for (title, unit, expected) in [
            ("mean", "ms", "mean_ms"),
            ("Goodput (all)", "Mbit/s", "goodput_all_mbit_per_s"),
            ("loss", "%", "loss_percent"),
            ("scheme", "", "scheme"),
            ("99th", "\u{b5}s", "99th_us"),
        ] {
            assert_eq!(key(title, unit), expected);
        }
    }

    #[test]
    fn commas_quotes_and_line_ends_are_quoted() {
        let mut table = Table::new("", [Column::text("a,b"), Column::text("c")]);
        table.row([Cell::text("say \"no\""), Cell::text("a\nb")]);
        assert_eq!(table.csv(), "a_b,c\n\"say \"\"no\"\"\",\"a\nb\"\n");
    }

    #[test]
    fn all_digits_and_both_ends_are_written() {
        let mut table = Table::new("", [Column::text("scheme"), Column::number("mean", "ms")]);
        table.row([Cell::text("a"), Cell::number(1.0 / 3.0, 1).with_interval(0.25, 0.5)]);
        table.row([Cell::text("b"), Cell::number(-0.0, 1)]);
        table.row([Cell::text("c"), Cell::number(f64::INFINITY, 1)]);
        let expected =
            "scheme,mean_ms,mean_ms_low,mean_ms_high\na,0.3333333333333333,0.25,0.5\nb,0,,\nc,inf,,\n";
        assert_eq!(table.csv(), expected);
    }
}
