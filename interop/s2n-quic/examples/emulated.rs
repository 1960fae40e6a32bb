//! Servers on s2n-quic and quinn for a path in real time, and a client that visits them.
//!
//! ```text
//! cd interop/s2n-quic && cargo build --release --example emulated
//! program=$PWD/target/release/examples/emulated
//! headstart link --rate 25mbit --rtt 50ms --buffer 104p \
//!     --serve "$program s2n-quic wise-start" -- $program visit
//! ```
//!
//! Without a scheme the stack's own CUBIC runs. The client asks for 1 MB, then five times for 100
//! kB, each over a connection of its own. It prints the times from the first packet to the last
//! byte.

#[path = "ends/mod.rs"]
mod ends;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ends::Result;
use headstart_adapter::Gates;

const PORT: u16 = 4433;
const VISITS: [usize; 6] = [1_000_000, 100_000, 100_000, 100_000, 100_000, 100_000];

#[tokio::main]
async fn main() -> Result {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (address, gates) = (SocketAddr::from(([0, 0, 0, 0], PORT)), Gates::default());
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["s2n-quic", ref scheme @ ..] => {
            ends::serve_s2n_quic(scheme.first().copied(), address, gates, |_| ()).await
        }
        ["quinn", ref scheme @ ..] => {
            ends::serve_quinn(scheme.first().copied(), address, gates, |_| ()).await
        }
        ["visit"] => visit().await,
        _ => Err("found other words, expected s2n-quic [SCHEME], quinn [SCHEME] or visit".into()),
    }
}

#[allow(clippy::disallowed_methods, reason = "a path in real time")]
async fn visit() -> Result {
    let host = std::env::var("HEADSTART_OUTSIDE").unwrap_or_else(|_| "127.0.0.1".to_owned());
    let address = SocketAddr::new(host.parse()?, PORT);
    let client = ends::client()?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for size in VISITS {
        let begun = Instant::now();
        let connection = client.connect(address, "localhost")?.await?;
        let connected = begun.elapsed();
        ends::fetch(&connection, size).await?;
        let took = begun.elapsed();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{size} bytes: {:.1} ms, of which {:.1} to connect", ms(took), ms(connected));
        // Its last acknowledgement.
        tokio::time::sleep(Duration::from_millis(200)).await;
        connection.close(0_u32.into(), b"");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    Ok(())
}
