//! What becomes of a hint on its way: how finely a client tells its bandwidth, and how much of it a server believes.
//!
//! Source (BS below): Blitzstart §7, where the reviewers ask whether hints could be quantised against fingerprinting and what
//! stops a client that announces too much; the authors name comparing with past delivery rates and capping what goes to one host.
//! Neither is specified there: the rules are ours.
//!
//! - A client announces the nearest member of a geometric [`Grid`]. Nearest by ratio: half a step up is as far as half a step
//!   down.
//! - A server believes a hint up to what its [`Guard`] allows: an absolute rate, a multiple of the fastest delivery it measured
//!   to that peer, and a share of that if other connections which began from the same record are alive.
//!
//! # Limits
//!
//! - A peer without a record is believed up to [`Guard::stranger`]: the first visit of a liar costs that much.
//! - [`Known::live`] counts connections, not what they were granted: `n` that start together get 1, 1/2, .., 1/n.

use headstart_units::{Rate, Ratio};

use crate::history::Known;
use crate::prior::Hint;

/// Rates that a client may announce: `origin` times the powers of `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The smallest of them.
    pub origin: Rate,
    /// From one to the next. At most one: announce the bandwidth as it is.
    pub step: Ratio,
}

impl Grid {
    /// What a client with this bandwidth announces; the origin if it has less.
    #[must_use]
    pub fn announced(&self, bandwidth: Rate) -> Rate {
        let mut below = self.origin;
        if below.is_zero() || below * self.step <= below {
            return bandwidth;
        }
        loop {
            let above = below * self.step;
            // No progress: the step is lost in rounding, or the rates have no room left.
            if above <= below {
                return bandwidth;
            }
            if above > bandwidth {
                let square = u128::from(bandwidth.as_bytes_per_sec()).pow(2);
                let middle = u128::from(below.as_bytes_per_sec()) * u128::from(above.as_bytes_per_sec());
                return if square < middle { below } else { above };
            }
            below = above;
        }
    }
}

/// How much of a hint a server believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Never more than this.
    pub most: Rate,
    /// Nor more than this many times the fastest delivery measured to the peer.
    pub past: Option<Ratio>,
    /// What a peer is believed of whom nothing was measured, where `past` is asked for.
    pub stranger: Rate,
    /// Connections that began from one record divide what is believed.
    pub divides: bool,
}

impl Guard {
    /// Believes everything, as BS's experiments do.
    pub const NONE: Self = Self { most: Rate::MAX, past: None, stranger: Rate::MAX, divides: false };

    /// What is believed of `hint`, given what is known of the peer.
    #[must_use]
    pub fn admit(&self, hint: Hint, known: Option<&Known>) -> Hint {
        let mut bandwidth = hint.bandwidth.min(self.most);
        if let Some(headroom) = self.past {
            let measured = known.map(|known| known.record.btl_bw).filter(|rate| !rate.is_zero());
            bandwidth = bandwidth.min(measured.map_or(self.stranger, |rate| rate * headroom));
        }
        if self.divides
            && let Some(known) = known
        {
            bandwidth = bandwidth * Ratio::new(1, known.live.saturating_add(1));
        }
        Hint { bandwidth, ..hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::testing::prior_with;
    use crate::prior::Access;

    const MBIT: fn(u64) -> Rate = Rate::from_mbit_per_sec;

    #[test]
    fn the_nearest_rate_by_ratio_is_announced() {
        let grid = Grid { origin: MBIT(1), step: Ratio::new(2, 1) };
        for (bandwidth, announced) in
            [(0, 1), (1, 1), (3, 4), (11, 8), (12, 16), (45, 32), (46, 64), (50, 64), (64, 64), (1000, 1024)]
        {
            assert_eq!(grid.announced(MBIT(bandwidth)), MBIT(announced), "{bandwidth} Mbit/s");
        }
    }

    #[test]
    fn a_grid_without_steps_announces_the_bandwidth_itself() {
        for step in [Ratio::new(0, 1), Ratio::new(1, 2), Ratio::ONE] {
            assert_eq!(Grid { origin: MBIT(1), step }.announced(MBIT(50)), MBIT(50));
        }
        let step = Ratio::new(2, 1);
        assert_eq!(Grid { origin: Rate::ZERO, step }.announced(MBIT(50)), MBIT(50), "nothing to multiply");
        let one = Rate::from_bytes_per_sec(1);
        let lost_in_rounding = Grid { origin: one, step: Ratio::new(11, 10) };
        assert_eq!(lost_in_rounding.announced(MBIT(50)), MBIT(50));
        assert_eq!(Grid { origin: one, step }.announced(Rate::MAX), Rate::MAX, "it ends");
    }

    #[test]
    fn a_guard_takes_the_smallest_of_its_bounds() {
        let known = prior_with(1000, 100).history.expect("a record of 8 Mbit/s");
        let hint = Hint { bandwidth: MBIT(80), access: Access::Lte };
        let guard = |most: u64, past: Option<Ratio>| Guard { most: MBIT(most), past, ..Guard::NONE };
        let twice = Some(Ratio::new(2, 1));
        for (guard, known, expected) in [
            (Guard::NONE, Some(&known), 80),
            (Guard::NONE, None, 80),
            (guard(50, None), None, 50),
            (guard(50, twice), Some(&known), 16),
            (guard(10, twice), Some(&known), 10),
            (guard(100, Some(Ratio::new(20, 1))), Some(&known), 80),
            (Guard { stranger: MBIT(5), ..guard(50, twice) }, None, 5),
            (Guard { stranger: MBIT(5), ..guard(50, None) }, None, 50),
        ] {
            let admitted = guard.admit(hint, known);
            assert_eq!((admitted.bandwidth, admitted.access), (MBIT(expected), Access::Lte), "{guard:?}");
        }
    }

    #[test]
    fn those_who_began_from_one_record_divide_it() {
        let mut known = prior_with(1000, 100).history.expect("a record");
        let hint = Hint { bandwidth: MBIT(80), access: Access::Lte };
        let guard = Guard { divides: true, ..Guard::NONE };
        for (live, expected) in [(0, 80), (1, 40), (3, 20)] {
            known.live = live;
            assert_eq!(guard.admit(hint, Some(&known)).bandwidth, MBIT(expected), "{live} others");
        }
        known.live = u32::MAX;
        assert!(guard.admit(hint, Some(&known)).bandwidth < MBIT(1), "no overflow");
    }
}
