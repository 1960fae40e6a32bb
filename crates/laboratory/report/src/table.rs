//! One table, three outputs: for terminals, for the HTML report, and as CSV.
//!
//! ```
//! use headstart_report::table::{Better, Cell, Column, Table};
//!
//! let mut table = Table::new(
//!     "Completion time",
//!     [Column::text("scheme"), Column::number("mean", "ms").better(Better::Lower)],
//! );
//! table.row([Cell::text("iw10"), Cell::number(312.4, 1)]);
//! assert!(table.terminal(80, false).contains("312.4"));
//! assert_eq!(table.csv(), "scheme,mean_ms\niw10,312.4\n");
//! ```

mod csv;
mod html;
mod terminal;

use std::collections::BTreeMap;

pub use terminal::{has_styles, terminal_width};

/// Rows under columns, with notes below.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Above the table; may be empty.
    pub title: String,
    /// The columns; the first names the row and is never left out.
    pub columns: Vec<Column>,
    /// The rows. A row that is too short ends in missing cells; what is too much is not shown.
    pub rows: Vec<Vec<Cell>>,
    /// Below the table, one paragraph each. Not in CSV.
    pub notes: Vec<String>,
    /// By column, the rows that a test has found best; elsewhere those that read best are marked.
    pub marked: BTreeMap<usize, Vec<bool>>,
}

/// On which side of a column its cells stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// For text.
    #[default]
    Left,
    /// For numbers.
    Right,
}

/// Which end of a column is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The smallest number is best.
    Lower,
    /// The largest number is best.
    Higher,
}

/// A column's head, and how it is treated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Quantity shown.
    pub title: String,
    /// In which unit; empty if none.
    pub unit: String,
    /// Alignment of its cells.
    pub align: Align,
    /// Without room for all, columns of the smallest priority go first; among equals the last.
    pub priority: u8,
    /// Which value is to be marked as best, if any.
    pub better: Option<Better>,
}

impl Column {
    /// A column of text, of priority 100.
    #[must_use]
    pub fn text(title: &str) -> Self {
        Self { title: title.into(), priority: 100, ..Self::default() }
    }

    /// A column of numbers, of priority 100.
    #[must_use]
    pub fn number(title: &str, unit: &str) -> Self {
        Self { unit: unit.into(), align: Align::Right, ..Self::text(title) }
    }

    /// The column with another priority.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// The column with its best value marked.
    #[must_use]
    pub fn better(self, better: Better) -> Self {
        Self { better: Some(better), ..self }
    }

    /// Title and unit as one line.
    fn caption(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{} ({})", self.title, self.unit) }
    }
}

/// Content of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number, shown with so many decimals (CSV has all digits).
    Number {
        /// The number; one that is not finite is shown as a word and is never best.
        value: f64,
        /// Digits after the point where people read it.
        decimals: u8,
        /// Lower and upper end of its uncertainty.
        interval: Option<(f64, f64)>,
    },
    /// Nothing was measured; a dash.
    #[default]
    Missing,
}

impl Cell {
    /// Words.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// A number with so many decimals.
    #[must_use]
    pub fn number(value: f64, decimals: u8) -> Self {
        Self::Number { value, decimals, interval: None }
    }

    /// A whole number.
    #[must_use]
    pub fn count(value: u64) -> Self {
        Self::number(value as f64, 0)
    }

    /// The number with the ends of its uncertainty; words stay as they are.
    #[must_use]
    pub fn with_interval(self, low: f64, high: f64) -> Self {
        match self {
            Self::Number { value, decimals, .. } => {
                Self::Number { value, decimals, interval: Some((low, high)) }
            }
            other => other,
        }
    }

    /// The cell's value as people read it, without its uncertainty.
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number { value, decimals, .. } => shown(*value, *decimals),
            Self::Missing => "\u{2013}".into(),
        }
    }

    /// Half of the uncertainty, for narrow places; empty if there is none. To be shown only where
    /// [`Self::is_symmetric`].
    fn shown_half_width(&self) -> String {
        match self {
            Self::Number { decimals, interval: Some((low, high)), .. } => {
                format!("\u{b1}{}", shown((high - low) / 2.0, *decimals))
            }
            _ => String::new(),
        }
    }

    /// The value stands in the middle of its uncertainty, as far as the last digit shown tells.
    fn is_symmetric(&self) -> bool {
        match self {
            Self::Number { value, decimals, interval: Some((low, high)) } => {
                let last_digit = 0.1_f64.powi(i32::from(*decimals));
                ((high - value) - (value - low)).abs() <= last_digit
            }
            _ => true,
        }
    }

    /// The uncertainty as people read it; empty if there is none.
    fn shown_interval(&self) -> String {
        match self {
            Self::Number { decimals, interval: Some((low, high)), .. } => {
                format!("[{}, {}]", shown(*low, *decimals), shown(*high, *decimals))
            }
            _ => String::new(),
        }
    }
}

fn shown(value: f64, decimals: u8) -> String {
    if value.is_nan() {
        return "\u{2013}".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "never".into() } else { "\u{2212}\u{221e}".into() };
    }
    let text = format!("{:.*}", usize::from(decimals), value.abs());
    // A number that rounds to zero has no sign.
    let negative = value < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
    if negative { format!("\u{2212}{text}") } else { text }
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(title: &str, columns: impl IntoIterator<Item = Column>) -> Self {
        Self { title: title.into(), columns: columns.into_iter().collect(), ..Self::default() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a note.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.into());
    }

    /// Marks these rows of a column as best, and no others. Where all are, none is.
    pub fn mark(&mut self, column: usize, rows: Vec<bool>) {
        let is_told_apart = rows.contains(&false);
        self.marked.insert(column, if is_told_apart { rows } else { vec![] });
    }

    fn cell(&self, row: usize, column: usize) -> &Cell {
        const MISSING: &Cell = &Cell::Missing;
        self.rows.get(row).and_then(|cells| cells.get(column)).unwrap_or(MISSING)
    }

    /// For each row, whether its cell is the best of `column`.
    ///
    /// Compared as shown: two numbers that read the same are equally good. Where all are equal, or
    /// there is only one, none is best.
    fn best_of(&self, column: usize) -> Vec<bool> {
        if let Some(marked) = self.marked.get(&column) {
            return (0..self.rows.len()).map(|row| marked.get(row) == Some(&true)).collect();
        }
        let better = self.columns.get(column).and_then(|column| column.better);
        let values: Vec<Option<f64>> = (0..self.rows.len())
            .map(|row| match self.cell(row, column) {
                Cell::Number { value, decimals, .. } if value.is_finite() => {
                    format!("{:.*}", usize::from(*decimals), value).parse().ok()
                }
                _ => None,
            })
            .collect();
        let numbers = || values.iter().flatten().copied();
        let (low, high) =
            (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max));
        let best =
            better.filter(|_| low < high).map(|better| if better == Better::Lower { low } else { high });
        values.into_iter().map(|value| value.is_some() && value == best).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column_of(better: Option<Better>, values: &[f64]) -> Table {
        let mut table = Table::new("", [Column { better, ..Column::number("v", "") }]);
        for &value in values {
            table.row([Cell::number(value, 1)]);
        }
        table
    }

    #[test]
    fn the_best_follows_the_direction_of_its_column() {
        for (better, values, expected) in [
            (Some(Better::Lower), &[3.0, 1.04, 1.0, 2.0][..], &[false, true, true, false][..]),
            (Some(Better::Higher), &[3.0, 1.0, f64::INFINITY, f64::NAN], &[true, false, false, false]),
            (None, &[1.0, 2.0], &[false, false]),
            (Some(Better::Lower), &[1.0, 1.01], &[false, false]),
            (Some(Better::Lower), &[1.0], &[false]),
        ] {
            assert_eq!(column_of(better, values).best_of(0), expected, "{values:?}");
        }
    }

    #[test]
    fn cells_that_a_test_cannot_separate_are_best_together() {
        let mut table = column_of(Some(Better::Lower), &[3.0, 1.04, 1.0, 2.0]);
        table.mark(0, vec![false, true, true, true]);
        assert_eq!(table.best_of(0), [false, true, true, true]);
        table.mark(0, vec![true; 4]);
        assert_eq!(table.best_of(0), [false; 4], "nothing was told apart");
    }

    #[test]
    fn numbers_are_shown_in_usual_notation() {
        for (value, decimals, expected) in [
            (1.25, 1, "1.2"),
            (-0.01, 1, "0.0"),
            (-3.0, 0, "\u{2212}3"),
            (f64::NAN, 2, "\u{2013}"),
            (f64::INFINITY, 2, "never"),
        ] {
            assert_eq!(Cell::number(value, decimals).shown(), expected);
        }
        assert_eq!(Cell::number(2.0, 1).with_interval(1.5, 2.75).shown_interval(), "[1.5, 2.8]");
    }

    #[test]
    fn a_short_row_ends_in_missing_cells() {
        let mut table = Table::new("", [Column::text("a"), Column::text("b")]);
        table.row([Cell::text("x")]);
        assert_eq!(table.cell(0, 1), &Cell::Missing);
        assert_eq!(table.csv(), "a,b\nx,\n");
    }
}
