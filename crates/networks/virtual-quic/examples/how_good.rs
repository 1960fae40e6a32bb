//! Every scheme on the real stack over one path, as a table of completion, loss and copies. The
//! prior is correct, five times too high, or correct with a lost tail.
//!
//! ```text
//! cargo run --release -p headstart-virtual-quic --example how_good \
//!     [bytes] [Mbit/s] [RTT in ms] [buffer in packets]
//! ```

use std::error::Error;

use headstart_quic::{Access, Choice, Hint};
use headstart_units::{Bytes, Packets, Rate, Span};
use headstart_virtual_quic::{Crypto, Scenario};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |name: &str, default: u64| match arguments.next() {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("{name}: found `{text}`, expected a whole number")),
    };
    let bytes = number("bytes", 100_000)?;
    let (mbit, rtt) = (number("Mbit/s", 25)?, number("RTT", 50)?);
    let buffer = number("buffer", 104)?;
    let rate = Rate::from_mbit_per_sec(mbit);
    let plain = Scenario::new(rate, Span::from_millis(rtt), Packets::new(buffer), Bytes::new(bytes));
    let plain = Scenario { crypto: Crypto::Null, ..plain };
    let hinted = |bandwidth| {
        let hint = Hint { bandwidth, access: Access::Dsl };
        plain.clone().with_hint(hint)
    };
    let right = hinted(rate).with_record(1, 1);
    let wrong = hinted(Rate::from_bytes_per_sec(rate.as_bytes_per_sec() * 5)).with_record(5, 1);
    let packets = bytes.div_ceil(1_163);
    let tail = Scenario { forced_losses: (packets.saturating_sub(20)..packets).collect(), ..plain.clone() };

    println!(
        "{bytes} bytes over {mbit} Mbit/s, {rtt} ms, {buffer} packets of buffer; milliseconds from dialling, packets lost, copies"
    );
    println!("{:18} {:>22} {:>22} {:>22}", "", "right prior", "five times too high", "last 20 packets lost");
    for choice in Choice::all() {
        let mut line = format!("{:18}", choice.name());
        for scenario in [&right, &wrong, &tail] {
            let outcome = &scenario.run_choice(choice)?[0];
            let (lost, copies) = (outcome.lost_packets, outcome.report.tally.copies);
            line += &format!(" {:9.1} {lost:5}  {copies:5}", outcome.completion().as_millis_f64());
        }
        println!("{line}");
    }
    Ok(())
}
