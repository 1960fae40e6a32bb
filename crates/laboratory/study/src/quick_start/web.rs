//! Web sessions over the chain: approvals of routers, failures, and transfer times.
//!
//! Source: Quick-Start §5 and §6.4 for the traffic. All measures are of the servers on the left, as
//! in the paper; those on the right are background. The run ends after its duration, and unfinished
//! transfers count only for the link.
//!
//! # Deviations
//!
//! - "The actual link delays are chosen to give a range of round-trip times that roughly matches
//!   those from measurements". Only the mean of 12 ms and the largest of 110 ms are given. Delays
//!   here are 110 ms x u^8 for a uniform u, whose mean is 12.2 ms. Floyd's script for ns-2's web
//!   traffic uses a power of a uniform number too.
//! - Figure 11's round trips of 80 to 120 ms are uniform.

use anyhow::Result;
use clap::{Args, ValueEnum};
use headstart_sim::workload::web::{ParetoTwo, WebSessions, WebSpec};
use headstart_sim::workload::{Mixed, Workload};
use headstart_sim::{Access, Chain, FlowReport, Grant, Random, Scenario, Seed};
use headstart_units::{Span, Time};

use super::{HEADER, MSS, build, group, knows_flow_size, spec};
use crate::carrier::{Detail, Observer, model};
use crate::setup::Setup;
use crate::study::{Case, Declared, Measure, Measured, Study};

/// Pages of a session, objects of a page, their gaps, and their sizes' shape (Quick-Start §5).
const PAGES: u32 = 30;
const OBJECTS: u32 = 10;
const OBJECT_GAP: Span = Span::from_millis(10);
const PAGE_GAP: Span = Span::from_millis(800);
const SHAPE: f64 = 1.002;
/// Access delays (Quick-Start §5, Figure 11).
const FARTHEST: Span = Span::from_millis(110);
const NARROW: Span = Span::from_millis(20);
/// Bounds of small, medium and large transfers in packets: 10 Mbit/s x 128 ms are 107.
const SMALL: u64 = 10;
const MEDIUM: u64 = 30;
const LARGE: u64 = 300;

/// Initial window of every sender, in packets (Quick-Start §5).
const INITIAL_WINDOW: u64 = 3;

const MEASURES: &[Measure] = &[
    Measure::new("utilisation", "%", "bytes that the first link carried, of what it could"),
    Measure::new(
        "drops",
        "%",
        "packets that the chain's links dropped on the way there, of those offered to the first",
    ),
    Measure::new(
        "quick-bandwidth",
        "%",
        "bytes of Quick-Start packets (sent in a Quick-Start phase), of what the first link could carry",
    ),
    Measure::new("quick-share", "%", "bytes of Quick-Start packets, of all data bytes sent"),
    Measure::new(
        "approved-share",
        "%",
        "bytes of the first flights of all approved requests, used or not, of all data bytes sent",
    ),
    Measure::new("requests", "", "Quick-Start requests"),
    Measure::new("approved", "%", "requests that all routers approved, of those made"),
    Measure::new("used", "%", "requests whose grant was worth more than the initial window, of those made"),
    Measure::new(
        "failed",
        "%",
        "approved requests of which a Quick-Start packet was lost, of those approved",
    ),
    Measure::new("failures", "", "approved requests of which a Quick-Start packet was lost"),
    Measure::new("granted", "kB/s", "mean rate of an approved request"),
    Measure::new("connections", "", "connections that finished"),
    Measure::new("small", "ms", "geometric mean of the durations of connections below 10 packets"),
    Measure::new("medium", "ms", "geometric mean of the durations of connections of 30 to 299 packets"),
    Measure::new("large", "ms", "geometric mean of the durations of connections of 300 packets or more"),
    Measure::new("sizeable", "ms", "geometric mean of the durations of connections of 30 packets or more"),
    // Single connections, of the run with the setup's first seed; a number in the decimals
    // distinguishes equal ones.
    Measure::new("duration/...", "s", "duration of each connection, by its packets"),
    Measure::new("length/...", "packets", "packets of each connection, by its start in seconds"),
    Measure::new(
        "quick/...",
        "packets",
        "packets of its first flight, of each whose grant was used, by its start in seconds",
    ),
];

/// The sessions.
#[derive(Args, Clone, Debug)]
pub struct WebParams {
    /// Web sessions, and as many servers; half as many of both the other way
    #[arg(long, default_value_t = 10, value_name = "COUNT", value_parser = crate::options::whole(1..=1000_u32))]
    web_sessions: u32,
    /// Mean size of an object in packets
    #[arg(long, default_value_t = 400, value_name = "PACKETS", value_parser = crate::options::whole(2..=1_000_000_u32))]
    web_object: u32,
    /// Range of the hosts' delays
    #[arg(long, default_value = "wide", value_name = "RANGE")]
    web_hosts: HostsName,
}

/// Range of the hosts' delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostsName {
    /// Access delays of 12 ms in the mean and 110 ms at most, one way.
    Wide,
    /// Round trips of 80 to 120 ms.
    Narrow,
}

impl Study for WebParams {
    const NAME: &'static str = "quick-start-web";
    const ABOUT: &'static str = "web sessions over three routers in a chain (Quick-Start §5)";
    const NEEDS: Detail = Detail::Topology;
    const DECLARED: &'static [Declared] = &[Declared { prefixes: &[""], measures: MEASURES }];

    fn work(&self, setup: &Setup) -> f64 {
        f64::from(self.web_sessions) * setup.run.duration.as_secs_f64()
    }

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        Ok(browse(self, case).into_iter().collect())
    }
}

fn browse(params: &WebParams, case: &Case<'_>) -> Vec<(String, f64)> {
    let Case { setup, mix, seed } = *case;
    let is_first = seed == setup.run.seed;
    let seed = Seed(seed);
    let (forward, backward) = (params.web_sessions, params.web_sessions / 2);
    let mut random = Random::new(seed.child("access"));
    let mut hosts = |count: u32| -> Vec<Access> {
        (0..count).map(|_| draw_access(params.web_hosts, &mut random)).collect()
    };
    let chain = spec(setup, hosts(forward), hosts(backward));
    let classes = (forward + backward) as usize;
    let groups = (0..classes).map(|class| group(setup, mix.tested, chain.rtt(class))).collect();
    let until = Time::ZERO + setup.run.duration;
    let sessions = |sessions: u32, first: u32, name: &str| -> Box<dyn Workload> {
        let spec = WebSpec {
            sessions,
            until,
            pages: PAGES,
            objects: OBJECTS,
            object_gap: OBJECT_GAP,
            page_gap: PAGE_GAP,
            sizes: ParetoTwo::with_mean(f64::from(params.web_object), SHAPE),
            mss: MSS,
            servers: sessions as u16,
            first: first as u16,
            size_known: knows_flow_size(mix.tested),
        };
        Box::new(WebSessions::new(spec, seed.child(name)))
    };
    let workload = Mixed::new(vec![sessions(forward, 0, "there"), sessions(backward, forward, "back")]);
    let Chain { path, links, .. } = build(setup, &chain, seed);
    let scenario = Scenario { path, groups, workload: Box::new(workload), until };
    let recorder = Connections { servers: forward as u16, reports: vec![] };
    let finished = model::simulate(scenario, recorder);
    let reports = &finished.recorder.reports;
    let mut numbers = approvals(reports);

    let counts = |element: u16| finished.path.packet_counts().nth(usize::from(element)).map(|(_, one)| *one);
    let there: Vec<_> = links.iter().filter_map(|(there, _)| counts(*there)).collect();
    let could = (setup.path.rate * setup.run.duration).get() as f64;
    let dropped: u64 = there.iter().map(|link| link.total_dropped()).sum();
    let (carried, offered) =
        there.first().map_or((0.0, 0.0), |link| (link.delivered_bytes as f64, link.offered as f64));
    let quick: f64 = reports.iter().filter(|report| is_used(report)).map(on_link).sum();
    let is_approved = |report: &&FlowReport| matches!(report.grant, Grant::Granted(_));
    let approved: f64 = reports.iter().filter(is_approved).map(on_link).sum();
    let sent: f64 = reports.iter().map(|report| report.counts.bytes_sent as f64).sum::<f64>() * EXPANSION;
    numbers.extend([
        ("utilisation".to_owned(), 100.0 * carried / could),
        ("drops".to_owned(), 100.0 * dropped as f64 / offered.max(1.0)),
        ("quick-bandwidth".to_owned(), 100.0 * quick / could),
        ("quick-share".to_owned(), 100.0 * quick / sent.max(1.0)),
        ("approved-share".to_owned(), 100.0 * approved / sent.max(1.0)),
    ]);
    numbers.extend(durations(reports));
    if is_first {
        numbers.extend(connection_numbers(reports));
    }
    numbers
}

/// Bytes on the link for each byte of payload in full segments.
const EXPANSION: f64 = (MSS.get() + HEADER.get()) as f64 / MSS.get() as f64;

fn draw_access(hosts: HostsName, random: &mut Random) -> Access {
    let mut delay = |most: Span, power: u32| {
        let unit = random.unit();
        // Products only: the same bits on every machine.
        let share = (0..power).fold(1.0, |product, _| product * unit);
        Span::from_nanos((most.as_nanos() as f64 * share) as u64)
    };
    match hosts {
        HostsName::Wide => Access { server: delay(FARTHEST, 8), client: delay(FARTHEST, 8) },
        HostsName::Narrow => {
            let both = delay(NARROW, 1);
            Access { server: both / 2, client: both / 2 }
        }
    }
}

/// True if it had a Quick-Start phase: a grant up to the initial window is not used.
fn is_used(report: &FlowReport) -> bool {
    let (Grant::Granted(rate), Some(established)) = (report.grant, report.established_at) else {
        return false;
    };
    // Quick-Start Equation 1.
    let rtt = established.since(report.opened_at);
    rate * rtt >= (MSS + HEADER) * (INITIAL_WINDOW + 1)
}

/// Bytes of its first flight on the link.
fn on_link(report: &FlowReport) -> f64 {
    report.first_flight.get() as f64 * EXPANSION
}

fn packets(report: &FlowReport) -> u64 {
    report.written.get().div_ceil(MSS.get())
}

fn approvals(reports: &[FlowReport]) -> Vec<(String, f64)> {
    let requesting = reports
        .iter()
        .filter(|report| !matches!(report.grant, Grant::NotRequested) && report.established_at.is_some());
    let (mut requests, mut approved, mut used, mut failed, mut rates) = (0_u64, 0_u64, 0_u64, 0_u64, 0.0);
    for report in requesting {
        requests += 1;
        if let Grant::Granted(rate) = report.grant {
            approved += 1;
            rates += rate.as_bytes_per_sec() as f64 / 1000.0;
            used += u64::from(is_used(report));
            failed += u64::from(is_used(report) && report.counts.first_flight_lost > 0);
        }
    }
    let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole as f64;
    [
        ("requests", requests as f64),
        ("approved", percent(approved, requests)),
        ("used", percent(used, requests)),
        ("failed", percent(failed, approved)),
        ("failures", failed as f64),
        ("granted", rates / approved as f64),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

fn durations(reports: &[FlowReport]) -> Vec<(String, f64)> {
    let finished: Vec<(u64, f64)> = reports
        .iter()
        .filter_map(|report| Some((packets(report), report.completion_time()?.as_millis_f64())))
        .collect();
    let mean = |class: &dyn Fn(u64) -> bool| -> f64 {
        let own = || finished.iter().filter(|(packets, _)| class(*packets));
        (own().map(|(_, millis)| millis.ln()).sum::<f64>() / own().count() as f64).exp()
    };
    let mut numbers = vec![("connections".to_owned(), finished.len() as f64)];
    let classes: [(&str, &dyn Fn(u64) -> bool); 4] = [
        ("small", &|packets| packets < SMALL),
        ("medium", &|packets| (MEDIUM..LARGE).contains(&packets)),
        ("large", &|packets| packets >= LARGE),
        ("sizeable", &|packets| packets >= MEDIUM),
    ];
    for (name, class) in classes {
        numbers.push((name.to_owned(), mean(class)));
    }
    numbers
}

/// Every connection on its own.
fn connection_numbers(reports: &[FlowReport]) -> Vec<(String, f64)> {
    let mut numbers = vec![];
    for (number, report) in reports.iter().enumerate() {
        let (packets, start) = (packets(report), report.opened_at.as_nanos() / 1_000_000);
        if let Some(time) = report.completion_time() {
            // Seven decimals after the count of packets are the connection's number.
            numbers.push((format!("duration/{packets}.{number:07}"), time.as_secs_f64()));
        }
        let at = format!("{}.{:03}{number:07}", start / 1000, start % 1000);
        numbers.push((format!("length/{at}"), packets as f64));
        if is_used(report) {
            let quick = report.first_flight.get().div_ceil(MSS.get());
            numbers.push((format!("quick/{at}"), quick as f64));
        }
    }
    numbers
}

/// Reports of the servers on the left.
#[derive(Debug)]
struct Connections {
    servers: u16,
    reports: Vec<FlowReport>,
}

impl Observer for Connections {
    fn flow(&mut self, report: &FlowReport) {
        if report.group < self.servers {
            self.reports.push(*report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quick-Start §5: "a mean one-way link delay of 12 msec and a maximum delay of 110 msec";
    /// Figure 11: 80 to 120 ms.
    #[test]
    fn host_distances_match_the_paper() {
        let mut random = Random::new(Seed(1));
        let drawn: Vec<Access> = (0..200_000).map(|_| draw_access(HostsName::Wide, &mut random)).collect();
        let mean = drawn.iter().map(|access| access.server.as_millis_f64()).sum::<f64>() / 200_000.0;
        assert!((mean - 110.0 / 9.0).abs() < 0.2, "{mean} ms");
        let most = drawn.iter().map(|access| access.client).max().expect("some");
        assert!(most <= FARTHEST && most > Span::from_millis(109), "{most}");
        let narrow: Vec<Span> = (0..10_000)
            .map(|_| draw_access(HostsName::Narrow, &mut random))
            .map(|access| (access.server + access.client) * 2)
            .collect();
        assert!(narrow.iter().all(|rtt| *rtt <= Span::from_millis(40)), "below the chain's 80 ms");
        assert!(narrow.iter().max() > Some(&Span::from_millis(39)));
    }
}
