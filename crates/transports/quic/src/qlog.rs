//! The scheme's decisions as qlog events, in the stack's own file.
//!
//! The stack writes one record after the other (JSON-SEQ, RFC 7464) while it holds the connection;
//! this crate's go in between. They belong to the namespace `headstart`:
//!
//! | event | when | data |
//! |---|---|---|
//! | `headstart:phase` | the scheme enters a phase | phase, arm, source, window, pace |
//! | `headstart:ended` | the connection is over | all of [`StartReport`] |

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use headstart_adapter::connection;
use headstart_host::locked;
use headstart_startup::Allowance;
use headstart_startup::catalogue::Name;
use headstart_units::{Rate, Time};
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side};

use crate::epoch::Epoch;
use crate::shared::Rules;
use crate::start_report::StartReport;

/// Directory of qlog files: one per connection, named by its first connection id.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Files that could not be written.
    failures: AtomicU64,
}

impl Directory {
    /// Writes files to `path`, which must exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), failures: AtomicU64::new(0) }
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells of the first file that cannot be written, the second, the fourth and so on: on a disk
    /// that is full there are as many as connections.
    fn note(&self, path: &Path, error: &io::Error) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failures.is_power_of_two() {
            let path = path.display();
            tracing::warn!(target: "headstart", "no qlog: {path}: {error} ({failures} files so far)");
        }
    }

    pub(crate) fn of_connection(self: &Arc<Self>, rules: &Rules) -> Opening {
        let log = Arc::new(Shared::default());
        let (scheme, epoch) = (rules.choice.scheme_name(), rules.epoch);
        let factory = OneConnection { directory: Arc::clone(self), scheme, epoch, log: Arc::clone(&log) };
        (Arc::new(factory), log)
    }
}

/// The log of a connection to be, and the stack's factory that opens it.
type Opening = (Arc<dyn QlogFactory>, Arc<dyn connection::Log>);

struct OneConnection {
    directory: Arc<Directory>,
    scheme: Name,
    epoch: Epoch,
    log: Arc<Shared>,
}

/// A connection's log, once the stack has opened it.
#[derive(Debug, Default)]
struct Shared(OnceLock<Log>);

impl QlogFactory for OneConnection {
    fn for_connection(
        &self,
        side: Side,
        _: SocketAddr,
        initial_dst_cid: ConnectionId,
        now: Instant,
    ) -> Option<QlogConfig> {
        let side = if side.is_client() { "client" } else { "server" };
        let path = self.directory.path.join(format!("{initial_dst_cid}-{side}.qlog"));
        let file = File::create(&path).inspect_err(|error| self.directory.note(&path, error));
        let (file, directory) = (Some(BufWriter::new(file.ok()?)), Arc::clone(&self.directory));
        let output = Output { file, header: Some(vec![]), path, directory };
        let writer = Writer(Arc::new(Mutex::new(output)));
        // A connection has one log: the stack creates it once.
        let _ = self.log.0.set(Log { writer: writer.clone(), began: self.epoch.time(now) });
        let mut config = QlogConfig::new(Box::new(writer));
        config.title(Some(format!("headstart {}", self.scheme))).start_time(now);
        Some(config)
    }
}

/// Parts of the header that noq 1.4 leaves empty, and the texts in their place. The times are
/// relative to the connection's beginning.
const FILLED_IN: [(&str, &str); 2] = [
    ("{\"clock_type\":\"\",\"epoch\":\"\"}", "{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\"}"),
    (
        "\"event_schemas\":[]",
        "\"event_schemas\":[\"urn:ietf:params:qlog:events:quic-12\",\"urn:headstart:events\"]",
    ),
];

#[derive(Debug)]
struct Output {
    /// Until it cannot be written.
    file: Option<BufWriter<File>>,
    path: PathBuf,
    directory: Arc<Directory>,
    /// The first record, until it is whole.
    header: Option<Vec<u8>>,
}

/// A file shared by two writers.
#[derive(Clone, Debug)]
struct Writer(Arc<Mutex<Output>>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let output = &mut *locked(&self.0);
        let Some(header) = &mut output.header else {
            output.pass(|file| file.write_all(bytes));
            return Ok(bytes.len());
        };
        header.extend(bytes);
        if bytes.contains(&b'\n') {
            let mut text = String::from_utf8_lossy(header).into_owned();
            FILLED_IN.iter().for_each(|(empty, filled)| text = text.replacen(empty, filled, 1));
            output.header = None;
            output.pass(|file| file.write_all(text.as_bytes()));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        locked(&self.0).pass(BufWriter::flush);
        Ok(())
    }
}

impl Output {
    /// The stack would complain of every event. The file is left as it is after its first error.
    fn pass(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let Some(Err(error)) = self.file.as_mut().map(write) else { return };
        self.directory.note(&self.path, &error);
        // The bytes that wait cannot be written either.
        let _ = self.file.take().map(BufWriter::into_parts);
    }
}

/// The log of one connection.
#[derive(Debug)]
struct Log {
    writer: Writer,
    began: Time,
}

/// RFC 7464's record separator.
const SEPARATOR: char = '\u{1e}';

impl Log {
    fn record(&self, now: Time, name: &str, data: &str) {
        let millis = now.since(self.began).as_millis_f64();
        let text = format!(
            "{SEPARATOR}{{\"time\":{millis:.6},\"name\":\"headstart:{name}\",\"data\":{{{data}}}}}\n"
        );
        // A log that cannot be written does not end the connection.
        let _ = self.writer.clone().write_all(text.as_bytes());
    }
}

impl connection::Log for Shared {
    fn phase(&self, now: Time, report: &StartReport, allowance: Allowance) {
        let Some(log) = self.0.get() else { return };
        let (arm, source) = (report.arm.name(), report.source.name());
        let (window, pace) = (allowance.window.get(), allowance.pace.map_or(0, Rate::as_bits_per_sec));
        let phase = report.decision();
        let data = format!(
            "\"phase\":\"{phase}\",\"arm\":\"{arm}\",\"source\":\"{source}\",\"window\":{window},\"pace_bps\":{pace}"
        );
        log.record(now, "phase", &data);
    }

    fn ended(&self, report: &StartReport) {
        let Some(log) = self.0.get() else { return };
        // The fields of the log line: names without quotes or spaces, values without quotes.
        let fields: Vec<_> = report
            .to_string()
            .split(' ')
            .filter_map(|field| field.split_once('='))
            .map(|(name, value)| format!("\"{name}\":\"{value}\""))
            .collect();
        log.record(report.last_at, "ended", &fields.join(","));
        let _ = log.writer.clone().flush();
    }
}
