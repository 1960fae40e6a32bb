//! Counters as Prometheus text, and why records as lines, with the QUIC server's names.

use core::fmt;

use headstart_host::Exposition;
use headstart_units::{Rate, Span};

use crate::layout::{
    ARMS, ArmCounters, Counters, LIMITS, RECORD_OUTCOMES, REFUSALS, Report, SCHEMES, SOURCES,
};

/// Name, help and counter of a metric by arm alone.
type Row = (&'static str, &'static str, fn(&ArmCounters) -> u64);

#[rustfmt::skip]
const ROWS: [Row; 11] = [
    ("connections", "Connections that ended.", |it| it.connections),
    ("sent_bytes", "Payload bytes sent, retransmissions included.", |it| it.sent),
    ("lost_bytes", "Bytes declared lost.", |it| it.lost),
    ("first_flight_bytes", "Bytes sent as part of a first flight.", |it| it.first_flight),
    ("first_flight_lost_bytes", "Bytes of first flights declared lost.", |it| it.first_flight_lost),
    ("retransmitted_bytes", "Bytes retransmitted.", |it| it.retransmitted),
    ("marks", "Congestion marks that ended a start.", |it| it.marks),
    ("timeouts", "Retransmission timeouts that ended a start.", |it| it.timeouts),
    ("records_saved", "Records written.", |it| it.saved),
    ("records_dropped", "Records dropped because they misled.", |it| it.dropped),
    ("restarts", "Fast starts after idle.", |it| it.restarts),
];

/// All counters in Prometheus' text format, labelled with `scheme`.
#[must_use]
pub fn render(counters: &Counters, scheme: &str) -> String {
    let mut out = Exposition::default();
    let arms = || ARMS.iter().zip(&counters.arms);
    for (name, help, counter) in ROWS {
        out.family(&format!("{name}_total"), "counter", help);
        for (arm, of) in arms() {
            out.sample(&[("scheme", scheme), ("arm", arm)], counter(of));
        }
    }
    out.family("starts_total", "counter", "Connections by what their first flight was made from.");
    for (arm, of) in arms() {
        for (source, count) in SOURCES.iter().zip(of.sources) {
            out.sample(&[("scheme", scheme), ("arm", arm), ("source", source)], count);
        }
    }
    // A sum that may shrink is no counter.
    let help = "Round trips saved against slow start from ten packets, summed up.";
    out.family("rounds_saved", "gauge", help);
    for (arm, of) in arms() {
        out.sample(&[("scheme", scheme), ("arm", arm)], of.rounds_saved);
    }
    let help = "Records not used, by the gate that they did not pass.";
    out.family("records_refused_total", "counter", help);
    for (reason, count) in REFUSALS.iter().zip(counters.refusals).skip(1) {
        out.sample(&[("reason", reason)], count);
    }
    out.family("hints_total", "counter", "Hints of clients, by outcome.");
    for (name, count) in ["received", "capped", "malformed"].iter().zip(counters.hints) {
        out.sample(&[("outcome", name)], count);
    }
    let help = "Connections given to the congestion control.";
    out.family("taken_total", "counter", help).sample(&[], counters.taken);
    let help = "First flights repaired by their own recovery.";
    out.family("first_recoveries_total", "counter", help).sample(&[], counters.recoveries);
    out.take()
}

/// One line, one field after the other, each `name=value`, as the QUIC server prints its own.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |names: &[&'static str], at: u32| names.get(at as usize).copied().unwrap_or("unknown");
        let kbit = |rate: u64| Rate::from_bytes_per_sec(rate).as_bits_per_sec() / 1000;
        let millis = |nanos: u64| Span::from_nanos(nanos).as_millis_f64();
        write!(f, "scheme={} arm={}", name(&SCHEMES, self.scheme), name(&ARMS, self.arm))?;
        write!(f, " cc={} source={}", self.control, name(&SOURCES, self.source))?;
        write!(f, " peer={} handshake_rtt_ms={:.3}", self.peer, millis(self.handshake_rtt))?;
        if self.record_rate > 0 {
            write!(f, " record_kbit={}", kbit(self.record_rate))?;
            write!(f, " record_rtt_ms={:.3} record_live={}", millis(self.record_rtt), self.record_live)?;
        }
        if self.refusal > 0 {
            write!(f, " refused={}", name(&REFUSALS, self.refusal))?;
        }
        if self.hint > 0 {
            write!(f, " hint_kbit={} granted_kbit={}", kbit(self.hint), kbit(self.granted))?;
        }
        write!(f, " burst={} first_flight={} pace_kbit={}", self.burst, self.first_flight, kbit(self.pace))?;
        write!(f, " flights={} phases=", self.flights)?;
        for (number, (at, phase)) in self.phases().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{phase}@{:.1}ms", millis(u64::from(at) * 1000))?;
        }
        write!(f, " rounds_saved={} first_round={}", self.rounds_saved, self.first_round)?;
        write!(f, " sent={} lost={}", self.sent, self.lost)?;
        write!(f, " first_flight_lost={} min_rtt_ms={:.3}", self.first_flight_lost, millis(self.min_rtt))?;
        write!(f, " rate_kbit={}", kbit(self.rate))?;
        for (limit, span) in LIMITS.iter().zip(self.limited).filter(|(_, span)| *span > 0) {
            write!(f, " {limit}_ms={:.3}", millis(span))?;
        }
        write!(f, " record={}", name(&RECORD_OUTCOMES, self.record_outcome))?;
        if self.answer > 0 {
            write!(f, " lasted_ms={:.3} answer_ms={:.3}", millis(self.lasted), millis(self.answer))?;
            write!(f, " answer_bytes={}", self.answer_bytes)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_prometheus_text_with_the_right_count() {
        let mut counters = Counters::default();
        counters.arms[1].connections = 7;
        counters.arms[1].sources[2] = 5;
        counters.arms[2].rounds_saved = -3;
        counters.refusals[4] = 2;
        let text = render(&counters, "wise-start");
        for expected in [
            "headstart_connections_total{scheme=\"wise-start\",arm=\"treatment\"} 7",
            "headstart_starts_total{scheme=\"wise-start\",arm=\"treatment\",source=\"history\"} 5",
            "headstart_rounds_saved{scheme=\"wise-start\",arm=\"control\"} -3",
            "headstart_records_refused_total{reason=\"rtt-too-small\"} 2",
        ] {
            assert!(text.lines().any(|line| line == expected), "{expected} is missing in\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').expect("a name and a value");
            assert!(value.parse::<i64>().is_ok(), "{line}");
        }
    }
}
