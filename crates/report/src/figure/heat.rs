//! A heat map: a number for each pair of two settings, and its colour by how far it lies from 1.

use super::canvas::{shorten, text_width};
use super::{Svg, draw};

const WIDTH: f64 = 840.0;
const MARGIN: f64 = 12.0;
const FONT: f64 = 12.0;
const ROW: f64 = 30.0;

/// Ratios in rows and columns: below 1 blue, above it orange, which colour-blind readers
/// distinguish; from twice or half on the colour is full. The numbers stand in the cells.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// The name of what changes from column to column, and its values.
    pub columns: (String, Vec<String>),
    /// The same of the rows.
    pub rows: (String, Vec<String>),
    /// The ratios, row by row; a cell without one is empty.
    pub cells: Vec<Vec<Option<f64>>>,
    /// The texts of the cells, row by row; empty for their ratios.
    pub texts: Vec<Vec<String>>,
    /// The drawing in a sentence, for those who do not see it.
    pub says: String,
}

impl HeatMap {
    /// The drawing.
    #[must_use]
    pub fn svg(&self) -> Svg {
        let (columns, rows) = (&self.columns.1, &self.rows.1);
        let widest =
            rows.iter().map(|row| text_width(row, FONT)).fold(text_width(&self.rows.0, FONT), f64::max);
        let left = MARGIN + widest.min(200.0) + 8.0;
        let width = ((WIDTH - MARGIN - left) / columns.len().max(1) as f64).min(110.0);
        let top = MARGIN + 40.0;
        let height = top + rows.len() as f64 * ROW + MARGIN;
        let mut canvas = draw::opened(WIDTH, height, &self.says);
        let mut text = |x: f64, y: f64, anchor: &str, text: &str, width: f64| {
            let places = [
                ("x", x.into()),
                ("y", y.into()),
                ("font-size", FONT.into()),
                ("text-anchor", anchor.into()),
            ];
            canvas.text("text", &places, &shorten(text, FONT, width));
        };
        let middle = |column: usize| left + (column as f64 + 0.5) * width;
        text(left, MARGIN + FONT, "start", &self.columns.0, WIDTH - left - MARGIN);
        text(left - 8.0, top - 6.0, "end", &self.rows.0, left - 8.0 - MARGIN);
        for (column, name) in columns.iter().enumerate() {
            text(middle(column), top - 6.0, "middle", name, width - 4.0);
        }
        for (row, name) in rows.iter().enumerate() {
            text(left - 8.0, top + (row as f64 + 0.5) * ROW + 4.0, "end", name, left - 8.0 - MARGIN);
        }
        for (row, cells) in self.cells.iter().enumerate() {
            for (column, ratio) in cells.iter().enumerate() {
                let Some(ratio) = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0) else { continue };
                let far = libm::log2(ratio).clamp(-1.0, 1.0);
                let y = top + row as f64 * ROW;
                canvas.empty(
                    "rect",
                    &[
                        ("x", (left + column as f64 * width + 1.0).into()),
                        ("y", (y + 1.0).into()),
                        ("width", (width - 2.0).into()),
                        ("height", (ROW - 2.0).into()),
                        ("fill", if far < 0.0 { "#2b7bba" } else { "#d9730d" }.into()),
                        // Text stays readable on the fullest colour.
                        ("fill-opacity", format!("{:.2}", far.abs() * 0.6).as_str().into()),
                    ],
                );
                let places = [
                    ("x", middle(column).into()),
                    ("y", (y + ROW / 2.0 + 4.0).into()),
                    ("font-size", FONT.into()),
                    ("text-anchor", "middle".into()),
                ];
                let text = self.texts.get(row).and_then(|texts| texts.get(column));
                canvas.text("text", &places, &text.map_or_else(|| format!("{ratio:.2}"), Clone::clone));
            }
        }
        Svg { text: canvas.finish(), series: (0, 0) }
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
            cells: vec![vec![Some(0.5), Some(1.25)]],
            texts: vec![],
            says: "jump-start over iw10".into(),
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
        let empty = HeatMap { cells: vec![vec![None, Some(f64::NAN)]], ..map };
        assert!(!empty.svg().as_str().contains("<rect"));
    }
}
