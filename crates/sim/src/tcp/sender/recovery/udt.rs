//! Loss detection by the receiver's reports, as [`Udt`] describes it.

use super::*;

impl Recovery for Udt {
    /// A loss report names the segments that three others overtook; it is repeated while one is
    /// missing.
    #[cold]
    fn detect(self, sender: &mut Sender, now: Time, recorder: &mut impl Recorder) -> Losses {
        let mut losses =
            if self.is_periodic { Losses::default() } else { Rfc6675.detect(sender, now, recorder) };
        let overtaken = sender.highest[DUP_THRESH as usize - 1].saturating_sub(1);
        let known = if self.is_periodic { overtaken } else { sender.judged.min(sender.highest[0]) };
        let range = sender.segments.base()..known.max(sender.segments.base());
        if range.clone().all(|number| sender.segments[number].is(DELIVERED)) {
            sender.reorder_at = Time::NEVER;
            return losses;
        }
        let Some(interval) = self.reports.interval(&sender.rtt) else { return losses };
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
                let is_known = segment.is(RETRANSMITTED);
                let lost = sender.counts.lost;
                if is_known && !self.repeats {
                    continue;
                }
                if is_known {
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
        !self.asks_window && matches!(choice, NextPacket::Retransmission(_))
    }

    fn outstanding(self, sender: &Sender, choice: NextPacket) -> Bytes {
        match choice {
            NextPacket::New(_) if self.spans => Bytes::new(sender.sent - sender.acknowledged),
            _ => sender.in_flight,
        }
    }

    fn on_timeout(self, sender: &mut Sender) {
        if self.goes_back {
            sender.back = sender.segments.base()..sender.segments.end();
        }
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
        Some(Departure { segment: number, transmission, payload: segment.payload, is_pushed: false })
    }
}
