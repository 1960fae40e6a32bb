//! The commands, one file each.

#[cfg(feature = "network")]
mod demo;
#[cfg(feature = "network")]
mod downlink;
mod examples;
#[cfg(feature = "network")]
mod get;
mod layout;
mod not_built;
mod race;
mod reproduce;
mod schemes;
#[cfg(feature = "network")]
mod serve;
mod sweep;
#[cfg(feature = "tcp")]
mod tcp;
mod terminal;
mod trace;
mod words;

use std::process::ExitCode;

use clap::builder::ValueParser;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::errors::{exit_code, one_line};
#[cfg(feature = "network")]
use crate::link::{EndArgs, LinkArgs, ShowLinkArgs, run as link_run};
use crate::options::SchemeName;
#[cfg(feature = "network")]
use demo::DemoArgs;
#[cfg(feature = "network")]
use downlink::DownlinkArgs;
#[cfg(feature = "network")]
use get::GetArgs;
#[cfg(not(feature = "network"))]
use not_built::{
    NotBuilt as DemoArgs, NotBuilt as DownlinkArgs, NotBuilt as GetArgs, NotBuilt as LinkArgs,
    NotBuilt as ServeArgs, NotBuilt as ShowLinkArgs,
};
use race::RaceArgs;
use reproduce::ReproduceArgs;
#[cfg(feature = "network")]
use serve::ServeArgs;
use sweep::SweepArgs;
use trace::TraceArgs;

/// Which fast start is best on my path, and what does it cost everybody else?
#[derive(Parser, Debug)]
#[command(name = "headstart", version, max_term_width = 100, arg_required_else_help = true, after_help = examples::ALL)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run all schemes on one path and compare them
    ///
    /// Without options: Halfback's access path (15 Mbit/s, 60 ms, 115 kB of drop-tail buffer), flows of 100 kB at 25 % load.
    /// Prints a table and writes report.html, race.csv and race.json.
    #[command(allow_negative_numbers = true, after_long_help = examples::RACE)]
    Race(RaceArgs),
    /// As `race`, where any option takes a list: every combination is run once, and an interrupted sweep goes on
    ///
    /// For example: headstart sweep --load 5%,25%,50% --rtt 20ms,60ms --schemes iw10,jump-start
    #[command(allow_negative_numbers = true, after_long_help = examples::SWEEP)]
    Sweep(SweepArgs),
    /// One flow in detail: every send, ack, loss, window, pace and phase
    #[command(allow_negative_numbers = true, after_long_help = examples::TRACE)]
    Trace(TraceArgs),
    /// Run a paper's experiments again and compare what comes out with what it says
    ///
    /// Prints a table of claims and writes report.html, claims.csv and each figure as SVG and CSV. An interrupted run goes on
    /// where it stopped.
    #[command(after_long_help = examples::REPRODUCE)]
    Reproduce(ReproduceArgs),
    /// What this machine knows of its own downlink, and what it would tell a server
    ///
    /// Asks every estimator: a value that you give, the largest rate seen on this network, the home gateway (UPnP, TR-064), the
    /// radio, the wire. Needs no privilege.
    #[command(allow_negative_numbers = true, after_long_help = examples::DOWNLINK)]
    Downlink(DownlinkArgs),
    /// Put a program behind the path: the simulator's links, queues and losses on its real packets
    ///
    /// `headstart link --rate 25mbit --rtt 50ms --buffer 104p -- COMMAND` runs the command in a network of its own, in which
    /// everything crosses the path; $HEADSTART_OUTSIDE is the address of this machine as it sees it. `--serve COMMAND` runs the
    /// server too, at the other end, and needs no root; `--udp ADDRESS:PORT` relays UDP only, and needs nothing. Down is
    /// towards the command. At the end it says whether the machine kept real time.
    #[command(allow_negative_numbers = true, after_long_help = examples::LINK)]
    Link(Box<LinkArgs>),
    /// Draw what a link's log says: throughput, delay and queue over time
    #[command(after_long_help = examples::SHOW_LINK)]
    ShowLink(ShowLinkArgs),
    #[cfg(feature = "network")]
    #[command(hide = true)]
    LinkEnd(EndArgs),
    /// See it work: a real server, a real client and a path between them, all in this process
    ///
    /// Cold start against each scheme over 25 Mbit/s and 50 ms, in less than half a minute. Needs no privilege and no network.
    #[command(allow_negative_numbers = true, after_long_help = examples::DEMO)]
    Demo(DemoArgs),
    /// Serve a folder over HTTP/3, with connections that start fast
    ///
    /// And over HTTP/1.1 and 2 on the same port of TCP, so that browsers find it. Prints for each connection what it knew of its
    /// peer, what it decided and how many round trips that saved.
    #[command(after_long_help = examples::SERVE)]
    Serve(Box<ServeArgs>),
    /// Fetch pages over HTTP/3 and say how long they took
    ///
    /// `--hint` tells the server of your downlink, `--repeat` dials again, `--compare` asks the server for each scheme in turn. Fails
    /// if an answer is no page (404 and the like): its times would be those of an error.
    #[command(after_long_help = examples::GET)]
    Get(Box<GetArgs>),
    /// Fast starts for servers over the kernel's own TCP, with nothing recompiled: nginx, Apache, HAProxy, Go, Java
    ///
    /// `headstart tcp attach --cgroup PATH` loads a congestion control in eBPF and ends; `headstart tcp run -- COMMAND` undoes it when the
    /// command ends. Linux 6.4 or newer, root.
    #[cfg(feature = "tcp")]
    #[command(after_long_help = examples::TCP)]
    Tcp(tcp::TcpArgs),
    /// Fast starts for servers over the kernel's own TCP (not in this build)
    #[cfg(not(feature = "tcp"))]
    #[command(disable_help_flag = true, after_long_help = examples::TCP)]
    Tcp {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        arguments: Vec<String>,
    },
    /// List the schemes, and what each needs to know; of one scheme its parameters
    #[command(after_long_help = examples::SCHEMES)]
    Schemes {
        /// The scheme
        name: Option<SchemeName>,
    },
}

/// The parser of the command line.
fn parser() -> clap::Command {
    layout::laid_out(not_built::marked(Cli::command()))
}

/// The same where values of `sweep` are any text: each may be a list.
fn relaxed(parser: clap::Command) -> clap::Command {
    let text = |arg: clap::Arg| {
        if arg.get_action().takes_values() { arg.value_parser(ValueParser::string()) } else { arg }
    };
    parser.mut_subcommand("sweep", |sweep| sweep.mut_args(text))
}

/// Runs what the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    let mut parser = relaxed(parser());
    let matches = parser.get_matches_mut();
    let mut asked = vec![];
    if let Some((name, given)) = matches.subcommand()
        && let (Some(layout), Some(command)) = (layout::of(name), parser.find_subcommand_mut(name))
    {
        layout.check(command, given).unwrap_or_else(|error| error.exit());
        let words = words::given(command, given);
        if name == "sweep" {
            return ended(sweep::run(&words));
        }
        asked = words::names(&words);
    }
    let parsed = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    ended(match parsed.command {
        Command::Race(args) => race::run(args, &asked),
        Command::Sweep(_) => Ok(()),
        Command::Trace(args) => trace::run(args, &asked),
        Command::Reproduce(args) => reproduce::run(&args),
        #[cfg(feature = "network")]
        Command::Downlink(args) => downlink::run(&args),
        #[cfg(feature = "network")]
        Command::Link(args) => match link_run::link(&args, &terminal::command_line()) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        #[cfg(feature = "network")]
        Command::ShowLink(args) => link_run::show_link(&args).and_then(|text| terminal::print(&text)),
        #[cfg(feature = "network")]
        Command::LinkEnd(args) => return link_run::end(args),
        #[cfg(feature = "network")]
        Command::Demo(args) => demo::demo(&args),
        #[cfg(feature = "network")]
        Command::Serve(args) => serve::serve(*args),
        #[cfg(feature = "network")]
        Command::Get(args) => get::get(&args),
        #[cfg(feature = "tcp")]
        Command::Tcp(args) => match tcp::tcp(&args) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        #[cfg(not(feature = "tcp"))]
        Command::Tcp { .. } => crate::errors::Refuse::or_refuse(Err(anyhow::anyhow!(
            "tcp: found a headstart that was built without it, expected one of `cargo install --path crates/lab --features tcp` \
             (needs a C compiler and the headers of libelf and zlib)"
        ))),
        Command::Schemes { name: None } => schemes::run(),
        Command::Schemes { name: Some(name) } => schemes::run_for(name.0),
        #[cfg(not(feature = "network"))]
        Command::Downlink(args) | Command::ShowLink(args) | Command::Demo(args) => args.refuse(),
        #[cfg(not(feature = "network"))]
        Command::Link(args) | Command::Serve(args) | Command::Get(args) => args.refuse(),
    })
}

fn ended(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headstart: {}", one_line(&error));
            ExitCode::from(exit_code(&error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of all helps that begin with the program's name, without what explains them.
    fn lines() -> Vec<(String, String)> {
        let told = [
            ("", examples::ALL),
            ("race", examples::RACE),
            ("sweep", examples::SWEEP),
            ("trace", examples::TRACE),
            ("reproduce", examples::REPRODUCE),
            ("downlink", examples::DOWNLINK),
            ("link", examples::LINK),
            ("show-link", examples::SHOW_LINK),
            ("demo", examples::DEMO),
            ("serve", examples::SERVE),
            ("get", examples::GET),
            ("schemes", examples::SCHEMES),
            ("tcp", examples::TCP),
        ];
        let of = |(command, text): (&str, &str)| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("  headstart "));
            let typed = lines.map(|line| line.split("  ").next().unwrap_or_default().to_owned());
            typed.map(|line| (command.to_owned(), line)).collect::<Vec<_>>()
        };
        told.into_iter().flat_map(of).collect()
    }

    #[test]
    fn every_example_is_understood() {
        let lines = lines();
        assert!(lines.len() > 25, "{}", lines.len());
        for (command, line) in lines {
            assert!(line.starts_with(&command), "{line} stands in the help of {command}");
            let words = std::iter::once("headstart").chain(line.split(' '));
            let mut parser = relaxed(parser());
            let matches =
                parser.try_get_matches_from_mut(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            let (name, given) = matches.subcommand().expect(&line);
            if name == "sweep" {
                let sweep = parser.find_subcommand(name).expect(&line);
                sweep::parse_points(&words::given(sweep, given)).expect(&line);
            } else {
                Cli::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }

    #[test]
    fn every_command_ends_its_help_with_something_to_type_or_to_know() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(command.get_after_long_help().is_some(), "{}", command.get_name());
        }
    }
}
