//! The cost of a scheme on s2n-quic and quinn, in processor time of the server.
//!
//! ```text
//! cd interop/s2n-quic && cargo run --release --example processor_time -- [ROUNDS] [WORD...]
//! ```
//!
//! Servers take turns over loopback, each in a thread of its own, whose processor time counts, with
//! its system calls. A round runs the stack's own CUBIC and each scheme. The ratio is *scheme / own
//! CUBIC* in the same round: medians of 61 rounds and their 95 % intervals. Words select the rows
//! that contain them. Linux only: `/proc` has the time of each thread.

#[path = "ends/mod.rs"]
mod ends;

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use ends::Result;
use headstart_adapter::Gates;
use headstart_units::Span;
use tokio::runtime;
use tokio::task::JoinSet;

const SCHEMES: [Option<&str>; 4] = [None, Some("iw10"), Some("s-cubic"), Some("wise-start")];

struct Work {
    name: &'static str,
    connections: usize,
    at_once: usize,
    bytes: usize,
}

const WORKS: [Work; 2] = [
    Work { name: "50 MB over one connection", connections: 1, at_once: 1, bytes: 50_000_000 },
    Work { name: "200 connections of 1 kB", connections: 200, at_once: 8, bytes: 1_000 },
];

fn main() -> Result {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(61);
    let only: Vec<&String> = words.iter().filter(|word| word.parse::<usize>().is_err()).collect();
    println!("| stack | work | scheme | processor: scheme / own CUBIC | own CUBIC (ms) |");
    println!("|---|---|---|--:|--:|");
    for stack in ["s2n-quic", "quinn"] {
        for work in &WORKS {
            if only.iter().all(|word| stack == **word || work.name.contains(&**word)) {
                compare(stack, work, rounds)?;
            }
        }
    }
    Ok(())
}

/// One row for each scheme.
fn compare(stack: &'static str, work: &Work, rounds: usize) -> Result {
    let mut times = [const { vec![] }; SCHEMES.len()];
    for round in 0..rounds {
        // The order changes, so that effects of one run on the next cancel out.
        for turn in 0..SCHEMES.len() {
            let index = (round + turn) % SCHEMES.len();
            times[index].push(measure(stack, SCHEMES[index], work)?.as_secs_f64());
        }
    }
    let own = &times[0];
    for (scheme, with) in SCHEMES.iter().zip(&times).skip(1) {
        let ratios = with.iter().zip(own).map(|(with, own)| with / own);
        let (ratio, low, high) = median(ratios.collect());
        let (alone, ..) = median(own.clone());
        println!(
            "| {stack} | {} | `{}` | {ratio:.3} [{low:.3}, {high:.3}] | {:.1} |",
            work.name,
            scheme.unwrap_or_default(),
            alone * 1e3
        );
    }
    Ok(())
}

/// Processor time of a server's thread, from the first connection to the last answer.
fn measure(stack: &'static str, scheme: Option<&'static str>, work: &Work) -> Result<Duration> {
    let (tell, messages) = mpsc::channel();
    // The thread's name identifies it in a profiler.
    let name = scheme.unwrap_or(stack).to_owned();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::Builder::new().name(name).spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            // The RTT of loopback is below the lowest one for a fast start.
            let gates = Gates { shortest_rtt: Span::ZERO, ..Gates::default() };
            let ready = move |address| tell.send((address, thread_id())).expect("the client waits");
            tokio::select! {
                result = async {
                    if stack == "quinn" {
                        ends::serve_quinn(scheme, any, gates, ready).await
                    } else {
                        ends::serve_s2n_quic(scheme, any, gates, ready).await
                    }
                } => result,
                _ = ended => Ok(()),
            }
        })
    })?;
    let (address, thread) = messages.recv()?;
    let before = time_of(&thread)?;
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (connections, at_once, bytes) = (work.connections, work.at_once, work.bytes);
    runtime.block_on(async move {
        let client = ends::client()?;
        let mut under_way: JoinSet<Result> = JoinSet::new();
        for _ in 0..connections {
            if under_way.len() >= at_once
                && let Some(result) = under_way.join_next().await
            {
                result??;
            }
            let connecting = client.connect(address, "localhost")?;
            under_way.spawn(async move {
                let connection = connecting.await?;
                ends::fetch(&connection, bytes).await?;
                connection.close(0_u32.into(), b"");
                Ok(())
            });
        }
        while let Some(result) = under_way.join_next().await {
            result??;
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    })?;
    let took = time_of(&thread)? - before;
    let _ = end.send(());
    server.join().expect("no panic")?;
    Ok(took)
}

/// The calling thread's number.
fn thread_id() -> String {
    let link = std::fs::read_link("/proc/thread-self").expect("Linux");
    link.file_name().expect("a number").to_string_lossy().into_owned()
}

fn time_of(thread: &str) -> Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    Ok(Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?))
}

/// The median and its 95 % interval.
fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    // The rank of a sample's median is binomial: 1.96 standard deviations are 0.98 square roots of
    // the sample's size.
    let (middle, off) = (values.len() / 2, (values.len() as f64).sqrt() * 0.98);
    let (low, high) = (middle.saturating_sub(off as usize), (middle + off as usize).min(values.len() - 1));
    (values[middle], values[low], values[high])
}
