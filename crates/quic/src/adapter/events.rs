//! Acks and losses, from the stack's reports to the scheme's events.

use headstart_startup::path::SendStamp;
use headstart_startup::trace::{SenderEvent, SenderTrace};
use headstart_startup::{Ack, Congestion, Sent, Signal, Timeout, Transmission};
use headstart_units::{Bytes, Span, Time};

use super::Adapter;
use super::cached_controller::CachedController;
use super::first_flight::StartState;

/// Packets delivered by one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    is_any: bool,
    /// Highest packet number, and when that packet was sent.
    largest: Option<(u64, Time)>,
    /// The stack's smoothed RTT before this ack.
    smoothed: Span,
    bytes: Bytes,
    first_flight: Bytes,
    packets: u64,
    /// One past the highest ordinal.
    newest: u64,
    /// Send stamp of that packet.
    stamp: SendStamp,
    /// End of that packet, as an offset in the bytes sent.
    end: Bytes,
}

/// Losses detected and not passed to the scheme yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    bytes: Bytes,
    first_flight: Bytes,
    newest_sent_at: Time,
    /// Bytes of lost handshake packets, since the connection began.
    pub handshake: Bytes,
}

impl Adapter {
    /// One of the scheme's packets left.
    pub(super) fn sent(&mut self, now: Time, number: u64, bytes: Bytes) {
        let stamp = self.rate.on_sent(now, self.ledger.in_flight());
        let is_retransmission = !self.retransmission_debt.is_zero();
        self.retransmission_debt = self.retransmission_debt.saturating_sub(bytes);
        let is_first_flight = !is_retransmission && self.ledger.sent() < self.first_flight;
        let ordinal = self.ledger.end();
        self.ledger.push(number, bytes, &stamp, is_first_flight);
        self.tally.sent += bytes;
        if is_first_flight {
            self.tally.first_flight += bytes;
        }
        if self.tally.delivered.is_zero() {
            self.tally.first_round += bytes;
        }
        if self.controller.needs_sent_events() {
            let sent = Sent {
                now,
                bytes,
                in_flight: self.ledger.in_flight(),
                transmission: if is_retransmission {
                    Transmission::Retransmission
                } else {
                    Transmission::Original
                },
                is_app_limited: bytes < self.packet,
            };
            self.controller.update(|controller| controller.on_sent(&sent));
        }
        let position = self.ledger.sent().saturating_sub(bytes);
        let transmission =
            if is_retransmission { Transmission::Retransmission } else { Transmission::Original };
        self.journal(now, SenderEvent::Sent { offset: position.get(), payload: bytes, transmission });
        self.copy_after_sending(now, ordinal);
    }

    /// A packet was acknowledged; `smoothed` is the stack's RTT before the first of a batch.
    #[inline]
    pub(super) fn acked(
        &mut self,
        sent: Time,
        bytes: Bytes,
        number: u64,
        app_limited: bool,
        smoothed: impl FnOnce() -> Span,
    ) {
        if !std::mem::replace(&mut self.batch.is_any, true) {
            self.batch.smoothed = smoothed();
            if app_limited && matches!(self.start_state, StartState::Started) {
                // Nothing has left since the stack was application-limited, so the bytes in flight
                // are those of that time.
                self.rate.on_app_limited(self.ledger.in_flight());
            }
        }
        if self.batch.largest.is_none_or(|(largest, _)| number > largest) {
            self.batch.largest = Some((number, sent));
        }
        let Some(packet) = self.ledger.deliver(number, sent) else {
            return self.set_unmanaged_in_flight(self.unmanaged_in_flight.saturating_sub(bytes));
        };
        self.batch.bytes += packet.bytes;
        if packet.is_first_flight {
            self.batch.first_flight += packet.bytes;
        }
        self.batch.packets += 1;
        // Later packets carry later stamps: the rate is sampled once per batch, from the latest, at
        // the end of the batch.
        if packet.ordinal >= self.batch.newest {
            self.batch.newest = packet.ordinal + 1;
            self.batch.stamp = packet.stamp;
            self.batch.end = packet.offset + packet.bytes;
        }
    }

    /// The acknowledgement is complete: passes it to the scheme.
    pub(super) fn end_of_acks(
        &mut self,
        now: Time,
        in_flight: Bytes,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.set_unmanaged_in_flight(in_flight.saturating_sub(self.ledger.in_flight()));
        let batch = std::mem::take(&mut self.batch);
        self.last_ack_at = now;
        let is_new_loss = |&(number, _): &(u64, Time)| Some(number) == largest;
        let sample = batch.largest.filter(is_new_loss).map(|(_, sent)| now.since(sent));
        if let Some(sample) = sample {
            let is_first = self.rtt.smoothed.is_zero();
            self.rtt.update(sample);
            if !is_first {
                self.rtt.smoothed = batch.smoothed;
            }
            if matches!(self.start_state, StartState::Unmeasured) {
                self.read_inputs(now);
            }
        }
        if !app_limited {
            self.limited_below = self.ledger.end();
        }
        if batch.bytes.is_zero() {
            return;
        }
        self.tally.delivered += batch.bytes;
        if self.recovering_since.is_some_and(|since| batch.stamp.sent_at > since) {
            self.recovering_since = None;
        }
        self.rate.on_delivered(now, batch.bytes, &batch.stamp);
        let rate = self.rate.sample(now, self.rtt.min);
        self.fastest = self.rate.fastest().rate();
        let ack = Ack {
            now,
            newest_sent_at: batch.stamp.sent_at,
            newly_acked: batch.bytes,
            first_flight_acked: batch.first_flight,
            rtt_sample: sample,
            rtt: self.rtt,
            in_flight: self.ledger.in_flight(),
            delivered: self.rate.delivered(),
            rate,
            is_window_limited: batch.newest <= self.limited_below,
            in_recovery: self.recovering_since.is_some(),
            is_all_sent: app_limited && self.is_all_sent(),
            marked: Bytes::ZERO,
            stamped: None,
        };
        self.train.on_ack(&ack, self.packet);
        self.controller.update(|controller| controller.on_ack(&ack));
        self.journal(now, SenderEvent::Acked { acknowledged: batch.end.get(), newly: batch.bytes });
        self.copy_after_acks(now, batch.packets, app_limited);
        self.note_phase(now);
        self.publish(now);
        self.refresh_cached_metrics();
    }

    /// A packet was declared lost; [`Self::lost`] follows.
    pub(super) fn packet_lost(&mut self, now: Time, bytes: Bytes, number: u64) {
        let Some(packet) = self.ledger.lose(number, bytes) else {
            self.set_unmanaged_in_flight(self.unmanaged_in_flight.saturating_sub(bytes));
            if matches!(self.start_state, StartState::Unmeasured) {
                self.losses.handshake += bytes;
            }
            return;
        };
        self.journal(now, SenderEvent::Lost { offset: packet.offset.get(), payload: packet.bytes });
        self.retransmission_debt += packet.bytes;
        self.tally.lost += packet.bytes;
        if packet.is_first_flight {
            self.tally.first_flight_lost += packet.bytes;
        }
        if packet.is_copied {
            // Its data was already duplicated: no reason to reduce the window.
            self.tally.copied_lost += packet.bytes;
            return;
        }
        self.losses.bytes += packet.bytes;
        if packet.is_first_flight {
            self.losses.first_flight += packet.bytes;
        }
        self.losses.newest_sent_at = self.losses.newest_sent_at.max(packet.stamp.sent_at);
    }

    /// Appends to the journal, if one is kept.
    #[inline]
    pub(super) fn journal(&self, at: Time, event: SenderEvent) {
        if self.shared.journal.is_kept() && !self.is_late {
            self.record_event(at, event);
        }
    }

    #[cold]
    fn record_event(&self, at: Time, event: SenderEvent) {
        let allowance = self.controller.allowance();
        let trace = SenderTrace {
            event,
            in_flight: self.ledger.in_flight(),
            unsent: Bytes::ZERO,
            window: allowance.window,
            pace: allowance.pace,
            smoothed_rtt: self.rtt.smoothed,
            phase: self.controller.phase(),
            in_recovery: self.recovering_since.is_some(),
        };
        self.shared.journal.add((at, trace));
    }

    /// All losses of one loss detection are known: passes them to the scheme.
    pub(super) fn lost(&mut self, now: Time, sent: Time, is_persistent: bool) {
        let losses = std::mem::take(&mut self.losses);
        self.losses.handshake = losses.handshake;
        if !matches!(self.start_state, StartState::Started) || (losses.bytes.is_zero() && !is_persistent) {
            self.publish(now);
            return;
        }
        self.train.end();
        let opens_episode = self.opens_episode(now, sent);
        let congestion = Congestion {
            lost: losses.bytes,
            first_flight_lost: losses.first_flight,
            newest_lost_sent_at: losses.newest_sent_at,
            ..self.congestion(now, Signal::Loss, opens_episode, losses.bytes)
        };
        self.controller.update(|controller| controller.on_congestion(&congestion));
        self.report_congestion_to_repair();
        if is_persistent {
            self.tally.timeouts += 1;
            let timeout = Timeout {
                now,
                prior_in_flight: self.ledger.in_flight() + losses.bytes,
                delivered: self.rate.delivered(),
                consecutive: 1,
            };
            self.controller.update(|controller| controller.on_timeout(&timeout));
            self.journal(now, SenderEvent::Timeout);
        }
        self.note_phase(now);
        self.publish(now);
        self.refresh_cached_metrics();
    }

    /// A packet arrived with a congestion mark.
    pub(super) fn marked(&mut self, now: Time, sent: Time) {
        if !matches!(self.start_state, StartState::Started) {
            return;
        }
        self.tally.marks += 1;
        self.train.end();
        let opens_episode = self.opens_episode(now, sent);
        let signal = self.congestion(now, Signal::CongestionExperienced, opens_episode, Bytes::ZERO);
        self.controller.update(|controller| controller.on_congestion(&signal));
        // A mark is no loss: it cannot be spurious.
        self.before_recovery = None;
        self.report_congestion_to_repair();
        self.note_phase(now);
        self.publish(now);
        self.refresh_cached_metrics();
    }

    /// One reduction per round trip (RFC 9002 §7.3.2): losses of packets sent before the current
    /// recovery period began change nothing.
    fn opens_episode(&mut self, now: Time, sent: Time) -> bool {
        let opens = self.recovering_since.is_none_or(|since| sent > since);
        if opens {
            self.recovering_since = Some(now);
            self.before_recovery = Some((now, Box::new(*self.controller)));
        }
        opens
    }

    fn congestion(&self, now: Time, signal: Signal, opens_episode: bool, lost: Bytes) -> Congestion {
        Congestion {
            now,
            signal,
            opens_episode,
            lost: Bytes::ZERO,
            first_flight_lost: Bytes::ZERO,
            newest_lost_sent_at: Time::ZERO,
            prior_in_flight: self.ledger.in_flight() + lost,
            in_flight: self.ledger.in_flight(),
            delivered: self.rate.delivered(),
            first_flight_delivered: self.first_flight_delivered(),
            rtt: self.rtt,
        }
    }

    fn first_flight_delivered(&self) -> Bytes {
        self.tally.delivered.min(self.first_flight)
    }

    /// Every packet declared lost has arrived: the window is restored (RFC 9438 §4.9.2). The stack
    /// does not report the time of the losses: a reduction long ago is not undone.
    pub(super) fn undo(&mut self) {
        let Some((since, before)) = self.before_recovery.take() else { return };
        if self.last_ack_at.since(since) <= self.rtt.smoothed * UNDO_ROUNDS {
            self.controller = CachedController::new(*before);
            self.cached_metrics = None;
            self.recovering_since = None;
            self.retransmission_debt = Bytes::ZERO;
            self.tally.spurious += 1;
        }
    }
}

/// The stack remembers lost packets for two probe timeouts, which is about as long.
const UNDO_ROUNDS: u64 = 4;
