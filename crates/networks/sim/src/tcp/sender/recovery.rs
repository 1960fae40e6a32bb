//! Loss recovery: a strategy for each source, chosen by [`Detection`].

mod rack;
mod rfc6675;
mod udt;

use rack::Rack;
use rfc6675::Rfc6675;
use udt::Udt;

use super::sending::NextPacket;
use super::*;

/// The part of loss recovery in which the sources differ.
pub(super) trait Recovery: Copy {
    /// Declares segments lost, as an acknowledgement or [`Sender::loss_timer`] shows.
    fn detect(self, sender: &mut Sender, now: Time, recorder: &mut impl Recorder) -> Losses;

    /// The timer of loss detection goes on after it expired.
    #[inline]
    fn keeps_timer(self) -> bool {
        false
    }

    /// A segment to send again although no loss is pending and no new data may leave.
    #[inline]
    fn choose_beyond(self, _: &mut Sender) -> Option<u32> {
        None
    }

    /// This packet leaves regardless of window and pacer.
    #[inline]
    fn is_free(self, _: NextPacket) -> bool {
        false
    }

    /// The retransmission timer expired: everything in flight is lost.
    #[inline]
    fn on_timeout(self, _: &mut Sender) {}
}

macro_rules! each {
    ($detection:expr, $strategy:ident => $call:expr) => {
        match $detection {
            Detection::Rack => {
                let $strategy = Rack;
                $call
            }
            Detection::Rfc6675 => {
                let $strategy = Rfc6675;
                $call
            }
            Detection::Udt => {
                let $strategy = Udt;
                $call
            }
        }
    };
}

impl Recovery for Detection {
    #[inline]
    fn detect(self, sender: &mut Sender, now: Time, recorder: &mut impl Recorder) -> Losses {
        each!(self, it => it.detect(sender, now, recorder))
    }
    #[inline]
    fn keeps_timer(self) -> bool {
        each!(self, it => it.keeps_timer())
    }
    #[inline]
    fn choose_beyond(self, sender: &mut Sender) -> Option<u32> {
        each!(self, it => it.choose_beyond(sender))
    }
    #[inline]
    fn is_free(self, choice: NextPacket) -> bool {
        each!(self, it => it.is_free(choice))
    }
    #[inline]
    fn on_timeout(self, sender: &mut Sender) {
        each!(self, it => it.on_timeout(sender));
    }
}
