//! Trust in the certificates of a file, also as the server's own.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Verifies as usual. A server may also have a certificate of the file itself although that may
/// issue others, as `openssl req -x509` makes them: webpki refuses those of an issuer.
#[derive(Debug)]
pub struct OwnCertificate {
    usual: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl OwnCertificate {
    pub fn new(trusted: Vec<CertificateDer<'static>>) -> Result<Arc<Self>, Error> {
        let roots = Arc::new(super::roots(trusted.iter().cloned()));
        let usual = WebPkiServerVerifier::builder_with_provider(roots, crate::provider())
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(Arc::new(Self { usual, trusted }))
    }
}

impl ServerCertVerifier for OwnCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.usual.verify_server_cert(certificate, chain, name, ocsp, now) {
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.trusted.iter().any(|it| it == certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            done => done,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
