//! A path as data: its elements in both directions, and the hosts at its ends.
//!
//! One value describes a path for every program: the simulator, the QUIC stack in virtual time and
//! the emulator. [`PathPlan::check`] checks it, [`PathPlan::describe`] prints it in one line, and
//! [`PathPlan::elements`] lists its elements with their seeds. So the same plan and seed give the
//! same draws everywhere.
//!
//! | module | holds |
//! |---|---|
//! | [`element`] | an element and a link as data, and how they are built |
//! | [`check`] | the limits of every value |
//! | `text` | plans in words |

pub mod check;
pub mod element;
mod text;

use std::collections::BTreeMap;

use headstart_units::{Rate, Span};

use crate::any::AnyElement;
use crate::delay::{self, Delay};
use crate::direction::Direction;
use crate::element::Packet;
use crate::limit::Limit;
use crate::seed::Seed;

pub use check::PlanError;
pub(crate) use check::{FULL_PACKET, Refusal, checked_share, checked_time};
pub use element::{ElementPlan, LinkPlan, LinkRate, Part};
pub(crate) use text::at_time;

/// A path between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPlan {
    /// From the data sender to the receiver, in the order in which packets cross them.
    pub down: Vec<ElementPlan>,
    /// From the receiver to the data sender, in the order in which packets cross them.
    pub up: Vec<ElementPlan>,
    /// For each class of hosts the one-way delay of the receiver's own access link, each way.
    pub access: Vec<Span>,
}

/// An element of a path with its place, its name and its seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<'a> {
    /// The element.
    pub plan: &'a ElementPlan,
    /// Direction of the element.
    pub direction: Direction,
    /// The element's place in that direction, from zero.
    pub position: usize,
    /// Name of the element, different from all others of the path.
    pub name: String,
    /// The seed of its random draws.
    pub seed: Seed,
}

impl PathPlan {
    /// One link with a drop-tail queue in each direction and half of the round-trip time in each.
    #[must_use]
    pub fn dumbbell(rate: Rate, rtt: Span, limit: Limit) -> Self {
        let link = LinkPlan::new(rate, rtt / 2, limit);
        Self::links(link.clone(), link)
    }

    /// One link in each direction and one class of hosts.
    #[must_use]
    pub fn links(down: LinkPlan, up: LinkPlan) -> Self {
        Self {
            down: vec![ElementPlan::Link(down)],
            up: vec![ElementPlan::Link(up)],
            access: vec![Span::ZERO],
        }
    }

    /// One link down and a delay up: requests and acks are not queued.
    #[must_use]
    pub fn link_and_delay(down: LinkPlan, up: Span) -> Self {
        Self {
            down: vec![ElementPlan::Link(down)],
            up: vec![delay::Params { delay: up }.into()],
            access: vec![Span::ZERO],
        }
    }

    /// The elements of a direction.
    #[must_use]
    pub fn direction(&self, direction: Direction) -> &[ElementPlan] {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Every element, in the order of their numbers in the simulator: the links of both directions
    /// alternately, then the other elements down, then up.
    ///
    /// Names and seeds follow from kind and place: the first link down is `bottleneck`, the first
    /// one up `way back`, links behind them `hop 1` and `hop 1 back`. Other elements are named by
    /// their kind, a second of the same kind has its number.
    #[must_use]
    pub fn elements(&self, seed: Seed) -> Vec<Placed<'_>> {
        let root = seed.child("path");
        let (mut links, mut others) = (vec![], vec![]);
        for direction in [Direction::Down, Direction::Up] {
            let (mut hops, mut counts) = (0_usize, BTreeMap::new());
            for (position, plan) in self.direction(direction).iter().enumerate() {
                let place = |name, seed| Placed { plan, direction, position, name, seed };
                let Some((label, seed_name)) = plan.names() else {
                    let name = match (direction, hops) {
                        (Direction::Down, 0) => "bottleneck".to_owned(),
                        (Direction::Up, 0) => "way back".to_owned(),
                        (Direction::Down, _) => format!("hop {hops}"),
                        (Direction::Up, _) => format!("hop {hops} back"),
                    };
                    let seed = root.child(&name);
                    links.push((hops, place(name, seed)));
                    hops += 1;
                    continue;
                };
                let count = counts.entry(label).or_insert(0_usize);
                *count += 1;
                let number = if *count > 1 { format!(" {count}") } else { String::new() };
                let (root, back) = match direction {
                    Direction::Down => (root, ""),
                    Direction::Up => (root.child("way back"), " back"),
                };
                let seed = root.child(&format!("{seed_name}{number}"));
                others.push(place(format!("{label}{number}{back}"), seed));
            }
        }
        // Stable: of two links with the same number the one down comes first.
        links.sort_by_key(|(hop, _)| *hop);
        links.into_iter().map(|(_, link)| link).chain(others).collect()
    }

    /// The elements that packets of a class of hosts cross in one direction, in order, with names.
    #[must_use]
    pub fn row<P: Packet + Clone>(
        &self,
        direction: Direction,
        class: usize,
        seed: Seed,
    ) -> Vec<(String, AnyElement<P>)> {
        let mut elements = self.elements(seed);
        elements.retain(|placed| placed.direction == direction);
        elements.sort_by_key(|placed| placed.position);
        let mut row: Vec<_> =
            elements.into_iter().map(|placed| (placed.name, placed.plan.build(placed.seed))).collect();
        let access = self.access.get(class).copied().unwrap_or_default();
        if !access.is_zero() {
            let delay = AnyElement::Delay(Delay::new(access));
            match direction {
                Direction::Down => row.push(("access".to_owned(), delay)),
                Direction::Up => row.insert(0, ("access back".to_owned(), delay)),
            }
        }
        row
    }

    /// The first link of a direction, if there is any.
    #[must_use]
    pub fn first_link(&self, direction: Direction) -> Option<&LinkPlan> {
        self.direction(direction).iter().find_map(|element| match element {
            ElementPlan::Link(link) => Some(link),
            _ => None,
        })
    }

    /// RTT of a class of hosts without queues, serialisation, jitter and changes of links.
    #[must_use]
    pub fn rtt(&self, class: usize) -> Span {
        let access = self.access.get(class).copied().unwrap_or_default();
        let elements = self.down.iter().chain(&self.up);
        elements.fold(access * 2, |sum, element| sum + element.delay())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::Order;
    use headstart_units::{Bytes, Ratio};

    fn link(mbit: u64) -> LinkPlan {
        LinkPlan::new(Rate::from_mbit_per_sec(mbit), Span::from_millis(10), Limit::bytes(Bytes::new(9_000)))
    }

    fn loss() -> ElementPlan {
        ElementPlan::loss(Ratio::percent(1))
    }

    /// Results of earlier versions depend on these names and on their order.
    #[test]
    fn names_numbers_and_seeds_are_those_of_every_earlier_version() {
        let mut plan = PathPlan::links(link(10), link(5));
        plan.down.push(ElementPlan::Link(link(20)));
        plan.up.push(ElementPlan::Link(link(20)));
        plan.down.extend([
            delay::NonCapableRouter.into(),
            loss(),
            ElementPlan::BurstLoss(crate::burst_loss::Params::all_or_nothing(Ratio::percent(1), Ratio::ONE)),
            ElementPlan::jitter(Span::from_millis(1), Order::Kept),
            crate::duplicate::Params { share: Ratio::percent(1) }.into(),
            loss(),
        ]);
        plan.up.push(loss());
        let path = Seed(7).child("path");
        let expected = [
            ("bottleneck", path.child("bottleneck")),
            ("way back", path.child("way back")),
            ("hop 1", path.child("hop 1")),
            ("hop 1 back", path.child("hop 1 back")),
            ("non-capable router", path.child("non-capable router")),
            ("random loss", path.child("loss")),
            ("burst loss", path.child("burst loss")),
            ("jitter", path.child("jitter")),
            ("duplicates", path.child("duplicate")),
            ("random loss 2", path.child("loss 2")),
            ("random loss back", path.child("way back").child("loss")),
        ];
        let found = plan.elements(Seed(7));
        let found: Vec<_> = found.iter().map(|placed| (placed.name.as_str(), placed.seed)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_row_is_one_direction_in_its_own_order_with_the_access_at_the_receiver() {
        let mut plan = PathPlan::dumbbell(Rate::from_mbit_per_sec(10), Span::from_millis(40), Limit::NONE);
        plan.down.insert(0, loss());
        plan.access = vec![Span::ZERO, Span::from_millis(5)];
        let names = |direction, class| -> Vec<String> {
            let row = plan.row::<crate::element::testing::Numbered>(direction, class, Seed(1));
            row.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(Direction::Down, 0), ["random loss", "bottleneck"]);
        assert_eq!(names(Direction::Down, 1), ["random loss", "bottleneck", "access"]);
        assert_eq!(names(Direction::Up, 1), ["access back", "way back"]);
        assert_eq!((plan.rtt(0), plan.rtt(1)), (Span::from_millis(40), Span::from_millis(50)));
    }
}
