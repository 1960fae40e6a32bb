//! The order of events: a heap of timers, and a tournament between the elements of the path.
//!
//! Packets in transit do not go through the heap: each element holds its own in order, with the
//! time of the first; the tournament keeps the earliest of those. Fixed numbers break ties.

use headstart_units::Time;

use crate::packet::FlowId;

/// The kinds of per-flow timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TimerKind {
    /// Loss detection: reordering, probe or retransmission timeout.
    Loss,
    /// The pacer releases the next packet.
    Pace,
    /// A delayed acknowledgement is due.
    DelayedAck,
    /// The opener sends its SYN or request again.
    Client,
}

/// Number of kinds of per-flow timers.
pub const FLOW_TIMERS: usize = 4;

/// An entry of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// Time of its expiry.
    pub at: Time,
    /// The flow to which it belongs.
    pub flow: FlowId,
    /// Kind of timer.
    pub kind: TimerKind,
}

impl TimerKind {
    const ALL: [Self; FLOW_TIMERS] = [Self::Loss, Self::Pace, Self::DelayedAck, Self::Client];
}

/// A timer as one number, which has the order of timers: 64 bits of time, 32 of the slot, 16 of
/// the generation, 8 of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u128);

impl From<Timer> for Key {
    #[inline]
    fn from(timer: Timer) -> Self {
        Self(
            u128::from(timer.at.as_nanos()) << 64
                | u128::from(timer.flow.slot) << 32
                | u128::from(timer.flow.generation) << 8
                | timer.kind as u128,
        )
    }
}

impl From<Key> for Timer {
    #[inline]
    fn from(key: Key) -> Self {
        let flow = FlowId { slot: (key.0 >> 32) as u32, generation: (key.0 >> 8) as u16 };
        Self { at: key.at(), flow, kind: TimerKind::ALL[key.0 as usize % FLOW_TIMERS] }
    }
}

impl Key {
    #[inline]
    fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
}

/// A four-ary heap: half the depth of a binary one, and its children share a cache line.
#[derive(Debug, Default)]
pub struct Timers(Vec<Key>);

impl Timers {
    /// Time of the first expiry.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.0.first().map_or(Time::NEVER, |key| key.at())
    }

    /// Adds a timer.
    pub fn push(&mut self, timer: Timer) {
        let key = Key::from(timer);
        let mut hole = self.0.len();
        self.0.push(key);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.0[parent] <= key {
                break;
            }
            self.0[hole] = self.0[parent];
            hole = parent;
        }
        self.0[hole] = key;
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Timer> {
        let last = self.0.pop()?;
        let Some(&first) = self.0.first() else { return Some(last.into()) };
        let mut hole = 0;
        loop {
            let children = hole * 4 + 1;
            let (mut child, mut smallest) = (children, last);
            for (place, key) in self.0.iter().enumerate().skip(children).take(4) {
                if *key < smallest {
                    (child, smallest) = (place, *key);
                }
            }
            if smallest == last {
                break;
            }
            self.0[hole] = smallest;
            hole = child;
        }
        self.0[hole] = last;
        Some(first.into())
    }
}

/// The earliest of a fixed number of elements, kept up to date by one walk to the root.
#[derive(Debug)]
pub struct Tournament {
    times: Vec<Time>,
    /// Winner of each match; the elements' own places are below the last level.
    winners: Vec<u16>,
    places: usize,
}

impl Tournament {
    /// `elements` without any due time.
    #[must_use]
    pub fn new(elements: usize) -> Self {
        let places = elements.next_power_of_two().max(2);
        let mut winners = vec![0; 2 * places];
        for place in 0..places {
            winners[places + place] = place as u16;
        }
        for node in (1..places).rev() {
            winners[node] = winners[2 * node];
        }
        Self { times: vec![Time::NEVER; places], winners, places }
    }

    /// The earliest time, and the index of its element.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        let winner = usize::from(self.winners[1]);
        (self.times[winner], winner)
    }

    /// Sets the due time of element `who` to `at`.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub fn update(&mut self, who: usize, at: Time) {
        if self.times[who] == at {
            return;
        }
        self.times[who] = at;
        let mut node = (self.places + who) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let right_wins = self.times[usize::from(right)] < self.times[usize::from(left)];
            self.winners[node] = if right_wins { right } else { left };
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Seed};

    #[test]
    fn timers_fire_in_order_of_time_then_flow_then_kind() {
        let mut random = Random::new(Seed(3));
        let mut timers = Timers::default();
        let mut expected = vec![];
        for _ in 0..1000 {
            let timer = Timer {
                at: Time::from_nanos(random.below(50)),
                flow: FlowId { slot: random.below(5) as u32, generation: random.below(3) as u16 },
                kind: [TimerKind::Loss, TimerKind::Pace][random.below(2) as usize],
            };
            timers.push(timer);
            expected.push(timer);
        }
        expected.sort();
        let popped: Vec<_> = std::iter::from_fn(|| timers.pop()).collect();
        assert_eq!(popped, expected);
    }

    #[test]
    fn the_tournament_finds_the_earliest() {
        let mut random = Random::new(Seed(4));
        for elements in [1, 2, 3, 7, 20] {
            let mut tournament = Tournament::new(elements);
            let mut times = vec![Time::NEVER; elements];
            for _ in 0..500 {
                let who = random.below(elements as u64) as usize;
                times[who] = Time::from_nanos(random.below(100));
                tournament.update(who, times[who]);
                let (at, winner) = tournament.first();
                assert_eq!(Some(&at), times.iter().min());
                assert_eq!(times[winner], at);
            }
        }
    }
}
