//! Trust in the certificates of a file, also as the server's own; or in every certificate.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Verifies in any case that the server has the key of its certificate.
#[derive(Debug)]
pub struct Certificates {
    algorithms: WebPkiSupportedAlgorithms,
    /// `None`: every certificate.
    trusted: Option<Trusted>,
}

#[derive(Debug)]
struct Trusted {
    usual: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Certificates {
    /// Every certificate, for measurements.
    pub fn any() -> Arc<Self> {
        Arc::new(Self { algorithms: crate::provider().signature_verification_algorithms, trusted: None })
    }

    /// Verifies as usual. A server may also have a certificate of these itself although that may
    /// issue others, as `openssl req -x509` makes them: webpki refuses those of an issuer.
    pub fn of(certificates: Vec<CertificateDer<'static>>) -> Result<Arc<Self>, Error> {
        let roots = Arc::new(super::roots(certificates.iter().cloned()));
        let usual = WebPkiServerVerifier::builder_with_provider(roots, crate::provider())
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        let algorithms = crate::provider().signature_verification_algorithms;
        Ok(Arc::new(Self { algorithms, trusted: Some(Trusted { usual, certificates }) }))
    }
}

impl ServerCertVerifier for Certificates {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        match trusted.usual.verify_server_cert(certificate, chain, name, ocsp, now) {
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if trusted.certificates.iter().any(|it| it == certificate) =>
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
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
