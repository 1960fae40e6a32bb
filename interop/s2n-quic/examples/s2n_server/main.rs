//! An s2n-quic server, with the lines that make its connections start with WiseStart.
//!
//! ```text
//! cd interop/s2n-quic && cargo run --example s2n_server
//! ```
//!
//! Lines that end with `+` are new or changed; `yours.rs` stays as it was. Without them it is the
//! server of before: `serve_without`, which the test of this example runs as well.

pub mod yours;

use std::net::SocketAddr;
use std::sync::Arc;

use headstart_s2n_quic::{ServerSetup, Sharded}; // +
use s2n_quic::provider::tls::rustls::Server as Tls;
use tokio::sync::oneshot::Sender;

#[tokio::main]
async fn main() -> yours::Result<()> {
    let (listening, _) = tokio::sync::oneshot::channel();
    serve(yours::tls(&yours::certificate()?)?, ([127, 0, 0, 1], 4433).into(), listening).await
}

/// Answers every connection. The address is reported when the server listens.
pub async fn serve(tls: Tls, address: SocketAddr, listening: Sender<SocketAddr>) -> yours::Result<()> {
    let setup = ServerSetup::new("wise-start")?.history(Arc::new(Sharded::default())); // +
    let mut server = s2n_quic::Server::builder()
        .with_tls(tls)?
        .with_io(address)?
        .with_congestion_controller(setup.clone())? // +
        .start()?;
    let _ = listening.send(server.local_addr()?);
    while let Some(mut connection) = server.accept().await {
        let start = setup.handle(connection.remote_addr()?); // +
        tokio::spawn(async move {
            yours::answer(&mut connection).await?;
            println!("{}", start.map(|start| start.report().to_string()).unwrap_or_default()); // +
            yours::Result::Ok(())
        });
    }
    Ok(())
}

/// The server without this crate.
pub async fn serve_without(
    tls: Tls,
    address: SocketAddr,
    listening: Sender<SocketAddr>,
) -> yours::Result<()> {
    let mut server = s2n_quic::Server::builder().with_tls(tls)?.with_io(address)?.start()?;
    let _ = listening.send(server.local_addr()?);
    while let Some(mut connection) = server.accept().await {
        tokio::spawn(async move { yours::answer(&mut connection).await });
    }
    Ok(())
}
