//! Plans in words: one line for logs and people.

use core::fmt;

use headstart_units::Time;

use super::{LinkPlan, LinkRate, PathPlan};
use crate::changing::LinkChange;
use crate::direction::Direction;

impl PathPlan {
    /// One direction in one line.
    #[must_use]
    pub fn describe(&self, direction: Direction) -> String {
        let words: Vec<String> = self.direction(direction).iter().map(ToString::to_string).collect();
        words.join(", then ")
    }
}

impl fmt::Display for PathPlan {
    /// Both directions in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (down, up) = (self.describe(Direction::Down), self.describe(Direction::Up));
        write!(f, "down: {down}; up: {up}")?;
        if self.access.iter().any(|delay| !delay.is_zero()) {
            let delays: Vec<String> = self.access.iter().map(ToString::to_string).collect();
            write!(f, "; access: {}", delays.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for LinkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rate {
            LinkRate::Constant(rate) => write!(f, "{rate}")?,
            LinkRate::Trace(trace) => write!(f, "trace of {} on average", trace.mean_rate())?,
        }
        write!(f, ", delay {}, buffer {} {}", self.delay, self.limit, self.discipline)?;
        if self.router.is_some() {
            f.write_str(", behind a router that takes part")?;
        }
        for (at, change) in &self.changes {
            at_time(f, *at)?;
            match change {
                LinkChange::Rate(rate) => write!(f, "rate {rate}")?,
                LinkChange::Delay(delay) => write!(f, "delay {delay}")?,
            }
        }
        Ok(())
    }
}

/// Writes the time of a change, with a comma before it.
///
/// # Errors
/// If `f` cannot be written to.
pub fn at_time(f: &mut fmt::Formatter<'_>, at: Time) -> fmt::Result {
    write!(f, ", at {:.3} s ", at.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::Order;
    use crate::limit::Limit;
    use crate::plan::ElementPlan;
    use headstart_units::{Bytes, Packets, Rate, Ratio, Span};

    #[test]
    fn a_path_prints_itself_in_one_line() {
        let limit = Limit::packets(Packets::new(104));
        let mut plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(25), Span::from_millis(50), limit);
        let change = (Time::from_millis(1500), LinkChange::Rate(Rate::from_mbit_per_sec(5)));
        plan.up = vec![ElementPlan::Link(LinkPlan {
            changes: vec![change],
            ..LinkPlan::new(Rate::from_mbit_per_sec(1), Span::from_millis(25), Limit::bytes(Bytes::new(9000)))
        })];
        plan.down.push(ElementPlan::loss(Ratio::percent(1)));
        plan.down.push(ElementPlan::jitter(Span::from_millis(2), Order::Free));
        plan.access.push(Span::from_millis(5));
        assert_eq!(
            plan.to_string(),
            "down: 25 Mbit/s, delay 25 ms, buffer 104 packets drop-tail, then loss 1 %, then jitter 2 ms that \
             reorders; up: 1 Mbit/s, delay 25 ms, buffer 9 kB drop-tail, at 1.500 s rate 5 Mbit/s; access: 0 ns, 5 ms"
        );
    }
}
