//! Rate, round-trip time, buffer and loss of a path, from records of its traffic.
//!
//! | module | reads |
//! |---|---|
//! | [`capture`] | packet captures of TCP |
//! | [`frames`] | the link layers of captures |
//! | [`qlog`] | a sender's qlog |
//! | [`logs`] | the log of `headstart link` |
//! | [`texts`] | the words of `ss -ti`, `ping` and `headstart get` |
//!
//! Nothing is assumed about the place of a capture. The round trip is the sum of its two parts:
//! from a segment of data to its acknowledgement, and from an acknowledgement to the data that
//! echoes its timestamp. The part that grows has the bottleneck's queue. Its growth is the
//! queueing delay. If data has crossed the bottleneck before it was captured, the spacing of data
//! shows the rate; else the rate of acknowledgements does.

pub mod capture;
pub mod frames;
pub mod logs;
pub mod qlog;
pub mod texts;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use headstart_units::{Rate, Span, Time};

use capture::Segment;

/// A number and the range in which it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The path as far as it could be measured, with the number of packets behind it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Rate of the bottleneck (bit/s, with IP headers).
    pub rate: Option<Estimate>,
    /// True if a queue stood at the bottleneck: otherwise the rate is a lower bound.
    pub was_busy: bool,
    /// Round-trip time without queue (s).
    pub rtt: Option<Estimate>,
    /// Bytes in the queue when it overflowed.
    pub buffer: Option<Estimate>,
    /// Longest queueing delay (s).
    pub queue: f64,
    /// Packets lost while the queue was long, and while it was not.
    pub losses: (u64, u64),
    /// Packets of data.
    pub packets: u64,
    /// A handshake was captured: otherwise a queue may have stood all the time, and the round trip
    /// is an upper bound, the buffer a lower one.
    pub has_handshake: bool,
    /// The record tells what became of each packet.
    pub has_packets: bool,
    /// Data went the other way too: acknowledgements waited behind it.
    pub both_ways: bool,
    /// The record has the sizes of packets.
    pub has_sizes: bool,
    /// Faults of the record, each a sentence.
    pub notes: Vec<String>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            rate: None,
            was_busy: false,
            rtt: None,
            buffer: None,
            queue: 0.0,
            losses: (0, 0),
            packets: 0,
            has_handshake: false,
            has_packets: true,
            both_ways: false,
            has_sizes: true,
            notes: vec![],
        }
    }
}

/// One end of the path as seen from the place of the capture.
#[derive(Default)]
struct Part {
    /// Times at which what was timed crossed the bottleneck's queue, and how long it took.
    samples: Vec<(Time, Span)>,
}

impl Part {
    /// The queueing delays that all of `parts` met, in order: each over its own least.
    fn over_least<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let samples = parts.flat_map(|part| {
            let least = part.least().unwrap_or(Span::ZERO);
            part.samples.iter().map(move |(at, took)| (*at, took.saturating_sub(least)))
        });
        let mut samples: Vec<_> = samples.collect();
        samples.sort_unstable();
        Self { samples }
    }

    fn least(&self) -> Option<Span> {
        self.samples.iter().map(|(_, took)| *took).min()
    }

    /// Growth over the least while the queue was long: of the samples near the third longest, what
    /// all but one in twenty stay below. The longest are late for other reasons, too.
    fn growth(&self) -> Span {
        let mut sorted: Vec<_> = self.samples.iter().map(|(_, took)| *took).collect();
        sorted.sort_unstable();
        let Some(third) = sorted.iter().rev().nth(2) else { return Span::ZERO };
        let least = sorted[0];
        let long = least + third.saturating_sub(least) * NEAR.0 / NEAR.1;
        let near = &sorted[sorted.partition_point(|took| *took < long)..];
        near[(near.len() - 1) * 19 / 20].saturating_sub(least)
    }

    /// Share of the samples from `long` over the least on.
    fn share(&self, long: Span) -> f64 {
        let least = self.least().unwrap_or(Span::ZERO);
        let count = self.samples.iter().filter(|(_, took)| took.saturating_sub(least) >= long).count();
        count as f64 / self.samples.len().max(1) as f64
    }

    /// The last sample until `at`, over the least: none is taken while holes are filled.
    fn until(&self, at: Time) -> Option<Span> {
        let place = self.samples.partition_point(|(time, _)| *time <= at).saturating_sub(1);
        let (_, took) = self.samples.get(place)?;
        Some(took.saturating_sub(self.least()?))
    }
}

/// Measures the connections that share a receiver with the largest one: their packets share
/// the bottleneck's rate, and the delays of the largest show its queue.
#[must_use]
pub fn measure(segments: &[Segment]) -> Measured {
    let mut connections: BTreeMap<(SocketAddr, SocketAddr), Vec<&Segment>> = BTreeMap::new();
    for segment in segments {
        let ends = (segment.from.min(segment.to), segment.from.max(segment.to));
        connections.entry(ends).or_default().push(segment);
    }
    let connections = connections.into_values().map(|segments| Connection::new(&of_one_place(segments)));
    combined(connections.collect())
}

/// The segments of a connection as one place saw them. A router's or bridge's interfaces have each
/// packet once more; those of a tap have a direction each.
fn of_one_place(mut segments: Vec<&Segment>) -> Vec<&Segment> {
    let Some(first) = segments.first() else { return segments };
    let sender = first.from;
    let is_back = |segment: &Segment| usize::from(segment.from != sender);
    let mut counts: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    let mut order = vec![];
    for segment in &segments {
        let count = counts.entry(segment.interface).or_insert_with(|| {
            order.push(segment.interface);
            [0, 0]
        });
        count[is_back(segment)] += 1;
    }
    let most = [0, 1].map(|way| counts.values().map(|count| count[way]).max().unwrap_or(0));
    let has_most = |interface: &u32, way: usize| 2 * counts[interface][way] >= most[way];
    let whole = order.iter().find(|interface| has_most(interface, 0) && has_most(interface, 1));
    let places = match whole {
        Some(interface) => [Some(interface); 2],
        None => [0, 1].map(|way| order.iter().find(|interface| has_most(interface, way))),
    };
    segments.retain(|segment| places[is_back(segment)] == Some(&segment.interface));
    segments
}

/// Share of the data that goes the other way, from which on it disturbs.
const OTHER_WAY: f64 = 0.05;

fn combined(mut connections: Vec<Connection>) -> Measured {
    connections.sort_by_key(|connection| (std::cmp::Reverse(connection.bytes), connection.first_at));
    let Some((largest, others)) = connections.split_first() else { return Measured::default() };
    let (others, opposite): (Vec<_>, Vec<_>) =
        others.iter().partition(|it| it.receiver_at == largest.receiver_at);
    let mut measured = largest.measure(&others);
    let back: u64 = opposite.iter().filter(|it| it.receiver_at == largest.sender_at).map(|it| it.bytes).sum();
    measured.both_ways = back as f64 > OTHER_WAY * largest.bytes as f64;
    let handshakes = others.iter().filter_map(|connection| connection.handshake).chain(largest.handshake);
    if let Some(least) = handshakes.min().map(Span::as_secs_f64) {
        measured.has_handshake = true;
        // Timestamps tick once in a millisecond: by so much the delays of data may be too short.
        let data = measured.rtt.map_or(least, |rtt| rtt.value);
        let value = least.min(data + TICK);
        measured.rtt = Some(Estimate { value, low: value.min(data), high: value.max(data) });
    }
    measured
}

/// The measured parts of a connection, with data in its main direction only.
#[derive(Default)]
struct Connection {
    first_at: Time,
    /// Address to which the data went, and that from which it came.
    receiver_at: Option<IpAddr>,
    sender_at: Option<IpAddr>,
    bytes: u64,
    packets: u64,
    /// From SYN to the acknowledgement of the SYN-ACK, if neither was repeated.
    handshake: Option<Span>,
    /// From data to its acknowledgement.
    receiver: Part,
    /// From an acknowledgement to the data that echoes it.
    sender: Part,
    /// Times and bytes, as on the link, of data and of what was acknowledged.
    arrivals: Vec<(Time, u64)>,
    acknowledged: Vec<(Time, u64)>,
    /// Times and packets of holes that were filled later, and of data that passed a second time.
    holes: Vec<(Time, u64)>,
    repeats: Vec<(Time, u64)>,
}

/// Sequence numbers without their wrap-around.
#[derive(Default)]
struct Unwrap(Option<i64>);

impl Unwrap {
    fn place(&mut self, number: u32) -> i64 {
        let place = self.0.map_or(0, |last| last + i64::from(number.wrapping_sub(last as u32) as i32));
        let place = if self.0.is_none() { i64::from(number) } else { place };
        self.0 = Some(self.0.map_or(place, |last| last.max(place)));
        place
    }
}

impl Connection {
    fn new(segments: &[&Segment]) -> Self {
        let mut sent: BTreeMap<SocketAddr, u64> = BTreeMap::new();
        for segment in segments {
            *sent.entry(segment.from).or_default() += u64::from(segment.payload);
        }
        let Some((&sender, &bytes)) = sent.iter().max_by_key(|(from, bytes)| (**bytes, **from)) else {
            return Self::default();
        };
        let receiver_at = if segments[0].from == sender { segments[0].to } else { segments[0].from }.ip();
        let (receiver_at, sender_at) = (Some(receiver_at), Some(sender.ip()));
        let mut it = Self { first_at: segments[0].at, receiver_at, sender_at, bytes, ..Self::default() };
        if let Some([syn, answer, last]) = handshake(segments) {
            it.handshake = Some(last.at.since(syn.at));
            // A first flight may fill the queue: only the handshake has the delays without it.
            let (own, other) = match answer.from == sender {
                true => (&mut it.sender, &mut it.receiver),
                false => (&mut it.receiver, &mut it.sender),
            };
            own.samples.push((syn.at, answer.at.since(syn.at)));
            other.samples.push((answer.at, last.at.since(answer.at)));
        }
        let stamps = if segments.iter().any(|it| it.payload > 0 && it.timestamps.is_some()) { 12 } else { 0 };
        let offered = segments.iter().filter_map(|it| it.maximum_segment).min();
        let data = segments.iter().filter(|it| it.from == sender && it.payload > 0);
        let mut progress = Progress {
            full: u64::from(offered.unwrap_or(1460).clamp(100, 9000)) - stamps,
            pause: pause(data.map(|it| it.at)),
            ..Progress::default()
        };
        for segment in segments {
            if segment.from == sender && segment.payload > 0 {
                progress.on_data(segment, &mut it);
            } else if segment.to == sender
                && let Some(number) = segment.acknowledges
            {
                progress.on_ack(segment, number, &mut it);
            }
        }
        it
    }

    fn measure(&self, others: &[&Self]) -> Measured {
        let (behind, before) = (self.receiver.growth(), self.sender.growth());
        let is_before = match before == behind {
            true => self.sender.least() > self.receiver.least(),
            false => before > behind,
        };
        let all = || others.iter().copied().chain([self]);
        let deliveries = all().flat_map(|it| if is_before { &it.arrivals } else { &it.acknowledged });
        let mut deliveries: Vec<_> = deliveries.copied().collect();
        deliveries.sort_unstable();
        let parts = all().map(|it| if is_before { &it.sender } else { &it.receiver });
        let part = &Part::over_least(parts);
        let rate = busy_rate(&deliveries);
        let packets = all().map(|it| it.packets).sum();
        let mut measured = Measured { rate, packets, ..Measured::default() };
        if let (Some(sender), Some(receiver)) = (self.sender.least(), self.receiver.least()) {
            let least = sender.as_secs_f64() + receiver.as_secs_f64();
            measured.rtt = Some(Estimate { value: least, low: least, high: least });
        }
        let serialised = rate.map_or(Span::MAX, |rate| {
            headstart_units::Bytes::new(4 * 1500) / Rate::from_bits_per_sec((rate.value as u64).max(1))
        });
        let growth = part.growth();
        let least = serialised.max(Span::from_millis(1));
        measured.was_busy = growth > least && part.share(least) > BUSY;
        // The queue as each packet was lost. Where it overflows these delays crowd at its limit,
        // whatever else, as a stall of the path, was longer.
        let lost: Vec<_> = all().flat_map(|it| it.holes.iter().chain(&it.repeats)).copied().collect();
        let mut queues: Vec<_> =
            lost.iter().map(|(at, packets)| (part.until(*at).unwrap_or(Span::ZERO), *packets)).collect();
        queues.sort_unstable();
        let crowded: Vec<_> = queues.iter().map(|(queue, _)| queue.as_secs_f64().max(1e-6)).collect();
        let limit = crowd(&crowded).map_or(growth, |crowd| Span::from_micros((crowd.value * 1e6) as u64));
        let long = limit * NEAR.0 / NEAR.1;
        let total: u64 = queues.iter().map(|(_, packets)| packets).sum();
        let full: u64 = queues.iter().filter(|(queue, _)| *queue >= long).map(|(_, packets)| packets).sum();
        // Losses that a long queue does not make much more likely are not due to its overflow.
        let share = part.share(long).clamp(0.001, 0.999);
        let is_chance = (full as f64 / share) < OVERFLOW * ((total - full) as f64 / (1.0 - share));
        let overflows =
            measured.was_busy && limit > serialised && full > 0 && !is_chance && total - full <= FEW * full;
        measured.losses = if overflows { (full, total - full) } else { (0, total) };
        let longest = if overflows { limit } else { growth }.as_secs_f64();
        measured.queue = longest;
        if let (Some(rate), true) = (rate, overflows) {
            let bytes = |rate: f64| rate / 8.0 * longest;
            // Delays that end with an echo are known to a tick.
            let tick = if is_before { TICK * rate.value / 8.0 } else { 0.0 };
            measured.buffer = Some(Estimate {
                value: bytes(rate.value),
                low: bytes(rate.low),
                high: bytes(rate.high) + tick,
            });
        }
        measured
    }
}

/// Half of what receivers wait before they acknowledge a single packet.
const DELAYED: Span = Span::from_millis(20);

/// A connection's data and acknowledgements as far as they have been read.
#[derive(Default)]
struct Progress {
    /// Payload of a full packet: segments of a capture may be several.
    full: u64,
    /// Silence after which data does not follow from the acknowledgement that it echoes.
    pause: Span,
    data: Unwrap,
    acks: Unwrap,
    /// End of the data so far, and of what was acknowledged.
    highest: Option<i64>,
    acknowledged: Option<i64>,
    /// Data that is not acknowledged, in order: its end, its time, whether it passed twice.
    waiting: VecDeque<(i64, Time, bool)>,
    open_holes: Vec<(i64, i64, Time)>,
    /// The latest acknowledgement with each timestamp that no data has echoed.
    unechoed: VecDeque<(u32, Time)>,
    last_data_at: Time,
    last_ack_at: Time,
    /// The receiver waits for something.
    has_hole: bool,
    /// End of the latest data that arrived behind a hole.
    newest_behind: i64,
}

impl Progress {
    fn on_data(&mut self, segment: &Segment, found: &mut Connection) {
        let at = segment.at;
        let packets = u64::from(segment.payload).div_ceil(self.full);
        found.packets += packets;
        found.arrivals.push((at, u64::from(segment.payload) + packets * u64::from(segment.headers)));
        let begins = self.data.place(segment.sequence);
        let ends = begins + i64::from(segment.payload);
        match self.highest {
            Some(high) if begins < high => self.on_late_data(at, begins, ends, packets, found),
            Some(high) if begins > high && self.open_holes.len() < MAX_HOLES => {
                self.open_holes.push((high, begins, at));
            }
            _ => {}
        }
        if self.highest.is_none_or(|high| ends > high) {
            self.waiting.push_back((ends, at, false));
            if self.waiting.len() > MAX_REMEMBERED {
                self.waiting.pop_front();
            }
        }
        self.highest = self.highest.max(Some(ends));
        // Behind a pause the sender had nothing to send, and its echo is late for that.
        let is_paced = at.since(std::mem::replace(&mut self.last_data_at, at)) < self.pause;
        let Some((_, echo)) = segment.timestamps else { return };
        let place = self.unechoed.partition_point(|(value, _)| echo.wrapping_sub(*value) as i32 > 0);
        if let Some((value, acknowledged_at)) = self.unechoed.get(place).copied()
            && value == echo
        {
            self.unechoed.drain(..=place);
            if is_paced {
                found.sender.samples.push((at, at.since(acknowledged_at)));
            }
        }
    }

    /// Data that fills a hole, or that has passed before.
    fn on_late_data(&mut self, at: Time, begins: i64, ends: i64, packets: u64, found: &mut Connection) {
        let first = self.waiting.partition_point(|(end, ..)| *end <= begins);
        match self.open_holes.iter().position(|(from, to, _)| begins < *to && ends > *from) {
            Some(place) => {
                let (from, to, since) = self.open_holes.swap_remove(place);
                found.holes.push((since, packets));
                let rest = [(from, begins.min(to)), (ends.max(from), to)];
                let rest = rest.into_iter().filter(|(from, to)| from < to);
                self.open_holes.extend(rest.map(|(from, to)| (from, to, since)));
            }
            None => {
                let sent_at = self.waiting.get(first).map_or(at, |(_, sent_at, _)| *sent_at);
                found.repeats.push((sent_at, packets));
            }
        }
        let last = self.waiting.partition_point(|(end, ..)| *end <= ends).max(first);
        self.waiting.range_mut(first..last).for_each(|(.., is_repeated)| *is_repeated = true);
    }

    fn on_ack(&mut self, segment: &Segment, number: u32, found: &mut Connection) {
        let at = segment.at;
        // Both directions count alike: an acknowledgement is a place in the data's numbers.
        let Some(known) = self.acks.0.or(self.data.0) else { return };
        let place = known + i64::from(number.wrapping_sub(known as u32) as i32);
        self.acks.0 = self.acks.0.max(Some(place));
        if let Some((value, _)) = segment.timestamps {
            match self.unechoed.back_mut() {
                Some((last, latest)) if *last == value => *latest = at,
                _ => self.unechoed.push_back((value, at)),
            }
            if self.unechoed.len() > MAX_REMEMBERED {
                self.unechoed.pop_front();
            }
        }
        let before = self.acknowledged.unwrap_or(place);
        let is_selective = segment.behind_hole.is_some();
        let is_duplicate = place == before && segment.payload == 0 && !segment.is_syn;
        let waited = std::mem::replace(&mut self.has_hole, is_selective || is_duplicate) || is_selective;
        // Data behind a hole that arrives is answered at once.
        if let Some(end) = segment.behind_hole {
            let end = place + i64::from(end.wrapping_sub(number));
            let arrived = self.waiting.partition_point(|(ends, ..)| *ends < end);
            if let Some((_, sent_at, false)) = self.waiting.get(arrived)
                && end > self.newest_behind
            {
                found.receiver.samples.push((*sent_at, at.since(*sent_at)));
                self.newest_behind = end;
            }
        }
        if place > before {
            let bytes = (place - before) as u64;
            let headers = u64::from(segment.headers) * bytes.div_ceil(self.full);
            found.acknowledged.push((at, bytes + headers));
        }
        self.acknowledged = self.acknowledged.max(Some(place));
        let mut newest = None;
        while let Some((end, sent_at, is_repeated)) = self.waiting.front().copied()
            && end <= place
        {
            self.waiting.pop_front();
            newest = (!is_repeated).then_some(sent_at);
        }
        // An acknowledgement of less than two packets after a pause may have been delayed, and that
        // of data behind a hole waited for a lost packet.
        let follows = at.since(std::mem::replace(&mut self.last_ack_at, at)) < self.pause.min(DELAYED);
        if let Some(sent_at) = newest
            && (follows || place - before >= 2 * self.full as i64 || at.since(sent_at) > DELAYED * 20)
            && !waited
        {
            found.receiver.samples.push((sent_at, at.since(sent_at)));
        }
    }
}

/// Least share of delays longer than an empty queue's, if a queue stood.
const BUSY: f64 = 0.05;

/// A queue is long from this share of the longest on.
const NEAR: (u64, u64) = (3, 5);

/// How much more likely a long queue makes a loss, at least, if it overflows.
const OVERFLOW: f64 = 5.0;

/// So many times more other losses leave it open whether it overflowed.
const FEW: u64 = 10;

/// A tick of most senders' timestamps (s).
const TICK: f64 = 0.001;

/// Holes of a connection at most, and packets and timestamps that wait for their answer.
const MAX_HOLES: usize = 1000;
const MAX_REMEMBERED: usize = 1 << 17;

/// Silence after which data does not follow from the acknowledgement that it echoes: four times
/// the usual distance.
fn pause(arrivals: impl Iterator<Item = Time>) -> Span {
    let arrivals: Vec<_> = arrivals.collect();
    let mut gaps: Vec<_> = arrivals.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2).map_or(Span::MAX, |usual| (*usual * 4).max(Span::from_millis(2)))
}

/// SYN, SYN-ACK and the acknowledgement of that, if none of them was sent twice.
fn handshake<'a>(segments: &[&'a Segment]) -> Option<[&'a Segment; 3]> {
    let syns: Vec<_> = segments.iter().enumerate().filter(|(_, it)| it.is_syn).collect();
    let [(_, syn), (place, answer)] = &syns[..] else { return None };
    let is_pair = syn.acknowledges.is_none() && answer.acknowledges.is_some() && answer.to == syn.from;
    let last = segments[place + 1..].iter().find(|it| it.from == syn.from && it.acknowledges.is_some())?;
    is_pair.then_some([syn, answer, last])
}

/// Deliveries in a window.
const WINDOW: usize = 16;

/// The rate at which deliveries crowd, of windows without a pause.
fn busy_rate(deliveries: &[(Time, u64)]) -> Option<Estimate> {
    let windows = deliveries.windows(WINDOW + 1).step_by(WINDOW / 4);
    let mut rates: Vec<f64> = windows
        .filter_map(|window| {
            let bytes: u64 = window[1..].iter().map(|(_, bytes)| bytes).sum();
            let took = window[WINDOW].0.since(window[0].0);
            let longest = window.windows(2).map(|pair| pair[1].0.since(pair[0].0)).max()?;
            (longest * 5 <= took * 2 && !took.is_zero()).then(|| bytes as f64 * 8.0 / took.as_secs_f64())
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    crowd(&rates).filter(|_| rates.len() >= 3)
}

/// The value at which positive, sorted numbers crowd: the densest half of them, halved until it is
/// one (half-sample mode). The range is the first half's.
fn crowd(sorted: &[f64]) -> Option<Estimate> {
    let densest = |numbers: &[f64]| {
        let half = numbers.len().div_ceil(2);
        let ratio = |start: usize| numbers[start + half - 1] / numbers[start];
        let start = (0..=numbers.len() - half).min_by(|a, b| ratio(*a).total_cmp(&ratio(*b)));
        start.unwrap_or(0)..start.unwrap_or(0) + half
    };
    let mut crowd = sorted.get(densest(sorted)).filter(|half| !half.is_empty())?;
    let (low, high) = (crowd[0], crowd[crowd.len() - 1]);
    while crowd.len() > 2 {
        crowd = &crowd[densest(crowd)];
    }
    let value = crowd.iter().sum::<f64>() / crowd.len() as f64;
    Some(Estimate { value, low, high })
}
