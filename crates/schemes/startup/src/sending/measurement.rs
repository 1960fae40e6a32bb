//! The record of a path, from what one connection measured: one rule for the TCP model and the
//! adapters of QUIC stacks.

use headstart_units::{Bytes, Span, Time};

use crate::history::{FlightOutcome, Record};
use crate::path::{PacketTrain, RateEstimator};
use crate::{Controller, Startup as _};

/// Packets of today's slow start (RFC 6928), which say nothing about a record.
const INITIAL_WINDOW: u64 = 10;
/// A record is too fast if one in so many bytes of the flight made from it was lost. Random losses
/// are rarer.
const REFUTED_BY: u64 = 4;

/// Measurements of one connection at its end.
#[derive(Clone, Copy, Debug)]
pub struct Measurement<'a> {
    /// Delivery rates of the connection.
    pub rate: &'a RateEstimator,
    /// The packet train of its first flight.
    pub train: &'a PacketTrain,
    /// The connection's minimum RTT.
    pub rt_prop: Span,
    /// Scheme and base controller.
    pub controller: &'a Controller,
    /// Bytes of a full packet.
    pub packet: Bytes,
    /// Bytes of the first flight that were sent.
    pub first_flight: Bytes,
    /// Bytes of the first flight declared lost.
    pub first_flight_lost: Bytes,
    /// Any packet was declared lost.
    pub has_lost: bool,
}

impl Measurement<'_> {
    /// The record, of a connection that began from `used`, if from any.
    ///
    /// A record is a delivery rate and a minimum RTT, never a window. Only TCP-Cache is nothing but
    /// a cached window: it stores its window and threshold too, at the end of every connection.
    ///
    /// `None`: this connection measured nothing, and the previous record stays. Application-limited
    /// samples measure the application. A flow shorter than the bandwidth-delay product measures
    /// nothing, unless it lost a quarter of a first flight above the initial window: then the
    /// record is too fast. A sender that has not left slow start may have measured no more than its
    /// window: the packet train of its first flight then counts, too.
    #[must_use]
    pub fn record(&self, now: Time, used: Option<&Record>) -> Option<Record> {
        let (flight, lost) = (self.first_flight, self.first_flight_lost);
        let is_refuted = flight > self.packet * INITIAL_WINDOW && lost * REFUTED_BY >= flight;
        let has_filled = used.and_then(Record::bdp).is_none_or(|bdp| self.rate.delivered() >= bdp);
        let fastest = self.rate.fastest();
        let is_cache = self.controller.scheme().requirements().caches_window;
        if !is_cache && (fastest.is_app_limited || !(has_filled || is_refuted)) {
            return None;
        }
        let btl_bw = fastest.rate()?;
        let is_growing = self.controller.is_slow_start() && !self.has_lost;
        Some(Record {
            saved_at: now,
            btl_bw: if is_growing { self.train.rate(self.packet, btl_bw) } else { btl_bw },
            rt_prop: self.rt_prop,
            window: if is_cache { self.controller.allowance().window } else { Bytes::ZERO },
            ssthresh: if is_cache { self.controller.ssthresh() } else { Bytes::MAX },
            outcome: if lost.is_zero() { FlightOutcome::Clean } else { FlightOutcome::Lossy },
            credit: Bytes::ZERO,
            handshake_excess: used.map_or(Span::ZERO, |record| record.handshake_excess),
        })
    }
}

/// The most that slow start from ten packets has sent once `delivered` bytes are acknowledged, and
/// none lost: its window, which grows by all of them, those, and a probe.
#[must_use]
#[inline]
pub fn sent_by_slow_start(packet: Bytes, delivered: Bytes) -> Bytes {
    packet * (INITIAL_WINDOW + 1) + delivered * 2
}
