//! Everything is delivered once, and every element accounts for its packets.

use headstart_net::{Limit, duplicate};
use headstart_sim::tcp::TcpConfig;
use headstart_sim::workload::Opener;
use headstart_startup::catalogue;
use headstart_units::{Rate, Ratio, Span};

use crate::over;
use headstart_sim::properties::case::{Transfer, disturbed, link};
use headstart_sim::properties::draw::case;
use headstart_sim::properties::watch::Watch;
use headstart_sim::properties::{bounds, check};

#[test]
fn every_run_ends_with_everything_delivered_once() {
    over(5_000, case(), |case| check(&case));
}

#[test]
fn every_scheme_of_the_catalogue_keeps_the_bounds_of_one_flow_alone() {
    let found: Vec<String> = (catalogue::families().iter().map(|family| family.about().name))
        .filter_map(|name| catalogue::find(name).ok())
        .chain(catalogue::all())
        .filter_map(|entry| bounds::check(entry).err().map(|error| format!("{}.{error}", entry.name)))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn duplicated_packets_arrive_twice() {
    let flows = Transfer::Flows(vec![(0, 100_000)], Opener::Sender, true);
    let mut case = disturbed(TcpConfig::default(), flows, 1);
    let plain = link(Rate::from_mbit_per_sec(10), Span::from_millis(20), Limit::NONE);
    case.forward = vec![plain.clone(), duplicate::Params { share: Ratio::ONE }.into()];
    case.reverse = vec![plain];
    let (_, _, watch) = case.run(Watch::new(&case));
    let report = watch.reports[0];
    // The last copy finds the connection closed, or not: it is acknowledged at once.
    assert!(u64::from(report.duplicates) + 1 >= report.counts.packets_sent, "{report:?}");
}
