//! Write a table for a terminal of a given width.
//!
//! Columns of long texts are folded. Columns that do not fit are left out, least important first,
//! and a last note names them. A table that the terminal wraps cannot be read. An interval is shown
//! as half of its width if all of the column are symmetric as shown, else by its ends.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Align, Cell, Table};

const GAP: usize = 2;
/// Columns of text are not folded to less than this.
const FOLDED: usize = 18;
const BOLD: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

/// Width where nothing says it: a file or a pipe wraps no line, and a person reads this yet.
const WITHOUT_TERMINAL: usize = 100;

/// Columns of the terminal: `columns` (the caller's `COLUMNS` variable) if it holds a number, else
/// what standard output reports, else 100.
#[must_use]
pub fn terminal_width(columns: Option<&str>) -> usize {
    columns
        .and_then(|text| text.trim().parse().ok())
        .filter(|&width| width > 0)
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|&w| w > 0))
        .unwrap_or(WITHOUT_TERMINAL)
}

/// True if standard output shows text in bold, by what the caller knows of it: it is a terminal,
/// the values of `TERM` and `NO_COLOR`. An empty `NO_COLOR` asks for nothing (no-color.org).
#[must_use]
pub fn has_styles(is_terminal: bool, term: Option<&str>, no_color: Option<&str>) -> bool {
    is_terminal && term != Some("dumb") && no_color.is_none_or(str::is_empty)
}

/// One column, ready to be set.
struct Block {
    head: Vec<String>,
    /// Value and uncertainty, apart so that values line up whatever stands behind them.
    cells: Vec<(String, String)>,
    value_width: usize,
    interval_width: usize,
    width: usize,
    /// Width with intervals of two ends, whether it has them or not: the columns that fit are then
    /// the same for other seeds.
    widest: usize,
}

impl Table {
    /// The table at most `width` columns wide; with `bold`, the best of each column in bold.
    ///
    /// Pass `bold` only if the output [has styles](has_styles). Control characters in text are
    /// replaced: what came from a file cannot drive the terminal.
    #[must_use]
    pub fn terminal(&self, width: usize, bold: bool) -> String {
        let width = width.max(8);
        let blocks: Vec<Block> = (0..self.columns.len()).map(|column| self.block(column)).collect();
        let kept = self.fitting(&blocks, width);
        let widths = self.widths(&blocks, &kept, width);
        let mut lines = Vec::new();
        if !self.title.is_empty() {
            lines.extend(wrapped(&clean(&self.title), width));
        }
        let depth = kept.iter().map(|&column| blocks[column].head.len()).max().unwrap_or(0);
        for level in 0..depth {
            lines.push(self.line(&kept, &widths, |column| {
                let head = &blocks[column].head;
                // Heads stand on the rule, whatever their height.
                let text = (level + head.len()).checked_sub(depth).map_or("", |at| head[at].as_str());
                (text.into(), false)
            }));
        }
        lines.push("\u{2500}".repeat(widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)));
        let best: Vec<Vec<bool>> = (0..self.columns.len()).map(|column| self.best_of(column)).collect();
        #[expect(clippy::needless_range_loop, reason = "rows index several tables at once")]
        for row in 0..self.rows.len() {
            let folded: Vec<Vec<String>> = kept
                .iter()
                .zip(&widths)
                .map(|(&column, &width)| {
                    let block = &blocks[column];
                    let (value, interval) = &block.cells[row];
                    if self.columns[column].align == Align::Left {
                        return wrapped(value, width);
                    }
                    if block.interval_width == 0 {
                        return vec![value.clone()];
                    }
                    let value = pad(value, block.value_width, self.columns[column].align);
                    vec![format!("{value} {}", pad(interval, block.interval_width, Align::Right))]
                })
                .collect();
            for level in 0..folded.iter().map(Vec::len).max().unwrap_or(1).max(1) {
                lines.push(self.line(&kept, &widths, |column| {
                    let place = kept.iter().position(|&other| other == column).unwrap_or(0);
                    let text = folded[place].get(level).cloned().unwrap_or_default();
                    let is_best = bold && best[column][row] && !text.is_empty();
                    (text, is_best)
                }));
            }
        }
        for note in &self.notes {
            lines.extend(wrapped(&clean(note), width));
        }
        let left_out: Vec<String> = (0..self.columns.len())
            .filter(|column| !kept.contains(column))
            .map(|column| clean(&self.columns[column].caption()))
            .collect();
        if !left_out.is_empty() {
            lines.extend(wrapped(&format!("Columns left out (too wide): {}.", left_out.join(", ")), width));
        }
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    fn block(&self, column: usize) -> Block {
        let column_cells = || (0..self.rows.len()).map(|row| self.cell(row, column));
        let is_symmetric = column_cells().all(Cell::is_symmetric);
        let interval =
            |cell: &Cell| if is_symmetric { cell.shown_half_width() } else { cell.shown_interval() };
        let cells: Vec<(String, String)> =
            column_cells().map(|cell| (clean(&cell.shown()), interval(cell))).collect();
        let value_width = cells.iter().map(|(value, _)| value.width()).max().unwrap_or(0);
        let interval_width = cells.iter().map(|(_, interval)| interval.width()).max().unwrap_or(0);
        let content = if interval_width == 0 { value_width } else { value_width + 1 + interval_width };
        let mut head = Vec::new();
        let title = clean(&self.columns[column].title);
        let longest_word = title.split_whitespace().map(UnicodeWidthStr::width).max().unwrap_or(0);
        // Titles are broken at spaces rather than widen their column, but not at every short word.
        head.extend(wrapped(&title, content.max(longest_word).max(8)));
        if !self.columns[column].unit.is_empty() {
            head.push(format!("({})", clean(&self.columns[column].unit)));
        }
        let width = head.iter().map(|line| line.width()).max().unwrap_or(0).max(content);
        let ends = column_cells().map(|cell| cell.shown_interval().width()).max().unwrap_or(0);
        let widest = if ends == 0 { width } else { width.max(value_width + 1 + ends) };
        Block { head, cells, value_width, interval_width, width, widest }
    }

    /// The columns that fit, in their order. The first always stays.
    fn fitting(&self, blocks: &[Block], width: usize) -> Vec<usize> {
        let mut kept: Vec<usize> = (0..blocks.len()).collect();
        let needed = |column: usize| match self.columns[column].align {
            Align::Left => self.least_width(blocks, column),
            Align::Right => blocks[column].widest,
        };
        let total = |kept: &[usize]| {
            kept.iter().map(|&column| needed(column)).sum::<usize>() + GAP * kept.len().saturating_sub(1)
        };
        while kept.len() > 1 && total(&kept) > width {
            let least = kept
                .iter()
                .copied()
                .skip(1)
                .min_by_key(|&column| (self.columns[column].priority, std::cmp::Reverse(column)));
            kept.retain(|&column| Some(column) != least);
        }
        kept
    }

    /// A column of text can be folded, one of numbers cannot.
    fn least_width(&self, blocks: &[Block], column: usize) -> usize {
        let width = blocks[column].width;
        if self.columns[column].align == Align::Left { width.min(FOLDED) } else { width }
    }

    /// Widths of the columns that are shown: the rest goes to columns of text in their order.
    fn widths(&self, blocks: &[Block], kept: &[usize], width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> =
            kept.iter().map(|&column| self.least_width(blocks, column).min(width)).collect();
        let used = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let mut left_over = width.saturating_sub(used);
        for (own, &column) in widths.iter_mut().zip(kept) {
            let more = (blocks[column].width.min(width) - *own).min(left_over);
            *own += more;
            left_over -= more;
        }
        widths
    }

    fn line(&self, kept: &[usize], widths: &[usize], cell: impl Fn(usize) -> (String, bool)) -> String {
        let mut out = String::new();
        for (index, (&column, &width)) in kept.iter().zip(widths).enumerate() {
            if index > 0 {
                out.push_str(&" ".repeat(GAP));
            }
            let (text, is_best) = cell(column);
            let text = truncate(&text, width);
            let padded = pad(&text, width, self.columns[column].align);
            if is_best {
                // The padding stays plain: some terminals underline or colour bold blanks.
                out.push_str(&padded.replacen(&text, &format!("{BOLD}{text}{PLAIN}"), 1));
            } else {
                out.push_str(&padded);
            }
        }
        out
    }
}

/// `text` without control characters, on one line.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' | '\r' => ' ',
            // Overrides of the writing direction can make a row read as another.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn pad(text: &str, width: usize, align: Align) -> String {
    let blanks = " ".repeat(width.saturating_sub(text.width()));
    match align {
        Align::Left => format!("{text}{blanks}"),
        Align::Right => format!("{blanks}{text}"),
    }
}

fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mut out = String::new();
    let mut used = 0;
    for character in text.chars() {
        let next = character.width().unwrap_or(0);
        if used + next + 1 > width {
            break;
        }
        used += next;
        out.push(character);
    }
    out.push('\u{2026}');
    out
}

/// `text` broken at spaces into lines of at most `width`; a longer word is cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(truncate(word, width)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::{Better, Cell, Column, Table};
    use super::*;

    #[test]
    fn text_is_bold_at_a_terminal_that_can_unless_a_value_of_no_color_says_otherwise() {
        for (is_terminal, term, no_color, expected) in [
            (true, Some("xterm"), None, true),
            (true, None, None, true),
            (true, Some("xterm"), Some(""), true),
            (true, Some("xterm"), Some("1"), false),
            (true, Some("dumb"), None, false),
            (false, Some("xterm"), None, false),
        ] {
            assert_eq!(has_styles(is_terminal, term, no_color), expected, "{term:?} {no_color:?}");
        }
    }

    fn sample() -> Table {
        let mut table = Table::new(
            "Load 40 %",
            [
                Column::text("scheme"),
                Column::number("mean completion", "ms").better(Better::Lower),
                Column::number("99th percentile", "ms").priority(50),
                Column::number("loss", "%").priority(70),
            ],
        );
        table.row([
            Cell::text("halfback"),
            Cell::number(98.25, 1).with_interval(52.25, 144.25),
            Cell::number(400.0, 0),
            Cell::number(0.5, 2),
        ]);
        table.row([Cell::text("速度"), Cell::number(312.0, 1).with_interval(300.0, 324.0), Cell::Missing]);
        table.note("Made up.");
        table
    }

    #[test]
    fn a_wide_terminal_shows_everything_aligned() {
        let expected = [
            "Load 40 %",
            "                 mean        99th",
            "           completion  percentile  loss",
            "scheme           (ms)        (ms)   (%)",
            "───────────────────────────────────────",
            "halfback   98.2 ±46.0         400  0.50",
            "速度      312.0 ±12.0           –     –",
            "Made up.",
        ];
        assert_eq!(sample().terminal(80, false).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn asymmetric_intervals_are_shown_by_their_ends() {
        let mut table = Table::new("", [Column::text("scheme"), Column::number("harm", "")]);
        table.row([Cell::text("wise-start"), Cell::number(0.981, 3).with_interval(0.764, 1.293)]);
        table.row([Cell::text("iw10"), Cell::number(1.0, 3).with_interval(0.999, 1.001)]);
        let shown = table.terminal(80, false);
        assert!(shown.contains("0.981 [0.764, 1.293]") && shown.contains("1.000 [0.999, 1.001]"), "{shown}");
    }

    #[test]
    fn a_narrow_terminal_omits_the_least_important_columns_with_a_note() {
        let shown = sample().terminal(36, false);
        assert!(shown.lines().all(|line| line.width() <= 36), "{shown}");
        assert!(shown.contains("0.50") && !shown.contains("400"), "{shown}");
        assert!(
            shown.replace('\n', " ").contains("Columns left out (too wide): 99th percentile (ms)."),
            "{shown}"
        );
    }

    #[test]
    fn the_columns_that_fit_do_not_depend_on_the_form_of_intervals() {
        let shown = |high: f64| {
            let columns = ["mean", "p50", "p99"].map(|title| Column::number(title, "ms"));
            let mut table = Table::new("", [Column::text("scheme")].into_iter().chain(columns));
            let cell = || Cell::number(255.0, 0).with_interval(245.0, high);
            table.row([Cell::text("iw10"), cell(), cell(), cell()]);
            let shown = table.terminal(40, false);
            (shown.lines().next().expect("heads").split_whitespace().count(), shown.contains('±'))
        };
        assert_eq!((shown(265.0), shown(275.0)), ((2, true), (2, false)));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 8..90 {
            let shown = sample().terminal(width, false);
            assert!(shown.lines().all(|line| line.width() <= width), "{width}:\n{shown}");
            assert!(shown.contains("速度"), "the first column stays");
        }
    }

    #[test]
    fn bold_only_when_asked_and_only_the_best() {
        assert!(!sample().terminal(80, false).contains('\u{1b}'));
        let bold = sample().terminal(80, true);
        assert_eq!(bold.matches(BOLD).count(), 1);
        assert_eq!(bold.replace(BOLD, "").replace(PLAIN, ""), sample().terminal(80, false));
    }

    #[test]
    fn control_characters_in_names_are_escaped() {
        let mut table = Table::new("", [Column::text("a")]);
        table.row([Cell::text("\u{1b}[2Jx\ny\u{202e}z")]);
        assert!(table.terminal(80, true).contains("\u{fffd}[2Jx y\u{fffd}z"));
    }

    #[test]
    fn a_valid_environment_variable_overrides_the_terminal() {
        assert_eq!(terminal_width(Some("132")), 132);
        let without = terminal_width(None);
        assert_eq!((terminal_width(Some("0")), terminal_width(Some("wide"))), (without, without));
    }
}
