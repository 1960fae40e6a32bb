//! A server's endpoint, from a certificate, schemes and a history.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use headstart_quic::resets;
use headstart_quic::server::SetupError;
use headstart_quic::tickets::Tickets;
use headstart_quic::token::TokenKeys;
use headstart_quic::{Choice, Gates, Guard, Policy, PreciseRuntime, Rollout, ServerSetup, Sharded, Store};
use noq::Endpoint;
use noq::crypto::rustls::QuicServerConfig;
use socket2::{Domain, Protocol, Socket, Type};

use crate::identity::CurrentIdentity;
use crate::server;
use crate::start::FastStartAdmission;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings<'a> {
    /// Certificate and key for its clients.
    pub identity: &'a Arc<CurrentIdentity>,
    /// The default scheme.
    pub scheme: Choice,
    /// Schemes that clients may choose instead. Each has its own history in memory, so that none
    /// profits from another's measurements.
    pub others: Vec<Choice>,
    /// Store of `scheme`'s records.
    pub history: Arc<dyn Store>,
    /// Share of the connections that run `scheme`, of those without a choice.
    pub rollout: Arc<Rollout>,
    /// Watches the arms of `rollout`.
    pub guard: Option<Arc<Guard>>,
    /// The kill switch for connections with a choice.
    pub choice_rollout: Arc<Rollout>,
    /// Conditions for the use of records and of fast starts.
    pub gates: Gates,
    /// Caps on hints.
    pub hints: Policy,
    /// Keys of the tokens in which clients carry their records; `None`: tokens carry none.
    pub token_keys: Option<TokenKeys>,
    /// Folder for qlogs.
    pub qlog: Option<PathBuf>,
}

impl<'a> ServerSettings<'a> {
    /// A server with one scheme for all its connections, without guard, tokens or qlog.
    #[must_use]
    pub fn new(identity: &'a Arc<CurrentIdentity>, scheme: Choice, history: Arc<dyn Store>) -> Self {
        Self {
            identity,
            scheme,
            others: vec![],
            history,
            rollout: Arc::default(),
            guard: None,
            choice_rollout: Arc::default(),
            gates: Gates::default(),
            hints: Policy::default(),
            token_keys: None,
            qlog: None,
        }
    }
}

/// Errors of a server's set-up.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Key and certificate do not match.
    #[error("the certificate cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
    /// The scheme lacks a part that it needs.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The address cannot be bound.
    #[error("{address}, UDP: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// qlog was requested and is not built in.
    #[error("qlog is not built in: build with --features qlog")]
    NoQlog,
}

/// Receive buffer requested of the kernel, in bytes; it may grant less.
const SOCKET_BUFFER: usize = 4 << 20;

/// Stands for the address of a socket that does not report its own.
const UNKNOWN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

/// Records kept for each scheme that clients may choose, in peers.
const PEERS: usize = 4096;

/// A UDP socket at `address`; IPv6's unspecified address also receives IPv4.
///
/// # Errors
///
/// If the address cannot be bound.
pub fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A larger buffer helps; the system's limit is acceptable.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Opens the endpoint. Requires a tokio context.
///
/// # Errors
///
/// If the certificate cannot be used or the address cannot be bound.
pub fn open(
    plan: ServerSettings<'_>,
    address: SocketAddr,
) -> Result<(Endpoint, FastStartAdmission), OpenError> {
    let socket = socket(address).map_err(|source| OpenError::Socket { address, source })?;
    open_on(plan, socket)
}

/// Opens the endpoint on a socket that is bound already.
///
/// # Errors
///
/// If the certificate or the socket cannot be used.
pub fn open_on(
    plan: ServerSettings<'_>,
    socket: UdpSocket,
) -> Result<(Endpoint, FastStartAdmission), OpenError> {
    let tls = Arc::new(server::tls(plan.identity)?);
    let unsuited = |_| rustls::Error::General("it has no cipher suite that QUIC begins with".into());
    let crypto = QuicServerConfig::try_from(Arc::clone(&tls)).map_err(unsuited)?;
    let mut base = noq::ServerConfig::with_crypto(Arc::new(crypto));
    base.transport_config(Arc::new(server::transport()));
    let runtime = PreciseRuntime::new();
    let tickets = Arc::new(Tickets::default());

    let setup = |choice, history, rollout| -> Result<ServerSetup, OpenError> {
        let setup = ServerSetup::new(base.clone(), Arc::clone(&tls), choice)?
            .history(history)
            .rollout(rollout)
            .gates(plan.gates)
            .limits(plan.hints)
            .tickets(Arc::clone(&tickets))
            .duplicate_sender(runtime.duplicate_sender());
        setup.check()?;
        with_qlog(setup, plan.qlog.as_ref())
    };
    let mut usual = setup(plan.scheme, Arc::clone(&plan.history), Arc::clone(&plan.rollout))?;
    if let Some(guard) = &plan.guard {
        usual = usual.guard(Arc::clone(guard));
    }
    if let Some(keys) = plan.token_keys {
        usual = usual.tokens(keys);
    }
    let others = plan.others.iter().filter(|choice| choice.name() != plan.scheme.name()).map(|choice| {
        setup(*choice, Arc::new(Sharded::new(PEERS)) as Arc<dyn Store>, Arc::clone(&plan.choice_rollout))
    });
    let others: Vec<ServerSetup> = others.collect::<Result<_, _>>()?;

    let address = socket.local_addr().unwrap_or(UNKNOWN);
    let mut endpoint_config = server::endpoint_config();
    resets::keep_across_restarts(&mut endpoint_config, &plan.identity.secret_at(address.port()));
    let endpoint = Endpoint::new(endpoint_config, Some(usual.stack_config().clone()), socket, runtime)
        .map_err(|source| OpenError::Socket { address, source })?;
    Ok((endpoint, FastStartAdmission::new(usual).with_choices(others)))
}

#[cfg(feature = "qlog")]
fn with_qlog(setup: ServerSetup, folder: Option<&PathBuf>) -> Result<ServerSetup, OpenError> {
    Ok(match folder {
        Some(folder) => setup.qlog(folder),
        None => setup,
    })
}

#[cfg(not(feature = "qlog"))]
fn with_qlog(setup: ServerSetup, folder: Option<&PathBuf>) -> Result<ServerSetup, OpenError> {
    if folder.is_some() { Err(OpenError::NoQlog) } else { Ok(setup) }
}
