//! Path records: measurements of earlier connections to a peer, and their store.
//!
//! WiseStart §3.2: a table keyed by peer address; each entry holds its time of recording, the
//! maximum delivery rate (BtlBw) and the minimum RTT (RTprop). TCP-Cache needs the window and
//! threshold too. Written when a connection closes, read when the next one is established.
//!
//! A [`Store`] is shared by all connections of a host. Reading a record and reserving it are one
//! step, so that concurrent connections which start from it are counted.

pub mod credit;
pub mod memory;
pub mod networks;

use core::net::IpAddr;

use headstart_units::{Bytes, Rate, Ratio, Span, Time};

use crate::path::bdp;

pub use credit::{FirstContacts, Revision, SharedCredit};
pub use memory::{Counters, FixedHash, MemoryStore, StoreChange};
pub use networks::{Network, Networks};

/// A path record: the measurements of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of recording.
    pub saved_at: Time,
    /// The maximum delivery rate, from samples that were not application-limited if there were any.
    pub btl_bw: Rate,
    /// The smallest RTT.
    pub rt_prop: Span,
    /// The congestion window at the end, in bytes.
    pub window: Bytes,
    /// The slow start threshold at the end, in bytes; [`Bytes::MAX`] if none was ever set.
    pub ssthresh: Bytes,
    /// Outcome of that connection's own start.
    pub outcome: FlightOutcome,
    /// Credit: bytes that concurrent first flights to this peer may hold together, as adjusted by
    /// earlier ones ([`Store::release`]); zero: none yet.
    pub credit: Bytes,
    /// Part of the handshake's RTT that is not the path's: a low estimate of the time in which both
    /// ends process the handshake. Zero if the scheme does not estimate it.
    pub handshake_excess: Span,
}

impl Default for Record {
    /// A clean start that measured nothing.
    fn default() -> Self {
        Self {
            saved_at: Time::ZERO,
            btl_bw: Rate::ZERO,
            rt_prop: Span::ZERO,
            window: Bytes::ZERO,
            ssthresh: Bytes::MAX,
            outcome: FlightOutcome::Clean,
            credit: Bytes::ZERO,
            handshake_excess: Span::ZERO,
        }
    }
}

impl Record {
    /// BtlBw x RTprop; `None` if one of them is zero.
    #[must_use]
    pub fn bdp(&self) -> Option<Bytes> {
        bdp(self.btl_bw, self.rt_prop)
    }

    /// The BDP as a window of two segments at least, and BtlBw. Where the BDP is less than two
    /// segments, the rate is the one at which two leave within `rtt`, so that a degenerate record
    /// cannot stall a sender.
    #[must_use]
    pub fn window_and_rate(&self, mss: Bytes, rtt: Span) -> Option<(Bytes, Rate)> {
        let (bdp, least) = (self.bdp()?, mss * MINIMUM_SEGMENTS);
        Some(if bdp < least { (least, self.btl_bw.max(least / rtt)) } else { (bdp, self.btl_bw) })
    }

    /// True if it is older than `lifetime`; never for a record from the future of a clock set back.
    #[must_use]
    pub fn is_expired(&self, now: Time, lifetime: Span) -> bool {
        now.since(self.saved_at) > lifetime
    }

    /// The reason why a path with this RTT is not the recorded one (RFC 9959, Confirming the Path):
    /// half the recorded RTT or less, or more than ten times it.
    #[must_use]
    pub fn contradicted_by(&self, rtt: Span) -> Option<Refusal> {
        if rtt <= self.rt_prop * RTT_TOO_SMALL {
            Some(Refusal::RttTooSmall)
        } else if rtt > self.rt_prop * RTT_TOO_LARGE {
            Some(Refusal::RttTooLarge)
        } else {
            None
        }
    }
}

/// A smallest value on record after another measurement: it falls at once, and rises slowly.
#[must_use]
pub fn raised_slowly(before: Span, measured: Span) -> Span {
    if before < measured { before + (measured - before) / RISE_DIVISOR } else { measured }
}

/// With each connection smallest values rise by 1/8 of the difference to a larger one.
const RISE_DIVISOR: u64 = 8;

/// RFC 5681 §3.1: the least window of a controller.
const MINIMUM_SEGMENTS: u64 = 2;
const RTT_TOO_SMALL: Ratio = Ratio::new(1, 2);
const RTT_TOO_LARGE: u64 = 10;

/// Outcome of a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlightOutcome {
    /// No packet of the first flight was lost.
    #[default]
    Clean,
    /// At least one packet of the first flight was lost.
    Lossy,
}

/// The reason why a record was not used, or not to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no record, or it is empty.
    NoRecord,
    /// The record is too old.
    Expired,
    /// Another connection that began from it is still open.
    InUse,
    /// The path's RTT is half the recorded one or less.
    RttTooSmall,
    /// The path's RTT is more than ten times the recorded one.
    RttTooLarge,
    /// The record allows no more than the present window.
    NothingToGain,
    /// Congestion occurred before it could be used.
    Congested,
}

/// A record and its use by other connections, for a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRecord {
    /// The record of the peer.
    pub record: Record,
    /// Other open connections that began from it.
    pub live: u32,
}

/// Effect of a closing connection on the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordUpdate {
    /// The connection's measurement. The newest record wins, whichever connection closes last.
    Replace(Record),
    /// The connection measured nothing worth storing.
    Keep,
    /// The record it began from was wrong and is removed. If that record has been replaced
    /// meanwhile, the newer one stays.
    Remove,
}

/// A connection's reference to the store from its start to its end. Return it with
/// [`Store::close`]; a dropped one counts as a live connection until its record is evicted.
#[derive(Debug)]
#[must_use = "a lease must be closed, or its record counts as in use"]
pub struct Lease {
    pub(crate) peer: IpAddr,
    /// Write counts of the entry's and of the record's creation, if there was one.
    pub(crate) reserved: Option<(u64, u64)>,
    /// Bytes reserved for its first flight, until released.
    pub(crate) flight: Bytes,
    /// For a first contact: the initial credit of its record, if it writes one.
    pub(crate) credit: Bytes,
    /// True if the connection does not count as live.
    pub(crate) is_suspended: bool,
}

impl Lease {
    /// The peer whose record it refers to, in the store's form of the address.
    #[must_use]
    pub const fn peer(&self) -> IpAddr {
        self.peer
    }
}

/// A store of path records by the peer's address; a caller that keys by prefix masks the rest.
pub trait Store {
    /// A connection to `peer` starts, and counts as live from now on. Returns its record, if any.
    fn open(&mut self, peer: IpAddr) -> (Option<SharedRecord>, Lease);

    /// The connection's first flight begins: `plan` gets the shared credit and returns the bytes of
    /// the flight. Both are one step, so that concurrent starts see each other's reservations.
    fn reserve(&mut self, lease: &mut Lease, plan: &mut dyn FnMut(SharedCredit) -> Bytes);

    /// The outcome of its first flight is known: ends the reservation, and applies `revision`.
    fn release(&mut self, lease: &mut Lease, revision: &Revision);

    /// The connection's peer does not answer: the connection does not count as live until
    /// [`Self::resume`]. The reservation of its first flight ends for good: those packets have left
    /// the path.
    fn suspend(&mut self, lease: &mut Lease);

    /// The lease counts as live again; returns the number of others that do.
    fn resume(&mut self, lease: &mut Lease) -> u32;

    /// The connection closes: writes the outcome and releases everything, the first flight's
    /// reservation included. A record that is written keeps the credit of its peer, if that is
    /// larger than its own.
    fn close(&mut self, lease: Lease, outcome: RecordUpdate);
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::prior::Prior;

    /// A prior of 100 ms; a record of `kilobytes_per_sec` and `rt_prop` ms; 1000-byte segments.
    pub fn prior_with(kilobytes_per_sec: u64, rt_prop: u64) -> Prior {
        let mss = Bytes::new(1000);
        let mut prior = Prior::bare(Time::from_millis(7_000), mss, Span::from_millis(100), Bytes::MAX);
        let record = Record {
            saved_at: Time::from_millis(5_000),
            btl_bw: Rate::from_bytes_per_sec(kilobytes_per_sec * 1000),
            rt_prop: Span::from_millis(rt_prop),
            window: mss * 40,
            ..Record::default()
        };
        prior.history = Some(SharedRecord { record, live: 0 });
        prior
    }

    /// Extreme priors: zeros, maxima, and all mixtures of the two.
    pub fn absurd_priors() -> alloc::vec::Vec<Prior> {
        let mut priors = alloc::vec::Vec::new();
        for rate in [Rate::ZERO, Rate::from_bytes_per_sec(1), Rate::MAX] {
            for span in [Span::ZERO, Span::from_nanos(1), Span::from_millis(50), Span::MAX] {
                for window in [Bytes::ZERO, Bytes::new(1), Bytes::MAX] {
                    for rtt in [Span::ZERO, Span::from_nanos(1), Span::from_secs(1000), Span::MAX] {
                        for mss in [Bytes::new(536), Bytes::new(65_535)] {
                            let mut prior = prior_with(1, 1);
                            let known = prior.history.as_mut().expect("it has one");
                            let record = &mut known.record;
                            (record.btl_bw, record.rt_prop) = (rate, span);
                            (record.window, record.ssthresh) = (window, window);
                            let hint =
                                crate::prior::Hint { bandwidth: rate, access: crate::prior::Access::Lte };
                            prior.hint = Some(hint);
                            (prior.handshake_rtt, prior.mss) = (rtt, mss);
                            priors.push(prior);
                        }
                    }
                }
            }
        }
        priors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_requires_a_similar_rtt() {
        let record = testing::prior_with(1000, 100).history.expect("a record").record;
        for (millis, expected) in [
            (0, Some(Refusal::RttTooSmall)),
            (50, Some(Refusal::RttTooSmall)),
            (51, None),
            (100, None),
            (1000, None),
            (1001, Some(Refusal::RttTooLarge)),
        ] {
            assert_eq!(record.contradicted_by(Span::from_millis(millis)), expected, "{millis} ms");
        }
    }

    #[test]
    fn a_record_expires_after_its_lifetime_for_any_clock_origin() {
        for epoch in [0, 1, 1_000_000] {
            let mut record = testing::prior_with(1000, 100).history.expect("a record").record;
            record.saved_at = Time::from_millis(epoch);
            let lifetime = Span::from_millis(10);
            assert!(!record.is_expired(Time::from_millis(epoch + 10), lifetime));
            assert!(record.is_expired(Time::from_millis(epoch + 11), lifetime));
            assert!(!record.is_expired(Time::ZERO, lifetime), "a clock set back proves nothing");
        }
    }
}
