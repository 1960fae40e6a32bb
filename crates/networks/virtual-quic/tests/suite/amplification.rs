//! A forged address receives at most three times the bytes sent in its name (RFC 9000 §8.1), with
//! every scheme. There is a record of that address, a large hint, and an application that writes
//! its answer before the address is validated.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use headstart_quic::copies::{Duplicate, DuplicateSender};
use headstart_quic::store::client_key;
use headstart_quic::{Access, Choice, ClientSetup, Gates, Handle, Hint, ServerSetup, Sharded, Store};
use headstart_startup::history::{Record, RecordUpdate};
use headstart_units::{Bytes, Rate, Span};
use headstart_virtual_quic::Identity;
use headstart_virtual_quic::null::NoSecret;
use noq_proto::{Connection, DatagramEvent, Dir, Endpoint, EndpointConfig, FourTuple};

const VICTIM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 40_000);
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)), 443);
/// Datagrams in the victim's name: the ClientHello and its retransmissions.
const FORGED: usize = 5;

const RECORDED: Rate = Rate::from_mbit_per_sec(1_000);

/// Counts the bytes of copies: they bypass the stack's own accounts.
#[derive(Debug, Default)]
struct Copies(AtomicU64);

impl DuplicateSender for Copies {
    fn send(&self, copy: Duplicate) {
        self.0.fetch_add(copy.contents.len() as u64, Ordering::Relaxed);
    }
}

/// A server that has every reason for a large first flight.
fn server(scheme: Choice, copies: &Arc<Copies>, store: &Arc<Sharded>) -> ServerSetup {
    let tls = Identity::shared().and_then(Identity::server).expect("a certificate");
    let crypto = noq_proto::crypto::rustls::QuicServerConfig::try_from(Arc::clone(&tls)).expect("for QUIC");
    let base = noq_proto::ServerConfig::new(Arc::new(crypto), Arc::new(NoSecret));
    let (_, lease) = store.open(client_key(VICTIM.ip()));
    let record = Record {
        saved_at: headstart_host::unix_now(),
        btl_bw: RECORDED,
        rt_prop: Span::from_millis(1),
        window: Bytes::new(1_000_000),
        credit: Bytes::new(1_000_000),
        ..Record::default()
    };
    store.close(lease, RecordUpdate::Replace(record));
    let copies = Arc::clone(copies) as Arc<dyn DuplicateSender>;
    let setup = ServerSetup::new(base, tls, scheme).expect("TLS for QUIC");
    setup.history(Arc::clone(store) as Arc<dyn Store>).gates(Gates::OPEN).duplicate_sender(copies)
}

fn endpoint(server: Option<&ServerSetup>) -> Endpoint {
    let server = server.map(|setup| Arc::new(setup.stack_config().clone()));
    Endpoint::new(Arc::new(EndpointConfig::new(Arc::new(NoSecret))), server, true)
}

/// The datagrams of a client that is never answered.
fn forged(start: Instant) -> Vec<(Duration, BytesMut)> {
    let tls = Identity::shared().and_then(Identity::client).expect("a certificate");
    let hint = Hint { bandwidth: Rate::from_mbit_per_sec(1_000), access: Access::Cable };
    let setup = ClientSetup::new(tls).expect("TLS for QUIC").exact_hint(hint);
    let (config, _) = setup.configure(SERVER, "localhost");
    let (_, mut client) = endpoint(None).connect(start, config, SERVER, "localhost").expect("begins");
    let (mut now, mut sent) = (start, vec![]);
    while sent.len() < FORGED {
        let mut buffer = vec![];
        if let Some(transmit) = client.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
            sent.push((now - start, BytesMut::from(&buffer[..transmit.size])));
        } else {
            now = client.poll_timeout().expect("it tries again");
            client.handle_timeout(now);
        }
    }
    sent
}

/// Bytes that the victim receives, after those sent in its name up to then.
fn received(scheme: Choice) -> Vec<(u64, u64)> {
    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made in any other way")]
    let start = Instant::now();
    let copies = Arc::new(Copies::default());
    let store = Arc::new(Sharded::new(10));
    let setup = server(scheme, &copies, &store);
    let mut endpoint = endpoint(Some(&setup));
    let mut connection: Option<(noq_proto::ConnectionHandle, Connection, Handle)> = None;
    let (mut paid, mut answered, mut accounts) = (0, 0, vec![]);
    let mut forged = forged(start).into_iter().peekable();
    let end = start + Duration::from_secs(25);
    let mut now = start;
    while now < end {
        while let Some((_, datagram)) = forged.next_if(|(at, _)| start + *at <= now) {
            paid += datagram.len() as u64;
            let mut answer = vec![];
            let from = FourTuple::new(VICTIM, Some(SERVER.ip()));
            match endpoint.handle(now, from, None, datagram, &mut answer) {
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let (config, handle) =
                        setup.configure(VICTIM, Some(SERVER.ip()), incoming.orig_dst_cid());
                    let accepted = endpoint.accept(incoming, now, &mut answer, Some(config));
                    let Ok((id, mut accepted)) = accepted else { panic!("{}: not accepted", scheme.name()) };
                    handle.expect(500_000);
                    let stream = accepted.streams().open(Dir::Uni).expect("the client allows streams");
                    accepted.send_stream(stream).write(&[7; 500_000]).expect("there is room");
                    connection = Some((id, accepted, handle));
                }
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    connection.as_mut().expect("accepted").1.handle_event(event);
                }
                Some(DatagramEvent::Response(transmit)) => answered += transmit.size as u64,
                None => {}
            }
        }
        let (id, connection, _) = connection.as_mut().expect("the first datagram makes one");
        connection.handle_timeout(now);
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = endpoint.handle_event(*id, event) {
                connection.handle_event(answer);
            }
        }
        let mut buffer = vec![];
        while let Some(transmit) = connection.poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
            assert_eq!(transmit.destination, VICTIM);
            answered += transmit.size as u64;
            buffer.clear();
        }
        accounts.push((paid, answered + copies.0.load(Ordering::Relaxed)));
        let next = forged.peek().map(|(at, _)| start + *at).into_iter().chain(connection.poll_timeout());
        now = next.min().unwrap_or(end).max(now + Duration::from_micros(1));
    }
    drop(connection);
    let (known, _lease) = store.open(client_key(VICTIM.ip()));
    let known = known.expect("its record is still there");
    assert_eq!((known.live, known.record.btl_bw), (0, RECORDED), "nobody began from the victim's record");
    accounts
}

#[test]
fn a_forged_address_receives_at_most_three_times_what_was_sent_in_its_name() {
    for scheme in Choice::all() {
        let accounts = received(scheme);
        for (paid, answered) in &accounts {
            assert!(*answered <= 3 * paid, "{}: {answered} bytes for {paid}", scheme.name());
        }
        let (paid, answered) = accounts.last().expect("it ran");
        println!("{}: {answered} bytes for {paid}", scheme.name());
        assert!(*paid >= 1_200 * FORGED as u64, "{}: {paid}", scheme.name());
        assert!(
            2 * answered > 3 * paid,
            "{}: {answered} for {paid}: the limit is not reached",
            scheme.name()
        );
    }
}
