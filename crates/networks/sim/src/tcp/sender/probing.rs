//! Probes when acknowledgements stop arriving, as in TCP or QUIC, chosen by [`Probe`].

mod quic;
mod tail_loss;

use quic::Quic;
use tail_loss::TailLoss;

use super::*;

/// The part of the timers in which TCP and QUIC differ.
pub(super) trait Probing: Copy {
    /// Restarts the timers while data is in flight or lost.
    fn rearm(self, sender: &mut Sender, now: Time, is_progress: bool, config: &TcpConfig);

    /// The segment that a probe sends again, where there is no new data.
    fn choose(self, sender: &Sender) -> Option<u32>;

    /// A probe is due.
    fn on_expiry(self, sender: &mut Sender, now: Time, config: &TcpConfig);

    /// A recovery begins.
    fn on_recovery(self, sender: &mut Sender);

    /// An acknowledgement that does not advance lets the window grow.
    fn grows_without_advance(self) -> bool;

    /// True if the losses are persistent congestion.
    fn is_persistent(self, sender: &Sender, losses: &Losses, config: &TcpConfig) -> bool;
}

macro_rules! each {
    ($probe:expr, $strategy:ident => $call:expr) => {
        match $probe {
            // A scheme may ask for the probe where the transport has none.
            Probe::None | Probe::TailLoss => {
                let $strategy = TailLoss;
                $call
            }
            Probe::Quic => {
                let $strategy = Quic;
                $call
            }
        }
    };
}

impl Probing for Probe {
    #[inline]
    fn rearm(self, sender: &mut Sender, now: Time, is_progress: bool, config: &TcpConfig) {
        each!(self, it => it.rearm(sender, now, is_progress, config));
    }
    fn choose(self, sender: &Sender) -> Option<u32> {
        each!(self, it => it.choose(sender))
    }
    fn on_expiry(self, sender: &mut Sender, now: Time, config: &TcpConfig) {
        each!(self, it => it.on_expiry(sender, now, config));
    }
    #[inline]
    fn on_recovery(self, sender: &mut Sender) {
        each!(self, it => it.on_recovery(sender));
    }
    #[inline]
    fn grows_without_advance(self) -> bool {
        each!(self, it => it.grows_without_advance())
    }
    #[inline]
    fn is_persistent(self, sender: &Sender, losses: &Losses, config: &TcpConfig) -> bool {
        each!(self, it => it.is_persistent(sender, losses, config))
    }
}

impl Sender {
    fn is_waiting(&self, number: u32) -> bool {
        self.segments[number].is(IN_FLIGHT)
    }
}
