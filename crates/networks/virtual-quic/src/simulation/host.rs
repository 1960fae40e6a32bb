//! The senders and receivers of a group, as the scenario has them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use headstart_host::locked;
use headstart_quic::server::SetupError;
use headstart_quic::{Choice, ClientSetup, CopyPolicy, Epoch, Gates, Policy, ServerSetup, Store};
use headstart_sim::Group;
use headstart_startup::history::{FixedHash, MemoryStore};
use headstart_units::{Bytes, Rate};
use noq_proto::crypto::rustls::QuicServerConfig;
use noq_proto::{AckFrequencyConfig, IdleTimeout, TransportConfig, ValidationTokenConfig, VarInt};

use super::{Crypto, RunOptions};
use crate::datagram::HEADERS;
use crate::end::ConstantClock;
use crate::error::ScenarioError;
use crate::identity::Identity;
use crate::null::{NoSecret, NullSessions};

/// Streams that a peer may open: more than any workload needs at a time.
const STREAMS: VarInt = VarInt::from_u32(100_000);

/// Settings of a group's connections at both endpoints.
#[derive(Clone)]
pub struct EndpointSettings {
    /// Accepts connections.
    pub server: ServerSetup,
    /// Initiates connections.
    pub client: ClientSetup,
    /// The client sends the data, without a request; otherwise the server does, on request.
    pub client_sends: bool,
    /// The server is the unmodified stack: for comparisons.
    pub is_unmodified: bool,
    /// ECN codepoints cross the path.
    pub ecn: bool,
    /// UDP payload of a full packet.
    pub packet: Bytes,
    /// The client requests in 0-RTT where it can.
    pub sends_early: bool,
    /// The sender goes on after the receiver's connection has failed, as if it had no notice of it.
    pub outlives_receiver: bool,
}

impl EndpointSettings {
    /// Connections with ECN over which the server sends full packets of this size.
    #[must_use]
    pub fn new(server: ServerSetup, client: ClientSetup, packet: Bytes) -> Self {
        Self {
            server,
            client,
            client_sends: false,
            is_unmodified: false,
            ecn: true,
            packet,
            sends_early: false,
            outlives_receiver: false,
        }
    }
}

/// The senders and receivers of a group.
pub(super) struct Host {
    pub(super) endpoints: EndpointSettings,
    pub(super) history: Arc<Mutex<MemoryStore>>,
}

impl Host {
    pub(super) fn new(
        group: &Group,
        choice: Choice,
        options: &RunOptions,
        epoch: Epoch,
    ) -> Result<Self, ScenarioError> {
        let history = Arc::new(Mutex::new(MemoryStore::new(group.history_capacity, FixedHash::default())));
        let transport = transport(group);
        let (server, client) = match options.crypto {
            Crypto::Tls => {
                let sized;
                let identity = match group.tcp.certificate {
                    Bytes::ZERO => Identity::shared()?,
                    size => {
                        sized = Identity::sized(size)?;
                        &sized
                    }
                };
                let tls = identity.server()?;
                let crypto = QuicServerConfig::try_from(Arc::clone(&tls)).map_err(SetupError::from)?;
                let base = server_base(Arc::new(crypto), &transport);
                // Every connection performs a full handshake, as in the TCP model.
                let mut client = rustls::ClientConfig::clone(&*identity.client()?);
                client.resumption = rustls::client::Resumption::disabled();
                (ServerSetup::new(base, tls, choice)?, ClientSetup::new(Arc::new(client))?)
            }
            Crypto::Null => {
                let sessions = Arc::new(NullSessions);
                let base = server_base(Arc::new(NullSessions), &transport);
                let server = ServerSetup::with_session_factory(base, Arc::clone(&sessions) as _, choice);
                (server, ClientSetup::with_session_factory(sessions))
            }
        };
        let mut server = server
            .gates(Gates::OPEN)
            .limits(UNCAPPED)
            .copies(CopyPolicy { stop_at_congestion: false, budget: Bytes::MAX })
            .flight_limit(group.tcp.receive_window.get())
            .base_controller(group.base)
            .seed(options.seed.0)
            .epoch(epoch);
        if group.history_capacity > 0 {
            server = server.history(Arc::clone(&history) as Arc<dyn Store>);
        }
        let mut client = client.transport(transport).seed(options.seed.0).epoch(epoch);
        if let Some(hint) = group.hint {
            client = client.exact_hint(hint);
        }
        let endpoints = EndpointSettings::new(server, client, packet_of(group));
        Ok(Self { endpoints: EndpointSettings { ecn: group.tcp.ecn, ..endpoints }, history })
    }

    pub(super) fn history(&self) -> std::sync::MutexGuard<'_, MemoryStore> {
        locked(&self.history)
    }
}

/// Hints are granted in full, as in the TCP model.
pub const UNCAPPED: Policy = Policy {
    per_connection: Rate::MAX,
    per_address: Rate::MAX,
    total: Rate::MAX,
    addresses: std::num::NonZeroUsize::MIN,
    keeps_credit: true,
};

fn server_base(
    crypto: Arc<dyn noq_proto::crypto::ServerConfig>,
    transport: &TransportConfig,
) -> noq_proto::ServerConfig {
    let mut base = noq_proto::ServerConfig::new(crypto, Arc::new(NoSecret));
    // Tokens would link connections, which the model does not represent.
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0);
    base.transport_config(Arc::new(transport.clone()));
    base.time_source(Arc::new(ConstantClock)).validation_token_config(tokens);
    base
}

/// A full packet's payload, so that it is as large on the link as the group's segments.
fn packet_of(group: &Group) -> Bytes {
    (group.tcp.mss + group.tcp.header).saturating_sub(HEADERS)
}

/// The stack's settings for a group, here and wherever the same run is compared.
#[must_use]
pub fn transport(group: &Group) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let packet = packet_of(group).get().min(u64::from(u16::MAX)) as u16;
    let window = group.tcp.receive_window.get();
    let granted = VarInt::from_u64(window).unwrap_or(VarInt::MAX);
    transport
        .min_mtu(packet)
        .initial_mtu(packet)
        .mtu_discovery_config(None)
        .max_idle_timeout(None::<IdleTimeout>)
        .receive_window(granted)
        .stream_receive_window(granted)
        .send_window(window.saturating_mul(2))
        .max_concurrent_bidi_streams(STREAMS)
        .max_concurrent_uni_streams(STREAMS)
        .send_fairness(false);
    let acks = group.tcp.delayed_ack;
    if (3..u32::MAX).contains(&acks.every) {
        let mut asked = AckFrequencyConfig::default();
        asked.ack_eliciting_threshold((acks.every - 1).into()).reordering_threshold(VarInt::from_u32(1));
        asked.max_ack_delay(Some(Duration::from_nanos(acks.timeout.as_nanos())));
        transport.ack_frequency_config(Some(asked));
    }
    transport
}
