//! A server's set-up: one per endpoint.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use headstart_adapter::{ChoiceError, Connection, Draws, Epoch, Rules};
use headstart_startup::prior::Hint;
use quinn_proto::congestion::ControllerFactory;
use quinn_proto::{ServerConfig, TransportConfig};

use crate::adapter::Factory;
use crate::choice::Choice;
use crate::handle::Handle;

/// Settings for the connections that a server accepts. Setters consume and return it; clones share
/// history, rollout and counters.
#[derive(Clone)]
pub struct ServerSetup {
    base: ServerConfig,
    transport: Arc<dyn Fn() -> TransportConfig + Send + Sync>,
    rules: Arc<Rules>,
    epoch: Epoch,
    draws: Arc<Draws>,
}

impl fmt::Debug for ServerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSetup").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl ServerSetup {
    /// A server with quinn's configuration `base`, of which only the transport is replaced.
    ///
    /// # Errors
    /// [`ChoiceError`] if the catalogue does not have the scheme or quinn cannot carry it.
    pub fn new(base: ServerConfig, scheme: &str) -> Result<Self, ChoiceError> {
        let rules = Rules::new(Choice::find(scheme)?.choice(), Choice::find("iw10")?.choice());
        Ok(Self {
            base,
            transport: Arc::new(TransportConfig::default),
            rules: Arc::new(rules),
            epoch: Epoch::now(),
            draws: Arc::default(),
        })
    }

    headstart_adapter::setup_methods!();

    /// Makes the transport configuration of a connection, whose congestion controller is then set;
    /// quinn cannot copy one. [`TransportConfig::default`] by default.
    #[must_use]
    pub fn transport(mut self, make: impl Fn() -> TransportConfig + Send + Sync + 'static) -> Self {
        self.transport = Arc::new(make);
        self
    }

    /// Maps quinn's clock to the time of records, for virtual time. By default ns since 1970.
    #[must_use]
    pub fn epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = epoch;
        self
    }

    /// The configuration for a connection of that peer, for `quinn::Incoming::accept_with`.
    #[must_use]
    pub fn configure(&self, peer: SocketAddr) -> (Arc<ServerConfig>, Handle) {
        self.configure_with_hint(peer, None)
    }

    /// The configuration with a hint of the peer's access link, known from elsewhere: quinn has no
    /// place for a transport parameter of one's own.
    #[must_use]
    pub fn configure_with_hint(&self, peer: SocketAddr, hint: Option<Hint>) -> (Arc<ServerConfig>, Handle) {
        let (factory, handle) = self.factory(peer, hint);
        let mut transport = (self.transport)();
        transport.congestion_controller_factory(factory);
        let mut config = self.base.clone();
        config.transport_config(Arc::new(transport));
        (Arc::new(config), handle)
    }

    /// Makes the congestion controllers of one connection of that peer: for servers that build
    /// their configuration themselves.
    #[must_use]
    pub fn factory(
        &self,
        peer: SocketAddr,
        hint: Option<Hint>,
    ) -> (Arc<dyn ControllerFactory + Send + Sync>, Handle) {
        let connection = Connection::accepted(&self.rules, &self.draws, peer, hint);
        (Factory::new(Arc::clone(&connection), self.epoch), Handle(headstart_adapter::Handle(connection)))
    }
}
