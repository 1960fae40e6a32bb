//! Totals of a run, in memory that does not grow with it.
//!
//! Times go into histograms whose buckets are 1/256 of their value wide: a quantile read from one
//! is right to 0.4 %, a mean is exact.

use headstart_startup::quick_start::DenialReason;
use headstart_startup::sending::LimitedBy;
use headstart_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::record::{Counts, FlowReport, Grant, MessageReport, Recorder};
use crate::workload::PageReport;

/// Buckets for each doubling.
const BUCKETS: u32 = 256;
/// 2^8: values below are their own bucket.
const BITS: u32 = 8;

/// Times, counted. It is written as its buckets in use, for results that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "InUse", into = "InUse")]
pub struct Histogram {
    /// The smallest bucket in use, with which `counts` begin.
    first: usize,
    counts: Vec<u32>,
    total: u64,
    sum: u128,
}

impl Histogram {
    fn bucket(nanos: u64) -> usize {
        let magnitude = (64 - nanos.leading_zeros()).saturating_sub(BITS + 1);
        (magnitude * BUCKETS + (nanos >> magnitude) as u32) as usize
    }

    fn middle(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        let (buckets, doubled) = (u64::from(BUCKETS), u64::from(BUCKETS) * 2);
        if bucket < doubled {
            return bucket;
        }
        let magnitude = (bucket - buckets) / buckets;
        ((bucket - magnitude * buckets) << magnitude) + (1 << magnitude) / 2
    }

    /// Counts one time.
    pub fn add(&mut self, span: Span) {
        let bucket = Self::bucket(span.as_nanos());
        self.reach(bucket, bucket);
        self.counts[bucket - self.first] += 1;
        self.total += 1;
        self.sum += u128::from(span.as_nanos());
    }

    /// Makes room for the buckets from `low` to `high`.
    fn reach(&mut self, low: usize, high: usize) {
        if self.counts.is_empty() {
            self.first = low;
        }
        if low < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - low));
            self.first = low;
        }
        let length = high + 1 - self.first;
        if length > self.counts.len() {
            self.counts.resize(length, 0);
        }
    }

    /// Each bucket from the smallest in use, with its count.
    fn buckets(&self) -> impl Iterator<Item = (usize, u32)> {
        (self.first..).zip(self.counts.iter().copied())
    }

    /// Number of values counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Mean of the values, exact to a nanosecond.
    #[must_use]
    pub fn mean(&self) -> Option<Span> {
        (self.total > 0).then(|| Span::from_nanos((self.sum / u128::from(self.total)) as u64))
    }

    /// The time that a share `per_mille` of them does not exceed.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Option<Span> {
        let rank = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets() {
            seen += u64::from(count);
            if seen >= rank {
                return Some(Span::from_nanos(Self::middle(bucket)));
            }
        }
        None
    }

    /// The distribution: each bucket in use with the share of times up to it.
    pub fn distribution(&self) -> impl Iterator<Item = (Span, f64)> {
        let total = self.total as f64;
        self.buckets().filter(|(_, count)| *count > 0).scan(0, move |seen, (bucket, count)| {
            *seen += u64::from(count);
            Some((Span::from_nanos(Self::middle(bucket)), *seen as f64 / total))
        })
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if let Some(more) = other.counts.len().checked_sub(1) {
            self.reach(other.first, other.first + more);
            let offset = other.first - self.first;
            for (mine, theirs) in self.counts[offset..].iter_mut().zip(&other.counts) {
                *mine += theirs;
            }
        }
        self.total += other.total;
        self.sum += other.sum;
    }
}

/// The buckets in use with their counts, and the sum of all times in nanoseconds.
#[derive(Deserialize, Serialize)]
struct InUse(Vec<(u32, u32)>, u128);

impl From<Histogram> for InUse {
    fn from(histogram: Histogram) -> Self {
        let counts = histogram.buckets().filter(|(_, count)| *count > 0);
        // 64 doublings of 256 buckets.
        Self(counts.map(|(bucket, count)| (bucket as u32, count)).collect(), histogram.sum)
    }
}

impl TryFrom<InUse> for Histogram {
    type Error = &'static str;
    fn try_from(InUse(buckets, sum): InUse) -> Result<Self, Self::Error> {
        let most = Self::bucket(u64::MAX);
        let mut histogram = Self { sum, ..Self::default() };
        for (bucket, count) in buckets {
            let bucket = bucket as usize;
            if bucket > most || bucket < histogram.first + histogram.counts.len() || count == 0 {
                return Err("found a bucket that is empty, twice there or too large");
            }
            histogram.reach(bucket, bucket);
            histogram.counts[bucket - histogram.first] = count;
            histogram.total += u64::from(count);
        }
        Ok(histogram)
    }
}

/// Totals of one group's flows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Totals {
    /// Flows that began after the warm-up.
    pub flows: u64,
    /// Flows that the run's end cut off. They count with their age at that time.
    pub unfinished: u64,
    /// Completion times: from the first SYN to the last byte at the receiver.
    pub completion: Histogram,
    /// Times from the first SYN to the sender's last ack.
    pub acknowledged: Histogram,
    /// Times from establishment at the sender to the last byte at the receiver, of finished flows.
    pub transfer: Histogram,
    /// Sum of completion times in units of each flow's own minimum RTT, in thousandths; of those
    /// that measured it.
    pub millirounds: u64,
    /// Flows that never measured an RTT.
    pub without_rtt: u64,
    /// Payload bytes acknowledged at the senders.
    #[serde(serialize_with = "as_number", deserialize_with = "from_number")]
    pub delivered: Bytes,
    /// Sum of the times to completion by what held flows back, in nanoseconds and in the order of
    /// [`LimitedBy::ALL`]; of finished flows.
    pub limited: [u64; LimitedBy::ALL.len()],
    /// Ends of slow start by their reason, in the order of
    /// [`EndedBy`](headstart_startup::EndedBy), and the sum of the windows in bytes at these ends.
    pub slow_start_ends: ([u64; 4], u64),
    /// Sum of the senders' counters.
    pub counts: Counts,
    /// Segments that arrived although they had arrived before.
    pub duplicates: u64,
    /// Segments that were missing when a later one arrived; of the TCP model.
    pub missed: u64,
    /// SYNs and requests sent again.
    pub handshake_retransmissions: u64,
    /// Starts that could draw on a record of their peer.
    pub history_hits: u64,
    /// Starts that asked the routers for a rate.
    pub rate_requests: u64,
    /// Starts that were granted a rate.
    pub granted: u64,
    /// Granted starts whose first flight lost a packet (Quick-Start failures).
    pub granted_and_failed: u64,
    /// Starts whose request was denied, by reason in the order of [`DenialReason::ALL`].
    pub denied: [u64; DenialReason::ALL.len()],
    /// Requests in the middle of a connection, and how many of them began a new start.
    pub later_requests: (u64, u64),
    /// Bytes of the first flights that were sent at a granted rate.
    pub granted_bytes: u64,
    /// Times from the request for a message to its last byte.
    pub messages: Histogram,
    /// Times from a page's first SYN to its last byte.
    pub pages: Histogram,
    /// Rates of the flows in bytes a second, size over completion time: sum, and sum of squares.
    pub rates: (u128, u128),
    /// Completion times over the [`Ideal`]'s: a nanosecond is a millionth.
    pub slowdown: Histogram,
    /// Completion times by size, in the order of [`SIZE_BINS`] and then all larger sizes: their
    /// number, and their sum in nanoseconds.
    pub by_size: [(u64, u128); SIZE_BINS.len() + 1],
}

/// The largest flow of each bin of sizes, in bytes; larger flows have a bin of their own.
pub const SIZE_BINS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// The fastest that a flow can be: the handshake, then all of it at the bottleneck's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ideal {
    /// The bottleneck's rate.
    pub rate: Rate,
    /// Half round trips from the first SYN to the first byte at the receiver.
    pub half_rounds: u64,
    /// Payload of a segment.
    pub mss: Bytes,
    /// Bytes of a segment on the link in addition to its payload.
    pub header: Bytes,
}

impl Ideal {
    /// The completion time of a flow of `bytes` on a path of this round-trip time.
    #[must_use]
    pub fn completion(&self, bytes: Bytes, rtt: Span) -> Span {
        let segments = bytes.get().div_ceil(self.mss.get().max(1));
        rtt / 2 * self.half_rounds + (bytes + self.header * segments) / self.rate
    }
}

fn as_number<S: Serializer>(bytes: &Bytes, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(bytes.get())
}

fn from_number<'a, D: Deserializer<'a>>(from: D) -> Result<Bytes, D::Error> {
    u64::deserialize(from).map(Bytes::new)
}

impl Totals {
    /// Payload bytes sent over payload bytes delivered: 1 is perfect.
    #[must_use]
    pub fn overhead(&self) -> f64 {
        self.counts.bytes_sent as f64 / (self.delivered.get() as f64).max(1.0)
    }

    /// Mean completion time in round trips of the flow's own path; NaN if no flow measured one.
    #[must_use]
    pub fn mean_rounds(&self) -> f64 {
        let measured = self.flows - self.without_rtt;
        if measured == 0 { f64::NAN } else { self.millirounds as f64 / 1000.0 / measured as f64 }
    }

    /// Adds the totals of another run of the same group.
    pub fn merge(&mut self, other: &Self) {
        self.flows += other.flows;
        self.unfinished += other.unfinished;
        self.completion.merge(&other.completion);
        self.acknowledged.merge(&other.acknowledged);
        self.transfer.merge(&other.transfer);
        self.millirounds += other.millirounds;
        self.without_rtt += other.without_rtt;
        self.delivered += other.delivered;
        let (ends, windows) = other.slow_start_ends;
        for (mine, theirs) in self.slow_start_ends.0.iter_mut().zip(ends) {
            *mine += theirs;
        }
        self.slow_start_ends.1 += windows;
        for (mine, theirs) in self.limited.iter_mut().zip(&other.limited) {
            *mine += theirs;
        }
        self.add_counts(&other.counts);
        self.duplicates += other.duplicates;
        self.missed += other.missed;
        self.handshake_retransmissions += other.handshake_retransmissions;
        self.history_hits += other.history_hits;
        self.rate_requests += other.rate_requests;
        self.granted += other.granted;
        self.granted_and_failed += other.granted_and_failed;
        self.granted_bytes += other.granted_bytes;
        self.later_requests.0 += other.later_requests.0;
        self.later_requests.1 += other.later_requests.1;
        for (mine, theirs) in self.denied.iter_mut().zip(&other.denied) {
            *mine += theirs;
        }
        self.messages.merge(&other.messages);
        self.pages.merge(&other.pages);
        self.rates.0 += other.rates.0;
        self.rates.1 += other.rates.1;
        self.slowdown.merge(&other.slowdown);
        for (mine, theirs) in self.by_size.iter_mut().zip(&other.by_size) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
        }
    }

    /// Jain's fairness index of the flows' rates: 1 if all are alike, 1/n if one of n has all.
    #[must_use]
    pub fn jain(&self) -> Option<f64> {
        let (sum, squares) = (self.rates.0 as f64, self.rates.1 as f64);
        (squares > 0.0).then(|| sum * sum / (self.flows as f64 * squares))
    }

    /// Mean completion time of the flows of a bin of sizes.
    #[must_use]
    pub fn mean_of_size(&self, bin: usize) -> Option<Span> {
        let (count, sum) = self.by_size.get(bin).copied()?;
        sum.checked_div(u128::from(count)).map(|nanos| Span::from_nanos(nanos as u64))
    }

    fn add_counts(&mut self, counts: &Counts) {
        let mine = &mut self.counts;
        mine.bytes_sent += counts.bytes_sent;
        mine.packets_sent += counts.packets_sent;
        mine.retransmissions += counts.retransmissions;
        mine.copies += counts.copies;
        mine.lost += counts.lost;
        mine.timeouts += counts.timeouts;
        mine.probes += counts.probes;
        mine.first_flight_lost += counts.first_flight_lost;
        mine.ahead += counts.ahead;
    }
}

/// Totals of a real-time flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct MediaTotals {
    /// Datagrams sent after the warm-up.
    pub sent: u64,
    /// One-way delays of those that arrived.
    pub delays: Histogram,
}

impl MediaTotals {
    /// Share of the datagrams that did not arrive; `None` if none was sent.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| 1.0 - self.delays.count() as f64 / self.sent as f64)
    }
}

/// Adds up a run, group by group.
#[derive(Clone, Debug)]
pub struct Collector {
    warm_up: Time,
    /// Reference for the slowdown, if any.
    ideal: Option<Ideal>,
    /// One for each group.
    pub groups: Vec<Totals>,
    /// The concurrent real-time flow.
    pub media: MediaTotals,
    /// Time at which the last flow ended, or at which the run's end cut it off.
    pub last_at: Time,
}

impl Collector {
    /// Totals of `groups` groups; flows that began before the end of the warm-up are left out.
    #[must_use]
    pub fn new(groups: usize, warm_up: Time) -> Self {
        Self {
            warm_up,
            ideal: None,
            groups: vec![Totals::default(); groups],
            media: MediaTotals::default(),
            last_at: Time::ZERO,
        }
    }

    /// The collector, with slowdowns relative to `ideal`.
    #[must_use]
    pub const fn against(mut self, ideal: Ideal) -> Self {
        self.ideal = Some(ideal);
        self
    }
}

impl Recorder for Collector {
    fn flow(&mut self, report: &FlowReport) {
        self.last_at = self.last_at.max(report.ended_at);
        if report.opened_at < self.warm_up {
            return;
        }
        let totals = &mut self.groups[usize::from(report.group)];
        totals.flows += 1;
        totals.unfinished += u64::from(report.completed_at.is_none());
        let completion = report.completion_time().unwrap_or_else(|| report.ended_at.since(report.opened_at));
        totals.completion.add(completion);
        totals.acknowledged.add(report.ended_at.since(report.opened_at));
        if let Some(end) = report.slow_start_end {
            totals.slow_start_ends.0[end.by as usize] += 1;
            totals.slow_start_ends.1 += end.window.get();
        }
        if let Some(transfer) = report.transfer_time() {
            totals.transfer.add(transfer);
            for (sum, span) in totals.limited.iter_mut().zip(report.limited) {
                *sum += span.as_nanos();
            }
        }
        match (completion.as_nanos() * 1000).checked_div(report.min_rtt.as_nanos()) {
            Some(millirounds) => totals.millirounds += millirounds,
            None => totals.without_rtt += 1,
        }
        let nanos = u128::from(completion.as_nanos());
        let rate = u128::from(report.delivered.get()) * 1_000_000_000 / nanos.max(1);
        totals.rates.0 += rate;
        totals.rates.1 += rate * rate;
        let ideal = self.ideal.filter(|_| !report.min_rtt.is_zero());
        if let Some(ideal) = ideal.map(|ideal| ideal.completion(report.written, report.min_rtt)) {
            let millionths = nanos * 1_000_000 / u128::from(ideal.as_nanos().max(1));
            totals.slowdown.add(Span::from_nanos(millionths.try_into().unwrap_or(u64::MAX)));
        }
        let bin = SIZE_BINS.partition_point(|most| *most < report.written.get());
        totals.by_size[bin].0 += 1;
        totals.by_size[bin].1 += nanos;
        totals.delivered += report.delivered;
        totals.add_counts(&report.counts);
        totals.duplicates += u64::from(report.duplicates);
        totals.missed += u64::from(report.missed);
        totals.handshake_retransmissions += u64::from(report.handshake_retransmissions);
        totals.history_hits += u64::from(report.had_history);
        totals.later_requests.0 += u64::from(report.later_requests.0);
        totals.later_requests.1 += u64::from(report.later_requests.1);
        totals.rate_requests += u64::from(report.grant != Grant::NotRequested);
        match report.grant {
            Grant::NotRequested | Grant::Unstamped => {}
            Grant::Denied(reason) => totals.denied[reason as usize] += 1,
            Grant::Granted(_) => {
                totals.granted += 1;
                totals.granted_and_failed += u64::from(report.counts.first_flight_lost > 0);
                totals.granted_bytes += report.first_flight.get();
            }
        }
    }

    fn message(&mut self, report: &MessageReport) {
        if report.requested_at >= self.warm_up {
            self.groups[usize::from(report.group)].messages.add(report.read_at.since(report.requested_at));
        }
    }

    fn datagram(&mut self, sent_at: Time, arrived_at: Option<Time>) {
        if sent_at < self.warm_up {
            return;
        }
        match arrived_at {
            Some(at) => self.media.delays.add(at.since(sent_at)),
            None => self.media.sent += 1,
        }
    }

    fn page(&mut self, report: &PageReport) {
        if report.began_at >= self.warm_up {
            self.groups[usize::from(report.group)].pages.add(report.ended_at.since(report.began_at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_four_thousandths() {
        let mut histogram = Histogram::default();
        for millis in 1..=1000 {
            histogram.add(Span::from_millis(millis));
        }
        for per_mille in [1, 10, 500, 990, 1000] {
            let found = histogram.quantile(per_mille).expect("not empty").as_millis_f64();
            let exact = per_mille as f64;
            assert!((found / exact - 1.0).abs() < 0.004, "{per_mille} per mille: {found}");
        }
        assert_eq!(histogram.mean(), Some(Span::from_micros(500_500)));
    }

    #[test]
    fn every_time_falls_into_a_bucket_near_it() {
        for nanos in (0..64).map(|bit| 1_u64 << bit).flat_map(|n| [n - 1, n, n + n / 3]) {
            let middle = Histogram::middle(Histogram::bucket(nanos));
            assert!(middle.abs_diff(nanos) <= nanos / 256, "{nanos} became {middle}");
        }
    }

    #[test]
    fn merged_histograms_equal_a_common_one() {
        let (mut one, mut other, mut both) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for millis in 0..100 {
            let part = if millis % 3 == 0 { &mut one } else { &mut other };
            part.add(Span::from_millis(millis * millis));
            both.add(Span::from_millis(millis * millis));
        }
        one.merge(&other);
        assert_eq!(one, both);
    }

    fn report(bytes: u64, millis: u64) -> FlowReport {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        FlowReport {
            completed_at: Some(at(millis)),
            ended_at: at(millis),
            min_rtt: Span::from_millis(100),
            written: Bytes::new(bytes),
            read: Bytes::new(bytes),
            delivered: Bytes::new(bytes),
            ..FlowReport::default()
        }
    }

    fn collected(reports: &[FlowReport]) -> Totals {
        let ideal = Ideal {
            rate: Rate::from_mbit_per_sec(12),
            half_rounds: 3,
            mss: Bytes::new(1448),
            header: Bytes::new(52),
        };
        let mut collector = Collector::new(1, Time::ZERO).against(ideal);
        reports.iter().for_each(|report| collector.flow(report));
        collector.groups.remove(0)
    }

    #[test]
    fn jains_index_is_one_for_equal_rates_and_one_over_n_for_one_that_has_all() {
        let jain = |reports: &[FlowReport]| collected(reports).jain().expect("flows");
        assert!((jain(&[report(1000, 10), report(2000, 20), report(4000, 40)]) - 1.0).abs() < 1e-9);
        let one = [report(1_000_000, 10), report(0, 10), report(0, 10), report(0, 10)];
        assert!((jain(&one) - 0.25).abs() < 1e-9);
        let (a, b) = (1.0, 3.0);
        let two = jain(&[report(1000, 1), report(3000, 1)]);
        assert!((two - (a + b) * (a + b) / (2.0 * (a * a + b * b))).abs() < 1e-9, "{two}");
        assert_eq!(collected(&[]).jain(), None);
    }

    /// 1448 bytes are 1500 on the link, 1 ms; the first byte is there after 150 ms.
    #[test]
    fn slowdown_is_completion_over_the_ideal() {
        let totals = collected(&[report(1448, 151), report(1448, 453)]);
        assert_eq!(totals.slowdown.mean(), Some(Span::from_nanos(2_000_000)));
    }

    #[test]
    fn a_size_belongs_to_the_first_bin_that_holds_it() {
        let totals =
            collected(&[report(10_000, 1), report(10_001, 3), report(100_000, 5), report(10_000_001, 7)]);
        let means: Vec<_> = (0..5).map(|bin| totals.mean_of_size(bin).map(Span::as_millis_f64)).collect();
        assert_eq!(means, [Some(1.0), Some(4.0), None, None, Some(7.0)]);
    }
}
