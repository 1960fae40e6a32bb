//! A noq server, with the lines that make its connections start with WiseStart.
//!
//! ```text
//! cargo run -p headstart-quic --example existing_server
//! ```
//!
//! Lines that end with `+` are new or changed; `yours.rs` stays as it was.

mod yours;

use std::{net::UdpSocket, sync::Arc};

use headstart_quic::{Choice, PreciseRuntime, ServerSetup, Sharded}; // +

#[tokio::main]
async fn main() -> yours::Result<()> {
    serve(yours::tls()?, UdpSocket::bind("127.0.0.1:4433")?).await
}

/// Answers every connection.
pub async fn serve(tls: Arc<rustls::ServerConfig>, socket: UdpSocket) -> yours::Result<()> {
    let config = yours::config(&tls)?;
    let setup = ServerSetup::new(config.clone(), tls, Choice::find("wise-start")?)? // +
        .history(Arc::new(Sharded::default())); // +
    let runtime = PreciseRuntime::new(); // + was Arc::new(noq::TokioRuntime)
    let endpoint = noq::Endpoint::new(noq::EndpointConfig::default(), Some(config), socket, runtime)?;
    while let Some(incoming) = endpoint.accept().await {
        let Ok(accepted) = setup.accept(incoming) else { continue }; // + was incoming.accept()
        tokio::spawn(async move {
            let (connection, start) = accepted.established().await?; // + was accepted.await?
            yours::answer(connection).await?;
            println!("{}", start.report()); // + inputs, decision and outcome
            yours::Result::Ok(())
        });
    }
    Ok(())
}
