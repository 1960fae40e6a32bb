//! The rate of a path, from packets that left together.
//!
//! A delivery-rate sample of a window that does not fill the path measures the window: 100 kB from
//! ten packets on 25 Mbit/s and 50 ms give 10 Mbit/s. The packets of the first flight leave before
//! any acknowledgement, so the bottleneck spaces them and their acks arrive at its rate. Equation
//! (1) of WiseStart: the bytes that the acks after the first one acknowledge, over the time since
//! the first one.
//!
//! # Limits
//!
//! Acks that were compressed on their way report more than the path carries, as do those of a
//! receiver that reads several datagrams at once: see [`PacketTrain::rate`]. A [`FlightTrain`] is
//! longer, so that the same error of its ends matters less.

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use crate::event::Ack;

/// Equation (1) is WiseStart's sixth ack: five packets after the first.
const SHORTEST: u64 = 5;
/// Longer ones are no more exact, and a scheme's pace has changed by then.
const LONGEST: u64 = 16;
/// Largest multiple of the measured delivery rate that is believed: below the five times by which a
/// record may be wrong at little cost.
const MAX_FACTOR: u64 = 4;

/// The packet train of a first flight.
///
/// An ack of a single packet, from a receiver that otherwise acknowledges several, waited for a
/// timer. It counts once the next of several arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketTrain {
    state: State,
    /// Acknowledged by single packets since then.
    waiting: Bytes,
    /// An ack has covered two packets or more.
    is_thinned: bool,
    /// The estimate so far: bytes, and the time that they took.
    acked: Bytes,
    took: Span,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Unacknowledged,
    /// Times of the first acknowledgement and of the departure of the packet that it is for.
    Acknowledged {
        at: Time,
        sent_at: Time,
    },
    Ended,
}

impl PacketTrain {
    /// An acknowledgement arrived, of packets of `packet` bytes.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack, packet: Bytes) {
        match self.state {
            State::Ended => {}
            State::Unacknowledged => {
                self.state = State::Acknowledged { at: ack.now, sent_at: ack.newest_sent_at };
                self.is_thinned = ack.newly_acked >= packet * 2;
            }
            State::Acknowledged { at, sent_at } => self.extend(ack, packet, at, sent_at),
        }
    }

    fn extend(&mut self, ack: &Ack, packet: Bytes, at: Time, sent_at: Time) {
        // Packets that left after the first ack are spaced by acks.
        if ack.newest_sent_at >= at {
            return self.end();
        }
        let covers_several = ack.newly_acked >= packet * 2;
        self.is_thinned |= covers_several;
        self.waiting += ack.newly_acked;
        if self.is_thinned && !covers_several {
            return;
        }
        self.acked += core::mem::take(&mut self.waiting);
        // The longer interval, as of a delivery-rate sample: a train is no faster than its pace.
        self.took = ack.now.since(at).max(ack.newest_sent_at.since(sent_at));
        if self.acked >= packet * LONGEST {
            self.end();
        }
    }

    /// A packet was lost or marked: later acks do not belong to a train.
    pub fn end(&mut self) {
        self.state = State::Ended;
    }

    /// The path's rate, given the largest delivery rate measured; that one if there was no train,
    /// or a slower one. At most four times it: the acks of a train may have been compressed.
    #[must_use]
    pub fn rate(&self, packet: Bytes, measured: Rate) -> Rate {
        if self.acked < packet * SHORTEST || self.took.is_zero() {
            return measured;
        }
        measured.max((self.acked / self.took).min(measured * MAX_FACTOR))
    }
}

/// For a whole flight: the fewest packets that say something.
const LEAST_OF_FLIGHT: u64 = 8;
/// Acks so soon after the first one were held back with it, and count as one.
const HELD_BACK: Span = Span::from_micros(100);
/// A flight that took longer to arrive than to leave, by more than jitter, was spread by the path.
const SPREAD: Ratio = Ratio::percent(118);

/// The packet train of all of a first flight that leaves before its first acknowledgement.
///
/// First and last ack are taken where neither aggregation nor a delayed ack's timer moves them. The
/// first instant's acks only begin it. An ack of a single packet, from a receiver that otherwise
/// acknowledges several, counts once the next of several arrives.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlightTrain {
    state: State,
    /// Arrival of the last ack of the first instant, and departure of its packet.
    begins: (Time, Time),
    acked: Bytes,
    /// Time in which those arrived, and in which they left.
    took: Span,
    left_in: Span,
    /// Acknowledged by single packets since then.
    waiting: Bytes,
    /// An ack has covered two packets or more.
    is_thinned: bool,
}

/// Arrival of a flight at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The rate of the flight, as it arrived.
    pub rate: Rate,
    /// True if the flight left faster than it arrived.
    pub is_spread: bool,
}

impl FlightTrain {
    /// An acknowledgement arrived, of packets of `packet` bytes.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack, packet: Bytes) {
        let covers_several = ack.newly_acked >= packet * 2;
        match self.state {
            State::Ended => {}
            State::Unacknowledged => {
                self.state = State::Acknowledged { at: ack.now, sent_at: ack.newest_sent_at };
                self.begins = (ack.now, ack.newest_sent_at);
                self.is_thinned = covers_several;
            }
            // Packets that left after the first ack are spaced by acks.
            State::Acknowledged { at, .. } if ack.newest_sent_at >= at => self.state = State::Ended,
            State::Acknowledged { at, .. } if ack.now.since(at) <= HELD_BACK => {
                self.begins = (ack.now, ack.newest_sent_at);
                self.is_thinned |= covers_several;
            }
            State::Acknowledged { .. } => {
                self.is_thinned |= covers_several;
                self.waiting += ack.newly_acked;
                if covers_several || !self.is_thinned {
                    self.acked += core::mem::take(&mut self.waiting);
                    self.took = ack.now.since(self.begins.0);
                    self.left_in = ack.newest_sent_at.since(self.begins.1);
                }
            }
        }
    }

    /// The flight's arrival; `None` if fewer than eight packets say so.
    #[must_use]
    pub fn arrival(&self, packet: Bytes) -> Option<Arrival> {
        let span = self.took.max(self.left_in);
        if self.acked < packet * LEAST_OF_FLIGHT || span.is_zero() {
            return None;
        }
        Some(Arrival { rate: self.acked / span, is_spread: self.took > self.left_in * SPREAD })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::acked;
    use alloc::vec;
    use alloc::vec::Vec;

    const PACKET: Bytes = Bytes::new(1_000);
    /// 1 MB/s: a packet takes a millisecond.
    const PATH: Rate = Rate::from_bytes_per_sec(1_000_000);
    const SLOW: Rate = Rate::from_bytes_per_sec(400_000);

    /// An ack of one packet, in milliseconds.
    fn ack(sent_at: u64, now: u64) -> Ack {
        Ack {
            newest_sent_at: Time::from_millis(sent_at),
            first_flight_acked: PACKET,
            ..acked(Time::from_millis(now), PACKET)
        }
    }

    fn play(acks: &[(u64, u64)]) -> Rate {
        let mut train = PacketTrain::default();
        for &(sent_at, now) in acks {
            train.on_ack(&ack(sent_at, now), PACKET);
        }
        train.rate(PACKET, SLOW)
    }

    fn spaced(packets: u64) -> Vec<(u64, u64)> {
        (0..packets).map(|number| (0, 100 + number)).collect()
    }

    #[test]
    fn a_burst_is_measured_by_the_spacing_of_its_acks() {
        assert_eq!(play(&spaced(10)), PATH);
        assert_eq!(play(&spaced(6)), PATH, "the sixth ack of WiseStart");
        assert_eq!(play(&spaced(5)), SLOW, "too short to say");
    }

    #[test]
    fn packets_that_acks_have_clocked_are_no_part_of_the_train() {
        let mut acks = spaced(10);
        acks.extend([(100, 200), (101, 300)]);
        assert_eq!(play(&acks), PATH);
    }

    #[test]
    fn the_timer_of_a_last_delayed_ack_is_no_part_of_the_train() {
        // One packet, then pairs, and the tenth packet after 25 ms.
        let acks = [(1, 100), (2, 102), (2, 104), (2, 106), (2, 108), (1, 134)];
        let mut train = PacketTrain::default();
        for (packets, now) in acks {
            train.on_ack(&Ack { newly_acked: PACKET * packets, ..ack(0, now) }, PACKET);
        }
        assert_eq!(train.rate(PACKET, SLOW), PATH);
    }

    #[test]
    fn a_paced_train_is_no_faster_than_its_pace() {
        let compressed: Vec<_> = (0..10).map(|number| (2 * number, 100 + number)).collect();
        assert_eq!(play(&compressed), Rate::from_bytes_per_sec(500_000));
    }

    #[test]
    fn compressed_acks_are_believed_up_to_four_times_the_delivery_rate() {
        let mut acks = spaced(1);
        acks.extend([(0, 101); 9]);
        assert_eq!(play(&acks), SLOW * 4);
        assert_eq!(play(&[(0, 100); 10]), SLOW, "at one instant");
    }

    #[test]
    fn a_train_ends_with_a_loss() {
        let mut train = PacketTrain::default();
        train.on_ack(&ack(0, 100), PACKET);
        train.end();
        spaced(10).iter().for_each(|&(sent_at, now)| train.on_ack(&ack(sent_at, now), PACKET));
        assert_eq!(train.rate(PACKET, SLOW), SLOW);
    }

    /// A flight of 80 packets that leaves within 40 ms, over a path of `per_ms` packets each ms.
    /// `receiver` turns times of arrival in microseconds into times of acks, and their packets.
    fn arrival(per_ms: u64, receiver: impl Fn(&[u64]) -> Vec<(u64, u64)>) -> Option<Arrival> {
        let arrivals: Vec<u64> =
            (0..80).map(|packet| 100_000 + (packet * 500).max(packet * 1000 / per_ms)).collect();
        let mut train = FlightTrain::default();
        let mut newest = 0;
        for (now, packets) in receiver(&arrivals) {
            newest += packets;
            let sent_at = Time::ZERO + Span::from_micros((newest - 1) * 500);
            let now = Time::ZERO + Span::from_micros(now);
            train.on_ack(
                &Ack { now, newest_sent_at: sent_at, newly_acked: PACKET * packets, ..ack(0, 0) },
                PACKET,
            );
        }
        train.arrival(PACKET)
    }

    /// Every `each`-th packet is acknowledged, the last one after the delay of a timer.
    fn delayed(each: usize) -> impl Fn(&[u64]) -> Vec<(u64, u64)> {
        move |arrivals| {
            let of = |part: &[u64]| {
                let waits = if part.len() < each { 25_000 } else { 0 };
                (part[part.len() - 1] + waits, part.len() as u64)
            };
            arrivals.chunks(each).map(of).collect()
        }
    }

    /// Acks of every second packet wait for the end of an interval of so many microseconds, and
    /// arrive together, as over Wi-Fi.
    fn aggregated(interval: u64) -> impl Fn(&[u64]) -> Vec<(u64, u64)> {
        move |arrivals| arrivals.chunks(2).map(|part| (part[1].div_ceil(interval) * interval, 2)).collect()
    }

    /// One ack for all packets of each interval, as of a receiver with GRO.
    fn coalesced(interval: u64) -> impl Fn(&[u64]) -> Vec<(u64, u64)> {
        move |arrivals| {
            let of = |part: &[u64]| (part[0].div_ceil(interval) * interval, part.len() as u64);
            arrivals.chunk_by(|a, b| a.div_ceil(interval) == b.div_ceil(interval)).map(of).collect()
        }
    }

    /// Up to 3 ms of jitter, in order.
    fn jittered(arrivals: &[u64]) -> Vec<(u64, u64)> {
        let mut last = 0;
        let late = |(packet, at): (usize, &u64)| {
            last = last.max(at + packet as u64 * 7919 % 3000);
            (last, 1)
        };
        arrivals.iter().enumerate().map(late).collect()
    }

    #[test]
    fn a_flight_is_measured_to_a_quarter_whatever_its_acks_go_through() {
        for (per_ms, is_spread) in [(1, true), (4, false)] {
            let true_rate = 1_000_000 * per_ms.min(2);
            let check = |found: Option<Arrival>, why: &str| {
                let Arrival { rate, is_spread: spread } = found.expect(why);
                let off = rate.as_bytes_per_sec() as f64 / true_rate as f64;
                assert!((0.75..1.25).contains(&off), "{why}: {off} of {per_ms} per ms");
                assert_eq!(spread, is_spread, "{why} of {per_ms} per ms");
            };
            check(arrival(per_ms, |all| all.iter().map(|&at| (at, 1)).collect()), "each");
            check(arrival(per_ms, delayed(2)), "every second");
            check(arrival(per_ms, |all| delayed(2)(&all[..79])), "the last one waits for a timer");
            check(arrival(per_ms, delayed(8)), "thinned");
            check(arrival(per_ms, jittered), "jitter");
            for interval in [1_000, 4_000, 8_000] {
                check(arrival(per_ms, aggregated(interval)), "aggregated");
                check(arrival(per_ms, coalesced(interval)), "coalesced");
            }
        }
    }

    #[test]
    fn eight_packets_after_the_first_instant_are_needed() {
        let found = |packets: usize| arrival(1, |all| all[..packets].iter().map(|&at| (at, 1)).collect());
        assert_eq!(found(8), None);
        assert_eq!(found(9).map(|it| it.rate), Some(PATH));
        assert_eq!(arrival(1, |_| vec![(100_000, 80)]), None, "all in one ack");
        assert_eq!(arrival(1, |_| (0..40).map(|_| (100_000, 2)).collect()), None, "all at one instant");
    }

    #[test]
    fn packets_of_the_second_round_trip_do_not_count() {
        let mut train = FlightTrain::default();
        spaced(20).iter().for_each(|&(sent_at, now)| train.on_ack(&ack(sent_at, now), PACKET));
        let before = train.arrival(PACKET);
        train.on_ack(&ack(100, 500), PACKET);
        train.on_ack(&ack(0, 501), PACKET);
        assert_eq!((train.arrival(PACKET), before.map(|it| it.rate)), (before, Some(PATH)));
    }
}
