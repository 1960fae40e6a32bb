//! A certificate for a server named `localhost`, and clients that trust it.

use std::sync::{Arc, OnceLock};

use headstart_units::Bytes;
use rcgen::{CertificateParams, CustomExtension, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The server's name.
pub const NAME: &str = "localhost";
/// The application protocol, private to this project.
const PROTOCOL: &[u8] = b"headstart-size";

/// An extension that means nothing to anyone, of the arc for documentation (RFC 5612).
const FILLER: &[u64] = &[1, 3, 6, 1, 4, 1, 32473, 1];
/// Bytes of an extension without its contents, of lengths in three bytes too.
const EXTENSION: u64 = 30;

/// A self-signed certificate and its key.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

/// Errors of a certificate or its TLS configuration.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The certificate could not be created.
    #[error("no certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// rustls refuses the certificate or key.
    #[error("no TLS configuration: {0}")]
    Tls(#[from] rustls::Error),
}

impl Identity {
    /// Creates a certificate; certificates differ in nothing but the key.
    ///
    /// # Errors
    /// There is no randomness for a key.
    pub fn new() -> Result<Self, IdentityError> {
        Self::sized(Bytes::ZERO)
    }

    /// A certificate of `size`, if it would be smaller: as large as a chain of that size.
    ///
    /// # Errors
    /// There is no randomness for a key.
    pub fn sized(size: Bytes) -> Result<Self, IdentityError> {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = CertificateParams::new([NAME.to_owned()])?;
        // The default is derived from the key, and varies in length.
        params.serial_number = Some(SerialNumber::from(1));
        let mut certificate = params.self_signed(&key)?.der().clone();
        let missing = size.get().saturating_sub(certificate.len() as u64 + EXTENSION);
        if missing > 0 {
            let contents = vec![0; usize::try_from(missing).unwrap_or(usize::MAX)];
            params.custom_extensions.push(CustomExtension::from_oid_content(FILLER, contents));
            certificate = params.self_signed(&key)?.der().clone();
        }
        Ok(Self { certificate, key: key.serialize_der().into() })
    }

    /// A certificate created once per process: for large numbers of runs.
    ///
    /// # Errors
    /// There is no randomness for a key.
    pub fn shared() -> Result<&'static Self, IdentityError> {
        static SHARED: OnceLock<Identity> = OnceLock::new();
        match SHARED.get() {
            Some(identity) => Ok(identity),
            None => Self::new().map(|identity| SHARED.get_or_init(|| identity)),
        }
    }

    /// The server's TLS configuration; 0-RTT is accepted.
    ///
    /// # Errors
    /// rustls refuses it.
    pub fn server(&self) -> Result<Arc<rustls::ServerConfig>, IdentityError> {
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], PrivateKeyDer::Pkcs8(self.key.clone_key()))?;
        config.alpn_protocols = vec![PROTOCOL.into()];
        config.max_early_data_size = u32::MAX;
        Ok(Arc::new(config))
    }

    /// A client's TLS configuration; 0-RTT is attempted.
    ///
    /// # Errors
    /// rustls refuses it.
    pub fn client(&self) -> Result<Arc<rustls::ClientConfig>, IdentityError> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let mut config = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.into()];
        config.enable_early_data = true;
        Ok(Arc::new(config))
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
