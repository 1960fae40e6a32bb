//! Loss detection: by time (RFC 8985), by count (RFC 6675), by the receiver's reports (UDT).

use super::*;

impl Sender {
    pub(super) fn detect(&mut self, now: Time, config: &TcpConfig, recorder: &mut impl Recorder) {
        self.detect_after(now, self.in_flight, config, recorder);
    }

    /// Detects losses and reacts to them; `prior_in_flight` is the bytes in flight before the
    /// event.
    #[inline]
    pub(super) fn detect_after(
        &mut self,
        now: Time,
        prior_in_flight: Bytes,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) {
        let losses = match config.detection {
            Detection::Rack => self.detect_by_time(now, recorder),
            Detection::Rfc6675 => self.detect_by_count(now, recorder),
            Detection::Udt(udt) => self.detect_by_report(now, udt, recorder),
        };
        if losses.bytes.is_zero() {
            return;
        }
        self.counts.first_flight_lost += losses.first_flight.get();
        let opens_episode = self.state == State::Open;
        let congestion = self.moment(now).loss(&losses, prior_in_flight, opens_episode);
        self.controller.on_congestion(&congestion);
        self.repair.on_congestion();
        if opens_episode {
            self.state = State::Recovery { until: self.segments.end() };
            self.rescue_done = false;
            // RFC 8985 §7.3: no tail loss probe in recovery. QUIC's probe is the only timer there
            // is.
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
            let timeout = self.moment(now).timeout(prior_in_flight, 1);
            self.controller.on_timeout(&timeout);
        }
    }

    /// RFC 8985 §6.2 step 5: a packet is lost if one sent later was delivered and its own
    /// reordering window is over.
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
    fn detect_by_count(&mut self, now: Time, recorder: &mut impl Recorder) -> Losses {
        let mut losses = Losses::default();
        if !self.put_off.is_empty() {
            self.lose_overdue(now, &mut losses, recorder);
        }
        let third_highest = self.highest[DUP_THRESH as usize - 1].saturating_sub(1);
        self.judged = self.judged.max(self.segments.base());
        while self.judged < third_highest {
            let segment = self.segments[self.judged];
            if segment.is(IN_FLIGHT) && !segment.is(RETRANSMITTED) {
                if let Some(until) = self.copy_out_until(now, self.judged) {
                    self.put_off.push_back((self.judged, until));
                    self.reorder_at = self.reorder_at.min(until);
                    self.judged += 1;
                    continue;
                }
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

    /// Time until which a copy of this segment may still arrive.
    #[inline]
    fn copy_out_until(&self, now: Time, number: u32) -> Option<Time> {
        let (_, until) = self.copied.iter().rev().find(|(copied, _)| *copied == number)?;
        (*until > now).then_some(*until)
    }

    /// Segments whose copies did not arrive either.
    #[cold]
    fn lose_overdue(&mut self, now: Time, losses: &mut Losses, recorder: &mut impl Recorder) {
        while let Some(&(number, until)) = self.put_off.front() {
            if until > now {
                self.reorder_at = until;
                return;
            }
            self.put_off.pop_front();
            let segment = self.segments.get(number).copied();
            let is_missing = |it: &Segment| it.is(IN_FLIGHT) && !it.is(RETRANSMITTED);
            if let Some(segment) = segment.filter(is_missing) {
                self.lose(now, segment.transmission, losses, recorder);
            }
        }
        self.reorder_at = Time::NEVER;
    }

    /// A loss report names the segments that three others overtook; it is repeated while one is
    /// missing.
    #[cold]
    fn detect_by_report(&mut self, now: Time, udt: Udt, recorder: &mut impl Recorder) -> Losses {
        let mut losses =
            if udt.is_periodic { Losses::default() } else { self.detect_by_count(now, recorder) };
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
            if segment.is(IN_FLIGHT) && self.copy_out_until(now, number).is_none() {
                let is_known = segment.is(RETRANSMITTED);
                let lost = self.counts.lost;
                if is_known && !udt.repeats {
                    continue;
                }
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
        losses.add(payload, segment.is(FIRST_FLIGHT) && is_original, sent_at);
        self.in_flight -= payload;
        self.lost_pending += 1;
        self.lost_hint = self.lost_hint.min(number);
        self.counts.lost += 1;
        recorder.sender(now, || self.snapshot(SenderEvent::Lost { offset, payload }));
    }
}
