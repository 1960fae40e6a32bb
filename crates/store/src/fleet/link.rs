//! The server's address and the commands that it is sent.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;
use core::time::Duration;
use std::path::{Path, PathBuf};

use headstart_host::read_text_at_most;
use headstart_startup::history::Record;
use redis::{Client, Connection, ConnectionInfo, IntoConnectionInfo, Pipeline, TlsCertificates, Value};

use super::Options;
use crate::slot::{self, Slot};

/// First bytes of every key, unless the address has others.
const PREFIX: &str = "headstart:";
/// Most bytes of a file with a password or a certificate.
const MAX_FILE_BYTES: usize = 1 << 20;
/// Keys that are read in one step of a listing.
const LISTED: usize = 1000;

/// Record and lease in one step. Keys: record, lease. Arguments: this host, the lease in
/// milliseconds. Without a record there is nothing to lease; a server that is full gives the record
/// without one.
const LOOK_UP: &str = "\
local record = redis.call('GET', KEYS[1])
if not record then return {false, 0} end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then
  return {record, math.max(redis.call('PTTL', KEYS[2]), 1)}
end
redis.pcall('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {record, 0}";

/// The newest record wins. Key: record. Arguments: record, lifetime in milliseconds. The time is at
/// byte 16 of the record, in nanoseconds; as a double of Lua's, it is exact to 256 of them.
const WRITE: &str = "\
local held = redis.call('GET', KEYS[1])
if held and #held == 64 and struct.unpack('<I8', held, 17) > struct.unpack('<I8', ARGV[1], 17) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";

/// Removes a record if it is not newer than a time. Key: record. Argument: a record of that time.
const REMOVE: &str = "\
local held = redis.call('GET', KEYS[1])
if held and #held == 64 and struct.unpack('<I8', held, 17) > struct.unpack('<I8', ARGV[1], 17) then
  return 0
end
return redis.call('DEL', KEYS[1])";

/// Address of a fleet's history: `valkey://HOST:PORT/DATABASE`, `valkeys://` for TLS,
/// `valkey+unix:///PATH` for a socket of this host (`redis` instead of `valkey` as well).
///
/// Before the host: `USER:PASSWORD@`. After a question mark, separated by `&`:
///
/// | parameter | meaning |
/// |---|---|
/// | `password-file=FILE` | the password is the file's first line: others see command lines |
/// | `ca=FILE` | certificates (PEM) to trust, instead of the system's |
/// | `certificate=FILE`, `key=FILE` | this host's own, where the server asks for one |
/// | `prefix=TEXT` | first bytes of every key: `headstart:` if it is left out |
#[derive(Clone)]
pub struct Address {
    client: Box<Client>,
    prefix: String,
    shown: String,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for AddressError {}

/// Schemes of an address.
const SCHEMES: [&str; 6] =
    ["valkey://", "valkeys://", "redis://", "rediss://", "valkey+unix://", "redis+unix://"];

impl Address {
    /// True if `text` is meant as an address, and not as the name of a file.
    #[must_use]
    pub fn is_meant_by(text: &str) -> bool {
        text.contains("://")
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (place, parameters) = text.split_once('?').unwrap_or((text, ""));
        // A password must not reach a log.
        let shown = match (place.split_once("://"), place.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            _ => place.to_owned(),
        };
        let refuse = |found: &str| {
            AddressError(format!(
                "found {found}, expected {SCHEMES:?} and a server, such as `valkey://localhost:6379/`"
            ))
        };
        // A fragment would switch off the check of the server's name.
        if !SCHEMES.iter().any(|scheme| place.starts_with(scheme)) || place.contains('#') {
            return Err(refuse(&format!("`{shown}`")));
        }
        let mut info =
            place.into_connection_info().map_err(|error| refuse(&format!("`{shown}` ({error})")))?;
        let (mut prefix, mut ca, mut certificate, mut key) = (PREFIX.to_owned(), None, None, None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("prefix", text)) if !text.contains(['{', '}', '*', '?', '[', ']', '\\']) => {
                    text.clone_into(&mut prefix)
                }
                Some(("password-file", file)) => {
                    let text = read(Path::new(file))?;
                    let redis = info.redis_settings().clone().set_password(text.lines().next().unwrap_or(""));
                    info = info.set_redis_settings(redis);
                }
                Some(("ca", file)) => ca = Some(PathBuf::from(file)),
                Some(("certificate", file)) => certificate = Some(PathBuf::from(file)),
                Some(("key", file)) => key = Some(PathBuf::from(file)),
                _ => {
                    return Err(AddressError(format!(
                        "found `{parameter}`, expected password-file, ca, certificate, key or prefix"
                    )));
                }
            }
        }
        Ok(Self { client: Box::new(client(info, ca, certificate, key)?), prefix, shown })
    }
}

fn read(file: &Path) -> Result<String, AddressError> {
    read_text_at_most(file, MAX_FILE_BYTES)
        .map_err(|error| AddressError(format!("{}: {error}", file.display())))
}

fn client(
    info: ConnectionInfo,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Client, AddressError> {
    let bytes = |file: Option<PathBuf>| file.map(|file| read(&file).map(String::into_bytes)).transpose();
    let client_tls = match (bytes(certificate)?, bytes(key)?) {
        (Some(client_cert), Some(client_key)) => Some(redis::ClientTlsConfig { client_cert, client_key }),
        (None, None) => None,
        _ => return Err(AddressError("found one of certificate and key, expected both or none".to_owned())),
    };
    let root_cert = bytes(ca)?;
    let made = match (&client_tls, &root_cert) {
        (None, None) => Client::open(info),
        _ => Client::build_with_tls(info, TlsCertificates { client_tls, root_cert }),
    };
    made.map_err(|error| AddressError(format!("found an address that cannot be used ({error})")))
}

/// Why an exchange with the server failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError(String);

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for LinkError {}

/// The server's answer for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    None,
    /// The value is no record of that peer.
    Damaged,
    Record {
        record: Record,
        /// Another host has the lease, for that long.
        other_host: Option<Duration>,
    },
}

/// Answers of one exchange.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In the order of the peers that were asked for.
    pub records: Vec<Answer>,
    /// Peers whose record was not written, and the reason.
    pub refused: Vec<IpAddr>,
    pub reason: Option<String>,
}

/// A connection to the server.
pub struct Remote {
    connection: Connection,
    prefix: String,
    shown: String,
    look_up: String,
    write: String,
    remove: String,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.shown)
    }
}

impl Remote {
    /// Connects and hands over the scripts. No step waits longer than `timeout`, nor does any
    /// later answer.
    ///
    /// # Errors
    /// If the server is away, does not answer, or refuses name, password or commands.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Self, LinkError> {
        let failed = |error: redis::RedisError| LinkError(format!("{address}: {error}"));
        let mut connection = address.client.get_connection_with_timeout(timeout).map_err(failed)?;
        connection.set_read_timeout(Some(timeout)).map_err(failed)?;
        connection.set_write_timeout(Some(timeout)).map_err(failed)?;
        let mut load = |script: &str| -> Result<String, LinkError> {
            redis::cmd("SCRIPT").arg("LOAD").arg(script).query(&mut connection).map_err(failed)
        };
        let (look_up, write, remove) = (load(LOOK_UP)?, load(WRITE)?, load(REMOVE)?);
        let (prefix, shown) = (address.prefix.clone(), address.shown.clone());
        Ok(Self { connection, prefix, shown, look_up, write, remove })
    }

    fn key(&self, peer: IpAddr) -> String {
        format!("{}{{{peer}}}", self.prefix)
    }

    fn failed(&self, error: &redis::RedisError) -> LinkError {
        LinkError(format!("{}: {error}", self.shown))
    }

    /// The answers in order, errors of single commands among them.
    fn query(&mut self, pipeline: &Pipeline) -> Result<Vec<Value>, LinkError> {
        // Not by the pipeline's own method: it waits for every answer, even after the first one
        // that did not come in time.
        let packed = pipeline.get_packed_pipeline();
        self.connection.send_packed_command(&packed).map_err(|error| self.failed(&error))?;
        let answers: Result<_, _> = (0..pipeline.len()).map(|_| self.connection.recv_response()).collect();
        answers.map_err(|error| self.failed(&error))
    }

    /// Looks peers up for `host` and writes records, in one go.
    pub(super) fn exchange(
        &mut self,
        host: u64,
        wanted: &[IpAddr],
        writes: &[(IpAddr, Record)],
        options: &Options,
    ) -> Result<Answers, LinkError> {
        let mut pipeline = redis::pipe();
        for peer in wanted {
            let key = self.key(*peer);
            let lease = format!("{key}:lease");
            pipeline.cmd("EVALSHA").arg(&self.look_up).arg(2).arg(key).arg(lease);
            pipeline.arg(host).arg(millis(options.lease));
        }
        self.add_writes(&mut pipeline, writes, options.lifetime);
        let mut values = self.query(&pipeline)?.into_iter();
        let mut answers = Answers::default();
        for peer in wanted {
            let answer = match values.next() {
                Some(Value::Array(parts)) => answer(*peer, &parts),
                Some(Value::ServerError(error)) => return Err(self.unexpected(&error)),
                _ => Answer::Damaged,
            };
            answers.records.push(answer);
        }
        for (peer, _) in writes {
            if let Some(Value::ServerError(error)) = values.next() {
                if !matches!(error.code(), "OOM" | "READONLY" | "MISCONF") {
                    return Err(self.unexpected(&error));
                }
                answers.refused.push(*peer);
                answers.reason = Some(format!("{}: {error:?}", self.shown));
            }
        }
        Ok(answers)
    }

    fn unexpected(&self, error: &redis::ServerError) -> LinkError {
        LinkError(format!("{}: {} {}", self.shown, error.code(), error.details().unwrap_or("")))
    }

    fn add_writes(&self, pipeline: &mut Pipeline, writes: &[(IpAddr, Record)], lifetime: Duration) {
        for (peer, record) in writes {
            pipeline.cmd("EVALSHA").arg(&self.write).arg(1).arg(self.key(*peer));
            pipeline.arg(&slot::emit(*peer, record)[..]).arg(millis(lifetime));
        }
    }

    /// All records on the server, in no order, some hundred at a time: what is not a record is
    /// counted. A record that is written meanwhile may be missing or come twice.
    ///
    /// # Errors
    /// If the server cannot be asked.
    pub fn records(&mut self, each: &mut dyn FnMut(IpAddr, Record)) -> Result<u64, LinkError> {
        let (mut cursor, mut damaged) = (0_u64, 0);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{}{{*}}", self.prefix)).arg("COUNT").arg(LISTED);
            let (next, keys): (u64, Vec<String>) =
                scan.query(&mut self.connection).map_err(|error| self.failed(&error))?;
            if !keys.is_empty() {
                // Not MGET: the keys may be in several slots of a cluster.
                let mut pipeline = redis::pipe();
                for key in &keys {
                    pipeline.cmd("GET").arg(key);
                }
                for (key, value) in keys.iter().zip(self.query(&pipeline)?) {
                    let peer = key[self.prefix.len()..].trim_matches(['{', '}']).parse().ok();
                    match (value, peer) {
                        // It has expired since.
                        (Value::Nil, _) => {}
                        (Value::BulkString(bytes), Some(peer)) => match parse(peer, &bytes) {
                            Some(record) => each(peer, record),
                            None => damaged += 1,
                        },
                        _ => damaged += 1,
                    }
                }
            }
            if next == 0 {
                return Ok(damaged);
            }
            cursor = next;
        }
    }

    /// Writes records that are newer than those of the server.
    ///
    /// # Errors
    /// If the server refuses one, or cannot be reached; those before it are written.
    pub fn put(&mut self, records: &[(IpAddr, Record)], lifetime: Duration) -> Result<(), LinkError> {
        for part in records.chunks(LISTED) {
            let mut pipeline = redis::pipe();
            self.add_writes(&mut pipeline, part, lifetime);
            self.check(&pipeline)?;
        }
        Ok(())
    }

    /// Removes the records of peers, unless there is a newer one by now.
    ///
    /// # Errors
    /// If the server refuses, or cannot be reached; those before it are removed.
    pub fn remove(&mut self, records: &[(IpAddr, Record)]) -> Result<(), LinkError> {
        for part in records.chunks(LISTED) {
            let mut pipeline = redis::pipe();
            for (peer, record) in part {
                pipeline.cmd("EVALSHA").arg(&self.remove).arg(1).arg(self.key(*peer));
                pipeline.arg(&slot::emit(*peer, record)[..]);
            }
            self.check(&pipeline)?;
        }
        Ok(())
    }

    fn check(&mut self, pipeline: &Pipeline) -> Result<(), LinkError> {
        for value in self.query(pipeline)? {
            if let Value::ServerError(error) = value {
                return Err(self.unexpected(&error));
            }
        }
        Ok(())
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn answer(peer: IpAddr, parts: &[Value]) -> Answer {
    match parts {
        [Value::Nil, _] => Answer::None,
        [Value::BulkString(bytes), Value::Int(left)] => match parse(peer, bytes) {
            None => Answer::Damaged,
            Some(record) => {
                let left = u64::try_from(*left).ok().filter(|left| *left > 0).map(Duration::from_millis);
                Answer::Record { record, other_host: left }
            }
        },
        _ => Answer::Damaged,
    }
}

/// The record of that peer. A host that can write to the server can write anything: the checksum
/// finds accidents, the gates of a start bound the rest.
fn parse(peer: IpAddr, bytes: &[u8]) -> Option<Record> {
    match slot::parse(bytes.try_into().ok()?) {
        Slot::Used(found, record) if found == peer => Some(record),
        _ => None,
    }
}
