//! Send the data's end at once, at priorities below all other traffic.
//!
//! Source (RC3 below): R. Mittal, J. Sherry, S. Ratnasamy, S. Shenker, "Recursively Cautious
//! Congestion Control", NSDI 2014, and its authors' code for ns-3 (`tcp-rc3-sack.cc`, the behaviour
//! in own words).
//!
//! ```text
//!   sent in order -->        <-- early: 4000 at priority 3 | 400 at priority 2 | 40 at priority 1
//!  |#########|                                                                                   |
//! ```
//!
//! # Deviations
//!
//! - RC3 goes on to further priorities; here three, that is 4440 segments.
//! - RC3 begins anew with each piece of data that the application writes; here once, with the data
//!   at hand when the first window is out.

use super::Segments;

/// Priorities below other traffic's.
const LEVELS: u8 = 3;
/// Each priority has so many times the segments of the one above.
const FACTOR: u64 = 10;

/// Segments that leave before their turn, from the last one on.
#[derive(Clone, Copy, Debug)]
pub struct Early {
    /// Segments of priority 1.
    first: u64,
    /// One past the next segment, once it has begun.
    cursor: Option<u64>,
    sent: u64,
    is_over: bool,
}

impl Early {
    /// `first` segments at priority 1, ten times as many at each further one.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self { first, cursor: None, sent: 0, is_over: false }
    }

    /// True once it has sent its last segment.
    #[must_use]
    #[inline]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Priority of the segment that [`Self::next`] returned last: 1 is next to the priority of
    /// other traffic, which is 0.
    pub(super) fn priority(&self) -> u8 {
        let (mut level, mut size, mut up_to) = (1, self.first, self.first);
        while self.sent > up_to && level < LEVELS {
            level += 1;
            size *= FACTOR;
            up_to += size;
        }
        level
    }

    pub(super) fn next(&mut self, segments: &impl Segments) -> Option<u64> {
        let cursor = self.cursor.unwrap_or_else(|| segments.written_end());
        let most = self.first * (1 + FACTOR + FACTOR * FACTOR);
        if self.is_over || cursor <= segments.end() || self.sent == most {
            self.is_over = true;
            return None;
        }
        self.cursor = Some(cursor - 1);
        self.sent += 1;
        self.cursor
    }
}

#[cfg(test)]
mod tests {
    use super::super::Repair;
    use super::super::testing::Stream;
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_end_leaves_first_and_it_meets_the_data_sent_in_order() {
        let stream = Stream::new(10, 10).written(14);
        let mut repair = Repair::Early(Early::new(40));
        assert_eq!(stream.copies(&mut repair), [14, 13, 12, 11]);
        assert!(!repair.is_active());
        assert_eq!(stream.written(20).copies(&mut repair), [], "it happens once");
    }

    #[test]
    fn each_priority_has_ten_times_the_segments_of_the_one_above() {
        let stream = Stream::new(10, 10).written(1000);
        let mut repair = Repair::Early(Early::new(2));
        let mut counts = [0; 5];
        while repair.next(&stream).is_some() {
            counts[usize::from(repair.priority())] += 1;
        }
        assert_eq!(counts, [0, 2, 20, 200, 0]);
        assert_eq!(Repair::Reactive.priority(), 0, "copies of other policies have no priority of their own");
        let largest: Vec<u64> = stream.copies(&mut Repair::Early(Early::new(10_000)));
        assert_eq!(largest.len(), 990);
    }
}
