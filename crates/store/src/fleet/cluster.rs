//! A cluster of servers: which node has a peer's keys, and what nodes answer that do not have them
//! (Redis Cluster Specification).

use core::time::Duration;
use std::thread::{Builder, JoinHandle};

use headstart_host::Deadline;
use redis::{Client, Value};

use super::address::{Address, Endpoint};
use super::link::{LinkError, Reply, Request, Scripts};
use super::node::Node;

/// Slots of any cluster.
const SLOTS: usize = 16384;
/// Nodes that are remembered, at most: the specification's own limit.
const MAX_NODES: usize = 1000;
/// Nodes that a request is sent to one after the other, at most.
const MAX_HOPS: usize = 5;
/// Least time between two questions for the owners of slots.
const REFRESH: Duration = Duration::from_millis(500);
/// First pause before a node is tried again; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The nodes that have slots, and others that requests were directed to.
pub(super) struct Cluster {
    shown: String,
    /// Its user, password and TLS are those of every node.
    pattern: Client,
    timeout: Duration,
    nodes: Vec<Member>,
    /// Place in `nodes` of each slot's node.
    owners: Vec<Option<usize>>,
    /// Slots without a node.
    unowned: usize,
    /// The owners may be others by now.
    is_stale: bool,
    refreshed: Deadline,
    /// The last failure of a request by a node that is there.
    refused: Option<LinkError>,
}

struct Member {
    endpoint: Endpoint,
    state: MemberState,
    /// Next pause, after a failure.
    pause: Duration,
}

enum MemberState {
    Up(Box<Node>),
    Away {
        error: LinkError,
        until: Deadline,
    },
    /// Tried again by a thread of its own, so that the others' requests need not wait for it.
    Tried {
        error: LinkError,
        thread: JoinHandle<Result<Node, LinkError>>,
    },
}

impl Member {
    fn new(endpoint: Endpoint, state: MemberState) -> Self {
        Self { endpoint, state, pause: FIRST_PAUSE }
    }

    fn error(&self) -> Option<&LinkError> {
        match &self.state {
            MemberState::Up(_) => None,
            MemberState::Away { error, .. } | MemberState::Tried { error, .. } => Some(error),
        }
    }

    fn node(&mut self) -> Result<&mut Node, LinkError> {
        match &mut self.state {
            MemberState::Up(node) => Ok(node),
            MemberState::Away { error, .. } | MemberState::Tried { error, .. } => Err(error.clone()),
        }
    }

    fn fail(&mut self, error: LinkError) {
        self.state = MemberState::Away { error, until: Deadline::after(self.pause) };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Takes the result of the last attempt, or begins the next one if it is time. True if the
    /// state is another one.
    fn poll(&mut self, pattern: &Client, timeout: Duration) -> bool {
        match &mut self.state {
            MemberState::Up(_) => false,
            MemberState::Tried { thread, .. } if !thread.is_finished() => false,
            MemberState::Away { until, .. } if until.left().is_some() => false,
            MemberState::Away { error, .. } => {
                let error = error.clone();
                match connecting(&self.endpoint, pattern, timeout) {
                    Ok(thread) => self.state = MemberState::Tried { error, thread },
                    Err(error) => self.fail(error),
                }
                false
            }
            MemberState::Tried { error, .. } => {
                let error = error.clone();
                self.take(error);
                true
            }
        }
    }

    /// Waits for an attempt that was begun.
    fn take(&mut self, error: LinkError) {
        let before = MemberState::Away { error: error.clone(), until: Deadline::after(Duration::ZERO) };
        match core::mem::replace(&mut self.state, before) {
            // Only a thread that panicked has no result.
            MemberState::Tried { thread, .. } => match thread.join().unwrap_or(Err(error)) {
                Ok(node) => (self.state, self.pause) = (MemberState::Up(Box::new(node)), FIRST_PAUSE),
                Err(error) => self.fail(error),
            },
            other => self.state = other,
        }
    }
}

fn connect(endpoint: &Endpoint, pattern: &Client, timeout: Duration) -> Result<Node, LinkError> {
    let client = endpoint.client_as(pattern).map_err(|error| LinkError(format!("{endpoint}: {error}")))?;
    Node::connect(&client, &endpoint.to_string(), timeout).map(|(node, _)| node)
}

fn connecting(
    endpoint: &Endpoint,
    pattern: &Client,
    timeout: Duration,
) -> Result<JoinHandle<Result<Node, LinkError>>, LinkError> {
    let (endpoint, pattern) = (endpoint.clone(), pattern.clone());
    Builder::new()
        .name("headstart-node".to_owned())
        .spawn(move || connect(&endpoint, &pattern, timeout))
        .map_err(|error| LinkError(format!("no thread: {error}")))
}

/// A request on its way.
#[derive(Clone, Copy)]
struct Step {
    request: usize,
    /// Place in `nodes`.
    node: usize,
    /// The node is told that it was asked for by name: its slot is still another one's.
    asks: bool,
    /// One key instead of two.
    is_plain: bool,
}

/// Meaning of a node's answer for a step.
enum Next {
    Done(Reply),
    Again(Step),
    /// The node cannot be used as it is.
    Fails(LinkError),
}

impl Cluster {
    /// Asks the address's nodes in turn for the others, and connects to all that have slots.
    pub fn connect(address: &Address, timeout: Duration) -> Result<(Self, Scripts), LinkError> {
        let mut failure = LinkError(format!("{address}: no node"));
        for seed in &address.clients {
            match Self::connect_by(seed, address, timeout) {
                Ok(connected) => return Ok(connected),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn connect_by(seed: &Client, address: &Address, timeout: Duration) -> Result<(Self, Scripts), LinkError> {
        let shown = address.to_string();
        let endpoint = Endpoint::of(seed).ok_or_else(|| LinkError(format!("{shown}: no host")))?;
        let (node, scripts) = Node::connect(seed, &endpoint.to_string(), timeout)?;
        let mut cluster = Self {
            shown,
            pattern: seed.clone(),
            timeout,
            nodes: vec![Member::new(endpoint, MemberState::Up(Box::new(node)))],
            owners: vec![None; SLOTS],
            unowned: SLOTS,
            is_stale: true,
            refreshed: Deadline::after(Duration::ZERO),
            refused: None,
        };
        cluster.refresh()?;
        for member in &mut cluster.nodes {
            // All at once; each of them takes the time-out at most.
            member.poll(&cluster.pattern, timeout);
        }
        for member in &mut cluster.nodes {
            if let Some(error) = member.error().cloned() {
                member.take(error);
            }
        }
        cluster.check_any()?;
        Ok((cluster, scripts))
    }

    /// An error if there is no node that could answer.
    fn check_any(&self) -> Result<(), LinkError> {
        if self.nodes.iter().any(|member| member.error().is_none()) {
            return Ok(());
        }
        let first = self.nodes.iter().find_map(Member::error);
        Err(first.cloned().unwrap_or_else(|| LinkError(format!("{}: no node has slots", self.shown))))
    }

    /// Slots without a node that answers, in words.
    pub fn missing(&self) -> Option<String> {
        let is_owned = |place: usize| self.owners.contains(&Some(place));
        let away =
            self.nodes.iter().enumerate().find(|(at, member)| member.error().is_some() && is_owned(*at));
        let error = away.and_then(|(_, member)| member.error()).or(self.refused.as_ref());
        if let Some(error) = error {
            return Some(error.to_string());
        }
        (self.unowned > 0).then(|| format!("{}: {} of {SLOTS} slots have no node", self.shown, self.unowned))
    }

    /// Number of nodes that have slots.
    ///
    /// # Errors
    /// If one is away, or a slot has none.
    pub fn serving(&self) -> Result<usize, LinkError> {
        self.missing().map_or(Ok(self.nodes.len()), |missing| Err(LinkError(missing)))
    }

    /// One of the nodes.
    pub fn node(&mut self, place: usize) -> Result<&mut Node, LinkError> {
        let gone = || LinkError("the cluster has changed".to_owned());
        self.nodes.get_mut(place).ok_or_else(gone)?.node()
    }

    /// The replies in order. Requests to different nodes are under way at once.
    ///
    /// # Errors
    /// If no node is there.
    pub fn query(&mut self, requests: &[Request]) -> Result<Vec<Reply>, LinkError> {
        self.poll();
        self.check_any()?;
        let mut replies: Vec<Option<Reply>> = requests.iter().map(|_| None).collect();
        let mut steps = vec![];
        for (request, wanted) in requests.iter().enumerate() {
            match self.owners[slot_of(&wanted.peer.to_string())] {
                Some(node) => steps.push(Step { request, node, asks: false, is_plain: false }),
                None => replies[request] = Some(Err(LinkError("a slot has no node".to_owned()))),
            }
        }
        for _ in 0..MAX_HOPS {
            steps = self.send_and_receive(requests, steps, &mut replies);
        }
        let moving = || Err(LinkError(format!("{}: a slot is on its way", self.shown)));
        let replies: Vec<Reply> = replies.into_iter().map(|reply| reply.unwrap_or_else(moving)).collect();
        if !replies.is_empty() {
            self.refused = replies.iter().find_map(|reply| reply.as_ref().err().cloned());
            self.is_stale |= self.refused.is_some();
        }
        Ok(replies)
    }

    /// One exchange with each node that has steps; those that are to be sent elsewhere.
    fn send_and_receive(
        &mut self,
        requests: &[Request],
        mut steps: Vec<Step>,
        replies: &mut [Option<Reply>],
    ) -> Vec<Step> {
        steps.sort_by_key(|step| (step.node, step.request));
        let of_one_node = |one: &Step, other: &Step| one.node == other.node;
        let asking = redis::cmd("ASKING");
        for part in steps.chunk_by(of_one_node) {
            let member = &mut self.nodes[part[0].node];
            let commands = part.iter().flat_map(|step| {
                let request = &requests[step.request];
                let plain = request.instead.as_ref().filter(|_| step.is_plain);
                step.asks.then_some(&asking).into_iter().chain([plain.unwrap_or(&request.command)])
            });
            if let Ok(node) = member.node()
                && let Err(error) = node.send(commands)
            {
                self.lose(part[0].node, error);
            }
        }
        let mut again = vec![];
        for part in steps.chunk_by(of_one_node) {
            for step in part {
                match self.receive(*step) {
                    Next::Done(reply) => replies[step.request] = Some(reply),
                    Next::Again(step) => again.push(step),
                    Next::Fails(error) => {
                        self.lose(step.node, error.clone());
                        replies[step.request] = Some(Err(error));
                    }
                }
            }
        }
        again
    }

    fn receive(&mut self, step: Step) -> Next {
        let node = match self.nodes[step.node].node() {
            Ok(node) => node,
            Err(error) => return Next::Done(Err(error)),
        };
        if step.asks
            && let Err(error) = node.receive()
        {
            return Next::Fails(error);
        }
        let error = match node.receive() {
            Ok(Value::ServerError(error)) => error,
            Ok(value) => return Next::Done(Ok(value)),
            Err(error) => return Next::Fails(error),
        };
        let told = LinkError(format!(
            "{}: {} {}",
            self.nodes[step.node].endpoint,
            error.code(),
            error.details().unwrap_or("")
        ));
        match error.code() {
            "MOVED" | "ASK" => {
                let from = &self.nodes[step.node].endpoint;
                let Some((slot, endpoint)) = error.details().and_then(|text| directed(text, from)) else {
                    return Next::Done(Err(told));
                };
                let Some(node) = self.place_of(&endpoint) else { return Next::Done(Err(told)) };
                let has_moved = error.code() == "MOVED";
                if has_moved {
                    self.owners[slot] = Some(node);
                    self.is_stale = true;
                }
                Next::Again(Step { node, asks: !has_moved, ..step })
            }
            // One of the keys is still there and the other is not, or not yet.
            "TRYAGAIN" if !step.is_plain => Next::Again(Step { is_plain: true, ..step }),
            "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN" | "LOADING" => Next::Done(Err(told)),
            // It has lost them: a new connection hands them over again.
            "NOSCRIPT" => Next::Fails(told),
            _ => Next::Done(Ok(Value::ServerError(error))),
        }
    }

    /// The place of a node that requests are directed to, which may be a new one.
    fn place_of(&mut self, endpoint: &Endpoint) -> Option<usize> {
        if let Some(place) = self.nodes.iter().position(|member| member.endpoint == *endpoint) {
            return Some(place);
        }
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        let mut member = Member::new(endpoint.clone(), away("not asked yet"));
        match connect(endpoint, &self.pattern, self.timeout) {
            Ok(node) => member.state = MemberState::Up(Box::new(node)),
            Err(error) => member.fail(error),
        }
        self.nodes.push(member);
        Some(self.nodes.len() - 1)
    }

    fn lose(&mut self, place: usize, error: LinkError) {
        self.nodes[place].fail(error);
        self.is_stale = true;
    }

    /// Tries nodes again that are away, and asks for the owners of slots where they may be others.
    fn poll(&mut self) {
        let mut has_changed = false;
        for member in &mut self.nodes {
            has_changed |= member.poll(&self.pattern, self.timeout);
        }
        // A node that is away for long has its slots taken over; slots without a node get one.
        let is_away = self.nodes.iter().any(|member| member.error().is_some());
        self.is_stale |= has_changed || is_away || self.unowned > 0;
        if self.is_stale && self.refreshed.left().is_none() {
            // If nobody knows: there is a next time.
            let _ = self.refresh();
        }
    }

    /// Asks any node for the owners of all slots.
    fn refresh(&mut self) -> Result<(), LinkError> {
        self.refreshed = Deadline::after(REFRESH);
        let mut failure = LinkError(format!("{}: no node answers", self.shown));
        for place in 0..self.nodes.len() {
            let Ok(node) = self.nodes[place].node() else { continue };
            match node.ask::<Value>(redis::cmd("CLUSTER").arg("SLOTS")) {
                Ok(told) => {
                    let ranges = ranges(&told, &self.nodes[place].endpoint);
                    let shown = &self.shown;
                    let ranges =
                        ranges.ok_or_else(|| LinkError(format!("{shown}: found no list of slots")))?;
                    self.take(ranges);
                    return Ok(());
                }
                Err(error) => {
                    self.lose(place, error.clone());
                    failure = error;
                }
            }
        }
        Err(failure)
    }

    /// Takes a new list of owners. Nodes that have no slots are left out.
    fn take(&mut self, ranges: Vec<SlotRange>) {
        let mut known = core::mem::take(&mut self.nodes);
        self.owners.fill(None);
        for SlotRange { first, last, endpoint } in ranges {
            let place = self.nodes.iter().position(|member| member.endpoint == endpoint).or_else(|| {
                let before = known.iter().position(|member| member.endpoint == endpoint);
                let member = before.map(|place| known.swap_remove(place));
                let has_room = self.nodes.len() < MAX_NODES;
                has_room.then(|| {
                    self.nodes.push(member.unwrap_or_else(|| Member::new(endpoint, away("not asked yet"))));
                    self.nodes.len() - 1
                })
            });
            self.owners[first..=last].fill(place);
        }
        self.unowned = self.owners.iter().filter(|owner| owner.is_none()).count();
        self.is_stale = false;
    }
}

/// The state of a node that is to be tried at once.
fn away(why: &str) -> MemberState {
    MemberState::Away { error: LinkError(why.to_owned()), until: Deadline::after(Duration::ZERO) }
}

/// Slots of one node, by the answer to CLUSTER SLOTS.
#[derive(Debug, PartialEq, Eq)]
struct SlotRange {
    first: usize,
    last: usize,
    endpoint: Endpoint,
}

/// The slots and their nodes. A node without a name is at the host that was asked.
fn ranges(told: &Value, asked: &Endpoint) -> Option<Vec<SlotRange>> {
    let Value::Array(told) = told else { return None };
    let range = |told: &Value| {
        let Value::Array(parts) = told else { return None };
        let [Value::Int(first), Value::Int(last), Value::Array(master), ..] = &parts[..] else { return None };
        let [host, Value::Int(port), ..] = &master[..] else { return None };
        let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
        let host = match host {
            Value::Nil => "",
            Value::BulkString(bytes) => str::from_utf8(bytes).ok()?,
            Value::SimpleString(text) => text,
            _ => return None,
        };
        let endpoint = Endpoint { host: named(host, asked), port: u16::try_from(*port).ok()? };
        (first <= last && last < SLOTS).then_some(SlotRange { first, last, endpoint })
    };
    told.iter().map(range).collect()
}

/// A redirection: `3999 127.0.0.1:6381`.
fn directed(text: &str, from: &Endpoint) -> Option<(usize, Endpoint)> {
    let (slot, endpoint) = text.split_once(' ')?;
    let (host, port) = endpoint.rsplit_once(':')?;
    let slot = slot.parse().ok().filter(|slot| *slot < SLOTS)?;
    Some((slot, Endpoint { host: named(host, from), port: port.parse().ok()? }))
}

fn named(host: &str, asked: &Endpoint) -> String {
    if matches!(host, "" | "?") { asked.host.clone() } else { host.to_owned() }
}

/// The slot of a key whose hash tag is `tag`: CRC-16/XMODEM.
fn slot_of(tag: &str) -> usize {
    let crc = tag.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(byte) << 8), |crc, _| {
            let carry = if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            (crc << 1) ^ carry
        })
    });
    usize::from(crc) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(host: &str, port: u16) -> Endpoint {
        Endpoint { host: host.to_owned(), port }
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        // Its check value of the CRC; the tests of a real cluster compare addresses.
        assert_eq!(slot_of("123456789"), 0x31c3);
    }

    #[test]
    fn redirections_are_read_and_others_are_not() {
        let asked = endpoint("asked", 1);
        for (text, expected) in [
            ("3999 127.0.0.1:6381", Some((3999, endpoint("127.0.0.1", 6381)))),
            ("1 2001:db8::1:6381", Some((1, endpoint("2001:db8::1", 6381)))),
            ("1 :6381", Some((1, endpoint("asked", 6381)))),
            ("1 ?:6381", Some((1, endpoint("asked", 6381)))),
            ("16384 127.0.0.1:6381", None),
            ("1 127.0.0.1:66000", None),
            ("127.0.0.1:6381", None),
            ("", None),
        ] {
            assert_eq!(directed(text, &asked), expected, "{text}");
        }
    }

    #[test]
    fn a_list_of_slots_with_a_range_that_cannot_be_is_refused() {
        let asked = endpoint("asked", 1);
        let list = |first, last, host: Value| {
            let master = Value::Array(vec![host, Value::Int(6381), Value::BulkString(b"id".to_vec())]);
            Value::Array(vec![Value::Array(vec![Value::Int(first), Value::Int(last), master])])
        };
        let host = || Value::BulkString(b"node".to_vec());
        let expected = |host| vec![SlotRange { first: 0, last: 16383, endpoint: endpoint(host, 6381) }];
        assert_eq!(ranges(&list(0, 16383, host()), &asked), Some(expected("node")));
        assert_eq!(ranges(&list(0, 16383, Value::Nil), &asked), Some(expected("asked")));
        for (first, last) in [(0, 16384), (-1, 5), (6, 5)] {
            assert_eq!(ranges(&list(first, last, host()), &asked), None, "{first}..={last}");
        }
        assert_eq!(ranges(&Value::Okay, &asked), None);
    }
}
