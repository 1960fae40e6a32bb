//! Whether the reason for a difference is one: the thing that is blamed is changed, and the claim
//! judged again.
//!
//! ```toml
//! comes-out = { when = "copies are half as many", instead = { "Halfback" = "Halfback, 25 %" } }
//! ```
//!
//! | key | changes |
//! |---|---|
//! | `when` | nothing: what is changed, in words |
//! | `variant` | the settings: another variant of the plan, or one of its `[demonstrations]` |
//! | `instead` | schemes, by name |
//! | `measure`, `at`, `over-at` | the measure, and values of swept options (of the number, of what it is divided by) |
//!
//! Everything else stays, the bounds above all.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use toml::Table;

use super::{Claim, Finding, Kind, Test, Verdict};
use crate::plan::Plan;
use crate::quantity::{check_scheme, fixed};
use crate::run::Results;

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ComesOutText {
    when: String,
    variant: Option<String>,
    #[serde(default)]
    instead: BTreeMap<String, String>,
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
            Self::NotRun => "not-run",
        }
    }
}

impl ComesOut {
    pub(super) fn read(text: ComesOutText, test: &Test, plan: &Plan) -> Result<Self> {
        let is_changed = text.variant.is_some()
            || text.measure.is_some()
            || !(text.instead.is_empty() && text.at.is_empty() && text.over_at.is_empty());
        ensure!(
            is_changed,
            "found nothing that is changed, expected `variant`, `instead`, `measure` or `at`"
        );
        if let Some(variant) = &text.variant {
            ensure!(
                plan.known_variants.contains(variant),
                "variant: found `{variant}`, expected one of {}",
                plan.known_variants.join(", ")
            );
        }
        for (old, new) in &text.instead {
            check_scheme(old, plan).and_then(|()| check_scheme(new, plan)).context("instead")?;
        }
        let renamed = |name: &String| text.instead.get(name).unwrap_or(name).clone();
        let mut kind = test.kind.clone();
        match &mut kind {
            Kind::Order(order) => order.iter_mut().for_each(|name| *name = renamed(name)),
            Kind::Crossing { other, .. } | Kind::Never { other, .. } => *other = renamed(other),
            Kind::Number { .. } | Kind::Cell(_) => {}
        }
        let mut value =
            test.value.renamed(renamed).moved(fixed(&text.at, plan)?, fixed(&text.over_at, plan)?);
        if let Some(measure) = &text.measure {
            value = value.measuring(measure);
            value.check(plan)?;
        }
        Ok(Self { when: text.when, variant: text.variant, test: Test { value, kind } })
    }
}

impl Claim {
    /// What the changed thing gives, if there is one.
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

    /// The outcome, from the verdict and the demonstration.
    #[must_use]
    pub fn outcome(&self, verdict: Verdict, demonstration: Option<&Finding>) -> Outcome {
        match verdict {
            Verdict::Holds => Outcome::Holds,
            Verdict::NotRun => Outcome::NotRun,
            Verdict::Direction | Verdict::Differs => {
                let comes_out = demonstration.is_some_and(|finding| finding.verdict == Verdict::Holds);
                if comes_out { Outcome::ComesOut } else { Outcome::Unexplained }
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
