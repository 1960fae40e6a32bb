//! A comparison in the emulator: the same workloads and path elements as in the simulator, but real transports in real time.
//!
//! A [`Workload`] is told the time and says which connections open and what they ask for; here the
//! time is the real clock's ([`player`]), and connections are QUIC's ([`quic`], through the UDP relay, no privilege needed) or the
//! kernel's TCP ([`kernel`], through TUN devices, root needed). What came of it is told in the simulator's own words: a
//! [`FlowReport`] for each flow, so that the same code adds both up.
//!
//! What a real transport cannot carry is refused by name before anything runs ([`refuse`]).
//!
//! # Limits
//!
//! - A real stack has its own loss detection, probes, acks and timers: `--detection`, `--probe`, `--acks`, `--min-rto` and the like
//!   say how the simulator's model is made, and change nothing here. `--base` and `--receive-window` do.
//! - The same seed draws the same arrivals and the same losses, but no machine runs twice alike: results are not the same bytes.
//! - Runs follow one another; nothing else of this program runs meanwhile.

pub mod kernel;
pub mod player;
pub mod quic;
pub mod study;

use anyhow::{Result, bail, ensure};
use headstart_emu::clock::Clock;
use headstart_emu::packet::Parcel;
use headstart_emu::path::Path as EmuPath;
use headstart_emu::relay::Summary;
use headstart_sim::record::MessageReport;
use headstart_sim::workload::{PageReport, Workload};
use headstart_sim::{FlowReport, Recorder, Seed};
use headstart_units::{Span, Time};

use crate::link::UpOptions;
use crate::link::plan::Plans;
use crate::options::{DetectionName, Home, OpenerName, RouterName, TransportName};
use crate::real::player::Piece;
use crate::setup::{Cast, LONG, Setup};

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Every flow.
    pub flows: Vec<FlowReport>,
    /// Every page.
    pub pages: Vec<PageReport>,
    /// Messages beyond the first of their connection, and the first.
    pub messages: Vec<MessageReport>,
    /// What receivers read: when, whose group, how much.
    pub read: Vec<(Time, u16, u32)>,
    /// What the path did.
    pub path: Summary,
    /// Why it is worth nothing, if it is.
    pub invalid: Option<String>,
    /// Senders told what they sent and lost.
    pub has_counts: bool,
}

impl Played {
    /// Tells a recorder all of it.
    pub fn tell(&self, recorder: &mut impl Recorder) {
        self.flows.iter().for_each(|flow| recorder.flow(flow));
        self.messages.iter().for_each(|message| recorder.message(message));
        self.pages.iter().for_each(|page| recorder.page(page));
    }

    /// Packets that the bottleneck was offered, dropped, and the bytes that came out of it.
    #[must_use]
    pub fn bottleneck(&self) -> (u64, u64, u64) {
        let account = self.path.down.elements.first().map(|(_, account)| *account).unwrap_or_default();
        (account.offered, account.dropped.iter().sum(), account.delivered_bytes)
    }
}

/// Refuses by name what a real transport cannot carry.
///
/// # Errors
/// With option, found and expected.
pub fn refuse(setup: &Setup) -> Result<()> {
    if setup.run.home == Home::Simulator {
        return Ok(());
    }
    let (path, transport, workload) = (&setup.path, &setup.transport, &setup.workload);
    ensure!(path.population.is_none(), "--population is for the simulator");
    ensure!(
        path.rtt.0.len() == 1,
        "--rtt: found {} times, expected one: a path of the emulator has one class of hosts",
        path.rtt.0.len()
    );
    ensure!(
        path.routers == RouterName::None,
        "--routers: found {:?}, expected none in the emulator: no transport here asks routers for a rate, and RCP's rate is in no real packet",
        path.routers
    );
    ensure!(
        workload.opener != Some(OpenerName::Sender),
        "--opener: found sender, expected receiver in the emulator: a client asks a server"
    );
    ensure!(
        !matches!(transport.detection, DetectionName::Udt),
        "--detection: found udt, expected rack in the emulator: no stack here finds losses as UDT does"
    );
    ensure!(
        transport.handshakes == 1,
        "--handshakes: found {}, expected 1 in the emulator: TCP and QUIC shake hands once",
        transport.handshakes
    );
    ensure!(
        transport.transport == TransportName::Quic || !transport.ecn,
        "--ecn: found it with the kernel's TCP, which asks for ECN by a setting of its own: expected --transport quic"
    );
    ensure!(
        workload.peers <= 65_536,
        "--peers: found {}, expected at most 65536 in the emulator: each is an address of the loopback",
        workload.peers
    );
    for entry in setup.run.schemes.iter().map(|name| name.0) {
        carried(setup, entry)?;
    }
    Ok(())
}

/// Whether the transport carries a scheme.
///
/// # Errors
/// It does not, and why.
pub fn carried(setup: &Setup, entry: &headstart_startup::catalogue::Entry) -> Result<()> {
    match setup.transport.transport {
        TransportName::Quic => {
            crate::transport::carried(entry)?;
        }
        TransportName::Tcp => {
            kernel::controller(entry, setup.transport.base)?;
        }
    }
    Ok(())
}

/// Servers with their histories, and the transport: runs in real time follow one another on it.
pub struct Stage {
    kind: Kind,
}

enum Kind {
    Quic(Box<quic::Stage>),
    Kernel(kernel::Stage),
}

impl Stage {
    /// Servers for each group of `cast`.
    ///
    /// # Errors
    /// If the transport cannot carry the cast, or the machine not the servers.
    pub fn new(setup: &Setup, cast: Cast) -> Result<Self> {
        let entries = [Some(cast.tested), cast.beside, Some(setup.workload.long_scheme.0)];
        let needs_long = setup.workload.background > 0 || setup.workload.long_share.of(1_000_000) > 0;
        for (number, entry) in entries.iter().enumerate() {
            if let Some(entry) = entry.filter(|_| number != usize::from(LONG) || needs_long) {
                carried(setup, entry)?;
            }
        }
        let kind = match setup.transport.transport {
            TransportName::Quic => Kind::Quic(Box::new(quic::Stage::new(setup, cast)?)),
            TransportName::Tcp => Kind::Kernel(kernel::Stage::new(setup, cast)?),
        };
        Ok(Self { kind })
    }

    /// Plays a workload over the path of `setup`, until it is through or `until`.
    ///
    /// # Errors
    /// If the path cannot be, or the machine refuses something.
    pub fn play(
        &self,
        setup: &Setup,
        workload: Box<dyn Workload>,
        until: Time,
        seed: Seed,
    ) -> Result<Played> {
        let way = Way::new(setup, seed)?;
        let piece = Piece { workload, until, clock: Clock::start(), rtt: setup.rtt() };
        match &self.kind {
            Kind::Quic(stage) => stage.play(way, piece),
            Kind::Kernel(stage) => stage.play(way, piece),
        }
    }
}

/// Both directions of a path.
pub struct Way {
    up: EmuPath<Parcel>,
    down: EmuPath<Parcel>,
}

impl Way {
    fn new(setup: &Setup, seed: Seed) -> Result<Self> {
        let plans = Plans::of(&setup.path, &UpOptions::default(), seed)?;
        let up = plans.up.path(|name| plans.up_seed(name));
        let down = plans.down.path(|name| plans.down_seed(name));
        Ok(Self { up, down })
    }
}

/// How often a run is tried again that the machine was too busy for.
pub const ATTEMPTS: u32 = 4;

/// Plays until the machine kept real time, a few times at most; what comes last counts, valid or not.
///
/// # Errors
/// Of any of them.
pub fn attempts(mut play: impl FnMut() -> Result<Played>) -> Result<Played> {
    for number in 1.. {
        let played = play()?;
        let Some(reason) = &played.invalid else { return Ok(played) };
        eprintln!("headstart: attempt {number} of {ATTEMPTS} is INVALID: {reason}");
        if number == ATTEMPTS {
            return Ok(played);
        }
    }
    bail!("no attempt was made")
}

/// What is told of a run that the machine was too busy for.
fn too_late(path: &Summary) -> Option<String> {
    (!path.is_valid).then(|| {
        let (up, down) = (path.up.lateness, path.down.lateness);
        format!(
            "the machine did not keep real time: departures up {} late at the 99th percentile, {} at worst, down {} and {}, {} real-time \
             priority",
            up.p99,
            up.worst,
            down.p99,
            down.worst,
            if path.real_time { "with" } else { "without" }
        )
    })
}

/// What a run of the emulator takes beside its own time.
#[must_use]
pub fn takes(setup: &Setup, runs: usize) -> Span {
    setup.run.duration * runs as u64
}

#[cfg(test)]
mod tests;
