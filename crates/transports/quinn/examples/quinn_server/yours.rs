//! The existing parts of the server: certificate, configuration, and answers of a megabyte.

use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// With errors of any kind.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A self-signed certificate, made now.
pub fn tls() -> Result<Arc<rustls::ServerConfig>> {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)?;
    Ok(Arc::new(tls))
}

/// A configuration with that certificate.
pub fn config(tls: &Arc<rustls::ServerConfig>) -> Result<quinn::ServerConfig> {
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(Arc::clone(tls))?;
    Ok(quinn::ServerConfig::with_crypto(Arc::new(crypto)))
}

/// Sends a megabyte on each stream, until the client closes the connection.
pub async fn answer(connection: &quinn::Connection) -> Result<()> {
    while let Ok((mut send, _)) = connection.accept_bi().await {
        send.write_all(&vec![0; 1_000_000]).await?;
        send.finish()?;
    }
    Ok(())
}
