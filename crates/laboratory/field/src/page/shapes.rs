//! Pages of four kinds, made up for this program: their numbers are assumptions, not measurements.
//!
//! A page is a list of groups of objects. Each becomes a HAR file as a browser saves it, with the
//! object that caused each request, so that it is read as any other.

use clap::ValueEnum;
use serde_json::{Value, json};

/// A shape of page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// 12 origins: many pictures, advertisements that scripts ask for
    News,
    /// 5 origins: pictures of goods, data that a script asks for
    Shop,
    /// 3 origins: a document, two programs, few small pictures
    Search,
    /// 4 origins: a large program, thumbnails, the first segments of a film
    Video,
}

/// Objects of one kind that have one cause. Kind in Chrome's words, number, mean size in bytes;
/// first origin, and number of those that take turns. Then the group whose first object causes
/// their requests (the document is number 0), and milliseconds from its arrival to the requests.
/// Last, true if these come before the document is parsed.
type Group = (&'static str, usize, u64, (usize, usize), usize, u64, bool);

const NEWS: &[Group] = &[
    ("document", 1, 60_000, (0, 1), 0, 0, true),
    ("stylesheet", 3, 18_000, (1, 1), 0, 0, true),
    ("script", 8, 32_000, (1, 3), 0, 0, true),
    ("font", 3, 24_000, (1, 1), 1, 5, true),
    ("image", 12, 28_000, (4, 2), 0, 0, true),
    ("image", 24, 16_000, (4, 2), 2, 10, false),
    ("script", 6, 26_000, (6, 4), 2, 20, false),
    ("xhr", 4, 3_000, (8, 3), 6, 15, false),
    ("image", 6, 18_000, (9, 3), 6, 30, false),
];
const SHOP: &[Group] = &[
    ("document", 1, 35_000, (0, 1), 0, 0, true),
    ("stylesheet", 2, 40_000, (1, 1), 0, 0, true),
    ("script", 6, 55_000, (1, 2), 0, 0, true),
    ("image", 20, 16_000, (3, 1), 0, 0, true),
    ("xhr", 3, 8_000, (4, 1), 2, 20, false),
    ("image", 12, 14_000, (3, 1), 4, 10, false),
];
const SEARCH: &[Group] = &[
    ("document", 1, 40_000, (0, 1), 0, 0, true),
    ("stylesheet", 1, 12_000, (1, 1), 0, 0, true),
    ("script", 2, 110_000, (1, 1), 0, 0, true),
    ("image", 6, 6_000, (2, 1), 0, 0, true),
    ("xhr", 2, 4_000, (0, 1), 2, 15, false),
];
const VIDEO: &[Group] = &[
    ("document", 1, 50_000, (0, 1), 0, 0, true),
    ("stylesheet", 1, 45_000, (1, 1), 0, 0, true),
    ("script", 3, 220_000, (1, 1), 0, 0, true),
    ("image", 20, 10_000, (2, 1), 2, 10, true),
    ("xhr", 2, 4_000, (0, 1), 2, 20, false),
    ("media", 3, 350_000, (3, 1), 4, 5, false),
];

/// Sizes within a group, in hundredths of its mean: a few are much larger than most.
const SPREAD: [u64; 5] = [180, 60, 130, 40, 90];
/// Time that each object takes in the file; think times do not depend on it.
const TOOK_MS: u64 = 50;

impl Shape {
    /// The page as a HAR file.
    #[must_use]
    pub fn har(self) -> Value {
        let groups = match self {
            Self::News => NEWS,
            Self::Shop => SHOP,
            Self::Search => SEARCH,
            Self::Video => VIDEO,
        };
        let name = format!("{}.example", headstart_study::options::choice_name(self));
        let url =
            |group: usize, place: usize, origin: usize| format!("https://o{origin}.{name}/{group}/{place}");
        // Time at which the first object of each group has arrived, and its address.
        let mut ends: Vec<(u64, String)> = vec![];
        let (mut entries, mut parsed_ms) = (vec![], 0);
        for (number, &(kind, count, mean, (first, turns), cause, think_ms, is_early)) in
            groups.iter().enumerate()
        {
            let cause = ends.get(cause).cloned();
            let at = cause.as_ref().map_or(0, |(end, _)| end + think_ms);
            for place in 0..count {
                let address = url(number, place, first + place % turns);
                let size = if count == 1 { mean } else { mean * SPREAD[place % SPREAD.len()] / 100 };
                let initiator = cause.as_ref().map(|(_, cause)| json!({ "type": "script", "url": cause }));
                entries.push(json!({
                    "startedDateTime": format!("2026-01-01T00:00:{:02}.{:03}Z", at / 1000, at % 1000),
                    "time": TOOK_MS,
                    "_resourceType": kind,
                    "_initiator": initiator,
                    "request": { "method": "GET", "url": address, "httpVersion": "h3", "headers": [] },
                    "response": {
                        "status": 200,
                        "httpVersion": "h3",
                        "headers": [],
                        "headersSize": 0,
                        "bodySize": size,
                        "content": { "size": size },
                    },
                }));
                if place == 0 {
                    ends.push((at + TOOK_MS, address));
                }
            }
            if is_early {
                parsed_ms = parsed_ms.max(at + TOOK_MS / 2);
            }
        }
        let (creator, id) = (json!({ "name": "headstart", "version": env!("CARGO_PKG_VERSION") }), "page_1");
        for entry in &mut entries {
            entry["pageref"] = id.into();
        }
        json!({ "log": {
            "version": "1.2",
            "creator": creator,
            "pages": [{
                "id": id,
                "title": name,
                "startedDateTime": "2026-01-01T00:00:00.000Z",
                "pageTimings": { "onContentLoad": parsed_ms },
            }],
            "entries": entries,
        } })
    }
}
