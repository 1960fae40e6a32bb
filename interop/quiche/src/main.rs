//! Fetches URL over HTTP/3 with unmodified quiche and writes the body to FILE.

use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use quiche::h3::{self, NameValue};

const DATAGRAM: usize = 1350;
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, file] = arguments.as_slice() else { bail!("usage: fetch URL FILE") };
    let rest = url.strip_prefix("https://").context("expected https://HOST:PORT/PATH")?;
    let (authority, path) = rest.split_once('/').context("expected a path")?;
    let remote = authority.to_socket_addrs()?.next().context("no address")?;
    let host = authority.split(':').next().unwrap_or(authority);
    let body = fetch(remote, host, authority, &format!("/{path}"))?;
    std::fs::write(file, body)?;
    Ok(())
}

fn config() -> Result<quiche::Config> {
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION)?;
    config.verify_peer(false);
    config.set_application_protos(h3::APPLICATION_PROTOCOL)?;
    config.set_max_idle_timeout(5_000);
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(10_000_000);
    config.set_initial_max_stream_data_bidi_local(10_000_000);
    config.set_initial_max_stream_data_bidi_remote(10_000_000);
    config.set_initial_max_stream_data_uni(1_000_000);
    config.set_initial_max_streams_bidi(100);
    config.set_initial_max_streams_uni(100);
    Ok(config)
}

fn fetch(remote: SocketAddr, host: &str, authority: &str, path: &str) -> Result<Vec<u8>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(remote)?;
    let local = socket.local_addr()?;
    // One connection per process: the identifier need not be unpredictable.
    let number = std::process::id().to_be_bytes();
    let id: Vec<u8> = (0..16).map(|at| number[at % 4] ^ at as u8).collect();
    let mut connection =
        quiche::connect(Some(host), &quiche::ConnectionId::from_ref(&id), local, remote, &mut config()?)?;

    let mut http: Option<h3::Connection> = None;
    let mut body = vec![];
    let mut status = None;
    let mut is_done = false;
    let mut packet = vec![0; 65_535];
    let begin = Instant::now();
    while !is_done {
        if begin.elapsed() > PATIENCE {
            bail!("not complete after {PATIENCE:?}: {} bytes", body.len());
        }
        send_all(&mut connection, &socket)?;
        if connection.is_closed() {
            bail!("closed: {:?}, {:?}", connection.peer_error(), connection.local_error());
        }
        let wait = connection.timeout().unwrap_or(PATIENCE).max(Duration::from_micros(100));
        socket.set_read_timeout(Some(wait))?;
        match socket.recv(&mut packet) {
            Ok(length) => {
                let info = quiche::RecvInfo { from: remote, to: local };
                connection.recv(&mut packet[..length], info)?;
            }
            Err(error) if is_timeout(&error) => connection.on_timeout(),
            Err(error) => return Err(error.into()),
        }
        if connection.is_established() && http.is_none() {
            let mut started = h3::Connection::with_transport(&mut connection, &h3::Config::new()?)?;
            let head = [
                h3::Header::new(b":method", b"GET"),
                h3::Header::new(b":scheme", b"https"),
                h3::Header::new(b":authority", authority.as_bytes()),
                h3::Header::new(b":path", path.as_bytes()),
            ];
            started.send_request(&mut connection, &head, true)?;
            http = Some(started);
        }
        let Some(http) = &mut http else { continue };
        loop {
            match http.poll(&mut connection) {
                Ok((_, h3::Event::Headers { list, .. })) => {
                    let found = list.iter().find(|header| header.name() == b":status");
                    status = found.map(|header| header.value().to_vec());
                }
                Ok((stream, h3::Event::Data)) => {
                    while let Ok(length) = http.recv_body(&mut connection, stream, &mut packet) {
                        body.extend_from_slice(&packet[..length]);
                    }
                }
                Ok((_, h3::Event::Finished)) => is_done = true,
                Ok((_, h3::Event::Reset(code))) => bail!("reset with code {code}"),
                Ok(_) => {}
                Err(h3::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    connection.close(true, 0x100, b"")?;
    send_all(&mut connection, &socket)?;
    if status.as_deref() != Some(b"200") {
        bail!("status {:?}, expected 200", status.map(|found| String::from_utf8_lossy(&found).into_owned()));
    }
    Ok(body)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

fn send_all(connection: &mut quiche::Connection, socket: &UdpSocket) -> Result<()> {
    let mut packet = [0; DATAGRAM];
    loop {
        match connection.send(&mut packet) {
            Ok((length, _)) => {
                socket.send(&packet[..length])?;
            }
            Err(quiche::Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
