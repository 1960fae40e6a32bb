//! The model's side: our TCP in the simulator, and our QUIC in virtual time.

use headstart_show::flow::phases;
use headstart_sim::record::SenderEvent;
use headstart_study::carrier::Carriers;
use headstart_study::options::SchemeName;
use headstart_study::runner;
use headstart_study::settings::Settings;
use headstart_study::setup::Setup;

use crate::compare::{Case, Found};

/// Packets with data that left in each round trip from the first, and the window at its end.
pub type Rounds = Vec<(u64, u64)>;

/// Scheme and options of the model for each controller of the kernel.
fn model_of(controller: &str) -> (&'static str, &'static str) {
    match controller {
        "cubic" => ("iw10-linux", "--base cubic-linux"),
        "bbr" => ("bbr", "--base cubic --pacing linux-always"),
        _ => ("iw10", "--base reno-linux"),
    }
}

pub fn run(case: &Case, seed: u64) -> Result<Found, String> {
    Ok(rounds_of(case, seed)?.0)
}

/// As [`run`], with the rounds.
pub fn rounds_of(case: &Case, seed: u64) -> Result<(Found, Rounds), String> {
    let (scheme, base) = model_of(case.controller);
    let setup = setup(
        case,
        &format!("{base} --acks linux-growing --as-linux --receive-window 4MB --seed {seed}"),
        Carriers::MODEL,
    )?;
    transfer(&setup, scheme)
}

/// Set-up and scheme of our side of a case.
pub type Side = (Setup, &'static str);

/// Our QUIC set up as quic-go is: its packets, window, pacing, exit from slow start and cut.
pub fn like_quic_go(case: &Case, seed: u64) -> Result<Side, String> {
    let line = format!("--transport quic --mtu 1308B --base reno-google --receive-window 4MB --seed {seed}");
    Ok((setup(case, &line, headstart_carriers::ALL)?, "google-quic(avoidance=80%,rounds=late)"))
}

/// Our QUIC set up as s2n-quic is: its window, acks, bursts and exit from slow start.
pub fn like_s2n_quic(case: &Case, seed: u64) -> Result<Side, String> {
    let line =
        format!("--transport quic --mtu 1228B --base cubic --acks tenth --receive-window 4MB --seed {seed}");
    let scheme = "google-quic(initial-window=10,slow-start=10%,avoidance=80%,rounds=early)";
    Ok((setup(case, &line, headstart_carriers::ALL)?, scheme))
}

/// Our TCP set up as gVisor's: its packets, HyStart as in Linux, no pacing, and the window alone
/// limits recovery.
pub fn like_gvisor(case: &Case, seed: u64) -> Result<Side, String> {
    let (scheme, base) = match case.controller {
        "cubic" => ("iw10-linux", "cubic"),
        _ => ("iw10", "reno-linux"),
    };
    let line = format!("--base {base} --mtu 1472B --no-prr --receive-window 4MB --seed {seed}");
    Ok((setup(case, &line, Carriers::MODEL)?, scheme))
}

fn setup(Case { path, bytes, .. }: &Case, options: &str, carriers: Carriers) -> Result<Setup, String> {
    let line = format!("{path} {options} --opener receiver --size {bytes}B --duration 100s");
    Settings::parse(carriers, line.split_whitespace()).map_err(|error| format!("{error:#}"))
}

pub fn transfer(setup: &Setup, scheme: &str) -> Result<(Found, Rounds), String> {
    let entry = scheme.parse::<SchemeName>()?.0;
    let (view, dropped) = runner::run_alone_counted(setup, entry).map_err(|error| error.to_string())?;
    let report = view.report.ok_or("no flow")?;
    let completion = report.completion_time().ok_or("the model's flow did not complete")?;
    let phases = phases(&view);
    let first = phases.first().map(|phase| phase.1);
    let exit = phases.iter().find(|phase| Some(phase.1) != first);
    let found = Found {
        completion_ms: completion.as_millis_f64(),
        drops: dropped,
        peak_queue: view.queue.iter().map(|(_, packets, _)| *packets).max().unwrap_or(0),
        exit_ms: exit.map(|phase| phase.0),
        is_valid: true,
    };
    let rtt = setup.path.unchecked_plan(&headstart_study::options::UpOptions::default()).rtt(0);
    let is_sent = |event: SenderEvent| matches!(event, SenderEvent::Sent { .. });
    let first = view.events.iter().find(|(_, trace)| is_sent(trace.event)).map(|(at, _)| *at);
    let mut rounds = Rounds::new();
    for (at, trace) in view.events.iter().filter(|(at, _)| Some(*at) >= first) {
        let round = (at.since(first.unwrap_or(*at)).as_nanos() / rtt.as_nanos().max(1)) as usize;
        rounds.resize(rounds.len().max(round + 1), (0, rounds.last().map_or(0, |round| round.1)));
        rounds[round].0 += u64::from(is_sent(trace.event));
        rounds[round].1 = trace.window.get();
    }
    Ok((found, rounds))
}
