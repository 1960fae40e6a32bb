//! A sender's qlog as the parts of a connection.
//!
//! | form | what differs | writers |
//! |---|---|---|
//! | drafts 00, 01 | events are arrays, named by `event_fields`; microseconds | picoquic, mvfst |
//! | from draft 02 on, one document | a packet that was lost may have no `header` | aioquic |
//! | from draft 02 on, a record for each event (RFC 7464) | | quic-go, noq, quiche |
//!
//! A packet was lost if it was never acknowledged, and a log says so or later ones were: stacks
//! write losses too differently to believe them alone.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail};
use headstart_units::{Span, Time};
use serde_json::{Deserializer, Value};

use super::{Connection, Measured, combined};

/// Headers of UDP and IPv4, which the sizes of a qlog leave out.
const HEADERS: u64 = 28;

/// Bytes of a packet whose size is unknown, to tell a long queue from an empty one.
const USUAL: u64 = 1250;

/// Packets behind one that are acknowledged where it is lost (RFC 9002 §6.1.1).
const REORDERING: u64 = 3;

/// Measures what the host that wrote a qlog sent.
///
/// # Errors
/// If it is no qlog, or has no packets that were sent and acknowledged.
pub fn qlog(content: &[u8]) -> Result<Measured> {
    // RFC 7464 begins each record with this, which JSON does not know.
    let plain: Vec<u8> = content.iter().map(|byte| if *byte == 0x1e { b' ' } else { *byte }).collect();
    let file = File::read(&plain)?;
    let mut log = file.log(false)?;
    if log.has_unsent {
        log = file.log(true)?;
    }
    let (has_sizes, connection) = log.finish();
    let mut measured = combined(vec![connection]);
    if !has_sizes {
        (measured.rate, measured.buffer, measured.has_sizes) = (None, None, false);
    }
    measured.notes.extend(file.note);
    Ok(measured)
}

/// The traces of a file, each with its steps in order.
struct File {
    traces: Vec<Vec<Step>>,
    note: Option<String>,
}

impl File {
    fn read(content: &[u8]) -> Result<Self> {
        let (mut traces, mut count, mut form) = (vec![], 0, Form::default());
        let mut steps = |form: &Form, events: &[Value]| {
            count += events.len();
            events.iter().filter_map(|event| form.step(event)).collect::<Vec<Step>>()
        };
        let mut records = Deserializer::from_slice(content).into_iter::<Value>();
        let mut fault = None;
        loop {
            let at = records.byte_offset();
            match records.next() {
                None => break,
                Some(Err(error)) => {
                    let cut = events_of_cut(&content[at..]);
                    traces.extend(cut.iter().map(|(trace, events)| steps(&Form::of(trace), events)));
                    fault = Some(error);
                    break;
                }
                Some(Ok(record)) => {
                    if let Some(several) = record["traces"].as_array() {
                        let events = |trace: &Value| trace["events"].as_array().cloned().unwrap_or_default();
                        traces.extend(several.iter().map(|trace| steps(&Form::of(trace), &events(trace))));
                    } else if record["trace"].is_object() {
                        form = Form::of(&record["trace"]);
                        traces.push(vec![]);
                    } else {
                        let new = steps(&form, &[record]);
                        if traces.is_empty() {
                            traces.push(vec![]);
                        }
                        traces.last_mut().into_iter().for_each(|steps| steps.extend_from_slice(&new));
                    }
                }
            }
        }
        let note = match fault {
            Some(error) if count == 0 => {
                return Err(anyhow!(error).context("found no JSON, expected a qlog"));
            }
            fault => fault.map(|error| {
                let line = error.line();
                format!("the file is cut or damaged at line {line}: the {count} events before that are read")
            }),
        };
        Ok(Self { traces, note })
    }

    /// The connection of which most was acknowledged: a file may have the client's trace and the
    /// server's, and a trace several connections.
    fn log(&self, ends_before: bool) -> Result<Log> {
        let mut logs: BTreeMap<(usize, &str), Log> = BTreeMap::new();
        for (number, steps) in self.traces.iter().enumerate() {
            for step in steps {
                let log = logs.entry((number, &step.group)).or_default();
                log.ends_before = ends_before;
                log.add(step);
            }
        }
        let has_sent = logs.values().any(|log| !log.highest.is_empty());
        let best = logs.into_values().rev().max_by_key(|log| (log.it.bytes, log.it.acknowledged.len()));
        match best {
            Some(log) if !log.it.acknowledged.is_empty() => Ok(log),
            _ if has_sent => {
                bail!("found no packet that was sent and acknowledged, expected a sender's qlog")
            }
            _ => {
                bail!("found no packet that was sent, expected a sender's qlog with the events `packet_sent`")
            }
        }
    }
}

/// Events of a document that ends too early, or is damaged, by their traces.
fn events_of_cut(content: &[u8]) -> Vec<(Value, Vec<Value>)> {
    const KEY: &[u8] = b"\"events\"";
    const TRACES: usize = 64;
    let mut found = vec![];
    let mut from = 0;
    while let Some(place) = content[from..].windows(KEY.len()).position(|window| window == KEY) {
        let key = from + place;
        from = key + KEY.len();
        let is_before = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b':';
        let mut at = from + content[from..].iter().take_while(is_before).count() + 1;
        if content.get(at - 1) != Some(&b'[') || found.len() == TRACES {
            continue;
        }
        // The text before the events, as a document without them.
        let head = [&content[..key], &b"\"events\":[]}]}"[..]].concat();
        let head: Value = serde_json::from_slice(&head).unwrap_or_default();
        let trace = head["traces"].as_array().and_then(|traces| traces.last().cloned()).unwrap_or_default();
        let mut events = vec![];
        loop {
            let is_between = |byte: &&u8| byte.is_ascii_whitespace() || **byte == b',';
            at += content[at..].iter().take_while(is_between).count();
            let mut next = Deserializer::from_slice(&content[at..]).into_iter::<Value>();
            match next.next() {
                Some(Ok(event)) if event.is_object() || event.is_array() => events.push(event),
                _ => break,
            }
            at += next.byte_offset();
        }
        from = at;
        found.push((trace, events));
    }
    found
}

/// Form of the events of a trace.
#[derive(Default)]
struct Form {
    /// Names of an event's fields, where it is an array.
    fields: Vec<String>,
    is_in_microseconds: bool,
    /// Times are since the event before.
    is_relative: bool,
}

/// An event, however it was written.
#[derive(Clone)]
struct Step {
    /// Milliseconds since the beginning, or since the step before.
    time: f64,
    is_relative: bool,
    /// The connection that it is of, where a trace has several.
    group: String,
    what: What,
}

#[derive(Clone)]
enum What {
    Sent {
        key: (u8, u64),
        bytes: Option<u64>,
        /// It has to be acknowledged (RFC 9002 §2).
        is_eliciting: bool,
    },
    /// First and last numbers that were acknowledged.
    Acknowledged {
        space: u8,
        ranges: Vec<(u64, u64)>,
    },
    Lost {
        key: (u8, u64),
    },
    Other,
}

/// Packets of 1-RTT and 0-RTT: the last of the spaces.
const DATA: u8 = 2;

impl Form {
    fn of(trace: &Value) -> Self {
        let settings = ["common_fields", "configuration"];
        let setting =
            |name: &str| settings.iter().find_map(|at| trace[*at][name].as_str()).unwrap_or_default();
        let fields = trace["event_fields"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let fields: Vec<_> = fields.map(str::to_ascii_lowercase).collect();
        Self {
            is_in_microseconds: setting("time_units") == "us",
            is_relative: matches!(setting("time_format"), "delta" | "relative_to_previous_event")
                || fields.iter().any(|field| field == "delta_time"),
            fields,
        }
    }

    fn step(&self, event: &Value) -> Option<Step> {
        let field = |names: &[&str]| match event {
            Value::Array(values) => {
                let place = self.fields.iter().position(|field| names.contains(&field.as_str()))?;
                values.get(place)
            }
            other => names.iter().find_map(|name| other.get(name)),
        };
        let time = float(field(&["time", "relative_time", "delta_time"])?)?;
        let name = field(&["name"]).or_else(|| field(&["event", "event_type", "type"]))?.as_str()?;
        let name = name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase();
        Some(Step {
            time: if self.is_in_microseconds { time / 1e3 } else { time },
            is_relative: self.is_relative,
            group: field(&["group_id"]).map(Value::to_string).unwrap_or_default(),
            what: field(&["data"]).and_then(|data| what(&name, data)).unwrap_or(What::Other),
        })
    }
}

fn what(name: &str, data: &Value) -> Option<What> {
    let header = &data["header"];
    let kinds = [&header["packet_type"], &data["packet_type"], &data["type"]];
    let space = match kinds.into_iter().find_map(Value::as_str)? {
        "initial" => 0,
        "handshake" => 1,
        "1RTT" | "1rtt" | "0RTT" | "0rtt" => DATA,
        _ => return None,
    };
    let key = || Some((space, whole(&header["packet_number"]).or_else(|| whole(&data["packet_number"]))?));
    let frames = data["frames"].as_array();
    let kind = |frame: &Value| frame["frame_type"].as_str().unwrap_or_default().to_owned();
    Some(match name {
        "packet_sent" => {
            let (raw, payload) = (&data["raw"]["length"], &data["raw"]["payload_length"]);
            let sizes = [raw, &header["packet_size"], &data["packet_size"], &header["length"], payload];
            let is_eliciting =
                |frame: &Value| !matches!(&*kind(frame), "ack" | "padding" | "connection_close");
            What::Sent {
                key: key()?,
                bytes: sizes.into_iter().find_map(whole).map(|bytes| bytes + HEADERS),
                is_eliciting: frames.is_none_or(|frames| frames.iter().any(is_eliciting)),
            }
        }
        "packet_received" => {
            let acknowledgements = frames.into_iter().flatten().filter(|frame| kind(frame) == "ack");
            let ranges = acknowledgements.filter_map(|frame| frame["acked_ranges"].as_array()).flatten();
            let ends = |range: &Value| {
                let first = whole(&range[0])?;
                Some((first, whole(&range[1]).unwrap_or(first)))
            };
            What::Acknowledged { space, ranges: ranges.filter_map(ends).collect() }
        }
        "packet_lost" => What::Lost { key: key()? },
        _ => return None,
    })
}

/// Older drafts write numbers as text.
fn float(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[derive(Default)]
struct Log {
    it: Connection,
    now_ms: f64,
    /// Packets that are not acknowledged, by their space and number: time and bytes.
    waiting: BTreeMap<(u8, u64), (Time, Option<u64>)>,
    /// Packets that are said to be lost.
    lost: BTreeSet<(u8, u64)>,
    /// The highest number sent in each space.
    highest: BTreeMap<u8, u64>,
    /// The highest number of data acknowledged, and the bytes of the largest packet.
    acknowledged: u64,
    largest: u64,
    /// Packets of data without a size.
    has_unsized: bool,
    /// Ranges of acknowledgements end before their last number, as some stacks log them.
    ends_before: bool,
    /// An acknowledgement had a number that no packet had yet.
    has_unsent: bool,
}

impl Log {
    fn add(&mut self, step: &Step) {
        self.now_ms = if step.is_relative { self.now_ms + step.time } else { step.time };
        let at = Time::from_nanos((self.now_ms * 1e6) as u64);
        match &step.what {
            What::Sent { key, bytes, is_eliciting } => {
                let highest = self.highest.entry(key.0).or_default();
                *highest = key.1.max(*highest);
                if *is_eliciting {
                    self.waiting.insert(*key, (at, *bytes));
                    self.it.packets += u64::from(key.0 == DATA);
                }
            }
            What::Acknowledged { space, ranges } => self.on_ack(at, *space, ranges),
            What::Lost { key } => {
                self.lost.insert(*key);
            }
            What::Other => {}
        }
    }

    fn on_ack(&mut self, at: Time, space: u8, ranges: &[(u64, u64)]) {
        let (mut bytes, mut count, mut newest) = (0, 0, None);
        let highest = self.highest.get(&space).copied().unwrap_or(0);
        for (first, last) in ranges.iter().copied() {
            self.has_unsent |= last > highest;
            let last = last.saturating_sub(u64::from(self.ends_before));
            if first > last {
                continue;
            }
            if space == DATA {
                self.acknowledged = self.acknowledged.max(last);
            }
            let acked: Vec<_> = self.waiting.range((space, first)..=(space, last)).map(|it| *it.0).collect();
            for key in acked {
                let Some((sent_at, size)) = self.waiting.remove(&key) else { continue };
                self.has_unsized |= space == DATA && size.is_none();
                let size = size.unwrap_or(USUAL);
                self.largest = self.largest.max(size);
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

    /// The connection, and whether all sizes are known.
    fn finish(mut self) -> (bool, Connection) {
        // The sender's own part of a round trip takes no time.
        self.it.sender.samples.push((Time::ZERO, Span::ZERO));
        for (key, (sent_at, bytes)) in &self.waiting {
            let is_passed = key.1.saturating_add(REORDERING) <= self.acknowledged;
            // A packet larger than all that arrived was to find out how large they can be.
            let is_probe = bytes.is_some_and(|bytes| bytes > self.largest);
            if key.0 == DATA && (is_passed || self.lost.contains(key)) && !is_probe {
                self.it.repeats.push((*sent_at, 1));
            }
        }
        (!self.has_unsized, self.it)
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

    /// 1990 packets, every fiftieth lost, in the form of this writer.
    fn with_losses(form: &str) -> Vec<u8> {
        let mut events: Vec<(f64, &str, &str, Value)> = vec![];
        for number in 0..1990_u64 {
            let at = number as f64 * 1.278;
            let mut sent = json!({ "header": { "packet_type": "1RTT", "packet_number": number } });
            match form {
                "packet_size" | "arrays" | "text" => sent["header"]["packet_size"] = 1250.into(),
                "size beside" => sent["packet_size"] = 1250.into(),
                "no sizes" => {}
                _ => sent["raw"] = json!({ "length": 1250 }),
            }
            events.push((at, "transport", "packet_sent", sent));
            if number % 50 != 49 {
                let frames = json!([{ "frame_type": "ack", "acked_ranges": [[number, number]] }]);
                let received =
                    json!({ "packet_type": "1RTT", "header": { "packet_number": number }, "frames": frames });
                events.push((at + 40.0, "transport", "packet_received", received));
                continue;
            }
            let lost = match form {
                "silent" => continue,
                "flat" => json!({ "type": "1RTT", "packet_number": number }),
                "arrays" => json!({ "packet_type": "1RTT", "packet_number": number }),
                _ => json!({ "header": { "packet_type": "1RTT", "packet_number": number } }),
            };
            events.push((at + 44.0, "recovery", "packet_lost", lost));
        }
        events.sort_by(|one, two| one.0.total_cmp(&two.0));
        let is_array = matches!(form, "arrays" | "text");
        let event = |(at, category, name, data): (f64, &str, &str, Value)| match form {
            "arrays" => json!([(at * 1e3) as u64, category, name, data]),
            "text" => json!([((at * 1e3) as u64).to_string(), category, name, data]),
            _ => json!({ "time": at, "name": format!("{category}:{name}"), "data": data }),
        };
        let events: Vec<Value> = events.into_iter().map(event).collect();
        let mut trace = json!({ "vantage_point": { "type": "server" } });
        if is_array {
            trace["event_fields"] = json!(["relative_time", "category", "event", "data"]);
            trace["configuration"] = json!({ "time_units": "us" });
        }
        trace["events"] = json!([]);
        let mut whole = trace.clone();
        whole["events"] = events.into();
        let traces = if form == "second" { json!([trace, whole]) } else { json!([whole]) };
        json!({ "qlog_version": "0.3", "traces": traces }).to_string().into_bytes()
    }

    #[test]
    fn every_writers_sizes_and_losses_are_read() {
        let forms =
            ["plain", "flat", "silent", "packet_size", "size beside", "arrays", "text", "second", "no sizes"];
        for form in forms {
            let found = qlog(&with_losses(form)).expect("a qlog");
            assert_eq!((found.losses.0 + found.losses.1, found.packets), (39, 1990), "{form}: {found:?}");
            assert_eq!(found.has_sizes, form != "no sizes", "{form}");
            let rate = found.rate.map(|rate| rate.value);
            let is_right = rate.is_some_and(|rate| (rate / 8e6 - 1.0).abs() < 0.01);
            assert!(if found.has_sizes { is_right } else { rate.is_none() }, "{form}: {rate:?}");
        }
    }

    #[test]
    fn a_packet_that_was_acknowledged_late_and_one_that_probed_the_path_are_no_losses() {
        let header = |number: u64| json!({ "packet_type": "1RTT", "packet_number": number });
        let event = |time: u64, name: &str, data: Value| json!({ "time": time, "name": name, "data": data });
        let acknowledgement = |first: u64, last: u64| {
            let frames = json!([{ "frame_type": "ack", "acked_ranges": [[first, last]] }]);
            json!({ "header": header(0), "frames": frames })
        };
        let mut events = vec![];
        for number in 0..50 {
            let length = if number == 7 { 1400 } else { 1200 };
            let sent = json!({ "header": header(number), "raw": { "length": length } });
            events.push(event(number, "transport:packet_sent", sent));
        }
        events.push(event(90, "transport:packet_received", acknowledgement(8, 40)));
        for number in 0..8 {
            events.push(event(91, "recovery:packet_lost", json!({ "header": header(number) })));
        }
        events.push(event(95, "transport:packet_received", acknowledgement(0, 5)));
        let found = qlog(json!({ "traces": [{ "events": events }] }).to_string().as_bytes()).expect("a qlog");
        // Number 6 alone: 7 is a probe, and those from 41 on may still be on their way.
        assert_eq!(found.losses, (0, 1), "{found:?}");
    }

    #[test]
    fn a_document_that_was_cut_is_read_as_far_as_it_goes() {
        for form in ["plain", "arrays", "second"] {
            let whole = with_losses(form);
            let half = [&whole[..whole.len() / 2], b"\n"].concat();
            let found = qlog(&half).unwrap_or_else(|error| panic!("{form}: {error}"));
            assert!((900..1100).contains(&found.packets), "{form}: {found:?}");
            assert!(found.notes[0].starts_with("the file is cut"), "{:?}", found.notes);
            assert!(qlog(&whole).is_ok_and(|found| found.notes.is_empty()), "{form}");
            for length in (0..whole.len()).step_by(9973) {
                let _ = qlog(&whole[..length]);
            }
        }
    }

    /// Downloads of 100 kB at 8 Mbit/s and 40 ms with every 25th packet lost; packets of data that
    /// ask for an acknowledgement, and losses. Events of no use here are left out of the first two.
    const REAL: [(&str, u64, u64); 3] =
        [("aioquic.qlog", 95, 3), ("quic-go.sqlog", 86, 3), ("picoquic.qlog", 84, 3)];

    #[test]
    fn logs_of_real_stacks_have_their_packets_and_losses() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/qlog");
        for (name, packets, losses) in REAL {
            let found = qlog(&std::fs::read(folder.join(name)).expect("a file")).expect("a qlog");
            assert_eq!(
                (found.packets, found.losses.0 + found.losses.1),
                (packets, losses),
                "{name}: {found:?}"
            );
            let [rtt, rate] = [found.rtt, found.rate].map(|it| it.map_or(0.0, |it| it.value));
            assert!(found.has_sizes && (0.039..0.06).contains(&rtt), "{name}: {found:?}");
            assert!((1e6..9e6).contains(&rate), "{name}: {found:?}");
        }
    }

    #[test]
    fn a_log_that_was_cut_is_read_as_far_as_it_goes_and_never_a_panic() {
        let whole = log(false, 0);
        for length in (0..whole.len()).step_by(997) {
            let _ = qlog(&whole[..length]);
        }
        for other in ["{}", "{\"traces\":[]}", "{} x", "{\"traces\":[{}]}", "{\"events\"", "{\"events\":[1"] {
            assert!(qlog(other.as_bytes()).is_err(), "{other}");
        }
    }
}
