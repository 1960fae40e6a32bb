//! State shared by the parts of one connection: congestion controller and handle.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use headstart_adapter::{Account, Epoch, Gates, Guard, Limits, Metrics, Rollout, StartReport, Store};
use headstart_host::locked;
use headstart_startup::base;
use headstart_startup::prior::Hint;
use headstart_units::Bytes;
use quinn_proto::congestion;

use crate::adapter::Adapter;
use crate::choice::Choice;

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
    pub epoch: Epoch,
    /// Substitute, in bytes, for the receive window of schemes that send all data at once.
    pub flight_limit: Bytes,
}

impl Rules {
    pub fn store(&self) -> Option<&dyn Store> {
        self.store.as_deref()
    }
}

/// State shared by the parts of one connection.
#[derive(Debug)]
pub(crate) struct Shared {
    pub rules: Arc<Rules>,
    pub peer: SocketAddr,
    /// The store's key.
    pub key: IpAddr,
    /// Drawn uniformly: decides the arm.
    pub number: u64,
    pub hint: Option<Hint>,
    /// Bytes announced by the application; zero if none.
    expected: AtomicU64,
    pub account: Mutex<Account>,
    /// Number of live controllers: the stack clones them.
    controllers: AtomicUsize,
}

impl Shared {
    pub fn new(
        rules: Arc<Rules>,
        peer: SocketAddr,
        key: IpAddr,
        number: u64,
        hint: Option<Hint>,
    ) -> Arc<Self> {
        let report = StartReport { scheme: rules.choice.name(), peer: Some(peer), ..StartReport::default() };
        Arc::new(Self {
            rules,
            peer,
            key,
            number,
            hint,
            expected: AtomicU64::new(0),
            account: Mutex::new(Account::new(report)),
            controllers: AtomicUsize::new(0),
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
            self.close();
        }
    }

    /// Writes the outcome, releases reservations, logs the report. Later calls have no effect.
    fn close(&self) {
        let mut account = locked(&self.account);
        if account.close(self.rules.store()) {
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

    /// The report so far: up to the last change of the scheme's phase, or complete after
    /// [`Self::finish`] or the end of the connection.
    #[must_use]
    pub fn report(&self) -> StartReport {
        locked(&self.0.account).report.clone()
    }

    /// Writes the record now: the application has finished with the connection, whose
    /// `congestion_state()` this is. Otherwise it is written when quinn drops the connection, three
    /// probe timeouts after its end.
    pub fn finish(&self, state: Box<dyn congestion::Controller>) {
        if let Ok(mut adapter) = Box::<dyn Any>::downcast::<Adapter>(state.into_any()) {
            adapter.publish();
        }
        self.0.close();
    }

    /// As [`Self::finish`], but writes no record: of a peer that broke the protocol, which may have
    /// acknowledged data that it never received.
    pub fn abandon(&self) {
        locked(&self.0.account).keep_record();
        self.0.close();
    }
}
