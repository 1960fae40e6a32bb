//! Write a table for the report.

use std::fmt::Write as _;

use super::{Align, Better, Cell, Table};
use crate::markup::escape;

impl Table {
    /// A `table` element in a box that scrolls by itself where the page is too narrow.
    ///
    /// The best cells of a column have the class `best`, numbers the class `number`; the report's
    /// style sheet knows both. `data-v` and `data-better` are what its script sorts by.
    #[must_use]
    pub fn html(&self) -> String {
        let class = |column: usize| match self.columns[column].align {
            Align::Left => "",
            Align::Right => " class=\"number\"",
        };
        let mut out = String::from("<div class=\"wide\"><table>\n");
        // Writing to a string cannot fail, here and below.
        if !self.title.is_empty() {
            let _ = writeln!(out, "<caption>{}</caption>", escape(&self.title));
        }
        out.push_str("<thead><tr>");
        for (index, column) in self.columns.iter().enumerate() {
            let better = match column.better {
                None => "",
                Some(Better::Lower) => " data-better=\"lower\"",
                Some(Better::Higher) => " data-better=\"higher\"",
            };
            // A heading may take two lines.
            let title = escape(&column.title).replace('/', "/<wbr>");
            let _ = write!(out, "<th scope=\"col\"{}{better}>{title}", class(index));
            if !column.unit.is_empty() {
                let _ = write!(out, " <span class=\"unit\">{}</span>", escape(&column.unit));
            }
            out.push_str("</th>");
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let best: Vec<Vec<bool>> = (0..self.columns.len()).map(|column| self.best_of(column)).collect();
        #[expect(clippy::needless_range_loop, reason = "rows and columns index several tables at once")]
        for row in 0..self.rows.len() {
            out.push_str("<tr>");
            for column in 0..self.columns.len() {
                let cell = self.cell(row, column);
                let mut content = escape(&with_fixed_spaces(&cell.shown()));
                if best[column][row] {
                    content =
                        format!("<strong class=\"best\" title=\"best of its column\">{content}</strong>");
                }
                let interval = cell.shown_interval();
                if !interval.is_empty() {
                    let _ = write!(content, "<span class=\"interval\">{}</span>", escape(&interval));
                }
                let class = match cell {
                    Cell::Text(text) if column > 0 && text.chars().count() > 36 => " class=\"long\"",
                    _ => class(column),
                };
                let (tag, scope) = if column == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
                // Sort key of the page's script.
                let key = match cell {
                    Cell::Number { value, .. } if value.is_infinite() => {
                        format!(" data-v=\"{}Infinity\"", if *value < 0.0 { "-" } else { "" })
                    }
                    Cell::Number { value, .. } if !value.is_nan() => format!(" data-v=\"{value}\""),
                    _ => String::new(),
                };
                let _ = write!(out, "<{tag}{scope}{class}{key}>{content}</{tag}>");
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        for note in &self.notes {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
        }
        out
    }
}

/// The text, where a line does not end before a sign of per cent or within an interval.
fn with_fixed_spaces(text: &str) -> String {
    let mut inside = false;
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(letter) = letters.next() {
        inside = (inside || letter == '[') && letter != ']';
        let is_kept = inside || (before.is_ascii_digit() && letters.peek() == Some(&'%'));
        out.push(if letter == ' ' && is_kept { '\u{a0}' } else { letter });
        before = letter;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::{Better, Cell, Column, Table};
    use super::with_fixed_spaces;

    #[test]
    fn a_number_keeps_its_sign_of_per_cent_and_an_interval_its_ends() {
        for (text, expected) in [
            ("29.3 % [24.4, 33.9]", "29.3\u{a0}% [24.4,\u{a0}33.9]"),
            ("at least 10 %", "at least 10\u{a0}%"),
            ("no % of it", "no % of it"),
            ("a [b", "a [b"),
        ] {
            assert_eq!(with_fixed_spaces(text), expected);
        }
    }

    #[test]
    fn a_table_is_written_with_its_best_cell_marked() {
        let mut table =
            Table::new("T", [Column::text("scheme"), Column::number("mean", "ms").better(Better::Lower)]);
        table.row([Cell::text("a"), Cell::number(2.0, 1).with_interval(1.0, 3.0)]);
        table.row([Cell::text("b"), Cell::number(1.0, 1)]);
        table.note("n");
        let expected = "<div class=\"wide\"><table>\n<caption>T</caption>\n\
            <thead><tr><th scope=\"col\">scheme</th>\
            <th scope=\"col\" class=\"number\" data-better=\"lower\">mean <span class=\"unit\">ms</span></th></tr></thead>\n\
            <tbody>\n<tr><th scope=\"row\">a</th>\
            <td class=\"number\" data-v=\"2\">2.0<span class=\"interval\">[1.0, 3.0]</span></td></tr>\n\
            <tr><th scope=\"row\">b</th><td class=\"number\" data-v=\"1\">\
            <strong class=\"best\" title=\"best of its column\">1.0</strong></td></tr>\n\
            </tbody></table></div>\n<p class=\"note\">n</p>\n";
        assert_eq!(table.html(), expected);
    }

    #[test]
    fn text_in_a_table_is_escaped_as_markup() {
        let evil = "<img src=x onerror='alert(1)'>";
        let mut table = Table::new(evil, [Column::number(evil, evil)]);
        table.row([Cell::text(evil)]);
        table.note(evil);
        assert!(!table.html().contains("<img"));
        assert_eq!(table.html().matches("&lt;img").count(), 5);
    }
}
