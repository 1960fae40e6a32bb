//! The address of a fleet's history.

use core::fmt;
use core::str::FromStr;
use std::path::{Path, PathBuf};

use headstart_host::read_text_at_most;
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates};

/// First bytes of every key, unless the address has others.
const PREFIX: &str = "headstart:";
/// Most bytes of a file with a password or a certificate.
const MAX_FILE_BYTES: usize = 1 << 20;

/// Address of a fleet's history: `valkey://HOST:PORT/DATABASE`, `valkeys://` for TLS,
/// `valkey+unix:///PATH` for a socket of this host (`redis` instead of `valkey` as well).
/// `valkey+cluster://HOST:PORT,HOST:PORT/` and `valkeys+cluster://` name one or more nodes of a
/// cluster, which tell the others.
///
/// Before the first host: `USER:PASSWORD@`. After a question mark, separated by `&`:
///
/// | parameter | meaning |
/// |---|---|
/// | `password-file=FILE` | the password is the file's first line: others see command lines |
/// | `ca=FILE` | certificates (PEM) to trust, instead of the system's |
/// | `certificate=FILE`, `key=FILE` | this host's own, where the server asks for one |
/// | `prefix=TEXT` | first bytes of every key: `headstart:` if it is left out |
#[derive(Clone)]
pub struct Address {
    /// The server, or nodes of the cluster.
    pub(super) clients: Vec<Client>,
    pub(super) is_cluster: bool,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for AddressError {}

/// Schemes of an address, and for a cluster those of its nodes' addresses.
const SCHEMES: [(&str, Option<&str>); 10] = [
    ("valkey", None),
    ("valkeys", None),
    ("valkey+unix", None),
    ("valkey+cluster", Some("valkey")),
    ("valkeys+cluster", Some("valkeys")),
    ("redis", None),
    ("rediss", None),
    ("redis+unix", None),
    ("redis+cluster", Some("redis")),
    ("rediss+cluster", Some("rediss")),
];

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
            let schemes = SCHEMES.map(|(scheme, _)| scheme).join("://, ");
            AddressError(format!(
                "found {found}, expected {schemes}:// and a server, such as `valkey://localhost:6379/`"
            ))
        };
        let (scheme, rest) = place.split_once("://").ok_or_else(|| refuse(&format!("`{shown}`")))?;
        let known = SCHEMES.iter().find(|(name, _)| *name == scheme);
        // A fragment would switch off the check of the server's name.
        let Some((_, of_nodes)) = known.filter(|_| !place.contains('#')) else {
            return Err(refuse(&format!("`{shown}`")));
        };
        let places = match of_nodes {
            Some(scheme) => nodes(scheme, rest, &shown)?,
            None if is_list(rest) => {
                return Err(AddressError(format!(
                    "found several servers in `{shown}`, expected one, or a cluster's: `valkey+cluster://`"
                )));
            }
            None => vec![place.to_owned()],
        };
        let mut infos = vec![];
        for place in &places {
            let info = place
                .as_str()
                .into_connection_info()
                .map_err(|error| refuse(&format!("`{shown}` ({error})")))?;
            infos.push(info);
        }
        let (mut prefix, mut ca, mut certificate, mut key) = (PREFIX.to_owned(), None, None, None);
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("prefix", text)) if !text.contains(['{', '}', '*', '?', '[', ']', '\\']) => {
                    text.clone_into(&mut prefix)
                }
                Some(("password-file", file)) => {
                    let text = read(Path::new(file))?;
                    let password = text.lines().next().unwrap_or("");
                    let with_password = |info: ConnectionInfo| {
                        let settings = info.redis_settings().clone().set_password(password);
                        info.set_redis_settings(settings)
                    };
                    infos = infos.into_iter().map(with_password).collect();
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
        let certificates = certificates(ca, certificate, key)?;
        let clients =
            infos.into_iter().map(|info| client(info, certificates.clone())).collect::<Result<_, _>>()?;
        Ok(Self { clients, is_cluster: of_nodes.is_some(), prefix, shown })
    }
}

/// The part of an address before its path, without user and password.
fn hosts(rest: &str) -> &str {
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    authority.rsplit_once('@').map_or(authority, |(_, hosts)| hosts)
}

fn is_list(rest: &str) -> bool {
    hosts(rest).contains(',')
}

/// An address of each node that a cluster's address names.
fn nodes(scheme: &str, rest: &str, shown: &str) -> Result<Vec<String>, AddressError> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // Not the path itself: it may be the end of a password.
    if !matches!(path, "" | "0") {
        return Err(AddressError(format!(
            "found a database in `{shown}`, expected none: a cluster has only one; \
             `prefix=TEXT` keeps two services apart"
        )));
    }
    let user = authority.rsplit_once('@').map(|(user, _)| format!("{user}@")).unwrap_or_default();
    Ok(hosts(rest).split(',').map(|host| format!("{scheme}://{user}{host}/")).collect())
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

/// Name and port of a node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Endpoint {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl Endpoint {
    /// That of a client; none for a socket of this host.
    pub fn of(client: &Client) -> Option<Self> {
        match client.get_connection_info().addr() {
            ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
                Some(Self { host: host.clone(), port: *port })
            }
            _ => None,
        }
    }

    /// A client for this node with the settings of another one: user, password and TLS.
    pub fn client_as(&self, other: &Client) -> redis::RedisResult<Client> {
        let info = other.get_connection_info().clone();
        let address = match info.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: self.host.clone(),
                port: self.port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(self.host.clone(), self.port),
        };
        Client::open(info.set_addr(address))
    }
}
