//! A cell of a table that compares two schemes by factor and difference: better, worse or alike.
//!
//! ```toml
//! value.measure = "request"
//! value.scheme = "Blitzstart"
//! value.at = { hint = "100 %" }
//! value.over = { scheme = "QUIC" }
//! value.as = "difference"
//! table.factor = 1.9
//! table.factor-within = 1.25
//! table.difference = -664
//! table.difference-within = 235
//! table.alike = 50
//! unit = "ms"
//! ```
//!
//! Blitzstart's Table 1 prints the factor between two means, always at least one, and their
//! difference with its sign. Its arrows show the direction, unless the difference is not
//! significant: zero lies in the 95 % interval of the differences, or the analysis of variance
//! finds nothing. A difference of less than `alike` counts as alike whatever its significance (the
//! paper: within one round trip). Directions agree, or the claim differs; if they do, it holds if
//! factor and difference are within the tolerance, of which the factor's is a factor itself.
//!
//! A cell of which the paper says that it is not significant (`significant = false`: the table's
//! circles) has no direction, and is not counted among those that compare. It holds if ours is not
//! significant either, or if the numbers are near.

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::{Finding, Verdict, digits};
use crate::quantity::{Quantity, Scope, UNKNOWN};
use headstart_report::statistics::{differ, mean};

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Cell {
    factor: f64,
    difference: f64,
    alike: f64,
    factor_within: f64,
    difference_within: f64,
    #[serde(default = "default_true")]
    significant: bool,
}

const fn default_true() -> bool {
    true
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Less,
    Alike,
    More,
}

impl Cell {
    pub(super) fn check(&self, value: &Quantity) -> Result<()> {
        ensure!(
            value.is_difference(),
            "table: found a value that is no difference, expected `over` and `as`"
        );
        ensure!(self.factor >= 1.0, "table.factor: found {}, expected 1 at least", self.factor);
        ensure!(
            self.factor_within >= 1.0,
            "table.factor-within: found {}, expected 1 at least",
            self.factor_within
        );
        ensure!(self.alike >= 0.0, "table.alike: found {}, expected 0 at least", self.alike);
        ensure!(
            self.difference_within >= 0.0,
            "table.difference-within: found {}, expected 0 at least",
            self.difference_within
        );
        Ok(())
    }

    /// As the table prints it.
    pub(super) fn shown(&self, unit: &str) -> String {
        let mark = if self.significant { "" } else { NOT_SIGNIFICANT };
        show(self.factor, self.difference, unit) + mark
    }

    /// True if it has a direction: better, worse or alike.
    pub(super) const fn compares(&self) -> bool {
        self.significant
    }

    fn direction(&self, difference: f64) -> Direction {
        if difference.abs() < self.alike {
            Direction::Alike
        } else if difference < 0.0 {
            Direction::Less
        } else {
            Direction::More
        }
    }

    pub(super) fn judge(&self, value: &Quantity, scope: &Scope<'_>, unit: &str) -> Finding {
        let pair = value.pair(scope);
        let means = pair.as_ref().and_then(|(ours, base)| Some((mean(ours)?, mean(base)?)));
        let (Some((ours, base)), Some((new, old))) = (&pair, means) else {
            return Finding { verdict: Verdict::NotRun, ours: UNKNOWN, shown: "-".into() };
        };
        let difference = new - old;
        let factor = if new == old { 1.0 } else { (new / old).max(old / new) };
        let is_significant = differ(ours, base);
        let direction = if is_significant { self.direction(difference) } else { Direction::Alike };
        // A factor of a mean near zero can be anything: what is alike has no factor to compare.
        let off = (factor / self.factor).max(self.factor / factor);
        let is_near = (difference - self.difference).abs() <= self.difference_within
            && (off <= self.factor_within || direction == Direction::Alike);
        let verdict = match (self.significant, direction == self.direction(self.difference), is_near) {
            (true, true, true) => Verdict::Holds,
            (true, true, false) => Verdict::Direction,
            (false, ..) if is_near || direction == Direction::Alike => Verdict::Holds,
            _ => Verdict::Differs,
        };
        let mark = if is_significant { "" } else { NOT_SIGNIFICANT };
        Finding { verdict, ours: value.value(scope), shown: show(factor, difference, unit) + mark }
    }
}

const NOT_SIGNIFICANT: &str = " (not significant)";

fn show(factor: f64, difference: f64, unit: &str) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    format!("x{}, {sign}{}{unit}", digits(factor), digits(difference.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan, quantity};

    fn judge(table: &str) -> Finding {
        let plan = plan::tests::plan(quantity::tests::PLAN, false).expect("fine");
        let results = quantity::tests::made_up(&plan);
        let text = format!(
            "[[claim]]\nsays = \"it\"\nsource = \"there\"\nunit = \"ms\"\nvalue = {{ measure = \"mean\", scheme = \"TCP-10\", \
             at = {{ load = \"10 %\" }}, over = {{ scheme = \"TCP\" }}, as = \"difference\" }}\ntable = {{ {table} }}"
        );
        let claims = super::super::read(&text, &plan).expect(table);
        claims[0].judge(&plan, &results, 0)
    }

    // TCP 400 and 420, TCP-10 200 and 220: a difference of 200 in both seeds, a factor of 1.95.
    #[test]
    fn directions_must_agree_and_numbers_be_near() {
        for (factor, difference, alike, verdict) in [
            (1.9, -190.0, 50.0, Verdict::Holds),
            (2.4, -190.0, 50.0, Verdict::Wide),
            (2.5, -190.0, 50.0, Verdict::Direction),
            (1.9, -400.0, 50.0, Verdict::Direction),
            (1.9, 190.0, 50.0, Verdict::Differs),
            (1.0, -20.0, 50.0, Verdict::Differs),
            (1.0, -150.0, 250.0, Verdict::Holds),
            (1.9, 30.0, 250.0, Verdict::Direction),
        ] {
            let found = judge(&format!(
                "factor = {factor}, difference = {difference:?}, alike = {alike:?}, factor-within = 1.25, difference-within = 100"
            ));
            assert_eq!(found.verdict, verdict, "x{factor} {difference}, alike below {alike}");
            assert_eq!(found.shown, "x1.95, -200 ms");
        }
    }

    /// Ours is significant here, as in the test above.
    #[test]
    fn a_cell_that_is_not_significant_has_no_direction_and_holds_within_its_tolerance() {
        for (factor, difference, verdict) in
            [(1.9, -190.0, Verdict::Holds), (1.9, -90.0, Verdict::Differs), (1.1, 30.0, Verdict::Differs)]
        {
            let found = judge(&format!(
                "factor = {factor}, difference = {difference:?}, alike = 50, factor-within = 1.25, difference-within = 100, \
                 significant = false"
            ));
            assert_eq!(found.verdict, verdict, "x{factor} {difference}");
        }
    }

    #[test]
    fn a_value_other_than_a_difference_is_refused() {
        let plan = plan::tests::plan(quantity::tests::PLAN, false).expect("fine");
        for (value, table, part) in [
            ("", "factor = 1", "no difference"),
            (", over = { scheme = \"TCP\" }", "factor = 1", "no difference"),
            (", over = { scheme = \"TCP\" }, as = \"difference\"", "factor = 0.5", "expected 1 at least"),
        ] {
            let text = format!(
                "[[claim]]\nsays = \"it\"\nsource = \"there\"\nvalue = {{ measure = \"mean\", scheme = \"TCP-10\"{value} }}\n\
                 table = {{ {table}, difference = 1, alike = 1, factor-within = 1, difference-within = 1 }}"
            );
            let error = format!("{:#}", super::super::read(&text, &plan).expect_err(&text));
            assert!(error.contains(part), "{error}");
        }
    }
}
