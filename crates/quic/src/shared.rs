//! State shared by the parts of one connection: TLS session, congestion controller, and handle.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use headstart_adapter::Connection;
use headstart_adapter::connection::Log;
use headstart_host::locked;
use headstart_startup::prior::Hint;
use noq_proto::{ConnectionError, Side, congestion};

use crate::adapter::Adapter;
use crate::choice::Choice;
use crate::copies::{CopyPolicy, DuplicateSender, SentPackets};
use crate::epoch::Epoch;
use crate::journal::{Journal, JournalEntry};
use crate::last_encrypted::LastEncrypted;
use crate::start_report::StartReport;
use crate::unvalidated::Paths;

/// Settings common to all connections of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Those of any stack.
    pub common: Arc<headstart_adapter::Rules>,
    pub choice: Choice,
    pub epoch: Epoch,
    pub duplicate_sender: Option<Arc<dyn DuplicateSender>>,
    pub copies: CopyPolicy,
}

impl Rules {
    pub fn new(side: Side, choice: Choice) -> Self {
        let control = crate::choice::slow_start().carried();
        let common = headstart_adapter::Rules::new(choice.carried(), control);
        Self {
            common: Arc::new(headstart_adapter::Rules { is_client: side == Side::Client, ..common }),
            choice,
            epoch: Epoch::now(),
            duplicate_sender: None,
            copies: CopyPolicy::default(),
        }
    }

    pub fn common_mut(&mut self) -> &mut headstart_adapter::Rules {
        Arc::make_mut(&mut self.common)
    }

    pub fn set_choice(&mut self, choice: Choice) {
        self.choice = choice;
        self.common_mut().choice = choice.carried();
    }
}

/// State shared by the parts of one connection.
#[derive(Debug)]
pub(crate) struct Shared {
    pub rules: Arc<Rules>,
    pub connection: Arc<Connection>,
    pub local: Option<IpAddr>,
    pub last_encrypted: LastEncrypted,
    /// Of a server's connection.
    pub paths: Option<Arc<Paths>>,
    retains_packets: AtomicBool,
    sent_packets: Mutex<SentPackets>,
    pub journal: Journal,
}

impl Shared {
    /// `key` is the store's; `number` is drawn uniformly, and decides the arm.
    pub fn new(
        rules: Arc<Rules>,
        peer: SocketAddr,
        local: Option<IpAddr>,
        key: IpAddr,
        number: u64,
        log: Option<Arc<dyn Log>>,
    ) -> Arc<Self> {
        let is_client = rules.common.is_client;
        Arc::new(Self {
            connection: Connection::new(Arc::clone(&rules.common), peer, key, number, log),
            rules,
            local,
            last_encrypted: LastEncrypted::default(),
            paths: (!is_client).then(|| Paths::new(peer)),
            retains_packets: AtomicBool::new(false),
            sent_packets: Mutex::default(),
            journal: Journal::default(),
        })
    }

    /// Takes the hint and limit of the peer's parameters.
    pub fn set_peer_parameters(&self, hint: Option<Hint>, flow_control: Option<u64>) {
        if let Some(hint) = hint {
            // The handshake carries the parameters once: a second call changes nothing.
            self.connection.set_hint(hint);
        }
        if let Some(limit) = flow_control {
            self.connection.set_flow_control(limit);
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
        self.0.connection.expect(bytes);
    }

    /// The peer's hint of its access link, once its first message has been read.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        self.0.connection.hint()
    }

    /// The report so far: as of the last loss, change of the scheme's phase, or acknowledgement
    /// that left nothing in flight. [`Self::update`] brings it up to date.
    #[must_use]
    pub fn report(&self) -> StartReport {
        self.0.connection.report()
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
            adapter.driver.publish();
        }
    }

    /// Writes the record now: the application has finished with the connection. Otherwise it is
    /// written when the stack drops the connection, three probe timeouts after its end.
    pub fn finish(&self) {
        self.0.connection.close();
    }

    /// As [`Self::finish`], with the reason of the connection's end. No record is written of a peer
    /// that broke the protocol: it may have acknowledged data that it never received.
    pub fn finish_with(&self, reason: &ConnectionError) {
        match reason {
            ConnectionError::TransportError(_) => self.0.connection.abandon(),
            _ => self.finish(),
        }
    }
}
