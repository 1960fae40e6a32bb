//! Answers with small files, kept for a second.
//!
//! A file's open and reads go to a thread for blocking calls and back. That costs a server five
//! times as much as an answer of a kilobyte from memory.
//!
//! # Limits
//!
//! A change of a file is seen after a second at most. Answers to conditional requests and ranges
//! are not kept.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
    RANGE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;

use crate::site::{Body, whole};

/// Largest file kept, in bytes.
pub(crate) const LARGEST: u64 = 64 * 1024;
/// Bytes of all answers together.
const CAPACITY: u64 = 32 << 20;
/// Bytes that an answer takes beside its path and body: headers, and the cache's own.
const OVERHEAD: u64 = 1024;
/// Number of answers of 8 kB that fit, for the size of the table.
const TYPICAL: usize = 4096;
const LIFETIME: Duration = Duration::from_secs(1);

/// Path, and the encodings that the client accepts.
pub(crate) type Key = (String, Option<HeaderValue>);

#[derive(Debug)]
struct Kept {
    headers: HeaderMap,
    contents: Bytes,
    read_at: Instant,
}

#[derive(Clone, Debug)]
struct Weight;

impl Weighter<Key, Arc<Kept>> for Weight {
    fn weight(&self, (path, encodings): &Key, kept: &Arc<Kept>) -> u64 {
        let text = path.len() + encodings.as_ref().map_or(0, HeaderValue::len);
        OVERHEAD + (text + kept.contents.len()) as u64
    }
}

/// The answers of one folder.
#[derive(Debug)]
pub(crate) struct SmallFiles(Cache<Key, Arc<Kept>, Weight>);

impl Default for SmallFiles {
    fn default() -> Self {
        Self(Cache::with_weighter(TYPICAL, CAPACITY, Weight))
    }
}

impl SmallFiles {
    /// The key of a request whose answer may be kept.
    pub fn key<B>(request: &Request<B>) -> Option<Key> {
        let headers = request.headers();
        let conditions = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE, RANGE];
        let is_plain = matches!(*request.method(), Method::GET | Method::HEAD)
            && !conditions.iter().any(|name| headers.contains_key(name));
        is_plain.then(|| (request.uri().path().to_owned(), headers.get(ACCEPT_ENCODING).cloned()))
    }

    /// The answer of less than a second ago.
    pub fn get(&self, key: &Key) -> Option<Response<Body>> {
        let kept = self.0.get(key).filter(|kept| kept.read_at.elapsed() < LIFETIME)?;
        let mut answer = Response::new(whole(kept.contents.clone()));
        answer.headers_mut().clone_from(&kept.headers);
        Some(answer)
    }

    /// Reads the answer whole and keeps it, if it is one of a small file.
    pub async fn keep(&self, key: Key, answer: Response<Body>) -> std::io::Result<Response<Body>> {
        let length = answer.headers().get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let Some(length) = length.filter(|&length| answer.status() == StatusCode::OK && length <= LARGEST)
        else {
            return Ok(answer);
        };
        let read_at = Instant::now();
        let (head, body) = answer.into_parts();
        let contents = body.collect().await?.to_bytes();
        // A file that is being written may be shorter by now.
        if contents.len() as u64 == length {
            let headers = head.headers.clone();
            self.0.insert(key, Arc::new(Kept { headers, contents: contents.clone(), read_at }));
        }
        Ok(Response::from_parts(head, whole(contents)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use http::header::ETAG;
    use http_body_util::Empty;

    use super::*;
    use crate::site::{Folder, Site};

    const PEER: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    async fn ask(site: &Site, headers: &[(http::HeaderName, &str)]) -> (StatusCode, Bytes, HeaderMap) {
        let mut request = Request::builder().uri("https://localhost/page");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let request = request.version(http::Version::HTTP_2).body(Empty::<Bytes>::new());
        let (head, body) = site.answer(PEER, request.expect("a request")).await.into_parts();
        (head.status, body.collect().await.expect("read").to_bytes(), head.headers)
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_file_is_read_once_in_a_second_and_its_headers_are_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page");
        fs::write(&file, "first").expect("written");
        let site = Site::Folder(Folder::open(folder.path()).expect("a folder"));
        let read = ask(&site, &[]).await;
        assert_eq!((read.0, &*read.1), (StatusCode::OK, &b"first"[..]));
        assert_eq!(ask(&site, &[]).await, read, "from memory");
        fs::write(&file, "another").expect("written");
        assert_eq!(ask(&site, &[]).await, read, "less than a second later");
        let tag = read.2.get(ETAG).and_then(|tag| tag.to_str().ok()).expect("a tag");
        assert_eq!(&*ask(&site, &[(IF_NONE_MATCH, tag)]).await.1, b"another", "never from memory");
        assert_eq!(&*ask(&site, &[(RANGE, "bytes=1-2")]).await.1, b"no", "never from memory");
        tokio::time::advance(LIFETIME).await;
        assert_eq!(&*ask(&site, &[]).await.1, b"another");
        fs::remove_file(&file).expect("removed");
        assert_eq!(&*ask(&site, &[]).await.1, b"another");
        tokio::time::advance(LIFETIME).await;
        assert_eq!(ask(&site, &[]).await.0, StatusCode::NOT_FOUND);
    }

    #[tokio::test(start_paused = true)]
    async fn large_files_are_not_kept_and_many_small_ones_take_bounded_memory() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page");
        let site = Site::Folder(Folder::open(folder.path()).expect("a folder"));
        fs::write(&file, vec![b'a'; LARGEST as usize + 1]).expect("written");
        assert_eq!(ask(&site, &[]).await.1[0], b'a');
        fs::write(&file, vec![b'b'; LARGEST as usize]).expect("written");
        assert_eq!(ask(&site, &[]).await.1[0], b'b', "the large one was not kept");
        let files = SmallFiles::default();
        for number in 0..10_000 {
            let mut answer = Response::new(whole(vec![0; 10_000].into()));
            answer.headers_mut().insert(http::header::CONTENT_LENGTH, 10_000.into());
            let key = (format!("/{number}"), None);
            assert!(files.keep(key, answer).await.is_ok());
        }
        assert!(files.0.weight() <= CAPACITY, "{} bytes", files.0.weight());
        assert!(files.0.len() > 1_000, "{} answers", files.0.len());
    }
}
