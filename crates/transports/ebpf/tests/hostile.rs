//! Input from the network, or from a map that any process wrote, is refused by the loaded object or
//! computed with: none of its answers exceeds its limits (BPF_PROG_TEST_RUN).
#![cfg(feature = "load")]

use headstart_ebpf::layout::{self, EVENTS, MAX_RATE, MAX_WINDOW, NEXT, PHASES, Params, SCHEMES};
use headstart_ebpf::needs::{Level, Machine};
use headstart_ebpf::replay::Replay;
use headstart_startup::hint;
use headstart_startup::prior::Hint;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn replay(what: &str) -> Option<Replay> {
    let missing = Machine::detect().missing(Level::Control);
    if !missing.is_empty() {
        headstart_host::not_run(&format!("{what}: {}", missing.join("; ")));
        return None;
    }
    Some(Replay::load().expect("the object"))
}

fn runner() -> TestRunner {
    TestRunner::new(Config { cases: 20_000, failure_persistence: None, ..Config::default() })
}

/// Bytes as a client may send them, half of them nearly right.
fn option() -> impl Strategy<Value = ([u8; 12], i32)> {
    let header = [254, 10, 0x48, 0x53];
    let rate = prop_oneof![any::<u32>(), 0..3_u32, 399_999_998..400_000_003_u32];
    let nearly = (0..3_u8, 0..9_u8, rate).prop_map(move |(version, access, kbit)| {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&header);
        bytes[4..6].copy_from_slice(&[version, access]);
        bytes[6..10].copy_from_slice(&kbit.to_be_bytes());
        bytes
    });
    let bytes = prop_oneof![nearly, any::<[u8; 12]>()];
    (bytes, prop_oneof![Just(10), -130..60_i32])
}

#[test]
fn the_object_accepts_and_refuses_the_same_hints_as_the_quic_server() {
    let Some(replay) = replay("hints against the loaded object") else { return };
    let outcome = runner().run(&option(), |(bytes, found)| {
        let value = &bytes[4..4 + hint::SIZE];
        let expected = Hint::parse(value).ok().filter(|_| found == 10);
        let expected = expected.map(|hint| hint.bandwidth.as_bytes_per_sec());
        prop_assert_eq!(replay.read_hint(bytes, found).expect("it is applied"), expected);
        Ok(())
    });
    outcome.expect("every option");
}

/// Settings, prior, state of the scheme and event: any numbers at all.
fn anything() -> impl Strategy<Value = layout::Replay> {
    let number = prop_oneof![any::<u64>(), 0..4_u64, Just(u64::MAX), (0..64_u32).prop_map(|bit| 1 << bit)];
    let numbers = layout::Replay::default().to_bytes().len() / 8;
    let all = proptest::collection::vec(number, numbers);
    let params = (0..=SCHEMES.len() as u32, any::<(u32, u32, u32, u32)>());
    (all, params, 0..EVENTS.len() as u64).prop_map(|(all, (scheme, of_scheme), event)| {
        let bytes: Vec<u8> = all.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let mut call = layout::Replay::from_bytes(&bytes).expect("its size");
        let (initial_window, gamma, kappa, burst) = of_scheme;
        call.params = Params { scheme, initial_window, gamma, kappa, burst, ..call.params };
        call.prior.mss %= 9_001;
        let layout::Replay { sent, ack, congestion, .. } = &mut call;
        // The kernel counts no more bytes than fit its buffers.
        for counted in [
            &mut sent.bytes,
            &mut sent.in_flight,
            &mut ack.newly_acked,
            &mut ack.first_flight_acked,
            &mut ack.in_flight,
            &mut ack.delivered,
            &mut congestion.lost,
            &mut congestion.first_flight_lost,
            &mut congestion.in_flight,
            &mut congestion.delivered,
        ] {
            *counted %= MAX_WINDOW.get() + 1;
        }
        layout::Replay { event, ..call }
    })
}

#[test]
fn decisions_stay_within_the_limits_for_any_settings_and_events() {
    let Some(replay) = replay("hostile settings and events against the loaded object") else { return };
    let outcome = runner().run(&anything(), |mut call| {
        // A start's state comes from an establishment, never from outside.
        for event in [0, call.event] {
            call.event = event;
            replay.apply(&mut call).expect("it is applied");
            let layout::Start { window, pace, phase, next, .. } = call.start;
            // The window itself, or the bytes in flight above it.
            let most = 2 * MAX_WINDOW.get() + 2 * u64::from(call.prior.mss);
            prop_assert!(window <= most, "window {}", window);
            prop_assert!(pace <= 2 * MAX_RATE.as_bytes_per_sec(), "pace {}", pace);
            prop_assert!((phase as usize) < PHASES.len(), "phase {}", phase);
            prop_assert!((next as usize) < NEXT.len(), "next {}", next);
        }
        Ok(())
    });
    outcome.expect("every event");
}
