//! Stacked bars: for each row its length, divided into parts.

use super::canvas::{Canvas, shorten, text_width};
use super::palette::{INK, part_colour};
use super::{Svg, draw};

const WIDTH: f64 = 840.0;
const MARGIN: f64 = 12.0;
const FONT: f64 = 12.0;
/// Narrow pages draw text at this size: there is room for it everywhere.
const LARGE: f64 = 20.0;
/// A row has its name above its bar, in groups before it.
const NAME: f64 = 22.0;
const BAR: f64 = 24.0;
const ROW: f64 = NAME + BAR + 6.0;
/// Names before bars have at most this.
const WIDEST: f64 = 220.0;
/// Room behind the longest bar for its length in words.
const AFTER: f64 = 120.0;
/// Names of parts in a line of the legend.
const IN_LINE: usize = 4;

/// Horizontal bars from one left edge. Each part has a colour, named above, and its value as text
/// where it has room.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedBars {
    /// Names of the parts, in their order.
    pub parts: Vec<String>,
    /// Names of the rows with the values of their parts.
    pub rows: Vec<(String, Vec<f64>)>,
    /// Headings with the number of rows below each. Every group has its own scale: its longest bar
    /// is as wide as any other's. Without any, all rows share one, their names above the bars.
    pub groups: Vec<(String, usize)>,
    /// Unit of the values.
    pub unit: String,
    /// The drawing in a sentence, for those who do not see it.
    pub says: String,
}

/// A value that is no number, or below zero, is nothing.
fn length(value: &f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

fn total(values: &[f64]) -> f64 {
    values.iter().map(length).sum()
}

fn text(canvas: &mut Canvas, (x, y): (f64, f64), anchor: &str, weight: &str, text: &str) {
    let places = [
        ("x", x.into()),
        ("y", y.into()),
        ("font-size", FONT.into()),
        ("font-weight", weight.into()),
        ("text-anchor", anchor.into()),
    ];
    canvas.text("text", &places, text);
}

/// Text on a part, which is light on pages of either kind.
fn on_part(canvas: &mut Canvas, (x, y): (f64, f64), text: &str) {
    let places = [
        ("x", x.into()),
        ("y", y.into()),
        ("font-size", FONT.into()),
        ("text-anchor", "middle".into()),
        ("fill", INK.into()),
    ];
    canvas.text("text", &places, text);
}

fn part(canvas: &mut Canvas, slot: usize, (x, y): (f64, f64), width: f64, height: f64) {
    let places = [
        ("x", x.into()),
        ("y", y.into()),
        ("width", width.into()),
        ("height", height.into()),
        ("fill", part_colour(slot).into()),
        ("stroke", "currentColor".into()),
        ("stroke-opacity", "0.4".into()),
    ];
    canvas.empty("rect", &places);
}

impl StackedBars {
    /// The drawing. Values that are no numbers, or below zero, count as zero.
    #[must_use]
    pub fn svg(&self) -> Svg {
        let lines = self.parts.len().div_ceil(IN_LINE);
        let top = MARGIN + lines as f64 * NAME + 6.0;
        let is_grouped = !self.groups.is_empty();
        let widest =
            self.rows.iter().map(|(name, _)| text_width(name, LARGE)).fold(0.0, f64::max).min(WIDEST);
        let (row, bar, left) =
            if is_grouped { (NAME, NAME - 3.0, MARGIN + widest + 8.0) } else { (ROW, BAR, MARGIN) };
        let headings = self.groups.len() as f64 * (NAME + 6.0);
        let height = top + headings + self.rows.len() as f64 * row + MARGIN;
        let mut canvas = draw::opened("bars", WIDTH, height, &self.says, &self.data());
        for (line, parts) in self.parts.chunks(IN_LINE).enumerate() {
            let (mut x, y) = (MARGIN, MARGIN + line as f64 * NAME);
            for (number, name) in parts.iter().enumerate() {
                part(&mut canvas, line * IN_LINE + number, (x, y), LARGE - 4.0, LARGE - 4.0);
                text(&mut canvas, (x + LARGE, y + LARGE - 7.0), "start", "normal", name);
                x += 2.0 * LARGE + text_width(name, LARGE);
            }
        }
        let (mut y, mut rest) = (top, &self.rows[..]);
        let whole = [(String::new(), self.rows.len())];
        for (heading, count) in if is_grouped { &self.groups[..] } else { &whole } {
            let (rows, after) = rest.split_at((*count).min(rest.len()));
            rest = after;
            if is_grouped {
                y += NAME + 6.0;
                text(&mut canvas, (MARGIN, y - 8.0), "start", "bold", heading);
            }
            let longest = rows.iter().map(|(_, values)| total(values)).fold(0.0, f64::max);
            let scale = if longest > 0.0 { (WIDTH - left - AFTER) / longest } else { 0.0 };
            for (name, values) in rows {
                let bar_y = y + row - bar - if is_grouped { 0.0 } else { 6.0 };
                let baseline = bar_y + bar / 2.0 + 5.0;
                if is_grouped {
                    text(&mut canvas, (MARGIN, baseline), "start", "normal", &shorten(name, LARGE, WIDEST));
                } else {
                    let name = shorten(name, LARGE, WIDTH - 2.0 * MARGIN);
                    text(&mut canvas, (MARGIN, bar_y - 5.0), "start", "normal", &name);
                }
                let mut x = left;
                for (slot, value) in values.iter().enumerate() {
                    let (width, shown) = (length(value) * scale, format!("{:.0}", length(value)));
                    if width >= 0.5 {
                        part(&mut canvas, slot, (x, bar_y), width, bar);
                    }
                    if width > text_width(&shown, LARGE) + 4.0 {
                        on_part(&mut canvas, (x + width / 2.0, baseline), &shown);
                    }
                    x += width;
                }
                let sum = format!("{:.0} {}", total(values), self.unit);
                text(&mut canvas, (x + 6.0, baseline), "start", "normal", &sum);
                y += row;
            }
        }
        Svg { text: canvas.finish(), series: (0, 0) }
    }

    /// The drawing's rows, for a page's script.
    fn data(&self) -> Vec<Vec<String>> {
        let parts = self.parts.iter().map(|part| format!("{part} ({})", self.unit));
        let head = std::iter::once("name".to_owned()).chain(parts).collect();
        let row = |(name, values): &(String, Vec<f64>)| {
            std::iter::once(name.clone()).chain(values.iter().map(|it| draw::significant(*it))).collect()
        };
        std::iter::once(head).chain(self.rows.iter().map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_parts_in_proportion_and_their_sums() {
        let bars = StackedBars {
            parts: vec!["window".into(), "path".into()],
            rows: vec![("a <b>".into(), vec![300.0, 100.0]), ("half".into(), vec![f64::NAN, 200.0])],
            groups: vec![],
            unit: "ms".into(),
            says: "where time goes".into(),
        };
        let svg = bars.svg();
        let text = svg.as_str();
        for shown in [">300<", ">100<", ">400 ms<", ">200 ms<", ">window<", "a &lt;b&gt;"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(text.contains("[&quot;a &lt;b&gt;&quot;,&quot;300&quot;,&quot;100&quot;]"), "{text}");
        let widths = |text: &str| -> Vec<f64> {
            let of = |rect: &str| rect.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
            text.split("<rect ").skip(1).filter_map(of).collect()
        };
        let found = widths(text);
        // Two of the legend; then 300 and 100, and 200.
        assert_eq!(found.len(), 5, "{found:?}");
        assert!((found[2] / found[3] - 3.0).abs() < 0.01 && (found[4] / found[3] - 2.0).abs() < 0.01);
        // In groups of their own both are as wide.
        let groups = vec![("first".to_owned(), 1), ("second".to_owned(), 1)];
        let grouped = StackedBars { groups, ..bars.clone() }.svg();
        let found = widths(grouped.as_str());
        assert!((found[2] + found[3] - found[4]).abs() < 0.1, "{found:?}");
        assert!(grouped.as_str().contains(">second</text>"));
        let empty = StackedBars { rows: vec![], ..bars };
        assert!(empty.svg().as_str().starts_with("<svg "));
    }
}
