//! Options of the command line, declared once for all commands.

pub mod address;
pub mod attack;
pub mod choices;
pub mod example_links;
pub mod path;
pub mod presets;
pub mod routers;
pub mod values;

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Command};
use headstart_net::jitter::Order;
use headstart_net::{ElementPlan, duplicate, policer};
use headstart_sim::tcp::{Pacing, Probe, ReceiveGrowth};
use headstart_sim::workload::Opener;
use headstart_startup::base;
use headstart_startup::catalogue::Server;
use headstart_units::{Bytes, ParseError, Rate, Ratio, Span};

use crate::workload::files::ArrivalFile;
use crate::workload::web::front_pages::PageStatistics;

pub use headstart_net::QueueDiscipline;

pub use address::{address, destination};
pub use attack::AttackName;
pub use choices::{
    AckName, BASES, CryptoName, DetectionName, Environment, GROWTHS, LaterName, OPENERS, PACINGS, PROBES,
    RouterName, SERVERS, TransportName, choice_name, discipline, name_of, one_of, usual_buffer,
};
pub use path::UpOptions;
pub use presets::PathPreset;
pub use routers::RouterOptions;
pub use values::{
    Buffer, Burst, DelayFile, FetchName, HopLink, IpOptions, Rtts, SchemeName, SchemeNames, SizeName,
    TraceFile,
};

/// A group of options, each with its declared default.
///
/// # Panics
/// If an option of the group has to be given.
#[must_use]
pub fn defaults<Options: Args>() -> Options {
    let matches = Options::augment_args(Command::new("")).get_matches_from([""]);
    Options::from_arg_matches(&matches).expect("no option is required")
}

/// Parser of a whole number within a range; the error has the text found and the range.
pub fn whole<T>(
    range: RangeInclusive<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + fmt::Display + Clone + Send + Sync + 'static,
{
    move |text| {
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            format!("found `{text}`, expected a whole number from {least} to {most}")
        })
    }
}

/// Parser of a size, rate or time that is not below `least`.
pub fn at_least<T>(least: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr<Err = ParseError> + PartialOrd + fmt::Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse::<T>() {
        Ok(value) if value < least => Err(format!("found `{text}`, expected {least} at least")),
        read => read.map_err(|error| error.to_string()),
    }
}

/// The path between the hosts.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Path")]
pub struct PathOptions {
    /// Rate of the bottleneck, from sender to receiver
    #[arg(long, alias = "down-rate", default_value = "15 Mbit/s", value_name = "RATE")]
    pub rate: Rate,
    /// Round-trip time without queues; several hosts' times as `20ms+60ms+120ms`
    #[arg(long, default_value = "60 ms", value_name = "TIME")]
    pub rtt: Rtts,
    /// Buffer before the bottleneck: bytes, packets, time at the link's rate, or BDP [CoDel: 1000
    /// packets; FQ-CoDel: 10240 packets, RFC 8290]
    #[arg(long, alias = "down-buffer", default_value = "115 kB", value_name = "SIZE")]
    pub buffer: Buffer,
    /// Queue discipline of the bottleneck's buffer
    #[arg(long, alias = "down-queue", default_value = "drop-tail", value_name = "DISCIPLINE", value_parser = discipline())]
    pub queue: QueueDiscipline,
    /// Policer before the bottleneck: rate and burst, as `5mbit,50kB` [default burst: 100 ms of the
    /// rate]
    #[arg(long, value_name = "RATE,BURST")]
    pub policer: Option<policer::Params>,
    /// Random loss after the bottleneck, each packet for itself
    #[arg(long, alias = "down-loss", default_value = "0 %", value_name = "SHARE")]
    pub loss: Ratio,
    /// Bursts of loss: share of packets that begin one, and mean length in packets, as `0.1%,5`
    #[arg(long, value_name = "SHARE,LENGTH")]
    pub burst_loss: Option<Burst>,
    /// Random extra delay up to this, in order
    #[arg(long, alias = "down-jitter", default_value = "0 ms", value_name = "TIME")]
    pub jitter: Span,
    /// Let jitter reorder packets
    #[arg(long)]
    pub reorder: bool,
    /// Share of packets that arrive twice
    #[arg(long, default_value = "0 %", value_name = "SHARE")]
    pub duplicate: Ratio,
    /// A box before the bottleneck that drops packets with IP options, or removes Quick-Start
    /// requests, all or a share: `drop`, `remove`, `drop:30%`
    #[arg(long, value_name = "ACTION")]
    pub ip_options: Option<IpOptions>,
    /// Trace that drives the bottleneck instead of a rate: packet deliveries as mahimahi has them,
    /// FILE.csv with rates (docs/data.md), or example:leo, example:5g, example:outage
    #[arg(long, alias = "down-trace", value_name = "FILE")]
    pub trace: Option<TraceFile>,
    /// Recorded extra delay on the way there: a line of milliseconds for every 10 ms, over and
    /// over; or example:leo, example:5g
    #[arg(long, value_name = "FILE")]
    pub delay_trace: Option<DelayFile>,
    /// Offset in the traces at which a run begins [default: another place for each seed; with
    /// `link` their beginning]
    #[arg(long, value_name = "TIME")]
    pub trace_offset: Option<Span>,
    /// Rate of the way back [default: --rate; with --trace its mean rate]
    #[arg(long, value_name = "RATE")]
    pub up_rate: Option<Rate>,
    /// Buffer of the way back [default: --buffer]
    #[arg(long, value_name = "SIZE")]
    pub up_buffer: Option<Buffer>,
    /// Trace that drives the way back
    #[arg(long, value_name = "FILE")]
    pub up_trace: Option<TraceFile>,
    /// Signalling that the routers before the links support
    #[arg(long, default_value = "none", value_name = "WHAT")]
    pub routers: RouterName,
    /// Another link behind the bottleneck, as `10mbit/5ms/50kB` (rate/delay/buffer); may be
    /// repeated
    #[arg(long = "hop", value_name = "LINK")]
    pub hops: Vec<HopLink>,
    /// Settings of the routers.
    #[command(flatten)]
    pub routing: RouterOptions,
}

impl PathOptions {
    /// True if a recording drives rate or delay: a run begins somewhere in it.
    #[must_use]
    pub const fn is_traced(&self) -> bool {
        self.trace.is_some() || self.up_trace.is_some() || self.delay_trace.is_some()
    }

    /// The parts behind the links, in the order in which packets cross them.
    fn parts(&self) -> impl Iterator<Item = ElementPlan> {
        let order = if self.reorder { Order::Free } else { Order::Kept };
        let offset = self.trace_offset.unwrap_or(Span::ZERO);
        let others = [
            path::is_some(self.duplicate).then(|| duplicate::Params { share: self.duplicate }.into()),
            self.delay_trace.as_ref().map(|file| file.params(offset).into()),
        ];
        path::random_parts(self.loss, self.burst_loss, self.jitter, order).chain(others.into_iter().flatten())
    }
}

/// The TCP model.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Transport")]
pub struct TransportOptions {
    /// Transport: in the simulator its model of TCP, or the real QUIC stack in virtual time; in the
    /// emulator this machine's TCP, or the QUIC stack
    ///
    /// Over QUIC loss detection, acknowledgements and timers are the stack's own, and the options
    /// for them below change nothing.
    #[arg(long, default_value = "tcp", value_name = "NAME")]
    pub transport: TransportName,
    /// Protection of QUIC packets in virtual time: as on the Internet, or none, which is quicker
    #[arg(long, default_value = "tls", value_name = "NAME")]
    pub crypto: CryptoName,
    /// Congestion controller that the schemes hand over to
    #[arg(long, default_value = "cubic", value_name = "NAME", value_parser = one_of(BASES))]
    pub base: base::Kind,
    /// Loss detection of the sender
    #[arg(long, default_value = "rack", value_name = "NAME")]
    pub detection: DetectionName,
    /// Round trips of the handshake. UDT takes 2, TLS over TCP too; with 0 the request comes in the
    /// first packet, as with QUIC's 0-RTT and TCP Fast Open
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = whole(0..=4_u8))]
    pub handshakes: u8,
    /// Certificates that the accepting side sends in the last round trip of the handshake. In the
    /// first one it may send three times what came (RFC 9000 §8.1), 3600 bytes
    #[arg(long, default_value = "0 B", value_name = "SIZE")]
    pub certificate: Bytes,
    /// Size of a full data packet on the link, headers included
    #[arg(long, default_value = "1500 B", value_name = "SIZE")]
    pub mtu: Bytes,
    /// Headers of a data packet, which are in --mtu, and of an ack: 52 B are TCP's with timestamps
    /// over IPv4, 44 B UDT's
    #[arg(long, default_value = "52 B", value_name = "SIZE")]
    pub header: Bytes,
    /// Handling of lost tails: the sender's action when acks stop arriving
    #[arg(long, default_value = "tlp", value_name = "NAME", value_parser = one_of(PROBES))]
    pub probe: Probe,
    /// When the receiver acknowledges
    #[arg(long, default_value = "immediate", value_name = "WHEN")]
    pub acks: AckName,
    /// Smallest retransmission timeout
    #[arg(long, default_value = "200 ms", value_name = "TIME")]
    pub min_rto: Span,
    /// Retransmission timeout before anything was measured, and of the SYN
    #[arg(long, default_value = "1 s", value_name = "TIME", value_parser = at_least(Span::from_micros(1)))]
    pub initial_rto: Span,
    /// Pacing where a scheme gives no pace of its own
    #[arg(long, default_value = "off", value_name = "NAME", value_parser = one_of(PACINGS))]
    pub pacing: Pacing,
    /// Segments that a pacer lets go at once
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = whole(1..=64_u32))]
    pub quantum: u32,
    /// The receiver's window [default: what Chromium grants to a QUIC stream; Halfback has 141 kB]
    #[arg(long, default_value = "6 MB", value_name = "SIZE")]
    pub receive_window: Bytes,
    /// Growth of the receive window: in Linux up to 32 MiB from 64240 B (--receive-window), in
    /// Chromium up to 6 MiB
    #[arg(long, default_value = "fixed", value_name = "HOW", value_parser = one_of(GROWTHS))]
    pub receive_growth: ReceiveGrowth,
    /// Explicit congestion notification: CoDel and RED mark instead of dropping
    #[arg(long)]
    pub ecn: bool,
    /// End recovery at the first ack of data sent after it began, and begin another when such data
    /// is lost, as RFC 9002 does. Otherwise it waits for all that was sent before
    #[arg(long)]
    pub recovery_period: bool,
    /// Let the window, not proportional rate reduction, limit recovery
    #[arg(long)]
    pub no_prr: bool,
    /// Let a lost tail wait for the timeout, as in Halfback §3.4: with --detection rfc6675 rules 3
    /// and 4 of NextSeg (§4) are left out
    #[arg(long)]
    pub no_rescue: bool,
    /// Keep the window after an idle time, as RFC 9002 does; else it starts again from the initial
    /// one (RFC 5681)
    #[arg(long)]
    pub no_idle_restart: bool,
    /// Halve the window for each retransmission timeout of an idle time, as Linux does (RFC 2861)
    #[arg(long, conflicts_with = "no_idle_restart")]
    pub idle_decay: bool,
    /// Keep the window for five minutes in which less than half of it was used, and let a loss then
    /// cut what was used (RFC 7661)
    #[arg(long, conflicts_with_all = ["no_idle_restart", "idle_decay", "no_window_validation"])]
    pub pipe_ack: bool,
    /// Start of later responses of a page's connection, by schemes that send a flow at once (TCP
    /// model)
    #[arg(long, default_value = "flights", value_name = "HOW")]
    pub later_responses: LaterName,
    /// Let the window grow for every ack, even where the application was the limit, as some stacks
    /// do; RFC 9002 does not
    #[arg(long)]
    pub no_window_validation: bool,
    /// Let the window grow to at most twice the largest flight since it was last cut, and in
    /// congestion avoidance to a segment more than that flight
    /// (draft-ietf-ccwg-ratelimited-increase)
    #[arg(long, conflicts_with = "no_window_validation")]
    pub rate_limited_increase: bool,
    /// Let proportional rate reduction send one segment more with every ack while it is below its
    /// goal, as RFC 6937 had it in 2013
    #[arg(long, conflicts_with = "no_prr")]
    pub prr_slow_start: bool,
    /// Let the sender depart from the RFCs as Linux does. Data leaves in buffers of a millisecond
    /// with PSH at the end of each. A timeout is SRTT + 200 ms at least, probes wait accordingly,
    /// and an application limits samples only by writing late
    #[arg(long)]
    pub as_linux: bool,
    /// Let the model do what the QUIC stack does, in a thirtieth of its computing time. The
    /// receiver opens connections with packets of 1200 bytes and acknowledges every second one.
    /// Probes, recovery and pacing are those of RFC 9002 (how near the two are:
    /// docs/records/quic-under-load.md)
    #[arg(long, conflicts_with_all = [
        "as_linux", "acks", "probe", "recovery_period", "no_prr", "prr_slow_start", "pacing", "no_idle_restart",
        "idle_decay", "pipe_ack",
    ])]
    pub as_quic: bool,
    /// Let records keep the fastest delivery rate of all, even where the application was the limit
    #[arg(long)]
    pub record_limited: bool,
}

/// The workload.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadOptions {
    /// Size of a flow, or a distribution: mixed (100 kB, every tenth 1 MB), internet, data-center,
    /// enterprise, FILE.csv (docs/data.md)
    #[arg(long, default_value = "100 kB", value_name = "SIZE")]
    pub size: SizeName,
    /// Largest flow of a named distribution
    #[arg(long, default_value = "1 MB", value_name = "SIZE")]
    pub cap: Bytes,
    /// Offered load: payload as a share of the bottleneck's rate
    #[arg(long, default_value = "25 %", value_name = "SHARE")]
    pub load: Ratio,
    /// Flows that arrive as a file says, start and size of each, in place of --load and --size:
    /// FILE.csv (docs/data.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load", "size", "har", "pages"])]
    pub arrivals: Option<ArrivalFile>,
    /// Long flows in the background, from the beginning to the end
    #[arg(long, default_value_t = 0, value_name = "COUNT", value_parser = whole(0..=1000_u32))]
    pub background: u32,
    /// Share of the load that long flows bring, which arrive as the short ones do
    #[arg(long, default_value = "0 %", value_name = "SHARE")]
    pub long_share: Ratio,
    /// Size of the flows of --long-share
    #[arg(long, default_value = "100 MB", value_name = "SIZE")]
    pub long_size: Bytes,
    /// Scheme of long flows, those in the background too
    #[arg(long, default_value = "iw10", value_name = "SCHEME")]
    pub long_scheme: SchemeName,
    /// Receive window of long flows, if it is larger than the others'
    #[arg(long, default_value = "4 MB", value_name = "SIZE")]
    pub long_window: Bytes,
    /// Rate of a concurrent real-time flow that does not adapt (packets of 1200 bytes): its delay
    /// and loss are measured
    #[arg(long, value_name = "RATE")]
    pub media: Option<Rate>,
    /// Concurrent requests for rates without connections: what Quick-Start routers grant them is
    /// wasted
    #[arg(long, default_value = "none", value_name = "KIND")]
    pub attack: AttackName,
    /// Requests of the attack per second
    #[arg(long, default_value_t = 20, value_name = "COUNT", value_parser = whole(1..=1_000_000_u32))]
    pub attack_requests: u32,
    /// Pages instead of flows: HAR files that a browser saved; may be repeated
    #[arg(long, value_name = "FILE")]
    pub har: Vec<PathBuf>,
    /// Pages instead of flows: a hundred drawn from published statistics of front pages
    #[arg(long, value_name = "NAME", conflicts_with = "har")]
    pub pages: Option<PageStatistics>,
    /// Page of the HAR files: its id, or its number from 1 [default: the one with the earliest
    /// request]
    #[arg(long, value_name = "ID|NUMBER", requires = "har")]
    pub page: Option<String>,
    /// Connections that fetch pages: persistent:6, parallel:6, multiplexed [default: as a HAR says,
    /// multiplexed for HTTP/2 and 3; else persistent:6]
    #[arg(long, value_name = "HOW")]
    pub fetch: Option<FetchName>,
    /// Answers of --size that a client asks for one after the other over one connection, or pages
    /// over its connections; times are of each
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = whole(1..=1_000_u32), conflicts_with = "arrivals")]
    pub answers: u32,
    /// Pause of the client before each answer but the first
    #[arg(long, default_value = "1 s", value_name = "TIME")]
    pub think: Span,
    /// Different peers, equally likely: each has one record in a sender's history
    #[arg(long, default_value_t = 20, value_name = "COUNT", value_parser = whole(1..=10_000_000_u32))]
    pub peers: u32,
    /// Peers that a sender's host remembers
    #[arg(long, default_value_t = 100_000, value_name = "COUNT", value_parser = whole(0..=u32::MAX as usize))]
    pub history: usize,
    /// Bandwidth that clients announce, as a multiple of the bottleneck's rate
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    pub hint: Ratio,
    /// Share of the peers that announce it [default: all to a scheme that needs hints, none to
    /// others]
    #[arg(long, value_name = "SHARE")]
    pub hint_share: Option<Ratio>,
    /// Bandwidth that the other peers announce, as a multiple of the bottleneck's rate [default:
    /// none]
    #[arg(long, value_name = "SHARE", requires = "hint_share")]
    pub hint_lie: Option<Ratio>,
    /// Side that opens connections [default: the sender; in the emulator always the receiver]
    #[arg(long, value_name = "END", value_parser = one_of(OPENERS))]
    pub opener: Option<Opener>,
}

/// Execution of a comparison.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
pub struct RunOptions {
    /// Place of the runs: simulated, or in real time on real packets, by this machine's TCP or by
    /// the QUIC stack
    #[arg(long = "in", default_value = "simulator", value_name = "WHERE")]
    pub environment: Environment,
    /// Schemes to compare [default: all that the routers of the path allow: `headstart list
    /// schemes`]
    #[arg(long, value_name = "NAMES")]
    pub schemes: Option<SchemeNames>,
    /// Server that is to run the scheme: others than it can carry are left out, and the verdict is
    /// for it
    #[arg(long = "for", value_name = "SERVER", value_parser = one_of(SERVERS))]
    pub server: Option<Server>,
    /// Scheme that the others are compared with; harm is measured on its flows [default: iw10;
    /// where a kernel runs, its own start]
    #[arg(long, value_name = "SCHEME")]
    pub reference: Option<SchemeName>,
    /// Simulated time during which flows arrive
    #[arg(long, default_value = "300 s", value_name = "TIME")]
    pub duration: Span,
    /// Flows that begin earlier are left out of the figures
    #[arg(long, default_value = "0 s", value_name = "TIME")]
    pub warm_up: Span,
    /// Simulated time after the last arrival for flows to finish; what has not then counts with its
    /// age
    #[arg(long, default_value = "20 s", value_name = "TIME")]
    pub drain: Span,
    /// Repetitions with different seeds
    #[arg(long, default_value_t = 8, value_name = "COUNT", value_parser = whole(1..=10_000_u32))]
    pub repeats: u32,
    /// First seed
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = whole(0..=u64::MAX))]
    pub seed: u64,
    /// Threads [default: all cores]; the results do not depend on it
    #[arg(long, value_name = "COUNT", value_parser = whole(0..=u16::MAX as usize))]
    pub threads: Option<usize>,
    /// Run it although the estimate is above 4 h of processor time or 2 GB of memory
    #[arg(long)]
    pub large: bool,
}

impl RunOptions {
    /// The schemes selected; empty if no option selects any.
    #[must_use]
    pub fn schemes(&self) -> &[SchemeName] {
        self.schemes.as_ref().map_or(&[], |names| &names.0)
    }
}
