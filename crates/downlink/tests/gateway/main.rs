//! Gateways that are correct, faulty, and hostile.

mod simulated;

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use headstart_downlink::Meaning;
use headstart_downlink::gateway::{Error, Options, estimate_of, query as query_once};
use headstart_startup::prior::Access;
use headstart_units::Rate;
use simulated::*;

/// Result of a query to a gateway with this description and this answer.
fn asked(description: String, answer: String) -> Result<(Rate, Access), Error> {
    let gateway = Gateway::with(honest(description, answer));
    ask(&gateway.options()).map(|link| (link.properties.downstream, link.properties.access))
}

fn answering(answer: &str) -> Result<(Rate, Access), Error> {
    asked(description("", "/control", ""), answer.to_owned())
}

/// Error of a query to a gateway that serves every request so.
fn treating(serve: impl Fn(&Request, &mut std::net::TcpStream) + Send + 'static) -> Error {
    let gateway = Gateway::with(Box::new(serve));
    ask(&gateway.options()).expect_err("nothing to be believed")
}

/// Error of a query to a gateway that is found, and then exceeds the time limit.
fn given_up(serve: impl Fn(&Request, &mut std::net::TcpStream) + Clone + Send + 'static) -> Error {
    let asked = |timeout| {
        let gateway = Gateway::with(Box::new(serve.clone()));
        query_once(&Options { timeout, ..gateway.options() }).expect_err("nothing to be believed")
    };
    // On a loaded host the search itself may exceed the limit.
    match asked(Duration::from_secs(2)) {
        Error::NoAnswer { .. } => asked(Duration::from_secs(20)),
        told => told,
    }
}

/// Checks all rows concurrently: each rejection takes its time limit.
fn together<T: Sync>(rows: &[T], check: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| rows.iter().for_each(|row| drop(scope.spawn(|| check(row)))));
}

#[test]
fn search_description_and_query_of_a_gateway_follow_the_standard() {
    let line = properties("DSL", "51390000", "Up");
    let gateway = Gateway::with(honest(description("", "/igdupnp/control/WANCommonIFC1", ""), line));
    let link = ask(&gateway.options()).expect("an answer");
    assert_eq!((link.gateway, link.service.as_str()), (IpAddr::V4(HERE), COMMON));
    assert_eq!(link.properties.downstream, Rate::from_bits_per_sec(51_390_000));
    let seen = gateway.seen();
    let search = &seen.searches[0];
    assert!(search.starts_with("M-SEARCH * HTTP/1.1\r\n") && search.ends_with("\r\n\r\n"), "{search}");
    assert!(search.contains("MAN: \"ssdp:discover\"\r\n") && search.contains(&format!("ST: {IGD}\r\n")));
    assert!(search.contains(&format!("HOST: {}\r\n", gateway.search)));
    assert!(!search.contains("MX:"), "a search for one host is answered at once");
    let [get, post] = &seen.requests[..] else { panic!("{seen:?}") };
    assert_eq!(get.line, "GET /igddesc.xml HTTP/1.1");
    assert_eq!(post.line, "POST /igdupnp/control/WANCommonIFC1 HTTP/1.1");
    let header = post.header.to_ascii_lowercase();
    assert!(
        header.contains(&format!("soapaction: \"{COMMON}#GetCommonLinkProperties\"").to_ascii_lowercase()),
        "{header}"
    );
    assert!(header.contains("content-type: text/xml; charset=\"utf-8\""), "{header}");
    assert!(
        post.body.contains(&format!("<u:GetCommonLinkProperties xmlns:u=\"{COMMON}\"/>")),
        "{}",
        post.body
    );
}

#[test]
fn a_gateway_that_answers_only_multicast_is_found() {
    let group: SocketAddr = "239.255.255.250:0".parse().expect("an address");
    let receiver = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
    let SocketAddr::V4(four) = group else { panic!("of IPv4") };
    if receiver.join_multicast_v4(four.ip(), &std::net::Ipv4Addr::UNSPECIFIED).is_err() {
        return headstart_host::not_run("this machine has no interface for multicast");
    }
    let port = receiver.local_addr().expect("an address").port();
    let http = Gateway::with(honest(description("", "/c", ""), properties("Cable", "250000000", "Up"))).http;
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = receiver.recv_from(&mut buffer) {
            let search = String::from_utf8_lossy(&buffer[..length]).into_owned();
            assert!(search.contains("MX: 1\r\n"), "{search}");
            // Received on any interface, answered from the address of the description.
            let sender = UdpSocket::bind((HERE, 0)).expect("a port");
            let _ = sender.send_to(&found(&format!("http://{http}/igddesc.xml")), (HERE, from.port()));
        }
    });
    let options = Options {
        search: vec![SocketAddr::new(group.ip(), port)],
        gateway: None,
        timeout: Duration::from_secs(2),
    };
    let link = ask(&options).expect("an answer");
    assert_eq!(link.properties.access, Access::Cable);
}

#[test]
fn each_service_name_and_each_form_of_its_url_is_accepted() {
    let expected = Ok((Rate::from_bits_per_sec(103_880_000), Access::Dsl));
    let line = || properties("DSL", "103880000", "Up");
    for kind in [
        COMMON,
        "urn:schemas-upnp-org:service:WANCommonInterfaceConfig:2",
        "urn:dslforum-org:service:WANCommonInterfaceConfig:1",
    ] {
        assert_eq!(
            asked(description(kind, "/upnp/control/wancommonifconfig1", ""), line()),
            expected,
            "{kind}"
        );
    }
    assert_eq!(asked(description("", "control", ""), line()), expected, "relative to the description");
    assert_eq!(
        asked(format!("\u{feff}\n{}", description("", "/c", "")), line()),
        expected,
        "a byte order mark"
    );
    // With a base, and with an absolute URL, both at the gateway itself.
    for with_base in [true, false] {
        let gateway = Gateway::start(
            |http| vec![found(&format!("http://{http}/d.xml"))],
            Box::new(move |request, stream| {
                let http = stream.local_addr().expect("an address");
                let whole = format!("http://{http}/c");
                let base = format!("<URLBase>http://{http}</URLBase>");
                let text = if with_base { description("", "c", &base) } else { description("", &whole, "") };
                let line = properties("DSL", "103880000", "Up");
                respond(stream, "200 OK", "", if request.line.starts_with("GET ") { &text } else { &line });
            }),
        );
        assert!(ask(&gateway.options()).is_ok(), "base: {with_base}");
        assert_eq!(gateway.seen().requests[1].line, "POST /c HTTP/1.1");
    }
}

#[test]
fn a_port_speed_is_a_bound_and_a_line_rate_is_reduced_by_framing() {
    #[rustfmt::skip]
    let rows = [
        ("DSL",      "51390000",   Meaning::Line,  Access::Dsl,      "43.6815 Mbit/s"),
        ("Cable",    "1150000000", Meaning::Line,  Access::Cable,    "1.081 Gbit/s"),
        ("Cable",    "100000000",  Meaning::Bound, Access::Ethernet, "94 Mbit/s"),
        ("DSL",      "1000000000", Meaning::Bound, Access::Ethernet, "940 Mbit/s"),
        ("Ethernet", "300000000",  Meaning::Bound, Access::Ethernet, "282 Mbit/s"),
    ];
    for (access, bits, meaning, expected, expects) in rows {
        let gateway = Gateway::with(honest(description("", "/c", ""), properties(access, bits, "Up")));
        let estimate = estimate_of(&ask(&gateway.options()).expect("an answer"));
        let expects: Rate = expects.parse().expect("a rate");
        assert_eq!(
            (estimate.meaning, estimate.access, estimate.expected),
            (meaning, expected, expects),
            "{access} {bits}"
        );
    }
}

#[test]
fn invalid_responses_are_refused_with_a_reason() {
    #[rustfmt::skip]
    let rows = [
        (properties("DSL", "0", "Down"),           "its line is down"),
        (properties("DSL", "50000000", "Initializing"), "its line is down"),
        (properties("DSL", "0", "Up"),             "found a rate of 0 bit/s, expected 64 kbit/s to 400 Gbit/s"),
        (properties("DSL", "9999999999999", "Up"), "found a rate of 9999.999 Gbit/s, expected 64 kbit/s to 400 Gbit/s"),
        (properties("DSL", "4294967295", "Up"),    "found a rate of 4294967295 bit/s, the largest number of its type, expected a rate"),
        (properties("DSL", "fast", "Up"),          "found a rate of `fast`, expected bit/s as digits"),
        ("<a/>".into(),                            "found an answer without GetCommonLinkPropertiesResponse"),
        ("<GetCommonLinkPropertiesResponse/>".into(), "found an answer without NewLayer1DownstreamMaxBitRate"),
    ];
    together(&rows, |(answer, expected)| {
        assert_eq!(answering(answer).expect_err(expected).to_string(), *expected);
    });
    assert!(matches!(answering("oops"), Err(Error::Xml { .. })));
    assert!(matches!(answering(""), Err(Error::Xml { .. })));
    assert_eq!(asked("<root/>".into(), String::new()), Err(Error::NoService));
    assert!(matches!(
        asked("<html><body>Log in<br></body></html>".into(), String::new()),
        Err(Error::Xml { .. })
    ));
}

#[test]
fn statuses_other_than_success_are_named() {
    for (status, expected) in [
        ("404 Not Found", "found HTTP status 404, expected 200"),
        ("401 Unauthorized", "it requires a password"),
    ] {
        let error = treating(move |_, stream| {
            respond(stream, status, "WWW-Authenticate: Digest realm=\"x\", nonce=\"1\"\r\n", "no")
        });
        assert_eq!(error.to_string(), expected);
    }
    let fault = "<s:Envelope xmlns:s='s'><s:Body><s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>\
                 <UPnPError xmlns='u'><errorCode>501</errorCode><errorDescription>Action Failed</errorDescription></UPnPError></detail></s:Fault></s:Body></s:Envelope>";
    let error = treating(move |request, stream| match request.line.starts_with("GET ") {
        true => respond(stream, "200 OK", "", &description("", "/c", "")),
        false => respond(stream, "500 Internal Server Error", "", fault),
    });
    assert_eq!(error.to_string(), "it refused: error 501, `Action Failed`");
}

#[test]
fn entity_expansion_and_deep_nesting_are_refused_before_they_use_memory() {
    let entities: String = (1..12)
        .map(|level| format!("<!ENTITY e{level} \"{}\">", format!("&e{};", level - 1).repeat(10)))
        .collect();
    let bomb = format!("<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e0 \"ha\">{entities}]><x>&e11;</x>");
    let outside = "<!DOCTYPE x [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><x>&f;</x>".to_owned();
    let tower = "<a>".repeat(40_000);
    let crowd = format!("<a>{}</a>", "<b/>".repeat(30_000));
    together(&[bomb, outside, tower, crowd], |text| {
        assert!(matches!(asked(text.clone(), String::new()), Err(Error::Xml { .. })), "{}", &text[..40]);
        assert!(matches!(answering(text), Err(Error::Xml { .. })), "{}", &text[..40]);
    });
}

/// A host that must not be contacted, and its listener.
fn trap() -> (SocketAddr, TcpListener) {
    let trap = TcpListener::bind((THERE, 0)).expect("a port");
    trap.set_nonblocking(true).expect("a socket");
    (trap.local_addr().expect("an address"), trap)
}

#[test]
fn no_response_redirects_the_client_to_another_host() {
    let (there, trap) = trap();
    let line = || properties("DSL", "50000000", "Up");
    // Through the description's URL.
    let gateway = Gateway::start(
        move |_| vec![found(&format!("http://{there}/d.xml"))],
        honest(String::new(), String::new()),
    );
    assert!(matches!(ask(&gateway.options()), Err(Error::ForeignUrl { .. })));
    // Through the service's URL, absolute or by way of the base.
    let whole = description("", &format!("http://{there}/c"), "");
    assert!(matches!(asked(whole, line()), Err(Error::ForeignUrl { .. })));
    let base = description("", "/c", &format!("<URLBase>http://{there}/</URLBase>"));
    assert!(matches!(asked(base, line()), Err(Error::ForeignUrl { .. })));
    assert!(matches!(
        asked(description("", &format!("//{there}/c"), ""), line()),
        Err(Error::ForeignUrl { .. })
    ));
    assert!(
        matches!(asked(description("", "http://localhost/c", ""), line()), Err(Error::ForeignUrl { .. })),
        "nor by a name"
    );
    assert!(matches!(asked(description("", "ftp://127.0.0.1/c", ""), line()), Err(Error::Url { .. })));
    // Through a redirection.
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
        let error =
            treating(move |_, stream| respond(stream, status, &format!("Location: http://{there}/\r\n"), ""));
        assert_eq!(error, Error::Redirected { to: format!("http://{there}/") });
    }
    assert!(trap.accept().is_err(), "somebody was asked");
    let _caller = std::net::TcpStream::connect(there).expect("a trap");
    trap.set_nonblocking(false).expect("a socket");
    assert!(trap.accept().is_ok(), "the trap works");
}

#[test]
fn only_responses_of_the_gateway_are_accepted() {
    let gateway = Gateway::with(honest(description("", "/c", ""), properties("DSL", "50000000", "Up")));
    let another = |timeout| Options { gateway: Some(IpAddr::V4(THERE)), timeout, ..gateway.options() };
    // One per search target. On a loaded host some may arrive too late: then the limit is raised.
    let all = Err(Error::OtherHosts { count: 3 });
    let told = [400, 4_000, 40_000].map(Duration::from_millis).map(another);
    assert!(told.iter().any(|options| query_once(options) == all), "{:?}", query_once(&told[2]));
    assert!(gateway.seen().requests.is_empty());
    let anybody = Options { gateway: None, ..gateway.options() };
    assert!(ask(&anybody).is_ok(), "if no gateway is known, whoever is near");
}

#[test]
fn a_silent_gateway_uses_at_most_half_of_the_timeout() {
    let quiet = UdpSocket::bind((HERE, 0)).expect("a port");
    let options = |search| Options { search, gateway: None, timeout: Duration::from_millis(400) };
    let silent = Error::NoAnswer { waited: Duration::from_millis(200) };
    assert_eq!(query_once(&options(vec![quiet.local_addr().expect("an address")])), Err(silent.clone()));
    // A connected socket: it refuses all but its peer, and keeps its port from others.
    let closed = UdpSocket::bind((HERE, 0)).expect("a port");
    closed.connect((HERE, 9)).expect("a peer");
    let closed = vec![closed.local_addr().expect("an address")];
    assert_eq!(query_once(&options(closed)), Err(silent), "nobody listens there");
    assert!(
        matches!(query_once(&options(vec![])), Err(Error::System { .. })),
        "no address for the search request"
    );
}

#[test]
fn malformed_responses_do_not_hide_a_gateway() {
    let gateway = Gateway::start(
        |http| {
            vec![
                vec![0xff; 100],
                b"NOTIFY * HTTP/1.1\r\nNTS: ssdp:alive\r\n\r\n".to_vec(),
                vec![],
                b"HTTP/1.1 200 OK\r\nST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\n\r\n"
                    .to_vec(),
                found(&format!("http://{http}/missing.xml")),
                found(&format!("http://{http}/d.xml")),
            ]
        },
        Box::new(|request, stream| match request.line.as_str() {
            "GET /d.xml HTTP/1.1" => respond(stream, "200 OK", "", &description("", "/c", "")),
            "POST /c HTTP/1.1" => respond(stream, "200 OK", "", &properties("DSL", "16000000", "Up")),
            _ => respond(stream, "404 Not Found", "", ""),
        }),
    );
    assert!(ask(&gateway.options()).is_ok());
}

#[test]
fn responses_too_long_or_too_slow_are_given_up_in_time() {
    let too_long = treating(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<?xml version=\"1.0\"?><a>");
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    });
    assert_eq!(too_long, Error::TooLarge { limit: 128 * 1024 });
    let endless_header = treating(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"X-More: and more and more and more and more and more\r\n").is_ok() {}
    });
    assert!(matches!(endless_header, Error::Broken { .. }), "{endless_header:?}");
    let nothing = treating(|_, stream| drop(stream.shutdown(std::net::Shutdown::Both)));
    assert!(matches!(nothing, Error::Broken { .. }), "{nothing:?}");
    let begun = headstart_host::Deadline::after(Duration::from_secs(4));
    assert_eq!(given_up(|_, _| pause(Duration::from_secs(100))), Error::TimedOut);
    let dripping = given_up(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        while stream.write_all(b" ").is_ok() {
            pause(Duration::from_millis(20));
        }
    });
    assert_eq!(dripping, Error::TimedOut);
    assert!(begun.left().is_none(), "two seconds were waited twice");
    assert!(begun.or_after(Duration::ZERO).left().is_none());
}
