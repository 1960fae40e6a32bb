//! One endpoint of a connection, with its handle.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use headstart_quic::{Handle, StartReport};
use headstart_units::hash::by_words;
use noq_proto::{
    Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, EcnCodepoint, Endpoint,
    EndpointConfig, PathId, TimeSource,
};

use crate::datagram::Datagram;
use crate::null::NoSecret;

pub(crate) struct End {
    pub id: ConnectionHandle,
    pub connection: Connection,
    /// `None` for the unmodified stack.
    pub handle: Option<Handle>,
    /// Destination and codepoint of its latest datagram.
    pub destination: Option<SocketAddr>,
    pub ecn: Option<EcnCodepoint>,
}

impl End {
    /// Passes events between the connection and its endpoint until there are none.
    pub fn settle(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(answer) = endpoint.handle_event(self.id, event) {
                self.connection.handle_event(answer);
            }
        }
    }

    /// The report as of the latest acknowledgement.
    pub fn report(&self) -> StartReport {
        let Some(handle) = &self.handle else { return StartReport::default() };
        handle.update(self.connection.congestion_state(PathId::ZERO).map(|state| state.clone_box()));
        handle.report()
    }

    pub fn next_datagram(&mut self, instant: Instant) -> Option<Datagram> {
        let mut buf = vec![];
        let transmit = self.connection.poll_transmit(instant, NonZeroUsize::MIN, &mut buf)?;
        if self.destination.replace(transmit.destination) != Some(transmit.destination)
            && let Some(handle) = &self.handle
        {
            handle.sending_to(transmit.destination);
        }
        self.ecn = transmit.ecn;
        buf.truncate(transmit.size);
        Some(Datagram { ecn: self.ecn, contents: buf.into(), is_copy: false })
    }
}

/// Connection ids that count up from a seed.
#[derive(Debug)]
pub(crate) struct Ids(pub u64);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 = self.0.wrapping_add(1);
        ConnectionId::new(&self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

pub(crate) fn endpoint(seed: u64) -> Endpoint {
    let mut config = EndpointConfig::new(Arc::new(NoSecret));
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    config.rng_seed(Some(bytes));
    config.cid_generator(Arc::new(move || Box::new(Ids(seed << 32))));
    Endpoint::new(Arc::new(config), None, true)
}

pub(crate) fn hash(contents: &[u8]) -> u64 {
    by_words(0, contents)
}

/// A constant wall clock: tokens carry its time, and are the same in every run.
pub(crate) struct ConstantClock;

impl TimeSource for ConstantClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// An arbitrary instant: only differences from it are used.
#[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
pub(crate) fn base() -> Instant {
    Instant::now()
}
