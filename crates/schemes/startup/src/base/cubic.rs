//! CUBIC: the window is a cubic function of the time since the last congestion.
//!
//! Source: RFC 9438, in integers: times in units of 2^20 ns (1.049 ms), windows in 1/1024 bytes.
//!
//! Google QUIC shipped with a CUBIC that behaves as two connections would ([`Constants::TWO`]). Of
//! N connections that share a path one is cut at a time, so the sum keeps (N - 1 + beta) / N. The
//! Reno-friendly estimate is that of N flows (the formula of RFC 9438 §4.3 for a sum of N windows).
//! The cubic function itself is unchanged.
//!
//! # Deviations
//!
//! - §4.6 cuts the flight size or, with growth limited as in §5.8, the window; here the window.
//! - The clock's unit makes the cubic a staircase of millisecond steps, as Linux's jiffies do.
//! - As in Linux ([`Kind::CubicLinux`](super::Kind)) it differs from the text in four points
//!   (`net/ipv4/tcp_cubic.c`, the behaviour in own words). While no maximum is known, after a start
//!   that ended without loss, the window grows by at least a twentieth in each round trip. A
//!   timeout clears the maximum. The Reno-friendly estimate keeps its slow growth (§4.3's smaller
//!   alpha). Windows before and after a cut are rounded down to whole segments. It serves the
//!   comparison with the kernel and is not the default.
//! - §4.9.1's undo of a spurious cut and §4.9.2 are not implemented: losses are never revoked.

use headstart_units::{Bytes, Ratio, Span, Time};

use super::{LOSS_SEGMENTS, MINIMUM_SEGMENTS};
use crate::allowance::HandOver;
use crate::event::{Ack, Congestion, Timeout};

/// Multiplicative decrease (RFC 9438 §4.6).
pub const BETA: Ratio = Ratio::new(7, 10);
/// Linux, while no maximum is known: acked bytes for each byte of growth.
const LINUX_MIN_GROWTH: u64 = 20;

/// Constants that depend on the number of connections emulated by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Multiplicative decrease (RFC 9438 §4.6).
    beta: Ratio,
    /// Fast convergence: share of the window kept as maximum if below the last one (RFC 9438 §4.7).
    fast_convergence: Ratio,
    /// Growth of the Reno-friendly estimate up to the window before the cut (RFC 9438 §4.3).
    alpha: Ratio,
}

impl Constants {
    /// One connection: beta 0.7, (1 + beta) / 2, 3 (1 - beta) / (1 + beta).
    pub const ONE: Self = Self { beta: BETA, fast_convergence: Ratio::new(17, 20), alpha: Ratio::new(9, 17) };
    /// Two connections: beta (1 + 0.7) / 2, fast convergence (1 + 0.85) / 2, and 4 x 3 (1 - beta) /
    /// (1 + beta) with that beta.
    pub const TWO: Self =
        Self { beta: Ratio::new(17, 20), fast_convergence: Ratio::new(37, 40), alpha: Ratio::new(36, 37) };

    pub(super) const fn fast_convergence(self) -> Ratio {
        self.fast_convergence
    }
}
/// Windows are kept in 1/1024 bytes, so that a large window still grows by small acks.
const FINE: u32 = 10;
/// The clock of the cubic runs in units of 2^20 ns.
const TICK: u32 = 20;
/// C = 0.4 segments per second cubed (RFC 9438 §5), per tick cubed, times 2^60:
/// 0.4 x (2^20 / 10^9)^3 x 2^60.
const C_PER_TICK_CUBED: u128 = 531_691_198;
const C_SHIFT: u32 = 60;

/// CUBIC's state.
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    mss: Bytes,
    shares: Constants,
    pub(super) window: Bytes,
    pub(super) ssthresh: Bytes,
    /// The window in 1/1024 bytes; `window` is this rounded down.
    fine_window: u64,
    /// W_max: the window before the last cut.
    w_max: Bytes,
    /// The window just before the last cut, for the Reno-friendly estimate (cwnd_prior).
    prior_window: Bytes,
    epoch: Option<Epoch>,
    is_linux: bool,
}

/// A stretch of avoidance between two congestion events.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// t_epoch.
    began: Time,
    /// K in ticks: time in which the cubic returns to its origin.
    k: u64,
    /// The window at the plateau.
    origin: Bytes,
    /// W_est in 1/1024 bytes.
    fine_estimate: u64,
}

impl Cubic {
    pub(super) fn new(mss: Bytes, shares: Constants) -> Self {
        Self {
            mss,
            shares,
            window: mss * LOSS_SEGMENTS,
            ssthresh: Bytes::MAX,
            fine_window: mss.get() << FINE,
            w_max: Bytes::ZERO,
            prior_window: Bytes::ZERO,
            epoch: None,
            is_linux: false,
        }
    }

    pub(super) fn linux(mss: Bytes) -> Self {
        Self { is_linux: true, ..Self::new(mss, Constants::ONE) }
    }

    pub(super) fn take_over(&mut self, from: &HandOver) {
        self.set_window(from.window.max(self.mss * LOSS_SEGMENTS));
        self.ssthresh = from.ssthresh;
    }

    fn set_window(&mut self, window: Bytes) {
        self.window = window;
        self.fine_window = window.get() << FINE;
    }

    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if ack.in_recovery || !ack.is_window_limited {
            return;
        }
        if self.window.get() != self.fine_window >> FINE {
            // The window was set from outside (restart after idle).
            self.set_window(self.window);
        }
        let mut acked = ack.newly_acked;
        if self.window < self.ssthresh {
            let grown = (self.window + acked).min(self.ssthresh);
            acked -= grown - self.window;
            self.set_window(grown);
            if acked.is_zero() {
                return;
            }
        }
        self.avoid(ack, acked);
    }

    /// RFC 9438 §4.2 to §4.5.
    fn avoid(&mut self, ack: &Ack, acked: Bytes) {
        let (window, w_max, mss) = (self.window, self.w_max, self.mss);
        let is_linux = self.is_linux;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(ack.now, window, w_max, mss));

        // §4.3: Reno's window at this time.
        let is_as_large_as_before = epoch.fine_estimate >> FINE >= self.prior_window.get() && !is_linux;
        let alpha = if is_as_large_as_before { Ratio::ONE } else { self.shares.alpha };
        let share = (acked.get() << FINE) * mss.get() / self.window.get().max(1);
        epoch.fine_estimate += alpha.of(share);

        // §4.2: the cubic one round trip from now, within [cwnd, 1.5 cwnd].
        let elapsed = ack.now.since(epoch.began) + ack.rtt.smoothed;
        let target = epoch.cubic(elapsed, mss).clamp(self.window, self.window * Ratio::new(3, 2));

        let floor = match is_linux && w_max.is_zero() {
            true => self.fine_window + (acked.get() << FINE) / LINUX_MIN_GROWTH,
            false => 0,
        };
        let fine_estimate = epoch.fine_estimate;
        let now_in_cubic = epoch.cubic(ack.now.since(epoch.began), mss);
        if Bytes::new(fine_estimate >> FINE) > now_in_cubic {
            self.fine_window = self.fine_window.max(fine_estimate);
        } else {
            let growth = (target - self.window).get() << FINE;
            self.fine_window +=
                (u128::from(growth) * u128::from(acked.get()) / u128::from(self.window.get().max(1))) as u64;
        }
        self.fine_window = self.fine_window.max(floor);
        self.window = Bytes::new(self.fine_window >> FINE);
    }

    pub(super) fn on_congestion(&mut self, signal: &Congestion, share: Option<Ratio>) {
        if signal.opens_episode {
            self.record_maximum();
            self.ssthresh = self.cut(share.unwrap_or(self.shares.beta));
            self.set_window(self.ssthresh);
        }
    }

    pub(super) fn on_timeout(&mut self, timeout: &Timeout) {
        // RFC 9438 §4.8; RFC 5681 §3.1: a repeated timeout of a segment keeps the threshold.
        if timeout.consecutive == 1 {
            self.record_maximum();
            self.ssthresh = self.cut(self.shares.beta);
        }
        if self.is_linux {
            self.w_max = Bytes::ZERO;
        }
        self.set_window(self.mss * LOSS_SEGMENTS);
    }

    /// The window after a cut of the window saved by [`Self::record_maximum`] (RFC 9438 §4.6).
    fn cut(&self, beta: Ratio) -> Bytes {
        self.counted(self.prior_window * beta).max(self.mss * MINIMUM_SEGMENTS)
    }

    /// `window` itself; for Linux, which counts in segments, rounded down to whole ones.
    fn counted(&self, window: Bytes) -> Bytes {
        if self.is_linux { self.mss * (window.get() / self.mss.get().max(1)) } else { window }
    }

    /// RFC 9438 §4.7.
    fn record_maximum(&mut self) {
        let window = self.counted(self.window);
        self.prior_window = window;
        self.w_max = match window < self.w_max {
            true => self.counted(window * self.shares.fast_convergence),
            false => window,
        };
        self.epoch = None;
    }
}

impl Epoch {
    /// RFC 9438 §4.2 equation (2), and §4.8 where there is no maximum.
    fn begin(now: Time, window: Bytes, w_max: Bytes, mss: Bytes) -> Self {
        let (k, origin) = if window < w_max {
            // K^3 = (W_max - cwnd) / C, in ticks cubed.
            let missing = u128::from((w_max - window).get()) << C_SHIFT;
            (cube_root(missing / (C_PER_TICK_CUBED * u128::from(mss.get()))), w_max)
        } else {
            (0, window)
        };
        Self { began: now, k, origin, fine_estimate: window.get() << FINE }
    }

    /// W_cubic(t) of RFC 9438 equation (1).
    #[inline]
    fn cubic(&self, elapsed: Span, mss: Bytes) -> Bytes {
        let ticks = elapsed.as_nanos() >> TICK;
        let distance = ticks.abs_diff(self.k).min(1 << 21);
        let cubed = u128::from(distance * distance * distance);
        let offset = Bytes::new(((cubed * (C_PER_TICK_CUBED * u128::from(mss.get()))) >> C_SHIFT) as u64);
        if ticks < self.k { self.origin.saturating_sub(offset) } else { self.origin + offset }
    }
}

/// The cube root, rounded down, by bisection on the bits: once per congestion event.
pub(super) fn cube_root(of: u128) -> u64 {
    let mut root: u128 = 0;
    let bits = (u128::BITS - of.leading_zeros()).div_ceil(3).min(42);
    for bit in (0..bits).rev() {
        let candidate = root | (1 << bit);
        if candidate * candidate * candidate <= of {
            root = candidate;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::super::testing::{MSS, acked, lost, timed_out};
    use super::*;

    #[test]
    fn cube_roots_are_exact_at_their_edges() {
        assert_eq!(cube_root(0), 0);
        for root in [1_u64, 2, 10, 1_290, 2_097_151] {
            let cube = u128::from(root) * u128::from(root) * u128::from(root);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root);
            assert_eq!(cube_root(cube - 1), root - 1);
        }
    }

    #[test]
    fn the_constant_is_c_in_ticks() {
        let tick_secs = (1_u64 << TICK) as f64 / 1e9;
        let exact = 0.4 * tick_secs * tick_secs * tick_secs * (1_u64 << C_SHIFT) as f64;
        assert!((exact - C_PER_TICK_CUBED as f64).abs() < 1.0, "{exact}");
    }

    /// RFC 9438 §5.1: K is the cube root of W_max (1 - beta) / C seconds.
    #[test]
    fn the_window_is_back_at_its_maximum_after_k() {
        let mut cubic = Cubic::new(MSS, Constants::ONE);
        cubic.take_over(&HandOver::avoiding(MSS * 1000));
        cubic.on_congestion(&lost(Time::ZERO, MSS), None);
        assert_eq!(cubic.window, MSS * 700);
        // K = (300 / 0.4)^(1/3) = 9.086 s. One window of acks every 100 ms.
        let mut now = Time::ZERO;
        while now < Time::from_millis(9_100) {
            cubic.on_ack(&acked(now, cubic.window));
            now += Span::from_millis(100);
        }
        let segments = cubic.window.get() / MSS.get();
        assert!((995..=1001).contains(&segments), "{segments} segments after K");
    }

    #[test]
    fn on_a_short_path_reno_is_the_faster_one_and_is_followed() {
        let mut cubic = Cubic::new(MSS, Constants::ONE);
        cubic.take_over(&HandOver::avoiding(MSS * 20));
        cubic.on_congestion(&lost(Time::ZERO, MSS), None);
        let mut now = Time::ZERO;
        for _ in 0..10 {
            now += Span::from_millis(1);
            cubic.on_ack(&acked(now, cubic.window));
        }
        let grown = (cubic.window - MSS * 14).get();
        assert!((5_000..=5_400).contains(&grown), "ten round trips at alpha 9/17: {grown}");
    }

    #[test]
    fn a_second_cut_below_the_maximum_lowers_it() {
        let mut cubic = Cubic::new(MSS, Constants::ONE);
        cubic.take_over(&HandOver::avoiding(MSS * 100));
        cubic.on_congestion(&lost(Time::ZERO, MSS), None);
        cubic.on_congestion(&lost(Time::ZERO, MSS), None);
        assert_eq!(cubic.w_max, MSS * 70 * Ratio::new(17, 20));
    }

    #[test]
    fn a_pair_gives_up_half_as_much_as_one() {
        let mut cubic = Cubic::new(MSS, Constants::TWO);
        cubic.take_over(&HandOver::avoiding(MSS * 100));
        cubic.on_congestion(&lost(Time::ZERO, MSS), None);
        assert_eq!(cubic.window, MSS * 85);
        cubic.on_congestion(&lost(Time::ZERO, MSS), None);
        assert_eq!(cubic.w_max, MSS * 85 * Ratio::new(37, 40));
        cubic.on_timeout(&timed_out(Time::ZERO));
        assert_eq!(cubic.window, MSS);
    }

    #[test]
    fn as_linux_has_it_windows_before_and_after_a_cut_are_whole_segments() {
        for (window, linux, text) in
            [(18_900, 12_000, 13_230), (20_000, 14_000, 14_000), (1_900, 2_000, 2_000)]
        {
            let cut = |mut cubic: Cubic| {
                cubic.take_over(&HandOver::avoiding(Bytes::new(window)));
                cubic.on_congestion(&lost(Time::ZERO, MSS), None);
                cubic.window.get()
            };
            assert_eq!(
                (cut(Cubic::linux(MSS)), cut(Cubic::new(MSS, Constants::ONE))),
                (linux, text),
                "{window}"
            );
        }
    }

    #[test]
    fn as_linux_has_it_the_window_grows_by_a_twentieth_until_a_maximum_is_known() {
        let mss = Bytes::new(1000);
        let after_a_round = |mut cubic: Cubic, has_lost: bool| {
            cubic.take_over(&HandOver::avoiding(mss * 200));
            if has_lost {
                cubic.on_congestion(&super::super::testing::lost(Time::from_millis(1), mss), None);
            }
            let before = cubic.window;
            for n in 0..before.get() / 1000 {
                cubic.on_ack(&super::super::testing::acked(Time::from_millis(2 + n / 4), mss));
            }
            (cubic.window - before).get() / 1000
        };
        assert!((9..=10).contains(&after_a_round(Cubic::linux(mss), false)), "200 segments, a twentieth");
        assert!(
            after_a_round(Cubic::new(mss, Constants::ONE), false) <= 1,
            "RFC 9438: the cubic has hardly begun"
        );
        assert_eq!(
            after_a_round(Cubic::linux(mss), true),
            after_a_round(Cubic::new(mss, Constants::ONE), true)
        );
    }

    #[test]
    fn a_timeout_starts_over_towards_seven_tenths() {
        let mut cubic = Cubic::new(MSS, Constants::ONE);
        cubic.take_over(&HandOver::avoiding(MSS * 10));
        cubic.on_timeout(&timed_out(Time::ZERO));
        assert_eq!((cubic.window, cubic.ssthresh), (MSS, MSS * 7));
        cubic.on_timeout(&super::super::Timeout { consecutive: 2, ..timed_out(Time::ZERO) });
        assert_eq!(cubic.ssthresh, MSS * 7);
    }
}
