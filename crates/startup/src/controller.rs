//! Joins a scheme and a base controller; a transport holds one per connection.
//!
//! The scheme owns the window until it hands over; from then on the base controller does.

use headstart_units::{Bytes, Ratio, Span};

use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::base::{self, Base};
use crate::event::{Ack, Congestion, Progress, Sent, Timeout};
use crate::prior::Prior;
use crate::scheme::{Scheme, Startup};

/// A scheme and the base controller it hands over to.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    scheme: Scheme,
    base: Base,
    handed_over: bool,
    pace_over: Option<Ratio>,
    srtt: Span,
}

impl Controller {
    /// A controller for one connection whose full segments have `mss` bytes of payload.
    /// [`Self::establish`] precedes all other calls.
    #[must_use]
    pub fn new(scheme: Scheme, base: base::Kind, mss: Bytes) -> Self {
        Self { scheme, base: Base::new(base, mss), handed_over: false, pace_over: None, srtt: Span::ZERO }
    }

    /// The connection is established: starts from `prior`. Returns the first flight's plan.
    pub fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.srtt = prior.handshake_rtt;
        self.scheme.establish(prior)
    }

    /// A packet with data left this host; see [`Self::needs_sent_events`].
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        if !self.handed_over {
            self.scheme.on_sent(sent);
        }
    }

    /// True if [`Self::on_sent`] has an effect until the next event of another kind; else a
    /// transport may skip the call.
    #[must_use]
    #[inline]
    pub fn needs_sent_events(&self) -> bool {
        !self.handed_over && self.scheme.needs_sent_events()
    }

    /// Data was newly acknowledged; called after [`Self::on_congestion`] if the ack shows losses.
    #[inline]
    pub fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.rtt.smoothed;
        if self.handed_over {
            self.base.on_ack(ack);
        } else if let Next::HandOver(how) = self.scheme.on_ack(ack) {
            self.hand_over(&how);
        }
    }

    /// Data was declared lost or CE-marked: one call for each ack or timer that detects it.
    pub fn on_congestion(&mut self, signal: &Congestion) {
        if self.handed_over {
            self.base.on_congestion(signal);
        } else if let Next::HandOver(how) = self.scheme.on_congestion(signal) {
            self.hand_over(&how);
            if how.cut {
                self.base.on_first_congestion(signal, how.first_cut);
            }
        }
    }

    /// The retransmission timer expired (RFC 6298 §5).
    pub fn on_timeout(&mut self, timeout: &Timeout) {
        if self.handed_over {
            self.base.on_timeout(timeout);
        } else if let Next::HandOver(how) = self.scheme.on_timeout(timeout) {
            self.hand_over(&how);
            if how.cut {
                self.base.on_timeout(timeout);
            }
        }
    }

    /// The connection was idle for longer than a retransmission timeout: the window falls to
    /// `restart` bytes (RFC 5681 §4.1). A scheme that is still in charge keeps its window.
    pub fn on_idle(&mut self, restart: Bytes) {
        if self.handed_over {
            self.base.on_idle(restart);
        }
    }

    /// The connection has ended: no call follows.
    pub fn end(&mut self) {
        self.scheme.end();
    }

    /// Starts the scheme anew in the middle of the connection, from a `prior` of now, for example
    /// when routers granted a rate (RFC 4782 §4.8). Returns the plan of the new first flight.
    pub fn restart(&mut self, prior: &Prior) -> FlightPlan {
        self.handed_over = false;
        self.pace_over = None;
        self.establish(prior)
    }

    /// The application has more to send than the last prior said: `prior` is of now, its flow size
    /// is the unsent data. Returns the plan of another flight, if the scheme makes one; none once a
    /// slow start threshold is known.
    pub fn on_new_data(&mut self, prior: &Prior, so_far: &Progress) -> Option<FlightPlan> {
        if self.handed_over && self.base.ssthresh() != Bytes::MAX {
            return None;
        }
        let plan = self.scheme.on_new_data(prior, so_far)?;
        self.handed_over = false;
        self.pace_over = None;
        Some(plan)
    }

    fn hand_over(&mut self, how: &HandOver) {
        self.handed_over = true;
        self.pace_over = how.pace_over;
        self.base.take_over(how);
    }

    /// Window in bytes and pace at this moment; after the hand-over those of the base controller.
    #[must_use]
    #[inline]
    pub fn allowance(&self) -> Allowance {
        if self.handed_over {
            let window = self.base.window();
            let pace = self.pace_over.map(|share| window / (self.srtt * share));
            Allowance { window, pace }
        } else {
            self.scheme.allowance()
        }
    }

    /// The scheme in its present state.
    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// True once the base controller has taken over.
    #[must_use]
    #[inline]
    pub const fn is_handed_over(&self) -> bool {
        self.handed_over
    }

    /// The slow start threshold in bytes; [`Bytes::MAX`] while none is known.
    #[must_use]
    pub fn ssthresh(&self) -> Bytes {
        if self.handed_over { self.base.ssthresh() } else { Bytes::MAX }
    }

    /// True while the window grows as in slow start.
    #[must_use]
    #[inline]
    pub fn is_slow_start(&self) -> bool {
        if self.handed_over { self.base.is_slow_start() } else { self.scheme.is_slow_start() }
    }

    /// The scheme's phase, or `slow start` or `avoidance` of the base controller; for traces only.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        if !self.handed_over {
            self.scheme.phase()
        } else if self.base.is_slow_start() {
            "slow start"
        } else {
            "avoidance"
        }
    }
}
