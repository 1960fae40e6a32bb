//! A noq server that answers each stream with a megabyte, and the lines that make it start like WiseStart.
//!
//! ```text
//! cargo run -p headstart-quic --example existing_server
//! ```
//!
//! What is new is marked; the rest is what any noq server has.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;

use headstart_quic::{Choice, PreciseRuntime, ServerSetup, Sharded}; // new
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tls = Arc::new(tls()?);
    let crypto = noq_proto::crypto::rustls::QuicServerConfig::try_from(Arc::clone(&tls))?;
    let config = noq::ServerConfig::with_crypto(Arc::new(crypto));
    let socket = UdpSocket::bind("127.0.0.1:4433")?;

    let runtime = PreciseRuntime::new(); // new: instead of noq::TokioRuntime
    let setup = ServerSetup::new(config.clone(), tls, Choice::find("wise-start")?)? // new
        .history(Arc::new(Sharded::default())); // new

    let endpoint = noq::Endpoint::new(noq::EndpointConfig::default(), Some(config), socket, runtime)?;
    println!("listening on {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        let accepted = setup.accept(incoming)?; // new: instead of incoming.accept()
        tokio::spawn(async move {
            let (connection, start) = accepted.established().await?; // new: and the handle beside the connection
            while let Ok((mut send, _)) = connection.accept_bi().await {
                send.write_all(&vec![0; 1_000_000]).await?;
                send.finish()?;
            }
            println!("{}", start.why()); // new: what was decided, and why
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        });
    }
    println!("{}", setup.counted().render("wise-start")); // new: counters for Prometheus
    Ok(())
}

fn tls() -> Result<rustls::ServerConfig, Box<dyn Error>> {
    let issued = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(issued.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)?)
}
