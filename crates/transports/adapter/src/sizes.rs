//! Application data as packets.

use headstart_units::Bytes;

/// The initial window in packets (RFC 9002 §7.2).
pub const INITIAL_PACKETS: u64 = 10;
/// The minimum window in packets (RFC 9002 §7.2).
pub const MINIMUM_PACKETS: u64 = 2;
/// A packet this much below the largest counts as full: frames do not always fill the last bytes.
pub const SLACK: Bytes = Bytes::new(64);
/// Bytes of a packet besides its data: header with an 8-byte connection id, frame header, AEAD tag.
const OVERHEAD: Bytes = Bytes::new(37);

/// Size on the wire of `bytes` of application data, in packets of `packet` bytes.
#[must_use]
pub fn wire(bytes: Bytes, packet: Bytes) -> Bytes {
    let payload = packet.saturating_sub(OVERHEAD).max(Bytes::new(1));
    let full = bytes.get() / payload.get();
    let rest = bytes.get() % payload.get();
    let last = if rest == 0 { 0 } else { rest + OVERHEAD.get() };
    Bytes::new(full.saturating_mul(packet.get()).saturating_add(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_packet_carries_so_much_less_than_its_size() {
        let packet = Bytes::new(1_037);
        for (data, expected) in [(0, 0), (1, 38), (1_000, 1_037), (1_001, 1_075), (u64::MAX, u64::MAX)] {
            assert_eq!(wire(Bytes::new(data), packet), Bytes::new(expected), "{data} bytes");
        }
    }
}
