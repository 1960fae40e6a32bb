//! The kernel's runs as a file, and the comparison as a table.

use std::fmt::Write as _;

use headstart_report::figure::{Axis, Figure, Mark, Series, Style};

use crate::compare::{Case, Compared, Found, Verdict};
use crate::model::Rounds;

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
pub struct Table {
    judge: &'static str,
    /// The judge's time is the machine's.
    is_real: bool,
    rows: String,
    agree: [usize; 4],
    count: usize,
}

const COMPARED: [&str; 4] =
    ["completion (ms)", "drops (packets)", "peak queue (packets)", "slow-start exit (ms)"];

impl Table {
    pub const fn new(judge: &'static str, is_real: bool) -> Self {
        Self { judge, is_real, rows: String::new(), agree: [0; 4], count: 0 }
    }

    pub fn row(&mut self, case: &Case, verdict: &Verdict) {
        self.count += 1;
        let agrees = verdict.agrees();
        for (total, agrees) in self.agree.iter_mut().zip(agrees) {
            *total += usize::from(agrees);
        }
        let [completion, drops, queue, exit] = agrees.map(|agrees| if agrees { "" } else { "**differs**" });
        let packets = |numbers: Compared| {
            let decimals = usize::from(verdict.seeds > 1);
            format!("{:.decimals$}, {:.decimals$}", numbers.judge, numbers.model)
        };
        let row = format!(
            "| {} | `{}` | {} kB | {} | {:.1}, {:.1} ({}) | {completion} | {} | {drops} | {} | {queue} | {} | {exit} |{}\n",
            case.controller,
            case.path.replace("--", ""),
            case.bytes / 1000,
            verdict.seeds,
            verdict.completion.judge,
            verdict.completion.model,
            change(verdict.completion),
            packets(verdict.drops),
            packets(verdict.peak_queue),
            verdict.exit.map_or("-".to_owned(), |exit| format!("{:.0}, {:.0}", exit.judge, exit.model)),
            match (self.is_real, verdict.is_valid) {
                (true, true) => " kept |",
                (true, false) => " not kept |",
                (false, _) => "",
            },
        );
        print!("{row}");
        self.rows += &row;
    }

    pub fn text(&self) -> String {
        let mut head = ["controller", "path", "size", "seeds (count)"].join(" | ");
        for number in COMPARED {
            let _ = write!(head, " | {number}: {}, model | ", self.judge);
        }
        head += if self.is_real { " | real time" } else { "" };
        let rule = "---|".repeat(head.split('|').count());
        let [completion, drops, queue, exit] = self.agree;
        format!(
            "| {head} |\n|{rule}\n{}\nOf {} comparisons {completion} agree in completion, {drops} in drops, {queue} in the peak queue, \
             {exit} in the end of slow start.\n",
            self.rows, self.count
        )
    }
}

/// Deviation of the model in percent, and the 95 % interval where there is one.
fn change(numbers: Compared) -> String {
    let value = 100.0 * (numbers.model / numbers.judge - 1.0);
    match numbers.change {
        Some(change) => format!("{value:+.1} % [{:+.1}, {:+.1}]", 100.0 * change.low, 100.0 * change.high),
        None => format!("{value:+.1} %"),
    }
}

/// Round trips that a table of them has.
const SHOWN: usize = 10;

/// Packets sent, or windows, of both sides by round trip, a row for each case.
pub fn rounds(title: &str, cases: &[(&Case, &[Rounds; 2])], of: fn(&(u64, u64)) -> u64) -> String {
    let numbers: Vec<String> = (1..=SHOWN).map(|round| round.to_string()).collect();
    let mut text = format!("\n| {title} | {} |\n|{}\n", numbers.join(" | "), "---|".repeat(SHOWN + 1));
    for (case, [judge, model]) in cases {
        let both =
            judge.iter().zip(model.iter()).map(|(judge, model)| format!("{}, {}", of(judge), of(model)));
        let cells: Vec<String> = both.chain(std::iter::repeat(String::new())).take(SHOWN).collect();
        let path = case.path.replace("--", "");
        let _ = writeln!(text, "| {}, `{path}` | {} |", case.controller, cells.join(" | "));
    }
    text
}

/// Packets sent by round trip, of both sides in one drawing.
pub fn figure(judge: &str, cases: &[(&Case, &[Rounds; 2])]) -> String {
    let (x, y) = (Axis::linear("round trip", ""), Axis::linear("packets with data sent in it", ""));
    let mut figure = Figure::new("", x, y);
    for (slot, (case, rounds)) in cases.iter().enumerate() {
        let path = case.path.replace("--", "").replace("rate ", "");
        let sides = [(judge, Style::marks(Mark::Disc)), ("model", Style::line())];
        for ((side, style), rounds) in sides.into_iter().zip(*rounds) {
            let points = rounds.iter().zip(1..).map(|((sent, _), round)| (f64::from(round), *sent as f64));
            figure.series.push(Series::new(&format!("{side}, {path}"), style.with_slot(slot), points));
        }
    }
    figure.svg().to_string()
}
