//! The TLS session that carries hints and observes outgoing packets.
//!
//! noq encodes transport parameters inside its own TLS session, so an additional parameter needs
//! another session: [`tls`] has one over `rustls::quic`. `ObservedSession` wraps any session and
//! its keys: the packet key sees each packet's number, and the header key, applied last, its final
//! bytes. Both are assumptions about the stack; `headstart-virtual-quic` has a test for each. The
//! packet key of received packets also drops those at which the stack would panic ([`keys`]).
//!
//! No cryptography is written here: keys are rustls', and noq's own session handles Retry packets.

pub mod keys;
pub mod tls;

use std::any::Any;
use std::sync::Arc;

use headstart_startup::prior::Hint;
use noq_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportError};

use crate::hint;
use crate::last_encrypted::Level;
use crate::shared::Shared;
use keys::{KeyUpdates, ObservedHeaderKey, ObservedPacketKey};

pub use tls::{ClientTls, HandshakeData, ServerTls};

/// Sessions other than TLS, such as null crypto. Parameters arrive encoded, with the hint.
pub trait SessionFactory: Send + Sync {
    /// Keys of Initial packets.
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys;

    /// A session; it passes the peer's parameters to `peer_parameters` before it answers them.
    fn start(
        &self,
        side: Side,
        parameters: Vec<u8>,
        peer_parameters: PeerParameters,
    ) -> Box<dyn crypto::Session>;
}

/// Receives the peer's encoded transport parameters.
#[derive(Clone, Debug)]
pub struct PeerParameters(Arc<Shared>);

impl PeerParameters {
    /// Takes the peer's encoded parameters.
    pub fn receive(&self, encoded: &[u8]) {
        hint::read_parameters(encoded, &self.0);
    }
}

/// One connection's session, made by [`SessionFactory`].
pub(crate) struct CustomCrypto {
    pub sessions: Arc<dyn SessionFactory>,
    pub announce: Option<Hint>,
    pub shared: Arc<Shared>,
}

impl CustomCrypto {
    fn start(&self, side: Side, params: &TransportParameters) -> Box<dyn crypto::Session> {
        let parameters = tls::encoded(params, self.announce);
        let session = self.sessions.start(side, parameters, PeerParameters(Arc::clone(&self.shared)));
        Box::new(ObservedSession::new(session, Arc::clone(&self.shared)))
    }
}

impl crypto::ClientConfig for CustomCrypto {
    fn start_session(
        &self,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        Ok(self.start(Side::Client, params))
    }
}

impl crypto::ServerConfig for CustomCrypto {
    fn initial_keys(&self, _: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(self.sessions.initial_keys(dst_cid, Side::Server))
    }

    /// Retry packets need TLS.
    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _: u32, params: &TransportParameters) -> Box<dyn crypto::Session> {
        self.start(Side::Server, params)
    }
}

/// A session whose outgoing packets are observed.
pub(crate) struct ObservedSession {
    inner: Box<dyn crypto::Session>,
    shared: Arc<Shared>,
    updates: Arc<KeyUpdates>,
    has_handshake_keys: bool,
}

impl ObservedSession {
    pub(crate) fn new(inner: Box<dyn crypto::Session>, shared: Arc<Shared>) -> Self {
        let updates = Arc::new(KeyUpdates::new());
        Self { inner, shared, updates, has_handshake_keys: false }
    }

    fn header(&self, key: Box<dyn HeaderKey>, level: Level) -> Box<dyn HeaderKey> {
        Box::new(ObservedHeaderKey::new(key, level, Arc::clone(&self.shared)))
    }

    fn packet(&self, key: Box<dyn PacketKey>, level: Level, update: u64) -> Box<dyn PacketKey> {
        let (shared, updates) = (Arc::clone(&self.shared), Arc::clone(&self.updates));
        Box::new(ObservedPacketKey::new(key, level, shared, updates, update))
    }

    fn packets(
        &self,
        keys: KeyPair<Box<dyn PacketKey>>,
        level: Level,
        update: u64,
    ) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair {
            local: self.packet(keys.local, level, update),
            remote: self.packet(keys.remote, level, update),
        }
    }

    /// Of header keys only the local ones are wrapped.
    fn keys(&self, keys: Keys, level: Level) -> Keys {
        Keys {
            header: KeyPair { local: self.header(keys.header.local, level), remote: keys.header.remote },
            packet: self.packets(keys.packet, level, 0),
        }
    }
}

impl crypto::Session for ObservedSession {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        self.keys(self.inner.initial_keys(dst_cid, side), Level::Initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    /// 0-RTT and 1-RTT packets share one number space.
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, packet) = self.inner.early_crypto()?;
        Some((self.header(header, Level::Data), self.packet(packet, Level::Data, 0)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    /// Keys come twice: for the handshake, then for 1-RTT.
    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        let level = if self.has_handshake_keys { Level::Data } else { Level::Handshake };
        self.has_handshake_keys = true;
        Some(self.keys(keys, level))
    }

    /// The first ones are kept by the stack for the first update; each update asks for more.
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.packets(keys, Level::Data, self.updates.number_next()))
    }

    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}
