//! Inputs of the scheme before the first byte, and pacing until then.
//!
//! # Pacing
//!
//! The stack's pacer is a token bucket of 10 ms of the rate, at most ten packets (or 2 ms of a high
//! rate). With a high rate reported until the first flight begins, the bucket is full by then and
//! ten packets leave at once. So between the first ack and the first full packet a low rate is
//! reported if the plan is a paced one. The bucket then holds two packets, and the packet that
//! begins the flight leaves a fraction of one. Before the first ack nothing is paced, so as not to
//! delay the handshake. A burst is not paced either.
//!
//! Packets between the first ack and the flight (tickets, tokens, the application's settings) take
//! tokens from the same bucket, which at that low rate need 10 ms to return. So once the bucket
//! holds less than a full packet, an unlimited rate is reported. The packet that begins the flight
//! then leaves at once. A low rate after it cuts the bucket to one packet, so that at most two
//! leave together.

use std::sync::Arc;

use headstart_adapter::{Inputs, announced, sizes};
use headstart_host::locked;
use headstart_startup::sending::CachedController;
use headstart_startup::trace::SenderEvent;
use headstart_startup::{Controller, FlightPlan, Prior};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::next_flight::NextFlight;
use super::{Adapter, INITIAL_PACKETS, Ready, plain_slow_start};
use crate::gates::NothingToGain;

/// The connection's stage before its scheme begins.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one for each connection, which is ready at one time of its life"
)]
pub(super) enum StartState {
    Unmeasured,
    /// The RTT is measured: every input but the flow's size is known.
    Ready(Ready),
    Started,
}

/// Unpaced: one byte per nanosecond. Not more: the pacer would round the wait for a fraction of a
/// byte to zero, again and again.
const UNPACED: Rate = Rate::from_mbit_per_sec(8_000);
/// Lowest pace; at zero the pacer would never send again.
const MIN_PACE: Rate = Rate::from_bytes_per_sec(1);
/// Depth of the pacer's bucket, in time at its rate, up to ten packets.
const BUCKET: Span = Span::from_millis(10);
/// Depth of the bucket for larger bursts.
const LARGE_BUCKET: Span = Span::from_millis(2);
/// Most packets in a burst of [`BUCKET`]; the pacer uses [`LARGE_BUCKET`] above.
const BUCKET_PACKETS: u64 = 10;
/// Most packets in the bucket.
const LARGEST_BURST_PACKETS: u64 = 256;
/// Most packets in the bucket when a paced flight begins.
const OPENING_BUCKET: Ratio = Ratio::new(19, 10);

/// Model of the pacer's bucket before a paced flight, from the packets that left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    tokens: Bytes,
    at: Time,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { tokens: Bytes::MAX, at: Time::ZERO }
    }
}

impl Bucket {
    /// Held less than a full packet when its last packet left.
    fn is_low(&self, packet: Bytes) -> bool {
        self.tokens < packet
    }

    /// A packet left: unpaced if the bucket was low, otherwise at the rate for `opening`.
    fn spend(&mut self, now: Time, bytes: Bytes, packet: Bytes, opening: Bytes) {
        let (rate, capacity) = match self.is_low(packet) {
            true => (UNPACED, packet * LARGEST_BURST_PACKETS),
            false => (opening / BUCKET, opening),
        };
        let earned = rate * now.since(self.at);
        self.tokens = (self.tokens + earned).min(capacity).saturating_sub(bytes);
        self.at = now;
    }
}

impl Adapter {
    /// The first round trip was measured: reads record and hint, and plans.
    pub(super) fn read_inputs(&mut self, now: Time) {
        let rules = &self.shared.rules;
        let mut prior = Prior::bare(now, self.sender.packet(), self.sender.rtt().min, Bytes::ZERO);
        prior.handshake_retransmitted = !self.handshake_lost.is_zero();
        if !self.is_late {
            let shared = &self.shared;
            let inputs = Inputs {
                store: rules.store(),
                gates: &rules.gates,
                rollout: &rules.rollout,
                limits: &rules.limits,
                needs: rules.choice.needs(),
                key: shared.key,
                peer: shared.peer.ip(),
                number: shared.number,
                hint: shared.hint(),
            };
            let runs = locked(&shared.account).judge(&inputs, &self.sender, &mut prior);
            if !runs {
                self.run_control();
            }
        }
        let plan = FlightPlan::burst(self.sender.packet());
        self.bucket = Bucket { at: now, ..Bucket::default() };
        self.start_state = StartState::Ready(Ready { prior, plan });
        self.preview_flight();
    }

    /// Previews the plan of a flight that begins now.
    pub(super) fn preview_flight(&mut self) {
        let StartState::Ready(Ready { mut prior, .. }) = self.start_state else { return };
        prior.mss = self.sender.packet();
        prior.flow_size = self.shared.expected().map(|bytes| self.wire(bytes));
        prior.receive_window = self.wire(self.shared.flow_control().min(self.shared.rules.flight_limit));
        prior.initial_window = self.sender.packet() * INITIAL_PACKETS;
        let plan = Controller::clone(self.sender.controller()).establish(&prior);
        self.start_state = StartState::Ready(Ready { prior, plan });
    }

    /// The first full packet leaves: the scheme begins.
    pub(super) fn start(&mut self, now: Time) {
        self.preview_flight();
        let StartState::Ready(Ready { mut prior, plan }) = self.start_state else { return };
        prior.now = now;
        let is_outrun = self.is_outrun(&prior, &plan);
        if is_outrun {
            self.run_control();
        }
        let plan = self.establish(&mut prior);
        self.start_state = StartState::Started;
        self.started_at = now;
        self.burst = plan.burst;
        self.sender.begin(plan.flight.min(prior.flow_size.unwrap_or(Bytes::MAX)));
        self.announced = self.shared.expected().unwrap_or_default();
        self.is_whole_flow = prior.flow_size.is_some_and(|size| size <= plan.flight);
        self.began_small = self.fits_initial_window();
        self.journal(now, SenderEvent::Established);
        if self.is_late {
            return;
        }
        self.start_copies();
        let is_small = self.began_small && plan.allowance.pace.is_some();
        let nothing_to_gain = match (is_outrun, is_small) {
            (_, true) => Some(NothingToGain::InitialWindow),
            (true, false) => Some(NothingToGain::LongAnswer),
            (false, false) => None,
        };
        let (needs, announced) = (self.shared.rules.choice.needs(), self.shared.expected());
        locked(&self.shared.account).begin(&plan, needs, announced, nothing_to_gain);
        self.note_phase(now);
    }

    /// All announced data fits into the initial window, and none of it was lost.
    pub(super) fn fits_initial_window(&self) -> bool {
        announced::fits_initial_window(&self.shared.rules.gates, &self.sender, self.shared.expected())
    }

    /// The scheme began with data that fits into the initial window, and no more was announced.
    pub(super) fn is_small(&self) -> bool {
        self.began_small && self.fits_initial_window()
    }

    /// The control scheme takes the place of one that has not begun.
    fn run_control(&mut self) {
        let rules = &self.shared.rules;
        let scheme = rules.control.scheme().unwrap_or_else(plain_slow_start);
        self.sender.set_controller(CachedController::new(Controller::new(
            scheme,
            rules.base,
            self.sender.packet(),
        )));
    }

    /// Slow start does as well for so long an answer.
    fn is_outrun(&self, prior: &Prior, plan: &FlightPlan) -> bool {
        !self.is_late && announced::is_outrun(&self.shared.rules.gates, &self.sender, prior, plan)
    }

    /// Plans the first flight; reserves it in the store if the scheme shares a peer's credit.
    fn establish(&mut self, prior: &mut Prior) -> FlightPlan {
        if self.is_late {
            return self.sender.update(|controller| controller.establish(prior));
        }
        let shared = Arc::clone(&self.shared);
        locked(&shared.account).establish(shared.rules.store(), &mut self.sender, prior)
    }

    /// A packet left before or as the flight begins.
    pub(super) fn spend(&mut self, now: Time, bytes: Bytes) {
        if matches!(self.start_state, StartState::Ready(_)) {
            self.bucket.spend(now, bytes, self.sender.packet(), self.sender.packet() * OPENING_BUCKET);
        }
    }

    /// Size in packets on the wire of `bytes` of application data.
    pub(super) fn wire(&self, bytes: Bytes) -> Bytes {
        sizes::wire(bytes, self.sender.packet())
    }

    /// Rate for the stack's pacer, given the next flight; `None` leaves it to the stack.
    pub(super) fn pacing_rate(&self, next_flight: Option<&NextFlight>) -> Option<Rate> {
        match &self.start_state {
            StartState::Unmeasured => Some(UNPACED),
            StartState::Ready(Ready { plan, .. }) => Some(match plan.allowance.pace {
                None => UNPACED,
                Some(_) if self.fits_initial_window() => UNPACED,
                Some(_) if self.bucket.is_low(self.sender.packet()) => UNPACED,
                Some(_) => self.bucket_of(plan.burst.max(self.sender.packet() * OPENING_BUCKET)),
            }),
            StartState::Started if self.is_small() => Some(UNPACED),
            StartState::Started => {
                if let Some(next_flight) = next_flight {
                    let pace = next_flight.controller.allowance().pace;
                    let is_paced = next_flight.plan.burst.is_zero();
                    return if is_paced {
                        pace
                    } else {
                        pace.max(Some(self.bucket_of(next_flight.plan.burst)))
                    };
                }
                let pace = self.sender.controller().allowance().pace;
                match self.burst.saturating_sub(self.sender.ledger().sent()) {
                    Bytes::ZERO if self.sender.ledger().end() == 1 && self.burst <= self.sender.packet() => {
                        let due = self.sender.packet().saturating_sub(self.bucket.tokens).max(Bytes::new(1));
                        pace.map(|pace| (due / (self.sender.packet() / pace)).max(MIN_PACE))
                    }
                    Bytes::ZERO => pace,
                    left if pace.is_some() => Some(self.bucket_of(left.max(self.sender.packet()))),
                    _ => Some(UNPACED),
                }
            }
        }
    }

    /// The rate whose bucket holds `burst`.
    fn bucket_of(&self, burst: Bytes) -> Rate {
        if burst <= self.sender.packet() * BUCKET_PACKETS { burst / BUCKET } else { burst / LARGE_BUCKET }
    }
}
