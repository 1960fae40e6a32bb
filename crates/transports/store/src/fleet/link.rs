//! The commands that the server is sent, and its answers.

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;

use headstart_startup::history::Record;
use redis::{Cmd, Connection, FromRedisValue, Value};

use super::Options;
use super::address::Address;
use crate::slot::{self, Slot};

/// Shortest lease: a look-up and a handshake on a machine that is busy.
const SHORTEST_LEASE: Duration = Duration::from_millis(200);
/// Keys that are read in one step of a listing.
const LISTED: usize = 1000;

/// Record and lease in one step. Keys: record, lease. Arguments: this host, the shortest and the
/// longest lease in milliseconds; between them it is as many round trips as [`Options::lease`]
/// says, by the record's bytes from 32 on. Without a record there is nothing to lease; a server
/// that is full gives the record without one. Answer: record, milliseconds, 1 if this host has it.
const LOOK_UP: &str = "\
local record = redis.call('GET', KEYS[1])
if not record then return {false, 0, 0} end
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then
  return {record, math.max(redis.call('PTTL', KEYS[2]), 1), 0}
end
local time = #record == 64 and math.ceil(struct.unpack('<I8', record, 33) * 8 / 1e6) or 0
time = math.min(math.max(time, ARGV[2]), ARGV[3])
redis.pcall('SET', KEYS[2], ARGV[1], 'PX', time)
return {record, time, 1}";

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

/// Why an exchange with the server failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LinkError(pub(super) String);

/// The server's answer for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    None,
    /// The value is no record of that peer.
    Damaged,
    Record {
        record: Record,
        /// Time for which a host has the lease.
        lease: Duration,
        /// This host has the lease.
        is_ours: bool,
    },
}

/// Answers of one exchange.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// Answers, in the order of the peers that were looked up.
    pub records: Vec<Answer>,
    /// Peers whose record the server refused.
    pub unwritten: Vec<IpAddr>,
    /// Writes to keys that another program uses: they hold no text.
    pub damaged: u64,
    /// The reason why the server refused writes, if it did.
    pub full: Option<String>,
}

/// A connection to the server.
pub struct Remote {
    connection: Connection,
    prefix: String,
    shown: String,
    scripts: Scripts,
    /// Exchanges so far.
    count: u64,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.shown)
    }
}

/// Names of the scripts on the server: their hashes.
#[derive(Debug, Default)]
struct Scripts {
    look_up: String,
    write: String,
    remove: String,
}

impl Remote {
    /// Connects and hands over the scripts. No step waits longer than `timeout`, nor does any
    /// later answer.
    ///
    /// # Errors
    /// If the server is away, does not answer, or refuses name, password or commands.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Self, LinkError> {
        let shown = address.to_string();
        let failed = |error: redis::RedisError| failure(&shown, &error);
        let connection = address.client.get_connection_with_timeout(timeout).map_err(failed)?;
        connection.set_read_timeout(Some(timeout)).map_err(failed)?;
        connection.set_write_timeout(Some(timeout)).map_err(failed)?;
        let (prefix, scripts) = (address.prefix.clone(), Scripts::default());
        let mut remote = Self { connection, prefix, shown, scripts, count: 0 };
        let mut load = |script: &str| remote.ask(redis::cmd("SCRIPT").arg("LOAD").arg(script));
        remote.scripts = Scripts { look_up: load(LOOK_UP)?, write: load(WRITE)?, remove: load(REMOVE)? };
        // It has a part of the peers. A user who may not ask is told by MOVED.
        let info: Result<String, _> = remote.ask(redis::cmd("INFO").arg("cluster"));
        if info.is_ok_and(|info| info.contains("cluster_enabled:1")) {
            return Err(remote.is_of_a_cluster());
        }
        Ok(remote)
    }

    /// One command and its answer.
    fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, LinkError> {
        command.query(&mut self.connection).map_err(|error| failure(&self.shown, &error))
    }

    fn key(&self, peer: IpAddr) -> String {
        format!("{}{{{peer}}}", self.prefix)
    }

    /// The replies in order; the server's errors are values. A last question, whose answer is
    /// known, shows that none of them belongs to an earlier one.
    // Not the pipeline of `redis`: it waits for every answer, even after the first one that did not
    // come in time.
    fn query(&mut self, commands: &[Cmd]) -> Result<Vec<Value>, LinkError> {
        self.count += 1;
        let mark = format!("headstart-{}", self.count);
        let failed = |error: redis::RedisError| failure(&self.shown, &error);
        let mut packed: Vec<u8> = commands.iter().flat_map(Cmd::get_packed_command).collect();
        packed.extend(redis::cmd("PING").arg(&mark).get_packed_command());
        self.connection.send_packed_command(&packed).map_err(failed)?;
        let mut reply = || self.connection.recv_response().map_err(failed);
        let replies = commands.iter().map(|_| reply()).collect::<Result<_, _>>()?;
        match reply()? {
            Value::BulkString(bytes) if bytes == mark.as_bytes() => Ok(replies),
            // A user may be allowed nothing but scripts.
            Value::ServerError(error) if error.code() == "NOPERM" => Ok(replies),
            _ => Err(LinkError(format!("{}: found answers to other questions", self.shown))),
        }
    }

    /// Looks peers up for `host` and writes records, in one go.
    pub(super) fn exchange(
        &mut self,
        host: u64,
        wanted: &[IpAddr],
        writes: &[(IpAddr, Record)],
        options: &Options,
    ) -> Result<Answers, LinkError> {
        let mut commands = Vec::with_capacity(wanted.len() + writes.len());
        for peer in wanted {
            let key = self.key(*peer);
            let lease = format!("{key}:lease");
            let mut command = redis::cmd("EVALSHA");
            command.arg(&self.scripts.look_up).arg(2).arg(&key).arg(lease);
            let longest = millis(options.lease);
            command.arg(host).arg(millis(SHORTEST_LEASE).min(longest)).arg(longest);
            commands.push(command);
        }
        commands.extend(self.writes(writes, options.lifetime));
        let mut replies = self.query(&commands)?.into_iter();
        let mut answers = Answers::default();
        for peer in wanted {
            let answer = match replies.next() {
                Some(Value::Array(parts)) => answer(*peer, &parts),
                Some(Value::ServerError(error)) if !is_of_another_type(&error) => {
                    return Err(self.unexpected(&error));
                }
                _ => Answer::Damaged,
            };
            answers.records.push(answer);
        }
        for (peer, _) in writes {
            match replies.next() {
                // Somebody else's key is left as it is, and does not keep the others waiting.
                Some(Value::ServerError(error)) if is_of_another_type(&error) => answers.damaged += 1,
                Some(Value::ServerError(error)) => {
                    if !matches!(error.code(), "OOM" | "READONLY" | "MISCONF") {
                        return Err(self.unexpected(&error));
                    }
                    answers.unwritten.push(*peer);
                    answers.full = Some(format!("{}: {}", self.shown, printable(&format!("{error:?}"))));
                }
                _ => {}
            }
        }
        Ok(answers)
    }

    fn is_of_a_cluster(&self) -> LinkError {
        LinkError(format!("{}: found a node of a cluster, expected a server of its own", self.shown))
    }

    fn unexpected(&self, error: &redis::ServerError) -> LinkError {
        match error.code() {
            "MOVED" | "ASK" => self.is_of_a_cluster(),
            code => {
                let text = format!("{code} {}", error.details().unwrap_or(""));
                LinkError(format!("{}: {}", self.shown, printable(&text)))
            }
        }
    }

    fn writes(&self, writes: &[(IpAddr, Record)], lifetime: Duration) -> Vec<Cmd> {
        let command = |(peer, record): &(IpAddr, Record)| {
            let mut command = redis::cmd("EVALSHA");
            command.arg(&self.scripts.write).arg(1).arg(self.key(*peer));
            command.arg(&slot::emit(*peer, record)[..]).arg(millis(lifetime));
            command
        };
        writes.iter().map(command).collect()
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
            let (next, keys): (u64, Vec<String>) = self.ask(&scan)?;
            let (mut peers, mut commands) = (vec![], vec![]);
            for key in &keys {
                match key[self.prefix.len()..].trim_matches(['{', '}']).parse() {
                    Ok(peer) => {
                        peers.push(peer);
                        commands.push(redis::cmd("GET").arg(key).take());
                    }
                    Err(_) => damaged += 1,
                }
            }
            // The server refuses a request without commands.
            let replies = if commands.is_empty() { vec![] } else { self.query(&commands)? };
            for (peer, reply) in peers.iter().zip(replies) {
                match reply {
                    // It has expired since.
                    Value::Nil => {}
                    Value::BulkString(bytes) => match parse(*peer, &bytes) {
                        Some(record) => each(*peer, record),
                        None => damaged += 1,
                    },
                    _ => damaged += 1,
                }
            }
            if next == 0 {
                return Ok(damaged);
            }
            cursor = next;
        }
    }

    /// Writes records that are newer than the server's.
    ///
    /// # Errors
    /// If the server refuses one, or cannot be reached; others may be written.
    pub fn put(&mut self, records: &[(IpAddr, Record)], lifetime: Duration) -> Result<(), LinkError> {
        for part in records.chunks(LISTED) {
            let commands = self.writes(part, lifetime);
            self.check(&commands)?;
        }
        Ok(())
    }

    /// Removes the records of peers, unless there is a newer one by now.
    ///
    /// # Errors
    /// If the server refuses, or cannot be reached; others may be removed.
    pub fn remove(&mut self, records: &[(IpAddr, Record)]) -> Result<(), LinkError> {
        for part in records.chunks(LISTED) {
            let command = |(peer, record): &(IpAddr, Record)| {
                let mut command = redis::cmd("EVALSHA");
                command.arg(&self.scripts.remove).arg(1).arg(self.key(*peer));
                command.arg(&slot::emit(*peer, record)[..]);
                command
            };
            let commands: Vec<Cmd> = part.iter().map(command).collect();
            self.check(&commands)?;
        }
        Ok(())
    }

    fn check(&mut self, commands: &[Cmd]) -> Result<(), LinkError> {
        for reply in self.query(commands)? {
            if let Value::ServerError(error) = reply {
                return Err(self.unexpected(&error));
            }
        }
        Ok(())
    }
}

/// A system says of a server that hangs: "resource temporarily unavailable".
fn failure(shown: &str, error: &redis::RedisError) -> LinkError {
    if error.is_timeout() {
        return LinkError(format!("{shown}: found no answer in time, expected one"));
    }
    LinkError(format!("{shown}: {}", printable(&error.to_string())))
}

/// Letters of a server's text that are shown.
const SHOWN: usize = 200;

/// The beginning of what a server says, without control characters: it goes to a terminal or a log.
fn printable(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).map(|it| if it.is_control() { '?' } else { it }).collect();
    if text.chars().nth(SHOWN).is_some() { shown + "..." } else { shown }
}

/// The key holds a list or another structure: an answer of the server, or of its script.
fn is_of_another_type(error: &redis::ServerError) -> bool {
    error.code() == "WRONGTYPE" || error.details().is_some_and(|details| details.contains("WRONGTYPE"))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn answer(peer: IpAddr, parts: &[Value]) -> Answer {
    match parts {
        [Value::Nil, ..] => Answer::None,
        [Value::BulkString(bytes), Value::Int(left), Value::Int(ours)] => match parse(peer, bytes) {
            None => Answer::Damaged,
            Some(record) => {
                let lease = Duration::from_millis(u64::try_from(*left).unwrap_or(0));
                Answer::Record { record, lease, is_ours: *ours == 1 }
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

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use headstart_units::Rate;

    use super::*;

    /// A server that gives each command the answer for its first word and its last argument.
    fn server(answer: impl Fn(&str, &str) -> String + Send + 'static) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("redis://{}/", listener.local_addr().expect("bound"));
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            let mut reader = BufReader::new(stream.try_clone().expect("a handle"));
            let number = move |reader: &mut BufReader<_>| -> Option<usize> {
                let mut line = String::new();
                reader.read_line(&mut line).ok()?;
                line.get(1..)?.trim_end().parse().ok()
            };
            while let Some(count) = number(&mut reader) {
                let words: Option<Vec<String>> = (0..count)
                    .map(|_| {
                        let mut word = vec![0; number(&mut reader)? + 2];
                        reader.read_exact(&mut word).ok()?;
                        Some(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned())
                    })
                    .collect();
                let Some(words) = words else { return };
                let told = answer(&words[0], words.last().map_or("", |last| last));
                if (&stream).write_all(told.as_bytes()).is_err() {
                    return;
                }
            }
        });
        url.parse().expect("an address")
    }

    fn bulk(text: &str) -> String {
        format!("${}\r\n{text}\r\n", text.len())
    }

    fn told(of_script: &'static str) -> Result<Answers, LinkError> {
        let address = server(move |command, last| match command {
            "SCRIPT" => bulk("0123"),
            "INFO" => bulk(""),
            "PING" => bulk(last),
            "EVALSHA" => of_script.to_owned(),
            _ => "+OK\r\n".to_owned(),
        });
        let mut remote = Remote::connect(&address, Duration::from_secs(30)).expect("a server");
        remote.exchange(1, &[IpAddr::from([192, 0, 2, 1])], &[], &Options::default())
    }

    /// Each further answer would be taken for one to the question before it.
    #[test]
    fn a_server_with_an_answer_too_many_is_left() {
        let whole = "*3\r\n$-1\r\n:0\r\n:0\r\n";
        assert_eq!(told(whole).map(|it| it.records), Ok(vec![Answer::None]));
        for more in ["*3\r\n$-1\r\n:0\r\n:0\r\n+OK\r\n", "+OK\r\n+OK\r\n+OK\r\n"] {
            let error = told(more).expect_err("out of step");
            assert!(error.0.ends_with("found answers to other questions"), "{error}");
        }
    }

    #[test]
    fn the_words_of_a_server_are_cut_and_have_no_control_characters() {
        let long = format!("-ERR \u{1b}[31mred {}\r\n", "x".repeat(10_000)).leak();
        let error = told(long).expect_err("an error");
        assert!(!error.0.contains('\u{1b}') && error.0.contains("?[31mred xxx"), "{error}");
        assert!(error.0.len() < 300, "{} bytes", error.0.len());
    }

    #[test]
    fn a_value_is_a_record_of_the_peer_that_was_asked_for_and_has_its_length() {
        let [one, other] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        let record = Record { btl_bw: Rate::from_mbit_per_sec(50), ..Record::default() };
        let bytes = slot::emit(one, &record);
        assert!(parse(one, &bytes).is_some());
        assert_eq!(parse(other, &bytes), None, "another peer's");
        assert_eq!(parse(one, &bytes[..63]), None);
        assert_eq!(parse(one, &[&bytes[..], &[0]].concat()), None);
    }

    #[test]
    fn a_server_that_hangs_is_named_as_one() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("redis://{}/", listener.local_addr().expect("bound"));
        let address = url.parse().expect("an address");
        let error = Remote::connect(&address, Duration::from_millis(50)).expect_err("no answer");
        assert_eq!(error.0, format!("{url}: found no answer in time, expected one"));
    }
}
