//! Connection vectors: the data that both ends of a TCP connection exchanged, without the network.
//!
//! Source: F. Hernandez-Campos, F. D. Smith, K. Jeffay, "Generating Realistic TCP Workloads", CMG
//! 2004, and M. C. Weigle et al., "Tmix: A Tool for Generating Realistic TCP Application Workloads
//! in ns-2", CCR 36(3), 2006 (Tmix below). The file format is Tmix's original one, as in the manual
//! of ns-2 (chapter "Tmix").
//!
//! A *sequential* connection is a series of epochs a-b-t: the initiator sends a bytes, the acceptor
//! answers with b bytes, and after a time t the next epoch follows. In a *concurrent* one each end
//! sends at its own times, independently of its input.
//!
//! ```text
//! SEQ 1500 2 7 21            start in us, epochs, two unused numbers
//! w 64240 8760               windows of initiator and acceptor in bytes
//! r 20000                    round-trip time in us
//! l 0.000000 0.010000        loss from and to the initiator
//! > 300                      send at once
//! t 5000                     5 ms after the request was read
//! < 4000
//! t 70000
//! > 310
//! t 9000
//! < 512
//! t 2000                     2 ms after its last data: the end
//! CONC 3000 2 1 8 22         start in us, units of the initiator and acceptor
//! c> 100
//! t> 2500
//! c> 90
//! c< 700
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`read`] | the reader of that format |
//! | [`web`] | vectors of web connections, without a trace |
//!
//! # Deviations
//!
//! - A time after a data unit of the same end counts from the moment when the application handed
//!   that unit over. The application does not see when it left.
//! - Windows, round-trip time and loss are skipped: a replay has the path's.

pub mod read;
pub mod web;

use headstart_units::{Bytes, Span, Time};

pub use read::VectorError;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that sent the SYN.
    Initiator,
    /// The end that answered it.
    Acceptor,
}

impl Side {
    /// The other direction.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Acceptor,
            Self::Acceptor => Self::Initiator,
        }
    }
}

/// Condition for an end to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As soon as there is a connection, or with its previous unit.
    None,
    /// So long after the hand-over of its previous unit; a first one: after the connection began.
    Sent(Span),
    /// So long after it had read all units of the other end before this one.
    Received(Span),
}

/// An application data unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Sender of the unit.
    pub from: Side,
    /// Time or event after which it is sent.
    pub wait: Wait,
    /// Size of the unit; at least a byte.
    pub bytes: Bytes,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Time of its first SYN, from the beginning of the trace.
    pub start: Time,
    /// The ends send at their own times.
    pub is_concurrent: bool,
    /// Data units of the connection; of a sequential connection in their order. At least one.
    pub units: Vec<Unit>,
}

impl Vector {
    /// Payload that both ends send.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        self.units.iter().map(|unit| unit.bytes).sum()
    }

    /// Number of the epoch of each unit, from zero. Of a sequential connection an epoch is
    /// a request with the unit that answers it; further units of either end are epochs of their
    /// own. Of a concurrent one every unit is.
    #[must_use]
    pub fn epochs(&self) -> Vec<u32> {
        let mut epoch = 0;
        let mut before = None;
        self.units
            .iter()
            .map(|unit| {
                let answers = before == Some(Side::Initiator) && unit.from == Side::Acceptor;
                if before.is_some() && (self.is_concurrent || !answers) {
                    epoch += 1;
                }
                before = Some(unit.from);
                epoch
            })
            .collect()
    }
}

/// Vectors for a run of `duration` whose weights are `amount` in all; one of zero counts as a byte.
/// As many of `vectors` are used as that takes, repeated if there are too few. Their starts are
/// spread out or compressed so that they fill the duration.
///
/// The amount is the same for every seed, to within the last vector.
pub fn offered(
    vectors: impl Iterator<Item = Vector>,
    amount: Bytes,
    duration: Span,
    weight: impl Fn(&Vector) -> Bytes,
) -> Vec<Vector> {
    let weight = |vector: &Vector| weight(vector).max(Bytes::new(1));
    let mut chosen: Vec<Vector> = vec![];
    let mut sum = Bytes::ZERO;
    for vector in vectors {
        if sum >= amount {
            break;
        }
        sum += weight(&vector);
        chosen.push(vector);
    }
    let given = chosen.len();
    let length = chosen.last().map_or(0, |last| last.start.as_nanos()) + 1;
    let mut lap = 0;
    while sum < amount && given > 0 {
        lap += 1;
        for number in 0..given {
            if sum >= amount {
                break;
            }
            let mut again = chosen[number].clone();
            sum += weight(&again);
            again.start = Time::from_nanos(again.start.as_nanos().saturating_add(length.saturating_mul(lap)));
            chosen.push(again);
        }
    }
    // The gap after the last start is as long as one before it.
    let starts = chosen.len() as u128;
    let last = chosen.last().map_or(0, |last| u128::from(last.start.as_nanos()));
    let whole = (last * (starts + 1) / starts.max(1)).max(1);
    for vector in &mut chosen {
        let scaled = u128::from(vector.start.as_nanos()) * u128::from(duration.as_nanos()) / whole;
        vector.start = Time::from_nanos(scaled as u64);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(start: u64, bytes: u64) -> Vector {
        Vector {
            start: Time::from_millis(start),
            is_concurrent: false,
            units: vec![Unit { from: Side::Initiator, wait: Wait::None, bytes: Bytes::new(bytes) }],
        }
    }

    #[test]
    fn vectors_are_drawn_to_the_load_with_starts_over_the_whole_run() {
        let three = || [one(0, 100), one(10, 100), one(30, 100)].into_iter();
        let seconds = |vectors: &[Vector]| -> Vec<u64> {
            vectors.iter().map(|vector| vector.start.as_nanos() / 1_000_000_000).collect()
        };
        let two = offered(three(), Bytes::new(150), Span::from_secs(30), Vector::payload);
        assert_eq!(seconds(&two), [0, 20], "two of three, and the last gap is like the one before it");
        let seven = offered(three(), Bytes::new(700), Span::from_secs(30), Vector::payload);
        assert_eq!(seven.len(), 7, "again from the beginning");
        assert!(seven.is_sorted_by_key(|vector| vector.start));
        assert!(seconds(&seven).iter().all(|second| *second < 30));
        assert!(offered(std::iter::empty(), Bytes::new(1), Span::from_secs(1), Vector::payload).is_empty());
        assert!(offered(three(), Bytes::ZERO, Span::from_secs(1), Vector::payload).is_empty());
    }
}
