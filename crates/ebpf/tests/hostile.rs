//! Input from the network, or from a map that any process wrote, is refused by the loaded object or
//! computed with: none of its answers is beyond its limits (BPF_PROG_TEST_RUN).
#![cfg(feature = "load")]

use headstart_ebpf::layout::Params;
use headstart_ebpf::needs::{Level, Machine};
use headstart_ebpf::replay::{ALL, LONGS, PARAMS, PRIOR, Replay, START};
use headstart_startup::hint;
use headstart_startup::prior::Hint;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Fields of the events that count bytes, by their place among the numbers after the prior: the
/// kernel counts no more than fits its buffers.
const COUNTED: [usize; 10] = [1, 2, 5, 6, 10, 11, 13, 14, 15, 16];
/// `HS_MAX_RATE` and `HS_MAX_WINDOW`.
const MAX_RATE: u64 = 12_500_000_000;
const MAX_WINDOW: u64 = 1 << 30;

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
fn anything() -> impl Strategy<Value = (Params, Vec<u8>, u64)> {
    let number = prop_oneof![any::<u64>(), 0..4_u64, Just(u64::MAX), (0..64_u32).prop_map(|bit| 1 << bit)];
    let params = (0..9_u32, any::<(u32, u32, u32, bool, u32)>(), any::<(u64, u64)>()).prop_map(
        |(scheme, (initial_window, gamma, kappa, adaptation, burst), (cap, lifetime))| Params {
            scheme,
            initial_window,
            gamma,
            kappa,
            adaptation,
            burst,
            cap,
            lifetime,
        },
    );
    let rest = proptest::collection::vec(number, (ALL - PARAMS) / 8 - 1);
    (params, rest, 0..6_u64).prop_map(|(params, rest, event)| {
        let bytes = rest.iter().flat_map(|number| number.to_ne_bytes()).collect();
        (params, bytes, event)
    })
}

#[test]
fn decisions_stay_within_the_limits_for_any_settings_and_events() {
    let Some(replay) = replay("hostile settings and events against the loaded object") else { return };
    let outcome = runner().run(&anything(), |(params, rest, event)| {
        let mut context = vec![0; ALL];
        context[..PARAMS].copy_from_slice(&params.to_bytes());
        context[PARAMS..ALL - 8].copy_from_slice(&rest);
        let mss = &mut context[PARAMS + START + PRIOR - 12..][..4];
        let of_path = u32::from_ne_bytes([mss[0], mss[1], mss[2], mss[3]]) % 9_001;
        mss.copy_from_slice(&of_path.to_ne_bytes());
        for index in COUNTED {
            let field = &mut context[PARAMS + START + PRIOR + index * 8..][..8];
            let bytes = u64::from_ne_bytes(field.try_into().expect("eight bytes")) % (MAX_WINDOW + 1);
            field.copy_from_slice(&bytes.to_ne_bytes());
        }
        // A start's state comes from an establishment, never from outside.
        for event in [0, event] {
            context[ALL - 8..].copy_from_slice(&event.to_ne_bytes());
            replay.apply(&mut context).expect("it is applied");
            let long = |index: usize| {
                u64::from_ne_bytes(context[PARAMS + index * 8..][..8].try_into().expect("eight bytes"))
            };
            let short = |index: usize| {
                let at = PARAMS + LONGS * 8 + index * 4;
                u32::from_ne_bytes(context[at..][..4].try_into().expect("four bytes"))
            };
            let (window, pace) = (long(0), long(1));
            // The window itself, or the bytes in flight beyond it.
            prop_assert!(window <= 2 * MAX_WINDOW + 2 * u64::from(of_path), "window {}", window);
            prop_assert!(pace <= 2 * MAX_RATE, "pace {}", pace);
            prop_assert!(short(1) < 15 && short(7) < 4, "phase {}, next {}", short(1), short(7));
        }
        Ok(())
    });
    outcome.expect("every event");
}
