//! Stacked bars: for each row its length, divided into parts.

use super::canvas::{Canvas, shorten, text_width};
use super::palette::class;
use super::{Svg, draw};

const WIDTH: f64 = 840.0;
const MARGIN: f64 = 12.0;
const FONT: f64 = 12.0;
/// Narrow pages draw text at this size: there is room for it everywhere.
const LARGE: f64 = 20.0;
/// A row has its name above its bar.
const NAME: f64 = 22.0;
const BAR: f64 = 24.0;
const ROW: f64 = NAME + BAR + 6.0;
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
    /// Unit of the values.
    pub unit: String,
    /// The drawing in a sentence, for those who do not see it.
    pub says: String,
}

impl StackedBars {
    /// The drawing. Values that are no numbers, or below zero, count as zero.
    #[must_use]
    pub fn svg(&self) -> Svg {
        let value = |value: &f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
        let total = |values: &[f64]| values.iter().map(value).sum::<f64>();
        let longest = self.rows.iter().map(|(_, values)| total(values)).fold(0.0, f64::max);
        let scale = if longest > 0.0 { (WIDTH - MARGIN - AFTER) / longest } else { 0.0 };
        let lines = self.parts.len().div_ceil(IN_LINE);
        let top = MARGIN + lines as f64 * NAME + 6.0;
        let height = top + self.rows.len() as f64 * ROW + MARGIN;
        let mut canvas = draw::opened("bars", WIDTH, height, &self.says, &self.data());
        let text = |canvas: &mut Canvas, x: f64, y: f64, anchor: &str, text: &str| {
            let places = [
                ("x", x.into()),
                ("y", y.into()),
                ("font-size", FONT.into()),
                ("text-anchor", anchor.into()),
            ];
            canvas.text("text", &places, text);
        };
        let part = |canvas: &mut Canvas, slot: usize, x: f64, y: f64, width: f64, height: f64| {
            let places = [
                ("class", class(slot).into()),
                ("x", x.into()),
                ("y", y.into()),
                ("width", width.into()),
                ("height", height.into()),
                ("fill", "currentColor".into()),
                // Text on it stays readable.
                ("fill-opacity", "0.45".into()),
            ];
            canvas.empty("rect", &places);
        };
        for (line, parts) in self.parts.chunks(IN_LINE).enumerate() {
            let (mut x, y) = (MARGIN, MARGIN + line as f64 * NAME);
            for (number, name) in parts.iter().enumerate() {
                part(&mut canvas, line * IN_LINE + number, x, y, LARGE - 4.0, LARGE - 4.0);
                text(&mut canvas, x + LARGE, y + LARGE - 7.0, "start", name);
                x += 2.0 * LARGE + text_width(name, LARGE);
            }
        }
        for (row, (name, values)) in self.rows.iter().enumerate() {
            let y = top + row as f64 * ROW;
            text(&mut canvas, MARGIN, y + NAME - 5.0, "start", &shorten(name, LARGE, WIDTH - 2.0 * MARGIN));
            let (mut x, baseline) = (MARGIN, y + NAME + BAR / 2.0 + 5.0);
            for (slot, width) in values.iter().map(|it| value(it) * scale).enumerate() {
                if width >= 0.5 {
                    part(&mut canvas, slot, x, y + NAME, width, BAR);
                }
                let shown = format!("{:.0}", value(&values[slot]));
                if width > text_width(&shown, LARGE) + 4.0 {
                    text(&mut canvas, x + width / 2.0, baseline, "middle", &shown);
                }
                x += width;
            }
            text(&mut canvas, x + 6.0, baseline, "start", &format!("{:.0} {}", total(values), self.unit));
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
            unit: "ms".into(),
            says: "where time goes".into(),
        };
        let svg = bars.svg();
        let text = svg.as_str();
        for shown in [">300<", ">100<", ">400 ms<", ">200 ms<", ">window<", "a &lt;b&gt;"] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        assert!(text.contains("[&quot;a &lt;b&gt;&quot;,&quot;300&quot;,&quot;100&quot;]"), "{text}");
        let widths: Vec<f64> = text
            .split("<rect ")
            .skip(1)
            .filter_map(|rect| rect.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        // Two of the legend; then 300 and 100, and 200.
        assert_eq!(widths.len(), 5, "{widths:?}");
        assert!((widths[2] / widths[3] - 3.0).abs() < 0.01 && (widths[4] / widths[3] - 2.0).abs() < 0.01);
        let empty = StackedBars { rows: vec![], ..bars };
        assert!(empty.svg().as_str().starts_with("<svg "));
    }
}
