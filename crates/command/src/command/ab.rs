//! `headstart ab`: is the scheme of a rollout to be turned on?

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use headstart_units::Ratio;

use super::format::{Format, Objects};
use super::terminal::{self, print, print_table};
use headstart_field::ab::{self, Bounds, Judged, Test, Totals};
use headstart_report::errors::Refuse as _;
use headstart_report::statistics::Interval;
use headstart_report::table::{Cell, Column, Table};
use headstart_show::counted;

/// Options of `ab`.
#[derive(Args, Debug)]
pub struct AbArgs {
    /// Logs of `serve` or `tcp trace`; or scrapes of /metrics of one server, oldest first: a single
    /// one counts from the server's start
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The treatment, where there are several
    #[arg(long, value_name = "NAME")]
    pub scheme: Option<String>,
    /// Smallest saving of time that is worth a rollout
    #[arg(long, default_value = "2 %", value_name = "SHARE")]
    pub worth: Ratio,
    /// Largest acceptable rise of the loss rate over the control, in percentage points
    #[arg(long, default_value = "1 %", value_name = "SHARE")]
    pub most_loss: Ratio,
    /// Largest acceptable slowdown of other connections of the same peers
    #[arg(long, default_value = "5 %", value_name = "SHARE")]
    pub most_harm: Ratio,
    /// Turn on though too few connections of the same peers were open at the same time to measure
    /// harm, or the files are counters, which say nothing of it
    #[arg(long)]
    pub accept_unknown_harm: bool,
    /// Take connections of one peer for independent: only where one address stands for many clients
    #[arg(long)]
    pub independent: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// Judges and prints.
///
/// # Errors
/// If a file cannot be read or is refused.
pub fn run(args: &AbArgs) -> Result<()> {
    let bounds = Bounds {
        worth: args.worth.as_f64().min(0.99),
        most_loss: args.most_loss.as_f64(),
        most_harm: args.most_harm.as_f64(),
        accepts_unknown_harm: args.accept_unknown_harm,
    };
    let judged = ab::judge(&args.files, args.scheme.as_deref(), &bounds, args.independent).or_refuse()?;
    if args.format != Format::Table {
        let (header, rows) = (HEADER, rows(&judged));
        return args.format.print(&header, &rows, || document(&judged, &rows));
    }
    print_table(&times(&judged))?;
    print("\n")?;
    print_table(&losses(&judged))?;
    print("\n")?;
    print_table(&tests(&judged))?;
    if judged.duplicates > 0 {
        let lines = counted(judged.duplicates, "line");
        print(&format!("\n{lines} of the logs stand there more than once, and were counted once.\n"))?;
    }
    if !judged.controls.is_empty() {
        let names = judged.controls.join(", ");
        print(&format!(
            "\nThe control arm is the server's own {names}, which follows a start of the treatment too.\n"
        ))?;
    }
    print(&format!("\n{}: {}.\n", judged.decision, judged.reason))
}

/// Columns of the rows for programs. A row without a size is of all, and its ends hold at all
/// looks.
const HEADER: [&str; 13] = [
    "measure",
    "size",
    "treatment_count",
    "control_count",
    "treatment",
    "treatment_low",
    "treatment_high",
    "control",
    "control_low",
    "control_high",
    "difference",
    "difference_low",
    "difference_high",
];

fn rows(judged: &Judged) -> Vec<Vec<String>> {
    let number = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    let mut rows = vec![];
    for class in &judged.classes {
        let mut row = vec!["answer_ms".to_owned(), class.size.to_owned()];
        row.extend(class.counts.map(|count| count.to_string()));
        row.extend(class.times.iter().flat_map(|it| [it.value, it.low, it.high]).map(number));
        let ratio = class.ratio.map(|it| [it.value, it.low, it.high]);
        row.extend(ratio.map_or([f64::NAN; 3], |it| it.map(|value| value - 1.0)).map(number));
        rows.push(row);
    }
    for (name, test, is_time) in all(judged) {
        let Some(test) = test else { continue };
        let mut row = vec![name.to_owned(), String::new()];
        row.extend(test.counts.map(|count| count.to_string()));
        row.extend(std::iter::repeat_n(String::new(), 6));
        let ends = [test.difference.value, test.low, test.high];
        row.extend(ends.map(|value| number(if is_time { value.exp_m1() } else { value })));
        rows.push(row);
    }
    rows
}

/// Name, test, and whether it is of logarithms of times.
fn all(judged: &Judged) -> [(&'static str, Option<&Test>, bool); 4] {
    [
        ("answer_ms", judged.times.as_ref(), true),
        ("loss_share", judged.losses.as_ref(), false),
        ("others_answer_ms", judged.other_times.as_ref(), true),
        ("others_loss_share", judged.other_losses.as_ref(), false),
    ]
}

fn document(judged: &Judged, rows: &[Vec<String>]) -> Result<String> {
    let arm = |totals: &Totals| {
        serde_json::json!({
            "connections": totals.connections,
            "sent_bytes": totals.sent,
            "lost_bytes": totals.lost,
            "first_flight_lost_bytes": totals.first_flight_lost,
        })
    };
    let document = serde_json::json!({
        "headstart": headstart_compare::VERSION,
        "command": terminal::command_line(),
        "scheme": judged.scheme,
        "verdict": judged.decision.to_string(),
        "reason": judged.reason,
        "treatment": arm(&judged.totals[0]),
        "control": arm(&judged.totals[1]),
        "congestion_controls": judged.controls,
        "others_beside_treatment": judged.others[0],
        "others_beside_control": judged.others[1],
        "rows": Objects(&HEADER, rows),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn times(judged: &Judged) -> Table {
    let mut table = Table::new(
        &format!("First answers: {} and its control", judged.scheme),
        [
            Column::text("up to"),
            Column::number("treated", "").priority(5),
            Column::number("control", "").priority(4),
            Column::number("treated", "ms"),
            Column::number("control", "ms"),
            Column::number("difference", "%"),
        ],
    );
    let cell = |it: &Interval| {
        let cell = Cell::number(it.value, 1);
        if it.low > 0.0 && it.high.is_finite() { cell.with_interval(it.low, it.high) } else { cell }
    };
    for class in &judged.classes {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        table.row([
            Cell::text(class.size),
            Cell::count(class.counts[0]),
            Cell::count(class.counts[1]),
            cell(&class.times[0]),
            cell(&class.times[1]),
            class.ratio.map_or(Cell::Missing, |it| {
                Cell::number(percent(it.value), 1).with_interval(percent(it.low), percent(it.high))
            }),
        ]);
    }
    table.note(
        "Geometric means of the time from the first packet to the last acknowledgement before the first pause, \
         with 95 % intervals that hold for one look. Connections are taken to be independent here.",
    );
    table
}

fn losses(judged: &Judged) -> Table {
    let mut table = Table::new(
        "Connections and losses",
        [
            Column::text("arm"),
            Column::number("connections", ""),
            Column::number("sent", "MB"),
            Column::number("lost", "%"),
            Column::number("in first flights", "% of all lost"),
        ],
    );
    for (name, totals) in ["treatment", "control"].iter().zip(&judged.totals) {
        let share = |part: f64, whole: f64| {
            if whole > 0.0 { Cell::number(part / whole * 100.0, 2) } else { Cell::Missing }
        };
        table.row([
            Cell::text(name),
            Cell::number(totals.connections, 0),
            Cell::number(totals.sent / 1e6, 1),
            share(totals.lost, totals.sent),
            share(totals.first_flight_lost, totals.lost),
        ]);
    }
    table
}

fn tests(judged: &Judged) -> Table {
    let mut table = Table::new(
        "Treatment minus control, valid at every look",
        [
            Column::text("measure"),
            Column::number("difference", ""),
            Column::number("from", ""),
            Column::number("to", ""),
            Column::number("treated", "").priority(3),
            Column::number("control", "").priority(2),
            Column::number("peers with both", "").priority(1),
        ],
    );
    let names = [
        "time of first answers (%)",
        "bytes lost (points)",
        "time of concurrent others (%)",
        "bytes lost by others (points)",
    ];
    for (name, (_, test, is_time)) in names.iter().zip(all(judged)) {
        let Some(test) = test else {
            table.row([Cell::text(name)]);
            continue;
        };
        let scaled = |value: f64| 100.0 * if is_time { value.exp_m1() } else { value };
        let decimals = if is_time { 1 } else { 2 };
        let mut cells = vec![Cell::text(name)];
        let ends = [test.difference.value, test.low, test.high];
        cells.extend(ends.map(|value| Cell::number(scaled(value), decimals)));
        cells.extend(test.counts.map(Cell::count));
        cells.push(if test.pairs > 0 { Cell::count(test.pairs) } else { Cell::Missing });
        table.row(cells);
    }
    table.note(
        "All four hold at every look, with a probability of 95 % in all. Others: connections of the same peers, \
         open at the same time as connections of one arm alone.",
    );
    table
}
