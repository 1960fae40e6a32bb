//! Slow start as Linux's CUBIC begins: ten segments, and the older HyStart.
//!
//! Source: [`crate::growth::linux`]. The kernel is compared with it over the same path.
//!
//! ```text
//!  slow start ---- loss or CE, or HyStart's exit ----> hand over
//! ```

use headstart_units::Bytes;

use super::Startup;
use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::catalogue::{About, Native, Needs};
use crate::event::{Ack, Congestion};
use crate::growth::{Decision, Growth};
use crate::prior::Prior;

/// Its row of the catalogue.
pub const ABOUT: About = About {
    is_compared: false,
    native: Some(Native::LinuxHyStart),
    ..About::new("iw10-linux", Needs::Nothing, "as Linux's CUBIC begins: 10 segments and the older HyStart")
};

crate::parameters! {
    /// Parameters of the scheme, with the source of each default.
    pub struct Params {
        /// Initial window in segments.
        initial_window: u64 = 10, in 1..=10_000, from "Linux's TCP_INIT_CWND";
    }
}

/// Linux's slow start.
#[derive(Clone, Copy, Debug)]
pub struct Linux {
    params: Params,
    growth: Growth,
    window: Bytes,
}

impl Linux {
    /// A scheme before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, growth: Growth::new(false), window: Bytes::ZERO }
    }

    /// The parameters it was made with.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }
}

impl Startup for Linux {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.growth = Growth::linux(prior.mss);
        self.window = prior.mss * self.params.initial_window;
        FlightPlan::burst(self.window)
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) -> Next {
        match self.growth.on_ack(&mut self.window, ack) {
            Decision::Continue => Next::Stay,
            Decision::Exit => Next::HandOver(HandOver::avoiding(self.window)),
        }
    }

    fn on_congestion(&mut self, _: &Congestion) -> Next {
        Next::HandOver(HandOver::to_be_cut(self.window))
    }

    #[inline]
    fn allowance(&self) -> Allowance {
        Allowance::window(self.window)
    }

    fn phase(&self) -> &'static str {
        self.growth.phase()
    }

    fn initial_segments(&self) -> Option<u64> {
        Some(self.params.initial_window)
    }
}
