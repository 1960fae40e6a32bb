//! Wait for a loss report, then re-send everything that it names at once, regardless of the window.
//!
//! Halfback (HB below) measured all schemes but PCP inside UDT, a transport over UDP, "with
//! Selective ACK" (§4.1). Of that transport HB says: three later packets make a loss (§3.4). All
//! lost packets leave in one burst (§2.2) at line rate (§4.2.3). A packet may be retransmitted
//! several times (§4.2.3, §4.3.2). A lost retransmission waits for a timeout or longer (§4.2.3).
//! With a small buffer Halfback's losses that the receiver *notices* are a tenth of JumpStart's
//! (§4.2.3), although both send the same first flight. By then the copies have filled the gaps. UDT
//! itself (Y. Gu, draft-gg-udt-03, 2010, UD below; release 4, 2009-2013) explains most of this. The
//! receiver keeps a list of missing packets, reports it, and repeats the report on a timer.
//! Reported packets join the sender's loss list, which goes before new data and is not limited by
//! the congestion window. When nothing arrived for a timeout, everything that is not acknowledged
//! cumulatively joins the list, received or not.
//!
//! ```text
//!  in flight --- three delivered beyond, ---> reported ---> sent again at line rate
//!                and the interval is over        ^                    |
//!                                                +---- interval ------+   until delivered
//!
//!  timeout: everything from the first missing segment on, received or not
//! ```
//!
//! One parameter set for all figures (bold), chosen among the rows below as the closest to the
//! capacities of HB Figure 12. That figure is no independent evidence for it. The rows come from
//! separate short runs (rule 1 of `docs/definitions.md`, Reno, 1 s minimum timeout); the model has
//! the first set only.
//! HB has TCP 90, TCP-10 85, JumpStart 50, Halfback 70, forward 35:
//!
//! | reports | acks | TCP | TCP-10 | JumpStart | Halfback | forward |
//! |---|---|---|---|---|---|---|
//! | **timer, every T = 4 RTT + RTTVAR + 10 ms** (UD §4) | every second | 90 | 80 | 55 | 60 | 50 |
//! | the same | every segment | 90 | 80 | 55 | 55 | 40 |
//! | the same | on UDT's timer, every 10 ms | 90 | 85 | 55 | 65 | 60 |
//! | on the timer, every 300 ms (UDT 4's least) | every second | 90 | 80 | 60 | 60 | 50 |
//! | on the timer, every 120 ms | every second | 85 | 85 | 60 | 60 | 50 |
//! | at once, never again (UDT 4.10 on), timeouts go back | every second | 85 | 80 | 60 | 50 | 40 |
//! | at once, repeated after T (UD as written) | every segment | 90 | 85 | 65 | 55 | 45 |
//! | at once, repeated every 10 ms | every segment | 55 | 40 | 35 | 30 | 30 |
//! | RFC 6675, for comparison | every second | 90 | 85 | 70 | 55 | 45 |
//!
//! The rows are of `halfback(per=ack,additional=50%,limits-repair=on)`, a copy for each ack.
//! docs/papers.md has the numbers with Halfback's defaults, in the column `udt`.
//!
//! **JumpStart below Halfback needs two conditions together.** Reports must be delayed, so that
//! copies have filled the gaps by then and only schemes without copies suffer from the burst. Acks
//! must be fewer than segments, so that copies, one for each ack, stay below half of the flow.
//! UDT's own class for TCP-like congestion control (release 4, `CTCP`) sets both an ack for every
//! second packet and a timeout of one second, which are the experiment's settings. With UDT's plain
//! ack timer copies are fewer still, which gives Halfback's 70 but not the 50 % of additional
//! bandwidth of HB §5. In a trial JumpStart's 50 needed repeats every 10 ms. These reduce TCP as
//! well once the loss list is not limited by the window, and so are not HB's setting.
//!
//! # Deviations
//!
//! - UD reports a gap as soon as it is seen *and* on the timer. Here only on the timer: HB's burst
//!   of *all* lost packets, and its tenth of noticed losses, cannot result from immediate reports.
//!   This is our inference.
//! - Reports are not packets of their own: the sender repeats them from its own scoreboard. Acks
//!   that arrive at once carry the content of a report sent at the same instant; were acks lost, a
//!   real report would arrive later.
//! - UDT's acks are a setting of the receiver, [`super::TcpConfig::delayed_ack`], not of this part.
//! - UD reports after one later packet, HB §3.4 has three duplicate acks: three.
//! - The congestion window reacts to the first report of a packet only: a repeat is no new
//!   congestion.
//! - UDT's timeout restarts at any packet of the peer; here at progress, and it backs off, as in
//!   RFC 6298.
//! - UD §6 counts the window from the first missing packet on; here from the bytes in flight, since
//!   HB §4.1 has "Selective ACK". The notes of HB's figures 10 and 13 have the effect.
//!
//! # Limits
//!
//! UDT's own rate control is not modelled: HB replaced it by the schemes under test. Two round
//! trips of handshake (UD §5) are a setting of their own, [`super::TcpConfig::handshakes`].

use headstart_startup::Rtt;
use headstart_units::Span;

/// UDT's synchronisation time (UD §4).
pub const SYNCHRONISATION: Span = Span::from_millis(10);

/// The time to the next report, on a path of this round-trip time: 4 RTT + RTTVAR +
/// [`SYNCHRONISATION`].
#[must_use]
pub fn interval(rtt: &Rtt) -> Span {
    rtt.smoothed * 4 + rtt.variation + SYNCHRONISATION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_source() {
        let mut rtt = Rtt::default();
        rtt.update(Span::from_millis(60));
        // 4 x 60 + 30 + 10: the variation begins at half of the first sample.
        assert_eq!(interval(&rtt), Span::from_millis(280));
    }
}
