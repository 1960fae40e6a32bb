//! Tell two dozen series apart: colour, dash and mark, each pair at least in two ways.
//!
//! Eight hues chosen to differ for the common kinds of colour blindness (after M. Okabe and K. Ito, "Color
//! Universal Design"), shifted to a middle lightness so that each stands out on white and on near-black.
//! The dash changes every eight series and the mark with each, so 24 series have 24 looks.

/// Colours of series; also names of the roles below.
const COLOURS: [&str; 8] =
    ["#1a7fc4", "#d95f02", "#009e73", "#c45a9c", "#b8860b", "#4ba3dc", "#8a8a8a", "#8f8f00"];

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

    /// Whether the shape is an area; the others are strokes.
    pub(super) fn is_filled(self) -> bool {
        !matches!(self, Self::Ring | Self::Cross | Self::Plus | Self::Dash)
    }
}

pub(super) fn colour(slot: usize) -> &'static str {
    COLOURS[slot % COLOURS.len()]
}

pub(super) fn dash(slot: usize) -> &'static str {
    DASHES[slot / COLOURS.len() % DASHES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let share = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("hex digits")) / 255.0;
            if share <= 0.03928 { share / 12.92 } else { libm::pow((share + 0.055) / 1.055, 2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn every_colour_stands_out_on_white_and_on_near_black() {
        for colour in COLOURS {
            let on_white = 1.05 / (luminance(colour) + 0.05);
            let on_dark = (luminance(colour) + 0.05) / (luminance("#161616") + 0.05);
            assert!(on_white > 2.7 && on_dark > 2.7, "{colour}: {on_white:.2}, {on_dark:.2}");
        }
    }

    #[test]
    fn twenty_four_series_have_twenty_four_lines_and_marks() {
        let lines: std::collections::BTreeSet<_> = (0..24).map(|slot| (colour(slot), dash(slot))).collect();
        let marks: std::collections::BTreeSet<_> =
            (0..24).map(|slot| (colour(slot), Mark::BySlot.resolve(slot).commands())).collect();
        assert_eq!((lines.len(), marks.len()), (24, 24));
    }
}
