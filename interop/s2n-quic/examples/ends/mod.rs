//! Servers on s2n-quic and quinn over real sockets, and a client.

use std::net::SocketAddr;
use std::sync::Arc;

use headstart_adapter::{Gates, Sharded};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The size that a client asks for.
fn size(request: &[u8]) -> usize {
    str::from_utf8(request).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A server on s2n-quic that answers a number with as many bytes. `tell` gets its address.
pub async fn serve_s2n_quic(
    scheme: Option<&str>,
    address: SocketAddr,
    gates: Gates,
    tell: impl FnOnce(SocketAddr),
) -> Result {
    use s2n_quic::provider::congestion_controller::Cubic;
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, key) = (issued.cert.pem(), issued.signing_key.serialize_pem());
    let server =
        s2n_quic::Server::builder().with_io(address)?.with_tls((certificate.as_str(), key.as_str()))?;
    let setup = scheme.map(headstart_s2n_quic::ServerSetup::new).transpose()?;
    let setup = setup.map(|setup| setup.history(Arc::new(Sharded::default())).gates(gates));
    let mut server = match setup.clone() {
        Some(setup) => server.with_congestion_controller(setup)?.start()?,
        None => server.with_congestion_controller(Cubic::default())?.start()?,
    };
    tell(server.local_addr()?);
    while let Some(mut connection) = server.accept().await {
        let handle = setup.as_ref().and_then(|setup| setup.handle(connection.remote_addr().ok()?));
        tokio::spawn(async move {
            while let Ok(Some(mut stream)) = connection.accept_bidirectional_stream().await {
                let mut request = vec![];
                while let Ok(Some(part)) = stream.receive().await {
                    request.extend_from_slice(&part);
                }
                let size = size(&request);
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

/// Serves on quinn.
pub async fn serve_quinn(
    scheme: Option<&str>,
    address: SocketAddr,
    gates: Gates,
    tell: impl FnOnce(SocketAddr),
) -> Result {
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
    let setup = setup.map(|setup| setup.history(Arc::new(Sharded::default())).gates(gates));
    let endpoint = quinn::Endpoint::server(config, address)?;
    tell(endpoint.local_addr()?);
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

/// A client on quinn that trusts any certificate.
pub fn client() -> Result<quinn::Endpoint> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls)?;
    let mut client = quinn::Endpoint::client(([0, 0, 0, 0], 0).into())?;
    client.set_default_client_config(quinn::ClientConfig::new(Arc::new(crypto)));
    Ok(client)
}

/// Asks for that many bytes and reads them.
pub async fn fetch(connection: &quinn::Connection, size: usize) -> Result {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(size.to_string().as_bytes()).await?;
    send.finish()?;
    let mut found = 0;
    while let Some(part) = receive.read_chunk(usize::MAX, true).await? {
        found += part.bytes.len();
    }
    if found == size { Ok(()) } else { Err(format!("found {found} bytes, expected {size}").into()) }
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
