//! The events of the contract, made in one place for every sender: the simulator's TCP and the
//! [`Sender`](super::Sender) of the QUIC stacks.
//!
//! A sender keeps its own scoreboard or ledger. At each event it describes itself by a [`Moment`],
//! and that makes the [`Sent`], [`Ack`], [`Congestion`] and [`Timeout`].
//!
//! # Differences between the senders
//!
//! - [`Ack::in_recovery`]. QUIC: until a packet sent after the first loss is delivered. TCP: in
//!   fast recovery, and not after a timeout. After that a TCP is in slow start (RFC 5681 §3.1), and
//!   its window must grow; QUIC has no such state.
//! - [`Ack::marked`] and [`Ack::stamped`]. TCP: the receiver's count of marks, the routers' stamps.
//!   QUIC: none, for no stack passes them to its controller.
//! - [`Ack::is_all_sent`]. QUIC: an estimate of the adapter, which does not know the size of all
//!   headers. TCP: never, for sizes are exact.
//! - [`Ack::is_window_limited`]. TCP: a duplicate ack never is (RFC 5681 §3.2), and some papers'
//!   models take every ack for limited. QUIC has no duplicate acks.
//! - [`Sent::is_app_limited`]. TCP: nothing is left to send. QUIC: the packet is not full, for a
//!   stack's controller does not know the backlog.
//! - [`Congestion::prior_in_flight`]. TCP: before the acknowledgement that showed the loss. QUIC:
//!   after it, for stacks report an acknowledgement first and its losses afterwards.
//! - [`Timeout::consecutive`]. TCP: expiries since the last progress. QUIC: 1, for stacks report
//!   persistent congestion only, and not their probe timeouts. So does a TCP with QUIC's probes.

use headstart_units::{Bytes, Rate, Span, Time};

use crate::event::{Ack, Congestion, Sent, Signal, Timeout, Transmission};
use crate::path::{RateSample, Rtt};

/// A sender's state at one event.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// Time of the event.
    pub now: Time,
    /// The path's round-trip time, this event's sample included.
    pub rtt: &'a Rtt,
    /// Bytes in flight after the event.
    pub in_flight: Bytes,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// Bytes of the first flight delivered by their original transmissions.
    pub first_flight_delivered: Bytes,
}

/// Data that one acknowledgement delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Bytes acknowledged for the first time.
    pub bytes: Bytes,
    /// Bytes of them that belong to the first flight and arrived by their original transmission.
    pub first_flight: Bytes,
    /// Round-trip time of the newest packet covered, if unambiguous.
    pub rtt_sample: Option<Span>,
}

impl Delivered {
    /// One acknowledged packet.
    #[inline]
    pub fn add(&mut self, bytes: Bytes, is_first_flight: bool) {
        self.bytes += bytes;
        if is_first_flight {
            self.first_flight += bytes;
        }
    }
}

/// Conditions of the sender after an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct AckState {
    /// Departure of the newest transmission delivered.
    pub newest_sent_at: Time,
    /// Delivery rate over about the last round trip.
    pub rate: RateSample,
    /// The window or the pacer was the limit when that transmission left.
    pub is_window_limited: bool,
    /// Loss recovery is under way.
    pub in_recovery: bool,
    /// All data announced has left, where its size on the wire is an estimate.
    pub is_all_sent: bool,
    /// Bytes delivered with a congestion mark, where the receiver counts them.
    pub marked: Bytes,
    /// The rate that routers stamped on the packet.
    pub stamped: Option<Rate>,
}

/// Data that one loss detection declared lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Bytes of the lost packets.
    pub bytes: Bytes,
    /// Bytes of them that belong to the first flight, original transmissions only.
    pub first_flight: Bytes,
    /// Departure of the packet declared lost first.
    pub oldest_sent_at: Time,
    /// Latest departure of the lost packets.
    pub newest_sent_at: Time,
}

impl Losses {
    /// One lost packet.
    #[inline]
    pub fn add(&mut self, bytes: Bytes, is_first_flight: bool, sent_at: Time) {
        if self.bytes.is_zero() {
            self.oldest_sent_at = sent_at;
        }
        self.newest_sent_at = self.newest_sent_at.max(sent_at);
        self.bytes += bytes;
        if is_first_flight {
            self.first_flight += bytes;
        }
    }
}

impl Moment<'_> {
    /// A packet left; it counts as in flight already, unless it is a copy.
    #[inline]
    #[must_use]
    pub fn sent(&self, bytes: Bytes, transmission: Transmission, is_app_limited: bool) -> Sent {
        Sent { now: self.now, bytes, in_flight: self.in_flight, transmission, is_app_limited }
    }

    /// An acknowledgement delivered data.
    #[inline]
    #[must_use]
    pub fn ack(&self, delivered: &Delivered, state: &AckState) -> Ack {
        Ack {
            now: self.now,
            newest_sent_at: state.newest_sent_at,
            newly_acked: delivered.bytes,
            first_flight_acked: delivered.first_flight,
            rtt_sample: delivered.rtt_sample,
            rtt: *self.rtt,
            in_flight: self.in_flight,
            delivered: self.delivered,
            rate: state.rate,
            is_window_limited: state.is_window_limited,
            in_recovery: state.in_recovery,
            is_all_sent: state.is_all_sent,
            marked: state.marked,
            stamped: state.stamped,
        }
    }

    /// Packets were declared lost, of `prior_in_flight` bytes in flight.
    #[inline]
    #[must_use]
    pub fn loss(&self, losses: &Losses, prior_in_flight: Bytes, opens_episode: bool) -> Congestion {
        self.congestion(Signal::Loss, losses, prior_in_flight, opens_episode)
    }

    /// A packet arrived with a congestion mark.
    #[inline]
    #[must_use]
    pub fn mark(&self, prior_in_flight: Bytes, opens_episode: bool) -> Congestion {
        self.congestion(Signal::CongestionExperienced, &Losses::default(), prior_in_flight, opens_episode)
    }

    #[inline]
    fn congestion(
        &self,
        signal: Signal,
        losses: &Losses,
        prior_in_flight: Bytes,
        opens_episode: bool,
    ) -> Congestion {
        Congestion {
            now: self.now,
            signal,
            opens_episode,
            lost: losses.bytes,
            first_flight_lost: losses.first_flight,
            newest_lost_sent_at: losses.newest_sent_at,
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.delivered,
            first_flight_delivered: self.first_flight_delivered,
            rtt: *self.rtt,
        }
    }

    /// The retransmission timer expired, or congestion is persistent.
    #[inline]
    #[must_use]
    pub fn timeout(&self, prior_in_flight: Bytes, consecutive: u32) -> Timeout {
        Timeout { now: self.now, prior_in_flight, delivered: self.delivered, consecutive }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1_200);

    #[test]
    fn losses_remember_the_first_and_the_latest_departure() {
        let mut losses = Losses::default();
        for (millis, is_first_flight) in [(5, true), (3, false), (9, true), (7, false)] {
            losses.add(PACKET, is_first_flight, Time::from_millis(millis));
        }
        assert_eq!((losses.bytes, losses.first_flight), (PACKET * 4, PACKET * 2));
        assert_eq!(losses.oldest_sent_at, Time::from_millis(5));
        assert_eq!(losses.newest_sent_at, Time::from_millis(9));
    }

    #[test]
    fn a_mark_is_a_congestion_without_loss() {
        let rtt = Rtt::default();
        let moment = Moment {
            now: Time::from_millis(7),
            rtt: &rtt,
            in_flight: PACKET * 3,
            delivered: PACKET * 5,
            first_flight_delivered: PACKET * 4,
        };
        let mark = moment.mark(PACKET * 4, true);
        assert_eq!((mark.signal, mark.lost), (Signal::CongestionExperienced, Bytes::ZERO));
        let mut losses = Losses::default();
        losses.add(PACKET, true, Time::from_millis(2));
        let loss = moment.loss(&losses, PACKET * 4, true);
        assert_eq!((loss.signal, loss.lost, loss.first_flight_lost), (Signal::Loss, PACKET, PACKET));
        assert_eq!(loss.newest_lost_sent_at, Time::from_millis(2));
        for event in [mark, loss] {
            assert_eq!((event.now, event.prior_in_flight), (moment.now, PACKET * 4));
            assert_eq!((event.in_flight, event.delivered), (moment.in_flight, moment.delivered));
            assert_eq!(event.first_flight_delivered, moment.first_flight_delivered);
        }
    }

    #[test]
    fn data_sent_again_is_not_delivered_by_the_first_flight() {
        let scheme = crate::Scheme::SlowStart(crate::scheme::SlowStart::new(Default::default()));
        let controller = crate::Controller::new(scheme, crate::base::Kind::Cubic, PACKET);
        let mut sender = crate::sending::Sender::new(controller, PACKET);
        let (sent_at, now) = (Time::from_millis(1), Time::from_millis(51));
        sender.begin(PACKET * 3);
        for number in 0..3 {
            let _ = sender.on_sent(sent_at, number, PACKET);
        }
        assert!(sender.on_delivered(1, sent_at) && sender.on_delivered(2, sent_at));
        assert!(sender.end_of_acks(now, None, false).is_some());
        assert!(sender.on_lost(0, PACKET).is_some() && sender.end_of_losses(now, sent_at, false));
        let again = sender.on_sent(now, 3, PACKET);
        assert_eq!(again.transmission, Transmission::Retransmission);
        assert!(sender.on_delivered(3, now) && sender.end_of_acks(now, None, false).is_some());
        assert_eq!(sender.moment(now).first_flight_delivered, PACKET * 2);
        assert_eq!(sender.tally().delivered, PACKET * 3);
    }
}
