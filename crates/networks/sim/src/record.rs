//! Events and reports of a run, and the trait of their receivers.
//!
//! A recorder is a type parameter of the simulation: methods left at their default cost nothing.

use headstart_net::DropReason;
use headstart_startup::SlowStartEnd;
use headstart_startup::quick_start::DenialReason;
use headstart_startup::sending::LimitedBy;
use headstart_units::{Bytes, Rate, Span, Time};

pub use headstart_startup::trace::{SenderEvent, SenderTrace};

use crate::packet::Packet;
use crate::workload::PageReport;

/// Receives the events and reports of a run.
pub trait Recorder {
    /// A flow ended, or the run ended before it.
    fn flow(&mut self, report: &FlowReport) {
        let _ = report;
    }

    /// A message of a workload's exchange was read whole by the receiver.
    fn message(&mut self, report: &MessageReport) {
        let _ = report;
    }

    /// A page was complete.
    fn page(&mut self, report: &PageReport) {
        let _ = report;
    }

    /// A datagram of a real-time flow was sent, or arrived.
    fn datagram(&mut self, sent_at: Time, arrived_at: Option<Time>) {
        let _ = (sent_at, arrived_at);
    }

    /// The next events concern this flow, by serial number. Called only by recorders that trace.
    #[inline]
    fn focus(&mut self, serial: u64) {
        let _ = serial;
    }

    /// Something happened at a sender; `trace` is evaluated only by recorders that trace.
    #[inline]
    fn sender(&mut self, now: Time, trace: impl FnOnce() -> SenderTrace) {
        let _ = (now, trace);
    }

    /// Packets and bytes wait before an element; only recorders of queues evaluate `length`.
    #[inline]
    fn queue(&mut self, now: Time, element: usize, length: impl FnOnce() -> (u64, Bytes)) {
        let _ = (now, element, length);
    }

    /// Event of a packet at an element of the path.
    #[inline]
    fn element(&mut self, now: Time, element: usize, event: ElementEvent, packet: &Packet) {
        let _ = (now, element, event, packet);
    }
}

/// The counts of one sender, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Counts {
    /// Payload bytes sent, all transmissions.
    pub bytes_sent: u64,
    /// Data packets sent, all transmissions.
    pub packets_sent: u64,
    /// Retransmissions, probes included, copies not.
    pub retransmissions: u64,
    /// Proactive copies.
    pub copies: u64,
    /// Segments declared lost.
    pub lost: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Probes sent: tail loss probes (RFC 8985 §7) or QUIC's (RFC 9002 §6.2).
    pub probes: u64,
    /// Bytes of the first flight that were declared lost.
    pub first_flight_lost: u64,
    /// Starts that were ahead of slow start ([`sent_by_slow_start`]).
    ///
    /// [`sent_by_slow_start`]: headstart_startup::sending::sent_by_slow_start
    pub ahead: u64,
}

/// A recorder that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {}

/// Events of a packet at an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementEvent {
    /// The packet was taken in.
    Accepted,
    /// The packet was dropped on arrival.
    Refused(DropReason),
    /// The packet crossed the element without delay.
    Passed,
    /// The packet left the element.
    Delivered,
    /// The packet was dropped after it had been taken in.
    Dropped(DropReason),
}

/// The routers' answer to a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// No request was made.
    #[default]
    NotRequested,
    /// This rate was granted (Quick-Start) or stamped (RCP).
    Granted(Rate),
    /// The request was denied.
    Denied(DenialReason),
    /// No RCP router stamped the handshake.
    Unstamped,
}

/// One flow, from its SYN to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowReport {
    /// Serial number of the flow in the run, by opening.
    pub serial: u64,
    /// The group it belongs to: an index into the run's groups.
    pub group: u16,
    /// The peer's number, as its workload gave it.
    pub peer: u32,
    /// Time at which the first SYN was sent.
    pub opened_at: Time,
    /// Time of establishment at the sender.
    pub established_at: Option<Time>,
    /// Time at which the last payload byte arrived; `None` if the run ended first.
    pub completed_at: Option<Time>,
    /// Time at which the run removed it.
    pub ended_at: Time,
    /// The path's minimum RTT as the sender measured it.
    pub min_rtt: Span,
    /// Bytes the application handed over.
    pub written: Bytes,
    /// Bytes of messages that the receiver read whole.
    pub read: Bytes,
    /// Payload bytes acknowledged at the sender.
    pub delivered: Bytes,
    /// Segments that arrived although they had arrived before.
    pub duplicates: u32,
    /// Segments that were missing at the receiver when a later one arrived; of the TCP model.
    pub missed: u32,
    /// SYNs and requests sent again.
    pub handshake_retransmissions: u32,
    /// The start could draw on a record of the peer.
    pub had_history: bool,
    /// The routers' answer to its start.
    pub grant: Grant,
    /// Requests in the middle of the connection, and how many of them began a new start.
    pub later_requests: (u32, u32),
    /// Bytes that its first flight sent; with a new start in the middle, those before it included.
    pub first_flight: Bytes,
    /// The sender's counters.
    pub counts: Counts,
    /// Time to its completion by what held it back, in the order of [`LimitedBy::ALL`].
    pub limited: [Span; LimitedBy::ALL.len()],
    /// The end of its slow start; `None` if that lasts, or where the transport does not report it.
    pub slow_start_end: Option<SlowStartEnd>,
    /// The phase at its end, as its scheme names it; empty where the transport does not report one.
    pub phase: &'static str,
}

impl FlowReport {
    /// Completion time: from the first SYN to the last payload byte at the receiver.
    #[must_use]
    pub fn completion_time(&self) -> Option<Span> {
        self.completed_at.map(|at| at.since(self.opened_at))
    }

    /// Turns a sender's own account of its limits into the flow's. The former begins with the first
    /// packet and ends with the last ack. The handshake comes before, and the last bytes are on the
    /// path until they arrive; later time is cut. Without an account, or before completion,
    /// nothing changes.
    pub fn close_account(&mut self) {
        let (Some(established), Some(all)) = (self.established_at, self.completion_time()) else { return };
        if self.limited.iter().all(|span| span.is_zero()) {
            return;
        }
        self.limited[LimitedBy::Handshake as usize] = established.since(self.opened_at);
        self.limited[LimitedBy::Path as usize] = all;
        let mut left = all;
        for span in &mut self.limited {
            *span = left.min(*span);
            left = left.saturating_sub(*span);
        }
    }

    /// Completion time without the handshake: from establishment at the sender.
    #[must_use]
    pub fn transfer_time(&self) -> Option<Span> {
        Some(self.completed_at?.since(self.established_at?))
    }
}

/// One message of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct MessageReport {
    /// Serial number of its flow.
    pub serial: u64,
    /// Group of the flow.
    pub group: u16,
    /// Time of its request (or of its hand-over, where there is no request).
    pub requested_at: Time,
    /// Time at which its last byte was read.
    pub read_at: Time,
    /// Size of the message in bytes.
    pub bytes: Bytes,
}
