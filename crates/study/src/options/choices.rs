//! Options whose values are a few names.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use headstart_net::QueueDiscipline;
use headstart_startup::base;

/// Reads a queue discipline by its name.
pub fn discipline() -> impl TypedValueParser<Value = QueueDiscipline> {
    let help = |discipline| match discipline {
        QueueDiscipline::DropTail => "Drops what finds the buffer full",
        QueueDiscipline::Netem => {
            "The same, with packets in the link's delay counted, as netem under a token bucket"
        }
        QueueDiscipline::CoDel => "RFC 8289",
        QueueDiscipline::Red => "Floyd and Jacobson 1993, gentle",
        QueueDiscipline::Pie => "RFC 8033",
        QueueDiscipline::FqCoDel => "RFC 8290: a queue for each flow",
        QueueDiscipline::DualPi2 => "RFC 9332: coupled queues for Classic and L4S traffic",
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

/// Base controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BaseName {
    /// RFC 9438.
    Cubic,
    /// RFC 9438, with the deviations of Linux.
    CubicLinux,
    /// CUBIC that emulates two connections, as Google QUIC's does.
    CubicPair,
    /// Google QUIC's CUBIC in its other details, for one connection.
    CubicGoogle,
    /// The same for two connections, its default.
    CubicGooglePair,
    /// RFC 5681.
    #[value(alias = "newreno")]
    Reno,
    /// RFC 5681 in whole segments, as in Linux.
    RenoLinux,
}

impl BaseName {
    /// The name of its option value.
    #[must_use]
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// The controller itself.
    #[must_use]
    pub const fn kind(self) -> base::Kind {
        match self {
            Self::Cubic => base::Kind::Cubic,
            Self::CubicLinux => base::Kind::CubicLinux,
            Self::CubicPair => base::Kind::CubicPair,
            Self::CubicGoogle => base::Kind::CubicGoogle,
            Self::CubicGooglePair => base::Kind::CubicGooglePair,
            Self::Reno => base::Kind::Reno,
            Self::RenoLinux => base::Kind::RenoLinux,
        }
    }
}

/// Ways to find losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DetectionName {
    /// By time (RFC 8985).
    Rack,
    /// By count (RFC 6675).
    Rfc6675,
    /// The same, where a proactive copy counts as a transmission: its segment is not lost before a
    /// round trip after it.
    Rfc6675Copies,
    /// By count, then sent again at line rate every so often until it arrives (UDT, Halfback's
    /// transport).
    Udt,
}

/// Action when acks stop arriving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProbeName {
    /// Nothing before the retransmission timeout.
    None,
    /// Tail loss probe (RFC 8985 §7).
    Tlp,
    /// Probe timeout in any state (RFC 9002 §6.2).
    Quic,
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
    /// The same by packet numbers: at once only where a gap begins, not while an old one is open or
    /// filled.
    QuicGap,
    /// The same, with four packets at once from each new gap on, as Google QUIC did.
    Google,
    /// As ngtcp2: as quic-gap, but after an eighth of the path's RTT, 25 ms at most.
    Ngtcp2,
    /// As Linux whose receive window grows: the first 370 at once (measured with the emulator), and
    /// always what a sender as Linux (--as-linux) marks as the end of a buffer.
    LinuxGrowing,
}

/// Pacing by the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PacingName {
    /// Packets leave as the window opens.
    Off,
    /// 200 % of the window per RTT in slow start, 120 % in avoidance.
    Linux,
    /// The same for every scheme, also one with its own pace: the first ten segments go at once and
    /// later ones in bursts of a millisecond.
    LinuxAlways,
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

/// Side that opens connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OpenerName {
    /// The data sender, as the papers' bulk flows.
    Sender,
    /// The data receiver: a client that asks a server.
    Receiver,
}
