//! One chirp: the gaps at which it leaves, and the gap at which its packets' delay grew.

use headstart_units::{Span, Time};

/// Packets of a chirp from the fifth one on.
pub(super) const LONGEST: u32 = 16;

/// Packets of the chirp with this number.
pub(super) const fn packets(number: u32) -> u32 {
    match number {
        0 | 1 => 5,
        2 | 3 => 8,
        _ => LONGEST,
    }
}

/// The packets of the chirp that is being sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    /// Chirps begun so far, this one included.
    begun: u32,
    packets: u32,
    sent: u32,
    first: Span,
    step: Span,
    guard: Span,
}

impl Schedule {
    /// A chirp around the gap `average`, of the `share` of an RTT.
    pub fn new(number: u32, average: Span, geometry: u64, share: Span) -> Self {
        let packets = packets(number);
        let step = average * (2 * (geometry - 1)) / u64::from(packets);
        let chirp = Self {
            begun: number.saturating_add(1),
            packets,
            sent: 0,
            first: average * geometry,
            step,
            guard: average,
        };
        Self { guard: share.saturating_sub(chirp.length()).max(average), ..chirp }
    }

    pub fn number_of_next(&self) -> u32 {
        self.begun
    }

    /// Between its first and its last packet.
    pub fn length(&self) -> Span {
        let gaps = u64::from(self.packets.saturating_sub(1));
        let lost = self.step.as_nanos().saturating_mul(gaps * gaps.saturating_sub(1) / 2);
        (self.first * gaps).saturating_sub(Span::from_nanos(lost))
    }

    /// The gap after the next packet.
    pub fn gap(&self) -> Span {
        match self.sent + 1 < self.packets {
            true => self.first.saturating_sub(self.step * u64::from(self.sent)).max(Span::from_nanos(1)),
            false => self.guard.max(Span::from_nanos(1)),
        }
    }

    /// A packet has left; true if it was the last one.
    pub fn on_sent(&mut self) -> bool {
        self.sent += 1;
        self.sent >= self.packets
    }
}

/// The acks of a chirp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Analysis {
    number: u32,
    count: u32,
    last_sent_at: Time,
    /// Nanoseconds between each packet and the one before it; the first one has the second's.
    gaps: [u32; LONGEST as usize],
    /// RTT of each in nanoseconds.
    delays: [u32; LONGEST as usize],
}

impl Analysis {
    /// Number of the chirp whose acks arrive.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// None of its packets is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a packet. With the last one, the chirp is complete: returns its gap, if it has one.
    #[expect(clippy::option_option, reason = "a chirp may be incomplete, or complete without a gap")]
    pub fn add(&mut self, sent_at: Time, rtt: Span, excursion: u32) -> Option<Option<Span>> {
        let at = self.count as usize;
        self.gaps[at] = nanos(sent_at.since(self.last_sent_at));
        self.delays[at] = nanos(rtt);
        if at == 1 {
            self.gaps[0] = self.gaps[1];
        }
        self.last_sent_at = sent_at;
        self.count += 1;
        if self.count < packets(self.number) {
            return None;
        }
        let gap = average_gap(
            &self.gaps[..self.count as usize],
            &self.delays[..self.count as usize],
            excursion as usize,
        );
        *self = Self { number: self.number + 1, last_sent_at: sent_at, ..Self::default() };
        Some(gap)
    }
}

fn nanos(span: Span) -> u32 {
    u32::try_from(span.as_nanos()).unwrap_or(u32::MAX)
}

/// PC's analyze_chirp, after pathChirp. Packets within an excursion, a run of growing delay, count
/// with their own gap. All others count with the gap from which on the delay did not fall again, or
/// with the last.
fn average_gap(gaps: &[u32], delays: &[u32], excursion: usize) -> Option<Span> {
    let count = gaps.len();
    let mut own: [Option<u32>; LONGEST as usize] = [None; LONGEST as usize];
    let mut others = *gaps.last()?;
    // First packet and length of the excursion, and its largest growth so far.
    let mut current: Option<(usize, usize, u32)> = None;
    for at in 1..count {
        if let Some((first, length, most)) = current {
            let growth = delays[at].checked_sub(delays[first]);
            match growth.filter(|growth| *growth > most / 2 + most / 8) {
                Some(growth) => current = Some((first, length + 1, most.max(growth))),
                None => {
                    if length >= excursion {
                        for at in (first..first + length).filter(|at| delays[*at] < delays[at + 1]) {
                            own[at] = Some(gaps[at]);
                        }
                    }
                    current = None;
                }
            }
        }
        if current.is_none() && at + 1 < count && delays[at] < delays[at + 1] {
            current = Some((at, 1, 0));
        }
    }
    if let Some((first, length, _)) = current.filter(|(first, length, _)| first + length == count) {
        own[first..first + length].fill(Some(gaps[first]));
        others = gaps[first];
    }
    let sum: u64 = own[1..count].iter().map(|own| u64::from(own.unwrap_or(others))).sum();
    (count > 1).then(|| Span::from_nanos(sum / (count as u64 - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PC: from twice the average to a quarter of it, an eighth less each time.
    #[test]
    fn gaps_shrink_from_twice_the_average_to_a_quarter() {
        let average = Span::from_micros(800);
        let mut chirp = Schedule::new(4, average, 2, Span::from_millis(100));
        let mut sum = Span::ZERO;
        for packet in 0..15 {
            assert_eq!(chirp.gap(), Span::from_micros(1600 - 100 * packet), "after packet {packet}");
            sum += chirp.gap();
            assert!(!chirp.on_sent());
        }
        assert_eq!(sum, chirp.length());
        assert_eq!(chirp.gap(), Span::from_millis(100) - sum, "the guard");
        assert!(chirp.on_sent());
        let tight = Schedule::new(4, average, 2, Span::from_millis(1));
        assert_eq!(tight.guard, average, "at least an average gap");
        assert_eq!((0..6).map(packets).collect::<alloc::vec::Vec<_>>(), [5, 5, 8, 8, 16, 16]);
    }

    /// A chirp of 16 packets from 1600 us down, over a bottleneck of one packet in `service` us.
    fn chirp_over(service: u32) -> (alloc::vec::Vec<u32>, alloc::vec::Vec<u32>) {
        let mut gaps = alloc::vec![1_600_000];
        gaps.extend((0..15).map(|n| 1_600_000 - 100_000 * n));
        let (mut queue, mut delays) = (0_u32, alloc::vec![50_000_000]);
        for gap in &gaps[1..] {
            queue = (queue + service * 1000).saturating_sub(*gap);
            delays.push(50_000_000 + queue);
        }
        (gaps, delays)
    }

    /// The delay grows from the first gap below the bottleneck's on.
    #[test]
    fn the_gap_is_that_at_which_the_delay_begins_to_grow() {
        for (service, expected) in [(1050, 1000), (850, 800), (600, 600)] {
            let (gaps, delays) = chirp_over(service);
            let found = average_gap(&gaps, &delays, 5).expect("a gap").as_nanos() / 1000;
            assert!(found.abs_diff(expected) <= 100, "{service} us: {found}");
        }
    }

    #[test]
    fn without_growth_it_is_the_last_and_smallest_gap() {
        let (gaps, _) = chirp_over(1);
        let found = average_gap(&gaps, &[50_000_000; 16], 5);
        assert_eq!(found, Some(Span::from_micros(200)));
    }

    /// Cross traffic delays six packets in the middle; each counts with its own gap.
    #[test]
    fn an_excursion_that_ends_counts_only_from_so_many_packets_on() {
        let (gaps, _) = chirp_over(1);
        let mut delays = [50_000_000; 16];
        for (at, more) in [(4, 1), (5, 2), (6, 3), (7, 4), (8, 5), (9, 6)] {
            delays[at] += more * 100_000;
        }
        let smallest = Some(Span::from_micros(200));
        assert_eq!(average_gap(&gaps, &delays, 8), smallest);
        let found = average_gap(&gaps, &delays, 5).expect("a gap");
        assert!(found > Span::from_micros(200) && found < Span::from_micros(700), "{found:?}");
    }
}
