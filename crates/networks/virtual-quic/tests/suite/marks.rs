//! Congestion marks: answered once per round trip; copies keep the codepoint that carries them.

use std::sync::Arc;

use headstart_net::{Limit, LinkPlan, PathPlan, QueueDiscipline};
use headstart_quic::{Choice, ClientSetup, ServerSetup};
use headstart_units::{Bytes, Packets, Rate, Span, Time};
use headstart_virtual_quic::null::{NoSecret, NullSessions};
use headstart_virtual_quic::{ConnectionOutcome, ConnectionSet, Transfer};

/// A download over 10 Mbit/s and 40 ms, where CoDel marks.
fn run(scheme: &str, size: u64) -> ConnectionOutcome {
    let (rate, delay) = (Rate::from_mbit_per_sec(10), Span::from_millis(20));
    let link = LinkPlan::new(rate, delay, Limit::packets(Packets::new(500)));
    let link = LinkPlan { discipline: QueueDiscipline::CoDel, ..link };
    let mut connections = ConnectionSet::new(PathPlan::link_and_delay(link, delay), 5);
    let base = noq_proto::ServerConfig::new(Arc::new(NullSessions), Arc::new(NoSecret));
    let choice = Choice::find(scheme).expect("carried");
    let server = ServerSetup::with_session_factory(base, Arc::new(NullSessions), choice);
    let client = ClientSetup::with_session_factory(Arc::new(NullSessions));
    connections.add(0, Transfer::download(Time::ZERO, Bytes::new(size)), client, &server);
    connections.run(Time::from_millis(60_000)).remove(0)
}

#[test]
fn marks_reduce_the_window_instead_of_losses() {
    for scheme in ["iw10", "jump-start", "halfback"] {
        let outcome = run(scheme, 3_000_000);
        println!("{scheme}: {}", outcome.report);
        assert!(outcome.completed.is_some() && outcome.is_ecn_on, "{scheme}");
        assert!(outcome.report.tally.marks > 0, "{scheme}: {}", outcome.report);
        assert_eq!(outcome.lost_packets, 0, "{scheme}: the queue is deep enough to mark in time");
        assert_eq!(outcome.report.decision(), "avoidance", "{scheme}: a mark ends the start");
    }
}
