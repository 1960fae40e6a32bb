//! The bandwidth-delay product of what somebody else claims, as a window one may work with.

use headstart_units::{Bytes, Rate, Span};

/// No claim is worth a larger window: a tebibyte, 88 s of 100 Gbit/s. It keeps absurd claims clear
/// of every overflow in what the schemes and the base controllers compute from a window.
pub const LARGEST_WINDOW: Bytes = Bytes::new(1 << 40);

/// What `rate` moves in `rtt`, [`LARGEST_WINDOW`] at most; `None` if one of the two is zero, for
/// then nothing is claimed.
#[must_use]
pub fn bdp(rate: Rate, rtt: Span) -> Option<Bytes> {
    (!rate.is_zero() && !rtt.is_zero()).then(|| (rate * rtt).min(LARGEST_WINDOW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_of_nothing_is_none_and_one_of_everything_is_bounded() {
        let rtt = Span::from_millis(40);
        assert_eq!(bdp(Rate::from_mbit_per_sec(24), rtt), Some(Bytes::new(120_000)));
        assert_eq!(bdp(Rate::ZERO, rtt), None);
        assert_eq!(bdp(Rate::MAX, Span::ZERO), None);
        assert_eq!(bdp(Rate::MAX, Span::MAX), Some(LARGEST_WINDOW));
    }
}
