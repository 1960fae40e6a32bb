//! `headstart tcp`: fast starts for unmodified servers over the kernel's TCP.

mod idle;
mod options;
#[cfg(feature = "fleet")]
mod share;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use headstart_downlink::{Past, Survey};
use headstart_ebpf::history::Clocks;
use headstart_ebpf::layout::{ARMS, Report, Settings};
use headstart_ebpf::load::{Attached, CONTROL, Listener, Maps, Running, State, attach_hint, detach_hint};
use headstart_ebpf::needs::{Level, Machine};
use headstart_ebpf::scheme::Scheme;
use headstart_ebpf::stats;
use headstart_host::unix_now;
use headstart_quic::Guard;
use headstart_quic::gates::Arm;
use headstart_quic::guard::Bounds;
use headstart_quic::metrics::SIZES;
use headstart_startup::hint::Steps;
use headstart_startup::prior::{Access, Hint};
use headstart_store::file::RecordFile;
use headstart_units::{Bytes, Rate, Ratio, Span};

use crate::command::terminal::print;
use headstart_report::errors::Refuse as _;
use headstart_show::counted;

use options::{SettingOptions, StartOptions, print_notes};

/// Options of `headstart tcp`.
#[derive(Args, Debug)]
pub struct TcpArgs {
    #[command(subcommand)]
    command: TcpCommand,
}

#[derive(Subcommand, Debug)]
enum TcpCommand {
    /// Give the connections that servers of a cgroup accept a fast start, from now on
    ///
    /// Loads a congestion control into the kernel, pins it under /sys/fs/bpf/headstart and ends:
    /// nothing is left running. Covered are sockets whose listener was made in the cgroup. After
    /// the start each connection goes on with the congestion control that its server has. Needs
    /// root.
    Attach(AttachArgs),
    /// Show the attached programs, and the level that this machine can run
    Status,
    /// Records of peers: show, flush, export, import
    #[command(subcommand)]
    History(HistoryCommand),
    /// Counters of all connections that ended
    Stats {
        /// As Prometheus text
        #[arg(long)]
        prometheus: bool,
    },
    /// Change settings; connections that start from now on follow them
    Set(SetArgs),
    /// Take everything away: new connections have their old control at once, live ones are moved
    /// back
    Detach,
    /// Run a command whose connections start fast, and undo everything when it ends
    Run(RunArgs),
    /// Print why each connection started as it did, when it closes, until Ctrl-C
    Trace {
        /// End after so many connections
        #[arg(long, value_name = "NUMBER", value_parser = headstart_study::options::whole(1..=u64::MAX))]
        count: Option<u64>,
    },
    /// Watch a rollout, and stop fast starts when they are worse than the control arm
    ///
    /// Runs until it has stopped them, or until Ctrl-C; `headstart tcp set --resume` starts them
    /// again. With --lines it prints the lines of `trace`, which the kernel gives to one reader.
    /// The formula is in docs/rollout.md.
    Guard(GuardArgs),
    /// On a client: send the rate of this machine's downlink to servers, in a TCP option
    Hint(HintArgs),
}

#[derive(Subcommand, Debug)]
enum HistoryCommand {
    /// Print all records, newest first
    Show,
    /// Forget all records
    Flush,
    /// Write all records to a history file, as the QUIC server keeps it
    Export {
        /// The file; records of others that are in it stay
        file: PathBuf,
    },
    /// Read a history file, such as the QUIC server's (while it does not run)
    Import {
        /// The file
        file: PathBuf,
    },
    /// Share the records with other hosts, until Ctrl-C
    ///
    /// The records are on a server of the Redis protocol, as with `headstart serve --history`
    /// (docs/fleet.md). It is queried for a client's record when the client's SYN arrives, and gets
    /// the records that are measured here. While it cannot be reached, starts use the records of
    /// this machine.
    #[cfg(feature = "fleet")]
    Share {
        /// Address of the server, such as valkey://HOST:PORT/
        #[arg(value_name = "URL")]
        server: headstart_store::fleet::Address,
    },
}

#[derive(Args, Debug)]
struct AttachArgs {
    /// The cgroup (v2) whose servers are meant; `/` is all
    #[arg(long, value_name = "PATH", required_unless_present = "namespace_default")]
    cgroup: Option<PathBuf>,
    #[command(flatten)]
    common: StartOptions,
    /// Make it the default of this network namespace as well; every socket that did not choose a
    /// control has it then
    #[arg(long)]
    namespace_default: bool,
}

#[derive(Args, Debug)]
struct SetArgs {
    /// Another scheme, with its own defaults
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Scheme>)]
    scheme: Option<Scheme>,
    #[command(flatten)]
    settings: SettingOptions,
    /// The kill switch: from now on every start is the kernel's own
    #[arg(long, conflicts_with = "resume")]
    stop: bool,
    /// Undo --stop
    #[arg(long)]
    resume: bool,
}

#[derive(Args, Debug)]
struct RunArgs {
    #[command(flatten)]
    common: StartOptions,
    /// Print the counters at the end
    #[arg(long)]
    stats: bool,
    /// The command, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Args, Debug)]
struct GuardArgs {
    /// First answers of the treatment may take this much longer
    #[arg(long, default_value = "10 %", value_name = "SHARE")]
    slower: Ratio,
    /// The treatment may lose this much more of its bytes
    #[arg(long, default_value = "2 %", value_name = "SHARE")]
    loss: Ratio,
    /// Print a line for each connection, as `trace` does
    #[arg(long)]
    lines: bool,
}

#[derive(Args, Debug)]
struct HintArgs {
    /// The cgroup (v2) whose connections carry the hint; `/` is all
    #[arg(long, value_name = "PATH", default_value = "/")]
    cgroup: PathBuf,
    /// The rate, in place of the estimates of `headstart measure downlink`
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// The access technology: unknown, ethernet, dsl, cable, wifi, 3g, lte
    #[arg(long, value_name = "NAME", requires = "rate", default_value = "unknown")]
    access: Access,
    /// Send no hint any more
    #[arg(long, conflicts_with_all = ["rate", "access", "cgroup"])]
    off: bool,
}

/// `/` and paths that do not exist otherwise are below the mount of cgroup v2.
fn cgroup(path: &std::path::Path) -> Result<PathBuf> {
    if path.join("cgroup.controllers").exists() {
        return Ok(path.to_owned());
    }
    let mount = Machine::detect().cgroup.context("found no mount of cgroup v2, expected one")?;
    let below = mount.join(path.strip_prefix("/").unwrap_or(path));
    ensure!(
        below.join("cgroup.controllers").exists(),
        "--cgroup: found no cgroup v2 at {} or {}, expected one",
        path.display(),
        below.display()
    );
    Ok(below)
}

/// Runs `headstart tcp`.
///
/// # Errors
/// If the machine lacks a feature, nothing is attached, or an option is not possible.
pub fn tcp(args: &TcpArgs) -> Result<u8> {
    match &args.command {
        TcpCommand::Attach(args) => attach(args)?,
        TcpCommand::Status => print(&status()?)?,
        TcpCommand::History(command) => history(command)?,
        TcpCommand::Stats { prometheus } => print(&statistics(&Attached::open()?.maps, *prometheus)?)?,
        TcpCommand::Set(args) => set(args)?,
        TcpCommand::Detach => Attached::detach()?,
        TcpCommand::Run(args) => return run(args),
        TcpCommand::Trace { count } => trace(*count)?,
        TcpCommand::Guard(args) => guard(args)?,
        TcpCommand::Hint(args) => hint(args)?,
    }
    Ok(0)
}

fn attach(args: &AttachArgs) -> Result<()> {
    let cgroup = args.cgroup.as_deref().map(cgroup).transpose().or_refuse()?;
    let options = args.common.options(cgroup, args.namespace_default).or_refuse()?;
    let (level, scheme) = (options.level, args.common.scheme);
    let listeners = Attached::attach(options)?;
    let what = if level == Level::Control { scheme.to_string() } else { "a larger first window".to_owned() };
    eprintln!("headstart: attached: {what}; `headstart tcp detach` ends it");
    if level == Level::Control && args.cgroup.is_some() {
        eprintln!("headstart: {}", covered(&listeners));
    }
    Ok(())
}

/// The listeners that an attach covers, by program, and the control that each goes on with.
fn covered(listeners: &[Listener]) -> String {
    /// So many programs are named.
    const MOST: usize = 8;
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for Listener { program, control } in listeners {
        let program = if program.is_empty() { "a program without a process" } else { program };
        *counts.entry((program, control)).or_default() += 1;
    }
    if counts.is_empty() {
        return "no program of the cgroup listens yet: listeners made from now on are covered".to_owned();
    }
    let named = counts.iter().take(MOST).map(|((program, control), count)| {
        format!("{} of {program} ({control} after the start)", counted(*count, "listener"))
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    if counts.len() > MOST {
        text += &format!(", and those of {} more", counted((counts.len() - MOST) as u64, "program"));
    }
    format!("covers {text}")
}

fn describe(settings: &Settings, level: Level) -> String {
    let Settings {
        hundredths, stopped, shares, same_path, reads_hint, restarts_after_idle, outgoing, ..
    } = settings;
    let yes = |flag: &bool| if *flag { "yes" } else { "no" };
    let mut text = format!("level           {level}\n");
    if level == Level::Window {
        let rate = Rate::from_bytes_per_sec(settings.window_rate);
        text += &format!("initial window  {} segments\npaced at        {rate}\n", settings.window);
        return text;
    }
    text += &format!("scheme          {}\n", Scheme::of(&settings.params));
    text += &format!("after the start {}, unless a listener chose another\n", settings.native);
    text += &format!(
        "kill switch     {}\n",
        if *stopped { "ON: every start is the kernel's own" } else { "off" }
    );
    text += &format!("percent         {}.{:02}\n", hundredths / 100, hundredths % 100);
    text += &format!("max rate        {}\n", Rate::from_bytes_per_sec(settings.max_rate));
    text += &format!("max window      {}\n", Bytes::new(settings.max_window));
    text += &format!("lifetime        {}\n", Span::from_nanos(settings.lifetime));
    text += &format!("share           {}\nsame path       {}\n", yes(shares), yes(same_path));
    text += &format!("after idle      {}\noutgoing        {}\n", yes(restarts_after_idle), yes(outgoing));
    text += &format!(
        "hints           {}, at most {}\n",
        yes(reads_hint),
        Rate::from_bytes_per_sec(settings.hint_rate)
    );
    if settings.is_exchanged {
        text += "history         shared with other hosts\n";
    }
    if settings.is_default {
        text += &format!("default         of this network namespace, instead of {}\n", settings.native);
    }
    text
}

fn status() -> Result<String> {
    let machine = Machine::detect();
    let mut text = match Attached::state() {
        State::Absent => "attached        nothing\n".to_owned(),
        State::Partial => {
            "attached        in part: an attach or detach was killed on the way; attach or detach again\n"
                .to_owned()
        }
        State::Whole => {
            let attached = Attached::open()?;
            let peers = attached.maps.records().map_or(0, |records| records.len());
            let counters = attached.maps.counters()?;
            let ended: u64 = counters.arms.iter().map(|arm| arm.connections).sum();
            let untimed = if attached.level() == Level::Window || attached.times_all_answers() {
                ""
            } else {
                "answers         timed up to the end of the start: this kernel has no program at tcp_probe\n"
            };
            format!("attached        yes\n{}", describe(&attached.maps.settings()?, attached.level()))
                + untimed
                + &format!(
                    "peers known     {peers}\nconnections     {} taken, {ended} ended\n",
                    counters.taken
                )
        }
    };
    for level in [Level::Control, Level::Window] {
        let missing = machine.missing(level);
        let says = if missing.is_empty() { "can run here".to_owned() } else { missing.join("; ") };
        text += &format!("level {level:<9} {says}\n");
    }
    Ok(text)
}

fn history(command: &HistoryCommand) -> Result<()> {
    let maps = Attached::open()?.maps;
    #[cfg(feature = "fleet")]
    if let HistoryCommand::Share { server } = command {
        return share::share(maps, server);
    }
    let clocks = Clocks::now();
    match command {
        HistoryCommand::Show => {
            let mut records = maps.records()?;
            records.sort_by_key(|(peer, record)| (core::cmp::Reverse(record.saved_at), *peer));
            let mut text = String::from(
                "peer                                     rate            rtt       age       ended  trust  credit\n",
            );
            for (peer, record) in records {
                let stored = clocks.to_store(&headstart_ebpf::layout::KernelRecord { trust: 100, ..record });
                let ended = if record.ended == 0 { "clean" } else { "lossy" };
                let age = Span::from_secs(clocks.age(&record).as_nanos() / 1_000_000_000);
                let (rate, rtt) = (stored.btl_bw.to_string(), stored.rt_prop.to_string());
                text += &format!(
                    "{:<40} {rate:<15} {rtt:<9} {:<9} {ended}  {:<5}  {}\n",
                    peer.to_string(),
                    age.to_string(),
                    format!("{} %", record.trust),
                    stored.credit
                );
            }
            print(&text)
        }
        HistoryCommand::Flush => {
            let (records, prefixes) = maps.flush()?;
            eprintln!("headstart: {records} records and the credits of {prefixes} prefixes forgotten");
            Ok(())
        }
        HistoryCommand::Export { file } => {
            let mut opened = RecordFile::open(file, clocks.unix).or_refuse()?;
            report_repaired(&opened.loaded);
            let records = maps.records()?;
            let doing = || format!("{}: cannot write it", file.display());
            for (peer, record) in &records {
                opened.file.put(*peer, &clocks.to_store(record)).with_context(doing)?;
            }
            opened.file.sync().with_context(doing)?;
            eprintln!("headstart: {} records written to {}", records.len(), file.display());
            Ok(())
        }
        HistoryCommand::Import { file } => {
            ensure_file(file).or_refuse()?;
            let opened = RecordFile::open(file, clocks.unix).or_refuse()?;
            report_repaired(&opened.loaded);
            let mut taken = 0;
            for (peer, record) in &opened.records {
                taken += usize::from(maps.restore(*peer, record, clocks)?);
            }
            let found = opened.records.len();
            eprintln!(
                "headstart: {taken} of {found} records imported; the others were empty, or older than those here"
            );
            Ok(())
        }
        #[cfg(feature = "fleet")]
        HistoryCommand::Share { .. } => Ok(()),
    }
}

/// An import makes no file.
fn ensure_file(file: &std::path::Path) -> Result<()> {
    ensure!(file.is_file(), "{}: found no file, expected a history", file.display());
    Ok(())
}

fn report_repaired(loaded: &headstart_store::Loaded) {
    if let Some(notice) = loaded.notice() {
        eprintln!("headstart: {notice}");
    }
}

fn statistics(maps: &Maps, prometheus: bool) -> Result<String> {
    let counters = maps.counters()?;
    let scheme = Scheme::of(&maps.settings()?.params).to_string();
    if prometheus {
        return Ok(stats::render(&counters, &scheme));
    }
    let mut text = format!("{scheme}: {} connections taken\n", counters.taken);
    text +=
        "arm          connections  fast    sent kB    lost kB  of first flights kB  rounds saved  again\n";
    for (arm, of) in headstart_ebpf::layout::ARMS.iter().zip(&counters.arms) {
        let fast: u64 = of.sources[1..].iter().sum();
        let kb = |bytes: u64| bytes / 1000;
        text += &format!(
            "{arm:<12} {:>11} {fast:>5} {:>10} {:>10} {:>20} {:>13} {:>6}\n",
            of.connections,
            kb(of.sent),
            kb(of.lost),
            format!("{} of {}", kb(of.first_flight_lost), kb(of.first_flight)),
            of.rounds_saved,
            of.restarts
        );
    }
    for (reason, count) in headstart_ebpf::layout::REFUSALS.iter().zip(counters.refusals).skip(1) {
        if count > 0 {
            text += &format!("refused {reason}: {count}\n");
        }
    }
    let [received, capped, malformed] = counters.hints;
    text += &format!("hints: {received} received, {capped} capped, {malformed} malformed\n");
    text += &format!("first flights repaired by their own recovery: {}\n", counters.recoveries);
    Ok(text)
}

fn set(args: &SetArgs) -> Result<()> {
    let attached = Attached::open()?;
    let (level, maps) = (attached.level(), attached.maps);
    let mut settings = maps.settings()?;
    if let Some(scheme) = args.scheme {
        let reads_hint = settings.reads_hint;
        settings.params = scheme.params();
        settings.params.lifetime = settings.lifetime;
        settings.reads_hint = reads_hint || scheme.settings().reads_hint;
    }
    args.settings.apply(&mut settings).or_refuse()?;
    print_notes(&idle::of_settings(&args.settings, &settings, level));
    settings.stopped = (settings.stopped || args.stop) && !args.resume;
    maps.set(&settings)?;
    Ok(())
}

/// A cgroup that is removed with this.
struct OwnCgroup(PathBuf);

const CGROUP_PREFIX: &str = "headstart-run-";

impl OwnCgroup {
    fn make() -> Result<Self> {
        let mount = Machine::detect().cgroup.context("found no mount of cgroup v2, expected one")?;
        // Cgroups of runs that were killed; one with processes in it cannot be removed.
        for entry in fs::read_dir(&mount).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(CGROUP_PREFIX) {
                let _ = fs::remove_dir(entry.path());
            }
        }
        let path = mount.join(format!("{CGROUP_PREFIX}{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("cannot make the cgroup {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        // Processes that the command left running keep it; the next run removes it.
        let _ = fs::remove_dir(&self.0);
    }
}

fn run(args: &RunArgs) -> Result<u8> {
    if Attached::state() != State::Absent {
        bail!("found one attached already, expected none: `headstart tcp detach` ends it");
    }
    // Every level needs this much, a cgroup of our own too.
    let missing = Machine::detect().missing(Level::Window);
    ensure!(missing.is_empty(), "{}", missing.join("; "));
    let own = OwnCgroup::make()?;
    let options = args.common.options(Some(own.0.clone()), false).or_refuse()?;
    let running = Running::start(options)?;
    let status = wait(&own, &args.command);
    if args.stats {
        print(&statistics(&running.maps()?, false)?)?;
    }
    running.stop()?;
    let status = status?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Runs the command in the cgroup. A signal that ends this program is left to the command; the
/// object is detached after it.
fn wait(own: &OwnCgroup, command: &[OsString]) -> Result<ExitStatus> {
    let mut child = Command::new("/bin/sh")
        .args(["-c", "echo $$ > \"$1\" && shift && exec \"$@\"", "headstart"])
        .arg(own.0.join("cgroup.procs"))
        .args(command)
        .spawn()
        .context("cannot start the command")?;
    let process = child.id();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut ended = tokio::task::spawn_blocking(move || child.wait());
        loop {
            tokio::select! {
                status = &mut ended => return Ok(status??),
                // The terminal sent it to the command, too.
                _ = interrupt.recv() => {}
                _ = end.recv() => {
                    let _ = Command::new("kill").arg(process.to_string()).status();
                }
            }
        }
    })
}

fn trace(count: Option<u64>) -> Result<()> {
    let maps = Attached::open()?.maps;
    let mut left = count.unwrap_or(u64::MAX);
    let mut result = Ok(());
    maps.trace(|report| {
        result = print_line(report);
        left = left.saturating_sub(1);
        left > 0 && result.is_ok()
    })?;
    result
}

fn print_line(report: &Report) -> Result<()> {
    // It is told of at its end.
    let began = (unix_now() - Span::from_nanos(report.lasted)).as_nanos() / 1_000_000;
    print(&format!("{report} began={}.{:03}\n", began / 1000, began % 1000))
}

fn guard(args: &GuardArgs) -> Result<()> {
    let maps = Attached::open()?.maps;
    let bounds = Bounds { slower: args.slower.as_f64(), lossier: args.loss.as_f64() };
    let guard = Guard::new(Arc::default(), bounds);
    let mut result = Ok(());
    maps.trace(|report| {
        if args.lines {
            result = print_line(report);
        }
        let class = SIZES.partition_point(|most| *most < report.answer_bytes);
        let micros = report.answer as f64 / 1000.0;
        let answer = (report.answer > 0).then(|| (class, micros.max(1.0).ln()));
        let loss = (report.sent > 0).then(|| (report.lost as f64 / report.sent as f64).min(1.0));
        let arm = ARMS.get(report.arm as usize).copied().unwrap_or_default();
        let arm = Arm::ALL.into_iter().find(|it| it.name() == arm).unwrap_or_default();
        guard.observe_connection(arm, answer, loss).is_none() && result.is_ok()
    })?;
    result?;
    if let Some(stop) = guard.stop() {
        maps.set(&Settings { stopped: true, ..maps.settings()? })?;
        eprintln!("headstart: the guard has stopped fast starts until `headstart tcp set --resume`: {stop}");
    }
    Ok(())
}

fn hint(args: &HintArgs) -> Result<()> {
    if args.off {
        return Ok(detach_hint()?);
    }
    let path = cgroup(&args.cgroup).or_refuse()?;
    let hint = match args.rate {
        Some(bandwidth) => Some(Hint { bandwidth, access: args.access }),
        None => {
            let survey = Survey { past: Past::of_this_user(), ..Survey::default() };
            survey.query(unix_now()).hint(Steps::Ten)
        }
    };
    let hint =
        hint.context("found no estimate of this machine's downlink, expected one: set it with --rate")?;
    attach_hint(&path, hint)?;
    eprintln!("headstart: servers receive the hint {} ({}), from `{CONTROL}`", hint.bandwidth, hint.access);
    Ok(())
}
