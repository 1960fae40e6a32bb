//! Behaviour relied upon that the stack does not document: a version that changes it fails here.
//!
//! - A packet is encrypted by `PacketKey::encrypt` and right after it by `HeaderKey::encrypt`, over
//!   the whole packet: the tap retains exactly the bytes sent.
//! - `metrics()` is read for every packet: WiseStart's paces in `first_flight.rs` depend on it.
//! - The pacer keeps an explicit rate (not so before 1.2.0), and its bucket holds 10 ms of it:
//!   `first_flight.rs`.
//! - `on_packet_sent` follows the encryption: the last key used identifies the packet number space.
//! - A second `build`, or an event for a clone, means that the path has changed.
//!
//! Not relied upon: that acks of handshake packets come first. They differ by number and time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use headstart_sim::peer_address;
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use headstart_virtual_quic::{ConnectionOutcome, Scenario};

/// An address of TEST-NET-2 (RFC 5737).
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9));

fn scenario(size: u64) -> Scenario {
    let rate = Rate::from_mbit_per_sec(25);
    Scenario::new(rate, Span::from_millis(50), Packets::new(104), Bytes::new(size)).with_record(1, 1)
}

fn run(scenario: &Scenario, scheme: &str) -> ConnectionOutcome {
    let outcome = scenario.run(scheme).expect("it can be played").remove(0);
    assert!(outcome.completed.is_some(), "{scheme}: {}", outcome.report);
    outcome
}

#[test]
fn every_copy_equals_an_earlier_datagram() {
    for (scheme, forced_losses) in
        [("halfback", vec![]), ("halfback", (40..70).collect()), ("proactive", vec![7, 8, 9])]
    {
        let outcome = run(&Scenario { forced_losses, ..scenario(100_000) }, scheme);
        assert!(outcome.report.tally.copies > 0, "{scheme}");
        assert_eq!(outcome.unmatched_copies, 0, "{scheme}");
        assert!(outcome.is_ecn_on, "{scheme}: copies must not look like bleaching");
    }
}

#[test]
fn bytes_are_counted_as_the_stack_counts_them() {
    for scheme in ["iw10", "s-cubic", "halfback"] {
        let outcome = run(&scenario(300_000), scheme);
        let data = outcome.departures.iter().filter(|it| it.is_data && !it.is_copy && it.bytes.get() > 300);
        let left: Bytes = data.map(|it| it.bytes).sum();
        let sent = outcome.report.tally.sent;
        assert!(sent.get().abs_diff(left.get()) < 2_500, "{scheme}: {sent:?} of {left:?}");
    }
}

/// During the flow its client migrates to another port, or to another address.
#[test]
fn after_a_migration_no_copy_is_sent_and_no_record_stored() {
    for address in [peer_address(0), ELSEWHERE] {
        let migrations = Some((Time::from_millis(140), SocketAddr::new(address, 5_555)));
        for scheme in ["halfback", "proactive", "wise-start"] {
            let mut scenario = scenario(600_000);
            scenario.transfer.migrations = migrations;
            let outcome = run(&scenario, scheme);
            assert!(outcome.report.migrated, "{scheme} to {address}");
            assert_eq!(outcome.stray_copies, 0, "{scheme} to {address}");
            assert!(outcome.report.to_string().contains(" record=nothing "), "{scheme}: {}", outcome.report);
        }
    }
}

/// Packets that leave between two times in ms, of a migration to `address` at 200 ms, and the
/// report's word for the start there. `also` is an address with a record.
fn moved(address: IpAddr, also: Option<IpAddr>, [from, to]: [u64; 2]) -> (usize, String) {
    let mut scenario = Scenario { also, ..scenario(2_000_000) };
    scenario.transfer.migrations = Some((Time::from_millis(200), SocketAddr::new(address, 5_555)));
    let outcome = run(&scenario, "s-cubic");
    let report = outcome.report.to_string();
    let word = report.split(" restarted=").nth(1).and_then(|rest| rest.split(' ').next());
    let (from, to) = (Time::from_millis(from), Time::from_millis(to));
    let packets = outcome.full_packets().filter(|it| it.at > from && it.at < to).count();
    (packets, word.unwrap_or_default().to_owned())
}

/// The new path starts normally: record and hint were of the old one.
#[test]
fn a_new_path_begins_with_slow_start() {
    // Half an RTT later the server detects the migration; for one RTT it may send ten packets.
    let (packets, word) = moved(ELSEWHERE, None, [260, 300]);
    assert!(packets <= 12 && word == "slow-start", "{packets} packets, {word}");
    let (packets, word) = moved(peer_address(0), None, [260, 300]);
    assert!(packets > 30 && word == "none", "another port of the same address is the same path: {packets}");
}

/// For a round trip ten packets, until the RTT is measured; then as that address's record says.
#[test]
fn a_new_path_of_which_there_is_a_record_begins_from_that() {
    let (first, _) = moved(ELSEWHERE, Some(ELSEWHERE), [205, 245]);
    let (known, word) = moved(ELSEWHERE, Some(ELSEWHERE), [260, 350]);
    let (unknown, _) = moved(ELSEWHERE, None, [260, 350]);
    println!(
        "{first} packets before the RTT is measured, {known} in 90 ms after it, {unknown} without a record"
    );
    assert!(word == "record" && known > 2 * unknown, "{known} and {unknown} packets, {word}");
    assert!(first <= 12, "{first}");
}
