//! Claims of a paper, and the verdict on each.
//!
//! ```toml
//! [[claim]]
//! says = "Halfback takes 56 % less time than TCP with long flows"
//! source = "§4.3.2"
//! value.measure = "mean"
//! value.scheme = "Halfback"
//! value.over = { scheme = "TCP" }
//! value.as = "reduction"
//! value.across = "mean"
//! paper = 56               # and `within`, or `at-least` and `at-most`
//! within = 8
//! unit = "%"
//!
//! differs = "..."          # it is known not to hold, and the reason as far as it is known
//! quick = "holds"          # if the quick run is known to find another outcome than the full one
//! fitted = "..."           # the parameter chosen by this claim's number: counted apart
//! each = { load = ["10 %", "25 %"] }   # the same at each of these values: all of them must hold
//! ```
//!
//! A claim has at most one of these forms besides the plain number.
//!
//! | kind | keys |
//! |---|---|
//! | a number | `value`; `paper` with `within`, `at-least`, `at-most` or any of them |
//! | an order | `value`, and `order`: schemes, the smallest first; equal is not smaller |
//! | a crossing | `value`, `crosses`: above which scheme, and `along`: on which axis |
//! | a peak | `value`, `peak = { along = "size", at = ["60 kB"] }`: it is largest at one of these |
//! | a table | `value` with `over`, and `table`: the paper's quotients, all at once ([`form`]) |
//!
//! A number may be more than one quantity ([`form`]): `trend`, `most`, `least`, `over-crossing`.
//!
//! `within` says how far from the paper's number ours may lie before we say that it differs. Where
//! a claim compares, a number outside of that but on the paper's side of "no difference" is
//! reported as *direction*; so is a crossing at another place.
//!
//! A claim *holds* if the whole 95 % interval is within the bounds, and *holds, wide* if only the
//! value is. An order or a peak holds if it does in 95 % of the resamples of the seeds. With
//! `within = 5` a peak may lie 5 below the largest.
//!
//! `--check` expects the outcome that the keys of a claim give: it differs if `differs` says why,
//! else it holds; `quick` overrides that for the quick run. It is `undecided` if three sets of
//! seeds (`--further-seeds`) disagree.

pub mod form;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::quantity::{Quantity, QuantityText, Resamples, Scope, UNKNOWN};
use crate::plan::{Plan, from_toml};
use crate::run::Results;
use form::{Form, Peak, Printed, PrintedTable, check_axis, check_values};
use headstart_report::statistics::Interval;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimsText {
    #[serde(default)]
    claim: Vec<ClaimText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ClaimText {
    says: String,
    source: String,
    value: QuantityText,
    order: Option<Vec<String>>,
    crosses: Option<String>,
    along: Option<String>,
    table: Option<Printed>,
    peak: Option<Peak>,
    trend: Option<String>,
    most: Option<Vec<String>>,
    least: Option<Vec<String>>,
    over_crossing: Option<String>,
    paper: Option<f64>,
    within: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    #[serde(default)]
    unit: String,
    differs: Option<String>,
    fitted: Option<String>,
    quick: Option<Outcome>,
    #[serde(default)]
    each: BTreeMap<String, Vec<String>>,
}

/// One claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim in one sentence.
    pub says: String,
    /// Place in the paper.
    pub source: String,
    /// Why ours differs, if it is known to.
    pub differs: Option<String>,
    /// The parameter that was chosen by this claim's number, if one was.
    pub fitted: Option<String>,
    quick: Option<Outcome>,
    unit: String,
    test: Test,
}

/// A value, and the values that are accepted.
#[derive(Clone, Debug)]
struct Test {
    value: Quantity,
    form: Form,
    paper: Option<f64>,
    low: f64,
    high: f64,
    /// A swept option, and its values at each of which the claim must hold.
    each: Option<(String, Vec<String>)>,
}

/// Verdict on a claim, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Our value is within the tolerance, with the whole interval.
    Holds,
    /// Our value is within the tolerance, but not with the whole interval.
    Wide,
    /// Another number, on the same side of "no difference".
    Direction,
    /// Not the same.
    Differs,
    /// This run leaves out what the claim needs.
    NotRun,
}

impl Verdict {
    /// The value is within its tolerance.
    #[must_use]
    pub fn holds(self) -> bool {
        matches!(self, Self::Holds | Self::Wide)
    }

    /// In one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Wide => "holds, wide",
            Self::Direction => "direction",
            Self::Differs => "differs",
            Self::NotRun => "not run",
        }
    }
}

/// Result of a claim in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The claim holds within its tolerance.
    Holds,
    /// The claim does not hold.
    Differs,
    /// Three sets of seeds disagree on whether it holds.
    Undecided,
    /// This run leaves out what the claim needs.
    NotRun,
}

impl Outcome {
    /// As it is written in a file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "differs",
            Self::Undecided => "undecided",
            Self::NotRun => "not-run",
        }
    }
}

/// A claim's verdict under one variant.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The verdict.
    pub verdict: Verdict,
    /// Ours.
    pub ours: Interval,
    /// Ours in words, with unit.
    pub shown: String,
}

/// Reads `claims.toml`.
///
/// # Errors
/// With the claim's number, key, found and expected.
pub fn read(text: &str, plan: &Plan) -> Result<Vec<Claim>> {
    let text: ClaimsText = from_toml(text)?;
    text.claim
        .into_iter()
        .enumerate()
        .map(|(number, claim)| {
            let says = claim.says.clone();
            Claim::read(claim, plan).with_context(|| format!("claim {} ({says})", number + 1))
        })
        .collect()
}

impl Claim {
    fn read(mut text: ClaimText, plan: &Plan) -> Result<Self> {
        let value = Quantity::read(text.value.clone(), plan, text.order.is_some()).context("value")?;
        ensure!(
            text.within.is_none() || text.paper.is_some(),
            "found the key `within` without `paper`, expected both"
        );
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        if let (Some(paper), Some(within)) = (text.paper, text.within) {
            (low, high) = (paper - within, paper + within);
        }
        low = text.at_least.unwrap_or(low);
        high = text.at_most.unwrap_or(high);
        let is_bounded = low.is_finite() || high.is_finite();
        let form = Form::read(&mut text, &value, plan)?;
        match form {
            Form::Order(_) | Form::Peak(_) => {
                ensure!(!is_bounded, "found `order` or `peak` with a number, expected one of them");
            }
            Form::Crossing { .. } => ensure!(is_bounded, "found `crosses` without a number, expected where"),
            _ => ensure!(is_bounded, "found no tolerance, expected `within`, `at-least` or `at-most`"),
        }
        let each = each(text.each, &value, plan).context("each")?;
        Ok(Self {
            says: text.says,
            source: text.source,
            differs: text.differs.map(|reason| reason.split_whitespace().collect::<Vec<_>>().join(" ")),
            fitted: text.fitted,
            quick: text.quick,
            unit: text.unit,
            test: Test { value, form, paper: text.paper, low, high, each },
        })
    }

    /// The author's number or order, in words; nothing if the paper prints none.
    #[must_use]
    pub fn paper(&self) -> String {
        match &self.test.form {
            Form::Order(order) => order.join(" < "),
            Form::Peak(peak) => peak.shown(),
            _ => self.test.paper.map_or(String::new(), |paper| self.with_unit(&paper.to_string())),
        }
    }

    /// The values that are accepted, in words; nothing where that is no range.
    #[must_use]
    pub fn bound(&self) -> String {
        let Test { low, high, .. } = self.test;
        match () {
            () if low.is_infinite() && high.is_infinite() => String::new(),
            () if high.is_infinite() => self.with_unit(&format!("at least {}", digits(low))),
            () if low.is_infinite() => self.with_unit(&format!("at most {}", digits(high))),
            () => self.with_unit(&format!("{} to {}", digits(low), digits(high))),
        }
    }

    fn with_unit(&self, text: &str) -> String {
        if self.unit.is_empty() { text.to_owned() } else { format!("{text} {}", self.unit) }
    }

    /// The paper's table, to be compared with ours; `None` unless the claim is on how far the two
    /// are apart.
    #[must_use]
    pub fn table(&self, plan: &Plan, results: &Results) -> Option<PrintedTable> {
        let Form::Table(table) = &self.test.form else { return None };
        let scope = Scope { plan, results, variant: 0, scheme: None, at: &[], draw: None };
        table.heat_map(&self.test.value, &scope, &self.says)
    }

    /// A scheme is one of those that the claim names.
    #[must_use]
    pub fn names(&self, scheme: &str) -> bool {
        self.test.schemes().contains(&scheme)
    }

    /// The outcome of a verdict. One that is undecided on record stays that, whatever this run's
    /// seeds say.
    #[must_use]
    pub fn outcome(&self, verdict: Verdict, is_quick: bool) -> Outcome {
        match verdict {
            Verdict::NotRun => Outcome::NotRun,
            _ if self.recorded(is_quick) == Outcome::Undecided => Outcome::Undecided,
            Verdict::Holds | Verdict::Wide => Outcome::Holds,
            Verdict::Direction | Verdict::Differs => Outcome::Differs,
        }
    }

    /// The outcome that is on record.
    #[must_use]
    pub fn recorded(&self, is_quick: bool) -> Outcome {
        match (self.quick, &self.differs) {
            (Some(outcome), _) if is_quick => outcome,
            (_, Some(_)) => Outcome::Differs,
            (_, None) => Outcome::Holds,
        }
    }

    /// Judges it by the results under one variant.
    #[must_use]
    pub fn judge(&self, plan: &Plan, results: &Results, variant: usize) -> Finding {
        self.test.judge(plan, results, variant, &self.unit)
    }
}

impl Test {
    fn judge(&self, plan: &Plan, results: &Results, variant: usize, unit: &str) -> Finding {
        let scope = Scope { plan, results, variant, scheme: None, at: &[], draw: None };
        let Some((axis, values)) = &self.each else { return self.judge_at(scope, unit) };
        let mut found = vec![];
        for value in values {
            let at = [(axis.clone(), value.clone())];
            found.push((value.as_str(), self.judge_at(Scope { at: &at, ..scope }, unit)));
        }
        together(found)
    }

    fn judge_at(&self, scope: Scope<'_>, unit: &str) -> Finding {
        let mut finding = self.finding(&scope, unit);
        if finding.verdict == Verdict::Holds && !self.is_sure(&finding, &scope) {
            finding.verdict = Verdict::Wide;
        }
        if finding.verdict != Verdict::NotRun {
            return finding;
        }
        match self.value.invalid_runs(&scope) {
            (0, _) => finding,
            (invalid, all) => Finding { shown: format!("INVALID ({invalid} of {all} runs)"), ..finding },
        }
    }

    /// The whole interval is within the bounds.
    fn is_sure(&self, found: &Finding, scope: &Scope<'_>) -> bool {
        if matches!(self.form, Form::Order(_) | Form::Peak(_)) {
            let holds = |scope: &Scope<'_>| self.finding(scope, "").verdict == Verdict::Holds;
            return Resamples::new(scope.results.repeats()).are_sure(scope, holds);
        }
        found.ours.low >= self.low && found.ours.high <= self.high
    }

    /// Names of schemes in the claim, each once or more.
    fn schemes(&self) -> Vec<&str> {
        self.value.schemes().chain(self.form.schemes()).collect()
    }

    fn finding(&self, scope: &Scope<'_>, unit: &str) -> Finding {
        match &self.form {
            Form::Order(order) => self.order(scope, order),
            Form::Peak(peak) => peak.judge(&self.value, scope, unit),
            Form::Crossing { other, axis, over: None } => {
                let ours = scope.crossing(&self.value, other, axis);
                let mut finding = self.number(ours, unit);
                if finding.verdict == Verdict::Differs {
                    finding.verdict = Verdict::Direction;
                }
                if ours.value.is_nan() && self.is_run(scope, other) {
                    finding = Finding { verdict: Verdict::Differs, ours, shown: "never".into() };
                }
                finding
            }
            form => self.number(form.value(&self.value, scope), unit),
        }
    }

    fn is_run(&self, scope: &Scope<'_>, other: &str) -> bool {
        let is_there = |name: &str| scope.plan.schemes.iter().any(|scheme| scheme.name == name);
        is_there(other) && self.value.scheme().is_none_or(is_there)
    }

    fn number(&self, ours: Interval, unit: &str) -> Finding {
        let (low, high) = (self.low, self.high);
        let verdict = if ours.value.is_nan() {
            Verdict::NotRun
        } else if (low..=high).contains(&ours.value) {
            Verdict::Holds
        } else {
            let expected = self.paper.unwrap_or(match (low.is_finite(), high.is_finite()) {
                (true, true) => f64::midpoint(low, high),
                (true, false) => low,
                _ => high,
            });
            match self.form.neutral(&self.value) {
                Some(neutral) if (expected - neutral) * (ours.value - neutral) > 0.0 => Verdict::Direction,
                _ => Verdict::Differs,
            }
        };
        Finding { verdict, ours, shown: shown(&ours, unit) }
    }

    fn order(&self, scope: &Scope<'_>, order: &[String]) -> Finding {
        let mut found: Vec<(&str, f64)> =
            order.iter().map(|name| (name.as_str(), self.value.of(name).value(scope).value)).collect();
        let ours = UNKNOWN;
        if found.iter().any(|(_, value)| value.is_nan()) {
            return Finding { verdict: Verdict::NotRun, ours, shown: "-".into() };
        }
        let holds = found.windows(2).all(|pair| pair[0].1 < pair[1].1);
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        let shown: Vec<String> =
            found.iter().map(|(name, value)| format!("{name} {}", digits(*value))).collect();
        let verdict = if holds { Verdict::Holds } else { Verdict::Differs };
        Finding { verdict, ours, shown: shown.join(" < ") }
    }
}

/// The one swept option that `each` names, and its values.
fn each(
    text: BTreeMap<String, Vec<String>>,
    value: &Quantity,
    plan: &Plan,
) -> Result<Option<(String, Vec<String>)>> {
    ensure!(text.len() < 2, "found {} options, expected one", text.len());
    let Some((axis, values)) = text.into_iter().next() else { return Ok(None) };
    check_axis(&axis, plan)?;
    ensure!(!value.is_fixed(&axis), "found a value at one {axis}, expected that it is left open");
    ensure!(values.len() > 1, "{axis}: found {} values, expected two at least", values.len());
    check_values(&axis, &values, plan)?;
    Ok(Some((axis, values)))
}

/// The verdict over several values of an option, the worst of them, and how often it holds.
fn together(found: Vec<(&str, Finding)>) -> Finding {
    let run: Vec<(&str, Finding)> =
        found.into_iter().filter(|(_, one)| one.verdict != Verdict::NotRun).collect();
    let missed: Vec<&str> =
        run.iter().filter(|(_, one)| !one.verdict.holds()).map(|(value, _)| *value).collect();
    let (held, all) = (run.len() - missed.len(), run.len());
    let Some((value, worst)) = run.into_iter().max_by_key(|(_, one)| one.verdict) else {
        return Finding { verdict: Verdict::NotRun, ours: UNKNOWN, shown: "-".into() };
    };
    let others = if missed.is_empty() { String::new() } else { format!("; not at {}", missed.join(", ")) };
    let shown = format!("at {held} of {all}{others} ({value}: {})", worst.shown);
    Finding { shown, ..worst }
}

fn shown(ours: &Interval, unit: &str) -> String {
    if ours.value.is_nan() {
        return "-".into();
    }
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let mut text = format!("{}{unit}", digits(ours.value));
    if ours.low.is_finite() && ours.high.is_finite() && ours.low < ours.high {
        text = format!("{text} [{}, {}]", digits(ours.low), digits(ours.high));
    }
    text
}

/// Three digits that count.
#[must_use]
pub fn digits(value: f64) -> String {
    let size = value.abs();
    let decimals = if size >= 99.95 || size == 0.0 {
        0
    } else if size >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
