//! The share of marks, and the response to them, as in Linux's BBRv3.

use headstart_units::{Bytes, Ratio};

use crate::event::Ack;

/// The share of marks, as Linux's BBRv3 averages it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// The average, in 2^-16.
    pub(super) average: u32,
    /// The share of the last whole round, in 2^-16.
    share: u32,
    acked: Bytes,
    marked: Bytes,
    /// The transport reported a mark since the last ack.
    is_signalled: bool,
    pub(super) in_loss_round: bool,
    /// Consecutive rounds with at least half of their bytes marked.
    pub(super) full_rounds: u8,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            average: MARK_ONE,
            share: 0,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
            is_signalled: false,
            in_loss_round: false,
            full_rounds: 0,
        }
    }
}

impl Marks {
    pub(super) fn on_signal(&mut self) {
        self.is_signalled = true;
    }

    pub(super) fn on_ack(&mut self, ack: &Ack, mss: Bytes, begins_round: bool) {
        let least = if self.is_signalled { mss.min(ack.newly_acked) } else { Bytes::ZERO };
        let marked = ack.marked.max(least);
        self.is_signalled = false;
        self.acked += ack.newly_acked;
        self.marked += marked;
        self.in_loss_round |= !marked.is_zero();
        if begins_round {
            let share =
                u128::from(self.marked.get()) * u128::from(MARK_ONE) / u128::from(self.acked.get().max(1));
            self.share = share.min(u128::from(MARK_ONE)) as u32;
            self.average = self.average - self.average / 16 + self.share / 16;
            self.full_rounds = if self.is_half() { self.full_rounds.saturating_add(1) } else { 0 };
            (self.acked, self.marked) = (Bytes::ZERO, Bytes::ZERO);
        }
    }

    /// True if at least half of the last round was marked.
    pub(super) const fn is_half(&self) -> bool {
        self.share >= MARK_ONE / 2
    }

    /// `bytes` reduced by a third of the average.
    pub(super) fn cut(&self, bytes: Bytes) -> Bytes {
        bytes.saturating_sub(bytes * Ratio::new(self.average, MARK_ONE * 3))
    }
}

pub(super) const MARK_ONE: u32 = 1 << 16;
