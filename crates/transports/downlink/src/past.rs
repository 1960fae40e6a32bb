//! The largest rate seen on this network.
//!
//! BS §3.1: a client can "leverage past maximum bandwidth observations". For each network, the
//! largest rate of each of the last thirty days with an observation is kept. The old rate of a line
//! that has become slower expires after a month. A day without large transfers changes nothing.
//!
//! The file is JSON, readable by its owner only (it reveals the host's locations), replaced
//! atomically. Concurrent processes take turns. A file of another format is refused, unchanged.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use headstart_startup::prior::Access;
use headstart_units::{Rate, Span, Time};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::estimate::{Estimate, Meaning, Unavailable, plausible};
use crate::network::Network;

/// The observations of networks, in a file.
#[derive(Clone, Debug)]
pub struct Past {
    path: PathBuf,
}

/// Networks stored; the least recently used is removed first.
const MAX_NETWORKS: usize = 64;
/// Days evaluated and stored.
const DAYS: u64 = 30;
/// Most bytes of the file, above any that is written here.
const LONGEST: u64 = 1 << 20;
const VERSION: u32 = 1;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    networks: Vec<Entry>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    network: String,
    access: String,
    days: Vec<Day>,
}

/// The largest rate of a day.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Day {
    seen_at_unix_s: u64,
    bits_per_s: u64,
}

/// Errors of the file.
#[derive(Debug, thiserror::Error)]
#[error("file of networks {}: {reason}", path.display())]
pub struct Error {
    path: PathBuf,
    reason: String,
}

/// The largest recent rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// Rate that a transport achieved.
    pub rate: Rate,
    /// The access technology at that time.
    pub access: Access,
    /// Time of the observation.
    pub seen_at: Time,
}

const SECOND: u64 = 1_000_000_000;

impl Past {
    /// The observations in this file, which need not exist yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The observations of this user: `headstart/networks.json` in the state folder (XDG Base
    /// Directory Specification). `None` if the environment names none.
    #[must_use]
    pub fn of_this_user() -> Option<Self> {
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).and_then(absolute);
        let home = || std::env::var_os("HOME").map(PathBuf::from).and_then(absolute);
        let state = state.or_else(|| home().map(|home| home.join(".local/state")))?;
        Some(Self::new(state.join("headstart/networks.json")))
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The largest rate of the last thirty days on this network.
    ///
    /// # Errors
    /// If the file cannot be read or has another format.
    pub fn best(&self, network: &str, now: Time) -> Result<Option<Best>, Error> {
        let document = self.read()?;
        let Some(entry) = document.networks.iter().find(|entry| entry.network == network) else {
            return Ok(None);
        };
        let now = now.as_nanos() / SECOND;
        let counts = |day: &&Day| now.saturating_sub(day.seen_at_unix_s) <= DAYS * 86_400;
        let best = entry.days.iter().filter(counts).max_by_key(|day| day.bits_per_s);
        Ok(best.map(|day| Best {
            rate: Rate::from_bits_per_sec(day.bits_per_s),
            // Names were validated when the file was parsed.
            access: entry.access.parse().unwrap_or(Access::Unknown),
            seen_at: Time::from_nanos(day.seen_at_unix_s.saturating_mul(SECOND)),
        }))
    }

    /// Stores that a transport achieved `rate` through this network, not application-limited.
    ///
    /// # Errors
    /// If the rate is implausible, or the file has another format or cannot be read or written.
    pub fn observe(&self, network: &str, rate: Rate, access: Access, now: Time) -> Result<(), Error> {
        plausible(rate).map_err(|reason| self.error(reason))?;
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)
                .map_err(|error| self.error(format!("cannot make its folder: {error}")))?;
        }
        let _others_wait = self.lock().map_err(|error| self.error(format!("cannot lock it: {error}")))?;
        let mut document = self.read()?;
        let now = now.as_nanos() / SECOND;
        let known = document.networks.iter().position(|entry| entry.network == network);
        let mut entry = match known {
            Some(at) => document.networks.remove(at),
            None => Entry { network: network.to_owned(), access: String::new(), days: Vec::new() },
        };
        entry.access = access.name().to_owned();
        entry.note(Day { seen_at_unix_s: now, bits_per_s: rate.as_bits_per_sec() });
        // In order of use, so that the first is the one to remove.
        document.networks.push(entry);
        let surplus = document.networks.len().saturating_sub(MAX_NETWORKS);
        document.networks.drain(..surplus);
        self.write(&document).map_err(|error| self.error(format!("cannot write it: {error}")))
    }

    fn error(&self, reason: String) -> Error {
        Error { path: self.path.clone(), reason }
    }

    fn lock(&self) -> io::Result<File> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn read(&self) -> Result<Document, Error> {
        let mut text = String::new();
        match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Document { version: VERSION, networks: Vec::new() });
            }
            other => other
                .and_then(|file| file.take(LONGEST).read_to_string(&mut text))
                .map_err(|error| self.error(format!("cannot read it: {error}")))?,
        };
        let refuse =
            |reason: String| self.error(format!("{reason}; it was left as it is, remove it to begin anew"));
        let document: Document = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        if document.version != VERSION {
            return Err(refuse(format!("found version {}, expected {VERSION}", document.version)));
        }
        for entry in &document.networks {
            if let Err(error) = entry.access.parse::<Access>() {
                return Err(refuse(format!("found access `{}`, {error}", entry.access.escape_debug())));
            }
            for day in &entry.days {
                plausible(Rate::from_bits_per_sec(day.bits_per_s)).map_err(refuse)?;
            }
        }
        Ok(document)
    }

    fn write(&self, document: &Document) -> io::Result<()> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        let mut text = serde_json::to_vec_pretty(document)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)
    }
}

impl Entry {
    /// Keeps the largest rate of each of the last days.
    fn note(&mut self, new: Day) {
        let day = |one: &Day| one.seen_at_unix_s / 86_400;
        match self.days.iter_mut().find(|old| day(old) == day(&new)) {
            Some(old) if old.bits_per_s <= new.bits_per_s => *old = new,
            Some(_) => {}
            None => self.days.push(new),
        }
        self.days.sort_by_key(|day| day.seen_at_unix_s);
        let surplus = self.days.len().saturating_sub(DAYS as usize);
        self.days.drain(..surplus);
    }
}

/// The estimate for this network.
///
/// # Errors
/// If there is none, or the file cannot be used.
pub fn estimate(past: Option<&Past>, network: Option<&Network>, now: Time) -> Result<Estimate, Unavailable> {
    let past = past.ok_or_else(|| Unavailable::Absent("no file of networks was given".into()))?;
    let network = network.ok_or_else(|| Unavailable::Absent("there is no default route".into()))?;
    let best = past.best(&network.key(), now).map_err(|error| Unavailable::Refused(error.to_string()))?;
    let best = best.ok_or_else(|| {
        Unavailable::Absent("found no measurement of this network in the last 30 days".into())
    })?;
    let age: Span = now.since(best.seen_at);
    Ok(Estimate {
        reported: best.rate,
        expected: best.rate,
        access: best.access,
        age: Some(age),
        meaning: Meaning::Measured,
        detail: "largest rate in 30 days".into(),
    })
}
