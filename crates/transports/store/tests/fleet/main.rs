//! One history for several hosts, against a real server: found, away, killed, hung, full.

#[path = "../common/mod.rs"]
mod common;
mod server;

use std::net::IpAddr;
use std::sync::mpsc;
use std::time::Duration;

use common::{EPOCH, peer, record};
use headstart_host::{Stopwatch, not_run};
use headstart_startup::history::{Record, RecordUpdate, SharedRecord};
use headstart_store::Store;
use headstart_store::fleet::{Address, Fleet, Options, Remote, State};
use headstart_units::{Rate, Span, Time};
use rustix::process::Signal;
use server::{Server, TIMEOUT, until};

fn server(options: &[&str]) -> Option<Server> {
    let server = Server::start(options);
    if server.is_none() {
        not_run("neither valkey-server nor redis-server is installed");
    }
    server
}

fn quick() -> Options {
    Options { interval: Duration::from_millis(20), timeout: Duration::from_millis(500), ..Options::default() }
}

fn host(server: &Server, options: Options) -> Fleet {
    host_at(&server.url(), options)
}

fn host_at(url: &str, options: Options) -> Fleet {
    let fleet = Fleet::open(url.parse().expect("an address"), options).expect("a thread");
    until("the server is reached", || fleet.counters().state == State::Up);
    fleet
}

/// A connection whose packets come too fast for the server's answer.
fn visit(fleet: &Fleet, peer: IpAddr, outcome: RecordUpdate) -> Option<SharedRecord> {
    fleet.prefetch(peer);
    end(fleet, peer, outcome)
}

fn end(fleet: &Fleet, peer: IpAddr, outcome: RecordUpdate) -> Option<SharedRecord> {
    let (known, lease) = fleet.open(peer);
    fleet.close(lease, outcome);
    known
}

/// The record that a connection finds whose handshake is long enough.
fn found(fleet: &Fleet, peer: IpAddr) -> Option<SharedRecord> {
    fleet.prefetch(peer);
    fleet.flush(TIMEOUT).expect("answered");
    let (known, lease) = fleet.open(peer);
    fleet.close(lease, RecordUpdate::Keep);
    known
}

#[test]
fn what_one_host_measured_another_one_starts_from() {
    let Some(server) = server(&[]) else { return };
    let (one, other) = (host(&server, quick()), host(&server, quick()));
    for number in 0..1000 {
        end(&one, peer(number), RecordUpdate::Replace(record(number.into())));
    }
    one.flush(TIMEOUT).expect("written");
    for number in 0..1000 {
        let known = found(&other, peer(number)).expect("it is there");
        assert_eq!(known, SharedRecord { record: record(number.into()), live: 0 });
    }
    let counters = other.counters();
    assert_eq!((counters.asked, counters.found, counters.late), (1000, 1000, 0), "{counters:?}");
    assert_eq!(found(&other, peer(1001)), None, "nobody was there");
}

#[test]
fn hosts_that_start_to_one_peer_at_once_know_of_each_other_for_the_time_of_a_lease() {
    let Some(server) = server(&[]) else { return };
    let hosts: Vec<Fleet> = (0..3).map(|_| host(&server, quick())).collect();
    visit(&hosts[0], peer(1), RecordUpdate::Replace(plausible(1)));
    hosts[0].flush(TIMEOUT).expect("written");
    let live = |host: &Fleet| found(host, peer(1)).expect("it is there").live;
    assert_eq!(live(&hosts[1]), 0, "the first to ask has it");
    assert_eq!((live(&hosts[2]), live(&hosts[0])), (1, 1), "the others share it");
    let began = Stopwatch::start();
    until("the lease ends", || live(&hosts[2]) == 0);
    assert!(began.elapsed() < Duration::from_secs(2), "it lasts eight round trips of 50 ms");
    assert!(hosts[2].counters().leased >= 1);
}

#[test]
fn the_newest_record_wins_whichever_host_writes_last() {
    let Some(server) = server(&[]) else { return };
    let (one, other) = (host(&server, quick()), host(&server, quick()));
    for (host, number) in [(&one, 2000), (&other, 1000)] {
        visit(host, peer(1), RecordUpdate::Replace(record(number)));
        host.flush(TIMEOUT).expect("written");
    }
    let third = host(&server, quick());
    assert_eq!(found(&third, peer(1)).map(|known| known.record), Some(record(2000)));
}

/// A record of a path that exists.
fn plausible(number: u64) -> Record {
    Record { btl_bw: Rate::from_mbit_per_sec(25), rt_prop: Span::from_millis(50), ..record(number) }
}

#[test]
fn a_record_that_misled_one_host_starts_nothing_on_any() {
    let Some(server) = server(&[]) else { return };
    let options = Options { lease: Duration::from_millis(1), ..quick() };
    let (one, other) = (host(&server, options), host(&server, options));
    visit(&one, peer(1), RecordUpdate::Replace(plausible(1)));
    one.flush(TIMEOUT).expect("written");
    assert!(found(&other, peer(1)).is_some_and(|known| known.record.bdp().is_some()));
    visit(&one, peer(1), RecordUpdate::Remove);
    one.flush(TIMEOUT).expect("written");
    until("the other host forgets it", || {
        found(&other, peer(1)).is_some_and(|known| known.record.bdp().is_none())
    });
    // A newer measurement counts again.
    visit(&other, peer(1), RecordUpdate::Replace(plausible(1000)));
    other.flush(TIMEOUT).expect("written");
    until("the first one has it", || {
        found(&one, peer(1)).is_some_and(|known| known.record == plausible(1000))
    });
}

/// A table of the kernel's TCP, say.
#[test]
fn a_table_beside_it_gets_the_records_of_other_hosts_and_gives_its_own() {
    let Some(server) = server(&[]) else { return };
    let (tells, messages) = mpsc::channel();
    let url = server.url().parse().expect("an address");
    let tell = move |peer, record: &Record| tells.send((peer, *record)).expect("a reader");
    let (one, other) = (host(&server, quick()), Fleet::open_with(url, quick(), tell).expect("a thread"));
    until("the server is reached", || other.counters().state == State::Up);
    let lookup = |number| {
        other.prefetch(peer(number));
        other.flush(TIMEOUT).expect("answered");
        messages.try_iter().collect::<Vec<_>>()
    };
    assert_eq!(lookup(1), [], "nobody was there");

    other.put(peer(1), plausible(1));
    other.flush(TIMEOUT).expect("written");
    assert_eq!(found(&one, peer(1)).map(|known| known.record), Some(plausible(1)));
    assert_eq!(lookup(1), [], "the other host has the lease");
    until("the lease ends", || lookup(1) == [(peer(1), plausible(1))]);

    other.drop_record(peer(1), plausible(1000).saved_at);
    other.flush(TIMEOUT).expect("written");
    until("the other host forgets it", || {
        found(&one, peer(1)).is_some_and(|known| known.record.bdp().is_none())
    });
    until("so does the table", || lookup(1).iter().any(|(_, record)| record.btl_bw.is_zero()));
    other.put(peer(1), plausible(2000));
    other.flush(TIMEOUT).expect("written");
    until("a newer one counts again", || {
        found(&one, peer(1)).is_some_and(|known| known.record == plausible(2000))
    });
}

#[test]
fn many_connections_of_a_peer_are_few_writes() {
    let Some(server) = server(&[]) else { return };
    let fleet = host(&server, Options { interval: Duration::from_secs(1), ..quick() });
    for number in 0..10_000 {
        visit(&fleet, peer(number % 10), RecordUpdate::Replace(record(number.into())));
    }
    fleet.flush(TIMEOUT).expect("written");
    let counters = fleet.counters();
    assert!(counters.written < 1000, "{counters:?}");
    assert_eq!(found(&host(&server, quick()), peer(9)).map(|known| known.record), Some(record(9999)));
}

#[test]
fn a_server_that_is_killed_and_comes_back_empty_gets_what_is_measured_and_what_is_asked_for() {
    let Some(mut server) = server(&[]) else { return };
    let fleet = host(&server, quick());
    for number in 0..500 {
        visit(&fleet, peer(number), RecordUpdate::Replace(record(number.into())));
        if number == 250 {
            fleet.flush(TIMEOUT).expect("written");
            server.kill();
        }
    }
    // Starts go on from the local table.
    assert_eq!(visit(&fleet, peer(7), RecordUpdate::Keep).map(|known| known.record), Some(record(7)));
    until("it is missed", || fleet.counters().state == State::Away);
    let counters = fleet.counters();
    assert!(counters.failures > 0 && counters.last_error.is_some(), "{counters:?}");
    visit(&fleet, peer(1), RecordUpdate::Keep);
    assert!(fleet.counters().skipped > 0, "nobody is asked in vain");
    assert!(fleet.counters().waiting >= 249, "{:?}", fleet.counters());

    assert!(server.restart(), "the port is free again");
    until("it is found", || fleet.counters().state == State::Up);
    fleet.flush(TIMEOUT).expect("caught up");
    let other = host(&server, quick());
    for number in 251..500 {
        assert_eq!(found(&other, peer(number)).map(|known| known.record), Some(record(number.into())));
    }
    // A record from before is written again when its peer comes back.
    assert_eq!(found(&other, peer(3)), None);
    found(&fleet, peer(3));
    fleet.flush(TIMEOUT).expect("written");
    assert_eq!(found(&other, peer(3)).map(|known| known.record), Some(record(3)));
}

#[test]
fn connections_do_not_wait_for_a_server_that_hangs() {
    let Some(server) = server(&[]) else { return };
    let fleet = host(&server, quick());
    visit(&fleet, peer(1), RecordUpdate::Replace(record(1)));
    fleet.flush(TIMEOUT).expect("written");
    server.signal(Signal::STOP);
    // If one of these waited for an answer, this would not end.
    for number in 0..20_000 {
        visit(&fleet, peer(number), RecordUpdate::Replace(record(u64::from(number) + 2)));
    }
    until("it counts as away", || fleet.counters().state == State::Away);
    let counters = fleet.counters();
    assert!(counters.late + counters.skipped >= 19_000, "{counters:?}");
    assert!(fleet.flush(Duration::from_millis(200)).is_err(), "nothing can be written");
    server.signal(Signal::CONT);
    until("it is found again", || fleet.counters().state == State::Up);
    fleet.flush(TIMEOUT).expect("caught up");
    let known = found(&host(&server, quick()), peer(19_999));
    assert_eq!(known.map(|known| known.record), Some(record(20_001)));
}

#[test]
fn a_server_that_is_full_is_told_from_one_that_is_away_and_gets_the_rest_later() {
    let Some(server) = server(&["--maxmemory-policy", "noeviction"]) else { return };
    let fleet = host(&server, quick());
    visit(&fleet, peer(1), RecordUpdate::Replace(record(1)));
    fleet.flush(TIMEOUT).expect("written");
    assert_eq!(server.command("CONFIG SET maxmemory 1"), "+OK");
    visit(&fleet, peer(2), RecordUpdate::Replace(record(2)));
    until("it is full", || fleet.counters().state == State::Full);
    let counters = fleet.counters();
    assert!(counters.refused > 0 && counters.waiting == 1, "{counters:?}");
    let reader = host(&server, quick());
    assert_eq!(found(&reader, peer(1)).map(|known| known.record), Some(record(1)), "it still answers");
    assert_eq!(server.command("CONFIG SET maxmemory 0"), "+OK");
    until("the rest is written", || fleet.flush(TIMEOUT).is_ok());
    assert_eq!(fleet.counters().state, State::Up);
    assert_eq!(found(&reader, peer(2)).map(|known| known.record), Some(record(2)));
}

#[test]
fn what_others_put_there_is_no_record() {
    let Some(server) = server(&[]) else { return };
    let fleet = host(&server, quick());
    for (number, value) in ["garbage", &"x".repeat(64), &"x".repeat(50_000)].iter().enumerate() {
        let peer = peer(2 * number as u32);
        assert_eq!(server.command(&format!("SET headstart:{{{peer}}} {value}")), "+OK");
        assert_eq!(found(&fleet, peer), None);
    }
    assert_eq!(fleet.counters().damaged, 3);
    assert_eq!(server.command("LPUSH headstart:{10.0.0.8} 1"), ":1");
    fleet.prefetch(peer(8));
    until("an answer", || fleet.flush(Duration::from_millis(100)).is_ok());
    assert_eq!(fleet.peek(peer(8)), None);
    // Nor does it keep the records of others from being written.
    for number in [8, 9] {
        visit(&fleet, peer(number), RecordUpdate::Replace(record(1)));
    }
    fleet.flush(TIMEOUT).expect("written");
    let counters = fleet.counters();
    assert_eq!((counters.failures, counters.waiting), (0, 0), "{counters:?}");
    assert!(counters.damaged >= 5, "{counters:?}");
    assert_eq!(found(&host(&server, quick()), peer(9)).map(|known| known.record), Some(record(1)));
    assert_eq!(server.command("LLEN headstart:{10.0.0.8}"), ":1", "it is left as it is");
}

#[test]
fn a_password_opens_it_and_a_wrong_one_is_reported() {
    let Some(server) = server(&["--requirepass", "secret"]) else { return };
    let file = server.folder.path().join("password");
    std::fs::write(&file, "secret\n").expect("a file");
    let fleet = host_at(&format!("{}?password-file={}", server.url(), file.display()), quick());
    visit(&fleet, peer(1), RecordUpdate::Replace(record(1)));
    fleet.flush(TIMEOUT).expect("written");

    let url = format!("valkey://:wrong@127.0.0.1:{}/", server.port);
    let address: Address = url.parse().expect("an address");
    assert!(!format!("{address} {address:?}").contains("wrong"), "{address:?}");
    let refused = Fleet::open(address, quick()).expect("a thread");
    until("it is refused", || refused.counters().last_error.is_some());
    let error = refused.counters().last_error.expect("one");
    assert!(!error.contains("wrong@") && refused.counters().state == State::Away, "{error}");
}

#[test]
fn over_tls_only_a_certificate_that_is_trusted_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let make = |names: &[&str]| {
        rcgen::generate_simple_self_signed(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
            .expect("made")
    };
    let (ours, others) = (make(&["localhost", "127.0.0.1"]), make(&["localhost"]));
    let (ca, key, foreign) = (path("ca.pem"), path("key.pem"), path("foreign.pem"));
    std::fs::write(&ca, ours.cert.pem()).expect("a file");
    std::fs::write(&key, ours.signing_key.serialize_pem()).expect("a file");
    std::fs::write(&foreign, others.cert.pem()).expect("a file");
    let options = ["--tls-cert-file", &ca, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let Some(server) = Server::start_in(folder, &options, true) else {
        return not_run("neither valkey-server nor redis-server is installed");
    };
    let url = format!("valkeys://localhost:{}/", server.port);
    let fleet = host_at(&format!("{url}?ca={ca}&prefix=test:"), quick());
    visit(&fleet, peer(1), RecordUpdate::Replace(record(1)));
    fleet.flush(TIMEOUT).expect("written");
    let refused =
        Fleet::open(format!("{url}?ca={foreign}").parse().expect("an address"), quick()).expect("a thread");
    until("it is refused", || refused.counters().last_error.is_some());
    assert_eq!(refused.counters().state, State::Away);
}

#[test]
fn a_command_reads_writes_and_prunes_what_hosts_share() {
    let Some(server) = server(&[]) else { return };
    let address: Address = server.url().parse().expect("an address");
    let mut remote = Remote::connect(&address, TIMEOUT).expect("it answers");
    assert_eq!(remote.records(&mut |_, _| ()).expect("of an empty server"), 0);
    let all: Vec<(IpAddr, Record)> = (0..2500).map(|number| (peer(number), record(number.into()))).collect();
    remote.put(&all, Duration::from_secs(3600)).expect("written");
    assert_eq!(server.command("SET headstart:{nobody} 1"), "+OK");
    assert_eq!(server.command("SET other 1"), "+OK");
    let read = |remote: &mut Remote| {
        let mut found = std::collections::BTreeMap::new();
        let damaged = remote.records(&mut |peer, record| _ = found.insert(peer, record)).expect("read");
        assert_eq!(damaged, 1, "what is no record is counted");
        found
    };
    assert_eq!(read(&mut remote), all.iter().copied().collect());
    let old: Vec<_> = all[..1000].to_vec();
    // Written anew since: stays.
    let newer = Record { saved_at: Time::from_nanos(EPOCH + 1_000_000), ..record(7) };
    remote.put(&[(peer(7), newer)], Duration::from_secs(3600)).expect("written");
    remote.remove(&old).expect("removed");
    let left = read(&mut remote);
    assert_eq!((left.len(), left.get(&peer(7))), (1501, Some(&newer)));
}

#[test]
fn addresses_that_cannot_be_are_refused_with_what_is_expected() {
    for (text, expected) in [
        ("http://localhost/", "valkey://localhost:6379/"),
        ("valkey://", "valkey://localhost:6379/"),
        ("valkey://user:secret@/", "valkey://localhost:6379/"),
        ("valkeys://localhost:6379/#insecure", "valkey://localhost:6379/"),
        ("valkey://localhost/nine", "valkey://localhost:6379/"),
        ("valkey://localhost/?speed=9", "password-file"),
        ("valkey://localhost/?prefix={", "prefix"),
        ("valkeys://localhost/?key=/dev/null", "both or none"),
        ("valkey://one:6379,other:6379/", "found a cluster or several servers"),
        ("valkey+cluster://user:secret@one,other/", "one server, such as `valkey://localhost:6379/`"),
        ("valkey://localhost/?password-file=/nowhere", "/nowhere"),
    ] {
        let refused = text.parse::<Address>().expect_err(text).to_string();
        assert!(refused.contains(expected) && !refused.contains("secret"), "{text}: {refused}");
    }
}

#[test]
fn a_node_of_a_cluster_is_refused() {
    let Some(server) = server(&["--cluster-enabled", "yes"]) else { return };
    let address = server.url().parse().expect("an address");
    let error = Remote::connect(&address, TIMEOUT).expect_err("it has a part of the peers").to_string();
    assert!(error.contains("found a node of a cluster, expected a server of its own"), "{error}");
}

#[test]
fn a_host_without_its_server_is_a_history_in_memory() {
    let fleet = Fleet::open(
        "valkey://127.0.0.1:1/".parse().expect("an address"),
        Options { capacity: 100, ..quick() },
    )
    .expect("a thread");
    for number in 0..1000 {
        visit(&fleet, peer(number), RecordUpdate::Replace(record(number.into())));
    }
    let counters = fleet.counters();
    assert_eq!(visit(&fleet, peer(999), RecordUpdate::Keep).map(|known| known.record), Some(record(999)));
    assert_eq!((fleet.local().len(), counters.waiting, counters.lost), (100, 100, 900), "{counters:?}");
    assert_eq!(counters.state, State::Away);
}
