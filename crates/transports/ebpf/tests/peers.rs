//! The history of a million peers: its capacity, and its cost (printed, with `--nocapture`;
//! docs/records/linux-tcp.md has the numbers).
#![cfg(feature = "load")]

use headstart_ebpf::needs::{Level, Machine};
use headstart_ebpf::replay::Replay;

const MILLION: u32 = 1 << 20;

#[test]
fn a_million_peers_are_stored_in_less_than_150_bytes_each() {
    let missing = Machine::detect().missing(Level::Control);
    if !missing.is_empty() {
        return headstart_host::not_run(&format!("a million peers: {}", missing.join("; ")));
    }
    for peers in [MILLION / 16, MILLION] {
        let replay = Replay::with_peers(peers).expect("the object");
        let bytes = replay.history_bytes().expect("its size");
        // Half of the capacity: the kernel evicts by processor, and a little early.
        let count = peers / 2;
        let (remembered, writing) = replay.peers(count, true).expect("it is applied");
        let (found, reading) = replay.peers(count, false).expect("it is applied");
        println!(
            "{peers} peers: {} bytes each, {} ns to remember one, {} ns to find one",
            bytes / u64::from(peers),
            writing / u64::from(count),
            reading / u64::from(count)
        );
        assert_eq!(remembered, u64::from(count));
        assert!(found > u64::from(count) * 9 / 10, "found {found} of {count}");
        assert!(bytes / u64::from(peers) < 150, "{bytes} bytes");
    }
}
