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
//!   requests and 507 kB on average.
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
}

/// Pages in a population (Halfback §4.4).
const PAGES: usize = 100;
/// Standard deviations of the logarithms.
const OBJECTS_SPREAD: f64 = 0.7;
const SIZES_SPREAD: f64 = 1.5;
/// Smallest object: a response's headers alone have this size.
const SMALLEST: f64 = 200.0;

impl PageStatistics {
    /// Mean objects and mean bytes of a page.
    fn means(self) -> (f64, f64) {
        match self {
            Self::Archive2014 => (90.0, 1_612_000.0),
            Self::Survey2010 => (64.7, 507_000.0),
        }
    }
}

/// A hundred pages.
#[must_use]
pub fn draw(statistics: PageStatistics) -> Vec<Vec<Object>> {
    let (objects, bytes) = statistics.means();
    let seed = Seed(2015).child("front pages");
    let (mut counts, mut sizes) = (Random::new(seed.child("counts")), Random::new(seed.child("sizes")));
    let shapes: Vec<f64> = (0..PAGES).map(|_| libm::exp(OBJECTS_SPREAD * normal(&mut counts))).collect();
    let scale = objects * PAGES as f64 / shapes.iter().sum::<f64>();
    let pages: Vec<Vec<f64>> = shapes
        .iter()
        .map(|shape| {
            let count = libm::round(shape * scale).max(2.0) as usize;
            (0..count).map(|_| libm::exp(SIZES_SPREAD * normal(&mut sizes))).collect()
        })
        .collect();
    let total: f64 = pages.iter().flatten().sum();
    let scale = bytes * PAGES as f64 / total;
    let object =
        |size: &f64| Object { bytes: Bytes::new((size * scale).max(SMALLEST) as u64), ..Object::default() };
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
        for statistics in [PageStatistics::Archive2014, PageStatistics::Survey2010] {
            let pages = draw(statistics);
            assert_eq!(pages.len(), 100);
            let (objects, bytes) = statistics.means();
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
}
