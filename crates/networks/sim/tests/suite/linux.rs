//! Rules of Linux's sender that differ from the RFCs ([`TcpConfig::as_linux`] names their sources),
//! and those for windows of which less is used than may be.

use headstart_sim::NullRecorder;
use headstart_sim::packet::{Acknowledgement, Block};
use headstart_sim::tcp::sender::Echoed;
use headstart_sim::tcp::{DelayedAck, Probe, Sender, TcpConfig};
use headstart_startup::{Prior, base, catalogue};
use headstart_units::{Bytes, Span, Time};

const MSS: u64 = 1448;
const RTT: Span = Span::from_millis(60);

fn config(as_linux: bool) -> TcpConfig {
    let delayed_ack = DelayedAck { timeout: Span::from_millis(40), ..DelayedAck::SECOND };
    TcpConfig { as_linux, delayed_ack, receive_window: Bytes::new(4_000_000), ..TcpConfig::default() }
}

/// A connection with ten segments of window that has so many to send; its handshake took [`RTT`].
fn sender(segments: u64, config: &TcpConfig) -> Sender {
    let scheme = catalogue::find("iw10").expect("it is in the catalogue").scheme();
    let mut sender = Sender::default();
    sender.reset(scheme, base::Kind::Reno, config);
    sender.write(Time::ZERO, Bytes::new(segments * MSS), config);
    let prior = Prior::bare(Time::ZERO, config.mss, RTT, config.receive_window);
    sender.establish(Time::ZERO, &prior, &mut NullRecorder);
    sender
}

/// All packets that may leave now: true for each with PSH.
fn departures(sender: &mut Sender, now: Time, config: &TcpConfig) -> Vec<bool> {
    std::iter::from_fn(|| sender.next_departure(now, config, &mut NullRecorder))
        .map(|left| left.is_pushed)
        .collect()
}

/// The receiver has `cumulative` segments and the block's; the newest triggered its ack.
fn ack(sender: &mut Sender, now: Time, cumulative: u32, block: std::ops::Range<u32>, config: &TcpConfig) {
    let (start, end) = (block.start, block.end);
    let trigger = end.max(cumulative) - 1;
    let blocks = [Block { start, end }, Block::default(), Block::default()];
    let received = cumulative + (end - start);
    let ack = Acknowledgement { cumulative, trigger, transmission: trigger, received, blocks };
    sender.on_ack(now, &ack, Echoed::default(), config, &mut NullRecorder);
}

/// SRTT 60 ms, RTTVAR 30 ms, least timeout 200 ms, delayed acks after 40 ms.
#[test]
fn timers_are_those_of_the_text_or_of_linux() {
    #[rustfmt::skip]
    let rows = [
        // Linux  probe            out  ms   why
        (false, Probe::None,      1,  200, "60 + 4 x 30, and 200 at least"),
        (true,  Probe::None,      1,  260, "60 + the larger of 4 x 30 and 200"),
        (false, Probe::TailLoss,  1,  160, "two round trips and the receiver's delay"),
        (true,  Probe::TailLoss,  1,  260, "two round trips and 200, but no later than the timeout"),
        (false, Probe::TailLoss,  5,  120, "two round trips"),
        (true,  Probe::TailLoss,  5,  122, "two round trips and 2"),
    ];
    for (as_linux, probe, out, millis, why) in rows {
        let config = TcpConfig { probe, ..config(as_linux) };
        let mut sender = sender(out, &config);
        assert_eq!(departures(&mut sender, Time::ZERO, &config).len() as u64, out);
        assert_eq!(sender.loss_timer(), Time::from_millis(millis), "as Linux: {as_linux}, {out} out: {why}");
    }
}

/// 200 % of ten segments in 60 ms is less than a buffer of two in each 1024th of a second.
#[test]
fn segments_sent_together_leave_in_pairs_and_the_second_has_psh() {
    for (as_linux, segments, expected) in [
        (true, 4, vec![false, true, false, true]),
        (true, 5, vec![false, true, false, true, false]),
        (true, 1, vec![false]),
        (false, 4, vec![false; 4]),
    ] {
        let config = config(as_linux);
        let mut sender = sender(segments, &config);
        assert_eq!(
            departures(&mut sender, Time::ZERO, &config),
            expected,
            "{segments}, as Linux: {as_linux}"
        );
    }
}

/// The first segment is missing; each ack makes room for one.
#[test]
fn a_partial_buffer_is_deferred_while_an_ack_is_due_soon() {
    #[rustfmt::skip]
    let rows = [
        // microseconds  Linux  text
        (60_000, 1, 1, "the latest transmission is long ago"),
        (60_500, 0, 1, "it is not, and the first segment's ack is due"),
        (61_400, 1, 0, "a millisecond is over"),
    ];
    for as_linux in [true, false] {
        let config = config(as_linux);
        let mut sender = sender(100, &config);
        assert_eq!(departures(&mut sender, Time::ZERO, &config).len(), 10);
        for (number, (micros, linux, text, why)) in rows.into_iter().enumerate() {
            let now = Time::ZERO + Span::from_micros(micros);
            if number < 2 {
                ack(&mut sender, now, 0, 1..number as u32 + 2, &config);
            }
            let left = departures(&mut sender, now, &config).len();
            assert_eq!(left, if as_linux { linux } else { text }, "{micros} us, as Linux: {as_linux}: {why}");
        }
    }
}

/// The text checks at each ack, and finds that all has left; Linux checks when the application
/// writes, the very first write included.
#[test]
fn application_limits_are_detected() {
    for (segments, linux, text, why) in [
        (100, true, false, "the first flight was written when nothing waited"),
        (10, true, false, "and what left before all had left is not marked by the text"),
    ] {
        for (as_linux, expected) in [(true, linux), (false, text)] {
            let config = config(as_linux);
            let mut sender = sender(segments, &config);
            departures(&mut sender, Time::ZERO, &config);
            ack(&mut sender, Time::ZERO + RTT, 1, 0..0, &config);
            assert_eq!(sender.rate().fastest().is_app_limited, expected, "as Linux: {as_linux}: {why}");
        }
    }
    // All has left, and one segment is sent again: as at the end of a start-up with losses.
    for (as_linux, expected) in [(true, false), (false, true)] {
        let config = config(as_linux);
        let mut sender = sender(10, &config);
        departures(&mut sender, Time::ZERO, &config);
        let now = Time::ZERO + RTT;
        ack(&mut sender, now, 0, 1..4, &config);
        departures(&mut sender, now, &config);
        let again = sender.transmissions() - 1;
        assert_eq!(sender.counts().retransmissions, 1);
        let blocks = [Block::default(); 3];
        let last = Acknowledgement { cumulative: 10, trigger: 0, transmission: again, received: 10, blocks };
        let before = sender.rate().maximum();
        sender.on_ack(now + RTT, &last, Echoed::default(), &config, &mut NullRecorder);
        assert_ne!(before, sender.rate().maximum());
        assert_eq!(sender.rate().maximum().is_app_limited, expected, "as Linux: {as_linux}");
    }
}

/// Rounds of so many segments from `first` on, a round trip apart from `at`; each is acknowledged.
/// Returns the window after each, in whole segments, and the next segment.
fn rounds(
    sender: &mut Sender,
    sizes: &[u32],
    mut at: Time,
    first: u32,
    config: &TcpConfig,
) -> (Vec<u64>, u32) {
    let mut next = first;
    let windows = sizes.iter().map(|size| {
        if next > 0 {
            sender.write(at, Bytes::new(u64::from(*size) * MSS), config);
        }
        assert_eq!(departures(sender, at, config).len(), *size as usize, "no more than the window");
        at += RTT;
        for _ in 0..*size {
            next += 1;
            ack(sender, at, next, next..next, config);
        }
        sender.controller().allowance().window.get() / MSS
    });
    (windows.collect(), next)
}

/// The example of draft-ietf-ccwg-ratelimited-increase, Appendix A; and the same rounds where
/// the window grows only while it is the limit, or always.
#[test]
fn a_window_grows_to_twice_the_most_that_was_in_flight() {
    for (rate_limited_increase, window_validation, expected) in
        [(true, true, [14, 20, 20, 40]), (false, true, [10, 10, 10, 10]), (false, false, [14, 22, 26, 46])]
    {
        let config = TcpConfig { rate_limited_increase, window_validation, ..config(false) };
        let sizes = if expected[3] == 10 { [4, 8, 4, 9] } else { [4, 8, 4, 20] };
        let mut sender = sender(4, &config);
        assert_eq!(rounds(&mut sender, &sizes, Time::ZERO, 0, &config).0, expected);
    }
}

/// Twenty segments, of which the first is lost: Reno's window is ten. It does not grow while four
/// at a time are sent, as five are the most that may follow.
#[test]
fn in_congestion_avoidance_it_grows_to_a_segment_more() {
    for (rate_limited_increase, window_validation, grows) in [(true, true, false), (false, false, true)] {
        let config = TcpConfig { rate_limited_increase, window_validation, prr: false, ..config(false) };
        let mut sender = sender(10, &config);
        let (_, next) = rounds(&mut sender, &[10], Time::ZERO, 0, &config);
        sender.write(Time::ZERO + RTT, Bytes::new(20 * MSS), &config);
        assert_eq!(departures(&mut sender, Time::ZERO + RTT, &config).len(), 20);
        ack(&mut sender, Time::ZERO + RTT * 2, next, next + 1..next + 20, &config);
        assert_eq!(departures(&mut sender, Time::ZERO + RTT * 2, &config).len(), 1, "it is sent again");
        ack(&mut sender, Time::ZERO + RTT * 3, next + 20, next + 20..next + 20, &config);
        let cut = sender.controller().allowance().window.get() / MSS;
        let (windows, _) = rounds(&mut sender, &[4; 20], Time::ZERO + RTT * 3, next + 20, &config);
        assert_eq!(windows[19] > cut, grows, "{cut}, {windows:?}");
    }
}

/// Forty segments of window, of which eight are used after ten idle seconds; the first of these is
/// lost. Half of what was used is left, or half of the window.
#[test]
fn a_loss_after_an_idle_time_cuts_what_was_used_of_the_window() {
    for (pipe_ack, expected) in [(true, 4), (false, 20)] {
        let config = TcpConfig { pipe_ack, idle_restart: false, window_validation: false, ..config(false) };
        let mut sender = sender(10, &config);
        let (windows, next) = rounds(&mut sender, &[10, 20], Time::ZERO, 0, &config);
        assert_eq!(windows, [20, 40]);
        let at = Time::from_millis(10_000);
        sender.write(at, Bytes::new(8 * MSS), &config);
        assert_eq!(departures(&mut sender, at, &config).len(), 8);
        assert_eq!(sender.controller().allowance().window.get() / MSS, 40, "it was kept");
        ack(&mut sender, at + RTT, next, next + 1..next + 8, &config);
        assert_eq!(sender.controller().allowance().window.get() / MSS, expected, "RFC 7661: {pipe_ack}");
    }
}
