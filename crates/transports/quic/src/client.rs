//! A client's set-up: one per endpoint.
//!
//! A client hints its access link to the server, and may be a sender itself: an upload, a relay,
//! media. It then starts from the record of its own earlier connections to that address and server
//! name. It drops the record when the RTT has changed, or at the first loss of a first flight.
//!
//! Until its first acknowledgement a client is not paced: the stack's own pacer, without an RTT
//! sample, would delay the last packet of the handshake, and the request with it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headstart_adapter::Draws;
use headstart_startup::hint::Steps;
use headstart_startup::prior::Hint;
use noq_proto::{Side, TokenMemoryCache, TokenStore, TransportConfig};

use crate::choice::Choice;
use crate::copies::{CopyPolicy, DuplicateSender};
use crate::epoch::Epoch;
use crate::handle::Handle;
use crate::metrics::Metrics;
use crate::pending_connection::PendingConnection;
use crate::server::{SetupError, common_setters, install};
use crate::session::{ClientTls, CustomCrypto, SessionFactory, tls};
use crate::shared::{Rules, Shared};
use crate::store::server_key;

/// Settings for the connections that a client initiates.
#[derive(Clone)]
pub struct ClientSetup {
    crypto: Crypto,
    transport: TransportConfig,
    tokens: Arc<dyn TokenStore>,
    announce: Option<Hint>,
    rules: Arc<Rules>,
    draws: Arc<Draws>,
    connections: Arc<AtomicU64>,
    #[cfg(feature = "qlog")]
    qlog: Option<Arc<crate::qlog::Directory>>,
}

#[derive(Clone)]
enum Crypto {
    Tls(ClientTls),
    Custom(Arc<dyn SessionFactory>),
}

impl ClientSetup {
    /// A client whose connections begin with slow start; [`Self::scheme`] changes that.
    ///
    /// # Errors
    /// [`SetupError::Tls`] if the TLS configuration does not suit QUIC.
    pub fn new(tls: Arc<rustls::ClientConfig>) -> Result<Self, SetupError> {
        Ok(Self::with(Crypto::Tls(ClientTls::new(tls)?)))
    }

    /// A client with sessions other than TLS: for simulations.
    #[must_use]
    pub fn with_session_factory(sessions: Arc<dyn SessionFactory>) -> Self {
        Self::with(Crypto::Custom(sessions))
    }

    fn with(crypto: Crypto) -> Self {
        Self {
            crypto,
            transport: TransportConfig::default(),
            tokens: Arc::new(TokenMemoryCache::default()),
            announce: None,
            rules: Arc::new(Rules::new(Side::Client, crate::choice::slow_start())),
            draws: Arc::default(),
            connections: Arc::default(),
            #[cfg(feature = "qlog")]
            qlog: None,
        }
    }

    common_setters!();

    /// The scheme of this client's own sending; slow start by default.
    #[must_use]
    pub fn scheme(mut self, choice: Choice) -> Self {
        Arc::make_mut(&mut self.rules).set_choice(choice);
        self
    }

    /// The stack's transport settings, of which only congestion control is replaced.
    #[must_use]
    pub fn transport(mut self, transport: TransportConfig) -> Self {
        self.transport = transport;
        self
    }

    /// Store of the address validation tokens received; in memory by default.
    #[must_use]
    pub fn tokens(mut self, tokens: Arc<dyn TokenStore>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Configuration and handle for one connection to `remote`.
    #[must_use]
    pub fn configure(&self, remote: SocketAddr, server_name: &str) -> (noq::ClientConfig, Handle) {
        let number = self.draws.of(&self.connections.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        let key = server_key(remote.ip(), server_name);
        #[cfg(feature = "qlog")]
        let (factory, log) = self.qlog.as_ref().map(|it| it.of_connection(&self.rules)).unzip();
        #[cfg(not(feature = "qlog"))]
        let log = None;
        let shared = Shared::new(Arc::clone(&self.rules), remote, None, key, number, log);
        let mut transport = self.transport.clone();
        install(&mut transport, &shared);
        #[cfg(feature = "qlog")]
        if let Some(factory) = factory {
            transport.qlog_factory(factory);
        }
        let crypto: Arc<dyn noq_proto::crypto::ClientConfig> = match &self.crypto {
            Crypto::Tls(tls) => Arc::new(tls::ClientConfig {
                tls: tls.clone(),
                announce: self.announce,
                shared: Arc::clone(&shared),
            }),
            Crypto::Custom(sessions) => Arc::new(CustomCrypto {
                sessions: Arc::clone(sessions),
                announce: self.announce,
                shared: Arc::clone(&shared),
            }),
        };
        let mut config = noq::ClientConfig::new(crypto);
        config.transport_config(Arc::new(transport)).token_store(Arc::clone(&self.tokens));
        (config, Handle(shared))
    }

    /// Initiates a connection. Its record is written as soon as it is closed, provided that
    /// [`PendingConnection::established`] was awaited.
    ///
    /// # Errors
    /// As [`noq::Endpoint::connect_with`].
    pub fn connect(
        &self,
        endpoint: &noq::Endpoint,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<PendingConnection, noq::ConnectError> {
        let (config, handle) = self.configure(remote, server_name);
        Ok(PendingConnection { connecting: endpoint.connect_with(config, remote, server_name)?, handle })
    }
}
