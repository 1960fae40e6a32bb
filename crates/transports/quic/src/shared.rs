//! State shared by the parts of one connection: TLS session, congestion controller, and handle.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use headstart_adapter::Connection;
use headstart_adapter::connection::Log;
use headstart_host::locked;
use headstart_startup::prior::Hint;
use noq_proto::Side;

use crate::choice::Choice;
use crate::copies::{CopyPolicy, DuplicateSender, SentPackets};
use crate::epoch::Epoch;
use crate::journal::Journal;
use crate::last_encrypted::LastEncrypted;
use crate::unvalidated::Paths;

/// Settings common to all connections of an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Settings that connections of every stack have.
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
    /// Paths of a server's connection.
    pub paths: Option<Arc<Paths>>,
    retains_packets: AtomicBool,
    sent_packets: Mutex<SentPackets>,
    pub journal: Journal,
}

impl Shared {
    /// A connection's state. `key` is the store's; `number`, drawn uniformly, decides the arm.
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
