//! The reaction to losses, common to all strategies of loss detection.

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
        let losses = config.detection.detect(self, now, recorder);
        if losses.bytes.is_zero() {
            return;
        }
        self.counts.first_flight_lost += losses.first_flight.get();
        let opens_episode = if config.recovery_period {
            self.newest_lost > self.reduced_at
        } else {
            self.state == State::Open
        };
        if config.pipe_ack && opens_episode {
            self.cap_unused(prior_in_flight);
        }
        let congestion = self.moment(now).loss(&losses, prior_in_flight, opens_episode);
        self.train.end();
        self.controller.on_congestion(&congestion);
        self.repair.on_congestion();
        if opens_episode {
            self.state = State::Recovery { until: self.segments.end() };
            self.reduced_at = self.flights.end();
            self.rescue_done = false;
            config.probe.on_recovery(self);
            if config.prr {
                self.prr.begin(prior_in_flight, self.in_flight, config.mss);
            }
        }
        if config.probe.is_persistent(self, &losses, config) {
            self.counts.timeouts += 1;
            let timeout = self.moment(now).timeout(prior_in_flight, 1);
            self.controller.on_timeout(&timeout);
        }
    }

    pub(super) fn lose(
        &mut self,
        now: Time,
        transmission: u32,
        losses: &mut Losses,
        recorder: &mut impl Recorder,
    ) {
        let (mut sent_at, mut is_original, mut number) = (now, false, None);
        if let Some(flight) = self.flights.get_mut(transmission) {
            flight.is_settled = true;
            self.newest_lost = self.newest_lost.max(transmission + 1);
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
