//! The application's handle of a connection.

use std::any::Any;
use std::ops::Deref;

use quinn_proto::congestion;

use crate::adapter::Adapter;

/// The application's handle of a connection: flow sizes in, report out.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) headstart_adapter::Handle);

impl Deref for Handle {
    type Target = headstart_adapter::Handle;

    fn deref(&self) -> &headstart_adapter::Handle {
        &self.0
    }
}

impl Handle {
    /// Writes the record now: the application has finished with the connection, whose
    /// `congestion_state()` this is. Otherwise it is written when quinn drops the connection, three
    /// probe timeouts after its end.
    pub fn finish(&self, state: Box<dyn congestion::Controller>) {
        if let Ok(mut adapter) = Box::<dyn Any>::downcast::<Adapter>(state.into_any()) {
            adapter.publish();
        }
        self.0.0.close();
    }
}
