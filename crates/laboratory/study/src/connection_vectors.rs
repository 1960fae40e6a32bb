//! The set-up of the fast-startup slides: connection vectors over a dumbbell with nine RTTs.
//!
//! Source: M. Scharf, "Speeding up the Internet: Fast Startup Congestion Control", slides, 2009
//! (Slides below). They cite the TCP evaluation suite for the round-trip times (L. Andrew et al.,
//! "Towards a Common TCP Evaluation Suite", PFLDnet 2008; draft-irtf-iccrg-tcpeval). Three hosts
//! are on each side of one link, 0, 12 and 25 ms away on the left and 2, 37 and 75 ms on the right.
//! They make nine pairs: 4, 28, 54, 74, 98, 124, 150, 174 and 200 ms.
//!
//! Initiators are on both sides, so data and acks share each direction of the link. The load is
//! offered in each direction, as a share of the link's rate: payload, or all bytes on the link
//! ([`LoadCounts`]). The vectors are drawn by [`WebVectors`] or read from a trace.
//!
//! A scheme that needs routers gets its own: RCP routers that stamp, Quick-Start those that
//! `--routers` names (Target if it names none). All others get routers that only forward.
//!
//! There are two parties of connections; a random draw assigns each connection to one. In a mixture
//! the one runs the scheme under test and the other the reference. In a run alone both run the
//! same, and `beside.` has the same connections as in the mixture.
//!
//! # Limits
//!
//! Access links have a delay and no rate, so a burst arrives at the link all at once; in the suite
//! they have ten times its rate.

mod vector_file;

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args;
use headstart_sim::vectors::web::{WebSpec, WebVectors};
use headstart_sim::vectors::{self, Side, Vector};
use headstart_sim::workload::PageReport;
use headstart_sim::workload::conversations::{ConversationSpec, Conversations};
use headstart_sim::{
    Access, Chain, ChainLink, ChainSpec, FlowReport, Grant, Group, Scenario, Seed, TcpConfig,
};
use headstart_startup::Startup as _;
use headstart_startup::catalogue::{Entry, Needs};
use headstart_startup::scheme::quick_start;
use headstart_units::{Bytes, Rate, Span, Time};

use crate::carrier::{Detail, Observer, model};
use crate::options::IpOptions;
use crate::options::RouterName;
use crate::quick_start as chain;
use crate::setup::Setup;
use crate::study::{Case, Declared, Measure, Measured, Study};
pub use vector_file::{LoadCounts, VectorFile};

/// One-way delays of both sides' hosts in milliseconds (draft-irtf-iccrg-tcpeval, basic scenario).
const LEFT: [u64; 3] = [0, 12, 25];
const RIGHT: [u64; 3] = [2, 37, 75];
/// Initial window of the TCP of that time, in segments (RFC 3390).
const INITIAL_WINDOW: u64 = 3;
const PAIRS: u16 = (LEFT.len() * RIGHT.len()) as u16;

/// Segments that Linux acknowledges one by one at the start of a connection.
const QUICK_ACKS: u64 = 16;

/// Classes of epochs by size: name, and the largest. The bounds are windows of 3 and of 10 segments
/// of 1460 bytes, and 100 kB.
const CLASSES: [(&str, u64); 4] =
    [("short", 3 * 1460), ("medium", 10 * 1460), ("long", 100_000), ("large", u64::MAX)];

const PARTY_MEASURES: &[Measure] = &[
    Measure::new("epoch", "ms", "mean duration of an epoch"),
    Measure::new("short", "ms", "mean duration of an epoch that three segments carry"),
    Measure::new("medium", "ms", "mean duration of an epoch that ten segments carry and three do not"),
    Measure::new("long", "ms", "mean duration of a larger epoch up to 100 kB"),
    Measure::new("large", "ms", "mean duration of an epoch above 100 kB"),
    Measure::new("epochs", "", "epochs"),
];

const RUN_MEASURES: &[Measure] = &[
    Measure::new("loss", "%", "packets that the link dropped in both directions, of those offered to it"),
    Measure::new("utilisation", "%", "bytes that the link carried in both directions, of what it could"),
    Measure::new("stacks", "", "TCP stacks alive at the same time, at most"),
    Measure::new("connections", "", "half-connections"),
    Measure::new("requests", "", "Quick-Start requests, those in the middle of connections included"),
    Measure::new("approved", "%", "requests in handshakes that all routers approved, of those made"),
    Measure::new("by-size/...", "ms", "mean duration of an epoch, by its bytes"),
    Measure::new("by-rtt/...", "ms", "mean duration of an epoch, by the path's round-trip time in ms"),
];

/// Prefix of the other party's numbers.
const BESIDE: &str = "beside.";

/// Connections to replay, and their parameters.
#[derive(Args, Clone, Debug)]
pub struct ConnectionVectorParams {
    /// Connection vectors of a trace (Tmix) instead of drawn ones
    #[arg(long, value_name = "FILE")]
    vectors: Option<VectorFile>,
    /// Replayed connections stay open for so long after their last data
    #[arg(long, default_value = "0 s", value_name = "TIME")]
    linger: Span,
    /// Unit of the load of replayed connections
    #[arg(long, default_value = "payload", value_name = "WHAT")]
    load_counts: LoadCounts,
}

impl Study for ConnectionVectorParams {
    const NAME: &'static str = "connection-vectors";
    const ABOUT: &'static str =
        "connection vectors over a dumbbell of nine round-trip times (fast-startup slides)";
    const NEEDS: Detail = Detail::Topology;
    const DECLARED: &'static [Declared] = &[
        Declared { prefixes: &["", BESIDE], measures: PARTY_MEASURES },
        Declared { prefixes: &[""], measures: RUN_MEASURES },
    ];

    fn run(&self, case: &Case<'_>) -> Result<Measured> {
        Ok(play(self, case).into_iter().collect())
    }
}

fn play(params: &ConnectionVectorParams, case: &Case<'_>) -> Vec<(String, f64)> {
    let Case { setup, mix, seed } = *case;
    let seed = Seed(seed);
    let until = Time::ZERO + setup.run.duration;
    let rate = setup.path.rate;
    let chain = dumbbell(setup, rate);
    let parties = [mix.tested, mix.beside.unwrap_or(mix.tested)];
    let routers =
        parties.iter().map(|entry| routers(setup, entry)).max_by_key(|name| *name != RouterName::None);
    let routing = &setup.path.routing;
    let router = |rate: Rate| routing.router(routers.unwrap_or(RouterName::None), rate);
    let Chain { path, links, .. } = chain.build(router, seed.child("path"));
    let classes = 2 * usize::from(PAIRS);
    let groups: Vec<Group> =
        parties.iter().flat_map(|entry| (0..classes).map(|_| group(setup, entry))).collect();
    let spec = ConversationSpec {
        vectors: drawn(params, setup, seed).into(),
        until,
        pairs: PAIRS,
        parties: parties.len() as u16,
        linger: params.linger,
        size_known: true,
    };
    let scenario = Scenario {
        path,
        groups,
        workload: Box::new(Conversations::new(spec, seed)),
        until: until + setup.run.drain,
    };
    let epochs = Epochs { warm_up: Time::ZERO + setup.run.warm_up, ..Epochs::default() };
    let finished = model::simulate(scenario, epochs);
    let recorder = &finished.recorder;

    let is_beside = |group: u16| usize::from(group) >= classes;
    let mut numbers = recorder.party("", |group| mix.beside.is_none() || !is_beside(group));
    numbers.extend(recorder.party(BESIDE, is_beside));
    let packet_counts = || finished.path.packet_counts().map(|(_, counts)| counts);
    let of_links = |number: u16| {
        let there = |(there, back): &(u16, u16)| [*there, *back].contains(&number);
        links.iter().any(there)
    };
    let link =
        || (0_u16..).zip(packet_counts()).filter(|(number, _)| of_links(*number)).map(|(_, counts)| counts);
    let dropped: u64 = link().map(|counts| counts.total_dropped()).sum();
    let offered: u64 = link().map(|counts| counts.offered).sum();
    let carried: u64 = link().map(|counts| counts.delivered_bytes).sum();
    let could = (rate * setup.run.duration).get() as f64 * 2.0;
    numbers.extend(
        [
            ("loss", 100.0 * dropped as f64 / offered.max(1) as f64),
            ("utilisation", 100.0 * carried as f64 / could.max(1.0)),
            ("stacks", finished.summary.peak_flows as f64),
            ("connections", finished.summary.flows as f64),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    numbers.extend(recorder.of_run());
    let rtts: Vec<Span> = (0..classes).map(|class| chain.rtt(class)).collect();
    numbers.extend(recorder.profiles(|group| rtts[usize::from(group) % classes]));
    numbers
}

fn dumbbell(setup: &Setup, rate: Rate) -> ChainSpec {
    let millis = Span::from_millis;
    let access = |left: u64, right: u64| Access { server: millis(left), client: millis(right) };
    let pairs = || RIGHT.iter().flat_map(|right| LEFT.iter().map(|left| (*left, *right)));
    let limit = setup.path.buffer.limit(rate, setup.rtt());
    ChainSpec {
        links: vec![ChainLink { rate, delay: Span::ZERO, limit, discipline: setup.path.queue }],
        forward: pairs().map(|(left, right)| access(left, right)).collect(),
        backward: pairs().map(|(left, right)| access(right, left)).collect(),
        option_filter: setup.path.ip_options.map(IpOptions::params),
    }
}

/// The vectors that make up the load.
fn drawn(options: &ConnectionVectorParams, setup: &Setup, seed: Seed) -> Vec<Vector> {
    let (duration, config) = (setup.run.duration, chain::tcp(setup));
    let amount: Bytes = setup.path.rate * setup.workload.load * duration * 2;
    let weight = |vector: &Vector| match options.load_counts {
        LoadCounts::Payload => vector.payload(),
        LoadCounts::Link => carried(vector, &config),
    };
    let spec = WebSpec::default();
    match &options.vectors {
        Some(file) => vectors::offered(file.vectors.iter().cloned(), amount, duration, weight),
        None => vectors::offered(WebVectors::new(spec, seed.child("vectors")), amount, duration, weight),
    }
}

/// Bytes on the link for a connection without losses, in both directions together. Acks are counted
/// as Linux sends them: the first 16 segments of a direction are acknowledged one by one, the
/// others two by two.
fn carried(vector: &Vector, config: &TcpConfig) -> Bytes {
    let (mss, header) = (config.mss.get().max(1), config.header);
    let mut all = config.syn * 2 + header;
    for from in [Side::Initiator, Side::Acceptor] {
        let own = || vector.units.iter().filter(|unit| unit.from == from);
        let segments: u64 = own().map(|unit| unit.bytes.get().div_ceil(mss)).sum();
        let acks = segments.min(QUICK_ACKS) + segments.saturating_sub(QUICK_ACKS).div_ceil(2);
        all += own().map(|unit| unit.bytes).sum::<Bytes>() + header * (segments + acks);
    }
    all
}

fn routers(setup: &Setup, entry: &Entry) -> RouterName {
    match (entry.needs, entry.scheme().requirements().rate_stamps, setup.path.routers) {
        (Needs::Routers, true, _) => RouterName::Rcp,
        (Needs::Routers, false, RouterName::None | RouterName::Rcp) => RouterName::Target,
        (Needs::Routers, false, other) => other,
        _ => RouterName::None,
    }
}

/// Senders of a class of hosts, as in the Quick-Start paper's chain. But a request in a handshake
/// assumes a round-trip time of 100 ms (RFC 4782 §4.1), and after an idle time senders restart from
/// their first initial window.
fn group(setup: &Setup, entry: &Entry) -> Group {
    let mut group = chain::group(setup, entry, quick_start::Params::default().assumed_rtt);
    group.tcp.restart_window = group.scheme.requirements().initial_segments.unwrap_or(INITIAL_WINDOW);
    group
}

#[derive(Debug, Default)]
struct Epochs {
    warm_up: Time,
    /// Group, duration in ms, bytes.
    epochs: Vec<(u16, f64, u64)>,
    flows: Vec<FlowReport>,
}

impl Observer for Epochs {
    fn page(&mut self, report: &PageReport) {
        if report.began_at >= self.warm_up {
            let took = report.ended_at.since(report.began_at).as_millis_f64();
            self.epochs.push((report.group, took, report.bytes.get()));
        }
    }

    fn flow(&mut self, report: &FlowReport) {
        self.flows.push(*report);
    }
}

impl Epochs {
    fn party(&self, prefix: &str, is_of: impl Fn(u16) -> bool) -> Vec<(String, f64)> {
        let mut numbers = vec![];
        let mut add = |name: &str, value: f64| numbers.push((format!("{prefix}{name}"), value));
        let own: Vec<(f64, u64)> = self
            .epochs
            .iter()
            .filter(|(group, ..)| is_of(*group))
            .map(|(_, took, bytes)| (*took, *bytes))
            .collect();
        let mut least = 0;
        for (name, most) in CLASSES {
            let class = |bytes: u64| (least..=most).contains(&bytes);
            add(name, mean(own.iter().filter(|(_, bytes)| class(*bytes)).map(|(took, _)| *took)));
            least = most.saturating_add(1);
        }
        add("epoch", mean(own.iter().map(|(took, _)| *took)));
        add("epochs", own.len() as f64);
        numbers
    }

    fn of_run(&self) -> Vec<(String, f64)> {
        let (mut requests, mut approved, mut later) = (0_u64, 0_u64, 0_u64);
        for flow in &self.flows {
            later += u64::from(flow.later_requests.0);
            match flow.grant {
                Grant::NotRequested | Grant::Unstamped => {}
                Grant::Denied(_) => requests += 1,
                Grant::Granted(_) => {
                    requests += 1;
                    approved += 1;
                }
            }
        }
        vec![
            ("requests".to_owned(), (requests + later) as f64),
            ("approved".to_owned(), 100.0 * approved as f64 / requests as f64),
        ]
    }

    fn profiles(&self, rtt: impl Fn(u16) -> Span) -> Vec<(String, f64)> {
        let mut sizes: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut rtts: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (group, took, bytes) in &self.epochs {
            // Powers of two, named by their geometric middle.
            let power = 1_u64 << bytes.max(&1).ilog2();
            sizes.entry(power * 1414 / 1000).or_default().push(*took);
            rtts.entry(rtt(*group).as_nanos() / 1_000_000).or_default().push(*took);
        }
        let named = |family: &str, bins: BTreeMap<u64, Vec<f64>>| -> Vec<(String, f64)> {
            bins.into_iter().map(|(bin, took)| (format!("{family}/{bin}"), mean(took.into_iter()))).collect()
        };
        let mut numbers = named("by-size", sizes);
        numbers.extend(named("by-rtt", rtts));
        numbers
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0_u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use crate::schemes;

    use super::*;
    use crate::catalogue as studies;
    use crate::settings::prepared;
    use crate::setup::SchemeMix;
    use crate::study::{Numbers, PreparedStudy};

    fn study(load: &str) -> PreparedStudy {
        counting(load, "payload")
    }

    fn counting(load: &str, counts: &str) -> PreparedStudy {
        let text = format!(
            "path = {{ rate = \"10 Mbit/s\", buffer = \"50 packets\" }}\nworkload = {{ load = \"{load}\", load-counts = \"{counts}\" }}\n\
             run = {{ duration = \"20 s\", drain = \"20 s\" }}"
        );
        prepared("connection-vectors", &text)
    }

    fn played(name: &str, beside: Option<&str>, load: &str) -> Numbers {
        let find = |name| schemes::find(name).expect("a scheme");
        let mix = SchemeMix { tested: find(name), beside: beside.map(find) };
        study(load).run(mix, 3).expect("it runs")
    }

    #[test]
    fn the_nine_round_trip_times_are_the_suites_in_both_directions() {
        let spec = dumbbell(&study("10 %").setup, Rate::from_mbit_per_sec(10));
        let rtts: Vec<u64> = (0..18).map(|class| spec.rtt(class).as_nanos() / 1_000_000).collect();
        assert_eq!(rtts[..9], [4, 28, 54, 74, 98, 124, 150, 174, 200]);
        assert_eq!(rtts[9..], rtts[..9]);
    }

    #[test]
    fn numbers_are_those_that_are_declared() {
        for (name, beside) in
            [("iw3", None), ("quick-start(initial-window=3,header=40B)", Some("iw3")), ("rcp", None)]
        {
            let numbers = played(name, beside, "20 %");
            assert!(numbers.len() > 30, "{name}: {}", numbers.len());
        }
        let study = studies::find("connection-vectors").expect("a study");
        for name in ["", "mean", "beside.loss", "by-size/large", "beside.by-size/1448"] {
            assert!(!study.measures(name), "{name}");
        }
    }

    #[test]
    fn the_load_is_payload_in_each_direction() {
        let numbers = played("iw3", None, "40 %");
        // Headers, acks and handshakes are not counted in the load.
        assert!((40.0..52.0).contains(&numbers["utilisation"]), "{}", numbers["utilisation"]);
    }

    #[test]
    fn the_load_of_the_link_is_all_that_it_carries_but_what_is_sent_again() {
        let mix = SchemeMix { tested: schemes::find("iw3").expect("a scheme"), beside: None };
        let numbers = counting("40 %", "link").run(mix, 3).expect("it runs");
        // Eight seeds gave 38.8 to 39.8: the end of the run cuts off large answers.
        assert!((37.0..41.5).contains(&numbers["utilisation"]), "{}", numbers["utilisation"]);
    }

    /// A request of one segment and an answer of 18: 19 headers, one ack and 17 acks, two packets
    /// of the handshake and the ack of it.
    #[test]
    fn a_connection_is_carried_with_its_headers_acks_and_handshake() {
        let setup = counting("10 %", "link").setup;
        let config = chain::tcp(&setup);
        let text = format!("SEQ 0 1\n> 300\nt 10\n< {}\n", 18 * config.mss.get());
        let vector = vectors::read::from_bytes(text.as_bytes()).expect("fine").remove(0);
        let header = config.header;
        let expected = Bytes::new(300) + config.mss * 18 + header * (19 + 1 + 17) + config.syn * 2 + header;
        assert_eq!(carried(&vector, &config), expected);
    }

    #[test]
    fn a_mixture_and_a_run_alone_have_the_same_epochs_of_the_same_party() {
        let (alone, mixed) = (played("iw3", None, "20 %"), played("iw10", Some("iw3"), "20 %"));
        // A slower connection completes fewer epochs before the end.
        let (one, other) = (alone["beside.epochs"], mixed["beside.epochs"]);
        assert!((one - other).abs() < 0.02 * one, "{one} and {other}");
        assert!((alone["epochs"] - mixed["epochs"] - mixed["beside.epochs"]).abs() < 0.02 * alone["epochs"]);
    }

    #[test]
    fn schemes_that_need_routers_get_their_own() {
        let setup = study("10 %").setup;
        let of = |name| routers(&setup, schemes::find(name).expect("a scheme"));
        assert_eq!(of("quick-start(initial-window=3,header=40B)"), RouterName::Target);
        assert_eq!(of("rcp"), RouterName::Rcp);
        assert_eq!(of("jump-start(cap=64KiB,min-window=3)"), RouterName::None);
        let numbers = played("quick-start(initial-window=3,header=40B)", None, "10 %");
        assert!(numbers["requests"] > 100.0 && numbers["approved"] > 1.0, "{numbers:?}");
    }
}
