//! Answers of the web server: any request gets one whose length and range are true, and nothing
//! outside of the folder or behind a dot is served.
//!
//! The input is a line `METHOD TARGET VERSION` and lines `name: value`. Requests that HTTP itself
//! refuses are left out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use headstart_web::site::{Folder, Site};
use http::header::{ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Empty};
use tokio::runtime::Runtime;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SECRET: &[u8] = b"not for clients";

/// The server's contents.
pub struct Server {
    runtime: Runtime,
    site: Site,
    files: BTreeMap<&'static str, Vec<u8>>,
}

impl Server {
    /// With files in `folder`.
    pub fn new(folder: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let root = folder.join("site");
        let files: BTreeMap<&str, Vec<u8>> = [
            ("index.html", b"<h1>home</h1>".repeat(10)),
            ("a.txt", b"0123456789".repeat(5)),
            ("a.txt.gz", vec![0x1f, 0x8b]),
            ("a.txt.br", vec![0x0b]),
            ("b&c d.svg", b"<svg/>".to_vec()),
            ("large", (0..80_000_u32).map(|at| at as u8).collect()),
            (".well-known/x", b"known".to_vec()),
            ("sub/y", vec![]),
        ]
        .into();
        let write = |path: PathBuf, content: &[u8]| {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, content).expect("a file");
        };
        for (name, content) in &files {
            write(root.join(name), content);
        }
        for hidden in ["../secret", ".git/secret", "sub/.secret", ".well-known/.secret"] {
            write(root.join(hidden), SECRET);
        }
        let site = Site::Folder(Folder::open(Path::new(&root)).expect("the folder"));
        Self { runtime, site, files }
    }
}

/// Checks the answers to a request.
pub fn check(server: &Server, input: &[u8]) {
    let Some(request) = request(input) else { return };
    for site in [&server.site, &Site::Generated] {
        let is_head = request.method() == Method::HEAD;
        let answer =
            server.runtime.block_on(site.answer(PEER, request.clone().map(|()| Empty::<Bytes>::new())));
        let status = answer.status();
        assert!(!status.is_server_error(), "{status}: {request:?}");
        let length: Option<usize> = answer
            .headers()
            .get(CONTENT_LENGTH)
            .map(|value| value.to_str().expect("text").parse().expect("a number"));
        if matches!(site, Site::Generated) && length.is_some_and(|length| length > 1_000_000) {
            continue;
        }
        let (head, body) = answer.into_parts();
        let body = server.runtime.block_on(body.collect()).expect("a body").to_bytes();
        if is_head {
            assert!(body.is_empty(), "{request:?}");
            continue;
        }
        if status != StatusCode::NOT_MODIFIED {
            assert!(length.is_none_or(|length| length == body.len()), "{request:?}: {head:?}");
            assert!(length.is_some() || body.is_empty(), "{request:?}: {head:?}");
        }
        assert!(!body.windows(SECRET.len()).any(|bytes| bytes == SECRET), "{request:?}");
        if !matches!(site, Site::Generated) {
            check_content(server, &Response::from_parts(head, ()), &body, &request);
        }
    }
}

/// A body with a tag that is not compressed is a file, or the named range of it.
fn check_content(server: &Server, head: &Response<()>, body: &[u8], request: &Request<()>) {
    let headers = head.headers();
    let is_file = headers.contains_key(ETAG) || headers.contains_key(ACCEPT_RANGES);
    if headers.contains_key(CONTENT_ENCODING) || !is_file {
        return;
    }
    let of = |range: &dyn Fn(&Vec<u8>) -> Option<Vec<u8>>| {
        server.files.values().any(|file| range(file).is_some_and(|it| it == body))
    };
    match head.status() {
        StatusCode::OK => assert!(of(&|file| Some(file.clone())), "{request:?}: {head:?}"),
        StatusCode::PARTIAL_CONTENT => {
            let range = headers[CONTENT_RANGE].to_str().expect("text");
            let (range, size) =
                range.strip_prefix("bytes ").and_then(|it| it.split_once('/')).expect("a range");
            let (first, last) = range.split_once('-').expect("two ends");
            let [first, last, size]: [usize; 3] = [first, last, size].map(|it| it.parse().expect("a number"));
            let named =
                |file: &Vec<u8>| (file.len() == size).then(|| file.get(first..=last).map(<[u8]>::to_vec))?;
            assert!(of(&named), "{request:?}: {head:?}");
        }
        _ => {}
    }
}

fn request(input: &[u8]) -> Option<Request<()>> {
    let mut lines = input.split(|byte| *byte == b'\n');
    let mut first = lines.next()?.split(|byte| *byte == b' ');
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(first.next()?).ok()?;
    *request.uri_mut() = Uri::try_from(first.next()?).ok()?;
    *request.version_mut() = match first.next() {
        Some(b"1.0") => Version::HTTP_10,
        Some(b"2") => Version::HTTP_2,
        Some(b"3") => Version::HTTP_3,
        _ => Version::HTTP_11,
    };
    for line in lines {
        let at = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..at]).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(line[at + 1..].trim_ascii()).ok()?);
    }
    // Without one every answer is the same.
    if !request.headers().contains_key("host") && request.uri().authority().is_none() {
        request.headers_mut().insert("host", HeaderValue::from_static("localhost"));
    }
    Some(request)
}
