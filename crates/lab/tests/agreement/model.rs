//! The model's side: our TCP in the simulator.

use headstart::carrier::Carriers;
use headstart::options::SchemeName;
use headstart::runner;
use headstart::show::flow::phases;
use headstart_study::settings::Settings;

use crate::compare::{Case, Found};

/// Scheme and options of the model for each controller of the kernel.
fn model_of(controller: &str) -> (&'static str, &'static str) {
    match controller {
        "cubic" => ("iw10-linux", "--base cubic-linux"),
        "bbr" => ("bbr", "--base cubic --pacing linux-always"),
        _ => ("iw10", "--base reno-linux"),
    }
}

pub fn run(case: &Case, seed: u64) -> Result<Found, String> {
    let Case { controller, path, bytes } = *case;
    let (scheme, base) = model_of(controller);
    let line = format!(
        "{path} {base} --acks linux-growing --as-linux --receive-window 4MB --opener receiver --size {bytes}B --duration 100s --seed {seed}"
    );
    let setup =
        Settings::parse(Carriers::MODEL, line.split_whitespace()).map_err(|error| format!("{error:#}"))?;
    let entry = scheme.parse::<SchemeName>()?.0;
    let (view, dropped) = runner::run_alone_counted(&setup, entry).map_err(|error| error.to_string())?;
    let report = view.report.ok_or("no flow")?;
    let completion = report.completion_time().ok_or("the model's flow did not complete")?;
    let phases = phases(&view);
    let first = phases.first().map(|phase| phase.1);
    let exit = phases.iter().find(|phase| Some(phase.1) != first);
    Ok(Found {
        completion_ms: completion.as_millis_f64(),
        drops: dropped,
        peak_queue: view.queue.iter().map(|(_, packets, _)| *packets).max().unwrap_or(0),
        exit_ms: exit.map(|phase| phase.0),
        is_valid: true,
    })
}
