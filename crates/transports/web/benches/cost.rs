//! CPU cost of fast starts to a server: the adapter against the stack alone, alternating.
//!
//! `cargo bench -p headstart-web --bench cost [-- [ROUNDS] [WORD...]]`; words select the rows that
//! contain them. Server and client communicate over loopback. The comparison is of the processor
//! time of the server's own thread, from the first connection to the last answer: it does not
//! depend on the host's other load. The wall clock is reported beside it. Linux only: `/proc` has
//! the time of each thread.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use headstart_quic::{Choice, Gates, Sharded, Store};
use headstart_startup::history::{Record, RecordUpdate};
use headstart_units::{Bytes, Rate, Span};
use headstart_web::admission::Plain;
use headstart_web::client::{self, FetchPlan, Origin, Trust};
use headstart_web::identity::Identity;
use headstart_web::open::{self, ServerSettings};
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::Site;
use noq::Endpoint;
use rustix::thread::{Pid, gettid};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The server under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// noq, unmodified.
    Alone,
    /// noq with the adapter and this scheme.
    With(&'static str),
}

#[derive(Clone, Copy, Debug)]
struct Work {
    connections: u64,
    at_once: u64,
    bytes: u64,
}

const BULK: Work = Work { connections: 1, at_once: 1, bytes: 50_000_000 };
const SHORT: Work = Work { connections: 200, at_once: 8, bytes: 1_000 };

#[derive(Clone, Copy, Debug)]
struct Cost {
    wall: Duration,
    server: Duration,
}

/// The processor time of another thread.
fn time_of(thread: Pid) -> Duration {
    let path = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let text = std::fs::read_to_string(path).expect("the thread is there");
    Duration::from_nanos(text.split(' ').next().and_then(|first| first.parse().ok()).expect("nanoseconds"))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A server on a thread of its own.
fn start(kind: Kind, identity: Arc<Identity>) -> (SocketAddr, CancellationToken, Pid, JoinHandle<()>) {
    let (tell, hear) = mpsc::channel();
    let shutdown = CancellationToken::new();
    let until = shutdown.clone();
    // The thread's name identifies it in a profiler.
    let name = match kind {
        Kind::Alone => "alone",
        Kind::With(scheme) => scheme,
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let site = Arc::new(Site::Generated);
            let server_config = ServerConfig { grace: Duration::ZERO, ..ServerConfig::default() };
            match kind {
                Kind::Alone => {
                    let tls = server::tls(&identity.current().expect("a key")).expect("TLS");
                    let crypto =
                        noq::crypto::rustls::QuicServerConfig::try_from(tls).expect("a cipher suite");
                    let config = noq::ServerConfig::with_crypto(Arc::new(crypto));
                    let socket = open::socket(any).expect("a socket");
                    let runtime = Arc::new(noq::TokioRuntime);
                    let endpoint =
                        Endpoint::new(noq::EndpointConfig::default(), Some(config), socket, runtime)
                            .expect("an endpoint");
                    tell.send((endpoint.local_addr().expect("an address"), gettid()))
                        .expect("somebody waits");
                    server::serve(endpoint, Arc::new(Plain), site, server_config, until).await;
                }
                Kind::With(scheme) => {
                    let identity = identity.current().expect("a key");
                    let choice = Choice::find(scheme).expect("a scheme");
                    let history = Arc::new(Sharded::default());
                    let plan = ServerSettings {
                        // The RTT of loopback is below the lowest one for a fast start.
                        gates: Gates { shortest_rtt: Span::ZERO, ..Gates::default() },
                        ..ServerSettings::new(&identity, choice, history)
                    };
                    let (endpoint, starts) = open::open(plan, any).expect("an endpoint");
                    tell.send((endpoint.local_addr().expect("an address"), gettid()))
                        .expect("somebody waits");
                    server::serve(endpoint, Arc::new(starts), site, server_config, until).await;
                }
            }
        });
    });
    let thread = thread.expect("a thread");
    let (address, number) = hear.recv().expect("a server");
    (address, shutdown, number, thread)
}

fn measure(kind: Kind, work: Work, identity: &Arc<Identity>) -> Cost {
    let (address, shutdown, number, thread) = start(kind, Arc::clone(identity));
    let ready = time_of(number);
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let wall = runtime.block_on(async move {
        let config =
            client::plain(client::tls(&Trust::AnyCertificate, None, false).expect("TLS")).expect("QUIC");
        let endpoint = client::endpoint(address).expect("a socket");
        let url: http::Uri =
            format!("https://localhost:{}/bytes/{}", address.port(), work.bytes).parse().expect("a URL");
        let plan = Arc::new(FetchPlan {
            origin: Origin::of(&url).expect("an origin"),
            urls: vec![url],
            keep: false,
            timeout: Duration::from_secs(120),
        });
        let begin = Instant::now();
        let mut under_way = tokio::task::JoinSet::new();
        for _ in 0..work.connections {
            if under_way.len() as u64 >= work.at_once {
                under_way.join_next().await;
            }
            let (plan, endpoint, config) = (Arc::clone(&plan), endpoint.clone(), config.clone());
            under_way.spawn(async move {
                let visit = plan.run(&endpoint, config, address).await.expect("a page");
                assert_eq!(visit.pages[0].bytes, work.bytes);
            });
        }
        under_way.join_all().await;
        begin.elapsed()
    });
    let server = time_of(number) - ready;
    shutdown.cancel();
    thread.join().expect("no panic");
    Cost { wall, server }
}

/// The median and its 95 % confidence interval.
fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    // The rank of a sample's median is binomial; 1.96 standard deviations of it are 0.98 square
    // roots of the sample's size.
    let (middle, off) = (values.len() / 2, (values.len() as f64).sqrt() * 0.98);
    let (low, high) = (middle.saturating_sub(off as usize), (middle + off as usize).min(values.len() - 1));
    (values[middle], values[low], values[high])
}

/// The adapter's cost over the stack's, alternating. Successive runs meet the same state of the
/// host, so pairs are compared.
fn compare(name: &str, scheme: &'static str, work: Work, rounds: usize, identity: &Arc<Identity>) {
    let (mut processor, mut wall, mut alone, mut with) = (vec![], vec![], vec![], vec![]);
    for round in 0..rounds {
        // The order alternates, so that effects of one run on the next cancel out.
        let pair = if round % 2 == 0 {
            let first = measure(Kind::Alone, work, identity);
            (first, measure(Kind::With(scheme), work, identity))
        } else {
            let first = measure(Kind::With(scheme), work, identity);
            (measure(Kind::Alone, work, identity), first)
        };
        processor.push(pair.0.server.as_secs_f64() / pair.1.server.as_secs_f64() * 100.0);
        wall.push(pair.0.wall.as_secs_f64() / pair.1.wall.as_secs_f64() * 100.0);
        alone.push(pair.0.server.as_secs_f64());
        with.push(pair.1.server.as_secs_f64());
    }
    let each = |seconds: f64| match work.connections {
        1 => format!("{:.0} MB per second of the processor", work.bytes as f64 / seconds / 1e6),
        count => format!("{:.0} us per connection", seconds / count as f64 * 1e6),
    };
    let percent = |(ratio, low, high)| format!("{ratio:.1} % [{low:.1}, {high:.1}]");
    println!(
        "| {name} | {scheme} | {} | {} | {} | {} |",
        percent(median(processor)),
        percent(median(wall)),
        each(median(alone).0),
        each(median(with).0)
    );
}

/// Cost of a lookup of a peer's record and of its update.
fn history() {
    let store = Sharded::default();
    let record = Record {
        btl_bw: Rate::from_mbit_per_sec(25),
        rt_prop: Span::from_millis(50),
        window: Bytes::new(156_250),
        ..Record::default()
    };
    let peers = 100_000_u32;
    let address =
        |number: u32| std::net::Ipv4Addr::from(0x0a00_0000 + number.wrapping_mul(7919) % peers).into();
    let pass = || {
        let begin = processor_time();
        for number in 0..peers {
            let (_, lease) = store.open(address(number));
            store.close(lease, RecordUpdate::Replace(record));
        }
        (processor_time() - begin).as_nanos() as f64 / f64::from(peers)
    };
    let cold = pass();
    println!(
        "\nHistory of 100 000 peers: {:.0} ns to look up and write, {cold:.0} ns for a new peer.",
        pass()
    );
}

fn main() {
    // cargo passes `--bench` and the user's arguments.
    let rounds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(61);
    let only: Vec<String> =
        std::env::args().skip(1).filter(|word| word.starts_with(char::is_alphabetic)).collect();
    let identity = Arc::new(Identity::temporary().expect("a certificate"));
    println!("| work | scheme | processor: alone / with | wall: alone / with | alone | with |");
    println!("|---|---|---|---|---|---|");
    let (bulk, short) = ("50 MB over one connection", "200 connections of 1 kB");
    for (name, scheme, work) in [
        (bulk, "stack-cubic", BULK),
        (bulk, "iw10", BULK),
        (bulk, "s-cubic", BULK),
        (bulk, "wise-start", BULK),
        (short, "stack-cubic", SHORT),
        (short, "iw10", SHORT),
        (short, "s-cubic", SHORT),
        (short, "wise-start", SHORT),
        (short, "halfback", SHORT),
    ] {
        if only.iter().all(|word| name.contains(&**word) || scheme == word) {
            compare(name, scheme, work, rounds, &identity);
        }
    }
    history();
}
