//! Fast-starting connections: [`headstart_quic`] as an [`Admission`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use headstart_quic::{Choice, Handle, Metrics, ServerSetup, StartReport};
use headstart_startup::catalogue::Name;
use noq::{Connecting, Connection, ConnectionError, Endpoint, Incoming, PathId};
use tokio_util::sync::CancellationToken;

use crate::admission::{Admission, Session};
use crate::server::{self, ServerConfig};
use crate::site::Site;

/// Receives the report of a connection at its end.
pub type ReportListener = Arc<dyn Fn(&StartReport) + Send + Sync>;

/// Starts connections with one scheme, or with the client's choice.
pub struct FastStartAdmission {
    default_setup: ServerSetup,
    /// Schemes that a client may choose, by the catalogue's name.
    others: BTreeMap<Name, ServerSetup>,
    listener: Option<ReportListener>,
}

impl fmt::Debug for FastStartAdmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others: Vec<_> = self.others.keys().collect();
        f.debug_struct("FastStartAdmission")
            .field("default", &self.default_setup.choice().name())
            .field("others", &others)
            .finish()
    }
}

impl FastStartAdmission {
    /// Starts every connection with `default_setup`.
    #[must_use]
    pub const fn new(default_setup: ServerSetup) -> Self {
        Self { default_setup, others: BTreeMap::new(), listener: None }
    }

    /// Adds schemes that clients may choose; any other request gets the usual scheme.
    #[must_use]
    pub fn with_choices(mut self, others: impl IntoIterator<Item = ServerSetup>) -> Self {
        self.others.extend(others.into_iter().map(|setup| (setup.choice().scheme_name(), setup)));
        self
    }

    /// Reports every connection that ended to `listener`.
    #[must_use]
    pub fn report_to(mut self, listener: ReportListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// [`server::serve`] with this admission. Boxed, so that it is compiled here: generic and
    /// `async` code is compiled with the optimisation of the crate that polls it.
    #[must_use]
    pub fn serve(
        self: Arc<Self>,
        endpoint: Endpoint,
        site: Arc<Site>,
        server_config: ServerConfig,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        server::serve(endpoint, self, site, server_config, shutdown).boxed()
    }

    /// Counters by scheme, the usual one first.
    pub fn counted(&self) -> impl Iterator<Item = (Name, &Arc<Metrics>)> {
        let others =
            self.others.values().filter(|setup| setup.choice().name() != self.default_setup.choice().name());
        std::iter::once(&self.default_setup)
            .chain(others)
            .map(|setup| (setup.choice().scheme_name(), setup.counted()))
    }

    /// Parameters in a client's request apply to its connection alone.
    fn setup(&self, requested: Option<&str>) -> Cow<'_, ServerSetup> {
        let found = requested.filter(|_| !self.others.is_empty()).and_then(|text| Choice::find(text).ok());
        let Some(choice) = found.filter(|choice| choice.name() != self.default_setup.choice().name()) else {
            return Cow::Borrowed(&self.default_setup);
        };
        if let Some(setup) = self.others.get(choice.name()) {
            return Cow::Borrowed(setup);
        }
        let plain = choice.with_defaults();
        let is_usual = plain.name() == self.default_setup.choice().name();
        match self.others.get(plain.name()).or(is_usual.then_some(&self.default_setup)) {
            Some(setup) => Cow::Owned(setup.clone().scheme(choice)),
            None => Cow::Borrowed(&self.default_setup),
        }
    }
}

impl Admission for FastStartAdmission {
    type Session = FastStartSession;

    fn admit(
        &self,
        incoming: Incoming,
        requested: Option<&str>,
    ) -> Result<(Connecting, FastStartSession), ConnectionError> {
        let setup = self.setup(requested);
        let accepted = setup.accept(incoming)?;
        let session = FastStartSession {
            handle: accepted.handle,
            scheme: setup.choice().scheme_name(),
            listener: self.listener.clone(),
        };
        Ok((accepted.connecting, session))
    }
}

/// One connection.
pub struct FastStartSession {
    handle: Handle,
    scheme: Name,
    listener: Option<ReportListener>,
}

impl fmt::Debug for FastStartSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastStartSession").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl Session for FastStartSession {
    fn established(&self, _: &Connection) {}

    fn will_send(&self, _: &Connection, bytes: u64) {
        self.handle.expect(bytes);
    }

    fn scheme(&self) -> Option<&str> {
        Some(&self.scheme)
    }

    fn closed(&self, connection: &Connection, reason: &ConnectionError) {
        self.handle.update(connection.congestion_state(PathId::ZERO));
        self.handle.finish_with(reason);
        if let Some(listener) = &self.listener {
            listener(&self.handle.report());
        }
    }
}
