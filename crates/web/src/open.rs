//! From a certificate, schemes and a history to an endpoint that serves.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use headstart_quic::server::SetupError;
use headstart_quic::{Choice, Gates, Policy, PreciseRuntime, Rollout, ServerSetup, Sharded, Store};
use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, EndpointConfig};
use socket2::{Domain, Protocol, Socket, Type};

use crate::identity::Identity;
use crate::server;
use crate::start::Starts;

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What it shows to its clients.
    pub identity: &'a Identity,
    /// How connections start.
    pub scheme: Choice,
    /// What clients may ask for instead. Each scheme has a history of its own, in memory, so that
    /// none profits from what another has measured.
    pub others: Vec<Choice>,
    /// What `scheme` remembers.
    pub history: Arc<dyn Store>,
    /// Who gets `scheme`, of those who do not ask.
    pub rollout: Arc<Rollout>,
    /// The kill switch for those who ask.
    pub asked: Arc<Rollout>,
    /// When a record or a scheme is not used although it could be.
    pub gates: Gates,
    /// What hints may claim.
    pub hints: Policy,
    /// Where qlogs are written.
    pub qlog: Option<PathBuf>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Key and certificate do not suit.
    #[error("the certificate cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
    /// The scheme needs what is not there.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The address cannot be had.
    #[error("{address}, UDP: {source}")]
    Socket {
        /// The address.
        address: SocketAddr,
        /// What went wrong.
        source: io::Error,
    },
    /// qlog was asked for and is not there.
    #[error("qlog is not built in: build with --features qlog")]
    NoQlog,
}

/// What the kernel is asked to hold for a socket while nobody reads; it may give less.
const SOCKET_BUFFER: usize = 4 << 20;

/// Peers that are remembered for a scheme that clients ask for.
const PEERS: usize = 4096;

/// A UDP socket at `address`; of IPv6's unspecified address also for IPv4.
///
/// # Errors
///
/// If the address cannot be had.
pub fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // More is better, and what the system allows is enough.
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Opens the endpoint. To be called within tokio.
///
/// # Errors
///
/// If the certificate cannot be used or the address cannot be had.
pub fn open(plan: Plan<'_>, address: SocketAddr) -> Result<(Endpoint, Starts), OpenError> {
    let tls = Arc::new(server::tls(plan.identity)?);
    let unsuited = |_| rustls::Error::General("it has no cipher suite that QUIC begins with".into());
    let crypto = QuicServerConfig::try_from(Arc::clone(&tls)).map_err(unsuited)?;
    let base = noq::ServerConfig::with_crypto(Arc::new(crypto));
    let runtime = PreciseRuntime::new();

    let setup = |choice, history, rollout| -> Result<ServerSetup, OpenError> {
        let setup = ServerSetup::new(base.clone(), Arc::clone(&tls), choice)?
            .history(history)
            .rollout(rollout)
            .gates(plan.gates)
            .limits(plan.hints)
            .courier(runtime.courier());
        setup.check()?;
        with_qlog(setup, plan.qlog.as_ref())
    };
    let usual = setup(plan.scheme, Arc::clone(&plan.history), Arc::clone(&plan.rollout))?;
    let others = plan.others.iter().filter(|choice| choice.name() != plan.scheme.name()).map(|choice| {
        setup(*choice, Arc::new(Sharded::new(PEERS)) as Arc<dyn Store>, Arc::clone(&plan.asked))
    });
    let others: Vec<ServerSetup> = others.collect::<Result<_, _>>()?;

    let failed = |source| OpenError::Socket { address, source };
    let socket = socket(address).map_err(failed)?;
    let endpoint =
        Endpoint::new(EndpointConfig::default(), Some(base.clone()), socket, runtime).map_err(failed)?;
    Ok((endpoint, Starts::new(usual).or(others)))
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
