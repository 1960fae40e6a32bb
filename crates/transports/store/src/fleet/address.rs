//! The address of a fleet's history.

use core::fmt;
use core::str::FromStr;
use std::path::{Path, PathBuf};

use headstart_host::read_text_at_most;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, TlsCertificates};

/// First bytes of every key, unless the address has others.
const PREFIX: &str = "headstart:";
/// Most bytes of a file with a password or a certificate.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Address of a fleet's history: `valkey://HOST:PORT/DATABASE`, `valkeys://` for TLS,
/// `valkey+unix:///PATH` for a socket of this host (`redis` instead of `valkey` as well).
///
/// Before the host: `USER:PASSWORD@`. After a question mark, separated by `&`:
///
/// | parameter | meaning |
/// |---|---|
/// | `password-file=FILE` | the password is the file's first line: others see command lines |
/// | `ca=FILE` | certificates (PEM) to trust, instead of the system's |
/// | `certificate=FILE`, `key=FILE` | this host's own, where the server asks for one |
/// | `prefix=TEXT` | first bytes of every key: `headstart:` if it is left out |
#[derive(Clone)]
pub struct Address {
    pub(super) client: Box<Client>,
    pub(super) prefix: String,
    shown: String,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Without the password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AddressError(String);

const SCHEMES: [&str; 6] = ["valkey", "valkeys", "valkey+unix", "redis", "rediss", "redis+unix"];

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (place, parameters) = text.split_once('?').unwrap_or((text, ""));
        // A password must not reach a log.
        let shown = match (place.split_once("://"), place.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            _ => place.to_owned(),
        };
        let refuse = |found: &str| {
            AddressError(format!(
                "found {found}, expected {}:// and one server, such as `valkey://localhost:6379/`",
                SCHEMES.join("://, ")
            ))
        };
        let (scheme, rest) = place.split_once("://").ok_or_else(|| refuse(&format!("`{shown}`")))?;
        if scheme.ends_with("+cluster") || is_list(rest) {
            return Err(refuse(&format!("a cluster or several servers in `{shown}`")));
        }
        // A fragment would switch off the check of the server's name.
        if !SCHEMES.contains(&scheme) || place.contains('#') {
            return Err(refuse(&format!("`{shown}`")));
        }
        let mut info =
            place.into_connection_info().map_err(|error| refuse(&format!("`{shown}` ({error})")))?;
        let (mut prefix, mut ca, mut certificate, mut key) = (PREFIX.to_owned(), None, None, None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("prefix", text)) if !text.contains(['{', '}', '*', '?', '[', ']', '\\']) => {
                    text.clone_into(&mut prefix)
                }
                Some(("password-file", file)) => {
                    let text = read(Path::new(file))?;
                    let password = text.lines().next().unwrap_or("");
                    let settings = info.redis_settings().clone().set_password(password);
                    info = info.set_redis_settings(settings);
                }
                Some(("ca", file)) => ca = Some(PathBuf::from(file)),
                Some(("certificate", file)) => certificate = Some(PathBuf::from(file)),
                Some(("key", file)) => key = Some(PathBuf::from(file)),
                _ => {
                    return Err(AddressError(format!(
                        "found `{parameter}`, expected password-file, ca, certificate, key or prefix"
                    )));
                }
            }
        }
        let client = Box::new(client(info, certificates(ca, certificate, key)?)?);
        Ok(Self { client, prefix, shown })
    }
}

/// True if there are several hosts behind user and password.
fn is_list(rest: &str) -> bool {
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts).contains(',')
}

fn read(file: &Path) -> Result<String, AddressError> {
    read_text_at_most(file, MAX_FILE_BYTES)
        .map_err(|error| AddressError(format!("{}: {error}", file.display())))
}

/// Certificates of the parameters, if there are any.
fn certificates(
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<TlsCertificates>, AddressError> {
    let bytes = |file: Option<PathBuf>| file.map(|file| read(&file).map(String::into_bytes)).transpose();
    let client_tls = match (bytes(certificate)?, bytes(key)?) {
        (Some(client_cert), Some(client_key)) => Some(redis::ClientTlsConfig { client_cert, client_key }),
        (None, None) => None,
        _ => return Err(AddressError("found one of certificate and key, expected both or none".to_owned())),
    };
    let root_cert = bytes(ca)?;
    let has_any = client_tls.is_some() || root_cert.is_some();
    Ok(has_any.then_some(TlsCertificates { client_tls, root_cert }))
}

fn client(info: ConnectionInfo, certificates: Option<TlsCertificates>) -> Result<Client, AddressError> {
    let made = match certificates {
        None => Client::open(info),
        Some(certificates) => Client::build_with_tls(info, certificates),
    };
    made.map_err(|error| AddressError(format!("found an address that cannot be used ({error})")))
}
