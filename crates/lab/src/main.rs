//! The `headstart` command: a thin door to the library of the same name.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, Parser, Subcommand};
use headstart::capacity::{Capacity, capacity};
use headstart::carrier::Detail;
use headstart::complaint::{Refuse as _, exit_code, told};
use headstart::demo::DemoArgs;
use headstart::examples;
use headstart::experiment::library::{Experiment, PaperFiles};
use headstart::experiment::plan::Paper;
use headstart::experiment::study::Study;
use headstart::experiment::{self, library};
use headstart::get::GetArgs;
use headstart::link::{EndArgs, LinkArgs, ShowLinkArgs, run as link_run};
use headstart::options::{PathOptions, RunOptions, SchemeName, TransportOptions, WorkloadOptions};
use headstart::output::Folder;
use headstart::race::{Race, Row, race};
use headstart::runner::{self, Job};
use headstart::serve::ServeArgs;
use headstart::setup::{Cast, Setup};
use headstart::show::reproduce::{self, Judged};
use headstart::sweep::{self, Kept};
use headstart::table::{Cell, Column, Table};
use headstart::{show, table};
use headstart_startup::catalogue;

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
    #[command(disable_help_flag = true)]
    Sweep {
        /// Options of `race`; `--out` names the folder
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
        arguments: Vec<String>,
    },
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
    Downlink(show::downlink::DownlinkArgs),
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
    /// List the schemes, and what each needs to know
    #[command(after_long_help = examples::SCHEMES)]
    Schemes,
}

#[derive(Args, Debug)]
struct RaceArgs {
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    workload: WorkloadOptions,
    #[command(flatten)]
    transport: TransportOptions,
    /// Search the feasible capacity of every scheme too (minutes, not seconds; use --duration 600s)
    #[arg(long, help_heading = "Output")]
    capacity: bool,
    /// Folder for report.html, race.csv and race.json
    #[arg(long, default_value = "headstart-race", value_name = "FOLDER", help_heading = "Output")]
    out: PathBuf,
    /// Print JSON instead of the table
    #[arg(long, help_heading = "Output")]
    json: bool,
}

#[derive(Args, Debug)]
struct TraceArgs {
    /// The scheme
    scheme: SchemeName,
    /// Which flow of the run, counted from zero [default: one flow alone on the path]
    #[arg(long, value_name = "NUMBER")]
    flow: Option<u64>,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    path: PathOptions,
    #[command(flatten)]
    workload: WorkloadOptions,
    #[command(flatten)]
    transport: TransportOptions,
    /// Folder for events.csv, time-sequence.svg and queue.svg
    #[arg(long, default_value = "headstart-trace", value_name = "FOLDER", help_heading = "Output")]
    out: PathBuf,
}

#[derive(Args, Debug)]
struct ReproduceArgs {
    /// The paper; or a folder that is laid out like those of `experiments/`
    #[arg(required_unless_present = "list")]
    paper: Option<String>,
    /// List papers and figures
    #[arg(long)]
    list: bool,
    /// Only these figures, as `12` or `figure-12`
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    figure: Vec<String>,
    /// A cut-down run: fewer points, seeds and seconds
    #[arg(long)]
    quick: bool,
    /// Fail if a claim's outcome is not the one on record in claims.toml
    #[arg(long)]
    check: bool,
    /// Packet-delivery traces (mahimahi format) in place of generated ones, where an experiment has networks of traces
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,
    /// Threads [default: all cores]; the results do not depend on it
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Folder for the results; each paper has its own in it
    #[arg(long, default_value = "headstart-reproduce", value_name = "FOLDER")]
    out: PathBuf,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Race(args) => run_race(args),
        Command::Sweep { arguments } => run_sweep(&arguments),
        Command::Trace(args) => run_trace(args),
        Command::Reproduce(args) => run_reproduce(&args),
        Command::Downlink(args) => tell_downlink(&args),
        Command::Link(args) => match link_run::link(&args, &command_line()) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::ShowLink(args) => link_run::show_link(&args).and_then(|text| print(&text)),
        Command::LinkEnd(args) => return link_run::end(args),
        Command::Demo(args) => headstart::demo::demo(&args),
        Command::Serve(args) => headstart::serve::serve(*args),
        Command::Get(args) => headstart::get::get(&args),
        Command::Schemes => list_schemes(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headstart: {}", told(&error));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Writes to standard output; a reader that went away early is no error.
fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

fn print_table(table: &Table) -> Result<()> {
    let width = table::terminal_width(std::env::var("COLUMNS").ok().as_deref());
    let bold = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    print(&table.terminal(width, bold))
}

fn command_line() -> String {
    std::env::args().skip(1).fold("headstart".to_owned(), |line, argument| {
        let plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_=,.%+/:".contains(c));
        if plain { format!("{line} {argument}") } else { format!("{line} '{argument}'") }
    })
}

fn run_race(args: RaceArgs) -> Result<()> {
    let setup =
        Setup::new(headstart::CARRIERS, args.path, args.transport, args.workload, args.run).or_refuse()?;
    if args.capacity && setup.carrier().is_real_time() {
        return Err(anyhow!(
            "--capacity: found it with --in emulator, where its hundreds of runs would take days: expected --in simulator"
        ))
        .or_refuse();
    }
    // A folder that is not ours is refused before anything is run.
    let folder = Folder::open(&args.out).or_refuse()?;
    let result = race(&setup)?;
    let capacities = if args.capacity { Some(capacity(&setup)?) } else { None };
    let rows: Vec<Row> = result.standings.iter().map(Row::from).collect();
    let json = json(&setup, &rows, capacities.as_deref())?;
    folder.write("race.json", json.as_bytes())?;
    folder.write_csv("race.csv", &Row::NAMES, rows.iter().map(Row::fields))?;
    let report = show::race::report(&setup, &result, capacities.as_deref(), &command_line());
    let page = folder.write("report.html", report.html().as_bytes())?;
    if args.json {
        return print(&json);
    }
    print_race(&setup, &result, capacities.as_deref())?;
    print(&format!("\nReport: {}\n", page.display()))
}

fn print_race(setup: &Setup, result: &Race, capacities: Option<&[Capacity]>) -> Result<()> {
    print_table(&show::race::table(setup, result))?;
    if let Some(capacities) = capacities {
        print("\n")?;
        print_table(&show::race::capacity_table(capacities))?;
    }
    Ok(())
}

fn json(setup: &Setup, rows: &[Row], capacities: Option<&[Capacity]>) -> Result<String> {
    let definitions: serde_json::Map<String, serde_json::Value> = show::race::definitions(setup)
        .into_iter()
        .map(|(term, text)| (term, serde_json::Value::String(text)))
        .collect();
    let document = serde_json::json!({
        "headstart": env!("CARGO_PKG_VERSION"),
        "command": command_line(),
        "seeds": { "first": setup.run.seed, "count": setup.run.repeats },
        "definitions": definitions,
        "schemes": rows,
        "capacity": capacities,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn run_sweep(arguments: &[String]) -> Result<()> {
    // The sweep's own parser is the race's: each point is parsed, so that a mistake is found before anything runs.
    #[derive(Parser, Debug)]
    #[command(
        name = "headstart sweep",
        max_term_width = 100,
        about = "As `race`, where any option takes a list",
        after_long_help = examples::SWEEP
    )]
    struct PointArgs {
        #[command(flatten)]
        args: RaceArgs,
    }
    let parse = |arguments: &[String]| {
        let line = std::iter::once("headstart sweep".to_owned()).chain(arguments.iter().cloned());
        PointArgs::try_parse_from(line).unwrap_or_else(|error| error.exit()).args
    };
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        parse(&["--help".to_owned()]);
    }
    let points = sweep::expand(arguments).or_refuse()?;
    let mut setups = vec![];
    let mut out = PathBuf::from("headstart-sweep");
    for point in &points {
        let args = parse(&point.arguments);
        if args.capacity || args.json {
            return Err(anyhow!("--capacity and --json are the race's: a sweep writes sweep.csv"))
                .or_refuse();
        }
        if args.out != Path::new("headstart-race") {
            out = args.out;
        }
        setups.push(
            Setup::new(headstart::CARRIERS, args.path, args.transport, args.workload, args.run)
                .or_refuse()?,
        );
    }
    let folder = Folder::open(&out).or_refuse()?;
    let kept = folder.folder("points")?;

    let mut rows = vec![];
    let mut done_before = 0;
    let total = points.len();
    for (number, (point, setup)) in points.iter().zip(&setups).enumerate() {
        let found = match sweep::kept_rows(kept.path(), point)? {
            Some(found) => {
                done_before += 1;
                found
            }
            None => {
                let names: Vec<String> =
                    point.varied.iter().map(|(name, value)| format!("{name} {value}")).collect();
                let which = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
                eprintln!("headstart: point {} of {total}{which}", number + 1);
                let result = race(setup)?;
                let fields = result.standings.iter().map(|standing| Row::from(standing).fields()).collect();
                let found = Kept { arguments: point.arguments.clone(), rows: fields };
                kept.write(&point.file_name(), &serde_json::to_vec(&found)?)?;
                found
            }
        };
        rows.extend(found.rows.into_iter().map(|fields| {
            point.varied.iter().map(|(_, value)| value.clone()).chain(fields).collect::<Vec<String>>()
        }));
    }
    let varied: Vec<&str> = points
        .first()
        .map(|point| point.varied.iter().map(|(name, _)| name.as_str()).collect())
        .unwrap_or_default();
    let header: Vec<&str> = varied.iter().copied().chain(Row::NAMES).collect();
    let file = folder.write_csv("sweep.csv", &header, &rows)?;

    let mut columns: Vec<Column> = varied.iter().map(|name| Column::text(name)).collect();
    columns.extend([
        Column::text("scheme"),
        Column::number("mean", "ms").priority(9),
        Column::number("p99", "ms").priority(3),
        Column::number("loss", "%").priority(2),
        Column::number("harm", "").priority(8),
    ]);
    let mut table = Table::new("", columns);
    let place = |name: &str| header.iter().position(|other| *other == name);
    for row in &rows {
        let number = |name: &str, decimals| {
            let value = place(name).and_then(|at| row[at].parse().ok());
            value.map_or(Cell::Missing, |value| Cell::number(value, decimals))
        };
        let mut cells: Vec<Cell> = row[..varied.len()].iter().map(|text| Cell::text(text)).collect();
        cells.extend([
            Cell::text(&row[varied.len()]),
            number("mean_ms", 0),
            number("p99_ms", 0),
            number("loss_percent", 2),
            number("harm", 3),
        ]);
        table.row(cells);
    }
    print_table(&table)?;
    print(&format!("\n{total} points, {done_before} of them run before. Table: {}\n", file.display()))
}

fn run_trace(args: TraceArgs) -> Result<()> {
    let setup =
        Setup::new(headstart::CARRIERS, args.path, args.transport, args.workload, args.run).or_refuse()?;
    if setup.carrier().detail() < Detail::Events {
        return Err(anyhow!(
            "--in: found emulator, expected simulator: a trace looks into a sender (of real packets, `headstart link --log` tells)"
        ))
        .or_refuse();
    }
    let entry = args.scheme.0;
    setup.carrier().carries(entry, &setup.transport).or_refuse()?;
    let view = match args.flow {
        None => runner::run_alone(&setup, entry)?,
        Some(number) => {
            let cast = Cast { tested: entry, beside: None };
            let job = Job { cast, load: setup.workload.load, seed: setup.run.seed, look_at: Some(number) };
            runner::run(&setup, &job)?.view.unwrap_or_default()
        }
    };
    let Some(report) = view.report else {
        let number = args.flow.unwrap_or_default();
        return Err(anyhow!("--flow: found {number}, expected a flow of the run, which has not so many"))
            .or_refuse();
    };
    let folder = Folder::open(&args.out).or_refuse()?;
    folder.write_csv("events.csv", &show::flow::COLUMNS, show::flow::rows(&view))?;
    folder.write("time-sequence.svg", show::flow::time_sequence(&view, entry.name).as_str().as_bytes())?;
    folder.write("queue.svg", show::flow::queue(&view, entry.name).as_str().as_bytes())?;

    let mut table = Table::new(
        &format!("{}: {}", entry.name, entry.summary),
        [
            Column::number("at", "ms"),
            Column::text("phase"),
            Column::number("window", "kB"),
            Column::number("pace", "Mbit/s"),
        ],
    );
    for (at, phase, window, pace) in show::flow::phases(&view) {
        table.row([
            Cell::number(at, 1),
            Cell::text(phase),
            Cell::number(window as f64 / 1000.0, 1),
            pace.map_or(Cell::Missing, |bits| Cell::number(bits as f64 / 1e6, 2)),
        ]);
    }
    if args.flow.is_none() && entry.needs == catalogue::Needs::History {
        table.note("Alone on the path it is the first to its peer, of which no history tells: with --flow it is one of a run.");
    }
    print_table(&table)?;
    let counts = &report.counts;
    let completed = report.completion_time().map_or("never".to_owned(), |time| time.to_string());
    print(&format!(
        "\nComplete after {completed}; {} packets, {} lost, {} retransmitted, {} copies, {} timeouts.\n\
         Events and figures: {}\n",
        counts.packets_sent,
        counts.lost,
        counts.retransmissions,
        counts.copies,
        counts.timeouts,
        folder.path().display()
    ))
}

fn list_papers() -> Result<()> {
    let mut table =
        Table::new("", [Column::text("paper"), Column::text("figure"), Column::text("what it shows")]);
    for files in library::ALL {
        let (_, experiments) = library::read(files, false, |_| true)?;
        for one in &experiments {
            table.row([
                Cell::text(&files.name),
                Cell::text(&one.name),
                Cell::text(&format!("{} ({})", one.plan.title, one.plan.source)),
            ]);
        }
    }
    print_table(&table)
}

/// The paper that is asked for, and those of its figures.
fn wanted(args: &ReproduceArgs, name: &str) -> Result<(PaperFiles, Paper, Vec<Experiment>)> {
    // What looks like a path is one: a paper of the user's own.
    let files = if Path::new(name).components().count() > 1 {
        library::open(Path::new(name))?
    } else {
        let found = library::find(name).with_context(|| {
            let known: Vec<&str> = library::ALL.iter().map(|files| files.name.as_ref()).collect();
            format!(
                "found the paper `{name}`, expected one of {}, or a folder such as ./{name}",
                known.join(", ")
            )
        })?;
        found.clone()
    };
    let is_asked =
        |asked: &str, figure: &str| figure == asked || figure.strip_prefix("figure-") == Some(asked);
    for asked in &args.figure {
        if !files.figures.iter().any(|figure| is_asked(asked, &figure.name)) {
            let known: Vec<&str> = files.figures.iter().map(|figure| figure.name.as_ref()).collect();
            bail!("--figure: found `{asked}`, expected one of {}", known.join(", "));
        }
    }
    let is_wanted =
        |figure: &str| args.figure.is_empty() || args.figure.iter().any(|asked| is_asked(asked, figure));
    let (paper, mut experiments) = library::read(&files, args.quick, is_wanted)?;
    if let Some(folder) = &args.traces {
        if !experiments.iter().any(|one| one.plan.study == Study::Scenarios) {
            bail!("--traces: found it with figures that have no networks of traces, expected one that has");
        }
        let value = toml::Value::String(folder.display().to_string());
        for one in experiments.iter_mut().filter(|one| one.plan.study == Study::Scenarios) {
            one.plan.set("traces", &value).context("--traces")?;
        }
    }
    Ok((files, paper, experiments))
}

fn run_reproduce(args: &ReproduceArgs) -> Result<()> {
    let name = match &args.paper {
        Some(name) if !args.list => name,
        _ => return list_papers(),
    };
    let (files, paper, experiments) = wanted(args, name).or_refuse()?;
    let folder = Folder::open(&args.out).or_refuse()?.folder(&files.name)?;
    let results = experiment::run::run(&experiments, headstart::CARRIERS, &folder, args.threads)?;

    let judged: Vec<Judged> =
        experiments.iter().zip(&results).map(|(one, results)| Judged::new(one, results)).collect();
    let drawings: Vec<_> = judged.iter().map(|one| reproduce::drawn(one.experiment, one.results)).collect();
    for drawn in drawings.iter().flatten() {
        folder.write(&format!("{}.svg", drawn.name), drawn.svg.as_str().as_bytes())?;
        folder.write_csv(
            &format!("{}.csv", drawn.name),
            &reproduce::DATA_COLUMNS,
            reproduce::data_rows(&drawn.data),
        )?;
    }
    folder.write_csv("claims.csv", &reproduce::CLAIM_COLUMNS, reproduce::claim_rows(&judged))?;
    let facts = vec![
        ("headstart".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("length".to_owned(), if args.quick { "quick".to_owned() } else { "full".to_owned() }),
        (
            "figures".to_owned(),
            experiments.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
        ),
    ];
    let report = reproduce::report(&paper, &judged, &drawings, facts);
    let page = folder.write("report.html", report.html().as_bytes())?;

    for one in judged.iter().filter(|one| !one.claims.is_empty()) {
        let width = table::terminal_width(std::env::var("COLUMNS").ok().as_deref());
        print_table(&reproduce::terminal_table(one, width))?;
        print("\n")?;
    }
    print_table(&reproduce::counts_table(&judged))?;
    print(&format!("\n{}\n\nReport: {}\n", reproduce::summary(&judged), page.display()))?;
    let surprises = reproduce::surprises(&judged, args.quick);
    if args.check && !surprises.is_empty() {
        bail!("{} outcomes are not those on record:\n{}", surprises.len(), surprises.join("\n"));
    }
    for surprise in surprises {
        eprintln!("headstart: not as recorded: {surprise}");
    }
    Ok(())
}

fn tell_downlink(args: &show::downlink::DownlinkArgs) -> Result<()> {
    let report = show::downlink::ask(args);
    if args.json {
        let document = show::downlink::document(&report, args.steps);
        return print(&(serde_json::to_string_pretty(&document)? + "\n"));
    }
    print_table(&show::downlink::table(&report, args.steps))
}

fn list_schemes() -> Result<()> {
    let mut table =
        Table::new("", [Column::text("scheme"), Column::text("needs"), Column::text("what it is")]);
    for entry in catalogue::ALL {
        let needs = match entry.needs {
            catalogue::Needs::Nothing => "",
            catalogue::Needs::FlowSize => "flow size",
            catalogue::Needs::History => "history",
            catalogue::Needs::Hint => "hint",
            catalogue::Needs::Routers => "routers",
        };
        table.row([Cell::text(entry.name), Cell::text(needs), Cell::text(entry.summary)]);
    }
    print_table(&table)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

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
            match Cli::try_parse_from(words) {
                Ok(Cli { command: Command::Sweep { arguments } }) => {
                    for point in sweep::expand(&arguments).expect(&line) {
                        let words =
                            ["headstart", "race"].into_iter().map(str::to_owned).chain(point.arguments);
                        Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
                    }
                }
                Ok(_) => {}
                Err(error) => panic!("{line}: {error}"),
            }
        }
    }

    #[test]
    fn every_command_ends_its_help_with_something_to_type_or_to_know() {
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            // The sweep's own help is that of its points.
            let is_told = command.get_after_long_help().is_some() || command.get_name() == "sweep";
            assert!(is_told, "{}", command.get_name());
        }
    }
}
