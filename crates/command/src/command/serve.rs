//! `headstart serve`: a folder over HTTP/3, with connections that start fast. The server is that of
//! `headstart proxy` too.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use headstart_quic::guard::Bounds;
use headstart_quic::token::TokenKeys;
use headstart_quic::{Choice, Gates, Guard, Policy, Rollout, Sharded, Store};
use headstart_startup::history::Networks;
use headstart_startup::parameters::split_list;
#[cfg(feature = "fleet")]
use headstart_store::fleet::{self, Address, AddressError, Fleet};
use headstart_store::{History, Options};
use headstart_units::{Rate, Ratio, Span};
use headstart_web::access_log::{AccessLog, Destination};
use headstart_web::identity::CurrentIdentity;
use headstart_web::open::ServerSettings;
use headstart_web::places::ConnectionCounters;
use headstart_web::server::ServerConfig;
use headstart_web::site::{Folder, Site};
use headstart_web::start::FastStartAdmission;
use headstart_web::{metrics, tcp};
#[cfg(unix)]
use sd_notify::NotifyState;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::certificate::{no_pair, open_identity};
#[cfg(unix)]
use self::certificate::{notify_manager, reload};
use headstart_report::errors::Refuse as _;
use headstart_study::options::address;

mod certificate;
mod sockets;

/// Options of `headstart serve`.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// Folder with the files; may be left out with --generate
    #[arg(value_name = "FOLDER", required_unless_present = "generate")]
    pub folder: Option<PathBuf>,
    /// Serve no files: /bytes/N answers with N bytes, for measurements
    #[arg(long, conflicts_with = "folder")]
    pub generate: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Options of a server, whatever its contents are.
#[derive(Args, Clone, Debug)]
pub struct ServerArgs {
    /// Address and port; UDP for HTTP/3, TCP for HTTP/1.1 and 2. Sockets that a service manager
    /// passes take its place
    #[arg(long, default_value = "127.0.0.1:4433", value_name = "ADDRESS:PORT", value_parser = address)]
    pub listen: SocketAddr,
    /// Start-up scheme of connections, by the names of `headstart list schemes`
    #[arg(long, default_value = "headstart", value_name = "NAME", value_parser = choice)]
    pub scheme: Choice,
    /// File of path records, or valkey://HOST:PORT/ for a fleet's (docs/fleet.md); without it,
    /// records are kept in memory until the server ends
    #[arg(long, value_name = "FILE|URL")]
    pub history: Option<HistoryLocation>,
    /// File with networks of one's own, one to a line as in `203.0.113.0/25`: those whose first
    /// contacts share a credit, in place of /24 and /48
    #[arg(long, value_name = "FILE")]
    pub networks: Option<PathBuf>,
    /// Your own certificate chain (PEM), read again on SIGHUP [default: a self-signed one, made on
    /// first use]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,
    /// Name for the self-signed certificate in addition to localhost; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "certificate")]
    pub name: Vec<String>,
    /// Operation.
    #[command(flatten)]
    pub operation: OperationOptions,
}

/// Place of the records.
#[derive(Clone, Debug)]
pub enum HistoryLocation {
    /// A file of this machine.
    File(PathBuf),
    /// A server that several machines share.
    #[cfg(feature = "fleet")]
    Fleet(Address),
}

#[cfg(feature = "fleet")]
impl std::fmt::Display for HistoryLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Fleet(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for HistoryLocation {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return Ok(Self::File(text.into()));
        }
        #[cfg(feature = "fleet")]
        let place = text.parse().map(Self::Fleet).map_err(|error: AddressError| error.to_string());
        #[cfg(not(feature = "fleet"))]
        let place =
            Err(format!("found `{text}`, expected a file: a program with --features fleet has servers"));
        place
    }
}

/// Settings of an operator.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Operation")]
pub struct OperationOptions {
    /// Share of the eligible connections that get the scheme; the others run slow start and are
    /// counted separately
    #[arg(long, default_value = "100 %", value_name = "SHARE")]
    pub rollout: Ratio,
    /// Stop fast starts when first answers of the scheme take longer than the control arm's by more
    /// than this; needs --rollout below 100 % (docs/rollout.md)
    #[arg(long, default_value = "10 %", value_name = "SHARE")]
    pub guard_slower: Ratio,
    /// Stop fast starts, too, when the scheme loses more of its bytes than the control arm by more
    /// than this
    #[arg(long, default_value = "2 %", value_name = "SHARE")]
    pub guard_loss: Ratio,
    /// Never stop fast starts automatically
    #[arg(long, conflicts_with_all = ["guard_slower", "guard_loss"])]
    pub no_guard: bool,
    /// Port at which clients reach this server over UDP, for Alt-Svc, if a port mapping or a
    /// balancer changes it
    #[arg(long, value_name = "PORT")]
    pub public_port: Option<NonZeroU16>,
    /// While this file exists, every new connection runs slow start
    #[arg(long, value_name = "FILE")]
    pub kill_switch: Option<PathBuf>,
    /// Let clients carry the record of their path to any server with these keys: 64 hexadecimal
    /// digits in a line, of which the first seals and all open (docs/fleet.md)
    #[arg(long, value_name = "FILE")]
    pub token_keys: Option<PathBuf>,
    /// Counters for Prometheus at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    pub metrics: Option<SocketAddr>,
    /// Write a line for each request into this file, or `-` for standard output, in the Combined
    /// Log Format; reopened after a rename
    #[arg(long, value_name = "FILE|-")]
    pub access_log: Option<PathBuf>,
    /// Write a qlog of every connection into this folder
    #[arg(long, value_name = "FOLDER")]
    pub qlog: Option<PathBuf>,
    /// Connections whose handshake took less run slow start: a fast start would save nothing
    /// (docs/records/short-paths.md)
    #[arg(long, default_value = "2 ms", value_name = "TIME")]
    pub shortest_rtt: Span,
    /// The most that a client's hint may claim for a connection
    #[arg(long, default_value = "1 Gbit/s", value_name = "RATE")]
    pub hint_cap: Rate,
    /// Let clients choose their scheme (`headstart get --compare`): for measurements
    #[arg(long)]
    pub allow_scheme_choice: bool,
    /// Validate every address by a Retry packet before anything is kept for it; costs a round trip
    #[arg(long)]
    pub retry: bool,
    /// Limit of concurrent connections, for QUIC and TCP each; also of open files, or of requests
    /// that are passed on
    #[arg(long, default_value_t = ServerConfig::default().most_connections, value_name = "COUNT", value_parser = headstart_study::options::whole(1..=u32::MAX as usize))]
    pub most_connections: usize,
    /// Limit of concurrent connections of one address (of IPv6 a /64), for QUIC and TCP each;
    /// behind a balancer that hides addresses, as many as --most-connections
    #[arg(long, default_value_t = ServerConfig::default().most_per_address, value_name = "COUNT", value_parser = headstart_study::options::whole(1..=u32::MAX as usize))]
    pub most_per_address: usize,
    /// Do not listen on TCP
    #[arg(long)]
    pub no_tcp: bool,
    /// Time for open connections to finish after SIGTERM or Ctrl-C; a second one ends them
    #[arg(long, default_value = "3 s", value_name = "TIME")]
    pub grace: Span,
    /// Do not print a line for each connection; warnings are still printed
    #[arg(long)]
    pub quiet: bool,
}

/// A scheme that QUIC carries, by name.
///
/// # Errors
///
/// If there is none of that name, or QUIC does not carry it.
pub fn choice(text: &str) -> Result<Choice, String> {
    Choice::find(text.trim()).map_err(|refused| refused.to_string())
}

/// Several schemes, `iw10,halfback(additional=25%)`: commas within parentheses do not separate.
#[derive(Clone, Debug)]
pub struct Choices(pub Vec<Choice>);

impl FromStr for Choices {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let all: Vec<Choice> = split_list(text).map(choice).collect::<Result<_, _>>()?;
        let names: Vec<_> = all.iter().map(Choice::name).collect();
        match (1..names.len()).find(|place| names[..*place].contains(&names[*place])) {
            Some(place) => Err(format!("found `{}` twice, expected each scheme once", names[place])),
            None => Ok(Self(all)),
        }
    }
}

/// Serves a folder, or made-up bytes, until Ctrl-C.
///
/// # Errors
///
/// If an address, a certificate or a file cannot be had.
pub fn serve(args: ServeArgs) -> Result<()> {
    let ServeArgs { folder, server, .. } = args;
    let what = folder.as_ref().map_or_else(|| "made-up bytes".into(), |folder| folder.display().to_string());
    let (all, one) = (server.operation.most_connections, server.operation.most_per_address);
    start(server, &what, |connections| match &folder {
        Some(folder) => {
            let opened = Folder::open(folder).with_context(|| format!("folder {}", folder.display()))?;
            Ok(Site::Folder(opened.with_limits(all, one, connections.clone())))
        }
        None => Ok(Site::Generated),
    })
}

/// Serves the site that `open` makes, which is called `what`, until Ctrl-C.
pub(super) fn start(
    args: ServerArgs,
    what: &str,
    open: impl FnOnce(&ConnectionCounters) -> Result<Site>,
) -> Result<()> {
    #[cfg(target_os = "linux")]
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(run(args, what, open));
    // A file system that does not answer must not keep the process.
    runtime.shutdown_background();
    done
}

/// Time for the stack to tell its clients of the end, after the grace: three probe timeouts.
const SETTLING: Duration = Duration::from_secs(5);

/// As many open files as the system allows this process: the usual limit, 1024, is for programs
/// that call select(2).
#[cfg(target_os = "linux")]
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // A system that does not let it keeps the lower limit.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

async fn run(
    args: ServerArgs,
    what: &str,
    open: impl FnOnce(&ConnectionCounters) -> Result<Site>,
) -> Result<()> {
    log_connections(args.operation.quiet);
    let connections = ConnectionCounters::default();
    // First: what follows writes files.
    let site = Arc::new(open(&connections).or_refuse()?);
    let CheckedOptions { identity, history, history_counters, access_log, token_keys, percent } =
        checked(&args).or_refuse()?;
    let (rollout, choice_rollout) = (Arc::new(Rollout::new(percent)), Arc::new(Rollout::default()));

    let has_control = percent > 0.0 && percent < 100.0;
    let bounds =
        Bounds { slower: args.operation.guard_slower.as_f64(), lossier: args.operation.guard_loss.as_f64() };
    let guard =
        (has_control && !args.operation.no_guard).then(|| Arc::new(Guard::new(Arc::clone(&rollout), bounds)));
    let others = if args.operation.allow_scheme_choice { Choice::all().collect() } else { vec![] };
    let hints = Policy { per_connection: args.operation.hint_cap, ..Policy::default() };
    let plan = ServerSettings {
        identity: &identity,
        scheme: args.scheme,
        others,
        history,
        rollout: Arc::clone(&rollout),
        guard: guard.clone(),
        choice_rollout: Arc::clone(&choice_rollout),
        hints,
        gates: Gates { shortest_rtt: args.operation.shortest_rtt, ..Gates::default() },
        token_keys,
        qlog: args.operation.qlog.clone(),
    };
    let (listener, endpoint, starts) = sockets::listen(&args, &plan).await?;
    let starts = Arc::new(starts);
    let shutdown = CancellationToken::new();
    let server_config = ServerConfig {
        scheme_choice: args.operation.allow_scheme_choice,
        retry: args.operation.retry,
        most_connections: args.operation.most_connections,
        most_per_address: args.operation.most_per_address,
        connections,
        access_log: access_log.clone(),
        grace: Duration::from_nanos(args.operation.grace.as_nanos()),
        ..ServerConfig::default()
    };

    let grace = server_config.grace;
    let address = endpoint.local_addr()?;
    let mut tasks = tokio::task::JoinSet::new();
    if let Some(at) = args.operation.metrics {
        let listener =
            TcpListener::bind(at).await.map_err(|error| sockets::refused(&error, "--metrics", at, "TCP"))?;
        eprintln!("headstart: counters at http://{}/metrics", listener.local_addr()?);
        tasks.spawn(metrics::serve(
            listener,
            render(
                Arc::clone(&starts),
                server_config.connections.clone(),
                history_counters,
                access_log.clone(),
                guard.clone(),
                Arc::clone(&site),
            ),
            shutdown.clone(),
        ));
    }
    if let Some(file) = args.operation.kill_switch.clone() {
        tasks.spawn(watch_kill_switch(file, [rollout, choice_rollout], shutdown.clone()));
    }
    // Before the server is reported as ready: an earlier signal would end the process.
    let mut end = EndSignals::new();
    #[cfg(unix)]
    // If no handler can be set, SIGHUP ends the process as it does by default.
    if let Ok(hang_up) = signal(SignalKind::hangup()) {
        tasks.spawn(reload(hang_up, args.clone(), Arc::clone(&identity), shutdown.clone()));
    }
    if let Some(listener) = listener {
        let tls = tcp::tls(&identity)?;
        let over_tcp = tcp::serve(
            listener,
            tls,
            Arc::clone(&site),
            args.operation.public_port.map_or(address.port(), NonZeroU16::get),
            server_config.clone(),
            shutdown.clone(),
        );
        tasks.spawn(over_tcp);
    }
    if let Site::Upstreams(proxy) = &*site {
        let (proxy, shutdown) = (Arc::clone(proxy), shutdown.clone());
        tasks.spawn(async move {
            let _ = shutdown.run_until_cancelled(proxy.check()).await;
        });
    }
    tasks.spawn(starts.serve(endpoint, site, server_config, shutdown.clone()));
    eprintln!("headstart: {what} at https://{address}/, {}. Ctrl-C ends it.", args.scheme.name());
    std::io::stderr().flush()?;

    #[cfg(unix)]
    notify_manager(&[NotifyState::Ready]);
    end.wait().await;
    #[cfg(unix)]
    notify_manager(&[NotifyState::Stopping]);
    eprintln!("headstart: shutting down");
    shutdown.cancel();
    tokio::select! {
        _ = tasks.join_all() => {}
        () = end.wait() => eprintln!("headstart: a second signal ends open connections"),
        () = tokio::time::sleep(grace + SETTLING) => eprintln!("headstart: what is left is given up"),
    }
    if let Some(log) = access_log {
        log.finish(Duration::from_secs(1));
    }
    Ok(())
}

struct CheckedOptions {
    identity: Arc<CurrentIdentity>,
    history: Arc<dyn Store>,
    history_counters: RenderHistory,
    access_log: Option<AccessLog>,
    token_keys: Option<TokenKeys>,
    percent: f64,
}

/// Counters of the history, in Prometheus' text format.
type RenderHistory = Box<dyn Fn() -> String + Send + Sync>;

/// Checks the options: identity, history and percentage of the rollout.
fn checked(args: &ServerArgs) -> Result<CheckedOptions> {
    let percent = percent(args.operation.rollout)?;
    if args.operation.allow_scheme_choice && percent < 100.0 {
        bail!(
            "--rollout: found {percent} % with --allow-scheme-choice, expected one of the two: of the clients that ask for {}, \
             some would be assigned to the control arm",
            args.scheme.name()
        );
    }
    if let Some(file) = &args.operation.kill_switch {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            bail!("--kill-switch {}: found no folder for it, expected one", file.display());
        }
    }
    if let Some(folder) = &args.operation.qlog {
        let name = || format!("--qlog {}", folder.display());
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => bail!("{}: found a file, expected a folder", name()),
            Err(error) => return Err(error).with_context(name),
        }
    }
    let (history, history_counters) = history_of(args)?;
    Ok(CheckedOptions {
        identity: open_identity(args)?.current().with_context(|| no_pair(args))?,
        history,
        history_counters,
        access_log: open_access_log(&args.operation)?,
        token_keys: args.operation.token_keys.as_deref().map(read_token_keys).transpose()?,
        percent,
    })
}

fn read_token_keys(file: &Path) -> Result<TokenKeys> {
    let name = || format!("--token-keys {}", file.display());
    #[cfg(unix)]
    warn_if_readable(&name(), file);
    let text = std::fs::read_to_string(file).with_context(name)?;
    text.parse().map_err(anyhow::Error::msg).with_context(name)
}

/// A secret that every user of the machine may read is none.
#[cfg(unix)]
fn warn_if_readable(name: &str, file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(file).map_or(0, |found| found.permissions().mode() & 0o777);
    if mode & 0o007 != 0 {
        eprintln!("headstart: {name}: everybody may read it (mode {mode:o}), expected its owner alone");
    }
}

/// Signals that end a server. If no handler can be set, the signal itself ends the process.
pub(super) struct EndSignals {
    #[cfg(unix)]
    handlers: Option<[Signal; 2]>,
}

impl EndSignals {
    pub fn new() -> Self {
        Self {
            #[cfg(unix)]
            handlers: signal(SignalKind::interrupt())
                .and_then(|interrupt| Ok([interrupt, signal(SignalKind::terminate())?]))
                .ok(),
        }
    }

    pub async fn wait(&mut self) {
        #[cfg(unix)]
        if let Some([interrupt, terminate]) = &mut self.handlers {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Bytes of a table of networks.
const LARGEST_TABLE: u64 = 64 << 20;

/// Reads a table of networks.
///
/// # Errors
/// If it cannot be read, is too long, or has a line that is no network.
pub(super) fn read_networks(path: &Path) -> Result<Networks> {
    let mut text = String::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(LARGEST_TABLE + 1).read_to_string(&mut text));
    let length = read.with_context(|| format!("--networks: cannot read {}", path.display()))? as u64;
    if length > LARGEST_TABLE {
        bail!("--networks: found more than {LARGEST_TABLE} bytes in {}", path.display());
    }
    text.parse().map_err(|error| anyhow!("--networks: {}: {error}", path.display()))
}

fn history_of(args: &ServerArgs) -> Result<(Arc<dyn Store>, RenderHistory)> {
    let networks = args.networks.as_deref().map(read_networks).transpose()?.unwrap_or_default();
    let file = match &args.history {
        None => {
            let history = Sharded::default();
            history.divide(&networks);
            return Ok((Arc::new(history), Box::new(String::new)));
        }
        Some(HistoryLocation::File(file)) => file,
        #[cfg(feature = "fleet")]
        Some(HistoryLocation::Fleet(address)) => {
            let fleet = Fleet::open(address.clone(), fleet::Options::default())
                .context("cannot start the thread that reaches the history's server")?;
            eprintln!("headstart: peers are remembered at {address}");
            fleet.local().divide(&networks);
            let counted = fleet.clone();
            tokio::spawn(tell_of_fleet(fleet.clone()));
            return Ok((Arc::new(fleet), Box::new(move || counted.counters().render())));
        }
    };
    let (history, loaded) = History::open(file, Options::default())?;
    if let Some(notice) = loaded.notice() {
        eprintln!("headstart: {}: {notice}", file.display());
    }
    let peers = headstart_show::counted(loaded.records as u64, "peer");
    eprintln!("headstart: {peers} remembered in {}", file.display());
    history.divide(&networks);
    let counted = history.clone();
    tokio::spawn(tell_of_history(history.clone()));
    Ok((Arc::new(history), Box::new(move || render_history(&counted))))
}

/// Prints why the history's file cannot be written, and when it can again.
async fn tell_of_history(history: History) {
    let (mut last_printed, mut last_removals) = (None, 0);
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        let removals = history.removals();
        if std::mem::replace(&mut last_removals, removals) < removals {
            eprintln!("headstart: the history's file was removed; it is made anew with all records");
        }
        let error = history.last_error();
        if error == last_printed {
            continue;
        }
        match &error {
            Some(error) => {
                eprintln!("headstart: {error}; what is new is kept in memory, and tried again each second");
            }
            None => eprintln!("headstart: the history's file is written again"),
        }
        last_printed = error;
    }
}

fn render_history(history: &History) -> String {
    let mut metrics = headstart_host::Exposition::default();
    let help = "The history's file cannot be written; 0 if it can.";
    metrics.family("history_unwritten", "gauge", help).sample(&[], u8::from(history.last_error().is_some()));
    metrics.take()
}

/// Prints why the history's server is away, and when it is back.
#[cfg(feature = "fleet")]
pub(super) async fn tell_of_fleet(fleet: Fleet) {
    let mut last_printed = fleet::State::Up;
    let mut seconds = tokio::time::interval(std::time::Duration::from_secs(1));
    loop {
        seconds.tick().await;
        let counters = fleet.counters();
        match counters.last_error {
            _ if counters.state == last_printed => continue,
            // Not reached yet.
            None if counters.state == fleet::State::Away => continue,
            None => eprintln!("headstart: the history's server answers again"),
            Some(error) => eprintln!("headstart: the history's server: {error}"),
        }
        last_printed = counters.state;
    }
}

fn open_access_log(options: &OperationOptions) -> Result<Option<AccessLog>> {
    let Some(file) = &options.access_log else { return Ok(None) };
    let destination = match file.to_str() {
        Some("-") => Destination::Stream(Box::new(std::io::stdout())),
        _ => Destination::File(file.clone()),
    };
    let log = AccessLog::open(destination);
    Ok(Some(log.with_context(|| format!("--access-log {}", file.display()))?))
}

fn percent(share: Ratio) -> Result<f64> {
    let percent = share.as_f64() * 100.0;
    if percent > 100.0 {
        bail!("--rollout: found {share}, expected at most 100 %");
    }
    Ok(percent)
}

fn render(
    starts: Arc<FastStartAdmission>,
    connections: ConnectionCounters,
    history: RenderHistory,
    access_log: Option<AccessLog>,
    guard: Option<Arc<Guard>>,
    site: Arc<Site>,
) -> metrics::Render {
    Arc::new(move || {
        let starts = metrics::merged(starts.counted().map(|(scheme, counted)| counted.render(&scheme)));
        let others = [
            connections.render(),
            history(),
            access_log.as_ref().map(AccessLog::render).unwrap_or_default(),
            guard.as_ref().map(|guard| guard.render()).unwrap_or_default(),
            if let Site::Upstreams(proxy) = &*site { proxy.render() } else { String::new() },
        ];
        starts + &others.concat()
    })
}

async fn watch_kill_switch(file: PathBuf, rollouts: [Arc<Rollout>; 2], shutdown: CancellationToken) {
    let mut was_there = false;
    loop {
        let is_there = tokio::fs::try_exists(&file).await.unwrap_or(was_there);
        if is_there != was_there {
            let now = if is_there { "there: new connections run slow start" } else { "gone: back to normal" };
            eprintln!("headstart: {} is {now}", file.display());
            for rollout in &rollouts {
                if is_there { rollout.stop() } else { rollout.resume() }
            }
            was_there = is_there;
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
        }
    }
}

/// A line on standard output for each connection that ended, unless `quiet`; warnings on standard
/// error.
fn log_connections(quiet: bool) {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::fmt::writer::MakeWriterExt as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let level = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let wanted = Targets::new().with_target("headstart", level).with_default(LevelFilter::WARN);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_target(false);
    let lines =
        lines.with_writer(io::stderr.with_filter(|it| *it.level() <= LevelFilter::WARN).or_else(io::stdout));
    // The process may have a subscriber already: then that is used.
    let _ = tracing_subscriber::registry().with(lines).with(wanted).try_init();
}
