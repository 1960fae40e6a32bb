//! The trait every start-up scheme implements, and the list of all of them.

#[macro_use]
mod list;

mod flights;
mod later_flights;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod timeline;

use core::fmt::{self, Debug};

use headstart_units::{Rate, Span};

use crate::allowance::{Allowance, HandOver, Next, Plan};
use crate::catalogue::Needs;
use crate::event::{Ack, Congestion, Progress, Sent, Timeout};
use crate::history::{Record, Revision};
use crate::prior::Prior;
use crate::quick_start::Question;
use crate::repair::Repair;

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
/// Sans I/O: it is told what happened and when, and answers with what may be sent. It holds no
/// clock, no socket and no random source of its own.
pub trait Startup: Debug {
    /// The connection is established: what may the first flight be? Called once, before anything
    /// else.
    fn establish(&mut self, prior: &Prior) -> Plan;

    /// Data left this host. Most schemes do not care.
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        let _ = sent;
    }

    /// Data was newly acknowledged.
    fn on_ack(&mut self, ack: &Ack) -> Next;

    /// Data was declared lost, or CE-marked. On the same ack this comes before [`Self::on_ack`].
    fn on_congestion(&mut self, signal: &Congestion) -> Next;

    /// The retransmission timer went off. The base controller takes over and answers it, unless the
    /// scheme stays in charge for ever.
    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        let _ = timeout;
        Next::HandOver(HandOver::to_be_cut(self.allowance().window))
    }

    /// The application has more to send than the scheme was told: another answer on the same
    /// connection. `prior` is of this moment: its flow size is what has not left yet, its handshake
    /// RTT the smoothed one. Returns the plan of a flight of it, with which the scheme is in charge
    /// (again); `None`, which is what most say: the window goes on.
    fn on_more(&mut self, prior: &Prior, so_far: &Progress) -> Option<Plan> {
        let _ = (prior, so_far);
        None
    }

    /// What may be sent now. Pure: asking twice changes nothing.
    fn allowance(&self) -> Allowance;

    /// Whether the window is growing as in slow start, so that a transport's own pacer leaves it
    /// room.
    fn is_slow_start(&self) -> bool {
        true
    }

    /// Whether the history record this start began from misled it, or was too old, and must be
    /// forgotten ([`Outcome::Misled`](crate::history::Outcome::Misled)).
    fn discards_history(&self) -> bool {
        false
    }

    /// The current phase's name, as the paper spells it; for traces only.
    fn phase(&self) -> &'static str;

    /// Whether its first flight is one of those that share a credit: to be reserved as it begins,
    /// and released when its fate is known ([`Store`](crate::history::Store)).
    fn reserves(&self) -> bool {
        false
    }

    /// What the fate of its first flight does to the credit of its path; `None` until that is
    /// known, and of schemes that keep none.
    fn fate(&self) -> Option<Revision> {
        None
    }

    /// What is to be remembered, out of what the transport measured.
    fn remember(&self, measured: Record) -> Record {
        measured
    }

    /// Packets that are sent again unasked. To be asked for after [`Self::establish`]: copies may
    /// cover the first flight only. By default none.
    fn repair(&self) -> Repair {
        Repair::Reactive
    }

    /// Whether anything happens in [`Self::on_sent`] as it stands: lets a transport skip the call.
    /// A scheme that overrides that method must override this one too.
    #[inline]
    fn watches_sending(&self) -> bool {
        false
    }

    /// Whether the scheme is defined by a tail loss probe of its own (Reactive TCP), whatever the
    /// transport's default is.
    fn wants_tail_probe(&self) -> bool {
        false
    }

    /// Whether its receiver must acknowledge every segment at once, whatever the transport's
    /// default is.
    fn wants_every_ack(&self) -> bool {
        false
    }

    /// Whether its packets, the handshake's included, are to be stamped by routers (RCP).
    fn wants_stamps(&self) -> bool {
        false
    }

    /// Whether its data leaves as L4S traffic, ECT(1) (RFC 9331 §4.1), because it answers every
    /// mark: its transport must count them for it ([`Ack::marked`]).
    fn is_l4s(&self) -> bool {
        false
    }

    /// The rate to ask the routers for before the connection is established (RFC 4782); `None`: do
    /// not ask.
    fn request(&self, known: &Question) -> Option<Rate> {
        let _ = known;
        None
    }

    /// Whether it asks the routers again when there is more to send after an idle time.
    fn asks_again(&self) -> bool {
        false
    }

    /// Whether its request depends on the size of the flow.
    fn asks_by_size(&self) -> bool {
        true
    }

    /// An RTT that nobody has measured is taken for `rtt` in requests.
    fn assume_rtt(&mut self, rtt: Span) {
        let _ = rtt;
    }

    /// What it must be told to be itself with these parameters; `None`: what its row of the
    /// catalogue says.
    fn needs(&self) -> Option<Needs> {
        None
    }

    /// Whether window and threshold at the end of a connection are to be remembered for the next
    /// one, beside rate and RTT (TCP-Cache).
    fn caches_window(&self) -> bool {
        false
    }

    /// Whether it holds window and rate of the record to the end, so that the record must say what
    /// the path is.
    fn holds_record(&self) -> bool {
        false
    }

    /// Segments of the initial window, of a scheme that is slow start and nothing else.
    fn initial_segments(&self) -> Option<u64> {
        None
    }
}
