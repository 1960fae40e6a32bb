//! Parser of untrusted XML.

use roxmltree::{Document, Node, ParsingOptions};

use super::error::Error;

/// A large gateway's description has some 500.
const MAX_NODES: u32 = 4096;
/// Descriptions nest devices three deep, which makes a dozen elements.
const DEEPEST: usize = 64;

/// Parses a document without a document type, and thus without entities of its own.
pub(super) fn parse(text: &str) -> Result<Document<'_>, Error> {
    let refuse = |reason: String| Error::Xml { reason };
    // Some gateways send a byte order mark, or empty lines before the declaration.
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if is_deep(text) {
        return Err(refuse(format!("elements nested more than {DEEPEST} deep")));
    }
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| refuse(error.to_string()))
}

/// True if tags are nested too deep for a recursive parser. A rough count before parsing: comments
/// and the like count as empty elements.
fn is_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    for tag in text.split('<').skip(1) {
        let inside = tag.split_once('>').map_or(tag, |(inside, _)| inside);
        if inside.starts_with('/') {
            depth = depth.saturating_sub(1);
        } else if !inside.ends_with('/') && !inside.starts_with(['?', '!']) {
            depth += 1;
        }
        if depth > DEEPEST {
            return true;
        }
    }
    false
}

/// The text of the first child of that name, in any namespace: gateways use them inconsistently.
pub(super) fn text<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let child = node.children().find(|child| child.tag_name().name() == name)?;
    Some(child.text().unwrap_or_default().trim())
}
