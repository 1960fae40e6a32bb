//! A connection's state outside of its congestion controller: set-up, announced sizes, account.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use headstart_host::locked;
use headstart_startup::prior::Hint;
use headstart_startup::{Allowance, Startup as _, base};
use headstart_units::{Bytes, Time};

use crate::store::client_key;
use crate::{Account, Choice, Draws, Gates, Guard, Limits, Metrics, Policy, Rollout, StartReport, Store};

/// Settings common to all connections of an endpoint.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The scheme of the treated arm.
    pub choice: Choice,
    /// The scheme of the control arm, and of a connection that migrated.
    pub control: Choice,
    /// The base controller for congestion avoidance.
    pub base: base::Kind,
    /// Store of records.
    pub store: Option<Arc<dyn Store>>,
    /// Conditions for the use of a record and of a fast start.
    pub gates: Gates,
    /// Share of the connections that run the scheme.
    pub rollout: Arc<Rollout>,
    /// Watches the arms.
    pub guard: Option<Arc<Guard>>,
    /// Caps on hints.
    pub limits: Arc<Limits>,
    /// Counters of connections.
    pub metrics: Arc<Metrics>,
    /// Substitute, in bytes, for the receive window of schemes that send all data at once.
    pub flight_limit: Bytes,
    /// The connections are a client's, which removes a record that misled it.
    pub is_client: bool,
}

/// Halfback §4.1: the receive window of its senders, and about the most that it paces out (§3.1).
const FLIGHT_LIMIT: Bytes = Bytes::new(141_000);

impl Rules {
    /// The defaults with that scheme: no store of records, CUBIC, no guard, a flight of 141 kB.
    #[must_use]
    pub fn new(choice: Choice, control: Choice) -> Self {
        Self {
            choice,
            control,
            base: base::Kind::default(),
            store: None,
            gates: Gates::default(),
            rollout: Arc::default(),
            guard: None,
            limits: Limits::new(Policy::default()),
            metrics: Arc::default(),
            flight_limit: FLIGHT_LIMIT,
            is_client: false,
        }
    }

    /// A client with this key has sent its first packet: its record will be asked for.
    pub fn prefetch(&self, key: IpAddr) {
        if let Some(store) = self.store() {
            store.prefetch(self.choice.scheme.requirements().history_key(key));
        }
    }

    /// The store of records.
    #[must_use]
    pub fn store(&self) -> Option<&dyn Store> {
        self.store.as_deref()
    }
}

/// A log of a connection's decisions.
pub trait Log: std::fmt::Debug + Send + Sync {
    /// The scheme enters a phase.
    fn phase(&self, now: Time, report: &StartReport, allowance: Allowance);
    /// The connection is over.
    fn ended(&self, report: &StartReport);
}

/// State shared by the congestion controllers of one connection and the application.
#[derive(Debug)]
pub struct Connection {
    /// The endpoint's settings.
    pub rules: Arc<Rules>,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The store's key.
    pub key: IpAddr,
    /// A number drawn uniformly, which decides the arm.
    pub number: u64,
    /// A log of the decisions.
    pub log: Option<Arc<dyn Log>>,
    hint: OnceLock<Hint>,
    /// The peer's connection flow control limit, in bytes (`initial_max_data`).
    flow_control: AtomicU64,
    /// Bytes announced by the application; zero if none.
    expected: AtomicU64,
    /// The report, and the record to be written.
    pub account: Mutex<Account>,
    /// Number of live controllers: stacks clone them.
    controllers: AtomicUsize,
    /// True for a path of another connection.
    is_disowned: AtomicBool,
    /// The address that the peer moved to last.
    moved_to: Mutex<Option<IpAddr>>,
}

impl Connection {
    /// A connection that begins.
    #[must_use]
    pub fn new(
        rules: Arc<Rules>,
        peer: SocketAddr,
        key: IpAddr,
        number: u64,
        log: Option<Arc<dyn Log>>,
    ) -> Arc<Self> {
        let report = StartReport { scheme: rules.choice.name, peer: Some(peer), ..StartReport::default() };
        Arc::new(Self {
            rules,
            peer,
            key,
            number,
            log,
            hint: OnceLock::new(),
            flow_control: AtomicU64::new(u64::MAX),
            expected: AtomicU64::new(0),
            account: Mutex::new(Account::new(report)),
            controllers: AtomicUsize::new(0),
            is_disowned: AtomicBool::new(false),
            moved_to: Mutex::default(),
        })
    }

    /// A connection that a server accepts, with its peer's hint if that is known from elsewhere.
    #[must_use]
    pub fn accepted(rules: &Arc<Rules>, draws: &Draws, peer: SocketAddr, hint: Option<Hint>) -> Arc<Self> {
        let key = client_key(peer.ip());
        rules.prefetch(key);
        let connection = Self::new(Arc::clone(rules), peer, key, draws.next(), None);
        if let Some(hint) = hint {
            connection.set_hint(hint);
        }
        connection
    }

    /// Sets the hint of the peer's access link: once, later calls have no effect.
    pub fn set_hint(&self, hint: Hint) {
        let _ = self.hint.set(hint);
    }

    /// The hint of the peer's access link.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        self.hint.get().copied()
    }

    /// Sets the peer's connection flow control limit in bytes, where the stack knows it. No limit
    /// by default.
    pub fn set_flow_control(&self, limit: u64) {
        self.flow_control.store(limit, Ordering::Relaxed);
    }

    /// Most bytes of a flight that is limited by nothing but the flow's size.
    #[must_use]
    pub fn admitted(&self) -> Bytes {
        Bytes::new(self.flow_control.load(Ordering::Relaxed)).min(self.rules.flight_limit)
    }

    /// Data goes to `address` now: after a migration not the peer's first one.
    pub fn set_destination(&self, address: IpAddr) {
        *locked(&self.moved_to) = (address != self.peer.ip()).then_some(address);
    }

    /// The address that the peer moved to, if it is on another path.
    #[must_use]
    pub fn moved_to(&self) -> Option<IpAddr> {
        *locked(&self.moved_to)
    }

    /// Bytes announced by the application so far.
    #[must_use]
    pub fn expected(&self) -> Option<Bytes> {
        match self.expected.load(Ordering::Relaxed) {
            0 => None,
            bytes => Some(Bytes::new(bytes)),
        }
    }

    /// Announces `bytes` further bytes of application data.
    pub fn expect(&self, bytes: u64) {
        let add = |before: u64| Some(before.saturating_add(bytes));
        // The closure always returns a sum.
        let _ = self.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The report so far.
    #[must_use]
    pub fn report(&self) -> StartReport {
        locked(&self.account).report.clone()
    }

    /// A controller was made.
    pub fn register_controller(&self) {
        self.controllers.fetch_add(1, Ordering::Relaxed);
    }

    /// A controller was dropped; the last one closes the connection. True if it was the last.
    pub fn unregister_controller(&self) -> bool {
        let is_last = self.controllers.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last {
            self.close();
        }
        is_last
    }

    /// Marks this as a path of another connection: it writes no record, and is not counted or
    /// logged.
    pub fn disown(&self) {
        self.is_disowned.store(true, Ordering::Relaxed);
        locked(&self.account).note_migration();
    }

    /// Writes the outcome, releases reservations, logs the report. Later calls have no effect.
    pub fn close(&self) {
        let mut account = locked(&self.account);
        if account.close(self.rules.store()) && !self.is_disowned.load(Ordering::Relaxed) {
            self.rules.metrics.count(&account.report);
            tracing::info!(target: "headstart", "{}", account.report);
            if let Some(stop) = self.rules.guard.as_ref().and_then(|guard| guard.observe(&account.report)) {
                tracing::warn!(target: "headstart", "the guard has stopped fast starts until this server is restarted: {stop}");
            }
            if let Some(log) = &self.log {
                log.ended(&account.report);
            }
        }
    }

    /// As [`Self::close`], but writes no record: of a peer that broke the protocol, which may have
    /// acknowledged data that it never received.
    pub fn abandon(&self) {
        locked(&self.account).keep_record();
        self.close();
    }
}

/// The application's handle of a connection: flow sizes in, report out.
#[derive(Clone, Debug)]
pub struct Handle(pub Arc<Connection>);

impl Handle {
    /// Announces `bytes` further bytes of application data, for schemes that plan with the flow's
    /// size (JumpStart). To be called for each answer, before it is written: the sizes add up.
    pub fn expect(&self, bytes: u64) {
        self.0.expect(bytes);
    }

    /// The report so far: up to the last change of the scheme's phase, or complete after the end of
    /// the connection.
    #[must_use]
    pub fn report(&self) -> StartReport {
        self.0.report()
    }

    /// Ends the account without a record: of a peer that broke the protocol, which may have
    /// acknowledged data that it never received.
    pub fn abandon(&self) {
        self.0.abandon();
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use headstart_startup::catalogue;

    use super::*;

    /// Counts the ends of connections.
    #[derive(Debug, Default)]
    struct Ends(AtomicUsize);

    impl Log for Ends {
        fn phase(&self, _: Time, _: &StartReport, _: Allowance) {}
        fn ended(&self, _: &StartReport) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Stacks drop clones of a controller on any of their threads. Miri tries other orders of the
    /// threads with each seed (`tools/weekly.sh`).
    #[test]
    fn threads_close_a_connection_once_and_their_sizes_add_up() {
        const CONTROLLERS: u64 = 3;
        let entry = catalogue::find("iw10").expect("a name of the catalogue");
        let choice = Choice { name: entry.name, needs: entry.needs, scheme: entry.scheme() };
        let ends = Arc::new(Ends::default());
        let peer = SocketAddr::from(([192, 0, 2, 1], 443));
        // The default's table of 65 536 addresses takes Miri a minute.
        let policy = Policy { addresses: NonZeroUsize::MIN, ..Policy::default() };
        let rules = Rules {
            choice,
            control: choice,
            base: base::Kind::default(),
            store: None,
            gates: Gates::default(),
            rollout: Arc::default(),
            guard: None,
            limits: Limits::new(policy),
            metrics: Arc::default(),
            flight_limit: FLIGHT_LIMIT,
            is_client: false,
        };
        let connection =
            Connection::new(Arc::new(rules), peer, peer.ip(), 0, Some(Arc::clone(&ends) as Arc<dyn Log>));
        (0..CONTROLLERS).for_each(|_| connection.register_controller());
        let lasts = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..CONTROLLERS {
                scope.spawn(|| {
                    connection.expect(1000);
                    if connection.unregister_controller() {
                        lasts.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(
                            connection.expected(),
                            Some(Bytes::new(1000 * CONTROLLERS)),
                            "it sees all"
                        );
                    }
                });
            }
        });
        assert_eq!((lasts.into_inner(), ends.0.load(Ordering::Relaxed)), (1, 1));
    }
}
