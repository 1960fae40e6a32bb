//! Loss detection by count, and retransmission, with SACK (RFC 6675).

use super::*;

/// A segment is lost if three were delivered beyond it (RFC 6675 §4 IsLost); each is judged once.
#[derive(Clone, Copy, Debug)]
pub struct Rfc6675;

impl Recovery for Rfc6675 {
    fn detect(self, sender: &mut Sender, now: Time, recorder: &mut impl Recorder) -> Losses {
        let mut losses = Losses::default();
        if !sender.put_off.is_empty() {
            sender.lose_overdue(now, &mut losses, recorder);
        }
        let third_highest = sender.highest[DUP_THRESH as usize - 1].saturating_sub(1);
        sender.judged = sender.judged.max(sender.segments.base());
        while sender.judged < third_highest {
            let segment = sender.segments[sender.judged];
            if segment.is(IN_FLIGHT) && !segment.is(RETRANSMITTED) {
                if let Some(until) = sender.copy_out_until(now, sender.judged) {
                    sender.put_off.push_back((sender.judged, until));
                    sender.reorder_at = sender.reorder_at.min(until);
                    sender.judged += 1;
                    continue;
                }
                let now = sender.newest_sent_at;
                sender.lose(now, segment.transmission, &mut losses, recorder);
            }
            sender.judged += 1;
        }
        while sender.flights.get(sender.flights.base()).is_some_and(|flight| {
            flight.is_settled
                || flight.is_copy
                || sender.segments.get(flight.segment).is_none_or(|segment| segment.is(DELIVERED))
        }) {
            sender.flights.forget_below(sender.flights.base() + 1);
        }
        losses
    }

    #[inline]
    fn choose_beyond(self, sender: &mut Sender) -> Option<u32> {
        if matches!(sender.state, State::Recovery { .. }) { choose_beyond_rules(sender) } else { None }
    }
}

/// RFC 6675 §4 NextSeg rules 3 and 4: segments below the highest delivered and not sent again yet;
/// then, once an episode, the last one that is missing.
#[cold]
fn choose_beyond_rules(sender: &mut Sender) -> Option<u32> {
    let range = sender.segments.base()..sender.segments.end();
    let highest = sender.highest[0].saturating_sub(1);
    let untried = |number: &u32| {
        let segment = &sender.segments[*number];
        segment.is(IN_FLIGHT) && !segment.is(RETRANSMITTED)
    };
    if let Some(number) = range.clone().take_while(|number| *number < highest).find(untried) {
        return Some(number);
    }
    if sender.rescue_done {
        return None;
    }
    sender.rescue_done = true;
    range.rev().find(|number| sender.segments[*number].is(IN_FLIGHT))
}

impl Sender {
    /// Time until which a copy of this segment may still arrive.
    #[inline]
    pub(super) fn copy_out_until(&self, now: Time, number: u32) -> Option<Time> {
        let (_, until) = self.copied.iter().rev().find(|(copied, _)| *copied == number)?;
        (*until > now).then_some(*until)
    }

    /// Segments whose copies did not arrive either.
    #[cold]
    fn lose_overdue(&mut self, now: Time, losses: &mut Losses, recorder: &mut impl Recorder) {
        while let Some(&(number, until)) = self.put_off.front() {
            if until > now {
                self.reorder_at = until;
                return;
            }
            self.put_off.pop_front();
            let segment = self.segments.get(number).copied();
            let is_missing = |it: &Segment| it.is(IN_FLIGHT) && !it.is(RETRANSMITTED);
            if let Some(segment) = segment.filter(is_missing) {
                self.lose(now, segment.transmission, losses, recorder);
            }
        }
        self.reorder_at = Time::NEVER;
    }
}
