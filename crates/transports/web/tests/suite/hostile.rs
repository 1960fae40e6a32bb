//! Clients that break the rules of HTTP, or keep them to the letter and ask for too much.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{Running, TIMEOUT, start, until};
use headstart_quic::Rollout;
use headstart_web::places::ConnectionCounters;
use headstart_web::server::ServerConfig;
use headstart_web::site::{Folder, Site};
use noq::{Connection, ConnectionError, Endpoint};
use tempfile::TempDir;

/// A variable-length integer of RFC 9000 §16.
pub fn varint(value: u64) -> Vec<u8> {
    match value {
        0..0x40 => vec![value as u8],
        0x40..0x4000 => (value as u16 | 0x4000).to_be_bytes().to_vec(),
        0x4000..0x4000_0000 => (value as u32 | 0x8000_0000).to_be_bytes().to_vec(),
        _ => (value | 0xC000_0000_0000_0000).to_be_bytes().to_vec(),
    }
}

/// A connection of HTTP/3 with its control stream (RFC 9114 §6.2.1).
pub async fn dial(server: &Running) -> (Connection, noq::SendStream) {
    dial_from(server, 1).await
}

/// From 127.0.0.`host`.
async fn dial_from(server: &Running, host: u8) -> (Connection, noq::SendStream) {
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, host], 0))).expect("a socket");
    let connecting = endpoint.connect_with(server.client(None, false), server.address, "localhost");
    let connection = connecting.expect("begins").await.expect("a connection");
    let mut control = connection.open_uni().await.expect("a stream");
    control.write_all(&[0x00, 0x04, 0x00]).await.expect("sent");
    (connection, control)
}

/// RFC 9114 §7.2: a frame's length may have 62 bits. Only DATA is read piece by piece.
#[tokio::test(flavor = "multi_thread")]
async fn a_frame_longer_than_a_header_section_may_be_ends_the_connection_or_is_refused() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    // HEADERS, one that is not known, SETTINGS.
    for kind in [0x01, 0x21, 0x04] {
        for is_control in [false, true] {
            let (connection, mut control) = dial(&server).await;
            let (mut request, mut answer) = connection.open_bi().await.expect("a stream");
            let head = [varint(kind), varint(1 << 40)].concat();
            if kind == 0x01 && !is_control {
                // The others go on.
                request.write_all(&head).await.expect("sent");
                let answer = tokio::time::timeout(TIMEOUT, answer.read_to_end(1000)).await.expect("in time");
                assert_eq!(answer.expect("an answer"), b"\x01\x08\x00\x00\x5f\x09\x03431");
                let (mut next, mut answer) = connection.open_bi().await.expect("a stream");
                next.write_all(&self::request("/bytes/10")).await.expect("sent");
                next.finish().expect("open");
                assert!(answer.read_to_end(1000).await.expect("an answer").ends_with(b"hhhhhhhhhh"));
                continue;
            }
            let stream = if is_control { &mut control } else { &mut request };
            // Its length is enough: other limits are on bytes that came.
            stream.write_all(&head).await.expect("sent");
            let closed = tokio::time::timeout(TIMEOUT, connection.closed()).await.expect("in time");
            assert!(
                matches!(&closed, ConnectionError::ApplicationClosed(close) if u64::from(close.error_code) == 0x102),
                "frame {kind:#x}, control {is_control}: {closed}"
            );
        }
    }
    assert_eq!(server.fetch(&["/bytes/1000"]).await.pages[0].bytes, 1_000);
    server.stop().await;
}

/// A request of a client that accepts compression: HEADERS (RFC 9114 §7.2.2), with static names
/// (RFC 9204, Appendix A).
pub fn request(path: &str) -> Vec<u8> {
    let mut fields = vec![0, 0, 0xd1, 0xd7, 0x50, 9];
    fields.extend(b"localhost");
    fields.extend([0x51, path.len() as u8]);
    fields.extend(path.as_bytes());
    [vec![0x01, fields.len() as u8], fields].concat()
}

/// Frames of header fields that lack their last byte: 64 kB on each of a hundred streams.
#[tokio::test(flavor = "multi_thread")]
async fn header_fields_that_never_end_are_bounded_in_bytes_and_time() {
    let time_for_fields = Duration::from_millis(1500);
    let server =
        start(ServerConfig { handshake: time_for_fields, ..ServerConfig::default() }, |_| Site::Generated)
            .await;
    let (connection, _control) = dial(&server).await;
    let part = |length: usize| [varint(0x01), varint(length as u64 + 1), vec![0; length]].concat();
    let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
    stream.write_all(&part(1000)).await.expect("sent");
    let ended = tokio::time::timeout(TIMEOUT, answer.read_to_end(1000)).await.expect("in time");
    assert!(ended.is_err() || ended.is_ok_and(|answer| answer.is_empty()), "no answer");
    assert!(connection.close_reason().is_none(), "others go on");
    let mut open = vec![];
    for _ in 0..100 {
        let Ok((mut stream, answer)) = connection.open_bi().await else { break };
        let sent = tokio::time::timeout(Duration::from_millis(200), stream.write_all(&part(64_900))).await;
        open.push((stream, answer));
        if !matches!(sent, Ok(Ok(()))) {
            break;
        }
    }
    assert!(open.len() <= 12, "{} times 64.9 kB", open.len());
    tokio::time::timeout(TIMEOUT, connection.closed()).await.expect("it is closed");
    let mut others = vec![];
    for _ in 0..20 {
        let (connection, control) = dial(&server).await;
        let (mut stream, answer) = connection.open_bi().await.expect("a stream");
        stream.write_all(&part(64_900)).await.expect("sent");
        others.push((connection, control, stream, answer));
    }
    assert_eq!(server.fetch(&["/bytes/1000"]).await.pages[0].bytes, 1_000);
    server.stop().await;
}

/// Four at once, and in all more than a connection may have.
#[tokio::test(flavor = "multi_thread")]
async fn fields_of_requests_that_ended_are_forgotten() {
    let handshake = Duration::from_millis(700);
    let server = start(ServerConfig { handshake, ..ServerConfig::default() }, |_| Site::Generated).await;
    let (connection, _control) = dial(&server).await;
    for _ in 0..3 {
        let mut open = vec![];
        for _ in 0..4 {
            let (mut stream, answer) = connection.open_bi().await.expect("a stream");
            stream.write_all(&[varint(0x01), varint(60_000), vec![0; 50_000]].concat()).await.expect("sent");
            open.push((stream, answer));
        }
        for (_, answer) in &mut open {
            // Nothing is answered in time, and the server gives it up.
            let _ = tokio::time::timeout(TIMEOUT, answer.read_to_end(1000)).await.expect("in time");
        }
        assert!(connection.close_reason().is_none(), "{:?}", connection.close_reason());
    }
    server.stop().await;
}

/// RFC 9114 §4.2: fields about the connection belong to HTTP/1.1.
#[tokio::test(flavor = "multi_thread")]
async fn fields_of_http_1_make_a_request_malformed() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let (connection, _control) = dial(&server).await;
    for (name, value, is_malformed) in [
        ("connection", "close", true),
        ("te", "gzip", true),
        ("te", "trailers", false),
        ("transfer-encoding", "chunked", true),
        ("upgrade", "h2c", true),
    ] {
        let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
        let mut fields = request("/bytes/10").split_off(2);
        // A literal field with a literal name (RFC 9204 §4.5.6).
        let length = name.len() as u8;
        fields.extend(if length < 7 { vec![0x20 | length] } else { vec![0x27, length - 7] });
        fields.extend(name.as_bytes());
        fields.push(value.len() as u8);
        fields.extend(value.as_bytes());
        let frame = [vec![0x01], varint(fields.len() as u64), fields].concat();
        stream.write_all(&frame).await.expect("sent");
        let _ = stream.finish();
        let answer = tokio::time::timeout(TIMEOUT, answer.read_to_end(1000)).await.expect("in time");
        match answer {
            Err(noq::ReadToEndError::Read(noq::ReadError::Reset(code))) => {
                assert!(is_malformed && u64::from(code) == 0x10e, "{name}: {code}");
            }
            answer => assert!(!is_malformed && answer.is_ok(), "{name}: {value}"),
        }
    }
    assert!(connection.close_reason().is_none(), "others go on");
    server.stop().await;
}

/// RFC 9114 §4.3: of two paths, a proxy in front and the server could take different ones.
#[tokio::test(flavor = "multi_thread")]
async fn two_paths_or_one_behind_other_fields_make_a_request_malformed() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let (connection, _control) = dial(&server).await;
    let path = b"\x51\x09/bytes/10";
    let agent = b"\x5f\x50\x01a";
    for (lines, expected) in [
        (vec![&path[..]], Ok(true)),
        (vec![path, agent], Ok(true)),
        (vec![path, path], Err(0x10e)),
        (vec![agent, path], Err(0x10e)),
    ] {
        let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
        let fields = [&b"\0\0\xd1\xd7\x50\x09localhost"[..], &lines.concat()].concat();
        stream.write_all(&[&[0x01, fields.len() as u8], &fields[..]].concat()).await.expect("sent");
        let _ = stream.finish();
        let answer = tokio::time::timeout(TIMEOUT, answer.read_to_end(1000)).await.expect("in time");
        let found = match answer {
            Ok(answer) => Ok(answer.windows(10).any(|bytes| bytes == b"hhhhhhhhhh")),
            Err(noq::ReadToEndError::Read(noq::ReadError::Reset(code))) => Err(u64::from(code)),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(found, expected, "{lines:x?}");
    }
    assert!(connection.close_reason().is_none(), "others go on");
    server.stop().await;
}

/// Eight of 50 kB, in all more than a connection may have.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_fields_that_came_in_pieces_are_forgotten() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let (connection, _control) = dial(&server).await;
    let path = b"\x51\x09/bytes/10";
    // 50 000 bytes, in seven bits of the first byte and in three more (RFC 7541 §5.1).
    let agent = [&b"\x5f\x50\x7f\xd1\x85\x03"[..], &[b'a'; 50_000]].concat();
    let fields = [&b"\0\0\xd1\xd7\x50\x09localhost"[..], path, &agent, path].concat();
    for _ in 0..8 {
        let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
        let frame = [varint(0x01), varint(fields.len() as u64), fields.clone()].concat();
        let (first, rest) = frame.split_at(frame.len() - 20);
        stream.write_all(first).await.expect("sent");
        // The server reads the first piece by itself.
        tokio::time::sleep(Duration::from_millis(50)).await;
        stream.write_all(rest).await.expect("sent");
        let answer = tokio::time::timeout(TIMEOUT, answer.read_to_end(1000)).await.expect("in time");
        assert!(
            matches!(&answer, Err(noq::ReadToEndError::Read(noq::ReadError::Reset(code))) if u64::from(*code) == 0x10e),
            "{answer:?}"
        );
    }
    assert!(connection.close_reason().is_none(), "{:?}", connection.close_reason());
    server.stop().await;
}

/// Bodies of requests whose answers are not read, and a QPACK encoder stream: nobody reads either.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_connection_sends_unread_is_bounded() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let (connection, _control) = dial(&server).await;
    let mut streams = vec![];
    for _ in 0..50 {
        let (mut stream, answer) = connection.open_bi().await.expect("a stream");
        stream.write_all(&request("/bytes/1073741824")).await.expect("sent");
        stream.write_all(&[varint(0), varint(1 << 40)].concat()).await.expect("sent");
        streams.push((stream, Some(answer)));
    }
    let mut encoder = connection.open_uni().await.expect("a stream");
    encoder.write_all(&[0x02]).await.expect("sent");
    streams.push((encoder, None));
    let piece = vec![0; 1 << 16];
    let mut sent = 0;
    for (stream, _) in &mut streams {
        // Of a stream that is blocked.
        while let Ok(written) = tokio::time::timeout(Duration::from_millis(30), stream.write(&piece)).await {
            sent += written.expect("the stream is open");
        }
    }
    assert!(sent <= 256 << 10, "{sent} bytes");
    assert!(connection.max_datagram_size().is_none(), "nor are datagrams kept");
    server.stop().await;
}

/// Answers that are not read hold a file each. A client gets its share of these, over all of its
/// connections, and others are served.
#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn an_address_holds_its_share_of_files_and_others_are_served() {
    let counters = ConnectionCounters::default();
    let counted = counters.clone();
    let server = start(ServerConfig::default(), |files| {
        let text: String =
            (0..500_000_u64).map(|n| format!("{:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        std::fs::write(files.path().join("large"), text).expect("a file");
        let folder = Folder::open(files.path()).expect("the folder is there");
        Site::Folder(folder.with_limits(30, 20, counters))
    })
    .await;
    let mut held = vec![];
    for _ in 0..2 {
        let (connection, control) = dial(&server).await;
        for _ in 0..15 {
            let (mut stream, answer) = connection.open_bi().await.expect("a stream");
            stream.write_all(&request("/large")).await.expect("sent");
            stream.finish().expect("open");
            held.push((connection.clone(), stream.id(), answer));
        }
        std::mem::forget(control);
    }
    until("the rest is refused", || counted.render().contains("files_total{limit=\"address\"} 10\n")).await;
    assert!(counted.render().contains("open_files 20\n"), "{}", counted.render());
    let (other, _control) = dial_from(&server, 2).await;
    let (mut stream, mut answer) = other.open_bi().await.expect("a stream");
    stream.write_all(&request("/large")).await.expect("sent");
    stream.finish().expect("open");
    let length = answer.read_to_end(9 << 20).await.expect("an answer").len();
    assert!(length >= 8 << 20, "{length} bytes");
    // The rest of the places of all.
    for _ in 0..11 {
        let (mut stream, answer) = other.open_bi().await.expect("a stream");
        stream.write_all(&request("/large")).await.expect("sent");
        stream.finish().expect("open");
        held.push((other.clone(), stream.id(), answer));
    }
    until("one more is refused", || counted.render().contains("files_total{limit=\"all\"} 1\n")).await;
    let small = server.fetch(&["/"]).await;
    assert_eq!(small.pages[0].status.as_u16(), 503, "nor are there small ones");
    drop(held);
    until("the files are closed", || counted.render().contains("open_files 0\n")).await;
    assert_eq!(server.fetch(&["/"]).await.pages[0].status.as_u16(), 200);
    server.stop().await;
}

/// Indexed fields of the static table, 108 bytes for two, and one of the dynamic table, which the
/// server does not have.
#[tokio::test(flavor = "multi_thread")]
async fn fields_that_qpack_makes_large_are_refused() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let (connection, _control) = dial(&server).await;
    for (fields, is_refused) in [([0xff, 22].repeat(30_000), true), (vec![0x80], false)] {
        let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
        let block = [vec![0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'h'], fields].concat();
        let _ = stream.write_all(&[varint(0x01), varint(block.len() as u64), block].concat()).await;
        let _ = stream.finish();
        let answer = tokio::time::timeout(TIMEOUT, answer.read_to_end(10_000)).await.expect("in time");
        if is_refused {
            // HEADERS with the status 431, in Huffman's code, and no more.
            let expected = [1, 8, 0, 0, 0x5f, 9, 0x83, 0x69, 0x90, 0xff];
            assert_eq!(answer.expect("an answer"), expected);
        } else {
            // QPACK_DECOMPRESSION_FAILED (RFC 9204 §6).
            // The stream may end before the connection.
            let closed = tokio::time::timeout(TIMEOUT, connection.closed()).await.expect("it is closed");
            let is_of_qpack = |code: u64| matches!(&closed, ConnectionError::ApplicationClosed(close) if u64::from(close.error_code) == code);
            assert!(is_of_qpack(0x200), "{closed}");
        }
    }
    assert_eq!(server.fetch(&["/bytes/1000"]).await.pages[0].bytes, 1_000);
    server.stop().await;
}

/// As in CVE-2023-44487. The client has a hundred streams at once, whatever it resets.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_reset_at_once_keep_nothing_and_others_are_served() {
    let counters = ConnectionCounters::default();
    let counted = counters.clone();
    let limited = |files: &TempDir| {
        let opened = Folder::open(files.path()).expect("the folder is there");
        Site::Folder(opened.with_limits(10_000, 1000, counters))
    };
    let server = start(ServerConfig::default(), limited).await;
    let (connection, _control) = dial(&server).await;
    let flood = tokio::spawn(async move {
        for _ in 0..20_000 {
            let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
            let _ = stream.write_all(&request("/picture.png")).await;
            let _ = stream.reset(0x10cu32.into());
            let _ = answer.stop(0x10cu32.into());
        }
        connection
    });
    for _ in 0..20 {
        let (connection, _control) = dial_from(&server, 2).await;
        let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
        stream.write_all(&request("/picture.png")).await.expect("sent");
        stream.finish().expect("open");
        assert!(answer.read_to_end(1 << 20).await.expect("an answer").len() > 300_000);
    }
    let _open = flood.await.expect("as many as it wants");
    until("no file is held", || counted.render().contains("open_files 0\n")).await;
    server.stop().await;
}

/// The server answers packets of other versions with its own, also short ones.
#[tokio::test(flavor = "multi_thread")]
async fn a_datagram_of_any_form_is_answered_with_less_than_three_times_its_length() {
    let (open, _) = crate::starts::start("iw10", Rollout::default());
    for server in [start(ServerConfig::default(), |_| Site::Generated).await, open] {
        noise_is_answered_within_bounds(server).await;
    }
}

async fn noise_is_answered_within_bounds(server: Running) {
    let client = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port");
    let mut datagram: Vec<u8> = (0..1500_u32).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    let mut answers = 0;
    for length in [1, 7, 8, 20, 21, 30, 100, 1199, 1200, 1472] {
        // Short headers, and long ones of version 1, a reserved one and others, of each type.
        for first in [0x40, 0x7f, 0xc0, 0xd0, 0xe0, 0xf0, 0x80] {
            for version in [1_u32, 0x0a0a_0a0a, 0x6b33_43cf, 0, 0xff00_001d] {
                datagram[0] = first;
                datagram[1..5].copy_from_slice(&version.to_be_bytes());
                // Two connection IDs, without a byte if there is no room for more.
                datagram[5] = if length < 30 { 0 } else { 8 };
                datagram[if length < 30 { 6 } else { 14 }] = datagram[5];
                client.send_to(&datagram[..length], server.address).await.expect("sent");
            }
        }
        let mut answer = [0; 2048];
        let wait = Duration::from_millis(100);
        while let Ok(Ok(bytes)) = tokio::time::timeout(wait, client.recv(&mut answer)).await {
            assert!(bytes <= 3 * length, "{bytes} bytes for {length}");
            answers += 1;
        }
    }
    assert!(answers > 0);
    assert_eq!(server.fetch(&["/bytes/1000"]).await.pages[0].bytes, 1_000);
    server.stop().await;
}

/// The server answers at once and reads on for a second.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_body_is_not_read_for_long() {
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let (connection, _control) = dial(&server).await;
    let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
    stream.write_all(&request("/bytes/10")).await.expect("sent");
    stream.write_all(&[varint(0), varint(1 << 40)].concat()).await.expect("sent");
    let answer = answer.read_to_end(1000).await.expect("an answer");
    assert!(answer.windows(10).any(|bytes| bytes == b"hhhhhhhhhh"), "{answer:?}");
    let begun = tokio::time::Instant::now();
    while stream.write_all(&[0; 100]).await.is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it reads on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(connection.close_reason().is_none(), "others go on");
    server.stop().await;
}

/// A file that becomes shorter while it is sent.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_misses_bytes_is_reset() {
    let server = start(ServerConfig::default(), crate::common::folder).await;
    let path = server.files.path().join("large");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(300_000_000).expect("room");
    let endpoint = Endpoint::client(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let mut config = server.client(None, false);
    let mut transport = noq::TransportConfig::default();
    transport.stream_receive_window(100_000_u32.into());
    config.transport_config(std::sync::Arc::new(transport));
    let connecting = endpoint.connect_with(config, server.address, "localhost").expect("begins");
    let connection = connecting.await.expect("a connection");
    let mut control = connection.open_uni().await.expect("a stream");
    control.write_all(&[0x00, 0x04, 0x00]).await.expect("sent");
    let (mut stream, mut answer) = connection.open_bi().await.expect("a stream");
    stream.write_all(&request("/large")).await.expect("sent");
    stream.finish().expect("open");
    answer.read_chunk(10_000).await.expect("the beginning");
    file.set_len(5_000_000).expect("shorter");
    let end = loop {
        match answer.read_chunk(1 << 20).await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };
    assert!(matches!(end, Err(noq::ReadError::Reset(code)) if u64::from(code) == 0x102), "{end:?}");
    server.stop().await;
}

/// A server that says one length and sends another, and one that has news before its answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_takes_an_answer_of_the_announced_length_behind_those_before_it() {
    use headstart_web::client::{self, FetchError};
    let server = start(ServerConfig::default(), |_| Site::Generated).await;
    let identity =
        headstart_web::identity::Identity::load_or_create(server.keys.path(), &[]).expect("a pair");
    let tls = headstart_web::server::tls(&identity.current().expect("a key")).expect("TLS");
    let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).expect("for QUIC");
    let config = noq::ServerConfig::with_crypto(std::sync::Arc::new(crypto));
    let fake = Endpoint::server(config, SocketAddr::from(([127, 0, 0, 1], 0))).expect("a socket");
    let address = fake.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut is_whole = false;
        while let Some(incoming) = fake.accept().await {
            is_whole = !is_whole;
            let connection = incoming.await.expect("a connection");
            let mut control = connection.open_uni().await.expect("a stream");
            control.write_all(&[0x00, 0x04, 0x00]).await.expect("sent");
            let (mut answer, _request) = connection.accept_bi().await.expect("a stream");
            // :status 103, then 200 with a content-length of 20, and 10 bytes.
            let early = [0x01, 3, 0, 0, 0xd8];
            let head = [&[0x01, 7, 0, 0, 0xd9, 0x54, 2][..], b"20"].concat();
            let body = [&[0x00, 10][..], &[7; 10]].concat();
            let body = if is_whole { [body.clone(), body].concat() } else { body };
            answer.write_all(&[&early[..], &early, &head, &body].concat()).await.expect("sent");
            answer.finish().expect("open");
            connection.closed().await;
        }
    });
    let endpoint = client::endpoint(address).expect("a socket");
    let mut seen = [false; 2];
    for _ in 0..4 {
        let done = server.plan(&["/"]).run(&endpoint, server.client(None, false), address).await;
        match done {
            Ok(visit) => {
                assert_eq!((visit.pages[0].status.as_u16(), visit.pages[0].bytes), (200, 20));
                seen[0] = true;
            }
            Err(FetchError::Truncated { found: 10, expected: 20, .. }) => seen[1] = true,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(seen, [true; 2]);
    server.stop().await;
}

/// Ports that cannot be, and names of users, which stay here.
#[test]
fn an_origin_has_a_port_that_can_be() {
    use headstart_web::client::Origin;
    for (url, port) in [
        ("https://h/", Some(443)),
        ("https://h:/", Some(443)),
        ("https://h:1/", Some(1)),
        ("https://user:pw@h/", Some(443)),
        ("https://user:pw@h:65535/", Some(65_535)),
        ("https://[::1]:8443/", Some(8443)),
        ("https://h:0/", None),
        ("https://h:65536/", None),
        ("https://h:99999/", None),
        ("https://[::1]:99999/", None),
        ("https://user:99@h:99999/", None),
    ] {
        let Ok(parsed) = url.parse() else { continue };
        assert_eq!(Origin::of(&parsed).ok().map(|origin| origin.port), port, "{url}");
    }
}
