//! `headstart page`: a page in a real browser, by scheme, cold and returning.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Args;
use headstart_quic::Sharded;
use headstart_startup::catalogue::Needs;
use headstart_study::settings::Settings;
use headstart_study::workload::web::har;
use headstart_units::{Rate, Ratio, Span};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use super::demo::buffer_words;
use super::format::Format;
use super::serve::Choices;
use super::terminal::{self, command_line, print};
use headstart_field::page::browser::find_browser;
use headstart_field::page::load::{Carrier, Http, Testbed};
use headstart_field::page::shapes::Shape;
use headstart_field::page::show::{self as show, Sample};
use headstart_field::page::{Replay, model, saved};
use headstart_report::errors::Refuse as _;
use headstart_report::output::Folder;
use headstart_show::counted;
use headstart_study::options::{
    Buffer, PathOptions, PathPreset, Rtts, SchemeName, UpOptions, at_least, choice_name, whole,
};
use headstart_study::setup::Setup;

/// Options of `headstart page`.
#[derive(Args, Clone, Debug)]
pub struct PageArgs {
    /// The page: a HAR file, or page.html that a browser saved "complete" [default: --shape]
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// A synthetic page
    #[arg(long, value_enum, default_value = "search", value_name = "NAME", conflicts_with = "file")]
    pub shape: Shape,
    /// Page of the file: its id, or its number from 1 [default: the one with the earliest request]
    #[arg(long, value_name = "ID|NUMBER", requires = "file")]
    pub page: Option<String>,
    /// A path by name; options override its numbers (`headstart list paths`: sources, buffers)
    #[arg(long = "path", value_name = "NAME")]
    pub preset: Option<PathPreset>,
    /// Rate of the access link, towards the browser [default: the path `cable`, as for all options
    /// of the path]
    #[arg(long, default_value = "5 Mbit/s", hide_default_value = true, value_name = "RATE")]
    pub rate: Rate,
    /// Rate of the way back
    #[arg(long, default_value = "1 Mbit/s", value_name = "RATE")]
    pub up_rate: Rate,
    /// Round-trip time
    #[arg(long, default_value = "28 ms", value_name = "TIME")]
    pub rtt: Span,
    /// Buffer of the access link: bytes, packets, time at the link's rate, or BDP
    #[arg(long, default_value = "100 ms", value_name = "SIZE")]
    pub buffer: Buffer,
    /// Buffer of the way back
    #[arg(long, default_value = "100 ms", value_name = "SIZE")]
    pub up_buffer: Buffer,
    /// Random loss behind the link
    #[arg(long, default_value = "0 %", value_name = "SHARE")]
    pub loss: Ratio,
    /// Schemes; the others are compared with the first
    #[arg(long, default_value = "iw10,headstart", value_name = "NAMES")]
    pub schemes: Choices,
    /// Versions of HTTP, each of the others a row beside the schemes'
    #[arg(long, value_enum, default_value = "h3", value_delimiter = ',', value_name = "NAMES")]
    pub http: Vec<Http>,
    /// Visits of each kind with each scheme
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = whole(1..=1000_u32))]
    pub repeats: u32,
    /// The browser, Firefox or one with Chromium's options [default: chromium in $PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub browser: Option<PathBuf>,
    /// Time limit of a visit
    #[arg(long, default_value = "60 s", value_name = "TIME", value_parser = at_least(Span::from_secs(1)))]
    pub timeout: Span,
    /// Folder for report.html, page.csv, visits.json and, of a shape, page.har
    #[arg(long, default_value = "headstart-page", value_name = "FOLDER")]
    pub out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Runs `headstart page`.
///
/// # Errors
/// If an option is refused, or a page does not load.
pub fn run(args: &PageArgs) -> Result<()> {
    let setup = setup(args).or_refuse()?;
    let folder = Folder::open(&args.out).or_refuse()?.of_command("page").or_refuse()?;
    let (page, file) = read(args, &folder).or_refuse()?;
    let replay = Replay::new(&page).with_context(|| file.display().to_string()).or_refuse()?;
    let path = setup.path.plan_for_packets(&UpOptions::default()).or_refuse()?;
    let Some(browser) = args.browser.clone().or_else(find_browser) else {
        let expected = "expected one (Debian: chromium), or --browser PROGRAM";
        return Err(anyhow!("NOT RUN: found no Chromium in $PATH, {expected}")).or_refuse();
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let version = runtime.block_on(version(&browser)).or_refuse()?;
    let carriers = carriers(args).or_refuse()?;
    let link = link_words(args);
    let timeout = Duration::from_nanos(args.timeout.as_nanos());
    let testbed = Testbed::new(replay, path, link, (browser, version), timeout)?;
    let version = &testbed.version;
    let on = format!(
        "through a link of {} down and {} up, {} round trip, {} of buffer",
        args.rate,
        args.up_rate,
        args.rtt,
        buffer_words(args.buffer, args.rate, args.rtt)
    );
    let count = 2 * rounds(args, &testbed) * carriers.len() as u64;
    eprintln!(
        "headstart: {} of {}, {:.0} kB, {on}: {count} visits by {version}",
        counted(testbed.replay.nodes.len() as u64, "object"),
        counted(testbed.replay.origins as u64, "host"),
        testbed.replay.bytes() as f64 / 1e3
    );
    if !page.skipped.is_empty() {
        let counts: Vec<String> =
            page.skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        eprintln!("headstart: left out of {}: {}", file.display(), counts.join(", "));
    }
    let mut samples = simulated(args, &carriers, &setup, &testbed.replay)?;
    runtime.block_on(async {
        let (mut interrupt, mut end) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let stop = testbed.stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = end.recv() => {}
            }
            stop.cancel();
        });
        load(args, &carriers, &testbed, &mut samples).await
    })?;
    let table = show::table(&samples);
    if args.format == Format::Table {
        terminal::answer(show::answer(&samples))?;
    }
    args.format.print_table(&table)?;
    let report = show::report(&samples, &testbed.replay, &on, version, &command_line());
    let written = folder.write("report.html", report.html().as_bytes());
    if let (Format::Table, Ok(file)) = (args.format, &written) {
        print(&format!("\nReport: {}\n", file.display()))?;
    }
    terminal::written([
        written.map(drop),
        folder.write("page.csv", table.csv().as_bytes()).map(drop),
        folder.write("visits.json", (serde_json::to_string_pretty(&samples)? + "\n").as_bytes()).map(drop),
    ])
}

/// The path, and the simulator's run of the page.
fn setup(args: &PageArgs) -> Result<Setup> {
    for scheme in &args.schemes.0 {
        ensure!(
            scheme.needs() != Needs::Hint,
            "--schemes: found {}, which needs a hint of the client, expected others: no browser gives one",
            scheme.name()
        );
    }
    // Chromium's windows hold no page of this size back.
    let words = ["--transport=quic", "--receive-window=6MB"];
    let setup = Settings::parse(headstart_carriers::ALL, words.into_iter())?;
    let path = PathOptions {
        rate: args.rate,
        rtt: Rtts(vec![args.rtt]),
        buffer: args.buffer,
        loss: args.loss,
        up_rate: Some(args.up_rate),
        up_buffer: Some(args.up_buffer),
        ..setup.path.clone()
    };
    setup.with_path(path)
}

/// The page, and its file.
fn read(args: &PageArgs, folder: &Folder) -> Result<(har::Page, PathBuf)> {
    let file = match &args.file {
        Some(file) if saved::is_saved(file) => {
            ensure!(args.page.is_none(), "--page: found it with a saved page, expected it with a HAR file");
            return Ok((saved::read(file).with_context(|| file.display().to_string())?, file.clone()));
        }
        Some(file) => file.clone(),
        None => folder.write("page.har", format!("{:#}\n", args.shape.har()).as_bytes())?,
    };
    Ok((har::read(&file, args.page.as_deref())?, file))
}

/// The browser's name and version.
async fn version(browser: &Path) -> Result<String> {
    let answer = Command::new(browser).arg("--version").stdin(Stdio::null()).kill_on_drop(true).output();
    let answer = tokio::time::timeout(Duration::from_secs(20), answer).await;
    let answer =
        answer.with_context(|| format!("--browser {}: no answer to --version in 20 s", browser.display()))?;
    let answer = answer.with_context(|| format!("--browser {}: cannot start it", browser.display()))?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let line = text.lines().find(|line| line.contains("Chrom") || line.contains("Firefox"));
    let line = line.with_context(|| {
        format!("--browser {}: found no Chromium and no Firefox, expected one", browser.display())
    })?;
    Ok(line.split(" built on").next().unwrap_or(line).trim().to_owned())
}

/// The rows of the table, each for two kinds of visits.
fn carriers(args: &PageArgs) -> Result<Vec<Carrier>> {
    let mut carriers = vec![];
    for http in &args.http {
        match http {
            Http::H3 => carriers.extend(args.schemes.0.iter().map(|scheme| Carrier::Quic(Box::new(*scheme)))),
            other => {
                ensure!(
                    headstart_emu::namespace::is_privileged(),
                    "--http: found {} without root, expected h3: TCP crosses the path from a network namespace",
                    choice_name(*other)
                );
                carriers.push(Carrier::Tcp(*other));
            }
        }
    }
    Ok(carriers)
}

/// The path as options of `headstart link`.
fn link_words(args: &PageArgs) -> Vec<String> {
    let size = |buffer: Buffer, rate| match buffer.limit(rate, args.rtt) {
        limit if limit.packets < u64::MAX => format!("{}p", limit.packets),
        limit => format!("{}B", limit.bytes.get()),
    };
    let options = [
        ("rate", args.rate.to_string()),
        ("up-rate", args.up_rate.to_string()),
        ("rtt", args.rtt.to_string()),
        ("buffer", size(args.buffer, args.rate)),
        ("up-buffer", size(args.up_buffer, args.up_rate)),
        ("loss", args.loss.to_string()),
    ];
    options.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

/// The samples in the order of the table, with the simulator's times of the schemes.
fn simulated(
    args: &PageArgs,
    carriers: &[Carrier],
    setup: &Setup,
    replay: &Arc<Replay>,
) -> Result<Vec<Sample>> {
    let mut samples = vec![];
    for carrier in carriers {
        let times = match carrier {
            Carrier::Tcp(_) => vec![],
            Carrier::Quic(scheme) => {
                let name: SchemeName = scheme.name().parse().map_err(anyhow::Error::msg)?;
                let seeds = 1..=u64::from(args.repeats);
                seeds.map(|seed| model::visits(setup, replay, name, seed)).collect::<Result<Vec<_>>>()?
            }
        };
        for (place, kind) in KINDS.into_iter().enumerate() {
            let times: Vec<f64> = times.iter().map(|times| times[place]).collect();
            let simulated_ms = headstart_report::statistics::mean(&times);
            samples.push(Sample { scheme: carrier.name(), kind, visits: vec![], simulated_ms, filmed: None });
        }
    }
    Ok(samples)
}

/// Kinds of visits, in their order.
const KINDS: [&str; 2] = ["cold", "returning"];

/// Peers of a server's history: there is one.
const PEERS: usize = 64;

/// Rounds of visits. The last one is filmed, but not with Firefox.
fn rounds(args: &PageArgs, testbed: &Testbed) -> u64 {
    u64::from(args.repeats) + u64::from(!testbed.is_firefox())
}

/// Loads the page in rounds, so that what else the machine does meets all schemes alike.
async fn load(
    args: &PageArgs,
    carriers: &[Carrier],
    testbed: &Testbed,
    samples: &mut [Sample],
) -> Result<()> {
    for round in 1..=rounds(args, testbed) {
        let is_filmed = round > u64::from(args.repeats);
        let name = if is_filmed { "film".into() } else { format!("round {round} of {}", args.repeats) };
        let kinds = samples.chunks_mut(KINDS.len());
        for (carrier, samples) in carriers.iter().zip(kinds) {
            let history = Arc::new(Sharded::new(PEERS));
            for sample in samples {
                let name = format!("{name}, {}, {}", sample.scheme, sample.kind);
                let visit =
                    testbed.visit(carrier, &history, round, is_filmed).await.with_context(|| name.clone())?;
                eprintln!("headstart: {name}: {:.0} ms", visit.complete_ms);
                if is_filmed {
                    sample.filmed = Some(visit);
                } else {
                    sample.visits.push(visit);
                }
            }
        }
    }
    Ok(())
}
