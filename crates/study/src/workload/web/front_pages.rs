//! Front pages drawn from published statistics of real ones.
//!
//! Source: Halfback §4.4 fetches the front pages of the hundred most popular sites of its day and
//! publishes none of them. Published statistics of such pages:
//!
//! - HTTP Archive, July 2014, top 100 sites: 90 requests and 1612 kB a page on average (A. King,
//!   "Average Web Page Breaks 1600K", websiteoptimization.com, 2014, which also has 112 requests
//!   and 1622 kB for the top 1000);
//! - J. Charzinski, "Traffic properties, client side cachability and CDN usage of popular web
//!   sites", MMB 2010 (quoted there). Front pages of 500 sites with an empty cache take 64.7
//!   requests to 7.6 hosts and 507 kB on average. With a warm cache they take 16.1 requests to 5.5
//!   hosts and 98.5 kB.
//!
//! Of each we take the means, and shapes on which published crawls agree. The number of objects is
//! log-normal with a standard deviation of 0.7 of its logarithm. Sizes are log-normal with 1.5:
//! most objects are a few kB, a few hold most bytes. The document is drawn from the same sizes. The
//! sample of a hundred is then scaled so that its means *are* those stated. The hundred pages are
//! always the same: they are drawn from a fixed seed.

use clap::ValueEnum;
use headstart_sim::workload::page::Object;
use headstart_sim::{Random, Seed};
use headstart_units::Bytes;

/// Source of the pages' statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageStatistics {
    /// HTTP Archive, July 2014, top 100: 90 objects, 1612 kB; from one server, as in Halfback.
    Archive2014,
    /// Charzinski 2010, empty cache: 64.7 objects, 507 kB; one server.
    Survey2010,
    /// Charzinski 2010, warm cache: 16.1 objects, 98.5 kB; one server.
    Cached2010,
    /// As `archive2014`, from 7.6 hosts on average (Charzinski 2010), with own connections.
    Hosts2014,
}

/// Pages in a population (Halfback §4.4).
const PAGES: usize = 100;
/// Standard deviations of the logarithms.
const OBJECTS_SPREAD: f64 = 0.7;
const SIZES_SPREAD: f64 = 1.5;
/// Smallest object: a response's headers alone have this size.
const SMALLEST: f64 = 200.0;

impl PageStatistics {
    /// Mean objects, mean bytes, and mean hosts of a page.
    fn means(self) -> (f64, f64, f64) {
        match self {
            Self::Archive2014 => (90.0, 1_612_000.0, 1.0),
            Self::Survey2010 => (64.7, 507_000.0, 1.0),
            Self::Cached2010 => (16.1, 98_500.0, 1.0),
            Self::Hosts2014 => (90.0, 1_612_000.0, 7.6),
        }
    }
}

/// A hundred pages.
#[must_use]
pub fn draw(statistics: PageStatistics) -> Vec<Vec<Object>> {
    let (objects, bytes, hosts) = statistics.means();
    let seed = Seed(2015).child("front pages");
    let (mut counts, mut sizes, mut places) = (
        Random::new(seed.child("counts")),
        Random::new(seed.child("sizes")),
        Random::new(seed.child("hosts")),
    );
    let shapes: Vec<f64> = (0..PAGES).map(|_| libm::exp(OBJECTS_SPREAD * normal(&mut counts))).collect();
    let scale = objects * PAGES as f64 / shapes.iter().sum::<f64>();
    let pages: Vec<Vec<(u16, f64)>> = shapes
        .iter()
        .map(|shape| {
            let count = libm::round(shape * scale).max(2.0) as usize;
            // Larger pages draw on more hosts; the first has half of the objects and the document.
            let hosts = libm::round(1.0 + (hosts - 1.0) * count as f64 / objects).max(1.0) as u64;
            (0..count)
                .map(|number| {
                    let is_own = number == 0 || hosts == 1 || places.below(2) == 0;
                    let origin = if is_own { 0 } else { 1 + places.below(hosts - 1) as u16 };
                    (origin, libm::exp(SIZES_SPREAD * normal(&mut sizes)))
                })
                .collect()
        })
        .collect();
    let total: f64 = pages.iter().flatten().map(|(_, size)| size).sum();
    let scale = bytes * PAGES as f64 / total;
    let object = |(origin, size): &(u16, f64)| Object {
        origin: *origin,
        bytes: Bytes::new((size * scale).max(SMALLEST) as u64),
        leads: false,
    };
    pages.iter().map(|page| page.iter().map(object).collect()).collect()
}

/// A normal variate: the sum of twelve uniform ones, less six. It has no tail beyond six
/// deviations, and needs no logarithm.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_pages_have_the_means_of_their_source() {
        for statistics in
            [PageStatistics::Archive2014, PageStatistics::Survey2010, PageStatistics::Cached2010]
        {
            let pages = draw(statistics);
            assert_eq!(pages.len(), 100);
            let (objects, bytes, _) = statistics.means();
            let count = pages.iter().map(Vec::len).sum::<usize>() as f64 / 100.0;
            assert!((count / objects - 1.0).abs() < 0.02, "{statistics:?}: {count} objects");
            let mean = pages.iter().flatten().map(|object| object.bytes.get()).sum::<u64>() as f64 / 100.0;
            assert!((mean / bytes - 1.0).abs() < 0.02, "{statistics:?}: {mean} bytes");
        }
    }

    #[test]
    fn most_objects_are_small_and_a_few_are_large() {
        let mut sizes: Vec<u64> =
            draw(PageStatistics::Archive2014).iter().flatten().map(|object| object.bytes.get()).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        assert!(median < 10_000, "the median is {median} bytes");
        assert!(sizes[sizes.len() - 1] > 300_000);
    }

    #[test]
    fn the_number_of_hosts_matches_the_source() {
        let pages = draw(PageStatistics::Hosts2014);
        let hosts =
            |page: &Vec<Object>| page.iter().map(|object| object.origin).max().unwrap_or(0) as usize + 1;
        let mean = pages.iter().map(hosts).sum::<usize>() as f64 / 100.0;
        assert!((6.8..8.4).contains(&mean), "{mean} hosts");
        assert!(pages.iter().all(|page| page[0].origin == 0));
    }
}
