//! Test of the reason for a difference: the suspected cause is changed, and the claim judged again.
//!
//! ```toml
//! comes-out = { when = "copies are half as many", instead = { "Halfback" = "Halfback, 25 %" } }
//! ```
//!
//! | key | changes |
//! |---|---|
//! | `when` | nothing: what is changed, in words |
//! | `variant` | the settings: another variant of the plan, or one of its `[demonstrations]` |
//! | `measure`, `at`, `over-at` | the measure, and values of swept options (number, divisor) |
//!
//! Everything else stays, the bounds above all.
//!
//! Only one admissible change is a reason. `comes-out` is refused where it changes more than one
//! option. It is refused for an option that the paper prints (`printed` of paper.toml and of the
//! plan). It is refused as well where the set-up is known to hold fewer of the paper's claims than
//! the judge (`holds-fewer` of the variant).

use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::{Claim, Finding, Test, Verdict};
use crate::plan::Plan;
use crate::quantity::fixed;
use crate::run::Results;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ComesOutText {
    when: String,
    variant: Option<String>,
    measure: Option<String>,
    #[serde(default)]
    at: Table,
    #[serde(default)]
    over_at: Table,
}

/// The change that is made.
#[derive(Clone, Debug)]
pub struct ComesOut {
    /// In words.
    pub when: String,
    variant: Option<String>,
    test: Test,
}

/// Outcome of a claim, its demonstration included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It differs, and holds when the thing that is blamed is changed.
    ComesOut,
    /// It differs, and no experiment shows why.
    Unexplained,
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
            Self::ComesOut => "comes-out",
            Self::Unexplained => "unexplained",
            Self::Undecided => "undecided",
            Self::NotRun => "not-run",
        }
    }
}

impl ComesOutText {
    /// The reason why it is no explanation, if there is one.
    fn rejection(&self, plan: &Plan) -> Option<String> {
        let mut changed = self.variant.as_ref().map(|name| plan.changes(name)).unwrap_or_default();
        changed.extend(self.at.keys().cloned());
        changed.extend(self.over_at.keys().filter(|axis| !self.at.contains_key(*axis)).cloned());
        if let Some(option) = changed.iter().find(|option| plan.printed.contains(option)) {
            return Some(format!("the option {option} changed, which the paper prints"));
        }
        let others = usize::from(self.measure.is_some());
        if changed.len() + others > 1 {
            let options =
                if changed.is_empty() { String::new() } else { format!(" ({})", changed.join(", ")) };
            return Some(format!("{} changes{options}", changed.len() + others));
        }
        let variant = self.variant.as_ref().filter(|name| plan.holds_fewer(name));
        variant.map(|name| format!("the variant {name}, which holds fewer claims than the judge"))
    }
}

impl ComesOut {
    pub(super) fn read(text: ComesOutText, test: &Test, plan: &Plan) -> Result<Self> {
        let is_changed = text.variant.is_some()
            || text.measure.is_some()
            || !(text.at.is_empty() && text.over_at.is_empty());
        ensure!(is_changed, "found no change, expected `variant`, `measure` or `at`");
        if let Some(variant) = &text.variant {
            ensure!(
                plan.known_variants.contains(variant),
                "variant: found `{variant}`, expected one of {}",
                plan.known_variants.join(", ")
            );
        }
        if let Some(rejection) = text.rejection(plan) {
            bail!("found {rejection}, expected one change that is admissible");
        }
        let mut value = test.value.moved(fixed(&text.at, plan)?, fixed(&text.over_at, plan)?);
        if let Some(measure) = &text.measure {
            value = value.measuring(measure);
            value.check(plan)?;
        }
        let test = Test { value, ..test.clone() };
        Ok(Self { when: text.when, variant: text.variant, test })
    }
}

impl Claim {
    /// The finding with the change, if there is one.
    #[must_use]
    pub fn demonstrate(&self, plan: &Plan, results: &Results) -> Option<Finding> {
        let change = self.comes_out.as_ref()?;
        let variant = match &change.variant {
            None => Some(0),
            Some(name) => plan.variants.iter().position(|variant| variant.name == *name),
        };
        let missing = Finding { verdict: Verdict::NotRun, ours: super::UNKNOWN, shown: "-".into() };
        Some(variant.map_or(missing, |at| change.test.judge(plan, results, at, &self.unit)))
    }

    /// The outcome, from the verdict and the demonstration. One that is undecided on record stays
    /// that, whatever this run's seeds say.
    #[must_use]
    pub fn outcome(&self, verdict: Verdict, demonstration: Option<&Finding>, is_quick: bool) -> Outcome {
        match verdict {
            Verdict::NotRun => Outcome::NotRun,
            _ if self.recorded(is_quick) == Outcome::Undecided => Outcome::Undecided,
            Verdict::Holds | Verdict::Wide => Outcome::Holds,
            Verdict::Direction | Verdict::Differs => {
                let is_reached = demonstration.is_some_and(|finding| finding.verdict.holds());
                if is_reached { Outcome::ComesOut } else { Outcome::Unexplained }
            }
        }
    }

    /// The outcome that is on record.
    #[must_use]
    pub fn recorded(&self, is_quick: bool) -> Outcome {
        match (self.quick, &self.comes_out, &self.differs) {
            (Some(outcome), _, _) if is_quick => outcome,
            (_, Some(_), _) => Outcome::ComesOut,
            (_, None, Some(_)) => Outcome::Unexplained,
            (_, None, None) => Outcome::Holds,
        }
    }
}
