//! Ack aggregation: bytes acknowledged above the expected number, for which the window leaves room.
//!
//! Source: Linux's tcp_bbr.c (bbr_update_ack_aggregation, bbr_ack_aggregation_cwnd), since 5.1.
//! Needed on Wi-Fi and with delayed acks: a window of twice the BDP may be exhausted before the
//! next aggregate arrives.

use headstart_units::{Bytes, Rate, Span, Time};

use crate::event::Ack;
use crate::path::bdp;

/// The largest aggregate of the last five to ten rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregation {
    /// Time since which acks have exceeded the estimated bandwidth.
    since: Time,
    /// Bytes acknowledged since then.
    acked: Bytes,
    /// The largest aggregates of the current and of the previous rounds.
    largest: [Bytes; 2],
    rounds: u32,
}

impl Aggregation {
    /// An ack with a rate sample; `btl_bw` is the estimate after it; `window` caps an aggregate.
    pub fn on_ack(&mut self, ack: &Ack, begins_round: bool, btl_bw: Rate, window: Bytes) {
        if begins_round {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.largest = [Bytes::ZERO, self.largest[0]];
            }
        }
        let mut expected = bdp(btl_bw, ack.now.since(self.since)).unwrap_or(Bytes::ZERO);
        if self.acked <= expected || self.acked >= LONGEST {
            self.restart(ack.now);
            expected = Bytes::ZERO;
        }
        self.acked += ack.newly_acked;
        let lump = self.acked.saturating_sub(expected).min(window);
        self.largest[0] = self.largest[0].max(lump);
    }

    /// The next ack begins a new aggregate, as after idleness.
    pub fn restart(&mut self, now: Time) {
        self.since = now;
        self.acked = Bytes::ZERO;
    }

    /// Bytes to add to the window of twice the BDP.
    #[must_use]
    pub fn room(&self, btl_bw: Rate) -> Bytes {
        let most = bdp(btl_bw, LONGEST_SILENCE).unwrap_or(Bytes::ZERO);
        self.largest[0].max(self.largest[1]).min(most)
    }
}

/// bbr_extra_acked_win_rtts.
const ROUNDS: u32 = 5;
/// bbr_extra_acked_max_us.
const LONGEST_SILENCE: Span = Span::from_millis(100);
/// An epoch ends at this many bytes (bbr_ack_epoch_acked_reset_thresh: 2^20 segments).
const LONGEST: Bytes = Bytes::new(1460 << 20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::acked;

    const BTL_BW: Rate = Rate::from_bytes_per_sec(100_000);

    fn apply(aggregation: &mut Aggregation, acks: &[(u64, u64)], begins_round: bool) {
        for &(at, bytes) in acks {
            let ack = acked(Time::from_millis(at), Bytes::new(bytes));
            aggregation.on_ack(&ack, begins_round, BTL_BW, Bytes::new(50_000));
        }
    }

    type Row = (&'static [(u64, u64)], u64, &'static str);

    /// 100 bytes/ms are expected; the excess is the aggregate.
    #[test]
    fn the_allowance_is_the_largest_aggregate() {
        #[rustfmt::skip]
        let rows: [Row; 5] = [
            // acks (ms, bytes)                              room    why
            (&[(10, 1000), (20, 1000), (30, 1000)],  1000, "as fast as expected: the ack itself"),
            (&[(10, 1000), (10, 1000), (10, 1000)],  3000, "three at once"),
            (&[(10, 1000), (15, 1000), (20, 1000)],  2000, "3000 bytes, 1000 expected"),
            (&[(10, 3000), (50, 1000)],  3000, "a lump is over when it was to be expected"),
            (&[(10, 90_000)],  10_000, "no more than 100 ms of the bandwidth"),
        ];
        for (acks, room, why) in rows {
            let mut aggregation = Aggregation::default();
            apply(&mut aggregation, acks, false);
            assert_eq!(aggregation.room(BTL_BW), Bytes::new(room), "{why}");
        }
    }

    #[test]
    fn an_aggregate_expires_after_five_to_ten_rounds() {
        let mut aggregation = Aggregation::default();
        apply(&mut aggregation, &[(10, 5000)], false);
        let kept = (1..=12).filter(|n| {
            apply(&mut aggregation, &[(1000 * n, 1000)], true);
            aggregation.room(BTL_BW) == Bytes::new(5000)
        });
        assert_eq!(kept.count(), 9);
    }
}
