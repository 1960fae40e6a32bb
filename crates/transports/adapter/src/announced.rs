//! Announced data compared with a plan: rules of every adapter.

use headstart_startup::sending::Sender;
use headstart_startup::{FlightPlan, Prior, Startup as _};
use headstart_units::Bytes;

use crate::gates::Gates;
use crate::sizes::{INITIAL_PACKETS, wire};

/// An estimated size on the wire is wrong by less than this fraction (1/64).
pub const ESTIMATED: u64 = 64;

/// True if slow start does as well for an answer of this length.
#[must_use]
pub fn is_outrun(gates: &Gates, sender: &Sender, prior: &Prior, plan: &FlightPlan) -> bool {
    let bdp = prior.history.and_then(|known| known.record.bdp());
    let saves = |size| gates.outruns(plan.flight, size, sender.packet(), bdp);
    sender.controller().scheme().requirements().ends_with_flight && !prior.flow_size.is_none_or(saves)
}

/// True if all announced data fits into the initial window, and none of it was lost.
#[must_use]
pub fn fits_initial_window(gates: &Gates, sender: &Sender, expected: Option<Bytes>) -> bool {
    let packet = sender.packet();
    gates.beyond_initial_window
        && sender.tally().lost.is_zero()
        && expected.is_some_and(|announced| wire(announced, packet) <= packet * INITIAL_PACKETS)
}

/// The application has nothing to send: true if all announced data has left, false in a lull before
/// its end. `planned` was announced when the scheme last planned, `expected` is now. The size on
/// the wire is estimated from the size of a header.
#[must_use]
pub fn is_all_sent(sender: &Sender, planned: Bytes, expected: Option<Bytes>, is_whole_flow: bool) -> bool {
    let flight = sender.first_flight();
    planned > Bytes::ZERO
        && expected == Some(planned)
        && is_whole_flow
        && sender.ledger().sent() + sender.packet() > flight - flight / ESTIMATED
}
