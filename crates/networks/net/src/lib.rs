//! Elements of a network path: links, queues, delay, loss and policers.
//!
//! An [`Element`] takes packets with their arrival times, and returns them later or drops them. It
//! reads no clock and opens no socket, so the simulator drives it with virtual time and an emulator
//! with the real clock. Each element has one effect; a path is a list of them, sender to receiver.
//!
//! ```
//! use headstart_net::{Element, Limit, Link, Output, Packet, PushResult};
//! use headstart_units::{Bytes, Packets, Rate, Span, Time};
//!
//! #[derive(Debug, PartialEq)]
//! struct Full(u32);
//!
//! impl Packet for Full {
//!     fn size(&self) -> Bytes {
//!         Bytes::new(1500)
//!     }
//!     fn is_ecn_capable(&self) -> bool {
//!         false
//!     }
//!     fn mark_congestion_experienced(&mut self) {}
//! }
//!
//! // 12 Mbit/s carries 1500 bytes in a millisecond; the propagation delay is 10 ms.
//! let limit = Limit::packets(Packets::new(2));
//! let mut link = Link::new(Rate::from_mbit_per_sec(12), Span::from_millis(10), limit);
//! assert_eq!(link.push(Time::ZERO, Full(0)), PushResult::Accepted);
//! assert_eq!(link.next_at(), Time::from_millis(11));
//! assert_eq!(link.pop(Time::from_millis(11)), Some(Output::Delivered(Full(0))));
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`plan`] | a path as data: checks, names, construction |
//! | [`element`] | the trait, and the result for a packet |
//! | [`any`] | every element as one type |
//! | [`link`] | a constant rate, a propagation delay and a drop-tail queue |
//! | [`managed_link`] | the same behind any queue |
//! | [`netem_link`] | a constant rate, with one limit for delay and queue |
//! | [`trace_link`] | a rate that follows a packet-delivery trace, as in mahimahi |
//! | [`changing`] | a link with changing rate and delay |
//! | [`routed_link`] | a link behind a Quick-Start or RCP router |
//! | [`delay`] | the same delay for every packet |
//! | [`jitter`] | a random delay for each, in order or not |
//! | [`loss`], [`burst_loss`] | random loss, alone or in bursts |
//! | [`duplicate`] | random duplication |
//! | [`policer`] | a token bucket that drops excess packets |
//! | [`option_filter`] | a middlebox that drops packets with IP options, or removes the options |
//! | [`queue`] | drop-tail, CoDel, RED, PIE, FQ-CoDel and DualPI2 |
//! | [`trace`] | packet-delivery traces: read, write, generate |
//! | [`limit`] | the limit of a buffer, in packets and bytes |
//! | [`packet_counts`] | counts of delivered and dropped packets |
//! | [`queueing_delays`] | queueing delays of packets |
//! | [`seed`], [`direction`] | seeds by name, and the two directions of a path |

#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

/// The parts of a path that are no links, with their parameters: one line for each. Names and
/// limits are in their own files ([`plan::Part`]).
macro_rules! parts {
    ($then:ident $($with:tt)*) => {
        $then! {
            $($with)*;
            /// A router without Quick-Start and RCP, which decrements the time to live.
            NonCapableRouter(crate::delay::NonCapableRouter),
            /// A constant delay for every packet.
            Delay(crate::delay::Params),
            /// Independent random loss of each packet.
            Loss(crate::loss::Params),
            /// Random loss in bursts.
            BurstLoss(crate::burst_loss::Params),
            /// Random extra delay.
            Jitter(crate::jitter::Params),
            /// Some packets are delivered twice.
            Duplicate(crate::duplicate::Params),
            /// Packets above a rate and a burst are dropped.
            Policer(crate::policer::Params),
            /// A box that drops packets with IP options, or removes Quick-Start requests.
            OptionFilter(crate::option_filter::Params),
            /// Extra delay as recorded.
            DelayTrace(crate::delay_trace::Params),
        }
    };
}

pub mod any;
pub mod burst_loss;
mod chance;
pub mod changing;
pub mod delay;
pub mod delay_trace;
pub mod direction;
pub mod duplicate;
pub mod element;
pub mod jitter;
pub mod limit;
pub mod link;
pub mod loss;
pub mod managed_link;
pub mod netem_link;
pub mod option_filter;
pub mod packet_counts;
pub mod plan;
pub mod policer;
pub mod queue;
pub mod queueing_delays;
mod ring;
pub mod routed_link;
pub mod seed;
pub mod trace;
pub mod trace_link;

pub use any::AnyElement;
pub use burst_loss::BurstLoss;
pub use changing::ChangingLink;
pub use delay::Delay;
pub use delay_trace::DelayTrace;
pub use direction::Direction;
pub use duplicate::Duplicate;
pub use element::{DropReason, Element, Output, Packet, PushResult};
pub use jitter::Jitter;
pub use limit::Limit;
pub use link::Link;
pub use loss::Loss;
pub use managed_link::ManagedLink;
pub use netem_link::NetemLink;
pub use option_filter::OptionFilter;
pub use packet_counts::PacketCounts;
pub use plan::{ElementPlan, LinkPlan, LinkRate, PathPlan, PlanError};
pub use policer::Policer;
pub use queue::{Queue, QueueDiscipline};
pub use queueing_delays::QueueingDelays;
pub use routed_link::{RoutedLink, RouterPlan};
pub use seed::Seed;
pub use trace::Trace;
pub use trace_link::TraceLink;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
