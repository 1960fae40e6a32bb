//! Every flow of a run as a row, for statistics of the user's own.
//!
//! A run writes its rows to a part ([`headstart_report::rows`]) as it proceeds, so that memory does
//! not grow with the flows. The columns are described in `docs/data.md`.

use std::fs;
use std::path::PathBuf;

use headstart_report::output::{Folder, OutputError};
use headstart_report::rows::{Kind, PartWriter};
use headstart_sim::FlowReport;
use headstart_sim::workload::PageReport;
use headstart_units::{Span, Time};

use crate::carrier::Observer;

/// The columns of a row, except those that are constant in a run.
pub const COLUMNS: [(&str, Kind); 35] = [
    ("scheme", Kind::Text),
    ("role", Kind::Text),
    ("kind", Kind::Text),
    ("flow", Kind::Count),
    ("peer", Kind::Count),
    ("after_warm_up", Kind::Count),
    ("start_s", Kind::Number),
    ("size_bytes", Kind::Count),
    ("completion_ms", Kind::Number),
    ("without_handshake_ms", Kind::Number),
    ("end_s", Kind::Number),
    ("min_rtt_ms", Kind::Number),
    ("delivered_bytes", Kind::Count),
    ("sent_bytes", Kind::Count),
    ("sent_packets", Kind::Count),
    ("retransmissions", Kind::Count),
    ("copies", Kind::Count),
    ("lost_packets", Kind::Count),
    ("timeouts", Kind::Count),
    ("probes", Kind::Count),
    ("first_flight_bytes", Kind::Count),
    ("first_flight_lost_bytes", Kind::Count),
    ("duplicates", Kind::Count),
    ("handshake_retransmissions", Kind::Count),
    ("had_history", Kind::Count),
    ("handshake_ms", Kind::Number),
    ("window_ms", Kind::Number),
    ("pacer_ms", Kind::Number),
    ("receiver_ms", Kind::Number),
    ("application_ms", Kind::Number),
    ("recovery_ms", Kind::Number),
    ("path_ms", Kind::Number),
    ("slow_start_end", Kind::Text),
    ("slow_start_window_bytes", Kind::Count),
    ("phase", Kind::Text),
];

/// Roles of flows in a run, in the order of the groups.
pub const ROLES: [&str; crate::setup::GROUPS] = ["tested", "beside", "long"];

/// Folder of the parts of runs until they are joined.
#[derive(Debug)]
pub struct PartFolder {
    folder: PathBuf,
}

impl PartFolder {
    /// Opens them in a folder of results. Parts of an interrupted command are found again.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn open(folder: &Folder) -> Result<Self, OutputError> {
        let folder = folder.path().join("flows.parts");
        let created = fs::create_dir_all(&folder);
        created.map_err(|error| OutputError::Io { doing: "create", path: folder.clone(), error })?;
        Ok(Self { folder })
    }

    /// The part of the run with this key.
    #[must_use]
    pub fn file(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.csv"))
    }

    /// Removes all parts, after they have been joined.
    ///
    /// # Errors
    /// If they cannot be removed.
    pub fn remove(self) -> Result<(), OutputError> {
        let Self { folder } = self;
        fs::remove_dir_all(&folder).map_err(|error| OutputError::Io { doing: "remove", path: folder, error })
    }
}

/// Writes a row for each flow, and for each page.
#[derive(Debug)]
pub struct FlowRows {
    writer: PartWriter,
    schemes: [String; ROLES.len()],
    warm_up: Time,
    /// True if senders report the bytes that they sent and lost.
    has_counts: bool,
}

impl FlowRows {
    /// Rows go to `writer`; groups run these schemes.
    #[must_use]
    pub const fn new(
        writer: PartWriter,
        schemes: [String; ROLES.len()],
        warm_up: Time,
        has_counts: bool,
    ) -> Self {
        Self { writer, schemes, warm_up, has_counts }
    }

    /// Completes the part.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn finish(self) -> Result<(), OutputError> {
        self.writer.finish()
    }

    fn scheme_and_role(&self, group: u16) -> [String; 2] {
        let group = usize::from(group);
        let of = |names: &[&str]| (*names.get(group).unwrap_or(&"")).to_owned();
        [self.schemes.get(group).cloned().unwrap_or_default(), of(&ROLES)]
    }
}

/// Nanoseconds in a decimal unit, exactly, without trailing zeros.
fn decimal(nanos: u64, digits: u32) -> String {
    let unit = 10_u64.pow(digits);
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{rest:0digits$}", digits = digits as usize);
    text.trim_end_matches('0').to_owned()
}

fn seconds(at: Time) -> String {
    decimal(at.as_nanos(), 9)
}

fn millis(span: Option<Span>) -> String {
    span.map(|span| decimal(span.as_nanos(), 6)).unwrap_or_default()
}

fn flag(is: bool) -> String {
    u8::from(is).to_string()
}

impl Observer for FlowRows {
    fn flow(&mut self, report: &FlowReport) {
        let [scheme, role] = self.scheme_and_role(report.group);
        let counts = &report.counts;
        let counted = |count: u64| if self.has_counts { count.to_string() } else { String::new() };
        let is_limited = report.limited.iter().any(|span| !span.is_zero());
        let [handshake, window, pacer, receiver, application, recovery, path] =
            report.limited.map(|span| millis(is_limited.then_some(span)));
        let row: [String; COLUMNS.len()] = [
            scheme,
            role,
            "flow".to_owned(),
            report.serial.to_string(),
            report.peer.to_string(),
            flag(report.opened_at >= self.warm_up),
            seconds(report.opened_at),
            report.written.get().to_string(),
            millis(report.completion_time()),
            millis(report.transfer_time()),
            seconds(report.ended_at),
            millis((!report.min_rtt.is_zero()).then_some(report.min_rtt)),
            report.delivered.get().to_string(),
            counted(counts.bytes_sent),
            counted(counts.packets_sent),
            counted(counts.retransmissions),
            counted(counts.copies),
            counted(counts.lost),
            counted(counts.timeouts),
            counted(counts.probes),
            counted(report.first_flight.get()),
            counted(counts.first_flight_lost),
            report.duplicates.to_string(),
            report.handshake_retransmissions.to_string(),
            flag(report.had_history),
            handshake,
            window,
            pacer,
            receiver,
            application,
            recovery,
            path,
            report.slow_start_end.map_or("", |end| end.by.as_str()).to_owned(),
            report.slow_start_end.map(|end| end.window.get().to_string()).unwrap_or_default(),
            report.phase.to_owned(),
        ];
        self.writer.row(row);
    }

    fn page(&mut self, report: &PageReport) {
        let [scheme, role] = self.scheme_and_role(report.group);
        let mut row = [const { String::new() }; COLUMNS.len()];
        let fields = [
            ("scheme", scheme),
            ("role", role),
            ("kind", "page".to_owned()),
            ("after_warm_up", flag(report.began_at >= self.warm_up)),
            ("start_s", seconds(report.began_at)),
            ("size_bytes", report.bytes.get().to_string()),
            ("completion_ms", millis(Some(report.ended_at.since(report.began_at)))),
            ("end_s", seconds(report.ended_at)),
        ];
        for (name, field) in fields {
            if let Some(place) = COLUMNS.iter().position(|(column, _)| *column == name) {
                row[place] = field;
            }
        }
        self.writer.row(row);
    }
}

/// Rows, if any are wanted.
impl Observer for Option<FlowRows> {
    fn flow(&mut self, report: &FlowReport) {
        self.iter_mut().for_each(|rows| rows.flow(report));
    }

    fn page(&mut self, report: &PageReport) {
        self.iter_mut().for_each(|rows| rows.page(report));
    }
}

#[cfg(test)]
mod tests {
    use headstart_startup::sending::LimitedBy;

    use super::*;

    #[test]
    fn each_limit_has_a_column() {
        let limits = COLUMNS.iter().filter_map(|(name, _)| name.strip_suffix("_ms"));
        let limits: Vec<&str> = limits.skip_while(|name| *name != "handshake").collect();
        assert_eq!(limits, LimitedBy::ALL.map(LimitedBy::as_str));
    }

    #[test]
    fn times_are_written_exactly() {
        for (nanos, seconds, millis) in
            [(0, "0", "0"), (1, "0.000000001", "0.000001"), (1_500_000_000, "1.5", "1500")]
        {
            assert_eq!((decimal(nanos, 9).as_str(), decimal(nanos, 6).as_str()), (seconds, millis));
        }
        assert_eq!(decimal(u64::MAX, 9), "18446744073.709551615");
    }
}
