//! Carriers of runs: one trait, and the inputs and results that all of them share.
//!
//! A [`Run`] is a path, groups of senders and a workload. A [`Carrier`] makes [`Hosts`] for it and
//! runs it; an [`Observer`] receives as much of it as the carrier can show ([`Detail`]). The
//! program has a list of carriers ([`Carriers`]); the one of a comparison is chosen once, when its
//! options become a [`Setup`].
//!
//! | carrier | clock | transport | shows |
//! |---|---|---|---|
//! | [`model::Model`] | virtual | the simulator's TCP model | everything, on paths of any shape |
//! | QUIC in virtual time | virtual | the QUIC stack | packets and senders |
//! | QUIC over the emulator | real | the QUIC stack | flows, and what senders count |
//! | the kernel's TCP over the emulator | real | this machine's TCP | flows |

pub mod model;
mod observer;

use std::fmt::Debug;

use anyhow::{Context, Result, bail};
use headstart_net::{DropReason, PacketCounts};
use headstart_sim::workload::{Opener, Workload};
use headstart_sim::{Checker, Finished, Group, NullRecorder, Recorder, Scenario, Seed, Summary};
use headstart_startup::catalogue::Entry;
use headstart_startup::history::MemoryStore;
use headstart_units::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::options::{Environment, TransportName, TransportOptions, choice_name};
use crate::progress::RunProgress;
use crate::setup::{GROUPS, SchemeMix, Setup, reference};

pub use observer::{Observer, ObserverRecorder};

/// Level of detail that a carrier shows of a run, each including those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Flows as both applications see them, and the bottleneck's counters.
    Flows,
    /// Senders' counters too: bytes and packets sent, lost and copied.
    Counts,
    /// Every packet and every event of a sender; histories can be set and read back.
    Events,
    /// As `Events`, on paths of any shape, with access to the state of routers.
    Topology,
}

impl Detail {
    /// The level in words, for messages.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Flows => "flows as applications see them",
            Self::Counts => "what senders count",
            Self::Events => "every packet and every event of a sender",
            Self::Topology => "paths of any shape",
        }
    }
}

/// Carries runs.
pub trait Carrier: Debug + Sync {
    /// The options that select it.
    fn selection(&self) -> (Environment, TransportName);

    /// Name of the carrier, for messages.
    fn name(&self) -> &'static str;

    /// Detail that it shows.
    fn detail(&self) -> Detail;

    /// True if it runs in real time: runs follow one another, and the machine may be too busy.
    fn is_real_time(&self) -> bool {
        self.selection().0 == Environment::Emulator
    }

    /// Checks that it carries a scheme with these options.
    ///
    /// # Errors
    /// If it does not, with the reason.
    fn check_scheme(&self, entry: &Entry, options: &TransportOptions) -> Result<()>;

    /// Refuses options that it cannot carry out, before anything runs.
    ///
    /// # Errors
    /// Names the option, the value found and the one expected.
    fn check(&self, setup: &Setup) -> Result<()>;

    /// Checks that this machine can run it, before the first run.
    ///
    /// # Errors
    /// Names the missing requirement.
    fn check_available(&self) -> Result<()> {
        Ok(())
    }

    /// Note for readers of its results.
    fn note(&self) -> Option<&'static str> {
        None
    }

    /// Side that opens connections by default.
    fn opener(&self) -> Opener {
        Opener::Sender
    }

    /// The scheme that all others are compared with: [`reference()`], as this transport has it.
    fn reference(&self, options: &TransportOptions) -> &'static Entry {
        let _ = options;
        reference()
    }

    /// Hosts for the groups of `mix`.
    ///
    /// # Errors
    /// If one of its schemes is not available, or a system call fails.
    fn hosts<'a>(&self, setup: &'a Setup, mix: SchemeMix) -> Result<Box<dyn Hosts + 'a>>;
}

/// Senders and receivers. In real time they persist from one run to the next, with their histories.
pub trait Hosts {
    /// Carries out a run.
    ///
    /// # Errors
    /// If it cannot be done, or the checker found a fault.
    fn run(&mut self, run: Run<'_>, observer: &mut dyn Observer) -> Result<RunResult<()>>;
}

/// A run, ready to start.
#[derive(Debug)]
pub struct Run<'a> {
    /// The path, and all other options.
    pub setup: &'a Setup,
    /// Schemes that take part.
    pub mix: SchemeMix,
    /// The groups of senders.
    pub groups: Vec<Group>,
    /// Data to transfer.
    pub workload: Box<dyn Workload>,
    /// Latest end of the run.
    pub until: Time,
    /// Seed of all random draws but the workload's.
    pub seed: Seed,
    /// Initial histories of groups.
    histories: Vec<(u16, MemoryStore)>,
    has_class_for_each_group: bool,
    is_checked: bool,
}

impl<'a> Run<'a> {
    /// A run over the setup's path, of the setup's groups.
    #[must_use]
    pub fn new(
        setup: &'a Setup,
        mix: SchemeMix,
        workload: Box<dyn Workload>,
        until: Time,
        seed: Seed,
    ) -> Self {
        let groups = setup.groups(mix);
        let (has_class_for_each_group, is_checked) = (false, false);
        Self {
            setup,
            mix,
            groups,
            workload,
            until,
            seed,
            histories: vec![],
            has_class_for_each_group,
            is_checked,
        }
    }

    /// The senders of `group` begin with this history.
    #[must_use]
    pub fn with_history(mut self, group: u16, history: MemoryStore) -> Self {
        self.histories.push((group, history));
        self
    }

    /// Makes each group a class of hosts of its own, so that a packet's route identifies its group.
    #[must_use]
    pub fn with_a_class_for_each_group(mut self) -> Self {
        self.has_class_for_each_group = true;
        self
    }

    /// Reports progress by the workload's arrivals.
    #[must_use]
    pub fn with_progress(mut self, progress: &RunProgress) -> Self {
        self.workload = progress.wrap(self.workload, Time::ZERO + self.setup.run.duration);
        self
    }

    /// Checks every packet, where packets are shown.
    #[must_use]
    pub const fn checked(mut self) -> Self {
        self.is_checked = true;
        self
    }

    /// Carries it out on hosts of its own.
    ///
    /// # Errors
    /// As [`Carrier::hosts`] and [`Hosts::run`].
    pub fn observe<O: Observer>(self, observer: O) -> Result<RunResult<O>> {
        let mut hosts = self.setup.carrier().hosts(self.setup, self.mix)?;
        self.observe_on(&mut *hosts, observer)
    }

    /// Carries it out on these hosts.
    ///
    /// # Errors
    /// As [`Hosts::run`].
    pub fn observe_on<O: Observer>(self, hosts: &mut dyn Hosts, mut observer: O) -> Result<RunResult<O>> {
        let RunResult { summary, bottleneck, histories, invalid, .. } = hosts.run(self, &mut observer)?;
        Ok(RunResult { observer, summary, bottleneck, histories, invalid })
    }

    /// Carries it out in virtual time: path, checker and counters are the same for every simulator.
    ///
    /// # Errors
    /// If it cannot be done, or the checker found a fault.
    pub fn simulate(self, simulator: &impl Simulator, observer: &mut dyn Observer) -> Result<RunResult<()>> {
        let (path, models) = if self.has_class_for_each_group {
            let mut setup = self.setup.clone();
            setup.path.rtt.0 = vec![setup.rtt(); GROUPS];
            setup.build_path(self.seed)
        } else {
            self.setup.build_path(self.seed)
        };
        let Self { groups, workload, until, seed, histories, .. } = self;
        let scenario = Scenario { path, groups, workload, until };
        if self.is_checked || observer.watches() {
            let checker = self.is_checked.then(|| Checker::new(&models, NullRecorder));
            let recorder = ObserverRecorder::with_checker(observer, checker);
            let finished = simulator.simulate(scenario, seed, histories, recorder)?;
            let faults = finished.recorder.faults(&finished.path);
            if let Some(first) = faults.first() {
                bail!(
                    "the checker found {} faults in a run of {}, the first: {first}",
                    faults.len(),
                    self.mix.tested.name
                );
            }
            Ok(RunResult::of(finished.summary, finished.path, finished.histories))
        } else {
            let recorder = ObserverRecorder::<false>::new(observer);
            let finished = simulator.simulate(scenario, seed, histories, recorder)?;
            Ok(RunResult::of(finished.summary, finished.path, finished.histories))
        }
    }
}

/// Runs scenarios in virtual time.
pub trait Simulator {
    /// Runs a scenario whose groups start with these histories.
    ///
    /// # Errors
    /// If it cannot be set up.
    fn simulate<R: Recorder>(
        &self,
        scenario: Scenario,
        seed: Seed,
        histories: Vec<(u16, MemoryStore)>,
        recorder: R,
    ) -> Result<Finished<R>>;
}

/// Result of a run.
#[derive(Debug)]
pub struct RunResult<O> {
    /// The observer of the run.
    pub observer: O,
    /// Summary of the run.
    pub summary: Summary,
    /// Counters of the bottleneck.
    pub bottleneck: Bottleneck,
    /// The history of each group, where they are shown.
    pub histories: Vec<MemoryStore>,
    /// Reason why the result is invalid, if it is: the machine was too busy for real time.
    pub invalid: Option<String>,
}

/// Counters of the bottleneck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bottleneck {
    /// Packets offered.
    pub offered: u64,
    /// Packets dropped for any cause.
    pub dropped: u64,
    /// Bytes dropped, where packets are not shown.
    pub dropped_bytes: Option<u64>,
    /// Bytes that left the bottleneck.
    pub delivered_bytes: u64,
    /// Counters of the random loss behind it, if any.
    pub at_random: RandomLoss,
    /// Queueing delay before it, mean and 95th percentile, where that is shown.
    pub waits: Option<(Span, Span)>,
}

/// Counters of random loss, of single packets or in bursts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct RandomLoss {
    /// Packets offered to the random loss; zero if the path has none.
    pub offered: u64,
    /// Packets lost.
    pub lost: u64,
}

impl RandomLoss {
    /// Adds up the elements of one direction, selected by name.
    #[must_use]
    pub fn of<'a>(counts: impl Iterator<Item = (&'a str, &'a PacketCounts)>) -> Self {
        let names = [DropReason::RandomLoss, DropReason::BurstLoss].map(DropReason::name);
        counts.filter(|(name, _)| names.contains(name)).fold(Self::default(), |sum, (_, counts)| Self {
            // The elements are in series: the first meets all packets.
            offered: sum.offered.max(counts.offered),
            lost: sum.lost + counts.total_dropped(),
        })
    }

    /// Share lost, if the path has random loss.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.lost as f64 / self.offered as f64)
    }
}

impl<O> RunResult<O> {
    /// The result with another observer.
    pub fn map<P>(self, change: impl FnOnce(O) -> P) -> RunResult<P> {
        let Self { observer, summary, bottleneck, histories, invalid } = self;
        RunResult { observer: change(observer), summary, bottleneck, histories, invalid }
    }
}

impl RunResult<()> {
    fn of(summary: Summary, mut path: headstart_sim::Path, histories: Vec<MemoryStore>) -> Self {
        let counts = path.packet_counts().next().map(|(_, counts)| *counts).unwrap_or_default();
        let bottleneck = Bottleneck {
            offered: counts.offered,
            dropped: counts.total_dropped(),
            dropped_bytes: None,
            delivered_bytes: counts.delivered_bytes,
            at_random: RandomLoss::of(path.packet_counts()),
            waits: path.queueing_delays().and_then(|delays| Some((delays.mean()?, delays.quantile(950)?))),
        };
        Self { observer: (), summary, bottleneck, histories, invalid: None }
    }
}

/// Most attempts at a run for which the machine is too busy.
pub const ATTEMPTS: u32 = 4;

/// Repeats a run on new hosts until the machine keeps real time, at most [`ATTEMPTS`] times; the
/// last result is returned, valid or not.
///
/// # Errors
/// The first error of any attempt.
pub fn attempts<O>(
    setup: &Setup,
    mix: SchemeMix,
    mut once: impl FnMut(&mut dyn Hosts) -> Result<RunResult<O>>,
) -> Result<RunResult<O>> {
    let mut number = 1;
    loop {
        let result = once(&mut *setup.carrier().hosts(setup, mix)?)?;
        let Some(reason) = &result.invalid else { return Ok(result) };
        eprintln!("headstart: attempt {number} of {ATTEMPTS} is INVALID: {reason}");
        if number == ATTEMPTS {
            return Ok(result);
        }
        number += 1;
    }
}

/// Command that builds the program with all carriers and commands.
pub const EVERYTHING: &str = "a program of `cargo run --release --features full -- ...` or `cargo install --path crates/command --features full`";

/// The carriers that this program has.
#[derive(Clone, Copy, Debug)]
pub struct Carriers(pub &'static [&'static dyn Carrier]);

impl Carriers {
    /// The TCP model alone.
    pub const MODEL: Self = Self(&[&model::Model]);

    /// The carrier that options choose.
    ///
    /// # Errors
    /// If this program was built without it.
    pub fn find(self, environment: Environment, transport: TransportName) -> Result<&'static dyn Carrier> {
        self.0.iter().copied().find(|carrier| carrier.selection() == (environment, transport)).with_context(|| {
            let known: Vec<&str> = self.0.iter().map(|carrier| carrier.name()).collect();
            format!(
                "--in, --transport: found {}, {}, which this program was built without: expected {}, or {EVERYTHING}",
                choice_name(environment),
                choice_name(transport),
                known.join(" or ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn an_unavailable_carrier_is_refused_with_the_available_ones() {
        let refused = |line: &str| {
            let setup = Settings::parse(Carriers::MODEL, line.split(' '));
            format!("{:#}", setup.expect_err(line))
        };
        for (line, found) in [("--transport quic", "simulator, quic"), ("--in emulator", "emulator, tcp")] {
            let error = refused(line);
            assert!(
                error.contains(&format!("found {found}")) && error.contains("expected the TCP model"),
                "{error}"
            );
        }
    }

    #[test]
    fn each_detail_shows_more_than_the_one_before() {
        let all = [Detail::Flows, Detail::Counts, Detail::Events, Detail::Topology];
        assert!(all.is_sorted() && model::Model.detail() == Detail::Topology);
        assert!(!model::Model.is_real_time());
    }
}
