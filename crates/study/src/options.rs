//! Options of the command line, declared once for all commands.

pub mod address;
pub mod carrier;
pub mod environment;
pub mod path;
pub mod presets;
pub mod routers;

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use headstart_host::read_at_most;
use headstart_net::option_filter::{self, Action};
use headstart_net::{Limit, QueueDiscipline, Trace, policer, trace};
use headstart_startup::base;
use headstart_startup::catalogue::Entry;
use headstart_startup::parameters::{is_same_name, split_list};
use headstart_units::hash::{FNV128, fnv128};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span};

use crate::schemes;
use crate::workload::files::{ArrivalFile, SizeFile};
use crate::workload::web::front_pages::PageStatistics;

pub use address::address;
pub use carrier::{CryptoName, TransportName};
pub use environment::Environment;
pub use path::UpOptions;
pub use presets::PathPreset;
pub use routers::RouterOptions;

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
    /// Buffer before the bottleneck: bytes, packets, time at the link's rate, or BDP
    #[arg(long, alias = "down-buffer", default_value = "115 kB", value_name = "SIZE")]
    pub buffer: Buffer,
    /// Queue discipline of that buffer
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
    /// Packet-delivery trace (mahimahi format) that drives the bottleneck instead of a rate
    #[arg(long, alias = "down-trace", value_name = "FILE")]
    pub trace: Option<TraceFile>,
    /// Offset in its traces at which a run begins; `0s` is their beginning [default: another place
    /// for each seed; of a link the beginning]
    #[arg(long, value_name = "TIME")]
    pub trace_offset: Option<Span>,
    /// Rate of the way back [default: that of the way there]
    #[arg(long, value_name = "RATE")]
    pub up_rate: Option<Rate>,
    /// Buffer of the way back [default: that of the way there]
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
    #[arg(long, default_value = "cubic", value_name = "NAME")]
    pub base: BaseName,
    /// Loss detection of the sender
    #[arg(long, default_value = "rack", value_name = "NAME")]
    pub detection: DetectionName,
    /// With `udt`: when losses are reported. After a time: `round-trips` (4 RTT + RTTVAR + 10 ms)
    /// or `once`; `+periodic`: the first time too; `+back`: timeouts re-send received data.
    /// `+window`: it limits; `+unrepeated`: never the same packet twice; `+span`: the window of new
    /// data counts from the first packet missing
    #[arg(long, default_value = "round-trips+periodic+back", value_name = "WHEN")]
    pub loss_reports: ReportsName,
    /// Round trips of the handshake; UDT takes 2
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = whole(1..=4_u8))]
    pub handshakes: u8,
    /// Sender's action when acks stop arriving
    #[arg(long, default_value = "tlp", value_name = "NAME")]
    pub probe: ProbeName,
    /// When the receiver acknowledges
    #[arg(long, default_value = "immediate", value_name = "WHEN")]
    pub acks: AckName,
    /// Smallest retransmission timeout
    #[arg(long, default_value = "200 ms", value_name = "TIME")]
    pub min_rto: Span,
    /// Retransmission timeout before anything was measured, and of the SYN
    #[arg(long, default_value = "1 s", value_name = "TIME")]
    pub initial_rto: Span,
    /// Pacing where a scheme gives no pace of its own
    #[arg(long, default_value = "off", value_name = "NAME")]
    pub pacing: PacingName,
    /// Segments that a pacer lets go at once
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = whole(1..=64_u32))]
    pub quantum: u32,
    /// The receiver's window
    #[arg(long, default_value = "141 kB", value_name = "SIZE")]
    pub receive_window: Bytes,
    /// Explicit congestion notification: CoDel and RED mark instead of dropping
    #[arg(long)]
    pub ecn: bool,
    /// Let the window, not proportional rate reduction, limit recovery
    #[arg(long)]
    pub no_prr: bool,
    /// Keep the window after an idle time, as RFC 9002 does; else it starts again from the initial
    /// one (RFC 5681)
    #[arg(long)]
    pub no_idle_restart: bool,
    /// In the TCP model: what schemes that send a flow at once make of the later responses of
    /// a page's connection
    #[arg(long, default_value = "flights", value_name = "HOW")]
    pub later_responses: LaterName,
    /// Let the window grow for every ack, even where the application was the limit, as some stacks
    /// do; RFC 9002 does not
    #[arg(long)]
    pub no_window_validation: bool,
    /// Let proportional rate reduction send one segment more with every ack while it is below its
    /// goal, as RFC 6937 had it in 2013
    #[arg(long, conflicts_with = "no_prr")]
    pub prr_slow_start: bool,
    /// Let the sender do what Linux does beside the RFCs. Data leaves in buffers of a millisecond
    /// with PSH at the end of each. A timeout is SRTT + 200 ms at least, probes wait accordingly,
    /// and an application limits samples only by writing late
    #[arg(long)]
    pub as_linux: bool,
    /// Let records keep the fastest delivery rate of all, even where the application was the limit
    #[arg(long)]
    pub record_limited: bool,
}

/// The workload.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Workload")]
pub struct WorkloadOptions {
    /// Size of a flow, or a distribution: internet, data-center, enterprise, FILE.csv
    /// (docs/data.md)
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
    /// Size of those long flows
    #[arg(long, default_value = "100 MB", value_name = "SIZE")]
    pub long_size: Bytes,
    /// Scheme of long flows, those in the background too
    #[arg(long, default_value = "iw10", value_name = "SCHEME")]
    pub long_scheme: SchemeName,
    /// Receive window of long flows, if larger than that of the others
    #[arg(long, default_value = "4 MB", value_name = "SIZE")]
    pub long_window: Bytes,
    /// Pages instead of flows: HAR files that a browser saved; may be repeated
    #[arg(long, value_name = "FILE")]
    pub har: Vec<PathBuf>,
    /// Pages instead of flows: a hundred drawn from published statistics of front pages
    #[arg(long, value_name = "NAME", conflicts_with = "har")]
    pub pages: Option<PageStatistics>,
    /// Which page of the HAR files: its id, or its number from 1 [default: that of the earliest
    /// request]
    #[arg(long, value_name = "ID|NUMBER", requires = "har")]
    pub page: Option<String>,
    /// Connections that fetch pages: persistent:6, parallel:6, multiplexed [default: as a HAR says,
    /// multiplexed for HTTP/2 and 3; else persistent:6]
    #[arg(long, value_name = "HOW")]
    pub fetch: Option<FetchName>,
    /// Different peers, equally likely: each has one record in a sender's history
    #[arg(long, default_value_t = 20, value_name = "COUNT", value_parser = whole(1..=10_000_000_u32))]
    pub peers: u32,
    /// Peers that a sender's host remembers
    #[arg(long, default_value_t = 100_000, value_name = "COUNT", value_parser = whole(0..=u32::MAX as usize))]
    pub history: usize,
    /// Bandwidth that clients announce, as a multiple of the bottleneck's rate
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    pub hint: Ratio,
    /// Side that opens connections [default: the sender; in the emulator always the receiver]
    #[arg(long, value_name = "END")]
    pub opener: Option<OpenerName>,
}

/// Execution of a comparison.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Run")]
pub struct RunOptions {
    /// Place of the runs: simulated, or in real time on real packets, by this machine's TCP or by
    /// the QUIC stack
    #[arg(long = "in", default_value = "simulator", value_name = "WHERE")]
    pub environment: Environment,
    /// Schemes to compare [default: all that the routers of the path allow; `headstart schemes`
    /// lists them]
    #[arg(long, value_name = "NAMES")]
    pub schemes: Option<SchemeNames>,
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
    /// Run it although the estimate is beyond 4 h of processor time or 2 GB of memory
    #[arg(long)]
    pub large: bool,
}

/// Round-trip times of the classes of hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rtts(pub Vec<Span>);

impl FromStr for Rtts {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let times: Result<Vec<Span>, _> = text.split('+').map(str::parse).collect();
        let times = times.map_err(|error| error.to_string())?;
        if times.len() > 64 {
            return Err(format!("found {} classes of hosts, expected at most 64", times.len()));
        }
        Ok(Self(times))
    }
}

/// Size of a buffer, in one of several units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// In bytes.
    Bytes(Bytes),
    /// In packets.
    Packets(Packets),
    /// Data that the link sends in this time.
    Time(Span),
    /// A share of rate x RTT.
    Bdp(Ratio),
}

impl FromStr for Buffer {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        if let Some(number) = lower.strip_suffix("bdp") {
            let hundredths = format!("{}%", number.trim());
            // `1.5 BDP` is 1.5 times; the percentage reader takes the digits.
            return hundredths
                .parse()
                .map(|share: Ratio| Self::Bdp(share))
                .map_err(|_| format!("found `{text}`, expected a number before `BDP`, such as `1.5 BDP`"));
        }
        if let Ok(packets) = text.parse() {
            return Ok(Self::Packets(packets));
        }
        if let Ok(time) = text.parse() {
            return Ok(Self::Time(time));
        }
        text.parse().map(Self::Bytes).map_err(|_| {
            format!("found `{text}`, expected a buffer such as `115 kB`, `104 packets`, `50 ms` or `1 BDP`")
        })
    }
}

impl Buffer {
    /// The limit on a link of this rate and round-trip time.
    #[must_use]
    pub fn limit(self, rate: Rate, rtt: Span) -> Limit {
        match self {
            Self::Bytes(bytes) => Limit::bytes(bytes),
            Self::Packets(packets) => Limit::packets(packets),
            Self::Time(time) => Limit::bytes(rate * time),
            // The share was read as a percentage.
            Self::Bdp(share) => Limit::bytes(rate * rtt * 100 * share),
        }
    }
}

/// A trace, read and parsed.
#[derive(Clone)]
pub struct TraceFile {
    /// Its file.
    pub name: String,
    /// Its contents.
    pub trace: Arc<Trace>,
}

impl fmt::Debug for TraceFile {
    /// Prints the contents, which determine the result of a run; the name does not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.trace.as_millis().iter().flat_map(|millis| millis.to_le_bytes());
        write!(f, "trace {:032x}", fnv128(FNV128, bytes))
    }
}

impl FromStr for TraceFile {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = read_at_most(Path::new(text), trace::MAX_BYTES);
        let bytes = bytes.map_err(|error| format!("cannot read it: {error}"))?;
        let trace = Trace::from_bytes(&bytes).map_err(|error| error.to_string())?;
        Ok(Self { name: text.to_owned(), trace: Arc::new(trace) })
    }
}

/// A burst of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Share of packets that begin one.
    pub enter: Ratio,
    /// Mean length in packets.
    pub length: u32,
}

impl FromStr for Burst {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected share and mean length, such as `0.1%,5`");
        let (share, length) = text.split_once(',').ok_or_else(expected)?;
        let enter = share.parse().map_err(|_| expected())?;
        let length = length.trim().parse().map_err(|_| expected())?;
        if length == 0 { Err(expected()) } else { Ok(Self { enter, length }) }
    }
}

/// A box that acts on packets with IP options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpOptions(pub option_filter::Params);

impl IpOptions {
    /// The parameters of its element.
    #[must_use]
    pub const fn params(self) -> option_filter::Params {
        self.0
    }
}

impl fmt::Display for IpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.0.action {
            Action::Drop => "drop",
            Action::Remove => "remove",
        };
        write!(f, "{action}:{}", self.0.share)
    }
}

impl FromStr for IpOptions {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected `drop` or `remove`, or with a share `drop:30%`");
        let (action, share) = text.split_once(':').unwrap_or((text, "100%"));
        let action = match action.trim() {
            "drop" => Action::Drop,
            "remove" => Action::Remove,
            _ => return Err(expected()),
        };
        let share = share.parse().map_err(|_| expected())?;
        Ok(Self(option_filter::Params { action, share }))
    }
}

/// Another link of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopLink {
    /// Its rate.
    pub rate: Rate,
    /// Its propagation delay, each way.
    pub delay: Span,
    /// Its buffer.
    pub buffer: Buffer,
}

impl FromStr for HopLink {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected rate/delay/buffer, such as `10mbit/5ms/50kB`");
        let (rest, buffer) = text.rsplit_once('/').ok_or_else(expected)?;
        let (rate, delay) = rest.rsplit_once('/').ok_or_else(expected)?;
        Ok(Self {
            rate: rate.parse().map_err(|_| expected())?,
            delay: delay.parse().map_err(|_| expected())?,
            buffer: buffer.parse().map_err(|_| expected())?,
        })
    }
}

/// A scheme of the catalogue, with parameters or without.
#[derive(Clone, Copy)]
pub struct SchemeName(pub &'static Entry);

impl fmt::Debug for SchemeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.name)
    }
}

impl FromStr for SchemeName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        schemes::find(text).map(Self).map_err(|error| error.to_string())
    }
}

/// Several schemes, `iw10,halfback(additional=25%)`: commas within parentheses do not separate.
#[derive(Clone, Debug, Default)]
pub struct SchemeNames(pub Vec<SchemeName>);

impl FromStr for SchemeNames {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        split_list(text).map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl RunOptions {
    /// The schemes selected; empty if no option selects any.
    #[must_use]
    pub fn schemes(&self) -> &[SchemeName] {
        self.schemes.as_ref().map_or(&[], |names| &names.0)
    }
}

/// Flow sizes, as given by an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeName {
    /// All flows have this size.
    Fixed(Bytes),
    /// A published distribution.
    Named(String),
    /// A distribution from a file of the user's.
    File(SizeFile),
}

impl FromStr for SizeName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let names = ["internet", "data-center", "enterprise"];
        if let Some(name) = names.into_iter().find(|name| is_same_name(name, text)) {
            return Ok(Self::Named(name.to_owned()));
        }
        if text.to_ascii_lowercase().ends_with(".csv") {
            return text.parse().map(Self::File);
        }
        match text.parse::<Bytes>() {
            Ok(bytes) if !bytes.is_zero() => Ok(Self::Fixed(bytes)),
            _ => Err(format!(
                "found `{text}`, expected a size such as `100 kB`, or internet, data-center, enterprise or a file.csv"
            )),
        }
    }
}

/// Method by which pages are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchName(pub headstart_sim::workload::page::Fetch);

impl FromStr for FetchName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        use headstart_sim::workload::page::Fetch;
        let count = |number: &str| number.parse().ok().filter(|count| (1..=100).contains(count));
        let fetch = match text.split_once(':') {
            Some(("persistent", number)) => count(number).map(Fetch::Persistent),
            Some(("parallel", number)) => count(number).map(Fetch::Parallel),
            None if text == "multiplexed" => Some(Fetch::Multiplexed),
            _ => None,
        };
        fetch.map(Self).ok_or_else(|| {
            format!("found `{text}`, expected `persistent:6`, `parallel:6` (connections for each origin) or `multiplexed`")
        })
    }
}

/// Schedule of loss reports, as in UDT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportsName(pub headstart_sim::tcp::Udt);

impl FromStr for ReportsName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        use headstart_sim::tcp::{Reports, Udt};
        let mut udt = Udt {
            reports: Reports::Once,
            is_periodic: false,
            asks_window: false,
            goes_back: false,
            repeats: true,
            spans: false,
        };
        for part in text.split('+') {
            match part {
                "round-trips" => udt.reports = Reports::RoundTrips,
                "once" => udt.reports = Reports::Once,
                "periodic" => udt.is_periodic = true,
                "window" => udt.asks_window = true,
                "back" => udt.goes_back = true,
                "unrepeated" => udt.repeats = false,
                "span" => udt.spans = true,
                _ => match part.parse::<Span>() {
                    Ok(interval) if interval >= Span::from_millis(1) => {
                        udt.reports = Reports::Every(interval)
                    }
                    _ => {
                        return Err(format!(
                            "found `{text}`, expected a time of at least 1 ms, `round-trips` or `once`, and any of \
                             `+periodic`, `+window`, `+back`, `+unrepeated`, `+span`"
                        ));
                    }
                },
            }
        }
        Ok(Self(udt))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_read_in_every_unit() {
        let rate = Rate::from_mbit_per_sec(15);
        let rtt = Span::from_millis(60);
        for (text, expected) in [
            ("115 kB", Limit::bytes(Bytes::new(115_000))),
            ("104p", Limit::packets(Packets::new(104))),
            ("104 packets", Limit::packets(Packets::new(104))),
            ("60 ms", Limit::bytes(Bytes::new(112_500))),
            ("1 BDP", Limit::bytes(Bytes::new(112_500))),
            ("0.5bdp", Limit::bytes(Bytes::new(56_250))),
        ] {
            assert_eq!(text.parse::<Buffer>().expect(text).limit(rate, rtt), expected, "{text}");
        }
        for text in ["", "115", "BDP", "-1 BDP", "12 parsecs"] {
            let error = text.parse::<Buffer>().expect_err(text);
            assert!(error.contains("expected"), "{error}");
        }
    }

    #[test]
    fn misspelt_values_are_refused_with_the_expected_ones() {
        for error in [
            "tahoe".parse::<SchemeName>().map(|_| ()).expect_err("no such scheme"),
            "10mbit".parse::<HopLink>().map(|_| ()).expect_err("no delay"),
            "1%".parse::<Burst>().map(|_| ()).expect_err("no length"),
            "keep:1%".parse::<IpOptions>().map(|_| ()).expect_err("no action"),
            "1%,0".parse::<Burst>().map(|_| ()).expect_err("no burst"),
            "persistent:0".parse::<FetchName>().map(|_| ()).expect_err("no connection"),
            "0 B".parse::<SizeName>().map(|_| ()).expect_err("nothing"),
            "often".parse::<ReportsName>().map(|_| ()).expect_err("no time"),
            "1 us".parse::<ReportsName>().map(|_| ()).expect_err("an endless loop"),
            "60ms,70ms".parse::<Rtts>().map(|_| ()).expect_err("no plus"),
        ] {
            assert!(error.contains("expected"), "{error}");
        }
    }
}
