//! A server on this host, with files to fetch.
#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use headstart_web::admission::{Admission, Plain};
use headstart_web::client::{self, FetchPlan, Origin, Trust};
use headstart_web::identity::{CurrentIdentity, Identity};
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::{Folder, Site};
use headstart_web::tcp;
use noq::Endpoint;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Test timeout, generous for a loaded host.
pub const TIMEOUT: Duration = Duration::from_secs(120);

pub struct Running {
    pub address: SocketAddr,
    pub endpoint: Endpoint,
    pub shutdown: CancellationToken,
    pub done: JoinHandle<()>,
    pub files: TempDir,
    pub keys: TempDir,
    pub identity: Arc<CurrentIdentity>,
}

pub fn files() -> TempDir {
    let files = tempfile::tempdir().expect("a folder for files");
    fs::create_dir(files.path().join("sub folder")).expect("a folder");
    fs::write(files.path().join("index.html"), "<h1>home</h1>").expect("a file");
    fs::write(files.path().join("picture.png"), vec![7; 300_000]).expect("a file");
    fs::write(files.path().join("sub folder/a&b.txt"), "text").expect("a file");
    files
}

/// Starts a server of `site` over HTTP/3 and TCP.
pub async fn start(server_config: ServerConfig, site: impl FnOnce(&TempDir) -> Site) -> Running {
    start_with(Arc::new(Plain), server_config, site).await
}

/// Starts a server of `site` with another admission.
pub async fn start_with<A: Admission>(
    admission: Arc<A>,
    server_config: ServerConfig,
    site: impl FnOnce(&TempDir) -> Site,
) -> Running {
    let (files, keys) = (files(), tempfile::tempdir().expect("a folder for keys"));
    let identity =
        Identity::load_or_create(keys.path(), &[]).expect("a certificate").current().expect("a key");
    let site = Arc::new(site(&files));
    let shutdown = CancellationToken::new();

    let (listener, endpoint) = both_ports(&identity).await;
    let address = listener.local_addr().expect("an address");
    let over_tcp = tcp::serve(
        listener,
        tcp::tls(&identity).expect("TLS"),
        Arc::clone(&site),
        address.port(),
        server_config.clone(),
        shutdown.clone(),
    );
    let over_udp = server::serve(endpoint.clone(), admission, site, server_config, shutdown.clone());
    let done = tokio::spawn(async move {
        tokio::join!(over_tcp, over_udp);
    });
    Running { address, endpoint, shutdown, done, files, keys, identity }
}

/// One port of TCP and UDP; one that is free for TCP may be taken for UDP.
async fn both_ports(identity: &Arc<CurrentIdentity>) -> (TcpListener, Endpoint) {
    for _ in 0..100 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port of TCP");
        let address = listener.local_addr().expect("an address");
        let opened = UdpSocket::bind(address).and_then(|socket| {
            let (config, runtime) = (server_config(identity), Arc::new(noq::TokioRuntime));
            Endpoint::new(server::endpoint_config(), Some(config), socket, runtime)
        });
        if let Ok(endpoint) = opened {
            return (listener, endpoint);
        }
    }
    panic!("somebody has a hundred ports");
}

/// Waits for a certain event, on a loaded host too.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = tokio::time::Instant::now();
    while !is_so() {
        assert!(clock.elapsed() < TIMEOUT, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub fn folder(files: &TempDir) -> Site {
    Site::Folder(Folder::open(files.path()).expect("the folder is there"))
}

fn server_config(identity: &Arc<CurrentIdentity>) -> noq::ServerConfig {
    let tls = server::tls(identity).expect("TLS");
    let crypto = noq::crypto::rustls::QuicServerConfig::try_from(tls).expect("a cipher suite for QUIC");
    let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(server::transport()));
    config
}

impl Running {
    pub fn trust(&self) -> Trust {
        Trust::File(self.keys.path().join("identity.pem"))
    }

    pub fn plan(&self, paths: &[&str]) -> FetchPlan {
        let urls: Vec<http::Uri> = paths
            .iter()
            .map(|path| format!("https://localhost:{}{path}", self.address.port()).parse().expect("a URL"))
            .collect();
        FetchPlan { origin: Origin::of(&urls[0]).expect("an origin"), urls, keep: true, timeout: TIMEOUT }
    }

    pub fn client(&self, scheme: Option<&str>, early_data: bool) -> noq::ClientConfig {
        client::plain(client::tls(&self.trust(), scheme, early_data).expect("TLS")).expect("QUIC")
    }

    pub async fn fetch(&self, paths: &[&str]) -> client::Visit {
        self.fetch_as(self.client(None, false), paths).await
    }

    pub async fn fetch_as(&self, config: noq::ClientConfig, paths: &[&str]) -> client::Visit {
        let endpoint = client::endpoint(self.address).expect("a socket");
        self.plan(paths).run(&endpoint, config, self.address).await.expect("pages")
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(TIMEOUT, self.done).await.expect("in time").expect("no panic");
    }
}
