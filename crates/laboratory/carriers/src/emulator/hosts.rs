//! The two carriers of the emulator.

use anyhow::{Result, anyhow};
use headstart_emu::clock::Clock;
use headstart_sim::workload::Opener;
use headstart_sim::{Group, Summary};
use headstart_startup::base::Kind;
use headstart_startup::catalogue::{Entry, Native};

use super::driver::WorkloadRun;
use super::{DuplexPath, EmulatedRun, kernel, quic, refuse};
use crate::virtual_quic::carried;
use headstart_study::carrier::{Carrier, Detail, Hosts, Observer, Run, RunResult};
use headstart_study::options::{Environment, TransportName, TransportOptions};
use headstart_study::schemes;
use headstart_study::setup::{SchemeMix, Setup, reference};

/// The QUIC stack over the emulator.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedQuic;

impl Carrier for EmulatedQuic {
    fn selection(&self) -> (Environment, TransportName) {
        (Environment::Emulator, TransportName::Quic)
    }

    fn name(&self) -> &'static str {
        "QUIC over the emulator"
    }

    fn detail(&self) -> Detail {
        Detail::Counts
    }

    fn check_scheme(&self, entry: &Entry, _: &TransportOptions) -> Result<()> {
        carried(entry).map(drop)
    }

    fn check(&self, setup: &Setup) -> Result<()> {
        refuse(setup)
    }

    fn opener(&self) -> Opener {
        Opener::Receiver
    }

    fn hosts<'a>(&self, setup: &'a Setup, mix: SchemeMix) -> Result<Box<dyn Hosts + 'a>> {
        check_schemes(self, setup, mix)?;
        Ok(Box::new(EmulatorHosts::<quic::Testbed> { setup, mix, testbed: None }))
    }
}

/// This machine's TCP over the emulator.
#[derive(Clone, Copy, Debug)]
pub struct KernelTcp;

impl Carrier for KernelTcp {
    fn selection(&self) -> (Environment, TransportName) {
        (Environment::Emulator, TransportName::Tcp)
    }

    fn name(&self) -> &'static str {
        "this machine's TCP over the emulator"
    }

    fn detail(&self) -> Detail {
        Detail::Flows
    }

    fn check_scheme(&self, entry: &Entry, options: &TransportOptions) -> Result<()> {
        kernel::start(entry, options.base).map(drop)
    }

    fn check(&self, setup: &Setup) -> Result<()> {
        self.check_scheme(self.reference(&setup.transport), &setup.transport)?;
        if setup.has_long_flows() {
            let long = self.check_scheme(setup.workload.long_scheme.0, &setup.transport);
            long.map_err(|error| anyhow!("{}", error.to_string().replace("--schemes:", "--long-scheme:")))?;
        }
        refuse(setup)
    }

    fn check_available(&self) -> Result<()> {
        kernel::check_available()
    }

    fn opener(&self) -> Opener {
        Opener::Receiver
    }

    fn reference(&self, options: &TransportOptions) -> &'static Entry {
        let is_cubic = matches!(options.base, Kind::Cubic | Kind::CubicLinux);
        let linux = schemes::native(Native::LinuxHyStart).filter(|_| is_cubic);
        linux.unwrap_or_else(reference)
    }

    fn hosts<'a>(&self, setup: &'a Setup, mix: SchemeMix) -> Result<Box<dyn Hosts + 'a>> {
        check_schemes(self, setup, mix)?;
        Ok(Box::new(EmulatorHosts::<kernel::Testbed> { setup, mix, testbed: None }))
    }
}

/// Checks that the carrier supports the schemes that take part.
fn check_schemes(carrier: &dyn Carrier, setup: &Setup, mix: SchemeMix) -> Result<()> {
    let long = setup.has_long_flows().then_some(setup.workload.long_scheme.0);
    let entries = [Some(mix.tested), mix.beside, long];
    entries.into_iter().flatten().try_for_each(|entry| carrier.check_scheme(entry, &setup.transport))
}

/// Servers with their histories, and the transport.
pub trait Testbed: Sized {
    /// Servers for these groups.
    ///
    /// # Errors
    /// If the transport cannot carry a scheme, or the machine cannot run the servers.
    fn new(setup: &Setup, mix: SchemeMix, groups: &[Group]) -> Result<Self>;

    /// Runs a workload over the path.
    ///
    /// # Errors
    /// If a system call fails, or a connection breaks.
    fn run(&self, way: DuplexPath, run: WorkloadRun) -> Result<EmulatedRun>;
}

/// Hosts whose servers start with the groups of their first run.
struct EmulatorHosts<'a, S> {
    setup: &'a Setup,
    mix: SchemeMix,
    testbed: Option<S>,
}

impl<S: Testbed> Hosts for EmulatorHosts<'_, S> {
    fn run(&mut self, run: Run<'_>, observer: &mut dyn Observer) -> Result<RunResult<()>> {
        let testbed = match &self.testbed {
            Some(testbed) => testbed,
            None => self.testbed.insert(S::new(self.setup, self.mix, &run.groups)?),
        };
        let way = DuplexPath::new(run.setup, run.seed)?;
        let Run { setup, workload, until, .. } = run;
        let run = WorkloadRun { workload, until, clock: Clock::start(), rtt: setup.rtt() };
        let result = testbed.run(way, run)?;
        result.report_to(observer);
        Ok(RunResult {
            observer: (),
            summary: Summary { flows: result.flows.len() as u64, ..Summary::default() },
            bottleneck: result.bottleneck(),
            histories: vec![],
            invalid: result.invalid,
        })
    }
}
