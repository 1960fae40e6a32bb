//! The same pages over TCP, for clients without HTTP/3.

use std::sync::Arc;

use crate::common::{Running, folder, start};
use headstart_web::client::tls;
use headstart_web::server::ServerConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

async fn dial(server: &Running, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
    let mut config = tls(&server.trust(), None, false).expect("TLS");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(server.address).await.expect("a connection");
    let name = ServerName::try_from("localhost").expect("a name");
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect("a handshake")
}

async fn ask(server: &Running, request: &str) -> String {
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
async fn http_2_is_preferred_by_clients_that_support_it() {
    let server = start(ServerConfig::default(), folder).await;
    let stream = dial(&server, &[b"http/1.1", b"h2"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    drop(stream);
    server.stop().await;
}
