//! Connection vectors: the data that both ends of a TCP connection exchanged, without the network.
//!
//! Source: F. Hernandez-Campos, F. D. Smith, K. Jeffay, "Generating Realistic TCP Workloads", CMG
//! 2004, and M. C. Weigle et al., "Tmix: A Tool for Generating Realistic TCP Application Workloads
//! in ns-2", CCR 36(3), 2006 (Tmix below). The file formats are those of Tmix in ns-2, as in its
//! manual (chapter "Tmix") and in its converter from the one to the other.
//!
//! A *sequential* connection is a series of epochs a-b-t: the initiator sends a bytes, the acceptor
//! answers with b bytes, and after a time t the next epoch follows. In a *concurrent* one each end
//! sends at its own times, independently of its input.
//!
//! The original format, and the alternate one with the same content:
//!
//! ```text
//! SEQ 1500 2 7 21            S 1500 2 7 21        start in us, epochs, two unused numbers
//! w 64240 8760               w 64240 8760         windows of initiator and acceptor in bytes
//! r 20000                    r 20000              round-trip time in us
//! l 0.000000 0.010000        l 0.000000 0.010000  loss from and to the initiator
//! > 300                      I 0 0 300            send at once
//! t 5000                     A 0 5000 4000        5 ms after the request was read
//! < 4000                     I 0 70000 310
//! t 70000                    A 0 9000 512
//! > 310                      A 2000 0 0           2 ms after its last data: the end
//! t 9000
//! < 512                      CONC 3000 2 1 8 22   start in us, units of the initiator and acceptor
//! t 2000                     c> 100
//!                            t> 2500
//!                            c> 90
//!                            c< 700
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`read`] | the reader of both formats |
//! | [`web`] | vectors of web connections, without a trace |
//!
//! # Deviations
//!
//! - A time after a data unit of the same end counts from the moment when the application handed
//!   that unit over. The application does not see when it left.
//! - Windows, round-trip time and loss are read, checked and kept, but a replay has the path's.

pub mod read;
pub mod web;

use core::fmt;

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
    /// The other one.
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
    /// Its sender.
    pub from: Side,
    /// Time or event after which it is sent.
    pub wait: Wait,
    /// Its size; at least a byte.
    pub bytes: Bytes,
}

/// Path that a connection crossed, as recorded in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The windows of initiator and acceptor.
    pub windows: Option<[Bytes; 2]>,
    /// The round-trip time.
    pub rtt: Option<Span>,
    /// Lost packets per million, from and to the initiator.
    pub loss: Option<[u32; 2]>,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// Time of its first SYN, from the beginning of the trace.
    pub start: Time,
    /// The ends send at their own times.
    pub is_concurrent: bool,
    /// The recorded path.
    pub observed: Observed,
    /// Its data units; of a sequential connection in their order. At least one.
    pub units: Vec<Unit>,
}

impl Vector {
    /// Payload that an end sends.
    #[must_use]
    pub fn payload(&self, from: Side) -> Bytes {
        self.units.iter().filter(|unit| unit.from == from).map(|unit| unit.bytes).sum()
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

    /// Counts in the head of a vector: epochs, or units of initiator and acceptor.
    fn counts(&self) -> Vec<u64> {
        if self.is_concurrent {
            let of = |side: Side| self.units.iter().filter(|unit| unit.from == side).count() as u64;
            return vec![of(Side::Initiator), of(Side::Acceptor)];
        }
        vec![self.epochs().last().map_or(0, |last| u64::from(*last) + 1)]
    }
}

/// Writes the alternate format, which can represent every vector.
impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |nanos: u64| nanos / 1000;
        write!(f, "{} {}", if self.is_concurrent { 'C' } else { 'S' }, micros(self.start.as_nanos()))?;
        for count in self.counts() {
            write!(f, " {count}")?;
        }
        writeln!(f)?;
        if let Some([one, other]) = self.observed.windows {
            writeln!(f, "w {} {}", one.get(), other.get())?;
        }
        if let Some(rtt) = self.observed.rtt {
            writeln!(f, "r {}", micros(rtt.as_nanos()))?;
        }
        if let Some(loss) = self.observed.loss {
            let [one, other] = loss.map(|ppm| format!("{}.{:06}", ppm / 1_000_000, ppm % 1_000_000));
            writeln!(f, "l {one} {other}")?;
        }
        for unit in &self.units {
            let from = if unit.from == Side::Initiator { 'I' } else { 'A' };
            // Zero means no time: at least a microsecond.
            let time = |span: Span| micros(span.as_nanos()).max(1);
            let (sent, received) = match unit.wait {
                Wait::None => (0, 0),
                Wait::Sent(span) => (time(span), 0),
                Wait::Received(span) => (0, time(span)),
            };
            writeln!(f, "{from} {sent} {received} {}", unit.bytes.get())?;
        }
        Ok(())
    }
}

/// Vectors for a run of `duration` in which both ends together offer `payload`. As many of
/// `vectors` are used as that takes, repeated if there are too few. Their starts are spread out or
/// compressed so that they fill the duration.
///
/// The offered payload is the same for every seed, to within the last vector.
#[must_use]
pub fn offered(vectors: impl Iterator<Item = Vector>, payload: Bytes, duration: Span) -> Vec<Vector> {
    offered_by(vectors, payload, duration, |vector| vector.units.iter().map(|unit| unit.bytes).sum())
}

/// As [`offered`], with weights in place of payloads; a weight of zero counts as a byte.
pub fn offered_by(
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
            observed: Observed::default(),
            units: vec![Unit { from: Side::Initiator, wait: Wait::None, bytes: Bytes::new(bytes) }],
        }
    }

    #[test]
    fn vectors_are_drawn_to_the_load_with_starts_over_the_whole_run() {
        let three = || [one(0, 100), one(10, 100), one(30, 100)].into_iter();
        let seconds = |vectors: &[Vector]| -> Vec<u64> {
            vectors.iter().map(|vector| vector.start.as_nanos() / 1_000_000_000).collect()
        };
        let two = offered(three(), Bytes::new(150), Span::from_secs(30));
        assert_eq!(seconds(&two), [0, 20], "two of three, and the last gap is like the one before it");
        let seven = offered(three(), Bytes::new(700), Span::from_secs(30));
        assert_eq!(seven.len(), 7, "again from the beginning");
        assert!(seven.is_sorted_by_key(|vector| vector.start));
        assert!(seconds(&seven).iter().all(|second| *second < 30));
        assert!(offered(std::iter::empty(), Bytes::new(1), Span::from_secs(1)).is_empty());
        assert!(offered(three(), Bytes::ZERO, Span::from_secs(1)).is_empty());
    }
}
