//! Reads a page from a HAR file (HTTP Archive 1.2), as browsers' developer tools and WebPageTest save it.
//!
//! Source: J. Odvarko et al., "HTTP Archive (HAR) format", W3C draft of 2012-08-14 (HAR below); fields that begin with
//! an underscore are the browsers' own.
//!
//! **Which size.** An object weighs what crossed the network, headers included:
//!
//! 1. `response._transferSize`, if known: Chrome and its relatives count exactly that.
//! 2. Otherwise `response.bodySize` (the compressed body) plus `response.headersSize`, if that is known.
//! 3. Otherwise `response.content.size` (the unpacked body) less `content.compression`, plus `headersSize`: too large for
//!    a compressed body whose saving is not stated.
//! 4. Otherwise `response.headersSize` alone.
//!
//! Absent, `null` and negative mean unknown (HAR says -1; browsers have written others).
//!
//! **Which entries.** Those of one page: the one of the earliest entry that names a page. Entries that name none belong
//! to it too. What did not cross the network is left out and counted by [`Reason`]. A redirect or a 304 did cross it.
//!
//! **Which order.** By `startedDateTime`, ties as in the file. The document, which is the earliest answer that is not a
//! redirect, comes first.
//!
//! # Deviations
//!
//! - HAR sets `bodySize` to zero both for the cache and for a 304. Here a body that has a size but did not travel is
//!   from the cache, unless the status is 304. A service worker's answers look the same, and count as such.
//! - Firefox gives pushed objects the status 0, as it does to failures. With bytes they are kept.
//!
//! # Limits
//!
//! If the document itself came from the cache, as on a second visit, the page begins with its first transfer, and
//! [`Page::document_skipped`] says so. For HTTP/2, `headersSize` is that of the unpacked headers.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use headstart_sim::workload::page::Object;
use headstart_units::Bytes;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Files larger than this are refused. Bodies saved along with a large page stay well below.
pub const MOST_FILE_BYTES: u64 = 256 << 20;
/// More entries or pages than this are refused. No page makes so many requests, and origins fit a `u16`.
pub const MOST_ENTRIES: usize = 10_000;
/// An object larger than this is refused.
pub const MOST_OBJECT_BYTES: u64 = 1 << 30;

/// How much of a title, a host or a strange value is kept.
const MOST_TEXT: usize = 200;

/// What a HAR file says about one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its title, or the document's address; empty if it has neither. One line of printable text.
    pub title: String,
    /// What was transferred, document first; at least one, each at least a byte.
    pub objects: Vec<Object>,
    /// What [`Object::origin`] counts: scheme, host and port, as in `https://example.com:443`.
    pub origins: Vec<String>,
    /// Entries left out.
    pub skipped: BTreeMap<Reason, u32>,
    /// Why the document is among them, if it is.
    pub document_skipped: Option<Reason>,
}

/// Why an entry is not an object to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its address holds the content: `data:` and `blob:`.
    DataUrl,
    /// Neither HTTP nor any of these: `chrome-extension:`, `about:`, `file:`.
    OtherScheme,
    /// A conversation, not an object.
    WebSocket,
    /// It belongs to another page in the file.
    OtherPage,
    /// Nothing had to be fetched.
    FromCache,
    /// The browser reports an error, or no answer.
    Failed,
    /// No field tells its size.
    UnknownSize,
    /// Nothing crossed the network.
    ZeroBytes,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DataUrl => "data URL",
            Self::OtherScheme => "not HTTP",
            Self::WebSocket => "WebSocket",
            Self::OtherPage => "of another page",
            Self::FromCache => "from cache",
            Self::Failed => "failed",
            Self::UnknownSize => "of unknown size",
            Self::ZeroBytes => "without bytes",
        })
    }
}

/// Why a file was refused.
#[derive(Debug)]
pub struct HarError {
    file: Option<PathBuf>,
    problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum Problem {
    /// It cannot be read.
    Io(io::Error),
    /// It is larger than [`MOST_FILE_BYTES`].
    TooLarge,
    /// It is not JSON, or cut short.
    NotJson {
        /// Where reading stopped, counted from 1.
        line: usize,
        /// Where in that line.
        column: usize,
        /// What the parser said.
        message: String,
    },
    /// It is JSON, but no HAR.
    Key {
        /// The path of the key, such as `log.entries[3].response`.
        key: String,
        /// What is there.
        found: String,
        /// What should be.
        expected: String,
    },
}

impl HarError {
    /// What is wrong.
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
        match &self.problem {
            Problem::Io(error) => write!(f, "cannot be read: {error}"),
            Problem::TooLarge => {
                write!(
                    f,
                    "found more than {} MiB, expected a HAR file of at most that",
                    MOST_FILE_BYTES >> 20
                )
            }
            Problem::NotJson { line, column, message } => {
                write!(f, "line {line}, column {column}: found no JSON ({message}), expected a HAR file")
            }
            Problem::Key { key, found, expected } => write!(f, "{key}: found {found}, expected {expected}"),
        }
    }
}

impl std::error::Error for HarError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Page, HarError> {
    let content = || {
        let mut content = Vec::new();
        // One byte more than allowed tells a file that is too large, whatever its metadata say.
        File::open(path)?.take(MOST_FILE_BYTES + 1).read_to_end(&mut content)?;
        Ok(content)
    };
    content()
        .map_err(|error| HarError::from(Problem::Io(error)))
        .and_then(|content| parse(&content))
        .map_err(|error| HarError { file: Some(path.to_path_buf()), ..error })
}

/// Reads the content of a file.
pub fn parse(content: &[u8]) -> Result<Page, HarError> {
    if content.len() as u64 > MOST_FILE_BYTES {
        return Err(Problem::TooLarge.into());
    }
    // Some tools begin their files with a byte-order mark, which JSON does not know.
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    let mut reader = serde_json::Deserializer::from_slice(content);
    let har: Map<Har> = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| refusal(&error.path().to_string(), error.inner()))?;
    reader.end().map_err(|error| refusal("", &error))?;
    Ok(page(har.0)?)
}

/// A message of the parser in our words.
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

/// One entry, as far as it matters.
struct Judged {
    started_at: i64,
    url: String,
    is_redirect: bool,
    verdict: Result<(String, Bytes), Reason>,
}

fn page(har: Har) -> Result<Page, Problem> {
    let log = required(har.log, "log", "an object")?;
    let entries = required(log.0.entries, "log.entries", "a list of requests")?.0;
    let times = entries.iter().enumerate().map(|(index, entry)| started_at(index, &entry.0));
    let times: Vec<i64> = times.collect::<Result<_, _>>()?;
    let named = entries.iter().zip(&times).filter_map(|(entry, at)| Some((at, entry.0.pageref.0.as_ref()?)));
    let page_name: Option<String> = named.min_by_key(|(at, _)| **at).map(|(_, name)| name.clone());

    let mut judged = Vec::with_capacity(entries.len());
    for (index, (Map(entry), started_at)) in entries.into_iter().zip(times).enumerate() {
        judged.push(judge(index, entry, started_at, page_name.as_deref())?);
    }
    judged.sort_by_key(|entry| entry.started_at);
    let is_document = |entry: &Judged| {
        let elsewhere = [Reason::DataUrl, Reason::OtherScheme, Reason::WebSocket, Reason::OtherPage];
        !entry.is_redirect && !entry.verdict.as_ref().is_err_and(|reason| elsewhere.contains(reason))
    };
    if let Some(place) = judged.iter().position(is_document) {
        judged[..=place].rotate_right(1);
    }
    let document = judged.first().filter(|first| is_document(first));
    let document_skipped = document.and_then(|first| first.verdict.as_ref().err().copied());
    let pages = log.0.pages.map(|pages| pages.0).unwrap_or_default();
    let title = pages
        .into_iter()
        .find(|page| page_name.is_none() || page.0.id.0 == page_name)
        .and_then(|page| page.0.title.0)
        .filter(|title| !title.trim().is_empty())
        .or_else(|| document.map(|first| first.url.clone()))
        .unwrap_or_default();

    let mut origins: Vec<String> = Vec::new();
    let mut indices: BTreeMap<String, u16> = BTreeMap::new();
    let mut objects = Vec::new();
    let mut skipped = BTreeMap::new();
    for entry in judged {
        match entry.verdict {
            Ok((name, bytes)) => {
                let origin = *indices.entry(name).or_insert_with_key(|name| {
                    origins.push(name.clone());
                    // There are no more origins than entries, whose number is limited.
                    (origins.len() - 1) as u16
                });
                objects.push(Object { origin, bytes });
            }
            Err(reason) => *skipped.entry(reason).or_insert(0) += 1,
        }
    }
    if objects.is_empty() {
        let counts: Vec<String> = skipped.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        let found = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        return Err(problem("log.entries", found, "at least one object that crossed the network"));
    }
    Ok(Page { title: shortened(&title), objects, origins, skipped, document_skipped })
}

/// Checks an entry whole, also one that is then left out: a file is a HAR or it is none.
fn judge(index: usize, entry: Entry, started_at: i64, page: Option<&str>) -> Result<Judged, Problem> {
    let key = |rest: &str| format!("log.entries[{index}].{rest}");
    let Map(request) = required(entry.request, &key("request"), "an object")?;
    let Map(response) = required(entry.response, &key("response"), "an object")?;
    let url = required(request.url, &key("request.url"), "a URL")?;
    let scheme = url.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase()).unwrap_or_default();
    let is_http = matches!(scheme.as_str(), "http" | "https");
    let origin = if is_http { origin(&scheme, &url) } else { Some(String::new()) };
    let (false, Some(origin)) = (scheme.is_empty(), origin) else {
        return Err(problem(&key("request.url"), quoted(&url), "a URL with a scheme and a host"));
    };

    let status = response.status.0.unwrap_or(0);
    let content = response.content.as_ref().map(|content| content.0).unwrap_or_default();
    let has_body = content.size.0.is_some_and(|size| size > 0);
    let body_stayed = response.transfer_size.0.or(response.body_size.0) == Some(0);
    let bytes = wire_bytes(&response, &content);
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
    } else if entry.from_cache.0 || (status > 0 && status != 304 && has_body && body_stayed) {
        Err(Reason::FromCache)
    } else {
        match bytes {
            None | Some(0) if status == 0 => Err(Reason::Failed),
            None => Err(Reason::UnknownSize),
            Some(0) => Err(Reason::ZeroBytes),
            Some(bytes) if bytes > MOST_OBJECT_BYTES => {
                let expected = format!("at most {MOST_OBJECT_BYTES} bytes");
                return Err(problem(&key("response"), format!("an object of {bytes} bytes"), &expected));
            }
            Some(bytes) => Ok((origin, Bytes::new(bytes))),
        }
    };
    let is_redirect = (300..400).contains(&status) && status != 304;
    Ok(Judged { started_at, url, is_redirect, verdict })
}

/// See "Which size" above.
fn wire_bytes(response: &Response, content: &Content) -> Option<u64> {
    if let Some(bytes) = response.transfer_size.0 {
        return Some(bytes);
    }
    let unpacked = content.size.0.map(|size| size - content.compression.0.unwrap_or(0).min(size));
    match (response.body_size.0.or(unpacked), response.headers_size.0) {
        (None, headers) => headers,
        (Some(body), headers) => Some(body.saturating_add(headers.unwrap_or(0))),
    }
}

/// Scheme, host and port of a URL that begins with `scheme`; `None` without a host or with a strange port.
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
    if host.is_empty() || host.len() > MOST_TEXT || !is_plain {
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

fn started_at(index: usize, entry: &Entry) -> Result<i64, Problem> {
    let key = format!("log.entries[{index}].startedDateTime");
    let expected = "a date and time such as \"2017-02-11T09:36:22.868Z\"";
    let text =
        entry.started_date_time.as_deref().ok_or_else(|| problem(&key, "nothing".to_owned(), expected))?;
    microseconds(text).ok_or_else(|| problem(&key, quoted(text), expected))
}

/// Microseconds from 1970 to an ISO 8601 date-time with offset: `2017-06-28T17:41:55.090+09:00`.
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
        // What is finer than a microsecond orders nothing.
        fraction = digits.chain(b"000000").take(6).fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0'));
        place += 1 + count;
        if count == 0 {
            return None;
        }
    }
    let offset_minutes = match text.get(place..)? {
        "Z" | "z" => 0,
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

/// A string of the file, for a message.
fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// One printable line of bounded length: what comes from the file goes to a terminal.
fn shortened(text: &str) -> String {
    let mut line: String =
        text.chars().take(MOST_TEXT).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MOST_TEXT).is_some() {
        line.push_str("...");
    }
    line
}

#[derive(Deserialize)]
struct Har {
    log: Option<Map<Log>>,
}

#[derive(Deserialize)]
struct Log {
    pages: Option<List<Map<PageEntry>>>,
    entries: Option<List<Map<Entry>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PageEntry {
    id: Text,
    title: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    pageref: Text,
    started_date_time: Option<String>,
    request: Option<Map<Request>>,
    response: Option<Map<Response>>,
    #[serde(rename = "_fromCache")]
    from_cache: Flag,
    #[serde(rename = "_resourceType")]
    resource_type: Text,
}

#[derive(Deserialize)]
struct Request {
    url: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Response {
    status: Count,
    headers_size: Count,
    body_size: Count,
    content: Option<Map<Content>>,
    #[serde(rename = "_transferSize")]
    transfer_size: Count,
    #[serde(rename = "_error")]
    error: Flag,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Content {
    size: Count,
    compression: Count,
}

/// A JSON object. What derives `Deserialize` would take a list for one, field by field.
struct Map<T>(T);

/// A JSON list of bounded length.
struct List<T>(Vec<T>);

/// A number that is not negative; `None` if it is, or is `null` or absent.
#[derive(Clone, Copy, Default)]
struct Count(Option<u64>);

/// A string; `None` for anything else, since nothing depends on it.
#[derive(Default)]
struct Text(Option<String>);

/// Whether something is said: not absent, `null`, `false`, zero or empty.
#[derive(Clone, Copy, Default)]
struct Flag(bool);

/// Reads a `T` through `impl Visitor for Reading<T>`.
struct Reading<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reading::<Self>(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reading<Map<T>> {
    type Value = Map<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Map)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Reading::<Self>(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reading<List<T>> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = list.next_element()? {
            if members.len() == MOST_ENTRIES {
                return Err(A::Error::custom(format!(
                    "more than {MOST_ENTRIES} members, expected at most that many"
                )));
            }
            members.push(member);
        }
        Ok(List(members))
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading::<Self>(PhantomData))
    }
}

impl Visitor<'_> for Reading<Count> {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Count, E> {
        Ok(Count(Some(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(value).ok()))
    }

    /// Numbers with a point or an exponent, and those beyond 64 bits.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Count, E> {
        if value < 0.0 {
            Ok(Count(None))
        } else if value.fract() == 0.0 {
            // The conversion saturates; the limit on sizes answers that.
            Ok(Count(Some(value as u64)))
        } else {
            Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
        }
    }

    fn visit_unit<E>(self) -> Result<Count, E> {
        Ok(Count(None))
    }
}

/// What JSON may hold, reduced to whether it says something and to the string it is.
macro_rules! visit_anything {
    ($reading:ty, $value:ident, $from_string:expr, $from_flag:expr) => {
        impl<'de> Deserialize<'de> for $value {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Reading::<Self>(PhantomData))
            }
        }

        impl<'de> Visitor<'de> for $reading {
            type Value = $value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_str<E>(self, text: &str) -> Result<$value, E> {
                Ok($from_string(text))
            }

            fn visit_bool<E>(self, value: bool) -> Result<$value, E> {
                Ok($from_flag(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<$value, E> {
                Ok($from_flag(value != 0))
            }

            fn visit_i64<E>(self, value: i64) -> Result<$value, E> {
                Ok($from_flag(value != 0))
            }

            fn visit_f64<E>(self, value: f64) -> Result<$value, E> {
                Ok($from_flag(value != 0.0))
            }

            fn visit_unit<E>(self) -> Result<$value, E> {
                Ok($from_flag(false))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<$value, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok($from_flag(true))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok($from_flag(true))
            }
        }
    };
}

visit_anything!(Reading<Text>, Text, |text: &str| Text(Some(text.to_owned())), |_| Text(None));
visit_anything!(Reading<Flag>, Flag, |text: &str| Flag(!text.is_empty()), Flag);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// An entry as Chrome writes it, `at` milliseconds after the document.
    fn chrome(at: u32, url: &str, transferred: i64) -> Value {
        json!({
            "startedDateTime": format!("2024-05-06T07:08:{:02}.{:03}Z", at / 1000, at % 1000),
            "request": { "method": "GET", "url": url, "headersSize": -1, "bodySize": 0 },
            "response": {
                "status": 200, "headersSize": -1, "bodySize": -1, "_transferSize": transferred, "_error": null,
                "content": { "size": 50_000, "mimeType": "text/html", "text": "<p>" }
            },
            "cache": {}, "time": 12.5, "pageref": "page_1"
        })
    }

    fn har(entries: &[Value]) -> Value {
        json!({ "log": {
            "version": "1.2", "creator": { "name": "test" },
            "pages": [{ "id": "page_1", "title": "A page" }, { "id": "page_2", "title": "Another" }],
            "entries": entries
        }})
    }

    fn parsed(entries: &[Value]) -> Page {
        parse(har(entries).to_string().as_bytes()).expect("a HAR")
    }

    fn refused(value: &Value) -> String {
        parse(value.to_string().as_bytes()).expect_err("no HAR").to_string()
    }

    fn sizes(page: &Page) -> Vec<u64> {
        page.objects.iter().map(|object| object.bytes.get()).collect()
    }

    /// The first entry's response with the given fields instead of its own sizes.
    fn size_of(fields: Value) -> Result<u64, Reason> {
        let mut entry = chrome(0, "https://a.example/", 0);
        let response = entry["response"].as_object_mut().expect("an object");
        for name in ["headersSize", "bodySize", "_transferSize", "content"] {
            response.remove(name);
        }
        response.extend(fields.as_object().expect("an object").clone());
        let page = parsed(&[chrome(1, "https://a.example/other", 1), entry]);
        match page.skipped.keys().next() {
            Some(reason) => Err(*reason),
            None => Ok(sizes(&page)[0]),
        }
    }

    #[test]
    fn objects_come_in_the_order_of_their_requests_with_their_origins() {
        let page = parsed(&[
            chrome(30, "https://cdn.example/late.js", 300),
            chrome(0, "https://Www.Example/", 1000),
            chrome(10, "https://user@cdn.example:443/early.css?x#y", 100),
            chrome(10, "http://www.example/tie", 200),
        ]);
        assert_eq!(page.title, "A page");
        assert_eq!(sizes(&page), [1000, 100, 200, 300]);
        assert_eq!(
            page.origins,
            ["https://www.example:443", "https://cdn.example:443", "http://www.example:80"]
        );
        assert_eq!(page.objects.iter().map(|object| object.origin).collect::<Vec<_>>(), [0, 1, 2, 1]);
        assert!(page.skipped.is_empty() && page.document_skipped.is_none());
    }

    #[test]
    fn the_document_comes_before_the_redirect_that_led_to_it() {
        let mut redirect = chrome(0, "http://example/", 150);
        redirect["response"]["status"] = json!(301);
        let page =
            parsed(&[redirect, chrome(5, "https://example/", 5000), chrome(9, "https://example/a", 7)]);
        assert_eq!(sizes(&page), [5000, 150, 7]);
    }

    #[rustfmt::skip]
    #[test]
    fn an_object_weighs_what_crossed_the_network() {
        for (fields, expected, reason) in [
            (json!({"_transferSize": 10, "bodySize": 700, "headersSize": 70}), Ok(10), "Chrome counts all of it"),
            (json!({"bodySize": 700, "headersSize": 70, "content": {"size": 9000}}), Ok(770), "Firefox, WebPageTest"),
            (json!({"bodySize": 700, "headersSize": -1}), Ok(700), "unknown headers count nothing"),
            (json!({"_transferSize": -1, "bodySize": 700.0, "headersSize": null}), Ok(700), "-1, null: unknown"),
            (json!({"bodySize": -370, "headersSize": 70, "content": {"size": 900}}), Ok(970), "unpacked, as a last resort"),
            (json!({"bodySize": -1, "content": {"size": 900, "compression": 600}}), Ok(300), "less what packing saved"),
            (json!({"bodySize": -1, "content": {"size": 9, "compression": 600}}), Err(Reason::ZeroBytes), "never below zero"),
            (json!({"headersSize": 70, "bodySize": -1}), Ok(70), "at least its headers"),
            (json!({"status": 304, "headersSize": 70, "bodySize": 0, "content": {"size": 900}}), Ok(70), "a 304 is asked for"),
            (json!({"status": 0, "bodySize": 700}), Ok(700), "Firefox's pushed objects"),
            (json!({"status": 0, "bodySize": -1}), Err(Reason::Failed), "no answer"),
            (json!({"_transferSize": 10, "_error": "net::ERR_FAILED"}), Err(Reason::Failed), "an error"),
            (json!({"_transferSize": 0, "content": {"size": 900}}), Err(Reason::FromCache), "Chrome's cache"),
            (json!({"bodySize": 0, "headersSize": 70, "content": {"size": 900}}), Err(Reason::FromCache), "HAR's cache"),
            (json!({"_transferSize": 0, "content": {"size": 0}}), Err(Reason::ZeroBytes), "nothing at all"),
            (json!({}), Err(Reason::UnknownSize), "nothing is said"),
        ] {
            assert_eq!(size_of(fields), expected, "{reason}");
        }
    }

    #[test]
    fn what_did_not_cross_the_network_is_counted_by_reason() {
        let mut from_disk = chrome(1, "https://example/b", 77);
        from_disk["_fromCache"] = json!("disk");
        let mut socket = chrome(2, "https://example/c", 77);
        socket["_resourceType"] = json!("websocket");
        let mut other = chrome(3, "https://other.example/", 77);
        other["pageref"] = json!("page_2");
        let page = parsed(&[
            chrome(0, "https://example/", 9),
            chrome(1, "data:image/png;base64,AAAA", 0),
            chrome(1, "blob:https://example/1", 0),
            chrome(1, "WSS://example/live", 12),
            chrome(1, "chrome-extension://abc/x.js", 12),
            from_disk,
            socket,
            other,
        ]);
        let counts: Vec<_> = page.skipped.iter().map(|(reason, count)| (*reason, *count)).collect();
        assert_eq!(
            counts,
            [
                (Reason::DataUrl, 2),
                (Reason::OtherScheme, 1),
                (Reason::WebSocket, 2),
                (Reason::OtherPage, 1),
                (Reason::FromCache, 1)
            ]
        );
        assert_eq!((sizes(&page), page.origins.len()), (vec![9], 1));
    }

    #[test]
    fn a_document_from_the_cache_is_told() {
        let page = parsed(&[chrome(0, "https://example/", 0), chrome(5, "https://example/a", 7)]);
        assert_eq!((sizes(&page), page.document_skipped), (vec![7], Some(Reason::FromCache)));
    }

    #[test]
    fn a_page_without_a_title_has_its_address() {
        let entry = chrome(0, "https://example/\u{1b}[2J", 7);
        let value = json!({ "log": { "entries": [entry] } });
        let page = parse(value.to_string().as_bytes()).expect("pages are optional");
        assert_eq!(page.title, "https://example/ [2J", "no control characters on a terminal");
        assert_eq!(shortened("a\u{1b}[2J\nb"), "a [2J b");
        assert_eq!(shortened(&"x".repeat(201)).len(), 203);
    }

    #[test]
    fn a_refusal_names_the_key_what_was_found_and_what_was_expected() {
        let good = har(&[chrome(0, "https://example/", 9), chrome(1, "https://example/a", 9)]);
        let with = |pointer: &str, value: Value| {
            let mut har = good.clone();
            *har.pointer_mut(pointer).expect("a key") = value;
            refused(&har)
        };
        let date = r#"expected a date and time such as "2017-02-11T09:36:22.868Z""#;
        for (found, expected) in [
            (with("", json!([])), "the file: found sequence, expected an object".to_owned()),
            (with("", json!({ "a": 1 })), "log: found nothing, expected an object".to_owned()),
            (with("/log", json!("x")), r#"log: found string "x", expected an object"#.to_owned()),
            (with("/log/entries", json!({})), "log.entries: found map, expected a list".to_owned()),
            (with("/log/entries", Value::Null), "log.entries: found nothing, expected a list of requests".to_owned()),
            (
                with("/log/entries", json!([])),
                "log.entries: found none, expected at least one object that crossed the network".to_owned(),
            ),
            (
                with("/log/entries/1/response", json!(3)),
                "log.entries[1].response: found integer `3`, expected an object".to_owned(),
            ),
            (
                with("/log/entries/1/response", Value::Null),
                "log.entries[1].response: found nothing, expected an object".to_owned(),
            ),
            (
                with("/log/entries/1/response/bodySize", json!("many")),
                r#"log.entries[1].response.bodySize: found string "many", expected a whole number"#.to_owned(),
            ),
            (
                with("/log/entries/0/response/_transferSize", json!(1.5)),
                "log.entries[0].response._transferSize: found floating point `1.5`, expected a whole number"
                    .to_owned(),
            ),
            (
                with("/log/entries/0/response/_transferSize", json!(u64::MAX)),
                "log.entries[0].response: found an object of 18446744073709551615 bytes, expected at most 1073741824 bytes"
                    .to_owned(),
            ),
            (
                with("/log/entries/0/request/url", json!("https:///x")),
                r#"log.entries[0].request.url: found "https:///x", expected a URL with a scheme and a host"#.to_owned(),
            ),
            (
                with("/log/entries/1/startedDateTime", json!("yesterday")),
                format!("log.entries[1].startedDateTime: found \"yesterday\", {date}"),
            ),
            (
                with("/log/entries/1/startedDateTime", Value::Null),
                format!("log.entries[1].startedDateTime: found nothing, {date}"),
            ),
        ] {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let text = har(&[chrome(0, "https://example/", 9)]).to_string();
        let cut = parse(&text.as_bytes()[..text.len() - 9]).expect_err("cut short").to_string();
        assert!(cut.starts_with("line 1, column ") && cut.contains("EOF"), "{cut}");
        let html = parse(b"<!doctype html>").expect_err("a web page").to_string();
        assert_eq!(html, "line 1, column 1: found no JSON (expected value), expected a HAR file");
        assert!(parse(format!("{text} x").as_bytes()).is_err(), "something follows");
        assert!(parse(format!("\u{feff}{text}").as_bytes()).is_ok(), "a byte-order mark does no harm");
        let missing = read(Path::new("no/such.har")).expect_err("no file").to_string();
        assert!(missing.starts_with("no/such.har: cannot be read: "), "{missing}");
    }

    #[test]
    fn limits_hold() {
        let entry = chrome(0, "https://example/", 9).to_string();
        let with = |count: usize| {
            let list = vec![entry.as_str(); count].join(",");
            parse(format!(r#"{{"log":{{"entries":[{list}]}}}}"#).as_bytes())
        };
        assert_eq!(with(MOST_ENTRIES).expect("as many as allowed").objects.len(), MOST_ENTRIES);
        let error = with(MOST_ENTRIES + 1).expect_err("one too many").to_string();
        assert_eq!(error, "log.entries: found more than 10000 members, expected at most that many");
        let deep = format!(r#"{{"x":{}"#, "[".repeat(1_000_000));
        assert!(parse(deep.as_bytes()).is_err(), "depth costs no stack");
    }

    #[rustfmt::skip]
    #[test]
    fn date_times_are_read_strictly() {
        let second = |text| microseconds(text).map(|value| value as f64 / 1e6);
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0.0)),
            ("2017-02-11T09:36:22.868Z", Some(1_486_805_782.868)),
            ("2017-06-28T17:41:55.090+09:00", Some(1_498_639_315.09)),
            ("2017-06-28T17:41:55.0900001-0330", Some(1_498_684_315.09)),
            ("2000-02-29T23:59:60Z", Some(951_868_800.0)),
            ("1969-12-31T23:59:59.5Z", Some(-0.5)),
            ("0000-01-01T00:00:00Z", Some(-62_167_219_200.0)),
            ("2017-02-29T00:00:00Z", None), ("2017-13-01T00:00:00Z", None), ("2017-00-01T00:00:00Z", None),
            ("2017-01-01T24:00:00Z", None), ("2017-01-01T00:00:00", None), ("2017-01-01T00:00:00.Z", None),
            ("2017-01-01T00:00:00+9:00", None), ("2017-01-01T00:00:00Z ", None), ("+017-01-01T00:00:00Z", None),
            ("2017-01-01T00:00:00+09:00x", None), ("2017-01-01", None), ("", None), ("２017-01-01T00:00:00Z", None),
        ] {
            assert_eq!(second(text), expected, "{text}");
        }
    }

    #[test]
    fn origins_are_scheme_host_and_port() {
        for (url, expected) in [
            ("https://a.example", Some("https://a.example:443")),
            ("http://a.example?q=:9", Some("http://a.example:80")),
            ("https://u:p@a.example:8443/x@y:1", Some("https://a.example:8443")),
            ("http://[2001:DB8::1]:81/", Some("http://[2001:db8::1]:81")),
            ("http://[::1]/", Some("http://[::1]:80")),
            ("http://a.example:/", Some("http://a.example:80")),
            ("http://a.example:65536/", None),
            ("http://a.example:+80/", None),
            ("http://:80/", None),
            ("http:a.example", None),
            ("http://a b/", None),
        ] {
            let scheme = url.split(':').next().expect("a scheme");
            assert_eq!(origin(scheme, url).as_deref(), expected, "{url}");
        }
    }

    /// SplitMix64, enough to pick places to damage.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) % bound as u64) as usize
        }
    }

    /// What holds of whatever is accepted, and that a refusal is one bounded line.
    fn check(content: &[u8]) -> bool {
        match parse(content) {
            Ok(page) => {
                assert!(!page.objects.is_empty());
                for object in &page.objects {
                    assert!(usize::from(object.origin) < page.origins.len());
                    assert!((1..=MOST_OBJECT_BYTES).contains(&object.bytes.get()));
                }
                true
            }
            Err(error) => {
                let message = error.to_string();
                assert!(message.lines().count() == 1 && message.chars().count() < 1000, "{message}");
                false
            }
        }
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let good = har(&[chrome(0, "https://example/", 9), chrome(1, "http://[::1]:8/a", 99)]).to_string();
        let pieces: &[&[u8]] =
            &[b"null", b"-1", b"1e999", b"[", b"}", b"\"", b"99999999999999999999", b"\xff", b"\\u", b":"];
        let (mut draws, mut accepted) = (Draws(1), 0);
        for _ in 0..20_000 {
            let mut content = good.clone().into_bytes();
            for _ in 0..=draws.below(3) {
                let from = draws.below(content.len() + 1);
                let to = (from + draws.below(12)).min(content.len());
                let piece = pieces[draws.below(pieces.len())];
                content.splice(from..to, piece.iter().copied());
            }
            accepted += u32::from(check(&content));
        }
        assert!((1..19_000).contains(&accepted), "some damage does no harm, most does: {accepted}");
    }

    #[test]
    fn values_in_the_wrong_place_never_panic() {
        fn places(value: &Value, at: String, all: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    map.iter().for_each(|(key, value)| places(value, format!("{at}/{key}"), all))
                }
                Value::Array(list) => {
                    list.iter()
                        .enumerate()
                        .for_each(|(index, value)| places(value, format!("{at}/{index}"), all));
                }
                _ => {}
            }
            all.push(at);
        }
        let good = har(&[chrome(0, "https://example/", 9), chrome(1, "http://[::1]:8/a", 99)]);
        let strange = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1e300),
            json!(""),
            json!("\n".repeat(5_000)),
            json!("2024-02-30T00:00:00Z"),
            json!("http://"),
            json!([]),
            json!([[0]]),
            json!({}),
            json!({ "log": {} }),
        ];
        let mut all = Vec::new();
        places(&good, String::new(), &mut all);
        for place in &all {
            for value in &strange {
                let mut har = good.clone();
                *har.pointer_mut(place).expect("a place") = value.clone();
                check(har.to_string().as_bytes());
            }
        }
        assert!(all.len() > 40, "every key was tried");
    }
}
