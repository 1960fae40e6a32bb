//! One scenario, over whatever carries the data: the simulator's TCP model, or the real QUIC stack in virtual time.

use anyhow::{Context, Result, ensure};
use headstart_quic::Choice;
use headstart_sim::{Finished, Recorder, Scenario, Seed, Simulation};
use headstart_stack::Crypto;
use headstart_startup::catalogue::Entry;
use headstart_startup::history::MemoryStore;

use crate::options::{CryptoName, TransportName};
use crate::setup::{Cast, Setup, reference};

/// A scenario that is about to be run, once, in virtual time.
#[derive(Debug)]
pub struct Trial<'a> {
    setup: &'a Setup,
    cast: Cast,
    seed: Seed,
    histories: Vec<(u16, MemoryStore)>,
}

impl<'a> Trial<'a> {
    /// For a scenario with the groups of [`Setup::groups`].
    #[must_use]
    pub fn new(setup: &'a Setup, cast: Cast, seed: Seed) -> Self {
        Self { setup, cast, seed, histories: vec![] }
    }

    /// The senders of `group` begin with this history.
    #[must_use]
    pub fn with_history(mut self, group: u16, history: MemoryStore) -> Self {
        self.histories.push((group, history));
        self
    }

    /// Runs it.
    ///
    /// # Errors
    /// The transport does not carry one of the schemes, or cannot be set up.
    pub fn run<R: Recorder>(self, scenario: Scenario, recorder: R) -> Result<Finished<R>> {
        let options = &self.setup.transport;
        match options.transport {
            TransportName::Tcp => {
                let simulation = Simulation::new(scenario, recorder);
                let with = |run: Simulation<R>, (group, store)| run.with_history(group, store);
                Ok(self.histories.into_iter().fold(simulation, with).run())
            }
            TransportName::Quic => {
                let crypto = match options.crypto {
                    CryptoName::Tls => Crypto::Tls,
                    CryptoName::Null => Crypto::Null,
                };
                let choices = choices(self.setup, self.cast)?;
                let cast = headstart_stack::simulation::Cast { choices, crypto, seed: self.seed };
                let simulation = headstart_stack::Simulation::new(scenario, &cast, recorder)?;
                let with =
                    |run: headstart_stack::Simulation<R>, (group, store)| run.with_history(group, store);
                Ok(self.histories.into_iter().fold(simulation, with).run())
            }
        }
    }
}

/// The schemes of the groups, in the order of [`Setup::groups`].
fn choices(setup: &Setup, cast: Cast) -> Result<Vec<Choice>> {
    let entries = [cast.tested, cast.beside.unwrap_or_else(reference), setup.workload.long_scheme.0];
    entries.into_iter().map(carried).collect()
}

/// The scheme as QUIC carries it.
///
/// # Errors
/// It does not, and why.
pub fn carried(entry: &Entry) -> Result<Choice> {
    // The stack's own BBR draws from the system's randomness: no run with it could be repeated.
    if entry.name == "bbr" {
        return Ok(Choice::custom(entry.name, entry.summary, entry.scheme(), entry.needs));
    }
    Choice::find(entry.name).context("--transport quic")
}

/// Refuses what only the TCP model can do.
///
/// # Errors
/// With what was found.
pub fn only_tcp(setup: &Setup, what: &str) -> Result<()> {
    ensure!(
        setup.transport.transport == TransportName::Tcp,
        "--transport: found `quic`, expected `tcp`: {what} is run with the TCP model only"
    );
    Ok(())
}
