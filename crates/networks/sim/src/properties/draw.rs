//! Drawing of cases: a generator with a fixed seed gives the same ones on every machine.

use std::sync::Arc;

use crate::tcp::{DelayedAck, Detection, ImmediateAck, Pacing, Probe, ReceiveGrowth, TcpConfig};
use crate::workload::Opener;
use crate::workload::page::Fetch;
use headstart_net::changing::LinkChange;
use headstart_net::jitter::Order;
use headstart_net::{ElementPlan, Limit, LinkPlan, LinkRate, QueueDiscipline, Trace, delay, duplicate};
use headstart_startup::base;
use headstart_startup::catalogue::{self, Entry};
use headstart_startup::prior::{Access, Hint};
use headstart_units::{Bytes, Packets, Rate, Ratio, Span, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::case::{Case, Transfer, bursts, jitter, link, loss};

/// Any number between the two, small ones as likely as large ones.
pub fn logarithmic(least: u64, most: u64) -> impl Strategy<Value = u64> {
    let octaves = (most as f64 / least as f64).log2();
    (0..=1_000_000_u32).prop_map(move |at| {
        let value = least as f64 * (f64::from(at) / 1e6 * octaves).exp2();
        (value as u64).clamp(least, most)
    })
}

/// Any rate of a link, 50 kbit/s to 1 Gbit/s.
pub fn rate() -> impl Strategy<Value = Rate> {
    logarithmic(50_000, 1_000_000_000).prop_map(Rate::from_bits_per_sec)
}

/// Any delay of a link, up to 400 ms.
pub fn delay() -> impl Strategy<Value = Span> {
    prop_oneof![
        1 => Just(Span::ZERO),
        4 => (0..=100_u64).prop_map(Span::from_millis),
        1 => (0..=400_000_u64).prop_map(Span::from_micros),
    ]
}

fn limit(least_bytes: u64, least_packets: u64) -> impl Strategy<Value = Limit> {
    prop_oneof![
        (least_bytes..=20_000).prop_map(|bytes| Limit::bytes(Bytes::new(bytes))),
        (20_000..=1_000_000_u64).prop_map(|bytes| Limit::bytes(Bytes::new(bytes))),
        (least_packets..=700).prop_map(|packets| Limit::packets(Packets::new(packets))),
    ]
}

fn discipline() -> impl Strategy<Value = QueueDiscipline> {
    proptest::sample::select(QueueDiscipline::ALL.to_vec())
}

/// A queue of a link whose rate changes, which netem's limit does not allow.
fn discipline_of_changing_rate() -> impl Strategy<Value = QueueDiscipline> {
    discipline().prop_filter("a constant rate", |discipline| *discipline != QueueDiscipline::Netem)
}

fn trace() -> impl Strategy<Value = Arc<Trace>> {
    proptest::collection::vec(0..300_u32, 1..60).prop_map(|mut millis| {
        millis.push(300);
        millis.sort_unstable();
        Arc::new(Trace::from_millis(millis).expect("rising and not empty"))
    })
}

/// A link that consults its queue for each packet: one whose changes change nothing.
fn managed(rate: Rate, delay: Span, limit: Limit, discipline: QueueDiscipline) -> ElementPlan {
    let mut changes = vec![(Time::ZERO, LinkChange::Rate(rate))];
    if discipline == QueueDiscipline::Netem {
        changes.clear();
    }
    ElementPlan::Link(LinkPlan { discipline, changes, ..LinkPlan::new(rate, delay, limit) })
}

fn traced(trace: Arc<Trace>, delay: Span, limit: Limit, discipline: QueueDiscipline) -> ElementPlan {
    let rate = LinkRate::Trace(trace);
    ElementPlan::Link(LinkPlan { rate, discipline, ..LinkPlan::new(Rate::ZERO, delay, limit) })
}

fn any_link() -> impl Strategy<Value = ElementPlan> {
    let queue = || (delay(), limit(3_100, 2), discipline());
    let changing = (delay(), limit(3_100, 2), discipline_of_changing_rate());
    prop_oneof![
        6 => (rate(), delay(), limit(0, 0)).prop_map(|(rate, delay, limit)| link(rate, delay, limit)),
        2 => (rate(), queue()).prop_map(|(rate, (delay, limit, it))| managed(rate, delay, limit, it)),
        1 => (trace(), changing).prop_map(|(trace, (delay, limit, it))| traced(trace, delay, limit, it)),
    ]
}

/// Nothing, often; else an element that disturbs.
fn disturbance() -> impl Strategy<Value = Option<ElementPlan>> {
    prop_oneof![
        4 => Just(None),
        2 => prop_oneof![0..=3_u32, 0..=40_u32].prop_map(|percent| Some(loss(Ratio::percent(percent)))),
        1 => (1..=40_u32, 2..=20_u32).prop_map(|(enter, length)| {
            // At most 40 % in all, however long a burst is.
            Some(bursts(Ratio::new(enter, 60 * length), Ratio::new(1, length)))
        }),
        1 => (0..=60_u64).prop_map(|bound| Some(jitter(Span::from_millis(bound), Order::Free))),
        1 => (0..=60_u64).prop_map(|bound| Some(jitter(Span::from_millis(bound), Order::Kept))),
        1 => (0..=30_u32).prop_map(|percent| Some(duplicate::Params { share: Ratio::percent(percent) }.into())),
        1 => (0..=100_u64).prop_map(|delay| Some(delay::Params { delay: Span::from_millis(delay) }.into())),
    ]
}

/// One to three links, with disturbances anywhere between them.
fn direction() -> impl Strategy<Value = Vec<ElementPlan>> {
    proptest::collection::vec((disturbance(), any_link()), 1..=3).prop_map(|parts| {
        let mut seen_loss = false;
        parts
            .into_iter()
            .flat_map(|(disturbance, link)| [disturbance, Some(link)])
            .flatten()
            // Loss once for each direction: three times 40 % would be a cut wire.
            .filter(|part| match part {
                ElementPlan::Loss(_) | ElementPlan::BurstLoss(_) => !std::mem::replace(&mut seen_loss, true),
                _ => true,
            })
            .collect()
    })
}

/// Schemes that are compared, and the opponents that are not.
fn schemes() -> Vec<Entry> {
    let opponents =
        ["bbr-v3", "prague", "rc3"].map(|name| catalogue::find(name).expect("it is in the catalogue"));
    catalogue::all().into_iter().chain(opponents).collect()
}

fn tcp() -> impl Strategy<Value = TcpConfig> {
    let detection = prop_oneof![2 => Just(Detection::Rack), 1 => Just(Detection::Rfc6675)];
    let probe = prop_oneof![Just(Probe::None), Just(Probe::TailLoss), Just(Probe::Quic)];
    let delayed_ack = prop_oneof![
        Just(DelayedAck::IMMEDIATE),
        Just(DelayedAck::SECOND),
        (1..=4_u32, 0..=200_u64, 0..=20_u32, 0..=4_u32).prop_map(|(every, timeout, quick, gap)| DelayedAck {
            every,
            timeout: Span::from_millis(timeout),
            quick,
            immediate: if gap == 0 { ImmediateAck::OutOfOrder } else { ImmediateAck::NewGap(gap) },
            ack_on_push: quick % 2 == 0,
        }),
    ];
    let receive_window = prop_oneof![
        4 => Just(141_000),
        1 => Just(1_448),
        2 => 1_448..=20_000_u64,
        2 => 20_000..=4_000_000_u64,
    ];
    let pacing = prop_oneof![Just(Pacing::Off), Just(Pacing::Linux), Just(Pacing::Quic)];
    let growth = prop_oneof![
        4 => Just(ReceiveGrowth::Fixed),
        1 => Just(ReceiveGrowth::Eighths),
        1 => Just(ReceiveGrowth::Linux),
        1 => Just(ReceiveGrowth::Chromium),
    ];
    let handshake = prop_oneof![
        4 => Just((1, 0)),
        1 => Just((0, 0)),
        1 => (1..=2_u8, 1..=40_000_u64),
    ];
    let pacing = (pacing, growth, handshake);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let min_rto = prop_oneof![Just(200_u64), 1..=1000_u64];
    (detection, probe, delayed_ack, receive_window, pacing, flags, 1..=10_u32, min_rto).prop_map(
        |(
            detection,
            probe,
            delayed_ack,
            receive_window,
            (pacing, receive_growth, (handshakes, certificate)),
            (ecn, prr, idle_restart, window_validation, as_linux),
            quantum,
            min_rto,
        )| {
            TcpConfig {
                receive_window: Bytes::new(receive_window),
                receive_growth,
                handshakes,
                certificate: Bytes::new(certificate),
                detection,
                probe,
                prr,
                delayed_ack,
                min_rto: Span::from_millis(min_rto),
                pacing,
                quantum,
                ecn,
                idle_restart,
                window_validation,
                // Each goes with some draws of the others.
                pipe_ack: !idle_restart && window_validation,
                rate_limited_increase: !prr && window_validation,
                idle_decay: idle_restart && as_linux,
                as_linux,
                ..TcpConfig::default()
            }
        },
    )
}

fn transfer() -> impl Strategy<Value = Transfer> {
    let flow = || (0..=3_000_u64, prop_oneof![3 => logarithmic(1, 300_000), 1 => logarithmic(1, 3_000_000)]);
    let opener = prop_oneof![Just(Opener::Sender), Just(Opener::Receiver)];
    let fetch = prop_oneof![
        (1..=6_u16).prop_map(Fetch::Parallel),
        (1..=6_u16).prop_map(Fetch::Persistent),
        Just(Fetch::Multiplexed),
    ];
    let script = proptest::collection::vec((0..=3_000_u64, logarithmic(1, 200_000)), 1..=8);
    let objects = proptest::collection::vec((0..=2_u16, logarithmic(1, 100_000)), 1..=20);
    prop_oneof![
        3 => (proptest::collection::vec(flow(), 1..=5), opener, any::<bool>())
            .prop_map(|(flows, opener, known)| Transfer::Flows(flows, opener, known)),
        1 => (script, 500..=4_000_u64).prop_map(|(script, gap)| Transfer::Sessions(script, gap)),
        1 => (objects, fetch, 500..=4_000_u64).prop_map(|(page, fetch, gap)| Transfer::Pages(page, fetch, gap)),
    ]
}

/// Any case, of all schemes.
///
/// # Panics
/// Never: the catalogue has all schemes that it draws.
pub fn case() -> impl Strategy<Value = Case> {
    let hint = proptest::option::of(
        prop_oneof![logarithmic(8, u64::MAX / 2), logarithmic(50_000, 1_000_000_000)]
            .prop_map(|bits| Hint { bandwidth: Rate::from_bits_per_sec(bits), access: Access::Unknown }),
    );
    let base = prop_oneof![Just(base::Kind::Cubic), Just(base::Kind::Reno)];
    let history = prop_oneof![Just(0_usize), Just(1), 1..=10_usize];
    (
        (direction(), direction()),
        0..schemes().len(),
        base,
        tcp(),
        hint,
        history,
        proptest::collection::vec(transfer(), 1..=2),
        (1..=4_u32, any::<u64>()),
    )
        .prop_map(
            |((forward, reverse), scheme, base, tcp, hint, history_capacity, transfer, (peers, seed))| Case {
                forward,
                reverse,
                entry: schemes()[scheme],
                base,
                tcp,
                hint,
                history_capacity,
                transfer,
                peers,
                seed,
            },
        )
}

/// A case of this scheme, always the same one for the same seed.
///
/// # Panics
/// Never: nothing that is drawn is refused for long.
#[must_use]
pub fn case_of(entry: Entry, seed: u64) -> Case {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let source = TestRng::from_seed(RngAlgorithm::ChaCha, &key);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), source);
    let drawn = case().new_tree(&mut runner).expect("it can be drawn").current();
    Case { entry, ..drawn }
}
