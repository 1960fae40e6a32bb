//! Send every packet twice.
//!
//! Source: Proactive of T. Flach et al., "Reducing Web Latency: the Virtue of Gentle Aggression",
//! SIGCOMM 2013, as Halfback §2.2 compares with it: "two copies of every packet".
//!
//! # Deviations
//!
//! - Retransmissions are not duplicated: their copy has been sent already.
//!
//! # Limits
//!
//! The copy follows its original at once if the transport polls after each packet. If it polls only
//! after a burst, the copies follow the burst.

use super::Segments;

/// A copy for each original: copies of `next..end` are still to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proactive {
    next: u64,
    end: u64,
}

impl Proactive {
    #[inline]
    pub(super) fn on_sent(&mut self, segment: u64) {
        if segment > self.end {
            // Those between were retransmissions, of a transport that numbers them too.
            self.next = segment;
        }
        self.end = segment + 1;
    }

    #[inline]
    pub(super) fn next(&mut self, segments: &impl Segments) -> Option<u64> {
        while self.next < self.end {
            self.next += 1;
            if !segments.is_delivered(self.next - 1) {
                return Some(self.next - 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::Repair;
    use super::super::testing::Stream;
    use super::*;

    #[test]
    fn a_copy_follows_each_original() {
        let mut stream = Stream::new(3, 3);
        let mut repair = Repair::Proactive(Proactive::default());
        for segment in 0..3 {
            repair.on_sent(segment);
            assert_eq!(stream.copies(&mut repair), [segment + 1]);
        }
        assert_eq!(stream.ack(&mut repair, 1), [], "an ack asks for nothing");
    }

    #[test]
    fn retransmissions_with_numbers_of_their_own_are_not_copied() {
        let stream = Stream::new(9, 9);
        let mut repair = Repair::Proactive(Proactive::default());
        repair.on_sent(0);
        assert_eq!(stream.copies(&mut repair), [1]);
        repair.on_sent(4);
        assert_eq!(stream.copies(&mut repair), [5], "2 to 4 repeated lost data");
    }

    #[test]
    fn copies_follow_a_burst_and_skip_what_has_arrived() {
        let mut stream = Stream::new(3, 3);
        let mut repair = Repair::Proactive(Proactive::default());
        for segment in 0..3 {
            repair.on_sent(segment);
        }
        stream.deliver(2);
        assert_eq!(stream.copies(&mut repair), [1, 3]);
    }
}
