//! A page that a browser saved "complete": `page.html`, and `page_files` with what it refers to.
//!
//! Objects are in the order in which the document names them. Those that a style sheet or a frame
//! names are requested when it has arrived. Files that nothing names are scripts' own: they are the
//! document's last requests.
//!
//! # Limits
//!
//! A browser saves neither hosts nor times: all objects are of one host, without think times. Sizes
//! are those of the files, which are unpacked, and the document is as scripts had left it.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use headstart_sim::workload::page::Object;
use headstart_study::workload::web::har::{Kind, MAX_FILE_BYTES, Page, Reason, Request};
use headstart_units::{Bytes, Span};
use html5gum::{DefaultEmitter, HtmlString, StartTag, Token, Tokenizer};
use percent_encoding::percent_decode;

/// True for a folder, or the document of a saved page by its name.
#[must_use]
pub fn is_saved(path: &Path) -> bool {
    path.is_dir() || is_document(path)
}

fn is_document(path: &Path) -> bool {
    extension(path).is_some_and(|end| matches!(&*end, "html" | "htm" | "xhtml"))
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// Reads a saved page: its document, or the folder with that and nothing of another page.
///
/// # Errors
/// If there is not one document with a folder of files, or they cannot be read.
pub fn read(path: &Path) -> Result<Page> {
    let documents: Vec<PathBuf> = match path.is_dir() {
        false => vec![path.to_owned()],
        true => entries(path)?.into_iter().filter(|file| file.is_file() && is_document(file)).collect(),
    };
    if let [document] = &documents[..] {
        fs::metadata(document).context("cannot read it")?;
    }
    let [document] = &documents[..] else {
        let count = documents.len();
        anyhow::bail!("found {count} documents in the folder, expected one, as page.html beside page_files");
    };
    let stem = document.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let parent = document.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Browsers translate the end of the name.
    let is_folder = |it: &PathBuf| {
        let name = it.file_name().unwrap_or_default().to_string_lossy();
        it.is_dir() && name.strip_prefix(&*stem).is_some_and(|rest| rest.starts_with(['_', '-']))
    };
    let folder = entries(parent)?.into_iter().find(is_folder);
    let folder = folder.with_context(|| {
        format!("found no folder {stem}_files beside it, expected one (save \"complete\")")
    })?;
    let mut search = Search::default();
    for file in entries(&folder)?.into_iter().filter(|file| file.is_file()) {
        search.files.insert(file.file_name().unwrap_or_default().to_owned(), file);
    }
    search.add(document.clone(), Kind::Other, None)?;
    ensure!(!search.page.objects.is_empty(), "found an empty file, expected a document");
    while let Some(place) = search.unread.pop_front() {
        search.read(place)?;
    }
    for (_, file) in std::mem::take(&mut search.files) {
        let kind = kind(&file);
        search.add(file, kind, Some(0))?;
    }
    Ok(search.page)
}

/// Files and folders in a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let found = fs::read_dir(folder).and_then(|found| found.map(|it| Ok(it?.path())).collect());
    let mut found: Vec<PathBuf> = found.with_context(|| format!("cannot read {}", folder.display()))?;
    found.sort();
    Ok(found)
}

/// The page as far as its files have been read.
struct Search {
    /// Files that nothing has named yet, by name.
    files: BTreeMap<std::ffi::OsString, PathBuf>,
    page: Page,
    paths: Vec<PathBuf>,
    unread: VecDeque<usize>,
}

/// An object arrives so long after it was requested, when those that it names are requested: no
/// think time is left.
const STEP: Span = Span::from_millis(1);

impl Default for Search {
    fn default() -> Self {
        let page = Page {
            title: String::new(),
            objects: vec![],
            requests: vec![],
            urls: vec![],
            // The document's own objects are requested at one step, all others later.
            parsed_at: Some(STEP * 3 / 2),
            origins: vec!["https://saved.invalid:443".into()],
            guessed: 0,
            is_multiplexed: true,
            place: (1, 1),
            skipped: BTreeMap::new(),
            document_skipped: None,
        };
        Self { files: BTreeMap::new(), page, paths: vec![], unread: VecDeque::new() }
    }
}

impl Search {
    fn add(&mut self, file: PathBuf, kind: Kind, initiator: Option<usize>) -> Result<()> {
        let bytes = fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?.len();
        if bytes == 0 {
            *self.page.skipped.entry(Reason::ZeroBytes).or_default() += 1;
            return Ok(());
        }
        let place = self.page.objects.len();
        if place == 0 || kind == Kind::Style || is_document(&file) {
            self.unread.push_back(place);
        }
        let at = initiator.map_or(Span::ZERO, |place| self.page.requests[place].at + STEP);
        self.page.objects.push(Object { origin: 0, bytes: Bytes::new(bytes), leads: false });
        self.page.requests.push(Request { at, took: STEP, kind, initiator });
        self.page.urls.push(file.file_name().unwrap_or_default().to_string_lossy().into_owned());
        self.paths.push(file);
        Ok(())
    }

    fn read(&mut self, place: usize) -> Result<()> {
        let path = &self.paths[place];
        let mut content = vec![];
        let read = fs::File::open(path).and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut content));
        read.with_context(|| format!("cannot read {}", path.display()))?;
        if self.page.requests[place].kind == Kind::Style {
            return self.read_style(&content, place);
        }
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        let mut text_of = HtmlString::default();
        for token in Tokenizer::new_with_emitter(&content[..], emitter) {
            match token.unwrap_or_else(|never| match never {}) {
                Token::StartTag(tag) => {
                    self.read_tag(&tag, place)?;
                    text_of = tag.name;
                }
                Token::EndTag(_) => text_of = HtmlString::default(),
                Token::String(text) if *text_of == b"style" => self.read_style(&text.value, place)?,
                Token::String(text) if *text_of == b"title" && place == 0 && self.page.title.is_empty() => {
                    let text = String::from_utf8_lossy(&text.value).into_owned();
                    self.page.title = text.split_whitespace().collect::<Vec<_>>().join(" ");
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_tag(&mut self, tag: &StartTag<()>, place: usize) -> Result<()> {
        let attribute = |name: &str| tag.attributes.get(name.as_bytes()).map(|value| &value.value[..]);
        if let Some(style) = attribute("style") {
            self.read_style(style, place)?;
        }
        let is_style = attribute("rel").is_some_and(|rel| rel.eq_ignore_ascii_case(b"stylesheet"));
        let (names, kind): (&[&str], _) = match &tag.name[..] {
            b"link" if is_style => (&["href"], Some(Kind::Style)),
            b"link" => (&["href"], None),
            b"script" => (&["src"], Some(Kind::Script)),
            b"img" | b"input" => (&["src"], Some(Kind::Image)),
            b"object" => (&["data"], None),
            _ => (&["src", "poster", "background"], None),
        };
        for address in names.iter().filter_map(|name| attribute(name)) {
            let is_needed = &tag.name[..] != b"link" || is_style;
            // The document's own addresses are whole where the browser saved no file.
            let is_elsewhere = address.starts_with(b"//") || address.windows(3).any(|part| part == b"://");
            if (is_elsewhere || !self.name(address, kind, place)?)
                && is_needed
                && !address.starts_with(b"data:")
            {
                *self.page.skipped.entry(Reason::UnknownSize).or_default() += 1;
            }
        }
        Ok(())
    }

    fn read_style(&mut self, style: &[u8], place: usize) -> Result<()> {
        let mut rest = style;
        while let Some(begin) = rest.windows(4).position(|part| part.eq_ignore_ascii_case(b"url(")) {
            rest = &rest[begin + 4..];
            let end = rest.iter().position(|byte| *byte == b')').unwrap_or(rest.len());
            let address = rest[..end].trim_ascii();
            let quotes = |byte: &u8| matches!(byte, b'"' | b'\'');
            let from = address.iter().take_while(|byte| quotes(byte)).count();
            let to = address.iter().rposition(|byte| !quotes(byte)).map_or(from, |last| last + 1);
            self.name(address.get(from..to).unwrap_or_default(), None, place)?;
        }
        Ok(())
    }

    /// True if an address names a file of the page. The first one that does causes its request.
    fn name(&mut self, address: &[u8], kind_named: Option<Kind>, place: usize) -> Result<bool> {
        let path = address.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = percent_decode(name).decode_utf8_lossy().into_owned();
        let Some(file) = self.files.remove(OsStr::new(&name)) else {
            return Ok(self.paths.iter().skip(1).any(|file| file.file_name() == Some(OsStr::new(&name))));
        };
        let kind = kind_named.unwrap_or_else(|| kind(&file));
        self.add(file, kind, Some(place))?;
        Ok(true)
    }
}

/// By the end of the file's name, which Chrome continues for programs (`app.js.download`).
fn kind(file: &Path) -> Kind {
    let stem = file.with_extension("");
    match extension(file).filter(|end| end != "download").or_else(|| extension(&stem)).as_deref() {
        Some("png" | "jpg" | "jpeg" | "gif" | "webp" | "avif" | "svg" | "ico" | "bmp") => Kind::Image,
        Some("js" | "mjs") => Kind::Script,
        Some("css") => Kind::Style,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, content) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("in the folder")).expect("a folder");
            fs::write(file, content).expect("a file");
        }
        folder
    }

    /// As Chrome and Firefox write it: names with escapes, one frame, programs renamed.
    const DOCUMENT: &str = r##"<!DOCTYPE html>
        <!-- saved from url=(0020)https://a.example/ --><html><head><title> A
        page </title><link rel="stylesheet" href="./A%20page_files/main.css">
        <link rel="icon" href="https://a.example/icon.png"><style>p{background:url('A page_files/b.png')}</style>
        <script src="./A page_files/app.js.download">document.write('<img src="A page_files/last.bin">')</script>
        </head><body><img src="./A page_files/c.png?1"><img src="./A page_files/c.png"><img src="data:image/png,">
        <img src="https://a.example/lost.png"><img src="../secret.png"><img src="./A page_files/empty.gif">
        <iframe src="./A page_files/frame.html"></iframe></body></html>"##;

    #[test]
    fn objects_come_in_the_order_in_which_they_are_named() {
        let folder = saved(&[
            ("A page.html", DOCUMENT),
            ("secret.png", "secret"),
            ("A page_files/main.css", "@font-face{src:url(../fonts/f.woff2)} b{background:url( \"d.png\" )}"),
            ("A page_files/app.js.download", "12345"),
            ("A page_files/b.png", "bb"),
            ("A page_files/c.png", "ccc"),
            ("A page_files/d.png", "dddd"),
            ("A page_files/empty.gif", ""),
            ("A page_files/f.woff2", "f"),
            ("A page_files/frame.html", "<img src='g.png'>"),
            ("A page_files/g.png", "g"),
            ("A page_files/last.bin", "last"),
        ]);
        for path in [folder.path().to_owned(), folder.path().join("A page.html")] {
            let page = read(&path).expect("a saved page");
            let rows: Vec<_> = page.urls.iter().zip(&page.requests).zip(&page.objects).collect();
            let rows: Vec<_> = rows
                .iter()
                .map(|((url, request), object)| {
                    (&***url, request.kind, request.initiator, object.bytes.get())
                })
                .collect();
            use Kind::{Image, Other, Script, Style};
            let expected = [
                ("A page.html", Other, None, DOCUMENT.len() as u64),
                ("main.css", Style, Some(0), 66),
                ("b.png", Image, Some(0), 2),
                ("app.js.download", Script, Some(0), 5),
                ("c.png", Image, Some(0), 3),
                ("frame.html", Other, Some(0), 17),
                ("f.woff2", Other, Some(1), 1),
                ("d.png", Image, Some(1), 4),
                ("g.png", Image, Some(5), 1),
                ("last.bin", Other, Some(0), 4),
            ];
            assert_eq!(rows, expected);
            assert_eq!(page.title, "A page");
            let skipped = [(Reason::UnknownSize, 2), (Reason::ZeroBytes, 1)];
            assert_eq!(page.skipped, skipped.into(), "lost.png and secret.png, and empty.gif");
            let replay = crate::page::Replay::new(&page).expect("a page");
            assert!(replay.nodes.iter().all(|node| node.think.is_zero()), "{:?}", replay.nodes);
            let above = (0..10).filter(|place| replay.nodes[*place].is_above);
            assert_eq!(above.collect::<Vec<_>>(), [0, 2, 4], "the document and its own pictures");
        }
    }

    #[test]
    fn what_is_no_saved_page_is_refused_with_a_reason() {
        let alone =
            saved(&[("a.html", "<p>"), ("b.html", "<p>"), ("b_files/c", "c"), ("empty_files/c", "c")]);
        fs::write(alone.path().join("empty.html"), "").expect("a file");
        let empty = tempfile::tempdir().expect("a folder");
        for (path, expected) in [
            (alone.path().to_owned(), "found 3 documents in the folder, expected one"),
            (empty.path().to_owned(), "found 0 documents"),
            (alone.path().join("a.html"), "found no folder a_files beside it"),
            (alone.path().join("empty.html"), "found an empty file"),
            (alone.path().join("absent.html"), "cannot read it"),
        ] {
            let error = read(&path).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
