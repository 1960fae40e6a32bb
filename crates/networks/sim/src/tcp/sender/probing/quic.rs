//! QUIC: a probe timeout in any state, with backoff, and no other timeout (RFC 9002 §6.2).

use super::*;

/// The probe timeout, and persistent congestion.
#[derive(Clone, Copy, Debug)]
pub struct Quic;

impl Probing for Quic {
    /// The timer restarts each time (RFC 9002 §6.2.1).
    #[inline]
    fn rearm(self, sender: &mut Sender, now: Time, _: bool, config: &TcpConfig) {
        sender.probe_at = now + probe_timeout(sender, config);
    }

    /// RFC 9002 §6.2.4: data sent before; the oldest helps most.
    fn choose(self, sender: &Sender) -> Option<u32> {
        (sender.segments.base()..sender.segments.end()).find(|&number| sender.is_waiting(number))
    }

    fn on_expiry(self, sender: &mut Sender, now: Time, config: &TcpConfig) {
        TailLoss.on_expiry(sender, now, config);
        sender.backoff += 1;
        sender.probe_at = now + probe_timeout(sender, config);
    }

    /// The probe is the only timer there is.
    #[inline]
    fn on_recovery(self, _: &mut Sender) {}

    /// There are no duplicate acks.
    #[inline]
    fn grows_without_advance(self) -> bool {
        true
    }

    /// RFC 9002 §7.6: everything lost over three probe timeouts.
    fn is_persistent(self, sender: &Sender, losses: &Losses, config: &TcpConfig) -> bool {
        losses.newest_sent_at.since(losses.oldest_sent_at) > probe_timeout(sender, config) * 3
    }
}

/// RFC 9002 §6.2.1.
fn probe_timeout(sender: &Sender, config: &TcpConfig) -> Span {
    let variation = (sender.rtt.variation * 4).max(Span::from_millis(1));
    let once = sender.rtt.smoothed + variation + config.delayed_ack.timeout;
    (once * (1 << sender.backoff.min(16))).min(config.max_rto)
}
