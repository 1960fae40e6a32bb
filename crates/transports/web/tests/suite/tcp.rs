//! The same pages over TCP, for clients without HTTP/3.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Running, TIMEOUT, folder, start};
use crate::hostile_tcp::{dial_2, frame};
use crate::proxy::read_until;
use headstart_web::client::{self, Trust, tls};
use headstart_web::identity::Identity;
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub async fn dial(server: &Running, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    dial_as(server, &server.trust(), protocols).await
}

async fn dial_as(server: &Running, trust: &Trust, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    try_dial(server, trust, protocols).await.expect("a handshake")
}

pub async fn try_dial(
    server: &Running,
    trust: &Trust,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(server.address).await.expect("a connection");
    handshake(stream, trust, protocols).await
}

pub async fn handshake(
    stream: TcpStream,
    trust: &Trust,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut config = tls(trust, None, false).expect("TLS");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

pub async fn ask(server: &Running, request: &str) -> String {
    let mut stream = dial(server, &[b"http/1.1"]).await;
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = vec![];
    stream.read_to_end(&mut answer).await.expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_over_http_1_says_where_http_3_is() {
    let server = start(ServerConfig::default(), folder).await;
    let answer = ask(&server, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("<h1>home</h1>"), "{answer}");
    let told = format!("alt-svc: h3=\":{}\"; ma=86400\r\n", server.address.port());
    assert!(answer.contains(&told), "{answer}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn head_range_and_other_methods_are_answered_as_they_should_be() {
    let server = start(ServerConfig::default(), folder).await;
    let head = ask(&server, "HEAD /picture.png HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert!(head.contains("content-length: 300000\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("content-type: image/png\r\n"), "{head}");
    let part =
        ask(&server, "GET /index.html HTTP/1.1\r\nHost: h\r\nRange: bytes=4-7\r\nConnection: close\r\n\r\n")
            .await;
    assert!(part.starts_with("HTTP/1.1 206") && part.ends_with("\r\n\r\nhome"), "{part}");
    let post =
        ask(&server, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi").await;
    assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_another_version_of_the_file_is_answered_with_the_whole_file() {
    let server = start(ServerConfig::default(), folder).await;
    let get =
        |fields: &str| format!("GET /index.html HTTP/1.1\r\nHost: h\r\n{fields}Connection: close\r\n\r\n");
    let whole = ask(&server, &get("")).await;
    let tag = header(&whole, "etag").expect("a tag");
    let date = header(&whole, "last-modified").expect("a date");
    let expected = [
        ("bytes=4-7", tag, "206"),
        ("bytes=4-7", date, "206"),
        ("bytes=4-7", "\"another\"", "200"),
        ("bytes=4-7", &format!("W/{tag}"), "200"),
        ("bytes=4-7", "Thu, 01 Jan 1970 00:00:00 GMT", "200"),
        ("bytes=9999-", tag, "416"),
        ("bytes=9999-", "\"another\"", "200"),
    ];
    for (range, condition, status) in expected {
        let answer = ask(&server, &get(&format!("Range: {range}\r\nIf-Range: {condition}\r\n"))).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{range} {condition}: {answer}");
        assert_eq!(answer.ends_with("<h1>home</h1>"), status == "200", "{range} {condition}: {answer}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_ranges_and_those_of_unknown_units_are_answered_with_the_whole_file() {
    let server = start(ServerConfig::default(), folder).await;
    for range in ["bytes=0-1,4-7", "lines=1-2", "bytes=abc", "bytes=-", "bytes=1-2x"] {
        let request =
            format!("GET /index.html HTTP/1.1\r\nHost: h\r\nRange: {range}\r\nConnection: close\r\n\r\n");
        let answer = ask(&server, &request).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("<h1>home</h1>"), "{range}: {answer}");
    }
    server.stop().await;
}

/// RFC 9110 §14.1.2: the last byte may be beyond the file, and beyond any.
#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_read_whatever_its_case_and_size_and_ignored_for_an_empty_file() {
    let server = start(ServerConfig::default(), folder).await;
    std::fs::write(server.files.path().join("empty"), "").expect("a file");
    for (file, range, status, end) in [
        ("index.html", "BYTES=0-1", "206", "\r\n\r\n<h"),
        ("index.html", "bytes=0-18446744073709551616", "206", "<h1>home</h1>"),
        ("index.html", "bytes=-18446744073709551616", "206", "<h1>home</h1>"),
        ("index.html", "bytes=18446744073709551616-", "416", ""),
        ("empty", "bytes=0-", "200", "\r\n\r\n"),
        ("empty", "bytes=-2", "200", "\r\n\r\n"),
    ] {
        let request =
            format!("GET /{file} HTTP/1.1\r\nHost: h\r\nRange: {range}\r\nConnection: close\r\n\r\n");
        let answer = ask(&server, &request).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.ends_with(end),
            "{range}: {answer}"
        );
    }
    let whole = ask(&server, "GET /index.html HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    let tag = header(&whole, "etag").expect("a tag");
    let fields = format!("Host: h\r\nIf-None-Match: {tag}\r\nConnection: close\r\n");
    let unchanged = ask(&server, &format!("GET /index.html HTTP/1.1\r\n{fields}\r\n")).await;
    assert!(unchanged.starts_with("HTTP/1.1 304"), "{unchanged}");
    for answer in [whole, unchanged] {
        assert_eq!(header(&answer, "vary"), Some("accept-encoding"), "{answer}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_one_valid_host_is_refused_except_in_http_1_0() {
    let server = start(ServerConfig::default(), folder).await;
    for (version, fields, status) in [
        ("1.1", "", 400),
        ("1.1", "Host: h\r\nHost: h\r\n", 400),
        ("1.1", "Host:\r\n", 400),
        ("1.1", "Host: a b\r\n", 400),
        ("1.1", "Host: h/path\r\n", 400),
        ("1.1", "Host: user@h\r\n", 400),
        ("1.1", "Host: h:port\r\n", 400),
        ("1.1", "Host: [::1]:443\r\n", 200),
        ("1.1", "Host: localhost:4433\r\n", 200),
        ("1.0", "", 200),
        ("1.0", "Host: h\r\nHost: h\r\n", 400),
    ] {
        let answer =
            ask(&server, &format!("GET / HTTP/{version}\r\n{fields}Connection: close\r\n\r\n")).await;
        let expected = format!("HTTP/{version} {status}");
        assert!(answer.starts_with(&expected), "{version} {fields:?}: {answer}");
    }
    let absolute = ask(&server, "GET https://localhost/ HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(absolute.starts_with("HTTP/1.1 400"), "{absolute}");
    server.stop().await;
}

/// RFC 9112 §3.2.3: the form `host:port` is for CONNECT alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_without_a_path_is_refused() {
    let server = start(ServerConfig::default(), folder).await;
    for target in ["index.html", "localhost:443"] {
        for method in ["GET", "HEAD", "OPTIONS"] {
            let answer =
                ask(&server, &format!("{method} {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"))
                    .await;
            assert!(answer.starts_with("HTTP/1.1 400"), "{method} {target}: {answer}");
        }
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_2_is_preferred_by_clients_that_support_it() {
    let server = start(ServerConfig::default(), folder).await;
    let stream = dial(&server, &[b"http/1.1", b"h2"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    drop(stream);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_for_new_connections_and_open_ones_stay() {
    let server = start(ServerConfig::default(), folder).await;
    let mut open = dial(&server, &[b"http/1.1"]).await;
    let folder_of_new = tempfile::tempdir().expect("a folder for keys");
    let renewed = Identity::load_or_create(folder_of_new.path(), &[]).expect("a certificate");
    server.identity.replace(&renewed).expect("its key");

    let endpoint = client::endpoint(server.address).expect("a socket");
    let by_former = server.plan(&["/"]).run(&endpoint, server.client(None, false), server.address).await;
    assert!(by_former.is_err(), "the former certificate is still in use over QUIC");
    let trust = Trust::File(folder_of_new.path().join("identity.pem"));
    let by_new = client::plain(tls(&trust, None, false).expect("TLS")).expect("QUIC");
    let visit = server.fetch_as(by_new, &["/"]).await;
    assert_eq!(visit.pages[0].body.as_deref(), Some(b"<h1>home</h1>".as_slice()));
    let over_tcp = dial_as(&server, &trust, &[b"http/1.1"]).await;
    let shown = over_tcp.get_ref().1.peer_certificates().expect("a certificate");
    assert_eq!(shown[0], renewed.chain[0]);

    let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    open.write_all(request).await.expect("sent");
    let mut answer = String::new();
    open.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.ends_with("<h1>home</h1>"), "{answer}");
    server.stop().await;
}

fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_with_the_newest_file_is_told_so_and_gets_no_body() {
    let server = start(ServerConfig::default(), folder).await;
    let get =
        |condition: String| format!("GET / HTTP/1.1\r\nHost: h\r\n{condition}Connection: close\r\n\r\n");
    let first = ask(&server, &get(String::new())).await;
    let tag = header(&first, "etag").expect("a tag");
    let date = header(&first, "last-modified").expect("a date");
    for condition in [format!("If-None-Match: {tag}\r\n"), format!("If-Modified-Since: {date}\r\n")] {
        let again = ask(&server, &get(condition)).await;
        assert!(again.starts_with("HTTP/1.1 304") && again.ends_with("\r\n\r\n"), "{again}");
    }
    std::fs::write(server.files.path().join("index.html"), "<h1>changed</h1>").expect("a file");
    let changed = ask(&server, &get(format!("If-None-Match: {tag}\r\n"))).await;
    assert!(changed.starts_with("HTTP/1.1 200") && changed.ends_with("<h1>changed</h1>"), "{changed}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_file_is_for_clients_that_accept_it() {
    let server = start(ServerConfig::default(), folder).await;
    std::fs::write(server.files.path().join("index.html.gz"), "shorter").expect("a file");
    let get = |accept: &str| {
        format!(
            "GET /index.html HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {accept}\r\nConnection: close\r\n\r\n"
        )
    };
    let compressed = ask(&server, &get("br, gzip")).await;
    assert_eq!(header(&compressed, "content-encoding"), Some("gzip"), "{compressed}");
    assert_eq!(header(&compressed, "content-type"), Some("text/html"), "{compressed}");
    assert!(compressed.ends_with("\r\n\r\nshorter"), "{compressed}");
    for accept in ["br", "identity", "gzip;q=0"] {
        let plain = ask(&server, &get(accept)).await;
        assert_eq!(header(&plain, "content-encoding"), None, "{plain}");
        assert_eq!(header(&plain, "vary"), Some("accept-encoding"), "{plain}");
        assert_ne!(header(&plain, "etag"), header(&compressed, "etag"));
        assert!(plain.ends_with("<h1>home</h1>"), "{plain}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn header_fields_beyond_64_kib_are_refused() {
    let server = start(ServerConfig::default(), folder).await;
    let request = |length: usize| {
        let field = "f".repeat(length);
        format!("GET / HTTP/1.1\r\nHost: h\r\nX-Field: {field}\r\nConnection: close\r\n\r\n")
    };
    assert!(ask(&server, &request(60_000)).await.starts_with("HTTP/1.1 200"));
    // The connection may be reset before the answer is read: only the page must not come.
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    let _ = stream.write_all(request(100_000).as_bytes()).await;
    let mut answer = vec![];
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
    server.stop().await;
}

/// The only place of the server is free again after each: silence before TLS and behind it, half of
/// either protocol's beginning, and an answer that is not read.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn clients_that_stall_are_closed_and_make_room() {
    let second = Duration::from_secs(1);
    let limits =
        ServerConfig { handshake: second, stall: second, most_connections: 1, ..ServerConfig::default() };
    let server = start(limits, |_| Site::Generated).await;
    let mute = TcpStream::connect(server.address).await.expect("a connection");
    try_dial(&server, &server.trust(), &[b"http/1.1"]).await.expect_err("the only place is taken");
    let mut stalled = vec![];
    for begun in [
        "",
        "GET /bytes/1 HT",
        "PRI * HTTP/2.0\r\n",
        "GET /bytes/1 HTTP/1.1\r\nHost: h\r\n\r\nGET /bytes/1 HT",
        "GET /bytes/1000000000 HTTP/1.1\r\nHost: h\r\n\r\n",
    ] {
        let mut stream = next(&server).await;
        stream.write_all(begun.as_bytes()).await.expect("sent");
        stalled.push(stream);
    }
    let mut last = next(&server).await;
    last.write_all(b"GET /bytes/1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await.expect("sent");
    let mut answer = vec![];
    last.read_to_end(&mut answer).await.expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
    drop((mute, stalled));
    server.stop().await;
}

/// A connection as soon as there is room.
#[cfg(target_os = "linux")]
async fn next(server: &Running) -> TlsStream<TcpStream> {
    let begun = tokio::time::Instant::now();
    loop {
        match try_dial(server, &server.trust(), &[b"http/1.1"]).await {
            Ok(stream) => return stream,
            Err(error) => assert!(begun.elapsed() < TIMEOUT, "no room: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn an_address_gets_its_share_over_tcp_and_others_are_served() {
    let server_config = ServerConfig { most_per_address: 1, ..ServerConfig::default() };
    let counters = server_config.connections.clone();
    let server = start(server_config, |_| Site::Generated).await;
    let first = dial(&server, &[b"http/1.1"]).await;
    try_dial(&server, &server.trust(), &[b"http/1.1"]).await.expect_err("its share is taken");
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(([127, 0, 0, 2], 0).into()).expect("another address");
    let stream = socket.connect(server.address).await.expect("a connection");
    handshake(stream, &server.trust(), &[b"http/1.1"]).await.expect("another address is served");
    assert!(
        counters.render().contains("_total{transport=\"tcp\",limit=\"address\"} 1\n"),
        "{}",
        counters.render()
    );
    drop(first);
    drop(next(&server).await);
    server.stop().await;
}

/// A client over HTTP/2 may be idle after its first request.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_request_has_a_time_limit_over_http_2() {
    let limits = ServerConfig { handshake: Duration::from_millis(500), ..ServerConfig::default() };
    let server = start(limits, folder).await;
    let mut stream = dial(&server, &[b"h2"]).await;
    // The preface, SETTINGS, and HEADERS of a GET of `/` with static names (RFC 7541, Appendix A).
    let get = |stream: u8| {
        [&[0, 0, 14, 1, 5, 0, 0, 0, stream, 0x82, 0x87, 0x84, 0x41, 9][..], b"localhost"].concat()
    };
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("sent");
    for number in [1, 3] {
        stream.write_all(&get(number)).await.expect("sent");
        let mut answer = vec![];
        while !answer.ends_with(b"<h1>home</h1>") {
            assert!(stream.read_buf(&mut answer).await.expect("open") > 0, "{answer:?}");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    server.stop().await;
}

/// The answer is there before the request's end, and nothing tells the client to stop: many would
/// not look at the answer then (RFC 9112 §9.6, RFC 9113 §8.1).
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_an_upload_that_nobody_reads_is_not_lost() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let mut stream = dial(&server, &[b"http/1.1"]).await;
    let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 600000\r\n\r\n";
    stream.write_all(head).await.expect("sent");
    read_until(&mut stream, b"only GET and HEAD").await;
    for _ in 0..6 {
        stream.write_all(&vec![7; 100_000]).await.expect("it is taken");
    }
    let next = b"GET /bytes/10 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    stream.write_all(next).await.expect("the connection goes on");
    let answer = read_until(&mut stream, b"hhhhhhhhhh").await;
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));

    let mut stream = dial_2(&server).await;
    // POST and GET of `/bytes/10`, by HPACK's static table (RFC 7541, Appendix A).
    let fields = |method: u8| [&[method, 0x87, 0x04, 9][..], b"/bytes/10", &[0x01, 9], b"localhost"].concat();
    stream.write_all(&frame(1, 4, 1, &fields(0x83))).await.expect("sent");
    let mut read = read_until(&mut stream, b"only GET and HEAD").await;
    for _ in 0..4 {
        stream.write_all(&frame(0, 0, 1, &vec![7; 15_000])).await.expect("sent");
    }
    stream.write_all(&frame(0, 1, 1, &[])).await.expect("sent");
    stream.write_all(&frame(1, 5, 3, &fields(0x82))).await.expect("sent");
    read.extend(read_until(&mut stream, b"hhhhhhhhhh").await);
    let mut rest = &read[..];
    while let Some((head, tail)) = rest.split_at_checked(9) {
        assert_ne!(head[3], 3, "a stream is reset");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        rest = tail.get(length..).unwrap_or_default();
    }
    server.stop().await;
}

/// Five seconds are enough for a client to look at its answer.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_upload_is_not_read_for_long() {
    let server = start(ServerConfig::default(), folder).await;
    let (mut from, mut to) = tokio::io::split(dial(&server, &[b"http/1.1"]).await);
    let sending = tokio::spawn(async move {
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        to.write_all(head).await.expect("sent");
        while to.write_all(b"1\r\nx\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let ended = tokio::time::timeout(TIMEOUT, from.read_to_end(&mut vec![])).await;
    let _ = ended.expect("the connection ends");
    tokio::time::timeout(TIMEOUT, sending).await.expect("it ends").expect("no panic");
    server.stop().await;
}
