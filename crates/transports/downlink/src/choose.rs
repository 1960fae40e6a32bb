//! Priority of the sources.
//!
//! 1. **Explicit.** The user's value, taken as it is.
//! 2. **Past.** A transport achieved this through this very network, to real servers: it includes
//!    every link in between, and no other host can forge it. It may be too low, if no transfer
//!    needed more, which does no harm.
//! 3. **Ethernet** is the link between this host and the gateway: a bound, which caps 2. It is
//!    never used alone: a gigabit link before a line of 16 Mbit/s would be a hint sixty times too
//!    high. BS §4.1 measures the cost of a factor of 4.

use core::fmt;

use headstart_startup::prior::Hint;

use crate::estimate::{Answer, Estimate, Meaning, Source};

/// The hint before quantisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Bandwidth and access technology.
    pub hint: Hint,
    /// Source of the estimate.
    pub source: Source,
    /// Source of the bound that reduced it, if any.
    pub bounded_by: Option<Source>,
}

/// Reasons to send no hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoChoice {
    /// No source has an estimate.
    Nothing,
    /// The sources have upper bounds only.
    OnlyBounds(Vec<Source>),
}

impl fmt::Display for NoChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no hint: no estimator knows anything about this link"),
            Self::OnlyBounds(sources) => {
                let names: Vec<&str> = sources.iter().map(|source| source.name()).collect();
                write!(
                    f,
                    "no hint: there are only upper bounds ({}), and the access line behind them is unknown",
                    names.join(", ")
                )
            }
        }
    }
}

/// Selects the estimate to use.
///
/// # Errors
/// If there is none.
pub fn choose(answers: &[Answer]) -> Result<Choice, NoChoice> {
    let usable = |answer: &Answer| answer.outcome.clone().ok().map(|estimate| (answer.source, estimate));
    let usable: Vec<(Source, Estimate)> = answers.iter().filter_map(usable).collect();
    let bounds = usable.iter().filter(|(_, estimate)| estimate.meaning == Meaning::Bound);
    let of = |wanted: Source| {
        let is_it = |(source, estimate): &&(Source, Estimate)| {
            *source == wanted && estimate.meaning != Meaning::Bound
        };
        usable.iter().find(is_it)
    };
    let Some((source, estimate)) = Source::ALL.into_iter().find_map(of) else {
        let bounds: Vec<Source> = bounds.map(|(source, _)| *source).collect();
        return Err(if bounds.is_empty() { NoChoice::Nothing } else { NoChoice::OnlyBounds(bounds) });
    };
    let hint = Hint { bandwidth: estimate.expected, access: estimate.access };
    let tightest = bounds.min_by_key(|(_, bound)| bound.expected);
    match tightest {
        Some((by, bound)) if bound.expected < estimate.expected && estimate.meaning != Meaning::Explicit => {
            let hint = Hint { bandwidth: bound.expected, access: bound.access };
            Ok(Choice { hint, source: *source, bounded_by: Some(*by) })
        }
        _ => Ok(Choice { hint, source: *source, bounded_by: None }),
    }
}
