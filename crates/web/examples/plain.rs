//! A folder over HTTP/3 by noq alone, to be compared with `headstart serve` by
//! `tools/measure-serve.py`: the same server without schemes, records, hints and precise timers.
//!
//! ```text
//! plain FOLDER ADDRESS:PORT CERTIFICATE KEY [no-gso]
//! ```
//!
//! With `no-gso` each datagram has a system call of its own.

use std::path::Path;
use std::sync::Arc;

use headstart_web::admission::Plain;
use headstart_web::identity::Identity;
use headstart_web::open;
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::{Folder, Site};
use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, TokioRuntime};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (folder, address, certificate, key, has_gso) = match &words[..] {
        [folder, address, certificate, key] => (folder, address, certificate, key, true),
        [folder, address, certificate, key, last] if last == "no-gso" => {
            (folder, address, certificate, key, false)
        }
        _ => {
            let expected = "expected FOLDER ADDRESS:PORT CERTIFICATE KEY [no-gso]";
            return Err(format!("found {} words, {expected}", words.len()).into());
        }
    };
    let identity = Identity::from_pem(Path::new(certificate), Path::new(key))?;
    let crypto = QuicServerConfig::try_from(server::tls(&identity.current()?)?)?;
    let mut transport = server::transport();
    transport.enable_segmentation_offload(has_gso);
    let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let socket = open::socket(address.parse()?)?;
    let endpoint = Endpoint::new(server::endpoint_config(), Some(config), socket, Arc::new(TokioRuntime))?;
    let site = Arc::new(Site::Folder(Folder::open(Path::new(folder))?));
    let until = CancellationToken::new();
    server::serve(endpoint, Arc::new(Plain), site, ServerConfig::default(), until).await;
    Ok(())
}
