//! State outside of congestion controllers: the clock and live connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use headstart_adapter::epoch::span;
use headstart_adapter::{Connection, Epoch};
use headstart_host::locked;
use headstart_units::Time;
use s2n_quic_core::time::Timestamp;

/// Maps the endpoint's clock, whose origin is its own, to the time of records: by its first report.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    beginning: Option<Time>,
    base: OnceLock<(Timestamp, Time)>,
}

impl Clock {
    pub fn beginning_at(at: Time) -> Self {
        Self { beginning: Some(at), base: OnceLock::new() }
    }

    fn base(&self, now: Timestamp) -> (Timestamp, Time) {
        *self.base.get_or_init(|| (now, self.beginning.unwrap_or_else(|| Epoch::now().at())))
    }

    pub fn time(&self, at: Timestamp) -> Time {
        let (base, time) = self.base(at);
        if at >= base {
            time + span(at.saturating_duration_since(base))
        } else {
            time - span(base.saturating_duration_since(at))
        }
    }
}

/// A time of both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub stamp: Timestamp,
    pub time: Time,
}

impl Now {
    /// The endpoint's time of a departure, which is this one if it is past.
    pub fn departure(self, at: Time) -> Timestamp {
        if at <= self.time {
            return self.stamp;
        }
        self.stamp.checked_add(Duration::from_nanos(at.since(self.time).as_nanos())).unwrap_or(self.stamp)
    }
}

/// The live connections of an endpoint by peer.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<BTreeMap<SocketAddr, Weak<Connection>>>);

impl Connections {
    pub fn insert(&self, connection: &Arc<Connection>) {
        locked(&self.0).insert(connection.peer, Arc::downgrade(connection));
    }

    pub fn find(&self, peer: SocketAddr) -> Option<Arc<Connection>> {
        locked(&self.0).get(&peer)?.upgrade()
    }

    pub fn remove(&self, connection: &Connection) {
        let mut connections = locked(&self.0);
        // A later connection from the same address stays.
        if connections.get(&connection.peer).is_some_and(|it| std::ptr::eq(it.as_ptr(), connection)) {
            connections.remove(&connection.peer);
        }
    }
}
