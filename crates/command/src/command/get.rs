//! `headstart get`: pages over HTTP/3, and their times.

mod show;
mod visits;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use headstart_downlink::{Machine, Network, Past, Survey};
use headstart_host::unix_now;
use headstart_quic::{Choice, ClientSetup};
use headstart_startup::hint::Steps;
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Bytes, Rate, Span};
use headstart_web::client::{self, FetchPlan, Origin, Trust, Visit};
use headstart_web::identity;
use http::Uri;
use noq::VarInt;

use super::format::Format;
use super::serve::Choices;
use headstart_report::errors::Refuse as _;
use headstart_study::options::{at_least, destination};
use visits::{PageFetches, is_refusal, with_advice};

/// Options of `headstart get`.
#[derive(Args, Clone, Debug)]
pub struct GetArgs {
    /// Pages of one server; several are fetched at once over one connection
    #[arg(value_name = "URL", required = true, value_parser = Origin::page)]
    pub urls: Vec<Uri>,
    /// Downlink rate that the server gets as a hint: auto, none, or a rate such as `50 Mbit/s`
    #[arg(long, default_value = "none", value_name = "HINT")]
    pub hint: HintName,
    /// The access technology that goes with a rate: unknown, ethernet, dsl, cable, wifi, 3g, lte
    /// [default: unknown]
    #[arg(long, value_name = "NAME")]
    pub access: Option<Access>,
    /// Number of fetches, each over a new connection
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = headstart_study::options::whole(1..=10_000_u32))]
    pub repeat: u32,
    /// Schemes to request in turn; the others are compared with the first. Needs a server that was
    /// started with --allow-scheme-choice
    #[arg(long, value_name = "NAMES")]
    pub compare: Option<Choices>,
    /// Send the request in the first packet where the server remembers this client (0-RTT): from
    /// the second fetch on
    #[arg(long = "0rtt")]
    pub early_data: bool,
    /// Trust only the certificates in this file (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub certificates: Option<PathBuf>,
    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Connect to this address instead of the name's own: to a relay, for example
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = destination)]
    pub connect: Option<SocketAddr>,
    /// Bytes that may be on their way or unread: they limit the rate to this for each RTT. Above
    /// 2.4 MB the QUIC stack may end a connection whose data arrives faster than it is read
    #[arg(long, default_value = "2 MB", value_name = "SIZE", value_parser = at_least(Bytes::new(1200)))]
    pub receive_window: Bytes,
    /// Time limit of a fetch. A host that refuses the connection ends it at once
    #[arg(long, default_value = "30 s", value_name = "TIME")]
    pub timeout: Span,
    /// Write the page into this file, with `-` to standard output in place of the times; of one URL
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The downlink hint for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintName {
    /// No hint.
    None,
    /// The estimators' rate.
    Auto,
    /// A rate.
    Rate(Rate),
}

impl FromStr for HintName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            rate => {
                let rate: Rate =
                    rate.parse().map_err(|error| format!("{error}; or one of `auto`, `none`"))?;
                headstart_downlink::estimate::plausible(rate).map(Self::Rate)
            }
        }
    }
}

/// One fetch of all pages over a connection of its own.
#[derive(Clone, Debug)]
struct Sample {
    scheme: Option<String>,
    /// Number of the fetch with that scheme.
    round: u32,
    visit: Visit,
}

/// Fetches and prints.
///
/// # Errors
///
/// If a page cannot be fetched, or the server does not let its clients choose a scheme.
pub fn get(args: &GetArgs) -> Result<()> {
    let origin = origin(args).or_refuse()?;
    let network = (args.hint == HintName::Auto).then(|| Network::find(&Machine::default())).flatten();
    let hint = hint(args);
    // Before anything is fetched: a wrong file of certificates is no fault of the server.
    let ways = fetch_configs(args, hint).or_refuse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut samples = vec![];
    let fetched = runtime.block_on(fetch_all(args, origin, &ways, &mut samples));
    // The times of those before are as true as they were.
    if let (Err(_), true) = (&fetched, samples.is_empty() || args.output.is_some()) {
        return fetched;
    }
    if let Some(network) = network {
        remember(&network, &samples, hint);
    }
    let failed = failed(args, &samples);
    if let (Some(file), None) = (&args.output, &failed) {
        write_body(file, &samples)?;
        if file == Path::new(STANDARD_OUTPUT) {
            return Ok(());
        }
    }
    show::print(args, &samples)?;
    failed.map_or(fetched, Err)
}

/// The name that means standard output.
const STANDARD_OUTPUT: &str = "-";

/// The server of the pages, if the options are consistent.
fn origin(args: &GetArgs) -> Result<Origin> {
    let origin = Origin::of(&args.urls[0])?;
    if let Some(other) = args.urls.iter().find(|url| Origin::of(url).ok().as_ref() != Some(&origin)) {
        bail!("found {other}, expected pages of one server, {}:{}", origin.host, origin.port);
    }
    if args.output.is_some() && (args.urls.len() > 1 || args.repeat > 1 || args.compare.is_some()) {
        bail!("--output: found it with more than one fetch, expected one URL, fetched once");
    }
    if args.access.is_some() && !matches!(args.hint, HintName::Rate(_)) {
        bail!("--access: found it without a rate, expected one with it, such as --hint \"50 Mbit/s\"");
    }
    if !(Span::from_millis(1)..=LONGEST).contains(&args.timeout) {
        bail!("--timeout: found {}, expected 1 ms to {LONGEST}", args.timeout);
    }
    Ok(origin)
}

/// The times of an error page are not the requested page's.
fn failed(args: &GetArgs, samples: &[Sample]) -> Option<anyhow::Error> {
    let mut pages = samples.iter().flat_map(|sample| args.urls.iter().zip(&sample.visit.pages));
    let (url, page) = pages.find(|(_, page)| !page.status.is_success())?;
    Some(anyhow!("{url}: found status {}, expected a page: these are the times of an error", page.status))
}

fn hint(args: &GetArgs) -> Option<Hint> {
    match args.hint {
        HintName::None => None,
        HintName::Rate(bandwidth) => Some(Hint { bandwidth, access: args.access.unwrap_or(Access::Unknown) }),
        HintName::Auto => {
            let survey = Survey { past: Past::of_this_user(), ..Survey::default() };
            let report = survey.query(unix_now());
            match report.hint(Steps::Ten) {
                Some(hint) => {
                    eprintln!("headstart: hint: {}, {}", hint.bandwidth, hint.access);
                    Some(hint)
                }
                None => {
                    // The same text as in `headstart measure downlink`, which lists the estimators.
                    let why =
                        report.choice.err().map_or("too small to be worth one".into(), |why| why.to_string());
                    eprintln!("headstart: {why}");
                    None
                }
            }
        }
    }
}

/// The largest rate seen on a network is the next hint's source (Blitzstart §3.1).
fn remember(network: &Network, samples: &[Sample], hint: Option<Hint>) {
    /// Below this size a transfer measures the start rather than the network.
    const MIN_BYTES: u64 = 500_000;
    let Some(past) = Past::of_this_user() else { return };
    let rates = samples.iter().filter_map(|sample| {
        let bytes: u64 = sample.visit.pages.iter().map(|page| page.bytes).sum();
        let first = sample.visit.pages.iter().map(|page| page.first_byte).min()?;
        let took = sample.visit.complete().checked_sub(first)?.as_secs_f64();
        (bytes >= MIN_BYTES && took > 0.0)
            .then(|| Rate::from_bits_per_sec((bytes as f64 * 8.0 / took) as u64))
    });
    let access = hint.map_or(Access::Unknown, |hint| hint.access);
    if let Some(best) = rates.max()
        && let Err(error) = past.observe(&network.key(), best, access, unix_now())
    {
        eprintln!("headstart: {}: {error}", past.path().display());
    }
}

fn trust(args: &GetArgs) -> Trust {
    if args.insecure {
        return Trust::AnyCertificate;
    }
    match &args.certificates {
        Some(file) => Trust::File(file.clone()),
        // The certificate that `headstart serve` made for this user is trusted.
        None => Trust::System {
            also: identity::data_folder()
                .map(|folder| identity::kept_certificates(&folder))
                .unwrap_or_default(),
        },
    }
}

/// The longest that a fetch may take.
const LONGEST: Span = Span::from_secs(24 * 60 * 60);

/// A configuration of fetches: a requested scheme, with its own tickets and tokens.
struct FetchConfig {
    scheme: Option<String>,
    setup: ClientSetup,
}

impl FetchConfig {
    fn new(args: &GetArgs, scheme: Option<Choice>, hint: Option<Hint>) -> Result<Self> {
        let scheme = scheme.map(|choice| choice.name().to_owned());
        let tls = client::tls(&trust(args), scheme.as_deref(), args.early_data)?;
        let mut transport = noq::TransportConfig::default();
        let window = VarInt::from_u64(args.receive_window.get()).unwrap_or(VarInt::MAX);
        transport.stream_receive_window(window).receive_window(window);
        // Requests are short: a probe for longer packets would only delay the first one.
        transport.mtu_discovery_config(None);
        // The time limit is ours: the stack's own must not end a fetch before it.
        transport.max_idle_timeout(Some((timeout(args) * 2).try_into()?));
        let setup = ClientSetup::new(Arc::new(tls))?.transport(transport);
        Ok(Self { scheme, setup: hint.into_iter().fold(setup, ClientSetup::hint) })
    }
}

fn timeout(args: &GetArgs) -> Duration {
    Duration::from_nanos(args.timeout.as_nanos())
}

fn fetch_configs(args: &GetArgs, hint: Option<Hint>) -> Result<Vec<FetchConfig>> {
    let choices: Vec<Option<Choice>> = args
        .compare
        .as_ref()
        .map_or_else(|| vec![None], |choices| choices.0.iter().copied().map(Some).collect());
    choices.into_iter().map(|scheme| FetchConfig::new(args, scheme, hint)).collect()
}

async fn fetch_all(
    args: &GetArgs,
    origin: Origin,
    ways: &[FetchConfig],
    samples: &mut Vec<Sample>,
) -> Result<()> {
    let remotes = match args.connect {
        Some(address) => vec![address],
        None => origin.resolve().await?,
    };
    let plan =
        FetchPlan { origin, urls: args.urls.clone(), keep: args.output.is_some(), timeout: timeout(args) };
    let mut remotes = remotes.into_iter().peekable();
    while let Some(remote) = remotes.next() {
        let fetched = PageFetches { plan: &plan, remote }.all(ways, args.repeat, samples).await;
        match (fetched, remotes.peek()) {
            // `localhost` is often two addresses, and a server may listen at one of them only.
            (Err(error), Some(_)) if is_refusal(&error) && samples.is_empty() => {}
            (fetched, _) => return fetched.map_err(with_advice),
        }
    }
    bail!("{}: found no address, expected one", plan.origin.host)
}

fn write_body(file: &Path, samples: &[Sample]) -> Result<()> {
    let body = samples.first().and_then(|sample| sample.visit.pages.first()?.body.as_deref());
    let body = body.unwrap_or_default();
    if file == Path::new(STANDARD_OUTPUT) {
        return std::io::stdout().lock().write_all(body).context("--output -");
    }
    std::fs::write(file, body).with_context(|| format!("--output {}", file.display()))
}
