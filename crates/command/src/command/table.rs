//! The table of commands: a row has what help says of a command, the options that it shows first,
//! and what the command runs. A new command is a file and a row.

use clap::{ArgMatches, FromArgMatches as _};
#[cfg(feature = "network")]
use headstart_field::link;

use super::*;

/// A heading of the list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Simulate,
    Measure,
    Serve,
    LookUp,
}

impl Group {
    pub const ALL: [Self; 4] = [Self::Simulate, Self::Measure, Self::Serve, Self::LookUp];

    pub const fn heading(self) -> &'static str {
        match self {
            Self::Simulate => "Simulate",
            Self::Measure => "Try and measure",
            Self::Serve => "Serve",
            Self::LookUp => "Look up",
        }
    }
}

/// A command.
pub struct Row {
    /// The word of the command line.
    pub name: &'static str,
    pub group: Group,
    /// The command and the word that show it, as `link show`: `name` goes on working, unlisted. An
    /// empty word is of a command for the program's own processes.
    pub within: Option<(&'static str, &'static str)>,
    /// One line of the list.
    pub about: &'static str,
    /// Paragraphs that `--help` adds to it.
    pub more: &'static str,
    /// The end of `--help`: a test parses each line that begins with the program's name.
    pub examples: &'static str,
    /// Long names of the options of `-h`, if it does not show all.
    pub first: &'static str,
    /// Texts of options in `-h` that are not those of [`layout`].
    pub texts: &'static [layout::Brief],
    pub acts: Acts,
}

/// Arguments of a command, and its function; in a program without its feature, a refusal.
#[derive(Clone, Copy)]
pub struct Acts {
    pub augment: fn(clap::Command) -> clap::Command,
    pub run: fn(&ArgMatches, &Line) -> anyhow::Result<u8>,
    /// The feature that is missing.
    pub lacks: Option<&'static str>,
}

/// The end of a command as an exit code.
trait Ended {
    fn code(self) -> u8;
}

impl Ended for () {
    fn code(self) -> u8 {
        0
    }
}

impl Ended for u8 {
    fn code(self) -> u8 {
        self
    }
}

/// Arguments and function of a command that needs a feature, or none.
macro_rules! acts {
    ($feature:literal, $args:ty, $run:expr) => {{
        #[cfg(feature = $feature)]
        {
            acts!($args, $run)
        }
        #[cfg(not(feature = $feature))]
        {
            not_built::acts($feature)
        }
    }};
    ($args:ty, $run:expr) => {
        Acts {
            augment: <$args as clap::Args>::augment_args,
            run: |matches, line| {
                let run: fn($args, &Line) -> anyhow::Result<_> = $run;
                run(<$args>::from_arg_matches(matches)?, line).map(Ended::code)
            },
            lacks: None,
        }
    };
}

/// A command that is only the commands within it.
const PARENT: Acts = Acts {
    augment: |command| command.subcommand_required(true).arg_required_else_help(true),
    run: |_, _| Ok(0),
    lacks: None,
};

const SIMULATE: Row = Row {
    name: "",
    group: Group::Simulate,
    within: None,
    about: "",
    more: "",
    examples: "",
    first: "",
    texts: &[],
    acts: PARENT,
};
const MEASURE: Row = Row { group: Group::Measure, ..SIMULATE };
const SERVE: Row = Row { group: Group::Serve, ..SIMULATE };
const LOOK_UP: Row = Row { group: Group::LookUp, ..SIMULATE };

/// The end of the help of `headstart` itself.
pub const BEGIN: &str = if cfg!(feature = "network") {
    "\
Begin with (each command explains itself with -h and --help):
  headstart demo                            see it work: half a minute
  headstart race --rate 50mbit --rtt 30ms   which fast start is best on my path
  headstart serve site --history h          serve with it

Exit codes: 0 done, 1 failed, 2 refused, 3 (`link --strict`) not in real time."
} else {
    "\
Begin with:
  headstart race --rate 50mbit --rtt 30ms   which fast start is best on my path
  headstart trace halfback                  one flow, packet by packet
  headstart sweep --load 5%,25%,50%         the same over several loads
  headstart reproduce halfback --quick      a paper's claims, figure by figure

Each command explains itself with -h and --help. Exit codes: 0 done, 1 failed on
the way, 2 refused."
};

/// The commands, in the order of the list.
pub const COMMANDS: &[Row] = &[
    Row {
        name: "race",
        about: "Run all schemes on one path and compare them",
        more: "Without options: Halfback's access path (15 Mbit/s, 60 ms, 115 kB of drop-tail buffer), \
               flows of 100 kB at 25 % load. Prints a table and writes report.html, race.csv, seeds.csv \
               and race.json.",
        examples: "\
Examples:
  headstart race --rate 50mbit --rtt 30ms --buffer 0.5BDP --load 40%   my path
  headstart race --schemes iw10,halfback,wise-start --background 2     three schemes with two long flows
  headstart race --transport quic --schemes iw10,halfback              over the real QUIC stack, in virtual time
  headstart race --duration 20s --repeats 2                            a first look",
        first: "path rate rtt buffer loss trace size load background har schemes duration repeats in transport \
                 out format plan",
        acts: acts!(race::RaceArgs, |args, line| race::run(args, &line.names())),
        ..SIMULATE
    },
    Row {
        name: "sweep",
        about: "As `race`, where any option takes a list",
        more: "Every combination is run once, and an interrupted sweep goes on.\n\nFor example: \
               headstart sweep --load 5%,25%,50% --rtt 20ms,60ms --schemes iw10,jump-start",
        examples: "\
Every combination of the lists is run once, and what was run before is kept: an interrupted sweep goes on.

Examples:
  headstart sweep --load 5%,25%,50% --rtt 20ms,60ms --schemes iw10,jump-start
  headstart sweep --load 5%..50%:5% --schemes iw10,headstart         ranges, with their step
  headstart sweep --transport tcp,quic --load 10%,50% --schemes iw10,headstart",
        first: "path rate rtt buffer loss trace size load background har schemes duration repeats in transport out",
        // Its values may be lists: each point is read by itself.
        acts: Acts {
            augment: <sweep::SweepArgs as clap::Args>::augment_args,
            run: |_, line| sweep::run(&line.given_options).map(Ended::code),
            lacks: None,
        },
        ..SIMULATE
    },
    Row {
        name: "trace",
        about: "One flow in detail: sends, acks, losses, window",
        examples: "\
Examples:
  headstart trace halfback                    one flow, alone on the path
  headstart trace wise-start --flow 30        the thirty-first of a run: schemes with a history know its peer by then
  headstart trace iw10 --buffer 20p --out t   with losses; its files go to the folder t",
        first: "flow path rate rtt buffer loss trace size load background transport out",
        texts: &[("flow", "Which flow of a run [default: one alone on the path]")],
        acts: acts!(trace::TraceArgs, |args, line| trace::run(args, &line.names())),
        ..SIMULATE
    },
    Row {
        name: "explore",
        about: "Race on a page, with sliders",
        more: "Serves a page to this machine and opens it: path, workload and schemes as sliders, the \
               results as they come in, and two flows packet by packet. The options of `race` set the \
               first state. Each state is an address, and a command line with the same numbers.",
        examples: "\
Examples:
  headstart explore                                     the page opens in the browser
  headstart explore --path lte --schemes iw10,halfback  where it begins
  headstart explore --no-open --port 8000               the address only; remotely: ssh -L 8000:127.0.0.1:8000

The first answer to a change has one seed of a short simulated time, and seeds are added while you look. The page shows the
`headstart race` with the same numbers. The page is for this machine, and for those who have its address.",
        first: "path rate rtt buffer loss size load background schemes duration repeats port no-open plan",
        acts: acts!("explore", explore::ExploreArgs, |args, line| explore::run(&args, &line.given_options)),
        ..SIMULATE
    },
    Row {
        name: "reproduce",
        about: "Run a paper's experiments and check its claims",
        more: "Prints a table of claims and writes report.html, claims.csv and each figure as SVG and \
               CSV. An interrupted run goes on where it stopped.",
        examples: "\
Examples:
  headstart reproduce --list                            papers and figures
  headstart reproduce halfback --quick                  a paper, cut down
  headstart reproduce halfback --figure 12,beyond       two figures in full
  headstart reproduce wisestart --quick --check         fail where an outcome is not the one on record",
        acts: acts!(reproduce::ReproduceArgs, |args, _| reproduce::run(&args)),
        ..SIMULATE
    },
    Row {
        name: "assess",
        about: "Judge schemes by the IETF's criteria for congestion control",
        more: "Each criterion of RFC 9743 and RFC 5166 is a plan with a bound that was fixed before: \
               shown, not shown, or does not apply. Prints a table and writes assessment.md and \
               assessment.csv.",
        examples: "\
Examples:
  headstart assess headstart --quick                    every criterion, in about half a minute
  headstart assess iw10,suss --figure load,queues       two schemes, the criteria of two plans

Loss, time and fairness of others, active queues, satellites, outages, a concurrent call: each bound stands in the column `accepted`, and the
plans in experiments/assessment.toml. What no run can show is answered in words by a scheme's author.",
        acts: acts!(assess::AssessArgs, |args, _| assess::run(&args)),
        ..SIMULATE
    },
    Row {
        name: "demo",
        about: "See it work: a real server, client and path",
        more: "All in this process. Cold start against each scheme over 25 Mbit/s and 50 ms, in less \
               than half a minute. Needs no privilege and no network.",
        examples: "\
Examples:
  headstart demo --schemes iw10,halfback,wise-start --repeats 2
  headstart demo --rate 100mbit --rtt 30ms --buffer 1BDP --size 300kB",
        acts: acts!("network", demo::DemoArgs, |args, line| {
            idle::print_notes(&line.names(), &idle::of_demo(&args));
            demo::demo(&args)
        }),
        ..MEASURE
    },
    Row {
        name: "page",
        about: "A page in a real browser, by scheme",
        more: "A page of a HAR file, or of one of four shapes, as a site over HTTP/3 behind an emulated \
               path. Headless Chromium or Firefox visits it, first where the server does not know its \
               client, then where it does. Measured are paints, load event, the part above the fold and \
               the last object, with the simulator's time for the same page.",
        examples: "\
Examples:
  headstart page                                               a search page over cable: about a minute
  headstart page --shape news --path lte --schemes iw10,headstart,wise-start
  headstart page saved.har --repeats 8                         a page that your browser saved (developer tools, network, save as HAR)
  headstart page page.html --http h3,h2,h1                     one saved \"complete\", and the kernel's TCP beside (root)

Every visit is by a browser with an empty cache; on a returning visit the server knows the address. docs/pages.md says how a page is
replayed, and what was found.",
        first: "shape path rate rtt buffer schemes repeats browser out format",
        texts: &[
            ("shape", "A synthetic page, instead of a HAR"),
            ("rate", "Rate of the link, towards the browser [default: all of the path `cable`]"),
            ("rtt", ""),
            ("buffer", ""),
            ("schemes", ""),
        ],
        acts: acts!("network", page::PageArgs, |args, _| page::run(&args)),
        ..MEASURE
    },
    Row {
        name: "measure",
        about: "The options of a path, from a capture or a log",
        more: "Reads records of traffic on the path, preferably of a download that filled it. Prints \
               the options with which `race` has that path, and what could not be known.",
        examples: "\
Examples:
  tcpdump -s 128 -w download.pcap tcp                   while a large file is downloaded
  headstart measure download.pcap
  headstart measure ping.txt qlogs/1f.qlog             the server's qlog of a download, and a ping of its client
  headstart race $(headstart measure download.pcap)
  while sleep 0.2; do ss -tin dst 192.0.2.7; done > ss.txt",
        acts: acts!("network", measure::MeasureArgs, |args, _| measure::run(&args)),
        ..MEASURE
    },
    Row {
        name: "downlink",
        within: Some(("measure", "downlink")),
        about: "Estimates of this machine's downlink",
        more: "Queries every estimator: a value that you give, the largest rate seen on this network, \
               the wire. Needs no privilege.",
        examples: "\
Examples:
  headstart measure downlink                                    who says what
  headstart measure downlink --rate 50mbit --access dsl         a rate that you know
  headstart measure downlink --format json                      for a program",
        acts: acts!("network", downlink::DownlinkArgs, |args, _| downlink::run(&args)),
        ..MEASURE
    },
    Row {
        name: "link",
        about: "Put a program behind a path of links and queues",
        more: "The simulator's links, queues and losses on its real packets.\n\n`headstart link --rate \
               25mbit --rtt 50ms --buffer 104p -- COMMAND` runs the command in a network of its own, in \
               which everything crosses the path; $HEADSTART_OUTSIDE is the address of this machine as \
               it sees it. `--serve COMMAND` runs the server too, at the other end, and needs no root; \
               `--udp ADDRESS:PORT` relays UDP only, and needs nothing. Down is towards the command. At \
               the end it reports whether the machine kept real time.",
        examples: "\
Examples:
  headstart link --rate 25mbit --rtt 50ms --buffer 104p -- curl https://example.org/
  headstart link --rate 25mbit --rtt 50ms --udp 127.0.0.1:4433
  headstart link --loss 1% --jitter 2ms --serve server -- client
  headstart link --log log.csv --rtt 20ms -- ping -c 3 100.64.0.1",
        first: "path rate rtt buffer loss jitter trace up-rate udp serve change log duration strict",
        texts: &[
            ("jitter", "Random extra delay up to this"),
            ("udp", "Relay UDP to this server; needs no privileges"),
            ("serve", "Run this by the shell at the other end"),
            ("duration", ""),
        ],
        acts: acts!("network", link::LinkArgs, |args, line| {
            idle::print_notes(&line.names(), &idle::of_link(&args));
            link::run::link(&args, &terminal::command_line())
        }),
        ..MEASURE
    },
    Row {
        name: "show-link",
        within: Some(("link", "show")),
        about: "Draw a link's log: throughput, delay and queue",
        examples: "\
Example:
  headstart link show log.csv --out pictures",
        acts: acts!("network", link::ShowLinkArgs, |args, _| terminal::print(&link::run::show_link(&args)?)),
        ..MEASURE
    },
    Row {
        name: "link-end",
        within: Some(("link", "")),
        about: "",
        acts: acts!("network", link::EndArgs, |args, _| Ok(link::run::end(args))),
        ..MEASURE
    },
    Row {
        name: "serve",
        about: "Serve a folder over HTTP/3, with fast starts",
        more: "Also over HTTP/1.1 and 2 on the same TCP port, where browsers discover HTTP/3. Prints \
               for each connection its record of the peer, its decision and the round trips saved.",
        examples: "\
Examples:
  headstart serve site                                              https://localhost:4433/, for this machine only
  headstart serve site --listen 0.0.0.0:443 --certificate chain.pem --key key.pem
  headstart serve site --history peers.history --metrics 127.0.0.1:9100 --rollout 10%
  headstart serve --generate --allow-scheme-choice                  for `headstart get --compare`",
        first: "generate listen scheme history certificate key name rollout kill-switch metrics qlog",
        acts: acts!("network", serve::ServeArgs, |args, line| {
            idle::print_notes(&line.names(), &idle::of_server(&args.server));
            serve::serve(args)
        }),
        ..SERVE
    },
    Row {
        name: "proxy",
        about: "HTTP/3 and fast starts in front of any server",
        more: "As `serve`, and requests go to the servers of --upstream, over HTTP/1.1: nginx, Node, \
               Python, Java, unchanged. Bodies are passed on as they come.",
        examples: "\
Examples:
  headstart proxy --upstream http://127.0.0.1:8080                  https://localhost:4433/, for this machine only
  headstart proxy --upstream http://a:8080 --upstream http://b:8080 --check /health
  headstart proxy --upstream http://127.0.0.1:8080 --listen 0.0.0.0:443 --certificate chain.pem --key key.pem \\
    --history peers.history --metrics 127.0.0.1:9100 --rollout 10%",
        first: "upstream check listen scheme history certificate key name rollout kill-switch metrics qlog",
        acts: acts!("network", proxy::ProxyArgs, |args, line| {
            idle::print_notes(&line.names(), &idle::of_server(&args.server));
            proxy::proxy(args)
        }),
        ..SERVE
    },
    Row {
        name: "tcp",
        about: "Fast starts for servers over kernel TCP",
        more: "With nothing recompiled: nginx, Apache, HAProxy, Go, Java.\n\n`headstart tcp attach \
               --cgroup PATH` loads a congestion control in eBPF and ends; `headstart tcp run -- \
               COMMAND` undoes it when the command ends. Linux 6.4 or newer, root.",
        examples: "\
Examples:
  headstart tcp attach --cgroup /system.slice/nginx.service --percent 10
  headstart tcp status
  headstart tcp trace --count 20
  headstart tcp stats --prometheus
  headstart tcp set --stop
  headstart tcp detach
  headstart tcp run --scheme jump-start --stats -- python3 -m http.server",
        acts: acts!("tcp", tcp::TcpArgs, |args, _| tcp::tcp(&args)),
        ..SERVE
    },
    Row {
        name: "get",
        about: "Fetch pages over HTTP/3 and time them",
        more: "`--hint` sends the rate of your downlink, `--repeat` connects again, `--compare` \
               requests each scheme in turn. Fails if an answer is no page (404 and the like): its \
               times would be an error's.",
        examples: "\
Examples:
  headstart get https://localhost:4433/ --repeat 5
  headstart get https://localhost:4433/page --hint 50mbit --access dsl
  headstart get https://localhost:4433/bytes/100000 --compare slow-start,wise-start --repeat 10 --format csv
  headstart get https://localhost:4433/ --connect 127.0.0.1:5000    through a `headstart link --udp`",
        acts: acts!("network", get::GetArgs, |args, line| {
            idle::print_notes(&line.names(), &idle::of_get(&args));
            get::get(&args)
        }),
        ..SERVE
    },
    Row {
        name: "history",
        about: "Records of peers: show, export, merge, prune",
        more: "In a file (`serve --history FILE`, while no server uses it) or on a fleet's server \
               (`valkey://HOST:PORT/`, at any time).",
        examples: "\
Examples:
  headstart history show peers.history                  how many, how old, how fast
  headstart history export peers.history > peers.csv    every record
  headstart history merge a.history b.history --into valkey://localhost:6379/
  headstart history prune peers.history --older-than 1h",
        acts: acts!("fleet", history::HistoryArgs, |args, _| history::run(&args)),
        ..SERVE
    },
    Row {
        name: "ab",
        about: "Judge a rollout: on, off or keep testing",
        more: "From the log of `serve` or `tcp trace`, or from scrapes of /metrics: first answers and \
               losses of both arms, harm to other connections of the same peers. Can be run at any \
               time.",
        examples: "\
Examples:
  headstart ab headstart.log                            of `serve --rollout 10%`: its lines on standard output
  headstart ab before.txt after.txt                     /metrics, read twice
  headstart ab headstart.log --most-harm 2% --format json",
        acts: acts!("network", ab::AbArgs, |args, _| ab::run(&args)),
        ..SERVE
    },
    Row {
        name: "list",
        about: "The schemes, and the paths of `--path`",
        ..LOOK_UP
    },
    Row {
        name: "schemes",
        within: Some(("list", "schemes")),
        about: "List the schemes, or one scheme's parameters",
        examples: "\
--schemes and --scheme take these names. `needs` is what a scheme must know before its first byte: without a history, a hint or a router it starts as slow start does.

Parameters other than the defaults follow in parentheses: --schemes 'halfback(additional=25%),wise-start(kappa=30)'. Names are read without regard to case and hyphens.

  headstart list schemes halfback",
        acts: acts!(schemes::SchemesArgs, |args, _| schemes::run(&args)),
        ..LOOK_UP
    },
    Row {
        name: "paths",
        within: Some(("list", "paths")),
        about: "List the paths of `--path`, with their sources",
        examples: "\
Examples:
  headstart list paths
  headstart race --path lte --load 40%                  other options override the path",
        acts: acts!(paths::PathsArgs, |args, _| paths::run(&args)),
        ..LOOK_UP
    },
    Row {
        name: "generate",
        about: "Files to try, completions of a shell, manual",
        ..LOOK_UP
    },
    Row {
        name: "examples",
        within: Some(("generate", "examples")),
        about: "Write a small site, a HAR and a trace to try",
        examples: "\
Examples:
  headstart generate examples
  headstart race --har page.har --load 20%
  headstart serve site",
        acts: acts!(sample::ExamplesArgs, |args, _| sample::run(&args)),
        ..LOOK_UP
    },
    Row {
        name: "completions",
        within: Some(("generate", "completions")),
        about: "Print a completion script for a shell",
        examples: "\
Examples:
  headstart generate completions bash                            into ~/.local/share/bash-completion/completions/headstart
  headstart generate completions zsh                             into a folder of $fpath, as _headstart
  headstart generate completions fish                            into ~/.config/fish/completions/headstart.fish",
        acts: acts!("shell", shell::CompletionsArgs, |args, _| shell::completions(&args)),
        ..LOOK_UP
    },
    Row {
        name: "man",
        within: Some(("generate", "man")),
        about: "Write manual pages into a folder",
        examples: "\
Example:
  headstart generate man ~/.local/share/man/man1",
        acts: acts!("shell", shell::ManArgs, |args, _| shell::man(&args)),
        ..LOOK_UP
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of all helps that begin with the program's name, without their explanations.
    fn lines() -> Vec<(&'static str, String)> {
        let of = |(name, text): (&'static str, &str)| {
            let lines = text.lines().filter_map(|line| line.strip_prefix("  headstart "));
            // The shell replaces the rest.
            let lines = lines.filter(|line| !line.contains("$(") && !line.ends_with('\\'));
            // A comment, and what a shell redirects, are not the command's.
            let typed = lines.map(|line| line.split("  ").next().unwrap_or_default());
            let typed = typed.map(|line| line.split(" > ").next().unwrap_or_default().to_owned());
            typed.map(|line| (name, line)).collect::<Vec<_>>()
        };
        let rows = COMMANDS.iter().map(|row| (row.name, row.examples));
        rows.chain([("", BEGIN)]).flat_map(of).collect()
    }

    #[test]
    fn every_example_of_the_help_parses() {
        let lines = lines();
        assert!(lines.len() > 25, "{}", lines.len());
        for (name, line) in lines {
            let within = COMMANDS.iter().find(|row| row.name == name).and_then(|row| row.within);
            let shown = within.map_or_else(|| name.to_owned(), |(parent, word)| format!("{parent} {word}"));
            // These print arguments for other commands.
            let is_of = line.starts_with(&shown) || ["paths", "examples"].contains(&name);
            assert!(is_of, "{line} stands in the help of {shown}");
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
            }
        }
    }

    #[test]
    fn every_command_of_the_list_ends_its_help_with_examples_and_has_a_name_of_its_own() {
        for (place, row) in COMMANDS.iter().enumerate() {
            assert!(COMMANDS[..place].iter().all(|other| other.name != row.name), "{}", row.name);
            let is_parent =
                COMMANDS.iter().any(|other| other.within.is_some_and(|(name, _)| name == row.name));
            let is_internal = row.within.is_some_and(|(_, word)| word.is_empty());
            assert!(!row.examples.is_empty() || is_parent || is_internal, "{}", row.name);
        }
        let listed = COMMANDS.iter().filter(|row| row.within.is_none()).count();
        assert!(listed <= 18, "{listed} commands are listed");
    }

    #[test]
    fn a_folded_command_is_the_one_of_its_former_name() {
        for row in COMMANDS {
            let Some((parent, word)) = row.within.filter(|(_, word)| !word.is_empty()) else { continue };
            let Some(parent) = parser().find_subcommand(parent).cloned() else { panic!("{parent}") };
            let shown = parent.find_subcommand(word).map(|command| {
                command.get_arguments().map(|arg| arg.get_id().to_string()).collect::<Vec<_>>()
            });
            let parser = parser();
            let former = parser.find_subcommand(row.name).expect(row.name);
            let former = former.get_arguments().map(|arg| arg.get_id().to_string()).collect();
            // The whole parent may not be built.
            assert!(shown == Some(former) || parent.find_subcommand(word).is_none(), "{}", row.name);
        }
    }
}
