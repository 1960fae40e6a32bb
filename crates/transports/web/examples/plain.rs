//! A folder over HTTP/3 by noq alone, to be compared with `headstart serve` by
//! `tools/measure-serve.py`: the same server without schemes, records, hints and precise timers.
//!
//! ```text
//! plain FOLDER ADDRESS:PORT CERTIFICATE KEY [no-gso|no-gro]
//! ```
//!
//! With `no-gso` each datagram is sent by a system call of its own, with `no-gro` the kernel joins
//! none of those that come in (Linux).

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
    let (folder, address, certificate, key, without) = match &words[..] {
        [folder, address, certificate, key] => (folder, address, certificate, key, ""),
        [folder, address, certificate, key, without] if matches!(&**without, "no-gso" | "no-gro") => {
            (folder, address, certificate, key, &**without)
        }
        _ => {
            let expected = "expected FOLDER ADDRESS:PORT CERTIFICATE KEY [no-gso|no-gro]";
            return Err(format!("found {} words, {expected}", words.len()).into());
        }
    };
    let identity = Identity::from_pem(Path::new(certificate), Path::new(key))?;
    let crypto = QuicServerConfig::try_from(server::tls(&identity.current()?)?)?;
    let mut transport = server::transport();
    transport.enable_segmentation_offload(without != "no-gso");
    let mut config = noq::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let socket = open::socket(address.parse()?)?;
    #[cfg(target_os = "linux")]
    let same = socket.try_clone()?;
    let endpoint = Endpoint::new(server::endpoint_config(), Some(config), socket, Arc::new(TokioRuntime))?;
    // The stack has switched it on.
    #[cfg(target_os = "linux")]
    nix::sys::socket::setsockopt(&same, nix::sys::socket::sockopt::UdpGroSegment, &(without != "no-gro"))?;
    let site = Arc::new(Site::Folder(Folder::open(Path::new(folder))?));
    let until = CancellationToken::new();
    server::serve(endpoint, Arc::new(Plain), site, ServerConfig::default(), until).await;
    Ok(())
}
