//! The existing parts of the server: certificate, address, and answers of a megabyte.

use s2n_quic::provider::tls::rustls::Server as Tls;

/// With errors of any kind.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A self-signed certificate, made now, and its key. Both are PEM.
pub fn certificate() -> Result<(String, String)> {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    Ok((issued.cert.pem(), issued.signing_key.serialize_pem()))
}

/// TLS with that certificate.
pub fn tls((certificate, key): &(String, String)) -> Result<Tls> {
    Tls::builder().with_certificate(certificate.as_str(), key.as_str())?.build()
}

/// Sends a megabyte on each stream, until the client closes the connection.
pub async fn answer(connection: &mut s2n_quic::Connection) -> Result<()> {
    while let Some(mut stream) = connection.accept_bidirectional_stream().await? {
        stream.send(vec![0; 1_000_000].into()).await?;
        stream.finish()?;
    }
    Ok(())
}
