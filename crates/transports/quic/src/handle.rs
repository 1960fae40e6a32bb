//! The application's handle of a connection.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;

use headstart_startup::prior::Hint;
use noq_proto::{ConnectionError, congestion};

use crate::adapter::Adapter;
use crate::journal::JournalEntry;
use crate::shared::Shared;
use crate::start_report::StartReport;

/// The application's handle of one connection: flow sizes in, hint and report out.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Announces `bytes` further bytes of application data, for schemes that plan with the flow's
    /// size (JumpStart, Halfback). Call it for each answer, before it is written: the sizes add up.
    ///
    /// ```no_run
    /// # async fn answer(connection: noq::Connection, handle: headstart_quic::Handle)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// let (mut send, _) = connection.accept_bi().await?;
    /// let answer = vec![0; 100_000];
    /// handle.expect(answer.len() as u64);
    /// send.write_all(&answer).await?;
    /// send.finish()?;
    /// # Ok(()) }
    /// ```
    pub fn expect(&self, bytes: u64) {
        self.0.connection.expect(bytes);
    }

    /// The client's address was validated by its token
    /// ([`noq::Incoming::remote_address_validated`]): for a caller that drives the protocol itself.
    pub fn address_validated(&self) {
        if let Some(paths) = &self.0.paths {
            paths.handshaken();
        }
    }

    /// The connection's datagrams go to `destination` from now on: after a migration of the client,
    /// for a caller that drives the protocol itself.
    pub fn sending_to(&self, destination: SocketAddr) {
        if let Some(paths) = &self.0.paths {
            paths.sending_to(destination);
        }
    }

    /// The peer's hint of its access link, once its first message has been read.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        self.0.connection.hint()
    }

    /// The report so far: as of the last loss, change of the scheme's phase, or acknowledgement
    /// that left nothing in flight. [`Self::update`] brings it up to date.
    #[must_use]
    pub fn report(&self) -> StartReport {
        self.0.connection.report()
    }

    /// Records every sender event from now on, until [`Self::take_journal`].
    pub fn keep_journal(&self) {
        self.0.journal.keep();
    }

    /// Events since the last call. The stack's own controllers record none.
    #[must_use]
    pub fn take_journal(&self) -> Vec<JournalEntry> {
        self.0.journal.take()
    }

    /// Brings report and record up to date, with the `congestion_state()` of the connection's path:
    /// before [`Self::report`] or [`Self::finish`] while data is in flight.
    pub fn update(&self, state: Option<Box<dyn congestion::Controller>>) {
        let adapter = state.map(|state| Box::<dyn Any>::downcast::<Adapter>(state.into_any()));
        if let Some(Ok(mut adapter)) = adapter {
            adapter.driver.publish();
        }
    }

    /// Writes the record now: the application has finished with the connection. Otherwise it is
    /// written when the stack drops the connection, three probe timeouts after its end.
    pub fn finish(&self) {
        self.0.connection.close();
    }

    /// As [`Self::finish`], with the reason of the connection's end. No record is written of a peer
    /// that broke the protocol: it may have acknowledged data that it never received.
    pub fn finish_with(&self, reason: &ConnectionError) {
        match reason {
            ConnectionError::TransportError(_) => self.0.connection.abandon(),
            _ => self.finish(),
        }
    }
}
