//! The worth of a claim that holds.
//!
//! A claim that cannot fail shows nothing. Each is judged once more with its scheme replaced by the
//! nearest other (`[replaced]` of paper.toml, or of a figure's plan). If it holds then as well, it
//! is no evidence for the scheme. A scheme is not faster than itself: where the only bound is "no
//! difference", a number that is equal to it does not hold there.
//!
//! ```toml
//! [replaced]               # the first that a claim names is the scheme that it is about
//! "Halfback" = "JumpStart"
//! "JumpStart" = "TCP-10"
//! ```

use serde::Serialize;

use super::{Claim, Finding, Verdict};
use crate::plan::{Plan, Replacement};
use crate::run::Results;

/// The worth of a claim that holds; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// A parameter was chosen by its number.
    Fitted,
    /// It holds with its scheme replaced as well.
    NoEvidence,
    /// No scheme that it names was replaced.
    NotReplaced,
    /// Its interval reaches beyond the bounds.
    Wide,
    /// It holds with the whole interval, and does not with its scheme replaced.
    Evidence,
}

impl Standing {
    /// As it is written in a file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::NoEvidence => "no-evidence",
            Self::NotReplaced => "not-replaced",
            Self::Wide => "wide",
            Self::Evidence => "evidence",
        }
    }
}

impl Claim {
    /// The scheme that the claim is about, of those that are replaced.
    #[must_use]
    pub fn subject<'a>(&self, plan: &'a Plan) -> Option<&'a str> {
        plan.subject(&self.test.schemes())
    }

    /// A scheme is one of those that the claim names.
    #[must_use]
    pub fn names(&self, scheme: &str) -> bool {
        self.test.schemes().contains(&scheme)
    }

    /// The verdict with its scheme replaced, where that was run.
    #[must_use]
    pub fn replaced(&self, plan: &Plan, runs: &[(Replacement, Results)]) -> Option<Finding> {
        let subject = self.subject(plan)?;
        let (replacement, results) = runs.iter().find(|(one, _)| one.subject == subject)?;
        let mut finding = self.judge(&replacement.plan, results, 0);
        if finding.verdict.holds() && self.test.is_at_bound_without_difference(finding.ours.value) {
            finding.verdict = Verdict::Differs;
        }
        Some(finding)
    }

    /// The worth of a claim that holds; `None` if it does not, or if an unknown `replaced` decides.
    #[must_use]
    pub fn standing(&self, verdict: Verdict, replaced: Option<&Finding>) -> Option<Standing> {
        if !verdict.holds() {
            return None;
        }
        Some(if self.fitted.is_some() {
            Standing::Fitted
        } else {
            match replaced.map(|found| found.verdict) {
                None | Some(Verdict::NotRun) => Standing::NotReplaced,
                Some(one) if one.holds() => Standing::NoEvidence,
                Some(_) if verdict == Verdict::Wide => Standing::Wide,
                Some(_) => Standing::Evidence,
            }
        })
    }
}
