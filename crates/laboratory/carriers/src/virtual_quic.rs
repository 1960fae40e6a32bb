//! The QUIC stack in virtual time, over the simulator's path.

use anyhow::{Context, Result, ensure};
use headstart_quic::Choice;
use headstart_sim::{Finished, Recorder, Scenario, Seed};
use headstart_startup::catalogue::Entry;
use headstart_startup::history::MemoryStore;
use headstart_virtual_quic::{Crypto, Simulation, simulation};

use headstart_study::carrier::{Carrier, Detail, Hosts, Observer, Run, RunResult, Simulator};
use headstart_study::options::{CryptoName, Environment, TransportName, TransportOptions};
use headstart_study::setup::{SMALLEST_INITIAL, SchemeMix, Setup, reference};

/// The QUIC stack in virtual time.
#[derive(Clone, Copy, Debug)]
pub struct VirtualQuic;

impl Carrier for VirtualQuic {
    fn selection(&self) -> (Environment, TransportName) {
        (Environment::Simulator, TransportName::Quic)
    }

    fn name(&self) -> &'static str {
        "QUIC in virtual time"
    }

    fn detail(&self) -> Detail {
        Detail::Events
    }

    fn check_scheme(&self, entry: &Entry, _: &TransportOptions) -> Result<()> {
        carried(entry).map(drop)
    }

    fn check(&self, setup: &Setup) -> Result<()> {
        ensure!(
            setup.transport.mtu >= SMALLEST_INITIAL,
            "--mtu: found {}, expected {} B at least over QUIC (RFC 9000 §14)",
            setup.transport.mtu,
            SMALLEST_INITIAL.get()
        );
        ensure!(
            setup.transport.certificate.is_zero() || setup.transport.crypto == CryptoName::Tls,
            "--certificate: found {}, expected 0 B with --crypto null, which has none",
            setup.transport.certificate
        );
        carried(setup.workload.long_scheme.0).map(drop)
    }

    fn note(&self) -> Option<&'static str> {
        Some(
            "over QUIC the receiver dials, whatever --opener says, and acknowledgements (but --acks tenth), loss detection \
             and timers are the stack's own",
        )
    }

    fn hosts<'a>(&self, setup: &'a Setup, mix: SchemeMix) -> Result<Box<dyn Hosts + 'a>> {
        let entries = [mix.tested, mix.beside.unwrap_or_else(reference), setup.workload.long_scheme.0];
        let choices = entries.into_iter().map(carried).collect::<Result<_>>()?;
        let crypto = match setup.transport.crypto {
            CryptoName::Tls => Crypto::Tls,
            CryptoName::Null => Crypto::Null,
        };
        Ok(Box::new(QuicHosts { choices, crypto }))
    }
}

/// Schemes of the groups, in the order of [`Setup::groups`], and protection of their packets.
struct QuicHosts {
    choices: Vec<Choice>,
    crypto: Crypto,
}

impl Hosts for QuicHosts {
    fn run(&mut self, run: Run<'_>, observer: &mut dyn Observer) -> Result<RunResult<()>> {
        run.simulate(self, observer)
    }
}

impl Simulator for QuicHosts {
    fn simulate<R: Recorder>(
        &self,
        scenario: Scenario,
        seed: Seed,
        histories: Vec<(u16, MemoryStore)>,
        recorder: R,
    ) -> Result<Finished<R>> {
        let options = simulation::RunOptions { choices: self.choices.clone(), crypto: self.crypto, seed };
        let simulation = Simulation::new(scenario, &options, recorder)?;
        let with = |run: Simulation<R>, (group, store)| run.with_history(group, store);
        Ok(histories.into_iter().fold(simulation, with).run())
    }
}

/// The scheme as QUIC carries it.
///
/// # Errors
/// If QUIC does not carry it, with the reason.
pub fn carried(entry: &Entry) -> Result<Choice> {
    // The stack's own BBR draws from the system's randomness: no run with it could be repeated.
    Choice::own(entry).context("--transport quic")
}
