//! Options whose values are a few names.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use headstart_net::QueueDiscipline;
use headstart_sim::tcp::{Pacing, Probe, ReceiveGrowth};
use headstart_sim::workload::Opener;
use headstart_startup::base::Kind;
use headstart_startup::catalogue::Server;
use headstart_startup::quick_start::router::{Denial, Granularity};

/// A value of an option: its names, separated by `|`, the setting that they select, and its help.
pub type Choice<T> = (&'static str, T, &'static str);

/// Base controllers.
#[rustfmt::skip]
pub const BASES: &[Choice<Kind>] = &[
    ("cubic", Kind::Cubic, "RFC 9438"),
    ("cubic-linux", Kind::CubicLinux, "RFC 9438, with the deviations of Linux"),
    ("cubic-pair", Kind::CubicPair, "CUBIC that emulates two connections, as Google QUIC's does"),
    ("cuback", Kind::Cuback, "CUBIC driven by acknowledged data, not by time (draft-kazuho-ccwg-cuback)"),
    ("abba", Kind::Abba, "Cuback that grows faster while the queue is seen drained (draft-kazuho-ccwg-abba)"),
    ("reno|newreno", Kind::Reno, "RFC 5681"),
    ("reno-linux", Kind::RenoLinux, "RFC 5681 in whole segments, as in Linux"),
    ("reno-google", Kind::RenoGoogle, "RFC 5681 with Google QUIC's cut: a loss leaves seven tenths"),
];

/// Servers that run schemes.
pub const SERVERS: &[Choice<Server>] = &[
    ("tcp", Server::Tcp, "Any server over Linux TCP, by `headstart tcp`"),
    ("serve|proxy|noq", Server::Serve, "`headstart serve` and `headstart proxy`"),
    ("quinn|s2n-quic", Server::Quinn, "A server of your own on quinn or s2n-quic"),
];

/// Actions when acks stop arriving.
pub const PROBES: &[Choice<Probe>] = &[
    ("none", Probe::None, "Nothing before the retransmission timeout"),
    ("tlp", Probe::TailLoss, "Tail loss probe (RFC 8985 §7)"),
    ("quic", Probe::Quic, "Probe timeout in any state (RFC 9002 §6.2)"),
];

/// Pacing by the transport.
#[rustfmt::skip]
pub const PACINGS: &[Choice<Pacing>] = &[
    ("off", Pacing::Off, "Packets leave as the window opens"),
    ("linux", Pacing::Linux, "200 % of the window per RTT in slow start, 120 % in avoidance"),
    ("quic", Pacing::Quic, "125 % of the window per RTT, in bursts of ten packets (RFC 9002 §7.7)"),
    ("linux-always", Pacing::LinuxAlways, "As linux, for schemes with a pace of their own too: the first ten segments go at once and later ones in bursts of a millisecond"),
];

/// Growth of the receiver's window.
#[rustfmt::skip]
pub const GROWTHS: &[Choice<ReceiveGrowth>] = &[
    ("fixed", ReceiveGrowth::Fixed, "None, as in the papers"),
    ("linux", ReceiveGrowth::Linux, "Dynamic right-sizing: twice what was read in a round trip"),
    ("chromium", ReceiveGrowth::Chromium, "Twice the window where half of it is read within two round trips"),
];

/// Sides that open connections.
pub const OPENERS: &[Choice<Opener>] = &[
    ("sender", Opener::Sender, "The data sender, as the papers' bulk flows"),
    ("receiver", Opener::Receiver, "The data receiver: a client that asks a server"),
];

/// Granularities of the rates that routers grant.
pub const RATES: &[Choice<Granularity>] = &[
    ("four-bits", Granularity::Encoded, "80 kbit/s doubled up to fourteen times (RFC 4782)"),
    ("exact", Granularity::Exact, "To the byte per second, as in the Quick-Start paper"),
];

/// Treatments of a request that a router denies.
pub const DENIALS: &[Choice<Denial>] = &[
    ("ignore", Denial::Ignore, "None; the end hosts detect it by the TTLs"),
    ("zero", Denial::Zero, "Sets rate, TTL and nonce to zero"),
    ("delete", Denial::Delete, "Removes it from the packet"),
];

/// State that an Extreme router keeps in addition to flows: fairness, and scores of hosts.
pub const EXTRAS: &[Choice<[bool; 2]>] = &[
    ("none", [false, false], "Neither"),
    ("fair", [true, false], "No host gets more than an equal share while others get nothing"),
    ("scores", [false, true], "A host's grants depend on its earlier use"),
    ("both", [true, true], "Both"),
];

/// Parser of an option with these values.
pub fn one_of<T>(choices: &'static [Choice<T>]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let values = choices.iter().map(|(names, _, help)| {
        let mut names = names.split('|');
        PossibleValue::new(names.next().unwrap_or_default()).aliases(names).help(*help)
    });
    PossibleValuesParser::new(values).try_map(|name| {
        let found = choices.iter().find(|(names, ..)| names.split('|').any(|known| known == name));
        found.map(|(_, setting, _)| *setting).ok_or("no such value")
    })
}

/// The name of the value that selects this setting.
#[must_use]
pub fn name_of<T: PartialEq>(choices: &[Choice<T>], setting: &T) -> &'static str {
    let found = choices.iter().find(|(_, known, _)| known == setting);
    found.and_then(|(names, ..)| names.split('|').next()).unwrap_or_default()
}

/// A choice as it is written on the command line: messages and reports name it so.
#[must_use]
pub fn choice_name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Reads a queue discipline by its name.
pub fn discipline() -> impl TypedValueParser<Value = QueueDiscipline> {
    let help = |discipline| match discipline {
        QueueDiscipline::DropTail => "Drops what finds the buffer full",
        QueueDiscipline::Netem => {
            "As drop-tail, with packets in the link's delay counted, as netem under a token bucket"
        }
        QueueDiscipline::CoDel => "RFC 8289",
        QueueDiscipline::Red => "Floyd and Jacobson 1993, gentle",
        QueueDiscipline::Pie => "RFC 8033",
        QueueDiscipline::FqCoDel => "RFC 8290: a queue for each flow",
        QueueDiscipline::DualPi2 => "RFC 9332: coupled queues for Classic and L4S traffic",
        QueueDiscipline::Priority => {
            "Lower priorities wait, and are pushed out: RC3's early data; real packets of DSCP 1 (RFC 8622)"
        }
    };
    let names = QueueDiscipline::ALL.map(|it| PossibleValue::new(it.name()).help(help(it)));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<QueueDiscipline>())
}

/// The buffer with which an active queue is used: the limit of RFC 8290 §5.2.3, and of CoDel that
/// of Linux. They hold the delay low themselves; a small limit makes a drop-tail queue of them.
#[must_use]
pub const fn usual_buffer(discipline: QueueDiscipline) -> Option<&'static str> {
    match discipline {
        QueueDiscipline::CoDel => Some("1000 packets"),
        QueueDiscipline::FqCoDel => Some("10240 packets"),
        _ => None,
    }
}

/// Signals that routers support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RouterName {
    /// None: they forward only.
    None,
    /// Quick-Start requests; Share answers each with half of the free capacity.
    Share,
    /// Quick-Start requests; Target grants up to 90 % of the link.
    Target,
    /// As target, with a memory of flows and hosts.
    Extreme,
    /// RCP: they stamp the rate that is fair.
    Rcp,
    /// As target, all but one behind the bottleneck, which forwards requests as they are.
    NonCapable,
}

/// Ways to find losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetectionName {
    /// By time (RFC 8985).
    Rack,
    /// By count (RFC 6675).
    Rfc6675,
    /// As rfc6675, but a proactive copy counts as a transmission: its segment is not lost before a
    /// round trip after it.
    Rfc6675Copies,
    /// By count, then sent again at line rate every so often until it arrives (UDT, Halfback's
    /// transport).
    Udt,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AckName {
    /// Every segment.
    Immediate,
    /// Every second segment, or after 200 ms.
    Delayed,
    /// As Linux: the first sixteen at once, then every second or after 40 ms.
    Linux,
    /// As UDT for its own congestion control: every 10 ms, and at once where something is missing.
    Timer,
    /// As QUIC recommends (RFC 9000 §13.2): every second packet, or after 25 ms.
    Quic,
    /// As quic, by packet numbers: at once only where a gap begins, not while an old one is open or
    /// filled.
    QuicGap,
    /// As quic-gap, with four packets at once from each new gap on, as Google QUIC did.
    Google,
    /// As ngtcp2: as quic-gap, but after an eighth of the path's RTT, 25 ms at most.
    Ngtcp2,
    /// As s2n-quic: every tenth packet, or after 25 ms. The QUIC stack does so, too.
    Tenth,
    /// As Linux whose receive window grows: the first 370 at once (measured with the emulator), and
    /// always what a sender as Linux (--as-linux) marks as the end of a buffer.
    LinuxGrowing,
}

/// Start of the later responses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LaterName {
    /// As a flight of its own, as over QUIC.
    Flights,
    /// With the window that there is: the first response alone is a flight, as in the papers'
    /// models.
    Window,
}

/// Transport of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TransportName {
    /// TCP: the simulator's model; in the emulator the kernel's.
    #[default]
    Tcp,
    /// The real QUIC stack: in virtual time; in the emulator in real time.
    Quic,
}

/// Protection of QUIC packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CryptoName {
    /// TLS 1.3.
    #[default]
    Tls,
    /// None: for large sweeps.
    Null,
}

/// Environment of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Environment {
    /// In virtual time.
    #[default]
    Simulator,
    /// In real time: real packets of a real transport cross the path's elements.
    Emulator,
}
