//! Every scheme by name: what a command line, a plan or a server's configuration can ask for.
//!
//! A new scheme needs its file, a variant of [`Scheme`] and a row here.

use headstart_units::{Bytes, Rate, Ratio};

use crate::hint::Guard;
use crate::quick_start::Amount;
use crate::quick_start::router::Granularity;
use crate::repair::ropr::{Clock, Order};
use crate::scheme::{
    Bbr, Blitzstart, CarefulResume, Halfback, JumpStart, Pcp, Proactive, QuickStart, RapidStart, Rcp,
    Reactive, SCubic, Scheme, SlowStart, TcpCache, WiseStart, bbr, blitzstart, halfback, jump_start,
    proactive, quick_start, reactive, s_cubic, slow_start, wise_start,
};

/// A scheme as it can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// What it must be told to be itself; without it, it falls back to slow start.
    pub needs: Needs,
    make: fn() -> Scheme,
}

/// What a scheme must be told to be itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing beyond the handshake.
    Nothing,
    /// The size of the flow.
    FlowSize,
    /// A record of the peer.
    History,
    /// The peer's hint.
    Hint,
    /// Routers that take part, all of them.
    Routers,
}

impl Entry {
    /// The scheme, as it is before a connection is established.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        (self.make)()
    }
}

/// The entry of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().chain(VARIANTS).find(|entry| entry.name == name)
}

const fn entry(name: &'static str, needs: Needs, summary: &'static str, make: fn() -> Scheme) -> Entry {
    Entry { name, summary, needs, make }
}

fn slow_start(initial_window: u64, hystart: bool) -> Scheme {
    let params = slow_start::Params { initial_window, hystart, spread: None };
    Scheme::SlowStart(SlowStart::new(params))
}

fn iw10() -> slow_start::Params {
    slow_start::Params { initial_window: 10, hystart: false, spread: None }
}

fn google() -> Scheme {
    let spread = Some(slow_start::Spread::default());
    Scheme::SlowStart(SlowStart::new(slow_start::Params { initial_window: 32, hystart: false, spread }))
}

fn google_until_delay() -> Scheme {
    let spread = Some(slow_start::Spread { leaves_on_delay: true, ..slow_start::Spread::default() });
    Scheme::SlowStart(SlowStart::new(slow_start::Params { initial_window: 32, hystart: false, spread }))
}

fn blitzstart(change: fn(&mut blitzstart::Params)) -> Scheme {
    let mut params = blitzstart::Params::default();
    change(&mut params);
    Scheme::Blitzstart(Blitzstart::new(params))
}

/// Twice what was ever delivered to the peer, and the peer's connections divide it.
const GUARD: Guard = Guard { past: Some(Ratio::new(2, 1)), divides: true, ..Guard::NONE };

fn halfback(change: fn(&mut halfback::Params)) -> Scheme {
    let mut params = halfback::Params::default();
    change(&mut params);
    Scheme::Halfback(Halfback::new(params))
}

/// The sender of the Quick-Start paper (§5): three segments, headers of 40 bytes, rates in any step.
fn paper_quick_start(change: fn(&mut quick_start::Params)) -> Scheme {
    let mut params = quick_start::Params {
        initial_window: 3,
        header: Bytes::new(40),
        granularity: Granularity::Exact,
        ..quick_start::Params::default()
    };
    change(&mut params);
    Scheme::QuickStart(QuickStart::new(params))
}

/// As RFC 4782 has it, with the initial window and the headers of the time.
fn quick_start_3(amount: Amount) -> Scheme {
    let params = quick_start::Params {
        initial_window: 3,
        header: Bytes::new(40),
        amount,
        ..quick_start::Params::default()
    };
    Scheme::QuickStart(QuickStart::new(params))
}

fn jump_start(cap: u64) -> Scheme {
    let params = jump_start::Params { cap: Some(Bytes::new(cap)), least: 3, ..jump_start::Params::default() };
    Scheme::JumpStart(JumpStart::new(params))
}

const fn fixed(bytes_per_second: u64) -> Amount {
    Amount::Fixed(Rate::from_bytes_per_sec(bytes_per_second))
}

fn wise_start(adaptation: bool) -> Scheme {
    Scheme::WiseStart(WiseStart::new(wise_start::Params { adaptation, ..wise_start::Params::default() }))
}

fn wise_start_through(adaptation: bool) -> Scheme {
    let params = wise_start::Params { adaptation, outlasts_loss: true, ..wise_start::Params::default() };
    Scheme::WiseStart(WiseStart::new(params))
}

/// Every scheme, baselines first.
#[rustfmt::skip]
pub const ALL: &[Entry] = &[
    entry("iw2", Needs::Nothing, "slow start from 2 segments (TCP in the Halfback paper)", || slow_start(2, false)),
    entry("iw3", Needs::Nothing, "slow start from 3 segments (TCP in the Quick-Start paper)", || slow_start(3, false)),
    entry("iw10", Needs::Nothing, "slow start from 10 segments (RFC 6928; TCP-10, Initial-Start)", || slow_start(10, false)),
    entry("iw10-hystart", Needs::Nothing, "slow start from 10 segments with HyStart++ (RFC 9406)", || slow_start(10, true)),
    entry("iw32", Needs::Nothing, "slow start from 32 segments (Cubic32)", || slow_start(32, false)),
    entry("iw32-paced", Needs::Nothing, "Google QUIC's: 10 at once, 22 over half an RTT (Blitzstart's baseline)", google),
    entry("iw64", Needs::Nothing, "slow start from 64 segments (Cubic64)", || slow_start(64, false)),
    entry("reactive", Needs::Nothing, "slow start from 2, and a probe for a lost tail", || Scheme::Reactive(Reactive::new(Default::default()))),
    entry("proactive", Needs::Nothing, "slow start from 2, every packet twice", || Scheme::Proactive(Proactive::new(Default::default()))),
    entry("jump-start", Needs::FlowSize, "all of the flow paced over one RTT", || Scheme::JumpStart(JumpStart::new(Default::default()))),
    entry("halfback", Needs::FlowSize, "as jump-start, then again from the end, one for each ack", || halfback(|_| ())),
    entry("halfback-forward", Needs::FlowSize, "halfback, but again from the beginning", || halfback(|params| params.order = Order::Forward)),
    entry("halfback-burst", Needs::FlowSize, "halfback, but again at line rate", || halfback(|params| params.clock = Clock::LineRate)),
    entry("pcp", Needs::Nothing, "paced probes of the path, then the probed rate", || Scheme::Pcp(Pcp::new(Default::default()))),
    entry("rapid-start", Needs::Nothing, "three times the window each RTT while no queue forms", || Scheme::RapidStart(RapidStart::new(Default::default()))),
    entry("bbr", Needs::Nothing, "BBR version 1", || Scheme::Bbr(Bbr::new(Default::default()))),
    entry("tcp-cache", Needs::History, "window and threshold of the last connection to the peer", || Scheme::TcpCache(TcpCache::new(Default::default()))),
    entry("s-cubic", Needs::History, "the peer's last rate x RTT, avoidance at once (Stateful-TCP)", || Scheme::SCubic(SCubic::new(Default::default()))),
    entry("wise-start", Needs::History, "the peer's last rate x RTT, then probe or drain at the sixth ack", || wise_start(true)),
    entry("wise-start-wa", Needs::History, "wise-start without its adaptation to the application", || wise_start(false)),
    entry("careful-resume", Needs::History, "half of the peer's last rate x RTT, once it is confirmed (RFC 9959)", || Scheme::CarefulResume(CarefulResume::new(Default::default()))),
    entry("quick-start", Needs::Routers, "the rate that every router grants, for one RTT (RFC 4782)", || Scheme::QuickStart(QuickStart::new(Default::default()))),
    entry("rcp", Needs::Routers, "the rate that routers stamp on every packet", || Scheme::Rcp(Rcp::new(Default::default()))),
    entry("blitzstart", Needs::Hint, "the client's hint x RTT, avoidance at once", || Scheme::Blitzstart(Blitzstart::new(Default::default()))),
];

/// Schemes with one parameter changed, for ablations: found by name, but not in the list of schemes to compare.
#[rustfmt::skip]
pub const VARIANTS: &[Entry] = &[
    entry("reactive-10", Needs::Nothing, "reactive from 10 segments", || Scheme::Reactive(Reactive::new(reactive::Params { slow_start: iw10() }))),
    entry("proactive-10", Needs::Nothing, "proactive from 10 segments", || Scheme::Proactive(Proactive::new(proactive::Params { slow_start: iw10() }))),
    entry("jump-start-64k", Needs::FlowSize, "jump-start with a flight of 64 KiB at most, and a window of 3 segments at least after it", || jump_start(64 << 10)),
    entry("jump-start-3", Needs::FlowSize, "jump-start with a window of 3 segments at least after its flight", || jump_start(u64::MAX)),
    entry("quick-start-3", Needs::Routers, "quick-start from 3 segments; with headers of 40 bytes", || quick_start_3(Amount::Object { socket_buffer: Bytes::new(65_536) })),
    entry("quick-start-3-later", Needs::Routers, "the same, asking only when it knows for how much", || quick_start_3(Amount::Known)),
    entry("halfback-0", Needs::FlowSize, "halfback without copies", || halfback(|params| params.additional = Ratio::new(0, 1))),
    entry("halfback-25", Needs::FlowSize, "halfback that sends a quarter of its flight again", || halfback(|params| params.additional = Ratio::new(1, 4))),
    entry("halfback-100", Needs::FlowSize, "halfback that sends all of its flight again", || halfback(|params| params.additional = Ratio::ONE)),
    entry("halfback-forward-100", Needs::FlowSize, "halfback-forward that nothing ends half-way, since acks and copies never meet", || halfback(|params| { params.order = Order::Forward; params.additional = Ratio::ONE; })),
    entry("s-cubic-held", Needs::History, "s-cubic that never hands over: window and rate of the record (Ideal in the WiseStart paper)", || Scheme::SCubic(SCubic::new(s_cubic::Params { holds: true, ..Default::default() }))),
    entry("s-cubic-in-flight", Needs::History, "s-cubic that goes on from what is in flight at the first ack, however little", || Scheme::SCubic(SCubic::new(s_cubic::Params { onward: s_cubic::Onward::Flight, ..Default::default() }))),
    entry("s-cubic-ngtcp2", Needs::History, "s-cubic that goes on from what is in flight, 10 segments at least, as its fork of ngtcp2 does", || Scheme::SCubic(SCubic::new(s_cubic::Params { onward: s_cubic::Onward::FlightOrInitial, ..Default::default() }))),
    entry("wise-start-ngtcp2", Needs::History, "wise-start that goes on to its decision when packets are lost, as its fork of ngtcp2 does", || wise_start_through(true)),
    entry("wise-start-wa-ngtcp2", Needs::History, "the same without its adaptation to the application", || wise_start_through(false)),
    entry("bbr-ngtcp2", Needs::Nothing, "BBR version 1 as ngtcp2 had it in 2022: no pace before the pipe was full, larger windows", || Scheme::Bbr(Bbr::new(bbr::Params { as_ngtcp2: true, ..Default::default() }))),
    entry("iw10-linux", Needs::Nothing, "as Linux's CUBIC begins: 10 segments and the older HyStart", || Scheme::SlowStart(SlowStart::linux())),
    entry("google-quic", Needs::Nothing, "iw32-paced that leaves slow start when delay grows (HyStart), as Google QUIC did", google_until_delay),
    entry("blitzstart-handshake", Needs::Hint, "blitzstart with the handshake's RTT, queues included", || blitzstart(|params| params.rtt = blitzstart::Known::Handshake)),
    entry("blitzstart-one-sample", Needs::Hint, "blitzstart that paces too by the smallest RTT known: all it has is one sample", || blitzstart(|params| params.paced_by = blitzstart::Known::Smallest)),
    entry("blitzstart-10", Needs::Hint, "blitzstart with 10 segments at once before it paces", || blitzstart(|params| params.burst = 10)),
    entry("blitzstart-guarded", Needs::Hint, "blitzstart that believes twice the peer's fastest delivery, divided among its connections", || blitzstart(|params| params.guard = GUARD)),
    entry("bbr-hinted", Needs::Hint, "BBR that begins from the hinted bandwidth", || Scheme::Bbr(Bbr::new(bbr::Params { begins_from_hint: true, ..Default::default() }))),
    entry("halfback-10", Needs::FlowSize, "halfback with 10 segments at once before it paces (Halfback section 4.2.4)", || halfback(|params| params.burst = 10)),
    entry("quick-start-exact", Needs::Routers, "quick-start as in its paper: 3 segments, asks for exactly its object (Quick-Start section 6.2)", || paper_quick_start(|_| ())),
    entry("quick-start-2MB", Needs::Routers, "the same, always asking for 2 MB/s (Quick-Start figure 3)", || paper_quick_start(|params| params.amount = fixed(2_000_000))),
    entry("quick-start-2Mbit", Needs::Routers, "the same, always asking for 2 Mbit/s (Quick-Start figure 13)", || paper_quick_start(|params| params.amount = fixed(250_000))),
    entry("quick-start-20MB", Needs::Routers, "the same, always asking for 20 MB/s (Quick-Start figure 2)", || paper_quick_start(|params| params.amount = fixed(20_000_000))),
    entry("quick-start-25", Needs::Routers, "the same, always asking for 25 packets a second (Quick-Start figure 1)", || paper_quick_start(|params| params.amount = fixed(37_500))),
    entry("quick-start-2MB-halving", Needs::Routers, "quick-start-2MB that halves its window after a failure (Quick-Start figure 4)", || paper_quick_start(|params| { params.amount = fixed(2_000_000); params.failure = quick_start::Failure::Halve; })),
    entry("quick-start-20MB-halving", Needs::Routers, "quick-start-20MB that halves its window after a failure (Quick-Start figure 4)", || paper_quick_start(|params| { params.amount = fixed(20_000_000); params.failure = quick_start::Failure::Halve; })),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let all: alloc::vec::Vec<&Entry> = ALL.iter().chain(VARIANTS).collect();
        for (at, entry) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other.name != entry.name), "{} twice", entry.name);
            assert_eq!(find(entry.name).map(|found| found.summary), Some(entry.summary));
        }
        assert!(find("tahoe").is_none());
    }
}
