//! Rate, round-trip time, buffer and loss of a path, from a packet capture of TCP on it.
//!
//! Nothing is assumed about the place of the capture. The round trip is the sum of its two parts:
//! from a segment of data to its acknowledgement, and from an acknowledgement to the data that
//! echoes its timestamp. The part that grows has the bottleneck's queue. Its growth is the queueing
//! delay. If data has crossed the bottleneck before it was captured, the spacing of data shows the
//! rate; else that of acknowledgements does.

pub mod capture;

use std::collections::BTreeMap;
use std::net::SocketAddr;

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
#[derive(Clone, Debug, Default)]
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
}

/// One end of the path as seen from the place of the capture.
#[derive(Default)]
struct Part {
    /// Times at which what was timed crossed the bottleneck's queue, and how long it took.
    samples: Vec<(Time, Span)>,
}

impl Part {
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

/// Measures the connection with the most data, and the losses and handshakes of all.
#[must_use]
pub fn measure(segments: &[Segment]) -> Measured {
    let mut connections: BTreeMap<(SocketAddr, SocketAddr), Vec<&Segment>> = BTreeMap::new();
    for segment in segments {
        let ends = (segment.from.min(segment.to), segment.from.max(segment.to));
        connections.entry(ends).or_default().push(segment);
    }
    let mut connections: Vec<_> =
        connections.into_values().map(|segments| Connection::new(&segments)).collect();
    connections.sort_by_key(|connection| (std::cmp::Reverse(connection.bytes), connection.first_at));
    let Some(largest) = connections.first() else { return Measured::default() };
    let mut measured = largest.measure();
    let handshakes = connections.iter().filter_map(|connection| connection.handshake);
    if let Some(least) = handshakes.min().map(Span::as_secs_f64) {
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
        let mut it = Self { first_at: segments[0].at, bytes, ..Self::default() };
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
        let payload = u64::from(offered.unwrap_or(1460).clamp(100, 9000)) - stamps;
        let (mut data, mut acks) = (Unwrap::default(), Unwrap::default());
        // Data that is not acknowledged: its end, its time, whether it passed twice.
        let mut unacknowledged: std::collections::VecDeque<(i64, Time, bool)> = Default::default();
        let mut open_holes: Vec<(i64, i64, Time)> = vec![];
        let (mut highest, mut lowest): (Option<i64>, Option<i64>) = (None, None);
        // The latest acknowledgement with each timestamp that no data has echoed.
        let mut unechoed: std::collections::VecDeque<(u32, Time)> = Default::default();
        let (mut last_data_at, mut last_ack_at) = (Time::ZERO, Time::ZERO);
        let pause = pause(segments.iter().filter(|it| it.from == sender && it.payload > 0).map(|it| it.at));
        let mut has_hole = false;
        for segment in segments {
            let at = segment.at;
            if segment.from == sender && segment.payload > 0 {
                let packets = u64::from(segment.payload).div_ceil(payload);
                let on_link = u64::from(segment.payload) + packets * u64::from(segment.headers);
                it.packets += packets;
                it.arrivals.push((at, on_link));
                let begins = data.place(segment.sequence);
                let ends = begins + i64::from(segment.payload);
                match highest {
                    Some(high) if begins < high => {
                        let filled = open_holes.iter().position(|(from, to, _)| begins < *to && ends > *from);
                        match filled {
                            Some(place) => {
                                let (from, to, since) = open_holes.swap_remove(place);
                                it.holes.push((since, packets));
                                let rest = [(from, begins.min(to)), (ends.max(from), to)];
                                let rest = rest.into_iter().filter(|(from, to)| from < to);
                                open_holes.extend(rest.map(|(from, to)| (from, to, since)).take(2));
                            }
                            None => {
                                let first = unacknowledged.iter().find(|(end, ..)| *end > begins);
                                it.repeats.push((first.map_or(at, |(_, sent_at, _)| *sent_at), packets));
                            }
                        }
                        for (end, _, is_repeated) in &mut unacknowledged {
                            *is_repeated |= *end > begins && *end <= ends;
                        }
                    }
                    Some(high) if begins > high && open_holes.len() < MAX_HOLES => {
                        open_holes.push((high, begins, at))
                    }
                    _ => {}
                }
                if highest.is_none_or(|high| ends > high) {
                    unacknowledged.push_back((ends, at, false));
                }
                highest = highest.max(Some(ends));
                // Behind a pause the sender had nothing to send, and its echo is late for that.
                let is_paced = at.since(last_data_at) < pause;
                last_data_at = at;
                if let Some((_, echo)) = segment.timestamps
                    && let Some(place) = unechoed.iter().position(|(value, _)| *value == echo)
                {
                    let (_, acknowledged_at) = unechoed[place];
                    unechoed.drain(..=place);
                    if is_paced {
                        it.sender.samples.push((at, at.since(acknowledged_at)));
                    }
                }
            } else if segment.to == sender
                && let Some(number) = segment.acknowledges
            {
                // Both directions count alike: an acknowledgement is a place in the data's numbers.
                let place = match acks.0 {
                    None => data.0.map(|last| last + i64::from(number.wrapping_sub(last as u32) as i32)),
                    Some(last) => Some(last + i64::from(number.wrapping_sub(last as u32) as i32)),
                };
                let Some(place) = place else { continue };
                acks.0 = acks.0.max(Some(place));
                if let Some((value, _)) = segment.timestamps {
                    match unechoed.back_mut() {
                        Some((last, latest)) if *last == value => *latest = at,
                        _ => unechoed.push_back((value, at)),
                    }
                    if unechoed.len() > MAX_UNECHOED {
                        unechoed.pop_front();
                    }
                }
                let before = lowest.unwrap_or(place);
                let is_behind_hole = std::mem::take(&mut has_hole) || segment.is_selective;
                has_hole = segment.is_selective || place == before && segment.payload == 0 && !segment.is_syn;
                if place > before {
                    let bytes = (place - before) as u64;
                    let headers = u64::from(segment.headers);
                    it.acknowledged.push((at, bytes + bytes.div_ceil(payload) * headers));
                }
                lowest = lowest.max(Some(place));
                let mut newest = None;
                while let Some((end, sent_at, is_repeated)) = unacknowledged.front().copied()
                    && end <= place
                {
                    unacknowledged.pop_front();
                    newest = (!is_repeated).then_some(sent_at);
                }
                // An acknowledgement of less than two packets after a pause may have been delayed,
                // and that of data behind a hole waited for a lost packet.
                let follows = at.since(std::mem::replace(&mut last_ack_at, at)) < pause.min(DELAYED);
                if let Some(sent_at) = newest
                    && (follows || place - before >= 2 * payload as i64 || at.since(sent_at) > DELAYED * 20)
                    && !is_behind_hole
                {
                    it.receiver.samples.push((sent_at, at.since(sent_at)));
                }
            }
        }
        it
    }

    fn measure(&self) -> Measured {
        let (behind, before) = (self.receiver.growth(), self.sender.growth());
        let is_before = match before == behind {
            true => self.sender.least() > self.receiver.least(),
            false => before > behind,
        };
        let (part, deliveries, lost) = match is_before {
            true => (&self.sender, &self.arrivals, &self.holes),
            false => (&self.receiver, &self.acknowledged, &self.repeats),
        };
        let rate = busy_rate(deliveries);
        let growth = part.growth();
        let longest = growth.as_secs_f64();
        let mut measured = Measured { rate, queue: longest, packets: self.packets, ..Measured::default() };
        let serialised = rate.map_or(Span::MAX, |rate| {
            headstart_units::Bytes::new(4 * 1500) / Rate::from_bits_per_sec((rate.value as u64).max(1))
        });
        measured.was_busy = growth > serialised.max(Span::from_millis(1));
        if let (Some(sender), Some(receiver)) = (self.sender.least(), self.receiver.least()) {
            let least = sender.as_secs_f64() + receiver.as_secs_f64();
            measured.rtt = Some(Estimate { value: least, low: least, high: least });
        }
        let long = growth * NEAR.0 / NEAR.1;
        for (at, packets) in lost {
            let is_long = measured.was_busy && part.until(*at).is_some_and(|queue| queue >= long);
            let count = if is_long { &mut measured.losses.0 } else { &mut measured.losses.1 };
            *count += packets;
        }
        // Losses that a long queue does not make much more likely are not those of its overflow.
        let (full, short) = measured.losses;
        let share = part.share(long).clamp(0.001, 0.999);
        let is_chance = (full as f64 / share) < OVERFLOW * (short as f64 / (1.0 - share));
        if is_chance || short > FEW * full {
            measured.losses = (0, full + short);
        }
        if let (Some(rate), true, 1..) = (rate, measured.was_busy, measured.losses.0) {
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

/// A queue is long from this share of the longest on.
const NEAR: (u64, u64) = (3, 5);

/// How much more likely a long queue makes a loss, at least, if it overflows.
const OVERFLOW: f64 = 5.0;

/// So many times more other losses leave it open whether it overflowed.
const FEW: u64 = 10;

/// A tick of most senders' timestamps (s).
const TICK: f64 = 0.001;

/// Holes and timestamps remembered at most.
const MAX_HOLES: usize = 10_000;
const MAX_UNECHOED: usize = 10_000;

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

/// The rate at which deliveries crowd: the densest half of the rates of windows, halved until it
/// is one number (half-sample mode).
fn busy_rate(deliveries: &[(Time, u64)]) -> Option<Estimate> {
    let windows = deliveries.windows(WINDOW + 1).step_by(WINDOW / 4);
    let mut rates: Vec<f64> = windows
        .filter_map(|window| {
            let bytes: u64 = window[1..].iter().map(|(_, bytes)| bytes).sum();
            let took = window[WINDOW].0.since(window[0].0).as_secs_f64();
            (took > 0.0).then(|| bytes as f64 * 8.0 / took)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let densest = |rates: &[f64]| {
        let half = rates.len().div_ceil(2);
        let starts = 0..=rates.len() - half;
        let start = starts
            .min_by(|a, b| (rates[a + half - 1] / rates[*a]).total_cmp(&(rates[b + half - 1] / rates[*b])));
        start.unwrap_or(0)..start.unwrap_or(0) + half
    };
    if rates.len() < 3 {
        return None;
    }
    let mut crowd = &rates[densest(&rates)];
    let (low, high) = (crowd[0], crowd[crowd.len() - 1]);
    while crowd.len() > 2 {
        crowd = &crowd[densest(crowd)];
    }
    let value = crowd.iter().sum::<f64>() / crowd.len() as f64;
    Some(Estimate { value, low, high })
}
