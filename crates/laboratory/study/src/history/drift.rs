//! Difference of a peer's record from the path of its next connection: WS Figure 2 as a model.
//!
//! WS §2.2 and §2.3 measured 11.65 million connections of 2.3 million addresses. The minimum RTTs
//! differ by less than 20 % in "more than 60%" of the pairs of connections from one address. The
//! ratio of rates "shows consistent similarity", and in 8.5 % the rate changes by more than five
//! times. The figure itself is not published as numbers. The model draws the ratio of the next
//! connection to the recorded one:
//!
//! - 60 %: the ratio, or its inverse, is uniform on a logarithmic scale between 1 and 1.2.
//! - 31.5 %: it is between 1.2 and 5, with a Pareto tail through both points:
//!   `P(more than x) = 0.4 (1.2 / x)^1.085`.
//! - 8.5 %: the same tail from 5 to 20, where it is cut.
//!
//! Up and down are equally likely, since the order of two connections is arbitrary. As 1/1.2 is
//! 0.83, a little more than 60 % lie within 20 %. RTT and rate are drawn independently, the RTT
//! only from the first two items: WS reports no RTT that changed five-fold.

use headstart_sim::Seed;

use headstart_sim::Random;

/// Change since the record: the next connection's value over the recorded one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Factor of the bottleneck's rate.
    pub rate: f64,
    /// Factor of the minimum RTT.
    pub rtt: f64,
}

/// Share of pairs within [`NEAR`], and of those above [`FAR`] (WS §2.2, §2.3).
const WITHIN_NEAR: f64 = 0.60;
const BEYOND_FAR: f64 = 0.085;
const NEAR: f64 = 1.2;
const FAR: f64 = 5.0;
/// The largest change drawn.
const LARGEST: f64 = 20.0;

/// Change number `seed`.
#[must_use]
pub fn drift(seed: Seed) -> Drift {
    let mut rate = Random::named(seed, "drift of the rate");
    let mut rtt = Random::named(seed, "drift of the RTT");
    Drift { rate: ratio(&mut rate, LARGEST), rtt: ratio(&mut rtt, FAR) }
}

fn ratio(random: &mut Random, most: f64) -> f64 {
    let beyond = random.unit();
    let change = if beyond >= 1.0 - WITHIN_NEAR {
        // Of the near ones, uniform in the logarithm.
        libm::pow(NEAR, (1.0 - beyond) / WITHIN_NEAR)
    } else {
        let tail = libm::log((1.0 - WITHIN_NEAR) / BEYOND_FAR) / libm::log(FAR / NEAR);
        let share = (beyond / (1.0 - WITHIN_NEAR)).max(1e-9);
        (NEAR * libm::pow(share, -1.0 / tail)).min(most)
    };
    if random.happens(0.5) { change } else { 1.0 / change }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(of: impl Fn(Drift) -> bool) -> f64 {
        (0..100_000).filter(|seed| of(drift(Seed(*seed)))).count() as f64 / 1000.0
    }

    /// WS §2.2 and §2.3.
    #[test]
    fn ratios_are_spread_as_the_paper_measured() {
        for (what, found, low, high) in [
            ("rates within 20 %", share(|it| (it.rate - 1.0).abs() < 0.2), 60.0, 63.0),
            ("RTTs within 20 %", share(|it| (it.rtt - 1.0).abs() < 0.2), 60.0, 63.0),
            ("rates above five times", share(|it| it.rate > 5.0 || it.rate < 0.2), 8.0, 9.0),
            ("rates that rose", share(|it| it.rate > 1.0), 49.0, 51.0),
            ("rates above twenty times", share(|it| it.rate > 20.01 || it.rate < 0.0499), 0.0, 0.0),
            ("RTTs above five times", share(|it| it.rtt > 5.01 || it.rtt < 0.199), 0.0, 0.0),
        ] {
            assert!((low..=high).contains(&found), "{what}: {found} %");
        }
    }

    #[test]
    fn rate_and_rtt_are_independent() {
        let both = share(|it| it.rate > 1.2 && it.rtt > 1.2);
        assert!((3.6..4.4).contains(&both), "{both} %, a fifth of a fifth expected");
    }
}
