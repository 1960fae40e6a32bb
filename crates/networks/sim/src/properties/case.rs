//! A run as data, and its execution.

use crate::tcp::TcpConfig;
use crate::workload::exchange::{Exchange, SessionSpec, Sessions};
use crate::workload::long::{Listed, Start};
use crate::workload::page::{Fetch, Object, PageSpec, Pages};
use crate::workload::{Mixed, Opener, Workload};
use crate::{Group, Path, Recorder, Scenario, Seed, Simulation, Summary};
use headstart_net::burst_loss;
use headstart_net::jitter::Order;
use headstart_net::{ElementPlan, Limit, LinkPlan, PathPlan};
use headstart_startup::base;
use headstart_startup::catalogue::{self, Entry};
use headstart_startup::prior::Hint;
use headstart_units::{Bytes, Rate, Ratio, Span, Time};

/// A plain link.
#[must_use]
pub fn link(rate: Rate, delay: Span, limit: Limit) -> ElementPlan {
    ElementPlan::Link(LinkPlan::new(rate, delay, limit))
}

/// Random loss, each packet for itself.
#[must_use]
pub fn loss(share: Ratio) -> ElementPlan {
    ElementPlan::loss(share)
}

/// Bursts in which everything is lost.
#[must_use]
pub fn bursts(enter: Ratio, leave: Ratio) -> ElementPlan {
    ElementPlan::BurstLoss(burst_loss::Params::all_or_nothing(enter, leave))
}

/// Random extra delay.
#[must_use]
pub fn jitter(bound: Span, order: Order) -> ElementPlan {
    ElementPlan::jitter(bound, order)
}

/// Transfers of a run.
#[derive(Clone, Debug)]
pub enum Transfer {
    /// Flows of a size, at a time in milliseconds.
    Flows(Vec<(u64, u64)>, Opener, bool),
    /// Responses after think times in milliseconds; so many milliseconds between sessions.
    Sessions(Vec<(u64, u64)>, u64),
    /// Objects of an origin and a size.
    Pages(Vec<(u16, u64)>, Fetch, u64),
}

/// A run: path, hosts, settings and transfers.
#[derive(Clone, Debug)]
pub struct Case {
    /// The path of the data.
    pub forward: Vec<ElementPlan>,
    /// The path of the acknowledgements.
    pub reverse: Vec<ElementPlan>,
    /// The senders' scheme.
    pub entry: Entry,
    /// The controller that it hands over to.
    pub base: base::Kind,
    /// Settings of both hosts.
    pub tcp: TcpConfig,
    /// The receiver's hint.
    pub hint: Option<Hint>,
    /// Number of peers that the senders remember.
    pub history_capacity: usize,
    /// Transfers, all at once.
    pub transfer: Vec<Transfer>,
    /// Number of receivers that sessions and pages take in turn.
    pub peers: u32,
    /// Seed of path and transfers.
    pub seed: u64,
}

/// Long enough for every run that makes any progress.
const UNTIL: Time = Time::from_millis(20_000_000_000);
/// No flow, session or page begins later.
const LAST_START: Time = Time::from_millis(4_000);

impl Case {
    /// The path as data.
    ///
    /// # Panics
    /// If no path can be so.
    #[must_use]
    pub fn plan(&self) -> PathPlan {
        let plan =
            PathPlan { down: self.forward.clone(), up: self.reverse.clone(), access: vec![Span::ZERO] };
        plan.check().expect("a path can be so");
        plan
    }

    /// The round-trip time that no packet can undercut.
    #[must_use]
    pub fn least_rtt(&self) -> Span {
        self.plan().rtt(0) + Span::from_nanos(1)
    }

    fn workload(&self, transfer: &Transfer, seed: Seed) -> Box<dyn Workload> {
        match transfer {
            Transfer::Flows(flows, opener, size_known) => {
                let start = |&(at, bytes): &(u64, u64)| Start {
                    size_known: *size_known,
                    ..Start::new(Time::from_millis(at), Bytes::new(bytes))
                };
                Box::new(Listed::new(flows.iter().map(start).collect(), *opener))
            }
            Transfer::Sessions(script, gap) => {
                let exchange = |&(think, bytes): &(u64, u64)| Exchange {
                    think: Span::from_millis(think),
                    bytes: Bytes::new(bytes),
                };
                let spec = SessionSpec {
                    scripts: vec![script.iter().map(exchange).collect()],
                    gap: Span::from_millis(*gap),
                    until: LAST_START,
                    group: 0,
                    peers: self.peers,
                };
                Box::new(Sessions::new(spec, seed))
            }
            Transfer::Pages(objects, fetch, gap) => {
                let object =
                    |&(origin, bytes): &(u16, u64)| Object { origin, bytes: Bytes::new(bytes), leads: false };
                let spec = PageSpec {
                    pages: vec![objects.iter().map(object).collect()],
                    fetches: vec![*fetch],
                    gap: Span::from_millis(*gap),
                    until: LAST_START,
                    groups: vec![(0, 1)],
                    peers: self.peers,
                    again: (objects.len() as u32 % 3, Span::from_millis(*gap)),
                };
                Box::new(Pages::new(spec, seed))
            }
        }
    }

    /// Runs it to its end.
    pub fn run<R: Recorder>(&self, recorder: R) -> (Summary, Path, R) {
        let workloads = self.transfer.iter().enumerate().map(|(number, transfer)| {
            self.workload(transfer, Seed(self.seed).child(&format!("workload {number}")))
        });
        let scenario = Scenario {
            path: Path::new(&self.plan(), Seed(self.seed)),
            groups: vec![Group {
                scheme: self.entry.scheme(),
                base: self.base,
                tcp: self.tcp,
                hint: self.hint,
                history_capacity: self.history_capacity,
                ..Group::new(self.entry.scheme(), self.tcp)
            }],
            workload: Box::new(Mixed::new(workloads.collect())),
            until: UNTIL,
        };
        let finished = Simulation::new(scenario, recorder).run();
        (finished.summary, finished.path, finished.recorder)
    }
}

/// A transfer of `iw10` over a path that reorders and loses acks.
///
/// # Panics
/// Never: the catalogue has `iw10`.
#[must_use]
pub fn disturbed(tcp: TcpConfig, transfer: Transfer, seed: u64) -> Case {
    let plain = link(Rate::from_mbit_per_sec(10), Span::from_millis(20), Limit::NONE);
    Case {
        forward: vec![plain.clone(), jitter(Span::from_millis(30), Order::Free), loss(Ratio::percent(10))],
        reverse: vec![loss(Ratio::percent(20)), plain],
        entry: catalogue::find("iw10").expect("in the catalogue"),
        base: base::Kind::Cubic,
        tcp,
        hint: None,
        history_capacity: 0,
        transfer: vec![transfer],
        peers: 1,
        seed,
    }
}
