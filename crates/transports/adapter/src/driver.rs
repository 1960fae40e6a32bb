//! One path's scheme, from the handshake to the end: the part of a congestion controller that no
//! stack needs to write anew.
//!
//! ```text
//!              first ack                 first full data packet
//!  Unmeasured -----------> Ready --------------------------------> Started
//!  window 10 packets       record, gates and hint are known        the scheme decides
//! ```
//!
//! An answer to a request in 0-RTT leaves before any round trip, and gets ten packets until the
//! first acknowledgement, whatever is known of the peer. A token shows that somebody had the
//! address once; an acknowledgement shows that somebody there asks now.
//!
//! A stack's adapter calls [`Driver::before_send`] and [`Driver::before_packet`] for each packet or
//! batch that leaves. It passes what leaves, arrives and is lost to the [`Sender`]. Afterwards it
//! calls [`Driver::on_ack_event`] or [`Driver::on_loss_event`].

use std::net::IpAddr;
use std::sync::Arc;

use headstart_host::locked;
use headstart_startup::catalogue::Needs;
use headstart_startup::history::SharedRecord;
use headstart_startup::sending::{CachedController, Sender};
use headstart_startup::{Allowance, Controller, FlightPlan, Prior, Progress, Startup as _};
use headstart_units::{Bytes, Time};

use crate::announced::{self, ESTIMATED};
use crate::connection::Connection;
use crate::gates::{Arm, NothingToGain};
use crate::silence::Silence;
use crate::sizes::{self, INITIAL_PACKETS};
use crate::start_report::Restart;
use crate::store::{client_key, peek};
use crate::{Inputs, Publication};

/// The connection's stage before its scheme begins.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one for each connection, which is ready at one time of its life"
)]
enum Stage {
    Unmeasured,
    /// The RTT is measured: every input but the flow's size is known.
    Ready(Ready),
    Started,
}

/// Inputs known once the first round trip was measured.
#[derive(Clone, Copy, Debug)]
struct Ready {
    prior: Prior,
    /// The plan of a flight that began at the last preview.
    plan: FlightPlan,
}

/// The next flight, as planned if it began now.
#[derive(Clone, Debug)]
pub struct NextFlight {
    /// The scheme with this flight.
    pub controller: CachedController,
    /// Plan of the flight.
    pub plan: FlightPlan,
    /// Bytes announced by the application so far.
    announced: Bytes,
    /// Bytes that have not left yet.
    left: Bytes,
}

/// The scheme of a connection's path.
#[derive(Clone, Debug)]
pub struct Driver {
    connection: Arc<Connection>,
    /// The account of packets.
    pub sender: Sender,
    stage: Stage,
    /// The scheme begins with the first packet before which a size is announced, full or not.
    begins_with_size: bool,
    /// On a path other than the connection's first: from the record of its own address, or slow
    /// start.
    is_late: bool,
    /// A packet of the handshake was lost.
    handshake_retransmitted: bool,
    /// Bytes announced by the application when the scheme last planned.
    announced: Bytes,
    /// The flight covers all announced data.
    is_whole_flow: bool,
    /// All data announced when the scheme began fits into the initial window.
    began_small: bool,
    /// End of the burst, as an offset in the bytes sent.
    burst: Bytes,
    started_at: Time,
    phase: &'static str,
    publication: Publication,
    silence: Silence,
}

impl Driver {
    /// The driver of the connection's first path, or of a later one.
    #[must_use]
    pub fn new(connection: Arc<Connection>, packet: Bytes, is_first: bool, now: Time) -> Self {
        let rules = &connection.rules;
        let choice = if is_first { rules.choice } else { rules.control };
        let controller = Controller::new(choice.scheme, rules.base, packet);
        if !is_first {
            locked(&connection.account).note_migration();
        }
        Self {
            sender: Sender::new(controller, packet),
            stage: Stage::Unmeasured,
            begins_with_size: is_first && choice.needs == Needs::FlowSize,
            is_late: !is_first,
            handshake_retransmitted: false,
            announced: Bytes::ZERO,
            is_whole_flow: false,
            began_small: false,
            burst: Bytes::ZERO,
            started_at: now,
            phase: "",
            publication: Publication::default(),
            silence: Silence::default(),
            connection,
        }
    }

    /// The connection of the path.
    #[must_use]
    pub const fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// True until an RTT was measured.
    #[must_use]
    pub const fn is_unmeasured(&self) -> bool {
        matches!(self.stage, Stage::Unmeasured)
    }

    /// True once the scheme has begun.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        matches!(self.stage, Stage::Started)
    }

    /// End of the burst, as an offset in the bytes sent.
    #[must_use]
    pub const fn burst(&self) -> Bytes {
        self.burst
    }

    /// Window and pace at present, and the bytes of the burst that are left. Before the scheme
    /// begins: ten packets, or the plan of a flight that would begin now.
    #[must_use]
    pub fn allowance(&self) -> (Allowance, Bytes) {
        let initial = self.sender.packet() * INITIAL_PACKETS;
        match &self.stage {
            Stage::Unmeasured => (Allowance::window(initial), Bytes::ZERO),
            Stage::Ready(Ready { prior, .. }) => {
                let plan = self.foresee(&self.complete(prior));
                (plan.allowance, plan.burst)
            }
            Stage::Started => {
                let mut allowance = self.sender.controller().allowance();
                if self.is_small() {
                    allowance = Allowance::window(allowance.window.max(initial));
                }
                (allowance, self.burst.saturating_sub(self.sender.ledger().sent()))
            }
        }
    }

    /// The plan of a flight that began at the last preview, if none has begun.
    #[must_use]
    pub const fn foreseen(&self) -> Option<&FlightPlan> {
        match &self.stage {
            Stage::Ready(Ready { plan, .. }) => Some(plan),
            _ => None,
        }
    }

    /// Plans anew the flight that has not begun.
    pub fn preview(&mut self) {
        let Stage::Ready(Ready { prior, .. }) = self.stage else { return };
        let prior = self.complete(&prior);
        self.stage = Stage::Ready(Ready { plan: self.foresee(&prior), prior });
    }

    fn foresee(&self, prior: &Prior) -> FlightPlan {
        Controller::clone(self.sender.controller()).establish(prior)
    }

    /// True if the flight covers all announced data.
    #[must_use]
    pub const fn is_whole_flow(&self) -> bool {
        self.is_whole_flow
    }

    /// True on a path other than the connection's first: slow start, no record.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        self.is_late
    }

    /// Nothing but the scheme's allowance decides until another flight begins.
    #[must_use]
    pub fn is_flight_out(&self) -> bool {
        let sent = self.sender.ledger().sent();
        self.is_started() && !self.began_small && sent >= self.burst && sent >= self.sender.first_flight()
    }

    /// A part of the flight has not left, and the window has room for no more than that part. The
    /// rest may be smaller than a packet, and a stack may require the room of a full one. With
    /// `is_estimated` a flow may be larger on the wire than announced.
    #[must_use]
    pub fn has_rest(&self, largest: Bytes, is_estimated: bool) -> bool {
        let (sent, flight) = (self.sender.ledger().sent(), self.sender.first_flight());
        let controller = self.sender.controller();
        let ends_with_flight =
            || !controller.is_handed_over() && controller.scheme().requirements().ends_with_flight;
        let excess = if is_estimated { flight / ESTIMATED } else { Bytes::ZERO };
        let is_rest_of_flow = || self.is_whole_flow && sent < flight + excess;
        let is_rest_of_flight = || sent < flight && ends_with_flight() && flight - sent < largest;
        self.is_started() && (is_rest_of_flow() || is_rest_of_flight())
    }

    /// The first round trip was measured: reads record and hint.
    pub fn read_inputs(&mut self, now: Time) {
        let rules = &self.connection.rules;
        let bare = Prior::bare(now, self.sender.packet(), self.sender.rtt().min, Bytes::ZERO);
        let mut prior = self.complete(&bare);
        prior.handshake_retransmitted = self.handshake_retransmitted;
        if !self.is_late {
            let inputs = Inputs {
                store: rules.store(),
                gates: &rules.gates,
                rollout: &rules.rollout,
                limits: &rules.limits,
                needs: rules.choice.needs,
                key: self.connection.key,
                peer: self.connection.peer.ip(),
                number: self.connection.number,
                hint: self.connection.hint(),
            };
            let runs = locked(&self.connection.account).judge(&inputs, &self.sender, &mut prior);
            if !runs {
                self.run_control();
            }
        } else if let Some(known) = self.record_of_new_path(now) {
            prior.history = Some(rules.limits.cap_record(known));
            let controller = Controller::new(rules.choice.scheme, rules.base, self.sender.packet());
            self.sender.set_controller(CachedController::new(controller));
            locked(&self.connection.account).report.restarted = Restart::Record;
        }
        let plan = FlightPlan::burst(self.sender.packet());
        self.stage = Stage::Ready(Ready { prior, plan });
        self.preview();
    }

    /// The record of the address that the client moved to, if the scheme draws on one, the gates
    /// take it for the RTT measured there and nobody uses it. It takes no share, and writes none.
    fn record_of_new_path(&self, now: Time) -> Option<SharedRecord> {
        let address = self.connection.moved_to()?;
        let is_drawn = self.connection.rules.rollout.draw(true, self.connection.number) == Arm::Treatment;
        let known = self.peek(now, client_key(address))?;
        (is_drawn && known.live == 0).then_some(known)
    }

    /// The record of `key`, if the scheme draws on one and the gates take it for this RTT.
    fn peek(&self, now: Time, key: IpAddr) -> Option<SharedRecord> {
        let rules = &self.connection.rules;
        let requirements = rules.choice.scheme.requirements();
        if rules.choice.needs != Needs::History && !requirements.reserves_credit {
            return None;
        }
        let known = peek(rules.store()?, requirements.history_key(key))?;
        let gates = rules.gates.with_credit(requirements.reserves_credit);
        let initial = self.sender.packet() * INITIAL_PACKETS;
        gates.judge(Some(known), now, self.sender.rtt().min, initial).ok()
    }

    /// The control scheme takes the place of one that has not begun.
    fn run_control(&mut self) {
        let rules = &self.connection.rules;
        let controller = Controller::new(rules.control.scheme, rules.base, self.sender.packet());
        self.sender.set_controller(CachedController::new(controller));
    }

    /// Completes the prior with what is known now.
    fn complete(&self, prior: &Prior) -> Prior {
        Prior {
            mss: self.sender.packet(),
            flow_size: self.connection.expected().map(|bytes| self.wire(bytes)),
            receive_window: self.wire(self.connection.admitted()),
            initial_window: self.sender.packet() * INITIAL_PACKETS,
            ..*prior
        }
    }

    /// The path is not the connection's first, of which its `Connection` knows nothing: slow start,
    /// no record. Before anything was reported of it.
    pub fn become_late(&mut self) {
        self.is_late = true;
        self.begins_with_size = false;
        self.run_control();
        self.connection.disown();
    }

    /// A packet or a batch leaves, full or not: the scheme begins with the first full one. True if
    /// the packet is the scheme's.
    #[inline]
    pub fn before_send(&mut self, now: Time, is_full: bool) -> bool {
        if let Stage::Ready(Ready { prior, .. }) = self.stage
            && (is_full || (self.begins_with_size && self.connection.expected().is_some()))
        {
            self.start(now, &prior);
        }
        self.is_started()
    }

    fn start(&mut self, now: Time, prior: &Prior) {
        let mut prior = Prior { now, ..self.complete(prior) };
        let plan = self.foresee(&prior);
        let gates = &self.connection.rules.gates;
        let is_outrun = !self.is_late && announced::is_outrun(gates, &self.sender, &prior, &plan);
        if is_outrun {
            self.run_control();
        }
        let connection = Arc::clone(&self.connection);
        let plan = if self.is_late {
            self.sender.update(|controller| controller.establish(&prior))
        } else {
            locked(&connection.account).establish(connection.rules.store(), &mut self.sender, &mut prior)
        };
        self.stage = Stage::Started;
        self.started_at = now;
        self.burst = plan.burst;
        self.sender.begin(plan.flight.min(prior.flow_size.unwrap_or(Bytes::MAX)));
        self.announced = connection.expected().unwrap_or_default();
        self.is_whole_flow = prior.flow_size.is_some_and(|size| size <= plan.flight);
        self.began_small = self.fits_initial_window();
        if self.is_late {
            return;
        }
        let is_small = self.began_small && plan.allowance.pace.is_some();
        let nothing_to_gain = match (is_outrun, is_small) {
            (_, true) => Some(NothingToGain::InitialWindow),
            (true, false) => Some(NothingToGain::LongAnswer),
            (false, false) => None,
        };
        let needs = connection.rules.choice.needs;
        locked(&connection.account).begin(&plan, needs, connection.expected(), nothing_to_gain);
        self.note_phase(now);
    }

    /// True if all announced data fits into the initial window, and none of it was lost.
    #[must_use]
    pub fn fits_initial_window(&self) -> bool {
        let gates = &self.connection.rules.gates;
        announced::fits_initial_window(gates, &self.sender, self.connection.expected())
    }

    /// True if the scheme began with data that fits into the initial window, and no more was
    /// announced.
    #[must_use]
    pub fn is_small(&self) -> bool {
        self.began_small && self.fits_initial_window()
    }

    /// Size in packets on the wire of `bytes` of application data.
    fn wire(&self, bytes: Bytes) -> Bytes {
        sizes::wire(bytes, self.sender.packet())
    }

    /// A packet or a batch of the scheme leaves. If more was announced than the scheme has planned
    /// with, it may plan a further flight: true if that begins.
    #[inline]
    pub fn before_packet(&mut self, now: Time) -> bool {
        let is_next = self.has_more_announced() && self.plan_next_flight(now);
        if self.silence.begins(now, &self.sender) {
            self.set_silent(true);
        }
        is_next
    }

    #[cold]
    fn set_silent(&self, is_silent: bool) {
        if !self.is_late {
            let connection = &self.connection;
            locked(&connection.account).set_silent(connection.rules.store(), is_silent);
        }
    }

    /// True if the application has announced more than the scheme has planned with.
    #[inline]
    #[must_use]
    pub fn has_more_announced(&self) -> bool {
        !self.is_late && self.connection.expected().is_some_and(|bytes| bytes > self.announced)
    }

    /// Preview of a flight of all data announced since the last plan, if the scheme plans one.
    #[must_use]
    pub fn preview_next_flight(&self) -> Option<NextFlight> {
        let announced = self.connection.expected().filter(|_| self.is_started())?;
        let sent = self.sender.ledger().sent();
        let left = self.wire(announced).saturating_sub(sent);
        let packet = self.sender.packet();
        let limit = self.wire(self.connection.admitted());
        let prior = Prior {
            flow_size: Some(left),
            initial_window: packet * INITIAL_PACKETS,
            ..Prior::bare(self.sender.last_ack_at(), packet, self.sender.rtt().smoothed, limit)
        };
        let so_far = Progress {
            sent,
            segments: self.sender.ledger().end(),
            delivered: self.sender.delivered(),
            in_flight: self.sender.ledger().in_flight(),
            window: self.sender.controller().allowance().window,
        };
        let mut controller = **self.sender.controller();
        let plan = controller.on_new_data(&prior, &so_far)?;
        Some(NextFlight { controller: CachedController::new(controller), plan, announced, left })
    }

    #[cold]
    fn plan_next_flight(&mut self, now: Time) -> bool {
        let Some(NextFlight { controller, plan, announced, left }) = self.preview_next_flight() else {
            self.announced = self.announced.max(self.connection.expected().unwrap_or_default());
            return false;
        };
        self.announced = announced;
        self.sender.set_controller(controller);
        self.sender.begin_next(plan.flight);
        self.is_whole_flow = left <= plan.flight;
        self.burst = self.sender.ledger().sent() + plan.burst;
        let mut account = locked(&self.connection.account);
        account.report.flights += 1;
        account.report.flow_size = Some(announced);
        drop(account);
        self.note_phase(now);
        true
    }

    /// The stack has nothing to send although the window is open.
    pub fn on_app_limited(&mut self) {
        let sent = self.sender.tally().sent;
        let has_more = self.connection.expected().is_some_and(|announced| announced > sent);
        self.sender.on_app_limited(has_more);
    }

    /// The application has nothing to send: true if all announced data has left.
    #[must_use]
    pub fn is_all_sent(&self) -> bool {
        let expected = self.connection.expected();
        announced::is_all_sent(&self.sender, self.announced, expected, self.is_whole_flow)
    }

    /// A loss before the scheme began was one of the handshake.
    pub const fn note_handshake_loss(&mut self) {
        if self.is_unmeasured() {
            self.handshake_retransmitted = true;
        }
    }

    /// An acknowledgement arrived, of any packet.
    #[inline]
    pub fn note_answer(&mut self, now: Time) {
        if self.silence.ends(now) {
            self.set_silent(false);
        }
    }

    /// The scheme got an acknowledgement.
    #[inline]
    pub fn on_ack_event(&mut self, now: Time) {
        self.note_answer(now);
        self.publication.on_event(now);
        self.note_phase(now);
        if self.publication.is_due(&self.sender) {
            self.publish();
        }
    }

    /// The scheme got a loss.
    pub fn on_loss_event(&mut self, now: Time) {
        self.on_mark_event(now);
        self.publish();
    }

    /// A loss that the scheme does not get.
    pub fn on_other_loss(&mut self, now: Time) {
        self.publication.on_event(now);
        self.publish();
    }

    /// The scheme got a mark.
    pub fn on_mark_event(&mut self, now: Time) {
        self.publication.on_event(now);
        self.note_phase(now);
    }

    /// Notes the scheme's phase if it has changed.
    #[inline]
    fn note_phase(&mut self, now: Time) {
        let phase = self.sender.controller().phase();
        // Nearly always it is the same string.
        if !std::ptr::eq(phase, self.phase) && phase != self.phase && !self.is_late {
            self.note_new_phase(now, phase);
        }
    }

    #[cold]
    fn note_new_phase(&mut self, now: Time, phase: &'static str) {
        self.phase = phase;
        let mut account = locked(&self.connection.account);
        account.note_phase(now.since(self.started_at), phase);
        if let Some(log) = &self.connection.log {
            log.phase(now, &account.report, self.sender.controller().allowance());
        }
        drop(account);
        self.publish();
    }

    /// Brings the account up to date with the latest acknowledgement or loss.
    pub fn publish(&mut self) {
        if let Some(at) = self.publication.take().filter(|_| !self.is_late) {
            let rules = &self.connection.rules;
            locked(&self.connection.account).publish(at, &self.sender, rules.store(), rules.is_client);
        }
    }

    /// The path has changed under the same controller.
    pub fn note_migration(&self) {
        let mut account = locked(&self.connection.account);
        account.note_migration();
        account.report.restarted = Restart::Nothing;
    }
}
