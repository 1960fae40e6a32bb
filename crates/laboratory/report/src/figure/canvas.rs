//! Write SVG elements, with numbers rounded to a tenth of a pixel and all text escaped.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use crate::markup::escape;

/// A place on the drawing, in pixels from its upper left corner.
pub(super) type Place = (f64, f64);

/// An attribute's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Number(f64),
    Text(&'a str),
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(text)
    }
}

type Attributes<'a> = [(&'a str, Value<'a>)];

/// Collects elements; every element opened must be closed.
#[derive(Debug, Default)]
pub(super) struct Canvas {
    out: String,
    open: Vec<&'static str>,
}

impl Canvas {
    pub fn open(&mut self, tag: &'static str, attributes: &Attributes<'_>) {
        self.begin(tag, attributes);
        self.out.push_str(">\n");
        self.open.push(tag);
    }

    pub fn close(&mut self) {
        if let Some(tag) = self.open.pop() {
            let _ = writeln!(self.out, "</{tag}>");
        }
    }

    pub fn empty(&mut self, tag: &str, attributes: &Attributes<'_>) {
        self.begin(tag, attributes);
        self.out.push_str("/>\n");
    }

    pub fn text(&mut self, tag: &str, attributes: &Attributes<'_>, text: &str) {
        self.begin(tag, attributes);
        let _ = writeln!(self.out, ">{}</{tag}>", escape(text));
    }

    /// An element of ours, written already: the one text that is not escaped.
    pub fn raw(&mut self, element: &str) {
        self.out.push_str(element);
    }

    pub fn line(&mut self, from: Place, to: Place, attributes: &Attributes<'_>) {
        let ends = [("x1", from.0.into()), ("y1", from.1.into()), ("x2", to.0.into()), ("y2", to.1.into())];
        self.empty("line", &[&ends, attributes].concat());
    }

    pub fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn begin(&mut self, tag: &str, attributes: &Attributes<'_>) {
        let _ = write!(self.out, "<{tag}");
        for (name, value) in attributes {
            let _ = match value {
                Value::Number(number) => write!(self.out, " {name}=\"{}\"", pixels(*number)),
                Value::Text(text) => write!(self.out, " {name}=\"{}\"", escape(text)),
            };
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct PathData(String);

impl PathData {
    pub fn move_to(&mut self, place: Place) {
        let _ = write!(self.0, "M{} {}", pixels(place.0), pixels(place.1));
    }

    pub fn line_to(&mut self, place: Place) {
        let _ = write!(self.0, "L{} {}", pixels(place.0), pixels(place.1));
    }

    pub fn raw(&mut self, commands: &str) {
        self.0.push_str(commands);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A length to a tenth of a pixel, without needless digits.
pub(super) fn pixels(length: f64) -> String {
    let mut text = format!("{length:.1}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    if text == "-0" { "0".into() } else { text }
}

/// About how wide `text` is at a font size of one pixel.
///
/// The reader's font is not known; these are the widths of one of the widest common ones, so that
/// what was given room here has room everywhere.
fn width_in_em(text: &str) -> f64 {
    text.chars()
        .map(|character| match character {
            'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | ' ' | 'I' => 0.34,
            'f' | 't' | 'r' | '-' | '(' | ')' | '[' | ']' | '/' | '!' => 0.41,
            'm' | 'M' | 'W' | '%' | '@' => 0.97,
            'w' | '+' | '=' | '<' | '>' => 0.83,
            'a'..='z' | '0'..='9' => 0.63,
            'A'..='Z' => 0.74,
            '\u{2009}' | '\u{202f}' => 0.2,
            c => match c.width() {
                Some(0) | None => 0.0,
                Some(1) => 0.7,
                Some(_) => 1.05,
            },
        })
        .sum()
}

/// About how many pixels wide `text` is at a font size of `size` pixels.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    width_in_em(text) * size
}

/// `text` cut to `width` pixels, with an ellipsis if something was lost.
pub(super) fn shorten(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.into();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if text_width(&kept, size) + size > width {
            kept.pop();
            break;
        }
    }
    format!("{}\u{2026}", kept.trim_end())
}

/// `text` broken at spaces into lines of at most `width` pixels; a single longer word is cut.
pub(super) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if text_width(line, size) + text_width(" ", size) + text_width(word, size) <= width =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(shorten(word, size, width)),
        }
    }
    lines
}

/// At most four places for each half pixel along x: first, lowest, highest, last. A line through
/// them looks the same, however many points it had.
pub(super) fn thin_out(places: Vec<Place>) -> Vec<Place> {
    if places.len() <= 2000 {
        return places;
    }
    let column = |place: &Place| (place.0 * 2.0).floor() as i64;
    let mut out = Vec::new();
    for group in places.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |a: &&usize, b: &&usize| group[**a].1.total_cmp(&group[**b].1);
        let indices: Vec<usize> = (0..group.len()).collect();
        let lowest = indices.iter().min_by(by_height).copied().unwrap_or(0);
        let highest = indices.iter().max_by(by_height).copied().unwrap_or(0);
        let kept = BTreeSet::from([0, lowest, highest, group.len() - 1]);
        out.extend(kept.into_iter().map(|index| group[index]));
    }
    out
}

/// Adds a line, without the places at which it neither moves nor turns.
pub(super) fn trace(data: &mut PathData, places: &[Place], begins: bool) {
    let rounded = |place: &Place| ((place.0 * 10.0).round() as i64, (place.1 * 10.0).round() as i64);
    let mut last = None;
    for (index, place) in places.iter().enumerate() {
        let here = rounded(place);
        let next = places.get(index + 1).map(rounded);
        let straight = last.zip(next).is_some_and(|(before, after): ((i64, i64), (i64, i64))| {
            (before.0 == here.0 && here.0 == after.0 && (before.1 <= here.1) == (here.1 <= after.1))
                || (before.1 == here.1 && here.1 == after.1 && (before.0 <= here.0) == (here.0 <= after.0))
        });
        if index == 0 && begins {
            data.move_to(*place);
        } else if !straight && last != Some(here) {
            data.line_to(*place);
        } else {
            continue;
        }
        last = Some(here);
    }
    // A single point would leave no trace.
    if places.len() == 1 && begins {
        data.raw("h0.1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_have_one_decimal_at_most() {
        for (length, expected) in
            [(1.0, "1"), (0.04, "0"), (-0.04, "0"), (12.25, "12.2"), (12.35, "12.3"), (-7.5, "-7.5")]
        {
            assert_eq!(pixels(length), expected);
        }
    }

    #[test]
    fn attributes_and_text_are_escaped() {
        let mut canvas = Canvas::default();
        canvas.open("g", &[("id", "a\"b".into())]);
        canvas.text("text", &[("x", 1.5.into())], "</text><script>");
        assert_eq!(
            canvas.finish(),
            "<g id=\"a&quot;b\">\n<text x=\"1.5\">&lt;/text&gt;&lt;script&gt;</text>\n</g>\n"
        );
    }

    #[test]
    fn long_text_is_cut_and_long_lines_are_wrapped() {
        assert_eq!(shorten("short", 12.0, 100.0), "short");
        let cut = shorten("a rather long name of a series", 12.0, 100.0);
        assert!(cut.ends_with('\u{2026}') && text_width(&cut, 12.0) <= 101.0, "{cut}");
        let lines = wrap("one two three four five six", 12.0, 70.0);
        assert_eq!(lines.concat().replace(' ', ""), "onetwothreefourfivesix");
        assert!(lines.iter().all(|line| text_width(line, 12.0) <= 70.0));
    }
}
