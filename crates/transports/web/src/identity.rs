//! The server's certificate and key: the user's own, or self-signed on first use and kept.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rcgen::{Certificate, CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::crypto::ring::cipher_suite;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// A certificate chain and its key.
#[derive(Debug)]
pub struct Identity {
    /// The certificates, the server's own first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first certificate.
    pub key: PrivateKeyDer<'static>,
}

/// Errors of a certificate or key.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A file could not be read or parsed.
    #[error("{path}: {}", reason(cause))]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause, which the message has: it is not the error's source.
        cause: pem::Error,
    },
    /// The file has no certificate.
    #[error("{0}: found no certificate, expected at least one in PEM")]
    Empty(PathBuf),
    /// A certificate of the file is none.
    #[error("{path}: found no certificate in its {place}. block, expected one in DER")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Which of the blocks it is, from 1 on.
        place: usize,
    },
    /// The file has no key.
    #[error("{0}: found no private key, expected one in PEM")]
    NoKey(PathBuf),
    /// The key has a password, which nobody is there to type.
    #[error("{0}: found an encrypted key, expected one without a password (openssl pkey -in KEY -out OTHER)")]
    Encrypted(PathBuf),
    /// A file or folder could not be written.
    #[error("{path}: {source}")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A name is not valid in a certificate.
    #[error("found the server name `{names}`, which cannot stand in a certificate: {source}")]
    Names {
        /// The names requested.
        names: String,
        /// Cause.
        source: rcgen::Error,
    },
}

fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot read it: {error}"),
        error => format!("found no PEM ({error}), expected a certificate or key"),
    }
}

/// True if that is a certificate's outer form (RFC 5280 §4.1): a sequence of the certificate to be
/// signed, the algorithm, and the signature.
fn is_certificate(der: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 0x03;
    /// Splits off the first value, of that type.
    fn value<'a>(der: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
        let (&found, rest) = der.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let bytes = usize::from(first & 0x7f);
        let (length, rest) = match first {
            0..=0x7f => (bytes, rest),
            0x81..=0x84 => {
                let (length, rest) = rest.split_at_checked(bytes)?;
                (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (inner, rest) = rest.split_at_checked(length)?;
        *der = rest;
        (found == tag).then_some(inner)
    }
    fn parse(mut der: &[u8]) -> Option<bool> {
        let mut inner = value(&mut der, SEQUENCE)?;
        let to_be_signed = value(&mut inner, SEQUENCE)?;
        value(&mut inner, SEQUENCE)?;
        value(&mut inner, BIT_STRING)?;
        Some(der.is_empty() && inner.is_empty() && !to_be_signed.is_empty())
    }
    parse(der) == Some(true)
}

/// A key of PKCS #8 or of OpenSSL's older form that needs a password.
fn is_encrypted(key: &Path) -> bool {
    const MOST: usize = 1 << 20;
    let text = headstart_host::read_text_at_most(key, MOST).unwrap_or_default();
    text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || text.contains("Proc-Type: 4,ENCRYPTED")
}

/// The names of every self-signed certificate.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl Identity {
    /// The user's own certificate chain and key, each from a PEM file.
    ///
    /// # Errors
    ///
    /// If a file cannot be read or has no certificate or key.
    pub fn from_pem(chain: &Path, key: &Path) -> Result<Self, IdentityError> {
        let read = |path: &Path, cause| IdentityError::Read { path: path.to_owned(), cause };
        let certificates = CertificateDer::pem_file_iter(chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|source| read(chain, source))?;
        if certificates.is_empty() {
            return Err(IdentityError::Empty(chain.to_owned()));
        }
        // rustls looks at the first one alone, and clients at all.
        if let Some(at) = certificates.iter().position(|certificate| !is_certificate(certificate)) {
            return Err(IdentityError::Malformed { path: chain.to_owned(), place: at + 1 });
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|source| match source {
            _ if is_encrypted(key) => IdentityError::Encrypted(key.to_owned()),
            pem::Error::NoItemsFound => IdentityError::NoKey(key.to_owned()),
            source => read(key, source),
        })?;
        Ok(Self { chain: certificates, key })
    }

    /// A self-signed certificate for this host, not written to disk.
    ///
    /// # Errors
    ///
    /// If the system has no randomness for a key.
    pub fn temporary() -> Result<Self, IdentityError> {
        let (certificate, key) = self_signed(&[])?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        Ok(Self { chain: vec![certificate.der().clone()], key })
    }

    /// The self-signed certificate kept in `folder`, created on first use.
    ///
    /// It is valid for this host and for `names`, without expiry; other names use another file.
    ///
    /// # Errors
    ///
    /// If the files cannot be read or written, or a name is not valid in a certificate.
    pub fn load_or_create(folder: &Path, names: &[String]) -> Result<Self, IdentityError> {
        let file = folder.join(file_name(names));
        if !file.exists() {
            make(folder, &file, names)?;
        }
        Self::from_pem(&file, &file)
    }

    /// The identity of a server's handshakes, which can be replaced while the server runs.
    ///
    /// # Errors
    ///
    /// If key and certificate do not match.
    pub fn current(&self) -> Result<Arc<CurrentIdentity>, rustls::Error> {
        let text = [&b"headstart: secrets of a server"[..], self.key.secret_der()].concat();
        let secret = sha256(&text).unwrap_or_default();
        Ok(Arc::new(CurrentIdentity { certified: RwLock::new(self.certified_key()?), secret }))
    }

    /// SHA-256 of the public key, by which a browser can be told to trust this identity.
    ///
    /// # Errors
    ///
    /// If the key cannot be used.
    pub fn key_hash(&self) -> Result<Vec<u8>, rustls::Error> {
        let certified = self.certified_key()?;
        let hash = certified.key.public_key().and_then(|key| sha256(&key));
        hash.ok_or_else(|| rustls::Error::General("the key has no public part".into()))
    }

    /// SHA-256 of the server's own certificate.
    ///
    /// # Errors
    ///
    /// If there is no certificate.
    pub fn certificate_hash(&self) -> Result<Vec<u8>, rustls::Error> {
        let hash = self.chain.first().and_then(|certificate| sha256(certificate));
        hash.ok_or(rustls::Error::NoCertificatesPresented)
    }

    fn certified_key(&self) -> Result<Arc<CertifiedKey>, rustls::Error> {
        let key = self.key.clone_key();
        let certified = CertifiedKey::from_der(self.chain.clone(), key, &crate::provider());
        certified.map(Arc::new).map_err(|error| match error {
            rustls::Error::General(_) => rustls::Error::General(
                "found a private key of another kind, expected RSA, ECDSA by P-256 or P-384, or Ed25519"
                    .into(),
            ),
            other => other,
        })
    }
}

fn sha256(bytes: &[u8]) -> Option<Vec<u8>> {
    let suite = cipher_suite::TLS13_AES_128_GCM_SHA256.tls13()?;
    Some(suite.common.hash_provider.hash(bytes).as_ref().to_vec())
}

/// The identity of a server's handshakes. Connections that are open do not notice its replacement.
pub struct CurrentIdentity {
    certified: RwLock<Arc<CertifiedKey>>,
    /// A hash of the first key, the same after a restart.
    secret: Vec<u8>,
}

impl fmt::Debug for CurrentIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurrentIdentity").field("certified", &self.certified).finish_non_exhaustive()
    }
}

impl CurrentIdentity {
    /// Uses `identity` from the next handshake on. False if its certificates are those in use.
    ///
    /// # Errors
    ///
    /// If key and certificate do not match; the former identity stays.
    pub fn replace(&self, identity: &Identity) -> Result<bool, rustls::Error> {
        let certified = identity.certified_key()?;
        let mut current = self.certified.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = current.cert != certified.cert;
        *current = certified;
        Ok(is_new)
    }

    /// A secret of this server, on this machine and at this port, the same after a restart.
    pub(crate) fn secret_at(&self, port: u16) -> Vec<u8> {
        // Several machines may have one certificate. A system without the file has an empty one.
        let machine = fs::read("/etc/machine-id").unwrap_or_default();
        [&self.secret[..], &port.to_be_bytes(), &machine].concat()
    }
}

impl ResolvesServerCert for CurrentIdentity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.certified.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The readable self-signed certificates in `folder`, for a client on this host to trust.
#[must_use]
pub fn kept_certificates(folder: &Path) -> Vec<CertificateDer<'static>> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| path.to_string_lossy().ends_with(KEPT))
        .filter_map(|path| CertificateDer::from_pem_file(path).ok())
        .collect()
}

/// Suffix of kept files. One file holds certificate and key: neither exists without the other.
const KEPT: &str = "identity.pem";

fn file_name(names: &[String]) -> String {
    // Names come from a command line: characters that could leave the folder become dashes.
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    let mut name: String = names.iter().flat_map(|name| name.chars().map(plain).chain(['-'])).collect();
    name.push_str(KEPT);
    name.trim_start_matches('.').to_owned()
}

fn make(folder: &Path, file: &Path, names: &[String]) -> Result<(), IdentityError> {
    let (certificate, key) = self_signed(names)?;
    let text = format!("{}{}", certificate.pem(), key.serialize_pem());
    let failed = |source| IdentityError::Write { path: file.to_owned(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    write_once(folder, file, &text).map_err(failed)
}

fn self_signed(names: &[String]) -> Result<(Certificate, KeyPair), IdentityError> {
    let all: Vec<String> = LOCAL.iter().map(|name| (*name).to_owned()).chain(names.iter().cloned()).collect();
    let refused = |source| IdentityError::Names { names: names.join(", "), source };
    let mut params = CertificateParams::new(all).map_err(refused)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "headstart (self-signed)");
    let key = KeyPair::generate().map_err(refused)?;
    let certificate = params.self_signed(&key).map_err(refused)?;
    Ok((certificate, key))
}

/// Writes a file readable only by its owner, atomically. An existing file stays.
fn write_once(folder: &Path, file: &Path, text: &str) -> io::Result<()> {
    let unfinished = folder.join(format!(".{}.unfinished", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut handle = options.open(&unfinished)?;
    handle.write_all(text.as_bytes())?;
    handle.sync_all()?;
    let linked = match fs::hard_link(&unfinished, file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    };
    fs::remove_file(&unfinished)?;
    linked
}

/// Folder for this user's certificates, history and tokens; `None` if the user has no home.
#[must_use]
pub fn data_folder() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    Some(etcetera::choose_base_strategy().ok()?.data_dir().join("headstart"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_key_is_that_key_s_alone() {
        let one = Identity::temporary().expect("a key");
        let hash = one.key_hash().expect("a hash");
        assert_eq!((hash.len(), &hash), (32, &one.key_hash().expect("a hash")));
        assert_ne!(hash, Identity::temporary().expect("a key").key_hash().expect("a hash"));
    }

    /// Of P-521, made with `openssl ecparam -name secp521r1 -genkey`, in DER.
    const P521: &str = "\
        3081ee020100301006072a8648ce3d020106052b810400230481d63081d3020101044200e41c100d952ac51767\
        d8eb1a05d44e67ffe1cf032acd21e9efb643b194c276f608bfc94803a5b084b765198c1662397bc046d310bf35\
        15eaa072961e9cc4b749b5a18189038186000400677140cf181e0821ee685d292bb8b36afdf80aebbd049cbc11\
        2a50121b6889a2526d3b11f6b35ed27017ac48ec20ab1cb8c4d43647030375f8e9c4a13971fd297b014062bf81\
        46866aa717cc9aabf53e2e7ed1b6f54f392354c74639f9321b38bcbd97cf6c05cd5d70c1e8e10cf14fa7c251d5\
        3667510ba00d72077dfd05b1be70c0b6";

    #[test]
    fn a_key_of_a_curve_that_is_not_used_is_refused_with_those_that_are() {
        let bytes = |text: &str| {
            (0..text.len() / 2)
                .map(|at| u8::from_str_radix(&text[2 * at..][..2], 16))
                .collect::<Result<Vec<u8>, _>>()
        };
        let key = PrivateKeyDer::Pkcs8(bytes(P521).expect("hexadecimal").into());
        let identity = Identity { key, ..Identity::temporary().expect("a certificate") };
        let error = identity.key_hash().expect_err("P-521").to_string();
        assert!(error.contains("expected RSA, ECDSA by P-256 or P-384, or Ed25519"), "{error}");
    }
}
