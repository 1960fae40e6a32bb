//! A line for each request, in the Combined Log Format of Apache.
//!
//! A thread of its own writes. Connections only put entries into a bounded queue, and never wait:
//! while the file cannot keep up, entries are dropped and counted.

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use headstart_host::{Exposition, unix_now};
use http::header::{HeaderName, REFERER, USER_AGENT};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Frame;
use http_body_util::BodyExt;
use httpdate::HttpDate;

use crate::site::{Body, BoxError, Site};

/// Destination of the lines.
#[derive(Debug)]
pub enum Destination {
    /// Standard output, or another stream that is not reopened.
    Stream(Box<dyn LogStream>),
    /// A file, which is opened again after it was renamed or removed (Unix).
    File(PathBuf),
}

/// A stream of lines.
pub trait LogStream: Write + Send + fmt::Debug {}
impl<W: Write + Send + fmt::Debug> LogStream for W {}

/// Entries that wait for the writer. With the longest fields they occupy 16 MB.
const QUEUE: usize = 4096;
/// Longest request target, in bytes, before quoting; the rest is cut off.
const MAX_TARGET_BYTES: usize = 2048;
/// Longest method: a client may make one up.
const MAX_METHOD_BYTES: usize = 32;
/// Longest referrer and user agent.
const MAX_FIELD_BYTES: usize = 1024;

/// A handle of the log; clones share it.
#[derive(Clone, Debug)]
pub struct AccessLog {
    queue: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Message {
    Entry(Box<Entry>),
    End(std::sync::mpsc::Sender<()>),
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    /// Seconds since 1970 when the request arrived.
    at: Duration,
    /// Empty if the request could not be read.
    method: String,
    target: String,
    version: Version,
    status: StatusCode,
    bytes: u64,
    referrer: Option<Vec<u8>>,
    agent: Option<Vec<u8>>,
}

impl AccessLog {
    /// Opens the log.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or the thread cannot start.
    pub fn open(destination: Destination) -> io::Result<Self> {
        let dropped = Arc::new(AtomicU64::new(0));
        let output = match destination {
            Destination::Stream(stream) => Output::Stream(stream),
            Destination::File(path) => Output::File { file: append_to(&path)?, path, is_lost: false },
        };
        let (queue, entries) = sync_channel(QUEUE);
        let writer = Writer { output, dropped: Arc::clone(&dropped) };
        std::thread::Builder::new().name("access log".into()).spawn(move || writer.run(&entries))?;
        Ok(Self { queue, dropped })
    }

    /// Waits until everything so far is written, or for `limit`; the log ends.
    pub fn finish(&self, limit: Duration) {
        let (done, is_done) = channel();
        let queue = self.queue.clone();
        // A queue that stays full would block this thread beyond the limit.
        let sent = std::thread::Builder::new().spawn(move || {
            let _ = queue.send(Message::End(done));
        });
        if sent.is_ok() {
            let _ = is_done.recv_timeout(limit);
        }
    }

    /// Entries that were lost: the queue was full, or the file could not be written.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counter of the log, in Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        let mut metrics = Exposition::default();
        metrics
            .family("access_log_dropped_total", "counter", "Requests without a line in the access log.")
            .sample(&[], self.dropped());
        metrics.take()
    }

    /// A request that HTTP itself refused.
    #[cfg(feature = "tcp")]
    pub(crate) fn refused(&self, peer: SocketAddr, status: StatusCode) {
        let peer = peer.ip().to_canonical();
        let at = Duration::from_nanos(unix_now().as_nanos());
        let (method, target, version, bytes) = Default::default();
        self.put(Entry { peer, at, method, target, version, status, bytes, referrer: None, agent: None });
    }

    fn put(&self, entry: Entry) {
        if self.queue.try_send(Message::Entry(Box::new(entry))).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The answer of `site`, which is logged when its body has been sent or is given up.
pub(crate) async fn answer<B>(
    site: &Site,
    log: Option<&AccessLog>,
    peer: SocketAddr,
    version: Version,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let Some(log) = log else { return site.answer(peer.ip(), request).await };
    let mut entry = Entry {
        peer: peer.ip().to_canonical(),
        at: Duration::from_nanos(unix_now().as_nanos()),
        method: method(request.method()),
        target: target(request.uri()),
        version,
        status: StatusCode::OK,
        bytes: 0,
        referrer: field(request.headers(), &REFERER),
        agent: field(request.headers(), &USER_AGENT),
    };
    let answer = site.answer(peer.ip(), request).await;
    entry.status = answer.status();
    let mut logged = Logged { entry: Some(entry), log: log.clone() };
    answer.map(|body| body.inspect_frame(move |frame| logged.count(frame)).boxed_unsync())
}

fn method(method: &Method) -> String {
    method.as_str().chars().take(MAX_METHOD_BYTES).collect()
}

fn target(uri: &Uri) -> String {
    let whole = uri.path_and_query().map_or_else(|| uri.path(), |both| both.as_str());
    let end = (0..=MAX_TARGET_BYTES.min(whole.len())).rev().find(|end| whole.is_char_boundary(*end));
    whole[..end.unwrap_or(0)].to_owned()
}

fn field(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let value = headers.get(name)?.as_bytes();
    Some(value[..value.len().min(MAX_FIELD_BYTES)].to_vec())
}

/// Puts the entry into the log at the end of the answer's body.
struct Logged {
    entry: Option<Entry>,
    log: AccessLog,
}

impl Logged {
    /// The transport takes a part of the body.
    fn count(&mut self, frame: &Frame<Bytes>) {
        if let Some(entry) = &mut self.entry {
            entry.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.log.put(entry);
        }
    }
}

struct Writer {
    output: Output,
    dropped: Arc<AtomicU64>,
}

enum Output {
    Stream(Box<dyn LogStream>),
    File { path: PathBuf, file: File, is_lost: bool },
}

/// Entries written at once.
const BATCH: usize = 256;

impl Writer {
    fn run(mut self, entries: &Receiver<Message>) {
        while let Ok(first) = entries.recv() {
            let (mut text, mut lines, mut end) = (String::new(), 0, None);
            for message in std::iter::once(first).chain(entries.try_iter()) {
                match message {
                    Message::Entry(entry) => {
                        entry.write(&mut text);
                        lines += 1;
                    }
                    Message::End(done) => end = Some(done),
                }
                if lines >= BATCH || end.is_some() {
                    break;
                }
            }
            self.output.follow();
            if self.output.write(text.as_bytes()).is_err() {
                self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
            }
            if let Some(done) = end {
                let _ = done.send(());
                return;
            }
        }
    }
}

impl Output {
    /// Opens the file again if its path leads elsewhere now. If that fails, the former goes on, and
    /// the reason is told once.
    fn follow(&mut self) {
        if let Self::File { path, file, is_lost } = self
            && is_elsewhere(path, file)
        {
            match append_to(path) {
                Ok(opened) => (*file, *is_lost) = (opened, false),
                Err(error) => {
                    if !std::mem::replace(is_lost, true) {
                        let path = path.display();
                        tracing::warn!(%path, %error, "the access log cannot be reopened: lines go to the former file");
                    }
                }
            }
        }
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.write_all(text).and_then(|()| stream.flush()),
            Self::File { file, .. } => file.write_all(text),
        }
    }
}

/// Readable by its owner and group alone: the log has clients' addresses.
fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    options.open(path)
}

#[cfg(unix)]
fn is_elsewhere(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(open) = file.metadata() else { return false };
    std::fs::metadata(path).map_or(true, |there| (there.dev(), there.ino()) != (open.dev(), open.ino()))
}

#[cfg(not(unix))]
fn is_elsewhere(_: &Path, _: &File) -> bool {
    false
}

impl Entry {
    fn write(&self, text: &mut String) {
        let _ = write!(text, "{} - - [{}] \"", self.peer, date(self.at));
        if self.method.is_empty() {
            text.push('-');
        } else {
            quote(self.method.as_bytes(), text);
            text.push(' ');
            quote(self.target.as_bytes(), text);
            let _ = write!(text, " {:?}", self.version);
        }
        let _ = write!(text, "\" {} ", self.status.as_u16());
        match self.bytes {
            0 => text.push('-'),
            bytes => {
                let _ = write!(text, "{bytes}");
            }
        }
        for value in [&self.referrer, &self.agent] {
            text.push_str(" \"");
            quote(value.as_deref().unwrap_or(b"-"), text);
            text.push('"');
        }
        text.push('\n');
    }
}

/// `10/Oct/2000:13:55:36 +0000`, always UTC.
fn date(since_1970: Duration) -> String {
    let date = HttpDate::from(UNIX_EPOCH + since_1970).to_string();
    let words: Vec<&str> = date.split(' ').collect();
    // `Tue, 10 Oct 2000 13:55:36 GMT`
    match words[..] {
        [_, day, month, year, time, _] => format!("{day}/{month}/{year}:{time} +0000"),
        _ => "-".to_owned(),
    }
}

/// As Apache quotes: quotation marks and backslashes with a backslash, all that is not printable
/// ASCII as `\xhh`. A client can then neither end a field nor begin a line.
fn quote(value: &[u8], text: &mut String) {
    for &byte in value {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            peer: IpAddr::from([192, 0, 2, 7]),
            at: Duration::from_secs(971_186_136),
            method: method(&Method::GET),
            target: "/a?b=c".into(),
            version: Version::HTTP_3,
            status: StatusCode::OK,
            bytes: 2326,
            referrer: None,
            agent: Some(b"curl/8".to_vec()),
        }
    }

    fn line(entry: &Entry) -> String {
        let mut text = String::new();
        entry.write(&mut text);
        text
    }

    #[test]
    fn the_format_is_that_of_apache() {
        let common = "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET /a?b=c HTTP/3.0\" 200 2326";
        assert_eq!(line(&entry()), format!("{common} \"-\" \"curl/8\"\n"));
    }

    #[test]
    fn a_client_cannot_end_a_field_or_begin_a_line() {
        let agent = b"x\" 200 1\n10.0.0.1 - - \\ \x1b[31m\xff\r".to_vec();
        let text = line(&Entry { agent: Some(agent), bytes: 0, ..entry() });
        assert_eq!(text.matches('\n').count(), 1);
        assert!(
            text.ends_with(" 200 - \"-\" \"x\\\" 200 1\\x0a10.0.0.1 - - \\\\ \\x1b[31m\\xff\\x0d\"\n"),
            "{text}"
        );
    }

    #[test]
    fn what_a_client_made_up_is_cut_off() {
        let made_up = Method::from_bytes(&[b'M'; 5_000]).expect("a token");
        assert_eq!(method(&made_up), "M".repeat(MAX_METHOD_BYTES));
        let uri = format!("/{}", "a".repeat(5_000)).parse().expect("a target");
        assert_eq!(target(&uri).len(), MAX_TARGET_BYTES);
        let agent = http::HeaderValue::from_bytes(&[b'a'; 5_000]).expect("a value");
        let kept = field(&[(USER_AGENT, agent)].into_iter().collect(), &USER_AGENT).expect("it is there");
        assert_eq!(kept.len(), MAX_FIELD_BYTES);
    }

    /// A stream without a reader: each write waits until `0` is dropped.
    #[derive(Debug)]
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The test would not end if a request waited for the log.
    #[test]
    fn a_log_that_is_stuck_loses_lines_and_delays_no_request() {
        let (release, waits) = channel();
        let log = AccessLog::open(Destination::Stream(Box::new(Stuck(waits))));
        let log = log.expect("a thread");
        for _ in 0..QUEUE + BATCH + 10 {
            log.put(entry());
        }
        assert!(log.dropped() >= 10, "{}", log.dropped());
        assert!(log.render().ends_with(&format!("_total {}\n", log.dropped())));
        drop(release);
        log.finish(Duration::from_secs(30));
    }
}
