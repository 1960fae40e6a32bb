//! A connection that was accepted or initiated and is not established yet.

use noq::ConnectionError;

use crate::shared::Handle;

/// A connection that was accepted or initiated and is not established yet.
#[derive(Debug)]
pub struct PendingConnection {
    /// The stack's own future of it: for 0-RTT.
    pub connecting: noq::Connecting,
    /// Inputs of the scheme, and its report.
    pub handle: Handle,
}

impl PendingConnection {
    /// Completes the handshake. The record is written as soon as the connection is closed.
    ///
    /// # Errors
    /// [`ConnectionError`] if the handshake fails.
    pub async fn established(self) -> Result<(noq::Connection, Handle), ConnectionError> {
        let connection = self.connecting.await?;
        let (closed, handle) = (connection.on_closed(), self.handle.clone());
        tokio::spawn(async move { handle.finish_with(&closed.await.reason) });
        Ok((connection, self.handle))
    }
}
