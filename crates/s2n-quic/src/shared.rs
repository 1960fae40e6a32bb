//! State shared by the parts of one connection: congestion controller and handle.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use headstart_adapter::epoch::span;
use headstart_adapter::{Account, Epoch, Gates, Guard, Limits, Metrics, Rollout, StartReport, Store};
use headstart_host::locked;
use headstart_startup::base;
use headstart_startup::prior::Hint;
use headstart_units::{Bytes, Time};
use s2n_quic_core::time::Timestamp;

use crate::choice::Choice;

/// Maps the endpoint's clock, whose origin is its own, to the time of records: by its first report.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    beginning: Option<Time>,
    base: OnceLock<(Timestamp, Time)>,
}

impl Clock {
    pub fn beginning_at(at: Time) -> Self {
        Self { beginning: Some(at), base: OnceLock::new() }
    }

    fn base(&self, now: Timestamp) -> (Timestamp, Time) {
        *self.base.get_or_init(|| (now, self.beginning.unwrap_or_else(|| Epoch::now().at())))
    }

    pub fn time(&self, at: Timestamp) -> Time {
        let (base, time) = self.base(at);
        if at >= base {
            time + span(at.saturating_duration_since(base))
        } else {
            time - span(base.saturating_duration_since(at))
        }
    }

    /// `now` is any time before, for an endpoint that has reported nothing.
    pub fn timestamp(&self, at: Time, now: Timestamp) -> Timestamp {
        let (base, time) = self.base(now);
        base.checked_add(Duration::from_nanos(at.since(time).as_nanos())).unwrap_or(now)
    }
}

/// Settings common to all connections of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub choice: Choice,
    /// The scheme of the control arm, and of a connection that migrated.
    pub control: Choice,
    pub base: base::Kind,
    pub store: Option<Arc<dyn Store>>,
    pub gates: Gates,
    pub rollout: Arc<Rollout>,
    pub guard: Option<Arc<Guard>>,
    pub limits: Arc<Limits>,
    pub metrics: Arc<Metrics>,
    pub clock: Arc<Clock>,
    /// Substitute, in bytes, for the receive window of schemes that send all data at once.
    pub flight_limit: Bytes,
}

impl Rules {
    pub fn store(&self) -> Option<&dyn Store> {
        self.store.as_deref()
    }
}

/// The live connections of an endpoint by peer.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<BTreeMap<SocketAddr, Weak<Shared>>>);

impl Connections {
    pub fn insert(&self, peer: SocketAddr, shared: &Arc<Shared>) {
        locked(&self.0).insert(peer, Arc::downgrade(shared));
    }

    pub fn find(&self, peer: SocketAddr) -> Option<Arc<Shared>> {
        locked(&self.0).get(&peer)?.upgrade()
    }

    fn remove(&self, shared: &Shared) {
        let mut connections = locked(&self.0);
        // A later connection from the same address stays.
        if connections.get(&shared.peer).is_some_and(|it| std::ptr::eq(it.as_ptr(), shared)) {
            connections.remove(&shared.peer);
        }
    }
}

/// State shared by the parts of one connection.
#[derive(Debug)]
pub(crate) struct Shared {
    pub rules: Arc<Rules>,
    connections: Arc<Connections>,
    pub peer: SocketAddr,
    /// The store's key.
    pub key: IpAddr,
    /// Drawn uniformly: decides the arm.
    pub number: u64,
    pub hint: Option<Hint>,
    /// Bytes announced by the application; zero if none.
    expected: AtomicU64,
    pub account: Mutex<Account>,
    /// Number of live controllers: the stack may clone them.
    controllers: AtomicUsize,
    /// A path to which a connection migrated, and no connection of its own.
    is_late: AtomicBool,
}

impl Shared {
    pub fn new(
        rules: Arc<Rules>,
        connections: Arc<Connections>,
        peer: SocketAddr,
        key: IpAddr,
        number: u64,
        hint: Option<Hint>,
    ) -> Arc<Self> {
        let report = StartReport { scheme: rules.choice.name(), peer: Some(peer), ..StartReport::default() };
        Arc::new(Self {
            rules,
            connections,
            peer,
            key,
            number,
            hint,
            expected: AtomicU64::new(0),
            account: Mutex::new(Account::new(report)),
            controllers: AtomicUsize::new(0),
            is_late: AtomicBool::new(false),
        })
    }

    pub fn expected(&self) -> Option<Bytes> {
        match self.expected.load(Ordering::Relaxed) {
            0 => None,
            bytes => Some(Bytes::new(bytes)),
        }
    }

    pub fn register_controller(&self) {
        self.controllers.fetch_add(1, Ordering::Relaxed);
    }

    /// A controller was dropped; the last one closes the connection.
    pub fn unregister_controller(&self) {
        if self.controllers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.connections.remove(self);
            self.close();
        }
    }

    /// The path is not the connection's first: it has no account of its own.
    pub fn leave_account(&self) {
        self.is_late.store(true, Ordering::Relaxed);
        locked(&self.account).note_migration();
    }

    /// Writes the outcome, releases reservations, logs the report. Later calls have no effect.
    fn close(&self) {
        let mut account = locked(&self.account);
        if account.close(self.rules.store()) && !self.is_late.load(Ordering::Relaxed) {
            self.rules.metrics.count(&account.report);
            tracing::info!(target: "headstart", "{}", account.report);
            if let Some(stop) = self.rules.guard.as_ref().and_then(|guard| guard.observe(&account.report)) {
                tracing::warn!(target: "headstart", "the guard stops fast starts: {stop}");
            }
        }
    }
}

/// The application's handle of a connection: flow sizes in, report out.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Announces `bytes` further bytes of application data, for schemes that plan with the flow's
    /// size (JumpStart). To be called for each answer, before it is written: the sizes add up.
    pub fn expect(&self, bytes: u64) {
        let add = |before: u64| Some(before.saturating_add(bytes));
        // The closure always returns a sum.
        let _ = self.0.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The report so far: up to the last change of the scheme's phase, or complete after the end of
    /// the connection.
    #[must_use]
    pub fn report(&self) -> StartReport {
        locked(&self.0.account).report.clone()
    }

    /// Ends the account without a record: of a peer that broke the protocol, which may have
    /// acknowledged data that it never received.
    pub fn abandon(&self) {
        locked(&self.0.account).keep_record();
        self.0.close();
    }
}
