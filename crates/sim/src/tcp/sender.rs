//! The sending side: scoreboard, loss recovery, timers and pacing.
//!
//! Two rings hold everything: *segments*, numbered along the stream, and *transmissions*, numbered in the order
//! of sending. A segment names its latest transmission, a transmission its segment. RACK (RFC 8985) walks the
//! transmissions from the oldest: each is looked at until it is resolved and never again, so loss
//! detection costs a constant per packet whatever is lost.
//!
//! # Deviations
//!
//! - An ack names the transmission that set it off, as timestamps (RFC 7323) let a real sender guess and QUIC's packet
//!   numbers let it know. RTT samples and Karn's rule hang on that alone.
//! - Nothing is undone when a retransmission turns out to have been unnecessary (Eifel, DSACK undo). RACK's
//!   reordering window keeps its initial size of a quarter of the minimum RTT.
//! - Proactive copies do not count as in flight: to the scoreboard they are packets that the network made.
//! - [`Probe::Quic`]: the backed-off timeout is bounded as a TCP's is; RFC 9002 has no bound and gives up instead,
//!   when the connection was idle for too long.
//! - [`Probe::Quic`]: persistent congestion (RFC 9002 §7.6) is found within one loss detection, not across several.

use std::collections::VecDeque;
use std::ops::Range;

use headstart_startup::history::{Ended, Record};
use headstart_startup::path::{RateEstimator, SendStamp};
use headstart_startup::repair::{Repair, Segments};
use headstart_startup::{
    Ack, Congestion, Controller, Prior, Rtt, Scheme, Sent, Signal, Timeout, Transmission, base,
};
use headstart_units::{Bytes, Rate, Span, Time};

use super::config::{Detection, Pacing, Probe, TcpConfig};
use super::prr::Prr;
use super::udt::Udt;
use crate::packet::{Acknowledgement, Label, Stamp};
use crate::record::{Recorder, SenderEvent};
use crate::ring::Ring;

/// Three segments delivered beyond make a segment lost (RFC 6675 §2, RFC 8985 §4).
const DUP_THRESH: u32 = 3;

/// A packet that the sender lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number of the segment.
    pub segment: u32,
    /// Number of the transmission.
    pub transmission: u32,
    /// Payload bytes.
    pub payload: u16,
}

/// One segment of the stream, from its first transmission until it is acknowledged cumulatively.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    /// Where in the stream it begins.
    offset: u64,
    /// Its latest transmission that is not a copy.
    transmission: u32,
    payload: u16,
    flags: u8,
}

/// The receiver has it.
const DELIVERED: u8 = 1;
/// Its latest transmission counts as in flight.
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
struct Flight {
    stamp: SendStamp,
    segment: u32,
    /// A proactive copy: its loss is nobody's business.
    is_copy: bool,
    is_original: bool,
    /// Declared lost, or overtaken by a later transmission of the same segment.
    is_settled: bool,
}

/// Where loss recovery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    /// Nothing was lost lately.
    #[default]
    Open,
    /// Fast recovery, until everything sent before it is acknowledged.
    Recovery { until: u32 },
    /// After a retransmission timeout, until everything sent before it is acknowledged.
    Loss { until: u32 },
}

/// What a sender counted; for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Probes: tail loss or QUIC.
    pub probes: u64,
    /// Bytes of the first flight that were declared lost.
    pub first_flight_lost: u64,
}

/// A sender.
#[derive(Debug)]
pub struct Sender {
    controller: Controller,
    watches_sending: bool,
    wants_stamps: bool,
    repair: Repair,
    tail_probe: bool,
    rtt: Rtt,
    rate: RateEstimator,

    segments: Ring<Segment>,
    flights: Ring<Flight>,
    in_flight: Bytes,
    /// Bytes of the first flight that came through as originals.
    first_flight_delivered: Bytes,
    first_flight: u64,

    /// Stream bytes handed over by the application, and sent at least once.
    written: u64,
    sent: u64,
    /// Where messages end in the stream; segments do not cross these.
    ends: VecDeque<u64>,
    /// The last segments of messages, as they are formed: the receiver's side reads messages by these.
    message_ends: VecDeque<u32>,
    /// Offset of the first byte not acknowledged cumulatively.
    acknowledged: u64,

    state: State,
    prr: Prr,
    /// Segments declared lost and not sent again, and where to look for the first.
    lost_pending: u32,
    lost_hint: u32,
    /// Segments delivered beyond the first missing one.
    delivered_beyond: u32,
    /// The three highest segments delivered, for RFC 6675.
    highest: [u32; 3],
    /// RFC 6675: everything below has been judged.
    judged: u32,
    rescue_done: bool,
    /// UDT: what a timeout still has to send again although it was received.
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
    /// A probe timer went off: the next packet leaves whatever the window says.
    probe_due: bool,
    last_sent_at: Time,

    next_send_at: Time,
    pace_at: Time,
    burst_left: u64,
    quantum_left: u32,
    /// The window was the limit for all transmissions below this number.
    limited_below: u32,

    counts: Counts,
}

impl Default for Sender {
    fn default() -> Self {
        let scheme = Scheme::SlowStart(headstart_startup::scheme::SlowStart::new(Default::default()));
        Self {
            controller: Controller::new(scheme, base::Kind::Cubic, Bytes::new(1)),
            watches_sending: false,
            wants_stamps: false,
            repair: Repair::Reactive,
            tail_probe: false,
            rtt: Rtt::default(),
            rate: RateEstimator::default(),
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
            prr: Prr::default(),
            lost_pending: 0,
            lost_hint: 0,
            delivered_beyond: 0,
            highest: [0; 3],
            judged: 0,
            rescue_done: false,
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
            limited_below: 0,
            counts: Counts::default(),
        }
    }
}

/// The scoreboard as repair policies see it.
struct Board<'a> {
    segments: &'a Ring<Segment>,
    sent: u64,
    first_flight: u64,
}

impl Segments for Board<'_> {
    fn first_unacked(&self) -> u64 {
        u64::from(self.segments.base())
    }
    fn end(&self) -> u64 {
        u64::from(self.segments.end())
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
    ($self:ident) => {
        Board { segments: &$self.segments, sent: $self.sent, first_flight: $self.first_flight }
    };
}

impl Sender {
    /// Begins a connection's life with `scheme`; keeps only its memory from the one before.
    pub fn reset(&mut self, scheme: Scheme, base: base::Kind, config: &TcpConfig) {
        self.segments.clear();
        self.flights.clear();
        self.ends.clear();
        self.message_ends.clear();
        *self = Self {
            controller: Controller::new(scheme, base, config.mss),
            watches_sending: scheme.watches_sending(),
            wants_stamps: scheme.wants_stamps(),
            tail_probe: config.probe == Probe::TailLoss || scheme.wants_tail_probe(),
            segments: std::mem::take(&mut self.segments),
            flights: std::mem::take(&mut self.flights),
            ends: std::mem::take(&mut self.ends),
            message_ends: std::mem::take(&mut self.message_ends),
            ..Self::default()
        };
    }

    /// The handshake is through. The application's size, if it is known, is what the prior says.
    pub fn establish(&mut self, now: Time, prior: &Prior, recorder: &mut impl Recorder) {
        self.rtt.update(prior.handshake_rtt);
        let plan = self.controller.establish(prior);
        self.repair = self.controller.scheme().repair();
        self.first_flight = plan.flight.get().min(self.written.max(prior.flow_size.map_or(0, Bytes::get)));
        self.burst_left = plan.burst.get();
        self.next_send_at = now;
        recorder.sender(now, || self.snapshot(SenderEvent::Established));
    }

    /// The application hands over a message of `bytes`. Returns whether the connection was idle for a retransmission timeout
    /// before.
    pub fn write(&mut self, now: Time, bytes: Bytes, config: &TcpConfig) -> bool {
        self.written += bytes.get();
        self.ends.push_back(self.written);
        let idle = now.since(self.last_sent_at);
        let was_idle = self.sent > 0 && self.in_flight.is_zero() && idle > self.rto(config);
        if config.idle_restart && was_idle {
            self.controller.on_idle(config.mss * 10);
        }
        was_idle
    }

    /// Routers granted a rate in the middle of the connection: the scheme starts anew, if that is more than there is.
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

    /// What was counted.
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

    /// What this connection leaves behind for the next one to the same peer; `None` if it measured no rate.
    #[must_use]
    pub fn record(&self, now: Time) -> Option<Record> {
        let lost = self.counts.first_flight_lost > 0;
        Some(Record {
            saved_at: now,
            btl_bw: self.rate.fastest().rate()?,
            rt_prop: self.rtt.min,
            window: self.controller.allowance().window,
            ssthresh: self.controller.ssthresh(),
            ended: if lost { Ended::Lossy } else { Ended::Clean },
        })
    }

    /// What the next data packet has for RCP routers.
    #[inline]
    pub fn label(&self) -> Label {
        if self.wants_stamps { Label::wanted(self.rtt.smoothed) } else { Label::default() }
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

    // --- timers ---------------------------------------------------------------------------------

    /// When [`Self::on_loss_timer`] wants to be called.
    #[inline]
    pub fn loss_timer(&self) -> Time {
        self.reorder_at.min(self.probe_at).min(self.rto_at)
    }

    fn rto(&self, config: &TcpConfig) -> Span {
        let base = if self.rtt.smoothed.is_zero() { config.initial_rto } else { self.rtt.timeout() };
        (base.max(config.min_rto) * (1 << self.backoff.min(16))).min(config.max_rto)
    }

    /// RFC 9002 §6.2.1.
    fn quic_probe_timeout(&self, config: &TcpConfig) -> Span {
        let variation = (self.rtt.variation * 4).max(Span::from_millis(1));
        let once = self.rtt.smoothed + variation + config.delayed_ack.timeout;
        (once * (1 << self.backoff.min(16))).min(config.max_rto)
    }

    /// Sets the timers anew: the retransmission timer only after progress, or if it was off
    /// (RFC 6298 §5.1 to §5.3); the probe timer each time (RFC 8985 §7.2, RFC 9002 §6.2.1).
    #[inline]
    fn rearm(&mut self, now: Time, is_progress: bool, config: &TcpConfig) {
        self.probe_at = Time::NEVER;
        if self.in_flight.is_zero() && self.lost_pending == 0 {
            self.rto_at = Time::NEVER;
            return;
        }
        if config.probe == Probe::Quic {
            self.probe_at = now + self.quic_probe_timeout(config);
            return;
        }
        if is_progress || self.rto_at == Time::NEVER {
            self.rto_at = now + self.rto(config);
        }
        if self.tail_probe && self.state == State::Open && !self.tail_probe_out {
            // RFC 8985 §7.2: twice the RTT, and the receiver's delay if a single segment is out.
            let mut timeout = self.rtt.smoothed * 2;
            if self.in_flight <= config.mss {
                timeout += config.delayed_ack.timeout;
            }
            let probe_at = now + timeout;
            if probe_at < self.rto_at {
                self.probe_at = probe_at;
            }
        }
    }

    /// A loss timer is due.
    pub fn on_loss_timer(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        if self.reorder_at <= now {
            if !matches!(config.detection, Detection::Udt(_)) {
                self.reorder_at = Time::NEVER;
            }
            self.detect(now, config, recorder);
        } else if self.probe_at <= now {
            self.on_probe_timer(now, config);
        } else if self.rto_at <= now {
            self.on_timeout(now, config, recorder);
        }
    }

    /// RFC 6298 §5.4 to §5.7; everything in flight is taken for lost (RFC 6675 §5.1).
    fn on_timeout(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        let prior_in_flight = self.in_flight;
        for number in self.segments.base()..self.segments.end() {
            let segment = &mut self.segments[number];
            if !segment.is(DELIVERED) && !segment.is(LOST) {
                segment.flags = (segment.flags | LOST) & !IN_FLIGHT;
                self.lost_pending += 1;
                self.counts.lost += 1;
            }
        }
        if matches!(config.detection, Detection::Udt(Udt { goes_back: true, .. })) {
            self.back = self.segments.base()..self.segments.end();
        }
        self.in_flight = Bytes::ZERO;
        self.flights.forget_below(self.flights.end());
        self.lost_hint = self.segments.base();
        self.judged = self.segments.end();
        self.state = State::Loss { until: self.segments.end() };
        self.tail_probe_out = false;
        self.reorder_at = Time::NEVER;
        self.backoff += 1;
        self.counts.timeouts += 1;
        self.repair.on_congestion();
        self.controller.on_timeout(&Timeout {
            now,
            prior_in_flight,
            delivered: self.rate.delivered(),
            consecutive: self.backoff,
        });
        self.rto_at = now + self.rto(config);
        self.next_send_at = self.next_send_at.min(now);
        recorder.sender(now, || self.snapshot(SenderEvent::Timeout));
    }

    /// Lets one probe go on the next call of [`Self::next_departure`], whatever the window says.
    fn on_probe_timer(&mut self, now: Time, config: &TcpConfig) {
        self.counts.probes += 1;
        self.probe_due = true;
        self.tail_probe_out = true;
        self.probe_at = Time::NEVER;
        if config.probe == Probe::Quic {
            self.backoff += 1;
            self.probe_at = now + self.quic_probe_timeout(config);
        }
    }

    // --- acknowledgements -----------------------------------------------------------------------

    /// An acknowledgement arrived; `is_marked` and `stamp` are the receiver's echo of a congestion mark and of RCP's stamp.
    pub fn on_ack(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        is_marked: bool,
        stamp: Stamp,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) {
        let prior_in_flight = self.in_flight;
        let (prior_base, prior_lost) = (self.segments.base(), self.counts.lost);
        let mut newly = Newly { highest_before: self.highest[0], ..Newly::default() };

        // The segment that set the ack off first: its transmission is known.
        if self.segments.get(ack.trigger).is_some_and(|segment| !segment.is(DELIVERED)) {
            if let Some(flight) = self.flights.get(ack.transmission) {
                newly.rtt_sample = Some(now.since(flight.stamp.sent_at));
            }
            self.deliver(now, ack.trigger, Some(ack.transmission), &mut newly);
        }
        while self.segments.base() < ack.cumulative {
            let number = self.segments.base();
            if !self.segments[number].is(DELIVERED) {
                self.deliver(now, number, None, &mut newly);
            }
            let segment = self.segments[number];
            self.acknowledged = segment.offset + u64::from(segment.payload);
            self.delivered_beyond -= 1;
            self.segments.forget_below(number + 1);
        }
        // Only if the receiver has more than is known here was an earlier ack lost or overtaken.
        if self.segments.base() + self.delivered_beyond < ack.received {
            for block in ack.blocks {
                for number in block.start.max(self.segments.base())..block.end.min(self.segments.end()) {
                    if !self.segments[number].is(DELIVERED) {
                        self.deliver(now, number, None, &mut newly);
                    }
                }
            }
        }
        self.lost_hint = self.lost_hint.max(self.segments.base());

        if newly.bytes.is_zero() {
            return;
        }
        if let Some(sample) = newly.rtt_sample {
            self.rtt.update(sample);
        }
        let rate = self.rate.sample(now, self.rtt.min);
        self.backoff = 0;
        self.tail_probe_out = false;
        match self.state {
            State::Recovery { until } | State::Loss { until } if self.segments.base() >= until => {
                self.state = State::Open;
            }
            _ => {}
        }
        self.detect_after(now, prior_in_flight, config, recorder);
        if is_marked && self.segments.base() >= self.cwr_until {
            self.cwr_until = self.segments.end();
            let opens_episode = self.state == State::Open;
            self.repair.on_congestion();
            self.controller.on_congestion(&Congestion {
                signal: Signal::CongestionExperienced,
                opens_episode,
                ..self.congestion(now, prior_in_flight)
            });
        }
        let is_advance = self.segments.base() > prior_base;
        // RFC 5681 §3.2 step 1: a duplicate ack lets a packet go, but the window stays. QUIC knows no duplicate acks.
        let may_grow = is_advance || config.probe == Probe::Quic;
        self.controller.on_ack(&Ack {
            now,
            newest_sent_at: self.newest_sent_at,
            newly_acked: newly.bytes,
            first_flight_acked: newly.first_flight,
            rtt_sample: newly.rtt_sample,
            rtt: self.rtt,
            in_flight: self.in_flight,
            delivered: self.rate.delivered(),
            rate,
            is_window_limited: may_grow && self.newest_delivered <= self.limited_below,
            in_recovery: matches!(self.state, State::Recovery { .. }),
            stamped: stamp.rate(),
        });
        if matches!(self.state, State::Recovery { .. }) && config.prr {
            let ssthresh = self.controller.allowance().window;
            let is_safe = is_advance && self.counts.lost == prior_lost;
            self.prr.on_ack(newly.bytes, self.in_flight, ssthresh, config.mss, is_safe);
        }
        if self.repair.is_active() {
            let board = board!(self);
            self.repair.on_ack(&board);
        }
        self.rearm(now, true, config);
        recorder.sender(now, || {
            self.snapshot(SenderEvent::Acked { acknowledged: self.acknowledged, newly: newly.bytes })
        });
    }

    /// The peer has segment `number`; `via` is the transmission that brought it, where that is known.
    #[inline]
    fn deliver(&mut self, now: Time, number: u32, via: Option<u32>, newly: &mut Newly) {
        let segment = &mut self.segments[number];
        let payload = Bytes::new(u64::from(segment.payload));
        if segment.is(IN_FLIGHT) {
            self.in_flight -= payload;
        }
        if segment.is(LOST) {
            self.lost_pending -= 1;
        }
        segment.flags = (segment.flags | DELIVERED) & !(IN_FLIGHT | LOST);
        newly.bytes += payload;
        self.delivered_beyond += 1;
        let was_retransmitted = segment.is(RETRANSMITTED);
        let is_first_flight = segment.is(FIRST_FLIGHT);
        let transmission = via.unwrap_or(segment.transmission);

        // Never sent twice, yet overtaken by what was delivered before: the path reorders (RFC 8985 §6.2).
        if !was_retransmitted && number + 1 < newly.highest_before {
            self.reordering_seen = true;
        }
        let rank = number + 1;
        if rank > self.highest[2] {
            self.highest[2] = rank;
            if rank > self.highest[1] {
                self.highest.swap(1, 2);
                if rank > self.highest[0] {
                    self.highest.swap(0, 1);
                }
            }
        }

        let Some(flight) = self.flights.get(transmission) else {
            self.rate.on_delivered_late(now, payload);
            return;
        };
        let sent_at = flight.stamp.sent_at;
        // RFC 8985 §6.2: an ambiguous ack sooner than any round trip answers an earlier transmission.
        let is_credible = via.is_some() || !was_retransmitted || now.since(sent_at) >= self.rtt.min;
        if is_credible && transmission + 1 > self.newest_delivered {
            self.newest_delivered = transmission + 1;
            self.newest_sent_at = sent_at;
            self.rack_rtt = now.since(sent_at);
        }
        if is_first_flight && flight.is_original {
            newly.first_flight += payload;
            self.first_flight_delivered += payload;
        }
        if is_credible {
            self.rate.on_delivered(now, payload, &flight.stamp);
        } else {
            self.rate.on_delivered_late(now, payload);
        }
    }

    // --- loss detection -------------------------------------------------------------------------

    fn detect(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        self.detect_after(now, self.in_flight, config, recorder);
    }

    /// Looks for losses and answers them; `prior_in_flight` is what was in flight before the event.
    #[inline]
    fn detect_after(
        &mut self,
        now: Time,
        prior_in_flight: Bytes,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) {
        let losses = match config.detection {
            Detection::Rack => self.detect_by_time(now, recorder),
            Detection::Rfc6675 => self.detect_by_count(recorder),
            Detection::Udt(udt) => self.detect_by_report(now, udt, recorder),
        };
        if losses.bytes.is_zero() {
            return;
        }
        self.counts.first_flight_lost += losses.first_flight.get();
        let opens_episode = self.state == State::Open;
        let congestion = Congestion {
            opens_episode,
            lost: losses.bytes,
            first_flight_lost: losses.first_flight,
            newest_lost_sent_at: losses.newest_sent_at,
            ..self.congestion(now, prior_in_flight)
        };
        self.controller.on_congestion(&congestion);
        self.repair.on_congestion();
        if opens_episode {
            self.state = State::Recovery { until: self.segments.end() };
            self.rescue_done = false;
            // RFC 8985 §7.3: no tail loss probe in recovery. QUIC's probe is the only timer there is.
            if config.probe != Probe::Quic {
                self.probe_at = Time::NEVER;
            }
            if config.prr {
                self.prr.begin(prior_in_flight, self.in_flight, config.mss);
            }
        }
        // RFC 9002 §7.6: everything lost over three probe timeouts.
        let span = losses.newest_sent_at.since(losses.oldest_sent_at);
        if config.probe == Probe::Quic && span > self.quic_probe_timeout(config) * 3 {
            self.counts.timeouts += 1;
            self.controller.on_timeout(&Timeout {
                now,
                prior_in_flight,
                delivered: self.rate.delivered(),
                consecutive: 1,
            });
        }
    }

    /// RFC 8985 §6.2 step 5: a packet is lost if one sent later was delivered and its own time is up.
    #[inline]
    fn detect_by_time(&mut self, now: Time, recorder: &mut impl Recorder) -> Losses {
        let mut losses = Losses::default();
        self.reorder_at = Time::NEVER;
        // RFC 8985 §6.2 step 4.
        let is_certain =
            !self.reordering_seen && (self.state != State::Open || self.delivered_beyond >= DUP_THRESH);
        let reordering_window =
            if is_certain { Span::ZERO } else { (self.rtt.min / 4).min(self.rtt.smoothed) };
        while self.flights.base() < self.newest_delivered {
            let number = self.flights.base();
            let flight = self.flights[number];
            let is_open = !flight.is_settled
                && !flight.is_copy
                && self.segments.get(flight.segment).is_some_and(|segment| segment.is(IN_FLIGHT));
            if is_open {
                let deadline = flight.stamp.sent_at + self.rack_rtt + reordering_window;
                if deadline > now {
                    self.reorder_at = deadline;
                    break;
                }
                self.lose(now, number, &mut losses, recorder);
            }
            self.flights.forget_below(number + 1);
        }
        losses
    }

    /// RFC 6675 §4 IsLost: three segments delivered beyond; each segment is judged once.
    fn detect_by_count(&mut self, recorder: &mut impl Recorder) -> Losses {
        let mut losses = Losses::default();
        let third_highest = self.highest[DUP_THRESH as usize - 1].saturating_sub(1);
        self.judged = self.judged.max(self.segments.base());
        while self.judged < third_highest {
            let segment = self.segments[self.judged];
            if segment.is(IN_FLIGHT) && !segment.is(RETRANSMITTED) {
                let now = self.newest_sent_at;
                self.lose(now, segment.transmission, &mut losses, recorder);
            }
            self.judged += 1;
        }
        while self.flights.get(self.flights.base()).is_some_and(|flight| {
            flight.is_settled
                || flight.is_copy
                || self.segments.get(flight.segment).is_none_or(|segment| segment.is(DELIVERED))
        }) {
            self.flights.forget_below(self.flights.base() + 1);
        }
        losses
    }

    /// A loss report names what was overtaken by three others; it is repeated while something is missing.
    #[cold]
    fn detect_by_report(&mut self, now: Time, udt: Udt, recorder: &mut impl Recorder) -> Losses {
        let mut losses = if udt.is_periodic { Losses::default() } else { self.detect_by_count(recorder) };
        let overtaken = self.highest[DUP_THRESH as usize - 1].saturating_sub(1);
        let known = if udt.is_periodic { overtaken } else { self.judged.min(self.highest[0]) };
        let range = self.segments.base()..known.max(self.segments.base());
        if range.clone().all(|number| self.segments[number].is(DELIVERED)) {
            self.reorder_at = Time::NEVER;
            return losses;
        }
        let Some(interval) = udt.reports.interval(&self.rtt) else { return losses };
        if self.reorder_at == Time::NEVER {
            self.reorder_at = now + interval;
        }
        if self.reorder_at > now {
            return losses;
        }
        self.reorder_at = now + interval;
        for number in range {
            let segment = self.segments[number];
            if segment.is(IN_FLIGHT) {
                let is_known = segment.is(RETRANSMITTED);
                let lost = self.counts.lost;
                if is_known {
                    self.lose(now, segment.transmission, &mut Losses::default(), recorder);
                    self.counts.lost = lost;
                } else {
                    self.lose(now, segment.transmission, &mut losses, recorder);
                }
            }
        }
        losses
    }

    fn lose(&mut self, now: Time, transmission: u32, losses: &mut Losses, recorder: &mut impl Recorder) {
        let (mut sent_at, mut is_original, mut number) = (now, false, None);
        if let Some(flight) = self.flights.get_mut(transmission) {
            flight.is_settled = true;
            sent_at = flight.stamp.sent_at;
            is_original = flight.is_original;
            number = Some(flight.segment);
        }
        let Some(number) = number else { return };
        let segment = &mut self.segments[number];
        segment.flags = (segment.flags | LOST) & !IN_FLIGHT;
        let payload = Bytes::new(u64::from(segment.payload));
        let offset = segment.offset;
        if segment.is(FIRST_FLIGHT) && is_original {
            losses.first_flight += payload;
        }
        self.in_flight -= payload;
        self.lost_pending += 1;
        self.lost_hint = self.lost_hint.min(number);
        self.counts.lost += 1;
        losses.oldest_sent_at = if losses.bytes.is_zero() { sent_at } else { losses.oldest_sent_at };
        losses.newest_sent_at = losses.newest_sent_at.max(sent_at);
        losses.bytes += payload;
        recorder.sender(now, || self.snapshot(SenderEvent::Lost { offset, payload }));
    }

    fn congestion(&self, now: Time, prior_in_flight: Bytes) -> Congestion {
        Congestion {
            now,
            signal: Signal::Loss,
            opens_episode: false,
            lost: Bytes::ZERO,
            first_flight_lost: Bytes::ZERO,
            newest_lost_sent_at: Time::ZERO,
            prior_in_flight,
            in_flight: self.in_flight,
            delivered: self.rate.delivered(),
            first_flight_delivered: self.first_flight_delivered,
            rtt: self.rtt,
        }
    }

    // --- sending --------------------------------------------------------------------------------

    /// When the pacer lets the next packet go; [`Time::NEVER`] if it is not what holds it back.
    #[inline]
    pub fn pace_timer(&self) -> Time {
        self.pace_at
    }

    /// The next packet that may leave now: a retransmission before new data, new data before copies.
    #[inline]
    pub fn next_departure(
        &mut self,
        now: Time,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) -> Option<Departure> {
        self.pace_at = Time::NEVER;
        if self.repair.is_prompt()
            && let Some(copy) = self.next_copy(now, recorder)
        {
            return Some(copy);
        }
        if !self.back.is_empty()
            && let Some(departure) = self.go_back(now)
        {
            return Some(departure);
        }
        let departure = match self.choose(config) {
            Some(choice) => self.try_send(now, choice, config, recorder),
            None => {
                if self.sent == self.written && !self.in_flight.is_zero() {
                    self.rate.on_app_limited(self.in_flight);
                }
                None
            }
        };
        match departure {
            None if self.repair.is_active() => self.next_copy(now, recorder),
            departure => departure,
        }
    }

    /// What would leave next if it may.
    #[inline]
    fn choose(&mut self, config: &TcpConfig) -> Option<Choice> {
        if self.lost_pending > 0 {
            while !self.segments[self.lost_hint].is(LOST) {
                self.lost_hint += 1;
            }
            return Some(Choice::Again(self.lost_hint));
        }
        if let Some(&end) = self.ends.front() {
            let payload = (end - self.sent).min(config.mss.get());
            if self.sent + payload <= self.acknowledged + config.receive_window.get() {
                return Some(Choice::New(payload as u16));
            }
        }
        if self.probe_due {
            let range = self.segments.base()..self.segments.end();
            let is_waiting = |number: &u32| self.segments[*number].is(IN_FLIGHT);
            return match config.probe {
                // RFC 8985 §7.3: the last one.
                Probe::TailLoss | Probe::None => range.rev().find(is_waiting),
                // RFC 9002 §6.2.4: what was sent before; the oldest helps most.
                Probe::Quic => range.clone().find(is_waiting),
            }
            .map(Choice::Again);
        }
        if config.detection == Detection::Rfc6675 && matches!(self.state, State::Recovery { .. }) {
            return self.choose_beyond_rules();
        }
        None
    }

    /// RFC 6675 §4 NextSeg rules 3 and 4: below what was delivered and not sent again yet; then, once an episode,
    /// the last one that is missing.
    #[cold]
    fn choose_beyond_rules(&mut self) -> Option<Choice> {
        let range = self.segments.base()..self.segments.end();
        let highest = self.highest[0].saturating_sub(1);
        let untried = |number: &u32| {
            let segment = &self.segments[*number];
            segment.is(IN_FLIGHT) && !segment.is(RETRANSMITTED)
        };
        if let Some(number) = range.clone().take_while(|number| *number < highest).find(untried) {
            return Some(Choice::Again(number));
        }
        if self.rescue_done {
            return None;
        }
        self.rescue_done = true;
        range.rev().find(|number| self.segments[*number].is(IN_FLIGHT)).map(Choice::Again)
    }

    #[inline]
    fn try_send(
        &mut self,
        now: Time,
        choice: Choice,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) -> Option<Departure> {
        let allowance = self.controller.allowance();
        let window = match self.state {
            State::Recovery { .. } if config.prr && self.controller.is_handed_over() => self.prr.window(),
            _ => allowance.window,
        };
        let payload = match choice {
            Choice::New(payload) => payload,
            Choice::Again(number) => self.segments[number].payload,
        };
        let bytes = Bytes::new(u64::from(payload));
        // UDT's loss list asks neither window nor pacer.
        let is_free = self.probe_due
            || matches!(
                (config.detection, choice),
                (Detection::Udt(Udt { asks_window: false, .. }), Choice::Again(_))
            );
        if !is_free && self.in_flight + bytes > window && !self.in_flight.is_zero() {
            self.limited_below = self.flights.end();
            return None;
        }
        let pace = allowance.pace.or_else(|| self.transport_pace(allowance.window, config));
        if let Some(pace) = pace
            && !is_free
            && !self.take_from_pacer(now, bytes, pace, config)
        {
            self.limited_below = self.flights.end();
            return None;
        }
        self.probe_due = false;
        let is_new = matches!(choice, Choice::New(_));
        let departure = match choice {
            Choice::New(payload) => self.send_new(now, payload),
            Choice::Again(number) => self.send_again(now, number),
        };
        if matches!(self.state, State::Recovery { .. }) {
            self.prr.on_sent(bytes);
        }
        self.counted(now, departure.payload);
        if self.watches_sending {
            self.controller.on_sent(&Sent {
                now,
                bytes,
                in_flight: self.in_flight,
                transmission: if is_new { Transmission::Original } else { Transmission::Retransmission },
                is_app_limited: self.sent == self.written,
            });
        }
        if is_new || self.rto_at == Time::NEVER {
            self.rearm(now, false, config);
        }
        recorder.sender(now, || {
            self.snapshot(SenderEvent::Sent {
                offset: self.segments[departure.segment].offset,
                payload: bytes,
                transmission: if is_new { Transmission::Original } else { Transmission::Retransmission },
            })
        });
        Some(departure)
    }

    fn transport_pace(&self, window: Bytes, config: &TcpConfig) -> Option<Rate> {
        match config.pacing {
            Pacing::Off => None,
            Pacing::Linux => {
                let percent = if self.controller.is_slow_start() { 200 } else { 120 };
                Some(window * percent / 100 / self.rtt.smoothed)
            }
        }
    }

    /// Whether `bytes` may leave now at `pace`; takes them if so, sets the timer if not.
    fn take_from_pacer(&mut self, now: Time, bytes: Bytes, pace: Rate, config: &TcpConfig) -> bool {
        if self.burst_left >= bytes.get() {
            self.burst_left -= bytes.get();
            // What follows the burst leaves one gap after its last packet.
            self.next_send_at = now + bytes / pace;
            return true;
        }
        if self.quantum_left == 0 {
            if now < self.next_send_at {
                self.pace_at = self.next_send_at;
                return false;
            }
            self.quantum_left = config.quantum.max(1);
            self.next_send_at = now;
        }
        self.quantum_left -= 1;
        self.next_send_at += bytes / pace;
        true
    }

    #[inline]
    fn send_new(&mut self, now: Time, payload: u16) -> Departure {
        let number = self.segments.end();
        let is_first_flight = self.sent < self.first_flight;
        let transmission = self.launch(now, number, false, true);
        self.segments.push(Segment {
            offset: self.sent,
            transmission,
            payload,
            flags: IN_FLIGHT | if is_first_flight { FIRST_FLIGHT } else { 0 },
        });
        self.in_flight += Bytes::new(u64::from(payload));
        self.sent += u64::from(payload);
        if self.ends.front() == Some(&self.sent) {
            self.ends.pop_front();
            self.message_ends.push_back(number);
        }
        if self.repair.is_active() {
            self.repair.on_sent(u64::from(number));
        }
        Departure { segment: number, transmission, payload }
    }

    /// The next segment of those that a timeout sends again although they arrived. Each waits for what is missing before it.
    #[cold]
    fn go_back(&mut self, now: Time) -> Option<Departure> {
        self.back.start = self.back.start.max(self.segments.base());
        let number = self.back.start;
        let segment = self.segments.get(number).copied().filter(|_| !self.back.is_empty())?;
        if !segment.is(DELIVERED) {
            if !segment.is(LOST) {
                self.back.start += 1;
                return self.go_back(now);
            }
            return None;
        }
        self.back.start += 1;
        let transmission = self.launch(now, number, true, false);
        self.counts.retransmissions += 1;
        self.counted(now, segment.payload);
        Some(Departure { segment: number, transmission, payload: segment.payload })
    }

    fn send_again(&mut self, now: Time, number: u32) -> Departure {
        let transmission = self.launch(now, number, false, false);
        let segment = &mut self.segments[number];
        if segment.is(LOST) {
            self.lost_pending -= 1;
            self.in_flight += Bytes::new(u64::from(segment.payload));
        }
        let before = segment.transmission;
        segment.flags = (segment.flags | IN_FLIGHT | RETRANSMITTED) & !LOST;
        segment.transmission = transmission;
        let payload = segment.payload;
        if let Some(flight) = self.flights.get_mut(before) {
            flight.is_settled = true;
        }
        self.counts.retransmissions += 1;
        Departure { segment: number, transmission, payload }
    }

    /// The next proactive copy, if the scheme's repair wants one.
    fn next_copy(&mut self, now: Time, recorder: &mut impl Recorder) -> Option<Departure> {
        let number = {
            let board = board!(self);
            u32::try_from(self.repair.next(&board)?).ok()?
        };
        let segment = *self.segments.get(number)?;
        let transmission = self.launch(now, number, true, false);
        self.counts.copies += 1;
        self.counted(now, segment.payload);
        let bytes = Bytes::new(u64::from(segment.payload));
        if self.watches_sending {
            self.controller.on_sent(&Sent {
                now,
                bytes,
                in_flight: self.in_flight,
                transmission: Transmission::Copy,
                is_app_limited: self.sent == self.written,
            });
        }
        recorder.sender(now, || {
            self.snapshot(SenderEvent::Sent {
                offset: segment.offset,
                payload: bytes,
                transmission: Transmission::Copy,
            })
        });
        Some(Departure { segment: number, transmission, payload: segment.payload })
    }

    #[inline]
    fn launch(&mut self, now: Time, segment: u32, is_copy: bool, is_original: bool) -> u32 {
        let transmission = self.flights.end();
        let stamp = self.rate.on_sent(now, self.in_flight);
        self.flights.push(Flight { stamp, segment, is_copy, is_original, is_settled: false });
        transmission
    }

    #[inline]
    fn counted(&mut self, now: Time, payload: u16) {
        self.counts.bytes_sent += u64::from(payload);
        self.counts.packets_sent += 1;
        self.last_sent_at = now;
    }

    fn snapshot(&self, event: SenderEvent) -> crate::record::SenderTrace {
        let allowance = self.controller.allowance();
        crate::record::SenderTrace {
            event,
            in_flight: self.in_flight,
            window: allowance.window,
            pace: allowance.pace,
            smoothed_rtt: self.rtt.smoothed,
            phase: self.controller.phase(),
            in_recovery: self.state != State::Open,
        }
    }
}

/// What one ack delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Newly {
    bytes: Bytes,
    first_flight: Bytes,
    rtt_sample: Option<Span>,
    /// Rank of the highest segment delivered before this ack.
    highest_before: u32,
}

/// What one look for losses found.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    bytes: Bytes,
    first_flight: Bytes,
    oldest_sent_at: Time,
    newest_sent_at: Time,
}

/// What would leave next.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// So many bytes of new data.
    New(u16),
    /// This segment again.
    Again(u32),
}
