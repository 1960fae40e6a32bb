//! Sessions without cryptography: packets keep their sizes, in plaintext.
//!
//! The handshake has the messages of TLS 1.3 in order and roughly in size, each a length and a
//! body; the first of each side carries its transport parameters. The AEAD tag is zeros.

use std::any::Any;

use bytes::BytesMut;
use headstart_quic::session::{PeerParameters, SessionFactory};
use noq_proto::crypto::{
    CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
    Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectionId, PathId, Side, TransportError, TransportErrorCode};

/// Creates sessions without cryptography.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSessions;

impl SessionFactory for NullSessions {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn start(&self, side: Side, parameters: Vec<u8>, peer_parameters: PeerParameters) -> Box<dyn Session> {
        Box::new(NullSession::new(side, parameters, Some(peer_parameters)))
    }
}

/// Bytes of messages: either side's hello, the rest of the server's flight, client's finish.
const HELLO: usize = 280;
const CERTIFICATE: usize = 700;
const FINISH: usize = 52;

struct NullSession {
    side: Side,
    parameters: Vec<u8>,
    peer_parameters: Option<PeerParameters>,
    peer: Option<Vec<u8>>,
    received: Vec<u8>,
    /// Number of messages read and written.
    read: u32,
    written: u32,
    has_handshake_keys: bool,
}

impl NullSession {
    fn new(side: Side, parameters: Vec<u8>, peer_parameters: Option<PeerParameters>) -> Self {
        Self {
            side,
            parameters,
            peer_parameters,
            peer: None,
            received: vec![],
            read: 0,
            written: 0,
            has_handshake_keys: false,
        }
    }

    fn write(&mut self, buf: &mut Vec<u8>, body: &[u8], size: usize) {
        let padding = size.saturating_sub(body.len() + 4);
        let length = |value: usize| u16::try_from(value).unwrap_or(u16::MAX).to_be_bytes();
        buf.extend(length(body.len()));
        buf.extend(length(padding));
        buf.extend_from_slice(body);
        buf.resize(buf.len() + padding, 0);
        self.written += 1;
    }

    /// The body of the next message, once it is complete.
    fn next(&mut self) -> Option<Vec<u8>> {
        let [a, b, c, d] = *self.received.first_chunk()?;
        let (body, padding) =
            (usize::from(u16::from_be_bytes([a, b])), usize::from(u16::from_be_bytes([c, d])));
        if self.received.len() < 4 + body + padding {
            return None;
        }
        let message = self.received.drain(..4 + body + padding).skip(4).take(body).collect();
        self.read += 1;
        Some(message)
    }
}

impl Session for NullSession {
    fn initial_keys(&self, _: ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.peer.is_some().then(|| Box::new(()) as Box<dyn Any>)
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(false)
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => self.written < 2,
            Side::Server => self.read < 2,
        }
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.received.extend_from_slice(buf);
        let mut is_news = false;
        while let Some(body) = self.next() {
            if self.peer.is_none() {
                if let Some(peer_parameters) = &self.peer_parameters {
                    peer_parameters.receive(&body);
                }
                self.peer = Some(body);
                is_news = true;
            }
        }
        Ok(is_news)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(parameters) = &self.peer else { return Ok(None) };
        let malformed = |error: noq_proto::transport_parameters::Error| {
            TransportError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, error.to_string())
        };
        TransportParameters::read(self.side, &mut &parameters[..]).map(Some).map_err(malformed)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.written, self.read) {
            (Side::Client, 0, _) => {
                let parameters = std::mem::take(&mut self.parameters);
                self.write(buf, &parameters, HELLO);
                None
            }
            // The server's hello: handshake keys, and nothing to send yet.
            (Side::Client, 1, 1..) if !self.has_handshake_keys => {
                self.has_handshake_keys = true;
                Some(keys())
            }
            (Side::Client, 1, 2..) => {
                self.write(buf, &[], FINISH);
                Some(keys())
            }
            (Side::Server, 0, 1..) => {
                let parameters = std::mem::take(&mut self.parameters);
                self.write(buf, &parameters, HELLO);
                Some(keys())
            }
            (Side::Server, 1, 1..) => {
                self.write(buf, &[], CERTIFICATE);
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) })
    }

    fn is_valid_retry(&self, _: ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
        packet: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
    }
}

/// The AEAD tag is zeros, which the stack has written already.
struct NoKey;

/// Bytes of AES-GCM's tag and sample.
const TAG: usize = 16;

impl PacketKey for NoKey {
    fn encrypt(&self, _: PathId, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: PathId, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

/// Keys for tokens and resets without secrecy: the same in every run.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecret;

impl HandshakeTokenKey for NoSecret {
    fn seal(&self, _: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend([0; TAG]);
        Ok(())
    }

    fn open<'a>(&self, _: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&data[..length])
    }
}

impl HmacKey for NoSecret {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        // Different for different connection ids, which the stack uses as keys of a table.
        for (at, byte) in signature.iter_mut().enumerate() {
            *byte = data.get(at % data.len().max(1)).map_or(0, |it| it.wrapping_add(at as u8));
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = [0; 32];
        self.sign(data, &mut expected);
        if expected[..] == *signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// Null sessions of an endpoint, which answers before a connection is configured.
impl noq_proto::crypto::ServerConfig for NullSessions {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; TAG]
    }

    fn start_session(&self, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        let mut parameters = vec![];
        params.write(&mut parameters);
        Box::new(NullSession::new(Side::Server, parameters, None))
    }
}
