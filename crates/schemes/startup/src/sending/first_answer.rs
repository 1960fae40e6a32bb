//! The first answer of a connection, as its sender sees it.

use headstart_units::{Bytes, Span, Time};

/// The data until the first pause, and the time that they took: from the first packet to the last
/// acknowledgement.
///
/// A pause begins when nothing is in flight and ends with the next packet; it is one if it lasts
/// longer than a round trip. A connection that ends with data in flight took until its last
/// acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstAnswer {
    began_at: Option<Time>,
    ended_at: Time,
    bytes: Bytes,
    is_over: bool,
}

impl FirstAnswer {
    /// One that is over: for tests and simulations.
    #[must_use]
    pub fn of(began_at: Time, took: Span, bytes: Bytes) -> Self {
        Self { began_at: Some(began_at), ended_at: began_at + took, bytes, is_over: true }
    }

    pub(super) fn on_sent(&mut self, now: Time, in_flight: Bytes, rtt: Span) {
        if self.began_at.is_none() {
            self.began_at = Some(now);
        } else if in_flight.is_zero() && now.since(self.ended_at) > rtt {
            self.is_over |= !self.bytes.is_zero();
        }
    }

    pub(super) fn on_delivered(&mut self, now: Time, bytes: Bytes) {
        if !self.is_over {
            self.ended_at = now;
            self.bytes += bytes;
        }
    }

    /// Departure of the first packet.
    #[must_use]
    pub const fn began_at(&self) -> Option<Time> {
        self.began_at
    }

    /// Time from the first packet to the last acknowledgement so far; `None` without one.
    #[must_use]
    pub fn took(&self) -> Option<Span> {
        let began_at = self.began_at.filter(|_| !self.bytes.is_zero())?;
        Some(self.ended_at.since(began_at))
    }

    /// Bytes acknowledged, headers of packets included.
    #[must_use]
    pub const fn bytes(&self) -> Bytes {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(50);
    const PACKET: Bytes = Bytes::new(1_200);

    #[test]
    fn it_ends_with_the_last_acknowledgement_before_a_pause() {
        let at = Time::from_millis;
        let mut answer = FirstAnswer::default();
        assert_eq!((answer.took(), answer.began_at()), (None, None));
        answer.on_sent(at(100), Bytes::ZERO, RTT);
        assert_eq!(answer.took(), None, "nothing was acknowledged");
        answer.on_delivered(at(150), PACKET);
        // A window that is acknowledged as one leaves nothing in flight, and is no pause.
        answer.on_sent(at(150), Bytes::ZERO, RTT);
        answer.on_delivered(at(200), PACKET);
        answer.on_sent(at(250), Bytes::ZERO, RTT);
        answer.on_delivered(at(300), PACKET);
        assert_eq!((answer.took(), answer.bytes()), (Some(Span::from_millis(200)), PACKET * 3));
        answer.on_sent(at(351), Bytes::ZERO, RTT);
        answer.on_delivered(at(401), PACKET);
        assert_eq!((answer.took(), answer.bytes()), (Some(Span::from_millis(200)), PACKET * 3));
        assert_eq!(answer.began_at(), Some(at(100)));
    }
}
