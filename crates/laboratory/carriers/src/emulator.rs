//! Real transports in real time, over the path's elements on real packets.
//!
//! A [`Workload`](headstart_sim::workload::Workload) decides which connections open at which time,
//! and which messages they request. Here time comes from the real clock ([`driver`]). Connections
//! are QUIC's ([`quic`]), through the UDP relay and without privileges, or the kernel's TCP
//! ([`kernel`]), through TUN devices and as root. The result has the simulator's form, a
//! [`FlowReport`] for each flow, so that the same code adds both up.
//!
//! Options that a real transport cannot carry out are refused by name before a run ([`refuse`]).
//!
//! # Limits
//!
//! - A real stack has its own loss detection, probes, acks and timers: `--detection`, `--probe`,
//!   `--acks`, `--min-rto` and the like configure the simulator's TCP model and change nothing
//!   here. `--base` and `--receive-window` apply.
//! - The same seed draws the same arrivals and the same losses, but timing differs between runs:
//!   results are not reproducible byte by byte.
//! - Runs follow one another; no other work of this program runs meanwhile.

pub mod driver;
mod hosts;
pub mod kernel;
pub mod quic;

use anyhow::{Result, ensure};
use headstart_emu::packet::Packet;
use headstart_emu::path::Path as EmuPath;
use headstart_emu::relay::Summary;
use headstart_net::Direction;
use headstart_sim::record::MessageReport;
use headstart_sim::workload::{Opener, PageReport};
use headstart_sim::{FlowReport, Seed};
use headstart_units::{Bytes, Time};

use headstart_study::carrier::{Bottleneck, Observer, RandomLoss};
use headstart_study::options::{DetectionName, RouterName, TransportName, UpOptions, choice_name};
use headstart_study::setup::Setup;

pub use hosts::{EmulatedQuic, KernelTcp};

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct EmulatedRun {
    /// Every flow.
    pub flows: Vec<FlowReport>,
    /// Every page.
    pub pages: Vec<PageReport>,
    /// Messages after the first of their connection, and the first.
    pub messages: Vec<MessageReport>,
    /// Bytes that receivers read: time, group, number.
    pub read: Vec<(Time, u16, u32)>,
    /// The path's counters.
    pub path: Summary,
    /// Reason why the run is invalid, if it is.
    pub invalid: Option<String>,
}

impl EmulatedRun {
    /// Reports the result to an observer.
    pub fn report_to(&self, observer: &mut dyn Observer) {
        self.flows.iter().for_each(|flow| observer.flow(flow));
        self.messages.iter().for_each(|message| observer.message(message));
        self.pages.iter().for_each(|page| observer.page(page));
        self.read.iter().for_each(|(at, group, bytes)| observer.read(*at, *group, *bytes));
    }

    /// Counters of the bottleneck.
    #[must_use]
    pub fn bottleneck(&self) -> Bottleneck {
        let account = self.path.down.elements.first().map(|(_, account)| *account).unwrap_or_default();
        Bottleneck {
            offered: account.offered,
            dropped: account.dropped.iter().sum(),
            dropped_bytes: Some(account.dropped_bytes),
            delivered_bytes: account.delivered_bytes,
            at_random: RandomLoss::of(
                self.path.down.elements.iter().map(|(name, account)| (name.as_str(), account)),
            ),
            waits: None,
        }
    }
}

/// Refuses options that a real transport cannot carry out.
///
/// # Errors
/// Names the option, the value found and the one expected.
pub fn refuse(setup: &Setup) -> Result<()> {
    let (path, transport, workload) = (&setup.path, &setup.transport, &setup.workload);
    ensure!(
        path.rtt.0.len() == 1,
        "--rtt: found {} times, expected one: a path of the emulator has one class of hosts",
        path.rtt.0.len()
    );
    ensure!(
        path.routers == RouterName::None,
        "--routers: found {}, expected none in the emulator: its transports send no Quick-Start requests, and real packets have no field for RCP's rate",
        choice_name(path.routers)
    );
    ensure!(
        workload.opener != Some(Opener::Sender),
        "--opener: found sender, expected receiver in the emulator: a client asks a server"
    );
    ensure!(
        !matches!(transport.detection, DetectionName::Udt),
        "--detection: found udt, expected rack in the emulator: these stacks do not have UDT's loss detection"
    );
    ensure!(
        transport.handshakes == 1,
        "--handshakes: found {}, expected 1 in the emulator: TCP and QUIC have a handshake of one round trip \
         (0-RTT: `headstart serve` and `headstart get --0rtt --repeat 12` over `headstart link`)",
        transport.handshakes
    );
    ensure!(
        transport.certificate.is_zero(),
        "--certificate: found {}, expected 0 B in the emulator: its servers have one of some 300 bytes",
        transport.certificate
    );
    ensure!(
        transport.mtu == Bytes::new(1500),
        "--mtu: found {}, expected 1500 B in the emulator: its hosts choose the size of their packets",
        transport.mtu
    );
    ensure!(
        transport.transport == TransportName::Quic || !transport.ecn,
        "--ecn: found it with the kernel's TCP, where a sysctl sets ECN: expected --transport quic"
    );
    ensure!(
        workload.peers <= 65_536,
        "--peers: found {}, expected at most 65536 in the emulator: each is an address of the loopback",
        workload.peers
    );
    Ok(())
}

/// Both directions of a path.
pub struct DuplexPath {
    up: EmuPath<Packet>,
    down: EmuPath<Packet>,
}

impl DuplexPath {
    fn new(setup: &Setup, seed: Seed) -> Result<Self> {
        let plan = setup.path_for(seed).plan_for_packets(&UpOptions::default())?;
        let [up, down] = Direction::BOTH.map(|direction| EmuPath::of(&plan, direction, seed));
        Ok(Self { up, down })
    }
}

/// Error text for a run in which the relay missed its deadlines.
fn missed_deadlines(path: &Summary) -> Option<String> {
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

#[cfg(test)]
mod tests;
