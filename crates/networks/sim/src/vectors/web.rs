//! Connection vectors of web traffic, drawn from published statistics: for runs without a trace.
//!
//! Source: J. Cao, W. S. Cleveland, Y. Gao, K. Jeffay, F. D. Smith, M. C. Weigle, "Stochastic
//! Models for Generating Synthetic HTTP Source Traffic", INFOCOM 2004 (PackMime below), with the
//! parameters that its authors published with ns-2. It was fitted to packet traces of the links of
//! Bell Labs and of the University of North Carolina. Tmix has traces of the latter too. The model
//! describes the contents of a vector: connections, their requests, answers and quiet times.
//!
//! | quantity | distribution |
//! |---|---|
//! | connections with more than one request allowed | 9 % |
//! | pages on these | 1 (82 %), else 1 + exponential of mean 0.417, rounded up |
//! | objects of a page | 1 (69 %), else 1 + exponential of mean 1.578, rounded up |
//! | request, the same all through a connection | smaller half 51 B to 421 B (the median) |
//! | the largest fortieth of requests | from 1.4 kB, a tail of index 1.48 |
//! | answer: nothing new (a quarter) | 5 B to 272 B, median 141 B |
//! | answer: a download | at least 280 B, median 2.2 kB, 90 % below 20 kB |
//! | the largest hundredth of downloads | above 67 kB, a tail of index 1.23 |
//! | answers after the first download | log-normal about a log-normal median, 2^10.62 B |
//! | time of the server, 0.1 s at most, median 6 ms | 1 / Weibull of shape 0.63 and scale 305/s |
//! | quiet time within a page | log-normal about a median that is itself log-normal, 2^-4.15 s |
//! | quiet time between pages | likewise, 2^3.22 s |
//!
//! # Deviations
//!
//! - PackMime has its sizes as curves of a hundred points. Here are the few points above and
//!   between them straight lines in the same scale.
//! - Runs of answers without news and of downloads alternate in PackMime; the quarter is the result
//!   of its mean run lengths. Requests of successive connections are correlated; here they are not.
//! - The code of ns-2's generator truncates counts instead of rounding them up, so that most pages
//!   of several objects would have one.
//! - An answer above [`WebSpec::largest`] is drawn again: PackMime's tail reaches 60 MB, a minute
//!   of a link of 10 Mbit/s, and one of those in a short run dominates all of its results. Quiet
//!   times are a minute at most.
//! - Start times are Poisson; PackMime has long-range dependence.
//!
//! # Limits
//!
//! Web only: no mail, peer-to-peer or concurrent connections, which campus traces have too.

use headstart_units::{Bytes, Span, Time};

use super::{Side, Unit, Vector, Wait};
use crate::random::{Random, Seed, unit_above_zero};

/// Parameters of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSpec {
    /// No answer is larger.
    pub largest: Bytes,
    /// Mean time between two connections.
    pub gap: Span,
}

impl Default for WebSpec {
    /// 4 MB, and ten connections a second.
    fn default() -> Self {
        Self { largest: Bytes::new(4_000_000), gap: Span::from_millis(100) }
    }
}

/// An endless series of connections.
#[derive(Clone, Debug)]
pub struct WebVectors {
    spec: WebSpec,
    random: Random,
    start: Time,
}

/// Points of a curve: the drawn value, and the size.
type Curve = &'static [(f64, f64)];

/// A tail that begins at the end of a curve, in binary logarithms: growth of the size for each
/// halving of the share of larger ones.
type Slope = f64;

/// Sizes of answers without news: by share.
const UNCHANGED: Curve = &[(0.0, 5.0), (0.1, 74.0), (0.5, 141.0), (0.75, 196.0), (1.0, 272.0)];
/// Binary logarithms of downloads: by the binary logarithm of one over the share that is larger.
const DOWNLOADS: Curve = &[
    (0.0, 8.1),
    (0.55, 9.86),
    (1.1, 11.41),
    (1.65, 12.6),
    (2.2, 13.34),
    (3.3, 14.29),
    (4.4, 15.16),
    (5.5, 15.6),
    (6.06, 16.03),
];
const DOWNLOAD_TAIL: Slope = 0.812;
/// The smaller half of requests: by share of that half.
const SMALL_REQUESTS: Curve = &[(0.0, 51.0), (0.1, 217.0), (0.5, 350.0), (1.0, 421.0)];
/// Binary logarithms of the larger half, as of downloads.
const LARGE_REQUESTS: Curve = &[(0.0, 8.73), (1.0, 9.0), (2.0, 9.6), (3.0, 9.92), (4.3, 10.44)];
const REQUEST_TAIL: Slope = 0.674;
/// Of requests, in bytes.
const LARGEST_REQUEST: f64 = 65_536.0;

/// Answers of which nothing is new, of all.
const UNCHANGED_SHARE: f64 = 0.25;
/// A first answer up to this size means that nothing is new, and so are all of the connection.
const UNCHANGED_LIMIT: u64 = 275;

/// A log-normal variable about a log-normal median, in binary logarithms: mean and variance of the
/// median, shape of the spread's gamma distribution (of mean 1), variance about the median.
#[derive(Clone, Copy, Debug)]
struct Nested {
    mean: f64,
    variance: f64,
    shape: f64,
    error: f64,
}

const LATER_ANSWERS: Nested = Nested { mean: 10.62, variance: 0.94, shape: 3.22, error: 2.43 };
const BETWEEN_OBJECTS: Nested = Nested { mean: -4.15, variance: 3.12, shape: 2.35, error: 1.57 };
const BETWEEN_PAGES: Nested = Nested { mean: 3.22, variance: 0.73, shape: 1.85, error: 1.21 };

/// The longest quiet time and the longest time of a server, in seconds.
const LONGEST_QUIET: f64 = 60.0;
const LONGEST_SERVICE: f64 = 0.1;

/// A [`Nested`] variable for one connection.
#[derive(Clone, Copy, Debug)]
struct Around {
    median: f64,
    deviation: f64,
}

impl WebVectors {
    /// The series with the draws of `seed`.
    #[must_use]
    pub fn new(spec: WebSpec, seed: Seed) -> Self {
        Self { spec, random: Random::new(seed.child("web vectors")), start: Time::ZERO }
    }

    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f64 {
        unit_above_zero(self.random.draw())
    }

    fn happens(&mut self, share: f64) -> bool {
        self.uniform() <= share
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform())
    }

    /// Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform()));
        radius * libm::cos(core::f64::consts::TAU * self.uniform())
    }

    /// Marsaglia and Tsang; the shape is above 1, the mean is 1.
    fn gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            let cube = v * v * v;
            if v > 0.0 && libm::log(self.uniform()) < 0.5 * x * x + d * (1.0 - cube + libm::log(cube)) {
                return d * cube / shape;
            }
        }
    }

    fn around(&mut self, nested: Nested) -> Around {
        Around {
            median: nested.mean + self.normal() * libm::sqrt(nested.variance),
            deviation: libm::sqrt(self.gamma(nested.shape) * nested.error),
        }
    }

    fn draw(&mut self, around: Around) -> f64 {
        libm::exp2(around.median + around.deviation * self.normal())
    }

    /// A count: one, or more.
    fn count(&mut self, single: f64, mean: f64) -> u32 {
        if self.happens(single) { 1 } else { 1 + libm::ceil(self.exponential(mean)).max(1.0) as u32 }
    }

    fn request(&mut self) -> Bytes {
        let size = if self.happens(0.5) {
            along(SMALL_REQUESTS, self.uniform())
        } else {
            let draw = -libm::log2(self.uniform());
            libm::exp2(with_tail(LARGE_REQUESTS, REQUEST_TAIL, draw)).min(LARGEST_REQUEST)
        };
        whole(size)
    }

    fn answer(&mut self) -> Bytes {
        if self.happens(UNCHANGED_SHARE) {
            return whole(along(UNCHANGED, self.uniform()));
        }
        self.within(|web| {
            let draw = -libm::log2(web.uniform());
            libm::exp2(with_tail(DOWNLOADS, DOWNLOAD_TAIL, draw))
        })
    }

    /// The first draw that is not too large; a limit below all sizes is kept to by force.
    fn within(&mut self, mut draw: impl FnMut(&mut Self) -> f64) -> Bytes {
        for _ in 0..100 {
            let size = whole(draw(self));
            if size <= self.spec.largest {
                return size;
            }
        }
        self.spec.largest.max(Bytes::new(1))
    }

    /// One over a Weibull variable.
    fn service(&mut self) -> Span {
        let rate = 305.0 * libm::pow(-libm::log(self.uniform()), 1.0 / 0.63);
        seconds((1.0 / rate.max(1e-9)).min(LONGEST_SERVICE))
    }

    fn units(&mut self) -> Vec<Unit> {
        let is_persistent = self.happens(0.09);
        let pages = if is_persistent { self.count(0.82, 0.417) } else { 1 };
        let [answers, objects, quiet] =
            [LATER_ANSWERS, BETWEEN_OBJECTS, BETWEEN_PAGES].map(|what| self.around(what));
        let (request, first) = (self.request(), self.answer());
        let mut units = vec![];
        for page in 0..pages {
            let count = if is_persistent { self.count(0.69, 1.578) } else { 1 };
            for object in 0..count {
                let wait = match (page, object) {
                    (0, 0) => Wait::None,
                    (_, 0) => Wait::Received(seconds(self.draw(quiet).min(LONGEST_QUIET))),
                    _ => Wait::Received(seconds(self.draw(objects).min(LONGEST_QUIET))),
                };
                let is_later = !units.is_empty() && first.get() > UNCHANGED_LIMIT;
                let answer = if is_later { self.within(|web| web.draw(answers)) } else { first };
                units.push(Unit { from: Side::Initiator, wait, bytes: request });
                units.push(Unit {
                    from: Side::Acceptor,
                    wait: Wait::Received(self.service()),
                    bytes: answer,
                });
            }
        }
        units
    }
}

impl Iterator for WebVectors {
    type Item = Vector;

    fn next(&mut self) -> Option<Vector> {
        let start = self.start;
        self.start += self.random.exponential(self.spec.gap);
        Some(Vector { start, is_concurrent: false, units: self.units() })
    }
}

/// In whole microseconds, which the format has; at least one.
fn seconds(seconds: f64) -> Span {
    Span::from_micros((seconds * 1e6).max(1.0) as u64)
}

fn whole(bytes: f64) -> Bytes {
    Bytes::new(bytes.clamp(1.0, 1e12) as u64)
}

/// The curve at `x`; outside its ends the value there.
fn along(curve: Curve, x: f64) -> f64 {
    let after = curve.partition_point(|(at, _)| *at < x).clamp(1, curve.len() - 1);
    let ((x0, y0), (x1, y1)) = (curve[after - 1], curve[after]);
    y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).clamp(0.0, 1.0)
}

fn with_tail(curve: Curve, slope: Slope, x: f64) -> f64 {
    let (end, value) = curve[curve.len() - 1];
    if x > end { value + slope * (x - end) } else { along(curve, x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(count: usize) -> Vec<Vector> {
        WebVectors::new(WebSpec::default(), Seed(5)).take(count).collect()
    }

    fn quantile(mut values: Vec<u64>, percent: usize) -> u64 {
        values.sort_unstable();
        values[values.len() * percent / 100]
    }

    /// The table above, within the accuracy of twenty thousand connections.
    #[test]
    fn the_statistics_are_those_that_are_stated() {
        let vectors = some(20_000);
        let single = vectors.iter().filter(|vector| vector.units.len() == 2).count() as f64 / 20_000.0;
        assert!((0.94..0.97).contains(&single), "0.91 + 0.09 x 0.82 x 0.69 = 0.961: {single}");
        let firsts =
            |at: usize| vectors.iter().map(|vector| vector.units[at].bytes.get()).collect::<Vec<_>>();
        let downloads: Vec<u64> = firsts(1).into_iter().filter(|bytes| *bytes > 275).collect();
        let share = downloads.len() as f64 / 20_000.0;
        assert!((0.73..0.77).contains(&share), "{share}");
        assert!(
            (1_950..2_450).contains(&quantile(downloads.clone(), 50)),
            "{}",
            quantile(downloads.clone(), 50)
        );
        assert!(
            (17_000..23_000).contains(&quantile(downloads.clone(), 90)),
            "{}",
            quantile(downloads.clone(), 90)
        );
        assert!((62_000..110_000).contains(&quantile(downloads, 99)));
        assert!((405..437).contains(&quantile(firsts(0), 50)), "{}", quantile(firsts(0), 50));
        let service = vectors.iter().map(|vector| match vector.units[1].wait {
            Wait::Received(span) => span.as_nanos() / 1000,
            other => panic!("a server answers: {other:?}"),
        });
        let median = quantile(service.collect(), 50);
        assert!((5_400..6_400).contains(&median), "{median} us");
    }

    #[test]
    fn the_same_seed_gives_the_same_connections_in_order_and_none_is_too_large() {
        let vectors = some(500);
        assert_eq!(vectors, some(500));
        let largest = vectors.iter().flat_map(|vector| &vector.units).map(|unit| unit.bytes).max();
        assert!(largest <= Some(Bytes::new(4_000_000)));
        assert!(vectors.is_sorted_by_key(|vector| vector.start));
    }
}
