//! Loss detection by the receiver's reports, as [`crate::tcp::udt`] describes it.

use super::*;
use crate::tcp::udt::interval;

#[derive(Clone, Copy)]
pub(super) struct Udt;

impl Recovery for Udt {
    /// A loss report names the segments that three others overtook; it is repeated while one is
    /// missing.
    #[cold]
    fn detect(self, sender: &mut Sender, now: Time, recorder: &mut impl Recorder) -> Losses {
        let mut losses = Losses::default();
        let overtaken = sender.highest[DUP_THRESH as usize - 1].saturating_sub(1);
        let range = sender.segments.base()..overtaken.max(sender.segments.base());
        if range.clone().all(|number| sender.segments[number].is(DELIVERED)) {
            sender.reorder_at = Time::NEVER;
            return losses;
        }
        let interval = interval(&sender.rtt);
        if sender.reorder_at == Time::NEVER {
            sender.reorder_at = now + interval;
        }
        if sender.reorder_at > now {
            return losses;
        }
        sender.reorder_at = now + interval;
        for number in range {
            let segment = sender.segments[number];
            if segment.is(IN_FLIGHT) && sender.copy_out_until(now, number).is_none() {
                let lost = sender.counts.lost;
                if segment.is(RETRANSMITTED) {
                    sender.lose(now, segment.transmission, &mut Losses::default(), recorder);
                    sender.counts.lost = lost;
                } else {
                    sender.lose(now, segment.transmission, &mut losses, recorder);
                }
            }
        }
        losses
    }

    fn keeps_timer(self) -> bool {
        true
    }

    /// The loss list is limited by neither window nor pacer.
    fn is_free(self, choice: NextPacket) -> bool {
        matches!(choice, NextPacket::Retransmission(_))
    }

    /// Everything is sent again that is not acknowledged cumulatively, received or not.
    fn on_timeout(self, sender: &mut Sender) {
        sender.back = sender.segments.base()..sender.segments.end();
    }
}

impl Sender {
    /// The next segment of those that a timeout sends again although they arrived. Each waits for
    /// the missing ones before it.
    #[cold]
    pub(in super::super) fn go_back(&mut self, now: Time) -> Option<Departure> {
        self.back.start = self.back.start.max(self.segments.base());
        let number = self.back.start;
        let segment = self.segments.get(number).copied().filter(|_| !self.back.is_empty())?;
        if !segment.is(DELIVERED) {
            if !segment.is(LOST) {
                self.back.start += 1;
                return self.go_back(now);
            }
            return None;
        }
        self.back.start += 1;
        let transmission = self.launch(now, number, true, false);
        self.counts.retransmissions += 1;
        self.counted(now, segment.payload);
        Some(Departure::alone(number, transmission, segment.payload))
    }
}
