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
    parse(har(entries).to_string().as_bytes(), None).expect("a HAR")
}

fn refused(value: &Value) -> String {
    parse(value.to_string().as_bytes(), None).expect_err("no HAR").to_string()
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
    assert_eq!(page.origins, ["https://www.example:443", "https://cdn.example:443", "http://www.example:80"]);
    assert_eq!(page.objects.iter().map(|object| object.origin).collect::<Vec<_>>(), [0, 1, 2, 1]);
    assert!(page.skipped.is_empty() && page.document_skipped.is_none());
}

/// A redirect with its target.
fn redirect(at: u32, url: &str, to: &str, transferred: i64) -> Value {
    let mut entry = chrome(at, url, transferred);
    entry["response"]["status"] = json!(301);
    entry["response"]["redirectURL"] = json!(to);
    entry["response"]["content"]["size"] = json!(0);
    entry
}

fn leads(page: &Page) -> Vec<bool> {
    page.objects.iter().map(|object| object.leads).collect()
}

#[test]
fn redirects_precede_the_document_in_order() {
    let page = parsed(&[
        redirect(0, "http://example/", "https://example/", 150),
        redirect(3, "https://example/", "https://www.example/", 160),
        chrome(5, "https://www.example/", 5000),
        chrome(9, "https://www.example/a", 7),
    ]);
    assert_eq!(sizes(&page), [150, 160, 5000, 7]);
    assert_eq!(leads(&page), [true, true, false, false]);
    assert_eq!(page.guessed, 0);
}

#[test]
fn a_redirect_without_bytes_costs_its_round_trip_and_an_internal_one_nothing() {
    let mut internal = redirect(0, "http://example/", "https://example/", 0);
    internal["response"]["headers"] = json!([{"name": "Non-Authoritative-Reason", "value": "HSTS"}]);
    let page =
        parsed(&[internal, redirect(1, "https://example/", "/en", 0), chrome(5, "https://example/en", 5000)]);
    assert_eq!((sizes(&page), leads(&page)), (vec![500, 5000], vec![true, false]));
    assert_eq!((page.guessed, page.skipped[&Reason::FromCache]), (1, 1));
}

#[test]
fn a_redirect_of_an_object_refers_to_the_entry_with_that_url() {
    let page = parsed(&[
        chrome(0, "https://example/", 1000),
        redirect(10, "https://example/a.js", "//cdn.example/a.js", 11),
        redirect(11, "https://example/lost.js", "https://cdn.example/lost.js", 12),
        chrome(12, "https://example/b.css", 13),
        redirect(20, "https://cdn.example/a.js", "/v2/a.js#part", 14),
        chrome(30, "https://cdn.example/v2/a.js", 15),
    ]);
    assert_eq!(sizes(&page), [1000, 11, 14, 15, 12, 13]);
    assert_eq!(leads(&page), [false, true, true, false, false, false]);
}

#[test]
fn the_encoded_size_takes_precedence_over_the_decoded_size() {
    let named = |name: &str, value: &str| json!({"name": name, "value": value});
    let (gzip, length) = (named("Content-Encoding", "gzip"), named("content-length", "27472"));
    for (headers, expected, guessed, reason) in [
        (json!([gzip, length]), 27_472, 0, "it was packed to this"),
        (json!([length]), 27_472, 0, "it is this long"),
        (json!([gzip]), 129_461, 1, "nobody knows what packing saved"),
        (json!([]), 129_461, 1, "nobody knows whether it was packed"),
        (json!([named("Server", "x")]), 129_461, 0, "it was not packed"),
        (json!([named("Content-Encoding", "identity")]), 129_461, 0, "it was not packed, as it says"),
        (json!([gzip, length, named("Transfer-Encoding", "chunked")]), 129_461, 1, "chunks have no length"),
        (json!([gzip, named("Content-Length", "many")]), 129_461, 1, "no length"),
    ] {
        let mut entry = chrome(0, "https://example/", -1);
        entry["response"]["headers"] = headers;
        entry["response"]["content"]["size"] = json!(129_461);
        let page = parsed(&[entry]);
        assert_eq!((sizes(&page), page.guessed), (vec![expected], guessed), "{reason}");
    }
    let mut head = chrome(0, "https://example/", -1);
    head["request"]["method"] = json!("HEAD");
    head["response"]["headers"] = json!([length]);
    head["response"]["headersSize"] = json!(70);
    head["response"]["content"]["size"] = json!(0);
    assert_eq!(sizes(&parsed(&[head])), [70], "an answer to HEAD has a length and no body");
}

#[test]
fn the_page_is_the_first_or_the_selected_one() {
    let mut other = chrome(50, "https://other.example/", 77);
    other["pageref"] = json!("page_2");
    let file = har(&[chrome(0, "https://example/", 9), other]).to_string();
    let page = |wanted: Option<&str>| parse(file.as_bytes(), wanted);
    for (wanted, bytes, place) in
        [(None, 9, 1), (Some("page_1"), 9, 1), (Some("2"), 77, 2), (Some("page_2"), 77, 2), (Some("1"), 9, 1)]
    {
        let found = page(wanted).expect("it has two");
        assert_eq!((sizes(&found), found.place), (vec![bytes], (place, 2)), "{wanted:?}");
    }
    for wanted in ["0", "3", "page_3", ""] {
        let error = page(Some(wanted)).expect_err(wanted).to_string();
        let expected = "expected a number from 1 to 2, or an id such as page_1, page_2";
        assert_eq!(error, format!("--page: found `{wanted}`, {expected}"));
    }
}

#[test]
fn multiplexing_is_detected_from_the_file() {
    let over = |versions: &[&str]| {
        let entry = |(at, version): (u32, &&str)| {
            let mut entry = chrome(at, "https://example/", 9);
            entry["response"]["httpVersion"] = json!(version);
            entry
        };
        parsed(&(0..).zip(versions).map(entry).collect::<Vec<_>>()).is_multiplexed
    };
    for versions in [&["h2"][..], &["HTTP/2.0", "http/1.1", "h3-29"], &["http/2+quic/46"], &["HTTP/3", ""]] {
        assert!(over(versions), "{versions:?}");
    }
    for versions in [&["http/1.1"][..], &["HTTP/1.1", "h2"], &[""], &["unknown"]] {
        assert!(!over(versions), "{versions:?}");
    }
}

#[rustfmt::skip]
#[test]
fn the_size_of_an_object_is_its_transferred_bytes() {
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
fn entries_without_transfer_are_counted_by_reason() {
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
fn a_cached_document_is_reported() {
    let page = parsed(&[chrome(0, "https://example/", 0), chrome(5, "https://example/a", 7)]);
    assert_eq!((sizes(&page), page.document_skipped), (vec![7], Some(Reason::FromCache)));
}

#[test]
fn a_page_without_a_title_is_named_by_its_url() {
    let entry = chrome(0, "https://example/\u{1b}[2J", 7);
    let value = json!({ "log": { "entries": [entry] } });
    let page = parse(value.to_string().as_bytes(), None).expect("pages are optional");
    assert_eq!(page.title, "https://example/ [2J", "no control characters on a terminal");
    assert_eq!(shortened("a\u{1b}[2J\nb"), "a [2J b");
    assert_eq!(shortened(&"x".repeat(201)).len(), 203);
}

#[test]
fn an_error_names_key_found_and_expected() {
    let good = har(&[chrome(0, "https://example/", 9), chrome(1, "https://example/a", 9)]);
    let with = |pointer: &str, value: Value| {
        let mut har = good.clone();
        *har.pointer_mut(pointer).expect("a key") = value;
        refused(&har)
    };
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
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn dates_without_a_zone_numbers_as_text_and_keys_that_are_there_twice_are_read() {
    let mut entries = [chrome(0, "https://example/", 9), chrome(250, "https://example/a", 7)];
    for entry in &mut entries {
        let date = entry["startedDateTime"].as_str().expect("a text").trim_end_matches('Z').to_owned();
        entry["startedDateTime"] = date.into();
    }
    let page = parsed(&entries);
    assert_eq!((sizes(&page), page.requests[1].at), (vec![9, 7], Span::from_millis(250)));
    for (text, expected) in [("20000", Ok(20_000)), (" 700.0 ", Ok(700)), ("-1", Err(Reason::UnknownSize))] {
        assert_eq!(size_of(json!({ "bodySize": text })), expected, "{text}");
    }
    assert_eq!(size_of(json!({ "bodySize": "", "headersSize": 70 })), Ok(70));
    let text = har(&[chrome(0, "https://example/", 9)]).to_string();
    let twice = text.replace("\"_transferSize\":9", "\"_transferSize\":1,\"_transferSize\":11");
    assert_ne!(text, twice);
    assert_eq!(sizes(&parse(twice.as_bytes(), None).expect("the last one counts")), [11]);
    let wrong = twice.replace("\"_transferSize\":11", "\"_transferSize\":\"x\"");
    let error = parse(wrong.as_bytes(), None).expect_err("no number").to_string();
    assert!(error.starts_with("log.entries[0].response._transferSize: found string"), "{error}");
}

#[test]
fn incomplete_entries_are_left_out_and_counted() {
    let good = har(&[chrome(0, "https://example/", 9), chrome(1, "https://example/a", 7)]);
    for (pointer, value) in [
        ("/log/entries/1/response", Value::Null),
        ("/log/entries/1/request", Value::Null),
        ("/log/entries/1/request/url", json!("https:///x")),
        ("/log/entries/1/request/url", json!("a/relative/one")),
        ("/log/entries/1/startedDateTime", json!("yesterday")),
        ("/log/entries/1/startedDateTime", Value::Null),
    ] {
        let mut har = good.clone();
        *har.pointer_mut(pointer).expect("a key") = value;
        let page =
            parse(har.to_string().as_bytes(), None).unwrap_or_else(|error| panic!("{pointer}: {error}"));
        let skipped: Vec<_> = page.skipped.into_iter().collect();
        assert_eq!(skipped, [(Reason::Incomplete, 1)], "{pointer}");
        assert_eq!(page.objects.len(), 1, "{pointer}");
    }
}

#[test]
fn invalid_json_is_refused_with_its_position() {
    let text = har(&[chrome(0, "https://example/", 9)]).to_string();
    let cut = parse(&text.as_bytes()[..text.len() - 9], None).expect_err("cut short").to_string();
    assert!(cut.starts_with("line 1, column ") && cut.contains("EOF"), "{cut}");
    let html = parse(b"<!doctype html>", None).expect_err("a web page").to_string();
    assert_eq!(html, "line 1, column 1: found no JSON (expected value), expected a HAR file");
    assert!(parse(format!("{text} x").as_bytes(), None).is_err(), "something follows");
    assert!(parse(format!("\u{feff}{text}").as_bytes(), None).is_ok(), "a byte-order mark does no harm");
    let missing = read(Path::new("no/such.har"), None).expect_err("no file").to_string();
    assert!(missing.starts_with("no/such.har: cannot read it: "), "{missing}");
}

#[test]
fn limits_hold() {
    let entry = chrome(0, "https://example/", 9).to_string();
    let with = |count: usize| {
        let list = vec![entry.as_str(); count].join(",");
        parse(format!(r#"{{"log":{{"entries":[{list}]}}}}"#).as_bytes(), None)
    };
    assert_eq!(with(MAX_ENTRIES).expect("as many as allowed").objects.len(), MAX_ENTRIES);
    let error = with(MAX_ENTRIES + 1).expect_err("one too many").to_string();
    assert_eq!(error, "log.entries: found more than 10000 members, expected at most that many");
    let deep = format!(r#"{{"x":{}"#, "[".repeat(1_000_000));
    assert!(parse(deep.as_bytes(), None).is_err(), "depth costs no stack");
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
        ("2017-01-01T24:00:00Z", None), ("2017-01-01T00:00:00", Some(1_483_228_800.0)), ("2017-01-01T00:00:00.Z", None),
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

/// Checks the invariants of an accepted file, and that a refusal is one bounded line.
fn check(content: &[u8]) -> bool {
    match parse(content, None) {
        Ok(page) => {
            assert!(!page.objects.is_empty());
            for object in &page.objects {
                assert!(usize::from(object.origin) < page.origins.len());
                assert!((1..=MAX_OBJECT_BYTES).contains(&object.bytes.get()));
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

#[test]
fn a_request_has_its_time_its_kind_and_the_object_that_caused_it() {
    let cause = "https://a.example/app.js";
    let with = |at, url: &str, fields: Value| {
        let mut entry = chrome(at, url, 9);
        entry.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        entry
    };
    let frames = json!({ "callFrames": [{ "url": format!("{cause}#line") }] });
    let mut file = har(&[
        with(100, "https://a.example/", json!({ "_resourceType": "document", "time": 20 })),
        with(120, cause, json!({ "_resourceType": "script", "_initiator": { "url": "https://a.example/" } })),
        with(
            140,
            "https://a.example/b.png",
            json!({ "_resourceType": "image", "_initiator": { "stack": frames } }),
        ),
        with(141, "https://a.example/c.css", json!({ "_initiator": cause, "time": null })),
        with(142, "https://a.example/d", json!({ "_initiator": "https://a.example/e", "time": -1 })),
    ]);
    file["log"]["entries"][3]["response"]["content"]["mimeType"] = json!("text/css; charset=utf-8");
    file["log"]["pages"][0]["pageTimings"] = json!({ "onContentLoad": 41.5 });
    let page = parse(file.to_string().as_bytes(), None).expect("a HAR");
    let millis = Span::from_micros;
    let request = |at, took, kind, initiator| Request { at: millis(at), took: millis(took), kind, initiator };
    let expected = [
        request(0, 20_000, Kind::Other, None),
        request(20_000, 12_500, Kind::Script, Some(0)),
        request(40_000, 12_500, Kind::Image, Some(1)),
        request(41_000, 0, Kind::Style, Some(1)),
        request(42_000, 0, Kind::Other, None),
    ];
    assert_eq!((page.requests, page.parsed_at), (expected.to_vec(), Some(millis(41_500))));
    // Other programs write other things there: nothing depends on them.
    for odd in [json!(null), json!(true), json!(7), json!([1]), json!({ "stack": null }), json!({})] {
        file["log"]["entries"][1]["_initiator"] = odd.clone();
        let page = parse(file.to_string().as_bytes(), None).unwrap_or_else(|error| panic!("{odd}: {error}"));
        assert_eq!(page.requests[1].initiator, None, "{odd}");
    }
}
