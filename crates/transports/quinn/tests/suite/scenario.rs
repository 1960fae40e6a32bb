//! Scenarios for all stacks: one connection over one path, in virtual time.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use headstart_adapter::{Gates, StartReport, Store};
use headstart_startup::history::{FixedHash, MemoryStore, Record, RecordUpdate};
use headstart_startup::prior::Hint;
use headstart_units::{Packets, Rate, Span, Time};

pub const RATE: Rate = Rate::from_mbit_per_sec(25);
pub const RTT: Span = Span::from_millis(50);
/// UDP payload of a full packet.
pub const PACKET: u16 = 1_200;
/// A datagram of this size or more is a full packet.
pub const FULL: u64 = 1_100;

/// A connection: a server's answers, one after the other.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// Rate of the bottleneck and RTT of the path.
    pub rate: Rate,
    pub rtt: Span,
    pub buffer: Packets,
    /// The server's record of the client.
    pub record: Option<(Rate, Span)>,
    pub hint: Option<Hint>,
    pub gates: Gates,
    /// The server's data packets that are dropped, by number of departure.
    pub losses: Vec<u64>,
    /// Sizes of the answers, and the pause before each request.
    pub answers: Vec<(Span, u64)>,
    /// Time and new address of the client's migration.
    pub migration: Option<(Time, SocketAddr)>,
    pub discovers_mtu: bool,
}

pub const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 10_000);

impl Scenario {
    /// One answer of `size`, to a client that is not known.
    pub fn new(name: &'static str, size: u64) -> Self {
        Self {
            name,
            rate: RATE,
            rtt: RTT,
            buffer: Packets::new(104),
            record: None,
            hint: None,
            gates: Gates::default(),
            losses: vec![],
            answers: vec![(Span::ZERO, size)],
            migration: None,
            discovers_mtu: false,
        }
    }

    /// The store, with the record.
    pub fn store(&self, key: std::net::IpAddr) -> Arc<dyn Store> {
        let store = Mutex::new(MemoryStore::new(1 << 10, FixedHash::default()));
        if let Some((rate, rtt)) = self.record {
            let (_, lease) = Store::open(&store, key);
            let record = Record { btl_bw: rate, rt_prop: rtt, window: rate * rtt, ..Record::default() };
            Store::close(&store, lease, RecordUpdate::Replace(record));
        }
        Arc::new(store)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Completion of the client's handshake.
    pub requested: Time,
    /// When the client had read each answer.
    pub completed: Vec<Time>,
    /// Departures of the server's full packets.
    pub departures: Vec<Time>,
    /// Datagrams that left the server.
    pub packets: u64,
    /// Packets that the server declared lost.
    pub lost: u64,
    pub report: StartReport,
}

impl Outcome {
    /// Time of the last answer, from the beginning.
    pub fn completion(&self) -> Span {
        self.completed.last().map_or(Span::MAX, |at| at.since(Time::ZERO))
    }
}
