//! A server's set-up: one per endpoint.
//!
//! ```no_run
//! # async fn serve(
//! #     endpoint: noq::Endpoint,
//! #     base: noq::ServerConfig,
//! #     tls: std::sync::Arc<rustls::ServerConfig>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use headstart_quic::{Choice, ServerSetup, Sharded};
//! use std::sync::Arc;
//!
//! let scheme = Choice::find("headstart")?;
//! let setup = ServerSetup::new(base, tls, scheme)?.history(Arc::new(Sharded::default()));
//! while let Some(incoming) = endpoint.accept().await {
//!     let accepted = setup.accept(incoming)?;
//!     tokio::spawn(async move {
//!         let (connection, handle) = accepted.established().await?;
//!         // Serve `connection` as before; `handle.report()` is the report.
//! #       drop((connection, handle));
//!         Ok::<_, noq::ConnectionError>(())
//!     });
//! }
//! # Ok(()) }
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use headstart_adapter::Draws;
use headstart_startup::hint::Steps;
use headstart_startup::prior::Hint;
use noq_proto::congestion::{Bbr3Config, CubicConfig};
use noq_proto::crypto::rustls::NoInitialCipherSuite;
use noq_proto::{ConnectionId, Side, TransportConfig};

use crate::adapter::Factory;
use crate::choice::{Choice, Stack};
use crate::copies::{CopyPolicy, DuplicateSender};
use crate::epoch::Epoch;
use crate::handle::Handle;
use crate::metrics::Metrics;
use crate::pending_connection::PendingConnection;
use crate::session::{CustomCrypto, ServerTls, SessionFactory, tls};
use crate::shared::{Rules, Shared};
use crate::store::client_key;
use crate::tickets::Tickets;
use crate::token::{TokenKeys, Tokens};

/// Errors of an endpoint's set-up.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SetupError {
    /// The TLS configuration does not suit QUIC.
    #[error("the TLS configuration does not suit QUIC: {0}")]
    Tls(#[from] NoInitialCipherSuite),
    /// The scheme sends copies of datagrams, and no sender of duplicates was given.
    #[error(
        "`{0}` sends copies of datagrams: give it a sender of duplicates, such as PreciseRuntime::duplicate_sender"
    )]
    NoDuplicateSender(String),
    /// The control scheme is the stack's own controller, or sends copies.
    #[error("`{0}` cannot be the control scheme: it is the stack's own controller")]
    Control(String),
}

/// Settings for the connections that a server accepts. Setters consume and return it; clones share
/// history, rollout and counters.
#[derive(Clone)]
pub struct ServerSetup {
    base: noq::ServerConfig,
    crypto: Crypto,
    announce: Option<Hint>,
    tokens: Option<TokenKeys>,
    tickets: Option<Arc<Tickets>>,
    rules: Arc<Rules>,
    draws: Arc<Draws>,
    #[cfg(feature = "qlog")]
    qlog: Option<Arc<crate::qlog::Directory>>,
}

/// Source of sessions.
#[derive(Clone)]
enum Crypto {
    Tls(ServerTls),
    /// Sessions other than TLS: null crypto in virtual time.
    Custom(Arc<dyn SessionFactory>),
}

macro_rules! common_setters {
    () => {
        fn rules_mut(&mut self) -> &mut headstart_adapter::Rules {
            Arc::make_mut(&mut self.rules).common_mut()
        }

        headstart_adapter::rule_setters!();

        /// The control arm's scheme. Slow start from ten packets by default.
        ///
        /// # Errors
        /// [`SetupError::Control`] for the stack's own controller, as the arm is decided when the
        /// connection already has its controller; and for a scheme that sends copies.
        pub fn control(mut self, choice: Choice) -> Result<Self, SetupError> {
            if choice.scheme().is_none() || choice.needs_duplicate_sender() {
                return Err(SetupError::Control(choice.name().to_owned()));
            }
            self.rules_mut().control = choice.carried();
            Ok(self)
        }

        /// Sender of the copies of Halfback and Proactive, which without one send none. See
        /// [`PreciseRuntime::duplicate_sender`](crate::PreciseRuntime::duplicate_sender).
        #[must_use]
        pub fn duplicate_sender(mut self, duplicate_sender: Arc<dyn DuplicateSender>) -> Self {
            Arc::make_mut(&mut self.rules).duplicate_sender = Some(duplicate_sender);
            self
        }

        /// Limits on copies. 300 kB per connection, and none after congestion, by default.
        #[must_use]
        pub fn copies(mut self, policy: CopyPolicy) -> Self {
            Arc::make_mut(&mut self.rules).copies = policy;
            self
        }

        /// Draws the arms from a seed instead of a secret: for repeatable runs.
        #[must_use]
        pub fn seed(mut self, seed: u64) -> Self {
            self.draws = Arc::new(headstart_adapter::Draws::of_seed(seed));
            self
        }

        /// Mapping of the stack's clock to the time of records: for virtual time. By default that
        /// is nanoseconds since 1970.
        #[must_use]
        pub fn epoch(mut self, epoch: Epoch) -> Self {
            Arc::make_mut(&mut self.rules).epoch = epoch;
            self
        }

        /// Sends the peer a hint of the local access link, quantised with the default [`Steps`].
        #[must_use]
        pub fn hint(mut self, hint: Hint) -> Self {
            self.announce = hint.quantised(Steps::default());
            self
        }

        /// Sends the hint without quantisation: it discloses more of the link than a peer needs.
        #[must_use]
        pub fn exact_hint(mut self, hint: Hint) -> Self {
            self.announce = Some(hint);
            self
        }

        /// Counters of the accepted connections.
        #[must_use]
        pub fn counted(&self) -> &Arc<Metrics> {
            &self.rules.common.metrics
        }

        /// The scheme of the treated arm.
        #[must_use]
        pub fn choice(&self) -> &Choice {
            &self.rules.choice
        }

        /// Writes the stack's qlog into `directory`, which must exist: one file per connection,
        /// with the scheme's decisions among its events. A file that cannot be created is logged.
        #[cfg(feature = "qlog")]
        #[must_use]
        pub fn qlog(mut self, directory: impl Into<std::path::PathBuf>) -> Self {
            self.qlog = Some(Arc::new(crate::qlog::Directory::new(directory)));
            self
        }

        /// Verifies that the scheme has all that it needs.
        ///
        /// # Errors
        /// [`SetupError::NoDuplicateSender`] if it sends copies without a sender of duplicates.
        pub fn check(&self) -> Result<(), SetupError> {
            if self.rules.choice.needs_duplicate_sender() && self.rules.duplicate_sender.is_none() {
                return Err(SetupError::NoDuplicateSender(self.rules.choice.name().to_owned()));
            }
            Ok(())
        }
    };
}
pub(crate) use common_setters;

impl ServerSetup {
    /// A server with the stack's configuration `base`, of which only crypto and congestion control
    /// are replaced. Its token key is kept, so that clients' address validation tokens stay valid.
    ///
    /// # Errors
    /// [`SetupError::Tls`] if the TLS configuration does not suit QUIC.
    pub fn new(
        base: noq::ServerConfig,
        tls: Arc<rustls::ServerConfig>,
        choice: Choice,
    ) -> Result<Self, SetupError> {
        Ok(Self::with(base, Crypto::Tls(ServerTls::new(tls)?), choice))
    }

    /// A server with sessions other than TLS: for simulations.
    #[must_use]
    pub fn with_session_factory(
        base: noq::ServerConfig,
        sessions: Arc<dyn SessionFactory>,
        choice: Choice,
    ) -> Self {
        Self::with(base, Crypto::Custom(sessions), choice)
    }

    fn with(base: noq::ServerConfig, crypto: Crypto, choice: Choice) -> Self {
        Self {
            base,
            crypto,
            announce: None,
            tokens: None,
            tickets: None,
            rules: Arc::new(Rules::new(Side::Server, choice)),
            draws: Arc::default(),
            #[cfg(feature = "qlog")]
            qlog: None,
        }
    }

    common_setters!();

    /// Clients carry the record of their path in address validation tokens
    /// ([`token`](crate::token)). Records that they show go into the store, which is set before:
    /// without one nothing changes. The endpoint needs [`Self::stack_config`].
    #[must_use]
    pub fn tokens(mut self, keys: TokenKeys) -> Self {
        if let Some(tokens) = self.tokens_of(&keys, None) {
            self.base.token_key(tokens);
            self.tokens = Some(keys);
        }
        self
    }

    /// Keeps the tickets of clients here, in place of the session storage of the TLS configuration,
    /// so that one address cannot take the places of all others' ([`tickets`](crate::tickets)).
    #[must_use]
    pub fn tickets(mut self, tickets: Arc<Tickets>) -> Self {
        self.tickets = Some(tickets);
        self
    }

    fn tokens_of(&self, keys: &TokenKeys, peer: Option<IpAddr>) -> Option<Arc<Tokens>> {
        let store = Arc::clone(self.rules.common.store.as_ref()?);
        Some(Arc::new(Tokens { keys: keys.clone(), store, peer }))
    }

    /// Sets another scheme. Clones with different schemes share history and counters.
    #[must_use]
    pub fn scheme(mut self, choice: Choice) -> Self {
        Arc::make_mut(&mut self.rules).set_choice(choice);
        self
    }

    /// The stack's configuration, of which at most the token key was changed: for
    /// [`noq::Endpoint::new`].
    #[must_use]
    pub fn stack_config(&self) -> &noq::ServerConfig {
        &self.base
    }

    /// Accepts a connection, configured for its peer.
    ///
    /// # Errors
    /// As [`noq::Incoming::accept_with`].
    pub fn accept(&self, incoming: noq::Incoming) -> Result<PendingConnection, noq::ConnectionError> {
        let (remote, local, id) = (incoming.remote_address(), incoming.local_ip(), incoming.orig_dst_cid());
        let (config, handle) = self.configure(remote, local, id);
        if incoming.remote_address_validated() {
            handle.address_validated();
        }
        Ok(PendingConnection { connecting: incoming.accept_with(config)?, handle })
    }

    /// The configuration for one connection: for a caller that drives the protocol itself. `id` is
    /// the client's first destination connection id; with a secret it decides the connection's arm.
    #[must_use]
    pub fn configure(
        &self,
        remote: SocketAddr,
        local: Option<IpAddr>,
        id: ConnectionId,
    ) -> (Arc<noq::ServerConfig>, Handle) {
        let number = self.draws.of(&id);
        let key = client_key(remote.ip());
        self.rules.common.prefetch(key);
        #[cfg(feature = "qlog")]
        let (factory, log) = self.qlog.as_ref().map(|it| it.of_connection(&self.rules)).unzip();
        #[cfg(not(feature = "qlog"))]
        let log = None;
        let shared = Shared::new(Arc::clone(&self.rules), remote, local, key, number, log);
        let mut config = self.base.clone();
        let mut transport = TransportConfig::clone(&config.transport);
        install(&mut transport, &shared);
        #[cfg(feature = "qlog")]
        if let Some(factory) = factory {
            transport.qlog_factory(factory);
        }
        config.transport = Arc::new(transport);
        if let Some(tokens) = self.tokens.as_ref().and_then(|keys| self.tokens_of(keys, Some(key))) {
            config.token_key(tokens);
        }
        config.crypto = match &self.crypto {
            Crypto::Tls(tls) => Arc::new(tls::ServerConfig {
                tls: tls.clone(),
                announce: self.announce,
                tickets: self.tickets.clone(),
                shared: Arc::clone(&shared),
            }),
            Crypto::Custom(sessions) => Arc::new(CustomCrypto {
                sessions: Arc::clone(sessions),
                announce: self.announce,
                shared: Arc::clone(&shared),
            }),
        };
        (Arc::new(config), Handle(shared))
    }
}

pub(crate) fn install(transport: &mut TransportConfig, shared: &Arc<Shared>) {
    match shared.rules.choice.stack_controller() {
        None => transport.congestion_controller_factory(Factory::new(Arc::clone(shared))),
        Some(Stack::Bbr) => transport.congestion_controller_factory(Arc::new(Bbr3Config::default())),
        Some(Stack::Cubic) => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
    };
}
