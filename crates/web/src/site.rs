//! What is served: a folder of files, or bytes made up for a measurement.
//!
//! The same answers go out over HTTP/1.1, 2 and 3. Paths that leave the folder, ranges, dates and
//! content types are `tower-http`'s business; a folder without `index.html` is listed.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use futures_util::stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tower_http::services::ServeDir;

/// The body of an answer.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// What is served.
#[derive(Clone, Debug)]
pub enum Site {
    /// Files of a folder.
    Folder(Folder),
    /// `/bytes/N` answers with N bytes that nobody stored: for measurements.
    Generated,
}

/// A folder whose files are served. Symbolic links in it are followed, wherever they lead.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
    files: ServeDir,
}

impl Folder {
    /// The folder at `root`.
    ///
    /// # Errors
    ///
    /// If there is no such folder.
    pub fn open(root: &Path) -> io::Result<Self> {
        if !std::fs::metadata(root)?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "found a file, expected a folder"));
        }
        Ok(Self { root: root.to_owned(), files: ServeDir::new(root).with_buf_chunk_size(CHUNK) })
    }
}

/// How much of a file is read at a time.
const CHUNK: usize = 64 * 1024;

/// The most that `/bytes/N` makes up: a request must not keep a server busy for ever.
pub const MOST_GENERATED: u64 = 1 << 30;

impl Site {
    /// The answer to a request. A body that the request has is not looked at.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body> {
        let (head, _) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let path = head.uri.path().to_owned();
        let answer = match self {
            Self::Folder(folder) => {
                folder.answer(Request::from_parts(head, Empty::<Bytes>::new()), &path).await
            }
            Self::Generated if matches!(head.method, Method::GET | Method::HEAD) => generated(&path),
            Self::Generated => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD"),
        };
        if is_head { answer.map(|_| empty()) } else { answer }
    }
}

impl Folder {
    async fn answer(&self, request: Request<Empty<Bytes>>, path: &str) -> Response<Body> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let answer = match self.files.clone().try_call(request).await {
            Ok(answer) => answer.map(|body| body.map_err(io::Error::other).boxed_unsync()),
            Err(error) if is_absent(&error) => plain(StatusCode::NOT_FOUND, "not found"),
            Err(error) => {
                tracing::warn!(path, %error, "a file could not be read");
                plain(StatusCode::INTERNAL_SERVER_ERROR, "the file could not be read")
            }
        };
        if answer.status() == StatusCode::NOT_FOUND && is_read {
            return self.listing(path).await.unwrap_or(answer);
        }
        answer
    }

    /// The names in a folder that has no `index.html`; `None` if `path` names no folder below the
    /// root.
    async fn listing(&self, path: &str) -> Option<Response<Body>> {
        let within = below(path.strip_suffix('/')?)?;
        let mut names = vec![];
        let mut entries = tokio::fs::read_dir(self.root.join(within)).await.ok()?;
        while let Ok(Some(entry)) = entries.next_entry().await {
            let Ok(mut name) = entry.file_name().into_string() else { continue };
            if name.starts_with('.') {
                continue;
            }
            if entry.file_type().await.is_ok_and(|kind| kind.is_dir()) {
                name.push('/');
            }
            names.push(name);
        }
        names.sort_unstable();
        let title = escaped(&percent_decode_str(path).decode_utf8_lossy());
        let mut page =
            format!("<!doctype html><meta charset=utf-8><title>{title}</title><h1>{title}</h1><ul>");
        for name in names {
            // `./` keeps a name with a colon from being read as a scheme.
            let link = utf8_percent_encode(&name, IN_A_LINK);
            let _ = write!(page, "<li><a href=\"./{link}\">{}</a>", escaped(&name));
        }
        page.push_str("</ul>\n");
        let length = page.len();
        let answer = Response::builder()
            .header(CONTENT_TYPE, "text/html; charset=utf-8")
            .header(CONTENT_LENGTH, length)
            .body(full(page));
        answer.ok()
    }
}

/// There is no such file, or none that clients may know of.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied | InvalidInput)
}

/// Everything but what RFC 3986 §2.3 calls unreserved, and the slash after a folder's name.
const IN_A_LINK: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// The relative path that a URL's path names, if it stays below the root and is plain in every
/// component.
fn below(path: &str) -> Option<PathBuf> {
    let decoded = percent_decode_str(path.trim_start_matches('/')).decode_utf8().ok()?;
    let relative = PathBuf::from(decoded.as_ref());
    let is_plain = relative.components().all(|component| matches!(component, Component::Normal(_)));
    (is_plain && !decoded.contains(['\\', '\0'])).then_some(relative)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn generated(path: &str) -> Response<Body> {
    let Some(size) = path.strip_prefix("/bytes/").and_then(|number| number.parse::<u64>().ok()) else {
        return plain(StatusCode::NOT_FOUND, "found no such page, expected /bytes/N");
    };
    if size > MOST_GENERATED {
        return plain(StatusCode::BAD_REQUEST, "found more bytes than 1 GiB");
    }
    static PATTERN: [u8; CHUNK] = [b'h'; CHUNK];
    let chunks = stream::unfold(size, |left| async move {
        let now = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        (now > 0).then(|| (Ok(Frame::data(Bytes::from_static(&PATTERN[..now]))), left - now as u64))
    });
    let mut answer = Response::new(StreamBody::new(chunks).boxed_unsync());
    answer.headers_mut().insert(CONTENT_LENGTH, size.into());
    answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/octet-stream"));
    answer
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(full(format!("{text}\n")));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    answer.headers_mut().insert(CONTENT_LENGTH, (text.len() + 1).into());
    answer
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn empty() -> Body {
    Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync()
}
