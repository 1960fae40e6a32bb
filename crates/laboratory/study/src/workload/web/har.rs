//! Reads a page from a HAR file (HTTP Archive 1.2), as saved by developer tools and WebPageTest.
//!
//! Source: J. Odvarko et al., "HTTP Archive (HAR) format", W3C draft of 2012-08-14 (HAR below);
//! fields that begin with an underscore are the browsers' own.
//!
//! **Which size.** The size of an object is its bytes on the network, headers included:
//!
//! 1. `response._transferSize`, if known: Chrome and its relatives count exactly that.
//! 2. Otherwise `response.bodySize` (the compressed body) plus `response.headersSize`, if known.
//! 3. Otherwise the header `Content-Length`, plus `headersSize`.
//! 4. Otherwise `response.content.size` (the unpacked body) less `content.compression`, plus
//!    `headersSize`. It counts as an estimate if the body may have been compressed and the file
//!    does not give the bytes saved.
//! 5. Otherwise `response.headersSize` alone.
//!
//! A redirect without a known size counts 500 bytes, an estimate too: its cost is its round trip.
//!
//! Absent, `null` and negative mean unknown (HAR says -1; browsers have written others).
//!
//! **Which entries.** Those of one page: the one selected, or that of the earliest entry that names
//! a page. Entries that name none belong to it too. Entries that did not cross the network, and
//! incomplete ones, are left out and counted by [`Reason`]. A redirect or a 304 did cross it.
//!
//! **Which order.** By `startedDateTime`, ties as in the file. The document is the earliest answer
//! that is no redirect. The redirects before it lead to it one after the other. A later redirect
//! leads to the later entry that has the address it names.
//!
//! # Deviations
//!
//! - HAR sets `bodySize` to zero both for the cache and for a 304. Here a body that has a size but
//!   was not transferred is from the cache, unless the status is 304. A service worker's answers
//!   have the same form, and count as such.
//! - Firefox gives pushed objects the status 0, as it does to failures. With bytes they are kept.
//!
//! # Limits
//!
//! If the document itself came from the cache, as on a second visit, the page begins with its first
//! transfer, and [`Page::document_skipped`] says so. For HTTP/2, `headersSize` is that of the
//! unpacked headers.

mod json;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use headstart_host::without_mark;

use headstart_sim::workload::page::Object;
use headstart_units::{Bytes, Span};

use json::{Content, Entry, Har, Map, PageEntry, Request as RequestEntry, Response};

/// Largest file accepted. Bodies saved along with a large page stay well below.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// Most entries or pages accepted. No page makes so many requests, and origins fit a `u16`.
pub const MAX_ENTRIES: usize = 10_000;
/// Largest object accepted.
pub const MAX_OBJECT_BYTES: u64 = 1 << 30;

/// Longest excerpt of a title, a host or an invalid value.
const MAX_TEXT: usize = 200;

/// Contents of a HAR file for one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Title of the page, or the document's address; empty if it has neither. One line of printable
    /// text.
    pub title: String,
    /// Objects transferred, document first; at least one, each at least a byte.
    pub objects: Vec<Object>,
    /// Request of each object, in the order of the objects.
    pub requests: Vec<Request>,
    /// Address of each object, in their order; the beginning of a long one.
    pub urls: Vec<String>,
    /// Time from the first request to the browser's event that the document is parsed, if known.
    pub parsed_at: Option<Span>,
    /// Origins, indexed by [`Object::origin`]: scheme, host and port, as in
    /// `https://example.com:443`.
    pub origins: Vec<String>,
    /// Objects whose size is an estimate.
    pub guessed: u32,
    /// True if most objects arrived over HTTP/2 or HTTP/3.
    pub is_multiplexed: bool,
    /// Place of the page in the file, from one, and the number of pages.
    pub place: (usize, usize),
    /// Entries left out.
    pub skipped: BTreeMap<Reason, u32>,
    /// Reason why the document is left out, if it is.
    pub document_skipped: Option<Reason>,
}

/// Circumstances of an object's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Time from the page's first request.
    pub at: Span,
    /// Time until its last byte; zero if unknown.
    pub took: Span,
    /// The kind of object.
    pub kind: Kind,
    /// The object that caused it, an earlier one, if the browser saved that.
    pub initiator: Option<usize>,
}

/// Kind of object, as a browser treats them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Fonts, data, documents in frames and all that is none of the others.
    #[default]
    Other,
    /// A picture.
    Image,
    /// A program.
    Script,
    /// A style sheet.
    Style,
}

/// Reason why an entry is not an object to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reason {
    /// The entry's address holds the content: `data:` and `blob:`.
    #[error("data URL")]
    DataUrl,
    /// Neither HTTP nor any of these: `chrome-extension:`, `about:`, `file:`.
    #[error("not HTTP")]
    OtherScheme,
    /// A bidirectional channel, not an object.
    #[error("WebSocket")]
    WebSocket,
    /// The entry belongs to another page in the file.
    #[error("of another page")]
    OtherPage,
    /// Nothing had to be fetched.
    #[error("from cache")]
    FromCache,
    /// The browser reports an error, or no answer.
    #[error("failed")]
    Failed,
    /// No field gives its size.
    #[error("of unknown size")]
    UnknownSize,
    /// Nothing crossed the network.
    #[error("without bytes")]
    ZeroBytes,
    /// Request, response, date, or an address with a host is missing.
    #[error("without request, response, date or host")]
    Incomplete,
}

/// Reason why a file was refused.
#[derive(Debug)]
pub struct HarError {
    file: Option<PathBuf>,
    problem: Problem,
}

/// An error in a file.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Io(#[source] io::Error),
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error("found more than {} MiB, expected a HAR file of at most that", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The file is not JSON, or cut short.
    #[error("line {line}, column {column}: found no JSON ({message}), expected a HAR file")]
    NotJson {
        /// Line at which parsing stopped, counted from 1.
        line: usize,
        /// Column in that line.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// The file has no such page.
    #[error("--page: found `{found}`, expected {expected}")]
    NoPage {
        /// The page selected.
        found: String,
        /// Pages of the file.
        expected: String,
    },
    /// The file is JSON, but no HAR.
    #[error("{key}: found {found}, expected {expected}")]
    Key {
        /// The path of the key, such as `log.entries[3].response`.
        key: String,
        /// Text found.
        found: String,
        /// Text expected.
        expected: String,
    },
}

impl HarError {
    /// The error.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl From<Problem> for HarError {
    fn from(problem: Problem) -> Self {
        Self { file: None, problem }
    }
}

impl fmt::Display for HarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for HarError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

/// Reads a page of a file: by its id or its number, or the first.
pub fn read(path: &Path, page: Option<&str>) -> Result<Page, HarError> {
    let content = || {
        let mut content = Vec::new();
        // A byte more than allowed shows a file that is too large, whatever its metadata.
        File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
        Ok(content)
    };
    content()
        .map_err(|error| HarError::from(Problem::Io(error)))
        .and_then(|content| parse(&content, page))
        .map_err(|error| HarError { file: Some(path.to_path_buf()), ..error })
}

/// Reads a page of the content of a file.
pub fn parse(content: &[u8], page: Option<&str>) -> Result<Page, HarError> {
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(Problem::TooLarge.into());
    }
    let content = without_mark(content).map_err(|error| HarError::from(Problem::Io(error)))?;
    let mut reader = serde_json::Deserializer::from_slice(content);
    let found = serde_path_to_error::deserialize(&mut reader);
    let found = match found {
        Ok(har) => {
            reader.end().map_err(|error| refusal("", &error))?;
            Ok(har)
        }
        // Of a key that is there twice the last one counts, as in browsers.
        Err(error) if error.inner().to_string().starts_with("duplicate field") => {
            let value: serde_json::Value =
                serde_json::from_slice(content).map_err(|error| refusal("", &error))?;
            serde_path_to_error::deserialize(value)
        }
        Err(error) => Err(error),
    };
    let har: Map<Har> = found.map_err(|error| refusal(&error.path().to_string(), error.inner()))?;
    Ok(page_of(har.0, page)?)
}

/// A message of the parser in our format.
fn refusal(key: &str, error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let message = message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message);
    if !error.is_data() {
        return Problem::NotJson { line, column, message: shortened(message) };
    }
    // "invalid type: null, expected an object": what follows the first colon was found.
    let (found, expected) = match message.rsplit_once(", expected ") {
        Some((found, expected)) => (found.split_once(": ").map_or(found, |(_, found)| found), expected),
        None => (message, "a HAR file"),
    };
    let key = if key == "." { "the file" } else { key };
    Problem::Key { key: shortened(key), found: shortened(found), expected: shortened(expected) }
}

/// One entry, reduced to the fields that are used.
struct CheckedEntry {
    started_at: i64,
    url: String,
    is_redirect: bool,
    /// The absolute address that it redirects to.
    leads_to: Option<String>,
    is_guessed: bool,
    /// True over HTTP/2 or HTTP/3; `None` if the file does not name the version.
    is_multiplexed: Option<bool>,
    took: Option<f64>,
    kind: Kind,
    initiator: Option<String>,
    verdict: Result<(String, Bytes), Reason>,
}

/// Bytes assumed for a redirect of unknown size: a status line and most servers' headers.
const REDIRECT: u64 = 500;

/// The id of the page selected.
fn chosen(pages: &[Map<PageEntry>], wanted: &str) -> Result<Option<String>, Problem> {
    let by_id = pages.iter().position(|page| page.0.id.0.as_deref() == Some(wanted));
    let by_number = || wanted.parse::<usize>().ok().filter(|number| (1..=pages.len()).contains(number));
    let Some(place) = by_id.or_else(|| Some(by_number()? - 1)) else {
        let ids: Vec<&str> = pages.iter().filter_map(|page| page.0.id.0.as_deref()).take(10).collect();
        let expected = match pages.len() {
            0 => "a file that lists its pages".to_owned(),
            1 => format!("1 or {}", ids.join("")),
            count => format!("a number from 1 to {count}, or an id such as {}", ids.join(", ")),
        };
        return Err(Problem::NoPage { found: shortened(wanted), expected: shortened(&expected) });
    };
    Ok(pages[place].0.id.0.clone())
}

fn page_of(har: Har, wanted: Option<&str>) -> Result<Page, Problem> {
    let log = required(har.log, "log", "an object")?;
    let entries = required(log.0.entries, "log.entries", "a list of requests")?.0;
    let count = entries.len();
    let entries: Vec<CompleteEntry> =
        entries.into_iter().enumerate().filter_map(|(index, entry)| complete(index, entry.0)).collect();
    let incomplete = count - entries.len();
    let pages = log.0.pages.map(|pages| pages.0).unwrap_or_default();
    let named = entries.iter().filter_map(|entry| Some((entry.started_at, entry.rest.pageref.0.as_ref()?)));
    let page_name: Option<String> = match wanted {
        Some(wanted) => chosen(&pages, wanted)?,
        None => named.min_by_key(|(at, _)| *at).map(|(_, name)| name.clone()),
    };
    let place = pages.iter().position(|page| page.0.id.0 == page_name).unwrap_or(0);
    let place = (place + 1, pages.len().max(1));

    let mut judged = Vec::with_capacity(entries.len());
    for entry in entries {
        judged.push(check_entry(entry, page_name.as_deref())?);
    }
    judged.sort_by_key(|entry| entry.started_at);
    let is_document = |entry: &CheckedEntry| {
        let elsewhere = [Reason::DataUrl, Reason::OtherScheme, Reason::WebSocket, Reason::OtherPage];
        !entry.is_redirect && !entry.verdict.as_ref().is_err_and(|reason| elsewhere.contains(reason))
    };
    let document_at = judged.iter().position(is_document);
    let document = document_at.map(|place| &judged[place]);
    let document_skipped = document.and_then(|first| first.verdict.as_ref().err().copied());
    let entry = pages.into_iter().find(|page| page_name.is_none() || page.0.id.0 == page_name);
    let (title, timings) = entry.map(|page| (page.0.title.0, page.0.timings)).unwrap_or_default();
    let parsed_at = timings.and_then(|timings| timings.0.on_content_load.0).map(millis);
    let title = title
        .filter(|title| !title.trim().is_empty())
        .or_else(|| document.map(|first| first.url.clone()))
        .unwrap_or_default();

    let mut origins: Vec<String> = Vec::new();
    let mut indices: BTreeMap<String, u16> = BTreeMap::new();
    let mut objects: Vec<Object> = Vec::new();
    let mut requests: Vec<Request> = Vec::new();
    let mut by_url: BTreeMap<&str, usize> = BTreeMap::new();
    let first_at = judged.iter().filter(|entry| entry.verdict.is_ok()).map(|entry| entry.started_at).min();
    let mut skipped = BTreeMap::new();
    if incomplete > 0 {
        skipped.insert(Reason::Incomplete, incomplete as u32);
    }
    let (mut urls, mut guessed, mut known, mut multiplexed) = (vec![], 0, 0, 0);
    for (place, leads) in in_order(&judged, document_at) {
        let entry = &judged[place];
        match &entry.verdict {
            Ok((name, bytes)) => {
                let origin = *indices.entry(name.clone()).or_insert_with_key(|name| {
                    origins.push(name.clone());
                    // There are no more origins than entries, whose number is limited.
                    (origins.len() - 1) as u16
                });
                let since = entry.started_at - first_at.unwrap_or(entry.started_at);
                requests.push(Request {
                    at: millis(since as f64 / 1e3),
                    took: entry.took.map(millis).unwrap_or_default(),
                    kind: entry.kind,
                    initiator: entry
                        .initiator
                        .as_deref()
                        .and_then(|url| by_url.get(without_fragment(url)).copied()),
                });
                by_url.entry(without_fragment(&entry.url)).or_insert(objects.len());
                objects.push(Object { origin, bytes: *bytes, leads });
                urls.push(shortened(&entry.url));
                guessed += u32::from(entry.is_guessed);
                known += usize::from(entry.is_multiplexed.is_some());
                multiplexed += usize::from(entry.is_multiplexed == Some(true));
            }
            Err(reason) => *skipped.entry(*reason).or_insert(0) += 1,
        }
    }
    if objects.is_empty() {
        let counts: Vec<String> = skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let found = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        return Err(problem("log.entries", found, "at least one object that crossed the network"));
    }
    let title = shortened(&title);
    let is_multiplexed = 2 * multiplexed > known;
    Ok(Page {
        title,
        objects,
        requests,
        urls,
        parsed_at,
        origins,
        guessed,
        is_multiplexed,
        place,
        skipped,
        document_skipped,
    })
}

/// The order in which entries are requested: places, each with true if it leads to the next.
fn in_order(judged: &[CheckedEntry], document: Option<usize>) -> Vec<(usize, bool)> {
    let mut order = vec![];
    let is_there = |place: usize| judged[place].verdict.is_ok();
    let head = document.map_or(0, |place| place + 1);
    // Entries that are left out cause no request.
    order.extend((0..head).filter(|place| !is_there(*place)).map(|place| (place, false)));
    let chain: Vec<usize> =
        (0..head).filter(|place| is_there(*place) && judged[*place].is_redirect).collect();
    order.extend(chain.iter().map(|place| (*place, true)));
    let others = (0..head).filter(|place| is_there(*place) && !judged[*place].is_redirect);
    // The document; earlier entries that belong elsewhere are left out.
    order.extend(others.map(|place| (place, false)));

    let mut by_url: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (place, entry) in judged.iter().enumerate().skip(head).filter(|(place, _)| is_there(*place)) {
        by_url.entry(without_fragment(&entry.url)).or_default().push_back(place);
    }
    let mut is_taken = vec![false; judged.len()];
    for place in head..judged.len() {
        let mut next = Some(place).filter(|place| !is_taken[*place]);
        while let Some(place) = next {
            is_taken[place] = true;
            let target = judged[place].leads_to.as_deref().filter(|_| is_there(place));
            next = target.and_then(|url| {
                let places = by_url.get_mut(without_fragment(url))?;
                while let Some(found) = places.pop_front() {
                    if found > place && !is_taken[found] {
                        return Some(found);
                    }
                }
                None
            });
            order.push((place, next.is_some()));
        }
    }
    order
}

fn without_fragment(url: &str) -> &str {
    url.split('#').next().unwrap_or(url)
}

/// An entry with all that a page needs of it.
struct CompleteEntry {
    /// Place in the file, from zero.
    index: usize,
    started_at: i64,
    request: RequestEntry,
    response: Response,
    url: String,
    scheme: String,
    /// Empty for addresses that are not HTTP's.
    origin: String,
    rest: Entry,
}

/// The entry, unless something is missing: tools leave out what they did not see.
fn complete(index: usize, mut entry: Entry) -> Option<CompleteEntry> {
    let started_at = microseconds(entry.started_date_time.as_deref()?)?;
    let (Map(mut request), Map(response)) = (entry.request.take()?, entry.response.take()?);
    let url = request.url.take()?;
    let scheme = url.split_once(':')?.0.to_ascii_lowercase();
    let is_http = matches!(scheme.as_str(), "http" | "https");
    let origin = if is_http { origin(&scheme, &url)? } else { String::new() };
    let is_complete = !scheme.is_empty();
    is_complete.then_some(CompleteEntry {
        index,
        started_at,
        request,
        response,
        url,
        scheme,
        origin,
        rest: entry,
    })
}

/// Validates an entry completely, also one that is then left out.
fn check_entry(entry: CompleteEntry, page: Option<&str>) -> Result<CheckedEntry, Problem> {
    let CompleteEntry { index, started_at, request, response, url, scheme, origin, rest: entry } = entry;
    let key = |rest: &str| format!("log.entries[{index}].{rest}");
    let is_http = !origin.is_empty();

    let status = response.status.0.unwrap_or(0);
    let content = response.content.as_ref().map(|content| content.0.clone()).unwrap_or_default();
    let has_body = content.size.0.is_some_and(|size| size > 0);
    let body_stayed = response.transfer_size.0.or(response.body_size.0) == Some(0);
    let is_redirect = (300..400).contains(&status) && status != 304;
    // The browser's own redirect to HTTPS, of a host that had requested it earlier (HSTS).
    let is_internal = is_redirect && response.header("non-authoritative-reason").is_some();
    let has_no_body = status == 304 || request.method.0.as_deref() == Some("HEAD");
    let (bytes, is_guessed) = match wire_bytes(&response, &content, has_no_body) {
        (None | Some(0), _) if is_redirect => (Some(REDIRECT), true),
        weighed => weighed,
    };
    let location = response.redirect_url.0.as_deref().filter(|url| !url.is_empty());
    let location = location.or_else(|| response.header("location")).filter(|_| is_redirect);
    let leads_to = location.and_then(|location| absolute(&scheme, &url, location));
    let version = response.http_version.0.as_deref().filter(|version| !version.is_empty());
    let version = version.or(request.http_version.0.as_deref().filter(|version| !version.is_empty()));
    let is_multiplexed = version.map(is_multiplexed);
    let verdict = if matches!(scheme.as_str(), "data" | "blob") {
        Err(Reason::DataUrl)
    } else if matches!(scheme.as_str(), "ws" | "wss")
        || status == 101
        || entry.resource_type.0.as_deref() == Some("websocket")
    {
        Err(Reason::WebSocket)
    } else if !is_http {
        Err(Reason::OtherScheme)
    } else if page.is_some() && entry.pageref.0.is_some() && entry.pageref.0.as_deref() != page {
        Err(Reason::OtherPage)
    } else if response.error.0 {
        Err(Reason::Failed)
    } else if is_internal || entry.from_cache.0 || (status > 0 && status != 304 && has_body && body_stayed) {
        Err(Reason::FromCache)
    } else {
        match bytes {
            None | Some(0) if status == 0 => Err(Reason::Failed),
            None => Err(Reason::UnknownSize),
            Some(0) => Err(Reason::ZeroBytes),
            Some(bytes) if bytes > MAX_OBJECT_BYTES => {
                let expected = format!("at most {MAX_OBJECT_BYTES} bytes");
                return Err(problem(&key("response"), format!("an object of {bytes} bytes"), &expected));
            }
            Some(bytes) => Ok((origin, Bytes::new(bytes))),
        }
    };
    let kind = kind(entry.resource_type.0.as_deref(), content.mime_type.0.as_deref());
    Ok(CheckedEntry {
        started_at,
        url,
        is_redirect,
        leads_to,
        is_guessed,
        is_multiplexed,
        took: entry.time.0,
        kind,
        initiator: entry.initiator.0,
        verdict,
    })
}

/// Chrome's word for it, or the content's type.
fn kind(resource: Option<&str>, content: Option<&str>) -> Kind {
    let content = content.unwrap_or_default();
    match resource {
        Some("image") => Kind::Image,
        Some("script") => Kind::Script,
        Some("stylesheet") => Kind::Style,
        Some(_) => Kind::Other,
        None if content.starts_with("image/") => Kind::Image,
        None if content.contains("javascript") => Kind::Script,
        None if content.starts_with("text/css") => Kind::Style,
        None => Kind::Other,
    }
}

/// Longest time that is taken from a file: an hour.
const LONGEST_MS: f64 = 3.6e6;

fn millis(time: f64) -> Span {
    Span::from_micros((time.min(LONGEST_MS) * 1e3) as u64)
}

/// See "Which size" above; the second value is true if that is an estimate.
fn wire_bytes(response: &Response, content: &Content, has_no_body: bool) -> (Option<u64>, bool) {
    if let Some(bytes) = response.transfer_size.0 {
        return (Some(bytes), false);
    }
    let is_chunked = response.header("transfer-encoding").is_some();
    let length = response.header("content-length").filter(|_| !has_no_body && !is_chunked);
    let sent = response.body_size.0.or_else(|| length?.trim().parse().ok());
    let unpacked = content.size.0.map(|size| size - content.compression.0.unwrap_or(0).min(size));
    let may_be_packed = match response.header("content-encoding") {
        Some(encoding) => !encoding.eq_ignore_ascii_case("identity"),
        // Without headers it is unknown.
        None => response.headers.as_ref().is_none_or(|headers| headers.0.is_empty()),
    };
    let is_guessed = sent.is_none()
        && unpacked.is_some_and(|bytes| bytes > 0)
        && content.compression.0.is_none()
        && may_be_packed;
    let bytes = match (sent.or(unpacked), response.headers_size.0) {
        (None, headers) => headers,
        (Some(body), headers) => Some(body.saturating_add(headers.unwrap_or(0))),
    };
    (bytes, is_guessed)
}

/// True for versions that multiplex: `HTTP/2.0`, `h2`, `h3-29`, `http/2+quic/46`.
fn is_multiplexed(version: &str) -> bool {
    let version = version.to_ascii_lowercase();
    let begins = ["h2", "h3", "http/2", "http/3", "spdy"].iter().any(|begin| version.starts_with(begin));
    begins || version.contains("quic")
}

/// Target of a redirect from `url`: an address, one without its scheme or a path; `None` if it is
/// relative to a folder.
fn absolute(scheme: &str, url: &str, location: &str) -> Option<String> {
    if location.contains("://") {
        Some(location.to_owned())
    } else if location.starts_with("//") {
        Some(format!("{scheme}:{location}"))
    } else if location.starts_with('/') {
        let rest = url.get(scheme.len() + 3..)?;
        let host = rest.split(['/', '?', '#']).next()?;
        Some(format!("{}://{host}{location}", url.get(..scheme.len())?))
    } else {
        None
    }
}

/// Scheme, host and port of a URL that begins with `scheme`; `None` without host or valid port.
fn origin(scheme: &str, url: &str) -> Option<String> {
    let rest = url.get(scheme.len()..)?.strip_prefix("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    // The colons inside the brackets of an IPv6 address are not the port's.
    let end_of_host = host_and_port.find(']').unwrap_or(0);
    let (host, port) = match host_and_port[end_of_host..].find(':') {
        Some(place) => {
            let (host, port) = host_and_port.split_at(end_of_host + place);
            (host, &port[1..])
        }
        None => (host_and_port, ""),
    };
    let is_plain = !host.chars().any(|c| c.is_control() || c.is_whitespace());
    if host.is_empty() || host.len() > MAX_TEXT || !is_plain {
        return None;
    }
    let port: u16 = match port {
        "" if scheme == "https" => 443,
        "" => 80,
        digits if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    Some(format!("{scheme}://{}:{port}", host.to_lowercase()))
}

/// Microseconds from 1970 to an ISO 8601 date-time: `2017-06-28T17:41:55.090+09:00`. One without an
/// offset, as scripts write it, counts as UTC: only differences matter.
fn microseconds(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize, most: i64| -> Option<i64> {
        let digits = text.get(from..to).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok().filter(|value| *value <= most)
    };
    let is_at =
        |place: usize, marks: &[u8]| text.as_bytes().get(place).is_some_and(|byte| marks.contains(byte));
    let (year, month, day) = (number(0, 4, 9999)?, number(5, 7, 12)?, number(8, 10, 31)?);
    // 60: a leap second.
    let (hour, minute, second) = (number(11, 13, 23)?, number(14, 16, 59)?, number(17, 19, 60)?);
    let marked = is_at(4, b"-") && is_at(7, b"-") && is_at(10, b"Tt ") && is_at(13, b":") && is_at(16, b":");
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last_day = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if !marked || month == 0 || day == 0 || day > last_day {
        return None;
    }
    let mut place = 19;
    let mut fraction = 0;
    if is_at(place, b".,") {
        let digits = text.as_bytes()[place + 1..].iter().take_while(|byte| byte.is_ascii_digit());
        let count = digits.clone().count();
        // Digits beyond microseconds do not affect the order.
        fraction = digits.chain(b"000000").take(6).fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0'));
        place += 1 + count;
        if count == 0 {
            return None;
        }
    }
    let offset_minutes = match text.get(place..)? {
        "Z" | "z" | "" => 0,
        zone => {
            let minute_at = if is_at(place + 3, b":") { place + 4 } else { place + 3 };
            let minutes = number(place + 1, place + 3, 23)? * 60 + number(minute_at, minute_at + 2, 59)?;
            let is_whole = text.len() == minute_at + 2;
            match zone.as_bytes().first() {
                Some(b'+') if is_whole => minutes,
                Some(b'-') if is_whole => -minutes,
                _ => return None,
            }
        }
    };
    // Years begin in March here, so that a leap day is the last of its year.
    let years = if month > 2 { year } else { year - 1 };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    const MARCH_OF_YEAR_ZERO: i64 = 719_468;
    let days = years * 365 + leap_days + day_of_year - MARCH_OF_YEAR_ZERO;
    let seconds = days * 86_400 + hour * 3_600 + (minute - offset_minutes) * 60 + second;
    Some(seconds * 1_000_000 + fraction)
}

fn required<T>(value: Option<T>, key: &str, expected: &str) -> Result<T, Problem> {
    value.ok_or_else(|| problem(key, "nothing".to_owned(), expected))
}

fn problem(key: &str, found: String, expected: &str) -> Problem {
    Problem::Key { key: key.to_owned(), found, expected: expected.to_owned() }
}

/// One printable line of bounded length, safe to print on a terminal.
fn shortened(text: &str) -> String {
    let mut line: String =
        text.chars().take(MAX_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests;
