//! The application's handle of a connection.

use std::any::Any;
use std::sync::Arc;

use headstart_adapter::{Connection, StartReport};
use quinn_proto::congestion;

use crate::adapter::Adapter;

/// The application's handle of a connection: flow sizes in, report out.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Connection>);

impl Handle {
    /// Announces `bytes` further bytes of application data, for schemes that plan with the flow's
    /// size (JumpStart). To be called for each answer, before it is written: the sizes add up.
    pub fn expect(&self, bytes: u64) {
        self.0.expect(bytes);
    }

    /// The report so far: up to the last change of the scheme's phase, or complete after
    /// [`Self::finish`] or the end of the connection.
    #[must_use]
    pub fn report(&self) -> StartReport {
        self.0.report()
    }

    /// Writes the record now: the application has finished with the connection, whose
    /// `congestion_state()` this is. Otherwise it is written when quinn drops the connection, three
    /// probe timeouts after its end.
    pub fn finish(&self, state: Box<dyn congestion::Controller>) {
        if let Ok(mut adapter) = Box::<dyn Any>::downcast::<Adapter>(state.into_any()) {
            adapter.publish();
        }
        self.0.close();
    }

    /// As [`Self::finish`], but writes no record: of a peer that broke the protocol, which may have
    /// acknowledged data that it never received.
    pub fn abandon(&self) {
        self.0.abandon();
    }
}
