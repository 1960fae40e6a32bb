//! What a scheme is told: one struct for each event, times included.

use headstart_units::{Bytes, Rate, Span, Time};

use crate::path::{RateSample, Rtt};

/// Which sending of a segment this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// The first.
    Original,
    /// Again, because it was declared lost or a timer asked for a probe.
    Retransmission,
    /// Again, although nobody knows it lost (proactive repair).
    Copy,
}

/// Data left this host.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it left.
    pub now: Time,
    /// Payload bytes.
    pub bytes: Bytes,
    /// Bytes in flight, this packet included.
    pub in_flight: Bytes,
    /// Which sending of these bytes this is.
    pub transmission: Transmission,
    /// The application has nothing more to send at this moment.
    pub is_app_limited: bool,
}

/// One acknowledgement that acknowledged something new, reduced to what congestion control may
/// know.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// When the newest transmission it covers was sent.
    pub newest_sent_at: Time,
    /// Bytes acknowledged for the first time, cumulatively or selectively.
    pub newly_acked: Bytes,
    /// Those of `newly_acked` that belong to the first flight and came through as originals.
    pub first_flight_acked: Bytes,
    /// The round-trip time of the newest packet covered, if it can be told (Karn's rule).
    pub rtt_sample: Option<Span>,
    /// The path's round-trip time, as measured up to and including this ack.
    pub rtt: Rtt,
    /// Bytes in flight after this ack.
    pub in_flight: Bytes,
    /// Bytes delivered since the connection began, `newly_acked` included.
    pub delivered: Bytes,
    /// Delivery rate over about the last round trip.
    pub rate: RateSample,
    /// The window was the limit when the data covered left: growing it is warranted (RFC 7661, RFC
    /// 9438 §5.8).
    pub is_window_limited: bool,
    /// Loss recovery is under way after this ack.
    pub in_recovery: bool,
    /// All that the application said it would send has left, as the transport can see though it
    /// only estimates how many bytes that makes on the wire. Never, where sizes are exact.
    pub is_all_sent: bool,
    /// Those of `newly_acked` that arrived with a congestion mark, to the packet, where the
    /// receiver counts them (RFC 9768); a transport that cannot know says zero and tells a
    /// [`Signal::CongestionExperienced`] only.
    pub marked: Bytes,
    /// The rate that routers stamped on the packet that set it off (RCP); `None` if none did.
    pub stamped: Option<Rate>,
}

/// What kind of congestion was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Packets were declared lost.
    Loss,
    /// A packet arrived with the congestion-experienced mark (RFC 3168).
    CongestionExperienced,
}

/// Data was declared lost, or CE-marked. Told once for each ack or timer that found losses.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When it was found.
    pub now: Time,
    /// Loss or mark.
    pub signal: Signal,
    /// The first of its round trip: the one event to which a base controller answers with a cut.
    pub opens_episode: bool,
    /// Bytes newly declared lost; zero for a mark.
    pub lost: Bytes,
    /// Those of `lost` that belong to the first flight, original transmissions only.
    pub first_flight_lost: Bytes,
    /// When the newest packet declared lost had been sent.
    pub newest_lost_sent_at: Time,
    /// Bytes in flight before the loss was found (RFC 5681's FlightSize).
    pub prior_in_flight: Bytes,
    /// Bytes in flight now.
    pub in_flight: Bytes,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// Bytes of the first flight that came through as originals so far.
    pub first_flight_delivered: Bytes,
    /// The path's round-trip time.
    pub rtt: Rtt,
}

/// How far a connection is when its application turns out to have more to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that have left since the connection began.
    pub sent: Bytes,
    /// Segments that have.
    pub segments: u64,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// What may be in flight as it is.
    pub window: Bytes,
}

/// The retransmission timer went off: everything in flight is taken for lost (RFC 6298 §5, RFC 5681
/// §3.1).
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    /// When it went off.
    pub now: Time,
    /// Bytes in flight before (RFC 5681's FlightSize).
    pub prior_in_flight: Bytes,
    /// Bytes delivered since the connection began.
    pub delivered: Bytes,
    /// How many times in a row, this one included.
    pub consecutive: u32,
}
