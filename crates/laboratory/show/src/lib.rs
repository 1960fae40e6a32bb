//! Output for users: tables, figures and reports of a race, of capacities, of one flow.

pub mod flow;
pub mod qlog;
pub mod race;
pub mod reproduce;
pub mod sweep;
pub mod trace;

fn cell(interval: &headstart_compare::race::Measured, decimals: u8) -> headstart_report::table::Cell {
    let cell = headstart_report::table::Cell::number(interval.value, decimals);
    let has_interval = interval.by_seed.len() >= race::FEW_SEEDS;
    if has_interval && interval.low.is_finite() && interval.high.is_finite() {
        cell.with_interval(interval.low, interval.high)
    } else {
        cell
    }
}

/// `1 flow`, `2 flows`.
#[must_use]
pub fn counted(count: impl Into<u64>, what: &str) -> String {
    match count.into() {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
