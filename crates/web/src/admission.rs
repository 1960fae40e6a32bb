//! How connections are let in: the seam between a web server and what makes its connections start
//! fast.
//!
//! The server knows requests and sizes; an [`Admission`] knows transports. [`Plain`] is the QUIC
//! stack as it comes: the baseline of every comparison, and what `headstart_quic` replaces.

use std::fmt::Debug;

use noq::{Connecting, Connection, ConnectionError, Incoming};

/// Lets connections in and configures each before it exists.
pub trait Admission: Send + Sync + 'static {
    /// What is kept beside each connection.
    type Session: Session;

    /// Lets a connection in. `scheme` is what the client asked for, if it asked (see
    /// [`choice`](crate::choice)).
    ///
    /// # Errors
    ///
    /// If the stack refuses the connection; nobody else needs to be told.
    fn admit(
        &self,
        incoming: Incoming,
        scheme: Option<&str>,
    ) -> Result<(Connecting, Self::Session), ConnectionError>;
}

/// One connection, as the transport's extension sees it.
pub trait Session: Debug + Send + Sync + 'static {
    /// The handshake is complete.
    fn established(&self, connection: &Connection);

    /// An answer of `bytes` begins. Several may be under way at once.
    fn will_send(&self, connection: &Connection, bytes: u64);

    /// The scheme that governs the start, as clients are told when they may choose; `None` if there
    /// is none to name.
    fn scheme(&self) -> Option<&str>;

    /// The connection has ended.
    fn closed(&self, connection: &Connection, reason: &ConnectionError);
}

/// The stack as it comes.
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
