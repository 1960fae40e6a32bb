//! Decisions of a scheme: a plan for the first flight, an allowance at any time, and the hand-over.

use headstart_units::{Bytes, Rate, Ratio};

/// Limits on sending: the congestion window and the pacing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Limit on bytes in flight.
    pub window: Bytes,
    /// Limit on the sending rate; `None` leaves it to the transport's pacer, if it has one.
    pub pace: Option<Rate>,
}

impl Allowance {
    /// A window without an explicit pace.
    #[must_use]
    pub const fn window(window: Bytes) -> Self {
        Self { window, pace: None }
    }
}

/// The first flight: a burst, the rest at a pace, then the window governs.
///
/// A plan is not final: the allowance that the transport reads after each event replaces its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlightPlan {
    /// Bytes that may leave back to back before pacing begins.
    pub burst: Bytes,
    /// Bytes of the first flight, burst included. The transport marks the original transmissions of
    /// this many bytes as the first flight.
    pub flight: Bytes,
    /// Window and pace until an event changes them.
    pub allowance: Allowance,
}

impl FlightPlan {
    /// The whole window at once, as plain slow start does.
    #[must_use]
    pub const fn burst(window: Bytes) -> Self {
        Self { burst: window, flight: window, allowance: Allowance::window(window) }
    }

    /// `burst` at once, the rest of `window` at `pace`.
    #[must_use]
    pub const fn paced(burst: Bytes, window: Bytes, pace: Rate) -> Self {
        Self { burst, flight: window, allowance: Allowance { window, pace: Some(pace) } }
    }
}

/// State that a base controller inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The congestion window to continue from, in bytes.
    pub window: Bytes,
    /// Slow start up to here, avoidance above; [`Bytes::MAX`] means that no limit is known yet.
    pub ssthresh: Bytes,
    /// The base controller still has to respond to the event that ended the start (its usual cut).
    pub cut: bool,
    /// Share of the window that this response keeps, in place of the base controller's.
    pub first_cut: Option<Ratio>,
    /// From now on the base controller's window is paced over this share of a smoothed RTT;
    /// `None` leaves pacing to the transport.
    pub pace_over: Option<Ratio>,
}

impl HandOver {
    /// The start ended because of congestion: the base controller makes its usual cut of `window`.
    #[must_use]
    pub const fn to_be_cut(window: Bytes) -> Self {
        Self { window, ssthresh: Bytes::MAX, cut: true, first_cut: None, pace_over: None }
    }

    /// Slow start continues from `window`, without a threshold.
    #[must_use]
    pub const fn growing(window: Bytes) -> Self {
        Self { window, ssthresh: Bytes::MAX, cut: false, first_cut: None, pace_over: None }
    }

    /// Congestion avoidance continues from exactly `window`.
    #[must_use]
    pub const fn avoiding(window: Bytes) -> Self {
        Self { window, ssthresh: window, cut: false, first_cut: None, pace_over: None }
    }
}

/// The controller in charge after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The scheme stays in charge.
    Stay,
    /// The base controller takes over.
    HandOver(HandOver),
}
