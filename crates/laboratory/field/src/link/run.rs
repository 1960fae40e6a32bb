//! Runs a link: the relay, the programs at its ends, and the summary.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};

use anyhow::{Context, Result, anyhow, bail};
use headstart_emu::address::{Block, beside};
use headstart_emu::clock::Clock;
use headstart_emu::device::{self, Device};
use headstart_emu::gateway::Gateway;
use headstart_emu::lateness::Tolerance;
use headstart_emu::log::Log;
use headstart_emu::namespace::{self, End};
use headstart_emu::record::ParsedLog;
use headstart_emu::relay::{self, Handle, Relay, Stop, Summary};
use headstart_emu::signals::{self, Signal, Signals, WaitOutcome, is_foreground};
use headstart_emu::tunnel::TunnelEnds;
use headstart_emu::{Path, udp};
use headstart_net::{Direction, PathPlan, Seed};
use headstart_units::{Span, Time};

use crate::link::plan::plan;
use crate::link::show;
use crate::link::show::capacity::{Capacity, DOWN_CAPACITY, UP_CAPACITY};
use crate::link::{EndArgs, LinkArgs, ShowLinkArgs};
use headstart_report::errors::Refuse as _;
use headstart_report::output::Folder;
use headstart_report::page::{Provenance, Report, Section};

/// The exit code of a run that `--strict` finds invalid.
const INVALID: u8 = 3;
/// The first words of the command line of an end.
pub const END: &str = "link-end";

/// Runs the link of these options.
///
/// # Errors
/// If an option is impossible, or the system refuses a request.
pub fn link(args: &LinkArgs, command_line: &str) -> Result<u8> {
    let plan = plan(args).or_refuse()?;
    if args.ends.udp.is_some() {
        return relay_udp(args, &plan, command_line);
    }
    if args.ends.command.is_empty() {
        return Err(anyhow!(
            "found neither --udp ADDRESS:PORT nor a command after `--`, expected one of them"
        ))
        .or_refuse();
    }
    run_command(args, &plan, command_line)
}

/// Is the end of a path: becomes the program.
#[must_use]
pub fn end(args: EndArgs) -> u8 {
    let EndArgs { parent, ours, peer, mtu, command } = args;
    let device = device::Settings { ours, peer, leads_to: None, mtu };
    let (message, code) = namespace::run(&namespace::EndArguments { parent, device, command });
    if !message.is_empty() {
        let _ = writeln!(std::io::stderr(), "headstart: {message}");
    }
    code
}

fn settings(args: &LinkArgs) -> relay::Settings {
    let tolerance = Tolerance { p99: args.how.tolerance, worst: args.how.tolerance * 40 };
    relay::Settings { spin: args.how.spin, real_time: !args.how.ordinary_priority, tolerance }
}

fn log(args: &LinkArgs, plan: &PathPlan, clock: &Clock, command_line: &str) -> Result<Option<Log>> {
    let Some(path) = &args.how.log else { return Ok(None) };
    let file = File::create(path).with_context(|| format!("--log {}", path.display())).or_refuse()?;
    let began = clock.began_at_unix_nanos;
    let mut header = vec![
        ("version", headstart_compare::VERSION.to_owned()),
        ("command", command_line.to_owned()),
        ("down", plan.describe(Direction::Down)),
        ("up", plan.describe(Direction::Up)),
        ("seed", args.how.seed.to_string()),
        ("began", format!("{}.{:09} seconds after 1970", began / 1_000_000_000, began % 1_000_000_000)),
        ("time", "nanoseconds since then, by a clock that is never set".to_owned()),
    ];
    for (name, direction) in [(DOWN_CAPACITY, Direction::Down), (UP_CAPACITY, Direction::Up)] {
        let capacity = plan.first_link(direction).and_then(Capacity::of);
        header.extend(capacity.map(|capacity| (name, capacity.to_string())));
    }
    let log = Log::new(BufWriter::with_capacity(1 << 20, file), &header);
    log.map(Some).with_context(|| format!("--log {}", path.display()))
}

/// Draws a log.
///
/// # Errors
/// If it is no log, or the folder is not ours.
pub fn show_link(args: &ShowLinkArgs) -> Result<String> {
    let name = args.log.display().to_string();
    let file = File::open(&args.log).with_context(|| name.clone()).or_refuse()?;
    let record = ParsedLog::read(BufReader::new(file)).with_context(|| name.clone()).or_refuse()?;
    let folder = Folder::open(&args.out).or_refuse()?;
    let mut sections = vec![];
    for (file, caption, svg) in show::figures::figures(&record) {
        folder.write(&format!("{file}.svg"), svg.as_str().as_bytes())?;
        sections.push(Section::Figure { svg, caption: caption.to_owned() });
    }
    // Drawn, and long.
    let is_fact = |(name, _): &&(String, String)| ![DOWN_CAPACITY, UP_CAPACITY].contains(&name.as_str());
    let facts = record.header.iter().filter(is_fact).cloned().collect();
    let plan = record.header.iter().find(|(name, _)| name == "command").map(|(_, command)| command.clone());
    let report = Report {
        title: "What crossed the link".into(),
        answer: vec![],
        lead: format!("{name}: {} lines.", record.entries.len()),
        sections,
        provenance: Provenance { facts, plan: plan.unwrap_or_default() },
    };
    let page = folder.write("report.html", report.html().as_bytes())?;
    Ok(format!("Report: {}\n", page.display()))
}

fn relay_udp(args: &LinkArgs, plan: &PathPlan, command_line: &str) -> Result<u8> {
    let Some(server) = args.ends.udp else { bail!("--udp is missing") };
    let mut ends = udp::Settings::before(server);
    ends.listen = args.ends.listen.unwrap_or(ends.listen);
    ends.most_clients = usize::from(args.ends.clients);
    ends.idle = args.ends.idle;
    let mut signals = Signals::new().context("cannot listen to signals")?;
    let clock = Clock::start();
    let log = log(args, plan, &clock, command_line)?;
    let [up, down] = Direction::BOTH.map(|direction| Path::of(plan, direction, Seed(args.how.seed)));
    let (address, handle) = udp::start(ends, up, down, clock, settings(args), log)
        .with_context(|| format!("cannot listen on {}", ends.listen))?;
    // For scripts, which read the port from here.
    println!("{address}");
    let end_at = args.how.duration.map(|duration| Time::ZERO + duration);
    loop {
        match signals.wait(end_at.map(|end_at| end_at.since(clock.now())))? {
            WaitOutcome::Interrupt(_) | WaitOutcome::Terminate => break,
            WaitOutcome::TimedOut if end_at.is_some_and(|end_at| clock.now() >= end_at) => break,
            WaitOutcome::OtherSignal | WaitOutcome::TimedOut => {}
        }
    }
    finish(args, handle, 0)
}

/// Stops the relay and prints the summary.
fn finish(args: &LinkArgs, handle: Handle, code: u8) -> Result<u8> {
    let summary: Summary = handle.stop().context("the relay")?;
    if !args.how.quiet {
        eprint!("{}", show::summary(&summary, settings(args).tolerance));
    }
    if let (Some(error), Some(path)) = (&summary.log_error, &args.how.log) {
        bail!("--log {}: {error}: it is not complete", path.display());
    }
    Ok(if args.how.strict && !summary.is_valid { INVALID } else { code })
}

fn run_command(args: &LinkArgs, plan: &PathPlan, command_line: &str) -> Result<u8> {
    let mut signals = Signals::new().context("cannot listen to signals")?;
    let program = std::env::current_exe().context("cannot find the file of this program")?;
    let entry = [program.as_os_str(), OsStr::new(END)];
    let mtu = args.ends.mtu;
    let (block, outside) = match &args.ends.serve {
        Some(serve) => {
            let block = Block::candidates(None).next().context("found no free address for the path")?;
            let device =
                device::Settings { ours: block.outside(), peer: block.inside(), leads_to: None, mtu };
            let shell = ["sh", "-c", serve.as_str()].map(OsString::from);
            let end = End::start(&entry, &device, &[], &shell).context("--serve")?;
            (block, FarEnd::Program(end))
        }
        None => create_outer_device(mtu)?,
    };
    let device = device::Settings { ours: block.inside(), peer: block.outside(), leads_to: None, mtu };
    let environment = [
        (namespace::OUTSIDE, block.outside().to_string()),
        (namespace::OUTSIDE_IPV6, beside(block.outside()).to_string()),
        (namespace::BLOCK, block.to_string()),
    ];
    let inside = End::start(&entry, &device, &environment, &args.ends.command)?;

    let clock = Clock::start();
    let log = log(args, plan, &clock, command_line)?;
    let stop = Stop::new()?;
    let gateway = match outside {
        FarEnd::Here(_) => Some(gateway(block, mtu)?),
        // A server of its own is the only one outside.
        FarEnd::Program(_) => None,
    };
    let ends = TunnelEnds::new(inside.device.try_clone()?, outside.descriptor()?, stop.clone())
        .with_gateway(gateway);
    let [up, down] = Direction::BOTH.map(|direction| Path::of(plan, direction, Seed(args.how.seed)));
    let relay = Relay::new(ends, up, down, clock, settings(args));
    let handle = relay.with_log(log).start(stop)?;

    let mut server = None;
    if let FarEnd::Program(end) = outside {
        let mut program = end.begin().context("--serve")?;
        wait_until_it_listens(&mut program.child, &mut signals, &clock)?;
        server = Some(program);
    }
    let mut program = inside.begin()?;
    let status = wait(&mut program.child, args.how.duration, &mut signals, &clock)?;
    drop((program, server));
    finish(args, handle, exit_code(status))
}

enum FarEnd {
    /// A device in the namespace of this process.
    Here(Device),
    /// A program in a namespace of its own.
    Program(End),
}

impl FarEnd {
    fn descriptor(&self) -> std::io::Result<OwnedFd> {
        match self {
            Self::Here(device) => device.descriptor.try_clone(),
            Self::Program(end) => end.device.try_clone(),
        }
    }
}

/// A device in the namespace of this process, with an unused block of addresses.
fn create_outer_device(mtu: u16) -> Result<(Block, FarEnd)> {
    if !namespace::is_privileged() {
        bail!(
            "the outer end of the path needs a device in this network namespace, which needs root; without root: \
             `--serve COMMAND` runs the server in a namespace of its own, `--udp ADDRESS:PORT` relays UDP, and \
             `unshare -rn` gives a shell that is root of its own network"
        );
    }
    let mut failure = None;
    for block in Block::candidates(namespace::enclosing_block()) {
        if device::is_taken(block)? {
            continue;
        }
        let settings =
            device::Settings { ours: block.outside(), peer: block.inside(), leads_to: Some(block), mtu };
        match Device::new("headstart%d", &settings) {
            Ok(device) => return Ok((block, FarEnd::Here(device))),
            // Another path may have taken it in the meantime.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => failure = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match failure {
        Some(error) => Err(error.into()),
        None => bail!(
            "found no free address for the path, expected fewer paths at once, and at most four nested ones"
        ),
    }
}

fn gateway(block: Block, mtu: u16) -> Result<Gateway> {
    let settings =
        device::Settings { ours: block.outside(), peer: block.inside(), leads_to: Some(block), mtu };
    Gateway::new(settings).context("cannot open the way to the host's network")
}

/// Waits until the program has a socket that is bound or listens, or five seconds.
fn wait_until_it_listens(server: &mut Child, signals: &mut Signals, clock: &Clock) -> Result<()> {
    let began = clock.now();
    while clock.now().since(began) < Span::from_secs(5) {
        if let Some(status) = server.try_wait()? {
            bail!("--serve: the server ended before it listened ({status})");
        }
        if has_listener(server.id()) {
            return Ok(());
        }
        if matches!(
            signals.wait(Some(Span::from_millis(10)))?,
            WaitOutcome::Interrupt(_) | WaitOutcome::Terminate
        ) {
            bail!("interrupted");
        }
    }
    // Its socket may be of a kind that is not listed; the program then finds out.
    Ok(())
}

/// True if there is a TCP socket that listens, or any UDP socket, in the namespace of that process.
fn has_listener(process: u32) -> bool {
    /// TCP_LISTEN, as the kernel's tables have it.
    const LISTEN: &str = "0A";
    let has = |table: &str, is_it: &dyn Fn(&str) -> bool| {
        let text = std::fs::read_to_string(format!("/proc/{process}/net/{table}")).unwrap_or_default();
        text.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3)).any(is_it)
    };
    ["tcp", "tcp6"].iter().any(|table| has(table, &|state| state == LISTEN))
        || ["udp", "udp6"].iter().any(|table| has(table, &|_| true))
}

/// Time after which a program that was sent a signal to end is killed.
const KILL_TIMEOUT: Span = Span::from_secs(3);

/// Waits for the program, and passes on signals that it did not get itself.
fn wait(
    child: &mut Child,
    duration: Option<Span>,
    signals: &mut Signals,
    clock: &Clock,
) -> Result<ExitStatus> {
    let mut end_at = duration.map(|duration| clock.now() + duration);
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let is_over = end_at.is_some_and(|end_at| clock.now() >= end_at);
        if is_over && is_asked {
            child.kill()?;
            end_at = None;
            continue;
        }
        let pause = end_at.map(|end_at| end_at.since(clock.now()));
        match if is_over { WaitOutcome::Terminate } else { signals.wait(pause)? } {
            WaitOutcome::OtherSignal | WaitOutcome::TimedOut => {}
            // The terminal has signalled the program too, which decides about its end.
            WaitOutcome::Interrupt(signal) => {
                if !is_foreground() {
                    signals::send(child, signal);
                }
            }
            WaitOutcome::Terminate => {
                if !is_asked {
                    end_at = Some(clock.now() + KILL_TIMEOUT);
                }
                is_asked = true;
                signals::send(child, Signal::TERM);
            }
        }
    }
}

/// Exit code as a shell has it: the code, or 128 and the signal.
fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
