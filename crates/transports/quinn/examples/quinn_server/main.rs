//! A quinn server, with the lines that make its connections start with WiseStart.
//!
//! ```text
//! cargo run -p headstart-quinn --example quinn_server
//! ```
//!
//! Lines that end with `+` are new or changed; `yours.rs` stays as it was. Without them it is the
//! server of before: `serve_without`, which the test of this example runs as well.

pub mod yours;

use std::net::UdpSocket;
use std::sync::Arc;

use headstart_quinn::{ServerSetup, Sharded}; // +

#[tokio::main]
async fn main() -> yours::Result<()> {
    serve(yours::config(&yours::tls()?)?, UdpSocket::bind("127.0.0.1:4433")?).await
}

/// Answers every connection.
pub async fn serve(config: quinn::ServerConfig, socket: UdpSocket) -> yours::Result<()> {
    let setup = ServerSetup::new(config.clone(), "wise-start")? // +
        .history(Arc::new(Sharded::default())); // +
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = quinn::Endpoint::new(quinn::EndpointConfig::default(), Some(config), socket, runtime)?;
    while let Some(incoming) = endpoint.accept().await {
        let (config, start) = setup.configure(incoming.remote_address()); // +
        let Ok(connecting) = incoming.accept_with(config) else { continue }; // + was incoming.accept()
        tokio::spawn(async move {
            let connection = connecting.await?;
            yours::answer(&connection).await?;
            start.finish(connection.congestion_state()); // + writes the record
            println!("{}", start.report()); // + inputs, decision and outcome
            yours::Result::Ok(())
        });
    }
    Ok(())
}

/// The server without this crate.
pub async fn serve_without(config: quinn::ServerConfig, socket: UdpSocket) -> yours::Result<()> {
    let runtime = Arc::new(quinn::TokioRuntime);
    let endpoint = quinn::Endpoint::new(quinn::EndpointConfig::default(), Some(config), socket, runtime)?;
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connecting) = incoming.accept() else { continue };
        tokio::spawn(async move { yours::answer(&connecting.await?).await });
    }
    Ok(())
}
