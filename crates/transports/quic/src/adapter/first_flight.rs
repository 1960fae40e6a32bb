//! Pacing until the first flight, and of a burst.
//!
//! The stack's pacer is a token bucket of 10 ms of the rate, at most ten packets (or 2 ms of a high
//! rate). With a high rate reported until the first flight begins, the bucket is full by then and
//! ten packets leave at once. So between the first ack and the first full packet a low rate is
//! reported if the plan is a paced one. The bucket then holds two packets, and the packet that
//! begins the flight leaves a fraction of one. Before the first ack nothing is paced, so as not to
//! delay the handshake. A burst is not paced either.
//!
//! Packets between the first ack and the flight (tickets, tokens, the application's settings) take
//! tokens from the same bucket, which at that low rate need 10 ms to return. So once the bucket
//! holds less than a full packet, an unlimited rate is reported. The packet that begins the flight
//! then leaves at once. A low rate after it cuts the bucket to one packet, so that at most two
//! leave together.

use headstart_adapter::driver::NextFlight;
use headstart_adapter::sizes::SLACK;
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::Adapter;

/// Unpaced: one byte per nanosecond. Not more: the pacer would round the wait for a fraction of a
/// byte to zero, again and again.
const UNPACED: Rate = Rate::from_mbit_per_sec(8_000);
/// Lowest pace; at zero the pacer would never send again.
const MIN_PACE: Rate = Rate::from_bytes_per_sec(1);
/// Depth of the pacer's bucket, in time at its rate, up to ten packets.
const BUCKET: Span = Span::from_millis(10);
/// Depth of the bucket for larger bursts.
const LARGE_BUCKET: Span = Span::from_millis(2);
/// Most packets in a burst of [`BUCKET`]; the pacer uses [`LARGE_BUCKET`] above.
const BUCKET_PACKETS: u64 = 10;
/// Most packets in the bucket.
const LARGEST_BURST_PACKETS: u64 = 256;
/// Most packets in the bucket when a paced flight begins.
const OPENING_BUCKET: Ratio = Ratio::new(19, 10);

/// Model of the pacer's bucket before a paced flight, from the packets that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tokens: Bytes,
    at: Time,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { tokens: Bytes::MAX, at: Time::ZERO }
    }
}

impl Bucket {
    /// The bucket of a connection whose RTT has been measured.
    pub(super) fn since(at: Time) -> Self {
        Self { at, ..Self::default() }
    }

    /// Held less than a full packet when its last packet left.
    fn is_low(&self, packet: Bytes) -> bool {
        self.tokens < packet
    }

    /// A packet left: unpaced if the bucket was low, otherwise at the rate for `opening`.
    fn spend(&mut self, now: Time, bytes: Bytes, packet: Bytes, opening: Bytes) {
        let (rate, capacity) = match self.is_low(packet) {
            true => (UNPACED, packet * LARGEST_BURST_PACKETS),
            false => (opening / BUCKET, opening),
        };
        let earned = rate * now.since(self.at);
        self.tokens = (self.tokens + earned).min(capacity).saturating_sub(bytes);
        self.at = now;
    }
}

impl Adapter {
    /// A packet left before or as the flight begins.
    pub(super) fn spend(&mut self, now: Time, bytes: Bytes) {
        if self.driver.foreseen().is_some() {
            let packet = self.driver.sender.packet();
            self.bucket.spend(now, bytes, packet, packet * OPENING_BUCKET);
        }
    }

    /// Rate for the stack's pacer, given the next flight; `None` leaves it to the stack.
    pub(super) fn pacing_rate(&self, next_flight: Option<&NextFlight>) -> Option<Rate> {
        let (driver, packet) = (&self.driver, self.driver.sender.packet());
        if let Some(plan) = driver.foreseen() {
            let is_unpaced =
                plan.allowance.pace.is_none() || driver.fits_initial_window() || self.bucket.is_low(packet);
            let opening = || self.bucket_of(plan.burst.max(packet * OPENING_BUCKET));
            return Some(if is_unpaced { UNPACED } else { opening() });
        }
        if !driver.is_started() || driver.is_small() {
            return Some(UNPACED);
        }
        if let Some(NextFlight { controller, plan, .. }) = next_flight {
            let pace = controller.allowance().pace;
            return if plan.burst.is_zero() { pace } else { pace.max(Some(self.bucket_of(plan.burst))) };
        }
        let pace = driver.sender.controller().allowance().pace;
        let left = driver.burst().saturating_sub(driver.sender.ledger().sent());
        // A first packet after the handshake's may be smaller by that.
        let left = if left <= SLACK { Bytes::ZERO } else { left };
        match left {
            Bytes::ZERO if driver.sender.ledger().end() == 1 && driver.burst() <= packet => {
                let due = packet.saturating_sub(self.bucket.tokens).max(Bytes::new(1));
                pace.map(|pace| (due / (packet / pace)).max(MIN_PACE))
            }
            Bytes::ZERO => pace,
            left if pace.is_some() => Some(self.bucket_of(left.max(packet))),
            _ => Some(UNPACED),
        }
    }

    /// The rate whose bucket holds `burst`.
    fn bucket_of(&self, burst: Bytes) -> Rate {
        if burst <= self.driver.sender.packet() * BUCKET_PACKETS {
            burst / BUCKET
        } else {
            burst / LARGE_BUCKET
        }
    }
}
