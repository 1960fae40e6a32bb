//! A traced flow as qlog, the format of qvis and other tools for QUIC.
//!
//! Sources: draft-ietf-quic-qlog-main-schema (the file) and draft-ietf-quic-qlog-quic-events (the
//! events), as records one after the other (JSON-SEQ, RFC 7464), the form in which `serve --qlog`
//! logs the QUIC stack. The vantage point is the sender.
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

use crate::flow_trace::FlowTrace;

/// RFC 7464's record separator.
const SEPARATOR: char = '\u{1e}';

/// The whole file.
#[must_use]
pub fn qlog(view: &FlowTrace, title: &str) -> String {
    let mut log =
        Log { out: String::new(), opened: view.report.map_or(Time::ZERO, |report| report.opened_at) };
    log.record(&json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": title,
        "trace": {
            "title": title,
            "common_fields": {
                "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                "time_format": "relative_to_epoch",
            },
            "vantage_point": { "name": "headstart", "type": "server" },
            "event_schemas": ["urn:ietf:params:qlog:events:quic", "urn:headstart:events"],
        },
    }));
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
    log.out
}

/// The state of congestion control, as text.
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

/// The log so far.
struct Log {
    out: String,
    opened: Time,
}

impl Log {
    fn record(&mut self, record: &Value) {
        self.out.push(SEPARATOR);
        self.out.push_str(&record.to_string());
        self.out.push('\n');
    }

    /// Milliseconds since the first SYN.
    fn event(&mut self, at: Time, name: &str, data: Value) {
        let time = at.since(self.opened).as_millis_f64();
        self.record(&json!({ "time": time, "name": name, "data": data }));
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

    /// The packets that end before this place, as ranges of numbers, the largest first as an ack
    /// has them.
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
    fn packets_are_numbered_by_sending_and_acknowledged_by_place() {
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
