//! Lose packets in bursts: the two-state Gilbert-Elliott model.
//!
//! Source: E. N. Gilbert, "Capacity of a Burst-Noise Channel", Bell System Technical Journal 39,
//! 1960 (a good state that loses nothing); E. O. Elliott, "Estimates of Error Rates for Codes on
//! Burst-Noise Channels", Bell System Technical Journal 42, 1963 (both states lose).
//!
//! ```text
//!                enter
//!          +---------------+
//!          |               v
//!        Good             Bad
//!          ^               |
//!          +---------------+
//!                leave
//! ```
//!
//! The share of packets in the bad state is `enter / (enter + leave)`; its mean length is `1 /
//! leave` packets.
//!
//! # Deviations
//!
//! - The sources count bits; here one step is one packet, as usual for packet networks. Time has no
//!   effect: an idle path stays in its state.
//! - The sources leave open whether the state changes before or after a draw. Here a packet is
//!   drawn in the present state, then the state may change.

use core::fmt;

use headstart_units::{Ratio, Time};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chance::Chance;
use crate::element::{DropReason, Element, Packet, PushResult};
use crate::plan::{Part, Refusal, checked_share};
use crate::seed::Seed;

/// The four probabilities of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// From good to bad, after each packet (Gilbert's P).
    pub enter: Ratio,
    /// From bad to good, after each packet (Gilbert's p).
    pub leave: Ratio,
    /// Loss in the good state (Elliott's 1-k).
    pub loss_when_good: Ratio,
    /// Loss in the bad state (Gilbert's 1-h).
    pub loss_when_bad: Ratio,
}

impl Params {
    /// No loss in the good state, and loss of every packet in the bad one.
    #[must_use]
    pub const fn all_or_nothing(enter: Ratio, leave: Ratio) -> Self {
        Self { enter, leave, loss_when_good: Ratio::new(0, 1), loss_when_bad: Ratio::ONE }
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bursts of loss begin with {} and end with {}", self.enter, self.leave)
    }
}

impl Part for Params {
    const NAME: &'static str = "burst loss";
    const OPTION: &'static str = "burst-loss";
    type Element<P> = BurstLoss;

    fn build<P>(&self, seed: Seed) -> BurstLoss {
        BurstLoss::new(*self, seed.0)
    }

    fn check(&self) -> Result<(), Refusal> {
        let Self { enter, leave, loss_when_good, loss_when_bad } = *self;
        [enter, leave, loss_when_good, loss_when_bad].into_iter().try_for_each(checked_share)
    }

    fn drops(&self) -> Option<DropReason> {
        Some(DropReason::BurstLoss)
    }
}

/// Two-state random loss. It begins in the good state.
#[derive(Debug)]
pub struct BurstLoss {
    enter: Chance,
    leave: Chance,
    loss_when_good: Chance,
    loss_when_bad: Chance,
    is_bad: bool,
    source: Xoshiro256PlusPlus,
}

impl BurstLoss {
    /// Bursts with these probabilities, drawn from `seed`; more than one counts as one.
    #[must_use]
    pub fn new(params: Params, seed: u64) -> Self {
        Self {
            enter: Chance::new(params.enter),
            leave: Chance::new(params.leave),
            loss_when_good: Chance::new(params.loss_when_good),
            loss_when_bad: Chance::new(params.loss_when_bad),
            is_bad: false,
            source: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }
}

impl<P: Packet> Element<P> for BurstLoss {
    #[inline]
    fn push(&mut self, _now: Time, packet: P) -> PushResult<P> {
        let (loss, change) =
            if self.is_bad { (self.loss_when_bad, self.leave) } else { (self.loss_when_good, self.enter) };
        let is_lost = loss.happens(&mut self.source);
        self.is_bad ^= change.happens(&mut self.source);
        if is_lost { PushResult::Dropped(packet, DropReason::BurstLoss) } else { PushResult::Passed(packet) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::testing::packet;

    fn losses(params: Params, packets: u64) -> Vec<bool> {
        let mut loss = BurstLoss::new(params, 3);
        (0..packets).map(|n| loss.push(Time::ZERO, packet(n)) != PushResult::Passed(packet(n))).collect()
    }

    /// enter 1 %, leave 25 %: 1/26 of the packets are lost, in bursts of 4 on average.
    #[test]
    fn share_and_length_of_bursts_are_those_of_the_model() {
        let losses = losses(Params::all_or_nothing(Ratio::percent(1), Ratio::percent(25)), 260_000);
        let lost = losses.iter().filter(|lost| **lost).count();
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        assert!((9_000..11_000).contains(&lost), "{lost} of 10 000 expected");
        assert!((38..42).contains(&(lost * 10 / bursts)), "{lost} losses in {bursts} bursts");
    }

    #[test]
    fn both_states_lose_packets_at_their_probability() {
        let params = Params {
            enter: Ratio::percent(50),
            leave: Ratio::percent(50),
            loss_when_good: Ratio::percent(10),
            loss_when_bad: Ratio::percent(30),
        };
        let lost = losses(params, 100_000).iter().filter(|lost| **lost).count();
        assert!((19_000..21_000).contains(&lost), "{lost} of 20 000 expected");
    }

    #[test]
    fn without_transitions_to_the_bad_state_nothing_is_lost() {
        assert!(!losses(Params::all_or_nothing(Ratio::new(0, 1), Ratio::ONE), 10_000).contains(&true));
    }
}
