//! What a paper says, and whether the same comes out.
//!
//! ```toml
//! [[claim]]
//! says = "Halfback takes 56 % less time than TCP beside long flows"
//! source = "§4.3.2"
//! value = { measure = "mean", scheme = "Halfback", over = { scheme = "TCP" }, as = "reduction", across = "mean" }
//! paper = 56               # and `within`, or `at-least` and `at-most`
//! within = 8
//! unit = "%"
//! differs = "why ours is another"    # a claim that does not hold has its reason here
//! comes-out = { when = "CUBIC is RFC 9438's", variant = "rfc9438" }  # what is blamed, and the variant in which only that is changed
//! ```
//!
//! | kind | keys |
//! |---|---|
//! | a number | `value`; `paper` with `within`, `at-least`, `at-most` or any of them |
//! | an order | `value`, and `order`: schemes, the smallest first; equal is not smaller |
//! | a crossing | `value`, `crosses`: above which scheme, and `along`: on which axis |
//! | never crossing | the same with `never = true` |
//! | a table's cell | `value` with `as = "difference"`, and `table` ([`comparison`]) |
//!
//! `within` says how far from the paper's number ours may lie before we say that it differs. Where a claim compares, a number
//! outside of that but on the paper's side of "no difference" is told as *direction*.

mod comparison;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::plan::{Plan, from_toml};
use super::quantity::{Quantity, QuantityText, Scope, check_scheme};
use super::run::Results;
use crate::statistics::Interval;

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
    #[serde(default)]
    never: bool,
    table: Option<comparison::Cell>,
    paper: Option<f64>,
    within: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    #[serde(default)]
    unit: String,
    differs: Option<String>,
    comes_out: Option<ComesOut>,
}

/// What is blamed for a difference, and the variant that shows it: there the claim's direction comes out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComesOut {
    /// In words.
    pub when: String,
    /// The variant of the plan.
    pub variant: String,
}

/// One claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The claim in one sentence.
    pub says: String,
    /// Where the paper says it.
    pub source: String,
    /// Why ours differs, if it is known to.
    pub differs: Option<String>,
    /// In which variant it comes out.
    pub comes_out: Option<ComesOut>,
    unit: String,
    value: Quantity,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Number { paper: Option<f64>, low: f64, high: f64 },
    Order(Vec<String>),
    Crossing { other: String, axis: String, paper: Option<f64>, low: f64, high: f64 },
    Never { other: String, axis: String },
    Cell(comparison::Cell),
}

/// What came out of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The same within its tolerance.
    Holds,
    /// Another number, on the same side of "no difference".
    Direction,
    /// Not the same.
    Differs,
    /// This run leaves out what the claim needs.
    NotRun,
}

impl Verdict {
    /// In one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Direction => "direction",
            Self::Differs => "differs",
            Self::NotRun => "not run",
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
    fn read(text: ClaimText, plan: &Plan) -> Result<Self> {
        let is_order = text.order.is_some();
        let value = Quantity::read(text.value, plan, is_order).context("value")?;
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
        let kind = match (text.order, text.crosses) {
            (None, None) if text.table.is_some() => {
                ensure!(!is_bounded, "found `table` with another number, expected one of them");
                let cell = text.table.context("table")?;
                cell.check(&value)?;
                Kind::Cell(cell)
            }
            (Some(_), Some(_)) => bail!("found both `order` and `crosses`, expected one of them"),
            (Some(order), None) => {
                ensure!(order.len() > 1, "order: found {} schemes, expected two at least", order.len());
                ensure!(!is_bounded, "found `order` with a number, expected one of them");
                order.iter().try_for_each(|scheme| check_scheme(scheme, plan)).context("order")?;
                Kind::Order(order)
            }
            (None, Some(other)) => {
                check_scheme(&other, plan).context("crosses")?;
                let axis = text.along.context("found `crosses` without the key `along`")?;
                ensure!(
                    plan.axes.iter().any(|(name, _)| *name == axis),
                    "along: found `{axis}`, expected an option that the plan sweeps"
                );
                match (text.never, is_bounded) {
                    (true, false) => Kind::Never { other, axis },
                    (false, true) => Kind::Crossing { other, axis, paper: text.paper, low, high },
                    _ => bail!("found neither or both of `never` and a number, expected one of them"),
                }
            }
            (None, None) => {
                ensure!(is_bounded, "found no tolerance, expected `within`, `at-least` or `at-most`");
                Kind::Number { paper: text.paper, low, high }
            }
        };
        Ok(Self {
            says: text.says,
            source: text.source,
            differs: text.differs.map(|reason| reason.split_whitespace().collect::<Vec<_>>().join(" ")),
            comes_out: text.comes_out,
            unit: text.unit,
            value,
            kind,
        })
    }

    /// Whether what is blamed is to blame: in the variant that changes it, the claim's direction comes out. `None` if nothing is
    /// blamed, or that variant was not run.
    #[must_use]
    pub fn is_explained(&self, plan: &Plan, findings: &[Finding]) -> Option<bool> {
        let named = &self.comes_out.as_ref()?.variant;
        let place = plan.variants.iter().position(|variant| variant.name == *named)?;
        match findings.get(place)?.verdict {
            Verdict::Holds | Verdict::Direction => Some(true),
            Verdict::Differs => Some(false),
            Verdict::NotRun => None,
        }
    }

    /// The paper's side, in words.
    #[must_use]
    pub fn paper(&self) -> String {
        match &self.kind {
            Kind::Number { paper, low, high } | Kind::Crossing { paper, low, high, .. } => {
                let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
                match paper {
                    Some(paper) => format!("{paper}{unit}"),
                    None if high.is_infinite() => format!("at least {low}{unit}"),
                    None if low.is_infinite() => format!("at most {high}{unit}"),
                    None => format!("{low} to {high}{unit}"),
                }
            }
            Kind::Order(order) => order.join(" < "),
            Kind::Never { .. } => "never".into(),
            Kind::Cell(cell) => cell.shown(&self.unit),
        }
    }

    /// Judges it by the results under one variant.
    #[must_use]
    pub fn judge(&self, plan: &Plan, results: &Results, variant: usize) -> Finding {
        let scope = Scope { plan, results, variant, scheme: None, at: &[] };
        match &self.kind {
            Kind::Number { paper, low, high } => {
                let ours = self.value.value(&scope);
                self.number(ours, *paper, *low, *high)
            }
            Kind::Crossing { other, axis, paper, low, high } => {
                let ours = scope.crossing(&self.value, other, axis);
                let mut finding = self.number(ours, *paper, *low, *high);
                if ours.value.is_nan() && self.is_run(&scope, other) {
                    finding = Finding { verdict: Verdict::Differs, ours, shown: "never".into() };
                }
                finding
            }
            Kind::Never { other, axis } => {
                let ours = scope.crossing(&self.value, other, axis);
                if ours.value.is_finite() {
                    Finding { verdict: Verdict::Differs, ours, shown: self.shown(&ours) }
                } else if self.is_run(&scope, other) {
                    Finding { verdict: Verdict::Holds, ours, shown: "never".into() }
                } else {
                    Finding { verdict: Verdict::NotRun, ours, shown: "-".into() }
                }
            }
            Kind::Order(order) => self.order(&scope, order),
            Kind::Cell(cell) => cell.judge(&self.value, &scope, &self.unit),
        }
    }

    fn is_run(&self, scope: &Scope<'_>, other: &str) -> bool {
        let is_there = |name: &str| scope.plan.schemes.iter().any(|scheme| scheme.name == name);
        is_there(other) && self.value.scheme().is_none_or(is_there)
    }

    fn number(&self, ours: Interval, paper: Option<f64>, low: f64, high: f64) -> Finding {
        let verdict = if ours.value.is_nan() {
            Verdict::NotRun
        } else if (low..=high).contains(&ours.value) {
            Verdict::Holds
        } else {
            let expected = paper.unwrap_or(if low.is_finite() { low } else { high });
            match self.value.neutral() {
                Some(neutral) if (expected - neutral) * (ours.value - neutral) > 0.0 => Verdict::Direction,
                _ => Verdict::Differs,
            }
        };
        Finding { verdict, ours, shown: self.shown(&ours) }
    }

    fn order(&self, scope: &Scope<'_>, order: &[String]) -> Finding {
        let mut found: Vec<(&str, f64)> =
            order.iter().map(|name| (name.as_str(), self.value.of(name).value(scope).value)).collect();
        let ours = Interval { value: f64::NAN, low: f64::NAN, high: f64::NAN };
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

    fn shown(&self, ours: &Interval) -> String {
        if ours.value.is_nan() {
            return "-".into();
        }
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let mut text = format!("{}{unit}", digits(ours.value));
        if ours.low.is_finite() && ours.high.is_finite() && ours.low < ours.high {
            text = format!("{text} [{}, {}]", digits(ours.low), digits(ours.high));
        }
        text
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{plan, quantity};

    fn judge(text: &str) -> Finding {
        let plan = plan::tests::plan(quantity::tests::PLAN, false).expect("fine");
        let results = quantity::tests::made_up(&plan);
        let head = "[[claim]]\nsays = \"it\"\nsource = \"there\"\n";
        let claims = read(&format!("{head}{text}"), &plan).expect(text);
        claims[0].judge(&plan, &results, 0)
    }

    // Times in the made-up results: TCP 410, 500, 950 and TCP-10 210, 320, 950 at 10, 20, 30 %.
    const REDUCTION: &str = "value = { measure = \"mean\", scheme = \"TCP-10\", at = { load = \"10 %\" }, over = { scheme = \"TCP\" }, as = \"reduction\" }\n";

    #[test]
    fn a_number_holds_within_its_tolerance_and_keeps_its_direction() {
        for (text, verdict) in [
            ("paper = 50\nwithin = 2", Verdict::Holds),
            ("paper = 60\nwithin = 2", Verdict::Direction),
            ("paper = -10\nwithin = 2", Verdict::Differs),
            ("at-least = 48", Verdict::Holds),
            ("at-least = 49", Verdict::Direction),
            ("at-least = 40\nat-most = 50", Verdict::Holds),
        ] {
            assert_eq!(judge(&format!("{REDUCTION}{text}")).verdict, verdict, "{text}");
        }
        let shown = judge(&format!("{REDUCTION}paper = 50\nwithin = 2\nunit = \"%\"")).shown;
        assert!(shown.starts_with("48.8 % ["), "{shown}");
        let absolute = "value = { measure = \"mean\", scheme = \"TCP\", at = { load = \"10 %\" } }\npaper = 300\nwithin = 50";
        assert_eq!(judge(absolute).verdict, Verdict::Differs, "a bare number has no direction");
    }

    #[test]
    fn orders_are_told_as_found() {
        let with = |order: &str| {
            judge(&format!("value = {{ measure = \"mean\", at = {{ load = \"20 %\" }} }}\norder = {order}"))
        };
        assert_eq!(with("[\"TCP-10\", \"TCP\"]").verdict, Verdict::Holds);
        let wrong = with("[\"TCP\", \"TCP-10\"]");
        assert_eq!((wrong.verdict, wrong.shown.as_str()), (Verdict::Differs, "TCP-10 320 < TCP 500"));
    }

    #[test]
    fn crossings_are_found_or_told_to_be_missing() {
        let with = |rest: &str| {
            judge(&format!(
                "value = {{ measure = \"mean\", scheme = \"TCP-10\" }}\ncrosses = \"TCP\"\nalong = \"load\"\n{rest}"
            ))
        };
        assert_eq!(with("paper = 25\nwithin = 5").verdict, Verdict::Differs);
        assert_eq!(with("never = true").verdict, Verdict::Holds);
    }

    #[test]
    fn mistakes_are_told() {
        let plan = plan::tests::plan(quantity::tests::PLAN, false).expect("fine");
        for (text, part) in [
            ("paper = 50", "no tolerance"),
            ("within = 5", "without `paper`"),
            ("order = [\"TCP\"]", "expected two at least"),
            ("crosses = \"TCP\"\nnever = true", "without the key `along`"),
            ("crosses = \"TCP\"\nalong = \"rtt\"\nnever = true", "expected an option that the plan sweeps"),
            ("paper = 5\nwithin = 1\nreason = \"x\"", "unknown field `reason`"),
        ] {
            let text = format!("[[claim]]\nsays = \"it\"\nsource = \"there\"\n{REDUCTION}{text}");
            let error = format!("{:#}", read(&text, &plan).expect_err(&text));
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn three_digits_are_shown() {
        for (value, text) in
            [(0.0, "0"), (0.5, "0.5"), (1.0 / 3.0, "0.33"), (12.345, "12.3"), (410.4, "410"), (99.97, "100")]
        {
            assert_eq!(digits(value), text);
        }
    }
}
