//! State shared by the parts of one connection: TLS session, congestion controller, and handle.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use headstart_adapter::Account;
use headstart_host::locked;
use headstart_startup::base;
use headstart_startup::prior::Hint;
use headstart_units::Bytes;
use noq_proto::{ConnectionError, Side, congestion};

use crate::adapter::Adapter;
use crate::choice::Choice;
use crate::copies::{CopyPolicy, DuplicateSender, SentPackets};
use crate::epoch::Epoch;
use crate::gates::{Gates, Rollout};
use crate::guard::Guard;
use crate::journal::{Journal, JournalEntry};
use crate::last_encrypted::LastEncrypted;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::start_report::StartReport;
use crate::store::Store;

/// Settings common to all connections of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub side: Side,
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
    pub duplicate_sender: Option<Arc<dyn DuplicateSender>>,
    pub copies: CopyPolicy,
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
    pub local: Option<IpAddr>,
    /// The store's key.
    pub key: IpAddr,
    /// Drawn uniformly: decides the arm.
    pub number: u64,
    pub last_encrypted: LastEncrypted,
    hint: OnceLock<Hint>,
    /// The peer's connection flow control limit, in bytes (`initial_max_data`).
    flow_control: AtomicU64,
    /// Bytes announced by the application; zero if none.
    expected: AtomicU64,
    retains_packets: AtomicBool,
    sent_packets: Mutex<SentPackets>,
    pub journal: Journal,
    pub account: Mutex<Account>,
    /// Number of live controllers: the stack clones them.
    controllers: AtomicUsize,
    #[cfg(feature = "qlog")]
    pub qlog: Arc<OnceLock<crate::qlog::Log>>,
}

impl Shared {
    pub fn new(
        rules: Arc<Rules>,
        peer: SocketAddr,
        local: Option<IpAddr>,
        key: IpAddr,
        number: u64,
    ) -> Arc<Self> {
        let report =
            StartReport { scheme: rules.choice.scheme_name(), peer: Some(peer), ..StartReport::default() };
        Arc::new(Self {
            rules,
            peer,
            local,
            key,
            number,
            last_encrypted: LastEncrypted::default(),
            hint: OnceLock::new(),
            flow_control: AtomicU64::new(u64::MAX),
            expected: AtomicU64::new(0),
            retains_packets: AtomicBool::new(false),
            sent_packets: Mutex::default(),
            journal: Journal::default(),
            account: Mutex::new(Account::new(report)),
            controllers: AtomicUsize::new(0),
            #[cfg(feature = "qlog")]
            qlog: Arc::default(),
        })
    }

    /// Takes the hint and limit of the peer's parameters.
    pub fn set_peer_parameters(&self, hint: Option<Hint>, flow_control: Option<u64>) {
        if let Some(hint) = hint {
            // The handshake carries the parameters once: a second call changes nothing.
            let _ = self.hint.set(hint);
        }
        if let Some(limit) = flow_control {
            self.flow_control.store(limit, Ordering::Relaxed);
        }
    }

    pub fn hint(&self) -> Option<Hint> {
        self.hint.get().copied()
    }

    pub fn flow_control(&self) -> Bytes {
        Bytes::new(self.flow_control.load(Ordering::Relaxed))
    }

    pub fn expected(&self) -> Option<Bytes> {
        match self.expected.load(Ordering::Relaxed) {
            0 => None,
            bytes => Some(Bytes::new(bytes)),
        }
    }

    /// Starts or stops the retention of packets sent.
    pub fn set_retention(&self, on: bool) {
        self.retains_packets.store(on, Ordering::Relaxed);
        if !on {
            locked(&self.sent_packets).clear();
        }
    }

    /// Retains the final bytes of the data packet encrypted last.
    pub fn retain_packet(&self, packet: &[u8]) {
        if self.retains_packets.load(Ordering::Relaxed) {
            locked(&self.sent_packets).push(self.last_encrypted.number(), packet);
        }
    }

    /// The wire bytes of a data packet, if they are retained.
    pub fn retained_packet(&self, number: u64) -> Option<bytes::Bytes> {
        locked(&self.sent_packets).get(number)
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
    pub fn close(&self) {
        let mut account = locked(&self.account);
        if !account.close(self.rules.store()) {
            return;
        }
        self.rules.metrics.count(&account.report);
        tracing::info!(target: "headstart", "{}", account.report);
        if let Some(stop) = self.rules.guard.as_ref().and_then(|guard| guard.observe(&account.report)) {
            tracing::warn!(target: "headstart", "the guard stops fast starts: {stop}");
        }
        #[cfg(feature = "qlog")]
        if let Some(log) = self.qlog.get() {
            log.ended(&account.report, account.report.last_at);
        }
    }
}

/// The application's handle of a connection: flow sizes in, hint and report out.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Announces `bytes` further bytes of application data, for schemes that plan with the flow's
    /// size (JumpStart, Halfback). Call it for each answer, before it is written: the sizes add up.
    ///
    /// ```no_run
    /// # async fn answer(connection: noq::Connection, handle: headstart_quic::Handle)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// let (mut send, _) = connection.accept_bi().await?;
    /// let answer = vec![0; 100_000];
    /// handle.expect(answer.len() as u64);
    /// send.write_all(&answer).await?;
    /// send.finish()?;
    /// # Ok(()) }
    /// ```
    pub fn expect(&self, bytes: u64) {
        let add = |before: u64| Some(before.saturating_add(bytes));
        // The closure always returns a sum.
        let _ = self.0.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    /// The peer's hint of its access link, once its first message has been read.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        self.0.hint()
    }

    /// The report so far: as of the last loss, change of the scheme's phase, or acknowledgement
    /// that left nothing in flight. [`Self::update`] brings it up to date.
    #[must_use]
    pub fn report(&self) -> StartReport {
        locked(&self.0.account).report.clone()
    }

    /// Records every sender event from now on, until [`Self::take_journal`].
    pub fn keep_journal(&self) {
        self.0.journal.keep();
    }

    /// Events since the last call. The stack's own controllers record none.
    #[must_use]
    pub fn take_journal(&self) -> Vec<JournalEntry> {
        self.0.journal.take()
    }

    /// Brings report and record up to date, with the `congestion_state()` of the connection's path:
    /// before [`Self::report`] or [`Self::finish`] while data is in flight.
    pub fn update(&self, state: Option<Box<dyn congestion::Controller>>) {
        let adapter = state.map(|state| Box::<dyn Any>::downcast::<Adapter>(state.into_any()));
        if let Some(Ok(mut adapter)) = adapter {
            adapter.publish();
        }
    }

    /// Writes the record now: the application has finished with the connection. Otherwise it is
    /// written when the stack drops the connection, three probe timeouts after its end.
    pub fn finish(&self) {
        self.0.close();
    }

    /// As [`Self::finish`], with the reason of the connection's end. No record is written of a peer
    /// that broke the protocol: it may have acknowledged data that it never received.
    pub fn finish_with(&self, reason: &ConnectionError) {
        if matches!(reason, ConnectionError::TransportError(_)) {
            locked(&self.0.account).keep_record();
        }
        self.finish();
    }
}
