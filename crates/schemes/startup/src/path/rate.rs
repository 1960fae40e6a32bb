//! Delivery rate, sampled on every ack (draft-ietf-ccwg-bbr §4.1, formerly
//! draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each transmission carries a [`SendStamp`] with the total delivered when it left. When it is
//! acknowledged, the data delivered since then over the longer of the sending and the acking
//! interval is a sample of the path's delivery rate. With the longer of the two, neither a burst of
//! sends nor a compressed burst of acks raises the sample above the path's rate.

use headstart_units::{Bytes, Rate, Span, Time};

/// State of the connection saved when a packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendStamp {
    /// Sending time of the packet (P.sent_time).
    pub sent_at: Time,
    /// Bytes delivered by then (P.delivered).
    pub delivered: Bytes,
    /// Time at which the last of those was acknowledged (P.delivered_time).
    pub delivered_at: Time,
    /// Beginning of the send interval of this flight (P.first_sent_time).
    pub first_sent_at: Time,
    /// Application-limited when sent (P.is_app_limited).
    pub is_app_limited: bool,
}

/// One sample of the delivery rate. The division is done on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered over the interval.
    pub delivered: Bytes,
    /// The longer of the send and the ack interval; zero: no sample.
    pub interval: Span,
    /// Bytes that had been delivered when the newest packet covered left (RS.prior_delivered).
    pub prior_delivered: Bytes,
    /// Application-limited during the interval, so the path may carry more.
    pub is_app_limited: bool,
}

impl RateSample {
    /// The rate, or `None` where there is no usable interval.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        (!self.interval.is_zero()).then(|| self.delivered / self.interval)
    }

    /// True if this sample's rate is above `other`'s, without dividing.
    #[must_use]
    pub fn is_faster_than(&self, other: &Self) -> bool {
        if self.interval.is_zero() {
            return false;
        }
        let cross = |a: &Self, b: &Self| u128::from(a.delivered.get()) * u128::from(b.interval.as_nanos());
        cross(self, other) > cross(other, self)
    }
}

/// The connection's side of delivery-rate sampling (C.* in the draft).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateEstimator {
    delivered: Bytes,
    delivered_at: Time,
    first_sent_at: Time,
    /// Samples are marked until this much has been delivered (C.app_limited); zero: not limited.
    app_limited_until: Bytes,
    newest: SendStamp,
    has_newest: bool,
    fastest: RateSample,
    maximum: RateSample,
}

impl RateEstimator {
    /// A packet leaves; `in_flight` is the bytes in flight before it.
    #[inline]
    pub fn on_sent(&mut self, now: Time, in_flight: Bytes) -> SendStamp {
        if in_flight.is_zero() {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendStamp {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: !self.app_limited_until.is_zero(),
        }
    }

    /// The application has nothing to send although the window is open: marks samples until the
    /// data in flight has been delivered.
    #[inline]
    pub fn on_app_limited(&mut self, in_flight: Bytes) {
        self.app_limited_until = (self.delivered + in_flight).max(Bytes::new(1));
    }

    /// A packet was acknowledged for the first time. Call for each packet, or once per ack with the
    /// stamp of the packet sent last; then [`Self::sample`] once.
    #[inline]
    pub fn on_delivered(&mut self, now: Time, bytes: Bytes, stamp: &SendStamp) {
        self.delivered += bytes;
        self.delivered_at = now;
        let is_newer = !self.has_newest
            || stamp.delivered > self.newest.delivered
            || (stamp.delivered == self.newest.delivered && stamp.sent_at >= self.newest.sent_at);
        if is_newer {
            self.newest = *stamp;
            self.has_newest = true;
        }
    }

    /// Data was delivered by a transmission whose stamp is gone: it counts, without a sample.
    #[inline]
    pub fn on_delivered_late(&mut self, now: Time, bytes: Bytes) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    /// The sample of the ack that [`Self::on_delivered`] was told, given the path's minimum RTT.
    ///
    /// An interval below the minimum RTT cannot be real and gives no sample.
    #[inline]
    pub fn sample(&mut self, now: Time, min_rtt: Span) -> RateSample {
        if !self.has_newest {
            return RateSample::default();
        }
        self.has_newest = false;
        let stamp = self.newest;
        if !self.app_limited_until.is_zero() && self.delivered > self.app_limited_until {
            self.app_limited_until = Bytes::ZERO;
        }
        self.first_sent_at = stamp.sent_at;
        let send_interval = stamp.sent_at.since(stamp.first_sent_at);
        let ack_interval = now.since(stamp.delivered_at);
        let interval = send_interval.max(ack_interval);
        let sample = RateSample {
            delivered: self.delivered - stamp.delivered,
            interval: if interval < min_rtt { Span::ZERO } else { interval },
            prior_delivered: stamp.delivered,
            is_app_limited: stamp.is_app_limited,
        };
        // DESIGN: rates are saved only from samples that were not application-limited; until there
        // is one, the largest of any kind is kept.
        let replaces = match (sample.is_app_limited, self.fastest.is_app_limited) {
            (true, false) if !self.fastest.interval.is_zero() => false,
            (false, true) if !sample.interval.is_zero() => true,
            _ => sample.is_faster_than(&self.fastest) || self.fastest.interval.is_zero(),
        };
        if replaces {
            self.fastest = sample;
        }
        if self.maximum.interval.is_zero() || sample.is_faster_than(&self.maximum) {
            self.maximum = sample;
        }
        sample
    }

    /// Bytes delivered since the connection began (C.delivered).
    #[must_use]
    pub const fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// The largest sample that was not application-limited, for the path record. It is marked
    /// application-limited only if every sample was.
    #[must_use]
    pub const fn fastest(&self) -> RateSample {
        self.fastest
    }

    /// The largest sample of all, application-limited or not: BtlBw of WiseStart §3.2, the "maximum
    /// delivery rate".
    #[must_use]
    pub const fn maximum(&self) -> RateSample {
        self.maximum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::MSS;

    /// Ten packets sent at once over a path of 1 MB/s and 100 ms: acks come 1 ms apart.
    #[test]
    fn a_burst_is_measured_by_its_acks() {
        let mut estimator = RateEstimator::default();
        let stamps: alloc::vec::Vec<_> = (0..10).map(|n| estimator.on_sent(Time::ZERO, MSS * n)).collect();
        let mut last = RateSample::default();
        for (n, stamp) in stamps.iter().enumerate() {
            let now = Time::from_millis(100 + n as u64);
            estimator.on_delivered(now, MSS, stamp);
            last = estimator.sample(now, Span::from_millis(100));
        }
        assert_eq!(last.delivered, MSS * 10);
        assert_eq!(last.interval, Span::from_millis(109), "since the flight began");
    }

    #[test]
    fn an_interval_below_the_minimum_rtt_gives_no_sample() {
        let mut estimator = RateEstimator::default();
        let stamp = estimator.on_sent(Time::ZERO, Bytes::ZERO);
        estimator.on_delivered(Time::from_millis(3), MSS, &stamp);
        assert_eq!(estimator.sample(Time::from_millis(3), Span::from_millis(10)).rate(), None);
    }

    #[test]
    fn samples_are_marked_until_what_was_in_flight_is_delivered() {
        let mut estimator = RateEstimator::default();
        let early = estimator.on_sent(Time::ZERO, Bytes::ZERO);
        estimator.on_app_limited(MSS);
        let marked = estimator.on_sent(Time::from_millis(1), MSS);
        estimator.on_delivered(Time::from_millis(10), MSS, &early);
        let _ = estimator.sample(Time::from_millis(10), Span::ZERO);
        estimator.on_delivered(Time::from_millis(11), MSS, &marked);
        assert!(estimator.sample(Time::from_millis(11), Span::ZERO).is_app_limited);
        let clear = estimator.on_sent(Time::from_millis(12), Bytes::ZERO);
        estimator.on_delivered(Time::from_millis(22), MSS, &clear);
        assert!(!estimator.sample(Time::from_millis(22), Span::ZERO).is_app_limited);
        assert!(!estimator.fastest().is_app_limited, "a clean sample beats a marked one");
        let maximum = estimator.maximum();
        assert!(
            maximum.is_app_limited && maximum.is_faster_than(&estimator.fastest()),
            "even a faster one: {maximum:?}"
        );
    }
}
