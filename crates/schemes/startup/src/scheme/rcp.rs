//! RCP: send at the rate that the routers stamp, from the first packet to the last.
//!
//! Source (RCP below): N. Dukkipati, "Rate Control Protocol (RCP): Congestion control to make flows
//! complete quickly", PhD thesis, Stanford 2007; the routers' side is [`rcp`](crate::rcp).
//!
//! ```text
//!             no stamp on the handshake
//!  (prior) -----------------------------> slow start ---- loss or CE ----> hand over
//!     | stamped
//!     v
//!  obeying: each ack's stamp is the rate; never hands over
//! ```
//!
//! # Deviations
//!
//! - RCP has no window. Here twice the rate times the smoothed RTT limits the data in flight, so
//!   that sending stops when acks stop.
//! - RCP does not define a timeout. Without acks there is no feedback: the rate is halved until the
//!   next stamp.
//! - Losses are repaired at the stamped rate and are no congestion signal: the routers' rate
//!   accounts for queues already.
//! - On a path without any RCP router no rate is stamped: slow start from the default initial
//!   window, and the base controller after it.
//!
//! # Limits
//!
//! A router that does not stamp is not detected if another one does; its queue is uncontrolled.

use headstart_units::{Bytes, Rate, Ratio, Span};

use super::{Requirements, Startup};
use crate::about::{About, Needs};
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::event::{Ack, Congestion, Timeout};
use crate::growth::{Decision, Exit, Growth};
use crate::prior::Prior;

/// The scheme's row of the catalogue.
pub const ABOUT: About = About {
    not_over_udp: Some(
        "routers stamp their rate in a header between IP and transport, which a UDP socket does not let through",
    ),
    ..About::new("rcp", Needs::Routers, "the rate that routers stamp on every packet")
        .not_over_tcp("its grants come from routers, whose marks a congestion control does not see")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments on a path without RCP routers.
        initial_window: u64 = 10, in 1..=10_000, from "RFC 6928 §2";
        /// Header bytes of each segment, since the stamped rate is that on the link.
        header: Bytes = Bytes::new(52), in Bytes::ZERO..=Bytes::new(1000), from "IPv4, TCP and timestamps";
    }
}

/// RCP's sender.
#[derive(Clone, Copy, Debug)]
pub struct Rcp {
    pub(super) params: Params,
    mss: Bytes,
    /// The stamped rate; `None` on a path without RCP routers.
    stamped: Option<Rate>,
    srtt: Span,
    window: Bytes,
    growth: Growth,
}

/// Limit of data in flight, as a multiple of rate x RTT.
const IN_FLIGHT: u64 = 2;

impl Rcp {
    /// [`Rcp`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            params,
            mss: Bytes::ZERO,
            stamped: None,
            srtt: Span::ZERO,
            window: Bytes::ZERO,
            growth: Growth::new(Exit::Loss),
        }
    }

    /// The rate of payload: the stamped rate less headers.
    fn payload_rate(&self, on_link: Rate) -> Rate {
        let (mss, packet) = (self.mss.get() as u32, (self.mss + self.params.header).get() as u32);
        on_link * Ratio::new(mss, packet.max(1))
    }
}

impl Startup for Rcp {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.mss = prior.mss;
        self.srtt = prior.handshake_rtt;
        self.stamped = prior.granted;
        self.window = prior.mss * self.params.initial_window;
        let allowance = self.allowance();
        match allowance.pace {
            Some(_) => {
                FlightPlan { burst: self.mss, flight: prior.sendable().min(allowance.window), allowance }
            }
            None => FlightPlan::burst(self.window),
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        self.srtt = ack.rtt.smoothed;
        match (&mut self.stamped, ack.stamped) {
            (Some(rate), Some(stamped)) => {
                *rate = stamped;
                Next::Stay
            }
            (Some(_), None) => Next::Stay,
            (None, _) => match self.growth.on_ack(&mut self.window, ack) {
                Decision::Continue => Next::Stay,
                Decision::Exit => Next::HandOver(HandOver::avoiding(self.window)),
            },
        }
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        match self.stamped {
            Some(_) => Next::Stay,
            None => Next::HandOver(HandOver::to_be_cut(self.window)),
        }
    }

    fn on_timeout(&mut self, _: &Timeout) -> Next {
        match &mut self.stamped {
            Some(rate) => {
                *rate = *rate * Ratio::new(1, 2);
                Next::Stay
            }
            None => Next::HandOver(HandOver::to_be_cut(self.window)),
        }
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        match self.stamped {
            None => Allowance::window(self.window),
            Some(stamped) => {
                // At rate zero the pacer would never send again.
                let pace = self.payload_rate(stamped).max(Rate::from_bytes_per_sec(1));
                let window = (pace * self.srtt * IN_FLIGHT).max(self.mss * IN_FLIGHT);
                Allowance { window, pace: Some(pace) }
            }
        }
    }

    fn is_slow_start(&self) -> bool {
        self.stamped.is_none()
    }

    fn phase(&self) -> &'static str {
        if self.stamped.is_some() { "obeying" } else { "slow start" }
    }

    fn requirements(&self) -> Requirements {
        Requirements { rate_stamps: true, ..Requirements::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::steps::{Event, Expected, play};
    use super::*;
    use crate::base::testing::{MSS, acked, lost, timed_out};
    use headstart_units::Time;

    fn prior(granted: Option<u64>) -> Prior {
        let bare = Prior::bare(Time::ZERO, MSS, Span::from_millis(100), MSS * 141);
        Prior { granted: granted.map(Rate::from_bytes_per_sec), ..bare }
    }

    fn params() -> Params {
        Params { header: Bytes::ZERO, ..Params::default() }
    }

    fn stamp(bytes_per_sec: u64) -> Event {
        Event::Ack(Ack { stamped: Some(Rate::from_bytes_per_sec(bytes_per_sec)), ..acked(Time::ZERO, MSS) })
    }

    #[test]
    fn the_stamped_rate_is_the_rate_for_ever() {
        let mut start = Rcp::new(params());
        let plan = start.establish(&prior(Some(500_000)));
        assert_eq!((plan.burst, plan.flight), (MSS, MSS * 100), "twice 500 kB/s x 100 ms");
        let unstamped = Event::Ack(acked(Time::ZERO, MSS));
        #[rustfmt::skip]
        let steps = [
            (100, stamp(400_000),                                   Expected::Paced(80_000, 400_000), "less"),
            (101, stamp(900_000),                                   Expected::Paced(180_000, 900_000), "more"),
            (102, unstamped,                                        Expected::Paced(180_000, 900_000), "no news"),
            (103, Event::Congestion(lost(Time::ZERO, MSS)),         Expected::Paced(180_000, 900_000), "a loss is no signal"),
            (900, Event::Timeout(timed_out(Time::ZERO)),            Expected::Paced(90_000, 450_000), "no feedback: half"),
            (901, stamp(900_000),                                   Expected::Paced(180_000, 900_000), "until there is"),
        ];
        play(&mut start, &steps);
    }

    #[test]
    fn headers_are_part_of_the_stamped_rate() {
        let mut start = Rcp::new(Params { header: Bytes::new(250), ..Params::default() });
        let plan = start.establish(&prior(Some(500_000)));
        assert_eq!(plan.allowance.pace, Some(Rate::from_bytes_per_sec(400_000)), "1000 of 1250");
    }

    #[test]
    fn without_stamps_it_is_slow_start() {
        let mut start = Rcp::new(params());
        assert_eq!(start.establish(&prior(None)), FlightPlan::burst(MSS * 10));
        #[rustfmt::skip]
        let steps = [
            (100, Event::Ack(acked(Time::ZERO, MSS)),       Expected::Window(11_000), "one for one"),
            (101, Event::Congestion(lost(Time::ZERO, MSS)), Expected::Cut(11_000),    "as always"),
        ];
        play(&mut start, &steps);
    }
}
