//! The first flight of every scheme for one connection: `cargo run -p headstart-startup --example
//! first_flight`. The path has 15 Mbit/s and 60 ms, and the server knows it from an earlier visit.

use headstart_startup::history::{Record, SharedRecord};
use headstart_startup::{Controller, FlightPlan, Prior, base, catalogue};
use headstart_units::{Bytes, Rate, Span, Time};

const SEGMENT: Bytes = Bytes::new(1448);

/// Known to a server that has 100 kB to send when the handshake ends.
fn prior() -> Prior {
    let (now, rtt) = (Time::from_millis(60_000), Span::from_millis(60));
    let record = Record {
        saved_at: Time::from_millis(1_000),
        btl_bw: Rate::from_mbit_per_sec(15),
        rt_prop: rtt,
        window: Bytes::new(112_000),
        ..Record::default()
    };
    Prior {
        flow_size: Some(Bytes::new(100_000)),
        history: Some(SharedRecord { record, live: 0 }),
        ..Prior::bare(now, SEGMENT, rtt, Bytes::new(1_000_000))
    }
}

fn plan(scheme: &catalogue::Entry) -> FlightPlan {
    Controller::new(scheme.scheme(), base::Kind::Cubic, SEGMENT).establish(&prior())
}

fn main() {
    println!("{:22} {:>12}  pace", "scheme", "first flight");
    for scheme in catalogue::all() {
        let FlightPlan { flight, allowance, .. } = plan(&scheme);
        let pace = allowance.pace.map_or_else(|| "at once".to_owned(), |rate| rate.to_string());
        println!("{:22} {:>12}  {pace}", scheme.name, flight.to_string());
    }
}

#[test]
fn a_fast_start_sends_in_one_round_trip_for_which_slow_start_takes_several() {
    let of = |name| plan(&catalogue::find(name).expect("a name of the catalogue"));
    assert_eq!(of("iw10").flight, SEGMENT * 10);
    assert_eq!(of("jump-start").flight, Bytes::new(100_000));
    assert!(of("wise-start").allowance.pace.is_some());
}
