//! The packets of one probe: when they left, and what delay they met (PCP §3.1).

use headstart_units::{Bytes, Rate, Span, Time};

use crate::event::Sent;
use crate::path::Trend;

/// Packets that ask for a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    rate: Rate,
    /// When the first and the last one left; `None` before the first.
    left_at: Option<(Time, Time)>,
    /// Bytes that left after the first packet.
    bytes: Bytes,
    trend: Trend,
}

impl Train {
    /// A train that asks for `rate` and has not begun to leave.
    pub fn new(rate: Rate) -> Self {
        Self { rate, left_at: None, bytes: Bytes::ZERO, trend: Trend::default() }
    }

    /// The rate it asks for.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// What its acks have shown of the delay along it.
    pub fn trend(&self) -> &Trend {
        &self.trend
    }

    /// Its next packet leaves.
    pub fn on_sent(&mut self, sent: &Sent) {
        match &mut self.left_at {
            None => self.left_at = Some((sent.now, sent.now)),
            Some((_, last)) => {
                *last = sent.now;
                self.bytes += sent.bytes;
            }
        }
    }

    /// What left at `sent_at` took `rtt`: one of its packets, or another.
    pub fn on_sample(&mut self, sent_at: Time, rtt: Span) {
        if self.left_at.is_some_and(|(first, last)| (first..=last).contains(&sent_at)) {
            self.trend.add(sent_at, rtt);
        }
    }

    /// Its first packet has left.
    pub fn has_left(&self) -> bool {
        self.left_at.is_some()
    }

    /// What left at `sent_at` is of the train or later: its loss speaks against the rate asked for.
    pub fn has_begun(&self, sent_at: Time) -> bool {
        self.left_at.is_some_and(|(first, _)| sent_at >= first)
    }

    /// What left at `sent_at` did not leave before its last packet so far.
    pub fn has_arrived(&self, sent_at: Time) -> bool {
        self.left_at.is_some_and(|(_, last)| sent_at >= last)
    }

    /// The rate at which it really left, at most the one it asked for.
    pub fn shown(&self) -> Rate {
        self.left_at.map_or(Rate::ZERO, |(first, last)| self.bytes / last.since(first)).min(self.rate)
    }
}
