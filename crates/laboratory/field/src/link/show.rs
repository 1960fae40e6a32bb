//! Output of a link for users: its summary, and its log as figures.

pub mod capacity;
pub mod figures;

use std::fmt::Write as _;

use headstart_emu::lateness::Tolerance;
use headstart_emu::relay::{DirectionSummary, Summary};
use headstart_net::DropReason;

use headstart_report::table::{Cell, Column, Table, terminal_width};

/// Summary of a run, for the terminal.
#[must_use]
pub fn summary(summary: &Summary, tolerance: Tolerance) -> String {
    let seconds = summary.lasted.as_secs_f64();
    let ways = [("down", &summary.down), ("up", &summary.up)];
    if ways.iter().all(|(_, way)| way.arrived == 0 && way.errors.is_empty()) {
        return format!("Nothing crossed the path in {seconds:.2} s.\n");
    }
    let mut table = Table::new(
        "",
        [
            Column::text("way"),
            Column::number("arrived", "packets"),
            Column::number("sent", "packets"),
            Column::number("dropped", "packets"),
            Column::number("rate", "Mbit/s").priority(3),
            Column::number("peak queue", "packets").priority(4),
            Column::number("late p50", "us").priority(2),
            Column::number("p99", "us"),
            Column::number("max", "us"),
        ],
    );
    for (name, way) in ways {
        let micros = |span: headstart_units::Span| Cell::number(span.as_nanos() as f64 / 1000.0, 1);
        table.row([
            Cell::text(name),
            Cell::count(way.arrived),
            Cell::count(way.sent),
            Cell::count(dropped(way).iter().map(|(_, count)| count).sum()),
            Cell::number(way.sent_bytes as f64 * 8e-6 / seconds.max(1e-9), 2),
            Cell::count(way.peak_queue),
            micros(way.lateness.p50),
            micros(way.lateness.p99),
            micros(way.lateness.worst),
        ]);
    }
    let width = terminal_width(std::env::var("COLUMNS").ok().as_deref());
    let mut text = table.terminal(width, false);
    for (name, way) in ways {
        let mut causes: Vec<String> = dropped(way)
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(cause, count)| format!("{count} {cause}"))
            .collect();
        causes.extend(way.errors.iter().map(|(error, count)| format!("{count} {}", error.name())));
        if way.inside > 0 {
            causes.push(format!("{} still inside at the end", way.inside));
        }
        if !causes.is_empty() {
            let _ = writeln!(text, "{name}: {}", causes.join(", "));
        }
    }
    if summary.log_left_out > 0 {
        let _ = writeln!(text, "The log lacks {} lines: the disk was too slow.", summary.log_left_out);
    }
    let priority = if summary.real_time { "real-time" } else { "ordinary" };
    if summary.is_valid {
        let _ =
            writeln!(text, "Valid: the machine kept real time over {seconds:.2} s ({priority} priority).");
    } else {
        let _ = writeln!(
            text,
            "INVALID: the machine did not keep real time (99 of 100 departures may be {} late, the worst {}; {priority} priority).",
            tolerance.p99, tolerance.worst
        );
    }
    text
}

/// Packets dropped by elements, by cause.
fn dropped(way: &DirectionSummary) -> Vec<(&'static str, u64)> {
    let of =
        |reason: DropReason| way.elements.iter().map(|(_, account)| account.dropped[reason as usize]).sum();
    DropReason::ALL.iter().map(|reason| (reason.name(), of(*reason))).collect()
}

#[cfg(test)]
mod tests {
    use headstart_emu::lateness::Tolerance;
    use headstart_emu::relay::Summary;
    use headstart_units::Span;

    /// A program that could not be started sends nothing: only its own error message is printed.
    #[test]
    fn a_path_that_carried_nothing_has_no_table() {
        let tolerance = Tolerance { p99: Span::from_millis(1), worst: Span::from_millis(40) };
        let mut summary = Summary { lasted: Span::from_millis(30), ..Summary::default() };
        assert_eq!(super::summary(&summary, tolerance), "Nothing crossed the path in 0.03 s.\n");
        summary.up.arrived = 1;
        assert!(super::summary(&summary, tolerance).contains("arrived"));
    }
}
