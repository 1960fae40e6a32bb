//! Clients over TCP that break the rules of HTTP/1.1 and HTTP/2, or keep them and ask for too much.

use std::time::Duration;

use crate::common::{Running, TIMEOUT, folder, start};
use crate::tcp::{ask, dial};
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The status lines of the answers to these bytes, until the server closes or is silent.
async fn statuses(server: &Running, bytes: &[u8]) -> Vec<String> {
    let mut stream = dial(server, &[b"http/1.1"]).await;
    stream.write_all(bytes).await.expect("sent");
    let mut answer = vec![];
    let _ = tokio::time::timeout(Duration::from_millis(500), stream.read_to_end(&mut answer)).await;
    let text = String::from_utf8_lossy(&answer).into_owned();
    text.split("HTTP/1.1 ").skip(1).map(|it| it[..3].to_owned()).collect()
}

/// A proxy and the server must agree where a request ends (RFC 9112 §11.2). Ambiguous requests
/// are refused; a body is never read as a request.
#[tokio::test(flavor = "multi_thread")]
async fn requests_whose_length_is_ambiguous_are_refused() {
    let server = start(ServerConfig::default(), folder).await;
    let hidden = "GET /picture.png HTTP/1.1\r\nHost: hidden\r\n\r\n";
    let length = hidden.len();
    let refused = [
        "Content-Length: 0\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        "Content-Length: 0, 5",
        "Content-Length: +5",
        "Content-Length: -1",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length: 99999999999999999999",
        "Content-Length : 0",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "X\0: y",
    ];
    for fields in refused {
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n0\r\n\r\n{hidden}");
        let seen = statuses(&server, request.as_bytes()).await;
        assert_eq!(seen, ["400"], "{fields:?}");
    }
    // RFC 9112 §6.1: not understood, and what is inside of the chunks is not the content.
    for fields in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: JUNK,chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n0\r\n\r\n{hidden}");
        assert_eq!(statuses(&server, request.as_bytes()).await, ["501"], "{fields:?}");
    }
    // Without an ambiguity: the body belongs to the first request, and the second is answered.
    let chunked = format!("{length:x}\r\n{hidden}\r\n0\r\n\r\n");
    for (fields, body) in
        [(format!("Content-Length: {length}"), hidden), ("Transfer-Encoding: chunked".to_owned(), &*chunked)]
    {
        let next = "GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n";
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{body}{next}");
        let seen = statuses(&server, request.as_bytes()).await;
        assert!(
            ["405", "404"].starts_with(&seen.iter().map(|it| &**it).collect::<Vec<_>>()),
            "{fields}: {seen:?}"
        );
        assert!(!seen.is_empty() && !seen.contains(&"200".to_owned()), "{fields}: {seen:?}");
    }
    // Both: Transfer-Encoding counts, and the connection ends behind the answer (RFC 9112 §6.3).
    for fields in [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"),
    ] {
        let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n0\r\n\r\n{hidden}");
        let seen = statuses(&server, request.as_bytes()).await;
        assert!(seen == ["405"] || seen == ["400"], "{fields}: {seen:?}");
    }
    // Chunks whose size is not a number of hexadecimal digits end the connection.
    for chunk in ["-1", "0x5", "+5", "FFFFFFFFFFFFFFFFF", "5 5", "", "5;a\nb"] {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}\r\nhello\r\n0\r\n\r\n{hidden}"
        );
        let seen = statuses(&server, request.as_bytes()).await;
        assert!(seen.len() <= 1 && !seen.contains(&"200".to_owned()), "{chunk:?}: {seen:?}");
    }
    server.stop().await;
}

/// Range headers with many ranges, and ends beyond every file (CVE-2011-3192).
#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_ranges_get_the_file_once() {
    let server = start(ServerConfig::default(), folder).await;
    let many = (0..6000).map(|at| format!("{at}-")).collect::<Vec<_>>().join(",");
    for (range, status, length) in [
        (&*format!("bytes={many}"), "200", 300_000),
        ("bytes=0-18446744073709551615", "206", 300_000),
        ("bytes=-400000", "206", 300_000),
        ("bytes=-18446744073709551616", "206", 300_000),
        ("bytes=-0", "416", 0),
        ("bytes=99999999999999999999-", "416", 0),
    ] {
        let request =
            format!("GET /picture.png HTTP/1.1\r\nHost: h\r\nRange: {range}\r\nConnection: close\r\n\r\n");
        let answer = ask(&server, &request).await;
        let name = &range[..range.len().min(40)];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer:.200}");
        assert!(answer.len() < length + 1000, "{name}: {} bytes", answer.len());
    }
    server.stop().await;
}

/// RFC 9113 §3.4: the preface, and an empty SETTINGS frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A frame of HTTP/2 (RFC 9113 §4.1).
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The fields of a GET of `/`, from HPACK's static table (RFC 7541, Appendix A).
fn fields() -> Vec<u8> {
    [&[0x82, 0x87, 0x84, 0x41, 9][..], b"localhost"].concat()
}

pub async fn dial_2(server: &Running) -> TlsStream<TcpStream> {
    let mut stream = dial(server, &[b"h2"]).await;
    stream.write_all(PREFACE).await.expect("sent");
    stream
}

/// Sends pieces until the server closes, and reads nothing meanwhile if it is `deaf`: bytes sent,
/// and the error of the GOAWAY frame if one was read. At most 64 MB, and 10 s (2 s if deaf).
async fn flood(
    server: &Running,
    is_deaf: bool,
    first: &[u8],
    mut next: impl FnMut(u32) -> Vec<u8> + Send + 'static,
) -> (u64, Option<u32>) {
    let mut stream = dial_2(server).await;
    stream.write_all(first).await.expect("sent");
    let (mut reader, mut writer) = tokio::io::split(stream);
    let reading = tokio::spawn(async move {
        let mut answer = vec![];
        if !is_deaf {
            let _ = reader.read_to_end(&mut answer).await;
        }
        let mut rest = &answer[..];
        while let Some((head, tail)) = rest.split_at_checked(9) {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some((payload, after)) = tail.split_at_checked(length) else { break };
            if head[3] == GOAWAY && payload[4..8] != [0; 4] {
                return Some(u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]));
            }
            rest = after;
        }
        None
    });
    let mut sent = 0;
    let sending = async {
        for number in 0.. {
            let piece = next(number);
            if sent > 64 << 20 || writer.write_all(&piece).await.is_err() {
                break;
            }
            sent += piece.len() as u64;
        }
    };
    let limit = Duration::from_secs(if is_deaf { 2 } else { 10 });
    let _ = tokio::time::timeout(limit, sending).await;
    drop(writer);
    let error = if is_deaf {
        reading.abort();
        None
    } else {
        tokio::time::timeout(TIMEOUT, reading).await.ok().and_then(Result::ok).flatten()
    };
    (sent, error)
}

/// Of each flood the server takes what waits in sockets' buffers, and then ends the connection as
/// one that asks for too much, or stops to read.
#[tokio::test(flavor = "multi_thread")]
async fn floods_of_frames_end_a_connection_over_http_2() {
    /// RFC 9113 §7.
    const ENHANCE_YOUR_CALM: Option<u32> = Some(11);
    /// The most that waits in the sockets of both ends, which grow on a busy machine.
    const BUFFERS: u64 = 16 << 20;
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    // Requests that are reset at once (CVE-2023-44487), one by one and many in a record of TLS.
    let reset = |number: u32| {
        let stream = 1 + 2 * number;
        let request = frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields());
        [request, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    };
    let (sent, error) = flood(&server, false, &[], reset).await;
    assert!(sent < BUFFERS && error == ENHANCE_YOUR_CALM, "resets: {sent} {error:?}");
    let many = move |number: u32| (0..200).flat_map(|at| reset(200 * number + at)).collect();
    let (sent, error) = flood(&server, false, &[], many).await;
    assert!(sent < BUFFERS && error == ENHANCE_YOUR_CALM, "many resets: {sent} {error:?}");
    // Header fields without an end (CVE-2024-27316), and empty pieces of them.
    let begun = frame(HEADERS, END_STREAM, 1, &fields());
    let field = [&[0x00, 0x01, b'x', 0x7f, 0x81, 0x01][..], &[b'y'; 256]].concat();
    for piece in [frame(CONTINUATION, 0, 1, &field.repeat(50)), frame(CONTINUATION, 0, 1, &[])] {
        let (sent, error) = flood(&server, false, &begun, move |_| piece.clone()).await;
        assert!(sent < BUFFERS && error == ENHANCE_YOUR_CALM, "fields: {sent} {error:?}");
    }
    // A field of 4000 bytes in the dynamic table, named again by a byte each: 48 MB a request.
    let large = [&fields()[..], &[0x40, 0x01, b'x', 0x7f, 0xa1, 0x1e], &[b'y'; 4000]].concat();
    let bomb = move |number: u32| {
        let mut block = if number == 0 { large.clone() } else { fields() };
        block.extend(vec![0xbe; 12_000]);
        frame(HEADERS, END_STREAM | END_HEADERS, 1 + 2 * number, &block)
    };
    let (sent, error) = flood(&server, false, &[], bomb).await;
    assert!(sent < BUFFERS && error == ENHANCE_YOUR_CALM, "HPACK: {sent} {error:?}");
    // Frames that are answered, by a client that does not read (CVE-2019-9512 and 9515), and empty
    // DATA.
    let request = frame(HEADERS, END_HEADERS, 1, &fields());
    for (first, piece) in [
        (vec![], frame(PING, 0, 0, &[7; 8])),
        (vec![], frame(SETTINGS, 0, 0, &[])),
        (request, frame(DATA, 0, 1, &[])),
    ] {
        let kind = piece[3];
        let (sent, _) = flood(&server, true, &first, move |_| piece.repeat(1000)).await;
        assert!(sent < 2 * BUFFERS, "frame {kind}: {sent}");
    }
    assert!(
        ask(&server, "GET /bytes/1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            .await
            .contains(" 200 OK")
    );
    server.stop().await;
}

/// Noise, and beginnings of TLS that are none.
#[tokio::test(flavor = "multi_thread")]
async fn noise_in_place_of_a_handshake_ends_the_connection() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let noise: Vec<u8> = (0..20_000_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    // A record of TLS with a handshake message of 16 MB, one that ends within it, and an alert.
    let hello = [&[22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff][..], &noise[..16_380]].concat();
    for bytes in [&noise[..], b"GET / HTTP/1.1\r\n\r\n", &hello, &hello[..100], &[21, 3, 1, 0, 2, 2, 40]] {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = vec![];
        let ended = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut answer)).await;
        assert!(ended.is_ok() && answer.len() < 100, "{} bytes", answer.len());
    }
    assert!(
        ask(&server, "GET /bytes/1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            .await
            .contains(" 200 OK")
    );
    server.stop().await;
}
