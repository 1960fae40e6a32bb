//! The two carriers of the emulator.

use anyhow::{Result, anyhow};
use headstart_emu::clock::Clock;
use headstart_sim::workload::Opener;
use headstart_sim::{Group, Summary};
use headstart_startup::catalogue::{Entry, Native};

use super::player::WorkloadRun;
use super::{DuplexPath, EmulatedRun, kernel, quic, refuse};
use crate::virtual_quic::carried;
use headstart_study::carrier::{Carrier, Detail, Hosts, Observer, Run, RunResult};
use headstart_study::options::{BaseName, Home, TransportName, TransportOptions};
use headstart_study::schemes;
use headstart_study::setup::{Cast, Setup, reference};

/// The QUIC stack over the emulator.
#[derive(Clone, Copy, Debug)]
pub struct EmulatedQuic;

impl Carrier for EmulatedQuic {
    fn place(&self) -> (Home, TransportName) {
        (Home::Emulator, TransportName::Quic)
    }

    fn name(&self) -> &'static str {
        "QUIC over the emulator"
    }

    fn detail(&self) -> Detail {
        Detail::Counts
    }

    fn carries(&self, entry: &Entry, _: &TransportOptions) -> Result<()> {
        carried(entry).map(drop)
    }

    fn check(&self, setup: &Setup) -> Result<()> {
        refuse(setup)
    }

    fn opener(&self) -> Opener {
        Opener::Receiver
    }

    fn hosts<'a>(&self, setup: &'a Setup, cast: Cast) -> Result<Box<dyn Hosts + 'a>> {
        check_schemes(self, setup, cast)?;
        Ok(Box::new(EmulatorHosts::<quic::Testbed> { setup, cast, stage: None }))
    }
}

/// This machine's TCP over the emulator.
#[derive(Clone, Copy, Debug)]
pub struct KernelTcp;

impl Carrier for KernelTcp {
    fn place(&self) -> (Home, TransportName) {
        (Home::Emulator, TransportName::Tcp)
    }

    fn name(&self) -> &'static str {
        "this machine's TCP over the emulator"
    }

    fn detail(&self) -> Detail {
        Detail::Flows
    }

    fn carries(&self, entry: &Entry, options: &TransportOptions) -> Result<()> {
        kernel::start(entry, options.base).map(drop)
    }

    fn check(&self, setup: &Setup) -> Result<()> {
        self.carries(self.reference(&setup.transport), &setup.transport)?;
        if setup.has_long_flows() {
            let long = self.carries(setup.workload.long_scheme.0, &setup.transport);
            long.map_err(|error| anyhow!("{}", error.to_string().replace("--schemes:", "--long-scheme:")))?;
        }
        refuse(setup)
    }

    fn ready(&self) -> Result<()> {
        kernel::ready()
    }

    fn opener(&self) -> Opener {
        Opener::Receiver
    }

    fn reference(&self, options: &TransportOptions) -> &'static Entry {
        let is_cubic = matches!(options.base, BaseName::Cubic | BaseName::CubicLinux);
        let linux = schemes::native(Native::LinuxHyStart).filter(|_| is_cubic);
        linux.unwrap_or_else(reference)
    }

    fn hosts<'a>(&self, setup: &'a Setup, cast: Cast) -> Result<Box<dyn Hosts + 'a>> {
        check_schemes(self, setup, cast)?;
        Ok(Box::new(EmulatorHosts::<kernel::Testbed> { setup, cast, stage: None }))
    }
}

/// Checks that the carrier supports the schemes that take part.
fn check_schemes(carrier: &dyn Carrier, setup: &Setup, cast: Cast) -> Result<()> {
    let long = setup.has_long_flows().then_some(setup.workload.long_scheme.0);
    let entries = [Some(cast.tested), cast.beside, long];
    entries.into_iter().flatten().try_for_each(|entry| carrier.carries(entry, &setup.transport))
}

/// Servers with their histories, and the transport.
pub trait Testbed: Sized {
    /// Servers for these groups.
    ///
    /// # Errors
    /// If the transport cannot carry a scheme, or the machine cannot run the servers.
    fn new(setup: &Setup, cast: Cast, groups: &[Group]) -> Result<Self>;

    /// Runs a workload over the path.
    ///
    /// # Errors
    /// If a system call fails, or a connection breaks.
    fn play(&self, way: DuplexPath, piece: WorkloadRun) -> Result<EmulatedRun>;
}

/// Hosts whose servers start with the groups of their first run.
struct EmulatorHosts<'a, S> {
    setup: &'a Setup,
    cast: Cast,
    stage: Option<S>,
}

impl<S: Testbed> Hosts for EmulatorHosts<'_, S> {
    fn run(&mut self, run: Run<'_>, observer: &mut dyn Observer) -> Result<RunResult<()>> {
        let stage = match &self.stage {
            Some(stage) => stage,
            None => self.stage.insert(S::new(self.setup, self.cast, &run.groups)?),
        };
        let way = DuplexPath::new(run.setup, run.seed)?;
        let Run { setup, workload, until, .. } = run;
        let piece = WorkloadRun { workload, until, clock: Clock::start(), rtt: setup.rtt() };
        let played = stage.play(way, piece)?;
        played.tell(observer);
        Ok(RunResult {
            observer: (),
            summary: Summary { flows: played.flows.len() as u64, ..Summary::default() },
            bottleneck: played.bottleneck(),
            histories: vec![],
            invalid: played.invalid,
        })
    }
}
