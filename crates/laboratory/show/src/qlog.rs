//! A traced flow as qlog, the format of qvis and other tools for QUIC.
//!
//! Two forms ([`Form`]). The first follows the drafts of 2025:
//! draft-ietf-quic-qlog-main-schema-14 (the file) and draft-ietf-quic-qlog-quic-events-13 (the
//! events). It is a sequence of records (JSON-SEQ, RFC 7464), as `serve --qlog` logs the QUIC
//! stack. The second is for qvis, which refuses files without a `qlog_version` that it knows. The
//! newest of these is draft-marx-qlog-main-schema-02, one JSON document whose events have other
//! categories. The vantage point is the sender.
//!
//! | event | meaning here |
//! |---|---|
//! | `quic:packet_sent` | a segment left; its packet number, and a stream frame with its offset |
//! | `quic:packet_received` | an ack arrived; the packets that it acknowledges |
//! | `quic:packet_lost` | a segment was declared lost |
//! | `quic:recovery_metrics_updated` | window, flight, smoothed RTT and pace, where they changed |
//! | `quic:congestion_state_updated` | the scheme's phase; `recovery` while losses are repaired |
//! | `headstart:timeout` | the retransmission timer expired |
//!
//! # Limits
//!
//! TCP has no packet numbers: they count transmissions. Selectively acknowledged data is reported
//! when everything before it has arrived, as the trace has no earlier record of it. Copies and
//! retransmissions are distinguished by `headstart_transmission` in the stream's packet.

use std::collections::BTreeMap;

use headstart_sim::record::{SenderEvent, SenderTrace};
use headstart_startup::Transmission;
use headstart_units::Time;
use serde_json::{Value, json};

use headstart_study::flow_trace::FlowTrace;

/// RFC 7464's record separator.
const SEPARATOR: char = '\u{1e}';

/// The form of a file, by its extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `.sqlog`: records as in the newest drafts.
    Sequence,
    /// `.qlog`: a document of draft-02, which qvis opens.
    Document,
}

impl Form {
    /// The form that a file of this extension has.
    #[must_use]
    pub fn of(extension: &str) -> Option<Self> {
        match extension {
            "sqlog" => Some(Self::Sequence),
            "qlog" => Some(Self::Document),
            _ => None,
        }
    }
}

/// The names of events in the newest drafts, and category and name in draft-02.
const NAMES: [(&str, &str); 6] = [
    ("quic:packet_sent", "transport:packet_sent"),
    ("quic:packet_received", "transport:packet_received"),
    ("quic:packet_lost", "recovery:packet_lost"),
    ("quic:recovery_metrics_updated", "recovery:metrics_updated"),
    ("quic:congestion_state_updated", "recovery:congestion_state_updated"),
    ("headstart:timeout", "recovery:loss_timer_triggered"),
];

/// The whole file.
#[must_use]
pub fn qlog(view: &FlowTrace, title: &str, form: Form) -> String {
    let opened = view.report.map_or(Time::ZERO, |report| report.opened_at);
    let events = events(view, opened);
    let vantage_point = json!({ "name": "headstart", "type": "server" });
    match form {
        Form::Sequence => {
            let head = json!({
                "file_schema": "urn:ietf:params:qlog:file:sequential",
                "serialization_format": "application/qlog+json-seq",
                "title": title,
                "trace": {
                    "title": title,
                    "common_fields": {
                        "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                        "time_format": "relative_to_epoch",
                    },
                    "vantage_point": vantage_point,
                    // While the events are a draft their name has its number (its §2.1).
                    "event_schemas": ["urn:ietf:params:qlog:events:quic-13", "urn:headstart:events"],
                },
            });
            std::iter::once(&head).chain(&events).map(|record| format!("{SEPARATOR}{record}\n")).collect()
        }
        Form::Document => {
            let older = |mut event: Value| {
                let name = NAMES.iter().find(|(new, _)| event["name"] == *new);
                event["name"] = json!(name.map(|(_, older)| *older));
                event
            };
            let trace = json!({
                "title": title,
                "vantage_point": vantage_point,
                "common_fields": { "time_format": "relative", "reference_time": 0 },
                "events": events.into_iter().map(older).collect::<Vec<_>>(),
            });
            let file = json!({
                "qlog_version": "draft-02", "qlog_format": "JSON", "title": title, "traces": [trace],
            });
            format!("{file}\n")
        }
    }
}

/// All events, under their newest names.
fn events(view: &FlowTrace, opened: Time) -> Vec<Value> {
    let mut log = Log { events: vec![], opened };
    let mut packets = Packets::default();
    let mut last: Option<SenderTrace> = None;
    for (at, trace) in &view.events {
        if last.is_none_or(|last| state(&last) != state(trace)) {
            let mut data = json!({ "new": state(trace) });
            if let Some(last) = last {
                data["old"] = json!(state(&last));
            }
            log.event(*at, "quic:congestion_state_updated", data);
        }
        if last.is_none_or(|last| metrics(&last) != metrics(trace)) {
            log.event(*at, "quic:recovery_metrics_updated", metrics(trace));
        }
        last = Some(*trace);
        match trace.event {
            SenderEvent::Established => {}
            SenderEvent::Sent { offset, payload, transmission } => {
                let number = packets.send(offset, payload.get());
                let how = match transmission {
                    Transmission::Original => "original",
                    Transmission::Retransmission => "retransmission",
                    Transmission::Copy => "copy",
                };
                let data = json!({
                    "header": { "packet_type": "1RTT", "packet_number": number },
                    "raw": { "length": payload.get(), "payload_length": payload.get() },
                    "frames": [{
                        "frame_type": "stream", "stream_id": 0, "offset": offset, "length": payload.get(),
                        "raw": { "payload_length": payload.get() },
                    }],
                    "headstart_transmission": how,
                });
                log.event(*at, "quic:packet_sent", data);
            }
            SenderEvent::Acked { acknowledged, .. } => {
                let ranges = packets.acknowledge(acknowledged);
                let number = packets.next_ack();
                let frames = if ranges.is_empty() {
                    json!([{ "frame_type": "ping" }])
                } else {
                    json!([{ "frame_type": "ack", "acked_ranges": ranges }])
                };
                let header = json!({ "packet_type": "1RTT", "packet_number": number });
                log.event(*at, "quic:packet_received", json!({ "header": header, "frames": frames }));
            }
            SenderEvent::Lost { offset, .. } => {
                if let Some(number) = packets.lose(offset) {
                    let header = json!({ "packet_type": "1RTT", "packet_number": number });
                    log.event(*at, "quic:packet_lost", json!({ "header": header }));
                }
            }
            SenderEvent::Timeout => log.event(*at, "headstart:timeout", json!({})),
        }
    }
    log.events
}

fn state(trace: &SenderTrace) -> &'static str {
    if trace.in_recovery { "recovery" } else { trace.phase }
}

fn metrics(trace: &SenderTrace) -> Value {
    let mut data = json!({
        "congestion_window": trace.window.get(),
        "bytes_in_flight": trace.in_flight.get(),
        "smoothed_rtt": trace.smoothed_rtt.as_millis_f64(),
    });
    if let Some(pace) = trace.pace {
        data["pacing_rate"] = json!(pace.as_bits_per_sec());
    }
    data
}

struct Log {
    events: Vec<Value>,
    opened: Time,
}

impl Log {
    /// Milliseconds since the first SYN.
    fn event(&mut self, at: Time, name: &str, data: Value) {
        let time = at.since(self.opened).as_millis_f64();
        self.events.push(json!({ "time": time, "name": name, "data": data }));
    }
}

/// Packets by number: TCP has none.
#[derive(Default)]
struct Packets {
    next: u64,
    acks: u64,
    /// Packets in flight: number, by stream offset and number of the transmission.
    under_way: BTreeMap<(u64, u64), u64>,
}

impl Packets {
    fn send(&mut self, offset: u64, bytes: u64) -> u64 {
        let number = self.next;
        self.next += 1;
        self.under_way.insert((offset, number), offset + bytes);
        number
    }

    fn next_ack(&mut self) -> u64 {
        self.acks += 1;
        self.acks - 1
    }

    /// Packets that end before this place, as ranges of numbers, the largest first as in an ack.
    fn acknowledge(&mut self, before: u64) -> Vec<[u64; 2]> {
        let mut numbers = vec![];
        self.under_way.retain(|(_, number), end| {
            let is_under_way = *end > before;
            if !is_under_way {
                numbers.push(*number);
            }
            is_under_way
        });
        numbers.sort_unstable();
        let mut ranges: Vec<[u64; 2]> = vec![];
        for number in numbers {
            match ranges.last_mut() {
                Some([_, last]) if *last + 1 == number => *last = number,
                _ => ranges.push([number, number]),
            }
        }
        ranges.reverse();
        ranges
    }

    /// The oldest sending of that place that is still under way.
    fn lose(&mut self, offset: u64) -> Option<u64> {
        let (&key, _) = self.under_way.range((offset, 0)..=(offset, u64::MAX)).next()?;
        self.under_way.remove(&key);
        Some(key.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_numbered_in_sending_order_and_acknowledged_by_number() {
        let mut packets = Packets::default();
        let numbers: Vec<u64> = [0, 10, 20, 10].map(|offset| packets.send(offset, 10)).into();
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_eq!(packets.lose(10), Some(1));
        assert_eq!(packets.acknowledge(10), [[0, 0]]);
        assert_eq!(packets.acknowledge(10), [[0, 0]; 0]);
        assert_eq!(packets.acknowledge(30), [[2, 3]]);
        assert_eq!(packets.lose(10), None);
    }
}
