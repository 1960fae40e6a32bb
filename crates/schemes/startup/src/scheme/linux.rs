//! Slow start as Linux's CUBIC begins: ten segments, and the older HyStart.
//!
//! Source: [`crate::growth::linux`]. The kernel is compared with it over the same path.
//!
//! ```text
//!  slow start ---- loss or CE, or HyStart's exit ----> hand over
//! ```

use super::slow_start::{SlowStart, as_slow_start};
use super::{Requirements, Startup};
use crate::about::{About, Native, Needs};
use crate::allowance::FlightPlan;
use crate::growth::Growth;
use crate::prior::Prior;

/// The scheme's row of the catalogue.
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
    pub(super) params: Params,
    slow_start: SlowStart,
}

impl Linux {
    /// [`Linux`] with `params`, before [`Startup::establish`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, slow_start: SlowStart::from_segments(params.initial_window) }
    }
}

impl Startup for Linux {
    fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.slow_start.establish_with(Growth::linux(prior.mss), prior)
    }

    as_slow_start!();

    fn requirements(&self) -> Requirements {
        Requirements { initial_segments: Some(self.params.initial_window), ..Requirements::default() }
    }
}
