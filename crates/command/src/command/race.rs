//! `headstart race`: all schemes on one path.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use headstart_report::jobs::JobStore;
use headstart_report::rows::{RowFile, Value};
use headstart_units::Ratio;

use super::format::Format;
use super::plan::ExperimentOptions;
use super::terminal::{self, command_line, print, print_table};
use headstart_compare::capacity::{self, Capacity};
use headstart_compare::conditions::{self, conditions};
use headstart_compare::flows::Flows;
use headstart_compare::race::{self, Race};
use headstart_compare::verdict::SortKey;
use headstart_report::errors::Refuse as _;
use headstart_report::output::Folder;
use headstart_show as show;
use headstart_study::estimate::Estimate;
use headstart_study::progress::Progress;
use headstart_study::setup::Setup;

/// Options of `race`.
#[derive(Args, Debug)]
pub struct RaceArgs {
    #[command(flatten)]
    pub experiment: ExperimentOptions,
    /// Search the feasible capacity of every scheme too (minutes, not seconds; use --duration 600s)
    #[arg(long, help_heading = "Output")]
    pub capacity: bool,
    /// Folder for report.html, race.csv, seeds.csv and race.json
    #[arg(long, default_value = "headstart-race", value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
    /// Write every flow as a row, as .csv or .parquet: docs/data.md has the columns
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub flows: Option<RowFile>,
    /// Largest slowdown of other flows by a scheme that counts as harmless
    #[arg(long, default_value = "1 %", value_name = "SHARE", help_heading = "Output")]
    pub most_harm: Ratio,
    /// Order of the table's rows
    #[arg(long, default_value = "time", value_name = "KEY", help_heading = "Output")]
    pub sort: SortKey,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", help_heading = "Output")]
    pub format: Format,
}

/// The setup of these options, what its runs will cost, and the rest of the options.
///
/// # Errors
/// If the runs are refused.
pub fn prepare(args: RaceArgs) -> Result<(Setup, Estimate, OutputOptions)> {
    let setup = args.experiment.setup().or_refuse()?;
    if args.capacity && setup.carrier().is_real_time() {
        return Err(anyhow!(
            "--capacity: found it with --in emulator, where its hundreds of runs would take days: expected --in simulator"
        ))
        .or_refuse();
    }
    setup.carrier().check_available().or_refuse()?;
    let mut estimate = race::estimate(&setup);
    if args.capacity {
        estimate = estimate.plus(capacity::estimate(&setup));
    }
    estimate.check(setup.run.large).or_refuse()?;
    let RaceArgs { capacity, out, flows, most_harm, sort, format, .. } = args;
    Ok((setup, estimate, OutputOptions { capacity, out, flows, most_harm, sort, format }))
}

/// Options of `race` that do not determine its runs.
pub struct OutputOptions {
    /// Search the feasible capacities, too.
    pub capacity: bool,
    /// File of the flows.
    pub flows: Option<RowFile>,
    /// The harm to others that is accepted.
    pub most_harm: Ratio,
    out: PathBuf,
    sort: SortKey,
    format: Format,
}

/// The race, and the capacities if they are searched.
///
/// # Errors
/// If a run fails, or nothing arrived in any.
pub fn measure(
    setup: &Setup,
    is_searched: bool,
    flows: &mut Option<Flows>,
    store: &JobStore,
) -> Result<(Race, Option<Vec<Capacity>>)> {
    let jobs = race::jobs(setup);
    let progress = Progress::new("racing", race::work(setup, &jobs, store, flows.as_ref()));
    let result = race::race(setup, &jobs, store, flows.as_mut(), &progress)?;
    if let Some(reason) = show::race::reason_for_no_result(setup, &result) {
        flows.take().map(Flows::finish).transpose()?;
        bail!("{reason}");
    }
    let capacities = if is_searched { Some(capacity::capacity(setup, store)?) } else { None };
    Ok((result, capacities))
}

/// Runs the comparison, prints its table and writes its files; `given_options` are those typed.
pub fn run(args: RaceArgs, given_options: &[String]) -> Result<()> {
    let (mut setup, estimate, args) = prepare(args)?;
    terminal::print_idle_options(&mut setup, given_options, false);
    // A folder with other files is refused before anything is run.
    let store = JobStore::open(Folder::open(&args.out).or_refuse()?.of_command("race").or_refuse()?)?;
    let mut flows = Flows::open(args.flows.as_ref(), &setup, &store).or_refuse()?;
    terminal::install_interrupt_notice(&store);
    eprintln!("headstart: {estimate}");
    eprintln!("headstart: {}", setup.describe_path());
    let (mut result, capacities) = measure(&setup, args.capacity, &mut flows, &store)?;
    result.most_harm = args.most_harm.as_f64();
    // The results are printed before anything is written: a full disk loses none of them.
    let json = json(&command_line(), &setup, &result, capacities.as_deref())?;
    let around = conditions::ConditionColumns::new(&setup, &[]);
    let [schemes, seeds] = result.tables().map(|table| around.around(table));
    match args.format {
        Format::Table => print_race(&setup, &result, args.sort, capacities.as_deref())?,
        other => other.print(&schemes.header(), &schemes.rows, || Ok(json.clone()))?,
    }
    let folder = store.folder().clone();
    let report = show::race::report(&setup, &result, args.sort, capacities.as_deref(), &command_line());
    let page = folder.write("report.html", report.html().as_bytes());
    let place = page.as_ref().map(|page| page.display().to_string()).unwrap_or_default();
    terminal::written([
        folder.write_csv("race.csv", &schemes.header(), &schemes.rows).map(drop),
        folder.write_csv("seeds.csv", &seeds.header(), &seeds.rows).map(drop),
        folder.write("race.json", json.as_bytes()).map(drop),
        page.map(drop),
        terminal::closed(store).map(drop),
    ])?;
    let flows = flows.map(Flows::finish).transpose()?.flatten();
    if args.format != Format::Table {
        return Ok(());
    }
    print(&format!("\nReport: {place}\n"))?;
    terminal::flows_written(flows)
}

fn print_race(setup: &Setup, result: &Race, sort: SortKey, capacities: Option<&[Capacity]>) -> Result<()> {
    terminal::answer(show::race::answer(result))?;
    print_table(&show::race::table_with_verdict(setup, result, sort))?;
    if let Some(capacities) = capacities {
        print("\n")?;
        print_table(&show::race::capacity_table(capacities))?;
    }
    Ok(())
}

/// The results as a document.
///
/// # Errors
/// None that can be: names and values are text and numbers.
pub fn json(command: &str, setup: &Setup, race: &Race, capacities: Option<&[Capacity]>) -> Result<String> {
    let definitions: serde_json::Map<String, serde_json::Value> = show::race::definitions(setup)
        .into_iter()
        .map(|(term, text)| (term, serde_json::Value::String(text)))
        .collect();
    let rows: Vec<serde_json::Map<_, _>> = race
        .scheme_results
        .iter()
        .map(|scheme_result| {
            let named = |(name, value): (&str, Value)| Ok((name.to_owned(), serde_json::to_value(value)?));
            scheme_result.row().into_iter().map(named).collect()
        })
        .collect::<Result<_>>()?;
    let named = |one: conditions::Condition| Ok((one.name.to_owned(), serde_json::to_value(one.value)?));
    let conditions = conditions(setup).into_iter().map(named).collect::<Result<serde_json::Map<_, _>>>()?;
    let document = serde_json::json!({
        "headstart": headstart_compare::VERSION,
        "command": command,
        "seeds": { "first": setup.run.seed, "count": setup.run.repeats },
        "conditions": conditions,
        "answer": show::race::answer(race),
        "verdict": show::race::verdict(race),
        "definitions": definitions,
        "schemes": rows,
        "capacity": capacities,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
