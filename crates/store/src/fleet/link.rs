//! The commands that the server is sent, and its answers.

use core::fmt;
use core::net::IpAddr;
use core::time::Duration;

use headstart_startup::history::Record;
use redis::{Cmd, Value};

use super::Options;
use super::address::Address;
use super::cluster::Cluster;
use super::node::Node;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError(pub(super) String);

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
    /// The node that would have it is away.
    Away,
    /// The value is no record of that peer.
    Damaged,
    Record {
        record: Record,
        /// Time for which a host has the lease.
        lease: Duration,
        /// That host is this one.
        is_ours: bool,
    },
}

/// Answers of one exchange.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In the order of the peers that were asked for.
    pub records: Vec<Answer>,
    /// Peers whose record was not written.
    pub unwritten: Vec<IpAddr>,
    /// Writes to keys that hold no text: of somebody else.
    pub damaged: u64,
    /// Writes of `unwritten` that the server refused: the node of the others is away.
    pub refused: u64,
    /// Its reason.
    pub full: Option<String>,
}

/// A command about a peer.
pub(super) struct Request {
    pub peer: IpAddr,
    pub command: Cmd,
    /// The same for one key, where a cluster cannot have both at once.
    pub instead: Option<Cmd>,
}

/// The server's answer to a request, or the reason why the peer's node has none.
pub(super) type Reply = Result<Value, LinkError>;

/// A server, or a cluster of them.
enum Way {
    One(Box<Node>),
    Cluster(Box<Cluster>),
}

/// A connection to the server.
pub struct Remote {
    way: Way,
    prefix: String,
    shown: String,
    scripts: Scripts,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({})", self.shown)
    }
}

/// Names of the scripts on the server: their hashes, the same on every node of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Scripts {
    look_up: String,
    write: String,
    remove: String,
}

impl Scripts {
    pub fn load(node: &mut Node) -> Result<Self, LinkError> {
        let mut load = |script: &str| node.ask(redis::cmd("SCRIPT").arg("LOAD").arg(script));
        Ok(Self { look_up: load(LOOK_UP)?, write: load(WRITE)?, remove: load(REMOVE)? })
    }
}

impl Remote {
    /// Connects and hands over the scripts. No step waits longer than `timeout`, nor does any
    /// later answer.
    ///
    /// # Errors
    /// If the server is away, does not answer, or refuses name, password or commands. Of a cluster,
    /// if that is so for all nodes.
    pub fn connect(address: &Address, timeout: Duration) -> Result<Self, LinkError> {
        let (way, scripts) = if address.is_cluster {
            let (cluster, scripts) = Cluster::connect(address, timeout)?;
            (Way::Cluster(Box::new(cluster)), scripts)
        } else {
            let client = address.clients.first().ok_or_else(|| LinkError(format!("{address}: no server")))?;
            let (mut node, scripts) = Node::connect(client, &address.to_string(), timeout)?;
            // A part of the peers would pass for all. A user who may not ask is told by MOVED.
            let told: Result<String, _> = node.ask(redis::cmd("INFO").arg("cluster"));
            if told.is_ok_and(|told| told.contains("cluster_enabled:1")) {
                return Err(is_of_a_cluster(&address.to_string()));
            }
            (Way::One(Box::new(node)), scripts)
        };
        Ok(Self { way, prefix: address.prefix.clone(), shown: address.to_string(), scripts })
    }

    /// Nodes of a cluster that are away.
    pub(super) fn missing(&self) -> Option<String> {
        match &self.way {
            Way::One(_) => None,
            Way::Cluster(cluster) => cluster.missing(),
        }
    }

    fn key(&self, peer: IpAddr) -> String {
        format!("{}{{{peer}}}", self.prefix)
    }

    /// The replies in order.
    fn query(&mut self, requests: &[Request]) -> Result<Vec<Reply>, LinkError> {
        match &mut self.way {
            Way::Cluster(cluster) => cluster.query(requests),
            Way::One(node) => {
                node.send(requests.iter().map(|request| &request.command))?;
                requests.iter().map(|_| node.receive().map(Ok)).collect()
            }
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
        let mut requests = Vec::with_capacity(wanted.len() + writes.len());
        for peer in wanted {
            let key = self.key(*peer);
            let lease = format!("{key}:lease");
            let mut command = redis::cmd("EVALSHA");
            command.arg(&self.scripts.look_up).arg(2).arg(&key).arg(lease);
            let longest = millis(options.lease);
            command.arg(host).arg(millis(SHORTEST_LEASE).min(longest)).arg(longest);
            requests.push(Request { peer: *peer, command, instead: Some(get(&key)) });
        }
        requests.extend(self.writes(writes, options.lifetime));
        let mut replies = self.query(&requests)?.into_iter();
        let mut answers = Answers::default();
        for peer in wanted {
            let answer = match replies.next() {
                Some(Ok(Value::Array(parts))) => answer(*peer, &parts),
                // Without its lease, while its slot moves.
                Some(Ok(Value::Nil)) => Answer::None,
                Some(Ok(bytes @ Value::BulkString(_))) => {
                    answer(*peer, &[bytes, Value::Int(0), Value::Int(1)])
                }
                Some(Ok(Value::ServerError(error))) if is_of_another_type(&error) => Answer::Damaged,
                Some(Ok(Value::ServerError(error))) => return Err(self.unexpected(&error)),
                Some(Err(_)) => Answer::Away,
                _ => Answer::Damaged,
            };
            answers.records.push(answer);
        }
        for (peer, _) in writes {
            match replies.next() {
                // Somebody else's key is left as it is, and does not keep the others waiting.
                Some(Ok(Value::ServerError(error))) if is_of_another_type(&error) => answers.damaged += 1,
                Some(Ok(Value::ServerError(error))) => {
                    if !matches!(error.code(), "OOM" | "READONLY" | "MISCONF") {
                        return Err(self.unexpected(&error));
                    }
                    answers.unwritten.push(*peer);
                    answers.refused += 1;
                    answers.full = Some(format!("{}: {error:?}", self.shown));
                }
                Some(Err(_)) => answers.unwritten.push(*peer),
                _ => {}
            }
        }
        Ok(answers)
    }

    fn unexpected(&self, error: &redis::ServerError) -> LinkError {
        match error.code() {
            "MOVED" | "ASK" => is_of_a_cluster(&self.shown),
            code => LinkError(format!("{}: {code} {}", self.shown, error.details().unwrap_or(""))),
        }
    }

    fn writes(&self, writes: &[(IpAddr, Record)], lifetime: Duration) -> Vec<Request> {
        let request = |(peer, record): &(IpAddr, Record)| {
            let mut command = redis::cmd("EVALSHA");
            command.arg(&self.scripts.write).arg(1).arg(self.key(*peer));
            command.arg(&slot::emit(*peer, record)[..]).arg(millis(lifetime));
            Request { peer: *peer, command, instead: None }
        };
        writes.iter().map(request).collect()
    }

    /// All records on the server, in no order, some hundred at a time: what is not a record is
    /// counted. A record that is written meanwhile may be missing or come twice.
    ///
    /// # Errors
    /// If the server cannot be asked; of a cluster, if any node cannot.
    pub fn records(&mut self, each: &mut dyn FnMut(IpAddr, Record)) -> Result<u64, LinkError> {
        let nodes = match &mut self.way {
            Way::One(_) => 1,
            Way::Cluster(cluster) => cluster.serving()?,
        };
        let mut damaged = 0;
        for number in 0..nodes {
            damaged += self.records_of(number, each)?;
        }
        Ok(damaged)
    }

    fn records_of(&mut self, number: usize, each: &mut dyn FnMut(IpAddr, Record)) -> Result<u64, LinkError> {
        let (mut cursor, mut damaged) = (0_u64, 0);
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(format!("{}{{*}}", self.prefix)).arg("COUNT").arg(LISTED);
            let (next, keys): (u64, Vec<String>) = match &mut self.way {
                Way::One(node) => node.ask(&scan)?,
                Way::Cluster(cluster) => cluster.node(number)?.ask(&scan)?,
            };
            // Not MGET: the keys may be in several slots of a cluster.
            let mut requests = vec![];
            for key in &keys {
                match key[self.prefix.len()..].trim_matches(['{', '}']).parse() {
                    Ok(peer) => requests.push(Request { peer, command: get(key), instead: None }),
                    Err(_) => damaged += 1,
                }
            }
            let replies = self.query(&requests)?;
            for (Request { peer, .. }, reply) in requests.iter().zip(replies) {
                match reply? {
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

    /// Writes records that are newer than those of the server.
    ///
    /// # Errors
    /// If the server refuses one, or cannot be reached; others may be written.
    pub fn put(&mut self, records: &[(IpAddr, Record)], lifetime: Duration) -> Result<(), LinkError> {
        for part in records.chunks(LISTED) {
            let requests = self.writes(part, lifetime);
            self.check(&requests)?;
        }
        Ok(())
    }

    /// Removes the records of peers, unless there is a newer one by now.
    ///
    /// # Errors
    /// If the server refuses, or cannot be reached; others may be removed.
    pub fn remove(&mut self, records: &[(IpAddr, Record)]) -> Result<(), LinkError> {
        for part in records.chunks(LISTED) {
            let request = |(peer, record): &(IpAddr, Record)| {
                let mut command = redis::cmd("EVALSHA");
                command.arg(&self.scripts.remove).arg(1).arg(self.key(*peer));
                command.arg(&slot::emit(*peer, record)[..]);
                Request { peer: *peer, command, instead: None }
            };
            let requests: Vec<Request> = part.iter().map(request).collect();
            self.check(&requests)?;
        }
        Ok(())
    }

    fn check(&mut self, requests: &[Request]) -> Result<(), LinkError> {
        for reply in self.query(requests)? {
            if let Value::ServerError(error) = reply? {
                return Err(self.unexpected(&error));
            }
        }
        Ok(())
    }
}

fn is_of_a_cluster(shown: &str) -> LinkError {
    LinkError(format!(
        "{shown}: found a node of a cluster, expected an address as `valkey+cluster://HOST:PORT/`"
    ))
}

/// The key holds a list or another structure: an answer of the server, or of its script.
fn is_of_another_type(error: &redis::ServerError) -> bool {
    error.code() == "WRONGTYPE" || error.details().is_some_and(|details| details.contains("WRONGTYPE"))
}

fn get(key: &str) -> Cmd {
    let mut command = redis::cmd("GET");
    command.arg(key);
    command
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
