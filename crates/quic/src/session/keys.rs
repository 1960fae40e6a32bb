//! Keys that report the packets they encrypt.

use std::sync::Arc;

use bytes::BytesMut;
use noq_proto::PathId;
use noq_proto::crypto::{CryptoError, HeaderKey, PacketKey};

use crate::last_encrypted::Level;
use crate::shared::Shared;

/// Reports the number of each packet.
pub(super) struct ObservedPacketKey {
    inner: Box<dyn PacketKey>,
    level: Level,
    shared: Arc<Shared>,
    /// Cached: read for each packet.
    tag_len: usize,
    confidentiality_limit: u64,
}

impl ObservedPacketKey {
    pub fn new(inner: Box<dyn PacketKey>, level: Level, shared: Arc<Shared>) -> Self {
        let (tag_len, confidentiality_limit) = (inner.tag_len(), inner.confidentiality_limit());
        Self { inner, level, shared, tag_len, confidentiality_limit }
    }
}

impl PacketKey for ObservedPacketKey {
    fn encrypt(&self, path: PathId, number: u64, buf: &mut [u8], header_len: usize) {
        self.shared.last_encrypted.set(self.level, number);
        self.inner.encrypt(path, number, buf, header_len);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(path, number, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.tag_len
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

/// Reports the final bytes of each packet.
pub(super) struct ObservedHeaderKey {
    inner: Box<dyn HeaderKey>,
    level: Level,
    shared: Arc<Shared>,
    /// Cached: read for each packet.
    sample_size: usize,
}

impl ObservedHeaderKey {
    pub fn new(inner: Box<dyn HeaderKey>, level: Level, shared: Arc<Shared>) -> Self {
        let sample_size = inner.sample_size();
        Self { inner, level, shared, sample_size }
    }
}

impl HeaderKey for ObservedHeaderKey {
    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        self.inner.decrypt(pn_offset, packet);
    }

    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        self.inner.encrypt(pn_offset, packet);
        if self.level == Level::Data {
            self.shared.retain_packet(packet);
        }
    }

    fn sample_size(&self) -> usize {
        self.sample_size
    }
}
