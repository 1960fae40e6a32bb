//! How fast is the simulator, and how fast is ns-3 on the same plans? `cargo bench -p headstart-sim
//! --bench peers`.
//!
//! Two plans, described in `benches/peers/ns3`: *short* (100 kB flows, Poisson, 60 % load, 600 s)
//! and *bulk* (four long flows, 100 Mbit/s, 60 s). Ours runs with every flow's report collected by
//! a [`Collector`] and nothing traced. Both run on one core, in turns, so that other load on the
//! machine affects both. The count is of data packets that crossed the bottleneck, on both sides:
//! handshakes and FINs take time but do not count.
//!
//! `-- --runs 5` sets how often (default 3; ns-3 needs half a minute for each); `-- --plan short`
//! takes one plan.

mod common;

use std::path::Path;
use std::process::Command;

use common::{BULK, FLOW, SHORT, Turns};
use headstart_sim::{Collector, Finished, Scenario, Simulation};
use headstart_startup::base;
use headstart_units::Time;

/// Packets of an ns-3 flow without its data, on the same way: SYN, handshake's ACK, FIN, last ACK.
const NS3_NOT_DATA: f64 = 4.0;

struct Run {
    data_packets: f64,
    wall: f64,
    events: f64,
}

impl Run {
    fn per_second(&self) -> f64 {
        self.data_packets / self.wall
    }
}

fn scenario(plan: &str) -> Scenario {
    // The peer's settings: both must do the same work.
    let tcp = common::like_ns3(2);
    if plan == "bulk" {
        return common::bulk(BULK.path(), 1, tcp);
    }
    Scenario {
        path: SHORT.path(),
        groups: vec![common::group(10, base::Kind::Cubic, tcp)],
        workload: Box::new(Turns::new(common::arrivals(0.6, 1, 600.0), FLOW, 1)),
        until: Time::from_millis(800_000),
    }
}

fn ours(plan: &str) -> Run {
    let simulation = Simulation::new(scenario(plan), Collector::new(1, Time::ZERO));
    let (Finished { summary, path, .. }, wall) = common::timed(|| simulation.run());
    let delivered = path.packet_counts().next().map_or(0, |(_, account)| account.delivered);
    Run { data_packets: (delivered - summary.flows) as f64, wall, events: summary.events as f64 }
}

fn ns3(program: &Path, plan: &str) -> Result<Run, String> {
    let output = Command::new(program)
        .args([&format!("--plan={plan}"), "--load=0.6", "--seed=1", "--cc=cubic"])
        .args(["--initial-window=10", "--ack-every=2", "--hystart=off"])
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let member = |name: &str| -> Option<f64> {
        let tail = text.split(&format!("\"{name}\": ")).nth(1)?;
        tail.split([',', '\n']).next()?.parse().ok()
    };
    let needed = |name: &str| member(name).ok_or_else(|| format!("ns3-peer: no member {name} in its answer"));
    // Its `wall_s` is the simulation alone, without start and output: as ours is measured.
    Ok(Run {
        data_packets: needed("packets_forwarded")? - NS3_NOT_DATA * member("flows").unwrap_or(4.0),
        wall: needed("wall_s")?,
        events: needed("events")?,
    })
}

fn report(who: &str, runs: &[Run]) -> f64 {
    let speeds: Vec<f64> = runs.iter().map(Run::per_second).collect();
    let middle = common::median(&speeds);
    let best = speeds.iter().copied().fold(0.0, f64::max);
    let events = runs.first().map_or(0.0, |run| run.events / run.data_packets);
    println!(
        "{who:8} {:9.0} data packets/s median, {:9.0} best of {}; {events:5.2} events/packet, {:7.0} ns/packet",
        middle,
        best,
        runs.len(),
        1e9 / middle,
    );
    middle
}

fn main() {
    let times: usize = common::option("--runs").map_or(3, |text| text.parse().expect("--runs: a number"));
    let only = common::option("--plan");
    let program = common::ns3().join("ns3-peer");
    let peer = program.is_file().then_some(program);
    if peer.is_none() {
        println!("ns-3 does not run: benches/peers/ns3/ns3-peer is not built (make -C benches/peers/ns3)\n");
    }
    for plan in ["short", "bulk"].into_iter().filter(|plan| only.as_deref().is_none_or(|only| only == *plan))
    {
        println!("{plan}:");
        let _warm_up = ours(plan);
        let (mut our_runs, mut their_runs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..times {
            // Ours takes a hundredth of the time: several in each turn, of which the median counts.
            let turn: Vec<Run> = (0..7).map(|_| ours(plan)).collect();
            let speed = common::median(&turn.iter().map(Run::per_second).collect::<Vec<_>>());
            our_runs.extend(turn);
            if let Some(program) = &peer {
                match ns3(program, plan) {
                    Ok(run) => {
                        ratios.push(speed / run.per_second());
                        their_runs.push(run);
                    }
                    Err(error) => println!("ns-3 failed: {error}"),
                }
            }
        }
        report("ours", &our_runs);
        if !their_runs.is_empty() {
            report("ns-3", &their_runs);
            let all: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.0}")).collect();
            println!("ratio    {:.0} (turn by turn: {})", common::median(&ratios), all.join(", "));
        }
        println!();
    }
}
