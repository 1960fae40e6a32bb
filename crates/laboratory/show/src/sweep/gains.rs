//! Gains of a sweep's schemes over its reference, their harm to others, and the verdict on both.

use headstart_compare::verdict::{Harm, HarmVerdict, MOST_HARM};
use headstart_paper::claim::digits;
use headstart_report::statistics::quantile;
use headstart_report::table::{Better, Cell, Column, Table};

use super::{PointResult, Sweep};
use crate::race::of_harm;

/// A gain or a loss that is counted, in per cent.
const CLEAR: f64 = 5.0;

/// Gains of a scheme in mean completion time, in per cent, and its harm.
pub(super) struct Gain {
    pub(super) scheme: String,
    pub(super) median: f64,
    /// The gain at each point at which both are known.
    pub(super) percent: Vec<f64>,
    /// Points at which it is known to harm others, and at which that is not known.
    pub(super) harmful: usize,
    pub(super) not_known: usize,
    /// The largest harm, of the points with the worst verdict, with the place of its point.
    pub(super) worst: Option<(usize, Harm)>,
}

impl Gain {
    /// Points with a clear gain, and with a clear loss.
    fn counts(&self) -> (usize, usize) {
        let count = |is_it: &dyn Fn(f64) -> bool| self.percent.iter().filter(|it| is_it(**it)).count();
        (count(&|percent| percent > CLEAR), count(&|percent| percent < -CLEAR))
    }
}

impl Sweep {
    /// Gains of the schemes over [`Self::base`], the largest median first.
    pub(super) fn gains(&self) -> Vec<Gain> {
        let base = self.base();
        let of = |scheme: &str| {
            let points = self.points.iter().filter_map(|point| Some(1.0 - point.ratio(scheme, base)?));
            let percent: Vec<f64> = points.map(|gain| 100.0 * gain).filter(|gain| gain.is_finite()).collect();
            let (mut harmful, mut not_known) = (0, 0);
            let mut worst: Option<(usize, Harm, HarmVerdict)> = None;
            for (place, point) in self.points.iter().enumerate() {
                let Some((harm, verdict)) = Self::harm(point, scheme) else {
                    not_known += 1;
                    continue;
                };
                harmful += usize::from(verdict == HarmVerdict::Harmful);
                not_known += usize::from(verdict == HarmVerdict::NotKnown);
                let is_worse = worst
                    .is_none_or(|(_, than, of)| (verdict, harm.interval.value) > (of, than.interval.value));
                if is_worse {
                    worst = Some((place, harm, verdict));
                }
            }
            let worst = worst.map(|(place, harm, _)| (place, harm));
            let median = quantile(&percent, 0.5)?;
            Some(Gain { scheme: scheme.to_owned(), median, percent, harmful, not_known, worst })
        };
        let mut gains: Vec<Gain> =
            self.schemes().into_iter().filter(|scheme| *scheme != base).filter_map(of).collect();
        gains.sort_by(|one, other| other.median.total_cmp(&one.median));
        gains
    }

    /// The harm of a scheme at a point, as the point's race judges it.
    pub(super) fn harm(point: &PointResult, scheme: &str) -> Option<(Harm, HarmVerdict)> {
        let harm = point.rows.iter().find(|row| row.scheme == scheme)?.harm?;
        Some((harm, harm.verdict(MOST_HARM)))
    }

    /// The options of a point that vary, in words.
    fn place(&self, place: usize) -> String {
        let values = self.axes.iter().zip(&self.points[place].typed);
        values.map(|(axis, value)| format!("{} {value}", axis.words())).collect::<Vec<_>>().join(", ")
    }

    /// The schemes that harm others somewhere, with the worst point of each; without its full stop.
    fn harmful(&self, gains: &[Gain]) -> Option<String> {
        let of = |gain: &Gain| {
            let (place, harm) = gain.worst.filter(|_| gain.harmful > 0)?;
            let (on, of) = (gain.harmful, gain.percent.len());
            Some(format!(
                "{} on {on} of {of} (most: {} at {})",
                gain.scheme,
                of_harm(&harm),
                self.place(place)
            ))
        };
        let all: Vec<String> = gains.iter().filter_map(of).collect();
        (!all.is_empty()).then(|| format!("Known to harm others: {}", all.join("; ")))
    }

    /// [`Sweep::answer`] as one text without the last full stop.
    #[must_use]
    pub fn verdict(&self) -> Option<String> {
        let sentences = self.answer();
        (!sentences.is_empty()).then(|| sentences.join(". "))
    }

    /// The harmless scheme with the largest median gain, one whose harm is open if it gains more,
    /// and the schemes that harm: at most three sentences without full stops. As in a race, a
    /// scheme is harmless if that is known: here at every point.
    #[must_use]
    pub fn answer(&self) -> Vec<String> {
        let gains = self.gains();
        // Without any harm measured, as without other flows, none is judged.
        let has_harm = gains.iter().any(|gain| gain.worst.is_some());
        let is_harmless = |gain: &&Gain| !has_harm || gain.harmful + gain.not_known == 0;
        let best = gains.iter().find(is_harmless);
        let open = gains.iter().find(|gain| has_harm && gain.harmful == 0 && gain.not_known > 0);
        let mut sentences: Vec<String> = best.map(|best| self.gain_in_words(best)).into_iter().collect();
        if best.is_none() && !gains.is_empty() {
            sentences.push(format!(
                "No scheme is known to be harmless within {} % at every point",
                digits(100.0 * MOST_HARM)
            ));
        }
        if let Some(open) = open.filter(|open| best.is_none_or(|best| open.median > best.median)) {
            sentences.push(self.gain_in_words(open));
        }
        sentences.extend(self.harmful(&gains));
        sentences
    }

    fn gain_in_words(&self, gain: &Gain) -> String {
        let (more, less) = gain.counts();
        let (scheme, base, count) = (&gain.scheme, self.base(), gain.percent.len());
        let harm = match gain.worst {
            None => String::new(),
            Some(_) if gain.not_known == 0 => format!("; harmless on all {count}"),
            Some((place, harm)) => format!(
                "; its harm is not known on {} (most: {} at {})",
                gain.not_known,
                of_harm(&harm),
                self.place(place)
            ),
        };
        let less = if less == 0 { "none".to_owned() } else { less.to_string() };
        let median = digits(gain.median.abs());
        let median = if gain.median < 0.0 {
            format!("loses {median} % against {base}")
        } else {
            format!("gains {median} % over {base}")
        };
        format!(
            "{scheme} {median} in the median; it gains more than {CLEAR} % on {more} of {count} and loses more than that on {less}{harm}"
        )
    }

    pub(super) fn gain_table(&self) -> Table {
        let points = |title: String| Column::number(&title, "points");
        let mut table = Table::new(
            "",
            [
                Column::text("scheme"),
                Column::number("median gain", "%").better(Better::Higher),
                Column::number("least", "%").better(Better::Higher),
                Column::number("most", "%").better(Better::Higher),
                points(format!("gains more than {CLEAR} %")).better(Better::Higher),
                points(format!("loses more than {CLEAR} %")).better(Better::Lower),
                Column::number("worst harm", "").better(Better::Lower),
                points("known to harm".into()).better(Better::Lower),
                points("harm not known".into()),
            ],
        );
        for gain in self.gains() {
            let [least, most] = [0.0, 1.0].map(|q| quantile(&gain.percent, q).unwrap_or(f64::NAN));
            let (more, less) = gain.counts();
            let mut cells = vec![Cell::text(&gain.scheme)];
            cells.extend([gain.median, least, most].map(|percent| Cell::number(percent, 1)));
            cells.extend([more, less].map(|count| Cell::number(count as f64, 0)));
            cells.push(gain.worst.map_or(Cell::Missing, |(_, harm)| Cell::number(harm.interval.value, 3)));
            cells.extend([gain.harmful, gain.not_known].map(|count| Cell::number(count as f64, 0)));
            table.row(cells);
        }
        table
    }
}
