//! Drop packets for an option in their IP header, or remove the option, as some middleboxes do.
//!
//! Source: A. Medina, M. Allman, S. Floyd, "Measuring Interactions Between Transport Protocols and
//! Middleboxes", IMC 2004 (packets with known and unknown IP options are dropped); RFC 4782 §4.7
//! and §6.2 (the consequences for Quick-Start).
//!
//! # Deviations
//!
//! - A share of packets is affected. A real box treats all packets of a path alike: that is a share
//!   of all or of none.
//! - The only option that is removed is a Quick-Start request.

use core::fmt;

use headstart_units::{Ratio, Time};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::chance::Chance;
use crate::element::{DropReason, Element, Packet, PushResult};
use crate::plan::{Part, Refusal, checked_share};
use crate::seed::Seed;

/// The box's action on a packet with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The packet is dropped.
    Drop,
    /// The packet goes on without its Quick-Start request.
    Remove,
}

/// Parameters of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Action of the box.
    pub action: Action,
    /// The share of the packets with an option that it affects.
    pub share: Ratio,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, share } = self;
        match action {
            Action::Drop => write!(f, "a box that drops {share} of packets with IP options"),
            Action::Remove => write!(f, "a box that removes {share} of Quick-Start requests"),
        }
    }
}

impl Part for Params {
    const NAME: &'static str = "option filter";
    const OPTION: &'static str = "ip-options";
    type Element<P> = OptionFilter;

    fn build<P>(&self, seed: Seed) -> OptionFilter {
        OptionFilter::new(*self, seed.0)
    }

    fn check(&self) -> Result<(), Refusal> {
        checked_share(self.share)
    }

    fn drops(&self) -> Option<DropReason> {
        (self.action == Action::Drop).then_some(DropReason::OptionFilter)
    }
}

/// A box that acts on packets with options.
#[derive(Debug)]
pub struct OptionFilter {
    action: Action,
    chance: Chance,
    source: Xoshiro256PlusPlus,
}

impl OptionFilter {
    /// The box. Packets without an option take no draw.
    #[must_use]
    pub fn new(params: Params, seed: u64) -> Self {
        let Params { action, share } = params;
        Self { action, chance: Chance::new(share), source: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }
}

impl<P: Packet> Element<P> for OptionFilter {
    #[inline]
    fn push(&mut self, _now: Time, mut packet: P) -> PushResult<P> {
        if !packet.has_ip_option() || !self.chance.happens(&mut self.source) {
            return PushResult::Passed(packet);
        }
        match self.action {
            Action::Drop => PushResult::Dropped(packet, DropReason::OptionFilter),
            Action::Remove => {
                packet.set_request(None);
                PushResult::Passed(packet)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_startup::quick_start::{Nonce, Request};
    use headstart_units::{Bytes, Rate};

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Asking(Option<Request>);

    impl Packet for Asking {
        fn size(&self) -> Bytes {
            Bytes::new(40)
        }
        fn is_ecn_capable(&self) -> bool {
            false
        }
        fn mark_congestion_experienced(&mut self) {}
        fn request(&self) -> Option<Request> {
            self.0
        }
        fn set_request(&mut self, request: Option<Request>) {
            self.0 = request;
        }
    }

    fn asking() -> Asking {
        Asking(Some(Request { rate: Rate::from_mbit_per_sec(1), ttl: 64, nonce: Nonce::new(1) }))
    }

    #[test]
    fn only_packets_with_an_option_are_dropped_or_lose_it() {
        let all = |action| OptionFilter::new(Params { action, share: Ratio::ONE }, 1);
        let (mut drops, mut removes) = (all(Action::Drop), all(Action::Remove));
        let dropped = PushResult::Dropped(asking(), DropReason::OptionFilter);
        assert_eq!(drops.push(Time::ZERO, asking()), dropped);
        assert_eq!(drops.push(Time::ZERO, Asking(None)), PushResult::Passed(Asking(None)));
        assert_eq!(removes.push(Time::ZERO, asking()), PushResult::Passed(Asking(None)));
    }

    #[test]
    fn a_share_of_them_is_affected() {
        let params = Params { action: Action::Drop, share: Ratio::percent(30) };
        let mut filter = OptionFilter::new(params, 7);
        let dropped = (0..10_000)
            .filter(|_| matches!(filter.push(Time::ZERO, asking()), PushResult::Dropped(..)))
            .count();
        assert!((2_800..3_200).contains(&dropped), "{dropped} of 3000 expected");
    }
}
