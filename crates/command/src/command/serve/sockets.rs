//! The sockets of a server: opened, taken over, or passed by a service manager.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use anyhow::{Context, Result, anyhow, bail};
use headstart_web::open::{self, OpenError, ServerSettings};
use headstart_web::start::FastStartAdmission;
use noq::Endpoint;
use tokio::net::TcpListener;

use super::ServerArgs;
use headstart_report::errors::Refuse as _;

/// Ports that are tried where any is wanted.
const MAX_PORTS: usize = 32;

/// TCP first: with port 0 it finds one, and UDP takes the same. If that is in use, another.
pub async fn listen(
    args: &ServerArgs,
    plan: &ServerSettings<'_>,
) -> Result<(Option<TcpListener>, Endpoint, FastStartAdmission)> {
    #[cfg(unix)]
    if let Some((listener, socket)) = given_sockets(args.operation.no_tcp).or_refuse()? {
        let (endpoint, starts) = open::open_on(plan.clone(), socket).context("a socket of the manager")?;
        return Ok((listener.map(TcpListener::from_std).transpose()?, endpoint, starts));
    }
    let at = args.listen;
    if args.operation.no_tcp {
        let (endpoint, starts) = open::open(plan.clone(), at).map_err(|error| not_open(error, at))?;
        return Ok((None, endpoint, starts));
    }
    let mut tried = 1;
    loop {
        let listener = TcpListener::bind(at).await.map_err(|error| refused(&error, "--listen", at, "TCP"))?;
        match open::open(plan.clone(), listener.local_addr()?) {
            Err(OpenError::Socket { source, .. })
                if at.port() == 0 && source.kind() == ErrorKind::AddrInUse && tried < MAX_PORTS =>
            {
                tried += 1;
            }
            opened => {
                let (endpoint, starts) = opened.map_err(|error| not_open(error, at))?;
                return Ok((Some(listener), endpoint, starts));
            }
        }
    }
}

/// The reason why an endpoint was not opened, and what to do.
fn not_open(error: OpenError, at: SocketAddr) -> anyhow::Error {
    match error {
        OpenError::Socket { source, .. } => refused(&source, "--listen", at, "UDP"),
        other => anyhow::Error::new(other).context("--listen"),
    }
}

/// The reason why an address was not bound, and what to do.
pub fn refused(error: &io::Error, option: &str, at: SocketAddr, protocol: &str) -> anyhow::Error {
    let advice = match error.kind() {
        ErrorKind::AddrInUse => "another program has it: end that one, or choose another port",
        ErrorKind::AddrNotAvailable => "no network interface of this machine has that address",
        ErrorKind::PermissionDenied => {
            "ports below 1024 are root's, or of a service with the capability CAP_NET_BIND_SERVICE"
        }
        _ => return anyhow!("{option} {at}, {protocol}: {error}"),
    };
    anyhow!("{option} {at}, {protocol}: {error}; {advice}")
}

/// The sockets that a service manager passes (sd_listen_fds(3)): one of UDP, and one of TCP unless
/// that is off. They replace --listen.
#[cfg(unix)]
fn given_sockets(no_tcp: bool) -> Result<Option<(Option<std::net::TcpListener>, std::net::UdpSocket)>> {
    let mut given = listenfd::ListenFd::from_env();
    if given.len() == 0 {
        return Ok(None);
    }
    let (mut listeners, mut sockets, mut others) = (vec![], vec![], 0);
    for at in 0..given.len() {
        if let Ok(Some(socket)) = given.take_udp_socket(at) {
            sockets.push(socket);
        } else if let Ok(Some(listener)) = given.take_tcp_listener(at) {
            listeners.push(listener);
        } else {
            others += 1;
        }
    }
    let found = format!("{} of UDP, {} of TCP and {others} others", sockets.len(), listeners.len());
    let (socket, listener) = (sockets.pop(), listeners.pop());
    let is_expected = sockets.is_empty() && listeners.is_empty() && others == 0;
    match socket {
        Some(socket) if is_expected && listener.is_none() == no_tcp => {
            if let Some(listener) = &listener {
                listener.set_nonblocking(true)?;
            }
            Ok(Some((listener, socket)))
        }
        _ => {
            let expected = if no_tcp { "none of TCP (--no-tcp)" } else { "one of TCP" };
            bail!("sockets of the service manager: found {found}, expected one of UDP and {expected}")
        }
    }
}
