//! Re-send whatever a loss report names, at once and whatever the window says, each time it is named again.
//!
//! Halfback (HB below) measured all schemes but PCP inside UDT, a transport over UDP, "with Selective ACK" (§4.1). This is
//! what HB says of that transport: fast retransmission needs three later packets (§3.4); all lost packets leave in one burst
//! (§2.2) at line rate (§4.2.3); a packet may be retransmitted many times (§4.2.3), and JumpStart tends to retransmit the same
//! ones (§4.3.2, §4.3.3). UDT itself (Y. Gu, draft-gg-udt-03, 2010; release 4, 2009-2013) explains most of it: the receiver
//! keeps a list of what is missing and reports it; what is reported joins the sender's loss list; that list goes before new
//! data and does not ask the congestion window; and when nothing was heard for a timeout, everything not acknowledged
//! joins it.
//!
//! ```text
//!  in flight --- three delivered beyond ---> reported ---> sent again, at line rate
//!                                               ^                 |
//!                                               +--- interval ----+   until delivered
//! ```
//!
//! The interval between two reports of the same packet is the one thing that HB does not tell:
//!
//! | [`Reports`] | where it comes from |
//! |---|---|
//! | `Every(10 ms)` (default) | UDT's synchronisation time, the period of its acks and of rate control. Our inference: selective acks sent with every ack, all of whose holes join the loss list again. A trial found that repeats every 10 to 15 ms give HB's capacity of JumpStart, 50 %; documented intervals do not |
//! | `RoundTrips` | draft-gg-udt-03 §4: the report is repeated after 4 RTT + RTTVAR + 10 ms |
//! | `Once` | UDT releases from 4.10 on repeat no report and wait for the timeout |
//!
//! # Deviations
//!
//! - Reports are not packets of their own: the sender repeats them from its own scoreboard. Acks that arrive at once tell it
//!   exactly what a report sent at the same instant would; with ack losses a real report would come later.
//! - UDT reports a gap as soon as it sees one. HB §3.4 speaks of three duplicate acks, so three it is.
//! - The congestion window is told of the first report of a packet only: a repeat is no new congestion.
//! - UDT's timeout restarts at whatever the peer sends; here at progress, as in RFC 6298.
//!
//! # Limits
//!
//! Rate control of UDT itself is not modelled: HB replaced it by the schemes under test.

use headstart_startup::Rtt;
use headstart_units::Span;

/// When a report of a packet that is still missing is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reports {
    /// Always after this time.
    Every(Span),
    /// After 4 RTT + RTTVAR + [`SYNCHRONISATION`].
    RoundTrips,
    /// Never.
    Once,
}

/// UDT's synchronisation time (draft-gg-udt-03 §4).
pub const SYNCHRONISATION: Span = Span::from_millis(10);

impl Default for Reports {
    fn default() -> Self {
        Self::Every(SYNCHRONISATION)
    }
}

impl Reports {
    /// The time to the next report, on a path of this round-trip time.
    #[must_use]
    pub fn interval(self, rtt: &Rtt) -> Option<Span> {
        match self {
            Self::Every(interval) => Some(interval),
            Self::RoundTrips => Some(rtt.smoothed * 4 + rtt.variation + SYNCHRONISATION),
            Self::Once => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_sources() {
        let mut rtt = Rtt::default();
        rtt.update(Span::from_millis(60));
        for (reports, expected) in [
            (Reports::default(), Some(10)),
            (Reports::Every(Span::from_millis(15)), Some(15)),
            // 4 x 60 + 30 + 10: the variation begins at half of the first sample.
            (Reports::RoundTrips, Some(280)),
            (Reports::Once, None),
        ] {
            assert_eq!(reports.interval(&rtt), expected.map(Span::from_millis), "{reports:?}");
        }
    }
}
