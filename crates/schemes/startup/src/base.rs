//! The controllers to hand over to: congestion avoidance, and slow start after a timeout.

mod abba;
pub mod cuback;
pub mod cubic;
pub mod reno;

use headstart_units::{Bytes, Ratio};

use crate::allowance::HandOver;
use crate::event::{Ack, Congestion, Timeout};

pub use cuback::Cuback;
pub use cubic::Cubic;
pub use reno::Reno;

/// Kind of a base controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// NewReno (RFC 5681, RFC 6582).
    Reno,
    /// NewReno with Linux's differences, listed in [`reno`].
    RenoLinux,
    /// NewReno with Google QUIC's cut.
    RenoGoogle,
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// CUBIC with Linux's differences, listed in [`cubic`].
    CubicLinux,
    /// CUBIC that emulates two connections, as Google QUIC's does.
    CubicPair,
    /// CUBIC driven by acknowledged data (Cuback).
    Cuback,
    /// Cuback that grows faster while the bottleneck's queue is seen drained (ABBA).
    Abba,
}

/// A base controller, independent of the start-up scheme before it.
#[derive(Clone, Copy, Debug)]
pub enum Base {
    /// NewReno.
    Reno(Reno),
    /// CUBIC.
    Cubic(Cubic),
    /// Cuback.
    Cuback(Cuback),
}

macro_rules! each {
    ($self:expr, $base:ident => $call:expr) => {
        match $self {
            Base::Reno($base) => $call,
            Base::Cubic($base) => $call,
            Base::Cuback($base) => $call,
        }
    };
}

impl Base {
    /// A base controller for segments of `mss`. It has no window before [`Self::take_over`].
    #[must_use]
    pub fn new(kind: Kind, mss: Bytes) -> Self {
        match kind {
            Kind::Reno => Self::Reno(Reno::new(mss)),
            Kind::RenoLinux => Self::Reno(Reno::linux(mss)),
            Kind::RenoGoogle => Self::Reno(Reno::google(mss)),
            Kind::Cubic => Self::Cubic(Cubic::new(mss, cubic::Constants::ONE)),
            Kind::CubicLinux => Self::Cubic(Cubic::linux(mss)),
            Kind::CubicPair => Self::Cubic(Cubic::new(mss, cubic::Constants::TWO)),
            Kind::Cuback => Self::Cuback(Cuback::new(mss)),
            Kind::Abba => Self::Cuback(Cuback::with_abba(mss)),
        }
    }

    /// Begins from the state that the scheme hands over.
    pub fn take_over(&mut self, from: &HandOver) {
        each!(self, base => base.take_over(from));
    }

    /// Data was newly acknowledged: the window may grow.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        each!(self, base => base.on_ack(ack));
    }

    /// Data was declared lost or CE-marked: the first event of an episode cuts the window.
    pub fn on_congestion(&mut self, signal: &Congestion) {
        self.on_first_congestion(signal, None);
    }

    /// The congestion that ended the start: cuts the window to this share, if there is one.
    pub fn on_first_congestion(&mut self, signal: &Congestion, share: Option<Ratio>) {
        each!(self, base => base.on_congestion(signal, share));
    }

    /// The retransmission timer expired: slow start from one segment (RFC 5681 §3.1).
    pub fn on_timeout(&mut self, timeout: &Timeout) {
        each!(self, base => base.on_timeout(timeout));
    }

    /// The connection was idle for longer than a retransmission timeout: the window may be no
    /// larger than `restart` (RFC 5681 §4.1).
    pub fn on_idle(&mut self, restart: Bytes, ssthresh: Bytes) {
        each!(self, base => {
            base.window = base.window.min(restart);
            base.ssthresh = base.ssthresh.max(ssthresh);
        });
    }

    /// The congestion window in bytes.
    #[must_use]
    #[inline]
    pub fn window(&self) -> Bytes {
        each!(self, base => base.window)
    }

    /// The slow start threshold in bytes; [`Bytes::MAX`] while none is known.
    #[must_use]
    pub fn ssthresh(&self) -> Bytes {
        each!(self, base => base.ssthresh)
    }

    /// True in slow start, false in congestion avoidance.
    #[must_use]
    #[inline]
    pub fn is_slow_start(&self) -> bool {
        each!(self, base => base.window < base.ssthresh)
    }
}

/// RFC 5681 §3.1: never below two segments after a loss.
const MINIMUM_SEGMENTS: u64 = 2;
/// RFC 5681 §3.1: the loss window after a timeout.
const LOSS_SEGMENTS: u64 = 1;

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::event::Signal;
    use crate::path::{RateSample, Rtt};
    use headstart_units::{Span, Time};

    /// Size of segments in tests.
    pub const MSS: Bytes = Bytes::new(1000);

    /// An ack of `bytes` at `now`, window-limited and outside recovery, on a path of 100 ms.
    pub fn acked(now: Time, bytes: Bytes) -> Ack {
        let rtt = Span::from_millis(100);
        Ack {
            now,
            newest_sent_at: now - rtt,
            newly_acked: bytes,
            first_flight_acked: Bytes::ZERO,
            rtt_sample: Some(rtt),
            rtt: Rtt { latest: rtt, smoothed: rtt, variation: Span::ZERO, min: rtt },
            in_flight: bytes,
            delivered: bytes,
            rate: RateSample::default(),
            is_window_limited: true,
            in_recovery: false,
            is_all_sent: false,
            marked: Bytes::ZERO,
            stamped: None,
        }
    }

    /// The first loss of a round trip.
    pub fn lost(now: Time, bytes: Bytes) -> Congestion {
        Congestion {
            now,
            signal: Signal::Loss,
            opens_episode: true,
            lost: bytes,
            first_flight_lost: Bytes::ZERO,
            newest_lost_sent_at: now,
            prior_in_flight: bytes,
            in_flight: bytes,
            delivered: bytes,
            first_flight_delivered: Bytes::ZERO,
            rtt: Rtt::default(),
        }
    }

    /// A timeout.
    pub fn timed_out(now: Time) -> Timeout {
        Timeout { now, prior_in_flight: Bytes::ZERO, delivered: Bytes::ZERO, consecutive: 1 }
    }
}
