//! Acknowledgements: data that one delivers, and the calls of the scheme.

use super::*;
use crate::tcp::config::ReceiveGrowth;
use headstart_startup::path::rate::RateSample;

impl Sender {
    /// An acknowledgement arrived.
    pub fn on_ack(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        echo: Echoed,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) {
        if self.counts.lost == 0 {
            // All that left before this ack.
            let slow_start = sent_by_slow_start(config.mss, self.rate.delivered());
            self.counts.ahead |= u64::from(self.sent > slow_start.get());
        }
        let prior_in_flight = self.in_flight;
        let (prior_base, prior_lost) = (self.segments.base(), self.counts.lost);
        let newly = self.deliver_all(now, ack, config);
        if newly.data.bytes.is_zero() {
            return;
        }
        let rate = self.measure(now, &newly, config);
        self.backoff = 0;
        self.tail_probe_out = false;
        self.leave_recovery(config);
        self.detect_after(now, prior_in_flight, config, recorder);
        if echo.is_marked && self.segments.base() >= self.cwr_until {
            self.answer_mark(now, prior_in_flight, config);
        }
        let is_advance = self.segments.base() > prior_base;
        self.grow(now, &newly, rate, echo, is_advance, config);
        if matches!(self.state, State::Recovery { .. }) && config.prr {
            let ssthresh = self.controller.allowance().window;
            let is_safe = config.prr_slow_start || is_advance && self.counts.lost == prior_lost;
            let grain = config.reduction_grain();
            self.prr.on_ack(newly.data.bytes, self.in_flight, ssthresh, config.mss, grain, is_safe);
        }
        if self.repair.is_active() {
            let packets = newly.data.bytes.get().div_ceil(config.mss.get().max(1));
            let board = board!(self, config);
            self.repair.on_ack(packets, &board);
        }
        self.rearm(now, true, config);
        recorder.sender(now, || {
            self.snapshot(SenderEvent::Acked { acknowledged: self.acknowledged, newly: newly.data.bytes })
        });
    }

    /// Marks what the receiver has by this ack: the segment that triggered it, those below the
    /// cumulative number, and blocks beyond it.
    #[inline]
    fn deliver_all(&mut self, now: Time, ack: &Acknowledgement, config: &TcpConfig) -> NewlyAcked {
        let mut newly = NewlyAcked { highest_before: self.highest[0], ..NewlyAcked::default() };

        // The segment that triggered the ack first: its transmission is known.
        if self.was_early(ack) {
            self.arrived_early(now, ack.trigger);
        } else if self.segments.get(ack.trigger).is_some_and(|segment| !segment.is(DELIVERED)) {
            if let Some(flight) = self.flights.get(ack.transmission) {
                newly.data.rtt_sample = Some(now.since(flight.stamp.sent_at));
            }
            self.deliver(now, ack.trigger, Some(ack.transmission), &mut newly);
        }
        if ack.cumulative > self.segments.end() {
            self.skip_early(now, ack.cumulative, config);
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
        if self.segments.base() + self.delivered_beyond + (self.early.len() as u32) < ack.received {
            for block in ack.blocks {
                for number in block.start.max(self.early_from)..block.end {
                    self.arrived_early(now, number);
                }
                for number in block.start.max(self.segments.base())..block.end.min(self.segments.end()) {
                    if !self.segments[number].is(DELIVERED) {
                        self.deliver(now, number, None, &mut newly);
                    }
                }
            }
        }
        self.lost_hint = self.lost_hint.max(self.segments.base());
        newly
    }

    /// Round-trip time, the receiver's room and the delivery rate by an ack of new data.
    #[inline]
    fn measure(&mut self, now: Time, newly: &NewlyAcked, config: &TcpConfig) -> RateSample {
        if let Some(sample) = newly.data.rtt_sample {
            if std::mem::take(&mut self.is_rtt_assumed) {
                self.rtt = Rtt::default();
            }
            self.rtt.update(sample);
        }
        if config.receive_growth != ReceiveGrowth::Fixed {
            self.peer_window.on_ack(now, self.acknowledged, self.rtt.min, config);
        }
        let rate = self.rate.sample(now, self.rtt.min);
        if config.pipe_ack {
            self.validate(now, config);
        }
        rate
    }

    #[inline]
    fn leave_recovery(&mut self, config: &TcpConfig) {
        match self.state {
            State::Recovery { .. } if config.recovery_period && self.newest_delivered > self.reduced_at => {
                self.state = State::Open;
            }
            State::Recovery { until } | State::Loss { until } if self.segments.base() >= until => {
                self.state = State::Open;
            }
            _ => {}
        }
    }

    /// A mark counts once per window of data (RFC 3168 §6.1.2).
    #[cold]
    fn answer_mark(&mut self, now: Time, prior_in_flight: Bytes, config: &TcpConfig) {
        self.cwr_until = self.segments.end();
        if config.pipe_ack {
            self.cap_unused(prior_in_flight);
        }
        let mark = self.moment(now).mark(prior_in_flight, self.state == State::Open);
        self.train.end();
        self.repair.on_congestion();
        self.controller.on_congestion(&mark);
    }

    /// Lets the scheme and its base answer to new data.
    #[inline]
    fn grow(
        &mut self,
        now: Time,
        newly: &NewlyAcked,
        rate: RateSample,
        echo: Echoed,
        is_advance: bool,
        config: &TcpConfig,
    ) {
        let may_grow = is_advance || config.probe.grows_without_advance();
        let was_limit = if config.rate_limited_increase {
            self.may_increase(config)
        } else {
            !config.window_validation || self.newest_delivered <= self.limited_below
        };
        let marked = if echo.marks == self.marks {
            Bytes::ZERO
        } else {
            self.newly_marked(echo.marks, newly.data.bytes, config.mss)
        };
        let state = AckState {
            newest_sent_at: self.newest_sent_at,
            rate,
            is_window_limited: may_grow && was_limit,
            in_recovery: matches!(self.state, State::Recovery { .. }),
            is_all_sent: false,
            marked,
            stamped: echo.stamp.rate(),
        };
        let event = self.moment(now).ack(&newly.data, &state);
        self.train.on_ack(&event, config.mss);
        self.controller.on_ack(&event);
    }

    /// The part of the newly delivered bytes that the receiver's count reports as marked. An ack
    /// that others overtook counts nothing.
    #[cold]
    fn newly_marked(&mut self, marks: u8, delivered: Bytes, mss: Bytes) -> Bytes {
        let fresh = marks.wrapping_sub(self.marks);
        if fresh > 127 {
            return Bytes::ZERO;
        }
        self.marks = marks;
        (mss * u64::from(fresh)).min(delivered)
    }

    /// The receiver has segment `number`, which counts neither as in flight nor as lost any more.
    /// Returns it as it was.
    #[inline]
    pub(super) fn settle(&mut self, number: u32) -> Segment {
        let segment = &mut self.segments[number];
        let before = *segment;
        segment.flags = (segment.flags | DELIVERED) & !(IN_FLIGHT | LOST);
        if before.is(IN_FLIGHT) {
            self.in_flight -= Bytes::new(u64::from(before.payload));
        }
        if before.is(LOST) {
            self.lost_pending -= 1;
        }
        self.delivered_beyond += 1;
        before
    }

    /// The peer has segment `number`; `via` is the transmission that brought it, where that is
    /// known.
    #[inline]
    fn deliver(&mut self, now: Time, number: u32, via: Option<u32>, newly: &mut NewlyAcked) {
        let segment = self.settle(number);
        let payload = Bytes::new(u64::from(segment.payload));
        newly.data.bytes += payload;
        let was_retransmitted = segment.is(RETRANSMITTED);
        let is_first_flight = segment.is(FIRST_FLIGHT);
        let transmission = via.unwrap_or(segment.transmission);

        // Never sent twice, yet overtaken by data delivered before: the path reorders (RFC 8985
        // §6.2).
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
        // RFC 8985 §6.2: an ambiguous ack sooner than any round trip answers an earlier
        // transmission.
        let is_credible = via.is_some() || !was_retransmitted || now.since(sent_at) >= self.rtt.min;
        if is_credible && transmission + 1 > self.newest_delivered {
            self.newest_delivered = transmission + 1;
            self.newest_sent_at = sent_at;
            self.rack_rtt = now.since(sent_at);
        }
        if is_first_flight && flight.is_original {
            newly.data.first_flight += payload;
            self.first_flight_delivered += payload;
        }
        if is_credible {
            self.rate.on_delivered(now, payload, &flight.stamp);
        } else {
            self.rate.on_delivered_late(now, payload);
        }
    }
}

/// Data delivered by one ack.
#[derive(Clone, Copy, Debug, Default)]
struct NewlyAcked {
    data: Delivered,
    /// Rank of the highest segment delivered before this ack.
    highest_before: u32,
}
