//! `headstart assess`: schemes by the criteria of RFC 9743, each a plan with a bound.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use headstart_paper::claim::Verdict;
use headstart_paper::library::{self, ASSESSED, Assessment, Experiment, Statement};
use headstart_paper::plan::Plan;
use headstart_report::jobs::JobStore;
use headstart_report::rows;
use headstart_startup::catalogue::Entry;

use super::terminal::{self, print, print_table};
use headstart_report::errors::Refuse as _;
use headstart_report::output::Folder;
use headstart_report::table::{self, Column, Table};
use headstart_show::reproduce::{self, JudgedFigure};
use headstart_study::estimate::Estimate;
use headstart_study::options::SchemeNames;

/// Options of `assess`.
#[derive(Args, Debug)]
pub struct AssessArgs {
    /// Schemes, as `headstart,suss(rounds=1)`: each gets a column
    #[arg(value_name = "NAMES")]
    pub schemes: SchemeNames,
    /// A cut-down run: fewer seeds and seconds
    #[arg(long)]
    pub quick: bool,
    /// Only the criteria of these plans, as `load,queues`; an unknown name lists them
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub figure: Vec<String>,
    /// Add this number to every seed of the plans
    #[arg(long, default_value_t = 0, value_name = "NUMBER", hide_short_help = true, value_parser = headstart_study::options::whole(0..=u64::MAX))]
    pub further_seeds: u64,
    /// Threads [default: all cores]; the results do not depend on it
    #[arg(long, value_name = "COUNT")]
    pub threads: Option<usize>,
    /// Run it although the estimate is above 4 h of processor time or 2 GB of memory
    #[arg(long)]
    pub large: bool,
    /// Folder for the results
    #[arg(long, default_value = "headstart-assess", value_name = "FOLDER")]
    pub out: PathBuf,
}

/// A criterion, and the result of each scheme.
struct Criterion {
    says: String,
    source: String,
    accepted: String,
    /// The plan that shows it; empty for a statement.
    plan: String,
    /// The result in one word, and the number or place behind it.
    results: Vec<(&'static str, String)>,
}

/// Columns of `assessment.csv`.
const COLUMNS: [&str; 7] = ["criterion", "source", "accepted", "figure", "scheme", "result", "found"];

/// Assesses the schemes, prints the criteria and writes them.
pub fn run(args: &AssessArgs) -> Result<()> {
    let plans = plans(args)?;
    let store = JobStore::open(Folder::open(&args.out).or_refuse()?)?;
    terminal::install_interrupt_notice(&store);
    let announce = |estimate: &Estimate| {
        estimate.check(args.large).or_refuse()?;
        eprintln!("headstart: {estimate}, from a run of each plan");
        Ok(())
    };
    let criteria = criteria(args, plans, &store, &announce)?;
    let entries = entries(args);
    let width = table::terminal_width(std::env::var("COLUMNS").ok().as_deref());
    print_table(&terminal_table(&criteria, &entries, width))?;
    print(&format!("\n{}\n", summary(&criteria, &entries)))?;
    let folder = terminal::closed(store)?;
    folder.write_csv("assessment.csv", &COLUMNS, csv_rows(&criteria, &entries))?;
    let page = folder.write("assessment.md", markdown(&criteria, &entries).as_bytes())?;
    print(&format!("\nPage: {}\n", page.display()))
}

/// The table that [`run`] writes; finished runs are kept in `folder` meanwhile.
///
/// # Errors
/// As [`run`].
pub fn rows(args: &AssessArgs, folder: &Path) -> Result<(Vec<rows::Column>, Vec<Vec<String>>)> {
    let plans = plans(args)?;
    let store = JobStore::open(Folder::open(folder).or_refuse()?)?;
    let check = |estimate: &Estimate| estimate.check(args.large).or_refuse();
    let criteria = criteria(args, plans, &store, &check)?;
    let columns = COLUMNS.map(|name| rows::Column::new(name, rows::Kind::Text)).into();
    Ok((columns, csv_rows(&criteria, &entries(args))))
}

fn entries(args: &AssessArgs) -> Vec<&'static Entry> {
    args.schemes.0.iter().map(|name| name.0).collect()
}

/// The plans of an assessment.
struct Plans {
    /// As they are written.
    experiments: Vec<Experiment>,
    /// With each scheme in turn.
    assessed: Vec<Experiment>,
    statements: Vec<Statement>,
}

/// The plans that are asked for. Contradicting options are refused before anything runs.
fn plans(args: &AssessArgs) -> Result<Plans> {
    let Assessment { files, statements } = library::assessment()?;
    let known: Vec<&str> = files.figures.iter().map(|figure| figure.name.as_ref()).collect();
    if let Some(wanted) = args.figure.iter().find(|wanted| !known.contains(&wanted.as_str())) {
        return Err(anyhow!("--figure: found `{wanted}`, expected one of {}", known.join(", "))).or_refuse();
    }
    for (at, entry) in entries(args).iter().enumerate() {
        if entries(args)[..at].iter().any(|other| other.name == entry.name) {
            return Err(anyhow!("found `{}` twice, expected each scheme once", entry.name)).or_refuse();
        }
    }
    let is_wanted = |name: &str| args.figure.is_empty() || args.figure.iter().any(|wanted| wanted == name);
    let (_, experiments) = library::read(&files, args.quick, is_wanted)?;
    let mut assessed = vec![];
    for entry in entries(args) {
        for mut experiment in experiments.clone() {
            experiment.plan.put(ASSESSED, entry);
            experiment.plan.further_seeds = args.further_seeds;
            let setups = experiment.plan.setups(headstart_carriers::ALL);
            setups.with_context(|| format!("{}, {}", entry.name, experiment.name)).or_refuse()?;
            assessed.push(experiment);
        }
    }
    let statements = if args.figure.is_empty() { statements } else { vec![] };
    Ok(Plans { experiments, assessed, statements })
}

fn criteria(
    args: &AssessArgs,
    Plans { experiments, assessed, statements }: Plans,
    store: &JobStore,
    announce: &dyn Fn(&Estimate) -> Result<()>,
) -> Result<Vec<Criterion>> {
    let entries = entries(args);
    let plans: Vec<(&str, &Plan)> = assessed.iter().map(|one| (one.name.as_str(), &one.plan)).collect();
    let results = headstart_paper::run::run(&plans, headstart_carriers::ALL, store, args.threads, announce)?;
    let judged: Vec<JudgedFigure<'_>> =
        assessed.iter().zip(&results).map(|(one, results)| JudgedFigure::new(one, results)).collect();
    let mut criteria = vec![];
    for (at, experiment) in experiments.iter().enumerate() {
        for (number, claim) in experiment.claims.iter().enumerate() {
            let of_scheme = |scheme: usize| {
                let finding = judged[scheme * experiments.len() + at].claims[number].findings.first();
                finding.map_or(("not run", String::new()), |it| (word(it.verdict), it.shown.clone()))
            };
            criteria.push(Criterion {
                says: claim.says.clone(),
                source: claim.source.clone(),
                accepted: claim.bound(),
                plan: experiment.name.clone(),
                results: (0..entries.len()).map(of_scheme).collect(),
            });
        }
    }
    criteria.extend(statements.into_iter().map(|one| {
        let answer = |entry: &&'static Entry| match one.words.get(entry.name.as_str()) {
            Some(words) => ("in words", words.clone()),
            None if !one.applies.is_for(entry.needs) => ("does not apply", String::new()),
            None => ("not shown", "no statement of its author".to_owned()),
        };
        Criterion {
            results: entries.iter().map(answer).collect(),
            says: one.says,
            source: one.source,
            accepted: String::new(),
            plan: String::new(),
        }
    }));
    Ok(criteria)
}

/// A bound that the interval reaches over is not shown to be kept.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "shown",
        Verdict::Wide => "not shown: wide",
        Verdict::Direction | Verdict::Differs => "not shown",
        Verdict::NotRun => "not run",
    }
}

fn shown(result: &(&'static str, String)) -> String {
    if result.1.is_empty() { result.0.to_owned() } else { format!("{}: {}", result.0, result.1) }
}

fn summary(criteria: &[Criterion], entries: &[&'static Entry]) -> String {
    let line = |(at, entry): (usize, &&'static Entry)| {
        let count = |of: &dyn Fn(&str) -> bool| criteria.iter().filter(|one| of(one.results[at].0)).count();
        let missing = criteria.iter().filter(|one| one.results[at].0.starts_with("not shown"));
        let missing: Vec<&str> =
            missing.filter(|one| !one.plan.is_empty()).map(|one| one.says.as_str()).collect();
        let of_runs =
            if missing.is_empty() { String::new() } else { format!(" By runs: {}.", missing.join("; ")) };
        format!(
            "Of {} criteria {} has {} shown, {} answered in words, {} that do not apply and {} not shown.{of_runs}",
            criteria.len(),
            entry.name,
            count(&|word| word == "shown"),
            count(&|word| word == "in words"),
            count(&|word| word == "does not apply"),
            count(&|word| word.starts_with("not"))
        )
    };
    entries.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

fn terminal_table(criteria: &[Criterion], entries: &[&'static Entry], width: usize) -> Table {
    /// Least width of a scheme's column, and of the source's and the bound's.
    const OTHERS: [usize; 3] = [20, 18, 10];
    let names = entries.iter().map(|entry| entry.name.as_str());
    let columns = ["criterion", "source", "accepted"].into_iter().chain(names).map(Column::text);
    let mut table = Table::new("Criteria of RFC 9743 and others (docs/assessment.md)", columns);
    let taken = OTHERS[1] + OTHERS[2] + entries.len() * (OTHERS[0] + 2) + 6;
    let first = width.saturating_sub(taken).clamp(20, 60);
    for one in criteria {
        let results: Vec<String> = one.results.iter().map(shown).collect();
        let mut cells =
            vec![(one.says.as_str(), first), (&one.source, OTHERS[1]), (&one.accepted, OTHERS[2])];
        cells.extend(results.iter().map(|text| (text.as_str(), OTHERS[0])));
        reproduce::add_folded(&mut table, &cells);
    }
    table
}

fn csv_rows(criteria: &[Criterion], entries: &[&'static Entry]) -> Vec<Vec<String>> {
    let of = |one: &Criterion| -> Vec<Vec<String>> {
        let common = [&one.says, &one.source, &one.accepted, &one.plan].map(String::clone);
        let row = |(entry, (word, found)): (&&'static Entry, &(&'static str, String))| {
            let own = [entry.name.to_string(), (*word).to_owned(), found.clone()];
            common.iter().cloned().chain(own).collect()
        };
        entries.iter().zip(&one.results).map(row).collect()
    };
    criteria.iter().flat_map(of).collect()
}

fn markdown(criteria: &[Criterion], entries: &[&'static Entry]) -> String {
    let names: Vec<String> = entries.iter().map(|entry| format!("`{}`", entry.name)).collect();
    let mut text = format!("| criterion | source | accepted | shown by | {} |\n", names.join(" | "));
    text += &format!("|---|---|---|---|{}\n", "---|".repeat(entries.len()));
    for one in criteria {
        let plan = if one.plan.is_empty() { String::new() } else { format!("`--figure {}`", one.plan) };
        let results: Vec<String> = one.results.iter().map(shown).collect();
        let cells = [&one.says, &one.source, &one.accepted, &plan].map(String::as_str).join(" | ");
        text += &format!("| {cells} | {} |\n", results.join(" | "));
    }
    text
}
