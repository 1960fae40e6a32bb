//! The bandwidth-delay product of untrusted rates and RTTs, as a bounded window.

use headstart_units::{Bytes, Rate, Span};

/// Largest window from a claim: a tebibyte, 88 s of 100 Gbit/s. It keeps computations of schemes
/// and base controllers from a window clear of overflow.
pub const LARGEST_WINDOW: Bytes = Bytes::new(1 << 40);

/// `rate` x `rtt`, [`LARGEST_WINDOW`] at most; `None` if one of the two is zero.
#[must_use]
pub fn bdp(rate: Rate, rtt: Span) -> Option<Bytes> {
    (!rate.is_zero() && !rtt.is_zero()).then(|| (rate * rtt).min(LARGEST_WINDOW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_bdp_is_none_and_a_huge_one_is_bounded() {
        let rtt = Span::from_millis(40);
        assert_eq!(bdp(Rate::from_mbit_per_sec(24), rtt), Some(Bytes::new(120_000)));
        assert_eq!(bdp(Rate::ZERO, rtt), None);
        assert_eq!(bdp(Rate::MAX, Span::ZERO), None);
        assert_eq!(bdp(Rate::MAX, Span::MAX), Some(LARGEST_WINDOW));
    }
}
