//! TLS for QUIC over rustls, with the hint among the transport parameters.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use noq_proto::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use noq_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::CipherSuite;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{
    ClientConnection, Connection, HeaderProtectionKey, KeyChange, PacketKey as RustlsPacketKey, Secrets,
    ServerConnection, Suite, Version,
};

use super::ObservedSession;
use crate::hint;
use crate::shared::Shared;
use crate::tickets::{Tickets, TicketsOfAddress};
use headstart_startup::prior::Hint;

/// Outcome of the handshake: noq's own type of that name cannot be built outside of noq.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandshakeData {
    /// The application protocol, if one was negotiated.
    pub protocol: Option<Vec<u8>>,
    /// The server name in the client's hello; `None` on the client.
    pub server_name: Option<String>,
}

/// A client's TLS configuration for one connection.
pub(crate) struct ClientConfig {
    pub tls: ClientTls,
    pub announce: Option<Hint>,
    pub shared: Arc<Shared>,
}

/// A server's TLS configuration for one connection.
pub(crate) struct ServerConfig {
    pub tls: ServerTls,
    pub announce: Option<Hint>,
    pub tickets: Option<Arc<Tickets>>,
    pub shared: Arc<Shared>,
}

/// rustls' client configuration, ready for QUIC.
#[derive(Clone)]
pub struct ClientTls {
    config: Arc<rustls::ClientConfig>,
    /// For Retry packets.
    stack: QuicClientConfig,
    suite: Suite,
}

/// rustls' server configuration, ready for QUIC.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<rustls::ServerConfig>,
    /// For Initial and Retry packets.
    stack: QuicServerConfig,
    suite: Suite,
}

impl ClientTls {
    /// Prepares a configuration for QUIC.
    ///
    /// # Errors
    /// The configuration lacks TLS 1.3 or the cipher suite of Initial packets.
    #[expect(clippy::missing_panics_doc, reason = "the stack has just made the same search")]
    pub fn new(config: Arc<rustls::ClientConfig>) -> Result<Self, NoInitialCipherSuite> {
        let stack = QuicClientConfig::try_from(Arc::clone(&config))?;
        let suite = initial_suite(config.crypto_provider());
        // The same search as the stack's, which has just succeeded.
        Ok(Self { suite: suite.expect("the stack found it"), config, stack })
    }
}

impl ServerTls {
    /// Prepares a configuration for QUIC.
    ///
    /// # Errors
    /// The configuration lacks TLS 1.3 or the cipher suite of Initial packets.
    #[expect(clippy::missing_panics_doc, reason = "the stack has just made the same search")]
    pub fn new(config: Arc<rustls::ServerConfig>) -> Result<Self, NoInitialCipherSuite> {
        let stack = QuicServerConfig::try_from(Arc::clone(&config))?;
        let suite = initial_suite(config.crypto_provider());
        Ok(Self { suite: suite.expect("the stack found it"), config, stack })
    }
}

fn initial_suite(provider: &rustls::crypto::CryptoProvider) -> Option<Suite> {
    let is_initial =
        |suite: &&rustls::SupportedCipherSuite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.iter().find(is_initial)?.tls13()?.quic_suite()
}

/// Version of RFC 9000; drafts are not supported.
const VERSION: u32 = 1;

impl crypto::ClientConfig for ClientConfig {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != VERSION {
            return Err(ConnectError::UnsupportedVersion);
        }
        let invalid = || ConnectError::InvalidServerName(server_name.into());
        let name = ServerName::try_from(server_name).map_err(|_| invalid())?.to_owned();
        let bytes = encoded(params, self.announce);
        let inner = ClientConnection::new(Arc::clone(&self.tls.config), Version::V1, name, bytes);
        let inner = inner.map_err(|_| invalid())?;
        let retry = Retry { stack: self.tls.stack.clone(), server_name: server_name.into(), params: *params };
        let session =
            TlsSession::new(Connection::Client(inner), self.tls.suite, Some(retry), Arc::clone(&self.shared));
        Ok(Box::new(ObservedSession::new(Box::new(session), Arc::clone(&self.shared))))
    }
}

impl crypto::ServerConfig for ServerConfig {
    fn initial_keys(&self, version: u32, dst_cid: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.tls.stack.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.tls.stack.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(&self, version: u32, params: &TransportParameters) -> Box<dyn crypto::Session> {
        let params_bytes = encoded(params, self.announce);
        let config = match &self.tickets {
            None => Arc::clone(&self.tls.config),
            Some(tickets) => {
                let (tickets, address) = (Arc::clone(tickets), self.shared.connection.key);
                let mut config = rustls::ServerConfig::clone(&self.tls.config);
                config.session_storage = Arc::new(TicketsOfAddress { tickets, address });
                Arc::new(config)
            }
        };
        let session = match ServerConnection::new(config, Version::V1, params_bytes) {
            Ok(inner) if version == VERSION => {
                let (inner, shared) = (Connection::Server(inner), Arc::clone(&self.shared));
                Box::new(TlsSession::new(inner, self.tls.suite, None, shared))
            }
            // A draft version, or one that rustls refuses: the stack's session answers, no hint.
            _ => self.tls.stack.start_session(version, params),
        };
        Box::new(ObservedSession::new(session, Arc::clone(&self.shared)))
    }
}

pub(super) fn encoded(params: &TransportParameters, announce: Option<Hint>) -> Vec<u8> {
    let mut bytes = vec![];
    params.write(&mut bytes);
    if let Some(announced) = announce {
        hint::append(announced, &mut bytes);
    }
    bytes
}

/// Inputs to verify a Retry packet.
struct Retry {
    stack: QuicClientConfig,
    server_name: String,
    params: TransportParameters,
}

struct TlsSession {
    inner: Connection,
    suite: Suite,
    retry: Option<Retry>,
    shared: Arc<Shared>,
    next_secrets: Option<Secrets>,
    has_handshake_data: bool,
    has_parameters: bool,
}

impl TlsSession {
    fn new(inner: Connection, suite: Suite, retry: Option<Retry>, shared: Arc<Shared>) -> Self {
        Self {
            inner,
            suite,
            retry,
            shared,
            next_secrets: None,
            has_handshake_data: false,
            has_parameters: false,
        }
    }

    fn side(&self) -> Side {
        match self.inner {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }

    fn server_name(&self) -> Option<&str> {
        match &self.inner {
            Connection::Client(_) => None,
            Connection::Server(session) => session.server_name(),
        }
    }

    /// Passes on the peer's parameters, before the first local flight leaves.
    fn read_peer_parameters(&mut self) {
        if self.has_parameters {
            return;
        }
        if let Some(parameters) = self.inner.quic_transport_parameters() {
            self.has_parameters = true;
            hint::read_parameters(parameters, &self.shared);
        }
    }
}

fn header(key: Box<dyn HeaderProtectionKey>) -> Box<dyn HeaderKey> {
    Box::new(key)
}

fn packet(key: Box<dyn RustlsPacketKey>) -> Box<dyn PacketKey> {
    Box::new(key)
}

fn keys(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair { local: header(keys.local.header), remote: header(keys.remote.header) },
        packet: KeyPair { local: packet(keys.local.packet), remote: packet(keys.remote.packet) },
    }
}

impl crypto::Session for TlsSession {
    fn initial_keys(&self, dst_cid: ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        keys(self.suite.keys(&dst_cid, side, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.has_handshake_data.then(|| -> Box<dyn Any> {
            Box::new(HandshakeData {
                protocol: self.inner.alpn_protocol().map(<[u8]>::to_vec),
                server_name: self.server_name().map(str::to_owned),
            })
        })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let chain = self.inner.peer_certificates()?;
        Some(Box::new(
            chain.iter().map(|it| it.clone().into_owned()).collect::<Vec<CertificateDer<'static>>>(),
        ))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.inner.zero_rtt_keys()?;
        Some((header(keys.header), packet(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.inner {
            Connection::Client(session) => Some(session.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        if let Err(error) = self.inner.read_hs(buf) {
            let code = match self.inner.alert() {
                Some(alert) => TransportErrorCode::crypto(alert.into()),
                None => TransportErrorCode::PROTOCOL_VIOLATION,
            };
            let mut failure = TransportError::new(code, error.to_string());
            failure.crypto = Some(Arc::new(error));
            return Err(failure);
        }
        self.read_peer_parameters();
        // rustls does not report that it has read the peer's first message; these are signs of it.
        let is_news = !self.has_handshake_data
            && (self.inner.alpn_protocol().is_some()
                || self.server_name().is_some()
                || !self.is_handshaking());
        self.has_handshake_data |= is_news;
        Ok(is_news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(parameters) = self.inner.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side(), &mut Cursor::new(parameters))?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match self.inner.write_hs(buf)? {
            KeyChange::Handshake { keys: change } => Some(keys(change)),
            KeyChange::OneRtt { keys: change, next } => {
                self.next_secrets = Some(next);
                Some(keys(change))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let next = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: packet(next.local), remote: packet(next.remote) })
    }

    /// Seldom needed: the stack's own session is created for it.
    fn is_valid_retry(&self, orig_dst_cid: ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(Retry { stack, server_name, params }) = &self.retry else { return false };
        let session = crypto::ClientConfig::start_session(stack, VERSION, server_name, params);
        session.is_ok_and(|session| session.is_valid_retry(orig_dst_cid, header, payload))
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self.inner.export_keying_material(output, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice;
    use crate::shared::Rules;
    use crate::store::client_key;
    use bytes::BytesMut;
    use noq_proto::PathId;
    use noq_proto::crypto::ServerConfig as _;

    fn server() -> ServerConfig {
        let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = rustls::pki_types::PrivateKeyDer::Pkcs8(issued.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], key)
            .expect("a pair");
        let rules = Rules::new(Side::Server, Choice::find("iw10").expect("carried"));
        let peer = std::net::IpAddr::from([192, 0, 2, 1]);
        ServerConfig {
            tls: ServerTls::new(Arc::new(tls)).expect("for QUIC"),
            announce: None,
            tickets: None,
            shared: Shared::new(Arc::new(rules), (peer, 443).into(), None, client_key(peer), 0, None),
        }
    }

    /// RFC 9000 §17.2, in version 1 and in draft 29, whose session is the stack's own.
    #[test]
    fn packets_with_reserved_bits_are_dropped_in_every_version() {
        for version in [VERSION, 0xff00_001d] {
            let parameters = TransportParameters::read(Side::Server, &mut Cursor::new([])).expect("none");
            let session = server().start_session(version, &parameters);
            let id = ConnectionId::new(&[7; 8]);
            let [client, server] = [Side::Client, Side::Server].map(|side| session.initial_keys(id, side));
            for (first, expected) in [(0xC0_u8, true), (0xC4, false), (0xC8, false)] {
                let tag = client.packet.local.tag_len();
                let mut packet = [&[first, 0, 0, 0, 0][..], &[1; 20], &vec![0; tag]].concat();
                client.packet.local.encrypt(PathId::ZERO, 1, &mut packet, 5);
                let (header, payload) = packet.split_at(5);
                let mut payload = BytesMut::from(payload);
                let taken = server.packet.remote.decrypt(PathId::ZERO, 1, header, &mut payload);
                assert_eq!(taken.is_ok(), expected, "version {version:#x}, {first:#x}");
            }
        }
    }
}
