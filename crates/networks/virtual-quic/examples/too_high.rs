//! A prior five times too high: completion times and losses over paths and sizes.
//!
//! ```text
//! cargo run --release -p headstart-virtual-quic --example too_high [times]
//! ```
//!
//! Milliseconds from the start of the handshake to the last byte, and packets that the server's
//! stack declared lost. The first path with 1024 kB is that of WiseStart's Figure 9 at a fifth of
//! the recorded 24 Mbit/s.

use std::error::Error;

use headstart_units::{Bytes, Packets, Rate, Span};
use headstart_virtual_quic::{Crypto, Scenario};

const SCHEMES: [&str; 4] = ["iw10", "iw64", "s-cubic", "wise-start"];
const SIZES: [u64; 3] = [100_000, 500_000, 1_024_000];
/// Bytes of a full packet: UDP payload of 1200 and headers.
const PACKET: u64 = 1_228;

fn main() -> Result<(), Box<dyn Error>> {
    let times = match std::env::args().nth(1) {
        None => 5,
        Some(text) => text.parse().map_err(|_| format!("found `{text}`, expected a whole number"))?,
    };
    println!("a record of {times} times the path's rate; milliseconds, packets lost");
    print!("{:>10} {:>6} {:>8} {:>8}", "Mbit/s", "RTT", "buffer", "kB");
    SCHEMES.iter().for_each(|scheme| print!(" {scheme:>16}"));
    println!("   WiseStart loses");
    for (kilobits, millis, buffer) in [
        (4_800, 40, None),
        (4_800, 40, Some(104)),
        (10_000, 40, None),
        (10_000, 40, Some(104)),
        (25_000, 40, None),
        (25_000, 50, Some(104)),
        (25_000, 50, Some(550)),
        (50_000, 40, None),
        (100_000, 40, None),
    ] {
        let rate = Rate::from_bits_per_sec(kilobits * 1000);
        let rtt = Span::from_millis(millis);
        // Default: one BDP, as in the paper.
        let packets = buffer.unwrap_or_else(|| (rate * rtt).get().div_ceil(PACKET));
        for size in SIZES {
            let plain = Scenario::new(rate, rtt, Packets::new(packets), Bytes::new(size));
            let scenario = Scenario { crypto: Crypto::Null, ..plain }.with_record(times, 1);
            print!("{:>10.1} {millis:>6} {packets:>8} {:>8}", kilobits as f64 / 1000.0, size / 1000);
            let mut lost = vec![];
            for scheme in SCHEMES {
                let outcome = &scenario.run(scheme)?[0];
                print!(" {:>10.0} {:>5}", outcome.completion().as_millis_f64(), outcome.lost_packets);
                lost.push(outcome.lost_packets);
            }
            let than = |number: usize| if lost[3] < lost[number] { "less" } else { "NOT LESS" };
            println!("   {} than s-cubic, {} than iw64", than(2), than(1));
        }
    }
    Ok(())
}
