//! Events of a connection, one struct for each, with their times.

use headstart_units::{Bytes, Rate, Span, Time};

use crate::path::{RateSample, Rtt};

/// Kind of a transmission of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// The first transmission.
    Original,
    /// Retransmission after a declared loss, or as a probe of a timer.
    Retransmission,
    /// Proactive retransmission: not declared lost.
    Copy,
}

/// Data left this host.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Time of sending.
    pub now: Time,
    /// Payload bytes.
    pub bytes: Bytes,
    /// Bytes in flight, this packet included.
    pub in_flight: Bytes,
    /// Kind of the transmission.
    pub transmission: Transmission,
    /// Application-limited: there is no more data to send at this moment.
    pub is_app_limited: bool,
}

/// An acknowledgement of new data, reduced to the inputs of congestion control.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Time of arrival.
    pub now: Time,
    /// Sending time of the newest transmission that it covers.
    pub newest_sent_at: Time,
    /// Bytes acknowledged for the first time, cumulatively or selectively.
    pub newly_acked: Bytes,
    /// Bytes of `newly_acked` of the first flight that arrived by their original transmission.
    pub first_flight_acked: Bytes,
    /// The round-trip time of the newest packet covered, if unambiguous (Karn's rule).
    pub rtt_sample: Option<Span>,
    /// The path's round-trip time, as measured up to and including this ack.
    pub rtt: Rtt,
    /// Bytes in flight after this ack.
    pub in_flight: Bytes,
    /// Bytes delivered since the connection began, `newly_acked` included.
    pub delivered: Bytes,
    /// Delivery rate over about the last round trip.
    pub rate: RateSample,
    /// Window-limited when the covered data left: the window may grow (RFC 7661, RFC 9438 §5.8).
    pub is_window_limited: bool,
    /// Loss recovery is under way after this ack.
    pub in_recovery: bool,
    /// All data announced by the application has been sent, where the transport only estimates its
    /// size on the wire. Always false where sizes are exact.
    pub is_all_sent: bool,
    /// Bytes of `newly_acked` that arrived with a CE mark, to the packet, where the receiver counts
    /// them (RFC 9768). A transport without such counts sets zero and reports only a
    /// [`Signal::CongestionExperienced`].
    pub marked: Bytes,
    /// The rate that routers stamped on the acknowledged packet (RCP); `None` if none did.
    pub stamped: Option<Rate>,
}

/// Kind of a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Packets were declared lost.
    Loss,
    /// A packet arrived with the congestion-experienced mark (RFC 3168).
    CongestionExperienced,
}

/// Data was declared lost, or CE-marked. One event for each ack or timer that detects losses.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Time of detection.
    pub now: Time,
    /// Loss or mark.
    pub signal: Signal,
    /// The first of its round trip: the one event on which a base controller cuts its window.
    pub opens_episode: bool,
    /// Bytes newly declared lost; zero for a mark.
    pub lost: Bytes,
    /// Bytes of `lost` that belong to the first flight, original transmissions only.
    pub first_flight_lost: Bytes,
    /// Sending time of the newest packet declared lost.
    pub newest_lost_sent_at: Time,
    /// Bytes in flight before the loss was detected (RFC 5681's FlightSize).
    pub prior_in_flight: Bytes,
    /// Bytes in flight now.
    pub in_flight: Bytes,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// Bytes of the first flight delivered by their original transmissions so far.
    pub first_flight_delivered: Bytes,
    /// The path's round-trip time.
    pub rtt: Rtt,
}

/// Progress of a connection at the time when its application has more to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes sent since the connection began.
    pub sent: Bytes,
    /// Segments sent since the connection began.
    pub segments: u64,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// The congestion window in bytes.
    pub window: Bytes,
}

/// The retransmission timer expired: all data in flight is lost (RFC 6298 §5, RFC 5681 §3.1).
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// Time of expiry.
    pub now: Time,
    /// Bytes in flight before (RFC 5681's FlightSize).
    pub prior_in_flight: Bytes,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// Consecutive expiries, this one included.
    pub consecutive: u32,
}
