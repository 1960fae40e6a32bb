//! The same on a cluster of servers: all keys found, a slot that moves, nodes that are away.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use headstart_host::not_run;
use headstart_startup::history::{Record, RecordUpdate};
use headstart_store::Store;
use headstart_store::fleet::{Address, Fleet, Options, Remote, State};
use rustix::process::Signal;

use crate::common::{peer, record};
use crate::server::{FREE_PORT, Server, TIMEOUT, until};
use crate::{end, found, host_at, quick, visit};

struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Nodes with a third of the slots each; further ones have none.
    fn start(count: usize) -> Option<Self> {
        let start = |_| {
            Server::start(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                FREE_PORT,
                "--cluster-node-timeout",
                "2000",
                // Two thirds are better than nothing.
                "--cluster-require-full-coverage",
                "no",
                "--repl-diskless-sync-delay",
                "0",
            ])
        };
        let nodes: Option<Vec<Server>> = (0..count).map(start).collect();
        let Some(nodes) = nodes else {
            not_run("neither valkey-server nor redis-server is installed");
            return None;
        };
        let slots = ["0 5460", "5461 10922", "10923 16383"];
        for (number, node) in nodes.iter().enumerate() {
            assert_eq!(node.command(&format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1)), "+OK");
            if let Some(slots) = slots.get(number) {
                assert_eq!(node.command(&format!("CLUSTER ADDSLOTSRANGE {slots}")), "+OK");
            }
        }
        for node in &nodes[1..] {
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", node.port, node.option("--cluster-port"));
            assert_eq!(nodes[0].command(&meet), "+OK");
        }
        let cluster = Self { nodes };
        for node in &cluster.nodes {
            until("the nodes know each other and their slots", || {
                let told = |name| node.report("CLUSTER INFO", name);
                told("cluster_known_nodes:") == count.to_string()
                    && told("cluster_slots_assigned:") == "16384"
                    && told("cluster_state:") == "ok"
            });
        }
        Some(cluster)
    }

    /// An address with these nodes.
    fn url(&self, nodes: &[usize]) -> String {
        let hosts: Vec<String> =
            nodes.iter().map(|&it| format!("127.0.0.1:{}", self.nodes[it].port)).collect();
        format!("valkey+cluster://{}/", hosts.join(","))
    }

    fn host(&self, options: Options) -> Fleet {
        host_at(&self.url(&[0]), options)
    }

    /// The node that has a peer's slot at the beginning, and that slot.
    fn place(&self, peer: IpAddr) -> (usize, usize) {
        let told = self.nodes[0].command(&format!("CLUSTER KEYSLOT headstart:{{{peer}}}"));
        let slot: usize = told.trim_start_matches(':').parse().expect("a slot");
        ([5461, 10923, 16384].iter().position(|&end| slot < end).expect("a node"), slot)
    }

    /// Some of the peers whose slot a node has.
    fn peers_of(&self, node: usize, count: usize) -> Vec<IpAddr> {
        (0..).map(peer).filter(|peer| self.place(*peer).0 == node).take(count).collect()
    }

    fn errors(&self, code: &str) -> u64 {
        self.nodes.iter().map(|node| node.errors(code)).sum()
    }
}

/// The record of a peer as a host finds it that was not there before.
fn found_anew(url: &str, peer: IpAddr) -> Option<Record> {
    found(&host_at(url, quick()), peer).map(|known| known.record)
}

#[test]
fn a_cluster_is_one_history() {
    let Some(cluster) = Cluster::start(3) else { return };
    let one = cluster.host(quick());
    for number in 0..1000 {
        end(&one, peer(number), RecordUpdate::Replace(record(number.into())));
    }
    one.flush(TIMEOUT).expect("written");
    // The first node is away, the second one tells the others.
    let address = format!("valkey+cluster://127.0.0.1:1,127.0.0.1:{}/", cluster.nodes[2].port);
    let other = host_at(&address, quick());
    for number in 0..1000 {
        other.prefetch(peer(number));
    }
    other.flush(TIMEOUT).expect("answered");
    for number in 0..1000 {
        assert_eq!(other.peek(peer(number)), Some(record(number.into())));
    }
    assert_eq!((other.counters().asked, other.counters().found), (1000, 1000));
    let third = cluster.host(quick());
    assert_eq!(found(&third, peer(1)).map(|known| known.live), Some(1), "another host has the lease");
    assert_eq!(cluster.errors("MOVED"), 0, "each request went to the node that has its slot");
    for node in &cluster.nodes {
        let keys: usize = node.command("DBSIZE").trim_start_matches(':').parse().expect("a number");
        assert!(keys > 400, "{keys} of 2000 keys");
    }

    let address: Address = cluster.url(&[1]).parse().expect("an address");
    let mut remote = Remote::connect(&address, TIMEOUT).expect("it answers");
    let read = |remote: &mut Remote| {
        let mut found = BTreeMap::new();
        remote.records(&mut |peer, record| _ = found.insert(peer, record)).expect("read");
        found
    };
    let all: BTreeMap<IpAddr, Record> =
        (0..1000).map(|number| (peer(number), record(number.into()))).collect();
    assert_eq!(read(&mut remote), all);
    let more: Vec<_> = (2000..2500).map(|number| (peer(number), record(number.into()))).collect();
    remote.put(&more, Duration::from_secs(3600)).expect("written");
    remote.remove(&all.into_iter().collect::<Vec<_>>()).expect("removed");
    assert_eq!(read(&mut remote), more.into_iter().collect());

    // Its nodes are no servers of their own.
    let url = cluster.nodes[0].url();
    let refused =
        Remote::connect(&url.parse().expect("an address"), TIMEOUT).expect_err("a part").to_string();
    assert!(refused.contains("valkey+cluster://"), "{refused}");
    let plain = Fleet::open(url.parse().expect("an address"), quick()).expect("a thread");
    until("it is refused", || plain.counters().last_error.as_ref() == Some(&refused));
    assert_eq!(plain.counters().state, State::Away);
}

#[test]
fn slots_that_get_a_node_are_found_without_a_request() {
    let options = ["--cluster-enabled", "yes", "--cluster-port", FREE_PORT];
    let Some(server) = crate::server(&options) else { return };
    assert_eq!(server.command("CLUSTER ADDSLOTSRANGE 0 16382"), "+OK");
    let url = format!("valkey+cluster://127.0.0.1:{}/", server.port);
    let fleet = Fleet::open(url.parse().expect("an address"), quick()).expect("a thread");
    until("a slot has no node", || {
        fleet.counters().last_error.is_some_and(|told| told.contains("1 of 16384 slots have no node"))
    });
    assert_eq!(fleet.counters().state, State::Part);
    assert_eq!(server.command("CLUSTER ADDSLOTS 16383"), "+OK");
    until("the slot is found", || fleet.counters().state == State::Up);
}

#[test]
fn a_server_that_is_no_cluster_is_refused_as_one() {
    let Some(server) = crate::server(&[]) else { return };
    let url = format!("valkey+cluster://127.0.0.1:{}/", server.port);
    let fleet = Fleet::open(url.parse().expect("an address"), quick()).expect("a thread");
    until("it is refused", || {
        fleet.counters().last_error.is_some_and(|told| told.contains("cluster support disabled"))
    });
    assert_eq!(fleet.counters().state, State::Away);
}

#[test]
fn over_tls_the_nodes_have_the_names_and_the_password_of_the_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (ca, key, password) = (path("ca.pem"), path("key.pem"), path("password"));
    let ours = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    std::fs::write(&ca, ours.cert.pem()).expect("a file");
    std::fs::write(&key, ours.signing_key.serialize_pem()).expect("a file");
    std::fs::write(&password, "secret").expect("a file");
    let clustered = ["--cluster-enabled", "yes", "--cluster-port", FREE_PORT];
    let Some(mut server) = Server::start_in(folder, &clustered, false) else {
        return not_run("neither valkey-server nor redis-server is installed");
    };
    // It remembers them.
    assert_eq!(server.command("CLUSTER ADDSLOTSRANGE 0 16383"), "+OK");
    server.kill();
    let folder = std::mem::replace(&mut server.folder, tempfile::tempdir().expect("a folder"));
    let tls =
        ["--tls-cluster", "yes", "--tls-cert-file", &ca, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
    let others = ["--tls-auth-clients", "no", "--requirepass", "secret"];
    let options = [&clustered[..], &tls, &others].concat();
    let server = Server::start_in(folder, &options, true).expect("installed");
    let url = format!("valkeys+cluster://localhost:{}/?ca={ca}&password-file={password}", server.port);
    let fleet = host_at(&url, quick());
    visit(&fleet, peer(1), RecordUpdate::Replace(record(1)));
    fleet.flush(TIMEOUT).expect("written");
    assert_eq!(found_anew(&url, peer(1)), Some(record(1)));
}

#[test]
fn a_slot_that_moves_is_followed() {
    let Some(cluster) = Cluster::start(3) else { return };
    let url = cluster.url(&[0]);
    let peer = peer(1);
    let (from, slot) = cluster.place(peer);
    let to = (from + 1) % 3;
    let (source, target) = (&cluster.nodes[from], &cluster.nodes[to]);
    let one = cluster.host(quick());
    visit(&one, peer, RecordUpdate::Replace(record(1)));
    one.flush(TIMEOUT).expect("written");
    // It knows the slots as they are now.
    let early = cluster.host(quick());

    let (source_id, target_id) = (source.text("CLUSTER MYID"), target.text("CLUSTER MYID"));
    assert_eq!(target.command(&format!("CLUSTER SETSLOT {slot} IMPORTING {source_id}")), "+OK");
    assert_eq!(source.command(&format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}")), "+OK");
    assert_eq!(found_anew(&url, peer), Some(record(1)), "the record is still there, its lease is nowhere");
    assert!(cluster.errors("TRYAGAIN") > 0);
    let moved = source.command(&format!("MIGRATE 127.0.0.1 {} headstart:{{{peer}}} 0 1000", target.port));
    assert_eq!(moved, "+OK");
    assert_eq!(found_anew(&url, peer), Some(record(1)), "the record is at the new node");
    assert!(cluster.errors("ASK") > 0);
    visit(&one, peer, RecordUpdate::Replace(record(2)));
    one.flush(TIMEOUT).expect("written where the slot goes");
    assert_eq!(found_anew(&url, peer), Some(record(2)));

    for node in [target, source] {
        assert_eq!(node.command(&format!("CLUSTER SETSLOT {slot} NODE {target_id}")), "+OK");
    }
    assert_eq!(cluster.errors("MOVED"), 0);
    assert_eq!(found(&early, peer).map(|known| known.record), Some(record(2)), "followed");
    assert_eq!(cluster.errors("MOVED"), 1);
    visit(&early, peer, RecordUpdate::Replace(record(3)));
    early.flush(TIMEOUT).expect("written");
    assert_eq!(cluster.errors("MOVED"), 1, "remembered");
    until("all nodes know", || found_anew(&url, peer) == Some(record(3)));
    for host in [&one, &early] {
        assert_eq!((host.counters().failures, host.counters().state), (0, State::Up));
    }
}

#[test]
fn the_other_nodes_go_on_without_one_that_is_killed_or_hangs() {
    let Some(mut cluster) = Cluster::start(3) else { return };
    let peers: Vec<Vec<IpAddr>> = (0..3).map(|node| cluster.peers_of(node, 40)).collect();
    let fleet = cluster.host(quick());
    cluster.nodes[1].kill();
    for (number, peer) in peers.iter().flatten().enumerate() {
        visit(&fleet, *peer, RecordUpdate::Replace(record(number as u64)));
    }
    until("it is missed", || fleet.counters().state == State::Part);
    until("the rest is written", || fleet.counters().written == 80);
    let counters = fleet.counters();
    assert!(
        counters.waiting == 40 && counters.failures == 1 && counters.last_error.is_some(),
        "{counters:?}"
    );
    assert_eq!((counters.lost, counters.refused), (0, 0), "{counters:?}");
    // A host that begins now reaches the others as well.
    let late = Fleet::open(cluster.url(&[1, 2]).parse().expect("an address"), quick()).expect("a thread");
    until("a part is reached", || late.counters().state == State::Part);
    for (node, number) in [(0, 3), (1, 43), (2, 83)] {
        late.prefetch(peers[node][3]);
        until("there is an answer or none will come", || {
            late.counters().asked + late.counters().skipped > node as u64
        });
        let expected = (node != 1).then(|| record(number));
        assert_eq!(late.peek(peers[node][3]), expected, "{:?}", late.counters());
    }

    assert!(cluster.nodes[1].restart(), "the port is free again");
    until("it is found", || fleet.counters().state == State::Up && late.counters().state == State::Up);
    fleet.flush(TIMEOUT).expect("caught up");
    assert_eq!(found(&late, peers[1][7]).map(|known| known.record), Some(record(47)));

    cluster.nodes[2].signal(Signal::STOP);
    // If one of these waited for an answer, this would not end.
    for number in 0..20_000 {
        visit(&fleet, peers[2][number % 40], RecordUpdate::Replace(record(1000 + number as u64)));
    }
    until("it counts as away", || fleet.counters().state == State::Part);
    for (number, peer) in peers[0].iter().enumerate() {
        let before = fleet.counters().written;
        visit(&fleet, *peer, RecordUpdate::Replace(record(2000 + number as u64)));
        if number % 10 == 0 {
            until("another node's record is written", || fleet.counters().written > before);
        }
    }
    cluster.nodes[2].signal(Signal::CONT);
    until("it is found again", || fleet.counters().state == State::Up);
    fleet.flush(TIMEOUT).expect("caught up");
    assert_eq!(found_anew(&cluster.url(&[0]), peers[2][39]), Some(record(20_999)));
}

#[test]
fn a_replica_that_takes_over_is_found() {
    let Some(mut cluster) = Cluster::start(4) else { return };
    let peers = cluster.peers_of(0, 20);
    let (master, replica) = (cluster.nodes[0].text("CLUSTER MYID"), &cluster.nodes[3]);
    assert_eq!(replica.command(&format!("CLUSTER REPLICATE {master}")), "+OK");
    until("it has all", || replica.report("INFO replication", "master_link_status:") == "up");
    let fleet = host_at(&cluster.url(&[1]), quick());
    for (number, peer) in peers.iter().enumerate() {
        visit(&fleet, *peer, RecordUpdate::Replace(record(number as u64)));
    }
    fleet.flush(TIMEOUT).expect("written");
    let copied = |name| cluster.nodes[0].report("INFO replication", name);
    until("it has those as well", || {
        let written = copied("master_repl_offset:");
        copied("slave0:").contains(&format!("offset={written},"))
    });
    cluster.nodes[0].kill();
    visit(&fleet, peers[1], RecordUpdate::Replace(record(100)));
    until("it is missed", || fleet.counters().state == State::Part);
    assert_eq!(cluster.nodes[3].command("CLUSTER FAILOVER TAKEOVER"), "+OK");
    until("the other one is found", || fleet.counters().state == State::Up);
    fleet.flush(TIMEOUT).expect("caught up");
    let late = host_at(&cluster.url(&[2]), quick());
    let records = [0, 1, 19].map(|at| found(&late, peers[at]).map(|known| known.record));
    assert_eq!(records, [0, 100, 19].map(|number| Some(record(number))));
}
