//! Keys that report the packets they encrypt, and leave out those that would break the stack.
//!
//! noq 1.4 closes a connection at a packet with reserved bits (RFC 9000 §17.2), and at a wrong key
//! update (RFC 9001 §6). It asserts that the peer has not closed the connection before: a peer that
//! has ends the process. Here such a packet counts as one that is not authentic. It is dropped.
//!
//! # Deviations
//!
//! The connection goes on, where RFC 9000 §17.2 and RFC 9001 §6 require that it is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::BytesMut;
use noq_proto::PathId;
use noq_proto::crypto::{CryptoError, HeaderKey, PacketKey};

use crate::last_encrypted::Level;
use crate::shared::Shared;

/// The course of a connection's key updates. Its orderings are relaxed: the connection's lock
/// orders everything.
#[derive(Debug)]
pub(super) struct KeyUpdates {
    /// One more than the largest number of a received packet of 0-RTT and 1-RTT.
    next_number: AtomicU64,
    /// Number of the keys that the stack keeps for the next update, the first ones being 1.
    next_keys: AtomicU64,
    /// A packet that can answer others was sent after the peer's latest update. A probe of a path
    /// is none, for the stack does not count it either.
    has_answered: AtomicBool,
}

impl KeyUpdates {
    pub const fn new() -> Self {
        Self {
            next_number: AtomicU64::new(0),
            next_keys: AtomicU64::new(0),
            has_answered: AtomicBool::new(true),
        }
    }

    /// Number of the keys that the stack asks for: at first, and whenever it takes the next ones.
    pub fn number_next(&self) -> u64 {
        self.next_keys.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Reports the number of each packet.
pub(super) struct ObservedPacketKey {
    inner: Box<dyn PacketKey>,
    level: Level,
    shared: Arc<Shared>,
    updates: Arc<KeyUpdates>,
    /// Number of the key update; 0 for the first keys.
    update: u64,
    /// Cached: read for each packet.
    tag_len: usize,
    confidentiality_limit: u64,
}

impl ObservedPacketKey {
    pub fn new(
        inner: Box<dyn PacketKey>,
        level: Level,
        shared: Arc<Shared>,
        updates: Arc<KeyUpdates>,
        update: u64,
    ) -> Self {
        let (tag_len, confidentiality_limit) = (inner.tag_len(), inner.confidentiality_limit());
        Self { inner, level, shared, updates, update, tag_len, confidentiality_limit }
    }

    /// The peer may update keys with a packet of that number: it is newer than all, and an answer
    /// to a packet under the keys before.
    fn may_update(&self, number: u64) -> bool {
        number >= self.updates.next_number.load(Ordering::Relaxed)
            && self.updates.has_answered.load(Ordering::Relaxed)
    }
}

impl PacketKey for ObservedPacketKey {
    fn encrypt(&self, path: PathId, number: u64, buf: &mut [u8], header_len: usize) {
        self.shared.last_encrypted.set(self.level, number);
        if let Some(paths) = &self.shared.paths {
            paths.on_encrypt(self.level, buf.get(header_len..).unwrap_or_default());
        }
        if self.level == Level::Data && buf.get(header_len).is_some_and(|kind| is_answer(*kind)) {
            self.updates.has_answered.store(true, Ordering::Relaxed);
        }
        self.inner.encrypt(path, number, buf, header_len);
    }

    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        // Its first packet is the update, and the stack asks for the next keys at once.
        let is_update = self.update > 0 && self.update == self.updates.next_keys.load(Ordering::Relaxed);
        if is_update && !self.may_update(number) {
            return Err(CryptoError);
        }
        self.inner.decrypt(path, number, header, payload)?;
        if has_reserved_bits(header) {
            return Err(CryptoError);
        }
        if let Some(paths) = &self.shared.paths {
            paths.on_decrypt(self.level, payload);
        }
        if self.level == Level::Data {
            self.updates.next_number.fetch_max(number + 1, Ordering::Relaxed);
            if is_update {
                self.updates.has_answered.store(false, Ordering::Relaxed);
            }
        }
        Ok(())
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

/// ACK and STREAM frames (RFC 9000 §19), which no packet begins with that probes a path.
const fn is_answer(kind: u8) -> bool {
    matches!(kind, 0x02 | 0x03 | 0x08..=0x0F)
}

/// RFC 9000 §17.2 and §17.3.1, for long and short headers without protection.
fn has_reserved_bits(header: &[u8]) -> bool {
    header.first().is_some_and(|first| first & if first & 0x80 == 0 { 0x18 } else { 0x0C } != 0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choice::Choice;
    use crate::shared::Rules;
    use crate::store::client_key;
    use noq_proto::Side;

    /// Every packet is authentic.
    struct NoKey;

    impl PacketKey for NoKey {
        fn encrypt(&self, _: PathId, _: u64, _: &mut [u8], _: usize) {}

        fn decrypt(&self, _: PathId, _: u64, _: &[u8], _: &mut BytesMut) -> Result<(), CryptoError> {
            Ok(())
        }

        fn tag_len(&self) -> usize {
            16
        }

        fn confidentiality_limit(&self) -> u64 {
            u64::MAX
        }

        fn integrity_limit(&self) -> u64 {
            u64::MAX
        }
    }

    fn key(updates: &Arc<KeyUpdates>, update: u64) -> ObservedPacketKey {
        let rules = Rules::new(Side::Server, Choice::find("iw10").expect("carried"));
        let peer = std::net::IpAddr::from([192, 0, 2, 1]);
        let shared = Shared::new(Arc::new(rules), (peer, 443).into(), None, client_key(peer), 0, None);
        ObservedPacketKey::new(Box::new(NoKey), Level::Data, shared, Arc::clone(updates), update)
    }

    fn is_taken(key: &ObservedPacketKey, number: u64, first: u8) -> bool {
        key.decrypt(PathId::ZERO, number, &[first], &mut BytesMut::new()).is_ok()
    }

    #[test]
    fn a_packet_with_reserved_bits_is_dropped() {
        let key = key(&Arc::new(KeyUpdates::new()), 0);
        for (first, expected) in [
            (0x40, true),
            (0x44, true), // the key phase
            (0x60, true), // the spin bit
            (0x48, false),
            (0x50, false),
            (0xC3, true),
            (0xF0, true),
            (0xC4, false),
            (0xC8, false),
        ] {
            assert_eq!(is_taken(&key, 1, first), expected, "{first:#x}");
        }
    }

    #[test]
    fn keys_are_updated_by_the_newest_packet_alone_and_again_after_an_answer() {
        let updates = Arc::new(KeyUpdates::new());
        let first = key(&updates, 0);
        let second = key(&updates, updates.number_next());
        assert!(is_taken(&first, 7, 0x40) && is_taken(&first, 5, 0x40), "reordered");
        assert!(!is_taken(&second, 6, 0x44) && !is_taken(&second, 7, 0x44), "older than the newest");
        assert!(is_taken(&second, 9, 0x44), "the newest");
        let third = key(&updates, updates.number_next());
        assert!(is_taken(&second, 8, 0x44), "reordered under new keys");
        assert!(!is_taken(&third, 10, 0x40), "nothing was sent since the last update");
        second.encrypt(PathId::ZERO, 1, &mut [0x40, 1, 0x1B], 2);
        assert!(!is_taken(&third, 10, 0x40), "an answer to a probe of the path is none to other packets");
        second.encrypt(PathId::ZERO, 2, &mut [0x40, 2, 0x02], 2);
        assert!(is_taken(&third, 10, 0x40));
    }

    /// The peer may answer under keys that the stack has begun to use, with whichever packet.
    #[test]
    fn the_own_update_needs_no_answer() {
        let updates = Arc::new(KeyUpdates::new());
        let second = key(&updates, updates.number_next());
        let third = key(&updates, updates.number_next());
        second.encrypt(PathId::ZERO, 1, &mut [0x40, 1, 0x01], 2);
        assert!(is_taken(&second, 1, 0x44) && is_taken(&second, 0, 0x44));
        assert!(is_taken(&third, 2, 0x40), "the peer's own");
    }
}
