//! Schemes over an unmodified s2n-quic in virtual time: one client visits a server twice.
//!
//! ```text
//! cargo run --manifest-path interop/s2n-quic/Cargo.toml -- [SCHEME...]
//! ```
//!
//! The path has 25 Mbit/s, 50 ms and room for 104 packets. The first visit of 1 MB leaves a record,
//! the second of 100 kB starts from it. A row without a scheme is s2n-quic's own CUBIC.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use headstart_s2n_quic::{Handle, ServerSetup, Sharded};
use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Cubic, Timestamp};
use s2n_quic::provider::io::testing::network::{Buffers, Network};
use s2n_quic::provider::io::testing::{self as virtual_time, Handle as World, primary, spawn, time};
use s2n_quic::provider::tls::rustls;
use s2n_quic::{Client, Server};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const NAME: &str = "localhost";
/// Time on the wire of a byte at 25 Mbit/s.
const BYTE: Duration = Duration::from_nanos(320);
const ONE_WAY: Duration = Duration::from_millis(25);
const ROOM: usize = 104;
const VISITS: [usize; 2] = [1_000_000, 100_000];

/// A datagram of this size or more is a full packet of the server's.
const FULL: usize = 1_100;

/// A bottleneck for both directions, and what passed it.
#[derive(Clone, Default)]
struct Path(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Ends of the packets that wait for the link, by sender's port.
    waiting: std::collections::BTreeMap<u16, VecDeque<Timestamp>>,
    departures: Vec<Timestamp>,
    dropped: u64,
}

impl Network for Path {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let now = time::now();
        let mut count = 0;
        buffers.drain_pending_transmissions(|mut packet| {
            count += 1;
            let state = &mut *self.0.lock().expect("one thread");
            let from = packet.path.local_address.0.port();
            let size = packet.payload.len();
            if size >= FULL {
                state.departures.push(now);
            }
            let waiting = state.waiting.entry(from).or_default();
            while waiting.front().is_some_and(|&end| end <= now) {
                waiting.pop_front();
            }
            if waiting.len() >= ROOM {
                state.dropped += 1;
                return Ok(());
            }
            let begins = waiting.back().copied().unwrap_or(now);
            // UDP and IPv4 headers; the clock has microseconds.
            let end = begins + BYTE * (size as u32 + 28);
            waiting.push_back(end);
            packet.switch();
            let buffers = buffers.clone();
            spawn(async move {
                time::delay_until(end + ONE_WAY).await;
                buffers.rx(*packet.path.local_address, |queue| queue.enqueue(packet));
            });
            Ok(())
        });
        count
    }
}

/// A visit as the client and the path saw it.
struct Visit {
    took: Duration,
    departures: Vec<Timestamp>,
    report: Option<String>,
}

fn visit_twice(scheme: Option<&str>) -> Result<Vec<Visit>> {
    let issued = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let (certificate, key) = (issued.cert.pem(), issued.signing_key.serialize_pem());
    let setup = scheme.map(ServerSetup::new).transpose()?;
    let setup = setup.map(|setup| setup.history(Arc::new(Sharded::default())).seed(1));
    let path = Path::default();
    let (visits, handles) = (Arc::new(Mutex::new(vec![])), Arc::new(Mutex::new(Vec::<Handle>::new())));
    let (results, known, seen) = (Arc::clone(&visits), Arc::clone(&handles), path.clone());
    virtual_time::test(path, move |world: &World| {
        let io = |size| world.builder().with_max_mtu(size).build();
        let tls = rustls::Server::builder().with_certificate(certificate.as_str(), key.as_str());
        let tls = tls.and_then(rustls::server::Builder::build).map_err(|error| error.to_string())?;
        let server = Server::builder().with_io(io(1_228)?)?.with_tls(tls)?;
        let find = setup.clone();
        let mut server = match setup {
            Some(setup) => server.with_congestion_controller(setup)?.start()?,
            None => server.with_congestion_controller(Cubic::default())?.start()?,
        };
        let address = server.local_addr()?;
        let answered = seen.clone();
        spawn(async move {
            while let Some(mut connection) = server.accept().await {
                let answered = answered.clone();
                let handle = find.as_ref().and_then(|setup| setup.handle(connection.remote_addr().ok()?));
                known.lock().expect("one thread").extend(handle.clone());
                spawn(async move {
                    while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
                        let mut request = vec![];
                        while let Ok(Some(part)) = stream.receive().await {
                            request.extend_from_slice(&part);
                        }
                        let size = String::from_utf8_lossy(&request).parse().unwrap_or(0_usize);
                        if let Some(handle) = &handle {
                            handle.expect(size as u64);
                        }
                        answered.0.lock().expect("one thread").departures.clear();
                        let _ = stream.send(Bytes::from(vec![0; size])).await;
                        let _ = stream.finish();
                    }
                });
            }
        });
        let tls = rustls::Client::builder().with_certificate(certificate.as_str());
        let tls = tls.and_then(rustls::client::Builder::build).map_err(|error| error.to_string())?;
        let client = Client::builder().with_io(io(1_228)?)?.with_tls(tls)?.start()?;
        primary::spawn(async move {
            for size in VISITS {
                let begun = time::now();
                let mut connection =
                    client.connect(Connect::new(address).with_server_name(NAME)).await.expect("an answer");
                let mut stream = connection.open_bidirectional_stream().await.expect("a stream");
                stream.send(size.to_string().into()).await.expect("asked");
                stream.finish().expect("asked");
                let mut length = 0;
                while let Some(part) = stream.receive().await.expect("answered") {
                    length += part.len();
                }
                assert_eq!(length, size);
                let took = time::now().saturating_duration_since(begun);
                let departures = seen.0.lock().expect("one thread").departures.clone();
                results.lock().expect("one thread").push(Visit { took, departures, report: None });
                connection.close(0_u32.into());
                time::delay(Duration::from_secs(5)).await;
            }
        });
        Ok(())
    })?;
    let mut visits = std::mem::take(&mut *visits.lock().expect("one thread"));
    for (visit, handle) in visits.iter_mut().zip(handles.lock().expect("one thread").iter()) {
        visit.report = Some(handle.report().to_string());
    }
    Ok(visits)
}

/// The answer's packets that left in its first 25 ms: the most at one time, and the rate of
/// those after the first ones, if they are paced.
fn shape(departures: &[Timestamp]) -> (usize, String) {
    let since = |at: &Timestamp| at.saturating_duration_since(departures[0]).as_micros();
    let flight: Vec<u128> = departures.iter().map(since).take_while(|&at| at <= 25_000).collect();
    let most = flight.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
    // s2n-quic's clock rounds a difference of nothing up to a microsecond.
    let groups: Vec<&[u128]> = flight.chunk_by(|a, b| a == b).filter(|group| group[0] > 1).collect();
    let [first, between @ .., last] = &groups[..] else { return (most, "not paced".to_owned()) };
    let packets = first.len() + between.iter().map(|group| group.len()).sum::<usize>();
    let pace = packets as f64 * 1_200.0 * 8.0 / (last[0] - first[0]) as f64;
    (most, format!("then {pace:.2} Mbit/s"))
}

fn main() -> Result {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let schemes: Vec<Option<&str>> = if named.is_empty() {
        let all =
            ["iw10", "iw32-paced", "jump-start", "tcp-cache", "s-cubic", "wise-start", "careful-resume"];
        [None]
            .into_iter()
            .chain(all.into_iter().chain(["blitzstart", "headstart", "bbr-v3", "halfback"]).map(Some))
            .collect()
    } else {
        named.iter().map(|name| Some(name.as_str())).collect()
    };
    for scheme in schemes {
        let name = scheme.unwrap_or("(s2n-quic's CUBIC)");
        match visit_twice(scheme) {
            Ok(visits) => {
                for (number, visit) in visits.iter().enumerate() {
                    let (most, pace) = shape(&visit.departures);
                    let took = visit.took.as_secs_f64() * 1e3;
                    println!("{name}, visit {number}: {took:.1} ms; at most {most} packets at once, {pace}");
                    println!("    {}", visit.report.as_deref().unwrap_or("-"));
                }
            }
            Err(error) => println!("{name}: {error}"),
        }
    }
    Ok(())
}
