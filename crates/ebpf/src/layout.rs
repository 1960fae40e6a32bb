//! The numbers that the object and this crate exchange, as `src/bpf/shared.h` and
//! `src/bpf/decide.h` lay them out.
//!
//! A structure is declared once, with its fields in the object's order, each of them a [`Field`].

use core::net::{IpAddr, Ipv6Addr};

/// An optional number that is absent.
pub const NONE: u64 = u64::MAX;

/// Writes numbers one after the other, in the machine's byte order.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Eight bytes, behind zeroes up to a multiple of eight, as C aligns them.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// All of it.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        self.0.clone()
    }
}

/// Reads what [`Writer`] writes. Past the end there are zeroes, and it is not whole.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        let found = self.bytes.get(self.at..self.at + SIZE).and_then(|it| it.try_into().ok());
        self.at += SIZE;
        found.unwrap_or([0; SIZE])
    }

    /// True if exactly everything was read.
    const fn is_whole(&self) -> bool {
        self.at == self.bytes.len()
    }
}

/// A part of a structure.
pub trait Field: Sized {
    /// Appends it.
    fn write(&self, out: &mut Writer);
    /// Reads it.
    fn read(from: &mut Reader<'_>) -> Self;
}

impl Field for u64 {
    fn write(&self, out: &mut Writer) {
        out.u64(*self);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        from.at = from.at.next_multiple_of(8);
        Self::from_ne_bytes(from.take())
    }
}

impl Field for i64 {
    fn write(&self, out: &mut Writer) {
        out.u64(self.cast_unsigned());
    }

    fn read(from: &mut Reader<'_>) -> Self {
        u64::read(from).cast_signed()
    }
}

impl Field for u32 {
    fn write(&self, out: &mut Writer) {
        out.u32(*self);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        Self::from_ne_bytes(from.take())
    }
}

/// A flag has four bytes.
impl Field for bool {
    fn write(&self, out: &mut Writer) {
        out.u32((*self).into());
    }

    fn read(from: &mut Reader<'_>) -> Self {
        u32::read(from) != 0
    }
}

/// Text has 16 bytes, and is cut to 15.
impl Field for String {
    fn write(&self, out: &mut Writer) {
        let mut field = [0; 16];
        for (place, byte) in field.iter_mut().zip(self.bytes().take(15)) {
            *place = byte;
        }
        out.0.extend(field);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        let field: [u8; 16] = from.take();
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        Self::from_utf8_lossy(&field[..end]).into_owned()
    }
}

/// A peer has 16 bytes.
impl Field for IpAddr {
    fn write(&self, out: &mut Writer) {
        out.0.extend(key(*self));
    }

    fn read(from: &mut Reader<'_>) -> Self {
        Self::V6(Ipv6Addr::from(from.take::<16>())).to_canonical()
    }
}

impl<T: Field, const LENGTH: usize> Field for [T; LENGTH] {
    fn write(&self, out: &mut Writer) {
        self.iter().for_each(|part| part.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Self {
        core::array::from_fn(|_| T::read(from))
    }
}

/// Structures of the object.
macro_rules! structures {
    ($($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* $access:vis $field:ident: $type:ty,)+ })+) => {$(
        $(#[$about])*
        pub struct $name {
            $($(#[$doc])* $access $field: $type,)+
        }

        impl Field for $name {
            fn write(&self, out: &mut Writer) {
                $(self.$field.write(out);)+
            }

            fn read(from: &mut Reader<'_>) -> Self {
                Self { $($field: Field::read(from),)+ }
            }
        }

        impl $name {
            /// As the object has it.
            #[must_use]
            pub fn to_bytes(&self) -> Vec<u8> {
                let mut out = Writer::default();
                self.write(&mut out);
                out.finish()
            }

            /// As the object has it; `None` if it has another size.
            #[must_use]
            pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
                let mut from = Reader { bytes, at: 0 };
                let found = Self::read(&mut from);
                from.is_whole().then_some(found)
            }
        }
    )+};
}

structures! {
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
        /// The object replaces the default of the network namespace.
        pub is_default: bool,
        /// The ring buffer of peers has a reader.
        pub is_exchanged: bool,
        /// Level "window": pacing limit until the first ack, in bytes per second; 0 is none.
        pub window_rate: u64,
        /// Number of the cgroup whose listeners carry the control; 0: none does.
        pub cgroup: u64,
        /// The default of the network namespace before.
        pub native: String,
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

    /// Counters of one arm (`struct hs_arm_counters`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ArmCounters {
        /// Connections that ended.
        pub connections: u64,
        /// Ended connections by the source of their first flight.
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
        phases: u32,
        codes: [u32; REPORTED_PHASES],
        times: [u32; REPORTED_PHASES],
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
    let mut from = Reader { bytes: key, at: 0 };
    let peer = IpAddr::read(&mut from);
    from.is_whole().then_some(peer)
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
        let mut from = Reader { bytes, at: 0 };
        let peer = IpAddr::read(&mut from);
        let kind = match u64::read(&mut from) {
            0 => Self::Connects,
            1 => Self::Saved,
            2 => Self::Dropped,
            _ => return None,
        };
        from.is_whole().then_some((peer, kind))
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

/// Phases that a report holds.
pub const REPORTED_PHASES: usize = 8;

impl Counters {
    /// Adds another processor's. All are numbers of 64 bits.
    pub fn add(&mut self, other: &Self) {
        let (mut sums, more) = (self.to_bytes(), other.to_bytes());
        let (sums_of, _) = sums.as_chunks_mut::<8>();
        for (sum, more) in sums_of.iter_mut().zip(more.as_chunks::<8>().0) {
            *sum = u64::from_ne_bytes(*sum).wrapping_add(u64::from_ne_bytes(*more)).to_ne_bytes();
        }
        *self = Self::from_bytes(&sums).unwrap_or(*self);
    }
}

impl Report {
    /// Phases with the time since it began to send, in microseconds.
    pub fn phases(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let all = self.codes.iter().zip(self.times);
        all.take(self.phases as usize).map(|(&code, at)| (at, phase(code)))
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
