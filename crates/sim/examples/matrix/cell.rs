//! A path with its traffic, and its run with a scheme.

use headstart_net::{ElementPlan, PathPlan, RouterPlan};
use headstart_sim::random::Random;
use headstart_sim::sizes::Sizes;
use headstart_sim::tcp::config::Probe;
use headstart_sim::workload::arrivals::{ArrivalSpec, Arrivals, GapSpec};
use headstart_sim::workload::long::{Listed, Start};
use headstart_sim::workload::page::{Fetch, Object, PageSpec, Pages};
use headstart_sim::workload::{Mixed, Opener, PageReport, Workload};
use headstart_sim::{
    Collector, FlowReport, Group, Path, Recorder, Scenario, Seed, Simulation, TcpConfig, peer_address,
};
use headstart_startup::catalogue::{self, Needs};
use headstart_startup::history::{
    FixedHash, FlightOutcome, MemoryStore, Record, RecordUpdate, Revision, Store,
};
use headstart_startup::prior::{Access, Hint};
use headstart_startup::quick_start::router;
use headstart_startup::{Scheme, Startup, base, rcp};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::clairvoyant::{Clairvoyant, shortest_first};

/// The scheme under test, `iw10` beside it, and the long flows.
const GROUPS: usize = 3;

/// A scheme of the catalogue; none: the informed start.
#[derive(Clone, Copy, Debug)]
pub struct Tested(Option<Scheme>);

impl Tested {
    /// The one named: `clairvoyant`, or a name of the catalogue.
    pub fn find(text: &str) -> Result<Self, String> {
        match text {
            "clairvoyant" => Ok(Self(None)),
            _ => catalogue::find(text).map(|entry| Self(Some(entry.scheme()))).map_err(|it| it.to_string()),
        }
    }
}

/// Totals, and the opening and size of every flow under test.
#[derive(Debug)]
struct Watch {
    totals: Collector,
    opened: Vec<(Time, Bytes)>,
}

impl Recorder for Watch {
    fn flow(&mut self, report: &FlowReport) {
        self.totals.flow(report);
        if report.group == 0 {
            self.opened.push((report.opened_at, report.written));
        }
    }

    fn page(&mut self, report: &PageReport) {
        self.totals.page(report);
    }
}

pub struct Cell {
    pub text: String,
    pub path: PathPlan,
    /// Of the first link, as its buffer.
    pub rate: Rate,
    pub buffer: Bytes,
    pub change: Option<(Time, Rate)>,
    pub load: f64,
    pub sizes: Sizes,
    /// Objects of pages, and the connections that fetch them; otherwise single flows.
    pub pages: Option<(Vec<Vec<Object>>, Fetch)>,
    pub peers: u32,
    pub history: usize,
    /// Each peer's record begins with a credit of 20 MB.
    pub is_poisoned: bool,
    pub hint: Rate,
    pub long: u32,
    pub long_scheme: &'static str,
    pub mixed: bool,
    pub duration: Span,
    pub tcp: TcpConfig,
    pub seed: Seed,
}

impl Cell {
    /// A mean in ms that no scheme could be below: that of the best order of service
    /// ([`shortest_first`]), of a page as if it were alone.
    fn least_ms(&self, opened: Vec<(Time, Bytes)>, end: Time) -> f64 {
        let rtt = self.path.rtt(0);
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

    fn path(&self, tested: Tested) -> PathPlan {
        let mut path = self.path.clone();
        let Some(scheme) = tested.0 else { return path };
        let plan = match scheme.about().needs {
            Needs::Routers if scheme.requires_rate_stamps() => RouterPlan::Rcp(rcp::Params::new(self.rate)),
            Needs::Routers => RouterPlan::QuickStart(router::Params::new(self.rate)),
            _ => return path,
        };
        if let Some(ElementPlan::Link(link)) = path.down.first_mut().filter(|_| self.change.is_none()) {
            link.router = Some(plan);
        }
        path
    }

    /// One line of the results.
    pub fn run(&self, tested: Tested) -> String {
        let tcp = TcpConfig { probe: Probe::Quic, ..self.tcp };
        let hint = Some(Hint { bandwidth: self.hint, access: Access::Unknown });
        let group =
            |scheme| Group { scheme, base: base::Kind::Cubic, tcp, hint, history_capacity: self.history };
        let real = |name: &str| catalogue::find(name).expect("it is in the catalogue").scheme();
        let iw10 = real("iw10");
        let until = Time::ZERO + self.duration;
        let groups = if self.mixed { vec![(0, 1), (1, 1)] } else { vec![(0, 1)] };
        let load = Rate::from_bytes_per_sec((self.rate.as_bytes_per_sec() as f64 * self.load) as u64);
        let seed = self.seed.child("workload");
        let short: Box<dyn Workload> = match &self.pages {
            Some((pages, fetch)) => {
                let bytes: Bytes = pages.iter().flatten().map(|object| object.bytes).sum();
                let gap = bytes / pages.len() as u64 / load;
                let (pages, peers) = (pages.clone(), self.peers);
                Box::new(Pages::new(
                    PageSpec { pages, fetches: vec![*fetch], gap, until, groups, peers },
                    seed,
                ))
            }
            None => Box::new(Arrivals::new(
                ArrivalSpec {
                    gaps: GapSpec::Poisson(self.sizes.gap_at(load)),
                    sizes: self.sizes.clone(),
                    until,
                    groups,
                    classes: self.path.access.len() as u16,
                    peers: self.peers,
                    opener: Opener::Sender,
                },
                seed,
            )),
        };
        let mut parts = vec![short];
        if self.long > 0 {
            let bytes = self.rate * self.duration * 4 + Bytes::new(1_000_000);
            let start =
                |at| Start { at: Time::from_millis(at * 100), group: 2, class: 0, bytes, size_known: false };
            parts.push(Box::new(Listed::new((0..u64::from(self.long)).map(start).collect(), Opener::Sender)));
        }
        let scheme = tested.0.unwrap_or(iw10);
        let end = until + if self.long > 0 { Span::ZERO } else { Span::from_secs(20) };
        let scenario = Scenario {
            path: Path::new(&self.path(tested), self.seed),
            groups: vec![group(scheme), group(iw10), group(real(self.long_scheme))],
            workload: Box::new(Mixed::new(parts)),
            until: end,
        };
        let collector = Watch { totals: Collector::new(GROUPS, Time::ZERO), opened: vec![] };
        let mut simulation = Simulation::new(scenario, collector);
        if tested.0.is_none() {
            let start = Clairvoyant {
                rate: self.rate,
                change: self.change,
                rtt: self.path.rtt(0),
                buffer: self.buffer,
            };
            simulation = simulation.with_informed_start(0, Box::new(start));
        }
        if self.is_poisoned {
            simulation = simulation.with_history(0, self.poisoned());
        }
        let Watch { totals: Collector { groups, .. }, opened } = simulation.run().recorder;
        let totals = &groups[0];
        let times = if self.pages.is_some() { &totals.pages } else { &totals.completion };
        let ms = |span: Option<Span>| span.map_or(0.0, |span| span.as_nanos() as f64 / 1e6);
        let counts = &totals.counts;
        let packets = counts.packets_sent.max(1) as f64;
        let long = groups[2].delivered.get() as f64 * 8e-6 / (self.duration.as_nanos() as f64 * 1e-9);
        format!(
            "{:.4},{:.4},{:.4},{},{},{:.5},{:.5},{:.4},{:.4},{:.4}",
            ms(times.mean()),
            ms(times.quantile(500)),
            ms(times.quantile(990)),
            times.count(),
            totals.unfinished,
            counts.lost as f64 / packets,
            counts.first_flight_lost as f64 / 1448.0 / packets,
            long,
            ms(groups[1].completion.mean()),
            self.least_ms(opened, end),
        )
    }

    /// A history of records that allow a first flight of 20 MB.
    fn poisoned(&self) -> MemoryStore {
        let mut history = MemoryStore::new(self.history, FixedHash::default());
        let huge = Bytes::new(20_000_000);
        let revision = Revision { start: huge, earned: huge, most: huge, spent: Bytes::ZERO, least: huge };
        for peer in 0..self.peers {
            let (_, mut lease) = history.open(peer_address(peer));
            history.reserve(&mut lease, &mut |_| Bytes::new(1));
            history.release(&mut lease, &revision);
            let record = Record {
                saved_at: Time::ZERO,
                btl_bw: self.rate * 100,
                rt_prop: self.path.rtt(0),
                window: Bytes::ZERO,
                ssthresh: Bytes::MAX,
                outcome: FlightOutcome::Clean,
                credit: Bytes::ZERO,
                handshake_excess: Span::ZERO,
            };
            history.close(lease, RecordUpdate::Replace(record));
        }
        history
    }
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
