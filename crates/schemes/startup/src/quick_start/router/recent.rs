//! `recent_qs_approvals`: the sum of recent grants, in constant memory.
//!
//! Source: QS §7.1. Grants are added up in bins, sixteen of which make up the memory; a bin expires
//! when its last instant is older than the memory. So a grant counts for at least the memory, and a
//! sixteenth more at most.
//!
//! The authors' own router in ns-2 (`qsagent.cc`) has one bin: the present interval and the one
//! before it count, so a grant counts for between once and twice the memory. [`Recent::new`] takes
//! the number of bins, so both can be had.

use headstart_units::{Rate, Span, Time};

/// Largest number of bins.
pub const MAX_BINS: u8 = 16;
const ROOM: usize = MAX_BINS as usize + 1;

/// A sum over a sliding memory.
#[derive(Clone, Copy, Debug)]
pub struct Recent {
    bin: Span,
    /// One bin more than the memory has: the present one is not full.
    bins: [u64; ROOM],
    used: usize,
    sum: u64,
    /// The present bin, and its end.
    at: usize,
    ends_at: Time,
}

impl Recent {
    /// A memory without grants; each will count for `memory`, divided into `bins` (1 to
    /// [`MAX_BINS`]).
    #[must_use]
    pub fn new(memory: Span, bins: u8) -> Self {
        let bins = bins.clamp(1, MAX_BINS);
        let bin = Span::from_nanos(memory.as_nanos().div_ceil(u64::from(bins)).max(1));
        let used = usize::from(bins) + 1;
        Self { bin, bins: [0; ROOM], used, sum: 0, at: 0, ends_at: Time::ZERO + bin }
    }

    /// Adds a grant of `rate`.
    pub fn add(&mut self, now: Time, rate: Rate) {
        self.advance(now);
        // Capped, so that the sum of all bins cannot overflow.
        let amount = rate.as_bytes_per_sec().min(u64::MAX / 64 - self.bins[self.at].min(u64::MAX / 64));
        self.bins[self.at] += amount;
        self.sum += amount;
    }

    /// The sum of the grants that count now.
    pub fn sum(&mut self, now: Time) -> Rate {
        self.advance(now);
        Rate::from_bytes_per_sec(self.sum)
    }

    fn advance(&mut self, now: Time) {
        if now < self.ends_at {
            return;
        }
        let ended = now.since(self.ends_at).as_nanos() / self.bin.as_nanos() + 1;
        for _ in 0..ended.min(self.used as u64) {
            self.at = (self.at + 1) % self.used;
            self.sum -= self.bins[self.at];
            self.bins[self.at] = 0;
        }
        self.ends_at += self.bin * ended;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list of all grants: those within the memory count, those a bin older do not.
        #[test]
        fn a_grant_counts_for_the_memory_and_a_bin_more_at_most(
            bins in 1_u8..=16,
            grants in proptest::collection::vec((0_u64..40, 0_u64..1_000_000), 0..80), memory in 1_u64..200,
        ) {
            let mut recent = Recent::new(Span::from_millis(memory), bins);
            let memory_ns = memory * 1_000_000;
            let mut now = 0;
            let mut list = alloc::vec![];
            for (gap, rate) in grants {
                now += gap * 1_000_000;
                list.push((now, rate));
                recent.add(Time::from_nanos(now), Rate::from_bytes_per_sec(rate));
                let sum_within = |age: u64| -> u64 {
                    list.iter().filter(|(at, _)| now - at <= age).map(|(_, rate)| rate).sum()
                };
                let found = recent.sum(Time::from_nanos(now)).as_bytes_per_sec();
                prop_assert!(found >= sum_within(memory_ns - 1));
                prop_assert!(found <= sum_within(memory_ns + memory_ns.div_ceil(u64::from(bins)) + 16));
            }
            prop_assert_eq!(recent.sum(Time::from_nanos(now + 3 * memory_ns + 16)), Rate::ZERO);
        }
    }
}
