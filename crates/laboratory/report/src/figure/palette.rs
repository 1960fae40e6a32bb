//! Looks of two dozen series: colour, dash and mark; each pair differs in at least two of them.
//!
//! Eight colours, once for white and once for near-black, chosen so that each stands out on its
//! background and any two stay apart for readers with protanopia, deuteranopia or tritanopia. The
//! tests compute both. The dash changes every eight series and the mark with each, so 24 series
//! have 24 looks. A drawing names its colours by class (`k0` to `k7`); [`style_sheet`] gives the
//! classes their values.

use std::fmt::Write as _;

/// Colours of series on white.
const ON_WHITE: [&str; 8] =
    ["#2083ff", "#e47317", "#1c8365", "#b01c7f", "#715e00", "#5f0bfa", "#551919", "#07273c"];

/// Colours of series on near-black, of about the same hues in the same order.
const ON_DARK: [&str; 8] =
    ["#a0b0f8", "#ffab53", "#3daf8a", "#bf6099", "#958600", "#7b72f7", "#ffdcd0", "#aef2ff"];

/// Colours of the parts of bars, drawn as they are: text in [`INK`] can be read on each.
const PARTS: [&str; 8] =
    ["#9bbab0", "#b4a802", "#cd6d6e", "#feb4ff", "#8576fb", "#8d85a1", "#d8fe44", "#7cffbb"];

/// Text on the parts of bars, on white and on near-black.
pub(super) const INK: &str = "#1d2126";

/// Classes of series' colours.
const CLASSES: [&str; 8] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];

/// Dashes of lines: solid, dashed, dotted.
const DASHES: [&str; 3] = ["none", "7 3", "2 2.5"];

/// The shape drawn at a point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// The shape that belongs to the series' slot.
    #[default]
    BySlot,
    /// A small filled dot, for many points.
    Dot,
    /// A filled circle.
    Disc,
    /// A filled square.
    Square,
    /// A filled triangle, point up.
    Triangle,
    /// A filled square on its corner.
    Diamond,
    /// A filled triangle, point down.
    Wedge,
    /// A diagonal cross of two strokes.
    Cross,
    /// An upright cross of two strokes.
    Plus,
    /// A circle that is not filled.
    Ring,
    /// A short horizontal stroke.
    Dash,
}

impl Mark {
    /// Marks of series by slot. Six, so that with eight colours the pair repeats only after 24.
    const BY_SLOT: [Self; 6] =
        [Self::Disc, Self::Square, Self::Triangle, Self::Diamond, Self::Wedge, Self::Cross];

    pub(super) fn resolve(self, slot: usize) -> Self {
        if self == Self::BySlot { Self::BY_SLOT[slot % Self::BY_SLOT.len()] } else { self }
    }

    /// Path commands relative to the point.
    pub(super) fn commands(self) -> &'static str {
        match self {
            Self::Dot => "m-1.6 0a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0-3.2 0z",
            Self::BySlot | Self::Disc => "m-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0z",
            Self::Ring => "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
            Self::Square => "m-3.4-3.4h6.8v6.8h-6.8z",
            Self::Triangle => "m0-4.6l4.4 7.6h-8.8z",
            Self::Wedge => "m0 4.6l4.4-7.6h-8.8z",
            Self::Diamond => "m0-4.8l4.8 4.8l-4.8 4.8l-4.8-4.8z",
            Self::Cross => "m-3.4-3.4l6.8 6.8m0-6.8l-6.8 6.8",
            Self::Plus => "m-4 0h8m-4-4v8",
            Self::Dash => "m-3 0h6",
        }
    }

    /// True if the shape is an area; the others are strokes.
    pub(super) fn is_filled(self) -> bool {
        !matches!(self, Self::Ring | Self::Cross | Self::Plus | Self::Dash)
    }
}

/// The colour of a part of bars.
pub(super) fn part_colour(slot: usize) -> &'static str {
    PARTS[slot % PARTS.len()]
}

pub(super) fn class(slot: usize) -> &'static str {
    CLASSES[slot % CLASSES.len()]
}

/// The dash of `slot`; its own change comes with every eighth.
pub(super) fn dash(slot: usize) -> &'static str {
    DASHES[slot / CLASSES.len() % DASHES.len()]
}

pub(super) fn nth_dash(number: usize) -> &'static str {
    DASHES[number % DASHES.len()]
}

/// Rules that give the classes their colours, light and dark.
pub(crate) fn style_sheet() -> String {
    let mut out = String::new();
    // Writing to a string cannot fail, here and below.
    for (class, colour) in CLASSES.iter().zip(ON_WHITE) {
        let _ = write!(out, ".{class}{{color:{colour}}}");
    }
    out.push_str("@media screen and (prefers-color-scheme:dark){");
    for (class, colour) in CLASSES.iter().zip(ON_DARK) {
        let _ = write!(out, ".{class}{{color:{colour}}}");
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use palette::color_difference::Ciede2000 as _;
    use palette::white_point::D65;
    use palette::{FromColor as _, Lab, LinSrgb};

    use super::*;

    /// Red, green and blue in linear light.
    type LinearRgb = [f64; 3];

    /// The background of a page in the dark.
    const NEAR_BLACK: &str = "#161616";

    fn linear_rgb(colour: &str) -> LinearRgb {
        [1, 3, 5].map(|at| {
            let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("hex digits")) / 255.0;
            if share <= 0.04045 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
        })
    }

    /// Contrast as WCAG 2.2 defines it.
    fn contrast(one: &str, other: &str) -> f64 {
        let luminance = |colour| {
            let [red, green, blue] = linear_rgb(colour);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    /// Colours as a dichromat sees them: G. Machado, M. Oliveira, L. Fernandes, "A
    /// Physiologically-based Model for Simulation of Color Vision Deficiency", 2009, severity 1.0.
    const COLOUR_VISIONS: [(&str, [LinearRgb; 3]); 4] = [
        ("usual vision", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "protanopia",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "deuteranopia",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    fn as_seen(colour: &str, vision: &[LinearRgb; 3]) -> Lab<D65, f64> {
        let light = linear_rgb(colour);
        let [red, green, blue] = vision.map(|row| {
            row.iter().zip(light).map(|(weight, share)| weight * share).sum::<f64>().clamp(0.0, 1.0)
        });
        Lab::from_color(LinSrgb::new(red, green, blue))
    }

    /// The least difference (CIEDE2000) between two of `colours`, and between which, for whom.
    fn least_difference(colours: &[&str]) -> (f64, String) {
        let mut least = (f64::INFINITY, String::new());
        for (name, vision) in &COLOUR_VISIONS {
            for (index, one) in colours.iter().enumerate() {
                for other in &colours[..index] {
                    let difference = as_seen(one, vision).difference(as_seen(other, vision));
                    if difference < least.0 {
                        least = (difference, format!("{one} and {other} with {name}"));
                    }
                }
            }
        }
        least
    }

    #[test]
    fn every_colour_has_a_contrast_of_three_to_one_on_its_background() {
        for (colours, background) in [(ON_WHITE, "#ffffff"), (ON_DARK, NEAR_BLACK)] {
            for colour in colours {
                let contrast = contrast(colour, background);
                assert!(contrast >= 3.0, "{colour} on {background}: {contrast:.2}");
            }
        }
    }

    /// A difference of 1 can just be told when fields touch; thin lines and marks need over ten.
    #[test]
    fn any_two_colours_differ_under_each_kind_of_colour_blindness() {
        for colours in [ON_WHITE, ON_DARK, PARTS] {
            let (least, which) = least_difference(&colours);
            assert!(least > 14.0, "{which}: {least:.1}");
            // The first two lie over one another in one plot.
            if colours != PARTS {
                let (least, which) = least_difference(&colours[..2]);
                assert!(least > 30.0, "{which}: {least:.1}");
            }
        }
    }

    /// A colour on a background, of which as much is covered.
    fn drawn(colour: &str, background: &str, opacity: f64) -> String {
        let part = |text: &str, at: usize| f64::from(u8::from_str_radix(&text[at..at + 2], 16).expect("hex"));
        let mixed = [1, 3, 5].map(|at| part(colour, at) * opacity + part(background, at) * (1.0 - opacity));
        mixed.iter().fold("#".to_owned(), |text, value| format!("{text}{:02x}", value.round() as u8))
    }

    /// A drawing that fills areas of which the colour alone tells what they are, and the colours.
    fn filled() -> (String, Vec<String>) {
        let bars = super::super::StackedBars {
            parts: (0..PARTS.len()).map(|part| format!("part {part}")).collect(),
            rows: vec![("row".into(), vec![100.0; PARTS.len()])],
            groups: vec![],
            unit: "ms".into(),
            says: String::new(),
        };
        let svg = bars.svg().as_str().to_owned();
        let fills = svg.split("<rect ").skip(1).filter_map(|rect| {
            let (tag, _) = rect.split_once('>')?;
            let of =
                |name: &str| Some(tag.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.to_owned());
            let opacity =
                of(" fill-opacity").or(of(" opacity")).map_or(1.0, |text| text.parse().expect("a number"));
            let colour = match (of("class"), of(" fill")?) {
                (Some(class), fill) if fill == "currentColor" => {
                    ON_WHITE[CLASSES.iter().position(|one| *one == class)?].to_owned()
                }
                (_, fill) => fill,
            };
            Some(drawn(&colour, "#ffffff", opacity))
        });
        let mut fills: Vec<String> = fills.collect();
        fills.sort();
        fills.dedup();
        (svg, fills)
    }

    #[test]
    fn parts_of_bars_differ_as_they_are_drawn_and_their_text_can_be_read() {
        assert_eq!(drawn("#000000", "#ffffff", 0.45), "#8c8c8c");
        let faint: Vec<String> = ON_WHITE.iter().map(|colour| drawn(colour, "#ffffff", 0.45)).collect();
        let (least, _) = least_difference(&faint.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(least < 5.0, "colours of lines are too near when they are faint: {least:.1}");
        let (svg, fills) = filled();
        assert_eq!(fills.len(), PARTS.len(), "{fills:?}");
        let (least, which) = least_difference(&fills.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(least > 14.0, "{which}: {least:.1}");
        for colour in PARTS {
            assert!(contrast(colour, INK) >= 4.5, "{colour}: {:.2}", contrast(colour, INK));
        }
        assert_eq!(svg.matches(&format!("fill=\"{INK}\"")).count(), PARTS.len(), "{svg}");
    }

    #[test]
    fn colours_that_a_deuteranope_confuses_are_found() {
        let (least, which) = least_difference(&["#a65d00", "#6d7a00", "#0000ff"]);
        assert!(least < 14.0 && which.ends_with("anopia"), "{which}: {least:.1}");
        assert!(contrast("#ffff00", "#ffffff") < 3.0);
    }

    #[test]
    fn twenty_four_series_have_twenty_four_lines_and_marks() {
        let lines: std::collections::BTreeSet<_> = (0..24).map(|slot| (class(slot), dash(slot))).collect();
        let marks: std::collections::BTreeSet<_> =
            (0..24).map(|slot| (class(slot), Mark::BySlot.resolve(slot).commands())).collect();
        assert_eq!((lines.len(), marks.len()), (24, 24));
    }
}
