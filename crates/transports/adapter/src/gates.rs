//! Conditions for the use of a record and for a fast start, and the control arm.
//!
//! A record describes the past. It is withheld from the scheme, which then starts normally, if it
//! is too old, or if the path's RTT has changed (RFC 9959, Confirming the Path;
//! [`Record::contradicted_by`]). Connections that are open at once share it. With n others open, a
//! connection gets the fraction 1/(n+1) of its rate and windows. It starts normally if that
//! bandwidth-delay product is no more than the initial window. Arms are drawn *after* that, so that
//! both hold the same kind of connections.
//!
//! A fast start saves round trips at the price of pacing its packets over one. On a path so short
//! that a host's timers are no finer than the gaps between packets it saves nothing: slow start
//! runs there ([`NothingToGain::ShortPath`]). Nor is there anything to save where slow start's
//! initial window does as well ([`NothingToGain::InitialWindow`]). An answer that fits into it
//! leaves at once, and the scheme goes on after it. A record or hint with a smaller bandwidth-delay
//! product would begin with less than slow start does, and is not used. Halfback sends nothing
//! beyond its flight until that is delivered, and then goes on in congestion avoidance. For a long
//! answer this takes more round trips than slow start, and the copies delay the rest. Slow start
//! runs for such an answer, too ([`NothingToGain::LongAnswer`]).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use headstart_startup::history::{Record, Refusal, SharedRecord};
use headstart_units::{Bytes, Ratio, Span, Time};

use crate::start_report::slow_start_rounds;

/// Conditions for the use of a record and of a fast start; values given are the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Highest age of a record. Ten minutes, as Careful Resume has it here. A scheme that reserves
    /// credit (`Requirements::reserves_credit`) takes records of any age.
    pub lifetime: Span,
    /// Requires that the path's RTT agrees with the record's ([`Record::contradicted_by`]). On;
    /// WiseStart as published has no such check.
    pub same_path: bool,
    /// Gives the whole of a record only to a connection that is alone with it; with n others it
    /// gets 1/(n+1). On: several at once would each send the whole of it. Connections of a
    /// scheme that reserves credit share that instead.
    pub alone: bool,
    /// Lowest handshake RTT for a fast start; 2 ms (`docs/records/short-paths.md`).
    pub shortest_rtt: Span,
    /// Requires of a fast start more than the initial window (RFC 9002 §7.2). On: an answer that
    /// fits into it leaves unpaced with any scheme, and a record or hint with no larger
    /// bandwidth-delay product is not used.
    pub beyond_initial_window: bool,
    /// Runs slow start for an answer that is longer than the flight of a scheme that ends with it
    /// (Halfback). The scheme runs nevertheless if it takes fewer round trips and a record shows a
    /// path that holds half of the flight. On a smaller path the copies delay the rest by more than
    /// a round trip. On; Halfback §3.3: "Aggressive transmission is not useful for long flows".
    pub spares_long_answers: bool,
}

/// Reasons for slow start although the scheme's input was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NothingToGain {
    /// The handshake RTT is below [`Gates::shortest_rtt`].
    ShortPath,
    /// The answer fits into the initial window, or the hint's bandwidth-delay product does.
    InitialWindow,
    /// The answer is longer than the flight, and slow start does as well.
    LongAnswer,
}

impl NothingToGain {
    /// All reasons, in the order of tables.
    pub const ALL: [Self; 3] = [Self::ShortPath, Self::InitialWindow, Self::LongAnswer];

    /// Name of the reason in logs and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShortPath => "short-path",
            Self::InitialWindow => "initial-window",
            Self::LongAnswer => "long-answer",
        }
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            lifetime: Span::from_secs(600),
            same_path: true,
            alone: true,
            shortest_rtt: Span::from_millis(2),
            beyond_initial_window: true,
            spares_long_answers: true,
        }
    }
}

impl Gates {
    /// All open, as the papers measured: records are always used and schemes run on every path.
    pub const OPEN: Self = Self {
        lifetime: Span::MAX,
        same_path: false,
        alone: false,
        shortest_rtt: Span::ZERO,
        beyond_initial_window: false,
        spares_long_answers: false,
    };

    /// The conditions for a scheme that reserves credit or not. A credit is shared by the bytes in
    /// flight, and a false record costs one flight however old it is.
    #[must_use]
    pub fn with_credit(self, reserves_credit: bool) -> Self {
        if reserves_credit { Self { alone: false, lifetime: Span::MAX, ..self } } else { self }
    }

    /// The record, or its share, if it may be used on a path of `rtt` at `now`, where slow start
    /// begins with `initial_window`.
    ///
    /// # Errors
    /// The first condition that does not hold.
    pub fn judge(
        &self,
        known: Option<SharedRecord>,
        now: Time,
        rtt: Span,
        initial_window: Bytes,
    ) -> Result<SharedRecord, Refusal> {
        let (known, bdp) = known.and_then(|it| Some((it, it.record.bdp()?))).ok_or(Refusal::NoRecord)?;
        if known.record.is_expired(now, self.lifetime) {
            return Err(Refusal::Expired);
        }
        match known.record.contradicted_by(rtt) {
            Some(refusal) if self.same_path => return Err(refusal),
            _ if !self.exceeds_initial_window(bdp, initial_window) => return Err(Refusal::NothingToGain),
            _ => {}
        }
        if !self.alone || known.live == 0 {
            return Ok(known);
        }
        let record = share(known.record, known.live);
        match record.bdp() {
            Some(bdp) if self.exceeds_initial_window(bdp, initial_window) => {
                Ok(SharedRecord { record, ..known })
            }
            _ => Err(Refusal::InUse),
        }
    }
}

/// The part of a record for one of `others` + 1 connections.
fn share(record: Record, others: u32) -> Record {
    let part = Ratio::new(1, others.saturating_add(1));
    let ssthresh = if record.ssthresh == Bytes::MAX { Bytes::MAX } else { record.ssthresh * part };
    Record { btl_bw: record.btl_bw * part, window: record.window * part, ssthresh, ..record }
}

impl Gates {
    /// True if a first flight of `planned` bytes is worth a fast start.
    #[must_use]
    pub fn exceeds_initial_window(&self, planned: Bytes, initial_window: Bytes) -> bool {
        !self.beyond_initial_window || planned > initial_window
    }

    /// True if a scheme that ends with its `flight` is faster than slow start for an answer of
    /// `size`. Both count in packets of `packet`, on a path of that bandwidth-delay product if it
    /// is known. The scheme takes two round trips until the flight is delivered, then one for each
    /// further flight.
    #[must_use]
    pub fn outruns(&self, flight: Bytes, size: Bytes, packet: Bytes, bdp: Option<Bytes>) -> bool {
        let later = size.saturating_sub(flight).get().div_ceil(flight.get().max(1));
        if !self.spares_long_answers || later == 0 {
            return true;
        }
        bdp.is_some_and(|bdp| bdp >= flight / 2) && later + 2 < u64::from(slow_start_rounds(size, packet))
    }
}

/// A refusal as a word, for logs and labels.
#[must_use]
pub const fn name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::NoRecord => "no-record",
        Refusal::Expired => "expired",
        Refusal::InUse => "in-use",
        Refusal::RttTooSmall => "rtt-too-small",
        Refusal::RttTooLarge => "rtt-too-large",
        Refusal::NothingToGain => "nothing-to-gain",
        Refusal::Congested => "congested",
    }
}

/// Share of the eligible connections that run the scheme. May change while the server runs.
#[derive(Debug)]
pub struct Rollout {
    hundredths: AtomicU32,
    stopped: AtomicBool,
    guarded: AtomicBool,
}

impl Default for Rollout {
    fn default() -> Self {
        Self::new(100.0)
    }
}

impl Rollout {
    /// A share in percent, to a hundredth; below 0 is 0, above 100 is 100.
    #[must_use]
    pub fn new(percent: f64) -> Self {
        let rollout = Self {
            hundredths: AtomicU32::new(0),
            stopped: AtomicBool::new(false),
            guarded: AtomicBool::new(false),
        };
        rollout.set(percent);
        rollout
    }

    /// Sets the share, in percent.
    pub fn set(&self, percent: f64) {
        // A float outside the integer's range saturates; NaN becomes 0.
        self.hundredths.store((percent.clamp(0.0, 100.0) * 100.0).round() as u32, Ordering::Relaxed);
    }

    /// The kill switch: every new connection runs the control scheme from now on.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Lets starts be fast again after [`Self::stop`].
    pub fn resume(&self) {
        self.stopped.store(false, Ordering::Relaxed);
    }

    /// Stops the rollout by a [`Guard`](crate::Guard): [`Self::resume`] does not undo it.
    pub fn stop_guarded(&self) {
        self.guarded.store(true, Ordering::Relaxed);
    }

    /// Lets starts be fast again after [`Self::stop_guarded`].
    pub fn resume_guarded(&self) {
        self.guarded.store(false, Ordering::Relaxed);
    }

    /// The arm of a connection with a uniformly drawn `number`.
    #[must_use]
    pub fn draw(&self, is_eligible: bool, number: u64) -> Arm {
        if self.stopped.load(Ordering::Relaxed) || self.guarded.load(Ordering::Relaxed) {
            Arm::Stopped
        } else if !is_eligible {
            Arm::Ineligible
        } else if number % 10_000 < u64::from(self.hundredths.load(Ordering::Relaxed)) {
            Arm::Treatment
        } else {
            Arm::Control
        }
    }
}

/// The arm of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arm {
    /// Not decided yet: no data sent.
    #[default]
    Undecided,
    /// The scheme, with its input.
    Treatment,
    /// Eligible, but drawn for the control scheme.
    Control,
    /// The scheme without its input: a normal start.
    Ineligible,
    /// The control scheme, by the kill switch or the guard.
    Stopped,
}

impl Arm {
    /// All arms, in the order of tables.
    pub const ALL: [Self; 5] =
        [Self::Undecided, Self::Treatment, Self::Control, Self::Ineligible, Self::Stopped];

    /// Name of the arm in logs and labels.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Treatment => "treatment",
            Self::Control => "control",
            Self::Ineligible => "ineligible",
            Self::Stopped => "stopped",
        }
    }
}

/// The refusal of a judged record; `None` for a record that passed.
#[must_use]
pub fn refusal(judged: &Result<SharedRecord, Refusal>) -> Option<Refusal> {
    judged.as_ref().err().copied()
}

/// The record, if it passed.
#[must_use]
pub fn passed(judged: &Result<SharedRecord, Refusal>) -> Option<Record> {
    judged.as_ref().ok().map(|known| known.record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_units::Rate;

    fn known(live: u32) -> Option<SharedRecord> {
        let record = Record {
            saved_at: Time::from_millis(1_000),
            btl_bw: Rate::from_mbit_per_sec(25),
            rt_prop: Span::from_millis(50),
            ..Record::default()
        };
        Some(SharedRecord { record, live })
    }

    #[test]
    fn a_record_passes_every_gate_or_none() {
        let (gates, soon, late) = (Gates::default(), Time::from_millis(2_000), Time::from_millis(601_001));
        #[rustfmt::skip]
        let rows = [
            (known(0), soon, 50,  None,                       "as it was"),
            (None,     soon, 50,  Some(Refusal::NoRecord),    "there is none"),
            (known(0), late, 50,  Some(Refusal::Expired),     "a millisecond too old"),
            (known(1), soon, 50,  None,                       "its share is more than the window"),
            (known(99), soon, 50, Some(Refusal::InUse),       "too many share it"),
            (known(0), soon, 25,  Some(Refusal::RttTooSmall), "half as long"),
            (known(0), soon, 501, Some(Refusal::RttTooLarge), "more than ten times"),
        ];
        let window = Bytes::new(12_000);
        for (known, now, rtt, expected, reason) in rows {
            assert_eq!(
                refusal(&gates.judge(known, now, Span::from_millis(rtt), window)),
                expected,
                "{reason}"
            );
            assert_eq!(
                Gates::OPEN.judge(known, now, Span::from_millis(rtt), window).is_ok(),
                known.is_some(),
                "{reason}"
            );
        }
    }

    #[test]
    fn connections_of_one_peer_at_once_share_its_record() {
        let judge = |gates: Gates, live| {
            let mut known = known(live);
            if let Some(known) = &mut known {
                (known.record.window, known.record.ssthresh) = (Bytes::new(120_000), Bytes::new(60_000));
            }
            passed(&gates.judge(known, Time::from_millis(2_000), Span::from_millis(50), Bytes::new(12_000)))
        };
        for others in 0..12 {
            let record = judge(Gates::default(), others).expect("13 times the initial window");
            let part = u64::from(others) + 1;
            assert_eq!(record.btl_bw.as_bytes_per_sec(), 3_125_000 / part, "with {others} others");
            assert_eq!(record.window.get(), 120_000 / part, "with {others} others");
            assert_eq!(record.ssthresh.get(), 60_000 / part, "with {others} others");
            assert_eq!(record.rt_prop, Span::from_millis(50), "the path is as long for all");
            assert_eq!(judge(Gates::OPEN, others), judge(Gates::OPEN, 0), "no gate, no share");
        }
        assert_eq!(judge(Gates::default(), 13), None, "less than the initial window");
    }

    /// 25 Mbit/s times 50 ms is 156 250 bytes.
    #[test]
    fn a_record_within_the_initial_window_is_not_used() {
        let judge = |gates: Gates, window| {
            gates.judge(known(0), Time::from_millis(2_000), Span::from_millis(50), Bytes::new(window))
        };
        assert_eq!(refusal(&judge(Gates::default(), 156_249)), None);
        assert_eq!(refusal(&judge(Gates::default(), 156_250)), Some(Refusal::NothingToGain));
        assert_eq!(refusal(&judge(Gates::OPEN, 156_250)), None);
    }

    /// Flights of 116 packets: 2 and then 1 for each further one, against 10 (2^n - 1) packets.
    #[test]
    fn a_long_response_needs_room_for_the_flight_and_fewer_rounds_than_slow_start() {
        let packet = Bytes::new(1_200);
        #[rustfmt::skip]
        let rows = [
            // packets  bdp       outruns  why
            (116,       None,     true,    "all of it is the flight"),
            (117,       None,     false,   "nothing is known of the path"),
            (117,       Some(57), false,   "it holds less than half of the flight"),
            (117,       Some(58), true,    "3 against 4"),
            (348,       Some(58), true,    "4 against 6"),
            (464,       Some(58), true,    "5 against 6"),
            (465,       Some(58), false,   "6 against 6"),
            (833,       Some(58), false,   "10 against 7"),
        ];
        for (packets, bdp, outruns, reason) in rows {
            for (gates, outruns) in [(Gates::default(), outruns), (Gates::OPEN, true)] {
                let bdp = bdp.map(|packets| packet * packets);
                let found = gates.outruns(packet * 116, packet * packets, packet, bdp);
                assert_eq!(found, outruns, "{packets} packets: {reason}");
            }
        }
    }

    #[test]
    fn an_empty_record_counts_as_none() {
        let mut empty = known(0);
        if let Some(known) = &mut empty {
            known.record.btl_bw = Rate::ZERO;
        }
        let judged = Gates::OPEN.judge(empty, Time::ZERO, Span::from_millis(50), Bytes::new(12_000));
        assert_eq!(refusal(&judged), Some(Refusal::NoRecord));
        assert_eq!(passed(&judged), None);
    }

    #[test]
    fn arms_are_drawn_among_eligible_connections_at_their_share() {
        for (percent, expected) in
            [(0.0, 0), (12.5, 1_250), (100.0, 10_000), (-1.0, 0), (f64::NAN, 0), (1e9, 10_000)]
        {
            let rollout = Rollout::new(percent);
            let drawn = (0..10_000).filter(|&number| rollout.draw(true, number) == Arm::Treatment).count();
            assert_eq!(drawn, expected, "{percent} %");
            assert_eq!(rollout.draw(false, 0), Arm::Ineligible);
        }
    }

    #[test]
    fn the_kill_switch_stops_all_fast_starts_at_once() {
        let rollout = Rollout::default();
        rollout.stop();
        assert_eq!(rollout.draw(true, 0), Arm::Stopped);
        rollout.resume();
        assert_eq!(rollout.draw(true, 0), Arm::Treatment);
    }
}
