//! Why records in a server's log: a line for each connection, whatever stands before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use headstart_quic::metrics::SIZES;

use super::{LONGEST_LINE, scheme_name};

/// Most records that are kept: about 1 GB.
const MOST_RECORDS: usize = 10_000_000;

/// A connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    scheme: usize,
    /// 0 for the treatment, 1 for the control; none for others.
    pub arm: Option<usize>,
    pub peer: usize,
    /// Class of the first answer, and the logarithm of its microseconds.
    pub answer: Option<(usize, f64)>,
    /// Seconds since 1970 when it began and ended.
    pub open: Option<(f64, f64)>,
    pub sent: f64,
    pub lost: f64,
    pub first_flight_lost: f64,
}

impl Record {
    pub fn loss_share(&self) -> Option<f64> {
        (self.sent > 0.0).then(|| (self.lost / self.sent).min(1.0))
    }
}

#[derive(Debug, Default)]
pub(super) struct Log {
    records: Vec<Record>,
    peers: BTreeMap<IpAddr, usize>,
    schemes: Vec<String>,
    /// Congestion controls of the server, which take over after a start.
    pub controls: BTreeSet<String>,
    /// Hashes of lines. Two equal ones that have a time are one connection.
    seen: BTreeSet<u64>,
    /// Lines that were there before, in another file or the same one.
    pub duplicates: u64,
}

fn hash_of(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.trim_ascii().hash(&mut hasher);
    hasher.finish()
}

impl Log {
    /// Reads a file; lines without a record are left out.
    pub fn read(&mut self, file: &Path) -> Result<()> {
        let name = || file.display().to_string();
        let mut reader = BufReader::new(File::open(file).with_context(name)?);
        let before = self.records.len() + self.duplicates as usize;
        let mut line = vec![];
        for number in 1_u64.. {
            line.clear();
            let mut limited = reader.by_ref().take(LONGEST_LINE as u64 + 1);
            if limited.read_until(b'\n', &mut line).with_context(name)? == 0 {
                break;
            }
            ensure!(
                line.len() <= LONGEST_LINE,
                "{}, line {number}: found more than {LONGEST_LINE} bytes, expected a shorter line",
                file.display()
            );
            // Other programs may write to the same log: their lines need not be text.
            let text = String::from_utf8_lossy(&line);
            let at = || format!("{}, line {number}", file.display());
            let Some(record) = record_of(&text) else { continue };
            let is_new = self.seen.insert(hash_of(&line));
            if is_one_connection(&text, record) && !is_new {
                self.duplicates += 1;
                continue;
            }
            self.add(record).with_context(at)?;
            ensure!(
                self.records.len() <= MOST_RECORDS,
                "{}: found more than {MOST_RECORDS} connections, expected fewer: give a shorter period",
                at()
            );
        }
        ensure!(
            self.records.len() + self.duplicates as usize > before,
            "{}: found no record of a connection, expected lines with `scheme=... arm=...` (of `serve` or `tcp \
             trace`), or counters of /metrics",
            file.display()
        );
        Ok(())
    }

    pub fn add(&mut self, text: &str) -> Result<()> {
        let fields: BTreeMap<&str, &str> =
            text.split_ascii_whitespace().filter_map(|word| word.split_once('=')).collect();
        let field = |name: &str| {
            fields.get(name).copied().with_context(|| format!("found no `{name}=`, expected one"))
        };
        let number = |name: &str, most: f64| -> Result<Option<f64>> {
            let Some(text) = fields.get(name) else { return Ok(None) };
            let value: Option<f64> = text.parse().ok().filter(|value| (0.0..=most).contains(value));
            let value = value
                .with_context(|| format!("found `{name}={text}`, expected a number from 0 to {most}"))?;
            Ok(Some(value))
        };
        let required = |name: &str, most: f64| number(name, most)?.context(format!("found no `{name}=`"));
        let arm = match field("arm")? {
            "treatment" => Some(0),
            "control" => Some(1),
            "undecided" | "ineligible" | "stopped" => None,
            other => {
                bail!("found `arm={other}`, expected treatment, control, ineligible, stopped or undecided")
            }
        };
        let peer = field("peer")?;
        let peer: IpAddr =
            peer.parse().ok().with_context(|| format!("found `peer={peer}`, expected an address"))?;
        let scheme = scheme_name(field("scheme")?)?;
        if let Some(control) = fields.get("cc") {
            let control = scheme_name(control)?;
            ensure!(
                self.controls.len() < 100 || self.controls.contains(control),
                "found more than 100 congestion controls, expected fewer"
            );
            self.controls.insert(control.to_owned());
        }
        const BYTES: f64 = 1e15;
        const MILLIS: f64 = 1e11;
        const SECONDS: f64 = 1e11;
        let answer = match (number("answer_ms", MILLIS)?, number("answer_bytes", BYTES)?) {
            (Some(millis), Some(bytes)) => {
                let class = SIZES.partition_point(|most| (*most as f64) < bytes);
                Some((class, (millis * 1000.0).max(1.0).ln()))
            }
            _ => None,
        };
        let open = match (number("began", SECONDS)?, number("lasted_ms", MILLIS)?) {
            (Some(began), Some(lasted)) => Some((began, began + lasted / 1000.0)),
            _ => None,
        };
        let scheme = match self.schemes.iter().position(|known| known == scheme) {
            Some(at) => at,
            None => {
                ensure!(self.schemes.len() < 1000, "found more than 1000 schemes, expected fewer");
                self.schemes.push(scheme.to_owned());
                self.schemes.len() - 1
            }
        };
        let next = self.peers.len();
        let peer = *self.peers.entry(peer.to_canonical()).or_insert(next);
        let (sent, lost) = (required("sent", BYTES)?, required("lost", BYTES)?);
        let first_flight_lost = number("first_flight_lost", BYTES)?.unwrap_or(0.0);
        self.records.push(Record { scheme, arm, peer, answer, open, sent, lost, first_flight_lost });
        Ok(())
    }

    /// The records of one treatment and its control.
    pub fn of_scheme(self, wanted: Option<&str>) -> Result<(String, Vec<Record>)> {
        let treated: BTreeSet<usize> =
            self.records.iter().filter(|it| it.arm == Some(0)).map(|it| it.scheme).collect();
        let names = || treated.iter().map(|at| self.schemes[*at].as_str()).collect::<Vec<_>>().join(", ");
        let scheme = match wanted {
            Some(wanted) => {
                let found = treated.iter().find(|at| self.schemes[**at] == wanted);
                found.with_context(|| {
                    format!("--scheme: found no treatment by `{wanted}`, expected one of {}", names())
                })?
            }
            None => {
                let others = self.records.iter().filter(|record| record.arm.is_none()).count();
                ensure!(
                    !treated.is_empty(),
                    "found no connection of the treatment among {} ({others} without an arm), expected both arms",
                    self.records.len()
                );
                ensure!(
                    treated.len() == 1,
                    "found treatments by {}, expected one: choose with --scheme",
                    names()
                );
                treated.first().context("one")?
            }
        };
        let is_meant = |record: &&Record| record.arm.is_none() || record.scheme == *scheme;
        let name = self.schemes[*scheme].clone();
        let scheme_records = self.records.iter().filter(is_meant).cloned().collect();
        Ok((name, scheme_records))
    }
}

/// True if the line has a time to the microsecond: of the connection's beginning, which is missing
/// if nothing was sent, or of the line itself, as `serve` writes it.
fn is_one_connection(line: &str, record: &str) -> bool {
    let before = &line[..line.len() - record.len()];
    let is_time = |word: &str| word.ends_with('Z') && word.contains('T') && word.contains('.');
    record.contains("began=") || before.split_ascii_whitespace().any(is_time)
}

/// The record in a line, if it has one: `scheme=... arm=...` to its end.
fn record_of(line: &str) -> Option<&str> {
    let from = if line.starts_with("scheme=") { 0 } else { line.find(" scheme=")? + 1 };
    let record = &line[from..];
    record.contains(" arm=").then_some(record)
}
