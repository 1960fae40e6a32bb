//! The numbers that the object and this crate exchange, as `src/bpf/shared.h` and
//! `src/bpf/decide.h` lay them out.
//!
//! Everything is written and read field by field in the machine's byte order; the tests of this
//! module compare the sizes with the object's own type information.

use core::net::{IpAddr, Ipv6Addr};

/// An optional number that is absent.
pub const NONE: u64 = u64::MAX;

/// Writes numbers one after the other.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Text in a field of 16 bytes, cut to 15.
    pub fn name(&mut self, text: &str) -> &mut Self {
        let mut field = [0; 16];
        for (place, byte) in field.iter_mut().zip(text.bytes().take(15)) {
            *place = byte;
        }
        self.0.extend(field);
        self
    }

    /// All of it.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        self.0.clone()
    }
}

/// Reads numbers in order. Past the end there are zeroes, and [`Reader::is_whole`] is false.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins at the first byte.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn take<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        let found = self.bytes.get(self.at..self.at + SIZE).and_then(|it| it.try_into().ok());
        self.at += SIZE;
        found.unwrap_or([0; SIZE])
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    /// Eight bytes, with a sign.
    pub fn i64(&mut self) -> i64 {
        i64::from_ne_bytes(self.take())
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    /// Text in a field of 16 bytes.
    pub fn name(&mut self) -> String {
        let field: [u8; 16] = self.take();
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    }

    /// True if exactly everything was read.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.at == self.bytes.len()
    }
}

/// Parameters of a scheme (`struct hs_params`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// `enum hs_scheme`.
    pub scheme: u32,
    /// Segments of the initial window.
    pub initial_window: u32,
    /// `WiseStart`: the ack that decides.
    pub gamma: u32,
    /// `WiseStart`: segments at twice the rate.
    pub kappa: u32,
    /// `WiseStart`: adapt to a limiting application.
    pub adaptation: bool,
    /// `JumpStart` and Blitzstart: segments that leave at once.
    pub burst: u32,
    /// `JumpStart`: most bytes of the flight; Careful Resume: most bytes of the jump.
    pub cap: u64,
    /// Careful Resume: lifetime of a record, in nanoseconds.
    pub lifetime: u64,
}

impl Params {
    /// As `struct hs_params`.
    pub fn write(&self, out: &mut Writer) {
        out.u32(self.scheme).u32(self.initial_window).u32(self.gamma).u32(self.kappa);
        out.u32(self.adaptation.into()).u32(self.burst).u64(self.cap).u64(self.lifetime);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        Self {
            scheme: from.u32(),
            initial_window: from.u32(),
            gamma: from.u32(),
            kappa: from.u32(),
            adaptation: from.u32() != 0,
            burst: from.u32(),
            cap: from.u64(),
            lifetime: from.u64(),
        }
    }
}

/// Everything that an operator may change while the object runs (`struct hs_settings`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The scheme.
    pub params: Params,
    /// The most that a record or a hint may claim, in bytes per second.
    pub max_rate: u64,
    /// The most bytes of a first flight.
    pub max_window: u64,
    /// Lifetime of a record, in nanoseconds.
    pub lifetime: u64,
    /// The most that a hint may claim, in bytes per second.
    pub hint_rate: u64,
    /// Percent, times 100, of the eligible connections that get the scheme.
    pub hundredths: u32,
    /// The kill switch.
    pub stopped: bool,
    /// Refuse a record of another RTT.
    pub same_path: bool,
    /// Several live starts to one peer share its rate; else the record is refused while in use.
    pub shares: bool,
    /// The ring buffer of why records has a reader.
    pub traces: bool,
    /// Read the hint option.
    pub reads_hint: bool,
    /// Start fast again after idle.
    pub restarts_after_idle: bool,
    /// Take the connections that this host opens, too.
    pub outgoing: bool,
    /// Level "window": segments of the initial window.
    pub window: u32,
    /// Level "window": pacing limit until the first ack, in bytes per second; 0 is none.
    pub window_rate: u64,
    /// The object replaces the default of the network namespace.
    pub is_default: bool,
    /// The ring buffer of peers has a reader.
    pub is_exchanged: bool,
    /// Number of the cgroup whose listeners carry the control; 0: none does.
    pub cgroup: u64,
    /// The default of the network namespace before.
    pub native: String,
}

impl Settings {
    /// As `struct hs_settings`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        self.params.write(&mut out);
        out.u64(self.max_rate).u64(self.max_window).u64(self.lifetime).u64(self.hint_rate);
        out.u32(self.hundredths).u32(self.stopped.into()).u32(self.same_path.into()).u32(self.shares.into());
        out.u32(self.traces.into())
            .u32(self.reads_hint.into())
            .u32(self.restarts_after_idle.into())
            .u32(self.outgoing.into());
        out.u32(self.window).u32(self.is_default.into()).u32(self.is_exchanged.into()).u32(0);
        out.u64(self.window_rate).u64(self.cgroup);
        out.name(&self.native);
        out.finish()
    }

    /// From `struct hs_settings`; `None` if it has another size.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let from = &mut Reader::new(bytes);
        let params = Params::read(from);
        let (max_rate, max_window, lifetime, hint_rate) = (from.u64(), from.u64(), from.u64(), from.u64());
        let hundredths = from.u32();
        let mut flag = || from.u32() != 0;
        let (stopped, same_path, shares, traces) = (flag(), flag(), flag(), flag());
        let (reads_hint, restarts_after_idle, outgoing) = (flag(), flag(), flag());
        let (window, is_default, is_exchanged) = (from.u32(), from.u32() != 0, from.u32() != 0);
        from.u32();
        let (window_rate, cgroup, native) = (from.u64(), from.u64(), from.name());
        from.is_whole().then_some(Self {
            params,
            max_rate,
            max_window,
            lifetime,
            hint_rate,
            hundredths,
            stopped,
            same_path,
            shares,
            traces,
            reads_hint,
            restarts_after_idle,
            outgoing,
            window,
            window_rate,
            is_default,
            is_exchanged,
            cgroup,
            native,
        })
    }
}

/// A peer's key: an IPv4 address as its mapped IPv6 one, of IPv6 the first 64 bits.
#[must_use]
pub fn key(peer: IpAddr) -> [u8; 16] {
    match peer.to_canonical() {
        IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() & !u128::from(u64::MAX)).octets(),
    }
}

/// The address of a key; `None` if it has another length.
#[must_use]
pub fn peer(key: &[u8]) -> Option<IpAddr> {
    let octets: [u8; 16] = key.try_into().ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical())
}

/// An event of a peer, for the process that exchanges records with other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerEvent {
    /// A connection of it may come.
    Connects,
    /// Its record was written.
    Saved,
    /// Its record misled a start and was removed.
    Dropped,
}

impl PeerEvent {
    /// From `struct hs_peer_event`; `None` if it has another size or kind.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<(IpAddr, Self)> {
        let peer = peer(bytes.get(..16)?)?;
        let from = &mut Reader::new(&bytes[16..]);
        let kind = match from.u64() {
            0 => Self::Connects,
            1 => Self::Saved,
            2 => Self::Dropped,
            _ => return None,
        };
        from.is_whole().then_some((peer, kind))
    }
}

/// A record as the object keeps it (`struct hs_record`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRecord {
    /// Nanoseconds since boot; negative before it.
    pub saved_at: i64,
    /// Bytes per second.
    pub btl_bw: u64,
    /// Nanoseconds.
    pub rt_prop: u64,
    /// Bytes.
    pub window: u64,
    /// Bytes; [`NONE`] if none was ever set.
    pub ssthresh: u64,
    /// 0 clean, 1 lossy.
    pub ended: u32,
    /// Percent: agreement of the last records of the peer.
    pub trust: u32,
    /// Bytes that concurrent first flights to the peer may hold together; 0: none yet.
    pub credit: u64,
}

impl KernelRecord {
    /// As `struct hs_record`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.u64(self.saved_at.cast_unsigned()).u64(self.btl_bw).u64(self.rt_prop).u64(self.window);
        out.u64(self.ssthresh).u32(self.ended).u32(self.trust).u64(self.credit);
        out.finish()
    }

    /// From `struct hs_record`; `None` if it has another size.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let from = &mut Reader::new(bytes);
        let record = Self {
            saved_at: from.i64(),
            btl_bw: from.u64(),
            rt_prop: from.u64(),
            window: from.u64(),
            ssthresh: from.u64(),
            ended: from.u32(),
            trust: from.u32(),
            credit: from.u64(),
        };
        from.is_whole().then_some(record)
    }
}

/// The arms, in the object's order, by the names of the QUIC server.
pub const ARMS: [&str; 5] = ["undecided", "treatment", "control", "ineligible", "stopped"];
/// The sources of a first flight, in the object's order.
pub const SOURCES: [&str; 4] = ["nothing", "flow-size", "history", "hint"];
/// The reasons for which a record is refused, in the object's order; the first is none.
pub const REFUSALS: [&str; 8] = [
    "accepted",
    "no-record",
    "expired",
    "in-use",
    "rtt-too-small",
    "rtt-too-large",
    "nothing-to-gain",
    "congested",
];
/// Fate of the record, in the object's order.
pub const RECORD_OUTCOMES: [&str; 4] = ["open", "saved", "nothing", "dropped"];
/// The phases, in the object's order.
pub const PHASES: [&str; 15] = [
    "slow-start",
    "Sending",
    "Maintenance",
    "Drain",
    "paced",
    "cached",
    "jump-start",
    "growing",
    "recovery",
    "Reconnaissance",
    "Unvalidated",
    "Validating",
    "Safe-Retreat",
    "spread",
    "first-flight",
];

/// Counters of one arm (`struct hs_arm_counters`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArmCounters {
    /// Connections that ended.
    pub connections: u64,
    /// Those of them by the source of their first flight.
    pub sources: [u64; SOURCES.len()],
    /// Round trips saved against slow start from ten packets, summed up.
    pub rounds_saved: i64,
    /// Payload bytes sent, retransmissions included.
    pub sent: u64,
    /// Bytes declared lost.
    pub lost: u64,
    /// Bytes of first flights.
    pub first_flight: u64,
    /// Bytes of first flights declared lost.
    pub first_flight_lost: u64,
    /// Bytes retransmitted.
    pub retransmitted: u64,
    /// Congestion marks that ended a start.
    pub marks: u64,
    /// Timeouts that ended a start.
    pub timeouts: u64,
    /// Records written.
    pub saved: u64,
    /// Records dropped because they were wrong.
    pub dropped: u64,
    /// Fast starts after idle.
    pub restarts: u64,
}

/// All counters (`struct hs_counters`), of one processor or added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// By arm.
    pub arms: [ArmCounters; ARMS.len()],
    /// Records not used, by reason.
    pub refusals: [u64; REFUSALS.len()],
    /// Hints received, cut, malformed.
    pub hints: [u64; 3],
    /// Connections taken over.
    pub taken: u64,
    /// First flights repaired by their own recovery.
    pub recoveries: u64,
}

impl Counters {
    /// From `struct hs_counters`; `None` if it has another size.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let from = &mut Reader::new(bytes);
        let mut all = Self::default();
        for arm in &mut all.arms {
            arm.connections = from.u64();
            arm.sources = core::array::from_fn(|_| from.u64());
            arm.rounds_saved = from.i64();
            for counter in [
                &mut arm.sent,
                &mut arm.lost,
                &mut arm.first_flight,
                &mut arm.first_flight_lost,
                &mut arm.retransmitted,
                &mut arm.marks,
                &mut arm.timeouts,
                &mut arm.saved,
                &mut arm.dropped,
                &mut arm.restarts,
            ] {
                *counter = from.u64();
            }
        }
        all.refusals = core::array::from_fn(|_| from.u64());
        all.hints = core::array::from_fn(|_| from.u64());
        all.taken = from.u64();
        all.recoveries = from.u64();
        from.is_whole().then_some(all)
    }

    /// Adds another processor's.
    pub fn add(&mut self, other: &Self) {
        for (arm, more) in self.arms.iter_mut().zip(&other.arms) {
            arm.connections += more.connections;
            add(&mut arm.sources, &more.sources);
            arm.rounds_saved += more.rounds_saved;
            arm.sent += more.sent;
            arm.lost += more.lost;
            arm.first_flight += more.first_flight;
            arm.first_flight_lost += more.first_flight_lost;
            arm.retransmitted += more.retransmitted;
            arm.marks += more.marks;
            arm.timeouts += more.timeouts;
            arm.saved += more.saved;
            arm.dropped += more.dropped;
            arm.restarts += more.restarts;
        }
        add(&mut self.refusals, &other.refusals);
        add(&mut self.hints, &other.hints);
        self.taken += other.taken;
        self.recoveries += other.recoveries;
    }
}

fn add(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

/// Phases that a report holds.
pub const REPORTED_PHASES: usize = 8;

/// Why a connection started as it did (`struct hs_report`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The peer.
    pub peer: IpAddr,
    /// Nanoseconds.
    pub handshake_rtt: u64,
    /// Bytes per second; 0: there was no record.
    pub record_rate: u64,
    /// Nanoseconds.
    pub record_rtt: u64,
    /// Bytes per second; 0: none.
    pub hint: u64,
    /// Bytes per second.
    pub granted: u64,
    /// Bytes.
    pub burst: u64,
    /// Bytes.
    pub first_flight: u64,
    /// Bytes per second; 0 leaves the pace to the kernel.
    pub pace: u64,
    /// Bytes sent before the first ack.
    pub first_round: u64,
    /// Bytes.
    pub sent: u64,
    /// Bytes.
    pub lost: u64,
    /// Bytes.
    pub first_flight_lost: u64,
    /// Nanoseconds.
    pub min_rtt: u64,
    /// Bytes per second; 0 without a measurement.
    pub rate: u64,
    /// Bytes.
    pub mss: u64,
    /// Nanoseconds since the first data; 0: nothing was sent.
    pub lasted: u64,
    /// Nanoseconds from the first data to the last ack before the first pause; 0: none.
    pub answer: u64,
    /// Bytes acknowledged until then.
    pub answer_bytes: u64,
    /// Against slow start from ten packets.
    pub rounds_saved: i64,
    /// Others with data in flight when it started.
    pub record_live: u32,
    /// `enum hs_scheme`.
    pub scheme: u32,
    /// Index into [`ARMS`].
    pub arm: u32,
    /// Index into [`SOURCES`].
    pub source: u32,
    /// Index into [`REFUSALS`].
    pub refusal: u32,
    /// Flights planned.
    pub flights: u32,
    /// Index into [`RECORD_OUTCOMES`].
    pub record_outcome: u32,
    /// Phases with the time since it began to send, in microseconds.
    pub phases: Vec<(u32, &'static str)>,
}

impl Report {
    /// From `struct hs_report`; `None` if it has another size.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let peer = peer(bytes.get(..16)?)?;
        let from = &mut Reader::new(&bytes[16..]);
        let mut report = Self {
            peer,
            handshake_rtt: from.u64(),
            record_rate: from.u64(),
            record_rtt: from.u64(),
            hint: from.u64(),
            granted: from.u64(),
            burst: from.u64(),
            first_flight: from.u64(),
            pace: from.u64(),
            first_round: from.u64(),
            sent: from.u64(),
            lost: from.u64(),
            first_flight_lost: from.u64(),
            min_rtt: from.u64(),
            rate: from.u64(),
            mss: from.u64(),
            lasted: from.u64(),
            answer: from.u64(),
            answer_bytes: from.u64(),
            rounds_saved: from.i64(),
            record_live: from.u32(),
            scheme: from.u32(),
            arm: from.u32(),
            source: from.u32(),
            refusal: from.u32(),
            flights: from.u32(),
            record_outcome: from.u32(),
            phases: Vec::new(),
        };
        let count = from.u32() as usize;
        let codes: [u32; REPORTED_PHASES] = core::array::from_fn(|_| from.u32());
        let times: [u32; REPORTED_PHASES] = core::array::from_fn(|_| from.u32());
        report.phases = codes.iter().zip(times).take(count).map(|(&code, at)| (at, phase(code))).collect();
        from.is_whole().then_some(report)
    }
}

/// A phase and its result, in the object's coding.
fn phase(code: u32) -> &'static str {
    match (code >> 8, code & 0xff) {
        (_, 1) => "slow-start",
        (_, 2) => "avoidance",
        (_, 3) => "cut",
        (phase, _) => PHASES.get(phase as usize).copied().unwrap_or("unknown"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scheme::Scheme;

    #[test]
    fn settings_survive_conversion_to_the_kernel_and_back() {
        let mut settings = Scheme::WiseStart.settings();
        settings.native = "bbr".to_owned();
        (settings.is_default, settings.is_exchanged, settings.cgroup) = (true, true, u64::MAX);
        settings.hundredths = 1_250;
        assert_eq!(Settings::from_bytes(&settings.to_bytes()), Some(settings.clone()));
        assert_eq!(Settings::from_bytes(&settings.to_bytes()[1..]), None);
    }

    #[test]
    fn an_ipv6_site_is_one_peer_and_a_mapped_address_its_ipv4_one() {
        let at = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(key(at("2001:db8:1:2:3:4:5:6")), key(at("2001:db8:1:2::1")));
        assert_eq!(key(at("::ffff:192.0.2.7")), key(at("192.0.2.7")));
        assert_eq!(peer(&key(at("192.0.2.7"))), Some(at("192.0.2.7")));
        assert_eq!(peer(&[0; 15]), None);
    }

    proptest! {
        #[test]
        fn any_map_value_is_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let settings = Settings::from_bytes(&bytes);
            prop_assert_eq!(settings.is_some(), bytes.len() == Scheme::WiseStart.settings().to_bytes().len());
            // A flag or a name may have several encodings; a value that was read keeps its meaning
            // when it is written.
            if let Some(settings) = settings {
                prop_assert_eq!(Settings::from_bytes(&settings.to_bytes()).map(|it| it.params), Some(settings.params));
            }
            let _ = (Report::from_bytes(&bytes), Counters::from_bytes(&bytes), KernelRecord::from_bytes(&bytes));
            let _ = PeerEvent::from_bytes(&bytes);
        }
    }

    #[test]
    fn counters_are_summed_over_processors() {
        let mut bytes = Vec::new();
        for number in 0..(ARMS.len() * 16 + REFUSALS.len() + 5) as u64 {
            bytes.extend(number.to_ne_bytes());
        }
        let one = Counters::from_bytes(&bytes).expect("counters");
        let mut sum = one;
        sum.add(&one);
        assert_eq!((one.arms[0].sources[3], one.recoveries), (4, (bytes.len() / 8 - 1) as u64));
        assert_eq!((sum.arms[4].restarts, sum.hints[2]), (one.arms[4].restarts * 2, one.hints[2] * 2));
        assert_eq!(Counters::from_bytes(&bytes[8..]), None);
    }
}
