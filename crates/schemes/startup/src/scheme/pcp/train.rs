//! The packets of one probe: sending times and delays (PCP §3.1).

use headstart_units::{Bytes, Rate, Span, Time};

use crate::event::Sent;
use crate::path::Trend;

#[derive(Clone, Copy, Debug)]
pub(super) struct Train {
    rate: Rate,
    /// Sending times of the first and the last packet; `None` before the first.
    left_at: Option<(Time, Time)>,
    /// Bytes sent after the first packet.
    bytes: Bytes,
    trend: Trend,
}

impl Train {
    /// A train that probes `rate`, before its first packet.
    pub fn new(rate: Rate) -> Self {
        Self { rate, left_at: None, bytes: Bytes::ZERO, trend: Trend::default() }
    }

    /// The probed rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The trend of delay along it, from its acks.
    pub fn trend(&self) -> &Trend {
        &self.trend
    }

    /// The train's next packet leaves.
    pub fn on_sent(&mut self, sent: &Sent) {
        match &mut self.left_at {
            None => self.left_at = Some((sent.now, sent.now)),
            Some((_, last)) => {
                *last = sent.now;
                self.bytes += sent.bytes;
            }
        }
    }

    /// An RTT sample of a packet sent at `sent_at`; ignored if that is not one of the train.
    pub fn on_sample(&mut self, sent_at: Time, rtt: Span) {
        if self.left_at.is_some_and(|(first, last)| (first..=last).contains(&sent_at)) {
            self.trend.add(sent_at, rtt);
        }
    }

    /// True if the train's first packet has left.
    pub fn has_left(&self) -> bool {
        self.left_at.is_some()
    }

    /// True if a packet sent at `sent_at` is of the train or later: its loss refutes the rate.
    pub fn has_begun(&self, sent_at: Time) -> bool {
        self.left_at.is_some_and(|(first, _)| sent_at >= first)
    }

    /// True if a packet sent at `sent_at` left no earlier than the train's last packet so far.
    pub fn has_arrived(&self, sent_at: Time) -> bool {
        self.left_at.is_some_and(|(_, last)| sent_at >= last)
    }

    /// The rate at which it was sent, at most the probed one.
    pub fn shown(&self) -> Rate {
        self.left_at.map_or(Rate::ZERO, |(first, last)| self.bytes / last.since(first)).min(self.rate)
    }
}
