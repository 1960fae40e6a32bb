//! A server's set-up: one per endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use headstart_adapter::{ChoiceError, Connection, Draws, Handle, Rules};
use headstart_startup::prior::Hint;
use headstart_units::Time;
use s2n_quic_core::event::api::SocketAddress;
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo};

use crate::choice::Choice;
use crate::controller::Adapter;
use crate::shared::{Clock, Connections};

/// Settings for the connections that a server accepts, and the provider of their congestion
/// controllers. Setters consume and return it; clones share history, rollout, counters and the
/// connections.
#[derive(Clone)]
pub struct ServerSetup {
    rules: Arc<Rules>,
    hints: Option<Arc<dyn Fn(SocketAddr) -> Option<Hint> + Send + Sync>>,
    connections: Arc<Connections>,
    clock: Arc<Clock>,
    draws: Arc<Draws>,
}

impl fmt::Debug for ServerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSetup").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl ServerSetup {
    /// A server whose connections start with that scheme.
    ///
    /// # Errors
    /// [`ChoiceError`] if the catalogue does not have the scheme or s2n-quic cannot carry it.
    pub fn new(scheme: &str) -> Result<Self, ChoiceError> {
        let rules = Rules::new(Choice::find(scheme)?.choice(), Choice::find("iw10")?.choice());
        Ok(Self {
            rules: Arc::new(rules),
            hints: None,
            connections: Arc::default(),
            clock: Arc::default(),
            draws: Arc::default(),
        })
    }

    headstart_adapter::setup_methods!();

    /// Hints of the peers' access links, known from elsewhere: s2n-quic has no place for a
    /// transport parameter of one's own.
    #[must_use]
    pub fn hints(mut self, find: impl Fn(SocketAddr) -> Option<Hint> + Send + Sync + 'static) -> Self {
        self.hints = Some(Arc::new(find));
        self
    }

    /// The time of records at s2n-quic's first report, for virtual time. By default it is read from
    /// the machine's clock then.
    #[must_use]
    pub fn begins_at(mut self, at: Time) -> Self {
        self.clock = Arc::new(Clock::beginning_at(at));
        self
    }

    /// The handle of the connection with that peer: its latest, if there are several. `None` if
    /// there is none, also after its end.
    #[must_use]
    pub fn handle(&self, peer: SocketAddr) -> Option<Handle> {
        self.connections.find(peer).map(Handle)
    }

    /// The controller of a path to that peer.
    pub(crate) fn accept(&self, peer: SocketAddr, packet: u16) -> Adapter {
        let hint = self.hints.as_ref().and_then(|find| find(peer));
        let connection = Connection::accepted(&self.rules, &self.draws, peer, hint);
        self.connections.insert(&connection);
        Adapter::new(connection, Arc::clone(&self.connections), Arc::clone(&self.clock), packet)
    }
}

impl Endpoint for ServerSetup {
    type CongestionController = Adapter;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Adapter {
        self.accept(socket_address(&path.remote_address), path.max_datagram_size)
    }
}

fn socket_address(address: &SocketAddress<'_>) -> SocketAddr {
    match *address {
        SocketAddress::IpV4 { ip, port, .. } => (*ip, port).into(),
        SocketAddress::IpV6 { ip, port, .. } => (*ip, port).into(),
        // There are no others.
        _ => ([0; 4], 0).into(),
    }
}
