//! BBR3 §5.5: the model of the path, from samples of delivered and lost data.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::{BbrV3, Phase};
use crate::event::Ack;
use crate::path::bdp;

impl BbrV3 {
    /// The rate sample of the ack, and the rounds that it ends: UpdateRound and the first half of
    /// UpdateLatestDeliverySignals.
    pub(super) fn sample(&mut self, ack: &Ack) -> Sample {
        let delivered = ack.rate.delivered;
        let prior = ack.rate.prior_delivered;
        let lost = self.losses.since(prior, ack.delivered);
        let begins_round = self.round.on_ack(ack);
        if begins_round {
            self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
            self.is_limited = [false, self.is_limited[0]];
        }
        let ends_loss_round = prior >= self.loss_round_ends;
        if ends_loss_round {
            self.loss_round_ends = ack.delivered;
        }
        Sample {
            rate: ack.rate.rate().map(|rate| rate.min(MAX_RATE_SAMPLE)),
            delivered,
            is_app_limited: ack.rate.is_app_limited || prior < self.limited_until,
            tx_in_flight: delivered + lost,
            lost,
            begins_round,
            ends_loss_round,
        }
    }

    /// UpdateLatestDeliverySignals and UpdateCongestionSignals.
    pub(super) fn update_signals(&mut self, sample: &Sample) {
        let rate = sample.rate.unwrap_or(Rate::ZERO);
        self.bw_latest = self.bw_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if !rate.is_zero() && (rate >= self.max_bw() || !sample.is_app_limited) {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
        if sample.ends_loss_round {
            if !self.is_probing() {
                self.adapt_lower_bounds();
            }
            self.marks.in_loss_round = false;
        }
    }

    /// AdaptLowerBoundsFromCongestion, InitLowerBounds and LossLowerBounds.
    pub(super) fn adapt_lower_bounds(&mut self) {
        let is_marked = self.marks.in_loss_round && self.params.responds_to_marks;
        if !self.is_loss_in_round && !is_marked {
            return;
        }
        if self.inflight_shortterm == Bytes::MAX {
            self.inflight_shortterm = self.window;
        }
        let by_marks = if is_marked { self.marks.cut(self.inflight_shortterm) } else { Bytes::MAX };
        if self.is_loss_in_round {
            if self.bw_shortterm == Rate::MAX {
                self.bw_shortterm = self.max_bw();
            }
            self.bw_shortterm = self.bw_latest.max(self.bw_shortterm * BETA);
            self.inflight_shortterm = self.inflight_latest.max(self.inflight_shortterm * BETA);
        }
        self.inflight_shortterm = self.inflight_shortterm.min(by_marks);
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_signals(&mut self, sample: &Sample) {
        if sample.ends_loss_round {
            self.bw_latest = sample.rate.unwrap_or(Rate::ZERO);
            self.inflight_latest = sample.delivered;
            self.is_loss_in_round = false;
            self.loss_events = 0;
        }
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        self.marks.in_loss_round = false;
        self.bw_latest = Rate::ZERO;
        self.inflight_latest = Bytes::ZERO;
    }

    /// ResetShortTermModel.
    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = Rate::MAX;
        self.inflight_shortterm = Bytes::MAX;
    }

    pub(super) fn is_inflight_too_high(&self, sample: &Sample) -> bool {
        if sample.delivered.is_zero() {
            return false;
        }
        let is_marked = self.params.responds_to_marks && self.marks.is_half();
        is_marked || sample.lost > sample.tx_in_flight * LOSS_THRESHOLD
    }

    /// HandleLostPacket, for all data declared lost since the last ack, with this ack's sample.
    pub(super) fn handle_losses(&mut self, ack: &Ack, sample: &Sample) {
        if !self.is_probe_sample || !self.is_inflight_too_high(sample) {
            return;
        }
        let size = self.newly_lost.min(sample.lost);
        let before = sample.tx_in_flight.saturating_sub(size);
        let lost_before = sample.lost.saturating_sub(size);
        // InflightAtLoss: the prefix of the lost data at which losses crossed the threshold.
        let prefix = (before * LOSS_THRESHOLD).saturating_sub(lost_before) * Ratio::new(100, 98);
        self.handle_inflight_too_high(ack, before + prefix, sample.is_app_limited);
    }

    pub(super) fn handle_inflight_too_high(&mut self, ack: &Ack, tx_in_flight: Bytes, is_app_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_probe_sample = false;
        if !is_app_limited {
            self.inflight_longterm = tx_in_flight.max(self.target_inflight() * BETA);
        }
        if self.phase == Phase::Up {
            self.start_down(ack);
        }
    }

    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp(self.bw()).min(self.window)
    }

    pub(super) fn bdp(&self, bw: Rate) -> Bytes {
        if self.min_rtt == Span::MAX {
            return self.mss * u64::from(self.params.initial_window);
        }
        bdp(bw, self.min_rtt).unwrap_or(Bytes::ZERO)
    }

    /// UpdateMinRTT; returns BBR.probe_rtt_expired.
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) -> bool {
        let is_expired = ack.now.since(self.probe_rtt_min_at) > PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.rtt_sample
            && (rtt < self.probe_rtt_min || is_expired)
        {
            self.probe_rtt_min = rtt;
            self.probe_rtt_min_at = ack.now;
        }
        if self.probe_rtt_min < self.min_rtt || ack.now.since(self.min_rtt_at) > MIN_RTT_LIFETIME {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_min_at;
        }
        is_expired
    }
}

/// C.lost when data acknowledged now was sent, sampled at a few points of the last round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    /// C.lost.
    pub(super) lost: Bytes,
    /// Delivered and lost bytes, the newest first, both modulo 2^32: windows are smaller.
    points: [(u32, u32); 7],
}

const fn low(bytes: Bytes) -> u32 {
    bytes.get() as u32
}

impl Losses {
    /// Adds a point for each sixth of a window.
    pub(super) fn on_ack(&mut self, ack: &Ack, window: Bytes) {
        let before = low(ack.delivered.saturating_sub(ack.newly_acked));
        if before.wrapping_sub(self.points[0].0) >= low(window / 6).max(1) {
            self.points.rotate_right(1);
            self.points[0] = (before, low(self.lost));
        }
    }

    /// Bytes lost while the delivered total rose from `delivered` to `now`; since the oldest point,
    /// if that is later.
    pub(super) fn since(&self, delivered: Bytes, now: Bytes) -> Bytes {
        let age = |at: u32| low(now).wrapping_sub(at);
        let known = self.points.iter().find(|(at, _)| age(*at) >= age(low(delivered)));
        let (_, lost) = known.unwrap_or(&self.points[self.points.len() - 1]);
        Bytes::new(u64::from(low(self.lost).wrapping_sub(*lost)))
    }
}

/// BBR3 §5.5.9: bytes acknowledged above the expected number (ack aggregation).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extra {
    pub(super) since: Time,
    acked: Bytes,
    /// The largest aggregates of the current and of the previous rounds.
    largest: [Bytes; 2],
}

impl Extra {
    /// UpdateACKAggregation.
    pub(super) fn on_ack(&mut self, ack: &Ack, bw: Rate, window: Bytes) {
        let mut expected = bdp(bw, ack.now.since(self.since)).unwrap_or(Bytes::ZERO);
        if self.acked <= expected {
            self.restart(ack.now);
            expected = Bytes::ZERO;
        }
        self.acked += ack.newly_acked;
        let extra = self.acked.saturating_sub(expected).min(window);
        self.largest[0] = self.largest[0].max(extra);
    }

    /// Drops samples older than five to ten rounds; in Startup, older than this one.
    pub(super) fn on_round(&mut self, round: u32, is_filled: bool) {
        if !is_filled {
            self.largest = [Bytes::ZERO; 2];
        } else if round.is_multiple_of(EXTRA_ROUNDS) {
            self.largest = [Bytes::ZERO, self.largest[0]];
        }
    }

    pub(super) fn restart(&mut self, now: Time) {
        self.since = now;
        self.acked = Bytes::ZERO;
    }

    pub(super) fn most(&self) -> Bytes {
        self.largest[0].max(self.largest[1])
    }
}

/// Rate sample of an ack, in the draft's names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) rate: Option<Rate>,
    /// RS.delivered in bytes; zero: no sample.
    pub(super) delivered: Bytes,
    pub(super) is_app_limited: bool,
    pub(super) tx_in_flight: Bytes,
    pub(super) lost: Bytes,
    pub(super) begins_round: bool,
    pub(super) ends_loss_round: bool,
}

/// BBR.LossThresh (BBR3 §2.8).
const LOSS_THRESHOLD: Ratio = Ratio::new(2, 100);
/// BBR.Beta (BBR3 §2.8).
const BETA: Ratio = Ratio::new(7, 10);
/// Half of BBR.ExtraAckedFilterLen (BBR3 §2.12).
const EXTRA_ROUNDS: u32 = 5;
/// BBR.MinRTTFilterLen (BBR3 §2.16.1).
const MIN_RTT_LIFETIME: Span = Span::from_secs(10);
/// BBR.ProbeRTTInterval (BBR3 §2.16.2).
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// Upper bound of a sample: a petabyte per second, clear of every overflow.
const MAX_RATE_SAMPLE: Rate = Rate::from_bytes_per_sec(1 << 50);
