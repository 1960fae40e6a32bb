//! The order of trust.
//!
//! 1. **Explicit.** Somebody knows better. Nothing is taken off.
//! 2. **Past.** A transport got this through this very network, to real servers: it contains
//!    everything that lies in between, and cannot be made up by anybody else. It may be too small
//!    (nobody asked for more), which does no harm.
//! 3. **Gateway.** It knows its line, but not what else uses it or lies behind it, and gateways
//!    have been seen that answer with a constant. Only its share for payload counts
//!    ([`crate::estimate::share_of_line`]). A number that is a port's speed is a bound, not a line.
//! 4. **Wi-Fi and Ethernet** are what lies between this machine and the gateway: bounds. The
//!    smallest of them caps what 2 and 3 say (BS §3.1: "depending on the WiFi and access speed, the
//!    WiFi can be the bottleneck"); it is never used alone, for a gigabit wire before a line of 16
//!    Mbit/s would be a hint sixty times too high (BS §4.1 measures what 4 times cost).

use core::fmt;

use headstart_startup::prior::Hint;

use crate::estimate::{Answer, Estimate, Meaning, Source};

/// What will be hinted, before it is made coarse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Bandwidth and access technology.
    pub hint: Hint,
    /// Whose estimate it is.
    pub source: Source,
    /// Whose bound made it smaller.
    pub bounded_by: Option<Source>,
}

/// Why nothing will be hinted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoChoice {
    /// Nobody knew anything.
    Nothing,
    /// These are only upper bounds.
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

/// Whose answer is used.
///
/// # Errors
/// If there is none to use.
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
    let hint = Hint { bandwidth: estimate.expects, access: estimate.access };
    let tightest = bounds.min_by_key(|(_, bound)| bound.expects);
    match tightest {
        Some((by, bound)) if bound.expects < estimate.expects && estimate.meaning != Meaning::Told => {
            let hint = Hint { bandwidth: bound.expects, access: bound.access };
            Ok(Choice { hint, source: *source, bounded_by: Some(*by) })
        }
        _ => Ok(Choice { hint, source: *source, bounded_by: None }),
    }
}
