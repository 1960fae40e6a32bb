//! Pages of HAR files as sites that load as they did, for a real browser.
//!
//! | module | holds |
//! |---|---|
//! | this | from a HAR file to a tree of objects, and the answers of its site |
//! | [`saved`] | pages that a browser saved, as of HAR files |
//! | [`shapes`] | pages of four kinds, as HAR files |
//! | [`load`] | a visit: server, path and browser |
//! | [`browser`] | the browser of a visit |
//! | [`model`] | the simulator's visit to the same page |
//!
//! Every origin of the HAR is a host of its own, `h0.page.test` and so on. The document has text,
//! made-up bytes and a script, which inserts each object when its parent has arrived, after its
//! think time. The script reports the browser's own measures in the path of a last request.
//!
//! **Parents.** The parent is the object that the browser saved as initiator. Without that it is
//! the script or style sheet that had arrived last when the object was requested, else the
//! document. Time between the parent's arrival and the request is the think time. An object that
//! was requested before its parent had arrived has none: it waits for the parent here.
//!
//! **Above the fold** are the document and the first twenty images that were requested before the
//! browser had parsed the document (`onContentLoad`; without it before half of the page's time).
//!
//! # Limits
//!
//! Objects have the sizes of the HAR, headers included, as bodies. All are fetched once their
//! parents have arrived: nothing is found while a document still arrives. Frames, fonts and data
//! are fetched, not rendered. Programs and style sheets have no contents, and take no time.

pub mod browser;
pub mod load;
pub mod model;
pub mod saved;
pub mod shapes;
pub mod show;

use std::sync::Arc;

use anyhow::{Result, ensure};
use headstart_study::workload::web::har::{Kind, Page};
use headstart_units::Span;
use headstart_web::site::{Body, Made, filled};
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, LOCATION, ORIGIN,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use tokio::sync::mpsc::UnboundedSender;

/// Most objects of a page that is replayed: the report of more is longer than a request's fields.
pub const MOST_OBJECTS: usize = 1500;
/// Most hosts: each has a socket of the path, and programs may have 1024 open files.
pub const MOST_HOSTS: usize = 800;
/// Most images above the fold.
const MOST_ABOVE: usize = 20;
/// Port of HTTPS, which the addresses of the page have.
const HTTPS: u16 = 443;
/// Path of the script's report.
const REPORT: &str = "/report?";

/// An object of a page that is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Object of the page that has to arrive first.
    pub parent: usize,
    /// Time between its arrival and the request.
    pub think: Span,
    /// Origin of the object.
    pub origin: u16,
    /// Bytes of the object's body.
    pub bytes: u64,
    /// The kind of object.
    pub kind: Kind,
    /// True for an object above the fold.
    pub is_above: bool,
    /// A redirect to the next object, which is fetched without being asked for.
    pub leads: bool,
    /// A redirect leads to it.
    pub is_led_to: bool,
}

/// A page as a site.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Title of the page.
    pub title: String,
    /// Objects of the page in the order of the HAR.
    pub nodes: Vec<Node>,
    /// Addresses of the objects in the HAR.
    pub urls: Vec<String>,
    /// Place of the document: redirects to it come before.
    pub document: usize,
    /// Number of its origins.
    pub origins: usize,
    html: [String; 2],
}

/// The host of an origin.
#[must_use]
pub fn host(origin: impl std::fmt::Display) -> String {
    format!("h{origin}.page.test")
}

impl Replay {
    /// The site of a page.
    ///
    /// # Errors
    /// If it has too many objects or hosts.
    pub fn new(page: &Page) -> Result<Self> {
        let count = page.objects.len();
        ensure!(count <= MOST_OBJECTS, "found {count} objects, expected {MOST_OBJECTS} at most");
        let hosts = page.origins.len();
        ensure!(hosts <= MOST_HOSTS, "found {hosts} hosts, expected {MOST_HOSTS} at most");
        let requests = &page.requests;
        let document = page.objects.iter().position(|object| !object.leads).unwrap_or(0);
        let end = |place: usize| requests[place].at + requests[place].took;
        let last_end = (0..count).map(end).max().unwrap_or_default();
        let parsed_at = page.parsed_at.unwrap_or(last_end / 2);
        let mut above = 0;
        let mut nodes: Vec<Node> = vec![];
        for (place, (object, request)) in page.objects.iter().zip(requests).enumerate() {
            let is_led_to = place > 0 && page.objects[place - 1].leads;
            // The head of a chain of redirects stands for its target, the part that arrives.
            let target =
                |place: usize| (place..count).find(|place| !page.objects[*place].leads).unwrap_or(place);
            let kind = requests[target(place)].kind;
            let is_parent = |other: usize| {
                let may_cause = matches!(requests[other].kind, Kind::Script | Kind::Style);
                (other == document || may_cause) && !page.objects[other].leads && end(other) <= request.at
            };
            let initiator = request.initiator.filter(|place| (document..nodes.len()).contains(place));
            let guessed =
                || (document..nodes.len()).filter(|place| is_parent(*place)).max_by_key(|place| end(*place));
            let mut parent = initiator.or_else(guessed).unwrap_or(document);
            let think = request.at.saturating_sub(end(target(parent)));
            while parent > document && page.objects[parent - 1].leads {
                parent -= 1;
            }
            let is_image = kind == Kind::Image && place > document && !is_led_to;
            let is_above = place == document || (is_image && request.at < parsed_at && above < MOST_ABOVE);
            above += usize::from(is_above && is_image);
            nodes.push(Node {
                parent,
                think,
                origin: object.origin,
                bytes: object.bytes.get(),
                kind,
                is_above,
                leads: object.leads,
                is_led_to,
            });
        }
        let mut replay = Self {
            title: page.title.clone(),
            nodes,
            urls: page.urls.clone(),
            document,
            origins: page.origins.len(),
            html: Default::default(),
        };
        replay.html = replay.document_parts();
        Ok(replay)
    }

    /// Places of the objects that the script asks for, in order.
    pub fn requests(&self) -> impl Iterator<Item = usize> + '_ {
        (self.document + 1..self.nodes.len()).filter(|place| !self.nodes[*place].is_led_to)
    }

    /// Bytes of all bodies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.nodes.iter().map(|node| node.bytes).sum()
    }

    /// Address of an object.
    #[must_use]
    pub fn address(&self, place: usize) -> String {
        format!("https://{}/{place}", host(self.nodes[place].origin))
    }

    /// The document before and behind its made-up bytes.
    fn document_parts(&mut self) -> [String; 2] {
        let node = |place: usize| {
            let Node { parent, think, origin, kind, is_above, .. } = self.nodes[place];
            let kind = match kind {
                Kind::Other => 0,
                Kind::Image => 1,
                Kind::Script => 2,
                Kind::Style => 3,
            };
            format!(
                "[{place},{parent},{},{origin},{kind},{}]",
                think.as_millis_f64().round(),
                u8::from(is_above)
            )
        };
        let tree = format!("[{}]", self.requests().map(node).collect::<Vec<_>>().join(","));
        let title = headstart_report::markup::escape(&self.title);
        let before = include_str!("page/document.html").replace("TITLE", &title);
        let script = include_str!("page/document.js").replace("TREE", &tree);
        let script = script.replace("DOCUMENT", &self.document.to_string()).replace("REPORT", REPORT);
        // Comments may not hold what ends them; the letter that fills them does.
        let parts = [format!("{before}<!--"), format!("--><script>{script}</script></html>\n")];
        let least = parts.iter().map(String::len).sum::<usize>() as u64;
        let document = &mut self.nodes[self.document];
        document.bytes = document.bytes.max(least);
        parts
    }

    /// The answers of the site; the script's report goes to `reported`.
    #[must_use]
    pub fn site(self: &Arc<Self>, reported: UnboundedSender<String>) -> Made {
        let replay = Arc::clone(self);
        Made::new(move |head| {
            let path = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            if let Some(report) = path.strip_prefix(REPORT) {
                // Nobody waits for it any more if the visit was given up.
                let _ = reported.send(report.to_owned());
            }
            replay.answer(head, path)
        })
    }

    fn answer(&self, head: &Parts, path: &str) -> Response<Body> {
        let place = path.strip_prefix('/').and_then(|number| number.parse::<usize>().ok());
        let node = place.and_then(|place| Some((place, self.nodes.get(place)?)));
        let mut answer = match node {
            None => filled("text/plain", "".into(), 0, "".into()),
            Some((place, node)) if place == self.document => {
                let [before, after] = self.html.clone();
                let fill = node.bytes - (before.len() + after.len()) as u64;
                filled("text/html; charset=utf-8", before.into(), fill, after.into())
            }
            Some((_, node)) => made_up(node),
        };
        let headers = answer.headers_mut();
        if let Some((place, Node { leads: true, .. })) = node {
            let target =
                HeaderValue::from_str(&self.address(place + 1)).expect("an address of plain letters");
            headers.insert(LOCATION, target);
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(HeaderName::from_static("timing-allow-origin"), HeaderValue::from_static("*"));
        if let Some(origin) = head.headers.get(ORIGIN) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        *answer.status_mut() = match node {
            Some((_, Node { leads: true, .. })) => StatusCode::FOUND,
            Some(_) => StatusCode::OK,
            None => StatusCode::NOT_FOUND,
        };
        answer
    }
}

/// An object of that kind and size, or so many letters where it is too small for the kind.
fn made_up(node: &Node) -> Response<Body> {
    const PICTURE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"360\">\
        <rect width=\"640\" height=\"360\" fill=\"#58a\"/><!--";
    let (content_type, before, after) = match node.kind {
        Kind::Other => ("application/octet-stream", "", ""),
        Kind::Image => ("image/svg+xml", PICTURE, "--></svg>"),
        Kind::Script => ("text/javascript", "/*", "*/"),
        Kind::Style => ("text/css", "/*", "*/"),
    };
    match node.bytes.checked_sub((before.len() + after.len()) as u64) {
        Some(fill) => filled(content_type, before.into(), fill, after.into()),
        None => filled(content_type, "".into(), node.bytes, "".into()),
    }
}

#[cfg(test)]
mod tests;
