//! The difference between two arms of a rollout, which may be looked at while it runs.
//!
//! An interval of fixed confidence holds for one look at the data. Repeated looks that end when
//! zero is outside mislead far more often than the confidence says. A *confidence sequence* holds
//! at all times together: with the probability `1 - alpha` the true difference is in the interval
//! of every look, however many there are.
//!
//! # Formula
//!
//! An estimate `d` of variance `v` has the information `I = 1 / v`. While data arrive, `I d` moves
//! as a Brownian motion with drift, in the time `I` (C. Jennison and B. W. Turnbull, "Group
//! Sequential Methods with Applications to Clinical Trials", 1999, chapter 11). Mixing its
//! likelihood ratio over normally distributed drifts, as H. Robbins does ("Statistical Methods
//! Related to the Law of the Iterated Logarithm", 1970), gives
//!
//! ```text
//! |d - true difference| <= sqrt((I + r) ln((I + r) / (r alpha^2))) / I    at all times
//! ```
//!
//! which is the two-sided normal mixture boundary of S. R. Howard, A. Ramdas, J. McAuliffe and
//! J. Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences" (2021, equation
//! 14). The parameter `r` decides at which information it is narrowest; see [`Sequence::new`].
//!
//! # Limits
//!
//! - The variance is estimated, so that the guarantee is asymptotic (I. Waudby-Smith, D. Arbour,
//!   R. Sinha, E. H. Kennedy and A. Ramdas, "Time-uniform central limit theory and asymptotic
//!   confidence sequences", 2024): nothing is said of fewer than [`FEWEST`] values in an arm. The
//!   share of false alarms is simulated in this module's tests.
//! - Values must be independent. Connections of one peer are alike: where their peers are known,
//!   the variance must be estimated over peers.

/// Fewest values of an arm for an estimate.
pub const FEWEST: u64 = 20;

/// Number, sum and squares of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Moments {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Mean of the values; NaN without one.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    /// The variance of a value (divided by one less than the number); NaN of fewer than two.
    #[must_use]
    pub fn variance(&self) -> f64 {
        let spread = self.squares - self.sum * self.sum / self.count as f64;
        // Rounding may leave less than nothing.
        spread.max(0.0) / (self.count as f64 - 1.0)
    }
}

/// The treatment's mean less the control's, with its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Estimate of the difference.
    pub value: f64,
    /// Variance of the estimate.
    pub variance: f64,
}

impl Difference {
    /// The difference of two arms, stratified: within each stratum the arms are compared, and the
    /// strata are weighted by `n_t n_c / (n_t + n_c)`. Strata with fewer than [`FEWEST`] values in
    /// an arm are left out; `None` if no other is there.
    ///
    /// The variance of an arm is taken to be at least the variance of both: a small arm may not
    /// have met its rare slow connections yet.
    #[must_use]
    pub fn stratified(strata: impl IntoIterator<Item = [Moments; 2]>) -> Option<Self> {
        let (mut total, mut value, mut variance) = (0.0, 0.0, 0.0);
        for [treatment, control] in strata {
            if treatment.count.min(control.count) < FEWEST {
                continue;
            }
            let [many, others] = [treatment, control].map(|arm| arm.count as f64);
            let weight = many * others / (many + others);
            total += weight;
            value += weight * (treatment.mean() - control.mean());
            let [of_treatment, of_control] = [treatment.variance(), control.variance()];
            let pooled = (of_treatment * (many - 1.0) + of_control * (others - 1.0)) / (many + others - 2.0);
            let of_difference = of_treatment.max(pooled) / many + of_control.max(pooled) / others;
            variance += weight * weight * of_difference;
        }
        (total > 0.0).then(|| Self { value: value / total, variance: variance / (total * total) })
    }

    /// Two independent estimates of one difference, weighted by their information. One without
    /// variance, of which nothing is known, is left out.
    #[must_use]
    pub fn pooled(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let is_known = |it: &Self| it.variance > 0.0;
        let (Some(one), Some(other)) = (one.filter(is_known), other.filter(is_known)) else {
            return one.filter(is_known).or(other);
        };
        let sum = one.variance + other.variance;
        Some(Self {
            value: (one.value * other.variance + other.value * one.variance) / sum,
            variance: one.variance * other.variance / sum,
        })
    }
}

/// A confidence sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sequence {
    alpha: f64,
    r: f64,
}

impl Sequence {
    /// A sequence that misses the true difference at any time with the probability `alpha` (below
    /// one), narrowest where a difference of about `effect` is found.
    ///
    /// Of all boundaries that of `r = I / (-2 ln alpha + ln(1 - 2 ln alpha))` is nearly the
    /// narrowest at the information `I` (Howard et al., section 3.5). A difference is found at
    /// about `I = -2 ln(alpha) / effect^2`.
    #[must_use]
    pub fn new(alpha: f64, effect: f64) -> Self {
        let scale = -2.0 * alpha.ln();
        Self { alpha, r: scale / (effect * effect) / (scale + (1.0 + scale).ln()) }
    }

    /// The interval at this look: its lower and upper end. An estimate without variance has none.
    #[must_use]
    pub fn interval(&self, difference: &Difference) -> [f64; 2] {
        let information = 1.0 / difference.variance;
        let sum = information + self.r;
        let reach = (sum * (sum / (self.r * self.alpha * self.alpha)).ln()).sqrt() / information;
        if !reach.is_finite() {
            return [f64::NEG_INFINITY, f64::INFINITY];
        }
        [difference.value - reach, difference.value + reach]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Xorshift64*: uniform in (0, 1).
    struct Draws(u64);

    impl Draws {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
            (bits as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
        }
    }

    /// Logarithms of completion times and shares of lost bytes, as they are distributed on paths
    /// of several kinds.
    const KINDS: [fn(&mut Draws) -> f64; 4] = [
        |draws| draws.normal(),
        |draws| (-draws.uniform().ln()).ln(),
        |draws| if draws.uniform() < 0.9 { 0.1 * draws.normal() } else { 2.0 + draws.normal() },
        |draws| if draws.uniform() < 0.8 { 0.0 } else { draws.uniform() },
    ];

    /// Share of experiments that report a difference at any look, after each pair of connections.
    fn alarms(kind: fn(&mut Draws) -> f64, sequence: Sequence, shift: f64, share: f64) -> f64 {
        const EXPERIMENTS: u64 = 400;
        const CONNECTIONS: u64 = 4_000;
        let alarms = (1..=EXPERIMENTS).filter(|&seed| {
            let mut draws = Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut arms = [Moments::default(); 2];
            (0..CONNECTIONS).any(|_| {
                let at = usize::from(draws.uniform() >= share);
                let value = kind(&mut draws);
                arms[at].add(if at == 0 { value + shift } else { value });
                let look = Difference::stratified([arms]).map(|found| sequence.interval(&found));
                look.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
            })
        });
        alarms.count() as f64 / EXPERIMENTS as f64
    }

    #[test]
    fn looks_after_each_connection_mislead_no_more_often_than_promised() {
        let sequence = Sequence::new(0.05, 0.1);
        for (number, kind) in KINDS.into_iter().enumerate() {
            for share in [0.5, 0.2] {
                let found = alarms(kind, sequence, 0.0, share);
                assert!(found <= 0.05, "kind {number}, {share} treated: {found}");
            }
        }
    }

    /// Looked at as often, an ordinary interval misleads in a third of the experiments.
    #[test]
    fn an_interval_for_one_look_would_mislead() {
        let misled = (1..=200_u64).filter(|&seed| {
            let mut draws = Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut arms = [Moments::default(); 2];
            (0..4_000).any(|look| {
                arms[look % 2].add(draws.normal());
                let found = Difference::stratified([arms]);
                found.is_some_and(|found| found.value.abs() > 1.96 * found.variance.sqrt())
            })
        });
        assert!(misled.count() > 60);
    }

    #[test]
    fn a_difference_is_found() {
        let sequence = Sequence::new(0.05, 0.1);
        for (number, kind) in KINDS.into_iter().enumerate().take(3) {
            let found = alarms(kind, sequence, -0.25, 0.5);
            assert!(found > 0.95, "kind {number}: {found}");
        }
    }

    /// By hand: information 100, r = 100, alpha 0.05.
    #[test]
    fn the_boundary_is_that_of_the_formula() {
        let sequence = Sequence { alpha: 0.05, r: 100.0 };
        let [low, high] = sequence.interval(&Difference { value: 0.5, variance: 0.01 });
        let reach = (200.0 * (2.0_f64 / 0.0025).ln()).sqrt() / 100.0;
        assert!((reach - 0.365_640).abs() < 1e-5);
        assert!((high - 0.5 - reach).abs() < 1e-12 && (0.5 - low - reach).abs() < 1e-12);
    }

    #[test]
    fn strata_are_compared_within_themselves() {
        let of = |values: &[f64]| {
            let mut moments = Moments::default();
            values.iter().for_each(|value| moments.add(*value));
            moments
        };
        let many = |value: f64, count: usize| {
            let values: Vec<f64> =
                (0..count).map(|at| value + if at % 2 == 0 { 0.1 } else { -0.1 }).collect();
            of(&values)
        };
        // The treatment is 1 lower in both strata, and has more of the slow one.
        let found = Difference::stratified([[many(1.0, 20), many(2.0, 60)], [many(9.0, 60), many(10.0, 20)]]);
        let found = found.expect("two strata");
        assert!((found.value + 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(Difference::stratified([[many(1.0, 19), many(2.0, 60)]]), None, "too few");
        let [one, other] = [(1.0, 0.1), (4.0, 0.2)].map(|(value, variance)| Difference { value, variance });
        let pooled = Difference::pooled(Some(one), Some(other)).expect("of two");
        assert!((pooled.value - 2.0).abs() < 1e-12 && (pooled.variance - 0.2 / 3.0).abs() < 1e-12);
        let unknown = Difference { value: 9.0, variance: 0.0 };
        assert_eq!(Difference::pooled(Some(unknown), Some(one)), Some(one));
        assert_eq!(Difference::pooled(None, Some(unknown)), Some(unknown));
        let sequence = Sequence::new(0.05, 0.1);
        assert_eq!(sequence.interval(&unknown), [f64::NEG_INFINITY, f64::INFINITY]);
        let none = Difference { value: 0.0, variance: f64::INFINITY };
        assert_eq!(sequence.interval(&none), [f64::NEG_INFINITY, f64::INFINITY]);
    }
}
