//! The guard over the emulator: a real server and client, real time, and the simulator's path.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headstart_emu::clock::Clock;
use headstart_emu::{Path, relay, udp};
use headstart_host::{locked, unix_now};
use headstart_net::{Direction, Limit, PathPlan, Seed};
use headstart_quic::gates::Arm;
use headstart_quic::guard::{Bounds, Stop};
use headstart_quic::{Choice, ClientSetup, Guard, Rollout, Sharded, StartReport, Store};
use headstart_startup::history::{Record, RecordUpdate};
use headstart_units::{Packets, Rate, Span};
use headstart_web::client::{self, ClientEndpoint, FetchPlan, Origin, Trust};
use headstart_web::identity::Identity;
use headstart_web::open::{self, ServerSettings};
use headstart_web::server::{self, ServerConfig};
use headstart_web::site::Site;
use tokio_util::sync::CancellationToken;

const RATE: Rate = Rate::from_mbit_per_sec(20);
const RTT: Span = Span::from_millis(15);
const SIZE: u64 = 60_000;
/// Connections of a rollout that is not stopped.
const CONNECTIONS: usize = 100;

/// A rollout of a half over this path, whose clients have all visited before: then their paths had
/// the rate `remembered`. The arms of the connections in order, and the guard's reason to stop.
async fn rollout(remembered: Rate, is_guarded: bool) -> (Vec<StartReport>, Option<Stop>) {
    let identity = Identity::temporary().expect("a certificate");
    let history: Arc<dyn Store> = Arc::new(Sharded::new(64));
    let rollout = Arc::new(Rollout::new(50.0));
    let guard = Arc::new(Guard::new(Arc::clone(&rollout), Bounds::default()));
    let identity = identity.current().expect("a key");
    let choice = Choice::find("wise-start").expect("a scheme");
    let plan = ServerSettings {
        rollout,
        guard: is_guarded.then(|| Arc::clone(&guard)),
        ..ServerSettings::new(&identity, choice, Arc::clone(&history))
    };
    let (endpoint, starts) = open::open(plan, SocketAddr::from(([127, 0, 0, 1], 0))).expect("a server");
    let reports = Arc::<Mutex<Vec<StartReport>>>::default();
    let collected = Arc::clone(&reports);
    let starts = starts.report_to(Arc::new(move |report: &StartReport| {
        locked(&collected).push(report.clone());
    }));
    let served = endpoint.local_addr().expect("an address");
    let shutdown = CancellationToken::new();
    let site = Arc::new(Site::Generated);
    tokio::spawn(server::serve(endpoint, Arc::new(starts), site, ServerConfig::default(), shutdown.clone()));
    let path = PathPlan::dumbbell(RATE, RTT, Limit::packets(Packets::new(20)));
    let [up, down] = Direction::BOTH.map(|direction| Path::of(&path, direction, Seed(1)));
    let settings = relay::Settings::default();
    let (address, relay) =
        udp::start(udp::Settings::before(served), up, down, Clock::start(), settings, None).expect("a path");

    let tls = client::tls(&Trust::AnyCertificate, None, false).expect("TLS");
    let setup = ClientSetup::new(Arc::new(tls)).expect("QUIC");
    let client = ClientEndpoint::to(address).expect("a socket");
    let url: http::Uri = format!("https://localhost:{}/bytes/{SIZE}", address.port()).parse().expect("a URL");
    let count = || locked(&reports).len();
    for number in 0..CONNECTIONS {
        let (_, lease) = history.open(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let record = Record { saved_at: unix_now(), btl_bw: remembered, rt_prop: RTT, ..Record::default() };
        history.close(lease, RecordUpdate::Replace(record));
        let plan = FetchPlan {
            origin: Origin::of(&url).expect("an origin"),
            urls: vec![url.clone()],
            keep: false,
            timeout: Duration::from_secs(60),
        };
        let (config, _) = setup.configure(address, "localhost");
        let visit = plan.run(&client, config, address).await.expect("a page");
        assert_eq!(visit.pages[0].bytes, SIZE);
        while count() <= number {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if locked(&reports).last().is_some_and(|report| report.arm == Arm::Stopped) {
            break;
        }
    }
    shutdown.cancel();
    relay.stop().expect("the path");
    let reports = std::mem::take(&mut *locked(&reports));
    (reports, guard.stop())
}

/// Number and mean time of first answers of an arm.
fn summary(reports: &[StartReport], arm: Arm) -> (usize, f64) {
    let times: Vec<f64> = reports
        .iter()
        .filter(|report| report.arm == arm)
        .filter_map(|report| report.first_answer.took())
        .map(Span::as_millis_f64)
        .collect();
    (times.len(), times.iter().sum::<f64>() / times.len() as f64)
}

/// Records of paths that were 25 times as fast: with the guard the rollout ends by itself, without
/// it goes on. With records of the path as it is, it goes on too.
#[tokio::test(flavor = "multi_thread")]
async fn stale_records_make_the_guard_stop_fast_starts_and_true_ones_do_not() {
    let stale = Rate::from_mbit_per_sec(500);
    let (guarded, unguarded, healthy) =
        tokio::join!(rollout(stale, true), rollout(stale, false), rollout(RATE, true));
    for (name, (reports, stop)) in
        [("stale, guarded", &guarded), ("stale, without guard", &unguarded), ("true, guarded", &healthy)]
    {
        let arms = [Arm::Treatment, Arm::Control].map(|arm| summary(reports, arm));
        println!(
            "{name}: {} connections, treatment and control (number, ms) {arms:?}, {stop:?}",
            reports.len()
        );
    }
    let (reports, stop) = guarded;
    assert!(stop.is_some());
    assert_eq!(reports.last().map(|report| report.arm), Some(Arm::Stopped));
    for (reports, stop) in [unguarded, healthy] {
        assert_eq!(stop, None);
        assert_eq!(reports.len(), CONNECTIONS);
        assert!(reports.iter().all(|report| matches!(report.arm, Arm::Treatment | Arm::Control)));
    }
}
