//! A bottleneck, a scheme and a prior, in a few lines.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use headstart_net::{Limit, LinkPlan, PathPlan};
use headstart_quic::server::SetupError;
use headstart_quic::store::client_key;
use headstart_quic::{Choice, ClientSetup, CopyPolicy, Gates, Hint, Policy, ServerSetup, Store};
use headstart_sim::peer_address;
use headstart_startup::base;
use headstart_startup::history::{FixedHash, MemoryStore, Record, RecordUpdate};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use noq_proto::TransportConfig;
use noq_proto::crypto::rustls::QuicServerConfig;

use crate::connections::{ConnectionOutcome, ConnectionSet, Transfer};
use crate::end::ConstantClock;
use crate::error::ScenarioError;
use crate::identity::Identity;
use crate::null::{NoSecret, NullSessions};
use crate::simulation::Crypto;

/// A client behind a bottleneck, and its competitors.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Rate of the bottleneck, towards the client.
    pub rate: Rate,
    /// RTT of the empty path, serialisation not included.
    pub rtt: Span,
    /// The bottleneck's buffer.
    pub buffer: Packets,
    /// The client's transfer.
    pub transfer: Transfer,
    /// The server's record of the client, if any.
    pub prior: Option<Prior>,
    /// Another address of the client of which the server has the same record.
    pub also: Option<IpAddr>,
    /// The client's hint.
    pub hint: Option<Hint>,
    /// Conditions for the use of the record.
    pub gates: Gates,
    /// Caps on hints.
    pub policy: Policy,
    /// Caps on copies.
    pub copies: CopyPolicy,
    /// The base controller for congestion avoidance.
    pub base: base::Kind,
    /// Data packets dropped as they leave
    /// ([`Filter::of_losses`](crate::simulation::observer::Filter::of_losses)).
    pub forced_losses: Vec<u64>,
    /// Transfers of other clients over the same bottleneck, with the scheme of each.
    pub competitors: Vec<(Transfer, Choice)>,
    /// UDP payload of a full packet, in bytes.
    pub packet: u16,
    /// Enables path MTU discovery, up to 1452 bytes (RFC 8899).
    pub discovers_mtu: bool,
    /// Protection of packets.
    pub crypto: Crypto,
    /// Distinguishes runs.
    pub seed: u64,
    /// Time limit of the run.
    pub deadline: Time,
}

/// Contents of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prior {
    /// The delivery rate.
    pub rate: Rate,
    /// The minimum RTT.
    pub rtt: Span,
}

impl Scenario {
    /// A download of `size` over a bottleneck; the prior is the size alone.
    #[must_use]
    pub fn new(rate: Rate, rtt: Span, buffer: Packets, size: Bytes) -> Self {
        Self {
            rate,
            rtt,
            buffer,
            transfer: Transfer::download(Time::ZERO, size),
            prior: None,
            also: None,
            hint: None,
            gates: Gates::default(),
            policy: Policy::default(),
            copies: CopyPolicy::default(),
            base: base::Kind::default(),
            forced_losses: vec![],
            competitors: vec![],
            packet: 1_200,
            discovers_mtu: false,
            crypto: Crypto::default(),
            seed: 1,
            deadline: Time::from_millis(120_000),
        }
    }

    /// Adds a record of the bottleneck's actual rate, times a ratio.
    #[must_use]
    pub fn with_record(mut self, numerator: u64, denominator: u64) -> Self {
        let rate = Rate::from_bytes_per_sec(self.rate.as_bytes_per_sec() * numerator / denominator);
        self.prior = Some(Prior { rate, rtt: self.rtt });
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: Hint) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Runs it with the scheme of that name: outcomes of the client and of its competitors.
    ///
    /// # Errors
    /// The scheme is not available, or an endpoint cannot be set up.
    pub fn run(&self, scheme: &str) -> Result<Vec<ConnectionOutcome>, ScenarioError> {
        self.run_choice(Choice::find(scheme)?)
    }

    /// Runs it with a scheme that has its own parameters.
    ///
    /// # Errors
    /// An endpoint cannot be set up.
    pub fn run_choice(&self, choice: Choice) -> Result<Vec<ConnectionOutcome>, ScenarioError> {
        Ok(self.connections(choice)?.run(self.deadline))
    }

    /// The connections before the run.
    ///
    /// # Errors
    /// An endpoint cannot be set up.
    pub fn connections(&self, choice: Choice) -> Result<ConnectionSet, ScenarioError> {
        let link = LinkPlan::new(self.rate, self.rtt / 2, Limit::packets(self.buffer));
        let plan = PathPlan::link_and_delay(link, self.rtt - self.rtt / 2);
        let connections = ConnectionSet::new(plan, self.seed);
        let mut connections = connections.with_forced_losses(self.forced_losses.iter().copied());
        let store: Arc<dyn Store> = self.store();
        let client = self.client()?;
        connections.add(0, self.transfer, client.clone(), &self.server(choice, &store)?);
        for (peer, (transfer, choice)) in (1..).zip(&self.competitors) {
            connections.add(peer, *transfer, client.clone(), &self.server(*choice, &store)?);
        }
        Ok(connections)
    }

    fn server(&self, choice: Choice, store: &Arc<dyn Store>) -> Result<ServerSetup, ScenarioError> {
        let setup = match self.crypto {
            Crypto::Tls => {
                let tls = Identity::shared()?.server()?;
                let crypto = QuicServerConfig::try_from(Arc::clone(&tls)).map_err(SetupError::from)?;
                ServerSetup::new(self.server_base(Arc::new(crypto)), tls, choice)?
            }
            Crypto::Null => {
                let base = self.server_base(Arc::new(NullSessions));
                ServerSetup::with_session_factory(base, Arc::new(NullSessions), choice)
            }
        };
        let setup = setup.gates(self.gates).limits(self.policy).copies(self.copies);
        Ok(setup.history(Arc::clone(store)).base_controller(self.base).seed(self.seed))
    }

    fn client(&self) -> Result<ClientSetup, ScenarioError> {
        let setup = match self.crypto {
            Crypto::Tls => ClientSetup::new(Identity::shared()?.client()?)?,
            Crypto::Null => ClientSetup::with_session_factory(Arc::new(NullSessions)),
        };
        let setup = setup.transport(self.transport()).seed(self.seed);
        Ok(match self.hint {
            Some(hint) => setup.exact_hint(hint),
            None => setup,
        })
    }

    fn store(&self) -> Arc<dyn Store> {
        let store = Mutex::new(MemoryStore::new(1 << 10, FixedHash::default()));
        if let Some(Prior { rate, rtt }) = self.prior {
            let record = Record { btl_bw: rate, rt_prop: rtt, window: rate * rtt, ..Record::default() };
            for address in [Some(peer_address(0)), self.also].into_iter().flatten() {
                let (_, lease) = Store::open(&store, client_key(address));
                Store::close(&store, lease, RecordUpdate::Replace(record));
            }
        }
        Arc::new(store)
    }

    fn server_base(&self, crypto: Arc<dyn noq_proto::crypto::ServerConfig>) -> noq_proto::ServerConfig {
        let mut base = noq_proto::ServerConfig::new(crypto, Arc::new(NoSecret));
        base.transport_config(Arc::new(self.transport())).time_source(Arc::new(ConstantClock));
        base
    }

    fn transport(&self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        let discovery = self.discovers_mtu.then(noq_proto::MtuDiscoveryConfig::default);
        transport.initial_mtu(self.packet).mtu_discovery_config(discovery);
        transport
    }
}
