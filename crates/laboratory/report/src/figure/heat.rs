//! Heat maps: a number for each pair of two settings, and its colour by how far it lies from 1.

use super::canvas::{shorten, text_width};
use super::{Svg, draw};

const MARGIN: f64 = 12.0;
const FONT: f64 = 12.0;
/// Narrow pages draw text at this size: there is room for it everywhere.
const LARGE: f64 = 20.0;
const ROW: f64 = 30.0;
/// A line of text: a panel's title, the columns' name, their values.
const LINE: f64 = LARGE + 4.0;
/// Between a panel and the next one of its line.
const GAP: f64 = 24.0;
/// Room for a number of two digits and its sign.
const NARROWEST: f64 = 30.0;
const WIDEST: f64 = 110.0;
/// Columns that have room for names of some letters.
const FEW: usize = 6;

/// Ratios in rows and columns: below 1 blue, above it orange, which colour-blind readers
/// distinguish; from twice or half on the colour is full. The numbers stand in the cells.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// The name of what changes from column to column, and its values.
    pub columns: (String, Vec<String>),
    /// The name of what changes from row to row, and its values.
    pub rows: (String, Vec<String>),
    /// Maps over these columns and rows, as many in a line as have room.
    pub panels: Vec<HeatPanel>,
    /// The drawing in a sentence, for those who do not see it.
    pub says: String,
    /// Width of the drawing, in pixels: a page shows it as wide as itself.
    pub width: f64,
    /// The ratio, above 1, from which on the colour is full, and below its inverse.
    pub full: f64,
}

/// One map of several over the same columns and rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeatPanel {
    /// Written above; empty where there is one alone.
    pub title: String,
    /// The ratios, row by row; a cell without one is empty.
    pub cells: Vec<Vec<Option<f64>>>,
    /// The texts of the cells, row by row; empty for their ratios.
    pub texts: Vec<Vec<String>>,
}

impl HeatPanel {
    /// The cells that have a ratio: row, column, ratio, text.
    fn known(&self) -> impl Iterator<Item = (usize, usize, f64, String)> {
        let text = |row: usize, column: usize| self.texts.get(row)?.get(column).cloned();
        self.cells.iter().enumerate().flat_map(move |(row, cells)| {
            let known = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
            cells.iter().enumerate().filter_map(move |(column, ratio)| {
                let ratio = ratio.filter(known)?;
                Some((row, column, ratio, text(row, column).unwrap_or_else(|| format!("{ratio:.2}"))))
            })
        })
    }
}

impl HeatMap {
    /// Width in a report, in pixels: its text can be read where the page has 400 of them.
    pub const WIDTH: f64 = 620.0;

    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> Svg {
        let (columns, rows) = (&self.columns.1, &self.rows.1);
        let widest = |names: &[String]| names.iter().map(|it| text_width(it, LARGE)).fold(0.0, f64::max);
        let left = widest(rows).max(text_width(&self.rows.0, LARGE)).min(200.0) + 10.0;
        let room = self.width - 2.0 * MARGIN + GAP;
        let count = columns.len().max(1) as f64;
        // Few columns all have their names.
        let needed = if columns.len() <= FEW { widest(columns) + 6.0 } else { 0.0 };
        let in_line = (room / (left + GAP + count * needed.max(NARROWEST))).floor();
        let in_line = in_line.clamp(1.0, self.panels.len().max(1) as f64);
        let cell = ((room / in_line - left - GAP) / count).min(WIDEST);
        let has_titles = self.panels.iter().any(|panel| !panel.title.is_empty());
        let head = if has_titles { 3.0 * LINE } else { 2.0 * LINE };
        let panel_height = head + rows.len() as f64 * ROW + GAP;
        let lines = (self.panels.len() as f64 / in_line).ceil();
        let mut canvas = draw::opened("heat", self.width, lines * panel_height, &self.says, &self.data());
        let texts: Vec<String> = self.panels.iter().flat_map(|panel| panel.known().map(|it| it.3)).collect();
        let text_size = widest(&texts) / LARGE;
        // On narrow pages, which draw text larger, numbers without room are left out.
        let class = if text_size * LARGE <= cell { "" } else { "fine" };
        // Names of columns without room: every second one, or every third.
        let every = ((widest(columns) + 6.0) / cell).ceil().max(1.0) as usize;
        for (number, panel) in self.panels.iter().enumerate() {
            let x = MARGIN + (number % in_line as usize) as f64 * room / in_line + left;
            let top = (number / in_line as usize) as f64 * panel_height + head;
            for (row, column, ratio, _) in panel.known() {
                let far = (libm::log2(ratio) / libm::log2(self.full)).clamp(-1.0, 1.0);
                canvas.empty(
                    "rect",
                    &[
                        ("x", (x + column as f64 * cell + 1.0).into()),
                        ("y", (top + row as f64 * ROW + 1.0).into()),
                        ("width", (cell - 2.0).into()),
                        ("height", (ROW - 2.0).into()),
                        ("fill", if far < 0.0 { "#2b7bba" } else { "#d9730d" }.into()),
                        // Text stays readable on the fullest colour.
                        ("fill-opacity", format!("{:.2}", far.abs() * 0.6).as_str().into()),
                    ],
                );
            }
            let mut text = |x: f64, y: f64, anchor: &str, class: &str, text: &str| {
                let places = [
                    ("class", class.into()),
                    ("x", x.into()),
                    ("y", y.into()),
                    ("font-size", FONT.into()),
                    ("text-anchor", anchor.into()),
                ];
                canvas.text("text", &places[usize::from(class.is_empty())..], text);
            };
            let middle = |column: usize| x + (column as f64 + 0.5) * cell;
            let within = count * cell;
            text(x - left, top - 2.0 * LINE - 6.0, "start", "", &shorten(&panel.title, LARGE, left + within));
            text(x, top - LINE - 6.0, "start", "", &shorten(&self.columns.0, LARGE, within));
            text(x - 8.0, top - 6.0, "end", "", &shorten(&self.rows.0, LARGE, left - 8.0));
            for (column, name) in columns.iter().enumerate().step_by(every) {
                text(
                    middle(column),
                    top - 6.0,
                    "middle",
                    "",
                    &shorten(name, LARGE, every as f64 * cell - 4.0),
                );
            }
            for (row, name) in rows.iter().enumerate() {
                let y = top + (row as f64 + 0.5) * ROW + 4.0;
                text(x - 8.0, y, "end", "", &shorten(name, LARGE, left - 8.0));
            }
            for (row, column, _, shown) in panel.known().filter(|_| text_size * FONT <= cell) {
                text(middle(column), top + (row as f64 + 0.5) * ROW + 4.0, "middle", class, &shown);
            }
        }
        Svg { text: canvas.finish(), series: (0, 0) }
    }

    /// The drawing's rows, for a page's script.
    fn data(&self) -> Vec<Vec<String>> {
        let head = ["with", &self.rows.0, &self.columns.0, "ratio"].map(str::to_owned).to_vec();
        let cells = self.panels.iter().flat_map(|panel| {
            panel.known().map(|(row, column, ratio, _)| {
                let [row, column] = [self.rows.1.get(row), self.columns.1.get(column)];
                let name = |it: Option<&String>| it.cloned().unwrap_or_default();
                vec![panel.title.clone(), name(row), name(column), draw::significant(ratio)]
            })
        });
        std::iter::once(head).chain(cells).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_has_its_ratio_and_a_colour_for_its_side_of_one() {
        let map = HeatMap {
            columns: ("load_share".into(), vec!["0.1".into(), "0.5".into()]),
            rows: ("rtt_s".into(), vec!["0.02".into()]),
            panels: vec![HeatPanel { cells: vec![vec![Some(0.5), Some(1.25)]], ..HeatPanel::default() }],
            says: "jump-start over iw10".into(),
            width: HeatMap::WIDTH,
            full: 2.0,
        };
        let svg = map.svg();
        let text = svg.as_str();
        assert!(
            text.contains(">0.50<") && text.contains(">1.25<") && text.contains(">load_share<"),
            "{text}"
        );
        let fills: Vec<&str> = text.split("fill=\"#").skip(1).map(|rest| &rest[..6]).collect();
        assert_eq!(fills, ["2b7bba", "d9730d"]);
        assert!(text.contains("aria-label=\"jump-start over iw10\""));
        let rows =
            r#"[["with","rtt_s","load_share","ratio"],["","0.02","0.1","0.5"],["","0.02","0.5","1.25"]]"#;
        assert!(text.contains(&crate::markup::escape(rows)), "{text}");
        let empty = HeatMap {
            panels: vec![HeatPanel { cells: vec![vec![None, Some(f64::NAN)]], ..HeatPanel::default() }],
            ..map
        };
        assert!(!empty.svg().as_str().contains("<rect"));
    }

    #[test]
    fn panels_stand_side_by_side_where_their_cells_have_room() {
        let map = |count: usize| HeatMap {
            columns: ("load".into(), (0..count).map(|load| load.to_string()).collect()),
            rows: ("rtt".into(), vec!["1".into()]),
            panels: ["a", "b", "c"]
                .map(|title| HeatPanel {
                    title: title.into(),
                    cells: vec![vec![Some(0.5); count]],
                    texts: vec![vec!["50".into(); count]],
                })
                .to_vec(),
            says: String::new(),
            width: HeatMap::WIDTH,
            full: 2.0,
        };
        let mut named = map(3);
        named.columns.1 = ["51 ms", "204 ms", "816 ms"].map(str::to_owned).to_vec();
        assert_eq!(named.svg().as_str().matches(" ms</text>").count(), 9, "each panel has all names");
        for (count, lines, numbers) in [(3, 1, 9), (7, 2, 21), (10, 3, 30), (24, 3, 72), (60, 3, 0)] {
            let svg = map(count).svg();
            let rects = || svg.as_str().split("<rect ").skip(1);
            let of = |rect: &str, name: &str| -> f64 {
                rect.split(&format!("{name}=\""))
                    .nth(1)
                    .expect(name)
                    .split('"')
                    .next()
                    .expect(name)
                    .parse()
                    .expect(name)
            };
            let heights: std::collections::BTreeSet<String> =
                rects().map(|rect| of(rect, "y").to_string()).collect();
            assert_eq!((heights.len(), rects().count()), (lines, 3 * count), "{count} columns");
            assert_eq!(svg.as_str().matches(">50<").count(), numbers, "{count} columns");
            let most = rects().map(|rect| of(rect, "x") + of(rect, "width")).fold(0.0, f64::max);
            assert!(most <= HeatMap::WIDTH - MARGIN, "{count} columns: {most}");
        }
    }
}
