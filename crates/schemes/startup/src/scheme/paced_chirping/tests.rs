use super::super::timeline::{MSS, withstand_extremes};
use super::*;
use crate::base::testing::{acked, lost, timed_out};
use crate::event::Transmission;
use crate::history::testing::absurd_priors;
use crate::path::Rtt;

/// A path of `rtt` milliseconds whose bottleneck takes `service` microseconds for a packet.
struct Play {
    scheme: PacedChirping,
    rtt: Span,
    service: Span,
    /// Time at which the bottleneck is free.
    free_at: Time,
    next_send_at: Time,
    /// Sending time and arrival time of each ack.
    flying: alloc::collections::VecDeque<(Time, Time)>,
    largest_queue: Span,
    handed_over: Option<HandOver>,
}

impl Play {
    fn new(rtt: u64, service: u64) -> Self {
        let mut scheme = PacedChirping::new(Params::default());
        let rtt = Span::from_millis(rtt);
        let plan = scheme.establish(&Prior::bare(Time::ZERO, MSS, rtt, Bytes::new(1 << 40)));
        assert_eq!((plan.burst, plan.flight), (MSS, MSS * 10));
        Self {
            scheme,
            rtt,
            service: Span::from_micros(service),
            free_at: Time::ZERO,
            next_send_at: Time::ZERO,
            flying: alloc::collections::VecDeque::new(),
            largest_queue: Span::ZERO,
            handed_over: None,
        }
    }

    fn send(&mut self, now: Time) {
        let Allowance { pace, .. } = self.scheme.allowance();
        self.next_send_at = now + MSS / pace.expect("a pace");
        let begun = self.free_at.max(now);
        self.largest_queue = self.largest_queue.max(begun.since(now));
        self.free_at = begun + self.service;
        self.flying.push_back((now, self.free_at + self.rtt));
        let in_flight = MSS * self.flying.len() as u64;
        let transmission = Transmission::Original;
        self.scheme.on_sent(&Sent { now, bytes: MSS, in_flight, transmission, is_app_limited: false });
    }

    /// The next ack or packet.
    fn step(&mut self) {
        let in_flight = MSS * self.flying.len() as u64;
        let may_send = self.scheme.allowance().window >= in_flight + MSS;
        let arrival = self.flying.front().map(|(_, at)| *at);
        let Some(at) = arrival.filter(|at| !may_send || *at <= self.next_send_at) else {
            return self.send(self.next_send_at);
        };
        let (newest_sent_at, _) = self.flying.pop_front().expect("one");
        let latest = at.since(newest_sent_at);
        let rtt = Rtt { latest, smoothed: self.rtt, variation: Span::ZERO, min: self.rtt };
        let in_flight = MSS * self.flying.len() as u64;
        let ack = Ack { newest_sent_at, rtt_sample: Some(latest), rtt, in_flight, ..acked(at, MSS) };
        self.next_send_at = self.next_send_at.max(at);
        if let Next::HandOver(how) = self.scheme.on_ack(&ack) {
            self.handed_over = Some(how);
        }
    }
}

/// PC: a start with a very short queue. Only the last path, of 10 Mbit/s and a BDP of 42
/// packets, has a queue: the average gap has to come up from a sixth of the path's.
#[test]
fn it_finds_the_bottlenecks_gap_with_a_queue_of_some_packets() {
    for (rtt, service, most) in [(20, 500, 4), (50, 500, 4), (100, 100, 2), (50, 1200, 42)] {
        let mut play = Play::new(rtt, service);
        for _ in 0..100_000 {
            if play.handed_over.is_none() {
                play.step();
            }
        }
        assert!(play.handed_over.is_some(), "{rtt} ms, {service} us: never ends");
        let found = play.scheme.gap.as_nanos() / 1000;
        assert!(found.abs_diff(service) <= service / 8, "{rtt} ms: {found} us, the path's is {service}");
        let packets = play.largest_queue.as_nanos() / play.service.as_nanos();
        assert!(packets <= most, "{rtt} ms, {service} us: a queue of {packets} packets");
    }
}

#[test]
fn chirps_double_from_the_seventh_on_until_they_fill_the_round_trip() {
    let mut play = Play::new(50, 500);
    let mut rounds = alloc::vec![];
    while play.handed_over.is_none() && rounds.last() != Some(&8) {
        let before = play.scheme.round.chirps;
        if rounds.last() != Some(&before) {
            rounds.push(before);
        }
        play.step();
    }
    assert_eq!(rounds, [2, 4, 8]);
}

#[test]
fn a_loss_or_a_timeout_is_cut_by_the_base_and_a_mark_is_not() {
    let mut play = Play::new(50, 500);
    let mark = Congestion { signal: Signal::CongestionExperienced, ..lost(Time::ZERO, MSS) };
    assert_eq!(play.scheme.on_congestion(&mark), Next::Stay);
    let loss = Congestion { prior_in_flight: MSS * 7, ..lost(Time::ZERO, MSS) };
    assert_eq!(play.scheme.on_congestion(&loss), Next::HandOver(HandOver::to_be_cut(MSS * 7)));
    let timeout = Timeout { prior_in_flight: MSS, ..timed_out(Time::ZERO) };
    assert_eq!(play.scheme.on_timeout(&timeout), Next::HandOver(HandOver::to_be_cut(MSS * 2)));
}

#[test]
fn absurd_paths_do_no_harm() {
    withstand_extremes(&absurd_priors(), 1, || PacedChirping::new(Params::default()));
}
