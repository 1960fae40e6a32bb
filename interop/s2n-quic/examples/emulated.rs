//! Servers on s2n-quic and quinn for a path in real time, and a client that visits them.
//!
//! ```text
//! cd interop/s2n-quic && cargo build --release --example emulated
//! program=$PWD/target/release/examples/emulated
//! headstart link --rate 25mbit --rtt 50ms --buffer 104p \
//!     --serve "$program s2n-quic wise-start" -- $program visit
//! ```
//!
//! Without a scheme the stack's own CUBIC runs. The client asks for 1 MB, then five times for 100
//! kB, each over a connection of its own. It prints the times from the first packet to the last
//! byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headstart_adapter::Sharded;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const PORT: u16 = 4433;
const VISITS: [usize; 6] = [1_000_000, 100_000, 100_000, 100_000, 100_000, 100_000];

#[tokio::main]
async fn main() -> Result {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["s2n-quic", ref scheme @ ..] => serve_s2n_quic(scheme.first().copied()).await,
        ["quinn", ref scheme @ ..] => serve_quinn(scheme.first().copied()).await,
        ["visit"] => visit().await,
        _ => Err("found other words, expected s2n-quic [SCHEME], quinn [SCHEME] or visit".into()),
    }
}

/// The size that a client asks for.
fn size(asked: &[u8]) -> usize {
    str::from_utf8(asked).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

async fn serve_s2n_quic(scheme: Option<&str>) -> Result {
    use s2n_quic::provider::congestion_controller::Cubic;
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, key) = (issued.cert.pem(), issued.signing_key.serialize_pem());
    let server = s2n_quic::Server::builder()
        .with_io(("0.0.0.0", PORT))?
        .with_tls((certificate.as_str(), key.as_str()))?;
    let setup = scheme.map(headstart_s2n_quic::ServerSetup::new).transpose()?;
    let setup = setup.map(|setup| setup.history(Arc::new(Sharded::default())));
    let mut server = match setup.clone() {
        Some(setup) => server.with_congestion_controller(setup)?.start()?,
        None => server.with_congestion_controller(Cubic::default())?.start()?,
    };
    while let Some(mut connection) = server.accept().await {
        let handle = setup.as_ref().and_then(|setup| setup.handle(connection.remote_addr().ok()?));
        tokio::spawn(async move {
            while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
                let mut asked = vec![];
                while let Ok(Some(part)) = stream.receive().await {
                    asked.extend_from_slice(&part);
                }
                let size = size(&asked);
                if let Some(handle) = &handle {
                    handle.expect(size as u64);
                }
                let _ = stream.send(vec![0; size].into()).await;
                let _ = stream.finish();
            }
        });
    }
    Ok(())
}

async fn serve_quinn(scheme: Option<&str>) -> Result {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(Arc::new(tls))?;
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let setup = scheme.map(|scheme| headstart_quinn::ServerSetup::new(config.clone(), scheme)).transpose()?;
    let setup = setup.map(|setup| setup.history(Arc::new(Sharded::default())));
    let endpoint = quinn::Endpoint::server(config, ([0, 0, 0, 0], PORT).into())?;
    while let Some(incoming) = endpoint.accept().await {
        let (config, handle) = setup.as_ref().map(|it| it.configure(incoming.remote_address())).unzip();
        let Ok(connecting) = (match config {
            Some(config) => incoming.accept_with(config),
            None => incoming.accept(),
        }) else {
            continue;
        };
        tokio::spawn(async move {
            let Ok(connection) = connecting.await else { return };
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let size = size(&receive.read_to_end(100).await.unwrap_or_default());
                if let Some(handle) = &handle {
                    handle.expect(size as u64);
                }
                let _ = send.write_all(&vec![0; size]).await;
                let _ = send.finish();
            }
            if let Some(handle) = handle {
                handle.finish(connection.congestion_state());
            }
        });
    }
    Ok(())
}

#[allow(clippy::disallowed_methods, reason = "a path in real time")]
async fn visit() -> Result {
    let host = std::env::var("HEADSTART_OUTSIDE").unwrap_or_else(|_| "127.0.0.1".to_owned());
    let address = SocketAddr::new(host.parse()?, PORT);
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls)?;
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let client = quinn::Endpoint::client(([0, 0, 0, 0], 0).into())?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    for size in VISITS {
        let begun = Instant::now();
        let connection = client.connect_with(config.clone(), address, "localhost")?.await?;
        let connected = begun.elapsed();
        let (mut send, mut receive) = connection.open_bi().await?;
        send.write_all(size.to_string().as_bytes()).await?;
        send.finish()?;
        let found = receive.read_to_end(2 * size).await?.len();
        let took = begun.elapsed();
        assert_eq!(found, size);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!("{size} bytes: {:.1} ms, of which {:.1} to connect", ms(took), ms(connected));
        // Its last acknowledgement.
        tokio::time::sleep(Duration::from_millis(200)).await;
        connection.close(0_u32.into(), b"");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
    }
    Ok(())
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A server on a path of one's own.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
