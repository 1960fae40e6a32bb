//! First flights of schemes that send all available data paced, over one round trip as a rule.
//!
//! Sources: as [`super::jump_start`] and [`super::halfback`], which list the deviations.

use headstart_units::{Bytes, Span};

use crate::allowance::{Allowance, FlightPlan};
use crate::event::Ack;
use crate::prior::Prior;

/// As much of the flow as the receive window and `limit` admit, paced `over` this time. Of n
/// segments one leaves at once and the next an n-th of the time later. With a `burst`, that many
/// leave at once and the others share the time.
pub(super) fn paced(prior: &Prior, limit: Bytes, burst: u64, over: Span) -> FlightPlan {
    let mss = prior.mss;
    // The receiver and the limit admit whole segments only; the flow's last one may be short.
    let admitted = prior.receive_window.min(limit).get() / mss.get();
    let wanted = prior.flow_size.map_or(u64::MAX, |size| size.get().div_ceil(mss.get()));
    let segments = admitted.min(wanted).max(1);
    let paced = if burst == 0 { segments } else { segments.saturating_sub(burst).max(1) };
    let window = mss * segments;
    FlightPlan {
        burst: mss * burst.clamp(1, segments),
        flight: prior.flow_size.map_or(window, |size| size.min(window)),
        allowance: Allowance { window, pace: Some(mss * paced / over) },
    }
}

/// True if the whole first flight has left, as the ack shows. With missing segments it may turn
/// true late, never early.
#[inline]
pub(super) fn is_out(flight: Bytes, ack: &Ack) -> bool {
    ack.is_all_sent || ack.delivered + ack.in_flight >= flight
}
