//! What a scheme answers: a plan for the first flight, an allowance at any later time, and who
//! decides next.

use headstart_units::{Bytes, Rate, Ratio};

/// How much may be in flight, and how fast it may leave.
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

/// The answer at establishment: so much at once, the rest at a pace, then the window goes on.
///
/// A plan is not final: the transport asks for the allowance again after each event, and what it
/// then hears replaces the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// May leave back to back before pacing begins.
    pub burst: Bytes,
    /// The first flight as a whole, burst included. The transport marks the original transmissions
    /// of this many bytes as belonging to the first flight.
    pub flight: Bytes,
    /// What holds until an event changes it.
    pub allowance: Allowance,
}

impl Plan {
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

/// What a base controller inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The congestion window to go on from.
    pub window: Bytes,
    /// Slow start up to here, avoidance beyond; [`Bytes::MAX`] means that no limit is known yet.
    pub ssthresh: Bytes,
    /// The base controller still has to answer the event that ended the start (its usual cut).
    pub cut: bool,
    /// From now on the base controller's window is paced over this share of a smoothed RTT;
    /// `None` leaves pacing to the transport.
    pub pace_over: Option<Ratio>,
}

impl HandOver {
    /// The start ended because of congestion: the base cuts `window` as it always would.
    #[must_use]
    pub const fn to_be_cut(window: Bytes) -> Self {
        Self { window, ssthresh: Bytes::MAX, cut: true, pace_over: None }
    }

    /// Slow start goes on from `window`, no limit being known.
    #[must_use]
    pub const fn growing(window: Bytes) -> Self {
        Self { window, ssthresh: Bytes::MAX, cut: false, pace_over: None }
    }

    /// Congestion avoidance goes on from exactly `window`.
    #[must_use]
    pub const fn avoiding(window: Bytes) -> Self {
        Self { window, ssthresh: window, cut: false, pace_over: None }
    }
}

/// Who decides next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The scheme goes on.
    Stay,
    /// Congestion avoidance takes over.
    HandOver(HandOver),
}
