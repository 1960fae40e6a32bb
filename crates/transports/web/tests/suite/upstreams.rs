//! Clients that hold what an upstream has: turns, connections, ports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Running, TIMEOUT, start, until};
use crate::hostile::{dial as dial_h3, request as get_h3};
use crate::hostile_tcp::{dial_2, frame};
use crate::proxy::{HELLO, get, in_front_as, in_front_with, origin, read_head, read_until, status};
use crate::tcp::{ask, dial, handshake};
use headstart_web::places::ConnectionCounters;
use headstart_web::proxy::{Proxy, ProxyConfig};
use headstart_web::server::ServerConfig;
use headstart_web::site::Site;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::unbounded_channel;
use tokio_rustls::client::TlsStream;

/// From 127.0.0.`host`.
async fn dial_from(server: &Running, host: u8) -> TlsStream<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).expect("an address");
    let stream = socket.connect(server.address).await.expect("a connection");
    handshake(stream, &server.trust(), &[b"http/1.1"]).await.expect("a handshake")
}

/// An upstream that answers when a request is whole, with a large answer to `/large`, and with an
/// echo to a request for a WebSocket.
async fn obedient(mut stream: TcpStream) {
    while let Some(head) = read_head(&mut stream).await {
        let length = head.split("content-length: ").nth(1).and_then(|it| it.split('\r').next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        let sent = if head.contains("upgrade: websocket") {
            let switch =
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
            let _ = stream.write_all(switch).await;
            let (mut from, mut to) = stream.split();
            let _ = tokio::io::copy(&mut from, &mut to).await;
            return;
        } else if head.contains("/large") {
            let large = vec![b'x'; 50_000_000];
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n").await;
            stream.write_all(&large).await
        } else {
            stream.write_all(HELLO).await
        };
        if sent.is_err() {
            return;
        }
    }
}

fn in_front(address: SocketAddr, config: ProxyConfig) -> Arc<Proxy> {
    let upstream = format!("http://{address}").parse().expect("a URL");
    Arc::new(Proxy::new(vec![upstream], config).expect("certificates"))
}

/// Every turn is with clients that send little, read little, or have a tunnel for little.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_do_not_keep_an_upstream_from_others() {
    let address = origin(obedient).await;
    for request in [
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nx",
        "GET /large HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ] {
        for host in if request.contains("/large") { 2..=2 } else { 1..=2 } {
            let counters = ConnectionCounters::default();
            // No other limit ends them in time.
            let [first_byte, idle] = [5 * TIMEOUT; 2];
            let limits = ProxyConfig { first_byte, idle, ..ProxyConfig::default() };
            let config = ProxyConfig { most_per_upstream: 2, counters: counters.clone(), ..limits };
            let proxy = in_front(address, config);
            let site = Arc::clone(&proxy);
            let server = start(ServerConfig::default(), |_| Site::Upstreams(site)).await;
            let mut slow = vec![];
            for _ in 0..2 {
                let mut stream = dial(&server, &[b"http/1.1"]).await;
                stream.write_all(request.as_bytes()).await.expect("sent");
                slow.push(stream);
            }
            until("both hold a turn", || counters.render().contains("open_passed_requests 2\n")).await;
            let mut other = dial_from(&server, host).await;
            other.write_all(get("").as_bytes()).await.expect("sent");
            let mut answer = vec![];
            let read = tokio::time::timeout(TIMEOUT, other.read_to_end(&mut answer)).await;
            read.expect("in time").expect("an answer");
            assert_eq!(status(&String::from_utf8_lossy(&answer)), "200", "{request}");
            let up = format!("headstart_upstream_up{{upstream=\"http://{address}\"}} 1\n");
            assert!(proxy.render().contains(&up), "it is well: {}", proxy.render());
            drop(slow);
            server.shutdown.cancel();
        }
    }
}

/// Of eight turns two are left, though all that are free were asked for at once.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_cannot_have_all_turns() {
    let address = origin(obedient).await;
    let config = ProxyConfig { most_per_upstream: 8, ..ProxyConfig::default() };
    let server = in_front_with(&[address], config).await;
    let mut slow = vec![];
    for _ in 0..20 {
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\nx";
        stream.write_all(post.as_bytes()).await.expect("sent");
        slow.push(stream);
    }
    let mut other = dial_from(&server, 2).await;
    other.write_all(get("").as_bytes()).await.expect("sent");
    let answer = read_until(&mut other, b"hello").await;
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    drop(slow);
    server.stop().await;
}

/// An upstream that is busy with others is well.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_for_its_turn_in_vain_pauses_no_upstream() {
    let address = origin(|mut stream| async move {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let first_byte = Duration::from_millis(500);
    let proxy = in_front(address, ProxyConfig { most_per_upstream: 1, first_byte, ..ProxyConfig::default() });
    let site = Arc::clone(&proxy);
    let server = start(ServerConfig::default(), |_| Site::Upstreams(site)).await;
    let mut first = dial(&server, &[b"http/1.1"]).await;
    first.write_all(get("").as_bytes()).await.expect("sent");
    read_until(&mut first, b"\r\n\r\n1").await;
    let answer = ask(&server, &get("")).await;
    assert!(status(&answer) == "503" && answer.contains("too many requests wait"), "{answer}");
    let told = proxy.render();
    let name = format!("upstream=\"http://{address}\"");
    assert!(told.contains(&format!("headstart_upstream_up{{{name}}} 1\n")), "{told}");
    assert!(told.contains(&format!("{{{name},outcome=\"busy\"}} 1\n")), "{told}");
    drop(first);
    server.shutdown.cancel();
}

/// Each byte comes in time, and all of them would take days.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_sends_a_byte_now_and_then_is_told_so() {
    let address = origin(obedient).await;
    let config = ProxyConfig { first_byte: Duration::from_millis(600), ..ProxyConfig::default() };
    let server = in_front_with(&[address], config).await;
    let (mut from, mut to) = tokio::io::split(dial(&server, &[b"http/1.1"]).await);
    tokio::spawn(async move {
        let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n";
        to.write_all(head).await.expect("sent");
        while to.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let answer = tokio::time::timeout(TIMEOUT, read_until(&mut from, b"\r\n\r\n")).await.expect("in time");
    assert_eq!(status(&String::from_utf8_lossy(&answer)), "408");
    server.shutdown.cancel();
}

/// Over HTTP/3 nothing but the turn's end tells the proxy's task of the answer that it is over.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_http_3_that_nobody_reads_gives_way() {
    let address = origin(obedient).await;
    let config = ProxyConfig { most_per_upstream: 1, ..ProxyConfig::default() };
    let server = in_front_with(&[address], config).await;
    let (connection, _control) = dial_h3(&server).await;
    let (mut request, mut unread) = connection.open_bi().await.expect("a stream");
    request.write_all(&get_h3("/large")).await.expect("sent");
    request.finish().expect("open");
    unread.read_exact(&mut [0; 1]).await.expect("an answer");
    assert_eq!(status(&ask(&server, &get("")).await), "200");
    let ended = unread.read_to_end(60_000_000).await;
    assert!(matches!(ended, Err(noq::ReadToEndError::Read(noq::ReadError::Reset(_)))), "{:?}", ended.is_ok());
    server.shutdown.cancel();
}

/// A reset leaves no port in TIME_WAIT.
#[tokio::test(flavor = "multi_thread")]
async fn the_connection_of_a_request_that_is_given_up_is_reset() {
    let (tell, mut told) = unbounded_channel();
    let address = origin(move |mut stream| {
        let tell = tell.clone();
        async move {
            let head = read_head(&mut stream).await.expect("a request");
            if head.contains("/begun") {
                let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun";
                stream.write_all(begun).await.expect("sent");
            }
            tell.send(None).expect("a listener");
            tell.send(Some(stream.read(&mut [0]).await.map_err(|it| it.kind()))).expect("a listener");
        }
    })
    .await;
    let server = in_front_as(ServerConfig::default(), address).await;
    for path in ["/", "/begun"] {
        let mut stream = dial(&server, &[b"http/1.1"]).await;
        stream.write_all(get("").replace("/a?b=c", path).as_bytes()).await.expect("sent");
        assert_eq!(told.recv().await, Some(None));
        if path == "/begun" {
            read_until(&mut stream, b"begun").await;
        }
        drop(stream);
        let ended = tokio::time::timeout(TIMEOUT, told.recv()).await.expect("in time");
        assert_eq!(ended, Some(Some(Err(std::io::ErrorKind::ConnectionReset))), "{path}");
    }
    server.stop().await;
}

/// It closes with a part of the request unread, which resets the connection behind the answer.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_an_upstream_that_stops_to_read_is_not_lost() {
    let address = origin(|mut stream| async move {
        read_head(&mut stream).await;
        let early = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge";
        let _ = stream.write_all(early).await;
    })
    .await;
    let server = in_front_as(ServerConfig::default(), address).await;
    for _ in 0..30 {
        let (mut from, mut to) = tokio::io::split(dial(&server, &[b"http/1.1"]).await);
        tokio::spawn(async move {
            let head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\nConnection: close\r\n\r\n";
            let _ = to.write_all(head).await;
            let _ = to.write_all(&vec![7; 2_000_000]).await;
        });
        let answer = tokio::time::timeout(TIMEOUT, read_until(&mut from, b"\r\n\r\n")).await;
        assert_eq!(status(&String::from_utf8_lossy(&answer.expect("in time"))), "413");
    }
    server.shutdown.cancel();
}

/// Over HTTP/2 and HTTP/3.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_may_give_up_so_many_requests_and_no_more() {
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let address = origin(move |mut stream| {
        let count = Arc::clone(&count);
        async move {
            read_head(&mut stream).await;
            count.fetch_add(1, Ordering::Relaxed);
            let _ = stream.read(&mut [0]).await;
        }
    })
    .await;
    let server = in_front_as(ServerConfig { most_given_up: 5, ..ServerConfig::default() }, address).await;
    let fields = [&[0x82, 0x87, 0x84, 0x41, 9][..], b"localhost"].concat();
    let mut stream = dial_2(&server).await;
    for number in 0..6 {
        let id = 1 + 2 * number as u32;
        stream.write_all(&frame(1, 5, id, &fields)).await.expect("sent");
        until("it is passed on", || begun.load(Ordering::Relaxed) == number + 1).await;
        stream.write_all(&frame(3, 0, id, &[0, 0, 0, 8])).await.expect("sent");
    }
    let read = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut vec![])).await;
    let _ = read.expect("the connection ends");

    let (connection, _control) = dial_h3(&server).await;
    for number in 6..12 {
        let (mut request, mut answer) = connection.open_bi().await.expect("a stream");
        request.write_all(&get_h3("/")).await.expect("sent");
        request.finish().expect("open");
        until("it is passed on", || begun.load(Ordering::Relaxed) == number + 1).await;
        answer.stop(0x10cu32.into()).expect("open");
    }
    let closed = tokio::time::timeout(TIMEOUT, connection.closed()).await.expect("in time");
    let load =
        matches!(&closed, noq::ConnectionError::ApplicationClosed(it) if u64::from(it.error_code) == 0x107);
    assert!(load, "{closed}");
    server.stop().await;
}
