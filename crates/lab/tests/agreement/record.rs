//! The kernel's runs as a file, and the comparison as a table.

use std::fmt::Write as _;

use crate::compare::{Case, Compared, Found, Verdict};

const COLUMNS: &str =
    "controller,path,bytes,seed,completion_ms,drops,peak_queue,slow_start_exit_ms,real_time";

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub case: Case,
    pub seed: u64,
    pub found: Found,
}

pub fn write(runs: &[Run]) -> String {
    let mut text = format!("{COLUMNS}\n");
    for Run { case, seed, found } in runs {
        let exit = found.exit_ms.map(|exit| format!("{exit:.1}")).unwrap_or_default();
        let Case { controller, path, bytes } = case;
        let Found { completion_ms, drops, peak_queue, is_valid, .. } = found;
        let real_time = if *is_valid { "kept" } else { "not kept" };
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "{controller},{path},{bytes},{seed},{completion_ms:.3},{drops},{peak_queue},{exit},{real_time}"
        );
    }
    text
}

pub fn read(text: &str) -> Result<Vec<Run>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(COLUMNS) {
        return Err(format!("line 1: expected `{COLUMNS}`"));
    }
    lines.zip(2..).map(|(line, number)| read_line(line).ok_or(format!("line {number}: `{line}`"))).collect()
}

fn read_line(line: &str) -> Option<Run> {
    let fields: Vec<&str> = line.split(',').collect();
    let [controller, path, bytes, seed, completion, drops, peak_queue, exit, real_time] = fields[..] else {
        return None;
    };
    let found = Found {
        completion_ms: completion.parse().ok()?,
        drops: drops.parse().ok()?,
        peak_queue: peak_queue.parse().ok()?,
        exit_ms: if exit.is_empty() { None } else { Some(exit.parse().ok()?) },
        is_valid: real_time == "kept",
    };
    Some(Run { case: Case::find(controller, path, bytes.parse().ok()?)?, seed: seed.parse().ok()?, found })
}

/// The comparison as Markdown.
#[derive(Default)]
pub struct Table {
    rows: String,
    agree: [usize; 4],
    count: usize,
}

const HEAD: &str = "| controller | path | size | seeds (count) | completion (ms): kernel, model | | drops (packets): kernel, model | | peak queue (packets): kernel, model | | \
     slow-start exit (ms): kernel, model | | real time |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

impl Table {
    pub fn row(&mut self, case: &Case, verdict: &Verdict) {
        self.count += 1;
        let agrees = verdict.agrees();
        for (total, agrees) in self.agree.iter_mut().zip(agrees) {
            *total += usize::from(agrees);
        }
        let [completion, drops, queue, exit] = agrees.map(|agrees| if agrees { "" } else { "**differs**" });
        let packets = |numbers: Compared| {
            let decimals = usize::from(verdict.seeds > 1);
            format!("{:.decimals$}, {:.decimals$}", numbers.kernel, numbers.model)
        };
        let row = format!(
            "| {} | `{}` | {} kB | {} | {:.1}, {:.1} ({}) | {completion} | {} | {drops} | {} | {queue} | {} | {exit} | {} |\n",
            case.controller,
            case.path.replace("--", ""),
            case.bytes / 1000,
            verdict.seeds,
            verdict.completion.kernel,
            verdict.completion.model,
            change(verdict.completion),
            packets(verdict.drops),
            packets(verdict.peak_queue),
            verdict.exit.map_or("-".to_owned(), |exit| format!("{:.0}, {:.0}", exit.kernel, exit.model)),
            if verdict.is_valid { "kept" } else { "not kept" },
        );
        print!("{row}");
        self.rows += &row;
    }

    pub fn text(&self) -> String {
        let [completion, drops, queue, exit] = self.agree;
        format!(
            "{HEAD}{}\nOf {} comparisons {completion} agree in completion, {drops} in drops, {queue} in the peak queue, {exit} in the end of \
             slow start.\n",
            self.rows, self.count
        )
    }
}

/// Deviation of the model in percent, and the 95 % interval where there is one.
fn change(numbers: Compared) -> String {
    let value = 100.0 * (numbers.model / numbers.kernel - 1.0);
    match numbers.change {
        Some(change) => format!("{value:+.1} % [{:+.1}, {:+.1}]", 100.0 * change.low, 100.0 * change.high),
        None => format!("{value:+.1} %"),
    }
}
