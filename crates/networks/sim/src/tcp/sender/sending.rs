//! Sending: the next packet, within window and pace, and its entries on the scoreboard.

use super::buffers::largest_buffer;
use super::*;

/// Segments at the beginning of a connection that Linux does not pace.
const UNPACED: u64 = 10;

impl Sender {
    /// Time of the pacer's next release; [`Time::NEVER`] if the pacer is not the limit.
    #[inline]
    pub fn pace_timer(&self) -> Time {
        self.pace_at
    }

    /// The next packet that may leave now: a retransmission before new data, new data before
    /// copies.
    #[inline]
    pub fn next_departure(
        &mut self,
        now: Time,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) -> Option<Departure> {
        self.pace_at = Time::NEVER;
        if self.repair.is_prompt()
            && let Some(copy) = self.next_copy(now, config, recorder)
        {
            return Some(copy);
        }
        if !self.back.is_empty()
            && let Some(departure) = self.go_back(now)
        {
            return Some(departure);
        }
        let chosen = self.choose(now, config).ok_or(if self.sent < self.written {
            LimitedBy::Receiver
        } else {
            LimitedBy::Path
        });
        let limit = match chosen.and_then(|choice| self.try_send(now, choice, config, recorder)) {
            Ok(departure) => return Some(departure),
            Err(limit) => limit,
        };
        if limit == LimitedBy::Path && !self.in_flight.is_zero() && !config.is_limited_at_writes() {
            self.rate.on_app_limited(self.in_flight);
        }
        self.limits.switch(now, if self.state == State::Open { limit } else { LimitedBy::Recovery });
        if self.repair.is_active() { self.next_copy(now, config, recorder) } else { None }
    }

    /// The next packet to leave, if window and pacer allow it.
    #[inline]
    fn choose(&mut self, now: Time, config: &TcpConfig) -> Option<NextPacket> {
        if self.lost_pending > 0 {
            while !self.segments[self.lost_hint].is(LOST) {
                self.lost_hint += 1;
            }
            return Some(NextPacket::Retransmission(self.lost_hint));
        }
        if !self.early.is_empty() {
            self.skip_early(now, 0, config);
        }
        if let Some(&end) = self.ends.front() {
            let payload = (end - self.sent).min(config.mss.get());
            if self.sent + payload <= self.peer_window.limit(self.acknowledged, config) {
                return Some(NextPacket::New(payload as u16));
            }
        }
        if self.probe_due {
            return config.probe.choose(self).map(NextPacket::Retransmission);
        }
        if !config.rescue {
            return None;
        }
        config.detection.choose_beyond(self).map(NextPacket::Retransmission)
    }

    #[inline]
    fn try_send(
        &mut self,
        now: Time,
        choice: NextPacket,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) -> Result<Departure, LimitedBy> {
        let allowance = self.controller.allowance();
        let window = match self.state {
            State::Recovery { .. } if config.prr && self.controller.is_handed_over() => self.prr.window(),
            _ => allowance.window,
        };
        let payload = match choice {
            NextPacket::New(payload) => payload,
            NextPacket::Retransmission(number) => self.segments[number].payload,
        };
        let bytes = Bytes::new(u64::from(payload));
        let is_free = self.probe_due || config.detection.is_free(choice);
        let outstanding = self.in_flight;
        if !is_free && outstanding + bytes > window && !outstanding.is_zero() {
            self.limited_below = self.flights.end();
            return Err(LimitedBy::Window);
        }
        let is_buffered = config.has_buffers() && !is_free && matches!(choice, NextPacket::New(_));
        if is_buffered && self.defers(now, window, config) {
            self.limited_below = self.flights.end();
            return Err(LimitedBy::Window);
        }
        let pace = allowance.pace.or_else(|| self.transport_pace(allowance.window, config));
        if let Some(pace) = pace
            && !is_free
            && !self.is_before_pacing(config)
            && !self.take_from_pacer(now, bytes, pace, config)
        {
            self.limited_below = self.flights.end();
            return Err(LimitedBy::Pacer);
        }
        self.probe_due = false;
        let is_new = matches!(choice, NextPacket::New(_));
        let is_pushed = is_buffered && self.fill_buffer(window, config);
        let mut departure = match choice {
            NextPacket::New(payload) => self.send_new(now, payload),
            NextPacket::Retransmission(number) => self.send_again(now, number),
        };
        departure.is_pushed = is_pushed;
        if matches!(self.state, State::Recovery { .. }) {
            self.prr.on_sent(bytes);
        }
        self.counted(now, departure.payload);
        if config.rate_limited_increase {
            self.note_flight();
        }
        let transmission = if is_new { Transmission::Original } else { Transmission::Retransmission };
        self.report_sent(now, departure.segment, bytes, transmission, recorder);
        if is_new || self.rto_at == Time::NEVER {
            self.rearm(now, false, config);
        }
        Ok(departure)
    }

    fn transport_pace(&self, window: Bytes, config: &TcpConfig) -> Option<Rate> {
        match config.pacing {
            Pacing::Off => None,
            // Nothing was measured yet.
            _ if self.is_rtt_assumed => None,
            Pacing::Linux | Pacing::LinuxAlways => {
                let percent = if self.controller.is_slow_start() { 200 } else { 120 };
                Some(window * percent / 100 / self.rtt.smoothed)
            }
            Pacing::Quic => Some(window * 5 / 4 / self.rtt.smoothed),
        }
    }

    /// Linux paces no connection's first ten segments, at any pace.
    fn is_before_pacing(&self, config: &TcpConfig) -> bool {
        config.pacing == Pacing::LinuxAlways && self.counts.packets_sent < UNPACED
    }

    /// Segments that leave together. Linux sends those of a 1024th of a second at its pace as one,
    /// two at least, and one buffer at most. QUIC stacks send a burst ([`Pacing::Quic`]), but a
    /// scheme's own pace packet by packet.
    fn quantum(&self, pace: Rate, config: &TcpConfig) -> u32 {
        match config.pacing {
            Pacing::Off | Pacing::Linux => config.quantum.max(1),
            Pacing::Quic if self.controller.allowance().pace.is_some() => config.quantum.max(1),
            Pacing::LinuxAlways => largest_buffer(pace, config).max(config.quantum),
            Pacing::Quic => {
                let within = |millis| (pace * Span::from_millis(millis)).get() / config.mss.get().max(1);
                (within(2).max(10).min(within(10)).clamp(1, 256) as u32).max(config.quantum)
            }
        }
    }

    /// True if `bytes` may leave now at `pace`; takes them if so, sets the timer if not.
    fn take_from_pacer(&mut self, now: Time, bytes: Bytes, pace: Rate, config: &TcpConfig) -> bool {
        if self.burst_left >= bytes.get() {
            self.burst_left -= bytes.get();
            // The packet after the burst leaves one gap after its last packet.
            self.next_send_at = now + bytes / pace;
            return true;
        }
        if self.quantum_left == 0 {
            if now < self.next_send_at {
                self.pace_at = self.next_send_at;
                return false;
            }
            self.quantum_left = self.quantum(pace, config);
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
        self.form(number, payload, transmission, IN_FLIGHT | if is_first_flight { FIRST_FLIGHT } else { 0 });
        self.in_flight += Bytes::new(u64::from(payload));
        if self.repair.is_active() {
            self.repair.on_sent(u64::from(number));
        }
        Departure::alone(number, transmission, payload)
    }

    /// The next segment of the stream gets its place on the scoreboard.
    #[inline]
    pub(super) fn form(&mut self, number: u32, payload: u16, transmission: u32, flags: u8) {
        self.segments.push(Segment { offset: self.sent, transmission, payload, flags });
        self.sent += u64::from(payload);
        if self.ends.front() == Some(&self.sent) {
            self.ends.pop_front();
            if number != self.early_end {
                self.message_ends.push_back(number);
            }
        }
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
        Departure::alone(number, transmission, payload)
    }

    /// The next proactive copy, if the scheme's repair has one.
    fn next_copy(
        &mut self,
        now: Time,
        config: &TcpConfig,
        recorder: &mut impl Recorder,
    ) -> Option<Departure> {
        let number = {
            let board = board!(self, config);
            u32::try_from(self.repair.next(&board)?).ok()?
        };
        if number >= self.segments.end() {
            return Some(self.send_early(now, number, config, recorder));
        }
        let segment = *self.segments.get(number)?;
        let transmission = self.launch(now, number, true, false);
        self.counts.copies += 1;
        if config.copies_count {
            self.copied.push((number, now + self.rtt.smoothed));
        }
        self.counted(now, segment.payload);
        let bytes = Bytes::new(u64::from(segment.payload));
        self.report_sent(now, number, bytes, Transmission::Copy, recorder);
        Some(Departure::alone(number, transmission, segment.payload))
    }

    /// A packet left: tells the scheme, if it asks, and the recorder.
    #[inline]
    fn report_sent(
        &mut self,
        now: Time,
        segment: u32,
        payload: Bytes,
        transmission: Transmission,
        recorder: &mut impl Recorder,
    ) {
        if self.controller.needs_sent_events() {
            self.pass_sent(now, payload, transmission);
        }
        recorder.sender(now, || {
            let offset = self.segments[segment].offset;
            self.snapshot(SenderEvent::Sent { offset, payload, transmission })
        });
    }

    /// Few schemes ask for it.
    #[cold]
    fn pass_sent(&mut self, now: Time, payload: Bytes, transmission: Transmission) {
        let sent = self.moment(now).sent(payload, transmission, self.sent == self.written);
        self.controller.on_sent(&sent);
    }

    #[inline]
    pub(super) fn launch(&mut self, now: Time, segment: u32, is_copy: bool, is_original: bool) -> u32 {
        let transmission = self.flights.end();
        let stamp = self.rate.on_sent(now, self.in_flight);
        self.flights.push(SentSegment { stamp, segment, is_copy, is_original, is_settled: false });
        transmission
    }

    #[inline]
    pub(super) fn counted(&mut self, now: Time, payload: u16) {
        self.counts.bytes_sent += u64::from(payload);
        self.counts.packets_sent += 1;
        self.last_sent_at = now;
    }
}

/// The next packet to leave.
#[derive(Clone, Copy, Debug)]
pub(super) enum NextPacket {
    /// So many bytes of new data.
    New(u16),
    /// This segment again.
    Retransmission(u32),
}
