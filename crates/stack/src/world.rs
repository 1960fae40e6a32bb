//! The endpoints, the paths between them, and the loop over events.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use headstart_quic::copies::When;
use headstart_quic::{ClientSetup, Courier, Epoch, Handle, ServerSetup};
use headstart_units::Time;
use noq_proto::{ConnectionIdGenerator, DatagramEvent, Endpoint, FourTuple};

use crate::datagram::Datagram;
use crate::end::{End, Ids, base, digest, endpoint, hash, note};
use crate::exchange::{Answering, Asking, Fetch, GOODBYE, Outcome};
use crate::identity::NAME;
use crate::path::Path;
use crate::post::Post;

mod liar;

use liar::Liar;
pub use liar::Lie;

/// How packets are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crypto {
    /// As on the Internet.
    #[default]
    Tls,
    /// Not at all: for large sweeps.
    Null,
}

/// Two endpoints' worth of clients and a server, and what lies between them.
pub struct World {
    epoch: Epoch,
    now: Time,
    server: Endpoint,
    clients: Vec<Client>,
    /// Server to clients.
    forward: Path,
    /// Clients to server.
    reverse: Path,
    post: Arc<Post>,
    seed: u64,
    is_bare: bool,
    /// Packets are not noted: for benchmarks.
    is_blind: bool,
}

/// A client and its one connection, both ends of it.
struct Client {
    address: SocketAddr,
    endpoint: Endpoint,
    setup: ClientSetup,
    server_setup: ServerSetup,
    fetch: Fetch,
    asking: Asking,
    answering: Answering,
    near: Option<End>,
    far: Option<End>,
    outcome: Outcome,
    is_over: bool,
    liar: Option<Liar>,
}

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 443);
const FIRST_PORT: u16 = 10_000;
/// Events at one instant before something is taken to be wrong.
const PATIENCE: u32 = 1_000_000;

impl World {
    /// A server behind these paths. The same seed gives the same world.
    #[must_use]
    pub fn new(forward: Path, reverse: Path, seed: u64) -> Self {
        let epoch = Epoch::new(base(), Time::ZERO);
        let server = endpoint(seed);
        Self {
            epoch,
            now: Time::ZERO,
            server,
            clients: vec![],
            forward,
            reverse,
            post: Arc::default(),
            seed,
            is_bare: false,
            is_blind: false,
        }
    }

    /// The server is the stack as it is, with nothing of ours: what we are compared with.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.is_bare = true;
        self
    }

    /// Notes no packets: for benchmarks.
    #[must_use]
    pub fn blind(mut self) -> Self {
        self.is_blind = true;
        self
    }

    /// The time it is.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Where this world's clock meets the stack's.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Puts the server's copies on the forward path.
    #[must_use]
    pub fn courier(&self) -> Arc<dyn Courier> {
        Arc::clone(&self.post) as Arc<dyn Courier>
    }

    /// Adds a client at `address`; returns its number. Clients of one address are one peer to the server.
    pub fn client(
        &mut self,
        address: Ipv4Addr,
        fetch: Fetch,
        setup: ClientSetup,
        server_setup: &ServerSetup,
    ) -> usize {
        self.server.set_server_config(Some(Arc::new(server_setup.stack_config().clone())));
        let number = self.clients.len();
        let port = FIRST_PORT.saturating_add(u16::try_from(number).unwrap_or(u16::MAX));
        self.clients.push(Client {
            address: SocketAddr::new(address.into(), port),
            endpoint: endpoint(self.seed.wrapping_add(1 + number as u64)),
            setup: setup.epoch(self.epoch),
            server_setup: server_setup.clone().epoch(self.epoch).courier(self.courier()),
            fetch,
            asking: Asking::new(fetch),
            answering: Answering::default(),
            near: None,
            far: None,
            outcome: Outcome { dialled: fetch.at, ..Outcome::default() },
            is_over: false,
            liar: None,
        });
        number
    }

    /// Lets that client lie about what it received. Only null crypto lets it.
    pub fn corrupt(&mut self, number: usize, lie: Lie) {
        if let Some(client) = self.clients.get_mut(number) {
            client.liar = Some(Liar::new(lie));
        }
    }

    /// Runs until every awaited exchange is over, or until `deadline`; what each client saw.
    ///
    /// # Panics
    /// If time stands still: something is wrong with the stack or with this loop.
    pub fn run(&mut self, deadline: Time) -> Vec<Outcome> {
        let mut at_once = 0;
        loop {
            let next = self.next_at();
            if next > deadline || self.is_done() {
                break;
            }
            at_once = if next > self.now { 0 } else { at_once + 1 };
            assert!(at_once < PATIENCE, "time stands still at {:?}", self.now);
            self.now = self.now.max(next);
            self.step();
        }
        self.clients.iter_mut().map(Client::take_outcome).collect()
    }

    fn is_done(&self) -> bool {
        let is_over = |client: &Client| client.is_over && client.far.is_none() && client.near.is_none();
        self.clients.iter().filter(|client| client.fetch.is_awaited).all(is_over)
    }

    fn next_at(&self) -> Time {
        let timers = self.clients.iter().flat_map(|client| {
            let dial = if client.near.is_none() && !client.is_over { client.fetch.at } else { Time::NEVER };
            let timeout = |end: &Option<End>| {
                let at = end.as_ref().and_then(|end| end.connection.poll_timeout());
                at.map_or(Time::NEVER, |at| self.epoch.time(at))
            };
            let moves = client.fetch.moves.map_or(Time::NEVER, |(at, _)| at);
            [dial, moves, timeout(&client.near), timeout(&client.far)]
        });
        timers.chain([self.forward.next_at(), self.reverse.next_at()]).min().unwrap_or(Time::NEVER)
    }

    fn step(&mut self) {
        for number in 0..self.clients.len() {
            let client = &mut self.clients[number];
            if let Some((_, address)) = client.fetch.moves.take_if(|(at, _)| *at <= self.now) {
                client.address = address.into();
            }
            if client.near.is_none() && !client.is_over && client.fetch.at <= self.now {
                self.dial(number);
            }
        }
        while let Some(datagram) = self.forward.pop(self.now) {
            self.at_client(datagram);
        }
        while let Some(datagram) = self.reverse.pop(self.now) {
            self.at_server(datagram);
        }
        let instant = self.epoch.instant(self.now);
        for number in 0..self.clients.len() {
            let is_due = |end: &Option<End>| {
                let at = end.as_ref().and_then(|end| end.connection.poll_timeout());
                at.is_some_and(|at| at <= instant)
            };
            if is_due(&self.clients[number].near) {
                if let Some(end) = &mut self.clients[number].near {
                    end.connection.handle_timeout(instant);
                }
                self.pump_near(number);
            }
            if is_due(&self.clients[number].far) {
                if let Some(end) = &mut self.clients[number].far {
                    end.connection.handle_timeout(instant);
                }
                self.pump_far(number);
            }
        }
    }

    fn dial(&mut self, number: usize) {
        let instant = self.epoch.instant(self.now);
        let client = &mut self.clients[number];
        let (mut config, handle) = client.setup.configure(SERVER, NAME);
        let seed = self.seed.rotate_left(17) ^ number as u64;
        config.initial_dst_cid_provider(Arc::new(move || Ids(seed).generate_cid()));
        match client.endpoint.connect(instant, config, SERVER, NAME) {
            Ok((id, connection)) => {
                let handle = Some(handle);
                client.near = Some(End { id, connection, handle, destination: None, ecn: None })
            }
            Err(_) => client.is_over = true,
        }
        self.pump_near(number);
    }

    fn at_client(&mut self, datagram: Datagram) {
        let instant = self.epoch.instant(self.now);
        let number = datagram.client;
        let forged = self.clients[number].liar.as_mut().map(|liar| liar.saw_arrival(&datagram));
        self.inject(number, forged.unwrap_or_default());
        let client = &mut self.clients[number];
        let (contents, from) = (BytesMut::from(&datagram.contents[..]), FourTuple::from_remote(SERVER));
        let event = client.endpoint.handle(instant, from, datagram.ecn, contents, &mut vec![]);
        if let (Some(DatagramEvent::ConnectionEvent(_, event)), Some(near)) = (event, &mut client.near) {
            near.connection.handle_event(event);
        }
        self.pump_near(number);
    }

    fn at_server(&mut self, datagram: Datagram) {
        let instant = self.epoch.instant(self.now);
        let number = datagram.client;
        let client = &mut self.clients[number];
        let from = FourTuple::new(client.address, Some(SERVER.ip()));
        let (contents, mut answer) = (BytesMut::from(&datagram.contents[..]), vec![]);
        match self.server.handle(instant, from, datagram.ecn, contents, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(far) = &mut client.far {
                    far.connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let (address, local, id) =
                    (incoming.remote_address(), incoming.local_ip(), incoming.orig_dst_cid());
                let configure = || client.server_setup.configure(address, local, id);
                let (config, handle) = if self.is_bare { None } else { Some(configure()) }.unzip();
                let accepted = self.server.accept(incoming, instant, &mut answer, config);
                if let Ok((id, connection)) = accepted {
                    client.far = Some(End { id, connection, handle, destination: None, ecn: None });
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let contents = Bytes::copy_from_slice(&answer[..transmit.size]);
                let ecn = transmit.ecn;
                self.send_forward(Datagram { client: number, ecn, contents, is_copy: false });
            }
            None => {}
        }
        self.pump_far(number);
    }

    /// Lets the client's end do all it can at this instant.
    fn pump_near(&mut self, number: usize) {
        let instant = self.epoch.instant(self.now);
        let client = &mut self.clients[number];
        let Some(mut near) = client.near.take() else { return };
        near.settle(&mut client.endpoint);
        let is_over = client.asking.on_events(
            self.now,
            &mut near.connection,
            near.handle.as_ref(),
            &mut client.outcome,
        );
        if is_over && !client.is_over {
            client.is_over = true;
            near.connection.close(instant, GOODBYE, Bytes::new());
            near.handle.iter().for_each(Handle::finish);
        }
        while let Some(datagram) = near.next_datagram(instant, number) {
            if !self.is_blind {
                client.outcome.client_departures.push(note(self.now, &datagram));
                digest(&mut client.outcome, self.now, &datagram);
            }
            if client.liar.as_mut().is_none_or(|liar| liar.lets_pass(&datagram)) {
                self.reverse.push(self.now, datagram);
            }
        }
        near.settle(&mut client.endpoint);
        if near.connection.is_drained() {
            near.report(&mut client.outcome.client_why, &mut client.outcome.client_lost_packets);
        } else {
            client.near = Some(near);
        }
    }

    /// The same for the server's end.
    fn pump_far(&mut self, number: usize) {
        let instant = self.epoch.instant(self.now);
        let client = &mut self.clients[number];
        let Some(mut far) = client.far.take() else { return };
        far.settle(&mut self.server);
        let is_size_known = client.fetch.is_size_known;
        client.answering.on_events(
            self.now,
            &mut far.connection,
            far.handle.as_ref(),
            is_size_known,
            &mut client.outcome,
        );
        self.send_copies(number, &far, When::Now);
        while let Some(datagram) = far.next_datagram(instant, number) {
            let outcome = &mut self.clients[number].outcome;
            if !self.is_blind {
                outcome.originals.insert(hash(&datagram.contents));
            }
            outcome.is_ecn_on = datagram.ecn.is_some();
            self.send_forward(datagram);
            self.send_copies(number, &far, When::Behind);
        }
        far.settle(&mut self.server);
        let client = &mut self.clients[number];
        if far.connection.is_closed() {
            far.handle.iter().for_each(Handle::finish);
        }
        if far.connection.is_drained() {
            far.report(&mut client.outcome.why, &mut client.outcome.lost_packets);
        } else {
            client.far = Some(far);
        }
    }

    fn send_copies(&mut self, number: usize, far: &End, when: When) {
        for copy in self.post.take(when) {
            let client = &mut self.clients[number];
            let (outcome, original) = (&mut client.outcome, hash(&copy.contents));
            outcome.strange_copies += u64::from(!outcome.originals.contains(&original));
            outcome.stray_copies += u64::from(Some(copy.destination) != far.destination);
            self.send_forward(Datagram {
                client: number,
                ecn: far.ecn,
                contents: copy.contents,
                is_copy: true,
            });
        }
    }

    fn send_forward(&mut self, datagram: Datagram) {
        if !self.is_blind {
            let outcome = &mut self.clients[datagram.client].outcome;
            outcome.departures.push(note(self.now, &datagram));
            digest(outcome, self.now, &datagram);
        }
        let number = datagram.client;
        let forged = self.clients[number].liar.as_mut().map(|liar| liar.saw_departure(&datagram));
        self.forward.push(self.now, datagram);
        self.inject(number, forged.unwrap_or_default());
    }

    /// Puts what a liar made on the way to the server.
    fn inject(&mut self, client: usize, forged: Vec<Bytes>) {
        for contents in forged {
            self.reverse.push(self.now, Datagram { client, ecn: None, contents, is_copy: false });
        }
    }
}

impl Client {
    fn take_outcome(&mut self) -> Outcome {
        let out = &mut self.outcome;
        if let Some(near) = &mut self.near {
            near.report(&mut out.client_why, &mut out.client_lost_packets);
        }
        if let Some(far) = &mut self.far {
            far.report(&mut out.why, &mut out.lost_packets);
        }
        std::mem::take(&mut self.outcome)
    }
}
