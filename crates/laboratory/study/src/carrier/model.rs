//! The simulator's TCP model.

use anyhow::Result;
use headstart_sim::{Finished, Recorder, Scenario, Seed, Simulation};
use headstart_startup::catalogue::Entry;
use headstart_startup::history::MemoryStore;

use super::{Carrier, Detail, Hosts, Observer, ObserverRecorder, Run, RunResult, Simulator};
use crate::options::{Environment, TransportName, TransportOptions};
use crate::setup::{SchemeMix, Setup};

/// The simulator's TCP model: it carries every scheme and every option.
#[derive(Clone, Copy, Debug)]
pub struct Model;

impl Carrier for Model {
    fn selection(&self) -> (Environment, TransportName) {
        (Environment::Simulator, TransportName::Tcp)
    }

    fn name(&self) -> &'static str {
        "the TCP model"
    }

    fn detail(&self) -> Detail {
        Detail::Topology
    }

    fn check_scheme(&self, _: &Entry, _: &TransportOptions) -> Result<()> {
        Ok(())
    }

    fn check(&self, _: &Setup) -> Result<()> {
        Ok(())
    }

    fn hosts<'a>(&self, _: &'a Setup, _: SchemeMix) -> Result<Box<dyn Hosts + 'a>> {
        Ok(Box::new(Self))
    }
}

impl Hosts for Model {
    fn run(&mut self, run: Run<'_>, observer: &mut dyn Observer) -> Result<RunResult<()>> {
        run.simulate(self, observer)
    }
}

impl Simulator for Model {
    fn simulate<R: Recorder>(
        &self,
        scenario: Scenario,
        _: Seed,
        histories: Vec<(u16, MemoryStore)>,
        recorder: R,
    ) -> Result<Finished<R>> {
        Ok(run_with(Simulation::new(scenario, recorder), histories))
    }
}

/// Runs a simulation whose groups have these histories.
pub(crate) fn run_with<R: Recorder>(
    simulation: Simulation<R>,
    histories: Vec<(u16, MemoryStore)>,
) -> Finished<R> {
    histories.into_iter().fold(simulation, |run, (group, store)| run.with_history(group, store)).run()
}

/// Runs a scenario whose path is not a setup's.
pub fn simulate<O: Observer>(scenario: Scenario, mut observer: O) -> Finished<O> {
    let observed: &mut dyn Observer = &mut observer;
    let (summary, path, histories) = if observed.watches() {
        let finished = Simulation::new(scenario, ObserverRecorder::<true>::new(observed)).run();
        (finished.summary, finished.path, finished.histories)
    } else {
        let finished = Simulation::new(scenario, ObserverRecorder::<false>::new(observed)).run();
        (finished.summary, finished.path, finished.histories)
    };
    Finished { summary, path, histories, recorder: observer }
}
