//! `headstart link`: a path of the simulator's elements on real packets.
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | from options to a plan for each direction |
//! | [`change`] | changes of the path while it runs |
//! | [`run`] | the relay, the programs at its ends, and the summary |

pub mod change;
pub mod plan;
pub mod run;
pub mod show;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use headstart_units::Span;

use crate::link::change::Change;
use headstart_study::options::{PathOptions, PathPreset, UpOptions, address, at_least, destination, whole};

/// All options of a link.
#[derive(Args, Clone, Debug)]
pub struct LinkArgs {
    /// A path by name; options override its numbers (`headstart list paths`: sources, buffers)
    #[arg(long = "path", value_name = "NAME", help_heading = "Path")]
    pub preset: Option<PathPreset>,
    /// The path.
    #[command(flatten)]
    pub path: PathOptions,
    /// The way back, where it is not a plain link.
    #[command(flatten)]
    pub up: UpOptions,
    /// Programs at its ends.
    #[command(flatten)]
    pub ends: EndOptions,
    /// Options of the run.
    #[command(flatten)]
    pub how: HowOptions,
}

/// Programs at the ends of the path.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Ends")]
pub struct EndOptions {
    /// Relay UDP to this server instead of running a program; needs no privileges
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = destination, conflicts_with_all = ["serve", "command"])]
    pub udp: Option<SocketAddr>,
    /// With --udp: where clients send [default: a free port of the loopback, which is printed]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, requires = "udp")]
    pub listen: Option<SocketAddr>,
    /// With --udp: clients at the same time
    #[arg(long, default_value_t = 256, value_name = "COUNT", value_parser = whole(1..=u16::MAX))]
    pub clients: u16,
    /// With --udp: a client that is silent for so long is dropped
    #[arg(long, default_value = "120 s", value_name = "TIME", value_parser = at_least(Span::from_millis(1)))]
    pub idle: Span,
    /// Run this (by the shell) at the other end, in a namespace of its own, and wait until it
    /// listens
    #[arg(long, value_name = "COMMAND", requires = "command")]
    pub serve: Option<String>,
    /// Longest packet of the program's device
    #[arg(long, default_value_t = 1500, value_name = "BYTES", value_parser = whole(576..=u16::MAX))]
    pub mtu: u16,
    /// The program behind the path, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Options of the run.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
pub struct HowOptions {
    /// Timed changes of settings, as `10s rate=5mbit loss=1%` (rate, up-rate, rtt, loss, up-loss);
    /// may be repeated
    #[arg(long = "change", value_name = "TIME WHAT=VALUE..")]
    pub changes: Vec<Change>,
    /// File of timed changes, each in a line as --change has it; `#` begins a comment
    #[arg(long, value_name = "FILE")]
    pub schedule: Option<PathBuf>,
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub seed: u64,
    /// Write a line for each arrival, departure and drop to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// End after this time [default: when the command ends, or with Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = at_least(Span::from_millis(1)))]
    pub duration: Option<Span>,
    /// The run is invalid if the 99th percentile of lateness exceeds this, or the largest 40 times
    /// this
    #[arg(long, default_value = "0.5 ms", value_name = "TIME")]
    pub tolerance: Span,
    /// Do not sleep but spin for so long before each deadline: more exact below 100 Mbit/s, and a
    /// core is busy
    #[arg(long, default_value = "0 ms", value_name = "TIME")]
    pub spin: Span,
    /// Ordinary priority, even where real-time priority is allowed
    #[arg(long)]
    pub ordinary_priority: bool,
    /// No summary at the end
    #[arg(long)]
    pub quiet: bool,
    /// Fail (exit code 3) if the machine could not keep real time
    #[arg(long)]
    pub strict: bool,
}

/// Options of the figures of a link.
#[derive(Args, Clone, Debug)]
pub struct ShowLinkArgs {
    /// A log that `headstart link --log` wrote
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// Folder for throughput.svg, delay.svg, queue.svg and report.html
    #[arg(long, default_value = "headstart-link", value_name = "FOLDER")]
    pub out: PathBuf,
}

/// The hidden command that starts a program in a namespace; only the relay writes these.
#[derive(Args, Clone, Debug)]
pub struct EndArgs {
    /// The relay's process.
    pub parent: u32,
    /// The device's address.
    pub ours: std::net::Ipv4Addr,
    /// The other end's address.
    pub peer: std::net::Ipv4Addr,
    /// Longest packet.
    pub mtu: u16,
    /// The program.
    #[arg(last = true)]
    pub command: Vec<OsString>,
}
