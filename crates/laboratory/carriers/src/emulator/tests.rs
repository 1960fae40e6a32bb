//! Tests of the options that the emulator refuses, and of its driver.

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};

use headstart_emu::clock::Clock;
use headstart_sim::workload::FlowSpec;
use headstart_sim::workload::long::{Listed, Start};
use headstart_startup::sending::LimitedBy;
use headstart_units::{Bytes, Span};

use super::driver::{FlowEvent, Transport, WorkloadRun, run_workload};
use super::*;
use headstart_study::carrier::{Carrier as _, Run};
use headstart_study::catalogue;
use headstart_study::settings::{Settings, Tables};
use headstart_study::setup::SchemeMix;

fn setup(text: &str) -> Result<Setup> {
    let tables: Tables = toml::from_str(text)?;
    let study = catalogue::find("dumbbell")?;
    Ok(Settings::read(&tables, Some(study))?.prepare(study, crate::ALL)?.setup)
}

const QUIC: &str = "run = { in = \"emulator\", duration = \"1 s\", drain = \"10 s\", repeats = 1 }\n\
    transport = { transport = \"quic\", receive-window = \"4 MB\" }\n";

#[test]
fn schemes_that_a_real_transport_cannot_run_are_refused_by_name() {
    for (text, parts) in [
        ("path = { routers = \"rcp\" }", ["--routers", "found rcp", "expected none"]),
        ("path = { routers = \"target\" }", ["--routers", "found target", "no Quick-Start requests"]),
        ("path = { rtt = \"20ms+60ms\" }", ["--rtt", "found 2 times", "expected one"]),
        ("workload = { opener = \"sender\" }", ["--opener", "found sender", "receiver"]),
        ("transport = { detection = \"udt\" }", ["--detection", "udt", "expected rack"]),
        ("transport = { handshakes = 2 }", ["--handshakes", "found 2", "expected 1"]),
        ("transport = { mtu = \"1300 B\" }", ["--mtu", "found 1.3 kB", "expected 1500"]),
    ] {
        let error =
            format!("{:#}", setup(&format!("run = {{ in = \"emulator\" }}\n{text}")).expect_err(text));
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
    let error = format!("{:#}", setup("run = { in = \"moon\" }").expect_err("nobody is there"));
    assert!(["run.in", "moon", "emulator"].iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn a_scheme_or_a_study_that_is_not_supported_is_refused_by_name() {
    let quic = setup(QUIC).expect("fine");
    let entry = |name| headstart_study::schemes::find(name).expect("it is in the catalogue");
    for name in ["rcp", "pcp", "quick-start"] {
        let error = format!("{:#}", EmulatedQuic.check_scheme(entry(name), &quic.transport).expect_err(name));
        assert!(error.contains(name), "{error}");
    }
    EmulatedQuic.check_scheme(entry("halfback"), &quic.transport).expect("QUIC carries it");
    for name in ["quick-start-web", "flow-pair", "network-sequence", "wide-area", "quick-start-attack"] {
        let study = catalogue::find(name).expect("a study");
        let error = study.check(&EmulatedQuic).expect_err("refused").to_string();
        assert!(
            error.contains(&format!("study: found `{name}` over QUIC over the emulator, expected")),
            "{error}"
        );
    }
}

#[derive(Default)]
struct Reports(Vec<FlowReport>);

impl Observer for Reports {
    fn flow(&mut self, report: &FlowReport) {
        self.0.push(*report);
    }
}

/// Answers at once, and records the calls.
struct Echo {
    event_sender: Sender<FlowEvent>,
    clock: Clock,
    calls: VecDeque<(u32, &'static str)>,
}

impl Transport for Echo {
    fn open(&mut self, flow: u32, spec: &FlowSpec) {
        self.calls.push_back((flow, "open"));
        self.request(flow, spec.bytes);
    }
    fn request(&mut self, flow: u32, bytes: Bytes) {
        let at = self.clock.now();
        let bytes = bytes.get() as u32;
        self.event_sender.send(FlowEvent::Read { flow, at, bytes }).expect("the driver listens");
        self.event_sender.send(FlowEvent::Message { flow, at }).expect("the driver listens");
    }
    fn close(&mut self, flow: u32) {
        self.calls.push_back((flow, "close"));
        let counters = driver::ConnectionCounters::default();
        self.event_sender.send(FlowEvent::Served { flow, counters }).expect("the driver listens");
    }
}

#[test]
fn a_workload_runs_to_its_end_and_each_flow_is_reported() {
    let clock = Clock::start();
    let (event_sender, events) = channel();
    let mut echo = Echo { event_sender, clock, calls: VecDeque::new() };
    let starts = [(0, 100), (3, 200)].map(|(ms, bytes)| Start::new(Time::from_millis(ms), Bytes::new(bytes)));
    let workload = Box::new(Listed::new(starts.to_vec(), headstart_sim::workload::Opener::Receiver));
    let rtt = Span::from_millis(10);
    let run = WorkloadRun { workload, until: Time::from_millis(60_000), clock, rtt };
    let result = run_workload(run, &mut echo, &events).expect("it runs");
    assert_eq!(result.flows.len(), 2);
    for (flow, bytes) in result.flows.iter().zip([100, 200]) {
        assert_eq!((flow.written, flow.read), (Bytes::new(bytes), Bytes::new(bytes)));
        assert!(flow.completed_at.is_some());
        assert_eq!(flow.min_rtt, rtt, "nobody measured one");
    }
    assert!(result.flows[1].opened_at >= Time::from_millis(3), "not before its time");
    assert_eq!(echo.calls, [(0, "open"), (0, "close"), (1, "open"), (1, "close")]);
}

#[test]
fn real_quic_takes_at_least_the_minimum_rtt_and_delivers_all_requested_bytes() {
    let text = format!(
        "{QUIC}path = {{ rate = \"20 Mbit/s\", rtt = \"30 ms\", buffer = \"100 packets\" }}\nworkload = {{ size = \"200 kB\" }}"
    );
    let setup = setup(&text).expect("fine");
    let entry = headstart_study::schemes::find("jump-start").expect("it is in the catalogue");
    let mix = SchemeMix { tested: entry, beside: None };
    let start = Start::new(Time::ZERO, Bytes::new(200_000));
    let workload = Box::new(Listed::new(vec![start], setup.opener()));
    let run = Run::new(&setup, mix, workload, Time::from_millis(60_000), Seed(1));
    let reports = run.observe(Reports::default()).expect("it runs").observer.0;
    let [flow] = &reports[..] else { panic!("one flow: {reports:?}") };
    assert_eq!(flow.read, Bytes::new(200_000));
    // Handshake and request are two round trips, and 200 kB take 80 ms without headers.
    let least = Span::from_millis(60 + 80);
    let took = flow.completion_time().expect("it completes");
    assert!(took >= least, "{took}");
    assert!(flow.established_at.is_some() && flow.counts.bytes_sent >= 200_000, "{flow:?}");
    // JumpStart paces all of it over a round trip; the rest of its time waits on the path.
    assert_eq!(flow.limited.iter().fold(Span::ZERO, |sum, span| sum + *span), took, "{flow:?}");
    let of = |by: LimitedBy| flow.limited[by as usize];
    assert!(
        of(LimitedBy::Handshake) >= Span::from_millis(30) && of(LimitedBy::Path) >= Span::from_millis(15)
    );
    assert!(of(LimitedBy::Pacer) >= Span::from_millis(20), "{flow:?}");
}
