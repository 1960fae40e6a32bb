//! Choose an axis' ends and its ticks, and place values between them.

use std::fmt::Write as _;

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps, equal distances.
    #[default]
    Linear,
    /// Equal factors, equal distances. Values that are not positive are left out.
    Logarithmic,
}

/// Ends of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Range {
    /// From the data; begins at zero unless that would leave more than half of the axis empty.
    #[default]
    Auto,
    /// From the smallest to the largest value and little more, wherever zero is: for scatters.
    Tight,
    /// From zero to the largest value (on a logarithmic axis the same as `Auto`).
    FromZero,
    /// Given ends; lines are cut there, marks outside are left out.
    Fixed(f64, f64),
    /// From this value to the largest; what lies below is cut.
    From(f64),
}

/// One axis of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity shown, e.g. `completion time`.
    pub title: String,
    /// Unit of the quantity, e.g. `ms`; empty if it has none.
    pub unit: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Ends of the axis.
    pub range: Range,
}

impl Axis {
    /// A linear axis that takes its ends from the data.
    #[must_use]
    pub fn linear(title: &str, unit: &str) -> Self {
        Self { title: title.into(), unit: unit.into(), ..Self::default() }
    }

    /// A logarithmic axis that takes its ends from the data.
    #[must_use]
    pub fn logarithmic(title: &str, unit: &str) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(title, unit) }
    }

    /// The axis with other ends.
    #[must_use]
    pub fn with_range(self, range: Range) -> Self {
        Self { range, ..self }
    }

    /// Title and unit as one line.
    #[must_use]
    pub fn caption(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{} ({})", self.title, self.unit) }
    }

    /// True if a value lies beyond an end that was given: it is not shown and needs no room.
    pub(super) fn is_beyond(&self, value: f64) -> bool {
        match self.range {
            Range::Fixed(a, b) => value < a.min(b) || value > a.max(b),
            Range::From(low) => value < low,
            Range::Auto | Range::Tight | Range::FromZero => false,
        }
    }

    /// True if a value has a place on this axis, regardless of its ends.
    pub(super) fn can_show(&self, value: f64) -> bool {
        // Above these, sums and powers of ten lose their meaning before the reader does.
        match self.scale {
            Scale::Linear => value.is_finite() && value.abs() < 1e18,
            Scale::Logarithmic => value > 1e-18 && value < 1e18,
        }
    }
}

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value it stands for.
    pub at: f64,
    /// Label of the tick; empty for a minor tick.
    pub label: String,
}

/// An axis with its ends decided: values become shares of its length.
#[derive(Clone, Debug)]
pub(super) struct FittedAxis {
    scale: Scale,
    low: f64,
    high: f64,
    pub ticks: Vec<Tick>,
}

impl FittedAxis {
    /// Fits `axis` to `values` on `length` pixels; a label of a tick takes `extent` of them.
    pub fn fit(axis: &Axis, values: impl Iterator<Item = f64>, length: f64, extent: fn(&str) -> f64) -> Self {
        let data = values.filter(|&v| axis.can_show(v)).fold(None, |ends: Option<(f64, f64)>, v| {
            Some(ends.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        });
        let fixed = match axis.range {
            Range::Fixed(a, b) if axis.can_show(a) && axis.can_show(b) && a != b => {
                Some((a.min(b), a.max(b)))
            }
            _ => None,
        };
        let room = LabelRoom { length, extent };
        let fit = |fixed| match axis.scale {
            Scale::Linear => Self::fit_linear(axis.range, data, fixed, room),
            Scale::Logarithmic => Self::fit_logarithmic(data, fixed, room),
        };
        let fitted = fit(fixed);
        match axis.range {
            Range::From(low) if axis.can_show(low) && low < fitted.high => fit(Some((low, fitted.high))),
            _ => fitted,
        }
    }

    fn fit_linear(
        range: Range,
        data: Option<(f64, f64)>,
        fixed: Option<(f64, f64)>,
        room: LabelRoom,
    ) -> Self {
        let (low, high) = fixed.unwrap_or_else(|| {
            let (mut low, mut high) = data.unwrap_or((0.0, 1.0));
            match range {
                Range::FromZero => (low, high) = (low.min(0.0), high.max(0.0)),
                Range::Tight => {}
                _ if low >= 0.0 && low <= high / 2.0 => low = 0.0,
                _ => {}
            }
            if low == high {
                let half = if low == 0.0 { 1.0 } else { low.abs() / 10.0 };
                (low, high) = if low == 0.0 { (0.0, 1.0) } else { (low - half, high + half) };
            }
            (low, high)
        });
        // Fewer and fewer ticks until their labels have room.
        let mut target = (room.length / 56.0).clamp(2.0, 10.0);
        loop {
            let step = Step::at_least((high - low) / target);
            let mut ends = if fixed.is_some() { (low, high) } else { step.widen(low, high, 0.05) };
            let mut ticks = step.ticks(ends.0, ends.1);
            if ticks.len() < 2 && fixed.is_none() {
                ends = step.widen(low, high, 10.0);
                ticks = step.ticks(ends.0, ends.1);
            }
            let ruler = Self { scale: Scale::Linear, low: ends.0, high: ends.1, ticks };
            if target <= 2.0 || room.fits(&ruler, 10.0) {
                return ruler;
            }
            target -= 1.0;
        }
    }

    fn fit_logarithmic(data: Option<(f64, f64)>, fixed: Option<(f64, f64)>, room: LabelRoom) -> Self {
        let (low, high) = fixed.unwrap_or_else(|| {
            let (low, high) = data.unwrap_or((1.0, 10.0));
            let (low, high) = (one_two_five(low, false), one_two_five(high, true));
            if low == high { (low / 2.0, high * 2.0) } else { (low, high) }
        });
        let decades = (exponent(low), exponent(high));
        let labelled = |digits: &[u32], every: i32| {
            let mut ticks = Vec::new();
            for decade in decades.0..=decades.1 {
                for digit in 1..=9 {
                    let at = scaled(f64::from(digit), decade);
                    // A share of rounding, so that an end which is a tick keeps it.
                    if at < low * (1.0 - 1e-9) || at > high * (1.0 + 1e-9) {
                        continue;
                    }
                    let major = digits.contains(&digit) && (digit > 1 || decade.rem_euclid(every) == 0);
                    let label = if major { number(i64::from(digit), decade) } else { String::new() };
                    ticks.push(Tick { at, label });
                }
            }
            Self { scale: Scale::Logarithmic, low, high, ticks }
        };
        let fullest = labelled(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 1);
        if fullest.ticks.len() < 4 {
            // Less than about half a decade: equal steps read better.
            let step = Step::at_least((high - low) / 4.0);
            return Self { ticks: step.ticks(low, high), ..fullest };
        }
        let choices: [(&[u32], i32); 8] = [
            (&[1, 2, 3, 5, 7], 1),
            (&[1, 2, 5], 1),
            (&[1, 3], 1),
            (&[1], 1),
            (&[1], 2),
            (&[1], 3),
            (&[1], 6),
            (&[1], 9),
        ];
        let mut ruler = choices
            .iter()
            .map(|&(digits, every)| labelled(digits, every))
            .find(|ruler| room.fits(ruler, 10.0))
            .unwrap_or_else(|| labelled(&[1], 12));
        if decades.1 - decades.0 > 6 {
            ruler.ticks.retain(|tick| !tick.label.is_empty());
        }
        ruler
    }

    /// The values at its beginning and its end.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The share of the axis' length at which `value` lies; outside 0 to 1 beyond the ends.
    pub fn share(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => libm::log10(value / self.low) / libm::log10(self.high / self.low),
        }
    }

    /// True if `value` lies between the ends.
    pub fn contains(&self, value: f64) -> bool {
        (-1e-9..=1.0 + 1e-9).contains(&self.share(value))
    }
}

/// The pixels that an axis has for its labels.
#[derive(Clone, Copy)]
struct LabelRoom {
    length: f64,
    extent: fn(&str) -> f64,
}

impl LabelRoom {
    fn fits(self, axis: &FittedAxis, gap: f64) -> bool {
        let mut free_from = f64::NEG_INFINITY;
        axis.ticks.iter().filter(|tick| !tick.label.is_empty()).all(|tick| {
            let centre = axis.share(tick.at) * self.length;
            let half = (self.extent)(&tick.label) / 2.0;
            let fits = centre - half >= free_from;
            free_from = centre + half + gap;
            fits
        })
    }
}

/// A distance between ticks: 1, 2 or 5 times a power of ten, as integers so that labels are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    digit: i64,
    power: i32,
}

impl Step {
    /// The smallest such step that is not below `size`.
    fn at_least(size: f64) -> Self {
        let power = exponent(size);
        [1, 2, 5]
            .into_iter()
            .find(|&digit| scaled(digit as f64, power) >= size * (1.0 - 1e-9))
            .map_or(Self { digit: 1, power: power + 1 }, |digit| Self { digit, power })
    }

    fn size(self) -> f64 {
        scaled(self.digit as f64, self.power)
    }

    /// The ends moved outward to a tick, or by a `share` of the span if the tick is further.
    fn widen(self, low: f64, high: f64, share: f64) -> (f64, f64) {
        let margin = (high - low) * share;
        let size = self.size();
        let down = (low / size + 1e-9).floor() * size;
        let up = (high / size - 1e-9).ceil() * size;
        // An axis that shows nothing negative must not begin below zero.
        let low = if low >= 0.0 { down.max(low - margin).max(0.0) } else { down.max(low - margin) };
        (low, up.min(high + margin))
    }

    fn ticks(self, low: f64, high: f64) -> Vec<Tick> {
        let size = self.size();
        let first = (low / size - 1e-9).ceil() as i64;
        let last = (high / size + 1e-9).floor() as i64;
        (first..=last)
            .map(|count| count * self.digit)
            .map(|digits| Tick { at: scaled(digits as f64, self.power), label: number(digits, self.power) })
            .collect()
    }
}

/// `digits` times ten to the `power`, in one correctly rounded operation for every sensible power.
fn scaled(digits: f64, power: i32) -> f64 {
    let ten = (0..power.abs()).fold(1.0, |product, _| product * 10.0);
    if power < 0 { digits / ten } else { digits * ten }
}

/// The largest power of ten that is not above `value`.
fn exponent(value: f64) -> i32 {
    let guess = libm::floor(libm::log10(value)) as i32;
    // The logarithm may be off by one unit in the last place just where it matters.
    if scaled(1.0, guess + 1) <= value {
        guess + 1
    } else if scaled(1.0, guess) > value {
        guess - 1
    } else {
        guess
    }
}

/// The nearest 1, 2 or 5 times a power of ten at or above (`up`) or at or below `value`.
fn one_two_five(value: f64, up: bool) -> f64 {
    let power = exponent(value);
    let steps = [scaled(1.0, power), scaled(2.0, power), scaled(5.0, power), scaled(1.0, power + 1)];
    if up {
        steps.into_iter().find(|&step| step >= value * (1.0 - 1e-9)).unwrap_or(value)
    } else {
        steps.into_iter().rfind(|&step| step <= value * (1.0 + 1e-9)).unwrap_or(value)
    }
}

/// `digits` times ten to the `power`, written as people do.
fn number(digits: i64, power: i32) -> String {
    if digits == 0 {
        return "0".into();
    }
    let sign = if digits < 0 { "\u{2212}" } else { "" };
    let mut digits = digits.unsigned_abs();
    let mut power = power;
    while digits.is_multiple_of(10) {
        digits /= 10;
        power += 1;
    }
    let length = digits.to_string().len() as i32 + power;
    if length > 7 || power < -5 {
        let factor = if digits == 1 { String::new() } else { format!("{digits}\u{d7}") };
        return format!("{sign}{factor}10{}", superscript(power));
    }
    if power < 0 {
        let places = power.unsigned_abs() as usize;
        let padded = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = padded.split_at(padded.len() - places);
        return format!("{sign}{whole}.{fraction}");
    }
    format!("{sign}{}", grouped(&format!("{digits}{}", "0".repeat(power as usize))))
}

/// Digits in groups of three, from five digits up.
fn grouped(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.into();
    }
    let mut out = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

fn superscript(power: i32) -> String {
    let mut out = String::new();
    let mut plain = String::new();
    // Writing to a string cannot fail.
    let _ = write!(plain, "{power}");
    for character in plain.chars() {
        out.push(match character {
            '-' => '\u{207b}',
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            digit => char::from_u32(0x2070 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, low: f64, high: f64, length: f64) -> Vec<String> {
        let ruler =
            FittedAxis::fit(axis, [low, high].into_iter(), length, |text| text.chars().count() as f64 * 7.0);
        ruler.ticks.into_iter().map(|tick| tick.label).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_exact() {
        let axis = Axis::linear("t", "s");
        for (low, high, expected) in [
            (0.0, 1.0, vec!["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]),
            (3.0, 97.0, vec!["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"]),
            (0.0, 0.0003, vec!["0", "0.0001", "0.0002", "0.0003"]),
            (-1.0, 1.0, vec!["\u{2212}1", "\u{2212}0.5", "0", "0.5", "1"]),
            (120_000.0, 140_000.0, vec!["120\u{202f}000", "130\u{202f}000", "140\u{202f}000"]),
            (
                0.0,
                4e8,
                vec!["0", "10\u{2078}", "2\u{d7}10\u{2078}", "3\u{d7}10\u{2078}", "4\u{d7}10\u{2078}"],
            ),
        ] {
            let length = if expected.len() > 6 { 600.0 } else { 230.0 };
            assert_eq!(labels(&axis, low, high, length), expected, "{low} to {high}");
        }
    }

    #[test]
    fn logarithmic_ticks_follow_the_span() {
        let axis = Axis::logarithmic("size", "B");
        assert_eq!(labels(&axis, 1.0, 1e4, 200.0), ["1", "10", "100", "1000", "10\u{202f}000"]);
        assert_eq!(labels(&axis, 0.01, 0.1, 200.0), ["0.01", "0.02", "0.05", "0.1"]);
        assert_eq!(labels(&axis, 1e-8, 1e8, 150.0), ["10\u{207b}\u{2076}", "1", "1\u{202f}000\u{202f}000"]);
        assert!(labels(&axis, 1000.0, 1100.0, 300.0).len() >= 2, "a narrow span keeps its ticks");
    }

    #[test]
    fn labels_never_overlap() {
        let extent = |text: &str| text.chars().count() as f64 * 7.0;
        for exponent in -6..9 {
            for digits in [1.0, 1.7, 3.3, 9.9] {
                let high = scaled(digits, exponent);
                for axis in [Axis::linear("x", ""), Axis::logarithmic("x", "")] {
                    for low in [high / 1.3, high / 40.0, high / 1e5] {
                        let ruler = FittedAxis::fit(&axis, [low, high].into_iter(), 250.0, extent);
                        let labelled: Vec<_> = ruler.ticks.iter().filter(|t| !t.label.is_empty()).collect();
                        assert!(labelled.len() >= 2, "{axis:?} {low} {high}");
                        for pair in labelled.windows(2) {
                            let distance = (ruler.share(pair[1].at) - ruler.share(pair[0].at)) * 250.0;
                            assert!(distance >= (extent(&pair[0].label) + extent(&pair[1].label)) / 2.0);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_data_lies_within_the_ends() {
        for (low, high) in [(0.0, 10.1), (9.0, 10.0), (-3.0, -2.9), (5.0, 5.0), (0.0, 0.0), (1e-9, 1e9)] {
            for range in [Range::Auto, Range::Tight, Range::FromZero] {
                let axis = Axis::linear("x", "").with_range(range);
                let ruler = FittedAxis::fit(&axis, [low, high].into_iter(), 500.0, |_| 20.0);
                assert!(ruler.contains(low) && ruler.contains(high), "{low} {high} {ruler:?}");
                assert!(axis.range != Range::FromZero || ruler.contains(0.0));
            }
        }
    }

    #[test]
    fn an_axis_begins_at_zero_unless_half_of_it_would_be_empty() {
        let low_end = |low, high, range| {
            let axis = Axis::linear("x", "").with_range(range);
            FittedAxis::fit(&axis, [low, high].into_iter(), 500.0, |_| 20.0).low
        };
        assert_eq!(low_end(50.0, 100.0, Range::Auto), 0.0);
        assert!(low_end(51.0, 100.0, Range::Auto) > 40.0);
        assert!(low_end(50.0, 100.0, Range::Tight) > 40.0);
        assert_eq!(low_end(90.0, 100.0, Range::FromZero), 0.0);
    }

    #[test]
    fn a_range_with_one_fixed_end_is_kept() {
        for axis in [Axis::linear("x", ""), Axis::logarithmic("x", "")] {
            let axis = axis.with_range(Range::From(7.0));
            let ruler = FittedAxis::fit(&axis, [3.0, 30.0, 90.0].into_iter(), 500.0, |_| 20.0);
            assert!(ruler.low == 7.0 && (90.0..=100.0).contains(&ruler.high), "{ruler:?}");
            assert!(axis.is_beyond(6.9) && !axis.is_beyond(7.0) && !axis.is_beyond(1e9));
        }
        // Above all data it would leave nothing to see.
        let axis = Axis::linear("x", "").with_range(Range::From(200.0));
        assert!(FittedAxis::fit(&axis, [30.0, 90.0].into_iter(), 500.0, |_| 20.0).contains(90.0));
    }

    #[test]
    fn a_fixed_range_is_kept_and_an_invalid_one_is_not() {
        let fixed = |a, b| {
            let axis = Axis::logarithmic("x", "").with_range(Range::Fixed(a, b));
            let ruler = FittedAxis::fit(&axis, [30.0, 50.0].into_iter(), 500.0, |_| 20.0);
            (ruler.low, ruler.high)
        };
        assert_eq!(fixed(7.0, 90.0), (7.0, 90.0));
        assert_eq!(fixed(0.0, 90.0), (20.0, 50.0));
        assert_eq!(fixed(f64::NAN, 90.0), (20.0, 50.0));
    }
}
