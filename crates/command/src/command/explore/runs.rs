//! The runs behind the page: a race that gains seeds, and two flows packet by packet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use headstart_sim::Seed;
use headstart_startup::catalogue::Entry;
use headstart_units::{Bytes, Span, Time};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::packets::{Journey, PacketTracer};
use super::state::State;
use crate::command::call;
use headstart_compare::capacity;
use headstart_compare::race::{self, Race};
use headstart_compare::sweep::Point;
use headstart_compare::verdict::SortKey;
use headstart_report::figure::{Figure, Svg};
use headstart_report::markup::escape;
use headstart_report::page::Section;
use headstart_show as show;
use headstart_show::flow::FlowFigures;
use headstart_study::flow_trace::{FlowTrace, FlowTracer};
use headstart_study::options::PathPreset;
use headstart_study::progress::{Progress, Work};
use headstart_study::runner::{self, Job, JobResult};
use headstart_study::schemes;
use headstart_study::setup::Setup;

/// Processor time of the first answer, in seconds: within 200 ms of a change it is seen.
const FIRST_SECONDS: f64 = 0.1;
/// Processor time of one seed, in seconds, above which the page refuses.
const MAX_SECONDS: f64 = 5.0;
/// Memory of the runs above which the page refuses, in bytes.
const MAX_MEMORY: f64 = 500e6;
/// Flows of a seed below which a longer time is simulated, if that is affordable.
const FEW_FLOWS: f64 = 20.0;
/// Simulated times to choose from, in seconds.
const DURATIONS: [u64; 13] = [1, 2, 5, 10, 20, 30, 60, 100, 200, 300, 1000, 3000, 10_000];
/// Most states sent of one flow.
const MAX_STATES: usize = 4_000;

/// A race that was checked, ready to run.
#[derive(Debug)]
pub struct Prepared {
    state: State,
    duration: String,
}

/// Checks a state, and chooses the simulated time if it has none.
///
/// # Errors
/// If an option is refused, or the runs are too large for a page.
pub fn prepare(state: State) -> Result<Prepared> {
    match checked(&state) {
        Ok(duration) => Ok(Prepared { state, duration }),
        // The parser ends with the first of several.
        Err(first) => {
            let alone = |(name, value): &(String, String)| {
                Some(call::message(&call::race_setup(&[format!("--{name}={value}")]).err()?))
            };
            let all: Vec<String> = state.options().iter().filter_map(alone).collect();
            Err(if all.len() > 1 { anyhow::anyhow!(all.join("\n")) } else { first })
        }
    }
}

/// The simulated time of a state that can be run.
fn checked(state: &State) -> Result<String> {
    let given_duration = state.option("duration").map(str::to_owned);
    let (setup, one, _) = call::race_setup(&state.race(given_duration.as_deref().unwrap_or("1s"), 1))?;
    let of = |seconds: u64| {
        let mut setup = setup.clone();
        setup.run.duration = Span::from_secs(seconds);
        race::estimate(&setup)
    };
    let (duration, estimate) = match given_duration {
        Some(duration) => (duration, one),
        None => {
            let runs = 1.0 + 2.0 * race::entries(&setup).len() as f64;
            let shortest = DURATIONS.iter().rposition(|&it| of(it).seconds <= FIRST_SECONDS).unwrap_or(0);
            let mut place = shortest;
            while place + 1 < DURATIONS.len()
                && of(DURATIONS[place]).flows < FEW_FLOWS * runs
                && of(DURATIONS[place + 1]).seconds <= MAX_SECONDS
            {
                place += 1;
            }
            // Above the default of `race` only where flows are few.
            if place == shortest {
                place = place.min(DURATIONS.iter().position(|&it| it == 300).unwrap_or(place));
            }
            (format!("{}s", DURATIONS[place]), of(DURATIONS[place]))
        }
    };
    ensure!(
        estimate.seconds <= MAX_SECONDS && estimate.memory <= MAX_MEMORY,
        "one seed: found about {:.0} s of processor time and {:.0} MB, expected {MAX_SECONDS} s and {:.0} MB at most on \
         the page: lower the rate, the load, the number of schemes or the duration",
        estimate.seconds,
        estimate.memory / 1e6,
        MAX_MEMORY / 1e6
    );
    // A wrong number of seeds is refused here as well.
    call::race_setup(&state.race(&duration, state.repeats()))?;
    Ok(duration)
}

/// A job's place among the results: schemes and seed.
type Key = (String, Option<String>, u64);

fn key(job: &Job) -> Key {
    (job.mix.tested.name.to_string(), job.mix.beside.map(|entry| entry.name.to_string()), job.seed)
}

/// Runs a race with 1, 2, 4 and more seeds, and a search for capacities if that is affordable. Each
/// answer goes to `send` with the name of its event; it returns false when the reader has gone.
/// Ends early if it is stopped.
///
/// # Errors
/// If a run fails.
pub fn race(
    prepared: &Prepared,
    is_stopped: &AtomicBool,
    mut send: impl FnMut(&str, Value) -> bool,
) -> Result<()> {
    let Prepared { state, duration } = prepared;
    let all = state.repeats();
    let mut results: BTreeMap<Key, JobResult> = BTreeMap::new();
    let mut seeds = 1;
    loop {
        let (setup, _, command) = call::race_setup(&state.race(duration, seeds))?;
        let jobs = race::jobs(&setup);
        let left: Vec<Job> = jobs.iter().filter(|job| !results.contains_key(&key(job))).copied().collect();
        let Some(found) = run_all(&setup, &left, is_stopped)? else { return Ok(()) };
        results.extend(left.iter().map(key).zip(found));
        let race = race::summary(&setup, &ordered(&jobs, &results));
        if !send("answer", answer(&setup, &race, &command, all, state.width())) {
            return Ok(());
        }
        if seeds >= all {
            break;
        }
        seeds = (2 * seeds).min(all);
    }
    if send("end", Value::Null)
        && let Some(found) = multiples(prepared, is_stopped)?
        && send("multiples", found)
        && let Some(found) = capacities(prepared, is_stopped, &results)?
    {
        send("capacity", found);
    }
    Ok(())
}

/// The results of all jobs, in their order; `None` if it is stopped.
fn run_all(setup: &Setup, jobs: &[Job], is_stopped: &AtomicBool) -> Result<Option<Vec<JobResult>>> {
    let progress = Progress::new("exploring", Work::default());
    let one = |job: &Job| {
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // The page has its own flows: none of the race's is traced.
        let job = Job { look_at: None, is_checked: false, ..*job };
        runner::run(setup, &job, None, &progress.run(1.0)).map(Some)
    };
    jobs.par_iter().with_max_len(1).map(one).collect()
}

fn ordered(jobs: &[Job], results: &BTreeMap<Key, JobResult>) -> Vec<JobResult> {
    jobs.iter().filter_map(|job| results.get(&key(job)).cloned()).collect()
}

/// The gains of all schemes at RTTs and sizes around the state's, or the reason why there are none;
/// `None` if it is stopped.
fn multiples(prepared: &Prepared, is_stopped: &AtomicBool) -> Result<Option<Value>> {
    let Prepared { state, duration } = prepared;
    let (setup, _, _) = call::race_setup(&state.race(duration, 1))?;
    let nothing = |text: String| Ok(Some(json!({ "nothing": text })));
    let is_one = |name: &str| state.option(name).is_none_or(|text| !text.contains('+'));
    if !is_one("rtt") || state.option("size").is_some_and(|text| text.parse::<Bytes>().is_err()) {
        return nothing("Flows of several RTTs or sizes are in the race already: there is no grid.".into());
    }
    let (rtt, size) = (setup.rtt().as_nanos(), setup.mean_bytes() as u64);
    // Whole microseconds and bytes, a quarter to four times; at an end of the scale some are equal.
    let around = |middle: u64, step: u64, most: u64, shown: &dyn Fn(u64) -> String| {
        let value = |share| (middle.saturating_mul(share) / 4 / step * step).clamp(step, most);
        let mut words = [1, 4, 16].map(|share| shown(value(share)).replace(' ', "")).to_vec();
        words.dedup();
        words
    };
    let rtts = around(rtt, 1000, 60_000_000_000, &|nanos| Span::from_nanos(nanos).to_string());
    let sizes = around(size, 1, u64::MAX, &|bytes| Bytes::new(bytes).to_string());
    let words = |repeats: u32| state.sweep(&rtts, &sizes, duration, repeats);
    let seconds = |points: &[(Point, Setup)]| -> f64 {
        points.iter().map(|(_, setup)| race::estimate(setup).seconds).sum()
    };
    // Four times a value may exceed the option's own bound.
    let (mut points, mut command) = match call::sweep_setups(&words(1)) {
        Ok(found) => found,
        Err(error) => return nothing(format!("There is no grid: {}", call::message(&error))),
    };
    let one = seconds(&points);
    if one > MAX_SECONDS {
        return nothing(format!(
            "The grid would take {one:.0} s of processor time, more than a page spends."
        ));
    }
    if 4.0 * one <= MAX_SECONDS {
        (points, command) = call::sweep_setups(&words(4))?;
    }
    let mut sweep = show::sweep::Sweep::default();
    for (point, setup) in &points {
        let jobs = race::jobs(setup);
        let Some(results) = run_all(setup, &jobs, is_stopped)? else { return Ok(None) };
        sweep.add(point, setup, &race::summary(setup, &results));
    }
    let Some((svg, caption)) = sweep.multiples(state.width()) else {
        return nothing("One scheme alone has nothing to gain over.".into());
    };
    Ok(Some(json!({ "command": command, "figure": figure(&svg, &caption) })))
}

/// The plane of completion time over feasible capacity, with as many seeds as are affordable, or
/// the reason why there is none; `None` if it is stopped.
fn capacities(
    prepared: &Prepared,
    is_stopped: &AtomicBool,
    results: &BTreeMap<Key, JobResult>,
) -> Result<Option<Value>> {
    let Prepared { state, duration } = prepared;
    let (mut setup, _, _) = call::race_setup(&state.race(duration, 1))?;
    let mut seconds = |seeds: u32| {
        setup.run.repeats = seeds;
        capacity::estimate(&setup).seconds
    };
    let one = seconds(1);
    if one > MAX_SECONDS {
        let text = format!(
            "Feasible capacities would take {one:.0} s of processor time, more than a page spends: see `headstart race --capacity`."
        );
        return Ok(Some(json!({ "nothing": text })));
    }
    let mut seeds = 1;
    while 2 * seeds <= state.repeats() && seconds(2 * seeds) <= MAX_SECONDS {
        seeds *= 2;
    }
    let words = [state.race(duration, seeds), vec!["--capacity".to_owned()]].concat();
    let (setup, _, command) = call::race_setup(&words)?;
    let race = race::summary(&setup, &ordered(&race::jobs(&setup), results));
    let found = capacity::search(&setup, |_, jobs| {
        run_all(&setup, jobs, is_stopped)?.ok_or_else(|| anyhow::Error::new(Stopped))
    });
    let capacities = match found {
        Err(error) if error.is::<Stopped>() => return Ok(None),
        other => other?,
    };
    let counted = if seeds == 1 { "one seed".to_owned() } else { format!("{seeds} seeds") };
    let caption = format!(
        "Mean completion time over feasible capacity (mean at most four times the scheme's own at 5 % load), with {counted}: \
         the lower right corner is the one to hold."
    );
    let plane = show::race::figures::capacity_plane(&race, &capacities);
    Ok(Some(json!({
        "command": command,
        "figure": figure(&sized(plane, state.width()), &caption),
        "capacity": capacities,
    })))
}

#[derive(Debug, thiserror::Error)]
#[error("stopped")]
struct Stopped;

fn answer(setup: &Setup, race: &Race, command: &str, all: u32, width: f64) -> Value {
    if let Some(reason) = show::race::reason_for_no_result(setup, race) {
        return json!({ "command": command, "seeds": race.seeds, "of": all, "nothing": reason });
    }
    let rows: Vec<serde_json::Map<String, Value>> = race
        .scheme_results
        .iter()
        .map(|one| {
            let named =
                |(name, value): (&str, headstart_report::rows::Value)| (name.to_owned(), json!(value));
            one.row().into_iter().map(named).collect()
        })
        .collect();
    let distribution = match show::race::figures::distribution(race, width) {
        Section::Figure { svg, caption } => figure(&svg, &caption),
        _ => String::new(),
    };
    let plane = sized(show::race::figures::plane(race), width);
    let bars = match race.seeds {
        1 => "One seed has no intervals.".to_owned(),
        seeds => format!("Bars are 95 % intervals over {seeds} seeds."),
    };
    let caption =
        format!("Mean completion time over harm to others: fast is low, considerate is left. {bars}");
    json!({
        "command": command,
        "seeds": race.seeds,
        "of": all,
        "headline": show::race::headline(setup),
        "verdict": show::race::verdict(race),
        "table": show::race::table(setup, race, SortKey::Time).html(),
        "plane": figure(&plane, &caption),
        "distribution": distribution,
        "rows": rows,
    })
}

/// The drawing of a plane: on a narrow page it is lower, too, so that controls have room below.
fn sized(plane: Figure, width: f64) -> Svg {
    let plot_height = if width < Figure::WIDTH { 250.0 } else { 380.0 };
    Figure { width, plot_height, ..plane }.svg()
}

fn figure(svg: &Svg, caption: &str) -> String {
    format!("<figure>{}<figcaption>{}</figcaption></figure>", svg.inline(), escape(caption))
}

/// One flow of each of the state's two schemes, alone on the path.
///
/// # Errors
/// If an option is refused, or a run fails.
pub fn flows(state: &State) -> Result<Value> {
    let (prepared, command) = call::trace_setup(&state.trace())?;
    let setup = &prepared.setup;
    let bytes = setup.mean_bytes();
    let seconds = headstart_study::estimate::Estimate::traced(setup, Bytes::new(bytes as u64)).seconds;
    ensure!(
        seconds <= MAX_SECONDS && bytes <= 100e6,
        "--size: found {:.0} MB, expected 100 MB at most for a flow of the page",
        bytes / 1e6
    );
    let flows = prepared.entries.iter().map(|entry| flow(setup, entry)).collect::<Result<Vec<_>>>()?;
    let mut figures = FlowFigures::of(flows.iter().map(|(entry, view, _)| (entry.name.as_str(), view)));
    for figure in figures.iter_mut().flat_map(|one| [Some(&mut one.sequence), one.queue.as_mut()]).flatten() {
        figure.width = state.width();
    }
    let views = match &figures[..] {
        [one, other, ..] => match show::flow::overlay(one, other) {
            Section::Overlay { views, .. } => {
                views.iter().map(|(svg, caption)| figure(svg, caption)).collect()
            }
            _ => vec![],
        },
        [one] => {
            let drawn = |section: Section| match section {
                Section::Figure { svg, caption } => Some(figure(&svg, &caption)),
                _ => None,
            };
            one.sections().into_iter().filter_map(drawn).collect()
        }
        [] => vec![],
    };
    let limit = setup.path.buffer.limit(setup.bottleneck(), setup.rtt());
    let shown = flows.into_iter().map(|(entry, view, packets)| moving(setup, entry, &view, packets));
    Ok(json!({
        "command": command,
        "headline": show::race::headline(setup),
        "views": views,
        "limit_bytes": (limit.bytes.get() != u64::MAX).then(|| limit.bytes.get()),
        "limit_packets": (limit.packets != u64::MAX).then_some(limit.packets),
        "flows": shown.collect::<Vec<Value>>(),
    }))
}

type Flow = (&'static Entry, FlowTrace, PacketTracer);

fn flow(setup: &Setup, entry: &'static Entry) -> Result<Flow> {
    let bytes = Bytes::new(setup.mean_bytes() as u64);
    let run = setup.single_flow(entry, bytes, Seed(setup.run.seed)).checked();
    let (mut lens, packets) = run.observe((FlowTracer::new((0, 0)), PacketTracer::default()))?.observer;
    Ok((entry, lens.views.remove(0), packets))
}

/// The moving parts of the page, in milliseconds since the SYN.
fn moving(setup: &Setup, entry: &Entry, view: &FlowTrace, packets: PacketTracer) -> Value {
    let opened = view.report.map_or(Time::ZERO, |report| report.opened_at);
    let millis = |at: Time| (at.since(opened).as_millis_f64() * 1e4).round() / 1e4;
    let completed = view.report.and_then(|report| report.completed_at).map(millis);
    let (delay, is_cut) = (setup.rtt() / 2, packets.is_cut);
    let packet = |journey: &Journey| {
        json!([
            u8::from(journey.is_back),
            journey.kind,
            journey.segment,
            millis(journey.sent),
            journey.transmitted(delay).map(millis),
            millis(journey.end),
            u8::from(journey.is_lost),
        ])
    };
    let step = |count: usize| count.div_ceil(MAX_STATES).max(1);
    let states = view.events.iter().step_by(step(view.events.len())).map(|(at, trace)| {
        json!([millis(*at), trace.window.get().min(100_000_000), trace.in_flight.get(), trace.phase])
    });
    let queue = view
        .queue
        .iter()
        .step_by(step(view.queue.len()))
        .map(|(at, packets, bytes)| json!([millis(*at), packets, bytes.get()]));
    json!({
        "scheme": entry.name.as_str(),
        "completed_ms": completed,
        "bytes": setup.mean_bytes(),
        "is_cut": is_cut || view.is_cut,
        "packets": packets.journeys().iter().map(packet).collect::<Vec<Value>>(),
        "states": states.collect::<Vec<Value>>(),
        "queue": queue.collect::<Vec<Value>>(),
    })
}

/// A path of one of the papers: its name, its source, and its options.
pub type PaperPath = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// The paths of the five papers, as the plans in `experiments` have them.
pub const PAPERS: [PaperPath; 5] = [
    (
        "halfback",
        "Halfback, CoNEXT 2015: an access path",
        &[("rate", "15 Mbit/s"), ("rtt", "60 ms"), ("buffer", "115 kB"), ("size", "100 kB")],
    ),
    ("wisestart", "WiseStart: 24 Mbit/s", &[("rate", "24 Mbit/s"), ("rtt", "40 ms"), ("buffer", "1 BDP")]),
    (
        "blitzstart",
        "Blitzstart: DSL, fast",
        &[("rate", "50 Mbit/s"), ("rtt", "50 ms"), ("buffer", "208 packets")],
    ),
    (
        "quick-start",
        "Quick-Start: routers that grant rates",
        &[
            ("rate", "10 Mbit/s"),
            ("rtt", "80 ms"),
            ("buffer", "150 packets"),
            ("routers", "target"),
            ("schemes", "iw10,jump-start,quick-start,wise-start"),
        ],
    ),
    (
        "fast-startup",
        "Fast Startup Congestion Control: 10 Mbit/s",
        &[("rate", "10 Mbit/s"), ("rtt", "100 ms"), ("buffer", "50 packets")],
    ),
];

/// All that the page offers: schemes with their parameters, paths, and its first state.
#[must_use]
pub fn catalogue(first: &State) -> Value {
    use clap::ValueEnum as _;
    let scheme = |entry: &Entry| {
        let parameters = entry.parameters().into_iter().map(|one| {
            json!({ "name": one.name, "default": one.default, "expected": one.expected, "about": one.about })
        });
        json!({
            "name": entry.name.as_str(),
            "needs": entry.needs.as_str(),
            "summary": entry.summary,
            "parameters": parameters.collect::<Vec<Value>>(),
        })
    };
    let paper =
        |(name, title, options): &PaperPath| json!({ "name": name, "title": title, "options": options });
    let named = PathPreset::value_variants()
        .iter()
        .map(|preset| json!({ "name": preset.name(), "title": preset.name(), "options": preset.options() }));
    json!({
        "schemes": schemes::all().iter().map(scheme).collect::<Vec<Value>>(),
        "queues": headstart_net::QueueDiscipline::ALL.map(|it| it.name()),
        "papers": PAPERS.iter().map(paper).collect::<Vec<Value>>(),
        "paths": named.collect::<Vec<Value>>(),
        "first": first.options(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(words: &[&str]) -> State {
        State::of_words(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).expect("fine")
    }

    fn answers(state: State) -> Vec<Value> {
        let mut answers = vec![];
        let prepared = prepare(state).expect("fine");
        // No search for capacities follows.
        let keep = |name: &str, answer| {
            let is_answer = name == "answer";
            answers.extend(is_answer.then_some(answer));
            is_answer
        };
        race(&prepared, &AtomicBool::new(false), keep).expect("it runs");
        answers
    }

    #[test]
    fn every_answer_has_the_numbers_of_its_command_line() {
        let answers =
            answers(state(&["--schemes=iw10,halfback", "--rate=20mbit", "--repeats=4", "--duration=5s"]));
        let seeds: Vec<u64> = answers.iter().filter_map(|one| one["seeds"].as_u64()).collect();
        assert_eq!(seeds, [1, 2, 4]);
        for answer in &answers {
            let command = answer["command"].as_str().expect("a line");
            let words: Vec<String> = command.split(' ').skip(2).map(str::to_owned).collect();
            let folder = tempfile::tempdir().expect("a folder");
            let document =
                call::race(&words, folder.path(), false).expect("it runs").json.expect("a document");
            let document: Value = serde_json::from_str(&document).expect("a document");
            let mut own = answer["rows"].clone();
            // One flow of the command's is traced and checked: its fingerprint is the same.
            assert_eq!(own.as_array_mut().map(|rows| rows.len()), Some(2));
            assert_eq!(own, document["schemes"], "{command}");
        }
    }

    #[test]
    fn intervals_shrink_as_seeds_are_added() {
        let answers = answers(state(&["--schemes=iw10", "--repeats=16", "--duration=10s"]));
        let width = |answer: &Value| {
            let row = &answer["rows"][0];
            row["mean_ms_high"].as_f64().zip(row["mean_ms_low"].as_f64()).map(|(high, low)| high - low)
        };
        let widths: Vec<Option<f64>> = answers.iter().map(width).collect();
        assert_eq!((answers.len(), widths[0]), (5, None));
        assert!(widths[4] < widths[1] && widths[4].is_some(), "{widths:?}");
    }

    #[test]
    fn a_stopped_race_ends_without_an_answer() {
        let prepared = prepare(state(&["--schemes=iw10", "--duration=10s"])).expect("fine");
        race(&prepared, &AtomicBool::new(true), |_, answer| panic!("{answer}")).expect("it ends");
    }

    #[test]
    fn capacities_are_those_of_the_command() {
        let state = state(&["--schemes=iw10,halfback", "--size=20kB", "--repeats=2", "--duration=5s"]);
        let mut found = vec![];
        let keep = |name: &str, answer| {
            found.push((name.to_owned(), answer));
            true
        };
        race(&prepare(state).expect("fine"), &AtomicBool::new(false), keep).expect("it runs");
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["answer", "answer", "end", "multiples", "capacity"]);
        let own = &found[4].1;
        let words: Vec<String> =
            own["command"].as_str().expect("a line").split(' ').skip(2).map(str::to_owned).collect();
        let has = |word: &str| words.iter().any(|known| known == word);
        assert!(has("--capacity") && has("--repeats=2"), "{words:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let document = call::race(&words, folder.path(), false).expect("it runs").json.expect("a document");
        let document: Value = serde_json::from_str(&document).expect("a document");
        assert_eq!(own["capacity"], document["capacity"]);
        assert_eq!(document["capacity"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn gains_over_rtt_and_size_are_those_of_the_command() {
        let state = state(&["--schemes=iw10,halfback", "--rtt=40ms", "--duration=2s"]);
        let prepared = prepare(state).expect("fine");
        let found = multiples(&prepared, &AtomicBool::new(false)).expect("it runs").expect("not stopped");
        let command = found["command"].as_str().expect("a line");
        assert!(command.contains("--rtt=10ms,40ms,160ms --size=25kB,100kB,400kB"), "{command}");
        let words: Vec<String> = command.split(' ').skip(2).map(str::to_owned).collect();
        let folder = tempfile::tempdir().expect("a folder");
        let document = call::sweep(&words, folder.path(), &[]).expect("it runs");
        let points = &document.tables[0].1;
        let at = points.header().iter().position(|name| *name == "mean_ms").expect("there");
        let means: Vec<f64> = points.rows.iter().map(|row| row[at].parse().expect("a number")).collect();
        assert_eq!(means.len(), 18);
        let gain = format!("{:.0}", 100.0 * (1.0 - means[1] / means[0])).replace('-', "\u{2212}");
        let drawn = found["figure"].as_str().expect("a figure");
        assert!(drawn.contains(&format!(">{gain}</text>")) && drawn.contains(">halfback<"), "{drawn}");
        let at_an_end = self::state(&["--schemes=iw10,halfback", "--rtt=60s", "--size=1kB", "--duration=1s"]);
        let found = multiples(&prepare(at_an_end).expect("fine"), &AtomicBool::new(false)).expect("it runs");
        let command = found.expect("not stopped")["command"].to_string();
        assert!(command.contains("--rtt=15s,60s --size=250B,1kB,4kB"), "{command}");
        for (words, says) in [(&["--rtt=20ms+60ms"][..], "several RTTs"), (&["--size=internet"], "or sizes")]
        {
            let prepared = prepare(self::state(words)).expect("fine");
            let found = multiples(&prepared, &AtomicBool::new(false)).expect("fine").expect("not stopped");
            assert!(found["nothing"].as_str().expect("a reason").contains(says), "{found}");
        }
    }

    #[test]
    fn every_refused_value_is_named() {
        let error =
            prepare(state(&["--rate=fast", "--load=0%", "--rtt=60ms", "--loss=x"])).expect_err("three");
        let message = call::message(&error);
        let names: Vec<&str> = message.lines().filter_map(|line| line.split([':', ' ']).next()).collect();
        assert_eq!(names.len(), 3, "{message}");
        assert!(["--rate", "--load", "--loss"].iter().all(|name| message.contains(name)), "{message}");
    }

    #[test]
    fn a_search_that_is_too_long_is_named_and_not_begun() {
        let state = state(&["--schemes=iw10", "--repeats=1", "--duration=300s", "--rate=60mbit"]);
        let prepared = prepare(state).expect("fine");
        let found = capacities(&prepared, &AtomicBool::new(false), &BTreeMap::new()).expect("fine");
        let text = found.expect("not stopped")["nothing"].as_str().expect("a reason").to_owned();
        assert!(text.contains("headstart race --capacity"), "{text}");
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_options_own_message() {
        for (word, expected) in [
            ("--loss=101%", "--loss: found 101 %, expected 100 % at most"),
            ("--load=0%", "--load: found 0 %, expected more than 0"),
            ("--rtt=61s", "--rtt: found 61 s, expected a minute at most"),
            ("--rate=fast", "expected a rate"),
            ("--history=-1", "found `-1`, expected a whole number"),
            ("--rate=100000 Gbit/s", "of processor time"),
            ("--duration=100000s", "one seed: found"),
            ("--schemes=tahoe", "tahoe"),
        ] {
            let error = call::message(&prepare(state(&[word])).expect_err(word));
            assert!(error.contains(expected), "{word}: {error}");
        }
    }

    #[test]
    fn the_first_answer_is_cheap_on_every_path_of_a_paper() {
        for (name, _, options) in PAPERS {
            let words: Vec<String> =
                options.iter().map(|(name, value)| format!("--{name}={value}")).collect();
            let prepared = prepare(State::of_words(&words).expect("fine")).expect(name);
            let (_, estimate, _) =
                call::race_setup(&prepared.state.race(&prepared.duration, 1)).expect("it was checked");
            assert!(estimate.seconds <= FIRST_SECONDS, "{name}: {estimate:?}");
        }
    }

    #[test]
    fn the_papers_paths_are_those_of_their_plans() {
        for (name, _, options) in PAPERS {
            let file = format!("{}/../../experiments/{name}/paper.toml", env!("CARGO_MANIFEST_DIR"));
            let plan: toml::Table = std::fs::read_to_string(&file).expect(&file).parse().expect(&file);
            let path = plan.get("path").cloned().unwrap_or(toml::Value::Table(toml::Table::new()));
            for (option, value) in options {
                // The page's slider counts bytes.
                let counts_bytes = |text: &&str| !text.ends_with("packets");
                if let Some(document) = path.get(*option).and_then(toml::Value::as_str).filter(counts_bytes) {
                    assert_eq!(document, *value, "{name}: {option}");
                }
            }
        }
    }

    #[test]
    fn flows_show_every_packet_and_complete_as_the_trace_says() {
        let shown = flows(&state(&["--rate=15mbit", "--rtt=60ms"])).expect("it runs");
        assert_eq!(shown["command"], "headstart trace iw10 --rate=15mbit --rtt=60ms --beside=halfback");
        let flow = &shown["flows"][0];
        assert_eq!(flow["completed_ms"].as_f64().map(f64::round), Some(243.0));
        let data = flow["packets"].as_array().expect("packets").iter().filter(|packet| packet[1] == "data");
        assert_eq!(data.count(), 70);
        assert_eq!(shown["views"].as_array().map(Vec::len), Some(2));
    }
}
