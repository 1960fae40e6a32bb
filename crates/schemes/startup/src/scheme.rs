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

use alloc::vec::Vec;
use core::fmt::{self, Debug};
use core::net::IpAddr;

use headstart_units::Rate;

use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Progress, Sent, Timeout};
use crate::history::{Network, Record, RecordUpdate, Revision};
use crate::parameters::{Description, Error, Setting};
use crate::prior::Prior;
use crate::quick_start::RequestInputs;
use crate::repair::Repair;

pub use foreign::Foreign;
pub use later_flights::LaterFlights;

// One line for each scheme: its file and its type, and the decorator that holds it, if one does.
// In the order of tables and figures, baselines first.
schemes! {
    slow_start::SlowStart,
    google_quic::GoogleQuic,
    linux::Linux,
    suss::Suss,
    reactive::Reactive,
    proactive::Proactive,
    rc3::Rc3,
    jump_start::JumpStart in LaterFlights,
    halfback::Halfback in LaterFlights,
    pcp::Pcp,
    paced_chirping::PacedChirping,
    rapid_start::RapidStart,
    bbr::Bbr,
    bbr_v3::BbrV3,
    prague::Prague,
    google_bootstrap::GoogleBootstrap,
    mvfst_resume::MvfstResume,
    tcp_cache::TcpCache,
    prefix_window::PrefixWindow,
    s_cubic::SCubic,
    wise_start::WiseStart,
    careful_resume::CarefulResume,
    quick_start::QuickStart,
    rcp::Rcp,
    blitzstart::Blitzstart,
    headstart::Headstart,
}

/// A scheme of the list in [`crate::scheme`], whatever its parameters are.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub(crate) about: &'static About,
    pub(crate) describe: fn() -> Vec<Description>,
    pub(crate) make: fn(&[Setting<'_>]) -> Result<Scheme, Error>,
}

impl Family {
    /// The scheme's row, as its file declares it.
    #[must_use]
    pub const fn about(&self) -> &'static About {
        self.about
    }
}

/// A scheme's demands on its transport, constant for given parameters. By default there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// Prior knowledge, where the parameters need another than the catalogue's row says.
    pub needs: Option<Needs>,
    /// A tail loss probe (Reactive TCP; RFC 8985 §7), whatever the transport's default.
    pub tail_probe: bool,
    /// A receiver that acknowledges every segment at once, whatever its default.
    pub every_ack: bool,
    /// A rate field for routers to stamp in all packets, handshake included (RCP).
    pub rate_stamps: bool,
    /// ECT(1) on its data (RFC 9331 §4.1). It responds to every mark, so its transport must count
    /// them ([`Ack::marked`]).
    pub l4s: bool,
    /// Concurrent first flights share a credit: the store reserves the flight as it begins, and
    /// releases it when its fate is known ([`Store`](crate::history::Store)).
    pub reserves_credit: bool,
    /// Nothing is sent after the first flight until all of that is delivered, and then congestion
    /// is avoided. The flight takes two round trips, each further one takes one.
    pub ends_with_flight: bool,
    /// Window and slow start threshold at the end are stored for the next connection, with rate
    /// and RTT (TCP-Cache).
    pub caches_window: bool,
    /// The record belongs to the peer's site ([`Network::of_site`]), whose peers all share it.
    pub by_prefix: bool,
    /// Window and rate of the record are held to the end: it must describe the path exactly.
    pub holds_record: bool,
    /// Flows of every size request the same rate.
    pub fixed_request: bool,
    /// Initial window in segments, of a scheme that is plain slow start.
    pub initial_segments: Option<u64>,
}

impl Requirements {
    /// The address under which a peer's record is kept.
    #[must_use]
    pub fn history_key(&self, peer: IpAddr) -> IpAddr {
        if self.by_prefix { Network::of_site(peer).address() } else { peer }
    }
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

    /// The current phase's name, as the paper spells it; for traces only.
    fn phase(&self) -> &'static str;

    /// Revision of the path's credit by the fate of the first flight, for a scheme that reserves
    /// credit. `None` until the fate is known. Once the connection `has_ended` it follows from what
    /// is known: a client over QUIC closes as soon as it has all data, and its last
    /// acknowledgements never leave.
    fn credit_revision(&self, has_ended: bool) -> Option<Revision> {
        let _ = has_ended;
        None
    }

    /// The fate of the peer's record at the end, with the one that the transport measured, if it
    /// did. By default that one replaces it.
    fn record_update(&self, measured: Option<Record>) -> RecordUpdate {
        measured.map_or(RecordUpdate::Keep, RecordUpdate::Replace)
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

    /// Demands on the transport, which the parameters of the scheme decide.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }

    /// The rate to request of the routers before establishment (RFC 4782); `None`: no request.
    fn request(&self, known: &RequestInputs) -> Option<Rate> {
        let _ = known;
        None
    }
}
