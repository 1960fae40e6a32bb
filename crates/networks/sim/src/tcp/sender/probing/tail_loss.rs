//! TCP: a retransmission timeout (RFC 6298), and before it a tail loss probe (RFC 8985 §7).

use super::*;

/// One probe outside of recovery, if the transport or the scheme asks for it.
#[derive(Clone, Copy, Debug)]
pub struct TailLoss;

impl Probing for TailLoss {
    /// The retransmission timer restarts only after progress, or if it was off (RFC 6298 §5.1 to
    /// §5.3), the probe timer each time (RFC 8985 §7.2).
    #[inline]
    fn rearm(self, sender: &mut Sender, now: Time, is_progress: bool, config: &TcpConfig) {
        if is_progress || sender.rto_at == Time::NEVER {
            sender.rto_at = now + sender.rto(config);
        }
        if sender.tail_probe && sender.state == State::Open && !sender.tail_probe_out {
            let is_single = sender.in_flight <= config.mss;
            let probe_at = now + sender.rtt.smoothed * 2 + config.probe_wait(is_single);
            sender.probe_at = config.probe_before(probe_at, sender.rto_at);
        }
    }

    /// RFC 8985 §7.3: the last one.
    fn choose(self, sender: &Sender) -> Option<u32> {
        (sender.segments.base()..sender.segments.end()).rev().find(|&number| sender.is_waiting(number))
    }

    fn on_expiry(self, sender: &mut Sender, now: Time, config: &TcpConfig) {
        if config.probe_restarts_timeout() {
            sender.rto_at = now + sender.rto(config);
        }
    }

    /// RFC 8985 §7.3: no probe in recovery.
    #[inline]
    fn on_recovery(self, sender: &mut Sender) {
        sender.probe_at = Time::NEVER;
    }

    /// RFC 5681 §3.2 step 1: a duplicate ack allows a packet, but the window stays.
    #[inline]
    fn grows_without_advance(self) -> bool {
        false
    }

    #[inline]
    fn is_persistent(self, _: &Sender, _: &Losses, _: &TcpConfig) -> bool {
        false
    }
}
