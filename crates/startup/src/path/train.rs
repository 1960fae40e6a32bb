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
//! receiver that reads several datagrams at once: see [`PacketTrain::rate`].

use headstart_units::{Bytes, Rate, Span, Time};

use crate::event::Ack;

/// Equation (1) is WiseStart's sixth ack: five packets after the first.
const SHORTEST: u64 = 5;
/// Longer ones are no more exact, and a scheme's pace has changed by then.
const LONGEST: u64 = 16;
/// Largest multiple of the measured delivery rate that is believed: below the five times by which a
/// record may be wrong at little cost.
const MAX_FACTOR: u64 = 4;

/// The packet train of a first flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketTrain {
    state: State,
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
            }
            State::Acknowledged { at, sent_at } => self.extend(ack, packet, at, sent_at),
        }
    }

    fn extend(&mut self, ack: &Ack, packet: Bytes, at: Time, sent_at: Time) {
        // Packets that left after the first ack are spaced by acks.
        if ack.newest_sent_at >= at {
            return self.end();
        }
        self.acked += ack.newly_acked;
        // The longer interval, as of a delivery-rate sample: a train is no faster than its pace.
        self.took = ack.now.since(at).max(ack.newest_sent_at.since(sent_at));
        if self.acked >= packet * LONGEST {
            self.end();
        }
    }

    /// A packet was lost or marked: later acks are not those of a train.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{RateSample, Rtt};

    const PACKET: Bytes = Bytes::new(1_000);
    /// 1 MB/s: a packet takes a millisecond.
    const PATH: Rate = Rate::from_bytes_per_sec(1_000_000);
    const SLOW: Rate = Rate::from_bytes_per_sec(400_000);

    /// An ack of one packet, in milliseconds.
    fn ack(sent_at: u64, now: u64) -> Ack {
        Ack {
            now: Time::from_millis(now),
            newest_sent_at: Time::from_millis(sent_at),
            newly_acked: PACKET,
            first_flight_acked: PACKET,
            rtt_sample: None,
            rtt: Rtt::default(),
            in_flight: Bytes::ZERO,
            delivered: Bytes::ZERO,
            rate: RateSample::default(),
            is_window_limited: true,
            in_recovery: false,
            is_all_sent: false,
            marked: Bytes::ZERO,
            stamped: None,
        }
    }

    fn play(acks: &[(u64, u64)]) -> Rate {
        let mut train = PacketTrain::default();
        for &(sent_at, now) in acks {
            train.on_ack(&ack(sent_at, now), PACKET);
        }
        train.rate(PACKET, SLOW)
    }

    fn spaced(packets: u64) -> alloc::vec::Vec<(u64, u64)> {
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
    fn a_paced_train_is_no_faster_than_its_pace() {
        let compressed: alloc::vec::Vec<_> = (0..10).map(|number| (2 * number, 100 + number)).collect();
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
}
