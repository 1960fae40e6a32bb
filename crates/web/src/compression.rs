//! Compression of answers while they are sent, within a share of the processors.
//!
//! A request of a few bytes may ask for a file that takes a second to compress, and a client may
//! ask again and again. Beyond the share answers are sent as they are, which every client accepts;
//! those that are compressed already wait.
//!
//! Time counts by the clock while an answer is compressed: a machine that is busy with other work
//! compresses less.

use std::fmt::Write as _;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use headstart_host::locked;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::site::Body;

/// Share of the processors: the other half is for answers without compression, and for TLS.
const SHARE: f64 = 0.5;
/// While compression is ahead of its share by more than this, no answer begins with it: with two
/// processors 10 MB of text may come at once.
const BEGINS_WITHIN: Duration = Duration::from_millis(100);
/// While it is ahead by more than this, those that have begun wait: twice as much, so that they
/// wait only for others that have begun.
const GOES_ON_WITHIN: Duration = Duration::from_millis(200);

/// Counters of compression.
#[derive(Clone, Debug, Default)]
pub struct CompressionCounters(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    nanoseconds: AtomicU64,
    skipped: AtomicU64,
}

impl CompressionCounters {
    /// In Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let seconds = self.0.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9;
        let mut text = format!(
            "# HELP headstart_compression_seconds_total Time for which answers were compressed, of all processors.\n\
             # TYPE headstart_compression_seconds_total counter\n\
             headstart_compression_seconds_total {seconds}\n"
        );
        let skipped = self.0.skipped.load(Ordering::Relaxed);
        let _ = write!(
            text,
            "# HELP headstart_compression_skipped_total Answers that were sent as they are, since compression had used its share of the processors.\n\
             # TYPE headstart_compression_skipped_total counter\n\
             headstart_compression_skipped_total {skipped}\n"
        );
        text
    }
}

/// The processor time of one folder's compression.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Processors that may compress all the time.
    processors: f64,
    /// When the work so far would be done by that many. `None`: before the first.
    done_at: Mutex<Option<Instant>>,
    counters: CompressionCounters,
}

impl Budget {
    /// A share of this machine's processors.
    pub fn new(counters: CompressionCounters) -> Self {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        Self::of(all as f64 * SHARE, counters)
    }

    pub fn of(processors: f64, counters: CompressionCounters) -> Self {
        Self { processors, done_at: Mutex::default(), counters }
    }

    /// True if another answer may be compressed.
    pub fn has_room(&self) -> bool {
        locked(&self.done_at).is_none_or(|done| done <= Instant::now() + BEGINS_WITHIN)
    }

    /// An answer that could be compressed is sent as it is.
    pub fn skip(&self) {
        self.counters.0.skipped.fetch_add(1, Ordering::Relaxed);
    }

    /// When work that has begun may go on; `None`: now.
    fn goes_on_at(&self) -> Option<Instant> {
        let at = locked(&self.done_at).and_then(|done| done.checked_sub(GOES_ON_WITHIN));
        at.filter(|at| *at > Instant::now())
    }

    fn spend(&self, begun: Instant) {
        let now = Instant::now();
        let took = now.duration_since(begun);
        self.counters.0.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        let done = &mut *locked(&self.done_at);
        *done = Some(done.map_or(now, |done| done.max(now)) + took.div_f64(self.processors));
    }
}

/// True if the client names a coding of this server, or any.
pub(crate) fn is_accepted(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let names = lists.flat_map(|list| list.split(',')).map(|item| item.split(';').next().unwrap_or(item));
    names
        .map(str::trim)
        .any(|name| ["br", "gzip", "x-gzip", "*"].iter().any(|it| it.eq_ignore_ascii_case(name)))
}

/// A body that is compressed while it is read.
pub(crate) struct CompressedBody {
    body: Body,
    budget: Arc<Budget>,
    waits: Option<Pin<Box<Sleep>>>,
}

impl CompressedBody {
    pub const fn new(body: Body, budget: Arc<Budget>) -> Self {
        Self { body, budget, waits: None }
    }
}

impl http_body::Body for CompressedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        while let Some(at) = self.budget.goes_on_at() {
            ready!(self.waits.insert(Box::pin(sleep_until(at))).as_mut().poll(context));
        }
        let begun = Instant::now();
        let frame = Pin::new(&mut self.body).poll_frame(context);
        self.budget.spend(begun);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn spend(budget: &Budget, time: Duration) {
        let begun = Instant::now();
        tokio::time::advance(time).await;
        budget.spend(begun);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_spent_comes_back_at_the_share() {
        let counters = CompressionCounters::default();
        let budget = Budget::of(0.5, counters.clone());
        assert!(budget.has_room());
        // Two seconds of half a processor, of which one has passed.
        spend(&budget, SECOND).await;
        assert!(!budget.has_room());
        let ahead = budget.goes_on_at().expect("later").duration_since(Instant::now());
        assert_eq!(ahead, 2 * SECOND - GOES_ON_WITHIN);
        tokio::time::advance(ahead).await;
        assert!(budget.goes_on_at().is_none() && !budget.has_room());
        tokio::time::advance(GOES_ON_WITHIN - BEGINS_WITHIN).await;
        assert!(budget.has_room());
        // An idle hour is worth no more than this.
        tokio::time::advance(3600 * SECOND).await;
        spend(&budget, BEGINS_WITHIN).await;
        assert!(!budget.has_room());
        budget.skip();
        let text = counters.render();
        assert!(text.contains("\nheadstart_compression_seconds_total 1.1\n"), "{text}");
        assert!(text.ends_with("\nheadstart_compression_skipped_total 1\n"), "{text}");
    }

    #[test]
    fn a_client_that_names_no_coding_of_ours_is_not_one_that_goes_without() {
        for (text, expected) in [
            ("gzip", true),
            ("deflate, BR;q=0.5", true),
            ("*", true),
            ("identity", false),
            ("deflate, zstd", false),
            ("", false),
        ] {
            let headers = [(ACCEPT_ENCODING, HeaderValue::from_static(text))].into_iter().collect();
            assert_eq!(is_accepted(&headers), expected, "{text}");
        }
        assert!(!is_accepted(&HeaderMap::new()));
    }
}
