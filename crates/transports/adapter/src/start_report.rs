//! The report of a connection's start: inputs, decision and outcome.
//!
//! # Round trips saved
//!
//! In the first round trip after it began to send, a connection sent B bytes, before any
//! acknowledgement. Slow start from ten packets sends 10, 20, 40, ... packets in successive round
//! trips. It has sent B bytes after `r(B) = min { r : 10 (2^r - 1) packets >= B }` of them. If `L`
//! of the `B` bytes were lost, the connection saved `r(B - L) - 1` round trips, or one less if any
//! were lost, for the repair takes another. The number can be negative: then slow start would have
//! been faster. A shorter completion time is not claimed: that depends on the application too.

use std::fmt;
use std::net::SocketAddr;

use headstart_startup::SlowStartEnd;
use headstart_startup::catalogue::Name;
use headstart_startup::history::{Refusal, SharedRecord};
use headstart_startup::prior::Hint;
pub use headstart_startup::sending::{FirstAnswer, LimitedBy, Tally};
use headstart_units::{Bytes, Rate, Span, Time};

use crate::gates::{self, Arm, NothingToGain};
use crate::metrics::SIZES;

/// Input of the first flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// None: slow start.
    #[default]
    Nothing,
    /// The size of the flow and the RTT.
    FlowSize,
    /// A record of the peer.
    History,
    /// The peer's hint.
    Hint,
}

impl Source {
    /// All sources, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::FlowSize, Self::History, Self::Hint];

    /// Name of the source in logs and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::FlowSize => "flow-size",
            Self::History => "history",
            Self::Hint => "hint",
        }
    }
}

/// Outcome for the record at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The connection is not over yet.
    #[default]
    Open,
    /// A new record was written.
    Saved,
    /// Nothing worth a record was measured.
    Nothing,
    /// The record that it began from was wrong and was dropped.
    Dropped,
}

impl RecordOutcome {
    const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Saved => "saved",
            Self::Nothing => "nothing",
            Self::Dropped => "dropped",
        }
    }
}

/// The start on a path that the client moved to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Slow start.
    #[default]
    SlowStart,
    /// From the record of the new address.
    Record,
    /// None: the address is the same, and another port of it counts as the same path.
    Nothing,
}

impl Restart {
    const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow-start",
            Self::Record => "record",
            Self::Nothing => "none",
        }
    }
}

/// The report of one connection.
#[derive(Clone, Debug, Default)]
pub struct StartReport {
    /// The scheme requested.
    pub scheme: Name,
    /// The peer, once known.
    pub peer: Option<SocketAddr>,
    /// The arm drawn.
    pub arm: Arm,
    /// Input of the first flight.
    pub source: Source,
    /// The RTT of the handshake.
    pub handshake_rtt: Span,
    /// The store's record and the state around it.
    pub known: Option<SharedRecord>,
    /// The condition that the record did not meet.
    pub refusal: Option<Refusal>,
    /// Reason for slow start although the scheme's input was there.
    pub nothing_to_gain: Option<NothingToGain>,
    /// The peer's hint.
    pub hint: Option<Hint>,
    /// Part of the hint that was granted; `None` if not requested.
    pub granted: Option<Rate>,
    /// Bytes announced by the application.
    pub flow_size: Option<Bytes>,
    /// Bytes of the plan to be sent at once.
    pub burst: Bytes,
    /// Bytes of the first flight as planned.
    pub planned: Bytes,
    /// The pace planned; `None` leaves it to the stack.
    pub pace: Option<Rate>,
    /// Flights planned: more than one where the application announced more after its first answer,
    /// and the scheme plans with that.
    pub flights: u32,
    /// Phases with the time since it began to send, as named by the scheme; the first sixteen.
    pub phases: Vec<(Span, &'static str)>,
    /// Counters of packets and bytes.
    pub tally: Tally,
    /// Time by what held back the next packet, from the first one to the last acknowledgement, in
    /// the order of [`LimitedBy::ALL`].
    pub limited: [Span; LimitedBy::ALL.len()],
    /// The end of slow start; `None` while it lasts.
    pub slow_start_end: Option<SlowStartEnd>,
    /// The smallest RTT that was measured.
    pub min_rtt: Span,
    /// The maximum delivery rate; `None` without a sample.
    pub btl_bw: Option<Rate>,
    /// Size of a full packet in bytes.
    pub packet: Bytes,
    /// True if the path changed during the connection.
    pub migrated: bool,
    /// The start on the new path.
    pub restarted: Restart,
    /// Outcome for the record.
    pub record_outcome: RecordOutcome,
    /// The data until the first pause, and their time.
    pub first_answer: FirstAnswer,
    /// Time of the last event.
    pub last_at: Time,
}

/// Initial window, in packets, of the slow start compared with (RFC 9002 §7.2).
const INITIAL_PACKETS: u64 = 10;

/// Round trips that slow start from ten packets takes to send `bytes` in packets of `packet` bytes.
#[must_use]
pub fn slow_start_rounds(bytes: Bytes, packet: Bytes) -> u32 {
    let packets = bytes.get().div_ceil(packet.get().max(1));
    // 10 (2^r - 1) >= packets.
    let needed = packets.div_ceil(INITIAL_PACKETS) + 1;
    needed.next_power_of_two().ilog2()
}

impl StartReport {
    /// Round trips saved against slow start, as the module defines; zero before it began to send.
    #[must_use]
    pub fn rounds_saved(&self) -> i32 {
        let Tally { first_round, first_flight_lost, .. } = self.tally;
        if first_round.is_zero() {
            return 0;
        }
        let through = first_round.saturating_sub(first_flight_lost);
        slow_start_rounds(through, self.packet).cast_signed() - 1 - i32::from(!first_flight_lost.is_zero())
    }

    /// Class of the first answer's size, an index into [`SIZES`] or its length, and the natural
    /// logarithm of its time in microseconds. `None` without an acknowledgement.
    #[must_use]
    pub fn answer_class(&self) -> Option<(usize, f64)> {
        let took = self.first_answer.took()?;
        let size = SIZES.partition_point(|most| *most < self.first_answer.bytes().get());
        Some((size, (took.as_millis_f64() * 1000.0).max(1.0).ln()))
    }

    /// Share of its bytes that were lost, at most one; `None` if it sent none.
    #[must_use]
    pub fn loss_share(&self) -> Option<f64> {
        let sent = self.tally.sent.get();
        (sent > 0).then(|| (self.tally.lost.get() as f64 / sent as f64).min(1.0))
    }

    /// The last phase, with the reason for it.
    #[must_use]
    pub fn decision(&self) -> &'static str {
        self.phases.last().map_or("none", |(_, phase)| phase)
    }
}

/// One line of fields `name=value`.
impl fmt::Display for StartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scheme={} arm={} source={}", self.scheme, self.arm.name(), self.source.name())?;
        if let Some(peer) = self.peer {
            write!(f, " peer={}", peer.ip())?;
        }
        write!(f, " handshake_rtt_ms={:.3}", self.handshake_rtt.as_millis_f64())?;
        if let Some(SharedRecord { record, live }) = self.known {
            let (kbit, rtt) = (record.btl_bw.as_bits_per_sec() / 1000, record.rt_prop.as_millis_f64());
            write!(f, " record_kbit={kbit} record_rtt_ms={rtt:.3} record_live={live}")?;
        }
        if let Some(refusal) = self.refusal {
            write!(f, " refused={}", gates::name(refusal))?;
        }
        if let Some(reason) = self.nothing_to_gain {
            write!(f, " nothing_to_gain={}", reason.name())?;
        }
        if let Some(hint) = self.hint {
            write!(f, " hint_kbit={} access={:?}", hint.bandwidth.as_bits_per_sec() / 1000, hint.access)?;
            write!(f, " granted_kbit={}", self.granted.unwrap_or(Rate::ZERO).as_bits_per_sec() / 1000)?;
        }
        if let Some(size) = self.flow_size {
            write!(f, " flow_size={}", size.get())?;
        }
        let pace = self.pace.map_or(0, |it| it.as_bits_per_sec() / 1000);
        write!(f, " burst={} first_flight={} pace_kbit={pace}", self.burst.get(), self.planned.get())?;
        write!(f, " flights={}", self.flights)?;
        write!(f, " phases=")?;
        for (number, (at, phase)) in self.phases.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{}@{:.1}ms", phase.replace(' ', "-"), at.as_millis_f64())?;
        }
        let Tally { lost, first_flight_lost, copies, copy_bytes, spurious, .. } = self.tally;
        let sent = self.tally.sent_with_copies();
        write!(f, " rounds_saved={} sent={} lost={}", self.rounds_saved(), sent.get(), lost.get())?;
        write!(f, " first_flight_lost={} copies={copies}", first_flight_lost.get())?;
        write!(f, " copy_bytes={} spurious={spurious}", copy_bytes.get())?;
        write!(f, " min_rtt_ms={:.3}", self.min_rtt.as_millis_f64())?;
        write!(f, " rate_kbit={}", self.btl_bw.unwrap_or(Rate::ZERO).as_bits_per_sec() / 1000)?;
        for (limit, span) in LimitedBy::ALL.into_iter().zip(self.limited).filter(|(_, span)| !span.is_zero())
        {
            write!(f, " {}_ms={:.3}", limit.as_str(), span.as_millis_f64())?;
        }
        if let Some(end) = self.slow_start_end {
            write!(f, " slow_start_end={} slow_start_window={}", end.by.as_str(), end.window.get())?;
        }
        write!(f, " migrated={}", self.migrated)?;
        if self.migrated {
            write!(f, " restarted={}", self.restarted.name())?;
        }
        write!(f, " record={}", self.record_outcome.name())?;
        if let (Some(began_at), Some(took)) = (self.first_answer.began_at(), self.first_answer.took()) {
            let millis = began_at.as_nanos() / 1_000_000;
            write!(f, " began={}.{:03}", millis / 1000, millis % 1000)?;
            write!(f, " lasted_ms={:.3}", self.last_at.since(began_at).as_millis_f64())?;
            write!(f, " answer_ms={:.3}", took.as_millis_f64())?;
            write!(f, " answer_bytes={}", self.first_answer.bytes().get())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1200);

    #[test]
    fn slow_start_needs_a_round_trip_more_for_each_doubling() {
        for (packets, rounds) in
            [(0, 0), (1, 1), (10, 1), (11, 2), (30, 2), (31, 3), (70, 3), (71, 4), (150, 4)]
        {
            assert_eq!(slow_start_rounds(PACKET * packets, PACKET), rounds, "{packets} packets");
        }
    }

    #[test]
    fn lost_packets_reduce_the_saved_rounds() {
        let report = |first_round, lost| {
            let (first_round, first_flight_lost) = (PACKET * first_round, PACKET * lost);
            let tally = Tally { first_round, first_flight_lost, ..Tally::default() };
            StartReport { tally, packet: PACKET, ..StartReport::default() }
        };
        for (sent, lost, saved, reason) in [
            (0, 0, 0, "nothing was sent"),
            (10, 0, 0, "as slow start"),
            (86, 0, 3, "four rounds in one"),
            (86, 1, 2, "and one for the repair"),
            (86, 80, -1, "slow start would have been faster"),
            (10, 1, -1, "a loss costs slow start a round trip too, but it is not counted against it here"),
        ] {
            assert_eq!(report(sent, lost).rounds_saved(), saved, "{sent} sent, {lost} lost: {reason}");
        }
    }

    #[test]
    fn it_prints_as_one_line() {
        let scheme = Name::new("wise-start").expect("short");
        let report =
            StartReport { scheme, phases: vec![(Span::ZERO, "slow start")], ..StartReport::default() };
        let line = report.to_string();
        assert!(!line.contains('\n') && line.contains("phases=slow-start@0.0ms"), "{line}");
    }
}
