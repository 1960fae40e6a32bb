//! Acceptance of connections: the interface between a web server and their fast start.
//!
//! The server handles requests and sizes; an [`Admission`] handles the transport. [`Plain`] is the
//! unmodified QUIC stack: the baseline of every comparison, replaced by `headstart_quic`.

use std::fmt::Debug;

use noq::{Connecting, Connection, ConnectionError, Incoming};

/// Accepts connections and configures each before it exists.
pub trait Admission: Send + Sync + 'static {
    /// State of each connection.
    type Session: Session;

    /// Accepts a connection. `scheme` is the client's choice, if any (see
    /// [`choice`](crate::choice)).
    ///
    /// # Errors
    ///
    /// If the stack refuses the connection.
    fn admit(
        &self,
        incoming: Incoming,
        scheme: Option<&str>,
    ) -> Result<(Connecting, Self::Session), ConnectionError>;
}

/// One connection, for the transport's extension.
pub trait Session: Debug + Send + Sync + 'static {
    /// The handshake is complete.
    fn established(&self, connection: &Connection);

    /// An answer of `bytes` begins. Several may be in progress.
    fn will_send(&self, connection: &Connection, bytes: u64);

    /// The scheme of the start, reported to clients that may choose; `None` if it has no name.
    fn scheme(&self) -> Option<&str>;

    /// The connection has ended.
    fn closed(&self, connection: &Connection, reason: &ConnectionError);
}

/// The unmodified stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Admission for Plain {
    type Session = Self;

    fn admit(&self, incoming: Incoming, _: Option<&str>) -> Result<(Connecting, Self), ConnectionError> {
        Ok((incoming.accept()?, Self))
    }
}

impl Session for Plain {
    fn established(&self, _: &Connection) {}

    fn will_send(&self, _: &Connection, _: u64) {}

    fn scheme(&self) -> Option<&str> {
        None
    }

    fn closed(&self, _: &Connection, _: &ConnectionError) {}
}
