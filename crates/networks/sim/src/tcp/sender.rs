//! The sending side: scoreboard, loss recovery, timers and pacing.
//!
//! Two rings hold everything: *segments*, numbered along the stream, and *transmissions*, numbered
//! in the order of sending. A segment names its latest transmission, a transmission its segment.
//! RACK (RFC 8985) walks the transmissions from the oldest. Each is examined until it is resolved
//! and never again, so loss detection costs a constant per packet at any loss rate.
//!
//! | module | holds |
//! |---|---|
//! | `acks` | data that an acknowledgement delivers, and the calls of the scheme |
//! | `buffers` | segments that leave together, as in Linux |
//! | `detection` | the reaction to losses |
//! | `early` | segments that leave before their turn |
//! | `linux` | Linux's rules in addition to the RFCs' |
//! | `probing` | probes when acks stop arriving: TCP's, QUIC's |
//! | `recovery` | loss detection: by time, by count, by report |
//! | `sending` | the next packet, within window and pace |
//! | `timers` | retransmission timeout |
//! | `validation` | windows of which less is used than may be |
//!
//! # Deviations
//!
//! - An ack names the transmission that triggered it: a real sender infers it from timestamps (RFC
//!   7323), and QUIC's has packet numbers. Only RTT samples and Karn's rule depend on it.
//! - Nothing is undone when a retransmission turns out to have been unnecessary (Eifel, DSACK
//!   undo). RACK's reordering window keeps its initial size of a quarter of the minimum RTT.
//! - Proactive copies do not count as in flight: to the scoreboard they are packets that the
//!   network duplicated. [`TcpConfig::copies_count`] puts off the loss of a copied segment.
//! - [`Probe::Quic`]: the backed-off timeout is bounded as a TCP's is; RFC 9002 has no bound and
//!   gives up instead, when the connection was idle for too long.
//! - [`Probe::Quic`]: persistent congestion (RFC 9002 §7.6) is found within one loss detection, not
//!   across several.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use headstart_startup::history::{FlightOutcome, Record, RecordUpdate};
use headstart_startup::path::{PacketTrain, RateEstimator, SendStamp};
use headstart_startup::repair::{Repair, Segments};
use headstart_startup::sending::{
    AckState, Delivered, LimitClock, LimitedBy, Losses, Measurement, Moment, sent_by_slow_start,
};
use headstart_startup::{Controller, Prior, Progress, Rtt, Scheme, Startup as _, Transmission, base};
use headstart_units::{Bytes, Rate, Span, Time};

use self::buffers::Buffer;
use self::probing::Probing as _;
use self::receive_window::ReceiveWindow;
use self::recovery::Recovery as _;
use super::config::{Detection, Pacing, Probe, TcpConfig};
use super::prr::Prr;
use crate::packet::{Acknowledgement, Ecn, Label, Stamp};
use crate::record::{Counts, Recorder, SenderEvent};
use crate::ring::Ring;

/// Three segments delivered beyond make a segment lost (RFC 6675 §2, RFC 8985 §4).
const DUP_THRESH: u32 = 3;

/// A packet that the sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number of the segment.
    pub segment: u32,
    /// Number of the transmission.
    pub transmission: u32,
    /// Payload bytes.
    pub payload: u16,
    /// The last of several that leave as one buffer ([`TcpConfig::as_linux`]).
    pub is_pushed: bool,
    /// Zero is for all packets that leave in their turn; higher numbers are served after lower
    /// ones.
    pub priority: u8,
}

impl Departure {
    /// A packet by itself, at the usual priority.
    const fn alone(segment: u32, transmission: u32, payload: u16) -> Self {
        Self { segment, transmission, payload, is_pushed: false, priority: 0 }
    }
}

/// Fields of an ack that the receiver echoes from data packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Echoed {
    /// The packet that triggered the ack had a congestion mark.
    pub is_marked: bool,
    /// Packets that arrived with one so far, modulo 256.
    pub marks: u8,
    /// RCP's stamp of that packet.
    pub stamp: Stamp,
}

/// One segment of the stream, from its first transmission until it is acknowledged cumulatively.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// Offset of its first byte in the stream.
    offset: u64,
    /// The segment's latest transmission that is not a copy.
    transmission: u32,
    payload: u16,
    flags: u8,
}

/// The receiver has the segment.
const DELIVERED: u8 = 1;
/// The segment's latest transmission counts as in flight.
const IN_FLIGHT: u8 = 2;
/// Declared lost and not sent again yet.
const LOST: u8 = 4;
/// Sent more than once (copies not counted).
const RETRANSMITTED: u8 = 8;
/// Part of the first flight.
const FIRST_FLIGHT: u8 = 16;

impl Segment {
    #[inline]
    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// One transmission.
#[derive(Clone, Copy, Debug, Default)]
struct SentSegment {
    stamp: SendStamp,
    segment: u32,
    /// A proactive copy: its loss is ignored.
    is_copy: bool,
    is_original: bool,
    /// Declared lost, or overtaken by a later transmission of the same segment.
    is_settled: bool,
}

/// State of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    /// No loss recovery in progress.
    #[default]
    Open,
    /// Fast recovery, until everything sent before it is acknowledged.
    Recovery { until: u32 },
    /// After a retransmission timeout, until everything sent before it is acknowledged.
    Loss { until: u32 },
}

/// A sender.
#[derive(Debug)]
pub struct Sender {
    controller: Controller,
    requires_rate_stamps: bool,
    is_l4s: bool,
    /// The receiver's count of marks in the latest ack.
    marks: u8,
    repair: Repair,
    tail_probe: bool,
    rtt: Rtt,
    rate: RateEstimator,
    train: PacketTrain,
    /// The record that the connection began from.
    used: Option<Record>,

    segments: Ring<Segment>,
    flights: Ring<SentSegment>,
    in_flight: Bytes,
    /// Bytes of the first flight that were delivered as originals.
    first_flight_delivered: Bytes,
    first_flight: u64,

    /// Stream bytes handed over by the application, and sent at least once.
    written: u64,
    sent: u64,
    /// Offsets of the messages' ends in the stream; segments do not cross these.
    ends: VecDeque<u64>,
    /// The last segments of messages, as they are formed or sent early: the receiver's side reads
    /// messages by these.
    message_ends: VecDeque<u32>,
    /// Offset of the first byte not acknowledged cumulatively.
    acknowledged: u64,

    state: State,
    /// Transmissions before the latest reduction of the window, and those up to the newest one
    /// declared lost ([`TcpConfig::recovery_period`]).
    reduced_at: u32,
    newest_lost: u32,
    prr: Prr,
    /// Segments declared lost and not sent again, and a lower bound of the first one's number.
    lost_pending: u32,
    lost_hint: u32,
    /// Segments delivered beyond the first missing one.
    delivered_beyond: u32,
    /// The three highest segments delivered, for RFC 6675.
    highest: [u32; 3],
    /// RFC 6675: loss detection has handled every segment below.
    judged: u32,
    rescue_done: bool,
    /// Copied segments, with the time until which their copies may arrive
    /// ([`TcpConfig::copies_count`]).
    copied: Vec<(u32, Time)>,
    /// RFC 6675: how many of them are due to be lost then.
    put_off: VecDeque<(u32, Time)>,
    /// Segments that arrived before their turn; the lowest one that was sent so, and the message's
    /// last one if it was.
    early: BTreeSet<u32>,
    early_from: u32,
    early_end: u32,
    /// UDT: segments that a timeout still has to send again although they were received.
    back: Range<u32>,
    /// The newest transmission delivered, plus one; and when it was sent.
    newest_delivered: u32,
    newest_sent_at: Time,
    rack_rtt: Span,
    reordering_seen: bool,
    /// Marks answered until this segment is acknowledged (RFC 3168 §6.1.2).
    cwr_until: u32,

    backoff: u32,
    rto_at: Time,
    probe_at: Time,
    reorder_at: Time,
    tail_probe_out: bool,
    /// A probe timer expired: the next packet leaves regardless of the window.
    probe_due: bool,
    last_sent_at: Time,

    next_send_at: Time,
    pace_at: Time,
    burst_left: u64,
    quantum_left: u32,
    buffer: Buffer,
    /// The window was the limit for all transmissions below this number.
    limited_below: u32,

    /// Time by what held back the next packet.
    limits: LimitClock,
    usage: validation::Usage,
    peer_window: ReceiveWindow,
    /// The round-trip time is a record's: the first sample takes its place.
    is_rtt_assumed: bool,

    counts: Counts,
}

impl Default for Sender {
    fn default() -> Self {
        let scheme = Scheme::SlowStart(headstart_startup::scheme::SlowStart::new(Default::default()));
        Self {
            controller: Controller::new(scheme, base::Kind::Cubic, Bytes::new(1)),
            requires_rate_stamps: false,
            is_l4s: false,
            marks: 0,
            repair: Repair::Reactive,
            tail_probe: false,
            rtt: Rtt::default(),
            rate: RateEstimator::default(),
            train: PacketTrain::default(),
            used: None,
            segments: Ring::new(),
            flights: Ring::new(),
            in_flight: Bytes::ZERO,
            first_flight_delivered: Bytes::ZERO,
            first_flight: 0,
            written: 0,
            sent: 0,
            ends: VecDeque::new(),
            message_ends: VecDeque::new(),
            acknowledged: 0,
            state: State::Open,
            reduced_at: 0,
            newest_lost: 0,
            prr: Prr::default(),
            lost_pending: 0,
            lost_hint: 0,
            delivered_beyond: 0,
            highest: [0; 3],
            judged: 0,
            rescue_done: false,
            copied: Vec::new(),
            put_off: VecDeque::new(),
            early: BTreeSet::new(),
            early_from: u32::MAX,
            early_end: u32::MAX,
            back: 0..0,
            newest_delivered: 0,
            newest_sent_at: Time::ZERO,
            rack_rtt: Span::ZERO,
            reordering_seen: false,
            cwr_until: 0,
            backoff: 0,
            rto_at: Time::NEVER,
            probe_at: Time::NEVER,
            reorder_at: Time::NEVER,
            tail_probe_out: false,
            probe_due: false,
            last_sent_at: Time::ZERO,
            next_send_at: Time::NEVER,
            pace_at: Time::NEVER,
            burst_left: 0,
            quantum_left: 0,
            buffer: Buffer::default(),
            limited_below: 0,
            limits: LimitClock::default(),
            usage: validation::Usage::default(),
            peer_window: ReceiveWindow::default(),
            is_rtt_assumed: false,
            counts: Counts::default(),
        }
    }
}

/// The scoreboard as presented to repair policies.
struct Scoreboard<'a> {
    segments: &'a Ring<Segment>,
    sent: u64,
    first_flight: u64,
    written_end: u64,
}

impl Segments for Scoreboard<'_> {
    fn first_unacked(&self) -> u64 {
        u64::from(self.segments.base())
    }
    fn end(&self) -> u64 {
        u64::from(self.segments.end())
    }
    fn written_end(&self) -> u64 {
        self.written_end
    }
    fn is_delivered(&self, segment: u64) -> bool {
        u32::try_from(segment)
            .is_ok_and(|n| n < self.segments.base() || self.segments.get(n).is_some_and(|s| s.is(DELIVERED)))
    }
    fn offset(&self, segment: u64) -> Bytes {
        let known = u32::try_from(segment).ok().and_then(|n| self.segments.get(n));
        known.map_or(Bytes::new(self.sent), |segment| Bytes::new(segment.offset))
    }
    fn is_first_flight_sent(&self) -> bool {
        self.sent >= self.first_flight
    }
}

macro_rules! board {
    ($self:ident, $config:ident) => {
        Scoreboard {
            segments: &$self.segments,
            sent: $self.sent,
            first_flight: $self.first_flight,
            // Only early data needs it, and it costs a division.
            written_end: match $self.repair {
                Repair::Early(_) => $self.written_end($config),
                _ => u64::from($self.segments.end()),
            },
        }
    };
}

mod acks;
mod buffers;
mod detection;
mod early;
mod linux;
mod probing;
mod receive_window;
mod recovery;
mod sending;
mod timers;
mod validation;

impl Sender {
    /// The connection has ended.
    pub fn end(&mut self) {
        self.controller.end();
    }

    /// Resets it for a connection with `scheme`; keeps only its memory from the one before.
    pub fn reset(&mut self, scheme: Scheme, base: base::Kind, config: &TcpConfig) {
        self.controller.end();
        self.segments.clear();
        self.flights.clear();
        self.ends.clear();
        self.message_ends.clear();
        let requirements = scheme.requirements();
        *self = Self {
            controller: Controller::new(scheme, base, config.mss),
            requires_rate_stamps: requirements.rate_stamps,
            is_l4s: requirements.l4s,
            tail_probe: config.probe == Probe::TailLoss || requirements.tail_probe,
            segments: std::mem::take(&mut self.segments),
            flights: std::mem::take(&mut self.flights),
            ends: std::mem::take(&mut self.ends),
            message_ends: std::mem::take(&mut self.message_ends),
            ..Self::default()
        };
    }

    /// Another scheme for a connection that has not been established.
    pub fn replace_scheme(&mut self, scheme: Scheme, base: base::Kind, config: &TcpConfig) {
        self.controller = Controller::new(scheme, base, config.mss);
        let requirements = scheme.requirements();
        self.requires_rate_stamps = requirements.rate_stamps;
        self.is_l4s = requirements.l4s;
        self.tail_probe = config.probe == Probe::TailLoss || requirements.tail_probe;
    }

    /// The round-trip time of the prior will not be a measured one.
    pub fn assume_rtt(&mut self) {
        self.is_rtt_assumed = true;
    }

    /// The handshake is complete. The flow's size, if known, is in the prior.
    pub fn establish(&mut self, now: Time, prior: &Prior, recorder: &mut impl Recorder) {
        self.rtt.update(prior.handshake_rtt);
        self.used = prior.history.map(|known| known.record);
        let plan = self.controller.establish(prior);
        self.repair = self.controller.scheme().repair();
        self.first_flight = plan.flight.get().min(self.written.max(prior.flow_size.map_or(0, Bytes::get)));
        self.burst_left = plan.burst.get();
        self.next_send_at = now;
        recorder.sender(now, || self.snapshot(SenderEvent::Established));
    }

    /// The application hands over a message of `bytes`. Returns true if the connection was idle for
    /// a retransmission timeout before.
    pub fn write(&mut self, now: Time, bytes: Bytes, config: &TcpConfig) -> bool {
        if config.is_limited_at_writes() && self.waits_for_application(config) {
            self.rate.on_app_limited(self.in_flight);
        }
        self.limits.resume(now);
        self.written += bytes.get();
        self.ends.push_back(self.written);
        let idle = now.since(self.last_sent_at);
        let was_idle = self.sent > 0 && self.in_flight.is_zero() && idle > self.rto(config);
        if config.pipe_ack {
            if self.sent > 0 {
                self.validate(now, config);
            }
        } else if config.idle_restart && was_idle {
            let (restart, window) = (config.mss * config.restart_window, self.controller.allowance().window);
            let timeouts = idle.as_nanos() / self.rto(config).as_nanos().max(1);
            match config.idle_decay {
                true => {
                    self.controller.on_idle(restart.max(window / (1_u64 << timeouts.min(32))), window * 3 / 4)
                }
                false => self.controller.on_idle(restart, Bytes::ZERO),
            }
        }
        was_idle
    }

    /// Less than a segment is left to send, the window has room and no lost segment is pending
    /// (tcp_rate_check_app_limited).
    fn waits_for_application(&self, config: &TcpConfig) -> bool {
        self.written - self.sent < config.mss.get()
            // Before the handshake is complete there is no window yet.
            && (self.in_flight.is_zero() || self.in_flight < self.controller.allowance().window)
            && self.lost_pending == 0
    }

    /// Routers granted a rate in the middle of the connection: the scheme starts anew, if that is
    /// more than there is.
    pub fn on_grant(
        &mut self,
        now: Time,
        granted: Rate,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) -> bool {
        let remaining = self.written - self.sent;
        let window = self.controller.allowance().window;
        if remaining == 0 || self.state != State::Open || granted * self.rtt.smoothed <= window {
            return false;
        }
        let prior = Prior {
            flow_size: Some(Bytes::new(remaining)),
            granted: Some(granted),
            ..Prior::bare(now, config.mss, self.rtt.smoothed, config.receive_window)
        };
        let plan = self.controller.restart(&prior);
        self.first_flight = (self.sent + plan.flight.get()).min(self.written);
        self.burst_left = plan.burst.get();
        self.next_send_at = now;
        recorder.sender(now, || self.snapshot(SenderEvent::Established));
        true
    }

    /// There is more to send than the scheme was given: it may start another flight.
    pub fn on_new_data(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        let prior = Prior {
            flow_size: Some(Bytes::new(self.written - self.sent)),
            initial_window: config.initial_window(),
            ..Prior::bare(now, config.mss, self.rtt.smoothed, config.receive_window)
        };
        let so_far = Progress {
            sent: Bytes::new(self.sent),
            segments: u64::from(self.segments.end()),
            delivered: self.rate.delivered(),
            in_flight: self.in_flight,
            window: self.controller.allowance().window,
        };
        let Some(plan) = self.controller.on_new_data(&prior, &so_far) else { return };
        self.repair = self.controller.scheme().repair();
        self.first_flight = (self.sent + plan.flight.get()).min(self.written);
        self.burst_left = plan.burst.get();
        // A flight that is under way keeps its spacing.
        self.next_send_at = self.next_send_at.max(now);
        recorder.sender(now, || self.snapshot(SenderEvent::Established));
    }

    /// Everything written is acknowledged.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.acknowledged == self.written
    }

    /// The last segment of the oldest message that the receiver has not read whole.
    pub fn next_message_end(&self) -> Option<u32> {
        self.message_ends.front().copied()
    }

    /// The receiver has read that message.
    pub fn message_read(&mut self) {
        self.message_ends.pop_front();
    }

    /// Time by what held back the next packet.
    pub fn limits(&mut self) -> &mut LimitClock {
        &mut self.limits
    }

    /// Time by limit so far.
    pub fn limited(&self) -> &LimitClock {
        &self.limits
    }

    /// Counts of what it sent and lost so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The path's round-trip time.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// Delivery rate measurement.
    pub fn rate(&self) -> &RateEstimator {
        &self.rate
    }

    /// Scheme and base controller.
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The fate of the peer's record at the end of the connection.
    #[must_use]
    pub fn record_update(&self, now: Time, config: &TcpConfig) -> RecordUpdate {
        self.controller.scheme().record_update(self.measured(now, config))
    }

    /// The path's record by this connection; `None`: the previous record stays.
    fn measured(&self, now: Time, config: &TcpConfig) -> Option<Record> {
        let first_flight_lost = Bytes::new(self.counts.first_flight_lost);
        if config.records_limited {
            return Some(Record {
                saved_at: now,
                btl_bw: self.rate.maximum().rate()?,
                rt_prop: self.rtt.min,
                window: self.controller.allowance().window,
                ssthresh: self.controller.ssthresh(),
                outcome: if first_flight_lost.is_zero() {
                    FlightOutcome::Clean
                } else {
                    FlightOutcome::Lossy
                },
                ..Record::default()
            });
        }
        Measurement {
            rate: &self.rate,
            train: &self.train,
            rt_prop: self.rtt.min,
            controller: &self.controller,
            packet: config.mss,
            first_flight: self.first_flight_sent(),
            first_flight_lost,
            has_lost: self.counts.lost > 0,
        }
        .record(now, self.used.as_ref())
    }

    /// The ECN field of its data.
    #[inline]
    pub fn ecn(&self, config: &TcpConfig) -> Ecn {
        match (self.is_l4s, config.ecn) {
            (true, _) => Ecn::L4s,
            (false, true) => Ecn::Capable,
            (false, false) => Ecn::NotCapable,
        }
    }

    /// The RCP label of the next data packet.
    #[inline]
    pub fn label(&self) -> Label {
        if self.requires_rate_stamps { Label::unstamped(self.rtt.smoothed) } else { Label::default() }
    }

    /// Size of the first flight.
    pub fn first_flight(&self) -> Bytes {
        Bytes::new(self.first_flight)
    }

    /// Bytes of the first flight that were sent.
    pub fn first_flight_sent(&self) -> Bytes {
        Bytes::new(self.first_flight.min(self.sent))
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> Bytes {
        self.in_flight
    }

    /// Number of transmissions so far.
    pub fn transmissions(&self) -> u32 {
        self.flights.end()
    }

    #[inline]
    fn moment(&self, now: Time) -> Moment<'_> {
        Moment {
            now,
            rtt: &self.rtt,
            in_flight: self.in_flight,
            delivered: self.rate.delivered(),
            first_flight_delivered: self.first_flight_delivered,
        }
    }

    fn snapshot(&self, event: SenderEvent) -> crate::record::SenderTrace {
        let allowance = self.controller.allowance();
        crate::record::SenderTrace {
            event,
            in_flight: self.in_flight,
            unsent: Bytes::new(self.written - self.sent),
            window: allowance.window,
            pace: allowance.pace,
            smoothed_rtt: self.rtt.smoothed,
            phase: self.controller.phase(),
            in_recovery: self.state != State::Open,
        }
    }
}
