//! A policer: packets above a rate and a burst are dropped, and none is queued.
//!
//! Source: J. Heinanen, R. Guerin, "A Single Rate Three Color Marker", RFC 2697, September 1999,
//! colour-blind and with an excess burst of zero. Green packets pass and red ones are dropped, as
//! by the police action of Linux's traffic control with a rate and a burst.
//!
//! The bucket is kept as the time at which it will be full again. A packet delays it by size /
//! rate, and is green if it is then no more than burst / rate ahead. That is the same as counting
//! tokens (RFC 2697 §3), without rounding them.
//!
//! # Deviations
//!
//! - The bucket fills continuously; RFC 2697 adds whole tokens.
//! - Sizes are those on the link, headers included. RFC 2697 counts IP packets, Linux frames.

use core::fmt;
use core::str::FromStr;

use headstart_units::{Bytes, Rate, Span, Time};

use crate::element::{DropReason, Element, Packet, PushResult};
use crate::plan::{FULL_PACKET, Part, Refusal};
use crate::seed::Seed;

/// A policer's rate and burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The committed information rate (CIR); at zero no packet passes.
    pub rate: Rate,
    /// The committed burst size (CBS): bytes that pass at once after an idle period.
    pub burst: Bytes,
}

impl Params {
    /// A burst of 100 ms at `rate`, about a round trip; ten full packets at least. Ours.
    #[must_use]
    pub fn of_rate(rate: Rate) -> Self {
        Self { rate, burst: (rate * Span::from_millis(100)).max(Bytes::new(15_000)) }
    }
}

impl FromStr for Params {
    type Err = String;

    /// `5mbit,50kB`, or `5mbit` for the burst of [`Self::of_rate`].
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("found `{text}`, expected a rate, or rate and burst, such as `5mbit,50kB`");
        let (rate, burst) = text.split_once(',').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let usual = Self::of_rate(rate.parse().map_err(|_| expected())?);
        match burst {
            None => Ok(usual),
            Some(burst) => Ok(Self { burst: burst.trim().parse().map_err(|_| expected())?, ..usual }),
        }
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a policer of {} and {}", self.rate, self.burst)
    }
}

impl Part for Params {
    const NAME: &'static str = "policer";
    type Element<P> = Policer;

    fn build<P>(&self, _: Seed) -> Policer {
        Policer::new(*self)
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.rate.is_zero() {
            Err(("rate", "0".to_owned(), "more than 0"))
        } else if self.burst < FULL_PACKET {
            Err(("burst", self.burst.to_string(), "1500 B at least: a full packet must pass"))
        } else {
            Ok(())
        }
    }

    fn drops(&self) -> Option<DropReason> {
        Some(DropReason::Policer)
    }
}

/// A token bucket that drops.
#[derive(Debug)]
pub struct Policer {
    params: Params,
    /// Burst / rate: the time in which an empty bucket fills.
    depth: Span,
    /// Time at which the bucket will be full.
    full_at: Time,
}

impl Policer {
    /// Begins with a full bucket.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let depth = if params.rate.is_zero() { Span::ZERO } else { params.burst / params.rate };
        Self { params, depth, full_at: Time::ZERO }
    }

    /// True if a packet of `size` is green at `now`; it then consumes its tokens.
    fn admits(&mut self, now: Time, size: Bytes) -> bool {
        if self.params.rate.is_zero() {
            return false;
        }
        let full_at = self.full_at.max(now) + size / self.params.rate;
        let is_green = full_at.since(now) <= self.depth;
        if is_green {
            self.full_at = full_at;
        }
        is_green
    }
}

impl<P: Packet> Element<P> for Policer {
    fn push(&mut self, now: Time, packet: P) -> PushResult<P> {
        if self.admits(now, packet.size()) {
            PushResult::Passed(packet)
        } else {
            PushResult::Dropped(packet, DropReason::Policer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::packet;

    /// 12 Mbit/s fill 1500 bytes in a millisecond; the bucket holds two packets.
    #[test]
    fn a_burst_passes_and_later_packets_pass_at_the_rate() {
        let rate = Rate::from_mbit_per_sec(12);
        let mut policer = Policer::new(Params { rate, burst: Bytes::new(3000) });
        #[rustfmt::skip]
        let steps = [
            // us     passes  why
            (10_000,  true,   "the bucket was full: 3000"),
            (10_000,  true,   "1500 left"),
            (10_000,  false,  "empty"),
            (10_999,  false,  "1498.5"),
            (11_000,  true,   "1500 came back"),
            (11_500,  false,  "750"),
            (12_000,  true,   "what was dropped took nothing"),
            (90_000,  true,   "full again, and no fuller than full"),
            (90_000,  true,   ""),
            (90_000,  false,  ""),
        ];
        for (row, (micros, passes, why)) in steps.into_iter().enumerate() {
            let fate = policer.push(Time::from_nanos(micros * 1000), packet(0));
            assert_eq!(matches!(fate, PushResult::Passed(_)), passes, "row {row}: {why}");
        }
    }

    #[test]
    fn nothing_passes_a_rate_of_nothing_or_a_bucket_that_is_too_small() {
        let rate = Rate::from_mbit_per_sec(12);
        for params in
            [Params { rate: Rate::ZERO, burst: Bytes::MAX }, Params { rate, burst: Bytes::new(1499) }]
        {
            let mut policer = Policer::new(params);
            let late = Time::from_millis(100_000);
            assert_eq!(policer.push(late, packet(0)), PushResult::Dropped(packet(0), DropReason::Policer));
        }
    }

    #[test]
    fn a_policer_is_read_with_and_without_its_burst() {
        let rate = Rate::from_mbit_per_sec(5);
        assert_eq!("5mbit,50kB".parse(), Ok(Params { rate, burst: Bytes::new(50_000) }));
        assert_eq!("5mbit".parse(), Ok(Params { rate, burst: Bytes::new(62_500) }));
        for text in ["", "5", "5mbit,", "5mbit,2", "50kB", "5mbit,50kB,1"] {
            let error = text.parse::<Params>().expect_err(text);
            assert!(error.contains(&format!("found `{text}`, expected")), "{error}");
        }
    }

    #[test]
    fn the_usual_burst_is_a_tenth_of_a_second_and_ten_packets_at_least() {
        for (mbit, bytes) in [(80, 1_000_000), (1, 15_000)] {
            let params = Params::of_rate(Rate::from_mbit_per_sec(mbit));
            assert_eq!(params.burst, Bytes::new(bytes));
        }
    }
}
