//! The server's packet path: datagrams of a real client that are dropped, changed, doubled and
//! mixed with any bytes. Sessions have no encryption, so that changed packets are parsed as well.
//! Nothing panics, and the connection comes to an end.
//!
//! The input is a list of steps of two bytes and their operands; see [`Step`].

#![no_main]

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use headstart_quic::{Choice, ClientSetup, ServerSetup, Sharded};
use headstart_virtual_quic::null::{NoSecret, NullSessions};
use libfuzzer_sys::fuzz_target;
use noq_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, FourTuple, StreamId,
};

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 4000);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), 443);
/// Most steps of one run.
const STEPS: usize = 200;
/// Most datagrams that one side sends in one step.
const SENT: usize = 64;

struct Side {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
}

impl Side {
    fn new(server: Option<&ServerSetup>, peer: SocketAddr) -> Self {
        let server = server.map(|setup| Arc::new(setup.stack_config().clone()));
        let mut config = EndpointConfig::new(Arc::new(NoSecret));
        config.rng_seed(Some([7; 32]));
        Self { endpoint: Endpoint::new(Arc::new(config), server, true), connection: None, peer }
    }

    fn receive(&mut self, now: Instant, setup: &ServerSetup, datagram: &[u8]) {
        let mut answer = vec![];
        let from = FourTuple::new(self.peer, None);
        match self.endpoint.handle(now, from, None, BytesMut::from(datagram), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let (config, handle) = setup.configure(self.peer, None, incoming.orig_dst_cid());
                handle.expect(100_000);
                if let Ok(accepted) = self.endpoint.accept(incoming, now, &mut answer, Some(config)) {
                    self.connection.get_or_insert(accepted);
                }
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Timers, events, and what is sent.
    fn drive(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let Some((id, connection)) = &mut self.connection else { return vec![] };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*id, event) {
                connection.handle_event(answer);
            }
        }
        while connection.poll().is_some() {}
        let mut sent = vec![];
        while sent.len() < SENT {
            let mut buffer = vec![];
            let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) else { break };
            buffer.truncate(transmit.size);
            sent.push(buffer);
        }
        sent
    }
}

/// Fate of the client's next datagram, by the first byte of a step modulo 6; the second one
/// is an operand.
enum Step {
    Deliver,
    Drop,
    /// The byte at that part of the datagram becomes the next byte of the input.
    Change,
    Double,
    /// As many bytes of the input as the operand says, in addition to the client's.
    Inject,
    /// Nothing is delivered, and time passes: 2^(operand modulo 32) microseconds.
    Wait,
}

fuzz_target!(|input: &[u8]| {
    let mut base = noq_proto::ServerConfig::new(Arc::new(NullSessions), Arc::new(NoSecret));
    base.transport_config(Arc::default());
    let scheme = Choice::find("wise-start").expect("carried");
    let setup = ServerSetup::with_session_factory(base, Arc::new(NullSessions), scheme)
        .history(Arc::new(Sharded::new(10)))
        .seed(1);
    let client = ClientSetup::with_session_factory(Arc::new(NullSessions)).seed(1);
    let mut now = Instant::now();
    let (mut here, mut there) = (Side::new(None, SERVER), Side::new(Some(&setup), CLIENT));
    let (config, _) = client.configure(SERVER, "localhost");
    here.connection = here.endpoint.connect(now, config, SERVER, "localhost").ok();

    let mut input = input.iter().copied();
    let mut waiting = std::collections::VecDeque::new();
    let mut answers = false;
    for _ in 0..STEPS {
        waiting.extend(here.drive(now));
        waiting.truncate(4 * SENT);
        let Some((kind, operand)) = input.next().zip(input.next()) else { break };
        let step = match kind % 6 {
            0 => Step::Deliver,
            1 => Step::Drop,
            2 => Step::Change,
            3 => Step::Double,
            4 => Step::Inject,
            _ => Step::Wait,
        };
        let mut datagram = match step {
            Step::Inject | Step::Wait => None,
            _ => waiting.pop_front(),
        };
        match step {
            Step::Deliver => {}
            Step::Drop => datagram = None,
            Step::Change => {
                if let (Some(datagram), Some(value)) = (&mut datagram, input.next()) {
                    // Most of what is parsed is at the front.
                    let at = usize::from(operand) % datagram.len().max(1);
                    datagram[at] = value;
                }
            }
            Step::Double => {
                if let Some(datagram) = &datagram {
                    there.receive(now, &setup, datagram);
                }
            }
            Step::Inject => datagram = Some(input.by_ref().take(operand.into()).collect()),
            Step::Wait => now += Duration::from_micros(1 << (operand % 32)),
        }
        if let Some(datagram) = datagram {
            there.receive(now, &setup, &datagram);
        }
        if let Some((_, connection)) = &mut there.connection
            && !answers
            && !connection.is_handshaking()
            && let Some(stream) = connection.streams().open(Dir::Uni)
        {
            answers = true;
            write(connection, stream);
        }
        for datagram in there.drive(now) {
            here.receive(now, &setup, &datagram);
        }
    }
    // Silence ends it: the idle timeout, or the peer's.
    for _ in 0..1000 {
        let Some((_, connection)) = &mut there.connection else { return };
        if connection.is_drained() {
            return;
        }
        let Some(at) = connection.poll_timeout() else { break };
        now = now.max(at);
        there.drive(now);
    }
    let drained = there.connection.as_ref().is_none_or(|(_, connection)| connection.is_drained());
    assert!(drained, "a connection without a peer does not end");
});

fn write(connection: &mut Connection, stream: StreamId) {
    // As much as flow control and window take.
    let _ = connection.send_stream(stream).write(&[7; 100_000]);
    let _ = connection.send_stream(stream).finish();
}
