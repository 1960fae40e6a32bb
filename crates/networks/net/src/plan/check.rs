//! The limits of every value of a plan.

use headstart_units::{Bytes, Ratio, Span};

use super::{LinkPlan, LinkRate, PathPlan};
use crate::changing::LinkChange;
use crate::direction::Direction;
use crate::queue::QueueDiscipline;
use crate::seed::Seed;

/// The longest round-trip time, and the longest jitter.
const LONGEST: Span = Span::from_secs(60);
/// Size of the largest packet assumed on a path.
pub const FULL_PACKET: Bytes = Bytes::new(1500);
const A_MINUTE: &str = "a minute at most";
const ALL: &str = "100 % at most";

/// The error of a value out of its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{element}, {quantity}: found {found}, expected {expected}")]
pub struct PlanError {
    /// The element's name as [`PathPlan::elements`] gives it, or `path`.
    pub element: String,
    /// The quantity: `rate`, `rtt`, `delay`, `share`, `bound`, `burst`, `changes`, `queue`,
    /// `direction` or `access`.
    pub quantity: &'static str,
    /// The value found.
    pub found: String,
    /// Limit of the value.
    pub expected: &'static str,
}

/// Quantity, value and limit.
pub type Refusal = (&'static str, String, &'static str);

impl PathPlan {
    /// Checks every value.
    ///
    /// # Errors
    /// The first value out of its limits, in this order: the round-trip times, then the elements in
    /// the order of [`Self::elements`].
    pub fn check(&self) -> Result<(), PlanError> {
        let path = |refusal| Err(error("path", refusal));
        if self.access.is_empty() {
            return path(("access", "no class of hosts".to_owned(), "one at least"));
        }
        // The time between the hosts; further links have their own delay, which is checked below.
        let first = |direction| self.first_link(direction).map_or(Span::ZERO, |link| link.delay);
        for access in &self.access {
            let rtt = first(Direction::Down) + first(Direction::Up) + *access * 2;
            if rtt > LONGEST {
                return path(("rtt", rtt.to_string(), A_MINUTE));
            }
        }
        for placed in self.elements(Seed(0)) {
            placed.plan.check().map_err(|refusal| error(&placed.name, refusal))?;
        }
        Ok(())
    }
}

fn error(element: &str, (quantity, found, expected): Refusal) -> PlanError {
    PlanError { element: element.to_owned(), quantity, found, expected }
}

impl LinkPlan {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.rate.mean().is_zero() {
            return Err(("rate", "0".to_owned(), "more than 0"));
        }
        checked_time("delay", self.delay)?;
        let beside = |other: &str| ("changes", format!("a rate or a delay with {other}"), "one or the other");
        if self.discipline == QueueDiscipline::Netem
            && (!self.changes.is_empty() || matches!(self.rate, LinkRate::Trace(_)))
        {
            return Err(("queue", "netem before a changing rate".to_owned(), "a constant rate and delay"));
        }
        match (self.changes.is_empty(), &self.rate, &self.router) {
            (false, LinkRate::Trace(_), _) => return Err(beside("a trace")),
            (false, _, Some(_)) => return Err(beside("a router that takes part")),
            _ => {}
        }
        self.changes.iter().try_for_each(|(_, change)| match change {
            LinkChange::Rate(_) => Ok(()),
            LinkChange::Delay(delay) => checked_time("changes", *delay),
        })
    }
}

/// A minute at most.
///
/// # Errors
/// With a longer time.
pub fn checked_time(quantity: &'static str, time: Span) -> Result<(), Refusal> {
    if time > LONGEST { Err((quantity, time.to_string(), A_MINUTE)) } else { Ok(()) }
}

/// All packets at most.
///
/// # Errors
/// With a larger share.
pub fn checked_share(share: Ratio) -> Result<(), Refusal> {
    // More than all of a million packets.
    if share.of(1_000_000) > 1_000_000 { Err(("share", share.to_string(), ALL)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::Order;
    use crate::limit::Limit;
    use crate::plan::ElementPlan;
    use crate::{duplicate, loss, option_filter};
    use headstart_units::{Rate, Time};

    fn refused(change: impl FnOnce(&mut PathPlan)) -> String {
        let mut plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(10), Span::from_millis(40), Limit::NONE);
        assert_eq!(plan.check(), Ok(()));
        change(&mut plan);
        plan.check().expect_err("no path can be so").to_string()
    }

    fn first(plan: &mut PathPlan) -> &mut LinkPlan {
        match &mut plan.down[0] {
            ElementPlan::Link(link) => link,
            _ => unreachable!("a dumbbell begins with a link"),
        }
    }

    #[test]
    fn an_invalid_value_is_refused_with_its_element_and_its_limit() {
        let dark = LinkRate::Constant(Rate::ZERO);
        assert_eq!(
            refused(|plan| first(plan).rate = dark.clone()),
            "bottleneck, rate: found 0, expected more than 0"
        );
        let loss = ElementPlan::loss(Ratio::percent(101));
        assert_eq!(
            refused(|plan| plan.up.push(loss)),
            "random loss back, share: found 101 %, expected 100 % at most"
        );
        let later = (Time::ZERO, Ratio::percent(200));
        let loss = ElementPlan::from(loss::Params { share: Ratio::percent(1), changes: vec![later] });
        assert!(refused(|plan| plan.down.push(loss)).starts_with("random loss, share: found 200 %"));
        let jitter = ElementPlan::jitter(Span::from_secs(61), Order::Kept);
        assert_eq!(
            refused(|plan| plan.down.push(jitter)),
            "jitter, bound: found 61 s, expected a minute at most"
        );
        let twice = duplicate::Params { share: Ratio::percent(101) };
        assert!(refused(|plan| plan.down.push(twice.into())).starts_with("dupl"));
        let filter =
            option_filter::Params { action: option_filter::Action::Drop, share: Ratio::percent(101) };
        assert_eq!(
            refused(|plan| plan.down.push(filter.into())),
            "option filter, share: found 101 %, expected 100 % at most"
        );
        assert_eq!(
            refused(|plan| plan.access[0] = Span::from_secs(30)),
            "path, rtt: found 60.04 s, expected a minute at most"
        );
        assert!(refused(|plan| plan.access.clear()).starts_with("path, access: found no class"));
    }

    #[test]
    fn a_link_changes_by_its_plan_or_by_its_trace_not_by_both() {
        let change = (Time::ZERO, LinkChange::Rate(Rate::ZERO));
        let traced = refused(|plan| {
            first(plan).changes.push(change);
            first(plan).rate = LinkRate::Trace(std::sync::Arc::new("1\n2\n".parse().expect("a trace")));
        });
        assert_eq!(
            traced,
            "bottleneck, changes: found a rate or a delay with a trace, expected one or the other"
        );
        let netem = refused(|plan| {
            first(plan).changes.push(change);
            first(plan).discipline = QueueDiscipline::Netem;
        });
        assert_eq!(
            netem,
            "bottleneck, queue: found netem before a changing rate, expected a constant rate and delay"
        );
        let rcp = headstart_startup::rcp::Params::new(Rate::from_mbit_per_sec(10));
        let routed = refused(|plan| {
            first(plan).changes.push(change);
            first(plan).router = Some(crate::routed_link::RouterPlan::Rcp(rcp));
        });
        assert!(routed.contains("with a router"), "{routed}");
    }
}
