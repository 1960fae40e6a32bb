//! The trait that every start-up scheme implements, and the list of all schemes.

#[macro_use]
mod list;

mod flights;
pub mod foreign;
mod later_flights;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod timeline;

use core::fmt::{self, Debug};

use headstart_units::{Rate, Span};

use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::catalogue::Needs;
use crate::event::{Ack, Congestion, Progress, Sent, Timeout};
use crate::history::{Record, Revision};
use crate::prior::Prior;
use crate::quick_start::RequestInputs;
use crate::repair::Repair;

pub use foreign::Foreign;
pub use later_flights::LaterFlights;

// One line for each scheme: its file and its type, and the decorator that holds it, if one does.
// The order is that of tables and figures, baselines first.
schemes! {
    slow_start::SlowStart,
    google_quic::GoogleQuic,
    linux::Linux,
    reactive::Reactive,
    proactive::Proactive,
    jump_start::JumpStart in LaterFlights,
    halfback::Halfback in LaterFlights,
    pcp::Pcp,
    rapid_start::RapidStart,
    bbr::Bbr,
    bbr_v3::BbrV3,
    prague::Prague,
    tcp_cache::TcpCache,
    s_cubic::SCubic,
    wise_start::WiseStart,
    careful_resume::CarefulResume,
    quick_start::QuickStart,
    rcp::Rcp,
    blitzstart::Blitzstart,
    headstart::Headstart,
}

/// A scheme that owns the window from the first byte until it hands over.
///
/// Sans I/O: events and their times go in, the allowance (window and pace) comes out. It holds no
/// clock, no socket and no random source.
pub trait Startup: Debug {
    /// The connection is established. Returns the plan of the first flight. Called first, and once.
    fn establish(&mut self, prior: &Prior) -> FlightPlan;

    /// Data left this host. By default ignored.
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        let _ = sent;
    }

    /// Data was newly acknowledged.
    fn on_ack(&mut self, ack: &Ack) -> Next;

    /// Data was declared lost, or CE-marked. On the same ack this comes before [`Self::on_ack`].
    fn on_congestion(&mut self, signal: &Congestion) -> Next;

    /// The retransmission timer expired. By default the base controller takes over and reduces the
    /// window; a scheme that never hands over overrides this.
    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        let _ = timeout;
        Next::HandOver(HandOver::to_be_cut(self.allowance().window))
    }

    /// The application has more to send than [`Prior::flow_size`] said: another response on the
    /// same connection. `prior` is of now: its flow size is the unsent data, its handshake RTT the
    /// smoothed one. Returns the plan of another flight, which the scheme controls; `None` (the
    /// default): the current window continues.
    fn on_new_data(&mut self, prior: &Prior, so_far: &Progress) -> Option<FlightPlan> {
        let _ = (prior, so_far);
        None
    }

    /// The connection has ended: no call follows. By default ignored.
    fn end(&mut self) {}

    /// Window in bytes and pace at this moment. Pure: calling it twice changes nothing.
    fn allowance(&self) -> Allowance;

    /// True while the window grows as in slow start: a transport's own pacer then paces faster than
    /// the window per RTT.
    fn is_slow_start(&self) -> bool {
        true
    }

    /// True if the history record that this start used was wrong or too old, and must be removed
    /// ([`RecordUpdate::Remove`](crate::history::RecordUpdate::Remove)).
    fn discards_history(&self) -> bool {
        false
    }

    /// The current phase's name, as the paper spells it; for traces only.
    fn phase(&self) -> &'static str;

    /// True if concurrent first flights share a credit: the store reserves the flight as it begins,
    /// and releases it when its fate is known ([`Store`](crate::history::Store)).
    fn reserves_credit(&self) -> bool {
        false
    }

    /// Revision of the path's credit by the fate of the first flight; `None` until that is known,
    /// and from schemes without a credit.
    fn credit_revision(&self) -> Option<Revision> {
        None
    }

    /// The same at the end of the connection: by what is known then. A client over QUIC closes once
    /// it has all data, and its last acknowledgements never leave.
    fn last_credit_revision(&self) -> Option<Revision> {
        self.credit_revision()
    }

    /// True if it sends nothing beyond its first flight until all of that is delivered, and goes on
    /// in congestion avoidance. The flight takes two round trips, each further one takes one.
    fn ends_with_flight(&self) -> bool {
        false
    }

    /// The record to store, derived from the transport's measurement.
    fn record_to_store(&self, measured: Record) -> Record {
        measured
    }

    /// Proactive retransmission. Call it after [`Self::establish`], since it may cover the first
    /// flight only. By default none.
    fn repair(&self) -> Repair {
        Repair::Reactive
    }

    /// True if [`Self::on_sent`] has an effect in the present phase; else a transport may skip the
    /// call. A scheme that overrides that method must override this one too.
    #[inline]
    fn needs_sent_events(&self) -> bool {
        false
    }

    /// True if the scheme requires a tail loss probe (Reactive TCP; RFC 8985 §7), whatever the
    /// transport's default.
    fn requires_tail_probe(&self) -> bool {
        false
    }

    /// True if its receiver must acknowledge every segment at once, whatever the default.
    fn requires_every_ack(&self) -> bool {
        false
    }

    /// True if its packets, handshake included, carry a rate field for routers to stamp (RCP).
    fn requires_rate_stamps(&self) -> bool {
        false
    }

    /// True if its data is L4S traffic, ECT(1) (RFC 9331 §4.1): it responds to every mark, so its
    /// transport must count them ([`Ack::marked`]).
    fn is_l4s(&self) -> bool {
        false
    }

    /// The rate to request of the routers before establishment (RFC 4782); `None`: no request.
    fn request(&self, known: &RequestInputs) -> Option<Rate> {
        let _ = known;
        None
    }

    /// True if it sends another Quick-Start Request for data after an idle period (RFC 4782 §4.8).
    fn requests_after_idle(&self) -> bool {
        false
    }

    /// True if its request depends on the size of the flow.
    fn request_depends_on_size(&self) -> bool {
        true
    }

    /// Uses `rtt` in requests where no RTT has been measured.
    fn assume_rtt(&mut self, rtt: Span) {
        let _ = rtt;
    }

    /// The prior knowledge that it needs with these parameters; `None`: as in its catalogue row.
    fn needs(&self) -> Option<Needs> {
        None
    }

    /// True if window and slow start threshold at the end of a connection are to be stored for the
    /// next one, beside rate and RTT (TCP-Cache).
    fn caches_window(&self) -> bool {
        false
    }

    /// True if it holds window and rate of the record to the end of the connection, so that the
    /// record must describe the path exactly.
    fn holds_record(&self) -> bool {
        false
    }

    /// Initial window in segments, of a scheme that is plain slow start; else `None`.
    fn initial_segments(&self) -> Option<u64> {
        None
    }
}
