//! Each event and question of the contract of schemes reaches a scheme over every stack, or the
//! table below says why it does not.

use std::collections::BTreeSet;
use std::sync::Mutex;

use headstart_startup::catalogue::{About, Entry, Needs};
use headstart_startup::scheme::Requirements;
use headstart_startup::scheme::foreign::{Call, Event, ForeignScheme, Response};
use headstart_startup::{Allowance, FlightPlan, Next, Prior};
use headstart_units::Bytes;

use crate::comparison::scenarios;
use crate::scenario::Scenario;

/// All methods of `Startup`.
const CALLS: [Call; 16] = [
    Call::Establish,
    Call::OnSent,
    Call::OnAck,
    Call::OnCongestion,
    Call::OnTimeout,
    Call::OnNewData,
    Call::End,
    Call::Allowance,
    Call::IsSlowStart,
    Call::Phase,
    Call::Repair,
    Call::NeedsSentEvents,
    Call::CreditRevision,
    Call::RecordUpdate,
    Call::Requirements,
    Call::Request,
];

/// Calls that no stack of QUIC makes.
pub const OVER_QUIC: [(Call, &str); 2] = [
    (Call::Request, "routers are asked by an option of the IP header"),
    (Call::End, "only a scheme of another language has a state to release, and those run in the model"),
];

/// A scheme that keeps a window of a hundred segments, and its calls.
#[derive(Debug)]
struct Watched {
    about: About,
    calls: Mutex<BTreeSet<Call>>,
}

impl ForeignScheme for Watched {
    fn about(&self) -> &'static About {
        // It lives as long as the program.
        Box::leak(Box::new(self.about))
    }

    fn establish(&self, prior: &Prior) -> (u64, FlightPlan) {
        (0, FlightPlan::paced(prior.mss * 2, prior.mss * 100, prior.mss * 100 / prior.handshake_rtt))
    }

    fn on_event(&self, _: u64, _: &Event<'_>) -> Response {
        Response { next: Next::Stay, allowance: Allowance::window(Bytes::new(144_800)) }
    }

    fn end(&self, _: u64) {}

    fn requirements(&self) -> Requirements {
        Requirements { reserves_credit: true, ..Requirements::default() }
    }

    fn needs_sent_events(&self) -> bool {
        true
    }

    fn called(&self, call: Call) {
        self.calls.lock().expect("no panic").insert(call);
    }
}

/// Calls over a stack, for a scheme with these needs, in all scenarios together.
fn calls(needs: Needs, run: &dyn Fn(&Scenario, &Entry)) -> BTreeSet<Call> {
    let about = About::new("watched", needs, "a test's");
    let watched: &Watched = Box::leak(Box::new(Watched { about, calls: Mutex::default() }));
    let entry = Entry::foreign(watched).expect("no name of the catalogue");
    // All of a window and some probes are lost.
    let outage = Scenario { losses: (60..186).collect(), ..Scenario::new("outage", 500_000) };
    for scenario in scenarios().into_iter().chain([outage]) {
        run(&scenario, &entry);
    }
    std::mem::take(&mut *watched.calls.lock().expect("no panic"))
}

/// Holds a stack to the contract: it makes all calls but those that it `omits`, with the reason.
pub fn hold(stack: &str, omits: &[(Call, &str)], run: &dyn Fn(&Scenario, &Entry)) {
    for needs in [Needs::Nothing, Needs::FlowSize, Needs::History, Needs::Hint] {
        let made = calls(needs, run);
        let expected: BTreeSet<Call> =
            CALLS.into_iter().filter(|call| omits.iter().all(|(omitted, _)| omitted != call)).collect();
        assert_eq!(made, expected, "{stack}, a scheme that needs {needs:?}");
    }
}
