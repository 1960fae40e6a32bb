//! The trait every start-up scheme implements, and the list of all of them.

pub mod bbr;
pub mod blitzstart;
pub mod careful_resume;
mod flights;
pub mod halfback;
pub mod jump_start;
pub mod pcp;
pub mod proactive;
pub mod quick_start;
pub mod rapid_start;
pub mod rcp;
pub mod reactive;
pub mod s_cubic;
pub mod slow_start;
pub mod tcp_cache;
#[cfg(test)]
mod timeline;
pub mod wise_start;

#[cfg(test)]
mod steps;

use core::fmt::Debug;

use headstart_units::Rate;

use crate::allowance::{Allowance, HandOver, Next, Plan};
use crate::event::{Ack, Congestion, Progress, Sent, Timeout};
use crate::prior::Prior;
use crate::quick_start::Question;
use crate::repair::Repair;

pub use bbr::Bbr;
pub use blitzstart::Blitzstart;
pub use careful_resume::CarefulResume;
pub use halfback::Halfback;
pub use jump_start::JumpStart;
pub use pcp::Pcp;
pub use proactive::Proactive;
pub use quick_start::QuickStart;
pub use rapid_start::RapidStart;
pub use rcp::Rcp;
pub use reactive::Reactive;
pub use s_cubic::SCubic;
pub use slow_start::SlowStart;
pub use tcp_cache::TcpCache;
pub use wise_start::WiseStart;

/// A scheme that owns the window from the first byte until it hands over.
///
/// Sans I/O: it is told what happened and when, and answers with what may be sent. It holds no
/// clock, no socket and no random source of its own.
pub trait Startup: Debug {
    /// The connection is established: what may the first flight be? Called once, before anything else.
    fn establish(&mut self, prior: &Prior) -> Plan;

    /// Data left this host. Most schemes do not care.
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        let _ = sent;
    }

    /// Data was newly acknowledged.
    fn on_ack(&mut self, ack: &Ack) -> Next;

    /// Data was declared lost, or CE-marked. On the same ack this comes before [`Self::on_ack`].
    fn on_congestion(&mut self, signal: &Congestion) -> Next;

    /// The retransmission timer went off. The base controller takes over and answers it, unless the
    /// scheme stays in charge for ever.
    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        let _ = timeout;
        Next::HandOver(HandOver::to_be_cut(self.allowance().window))
    }

    /// The application has more to send than the scheme was told: another answer on the same connection. `prior` is of this
    /// moment: its flow size is what has not left yet, its handshake RTT the smoothed one. Returns the plan of a flight of it, with which
    /// the scheme is in charge (again); `None`, which is what most say: the window goes on.
    fn on_more(&mut self, prior: &Prior, so_far: &Progress) -> Option<Plan> {
        let _ = (prior, so_far);
        None
    }

    /// What may be sent now. Pure: asking twice changes nothing.
    fn allowance(&self) -> Allowance;

    /// Whether the window is growing as in slow start, so that a transport's own pacer leaves it room.
    fn is_slow_start(&self) -> bool {
        true
    }

    /// Whether the history record this start began from misled it, or was too old, and must be forgotten
    /// ([`Outcome::Misled`](crate::history::Outcome::Misled)).
    fn discards_history(&self) -> bool {
        false
    }

    /// The current phase's name, as the paper spells it; for traces only.
    fn phase(&self) -> &'static str;
}

/// Every scheme, for dispatch without a vtable.
#[derive(Clone, Copy, Debug)]
pub enum Scheme {
    /// A paced flight, sent again from its end.
    Halfback(Halfback),
    /// All at once, paced over one round trip.
    JumpStart(JumpStart),
    /// Probes with trains of packets; stays in charge.
    Pcp(Pcp),
    /// Slow start, every packet twice.
    Proactive(Proactive),
    /// Slow start with a probe for a lost tail.
    Reactive(Reactive),
    /// Slow start with any initial window.
    SlowStart(SlowStart),
    /// The cached window and threshold of the peer.
    TcpCache(TcpCache),
    /// The recorded bandwidth-delay product, paced; avoidance at once.
    SCubic(SCubic),
    /// The recorded bandwidth-delay product, then what the first acks say.
    WiseStart(WiseStart),
    /// The window that the client's hint suggests; avoidance at once.
    Blitzstart(Blitzstart),
    /// Three times the window each round trip while no queue forms.
    RapidStart(RapidStart),
    /// Half of what the path carried last time, once it is confirmed; ready to retreat.
    CarefulResume(CarefulResume),
    /// The delivery rate, probed for ever.
    Bbr(Bbr),
    /// The rate that every router granted, for one round trip.
    QuickStart(QuickStart),
    /// The rate that routers stamp; stays in charge.
    Rcp(Rcp),
}

macro_rules! each {
    ($self:expr, $scheme:ident => $call:expr) => {
        match $self {
            Scheme::Halfback($scheme) => $call,
            Scheme::JumpStart($scheme) => $call,
            Scheme::Pcp($scheme) => $call,
            Scheme::Proactive($scheme) => $call,
            Scheme::Reactive($scheme) => $call,
            Scheme::SlowStart($scheme) => $call,
            Scheme::TcpCache($scheme) => $call,
            Scheme::SCubic($scheme) => $call,
            Scheme::WiseStart($scheme) => $call,
            Scheme::Blitzstart($scheme) => $call,
            Scheme::RapidStart($scheme) => $call,
            Scheme::CarefulResume($scheme) => $call,
            Scheme::Bbr($scheme) => $call,
            Scheme::QuickStart($scheme) => $call,
            Scheme::Rcp($scheme) => $call,
        }
    };
}

impl Scheme {
    /// What this scheme sends again before anybody asked. To be asked for after [`Startup::establish`]: copies
    /// may cover the first flight only.
    #[must_use]
    pub fn repair(&self) -> Repair {
        match self {
            Self::Halfback(scheme) => scheme.repair(),
            Self::Proactive(scheme) => scheme.repair(),
            _ => Repair::Reactive,
        }
    }

    /// Whether the scheme is defined by a tail loss probe of its own (Reactive TCP), whatever the transport's
    /// default is.
    #[must_use]
    pub fn wants_tail_probe(&self) -> bool {
        matches!(self, Self::Reactive(_))
    }

    /// Whether its receiver answers every segment at once, whatever the transport's default is: PCP measures each packet of a train by the
    /// answer to it.
    #[must_use]
    pub fn wants_every_ack(&self) -> bool {
        matches!(self, Self::Pcp(_))
    }

    /// The rate to ask the routers for before the connection is established (RFC 4782); `None`: do not ask.
    #[must_use]
    pub fn request(&self, known: &Question) -> Option<Rate> {
        match self {
            Self::QuickStart(scheme) => scheme.request(known),
            _ => None,
        }
    }

    /// Whether it asks again when there is more to send after an idle time.
    #[must_use]
    pub fn asks_again(&self) -> bool {
        matches!(self, Self::QuickStart(scheme) if scheme.asks_again())
    }

    /// Whether its packets, the handshake's included, are to be stamped by routers (RCP).
    #[must_use]
    pub fn wants_stamps(&self) -> bool {
        matches!(self, Self::Rcp(_))
    }

    /// Whether anything happens in [`Startup::on_sent`] as it stands.
    #[must_use]
    #[inline]
    pub const fn watches_sending(&self) -> bool {
        match self {
            Self::WiseStart(scheme) => scheme.watches_sending(),
            Self::CarefulResume(_) | Self::Bbr(_) | Self::Pcp(_) => true,
            _ => false,
        }
    }
}

impl Startup for Scheme {
    fn establish(&mut self, prior: &Prior) -> Plan {
        each!(self, scheme => scheme.establish(prior))
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        each!(self, scheme => scheme.on_sent(sent));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        each!(self, scheme => scheme.on_ack(ack))
    }

    fn on_congestion(&mut self, signal: &Congestion) -> Next {
        each!(self, scheme => scheme.on_congestion(signal))
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> Next {
        each!(self, scheme => scheme.on_timeout(timeout))
    }

    fn on_more(&mut self, prior: &Prior, so_far: &Progress) -> Option<Plan> {
        each!(self, scheme => scheme.on_more(prior, so_far))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        each!(self, scheme => scheme.allowance())
    }

    fn is_slow_start(&self) -> bool {
        each!(self, scheme => scheme.is_slow_start())
    }

    fn discards_history(&self) -> bool {
        each!(self, scheme => scheme.discards_history())
    }

    fn phase(&self) -> &'static str {
        each!(self, scheme => scheme.phase())
    }
}
