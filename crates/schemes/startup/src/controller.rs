//! Joins a scheme and a base controller; a transport holds one per connection.
//!
//! The scheme owns the window until it hands over; from then on the base controller does.

use headstart_units::{Bytes, Ratio, Span};

use crate::allowance::{Allowance, FlightPlan, HandOver, Next};
use crate::base::{self, Base};
use crate::event::{Ack, Congestion, Progress, Sent, Signal, Timeout};
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
    /// Slow start has begun and not ended yet.
    lasts: bool,
    end: Option<SlowStartEnd>,
}

/// The first end of slow start, or of what a scheme does in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStartEnd {
    /// The reason for the end.
    pub by: EndedBy,
    /// The window before the answer to it, in bytes.
    pub window: Bytes,
}

/// The event at which slow start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// The scheme decided so on an ack: delay has grown, or its flight is over.
    Decision,
    /// Data was declared lost.
    Loss,
    /// Data was CE-marked.
    Mark,
    /// The retransmission timer expired.
    Timeout,
}

impl EndedBy {
    /// The reason in one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Loss => "loss",
            Self::Mark => "mark",
            Self::Timeout => "timeout",
        }
    }
}

impl Controller {
    /// A controller for one connection whose full segments have `mss` bytes of payload.
    /// [`Self::establish`] precedes all other calls.
    #[must_use]
    pub fn new(scheme: Scheme, base: base::Kind, mss: Bytes) -> Self {
        let (base, srtt) = (Base::new(base, mss), Span::ZERO);
        Self { scheme, base, handed_over: false, pace_over: None, srtt, lasts: false, end: None }
    }

    /// The connection is established: starts from `prior`. Returns the first flight's plan.
    pub fn establish(&mut self, prior: &Prior) -> FlightPlan {
        self.srtt = prior.handshake_rtt;
        let plan = self.scheme.establish(prior);
        self.lasts = self.end.is_none() && self.scheme.is_slow_start();
        plan
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
        if self.lasts && !self.is_slow_start() {
            self.lasts = false;
            self.end = Some(SlowStartEnd { by: EndedBy::Decision, window: self.allowance().window });
        }
    }

    /// Data was declared lost or CE-marked: one call for each ack or timer that detects it.
    pub fn on_congestion(&mut self, signal: &Congestion) {
        let before = self.window_to_end();
        if self.handed_over {
            self.base.on_congestion(signal);
        } else if let Next::HandOver(how) = self.scheme.on_congestion(signal) {
            self.hand_over(&how);
            if how.cut {
                self.base.on_first_congestion(signal, how.first_cut);
            }
        }
        let by = match signal.signal {
            Signal::Loss => EndedBy::Loss,
            Signal::CongestionExperienced => EndedBy::Mark,
        };
        self.end_slow_start(by, before);
    }

    /// The retransmission timer expired (RFC 6298 §5).
    pub fn on_timeout(&mut self, timeout: &Timeout) {
        let before = self.window_to_end();
        if self.handed_over {
            self.base.on_timeout(timeout);
        } else if let Next::HandOver(how) = self.scheme.on_timeout(timeout) {
            self.hand_over(&how);
            if how.cut {
                self.base.on_timeout(timeout);
            }
        }
        self.end_slow_start(EndedBy::Timeout, before);
    }

    /// The window, if slow start has not ended yet.
    fn window_to_end(&self) -> Option<Bytes> {
        self.lasts.then(|| self.allowance().window)
    }

    /// After an event before which the window was `before`. A timeout goes on in slow start, but
    /// with a threshold.
    fn end_slow_start(&mut self, by: EndedBy, before: Option<Bytes>) {
        if let Some(window) = before
            && (!self.is_slow_start() || self.ssthresh() != Bytes::MAX)
        {
            self.lasts = false;
            self.end = Some(SlowStartEnd { by, window });
        }
    }

    /// The first end of slow start; `None` while it lasts, and of a scheme that began without.
    #[must_use]
    pub const fn slow_start_end(&self) -> Option<SlowStartEnd> {
        self.end
    }

    /// The connection was idle for longer than a retransmission timeout: the window falls to
    /// `restart` bytes (RFC 5681 §4.1). A scheme that is still in charge keeps its window.
    ///
    /// With an `ssthresh` that is not zero the threshold rises to that (RFC 2861 §3), and slow
    /// start that is in charge restarts too.
    pub fn on_idle(&mut self, restart: Bytes, ssthresh: Bytes) {
        if self.handed_over {
            self.base.on_idle(restart, ssthresh);
        } else if let Scheme::SlowStart(slow_start) = &mut self.scheme
            && !ssthresh.is_zero()
        {
            slow_start.on_idle(restart);
        }
    }

    /// Limits the window of a base controller or of slow start to the part that was used
    /// before a loss (RFC 7661 §4.4.2).
    pub fn cap_window(&mut self, window: Bytes) {
        if self.handed_over {
            self.base.on_idle(window, Bytes::ZERO);
        } else if let Scheme::SlowStart(slow_start) = &mut self.scheme {
            slow_start.on_idle(window);
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

    /// Window in bytes and pace at this moment; after the hand-over from the base controller.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::testing::{MSS, acked, lost, timed_out};
    use crate::catalogue;
    use crate::history::testing::prior_with;
    use headstart_units::Time;

    fn begun(scheme: &str) -> Controller {
        let scheme = catalogue::find(scheme).expect("a scheme").scheme();
        let mut controller = Controller::new(scheme, base::Kind::Cubic, MSS);
        controller.establish(&prior_with(1000, 100));
        controller
    }

    #[test]
    fn the_first_end_of_slow_start_has_its_reason_and_the_window_before_the_answer() {
        let window = MSS * 20;
        for by in [EndedBy::Loss, EndedBy::Mark, EndedBy::Timeout] {
            let mut controller = begun("iw10");
            controller.on_ack(&acked(Time::ZERO, MSS * 10));
            assert_eq!(controller.slow_start_end(), None);
            let signal = if by == EndedBy::Mark { Signal::CongestionExperienced } else { Signal::Loss };
            match by {
                EndedBy::Timeout => controller.on_timeout(&timed_out(Time::ZERO)),
                _ => controller.on_congestion(&Congestion { signal, ..lost(Time::ZERO, MSS) }),
            }
            assert_eq!(controller.slow_start_end(), Some(SlowStartEnd { by, window }));
            controller.on_congestion(&lost(Time::ZERO, MSS));
            assert_eq!(controller.slow_start_end(), Some(SlowStartEnd { by, window }), "the first one");
        }
    }

    #[test]
    fn an_end_on_delay_is_the_schemes_decision_and_a_start_without_slow_start_has_no_end() {
        let mut controller = begun("iw10-linux");
        let mut ack = acked(Time::ZERO, MSS);
        'rounds: for round in 0..3_u64 {
            for n in 0..30 {
                if controller.slow_start_end().is_some() {
                    break 'rounds;
                }
                ack.now = Time::from_millis(100 * round + n);
                ack.delivered += MSS;
                ack.rtt_sample = Some(Span::from_millis(100 + 100 * round));
                ack.rate.prior_delivered = MSS * (30 * round);
                controller.on_ack(&ack);
            }
        }
        let end = controller.slow_start_end().expect("an end");
        assert_eq!((end.by, end.window), (EndedBy::Decision, controller.allowance().window));
        let mut controller = begun("pcp");
        controller.on_ack(&acked(Time::ZERO, MSS));
        controller.on_congestion(&lost(Time::ZERO, MSS));
        assert_eq!(controller.slow_start_end(), None);
    }
}
