//! Limits that a server applies to a hint.
//!
//! Source (BS below): Blitzstart (as in the module above).
//!
//! BS §7 asks for protection against clients that announce too much, and names two means: comparing
//! with past delivery rates, and capping the rate to one host. Neither is specified there: the
//! rules are ours. A hint is accepted up to an absolute rate, and up to a multiple of the fastest
//! delivery measured to that peer. That multiple is shared with other open connections that began
//! from the same record.
//!
//! # Limits
//!
//! - A hint of a peer without a record is accepted up to [`Guard::max_unmeasured`], the cost of a
//!   false first hint.
//! - [`SharedRecord::live`] counts connections, not their rates: `n` at once get 1, 1/2, .., 1/n.

use headstart_units::{Rate, Ratio};

use crate::history::SharedRecord;
use crate::prior::Hint;

/// Limits that a server applies to a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Absolute upper bound.
    pub max_hint: Rate,
    /// Upper bound as a multiple of the largest delivery rate measured to the peer.
    pub max_over_measured: Option<Ratio>,
    /// With `max_over_measured`, the upper bound for a peer without a measured delivery rate.
    pub max_unmeasured: Rate,
    /// Concurrent connections that began from one record share the bound.
    pub shares_hint: bool,
}

impl Guard {
    /// No limits, as in BS's experiments.
    pub const NONE: Self =
        Self { max_hint: Rate::MAX, max_over_measured: None, max_unmeasured: Rate::MAX, shares_hint: false };

    /// The accepted rate of `hint`, given the record of the peer.
    #[must_use]
    pub fn admit(&self, hint: Hint, known: Option<&SharedRecord>) -> Hint {
        let mut bandwidth = hint.bandwidth.min(self.max_hint);
        if let Some(headroom) = self.max_over_measured {
            let measured = known.map(|known| known.record.btl_bw).filter(|rate| !rate.is_zero());
            bandwidth = bandwidth.min(measured.map_or(self.max_unmeasured, |rate| rate * headroom));
        }
        if self.shares_hint
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
    fn a_guard_takes_the_smallest_of_its_bounds() {
        let known = prior_with(1000, 100).history.expect("a record of 8 Mbit/s");
        let hint = Hint { bandwidth: MBIT(80), access: Access::Lte };
        let guard = |max_hint: u64, max_over_measured: Option<Ratio>| Guard {
            max_hint: MBIT(max_hint),
            max_over_measured,
            ..Guard::NONE
        };
        let twice = Some(Ratio::new(2, 1));
        for (guard, known, expected) in [
            (Guard::NONE, Some(&known), 80),
            (Guard::NONE, None, 80),
            (guard(50, None), None, 50),
            (guard(50, twice), Some(&known), 16),
            (guard(10, twice), Some(&known), 10),
            (guard(100, Some(Ratio::new(20, 1))), Some(&known), 80),
            (Guard { max_unmeasured: MBIT(5), ..guard(50, twice) }, None, 5),
            (Guard { max_unmeasured: MBIT(5), ..guard(50, None) }, None, 50),
        ] {
            let admitted = guard.admit(hint, known);
            assert_eq!((admitted.bandwidth, admitted.access), (MBIT(expected), Access::Lte), "{guard:?}");
        }
    }

    #[test]
    fn connections_from_one_record_share_the_bound() {
        let mut known = prior_with(1000, 100).history.expect("a record");
        let hint = Hint { bandwidth: MBIT(80), access: Access::Lte };
        let guard = Guard { shares_hint: true, ..Guard::NONE };
        for (live, expected) in [(0, 80), (1, 40), (3, 20)] {
            known.live = live;
            assert_eq!(guard.admit(hint, Some(&known)).bandwidth, MBIT(expected), "{live} others");
        }
        known.live = u32::MAX;
        assert!(guard.admit(hint, Some(&known)).bandwidth < MBIT(1), "no overflow");
    }
}
