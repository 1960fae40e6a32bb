//! A scheme's own first recovery: the window follows the delivered part of the first flight.
//!
//! The size of a first flight is an estimate, and after a loss only its delivered part is evidence
//! of the path. While losses are repaired the window is a share of that part, and rises as more
//! arrives. It never blocks the repair: each event admits one segment more than is in flight.
//!
//! Source (JS below): D. Liu, M. Allman, S. Jin, L. Wang, "Congestion Control Without a Startup
//! Phase", PFLDNeT 2007. The window at the end of the recovery is (D - R)/2, where D is the data
//! sent in the first flight and R the data retransmitted.
//!
//! # Deviations
//!
//! - D - R is counted as the originals that were acknowledged. It is the same number when each lost
//!   segment is retransmitted once, and it is right when a retransmission was spurious or lost.
//! - The rule is for the end of the recovery. Here the share holds from the first loss on, so that
//!   the window does not jump when the recovery ends; one segment per event is packet conservation
//!   (RFC 6937 §3).

use headstart_units::{Bytes, Ratio};

use crate::event::{Ack, Congestion};

/// The window after a failed start, as a share of the delivered bytes: JS's half.
pub const WINDOW_AFTER_LOSS: Ratio = Ratio::new(1, 2);

/// RFC 5681 §3.1: never below two segments after a loss.
const MINIMUM_SEGMENTS: u64 = 2;

/// Counts the delivered bytes, and governs the window from the first loss until the repair is done.
#[derive(Clone, Copy, Debug)]
pub struct FirstRecovery {
    mss: Bytes,
    share: Ratio,
    /// Bytes of the first flight delivered by their original transmissions.
    delivered: Bytes,
    is_under_way: bool,
    /// Bytes in flight after the last event of the recovery.
    in_flight: Bytes,
}

impl FirstRecovery {
    /// A recovery that may come. After a loss the window is `share` of the delivered bytes.
    #[must_use]
    pub const fn new(mss: Bytes, share: Ratio) -> Self {
        Self { mss, share, delivered: Bytes::ZERO, is_under_way: false, in_flight: Bytes::ZERO }
    }

    /// Counts a loss; the first one opens the recovery.
    pub fn on_loss(&mut self, signal: &Congestion) {
        self.is_under_way = true;
        self.in_flight = signal.in_flight;
    }

    /// Counts every ack from the first on. Returns true if this one ended the recovery.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        self.delivered += ack.first_flight_acked;
        self.in_flight = ack.in_flight;
        let ends = self.is_under_way && !ack.in_recovery;
        self.is_under_way &= ack.in_recovery;
        ends
    }

    /// True while losses are being repaired.
    #[must_use]
    #[inline]
    pub const fn is_under_way(&self) -> bool {
        self.is_under_way
    }

    /// The share of the delivered bytes: the window to hand over after the recovery.
    #[must_use]
    pub fn final_window(&self) -> Bytes {
        (self.delivered * self.share).max(self.min_window())
    }

    /// The minimum window after a loss, in bytes.
    #[must_use]
    pub fn min_window(&self) -> Bytes {
        self.mss * MINIMUM_SEGMENTS
    }

    /// The window in bytes while losses are being repaired.
    #[must_use]
    pub fn window(&self) -> Bytes {
        self.final_window().max(self.in_flight + self.mss)
    }

    /// Bytes of the first flight delivered by their original transmissions.
    #[must_use]
    pub const fn delivered(&self) -> Bytes {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{MSS, acked, lost};
    use headstart_units::Time;

    fn ack(delivered: u64, in_flight: u64, in_recovery: bool) -> Ack {
        let first_flight_acked = MSS * delivered;
        Ack { first_flight_acked, in_flight: MSS * in_flight, in_recovery, ..acked(Time::ZERO, MSS) }
    }

    #[test]
    fn the_window_is_half_of_the_delivered_bytes_and_never_blocks_the_repair() {
        let mut recovery = FirstRecovery::new(MSS, WINDOW_AFTER_LOSS);
        assert!(!recovery.on_ack(&ack(20, 76, false)));
        recovery.on_loss(&Congestion { in_flight: MSS * 76, ..lost(Time::ZERO, MSS * 4) });
        assert_eq!(recovery.window(), MSS * 77, "one segment may leave");
        assert!(!recovery.on_ack(&ack(30, 10, true)));
        assert_eq!(recovery.window(), MSS * 25, "half of the 50 that got through");
        assert!(!recovery.on_ack(&ack(10, 0, true)));
        assert_eq!(recovery.window(), MSS * 30, "it rises as more arrives");
        assert!(recovery.on_ack(&ack(0, 0, false)), "the repair is done");
        assert_eq!(recovery.final_window(), MSS * 30);
        assert!(!recovery.is_under_way());
    }

    #[test]
    fn the_window_is_two_segments_at_least_without_any_delivery() {
        let mut recovery = FirstRecovery::new(MSS, WINDOW_AFTER_LOSS);
        recovery.on_loss(&Congestion { in_flight: Bytes::ZERO, ..lost(Time::ZERO, MSS * 10) });
        assert_eq!(recovery.window(), MSS * 2);
    }
}
