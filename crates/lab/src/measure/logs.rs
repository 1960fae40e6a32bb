//! A sender's qlog, and the log of `headstart link`, as the parts of a connection.

use std::collections::BTreeMap;
use std::io::BufRead;

use anyhow::{Context as _, Result, ensure};
use headstart_emu::record::{ParsedEvent, ParsedLog};
use headstart_net::Direction;
use headstart_units::{Span, Time};
use serde_json::Value;

use super::{Connection, Measured, combined};

/// Measures the direction of a link's log that carried more.
///
/// # Errors
/// If the log is malformed.
pub fn link(content: impl BufRead) -> Result<Measured> {
    let log = ParsedLog::read(content)?;
    let sent = |way: Direction| {
        let departures = log
            .entries
            .iter()
            .filter(move |it| it.direction == way && matches!(it.event, ParsedEvent::Departure { .. }));
        departures.map(|it| u64::from(it.bytes)).sum::<u64>()
    };
    let main = Direction::BOTH.into_iter().max_by_key(|way| sent(*way)).unwrap_or(Direction::Down);
    let mut it = Connection { bytes: sent(main), ..Connection::default() };
    let mut back = Span::MAX;
    let mut inside: BTreeMap<(bool, u64), Time> = BTreeMap::new();
    for line in &log.entries {
        let is_main = line.direction == main;
        let key = (is_main, line.number);
        match line.event {
            ParsedEvent::Arrival { .. } => {
                inside.insert(key, line.at);
                it.packets += u64::from(is_main);
            }
            ParsedEvent::Departure { .. } => {
                let Some(at) = inside.remove(&key) else { continue };
                let took = line.at.since(at);
                if is_main {
                    it.receiver.samples.push((at, took));
                    it.acknowledged.push((line.at, u64::from(line.bytes)));
                } else {
                    // The other direction may have a queue of its own.
                    back = back.min(took);
                }
            }
            ParsedEvent::Drop { .. } => {
                it.repeats.extend(inside.remove(&key).filter(|_| is_main).map(|at| (at, 1)));
            }
        }
    }
    if back < Span::MAX {
        it.sender.samples.push((Time::ZERO, back));
        it.handshake = it.receiver.least().map(|there| there + back);
    }
    Ok(combined(vec![it]))
}

/// Headers of UDP and IPv4, which the sizes of a qlog leave out.
const HEADERS: u64 = 28;

/// Measures what the host that wrote a qlog sent: either form, of the drafts from 2 on.
///
/// # Errors
/// If it is no qlog, or has no packets that were sent and acknowledged.
pub fn qlog(content: &[u8]) -> Result<Measured> {
    // RFC 7464 begins each record with this, which JSON does not know.
    let plain: Vec<u8> = content.iter().map(|byte| if *byte == 0x1e { b' ' } else { *byte }).collect();
    let mut log = Log::read(&plain, false)?;
    if log.has_unsent {
        log = Log::read(&plain, true)?;
    }
    ensure!(
        !log.it.acknowledged.is_empty(),
        "found no packet that was sent and acknowledged, expected a sender's qlog"
    );
    // The sender's own part of a round trip takes no time.
    log.it.sender.samples.push((Time::ZERO, Span::ZERO));
    Ok(combined(vec![log.it]))
}

#[derive(Default)]
struct Log {
    it: Connection,
    now_ms: f64,
    is_relative: bool,
    /// Packets that are not acknowledged, by their space and number: time and bytes.
    waiting: BTreeMap<(u8, u64), (Time, u64)>,
    sent_at: BTreeMap<(u8, u64), Time>,
    /// Ranges of acknowledgements end before their last number, as some stacks log them.
    ends_before: bool,
    /// An acknowledgement had a number that no packet had yet.
    has_unsent: bool,
}

/// Packets of 1-RTT: the last of the spaces.
const DATA: u8 = 2;

impl Log {
    fn read(content: &[u8], ends_before: bool) -> Result<Self> {
        let mut log = Self { ends_before, ..Self::default() };
        for record in serde_json::Deserializer::from_slice(content).into_iter::<Value>() {
            let record = match record {
                Ok(record) => record,
                // A log that was interrupted ends within a record.
                Err(error) if error.is_eof() => break,
                Err(error) => return Err(error).context("found no JSON, expected a qlog"),
            };
            match record["traces"].as_array() {
                Some(traces) => {
                    let trace = traces.first().context("found no trace, expected one")?;
                    log.begin(trace);
                    trace["events"].as_array().into_iter().flatten().for_each(|event| log.add(event));
                }
                None if record["trace"].is_object() => log.begin(&record["trace"]),
                None => log.add(&record),
            }
        }
        Ok(log)
    }

    fn begin(&mut self, trace: &Value) {
        let format = trace["common_fields"]["time_format"].as_str().unwrap_or_default();
        self.is_relative = matches!(format, "delta" | "relative_to_previous_event");
    }

    fn add(&mut self, event: &Value) {
        let time = event["time"].as_f64().unwrap_or_default();
        self.now_ms = if self.is_relative { self.now_ms + time } else { time };
        let at = Time::from_nanos((self.now_ms * 1e6) as u64);
        let data = &event["data"];
        let header = &data["header"];
        let space = match header["packet_type"].as_str().unwrap_or_default() {
            "initial" => 0,
            "handshake" => 1,
            "1RTT" | "1rtt" => DATA,
            _ => return,
        };
        let number = header["packet_number"].as_u64();
        let (_, name) = event["name"].as_str().and_then(|name| name.split_once(':')).unwrap_or_default();
        match (name, number) {
            ("packet_sent", Some(number)) => {
                let is_counted = |frame: &Value| {
                    !matches!(frame["frame_type"].as_str(), Some("ack" | "padding" | "connection_close"))
                };
                self.sent_at.insert((space, number), at);
                if data["frames"].as_array().is_none_or(|frames| frames.iter().any(is_counted)) {
                    let length = data["raw"]["length"].as_u64().or(header["length"].as_u64()).unwrap_or(0);
                    self.waiting.insert((space, number), (at, length + HEADERS));
                    self.it.packets += u64::from(space == DATA);
                }
            }
            ("packet_received", _) => {
                for frame in data["frames"].as_array().into_iter().flatten() {
                    if frame["frame_type"] == "ack" {
                        self.on_ack(at, space, frame);
                    }
                }
            }
            ("packet_lost", Some(number)) => {
                self.waiting.remove(&(space, number));
                self.it.repeats.extend(self.sent_at.remove(&(space, number)).map(|sent_at| (sent_at, 1)));
            }
            _ => {}
        }
    }

    fn on_ack(&mut self, at: Time, space: u8, frame: &Value) {
        let (mut bytes, mut count, mut newest) = (0, 0, None);
        let ends = |range: &Value| Some((range[0].as_u64()?, range[1].as_u64().or(range[0].as_u64())?));
        let ranges = frame["acked_ranges"].as_array().into_iter().flatten().filter_map(ends);
        let highest = self.sent_at.range(..=(space, u64::MAX)).next_back().map_or(0, |(key, _)| key.1);
        for (first, last) in ranges {
            self.has_unsent |= last > highest;
            let last = last.saturating_sub(u64::from(self.ends_before));
            if first > last {
                continue;
            }
            let acked: Vec<_> = self.waiting.range((space, first)..=(space, last)).map(|it| *it.0).collect();
            for key in acked {
                let (sent_at, size) = self.waiting.remove(&key).unwrap_or_default();
                (bytes, count, newest) = (bytes + size, count + 1, newest.max(Some((key, sent_at))));
            }
        }
        let Some((_, sent_at)) = newest else { return };
        let took = at.since(sent_at);
        if space < DATA {
            // A hello has the delays without a queue, and the time of the peer's cryptography.
            self.it.handshake = Some(self.it.handshake.map_or(took, |least| least.min(took)));
            return;
        }
        self.it.bytes += bytes;
        self.it.acknowledged.push((at, bytes));
        // One packet alone may have waited for the receiver's timer.
        if count > 1 || self.it.receiver.samples.is_empty() {
            self.it.receiver.samples.push((sent_at, took));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// 1200 packets, one for each millisecond, acknowledged in pairs after 40 ms. In either form of
    /// a file, with ends of ranges that are in them and not.
    fn log(is_document: bool, beyond: u64) -> Vec<u8> {
        let (category, packet_type) = if is_document { ("transport", "1RTT") } else { ("quic", "1rtt") };
        let header = |number: u64| json!({ "packet_type": packet_type, "packet_number": number });
        let mut events: Vec<(u64, Value)> = vec![];
        for number in 0..1200 {
            let sent = json!({ "header": header(number), "raw": { "length": 1222 } });
            events.push((number, json!({ "name": format!("{category}:packet_sent"), "data": sent })));
            if number % 2 == 1 {
                let ranges = json!([[0, number + beyond]]);
                let frames = json!([{ "frame_type": "ack", "acked_ranges": ranges }]);
                let received = json!({ "header": header(number), "frames": frames });
                let name = format!("{category}:packet_received");
                events.push((number + 40, json!({ "name": name, "data": received })));
            }
        }
        events.sort_by_key(|(at, _)| *at);
        let mut before = 0;
        for (at, event) in &mut events {
            event["time"] = if is_document { *at - before } else { *at }.into();
            before = *at;
        }
        let events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
        if is_document {
            let format = json!({ "time_format": "delta" });
            let file = json!({ "traces": [{ "common_fields": format, "events": events }] });
            return file.to_string().into_bytes();
        }
        let records = events.iter().map(|event| format!("\u{1e}{event}\n"));
        format!("\u{1e}{}\n{}", json!({ "trace": {} }), records.collect::<String>()).into_bytes()
    }

    #[test]
    fn both_forms_of_a_qlog_give_the_same_numbers() {
        for (is_document, beyond) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
            let found = qlog(&log(is_document, beyond)).expect("a qlog");
            let numbers = [found.rate, found.rtt].map(|it| it.map_or(0.0, |it| it.value));
            let case = format!("{is_document} {beyond} {found:?}");
            assert!((numbers[0] / 1e7 - 1.0).abs() < 0.01 && (numbers[1] - 0.04).abs() < 1e-9, "{case}");
            assert!(!found.was_busy && found.packets == 1200 && found.losses == (0, 0), "{case}");
        }
    }

    #[test]
    fn a_log_that_was_cut_is_read_as_far_as_it_goes_and_never_a_panic() {
        let whole = log(false, 0);
        for length in (0..whole.len()).step_by(997) {
            let _ = qlog(&whole[..length]);
        }
        for other in ["{}", "{\"traces\":[]}", "{} x", "{\"traces\":[{}]}"] {
            assert!(qlog(other.as_bytes()).is_err(), "{other}");
        }
        assert!(link(&b"# headstart link log 1\n"[..]).is_err());
    }
}
