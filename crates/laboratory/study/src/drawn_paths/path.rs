//! A path with its traffic, and its run with a scheme.

use headstart_net::{Direction, ElementPlan, PathPlan, RouterPlan};
use headstart_sim::random::Random;
use headstart_sim::sizes::Sizes;
use headstart_sim::tcp::config::Probe;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::page::{Fetch, Object, PageSpec, Pages};
use headstart_sim::workload::{Mixed, Opener, PageReport, Workload};
use headstart_sim::{
    Collector, FlowReport, Group, InformedStart, Path, PathBuilder, Recorder, Scenario, Seed, Simulation,
    TcpConfig, peer_address,
};
use headstart_startup::catalogue::{self, Needs};
use headstart_startup::history::{FixedHash, MemoryStore, Record, RecordUpdate, Revision, Store};
use headstart_startup::prior::{Access, Hint};
use headstart_startup::quick_start::router;
use headstart_startup::{Scheme, Startup, rcp};
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use super::bound::shortest_first;

/// The scheme under test, the concurrent `iw10`, and the long flows.
const GROUPS: usize = 3;
const TESTED: u16 = 0;
const BESIDE: u16 = 1;
const LONG: u16 = 2;

/// Totals, and the opening and size of every flow under test.
#[derive(Debug)]
struct Watch {
    totals: Collector,
    opened: Vec<(Time, Bytes)>,
    /// Completion times of flows of more than ten segments: how many, and their sum.
    larger: (u32, Span),
}

impl Recorder for Watch {
    fn flow(&mut self, report: &FlowReport) {
        self.totals.flow(report);
        if report.group == TESTED {
            self.opened.push((report.opened_at, report.written));
            let took = report.completion_time().filter(|_| report.written > TEN_SEGMENTS);
            if let Some(took) = took {
                self.larger = (self.larger.0 + 1, self.larger.1 + took);
            }
        }
    }

    fn page(&mut self, report: &PageReport) {
        self.totals.page(report);
    }
}

/// Flows up to this size leave at once with most schemes, so that no start makes them faster.
const TEN_SEGMENTS: Bytes = Bytes::new(14_480);

/// Flows of `iw10` that cross the last link of the path alone.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    /// Of that link.
    pub rate: Rate,
    /// Share of it that they offer.
    pub load: f64,
}

/// A path with its traffic.
#[derive(Clone, Debug)]
pub struct DrawnPath {
    /// Values of the path, for tables.
    pub text: String,
    /// The path. Its first element in the direction of the data is a link.
    pub plan: PathPlan,
    /// Rate of that link.
    pub rate: Rate,
    /// Buffer of that link.
    pub buffer: Bytes,
    /// Time of the change of that rate, if it changes, and the new rate.
    pub change: Option<(Time, Rate)>,
    /// Share of that rate that flows offer.
    pub load: f64,
    /// Sizes of flows.
    pub sizes: Sizes,
    /// Objects of pages, and the connections that fetch them; otherwise single flows.
    pub pages: Option<(Vec<Vec<Object>>, Fetch)>,
    /// Number of peers, drawn for each flow.
    pub peers: u32,
    /// Most records of the history.
    pub history: usize,
    /// Each peer's record begins with a credit of 20 MB.
    pub is_poisoned: bool,
    /// Bandwidth that clients hint, if they do.
    pub hint: Option<Rate>,
    /// Share of the peers that hint it; `None`: all to a scheme that needs hints, none to others.
    pub hint_share: Option<Ratio>,
    /// Hints of the others, as a multiple of it.
    pub hint_lie: Option<Ratio>,
    /// Number of long flows from the beginning to the end.
    pub long: u32,
    /// Scheme of the long flows.
    pub long_scheme: &'static str,
    /// Other traffic.
    pub crossing: Option<Crossing>,
    /// Half of the flows are of `iw10`.
    pub mixed: bool,
    /// Flows arrive for so long.
    pub duration: Span,
    /// Transport of all.
    pub tcp: TcpConfig,
    /// Seed of all random draws.
    pub seed: Seed,
}

/// Numbers of a run, of the flows under test unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Mean completion time in ms, of pages where there are pages. 0: nothing was finished.
    pub mean_ms: f64,
    /// As `mean_ms`, of flows of more than ten segments; 0: of none.
    pub larger_ms: f64,
    /// Median completion time in ms.
    pub p50_ms: f64,
    /// 99th percentile of completion times in ms.
    pub p99_ms: f64,
    /// Flows or pages that were finished.
    pub finished: u64,
    /// Flows or pages that were not finished.
    pub unfinished: u64,
    /// Share of packets lost.
    pub loss: f64,
    /// Share of packets that were lost of first flights.
    pub first_flight_loss: f64,
    /// Goodput of the long flows in Mbit/s.
    pub long_mbit: f64,
    /// Mean completion time in ms of the concurrent flows of `iw10`.
    pub beside_ms: f64,
    /// Mean in ms of the best order of service ([`shortest_first`]), of a page as if it were alone.
    pub least_ms: f64,
}

impl DrawnPath {
    /// Twenty peers, flows of 100 kB and nothing else on a path.
    #[must_use]
    pub fn new(plan: PathPlan, rate: Rate, buffer: Bytes, seed: Seed) -> Self {
        Self {
            text: String::new(),
            plan,
            rate,
            buffer,
            change: None,
            load: 0.25,
            sizes: Sizes::Fixed(Bytes::new(100_000)),
            pages: None,
            peers: 20,
            history: 1000,
            is_poisoned: false,
            hint: Some(rate),
            hint_share: None,
            hint_lie: None,
            long: 0,
            long_scheme: "iw10",
            crossing: None,
            mixed: false,
            duration: Span::from_secs(600),
            tcp: TcpConfig::default(),
            seed,
        }
    }

    /// A run with this scheme, on a path whose routers take part if it needs that.
    #[must_use]
    pub fn run(&self, scheme: Scheme) -> Outcome {
        self.run_on(&self.with_routers(scheme), scheme, None)
    }

    /// A run whose starts are told the state of the path.
    #[must_use]
    pub fn run_informed(&self, start: Box<dyn InformedStart>) -> Outcome {
        self.run_on(&self.plan, by_name("iw10"), Some(start))
    }

    fn with_routers(&self, scheme: Scheme) -> PathPlan {
        let mut path = self.plan.clone();
        let plan = match scheme.about().needs {
            Needs::Routers if scheme.requirements().rate_stamps => {
                RouterPlan::Rcp(rcp::Params::new(self.rate))
            }
            Needs::Routers => RouterPlan::QuickStart(router::Params::new(self.rate)),
            _ => return path,
        };
        if let Some(ElementPlan::Link(link)) = path.down.first_mut().filter(|_| self.change.is_none()) {
            link.router = Some(plan);
        }
        path
    }

    /// Elements of the path. Crossing traffic is a class of hosts of its own.
    fn build(&self, plan: &PathPlan) -> Path {
        if self.crossing.is_none() {
            return Path::new(plan, self.seed);
        }
        let mut builder = PathBuilder::default();
        let (mut down, mut up) = (vec![0; plan.down.len()], vec![0; plan.up.len()]);
        for placed in plan.elements(self.seed) {
            let number = builder.element(placed.name, placed.plan.build(placed.seed));
            match placed.direction {
                Direction::Down => down[placed.position] = number,
                Direction::Up => up[placed.position] = number,
            }
        }
        let last = down.last().copied().into_iter().collect();
        builder.class(down, up.clone()).class(last, up);
        builder.build()
    }

    fn run_on(&self, plan: &PathPlan, scheme: Scheme, informed: Option<Box<dyn InformedStart>>) -> Outcome {
        let tcp = TcpConfig { probe: Probe::Quic, ..self.tcp };
        let named = |bandwidth| Hint { bandwidth, access: Access::Unknown };
        let other_hint = self.hint.zip(self.hint_lie).map(|(rate, factor)| named(rate * factor));
        let usual = |scheme: &Scheme| match scheme.about().needs {
            Needs::Hint => Ratio::ONE,
            _ => Ratio::percent(0),
        };
        let group = |scheme| Group {
            hint: self.hint.map(named),
            hint_share: self.hint_share.unwrap_or(usual(&scheme)),
            other_hint,
            history_capacity: self.history,
            ..Group::new(scheme, tcp)
        };
        let end = Time::ZERO + self.duration + if self.long > 0 { Span::ZERO } else { Span::from_secs(20) };
        let scenario = Scenario {
            path: self.build(plan),
            groups: vec![group(scheme), group(by_name("iw10")), group(by_name(self.long_scheme))],
            workload: Box::new(Mixed::new(self.workloads())),
            until: end,
        };
        let collector =
            Watch { totals: Collector::new(GROUPS, Time::ZERO), opened: vec![], larger: (0, Span::ZERO) };
        let mut simulation = Simulation::new(scenario, collector);
        if let Some(start) = informed {
            simulation = simulation.with_informed_start(TESTED, start);
        }
        if self.is_poisoned {
            simulation = simulation.with_history(TESTED, self.poisoned());
        }
        let Watch { totals: Collector { groups, .. }, opened, larger } = simulation.run().recorder;
        let [tested, beside, long] = &groups[..] else { unreachable!("as many groups as were given") };
        let times = if self.pages.is_some() { &tested.pages } else { &tested.completion };
        let ms = |span: Option<Span>| span.map_or(0.0, |span| span.as_nanos() as f64 / 1e6);
        let counts = &tested.counts;
        let packets = counts.packets_sent.max(1) as f64;
        Outcome {
            mean_ms: ms(times.mean()),
            larger_ms: match larger {
                _ if self.pages.is_some() => ms(times.mean()),
                (count, sum) => ms((count > 0).then(|| sum / u64::from(count))),
            },
            p50_ms: ms(times.quantile(500)),
            p99_ms: ms(times.quantile(990)),
            finished: times.count(),
            unfinished: tested.unfinished,
            loss: counts.lost as f64 / packets,
            first_flight_loss: counts.first_flight_lost as f64 / 1448.0 / packets,
            long_mbit: long.delivered.get() as f64 * 8e-6 / (self.duration.as_nanos() as f64 * 1e-9),
            beside_ms: ms(beside.completion.mean()),
            least_ms: self.least_ms(opened, end),
        }
    }

    fn workloads(&self) -> Vec<Box<dyn Workload>> {
        let until = Time::ZERO + self.duration;
        let groups = if self.mixed { vec![(TESTED, 1), (BESIDE, 1)] } else { vec![(TESTED, 1)] };
        let load = Rate::from_bytes_per_sec((self.rate.as_bytes_per_sec() as f64 * self.load) as u64);
        let seed = self.seed.child("workload");
        let short: Box<dyn Workload> = match &self.pages {
            Some((pages, fetch)) => {
                let bytes: Bytes = pages.iter().flatten().map(|object| object.bytes).sum();
                let gap = bytes / pages.len() as u64 / load;
                let (pages, peers) = (pages.clone(), self.peers);
                let again = (0, Span::ZERO);
                let spec = PageSpec { pages, fetches: vec![*fetch], gap, until, groups, peers, again };
                Box::new(Pages::new(spec, seed))
            }
            None => Box::new(Arrivals::new(
                ArrivalSpec {
                    gaps: GapSpec::Poisson(self.sizes.gap_at(load)),
                    sizes: self.sizes.clone(),
                    until,
                    groups,
                    classes: self.plan.access.len() as u16,
                    peers: self.peers,
                    opener: Opener::Sender,
                },
                seed,
            )),
        };
        let mut parts = vec![short];
        if let Some(crossing) = self.crossing {
            let bytes = Bytes::new(100_000);
            let offered = crossing.rate.as_bytes_per_sec() as f64 * crossing.load;
            let gap = bytes / Rate::from_bytes_per_sec(offered as u64).max(Rate::from_bytes_per_sec(1));
            let mut gaps = Random::new(self.seed.child("crossing"));
            let (mut starts, mut at) = (vec![], Time::ZERO + gaps.exponential(gap));
            while at < until {
                starts.push(Start { at, group: BESIDE, class: 1, bytes, size_known: true });
                at += gaps.exponential(gap);
            }
            parts.push(Box::new(Listed::new(starts, Opener::Sender)));
        }
        if self.long > 0 {
            let bytes = self.rate * self.duration * 4 + Bytes::new(1_000_000);
            let start = |number| Start {
                at: Time::from_millis(number * 100),
                group: LONG,
                class: 0,
                bytes,
                size_known: false,
            };
            parts.push(Box::new(Listed::new((0..u64::from(self.long)).map(start).collect(), Opener::Sender)));
        }
        parts
    }

    fn least_ms(&self, opened: Vec<(Time, Bytes)>, end: Time) -> f64 {
        let rtt = self.plan.rtt(0);
        let seconds = match &self.pages {
            Some((pages, _)) => {
                let bytes = pages[0].iter().map(|object| object.bytes.get()).sum::<u64>() as f64;
                let fastest = self.change.map_or(self.rate, |(_, rate)| rate.max(self.rate));
                rtt.as_nanos() as f64 * 2e-9 + bytes * 1500.0 / 1448.0 / fastest.as_bytes_per_sec() as f64
            }
            None => shortest_first(opened, self.rate, self.change, rtt, end),
        };
        seconds * 1e3
    }

    /// A history of records that allow a first flight of 20 MB.
    fn poisoned(&self) -> MemoryStore {
        let mut history = MemoryStore::new(self.history, FixedHash::default());
        let huge = Bytes::new(20_000_000);
        let revision = Revision::to(huge);
        for peer in 0..self.peers {
            let (_, mut lease) = history.open(peer_address(peer));
            history.reserve(&mut lease, &mut |_| Bytes::new(1));
            history.release(&mut lease, &revision);
            let record = Record { btl_bw: self.rate * 100, rt_prop: self.plan.rtt(0), ..Record::default() };
            history.close(lease, RecordUpdate::Replace(record));
        }
        history
    }
}

fn by_name(name: &str) -> Scheme {
    catalogue::find(name).expect("it is in the catalogue").scheme()
}

/// Numbers between 0 and 1, in order.
pub fn units(seed: Seed) -> impl FnMut() -> f64 {
    let mut random = Random::new(seed);
    move || random.draw() as f64 / u64::MAX as f64
}

/// The value at `share` of the way between two, in their logarithms.
pub fn between(from: f64, to: f64, share: f64) -> f64 {
    (from.ln() + (to / from).ln() * share).exp()
}
