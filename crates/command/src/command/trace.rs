//! `headstart trace`: one flow in detail.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use headstart_startup::catalogue::{self, Entry};
use headstart_units::Bytes;

use super::plan::ExperimentOptions;
use super::terminal::{self, command_line, print, print_table};
use headstart_report::errors::Refuse as _;
use headstart_report::output::{Folder, write_file};
use headstart_show as show;
use headstart_show::qlog::Form;
use headstart_study::carrier::Detail;
use headstart_study::estimate::Estimate;
use headstart_study::flow_trace::FlowTrace;
use headstart_study::options::{SchemeName, SchemeNames};
use headstart_study::progress::{Progress, RunProgress, Work};
use headstart_study::runner::{self, Job};
use headstart_study::setup::{SchemeMix, Setup};

/// Options of `trace`.
#[derive(Args, Debug)]
pub struct TraceArgs {
    /// The scheme
    pub scheme: SchemeName,
    /// Which flow of the run, counted from zero [default: one flow alone on the path]
    #[arg(long, value_name = "NUMBER", value_parser = headstart_study::options::whole(0..=u64::MAX))]
    pub flow: Option<u64>,
    #[command(flatten)]
    pub experiment: ExperimentOptions,
    /// Schemes whose flow the report shows with this one
    #[arg(long, default_value = headstart_study::setup::REFERENCE, value_name = "NAMES", help_heading = "Output")]
    pub beside: SchemeNames,
    /// Write the flow as qlog: `.qlog` as qvis opens it, `.sqlog` (JSON-SEQ) as the newest drafts
    /// have it
    #[arg(long, value_name = "FILE.qlog|.sqlog", help_heading = "Output")]
    pub qlog: Option<PathBuf>,
    /// Folder for report.html, events.csv, time-sequence.svg and queue.svg
    #[arg(long, default_value = "headstart-trace", value_name = "FOLDER", help_heading = "Output")]
    pub out: PathBuf,
}

/// A trace before it is run.
pub struct Prepared {
    /// Path, workload and transport of the trace.
    pub setup: Setup,
    /// The schemes, the one in question first.
    pub entries: Vec<&'static Entry>,
    /// Which flow of the run; alone on the path without a number.
    pub flow: Option<u64>,
    work: Work,
}

/// The setup of these options and the schemes to run, checked.
///
/// # Errors
/// If the runs are refused.
pub fn prepare(args: TraceArgs) -> Result<Prepared> {
    let setup = args.experiment.setup().or_refuse()?;
    if setup.carrier().detail() < Detail::Events {
        return Err(anyhow!(
            "--in: found emulator, expected simulator: a trace shows a sender's state (for real packets: `headstart link --log`)"
        ))
        .or_refuse();
    }
    let mut entries = vec![args.scheme.0];
    for SchemeName(other) in &args.beside.0 {
        if entries.iter().all(|known| known.name != other.name) {
            entries.push(other);
        }
    }
    for entry in &entries {
        setup.carrier().check_scheme(entry, &setup.transport).or_refuse()?;
    }
    let one = match args.flow {
        None => Estimate::traced(&setup, Bytes::new(setup.mean_bytes() as u64)),
        Some(_) => Estimate::of(&setup, 1),
    };
    let all = entries.iter().fold(Estimate::default(), |all, _| all.plus(one));
    let all = Estimate { memory: one.memory * entries.len() as f64, ..all };
    all.check(setup.run.large).or_refuse()?;
    let work = Work { runs: entries.len(), seconds: all.seconds, at_once: 1 };
    Ok(Prepared { setup, entries, flow: args.flow, work })
}

/// The flow of every scheme.
///
/// # Errors
/// If a run fails, or has fewer flows.
pub fn measure(prepared: &Prepared) -> Result<Vec<(&'static Entry, FlowTrace)>> {
    let Prepared { setup, entries, flow: number, work } = prepared;
    let progress = Progress::new("tracing", *work);
    let traced = || -> Result<Vec<_>> {
        let of = |entry| {
            let this = progress.run(work.seconds / work.runs.max(1) as f64);
            let view = flow(setup, entry, *number, &this)?;
            this.finish();
            Ok((entry, view))
        };
        entries.iter().copied().map(of).collect()
    };
    let flows = progress.during(traced)?;
    if flows[0].1.report.is_none() {
        let number = number.unwrap_or_default();
        return Err(anyhow!("--flow: found {number}, expected a smaller number: the run has fewer flows"))
            .or_refuse();
    }
    Ok(flows)
}

/// Runs the flow, prints its phases, writes events and figures; `given_options` are those typed.
pub fn run(args: TraceArgs, given_options: &[String]) -> Result<()> {
    let (qlog, out, beside) = (args.qlog.clone(), args.out.clone(), args.out.clone());
    let form = qlog.as_deref().map(qlog_form).transpose().or_refuse()?;
    let mut prepared = prepare(args)?;
    terminal::print_idle_options(&mut prepared.setup, given_options, prepared.flow.is_none());
    terminal::on_interrupt(move || {
        format!("stopped: what is in {} is as it was before; a trace is written at its end", beside.display())
    });
    let flows = measure(&prepared)?;
    let Prepared { setup, flow, .. } = &prepared;
    let (entry, view) = (flows[0].0, &flows[0].1);
    let Some(report) = view.report else { return Ok(()) };
    let folder = Folder::open(&out).or_refuse()?.of_command("trace").or_refuse()?;
    let page = show::trace::report(setup, &flows, *flow, &command_line());
    let mut table = show::trace::phases(entry, view);
    if flow.is_none() && entry.needs == catalogue::Needs::History {
        table.note(
            "A single flow is the first to its peer and has no record of it: --flow N shows a flow of a run.",
        );
    }
    print_table(&table)?;
    let counts = &report.counts;
    let completed = report.completion_time().map_or("never".to_owned(), |time| time.to_string());
    print(&format!(
        "\nComplete after {completed}; {} packets, {} lost, {} retransmitted, {} copies, {} timeouts.\n",
        counts.packets_sent, counts.lost, counts.retransmissions, counts.copies, counts.timeouts
    ))?;
    folder.write_csv("events.csv", &show::flow::COLUMNS, show::flow::rows(view))?;
    let alone = show::flow::FlowFigures::of([(&*entry.name, view)].into_iter());
    for (name, svg) in alone.iter().flat_map(show::flow::FlowFigures::files) {
        folder.write(&format!("{name}.svg"), svg.as_str().as_bytes())?;
    }
    folder.write("report.html", page.html().as_bytes())?;
    if let (Some(path), Some(form)) = (&qlog, form) {
        write_file(path, show::qlog::qlog(view, &format!("headstart {}", entry.name), form).as_bytes())?;
        print(&format!("qlog: {}\n", path.display()))?;
    }
    print(&format!("Report, events and figures: {}\n", folder.path().display()))
}

/// The form that the file's name asks for: tools recognise it by that, too.
fn qlog_form(path: &Path) -> Result<Form> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let form = extension.and_then(Form::of).with_context(|| {
        format!("--qlog: found `{}`, expected a name that ends in .qlog or .sqlog", path.display())
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    ensure!(
        folder.is_none_or(Path::is_dir),
        "--qlog: found `{}` in a folder that does not exist, expected an existing folder",
        path.display()
    );
    Ok(form)
}

/// The flow of a scheme: alone on the path, or one of a run.
fn flow(
    setup: &Setup,
    entry: &'static Entry,
    number: Option<u64>,
    progress: &RunProgress,
) -> Result<FlowTrace> {
    let Some(number) = number else { return runner::run_alone(setup, entry) };
    let mix = SchemeMix { tested: entry, beside: None };
    let job = Job {
        mix,
        load: setup.workload.load,
        seed: setup.run.seed,
        look_at: Some((number, number)),
        is_checked: true,
    };
    Ok(runner::run(setup, &job, None, progress)?.views.pop().unwrap_or_default())
}
