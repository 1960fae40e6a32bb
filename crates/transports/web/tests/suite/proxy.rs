//! Other servers behind this one.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::admissions::begin_early;
use crate::common::{Running, TIMEOUT, start, until};
use crate::hostile::{dial as dial_h3, request as get_h3, varint};
use crate::hostile_tcp::{dial_2, frame};
use crate::tcp::{ask, dial};
use headstart_web::places::ConnectionCounters;
use headstart_web::proxy::{Proxy, ProxyConfig};
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// An origin that does with each connection what `serve` says.
pub async fn origin<F, S>(serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> S + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// One that answers each request with the same bytes, and tells the heads of requests.
pub async fn answering(answer: &'static [u8]) -> (SocketAddr, UnboundedReceiver<String>) {
    let (tell, heads) = unbounded_channel();
    let address = origin(move |mut stream| {
        let tell = tell.clone();
        async move {
            while let Some(head) = read_head(&mut stream).await {
                let _ = tell.send(head);
                let _ = stream.write_all(answer).await;
                if !answer.starts_with(b"HTTP/1.1") || answer.ends_with(b"truncated") {
                    break;
                }
            }
        }
    })
    .await;
    (address, heads)
}

/// The head of a message, or `None` at the end.
pub async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

pub async fn in_front_of(upstreams: &[SocketAddr]) -> Running {
    in_front_with(upstreams, ProxyConfig::default()).await
}

pub async fn in_front_with(upstreams: &[SocketAddr], config: ProxyConfig) -> Running {
    let upstreams = upstreams.iter().map(|it| format!("http://{it}").parse().expect("a URL")).collect();
    let proxy = Proxy::new(upstreams, config).expect("certificates");
    start(ServerConfig::default(), |_| Site::Upstreams(Arc::new(proxy))).await
}

pub async fn in_front_as(server_config: ServerConfig, upstream: SocketAddr) -> Running {
    let upstream = format!("http://{upstream}").parse().expect("a URL");
    let proxy = Proxy::new(vec![upstream], ProxyConfig::default()).expect("certificates");
    start(server_config, |_| Site::Upstreams(Arc::new(proxy))).await
}

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

pub fn get(fields: &str) -> String {
    format!("GET /a?b=c HTTP/1.1\r\nHost: site.example\r\nConnection: close\r\n{fields}\r\n")
}

pub fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_reaches_the_upstream_over_every_version_of_http() {
    let (address, mut heads) = answering(HELLO).await;
    let server = in_front_of(&[address]).await;
    let answer = ask(&server, &get("")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert!(answer.contains("content-length: 5\r\n") && answer.contains("alt-svc: h3"), "{answer}");
    let head = heads.recv().await.expect("a request");
    assert!(head.starts_with("GET /a?b=c HTTP/1.1\r\n") && head.contains("host: site.example\r\n"), "{head}");
    assert!(head.contains("via: 1.1 headstart-"), "{head}");

    let page = &server.fetch(&["/a?b=c"]).await.pages[0];
    assert_eq!(page.body.as_deref(), Some(b"hello".as_slice()));
    let head = heads.recv().await.expect("a request");
    let host = format!("host: localhost:{}\r\n", server.address.port());
    assert!(head.contains("via: 3 headstart-") && head.contains(&host), "{head}");
    assert!(!head.contains("transfer-encoding") && !head.contains("content-length"), "no body: {head}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_a_connection_stay_on_it_and_claims_of_clients_are_replaced() {
    let answer =
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x-own\r\nX-Own: 1\r\nKeep-Alive: 1\r\n\
        Upgrade: h2c\r\nAlt-Svc: h3=\":1\"\r\nX-Kept: 2\r\n\r\n";
    let (address, mut heads) = answering(answer).await;
    let server = in_front_of(&[address]).await;
    let claims = "Connection: x-hop, content-length\r\nX-Hop: 1\r\nKeep-Alive: 2\r\nTE: trailers\r\nProxy-Connection: x\r\n\
        X-Forwarded-For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\n\
        CF-Connecting-IP: 6.6.6.6\r\nTrue-Client-IP: 6.6.6.6\r\nX-Client-IP: 6.6.6.6\r\nForwarded-For: 6.6.6.6\r\n\
        X-Original-URL: /6.6.6.6\r\nX-Forwarded-Prefix: /x\r\nProxy: http://6.6.6.6\r\nX-Kept: 3\r\nCookie: a=1\r\nCookie: b=2\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n";
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    stream.write_all(get(claims).as_bytes()).await.expect("sent");
    let told = String::from_utf8_lossy(&read_until(&mut stream, b"\r\n\r\n").await).into_owned();
    let head = heads.recv().await.expect("a request").to_lowercase();
    for gone in ["x-hop", "keep-alive", "proxy", "6.6.6.6", "_", "prefix", "upgrade"] {
        assert!(!head.contains(gone), "{gone}: {head}");
    }
    for there in [
        "forwarded: for=127.0.0.1;host=\"site.example\";proto=https\r\n",
        "x-forwarded-for: 127.0.0.1\r\n",
        "x-forwarded-proto: https\r\n",
        "x-forwarded-host: site.example\r\n",
        "x-kept: 3\r\n",
        "cookie: a=1; b=2\r\n",
        "te: trailers\r\n",
    ] {
        assert!(head.contains(there), "{there}: {head}");
    }
    assert!(told.contains("x-kept: 2\r\n"), "{told}");
    for gone in ["x-own", "keep-alive", "upgrade", "\":1\""] {
        assert!(!told.contains(gone), "{gone}: {told}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_a_proxy_that_is_trusted_are_added_to_and_the_host_may_be_the_upstreams() {
    let (address, mut heads) = answering(HELLO).await;
    let config = ProxyConfig { trust_forwarded: true, names_upstream: true, ..ProxyConfig::default() };
    let server = in_front_with(&[address], config).await;
    ask(
        &server,
        &get("Forwarded: for=192.0.2.1\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nX-Forwarded-Proto: http\r\n"),
    )
    .await;
    let head = heads.recv().await.expect("a request");
    for there in [
        "forwarded: for=192.0.2.1, for=127.0.0.1;host=\"site.example\";proto=https\r\n".to_owned(),
        "x-forwarded-for: 192.0.2.1, 192.0.2.2, 127.0.0.1\r\n".to_owned(),
        "x-forwarded-proto: http\r\n".to_owned(),
        format!("host: {address}\r\n"),
    ] {
        assert!(head.contains(&there), "{there}: {head}");
    }
    server.stop().await;
}

/// Each half waits until the other side has the former.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_passed_on_as_they_come_both_ways() {
    let address = origin(|mut stream| async move {
        let head = read_head(&mut stream).await.expect("a request");
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        let mut chunk = [0; 8];
        stream.read_exact(&mut chunk).await.expect("a chunk");
        assert_eq!(&chunk, b"3\r\none\r\n");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n1st\r\n")
            .await
            .expect("sent");
        stream.read_exact(&mut chunk).await.expect("a chunk");
        assert_eq!(&chunk, b"3\r\ntwo\r\n");
        stream.write_all(b"3\r\n2nd\r\n0\r\n\r\n").await.expect("sent");
    })
    .await;
    let server = in_front_of(&[address]).await;
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    read_until(&mut stream, b"1st\r\n").await;
    stream.write_all(b"3\r\ntwo\r\n0\r\n\r\n").await.expect("sent");
    read_until(&mut stream, b"0\r\n\r\n").await;

    let (connection, _control) = dial_h3(&server).await;
    let (mut request, mut answer) = connection.open_bi().await.expect("a stream");
    request.write_all(&[post_h3("/", &[]), data(b"one")].concat()).await.expect("sent");
    read_until(&mut answer, b"1st").await;
    request.write_all(&data(b"two")).await.expect("sent");
    request.finish().expect("open");
    let rest = answer.read_to_end(1000).await.expect("an answer");
    // A frame of a type that is not known may follow (RFC 9114 §7.2.8).
    assert!(rest.starts_with(&data(b"2nd")), "{rest:?}");
    server.stop().await;
}

pub async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &[u8]) -> Vec<u8> {
    let mut read = vec![];
    while !read.windows(end.len()).any(|bytes| bytes == end) {
        let count = tokio::time::timeout(TIMEOUT, stream.read_buf(&mut read)).await.expect("in time");
        assert!(count.expect("open") > 0, "{}", String::from_utf8_lossy(&read));
    }
    read
}

/// A request with a body, by static names (RFC 9204, Appendix A).
fn post_h3(path: &str, length: &[u8]) -> Vec<u8> {
    let mut request = get_h3(path);
    // `:method: POST` in place of GET.
    request[4] = 0xd4;
    if !length.is_empty() {
        request.extend([0x54, length.len() as u8]);
        request.extend(length);
        request[1] += 2 + length.len() as u8;
    }
    request
}

fn data(bytes: &[u8]) -> Vec<u8> {
    [varint(0x00), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// Of a request over HTTP/3 to an upstream.
async fn over_h3(server: &Running, request: &[u8]) -> Result<Vec<u8>, noq::ReadToEndError> {
    let (connection, _control) = dial_h3(server).await;
    let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
    stream.write_all(request).await.expect("sent");
    let _ = stream.finish();
    tokio::time::timeout(TIMEOUT, answer.read_to_end(100_000)).await.expect("in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_cut_short_does_not_look_whole() {
    for cut in [
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ntruncated".as_slice(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ntruncated",
    ] {
        let (address, _heads) = answering(cut).await;
        let server = in_front_of(&[address]).await;
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        stream.write_all(get("").as_bytes()).await.expect("sent");
        let mut answer = vec![];
        let ended = stream.read_to_end(&mut answer).await;
        assert!(ended.is_err() || !answer.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&answer));
        let reset = over_h3(&server, &get_h3("/")).await;
        assert!(matches!(reset, Err(noq::ReadToEndError::Read(noq::ReadError::Reset(_)))), "{reset:?}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_cut_short_does_not_look_whole_to_the_upstream() {
    let (tell, mut bodies) = unbounded_channel();
    let address = origin(move |mut stream| {
        let tell = tell.clone();
        async move {
            let mut request = vec![];
            let _ = stream.read_to_end(&mut request).await;
            tell.send(String::from_utf8_lossy(&request).into_owned()).expect("a listener");
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    // Shorter and longer than announced.
    for body in [b"half".as_slice(), b"rather long"] {
        let answer = over_h3(&server, &[post_h3("/", b"8"), data(body)].concat()).await;
        let text = String::from_utf8_lossy(&answer.expect("an answer")).into_owned();
        assert!(text.contains("another length than announced\n"), "{text}");
        let passed = bodies.recv().await.expect("a connection");
        let body = passed.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert!(body.len() < 8, "{passed}");
    }
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(stream);
    let passed = bodies.recv().await.expect("a request");
    assert!(passed.ends_with("3\r\none\r\n"), "{passed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_a_body_keep_their_fields_and_have_none() {
    for (answer, request, expected) in [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n".as_slice(), "HEAD", "content-length: 12345\r\n"),
        (b"HTTP/1.1 204 No Content\r\nX-Own: 1\r\n\r\n", "GET", "x-own: 1\r\n"),
        (
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 12345\r\nETag: \"a\"\r\n\r\n",
            "GET",
            "etag: \"a\"\r\n",
        ),
    ] {
        let (address, _heads) = answering(answer).await;
        let server = in_front_of(&[address]).await;
        let told = ask(&server, &get("").replace("GET", request)).await;
        assert!(told.contains(expected) && told.ends_with("\r\n\r\n"), "{told}");
        assert!(!told.contains("content-length: 0"), "{told}");
        if request == "GET" {
            let over_h3 = over_h3(&server, &get_h3("/")).await.expect("an answer");
            let behind = 2 + usize::from(over_h3[1]);
            assert_ne!(over_h3.get(behind), Some(&0x00), "no DATA behind HEADERS: {over_h3:?}");
        }
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_are_passed_on_both_ways() {
    let (tell, mut requests) = unbounded_channel();
    let address = origin(move |mut stream| {
        let tell = tell.clone();
        async move {
            let request = read_until(&mut stream, b"x-sum: 7\r\n\r\n").await;
            tell.send(String::from_utf8_lossy(&request).into_owned()).expect("a listener");
            let answer = b"HTTP/1.1 200 OK\r\nTrailer: x-end, connection, content-length, set-cookie, alt-svc\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n\
                0\r\nX-End: 8\r\nConnection: x\r\nContent-Length: 99\r\nSet-Cookie: a=1\r\n\
                Alt-Svc: h3=\":1\"\r\nTrailer: x\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(answer).await.expect("sent");
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    let claims = ["Forwarded", "X-Forwarded-For", "X_Forwarded_For", "X-Real-IP", "Proxy", "Host", "Via"];
    let of_head = ["Authorization", "Cookie", "Content-Length", "Early-Data", "Expect"];
    let names = [&claims[..], &of_head].concat();
    let fields: String = names.iter().map(|name| format!("{name}: 66\r\n")).collect();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nTrailer: X-Sum, {}\r\nConnection: close\r\n\
        Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n{fields}X-Sum: 7\r\n\r\n",
        names.join(", ")
    );
    let answer = ask(&server, &request).await;
    assert!(answer.ends_with("0\r\nx-end: 8\r\n\r\n"), "{answer}");
    let passed = requests.recv().await.expect("a request").to_lowercase();
    assert!(passed.contains("x-sum: 7") && !passed.contains(": 66\r\n"), "{passed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_dead_or_late_or_talks_nonsense_has_one_clear_answer() {
    let dead = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let silent = origin(|mut stream| async move {
        let _ = stream.read_to_end(&mut vec![]).await;
    })
    .await;
    let stuck = origin(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun").await;
        let _ = stream.read_to_end(&mut vec![]).await;
    })
    .await;
    let (nonsense, _) = answering(b"220 smtp.example ESMTP\r\n").await;
    let huge: &'static str = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(200_000)).leak();
    let (huge, _) = answering(huge.as_bytes()).await;
    let (switching, _) =
        answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n").await;
    let (coded, _) =
        answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n").await;
    let (coded_to_end, _) = answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\ntruncated").await;
    let many: &'static str =
        format!("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n{}\r\nmany", "A: b\r\n".repeat(200)).leak();
    let (many, _) = answering(many.as_bytes()).await;
    let short = Duration::from_millis(300);
    for (address, expected, text) in [
        (dead, "502", "cannot be reached"),
        (silent, "504", "did not answer in time"),
        (nonsense, "502", "no valid answer"),
        (huge, "502", "no valid answer"),
        (switching, "502", "no valid answer"),
        (coded, "502", "no valid answer"),
        (coded_to_end, "502", "no valid answer"),
        (many, "200", "many"),
        (stuck, "200", "begun"),
    ] {
        let config = ProxyConfig { first_byte: short, idle: short, ..ProxyConfig::default() };
        let server = in_front_with(&[address], config).await;
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        stream.write_all(get("").as_bytes()).await.expect("sent");
        let mut answer = vec![];
        let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.expect("in time");
        let answer = String::from_utf8_lossy(&answer);
        assert_eq!(status(&answer), expected, "{answer}");
        assert!(answer.trim_end().ends_with(text), "{answer}");
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_send_its_request_is_told_so() {
    let (address, _heads) = answering(HELLO).await;
    let late = origin(|mut stream| async move {
        let _ = stream.read_to_end(&mut vec![]).await;
    })
    .await;
    let config = ProxyConfig { first_byte: Duration::from_millis(300), ..ProxyConfig::default() };
    for address in [late, address] {
        let server = in_front_with(&[address], config.clone()).await;
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        stream.write_all(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf").await.expect("sent");
        let answer = read_until(&mut stream, b"\r\n\r\n").await;
        let expected = if address == late { "408" } else { "200" };
        assert_eq!(status(&String::from_utf8_lossy(&answer)), expected);
        server.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_comes_again_is_refused() {
    // The port of a server that passes requests to itself is known after its upstream.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let relay = listener.local_addr().expect("an address");
    let server = Arc::new(in_front_of(&[relay]).await);
    let own = Arc::clone(&server);
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let mut to = dial(&own, &[b"http/1.1"]).await;
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await });
        }
    });
    let answer = ask(&server, &get("")).await;
    assert_eq!(status(&answer), "508", "{answer}");
    let hops = "Via: 1.1 other\r\n".repeat(20);
    let answer = ask(&server, &get(&hops)).await;
    assert_eq!(status(&answer), "508", "a loop of others: {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn upstreams_take_turns_and_one_that_is_dead_gets_nothing_for_a_while() {
    let dead = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let (first, mut to_first) = answering(HELLO).await;
    let (second, mut to_second) = answering(HELLO).await;
    let upstreams = [first, dead, second].map(|it| format!("http://{it}").parse().expect("a URL"));
    let proxy = Arc::new(Proxy::new(upstreams.into(), ProxyConfig::default()).expect("certificates"));
    let site = Arc::clone(&proxy);
    let server = start(ServerConfig::default(), |_| Site::Upstreams(site)).await;
    for _ in 0..12 {
        assert_eq!(status(&ask(&server, &get("")).await), "200");
    }
    let count = |heads: &mut UnboundedReceiver<String>| std::iter::from_fn(|| heads.try_recv().ok()).count();
    let counts = [count(&mut to_first), count(&mut to_second)];
    assert!(counts.iter().all(|count| *count >= 4) && counts.iter().sum::<usize>() == 12, "{counts:?}");
    let counters = proxy.render();
    let of_dead = format!("upstream=\"http://{dead}\"");
    assert!(counters.contains(&format!("headstart_upstream_up{{{of_dead}}} 0\n")), "{counters}");
    assert!(!counters.contains(&format!("{of_dead},outcome=\"unreachable\"}} 0\n")), "{counters}");
    server.stop().await;
}

/// The first connection ends when the request is there: a body that was begun cannot be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_request_that_can_do_no_harm_is_repeated() {
    for (request, expected) in [
        (get(""), "200"),
        ("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi".to_owned(), "502"),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(), "502"),
    ] {
        let is_first = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let address = origin(move |mut stream| {
            let ends = is_first.swap(false, std::sync::atomic::Ordering::Relaxed);
            async move {
                read_head(&mut stream).await;
                if !ends {
                    let _ = stream.write_all(HELLO).await;
                }
            }
        })
        .await;
        let server = in_front_of(&[address]).await;
        let answer = ask(&server, &request).await;
        assert_eq!(status(&answer), expected, "{request}{answer}");
        server.stop().await;
    }
}

/// Both kept connections end when the next request is on its way (RFC 9112 §9.3.1).
#[tokio::test(flavor = "multi_thread")]
async fn kept_connections_that_end_meanwhile_fail_no_request_that_can_be_repeated() {
    let (tell, mut told) = unbounded_channel();
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let address = origin(move |mut stream| {
        let (tell, number) = (tell.clone(), count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        async move {
            while read_head(&mut stream).await.is_some() {
                let _ = tell.send(number);
                tokio::time::sleep(Duration::from_millis(300)).await;
                let _ = stream.write_all(HELLO).await;
                if number < 2 {
                    // The end comes after the next request has begun.
                    let _ = stream.read_u8().await;
                    break;
                }
            }
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    let (one, other) = (get(""), get(""));
    let both = tokio::join!(ask(&server, &one), ask(&server, &other));
    assert_eq!([status(&both.0), status(&both.1)], ["200", "200"]);
    let answer = ask(&server, &get("")).await;
    assert_eq!(status(&answer), "200", "{answer}");
    let numbers: Vec<usize> = std::iter::from_fn(|| told.try_recv().ok()).collect();
    assert_eq!(numbers.len(), 3, "two were kept, and the third is new: {numbers:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_socket_is_a_tunnel_and_no_other_upgrade_is() {
    let address = origin(|mut stream| async move {
        let head = read_head(&mut stream).await.expect("a request");
        if head.contains("upgrade: websocket\r\n") && head.contains("connection: upgrade\r\n") {
            let protocol = if head.contains("/evil") { "h2c" } else { "WebSocket" };
            let answer = format!("HTTP/1.1 101 Switching Protocols\r\nUpgrade: {protocol}\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.expect("sent");
            let mut word = [0; 4];
            while stream.read_exact(&mut word).await.is_ok() {
                stream.write_all(&word).await.expect("sent");
            }
        } else {
            stream.write_all(HELLO).await.expect("sent");
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    let asking = |protocol: &str| {
        format!(
            "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nSec-WebSocket-Key: x\r\n\r\n"
        )
    };
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    stream.write_all(asking("WebSocket").as_bytes()).await.expect("sent");
    let head = String::from_utf8_lossy(&read_until(&mut stream, b"\r\n\r\n").await).into_owned();
    assert!(head.starts_with("HTTP/1.1 101") && head.contains("sec-websocket-accept: x\r\n"), "{head}");
    for word in [b"ping", b"pong"] {
        stream.write_all(word).await.expect("sent");
        read_until(&mut stream, word).await;
    }
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    stream.write_all(asking("websocket").replace("/chat", "/evil").as_bytes()).await.expect("sent");
    let answer = read_until(&mut stream, b"no valid answer").await;
    assert!(answer.starts_with(b"HTTP/1.1 502"), "the upstream changes to another protocol");
    for protocol in ["h2c", "websocket, h2c", "websocket\r\nUpgrade: h2c"] {
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        stream.write_all(asking(protocol).as_bytes()).await.expect("sent");
        let answer = read_until(&mut stream, b"hello").await;
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{protocol}");
    }
    server.stop().await;
}

/// An echo, once it has agreed to be a WebSocket.
async fn echo(mut stream: TcpStream) {
    read_head(&mut stream).await;
    let answer = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    stream.write_all(answer.as_bytes()).await.expect("sent");
    let (mut from, mut to) = stream.split();
    let _ = tokio::io::copy(&mut from, &mut to).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_has_the_grace_of_connections_and_ends_with_it() {
    let address = origin(echo).await;
    let grace = Duration::from_secs(2);
    let server = in_front_as(ServerConfig { grace, ..ServerConfig::default() }, address).await;
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    let ask = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    stream.write_all(ask.as_bytes()).await.expect("sent");
    read_until(&mut stream, b"\r\n\r\n").await;
    server.shutdown.cancel();
    tokio::time::sleep(grace / 4).await;
    stream.write_all(b"late").await.expect("sent");
    read_until(&mut stream, b"late").await;
    assert!(!server.done.is_finished(), "the server waits for it");
    let ended = tokio::time::timeout(5 * grace, stream.read(&mut [0])).await;
    assert!(matches!(ended, Ok(Ok(0) | Err(_))), "{ended:?}");
    server.stop().await;
}

/// By a client that nobody here wrote (RFC 8441), and an upstream that accepts by `hash`.
async fn over_http_2(answer: impl Fn(&str) -> String + Clone + Send + Sync + 'static) -> Option<String> {
    let address = origin(move |mut stream| {
        let answer = answer.clone();
        async move {
            let head = read_head(&mut stream).await.expect("a request");
            assert!(head.starts_with("GET /chat HTTP/1.1\r\n"), "{head}");
            let key = head.split("sec-websocket-key: ").nth(1).and_then(|it| it.split('\r').next());
            stream.write_all(answer(key.expect("a key")).as_bytes()).await.expect("sent");
            let mut word = [0; 4];
            if stream.read_exact(&mut word).await.is_ok() {
                stream.write_all(&word).await.expect("sent");
            }
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    let client = "const c = require('http2').connect(process.argv[1], { rejectUnauthorized: false });
        c.on('remoteSettings', () => {
            const r = c.request({ ':method': 'CONNECT', ':protocol': 'websocket', ':path': '/chat',
                ':scheme': 'https', ':authority': 'h' });
            r.on('response', h => { process.stdout.write(h[':status'] + ' '); r.write('ping') });
            r.on('data', d => { process.stdout.write(d); process.exit() }) });";
    let url = format!("https://{}", server.address);
    let run = move || std::process::Command::new("node").args(["-e", client, &url]).output();
    let told = tokio::task::spawn_blocking(run).await.expect("no panic");
    server.shutdown.cancel();
    if told.is_err() {
        headstart_host::not_run("node is not installed");
    }
    Some(String::from_utf8_lossy(&told.ok()?.stdout).into_owned())
}

/// RFC 6455 §4.2.2.
fn acceptance(key: &str) -> String {
    use base64::Engine as _;
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let hash = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(hash)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_socket_over_http_2_is_a_tunnel() {
    let told = over_http_2(|key| {
        let accepted = acceptance(key);
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accepted}\r\n\r\n"
        )
    });
    assert_eq!(told.await.unwrap_or("200 ping".to_owned()), "200 ping");
}

/// Over HTTP/2 only the proxy knows the key, and any status of 2xx would open the tunnel.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_does_not_accept_a_web_socket_over_http_2_gets_no_tunnel() {
    for answer in [
        "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade",
        "101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade",
        "200 OK\r\nContent-Length: 2",
        "204 No Content",
    ] {
        let told = over_http_2(move |_| format!("HTTP/1.1 {answer}\r\n\r\n")).await;
        let told = told.unwrap_or("502".to_owned());
        assert!(told.starts_with("502"), "{answer}: {told}");
    }
    let told = over_http_2(|_| "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone".to_owned());
    assert_eq!(told.await.unwrap_or("404 none".to_owned()), "404 none", "other answers are the client's");
}

/// A request that could be read in two ways is refused, or reaches the upstream with one framing.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_cannot_be_smuggled() {
    let (address, mut heads) = answering(HELLO).await;
    let server = in_front_of(&[address]).await;
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\nx", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\nx", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "501"),
        ("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400"),
        ("GET / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n folded\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", "400"),
        ("GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
        ("GET http://u:p@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
        ("GET http://localhost:abc/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
    ] {
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        stream.write_all(request.as_bytes()).await.expect("sent");
        let answer = read_until(&mut stream, b"\r\n\r\n").await;
        assert_eq!(status(&String::from_utf8_lossy(&answer)), expected, "{request:?}");
        assert!(heads.try_recv().is_err(), "{request:?}");
    }
    for authority in [&b"u:p@local"[..], b"local:abc"] {
        let mut request = get_h3("/");
        request[8..17].copy_from_slice(authority);
        let answer = over_h3(&server, &request).await.expect("an answer");
        assert!(String::from_utf8_lossy(&answer).contains("no valid host"), "{answer:?}");
        assert!(heads.try_recv().is_err(), "{authority:?}");
    }
    // RFC 9112 §6.1: the encoding counts, and the connection ends behind it.
    for lengths in [
        "Content-Length: 30\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 30",
    ] {
        let both = format!(
            "POST / HTTP/1.1\r\nHost: h\r\n{lengths}\r\n\r\n0\r\n\r\nGET /secret HTTP/1.1\r\nHost: h\r\n\r\n"
        );
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        stream.write_all(both.as_bytes()).await.expect("sent");
        read_until(&mut stream, b"hello").await;
        let head = heads.recv().await.expect("a request");
        assert!(!head.contains("content-length: 30"), "{head}");
    }
    let answer =
        ask(&server, "GET http://other.example/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&answer), "200");
    while let Ok(head) = heads.try_recv() {
        assert!(!head.starts_with("GET /x") || head.contains("host: other.example\r\n"), "{head}");
    }
    server.stop().await;
}

/// hyper cannot send them over HTTP/1.1 and 2: there the answer comes alone.
#[tokio::test(flavor = "multi_thread")]
async fn early_hints_come_before_the_answer_over_http_3() {
    let (go, may_answer) = tokio::sync::watch::channel(false);
    let address = origin(move |mut stream| {
        let mut may_answer = may_answer.clone();
        async move {
            while read_head(&mut stream).await.is_some() {
                let early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\
                    Alt-Svc: h3=\":1\"\r\nKeep-Alive: 1\r\n\r\n";
                stream.write_all(early).await.expect("sent");
                stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.expect("sent");
                may_answer.wait_for(|may| *may).await.expect("a test");
                let _ = stream.write_all(HELLO).await;
            }
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    let (connection, _control) = dial_h3(&server).await;
    let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
    stream.write_all(&get_h3("/")).await.expect("sent");
    stream.finish().expect("open");
    let mut head = [0; 5];
    tokio::time::timeout(TIMEOUT / 4, answer.read_exact(&mut head)).await.expect("in time").expect("open");
    // A section of fields that begins with `:status: 103` (RFC 9204, Appendix A).
    assert!(head[0] == 0x01 && head[2..] == [0, 0, 0xd8], "{head:?}");
    let mut fields = vec![0; usize::from(head[1]) - 3];
    answer.read_exact(&mut fields).await.expect("open");
    // `link` is a static name, and a length with Huffman's bit follows: no other field is there.
    assert!(fields[0] == 0x5b && fields.len() == 2 + usize::from(fields[1] & 0x7f), "{fields:x?}");
    go.send(true).expect("an origin");
    let rest = answer.read_to_end(1000).await.expect("an answer");
    assert!(rest[..5] != head && rest.windows(5).any(|bytes| bytes == b"hello"), "{rest:?}");
    let behind = 2 + usize::from(rest[1]);
    assert_eq!((rest[0], rest[behind]), (0x01, 0x01), "102 Processing, then the answer: {rest:x?}");
    let page = &server.fetch(&["/a"]).await.pages[0];
    assert_eq!(page.body.as_deref(), Some(b"hello".as_slice()));
    assert!(ask(&server, &get("")).await.starts_with("HTTP/1.1 200 OK\r\n"));
    server.stop().await;
}

/// As `wsgiref` of Python, which has one thread and room for five connections.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_gets_no_more_requests_at_once_than_it_can_do() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&now), Arc::clone(&most));
    let address = origin(move |mut stream| {
        let (now, most) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
        async move {
            while read_head(&mut stream).await.is_some() {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
                let (head, body) = HELLO.split_at(HELLO.len() - 1);
                stream.write_all(head).await.expect("sent");
                tokio::time::sleep(Duration::from_millis(10)).await;
                now.fetch_sub(1, Ordering::Relaxed);
                stream.write_all(body).await.expect("sent");
            }
        }
    })
    .await;
    let config = ProxyConfig { most_per_upstream: 3, ..ProxyConfig::default() };
    let server = in_front_with(&[address], config).await;
    let pages = server.fetch(&["/a"; 20]).await.pages;
    assert!(pages.iter().all(|page| page.body.as_deref() == Some(b"hello")));
    assert_eq!(most.load(Ordering::Relaxed), 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_and_trace_have_one_answer_over_every_version_of_http() {
    let (address, mut heads) = answering(HELLO).await;
    for upstream in [Some(address), None] {
        let server = match upstream {
            Some(address) => in_front_of(&[address]).await,
            None => start(ServerConfig::default(), crate::common::folder).await,
        };
        for request in ["CONNECT other:443", "CONNECT http://other/x", "CONNECT /x", "TRACE /"] {
            let request = format!("{request} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            let mut stream = dial(&server, &[b"http/1.1"]).await;
            stream.write_all(request.as_bytes()).await.expect("sent");
            let told = read_until(&mut stream, b"are not possible here").await;
            let told = String::from_utf8_lossy(&told).into_owned();
            assert!(status(&told) == "405" && told.contains("allow: GET, HEAD"), "{request}: {told}");
        }
        // Static names of HPACK and QPACK.
        let fields = [&[0x02, 7][..], b"CONNECT", &[0x01, 9], b"other:443"].concat();
        let mut stream = dial_2(&server).await;
        stream.write_all(&[frame(4, 0, 0, &[]), frame(1, 5, 1, &fields)].concat()).await.expect("sent");
        read_until(&mut stream, b"CONNECT and TRACE are not possible here").await;
        let fields = [&[0, 0, 0xcf, 0x50, 9][..], b"other:443"].concat();
        let told = over_h3(&server, &[&[0x01, fields.len() as u8][..], &fields].concat()).await;
        let told = String::from_utf8_lossy(&told.expect("an answer")).into_owned();
        assert!(told.contains("CONNECT and TRACE are not possible here"), "{told}");
        assert!(heads.try_recv().is_err());
        server.stop().await;
    }
}

/// RFC 9114 §4.1.2.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_http_3_that_has_no_content_and_a_body_is_malformed() {
    let (address, mut heads) = answering(HELLO).await;
    for upstream in [Some(address), None] {
        let server = match upstream {
            Some(address) => in_front_of(&[address]).await,
            None => start(ServerConfig::default(), crate::common::folder).await,
        };
        let request = [post_h3("/", b"0"), data(b"hello")].concat();
        let reset = over_h3(&server, &request).await;
        let message_error = noq::VarInt::from_u32(0x10e);
        assert_eq!(reset, Err(noq::ReadToEndError::Read(noq::ReadError::Reset(message_error))));
        assert!(heads.try_recv().is_err(), "nothing is passed on");
        let empty = over_h3(&server, &[post_h3("/", b"0"), data(b"")].concat()).await;
        assert!(empty.is_ok(), "{empty:?}");
        if upstream.is_some() {
            assert!(heads.recv().await.expect("a request").contains("content-length: 0\r\n"));
        }
        server.stop().await;
    }
}

/// hyper would write none for GET and HEAD of unknown length.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_unknown_length_is_passed_on_with_every_method() {
    let (tell, mut requests) = unbounded_channel();
    let address = origin(move |mut stream| {
        let tell = tell.clone();
        async move {
            let head = read_head(&mut stream).await.expect("a request");
            let mut body = vec![];
            while head.contains("transfer-encoding: chunked\r\n") && !body.ends_with(b"0\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { return };
                body.push(byte);
            }
            tell.send(String::from_utf8_lossy(&body).into_owned()).expect("a listener");
            let _ = stream.write_all(HELLO).await;
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    for method in ["GET", "HEAD", "OPTIONS", "DELETE", "POST"] {
        let chunked = get("Transfer-Encoding: chunked\r\n").replace("GET", method);
        let answer = ask(&server, &format!("{chunked}2\r\nhi\r\n0\r\n\r\n")).await;
        assert_eq!(status(&answer), "200", "{method}: {answer}");
        assert_eq!(requests.recv().await.expect("a request"), "2\r\nhi\r\n0\r\n\r\n", "{method}");
        let answer = ask(&server, &format!("{chunked}zz\r\n")).await;
        assert_eq!(status(&answer), "400", "{method}: {answer}");
    }
    while requests.try_recv().is_ok() {}
    over_h3(&server, &[get_h3("/"), data(b"hi")].concat()).await.expect("an answer");
    assert_eq!(requests.recv().await.expect("a request"), "2\r\nhi\r\n0\r\n\r\n");
    server.stop().await;
}

/// As `http.server` of Python does: its next request begins where the body does.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_ignores_bodies_does_not_mix_up_clients() {
    let (address, mut heads) = answering(HELLO).await;
    let server = in_front_of(&[address]).await;
    for method in ["GET", "DELETE", "OPTIONS"] {
        let evil = "GET /evil HTTP/1.1\r\nX-Ignore: ";
        let length = format!("Content-Length: {}\r\n", evil.len());
        ask(&server, &format!("{}{evil}", get(&length).replace("GET", method))).await;
        assert!(heads.recv().await.expect("a request").contains("connection: close\r\n"), "{method}");
        assert_eq!(status(&ask(&server, &get("")).await), "200");
        let next = heads.recv().await.expect("a request");
        assert!(next.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{method}: {next}");
    }
    server.stop().await;
}

/// Until then the upstream's work and the place among all would be the client's for a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_its_client_gives_up_over_http_3_ends_at_the_upstream_and_frees_its_place() {
    let (tell, mut told) = unbounded_channel();
    let address = origin(move |mut stream| {
        let tell = tell.clone();
        async move {
            read_head(&mut stream).await;
            tell.send("begun").expect("a listener");
            let _ = stream.read_to_end(&mut vec![]).await;
            tell.send("ended").expect("a listener");
        }
    })
    .await;
    let counters = ConnectionCounters::default();
    let config = ProxyConfig { counters: counters.clone(), ..ProxyConfig::default() };
    let server = in_front_with(&[address], config).await;
    for (request, is_whole) in [(get_h3("/"), true), (post_h3("/", b"8"), false)] {
        for closes in [false, true] {
            let (connection, _control) = dial_h3(&server).await;
            let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
            stream.write_all(&request).await.expect("sent");
            if is_whole {
                stream.finish().expect("open");
            }
            assert_eq!(told.recv().await, Some("begun"));
            assert!(
                counters.render().contains("headstart_open_passed_requests 1\n"),
                "{}",
                counters.render()
            );
            if closes {
                connection.close(0x100u32.into(), b"");
            } else {
                answer.stop(0x10cu32.into()).expect("open");
            }
            let ended = tokio::time::timeout(Duration::from_secs(30), told.recv()).await;
            assert_eq!(ended, Ok(Some("ended")), "whole: {is_whole}, closes: {closes}");
            until("the place is free", || counters.render().contains("open_passed_requests 0\n")).await;
        }
    }
    server.stop().await;
}

/// Bytes that the client does not read stay with the upstream, but for windows and buffers.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_client_holds_up_a_fast_upstream() {
    let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let address = origin(move |mut stream| {
        let count = Arc::clone(&count);
        async move {
            read_head(&mut stream).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[7; 10_000]).await.is_ok() {
                count.fetch_add(10_000, std::sync::atomic::Ordering::Relaxed);
            }
        }
    })
    .await;
    let server = in_front_of(&[address]).await;
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    stream.write_all(get("").as_bytes()).await.expect("sent");
    let (connection, _control) = dial_h3(&server).await;
    let (mut request, _answer) = connection.open_bi().await.expect("a stream");
    request.write_all(&get_h3("/")).await.expect("sent");
    request.finish().expect("open");
    let all = || sent.load(std::sync::atomic::Ordering::Relaxed);
    let mut before = usize::MAX;
    while all() != before {
        before = all();
        assert!(before < 60_000_000, "{before} bytes of an endless answer were taken");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(before > 0, "something was taken");
    drop((stream, connection));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_at_once_are_answered_and_more_than_the_limit_refused() {
    let (address, _heads) = answering(HELLO).await;
    let server = Arc::new(in_front_of(&[address]).await);
    let paths = vec!["/a"; 50];
    let visits = (0..20).map(|_| server.fetch(&paths));
    for visit in futures_util::future::join_all(visits).await {
        assert!(visit.pages.iter().all(|page| page.body.as_deref() == Some(b"hello")));
    }
    let silent = origin(|mut stream| async move {
        let _ = stream.read_to_end(&mut vec![]).await;
    })
    .await;
    let counters = ConnectionCounters::default();
    let config = ProxyConfig { most: 1, counters: counters.clone(), ..ProxyConfig::default() };
    let server = in_front_with(&[silent], config).await;
    let mut waits = dial(&server, &[b"http/1.1"]).await;
    waits.write_all(get("").as_bytes()).await.expect("sent");
    until("the place is taken", || counters.render().contains("open_passed_requests 1\n")).await;
    assert_eq!(status(&ask(&server, &get("")).await), "503");
    drop(waits);
    server.stop().await;
}

/// The client never ends its handshake, as an attacker who repeats its first datagrams cannot.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_0_rtt_is_marked_if_it_reads_and_waits_if_it_may_change_something() {
    let (address, mut heads) = answering(HELLO).await;
    let server = in_front_of(&[address]).await;
    for (request, is_passed) in [(get_h3("/"), true), (post_h3("/", b"0"), false)] {
        let config = server.client(None, true);
        server.fetch_as(config.clone(), &["/"]).await;
        let whole = heads.recv().await.expect("a request");
        assert!(!whole.contains("early-data"), "{whole}");
        begin_early(config, &server, &request).await;
        let head = tokio::time::timeout(Duration::from_millis(500), heads.recv()).await;
        let is_marked = head.is_ok_and(|head| head.is_some_and(|head| head.contains("early-data: 1\r\n")));
        assert_eq!(is_marked, is_passed);
        assert!(heads.try_recv().is_err(), "nothing else");
    }
    server.shutdown.cancel();
}

/// Servers that nobody here wrote, as they are.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_servers_are_upstreams_as_they_are() {
    let folder = crate::common::files();
    let wsgi = "import sys\nfrom wsgiref.simple_server import make_server\ndef app(e, s):\n  \
        b = e['wsgi.input'].read(int(e['CONTENT_LENGTH'] or 0)) + e['HTTP_X_FORWARDED_FOR'].encode()\n  \
        s('200 OK', [('Content-Length', str(len(b)))])\n  return [b]\nmake_server('127.0.0.1', int(sys.argv[1]), app).serve_forever()";
    let node = "require('http').createServer((q, s) => { q.pipe(s, { end: false }); \
        q.on('end', () => s.end(q.headers['x-forwarded-for'])) }).listen(+process.argv[1], '127.0.0.1')";
    for (program, arguments) in [("python3", ["-c", wsgi]), ("node", ["-e", node])] {
        let port = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("one").port();
        let mut command = std::process::Command::new(program);
        command.args(arguments).arg(port.to_string()).current_dir(folder.path());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let Ok(mut child) = command.spawn() else {
            headstart_host::not_run(&format!("{program} is not installed"));
            continue;
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let begun = tokio::time::Instant::now();
        while TcpStream::connect(address).await.is_err() && begun.elapsed() < TIMEOUT {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let server = in_front_of(&[address]).await;
        let post = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        let answer = ask(&server, post).await;
        assert!(answer.contains("hello") && answer.contains("127.0.0.1"), "{program}: {answer}");
        let pages = server.fetch(&["/a", "/b", "/c"]).await.pages;
        assert!(pages.iter().all(|page| page.body.as_deref() == Some(b"127.0.0.1")), "{program}");
        let answer =
            over_h3(&server, &[post_h3("/", b"5"), data(b"hello")].concat()).await.expect("an answer");
        assert!(answer.windows(5).any(|bytes| bytes == b"hello"), "{program}");
        server.stop().await;
        child.kill().expect("it runs");
        let _ = child.wait();
    }
}
