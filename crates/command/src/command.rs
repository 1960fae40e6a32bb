//! The commands, one file each.

#[cfg(feature = "network")]
mod ab;
mod assess;
pub mod call;
#[cfg(feature = "network")]
mod demo;
#[cfg(feature = "network")]
mod downlink;
mod examples;
#[cfg(feature = "explore")]
mod explore;
pub mod format;
#[cfg(feature = "network")]
mod get;
#[cfg(feature = "fleet")]
mod history;
#[cfg(feature = "network")]
mod idle;
mod layout;
#[cfg(feature = "network")]
mod measure;
mod not_built;
#[cfg(feature = "network")]
mod page;
mod paths;
mod plan;
#[cfg(feature = "network")]
mod proxy;
mod race;
mod reproduce;
mod sample;
mod schemes;
#[cfg(feature = "network")]
mod serve;
#[cfg(feature = "shell")]
mod shell;
mod sweep;
#[cfg(feature = "tcp")]
mod tcp;
mod terminal;
mod trace;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "network")]
use ab::AbArgs;
use assess::AssessArgs;
#[cfg(feature = "network")]
use demo::DemoArgs;
#[cfg(feature = "network")]
use downlink::DownlinkArgs;
#[cfg(feature = "explore")]
use explore::ExploreArgs;
#[cfg(feature = "network")]
use get::GetArgs;
#[cfg(feature = "network")]
use headstart_field::link::{EndArgs, LinkArgs, ShowLinkArgs, run as link_run};
use headstart_report::errors::{Refuse as _, exit_code, one_line};
#[cfg(feature = "fleet")]
use history::HistoryArgs;
#[cfg(feature = "network")]
use measure::MeasureArgs;
#[cfg(not(feature = "explore"))]
use not_built::NotBuilt as ExploreArgs;
#[cfg(not(feature = "fleet"))]
use not_built::NotBuilt as HistoryArgs;
#[cfg(not(feature = "shell"))]
use not_built::{NotBuilt as CompletionsArgs, NotBuilt as ManArgs};
#[cfg(not(feature = "network"))]
use not_built::{
    NotBuilt as AbArgs, NotBuilt as DemoArgs, NotBuilt as DownlinkArgs, NotBuilt as GetArgs,
    NotBuilt as LinkArgs, NotBuilt as MeasureArgs, NotBuilt as PageArgs, NotBuilt as ProxyArgs,
    NotBuilt as ServeArgs, NotBuilt as ShowLinkArgs,
};
#[cfg(feature = "network")]
use page::PageArgs;
use paths::PathsArgs;
#[cfg(feature = "network")]
use proxy::ProxyArgs;
use race::RaceArgs;
use reproduce::ReproduceArgs;
use sample::ExamplesArgs;
use schemes::SchemesArgs;
#[cfg(feature = "network")]
use serve::ServeArgs;
#[cfg(feature = "shell")]
use shell::{CompletionsArgs, ManArgs};
use sweep::SweepArgs;
use trace::TraceArgs;

/// Which fast start is best on my path, and what does it cost everybody else?
#[derive(Parser, Debug)]
#[command(name = "headstart", version = headstart_compare::VERSION, max_term_width = 100, arg_required_else_help = true, after_help = examples::ALL)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run all schemes on one path and compare them
    ///
    /// Without options: Halfback's access path (15 Mbit/s, 60 ms, 115 kB of drop-tail buffer),
    /// flows of 100 kB at 25 % load. Prints a table and writes report.html, race.csv, seeds.csv and
    /// race.json.
    #[command(allow_negative_numbers = true, after_long_help = examples::RACE)]
    Race(RaceArgs),
    /// As `race`, where any option takes a list
    ///
    /// Every combination is run once, and an interrupted sweep goes on.
    ///
    /// For example: headstart sweep --load 5%,25%,50% --rtt 20ms,60ms --schemes iw10,jump-start
    #[command(allow_negative_numbers = true, after_long_help = examples::SWEEP)]
    Sweep(SweepArgs),
    /// One flow in detail: sends, acks, losses, window
    #[command(allow_negative_numbers = true, after_long_help = examples::TRACE)]
    Trace(TraceArgs),
    /// Race on a page, with sliders
    ///
    /// Serves a page to this machine and opens it: path, workload and schemes as sliders, the
    /// results as they come in, and two flows packet by packet. The options of `race` set the first
    /// state. Each state is an address, and a command line with the same numbers.
    #[command(allow_negative_numbers = true, after_long_help = examples::EXPLORE)]
    Explore(Box<ExploreArgs>),
    /// Run a paper's experiments and check its claims
    ///
    /// Prints a table of claims and writes report.html, claims.csv and each figure as SVG and CSV.
    /// An interrupted run goes on where it stopped.
    #[command(after_long_help = examples::REPRODUCE)]
    Reproduce(ReproduceArgs),
    /// Judge schemes by the IETF's criteria for congestion control
    ///
    /// Each criterion of RFC 9743 and RFC 5166 is a plan with a bound that was fixed before: shown,
    /// not shown, or does not apply. Prints a table and writes assessment.md and assessment.csv.
    #[command(after_long_help = examples::ASSESS)]
    Assess(AssessArgs),
    /// Estimates of this machine's downlink
    ///
    /// Queries every estimator: a value that you give, the largest rate seen on this network, the
    /// wire. Needs no privilege.
    #[command(allow_negative_numbers = true, after_long_help = examples::DOWNLINK)]
    Downlink(DownlinkArgs),
    /// The options of a path, from a capture or a log
    ///
    /// Reads records of traffic on the path, preferably of a download that filled it. Prints the
    /// options with which `race` has that path, and what could not be known.
    #[command(after_long_help = examples::MEASURE)]
    Measure(MeasureArgs),
    /// Put a program behind a path of links and queues
    ///
    /// The simulator's links, queues and losses on its real packets.
    ///
    /// `headstart link --rate 25mbit --rtt 50ms --buffer 104p -- COMMAND` runs the command in a
    /// network of its own, in which everything crosses the path; $HEADSTART_OUTSIDE is the address
    /// of this machine as it sees it. `--serve COMMAND` runs the server too, at the other end, and
    /// needs no root; `--udp ADDRESS:PORT` relays UDP only, and needs nothing. Down is towards the
    /// command. At the end it reports whether the machine kept real time.
    #[command(allow_negative_numbers = true, after_long_help = examples::LINK)]
    Link(Box<LinkArgs>),
    /// Draw a link's log: throughput, delay and queue
    #[command(after_long_help = examples::SHOW_LINK)]
    ShowLink(ShowLinkArgs),
    #[cfg(feature = "network")]
    #[command(hide = true)]
    LinkEnd(EndArgs),
    /// See it work: a real server, client and path
    ///
    /// All in this process. Cold start against each scheme over 25 Mbit/s and 50 ms, in less than
    /// half a minute. Needs no privilege and no network.
    #[command(allow_negative_numbers = true, after_long_help = examples::DEMO)]
    Demo(DemoArgs),
    /// A page in a real browser, by scheme
    ///
    /// A page of a HAR file, or of one of four shapes, as a site over HTTP/3 behind an emulated
    /// path. Headless Chromium or Firefox visits it, first where the server does not know its
    /// client, then where it does. Measured are paints, load event, the part above the fold and the
    /// last object, with the simulator's time for the same page.
    #[command(after_long_help = examples::PAGE)]
    Page(Box<PageArgs>),
    /// Serve a folder over HTTP/3, with fast starts
    ///
    /// Also over HTTP/1.1 and 2 on the same TCP port, where browsers discover HTTP/3. Prints for
    /// each connection its record of the peer, its decision and the round trips saved.
    #[command(after_long_help = examples::SERVE)]
    Serve(Box<ServeArgs>),
    /// HTTP/3 and fast starts in front of any server
    ///
    /// As `serve`, and requests go to the servers of --upstream, over HTTP/1.1: nginx, Node,
    /// Python, Java, unchanged. Bodies are passed on as they come.
    #[command(after_long_help = examples::PROXY)]
    Proxy(Box<ProxyArgs>),
    /// Records of peers: show, export, merge, prune
    ///
    /// In a file (`serve --history FILE`, while no server uses it) or on a fleet's server
    /// (`valkey://HOST:PORT/`, at any time).
    #[command(after_long_help = examples::HISTORY)]
    History(HistoryArgs),
    /// Judge a rollout: on, off or keep testing
    ///
    /// From the log of `serve` or `tcp trace`, or from scrapes of /metrics: first answers and
    /// losses of both arms, harm to other connections of the same peers. Can be run at any time.
    #[command(after_long_help = examples::AB)]
    Ab(AbArgs),
    /// Fetch pages over HTTP/3 and time them
    ///
    /// `--hint` sends the rate of your downlink, `--repeat` connects again, `--compare` requests
    /// each scheme in turn. Fails if an answer is no page (404 and the like): its times would be an
    /// error's.
    #[command(after_long_help = examples::GET)]
    Get(Box<GetArgs>),
    /// Fast starts for servers over kernel TCP
    ///
    /// With nothing recompiled: nginx, Apache, HAProxy, Go, Java.
    ///
    /// `headstart tcp attach --cgroup PATH` loads a congestion control in eBPF and ends; `headstart
    /// tcp run -- COMMAND` undoes it when the command ends. Linux 6.4 or newer, root.
    #[cfg(feature = "tcp")]
    #[command(after_long_help = examples::TCP)]
    Tcp(tcp::TcpArgs),
    /// Fast starts for servers over kernel TCP [--features tcp]
    #[cfg(not(feature = "tcp"))]
    #[command(disable_help_flag = true, after_long_help = examples::TCP)]
    Tcp {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<String>,
    },
    /// List the paths of `--path`, with their sources
    #[command(after_long_help = examples::PATHS)]
    Paths(PathsArgs),
    /// Write a small site, a HAR and a trace to try
    #[command(after_long_help = examples::EXAMPLES)]
    Examples(ExamplesArgs),
    /// Print a completion script for a shell
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Write manual pages into a folder
    #[command(after_long_help = examples::MAN)]
    Man(ManArgs),
    /// List the schemes, or one scheme's parameters
    #[command(after_long_help = examples::SCHEMES)]
    Schemes(SchemesArgs),
}

fn parser() -> clap::Command {
    let plain = Cli::command();
    let names: Vec<String> = plain.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    // To change a command moves it to the end.
    let place = |command: &clap::Command| names.iter().position(|name| name == command.get_name());
    layout::laid_out(not_built::marked(plain)).mut_subcommands(|command| {
        let place = place(&command).unwrap_or(names.len());
        command.display_order(place)
    })
}

/// The parser with values of `sweep` that are any text: each may be a list.
fn relaxed(parser: clap::Command) -> clap::Command {
    let text = |arg: clap::Arg| {
        if arg.get_action().takes_values() { arg.value_parser(ValueParser::string()) } else { arg }
    };
    parser.mut_subcommand("sweep", |sweep| sweep.mut_args(text))
}

/// A command line as it was read.
struct Line {
    /// Options of the line, its preset and its plan.
    matches: ArgMatches,
    /// Options that were typed or are in the plan, as words.
    given_options: Vec<String>,
}

/// Reads a command line, its plan and its preset; writes its plan, if requested.
///
/// # Errors
/// As [`clap::Error`] if the parser refuses it.
fn read(words: impl Iterator<Item = OsString>) -> anyhow::Result<Line> {
    let strict = parser();
    let mut parser = relaxed(strict.clone());
    let mut words = words::canonical(&strict, words);
    let mut read = |words: &[OsString]| -> Result<ArgMatches, clap::Error> {
        let matches = parser.try_get_matches_from_mut(words)?;
        if let Some((name, given)) = matches.subcommand()
            && let (Some(layout), Some(command)) = (layout::of(name), parser.find_subcommand_mut(name))
        {
            layout.check(command, given)?;
        }
        Ok(matches)
    };
    let mut matches = read(&words)?;
    let mut given_options = vec![];
    if let Some((name, given)) = matches.subcommand()
        && let Some(command) = strict.find_subcommand(name)
    {
        given_options = words::given_options(command, given);
    }
    if let Some((name, given)) = matches.subcommand()
        && let Some(command) = strict.find_subcommand(name).filter(|command| plan::takes_presets(command))
    {
        let typed = given_options;
        let mut before = plan::planned(command, &typed).or_refuse()?;
        given_options = [&before[..], &typed].concat();
        if name == "sweep" {
            plan::save(command, &given_options, given)?;
            return Ok(Line { matches, given_options });
        }
        // A demo has a rate, but none of its own for the way back.
        let mut preset = plan::of_preset(&given_options);
        preset
            .retain(|word| words::names(std::slice::from_ref(word)).iter().all(|it| plan::has(command, it)));
        before.splice(0..0, preset);
        words.splice(2..2, before.into_iter().map(OsString::from));
        matches = read(&words)?;
        if let Some((_, given)) = matches.subcommand() {
            plan::save(command, &given_options, given)?;
        }
    }
    Ok(Line { matches, given_options })
}

/// Takes `words`, the program's first, for the command line and `library` for the program, where
/// another program has loaded it.
pub fn host(words: Vec<OsString>, library: PathBuf) {
    terminal::host(words);
    headstart_report::jobs::host(library);
}

/// Runs the command line; returns the exit code.
#[must_use]
pub fn main() -> u8 {
    let Line { matches, given_options } = match read(terminal::words()) {
        Ok(line) => line,
        Err(error) => return ended(Err(error)),
    };
    if matches.subcommand_name() == Some("sweep") {
        return ended(sweep::run(&given_options));
    }
    #[cfg(feature = "explore")]
    let words = given_options.clone();
    let given_options = words::names(&given_options);
    if let Some((_, given)) = matches.subcommand()
        && let Ok(Some(format)) = given.try_get_one::<format::Format>("format")
        && let Err(error) = format.check_available().or_refuse()
    {
        return ended(Err(error));
    }
    let parsed = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    ended(match parsed.command {
        Command::Race(args) => race::run(args, &given_options),
        Command::Sweep(_) => Ok(()),
        Command::Trace(args) => trace::run(args, &given_options),
        #[cfg(feature = "explore")]
        Command::Explore(args) => explore::run(&args, &words),
        #[cfg(not(feature = "explore"))]
        Command::Explore(args) => args.refuse(),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Assess(args) => assess::run(&args),
        #[cfg(feature = "network")]
        Command::Downlink(args) => downlink::run(&args),
        #[cfg(feature = "network")]
        Command::Measure(args) => measure::run(&args),
        #[cfg(feature = "network")]
        Command::Link(args) => {
            idle::print_notes(&given_options, &idle::of_link(&args));
            match link_run::link(&args, &terminal::command_line()) {
                Ok(code) => return code,
                Err(error) => Err(error),
            }
        }
        #[cfg(feature = "network")]
        Command::ShowLink(args) => link_run::show_link(&args).and_then(|text| terminal::print(&text)),
        #[cfg(feature = "network")]
        Command::LinkEnd(args) => return link_run::end(args),
        #[cfg(feature = "network")]
        Command::Demo(args) => {
            idle::print_notes(&given_options, &idle::of_demo(&args));
            demo::demo(&args)
        }
        #[cfg(feature = "network")]
        Command::Page(args) => page::run(&args),
        #[cfg(feature = "network")]
        Command::Serve(args) => {
            idle::print_notes(&given_options, &idle::of_server(&args.server));
            serve::serve(*args)
        }
        #[cfg(feature = "network")]
        Command::Proxy(args) => {
            idle::print_notes(&given_options, &idle::of_server(&args.server));
            proxy::proxy(*args)
        }
        #[cfg(feature = "fleet")]
        Command::History(args) => history::run(&args),
        #[cfg(not(feature = "fleet"))]
        Command::History(args) => args.refuse(),
        #[cfg(feature = "network")]
        Command::Ab(args) => ab::run(&args),
        #[cfg(feature = "network")]
        Command::Get(args) => {
            idle::print_notes(&given_options, &idle::of_get(&args));
            get::get(&args)
        }
        #[cfg(feature = "tcp")]
        Command::Tcp(args) => match tcp::tcp(&args) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        #[cfg(not(feature = "tcp"))]
        Command::Tcp { .. } => headstart_report::errors::Refuse::or_refuse(Err(anyhow::anyhow!(
            "tcp: found a headstart that was built without it, expected one of `cargo install --path crates/command --features tcp` \
             (it compiles libbpf: apt-get install gcc make pkg-config libelf-dev zlib1g-dev)"
        ))),
        Command::Paths(args) => paths::run(&args),
        Command::Examples(args) => sample::run(&args),
        #[cfg(feature = "shell")]
        Command::Completions(args) => shell::completions(&args),
        #[cfg(feature = "shell")]
        Command::Man(args) => shell::man(&args),
        #[cfg(not(feature = "shell"))]
        Command::Completions(args) | Command::Man(args) => args.refuse(),
        Command::Schemes(args) => schemes::run(&args),
        #[cfg(not(feature = "network"))]
        Command::Downlink(args)
        | Command::Measure(args)
        | Command::ShowLink(args)
        | Command::Demo(args)
        | Command::Ab(args) => args.refuse(),
        #[cfg(not(feature = "network"))]
        Command::Link(args)
        | Command::Page(args)
        | Command::Proxy(args)
        | Command::Serve(args)
        | Command::Get(args) => args.refuse(),
    })
}

fn ended(result: anyhow::Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                usage.exit();
            }
            eprintln!("headstart: {}", one_line(&error));
            exit_code(&error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of all helps that begin with the program's name, without their explanations.
    fn lines() -> Vec<(String, String)> {
        let rows = [
            ("", examples::ALL),
            ("race", examples::RACE),
            ("sweep", examples::SWEEP),
            ("trace", examples::TRACE),
            ("explore", examples::EXPLORE),
            ("reproduce", examples::REPRODUCE),
            ("assess", examples::ASSESS),
            ("downlink", examples::DOWNLINK),
            ("history", examples::HISTORY),
            ("ab", examples::AB),
            ("link", examples::LINK),
            ("show-link", examples::SHOW_LINK),
            ("demo", examples::DEMO),
            ("serve", examples::SERVE),
            ("get", examples::GET),
            ("schemes", examples::SCHEMES),
            ("paths", examples::PATHS),
            ("examples", examples::EXAMPLES),
            ("completions", examples::COMPLETIONS),
            ("man", examples::MAN),
            ("tcp", examples::TCP),
        ];
        let of = |(command, text): (&str, &str)| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("  headstart "));
            // A comment, and what a shell redirects, are not the command's.
            let typed = lines.map(|line| line.split("  ").next().unwrap_or_default());
            let typed = typed.map(|line| line.split(" > ").next().unwrap_or_default().to_owned());
            typed.map(|line| (command.to_owned(), line)).collect::<Vec<_>>()
        };
        rows.into_iter().flat_map(of).collect()
    }

    #[test]
    fn every_example_of_the_help_parses() {
        let lines = lines();
        assert!(lines.len() > 25, "{}", lines.len());
        for (command, line) in lines {
            // These two print arguments for other commands.
            let is_of = line.starts_with(&command) || ["paths", "examples"].contains(&command.as_str());
            assert!(is_of, "{line} stands in the help of {command}");
            let words = std::iter::once("headstart").chain(line.split(' '));
            let mut parser = relaxed(parser());
            let matches =
                parser.try_get_matches_from_mut(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (name, given) = matches.subcommand().expect(&line);
            if name == "sweep" {
                let sweep = parser.find_subcommand(name).expect(&line);
                let points =
                    headstart_compare::sweep::expand(&words::given_options(sweep, given)).expect(&line);
                sweep::parse_points(points).expect(&line);
            } else {
                Cli::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }

    #[test]
    fn the_help_of_every_command_ends_with_examples_or_notes() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(command.get_after_long_help().is_some(), "{}", command.get_name());
        }
    }
}
