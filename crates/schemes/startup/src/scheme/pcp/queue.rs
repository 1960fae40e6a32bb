//! Rate compensation: drains a standing queue (PCP §3.2), unless that has no effect (§3.5).

use headstart_units::{Rate, Ratio, Span};

use super::Params;

/// The queue that the base traffic meets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    /// The smallest RTT of this round: the delay common to all of its packets.
    round_min: Span,
    /// The queue that was last compensated; zero: there was none.
    last: Span,
    /// Consecutive ineffective compensations.
    fruitless: u32,
    /// This round's data left before the last compensation.
    is_stale: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self { round_min: Span::MAX, last: Span::ZERO, fruitless: 0, is_stale: false }
    }
}

impl Queue {
    /// A packet of this round took `rtt`.
    #[inline]
    pub fn on_sample(&mut self, rtt: Span) {
        self.round_min = self.round_min.min(rtt);
    }

    /// A round has ended: returns the compensated base rate. At base x min/met the flow has no more
    /// in flight than the path holds without a queue.
    pub fn on_round(&mut self, params: &Params, base: Rate, min_rtt: Span) -> Rate {
        let met = core::mem::replace(&mut self.round_min, Span::MAX);
        let is_stale = core::mem::replace(&mut self.is_stale, false);
        if is_stale || met == Span::MAX {
            return base;
        }
        let waited = met.saturating_sub(min_rtt);
        if waited <= min_rtt * params.queue_slack {
            (self.last, self.fruitless) = (Span::ZERO, 0);
            return base;
        }
        let is_fruitless = !self.last.is_zero() && waited >= self.last;
        self.fruitless = if is_fruitless { self.fruitless + 1 } else { 0 };
        (self.last, self.is_stale) = (waited, true);
        let share = if self.fruitless < params.patience { Ratio::ONE } else { params.tit_for_tat };
        let (base, drained) = (base.as_bytes_per_sec(), (base * min_rtt / met).as_bytes_per_sec());
        Rate::from_bytes_per_sec(base - share.of(base - drained))
    }
}
