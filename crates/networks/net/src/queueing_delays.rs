//! Queueing delays: from a packet's arrival until its first byte is sent.
//!
//! Delays are counted in buckets 1/64 of their value wide: quantiles are right to 1 %, means exact.

use headstart_units::{Bytes, Span, Time};

use crate::element::Packet;

/// 2^6 buckets for each doubling.
const BITS: u32 = 6;
/// The doublings from 2^6 ns to 2^43 ns, two hours: longer waits are counted in the last bucket.
const MAGNITUDES: usize = 37;
const BUCKETS: usize = (MAGNITUDES + 1) << BITS;

/// A histogram of queueing delays.
#[derive(Clone)]
pub struct QueueingDelays {
    counts: Box<[u32; BUCKETS]>,
    sum: u64,
}

impl core::fmt::Debug for QueueingDelays {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "QueueingDelays({:?} on average)", self.mean())
    }
}

impl Default for QueueingDelays {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]), sum: 0 }
    }
}

impl QueueingDelays {
    #[inline]
    fn bucket(nanos: u64) -> usize {
        let magnitude = (64 - nanos.leading_zeros()).saturating_sub(BITS + 1);
        // The top bit of the value is the magnitude's: the two add up without a gap.
        (((magnitude as usize) << BITS) + (nanos >> magnitude) as usize).min(BUCKETS - 1)
    }

    fn middle(bucket: usize) -> u64 {
        let magnitude = (bucket >> BITS).saturating_sub(1);
        let first = bucket as u64 - ((magnitude as u64) << BITS);
        (first << magnitude) + (1 << magnitude) / 2
    }

    /// Counts a packet that waited for `span`.
    #[inline]
    pub fn add(&mut self, span: Span) {
        self.counts[Self::bucket(span.as_nanos())] += 1;
        self.sum += span.as_nanos();
    }

    /// Number of packets counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    /// Mean wait, exact to a nanosecond.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        self.sum.checked_div(self.count()).map(Span::from_nanos)
    }

    /// The quantile `per_mille`, in thousandths: this share of packets waits no longer.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Option<Span> {
        let rank = (self.count() * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(bucket, count)| {
            seen += u64::from(*count);
            (seen >= rank).then(|| Span::from_nanos(Self::middle(bucket)))
        })
    }
}

/// A packet in a queue: its arrival time, and its cost on the link in bytes besides its size.
#[derive(Debug)]
pub struct Queued<P> {
    pub(crate) packet: P,
    pub(crate) since: Time,
    pub(crate) overhead: Bytes,
}

impl<P: Packet> Packet for Queued<P> {
    fn size(&self) -> Bytes {
        self.packet.size() + self.overhead
    }
    fn is_ecn_capable(&self) -> bool {
        self.packet.is_ecn_capable()
    }
    fn mark_congestion_experienced(&mut self) {
        self.packet.mark_congestion_experienced();
    }
    fn is_l4s(&self) -> bool {
        self.packet.is_l4s()
    }
    fn flow_key(&self) -> u64 {
        self.packet.flow_key()
    }
    fn priority(&self) -> u8 {
        self.packet.priority()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_delay_falls_into_a_bucket_near_it() {
        for nanos in (0..42).map(|bit| 1_u64 << bit).flat_map(|n| [n - 1, n, n + n / 3]) {
            let middle = QueueingDelays::middle(QueueingDelays::bucket(nanos));
            assert!(middle.abs_diff(nanos) <= nanos / 64, "{nanos} became {middle}");
        }
        assert_eq!(QueueingDelays::bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn means_are_exact_and_quantiles_right_to_a_hundredth() {
        let mut waits = QueueingDelays::default();
        assert_eq!((waits.mean(), waits.quantile(950)), (None, None));
        (1..=1000).for_each(|millis| waits.add(Span::from_millis(millis)));
        assert_eq!(waits.mean(), Some(Span::from_micros(500_500)));
        let p95 = waits.quantile(950).expect("a thousand").as_millis_f64();
        assert!((p95 / 950.0 - 1.0).abs() < 0.01, "{p95}");
    }

    /// Three packets at once on 12 Mbit/s wait for 0, 1 and 2 ms; on a trace with an opportunity
    /// each millisecond, for one more.
    #[test]
    fn every_link_measures_queueing_delays_only_on_request() {
        use crate::element::testing::{Numbered, drain, packet};
        use crate::trace_link::AtEnd;
        use crate::{AnyElement, Element, Limit, Link, ManagedLink, Queue, QueueDiscipline, TraceLink};
        use headstart_units::Rate;
        let (rate, delay) = (Rate::from_mbit_per_sec(12), Span::from_millis(10));
        let trace = std::sync::Arc::new("1\n".parse().expect("a trace"));
        let managed = |discipline: QueueDiscipline| {
            AnyElement::ManagedLink(Box::new(ManagedLink::new(
                rate,
                delay,
                discipline.queue(rate, Limit::NONE, 1),
            )))
        };
        let mut links: Vec<(AnyElement<Numbered>, u64)> = vec![
            (AnyElement::Link(Link::new(rate, delay, Limit::NONE)), 1),
            (
                AnyElement::TraceLink(Box::new(TraceLink::new(
                    trace,
                    AtEnd::Repeat,
                    delay,
                    Queue::drop_tail(Limit::NONE),
                ))),
                2,
            ),
        ];
        links.extend(QueueDiscipline::ALL.map(|discipline| (managed(discipline), 1)));
        for (mut link, mean) in links {
            let _ = link.push(Time::ZERO, packet(0));
            drain(&mut link);
            let place = Element::<Numbered>::queueing_delays(&mut link).expect("it has a queue");
            assert!(place.is_none());
            *place = Some(QueueingDelays::default());
            let later = Time::from_millis(100);
            (0..3).for_each(|number| {
                assert!(matches!(link.push(later, packet(number)), crate::PushResult::Accepted))
            });
            drain(&mut link);
            let waits = Element::<Numbered>::queueing_delays(&mut link).and_then(|place| place.take());
            let counted = waits.map(|waits| (waits.count(), waits.mean()));
            assert_eq!(counted, Some((3, Some(Span::from_millis(mean)))), "{link:?}");
        }
    }
}
