use clap::ValueEnum as _;
use headstart_study::workload::web::har;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::{Value, json};

use super::shapes::Shape;
use super::*;
use headstart_study::options::SchemeName;

/// An object's entry: time of its request and its duration in milliseconds, path, kind, bytes.
fn entry((at, took): (u32, u32), path: &str, kind: &str, bytes: u64, more: &Value) -> Value {
    let mut entry = json!({
        "startedDateTime": format!("2026-01-01T00:00:00.{at:03}Z"),
        "time": took,
        "_resourceType": kind,
        "request": { "method": "GET", "url": format!("https://a.example/{path}"), "httpVersion": "h2" },
        "response": { "status": 200, "headers": [], "bodySize": bytes, "content": { "size": bytes } },
    });
    for (key, value) in more.as_object().expect("an object") {
        entry[key] = value.clone();
    }
    entry
}

fn replay(entries: &[Value], parsed_ms: u32) -> Replay {
    let pages = json!([{ "id": "1", "title": "Of <a> page", "pageTimings": { "onContentLoad": parsed_ms } }]);
    let file = json!({ "log": { "pages": pages, "entries": entries } });
    Replay::new(&har::parse(file.to_string().as_bytes(), None).expect("a HAR")).expect("a page")
}

fn chain() -> Replay {
    let none = json!({});
    let redirect = |target: &str| {
        json!({ "response": {
            "status": 302, "redirectURL": format!("https://a.example/{target}"), "headers": [], "bodySize": 300,
        } })
    };
    replay(
        &[
            entry((0, 50), "", "document", 20_000, &redirect("home")),
            entry((50, 50), "home", "document", 20_000, &none),
            entry((100, 50), "app.js", "script", 5_000, &none),
            // Before its parent had arrived, as a browser's parser finds it.
            entry((90, 50), "early.png", "image", 900, &none),
            entry(
                (170, 10),
                "data",
                "xhr",
                50,
                &json!({ "_initiator": { "url": "https://a.example/app.js" } }),
            ),
            entry((180, 10), "a.png", "image", 40, &redirect("b.png")),
            entry((190, 10), "b.png", "image", 700, &none),
            entry((230, 10), "late", "xhr", 60, &json!({ "_initiator": "https://a.example/b.png" })),
        ],
        185,
    )
}

#[test]
fn objects_wait_for_the_object_that_caused_them_and_for_its_thinking() {
    let replay = chain();
    assert_eq!(replay.document, 1);
    assert_eq!(replay.requests().collect::<Vec<_>>(), [2, 3, 4, 5, 7]);
    assert_eq!((&*replay.urls[0], &*replay.urls[2]), ("https://a.example/", "https://a.example/early.png"));
    let of = |place: usize| {
        let Node { parent, think, bytes, .. } = replay.nodes[place];
        (parent, think, bytes)
    };
    let millis = Span::from_millis;
    assert_eq!(of(2), (1, Span::ZERO, 900), "the picture comes before the script");
    assert_eq!(of(3), (1, Span::ZERO, 5_000));
    assert_eq!(of(4), (3, millis(20), 50), "as the file says");
    assert_eq!(of(5), (3, millis(30), 300), "the script had arrived last");
    assert_eq!(of(7), (5, millis(30), 60), "of a redirect's target, whose head is what is asked for");
    let places = |is: fn(&Node) -> bool| (0..8).filter(|place| is(&replay.nodes[*place])).collect::<Vec<_>>();
    assert_eq!(places(|node| node.is_above), [1, 2, 5], "the document and pictures before the event");
    assert_eq!(places(|node| node.leads), [0, 5]);
    assert_eq!(places(|node| node.is_led_to), [1, 6]);
}

#[test]
fn answers_have_the_sizes_of_the_file_and_what_their_kinds_need() {
    let (sender, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let replay = Arc::new(chain());
    let answer = |path: &str| {
        let request =
            http::Request::builder().uri(format!("https://h0.page.test{path}")).header(ORIGIN, "https://x");
        replay.answer(&request.body(()).expect("a request").into_parts().0, path)
    };
    let header = |answer: &Response<Body>, name: http::HeaderName| {
        answer.headers().get(name).map(|value| value.to_str().expect("text").to_owned()).unwrap_or_default()
    };
    for (place, content_type) in [
        (2, "image/svg+xml"),
        (3, "text/javascript"),
        (4, "application/octet-stream"),
        (1, "text/html; charset=utf-8"),
    ] {
        let answer = answer(&format!("/{place}"));
        let found = (header(&answer, CONTENT_LENGTH), header(&answer, CONTENT_TYPE));
        assert_eq!(found, (replay.nodes[place].bytes.to_string(), content_type.to_owned()), "{place}");
        assert_eq!(
            (answer.status(), header(&answer, ACCESS_CONTROL_ALLOW_ORIGIN).as_str()),
            (StatusCode::OK, "https://x")
        );
    }
    let redirect = answer("/5");
    assert_eq!(
        (redirect.status(), header(&redirect, LOCATION).as_str()),
        (StatusCode::FOUND, "https://h0.page.test/6")
    );
    for absent in ["/8", "/", "/favicon.ico", "/-1"] {
        assert_eq!(answer(absent).status(), StatusCode::NOT_FOUND, "{absent}");
    }
    let [before, after] = &replay.html;
    assert!(
        before.contains("<title>Of &lt;a&gt; page</title>") && after.contains("const tree=[[2,1,0,0,1,1],"),
        "{after}"
    );
    let site = headstart_web::site::Site::Made(replay.site(sender));
    let request = http::Request::builder()
        .version(http::Version::HTTP_3)
        .uri("https://h0.page.test/report?1_2")
        .body(http_body());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(site.answer(std::net::Ipv4Addr::LOCALHOST.into(), request.expect("a request")));
    assert_eq!(reports.try_recv().as_deref(), Ok("1_2"));
}

/// A body without bytes.
fn http_body() -> Body {
    filled("text/plain", "".into(), 0, "".into()).into_body()
}

#[test]
fn a_document_that_is_too_small_for_its_list_grows_and_a_page_that_is_too_large_is_refused() {
    let none = json!({});
    let small = replay(&[entry((0, 1), "", "document", 10, &none)], 1);
    assert!(small.nodes[0].bytes > 1000 && small.bytes() == small.nodes[0].bytes, "{small:?}");
    let many: Vec<Value> =
        (0..=MOST_OBJECTS).map(|place| entry((0, 1), &place.to_string(), "xhr", 9, &none)).collect();
    let refused = |entries: &[Value]| {
        let file = json!({ "log": { "entries": entries } }).to_string();
        Replay::new(&har::parse(file.as_bytes(), None).expect("a HAR")).expect_err("too many").to_string()
    };
    assert_eq!(refused(&many), "found 1501 objects, expected 1500 at most");
    let own_host = |(place, entry): (usize, &Value)| {
        let mut entry = entry.clone();
        entry["request"]["url"] = format!("https://o{place}.example/").into();
        entry
    };
    let hosts: Vec<Value> = many.iter().take(MOST_HOSTS + 1).enumerate().map(own_host).collect();
    assert_eq!(refused(&hosts), "found 801 hosts, expected 800 at most");
}

#[test]
fn every_shape_is_a_whole_har_whose_origins_are_those_of_its_help() {
    for shape in Shape::value_variants() {
        let page = har::parse(shape.har().to_string().as_bytes(), None).expect("a HAR");
        assert!(page.skipped.is_empty() && page.guessed == 0 && page.is_multiplexed, "{shape:?}");
        let help = shape.to_possible_value().and_then(|value| value.get_help().map(ToString::to_string));
        let replay = Replay::new(&page).expect("a page");
        assert!(help.unwrap_or_default().starts_with(&format!("{} origins", replay.origins)), "{shape:?}");
        let requests: Vec<&Node> = replay.requests().map(|place| &replay.nodes[place]).collect();
        assert!(
            requests.iter().any(|node| node.parent > 0 && !node.think.is_zero()),
            "{shape:?}: a script asks for some"
        );
        assert!(
            requests.iter().any(|node| node.is_above) && requests.iter().any(|node| !node.is_above),
            "{shape:?}"
        );
    }
}

#[test]
fn the_simulator_requests_the_tree_and_knows_the_client_on_its_second_visit() {
    let visits = |replay: Replay, scheme: &str| {
        let words =
            ["--rate=20 Mbit/s", "--rtt=100 ms", "--buffer=1 MB", "--transport=quic", "--receive-window=6MB"];
        let setup = headstart_study::settings::Settings::parse(headstart_carriers::ALL, words.into_iter())
            .expect("options");
        let scheme: SchemeName = scheme.parse().expect("a scheme");
        model::visits(&setup, &Arc::new(replay), scheme, 1).expect("two visits")
    };
    let none = json!({});
    let flat = |cause: &Value| {
        let entries = [
            entry((0, 10), "", "document", 5_000, &none),
            entry((10, 10), "a.js", "script", 5_000, &none),
            entry((50, 10), "b", "xhr", 5_000, cause),
        ];
        visits(replay(&entries, 20), "iw10")
    };
    let of = |name: &str| json!({ "_initiator": format!("https://a.example/{name}") });
    let [[by_document, _], [by_script, again]] = [flat(&of("")), flat(&of("a.js"))];
    // 40 ms after the document, or a round trip and 30 ms.
    assert!((80.0..100.0).contains(&(by_script - by_document)), "{by_script} {by_document}");
    assert!((by_script - again).abs() < 5.0, "slow start knows nothing: {by_script} {again}");
    let large = replay(&[entry((0, 10), "", "document", 400_000, &none)], 5);
    let [cold, returning] = visits(large, "headstart");
    assert!(returning < cold * 0.9, "{returning} {cold}");
    let redirected = chain();
    let [once, twice] = visits(redirected, "iw10");
    assert!((once - twice).abs() < 5.0 && once > 400.0, "every object of a chain arrives: {once} {twice}");
}
