//! A connection that was accepted or initiated and is not established yet.

use noq::{ConnectionError, PathId};

use crate::handle::Handle;

/// A connection that was accepted or initiated and is not established yet.
#[derive(Debug)]
pub struct PendingConnection {
    /// The stack's own future of the connection: for 0-RTT.
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
        let (closed, weak, handle) = (connection.on_closed(), connection.weak_handle(), self.handle.clone());
        tokio::spawn(async move {
            let reason = closed.await.reason;
            let connection = weak.upgrade();
            // A connection that is gone has dropped its controller, which wrote the record.
            if connection.is_some() || matches!(reason, ConnectionError::TransportError(_)) {
                handle.update(connection.and_then(|it| it.congestion_state(PathId::ZERO)));
                handle.finish_with(&reason);
            }
        });
        Ok((connection, self.handle))
    }
}
