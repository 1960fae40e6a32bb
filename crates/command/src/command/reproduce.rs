//! `headstart reproduce`: a paper's experiments, run again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use headstart_report::jobs::JobStore;
use headstart_report::rows::{self, Kind};

use super::terminal::{self, print, print_table};
use headstart_paper::library::{self, Experiment, PaperFiles};
use headstart_paper::plan::{Paper, Plan, Replacement};
use headstart_paper::run::Results;
use headstart_report::errors::Refuse as _;
use headstart_report::output::Folder;
use headstart_report::table::{self, Cell, Column, Table};
use headstart_show::reproduce::{self, JudgedFigure, headlines};
use headstart_study::estimate::Estimate;
use headstart_study::options::{Environment, TransportName, choice_name};

/// Options of `reproduce`.
#[derive(Args, Debug)]
pub struct ReproduceArgs {
    /// The paper, or a folder laid out as in `experiments/` [default: list all papers and figures]
    pub paper: Option<String>,
    /// List papers and figures
    #[arg(long, conflicts_with_all = ["figure", "traces"])]
    pub list: bool,
    /// Place of the runs: the simulator; or the emulator, for the points of the paper that a real
    /// transport carries in real time. Those over the kernel's TCP need root and a build with
    /// `--features full,tcp`
    #[arg(long = "in", value_enum, default_value_t)]
    pub environment: Environment,
    /// Transport in the emulator: the kernel's TCP with the starts of `headstart tcp`, or QUIC
    #[arg(long, value_enum, default_value_t)]
    pub transport: TransportName,
    /// Only these figures, as `12` or `figure-12`
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub figure: Vec<String>,
    /// A cut-down run: fewer points, seeds and seconds
    #[arg(long)]
    pub quick: bool,
    /// Run the paper's figures under every variant of its set-up that they can have
    #[arg(long, conflicts_with_all = ["mutants", "check"], hide_short_help = true)]
    pub set_ups: bool,
    /// Fail if a claim's outcome is not the one on record in claims.toml
    #[arg(long)]
    pub check: bool,
    /// Add this number to every seed of the plans: the same figures from other random numbers
    #[arg(long, default_value_t = 0, value_name = "NUMBER", hide_short_help = true, value_parser = headstart_study::options::whole(0..=u64::MAX))]
    pub further_seeds: u64,
    /// Packet-delivery traces (mahimahi format) in place of generated ones, where an experiment has
    /// networks of traces
    #[arg(long, value_name = "FOLDER")]
    pub traces: Option<PathBuf>,
    /// Threads [default: all cores]; the results do not depend on it
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
    /// Run the wrong versions of schemes that paper.toml lists as well, and count the claims that
    /// fail with each
    #[arg(long, hide_short_help = true)]
    pub mutants: bool,
    /// Print every claim, figure by figure, and not only the headline results
    #[arg(long)]
    pub all: bool,
    /// Run it although the estimate is above 4 h of processor time or 2 GB of memory
    #[arg(long)]
    pub large: bool,
    /// Folder for the results; each paper has its own in it
    #[arg(long, default_value = "headstart-reproduce", value_name = "FOLDER")]
    pub out: PathBuf,
}

struct Reproduction {
    paper: Paper,
    experiments: Vec<Experiment>,
    results: Vec<Results>,
    mutants: Vec<Vec<(Replacement, Results)>>,
}

impl Reproduction {
    fn run(
        args: &ReproduceArgs,
        (paper, experiments): (Paper, Vec<Experiment>),
        store: &JobStore,
        announce: &dyn Fn(&Estimate) -> Result<()>,
    ) -> Result<Self> {
        // Of the paper's own figures, where it has any.
        let is_ours = experiments.iter().all(|one| one.plan.is_ours);
        let is_tested = |one: &Experiment| args.mutants && (is_ours || !one.plan.is_ours);
        let mutants: Vec<Vec<Replacement>> = experiments
            .iter()
            .map(|one| if is_tested(one) { one.plan.with_mutants() } else { vec![] })
            .collect();
        let others = mutants
            .iter()
            .zip(&experiments)
            .flat_map(|(mutants, one)| mutants.iter().map(|mutant| (one.name.as_str(), &mutant.plan)));
        let plans: Vec<(&str, &Plan)> =
            experiments.iter().map(|one| (one.name.as_str(), &one.plan)).chain(others).collect();
        let mut results =
            headstart_paper::run::run(&plans, headstart_carriers::ALL, store, args.threads, announce)?;
        let mut others = results.split_off(experiments.len()).into_iter();
        let mutants =
            mutants.into_iter().map(|mutants| mutants.into_iter().zip(others.by_ref()).collect()).collect();
        Ok(Self { paper, experiments, results, mutants })
    }

    fn judged(&self) -> Vec<JudgedFigure<'_>> {
        self.experiments
            .iter()
            .zip(&self.results)
            .map(|(one, results)| JudgedFigure::new(one, results))
            .collect()
    }

    /// Outcomes that are not those on record; with `--check` they are an error.
    fn surprises(&self, args: &ReproduceArgs, judged: &[JudgedFigure<'_>]) -> Result<Vec<String>> {
        let surprises = reproduce::surprises(judged, args.quick);
        if args.check && !surprises.is_empty() {
            bail!("{} outcomes are not those on record:\n{}", surprises.len(), surprises.join("\n"));
        }
        Ok(surprises)
    }
}

/// Runs a paper's experiments, prints its claims and writes the report; without a paper, lists all.
pub fn run(args: &ReproduceArgs) -> Result<()> {
    let name = match &args.paper {
        Some(name) if !args.list => name,
        _ => return list_papers(),
    };
    let (files, paper, experiments) = select(args, name).or_refuse()?;
    let folder = Folder::open(&args.out).or_refuse()?.folder(&files.name)?;
    let store = JobStore::open(folder)?;
    terminal::install_interrupt_notice(&store);
    let reproduction = Reproduction::run(args, (paper, experiments), &store, &announce(args))?;
    let judged = reproduction.judged();
    let headlines = headlines::rows(&reproduction.paper, &judged);
    terminal::answer(reproduce::answer(&reproduction.paper, &judged))?;
    let width = table::terminal_width(std::env::var("COLUMNS").ok().as_deref());
    if args.all || headlines.rows.is_empty() {
        for one in judged.iter().filter(|one| !one.claims.is_empty()) {
            print_table(&reproduce::terminal_table(one, width))?;
            print("\n")?;
        }
        print_table(&reproduce::counts_table(&judged))?;
        print("\n")?;
    }
    if !headlines.rows.is_empty() {
        print_table(&headlines::terminal_table(&headlines, width))?;
    }
    if args.quick {
        print(&format!("\n{}\n", reproduce::QUICK))?;
    }
    if args.mutants {
        print("\n")?;
        print_table(&reproduce::mutants_table(&judged, &reproduction.mutants))?;
    }

    // A full disk loses nothing of the printed results.
    let folder = terminal::closed(store)?;
    let drawings: Vec<_> = judged.iter().map(|one| reproduce::drawn(one.experiment, one.results)).collect();
    for drawn in drawings.iter().flatten() {
        folder.write(&format!("{}.svg", drawn.name), drawn.svg.as_str().as_bytes())?;
        let columns: Vec<&str> = drawn.columns.iter().map(String::as_str).collect();
        folder.write_csv(&format!("{}.csv", drawn.name), &columns, reproduce::data_rows(&drawn.data))?;
    }
    if !headlines.rows.is_empty() {
        folder.write("headlines.md", headlines::markdown(&headlines).as_bytes())?;
    }
    folder.write_csv("claims.csv", &reproduce::CLAIM_COLUMNS, reproduce::claim_rows(&judged))?;
    let names: Vec<&str> = reproduction.experiments.iter().map(|one| one.name.as_str()).collect();
    let facts = vec![
        ("headstart".to_owned(), headstart_compare::VERSION.to_owned()),
        ("length".to_owned(), if args.quick { "quick".to_owned() } else { "full".to_owned() }),
        ("figures".to_owned(), names.join(", ")),
    ];
    let report = reproduce::report(&reproduction.paper, &judged, &drawings, facts);
    let page = folder.write("report.html", report.html().as_bytes())?;
    print(&format!("\nReport: {}\n", page.display()))?;
    for surprise in reproduction.surprises(args, &judged)? {
        eprintln!("headstart: not as recorded: {surprise}");
    }
    Ok(())
}

/// The tables of a reproduction, and the outcomes that are not those on record.
#[derive(Default)]
pub struct Tables {
    /// By name, the main one first: columns and rows.
    pub tables: Vec<(String, Vec<rows::Column>, Vec<Vec<String>>)>,
    /// In words.
    pub surprises: Vec<String>,
}

/// The tables that [`run`] prints and writes; finished runs are kept in `folder` meanwhile.
///
/// # Errors
/// As [`run`].
pub fn tables(args: &ReproduceArgs, folder: &Path) -> Result<Tables> {
    let columns = |names: &[&str], numbers: &[&str]| -> Vec<rows::Column> {
        let kind = |name: &str| if numbers.contains(&name) { Kind::Number } else { Kind::Text };
        names.iter().map(|name| rows::Column::new(*name, kind(name))).collect()
    };
    let name = match &args.paper {
        Some(name) if !args.list => name,
        _ => {
            let rows = papers()?.into_iter().map(Vec::from).collect();
            let columns = columns(&["paper", "figure", "shows"], &[]);
            return Ok(Tables { tables: vec![("papers".to_owned(), columns, rows)], surprises: vec![] });
        }
    };
    let (_, paper, experiments) = select(args, name).or_refuse()?;
    let store = JobStore::open(Folder::open(folder).or_refuse()?)?;
    let check = |estimate: &Estimate| estimate.check(args.large).or_refuse();
    let reproduction = Reproduction::run(args, (paper, experiments), &store, &check)?;
    let judged = reproduction.judged();
    let numbers = ["ours", "low", "high"];
    let mut tables = vec![(
        "claims".to_owned(),
        columns(&reproduce::CLAIM_COLUMNS, &numbers),
        reproduce::claim_rows(&judged),
    )];
    for drawn in judged.iter().flat_map(|one| reproduce::drawn(one.experiment, one.results)) {
        let names: Vec<&str> = drawn.columns.iter().map(String::as_str).collect();
        // Behind the scheme and its point there are the numbers of both axes.
        let columns = columns(&names, names.get(2..).unwrap_or_default());
        tables.push((drawn.name, columns, reproduce::data_rows(&drawn.data)));
    }
    Ok(Tables { tables, surprises: reproduction.surprises(args, &judged)? })
}

/// Prints the cost of the runs that are left, or refuses it.
fn announce(args: &ReproduceArgs) -> impl Fn(&Estimate) -> Result<()> {
    let is_large = args.large;
    move |estimate| {
        estimate.check(is_large).or_refuse()?;
        eprintln!("headstart: {estimate}, from a run of each figure");
        Ok(())
    }
}

/// The requested paper, and its requested figures.
fn select(args: &ReproduceArgs, name: &str) -> Result<(PaperFiles, Paper, Vec<Experiment>)> {
    // A paper of the user's own.
    let is_path = name.contains(std::path::is_separator) || [".", ".."].contains(&name);
    let files = match (args.environment, args.transport) {
        (Environment::Simulator, TransportName::Tcp) if is_path => library::open(Path::new(name))?,
        (Environment::Simulator, TransportName::Tcp) => built_in(name)?.clone(),
        (Environment::Simulator, other) => bail!(
            "--transport: found {} with --in simulator, expected it with --in emulator: in the simulator a figure's plan sets its transport",
            choice_name(other)
        ),
        _ if is_path => {
            bail!("--in: found it with the folder {name}, whose plans say where they run, expected a paper")
        }
        place => {
            built_in(name)?;
            find_carried(name, place)?.clone()
        }
    };
    let is_asked =
        |wanted: &str, figure: &str| figure == wanted || figure.strip_prefix("figure-") == Some(wanted);
    for wanted in &args.figure {
        if !files.figures.iter().any(|figure| is_asked(wanted, &figure.name)) {
            let known: Vec<&str> = files.figures.iter().map(|figure| figure.name.as_ref()).collect();
            let place = match args.environment {
                Environment::Simulator => String::new(),
                Environment::Emulator => format!(
                    ", for --in emulator --transport {} carries no others of {name}",
                    choice_name(args.transport)
                ),
            };
            let (paper, _) = library::read(&files, args.quick, |_| false)?;
            let elsewhere = match figures_with_numbers_of(&paper, wanted)[..] {
                [] => String::new(),
                ref figures => format!(", whose numbers are in {}", figures.join(", ")),
            };
            bail!("--figure: found `{wanted}`{elsewhere}, expected one of {}{place}", known.join(", "));
        }
    }
    let is_wanted =
        |figure: &str| args.figure.is_empty() || args.figure.iter().any(|wanted| is_asked(wanted, figure));
    let (paper, mut experiments) = library::read(&files, args.quick, is_wanted)?;
    if let Some(folder) = &args.traces {
        let has_traces = |one: &Experiment| one.plan.study.parameters().iter().any(|name| name == "traces");
        if !experiments.iter().any(has_traces) {
            bail!("--traces: found it with figures that have no networks of traces, expected one that has");
        }
        let value = toml::Value::String(folder.display().to_string());
        for one in experiments.iter_mut().filter(|one| has_traces(one)) {
            one.plan.set("traces", &value).context("--traces")?;
        }
    }
    experiments.retain(|one| !(args.set_ups && one.plan.is_ours));
    for one in &mut experiments {
        one.plan.further_seeds = args.further_seeds;
        if args.set_ups {
            one.plan = one.plan.with_all_variants();
        }
    }
    // Contradicting options, and carriers that were not built, are refused before anything runs.
    for one in &experiments {
        let setups = one.plan.setups(headstart_carriers::ALL).with_context(|| one.name.clone())?;
        setups.iter().try_for_each(|(_, study)| study.setup.carrier().check_available())?;
    }
    Ok((files, paper, experiments))
}

/// The figures here that have headline results of a figure that is none of them.
fn figures_with_numbers_of<'a>(paper: &'a Paper, wanted: &str) -> Vec<&'a str> {
    let number = wanted.strip_prefix("figure-").unwrap_or(wanted);
    let names = |text: &str| {
        let figures = text.split_once("(Figure").map_or("", |(_, figures)| figures);
        figures
            .split(|letter: char| !letter.is_alphanumeric())
            .any(|word| word == number && word.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let headlines = paper.headlines.iter().filter(|headline| names(&headline.paper));
    let figures: BTreeSet<&str> =
        headlines.flat_map(|headline| &headline.claims).map(|claim| claim.figure.as_str()).collect();
    figures.into_iter().collect()
}

fn built_in(name: &str) -> Result<&'static PaperFiles> {
    library::find(name).with_context(|| {
        let known: Vec<&str> = library::ALL.iter().map(|files| files.name.as_ref()).collect();
        format!(
            "found the paper `{name}`, expected one of {}, or a folder such as ./{name}",
            known.join(", ")
        )
    })
}

/// Points of a paper that something other than the simulator carries.
fn find_carried(name: &str, place: (Environment, TransportName)) -> Result<&'static PaperFiles> {
    let at_place = || library::CARRIED.iter().filter(|carried| carried.selection == place);
    let found = at_place().find(|carried| carried.paper == name).with_context(|| {
        let known: Vec<&str> = at_place().map(|carried| carried.paper).collect();
        let (environment, transport) = (choice_name(place.0), choice_name(place.1));
        format!(
            "--in: found the paper `{name}` with --in {environment} --transport {transport}, which carries points of {}",
            known.join(" and ")
        )
    })?;
    Ok(&found.files)
}

/// All papers and figures: paper, figure, what it shows.
fn papers() -> Result<Vec<[String; 3]>> {
    let mut rows = vec![];
    for files in library::ALL {
        let (_, experiments) = library::read(files, false, |_| true)?;
        rows.extend(experiments.into_iter().map(|one| {
            [files.name.to_string(), one.name, format!("{} ({})", one.plan.title, one.plan.source)]
        }));
    }
    Ok(rows)
}

fn list_papers() -> Result<()> {
    let mut table =
        Table::new("", [Column::text("paper"), Column::text("figure"), Column::text("what it shows")]);
    for row in papers()? {
        table.row(row.each_ref().map(|text| Cell::text(text)));
    }
    print_table(&table)?;
    print("\nIn real time, compared with the simulator:\n")?;
    for carried in library::CARRIED {
        let (environment, transport) = (choice_name(carried.selection.0), choice_name(carried.selection.1));
        let figures: Vec<&str> = carried.files.figures.iter().map(|figure| figure.name.as_ref()).collect();
        print(&format!(
            "  headstart reproduce {} --in {environment} --transport {transport}   {}\n",
            carried.paper,
            figures.join(", ")
        ))?;
    }
    Ok(())
}
