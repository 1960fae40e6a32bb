//! Loss detection by time: RACK (RFC 8985 §6).

use super::*;

/// A packet is lost if one sent later was delivered and its own reordering window is over (RFC 8985
/// §6.2 step 5).
#[derive(Clone, Copy, Debug)]
pub struct Rack;

impl Recovery for Rack {
    #[inline]
    fn detect(self, sender: &mut Sender, now: Time, recorder: &mut impl Recorder) -> Losses {
        let mut losses = Losses::default();
        sender.reorder_at = Time::NEVER;
        // RFC 8985 §6.2 step 4.
        let is_certain =
            !sender.reordering_seen && (sender.state != State::Open || sender.delivered_beyond >= DUP_THRESH);
        let reordering_window =
            if is_certain { Span::ZERO } else { (sender.rtt.min / 4).min(sender.rtt.smoothed) };
        while sender.flights.base() < sender.newest_delivered {
            let number = sender.flights.base();
            let flight = sender.flights[number];
            let is_open = !flight.is_settled
                && !flight.is_copy
                && sender.segments.get(flight.segment).is_some_and(|segment| segment.is(IN_FLIGHT));
            if is_open {
                let deadline = flight.stamp.sent_at + sender.rack_rtt + reordering_window;
                if deadline > now {
                    sender.reorder_at = deadline;
                    break;
                }
                sender.lose(now, number, &mut losses, recorder);
            }
            sender.flights.forget_below(number + 1);
        }
        losses
    }
}
