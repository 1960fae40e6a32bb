//! Flow sizes: fixed, measured distributions as in the Halfback paper.
//!
//! Sources: Halfback (HB below) §1, §2.1 with its Figure 2, §4.2.4. It draws from three
//! measurements: F. Qian et al., "TCP revisited: a fresh look at TCP in the wild", IMC 2009
//! (`internet`); A. Greenberg et al., "VL2: a scalable and flexible data center network", SIGCOMM
//! 2009 (`data-center`); T. Benson et al., "Network traffic characteristics of data centers in the
//! wild", IMC 2010 (`enterprise`).
//!
//! A measured distribution is a table of anchors: a size, and the share of *flows* no larger.
//! Between two anchors the share grows with the logarithm of the size. For such a piece from `a` to
//! `b` with a share `p` of all flows,
//!
//! ```text
//! quantile   a * (b / a)^t,  t uniform in [0, 1)
//! mean       p * (b - a) / ln(b / a)
//! ```
//!
//! so the mean is exact, and with it the arrival rate that makes an offered load.
//!
//! # Deviations
//!
//! - No data set is public; HB footnote 3 read its distributions off figures, and so had to be
//!   content with approximations. Ours are bound by the numbers each table names; the anchors
//!   between those are smooth fits of ours and no measurement. HB's numbers were checked against
//!   its text; those of VL2 and of Benson et al. are cited as the literature repeats them.
//! - HB §4.2.4 truncates at 1 MB and does not give the method. Here a flow above the limit does not
//!   occur and the rest keep their proportions (a conditional distribution). Moving the tail to the
//!   limit would make a tenth of the data-centre flows exactly 1 MB.
//! - Sizes are rounded to whole bytes, at least one; [`Sizes::mean`] is without rounding.

use headstart_units::{Bytes, Rate, Span};

use crate::random::unit;

/// The limit of HB §4.2.4.
pub const HALFBACK_LIMIT: Bytes = Bytes::new(1_000_000);

/// A distribution of flow sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All the same.
    Fixed(Bytes),
    /// Piecewise log-linear.
    Table(Table),
    /// Some sizes, each with its share.
    Weighted(Weighted),
}

/// Some sizes, each with its share.
#[derive(Clone, Debug, PartialEq)]
pub struct Weighted {
    /// Sizes and the share of flows before each, in order; the last one ends at 1.
    steps: Vec<(Bytes, f64)>,
}

impl Weighted {
    /// Each size with its share.
    fn shares(&self) -> impl Iterator<Item = (Bytes, f64)> {
        let ends = self.steps.iter().skip(1).map(|(_, below)| *below).chain([1.0]);
        self.steps.iter().zip(ends).map(|((bytes, below), end)| (*bytes, end - below))
    }
}

/// A piecewise log-linear distribution, built from anchors.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pieces: Vec<Piece>,
    limit: Bytes,
}

/// The flows between two anchors.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    from: f64,
    to: f64,
    /// `ln(to / from)`.
    log: f64,
    /// Share of flows below this piece, and in it.
    below: f64,
    share: f64,
}

/// A size in bytes, and the flows of a million that are no larger.
type Anchor = (u64, u32);

/// A Tier-1 backbone link (Qian et al.).
///
/// Stated: 99 % of flows below 100 kB (HB §1); 34.7 % of bytes in flows below 141 kB (HB §2.1). A
/// tail that falls as one over the size from 10 kB on, cut at 80 MB, meets both. The body below 10
/// kB is a fit.
#[rustfmt::skip]
const INTERNET: &[Anchor] = &[
    (100, 0), (1_000, 500_000), (10_000, 900_000), (100_000, 990_000), (1_000_000, 999_000),
    (10_000_000, 999_900), (80_000_000, 1_000_000),
];

/// A cluster of 1500 nodes (VL2).
///
/// VL2 §3 states 99 % of flows below 100 MB, and more than 90 % of bytes in flows of 100 MB to 1
/// GB. HB §2.1 states less than 1 % of bytes in flows below 141 kB. VL2 calls most flows small, a
/// few kB; the anchors below 100 MB are a fit.
#[rustfmt::skip]
const DATA_CENTER: &[Anchor] = &[
    (100, 0), (1_000, 400_000), (10_000, 800_000), (100_000, 900_000), (1_000_000, 955_000),
    (10_000_000, 985_000), (100_000_000, 990_000), (1_000_000_000, 1_000_000),
];

/// A private enterprise data centre (Benson et al.).
///
/// Stated: 80 % of flows below 10 kB, most bytes in the largest tenth of the flows (Benson §5);
/// less than 1 % of bytes in flows below 141 kB (HB §2.1). The other anchors are a fit.
#[rustfmt::skip]
const ENTERPRISE: &[Anchor] = &[
    (100, 0), (1_000, 500_000), (10_000, 800_000), (100_000, 900_000), (1_000_000, 940_000),
    (10_000_000, 980_000), (100_000_000, 1_000_000),
];

impl Sizes {
    /// The names accepted by [`Sizes::named`].
    pub const NAMES: [&str; 4] = ["internet", "data-center", "enterprise", "mixed"];

    /// The distribution of that name, without flows above `limit`.
    #[must_use]
    pub fn named(name: &str, limit: Bytes) -> Option<Self> {
        match name {
            "internet" => Some(Self::internet(limit)),
            "data-center" => Some(Self::data_center(limit)),
            "enterprise" => Some(Self::enterprise(limit)),
            "mixed" => Some(Self::mixed(limit)),
            _ => None,
        }
    }

    /// A Tier-1 backbone link, flows up to `limit` ([`HALFBACK_LIMIT`]: HB; [`Bytes::MAX`]: all).
    #[must_use]
    pub fn internet(limit: Bytes) -> Self {
        Self::from_anchors(INTERNET, limit)
    }

    /// A large data centre, without flows above `limit`.
    #[must_use]
    pub fn data_center(limit: Bytes) -> Self {
        Self::from_anchors(DATA_CENTER, limit)
    }

    /// A private enterprise data centre, without flows above `limit`.
    #[must_use]
    pub fn enterprise(limit: Bytes) -> Self {
        Self::from_anchors(ENTERPRISE, limit)
    }

    /// Short answers with a large one now and then: 100 kB, and every tenth 1 MB. So a returning
    /// peer has been sent more than its next answer, without which Careful Resume refuses to jump.
    #[must_use]
    pub fn mixed(limit: Bytes) -> Self {
        const SIZES: [(u64, f64); 2] = [(100_000, 9.0), (1_000_000, 1.0)];
        let below = SIZES.into_iter().filter(|(bytes, _)| *bytes <= limit.get());
        Self::weighted(below.collect()).unwrap_or(Self::Fixed(limit))
    }

    /// The given sizes, each as often as its weight says; `None` if no weight is above zero.
    #[must_use]
    pub fn weighted(mut sizes: Vec<(u64, f64)>) -> Option<Self> {
        sizes.retain(|(_, weight)| *weight > 0.0);
        sizes.sort_by_key(|(bytes, _)| *bytes);
        let total: f64 = sizes.iter().map(|(_, weight)| weight).sum();
        let mut below = 0.0;
        let steps = sizes.into_iter().map(|(bytes, weight)| {
            let step = (Bytes::new(bytes), below / total);
            below += weight;
            step
        });
        let steps: Vec<_> = steps.collect();
        (!steps.is_empty()).then_some(Self::Weighted(Weighted { steps }))
    }

    /// Sizes with the share of flows no larger, from 0 to 1; between two the share grows with the
    /// logarithm of the size.
    #[must_use]
    pub fn cumulative(anchors: Vec<(u64, f64)>) -> Self {
        Self::from_points(anchors.into_iter().map(|(bytes, share)| (bytes as f64, share)), Bytes::MAX)
    }

    fn from_anchors(anchors: &[Anchor], limit: Bytes) -> Self {
        Self::from_points(
            anchors.iter().map(|(bytes, flows)| (*bytes as f64, f64::from(*flows) / 1e6)),
            limit,
        )
    }

    /// Joins points that rise in both coordinates and drops those above the limit.
    fn from_points(points: impl IntoIterator<Item = (f64, f64)>, limit: Bytes) -> Self {
        let limit = limit.max(Bytes::new(1));
        let most = limit.get() as f64;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut last: Option<(f64, f64)> = None;
        for (size, share) in points {
            if let Some((from, below)) = last.filter(|(from, _)| *from < most) {
                let (to, log) = (size.min(most), libm::log(size / from));
                // The part of the piece below the limit.
                let kept = if size > most { libm::log(most / from) } else { log };
                pieces.push(Piece { from, to, log: kept, below, share: (share - below) * kept / log });
            }
            last = Some((size, share));
        }
        let kept: f64 = pieces.iter().map(|piece| piece.share).sum();
        if pieces.is_empty() || kept <= 0.0 {
            return Self::Fixed(limit);
        }
        for piece in &mut pieces {
            piece.below /= kept;
            piece.share /= kept;
        }
        Self::Table(Table { pieces, limit })
    }

    /// The mean size in bytes, exact but for the rounding of sizes to whole bytes.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.bytes_up_to(f64::INFINITY)
    }

    /// The mean gap between arrivals at which flows of these sizes offer that load.
    #[must_use]
    pub fn gap_at(&self, load: Rate) -> Span {
        if load.is_zero() {
            return Span::MAX;
        }
        // A conversion from a float saturates.
        Span::from_nanos((self.mean() * 1e9 / load.as_bytes_per_sec() as f64) as u64)
    }

    /// The share of flows no larger than `size`.
    #[must_use]
    pub fn share_of_flows(&self, size: Bytes) -> f64 {
        let most = size.get() as f64;
        match self {
            Self::Fixed(bytes) => f64::from(u8::from(*bytes <= size)),
            Self::Table(table) => table.pieces.iter().map(|piece| piece.flows_up_to(most)).sum(),
            Self::Weighted(some) => {
                some.shares().filter(|(bytes, _)| *bytes <= size).map(|(_, share)| share).sum()
            }
        }
    }

    /// The share of bytes in flows no larger than `size` (HB Figure 2).
    #[must_use]
    pub fn share_of_bytes(&self, size: Bytes) -> f64 {
        self.bytes_up_to(size.get() as f64) / self.mean()
    }

    /// Contribution of flows no larger than `most` to the mean.
    fn bytes_up_to(&self, most: f64) -> f64 {
        match self {
            Self::Fixed(bytes) if bytes.get() as f64 <= most => bytes.get() as f64,
            Self::Fixed(_) => 0.0,
            Self::Table(table) => table.pieces.iter().map(|piece| piece.bytes_up_to(most)).sum(),
            Self::Weighted(some) => {
                let own = some.shares().map(|(bytes, share)| (bytes.get() as f64, share));
                own.filter(|(bytes, _)| *bytes <= most).map(|(bytes, share)| bytes * share).sum()
            }
        }
    }

    /// The size for a number uniform over all of `u64`: the inverse of the distribution.
    #[must_use]
    pub fn pick(&self, draw: u64) -> Bytes {
        let uniform = unit(draw);
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Table(table) => {
                // The first piece begins at zero, so there is always one at or before.
                let index = table.pieces.partition_point(|piece| piece.below <= uniform).saturating_sub(1);
                let piece = &table.pieces[index];
                let part = ((uniform - piece.below) / piece.share).min(1.0);
                whole(piece.from * libm::exp(part * piece.log), table.limit)
            }
            Self::Weighted(some) => {
                let index = some.steps.partition_point(|(_, below)| *below <= uniform).saturating_sub(1);
                some.steps[index].0
            }
        }
    }
}

/// To the nearest byte, at least one, at most the limit.
fn whole(size: f64, limit: Bytes) -> Bytes {
    Bytes::new((size + 0.5) as u64).min(limit).max(Bytes::new(1))
}

impl Piece {
    fn flows_up_to(&self, most: f64) -> f64 {
        if most >= self.to {
            self.share
        } else if most <= self.from {
            0.0
        } else {
            self.share * libm::log(most / self.from) / self.log
        }
    }

    fn bytes_up_to(&self, most: f64) -> f64 {
        self.share * (most.min(self.to) - self.from).max(0.0) / self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Random, Seed};

    const PACING_THRESHOLD: Bytes = Bytes::new(141_000);

    fn flows_below(sizes: &Sizes, bytes: u64) -> f64 {
        sizes.share_of_flows(Bytes::new(bytes))
    }

    fn bytes_below(sizes: &Sizes, bytes: u64) -> f64 {
        sizes.share_of_bytes(Bytes::new(bytes))
    }

    #[test]
    fn the_internet_distribution_matches_halfback() {
        let all = Sizes::internet(Bytes::MAX);
        let bytes = all.share_of_bytes(PACING_THRESHOLD);
        assert!((bytes - 0.347).abs() < 0.0005, "HB §2.1: 34.7 % of bytes below 141 kB, not {bytes}");
        assert!((flows_below(&all, 100_000) - 0.99).abs() < 1e-9, "HB §1: around 99 % of flows below 100 kB");
        assert!(all.share_of_flows(PACING_THRESHOLD) > 0.95, "HB §2.1: more than 95 % of web transfers");
    }

    #[test]
    fn data_center_distributions_match_their_papers() {
        for name in ["data-center", "enterprise"] {
            let all = Sizes::named(name, Bytes::MAX).expect("a known name");
            let bytes = all.share_of_bytes(PACING_THRESHOLD);
            assert!(bytes < 0.01, "HB §2.1: less than 1 % of bytes below 141 kB; {name}: {bytes}");
        }
        let vl2 = Sizes::data_center(Bytes::MAX);
        assert!((flows_below(&vl2, 100_000_000) - 0.99).abs() < 1e-9);
        let elephants = 1.0 - bytes_below(&vl2, 100_000_000);
        assert!(elephants > 0.9, "VL2 §3: more than 90 % of bytes from 100 MB to 1 GB, not {elephants}");
        let benson = Sizes::enterprise(Bytes::MAX);
        assert!((flows_below(&benson, 10_000) - 0.8).abs() < 1e-9);
        assert!((flows_below(&benson, 100_000) - 0.9).abs() < 1e-9);
        assert!(bytes_below(&benson, 100_000) < 0.5, "most bytes in the largest tenth");
    }

    #[test]
    fn anchors_rise_from_none_to_all_flows() {
        for anchors in [INTERNET, DATA_CENTER, ENTERPRISE] {
            assert_eq!((anchors[0].1, anchors[anchors.len() - 1].1), (0, 1_000_000));
            assert!(anchors.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        }
    }

    #[test]
    fn a_truncated_distribution_keeps_its_proportions() {
        for name in ["internet", "data-center", "enterprise"] {
            let all = Sizes::named(name, Bytes::MAX).expect("a known name");
            // One limit on an anchor, one between two.
            for limit in [1_000_000, 300_000] {
                let cut = Sizes::named(name, Bytes::new(limit)).expect("a known name");
                for size in [500, 20_000, 141_000, limit] {
                    let expected = flows_below(&all, size) / flows_below(&all, limit);
                    let found = flows_below(&cut, size);
                    assert!((found - expected).abs() < 1e-12, "{name} {limit} {size}: {found} {expected}");
                }
                assert_eq!(cut.pick(u64::MAX), Bytes::new(limit), "nothing above the limit");
            }
        }
    }

    #[test]
    fn a_single_piece_has_the_mean_of_the_formula() {
        // 100 to 1000 bytes: 900 / ln 10.
        let sizes = Sizes::from_points([(100.0, 0.0), (1000.0, 1.0)], Bytes::MAX);
        assert!((sizes.mean() - 390.865_033_7).abs() < 1e-6, "{}", sizes.mean());
        assert_eq!(sizes.pick(0), Bytes::new(100));
        assert_eq!(sizes.pick(1 << 63), Bytes::new(316), "half way is the square root of ten");
    }

    /// Within five standard errors of the exact mean, and every size in its bounds.
    #[test]
    fn a_million_draws_have_the_exact_mean() {
        const DRAWS: u32 = 1_000_000;
        let cases = [
            ("internet", Sizes::internet(HALFBACK_LIMIT), 100),
            ("data-center", Sizes::data_center(HALFBACK_LIMIT), 100),
            ("enterprise", Sizes::enterprise(HALFBACK_LIMIT), 100),
            ("internet, all", Sizes::internet(Bytes::MAX), 100),
        ];
        for (name, sizes, least) in cases {
            let mut random = Random::new(Seed(4).child(name));
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..DRAWS {
                let bytes = sizes.pick(random.draw());
                assert!(bytes >= Bytes::new(least), "{name}: {bytes:?}");
                let size = bytes.get() as f64;
                sum += size;
                squares += size * size;
            }
            let mean = sum / f64::from(DRAWS);
            let error = ((squares / f64::from(DRAWS) - mean * mean) / f64::from(DRAWS)).sqrt();
            let exact = sizes.mean();
            assert!((mean - exact).abs() < 5.0 * error, "{name}: {mean} drawn, {exact} exact, {error}");
            assert!(error / exact < 0.05, "{name}: the test can fail");
        }
    }

    /// Equal numbers on every machine: the quartiles, computed by hand from the anchors.
    #[test]
    fn draws_are_the_same_everywhere() {
        let draws = [0, 1 << 62, 1 << 63, 3 << 62, u64::MAX];
        let picked = |sizes: Sizes| draws.map(|draw| sizes.pick(draw).get());
        assert_eq!(picked(Sizes::internet(HALFBACK_LIMIT)), [100, 316, 998, 4_199, 1_000_000]);
        assert_eq!(picked(Sizes::data_center(HALFBACK_LIMIT)), [100, 395, 1_562, 6_175, 1_000_000]);
        assert_eq!(picked(Sizes::enterprise(HALFBACK_LIMIT)), [100, 295, 871, 4_823, 1_000_000]);
    }

    #[test]
    fn limits_at_or_below_the_smallest_size_leave_one_size() {
        for limit in [0, 1, 99, 100] {
            let sizes = Sizes::internet(Bytes::new(limit));
            assert_eq!(sizes, Sizes::Fixed(Bytes::new(limit.max(1))));
        }
    }

    #[test]
    fn the_gap_makes_the_load() {
        let sizes = Sizes::Fixed(Bytes::new(100_000));
        // HB §4.2.4: a quarter of 15 Mb/s; 100 kB at 468 750 bytes per second.
        assert_eq!(sizes.gap_at(Rate::from_bytes_per_sec(468_750)), Span::from_nanos(213_333_333));
        assert_eq!(sizes.gap_at(Rate::ZERO), Span::MAX);
        assert_eq!(sizes.share_of_bytes(Bytes::new(99_999)), 0.0);
        assert_eq!(sizes.share_of_bytes(Bytes::new(100_000)), 1.0);
    }
}
