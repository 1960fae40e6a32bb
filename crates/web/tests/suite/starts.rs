//! Fast-starting connections, from the first packet to the record written.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::common::{Running, until};
use headstart_quic::{Choice, Gates, Policy, Rollout, Sharded, StartReport};
use headstart_units::Span;
use headstart_web::identity::Identity;
use headstart_web::open::{self, ServerSettings};
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::Site;
use tokio_util::sync::CancellationToken;

type Reports = Arc<Mutex<Vec<StartReport>>>;

/// A server whose clients may choose; collects the report of each connection.
fn start(usual: &str, rollout: Rollout) -> (Running, Reports) {
    let keys = tempfile::tempdir().expect("a folder for keys");
    let identity =
        Identity::load_or_create(keys.path(), &[]).expect("a certificate").current().expect("a key");
    let plan = ServerSettings {
        identity: &identity,
        scheme: Choice::find(usual).expect("a scheme"),
        others: Choice::all().collect(),
        history: Arc::new(Sharded::new(64)),
        rollout: Arc::new(rollout),
        guard: None,
        choice_rollout: Arc::new(Rollout::default()),
        hints: Policy::default(),
        // The RTT of loopback is below the lowest one for a fast start.
        gates: Gates { shortest_rtt: Span::ZERO, ..Gates::default() },
        qlog: None,
    };
    let (endpoint, starts) = open::open(plan, SocketAddr::from(([127, 0, 0, 1], 0))).expect("an endpoint");
    let address = endpoint.local_addr().expect("an address");
    let reports = Reports::default();
    let collected = Arc::clone(&reports);
    let starts = starts.report_to(Arc::new(move |report: &StartReport| {
        collected.lock().expect("not poisoned").push(report.clone())
    }));
    let shutdown = CancellationToken::new();
    let server_config = ServerConfig { scheme_choice: true, ..ServerConfig::default() };
    let site = Arc::new(Site::Generated);
    let done = tokio::spawn(server::serve(endpoint, Arc::new(starts), site, server_config, shutdown.clone()));
    (Running { address, shutdown, done, files: crate::common::files(), keys, identity }, reports)
}

async fn last(reports: &Reports, count: usize) -> StartReport {
    let told = || reports.lock().expect("not poisoned").get(count - 1).cloned();
    until(&format!("what the server says of connection {count}"), || told().is_some()).await;
    told().expect("it was there")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_supported_scheme_serves_a_page_under_its_name() {
    let (server, reports) = start("iw10", Rollout::default());
    let tuned = ["halfback(additional=25%)", "slow-start(initial-window=20)"];
    let tuned = tuned.map(|text| Choice::find(text).expect("carried"));
    for (number, choice) in Choice::all().chain(tuned).enumerate() {
        let visit = server.fetch_as(server.client(Some(choice.name()), false), &["/bytes/150000"]).await;
        let page = &visit.pages[0];
        assert_eq!((page.bytes, page.scheme.as_deref()), (150_000, Some(choice.name())));
        assert_eq!(last(&reports, number + 1).await.scheme, choice.name());
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_schemes_are_refused_by_name_and_a_requesting_client_gets_the_default() {
    for name in ["quick-start", "rcp", "pcp"] {
        assert!(Choice::find(name).is_err_and(|refused| refused.to_string().contains(name)));
    }
    let (server, _) = start("halfback", Rollout::default());
    for asked in ["rcp", "nonsense"] {
        let visit = server.fetch_as(server.client(Some(asked), false), &["/bytes/1000"]).await;
        assert_eq!(visit.pages[0].scheme.as_deref(), Some("halfback"));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_enlarged_by_path_mtu_discovery_belong_to_the_flight() {
    let (server, reports) = start("iw10", Rollout::default());
    let visit = server.fetch(&["/bytes/2000000"]).await;
    assert_eq!(visit.pages[0].bytes, 2_000_000);
    let report = last(&reports, 1).await;
    assert!(report.tally.sent.get() >= 2_000_000, "sent {}, of 2 MB", report.tally.sent.get());
    assert!(report.tally.delivered.get() >= 1_900_000, "delivered {}, of 2 MB", report.tally.delivered.get());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_of_a_page_is_known_before_its_first_byte() {
    let (server, reports) = start("jump-start", Rollout::default());
    server.fetch(&["/bytes/60000"]).await;
    let report = last(&reports, 1).await;
    assert_eq!(report.flow_size.map(|size| size.get()), Some(60_000));
    assert_eq!(report.source, headstart_quic::start_report::Source::FlowSize);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_rollout_of_zero_no_connection_uses_the_scheme() {
    let (server, reports) = start("jump-start", Rollout::new(0.0));
    server.fetch(&["/bytes/60000"]).await;
    let report = last(&reports, 1).await;
    assert_eq!(report.arm, headstart_quic::gates::Arm::Control);
    assert_eq!(report.source, headstart_quic::start_report::Source::Nothing);
    server.stop().await;
}
