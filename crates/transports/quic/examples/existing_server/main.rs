//! A noq server, with the lines that make its connections start with WiseStart, from a history that
//! it shares with other servers.
//!
//! ```text
//! cargo run -p headstart-quic --example existing_server
//! ```
//!
//! Lines that end with `+` are new or changed; `yours.rs` stays as it was.

mod yours;

use std::{net::UdpSocket, sync::Arc};

use headstart_quic::{Choice, PreciseRuntime, ServerSetup}; // +
use headstart_store::fleet::{Fleet, Options}; // +

#[tokio::main]
async fn main() -> yours::Result<()> {
    serve(yours::tls()?, UdpSocket::bind("127.0.0.1:4433")?, "valkey://127.0.0.1:6379/").await
}

/// Answers every connection. The history's server need not be there.
pub async fn serve(tls: Arc<rustls::ServerConfig>, socket: UdpSocket, history: &str) -> yours::Result<()> {
    let config = yours::config(&tls)?;
    let fleet = Fleet::open(history.parse()?, Options::default())?; // +
    let setup = ServerSetup::new(config.clone(), tls, Choice::find("wise-start")?)? // +
        .history(Arc::new(fleet)); // +
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
