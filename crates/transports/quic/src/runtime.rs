//! A runtime whose timers are precise enough for packets less than a millisecond apart, and whose
//! sockets send copies.
//!
//! tokio's timers have a resolution of 1 ms: at 25 Mbit/s, where a full packet takes half of that,
//! a paced flight would leave in bursts. [`PreciseRuntime`] is tokio with two changes: on Linux its
//! timers end with a timerfd, and its sockets let a [`DuplicateSender`] send copies of datagrams.
//! One for each endpoint:
//!
//! ```no_run
//! # fn open(server: noq::ServerConfig, setup: headstart_quic::ServerSetup)
//! # -> std::io::Result<()> {
//! use std::net::UdpSocket;
//! let runtime = headstart_quic::PreciseRuntime::new();
//! let setup = setup.duplicate_sender(runtime.duplicate_sender());
//! let socket = UdpSocket::bind("[::]:4433")?;
//! let config = noq::EndpointConfig::default();
//! let endpoint = noq::Endpoint::new(config, Some(server), socket, runtime)?;
//! # drop((setup, endpoint)); Ok(()) }
//! ```
//!
//! # Limits
//!
//! - A timer needs a file descriptor, one for each connection that paces. Where none is left, or
//!   outside of Linux, the timer is tokio's.
//! - A timer is delayed by the host's load. Delayed packets leave together, up to the depth of the
//!   stack's pacer: ten packets, or 2 ms of a high rate.

mod duplicate_socket;
pub mod socket;
#[cfg(target_os = "linux")]
mod timer;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use noq::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};

use crate::copies::DuplicateSender;
use duplicate_socket::DuplicateSocket;

/// tokio with precise timers and sockets that send copies.
#[derive(Debug, Default)]
pub struct PreciseRuntime {
    duplicates: Arc<DuplicateSocket>,
    #[cfg(target_os = "linux")]
    timers: Arc<timer::Pool>,
}

impl PreciseRuntime {
    /// A runtime for one endpoint. Requires a tokio context.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sends copies through the endpoint's socket.
    #[must_use]
    pub fn duplicate_sender(&self) -> Arc<dyn DuplicateSender> {
        Arc::clone(&self.duplicates) as Arc<dyn DuplicateSender>
    }

    #[cfg(target_os = "linux")]
    fn timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(timer::Timer::new(at, Arc::clone(&self.timers)))
    }

    #[cfg(not(target_os = "linux"))]
    fn timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }
}

impl Runtime for PreciseRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        TokioRuntime.spawn(future);
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        let duplicate = socket.try_clone()?;
        let inner = TokioRuntime.wrap_udp_socket(socket)?;
        self.duplicates.set_socket(duplicate)?;
        Ok(Box::new(socket::Socket::new(inner, Arc::clone(&self.duplicates))))
    }

    #[expect(clippy::disallowed_methods, reason = "the edge: the stack's clock")]
    fn now(&self) -> Instant {
        Instant::now()
    }
}
