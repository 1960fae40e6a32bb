//! The numbers that the object and this crate exchange, declared once.
//!
//! From `structures!` and `names!` come the Rust types with their bytes, and the C declarations
//! of `src/bpf/layout.h`: a test compares that file, and writes it with `HEADSTART_WRITE_DOCS=1`.

use core::net::{IpAddr, Ipv6Addr};

use headstart_units::{Bytes, Rate};

/// An optional number that is absent.
pub const NONE: u64 = u64::MAX;
/// The largest rate: 100 Gbit/s.
pub const MAX_RATE: Rate = Rate::from_mbit_per_sec(100_000);
/// The largest window: no receive window is larger (RFC 7323 section 2.2).
pub const MAX_WINDOW: Bytes = Bytes::new(1 << 30);

/// Reads what [`Field::write`] writes. Past the end there are zeroes, and it is not whole.
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

/// A part of a structure, in the machine's byte order.
pub trait Field: Sized {
    /// The type in C.
    const C: &'static str;

    /// Appends the value, behind zeroes up to a multiple of its alignment.
    fn write(&self, out: &mut Vec<u8>);
    /// Reads the next value.
    fn read(from: &mut Reader<'_>) -> Self;

    /// Declares it in C under this name.
    #[must_use]
    fn declare(name: &str) -> String {
        format!("{} {name}", Self::C)
    }
}

macro_rules! numbers {
    ($($type:ty = $c:literal),+) => {$(
        impl Field for $type {
            const C: &'static str = $c;

            fn write(&self, out: &mut Vec<u8>) {
                out.resize(out.len().next_multiple_of(size_of::<Self>()), 0);
                out.extend(self.to_ne_bytes());
            }

            fn read(from: &mut Reader<'_>) -> Self {
                from.at = from.at.next_multiple_of(size_of::<Self>());
                Self::from_ne_bytes(from.take())
            }
        }
    )+};
}

numbers! { u8 = "__u8", i32 = "__s32", u32 = "__u32", i64 = "__s64", u64 = "__u64" }

/// A flag has four bytes.
impl Field for bool {
    const C: &'static str = u32::C;

    fn write(&self, out: &mut Vec<u8>) {
        u32::from(*self).write(out);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        u32::read(from) != 0
    }
}

/// Text has 16 bytes, and is cut to 15.
impl Field for String {
    const C: &'static str = "char";

    fn write(&self, out: &mut Vec<u8>) {
        let mut field = [0; 16];
        for (place, byte) in field.iter_mut().zip(self.bytes().take(15)) {
            *place = byte;
        }
        out.extend(field);
    }

    fn read(from: &mut Reader<'_>) -> Self {
        let field: [u8; 16] = from.take();
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        Self::from_utf8_lossy(&field[..end]).into_owned()
    }

    fn declare(name: &str) -> String {
        format!("{} {name}[16]", Self::C)
    }
}

/// A peer has 16 bytes.
impl Field for IpAddr {
    const C: &'static str = "struct hs_key";

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(key(*self));
    }

    fn read(from: &mut Reader<'_>) -> Self {
        Self::V6(Ipv6Addr::from(from.take::<16>())).to_canonical()
    }
}

impl<T: Field, const LENGTH: usize> Field for [T; LENGTH] {
    const C: &'static str = T::C;

    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|part| part.write(out));
    }

    fn read(from: &mut Reader<'_>) -> Self {
        core::array::from_fn(|_| T::read(from))
    }

    fn declare(name: &str) -> String {
        format!("{}[{LENGTH}]", T::declare(name))
    }
}

/// Structures of the object: name and further derives here, name in C, fields. Each has a number of
/// eight bytes, to which C aligns it.
macro_rules! structures {
    ($(
        $(#[$about:meta])*
        struct $name:ident($($derive:ident),*) = $c:literal { $($field:ident: $type:ty, $doc:literal;)+ }
    )+) => {
        $(
            $(#[$about])*
            #[derive(Clone, Debug, PartialEq, Eq, $($derive),*)]
            pub struct $name {
                $(#[doc = $doc] pub $field: $type,)+
            }

            impl Field for $name {
                const C: &'static str = concat!("struct ", $c);

                fn write(&self, out: &mut Vec<u8>) {
                    $(self.$field.write(out);)+
                    out.resize(out.len().next_multiple_of(8), 0);
                }

                fn read(from: &mut Reader<'_>) -> Self {
                    let found = Self { $($field: Field::read(from),)+ };
                    from.at = from.at.next_multiple_of(8);
                    found
                }
            }

            impl $name {
                /// As the object has it.
                #[must_use]
                pub fn to_bytes(&self) -> Vec<u8> {
                    let mut out = Vec::new();
                    self.write(&mut out);
                    out
                }

                /// As the object has it; `None` if it has another size.
                #[must_use]
                pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
                    let mut from = Reader { bytes, at: 0 };
                    let found = Self::read(&mut from);
                    from.is_whole().then_some(found)
                }
            }
        )+

        #[cfg(test)]
        fn declarations() -> String {
            let field = |declared: String, doc| format!("\t{declared};\t/* {doc} */\n");
            let parts = [$(
                format!("\n{} {{\n", $name::C),
                $(field(<$type>::declare(stringify!($field)), $doc),)+
                "};\n".to_owned(),
            )+];
            parts.concat()
        }
    };
}

/// Lists of names: an `enum` in C, whose last value counts the others.
macro_rules! names {
    ($($(#[$about:meta])* $list:ident: $count:literal = $c:ident { $($code:ident = $name:literal),+ $(,)? })+) => {
        $($(#[$about])* pub const $list: [&str; $count] = [$($name),+];)+

        #[cfg(test)]
        fn enumerations() -> String {
            let each = [$(
                concat!("enum ", stringify!($c), " {", $(" ", stringify!($code), ",",)+ " HS_", stringify!($list), " };\n"),
            )+];
            each.concat()
        }
    };
}

/// Phases that a report holds.
pub const REPORTED_PHASES: usize = 8;

structures! {
    /// Parameters of a scheme.
    struct Params(Copy, Default) = "hs_params" {
        scheme: u32, "`enum hs_scheme`.";
        initial_window: u32, "Segments of the initial window; Headstart: of 1448 bytes, of a first contact.";
        gamma: u32, "`WiseStart`: the ack that decides.";
        kappa: u32, "`WiseStart`: segments at twice the rate.";
        adaptation: bool, "`WiseStart`: adapt to a limiting application.";
        burst: u32, "`JumpStart` and Blitzstart: segments that leave at once.";
        cap: u64, "`JumpStart`: most bytes of the flight; Careful Resume: most bytes of the jump.";
        lifetime: u64, "Careful Resume: lifetime of a record, in nanoseconds.";
    }

    /// Knowledge before the first flight.
    struct Prior(Copy, Default) = "hs_prior" {
        now: u64, "Nanoseconds.";
        handshake_rtt: u64, "Nanoseconds.";
        flow_size: u64, "Bytes; `NONE`: not known.";
        receive_window: u64, "Bytes.";
        initial_window: u64, "Of the transport, in bytes; 0: one flow for each connection.";
        saved_at: u64, "Nanoseconds.";
        btl_bw: u64, "Bytes per second; 0: no record.";
        rt_prop: u64, "Nanoseconds.";
        window: u64, "TCP-Cache: bytes.";
        ssthresh: u64, "TCP-Cache: bytes.";
        hint: u64, "Bytes per second; 0: none.";
        credit: u64, "Headstart, `history::SharedCredit`: bytes; 0: none yet.";
        reserved: u64, "Headstart, `history::SharedCredit`: bytes.";
        live: u32, "Others that began from the record.";
        mss: u32, "Bytes.";
        lossy: u32, "The start that left the record had a loss or a mark.";
        doubt: u32, "Headstart, `history::SharedCredit`: millionths.";
    }

    /// A departure.
    struct Sent(Copy, Default) = "hs_sent" {
        now: u64, "Nanoseconds.";
        bytes: u64, "Bytes.";
        in_flight: u64, "These included.";
    }

    /// An acknowledgement.
    struct Ack(Copy, Default) = "hs_ack" {
        now: u64, "Nanoseconds.";
        newest_sent_at: u64, "Nanoseconds.";
        newly_acked: u64, "Bytes.";
        first_flight_acked: u64, "Bytes.";
        rtt_sample: u64, "Nanoseconds; `NONE`: ambiguous.";
        min_rtt: u64, "Nanoseconds.";
        smoothed: u64, "Nanoseconds.";
        in_flight: u64, "Bytes.";
        delivered: u64, "Bytes.";
        is_window_limited: u32, "The window holds data back.";
        in_recovery: u32, "Losses are being repaired.";
    }

    /// A congestion signal or a timeout.
    struct Congestion(Copy, Default) = "hs_congestion" {
        lost: u64, "Bytes.";
        first_flight_lost: u64, "Bytes.";
        in_flight: u64, "Bytes.";
        delivered: u64, "Bytes.";
        is_mark: u32, "A CE mark, not a loss.";
        is_timeout: u32, "Neither: nothing was acknowledged for long.";
    }

    /// State of one start; times in nanoseconds, rates in bytes per second.
    struct Start(Copy, Default) = "hs_start" {
        window: u64, "Bytes.";
        pace: u64, "0: none.";
        ssthresh: u64, "With `HS_AVOID`.";
        flight: u64, "Bytes.";
        burst: u64, "Bytes.";
        mss: u64, "Bytes.";
        btl_bw: u64, "Last_BtlBw.";
        rt_prop: u64, "Of the record.";
        est_btl_bw: u64, "Est_BtlBw, once decided.";
        est_bdp: u64, "Bytes.";
        first_at: u64, "WiseStart, Headstart: first ack; Careful Resume: when Unvalidated began.";
        first_sent_at: u64, "Departure of what that acknowledged.";
        last_sent_at: u64, "Headstart: arrival of the last ack of the first instant.";
        acked: u64, "Bytes.";
        min_rtt: u64, "Of the connection.";
        rtt: u64, "Careful Resume: for pacing.";
        pipe_size: u64, "Headstart: acked by single packets since the train's end.";
        through: u64, "Of the first flight, as originals: bytes.";
        in_flight: u64, "Bytes.";
        began: u64, "Est_SendRate: since when.";
        due: u64, "Est_SendRate: what the bytes should have taken; Headstart: arrival of the train.";
        blocked: u64, "Est_SendRate: time that the window was full; Headstart: departure of the train.";
        blocked_since: u64, "`NONE`: the window has room.";
        lost: u64, "Headstart: bytes of the first flight.";
        beside: u64, "Others' first flights to the peer when this one began: bytes.";
        cold: u64, "Credit of a first contact before any outcome: bytes.";
        scheme: u32, "`enum hs_scheme`.";
        phase: u32, "`enum hs_phase`.";
        acks: u32, "Number so far.";
        share: u32, "Connections that divide the estimates.";
        kept: u32, "Window after a loss, in percent of the delivered bytes.";
        refusal: u32, "`enum hs_refusal`.";
        discards: u32, "The record was wrong.";
        next: u32, "`enum hs_next` of the last event.";
        settled: u32, "Headstart: the outcome of the first flight is known.";
        thinned: u32, "Headstart: an ack has covered two packets or more.";
        least_rtt: u64, "Headstart: the least of the latest samples.";
        paused_at: u64, "Headstart: when growth stopped; `NONE`: at no ack yet.";
        pause: u32, "Headstart: `enum hs_pause`.";
        samples: u32, "Headstart: number of the latest samples.";
    }

    /// Everything that an operator may change while the object runs.
    struct Settings() = "hs_settings" {
        params: Params, "The scheme.";
        max_rate: u64, "The most that a record or a hint may claim, in bytes per second.";
        max_window: u64, "The most bytes of a first flight.";
        lifetime: u64, "Lifetime of a record, in nanoseconds.";
        hint_rate: u64, "The most that a hint may claim, in bytes per second.";
        hundredths: u32, "Percent, times 100, of the eligible connections that get the scheme.";
        stopped: bool, "The kill switch.";
        same_path: bool, "Refuse a record of another RTT.";
        shares: bool, "Several live starts to one peer share its rate; else the record is refused while in use.";
        traces: bool, "The ring buffer of why records has a reader.";
        reads_hint: bool, "Read the hint option.";
        restarts_after_idle: bool, "Start fast again after idle.";
        outgoing: bool, "Take the connections that this host opens, too.";
        window: u32, "Level `window`: segments of the initial window.";
        is_default: bool, "The object replaces the default of the network namespace.";
        is_exchanged: bool, "The ring buffer of peers has a reader.";
        unused: u32, "Nothing.";
        window_rate: u64, "Level `window`: pacing limit until the first ack, in bytes per second; 0 is none.";
        cgroup: u64, "Number of the cgroup whose listeners carry the control; 0: none does.";
        native: String, "The default of the network namespace before: in charge after a start.";
    }

    /// A record as the object keeps it.
    struct KernelRecord(Copy) = "hs_record" {
        saved_at: i64, "Nanoseconds since boot; negative before it.";
        btl_bw: u64, "Bytes per second.";
        rt_prop: u64, "Nanoseconds.";
        window: u64, "Bytes.";
        ssthresh: u64, "Bytes; [`NONE`] if none was ever set.";
        ended: u32, "0 clean, 1 lossy.";
        trust: u32, "Percent: agreement of the last records of the peer.";
        credit: u64, "Bytes that concurrent first flights to the peer may hold together; 0: none yet.";
    }

    /// An event of a peer, for the ring buffer `peers`.
    struct PeerMessage(Copy) = "hs_peer_event" {
        peer: IpAddr, "The peer.";
        kind: u64, "`enum hs_peer_event_kind`.";
    }

    /// Counters of one arm.
    struct ArmCounters(Copy, Default) = "hs_arm_counters" {
        connections: u64, "Connections that ended.";
        sources: [u64; SOURCES.len()], "Ended connections by the source of their first flight.";
        rounds_saved: i64, "Round trips saved against slow start from ten packets, summed up.";
        sent: u64, "Payload bytes sent, retransmissions included.";
        lost: u64, "Bytes declared lost.";
        first_flight: u64, "Bytes of first flights.";
        first_flight_lost: u64, "Bytes of first flights declared lost.";
        retransmitted: u64, "Bytes retransmitted.";
        marks: u64, "Congestion marks that ended a start.";
        timeouts: u64, "Timeouts that ended a start.";
        saved: u64, "Records written.";
        dropped: u64, "Records dropped because they were wrong.";
        restarts: u64, "Fast starts after idle.";
    }

    /// All counters, of one processor or added up.
    struct Counters(Copy, Default) = "hs_counters" {
        arms: [ArmCounters; ARMS.len()], "By arm.";
        refusals: [u64; REFUSALS.len()], "Records not used, by reason.";
        hints: [u64; 3], "Hints received, cut, malformed.";
        taken: u64, "Connections taken over.";
        recoveries: u64, "First flights repaired by their own recovery.";
    }

    /// Why a connection started as it did.
    struct Report() = "hs_report" {
        peer: IpAddr, "The peer.";
        handshake_rtt: u64, "Nanoseconds.";
        record_rate: u64, "Bytes per second; 0: there was no record.";
        record_rtt: u64, "Nanoseconds.";
        hint: u64, "Bytes per second; 0: none.";
        granted: u64, "Bytes per second.";
        burst: u64, "Bytes.";
        first_flight: u64, "Bytes.";
        pace: u64, "Bytes per second; 0 leaves the pace to the kernel.";
        first_round: u64, "Bytes sent before the first ack.";
        sent: u64, "Bytes.";
        lost: u64, "Bytes.";
        first_flight_lost: u64, "Bytes.";
        min_rtt: u64, "Nanoseconds.";
        rate: u64, "Bytes per second; 0 without a measurement.";
        mss: u64, "Bytes.";
        lasted: u64, "Nanoseconds since the first data; 0: nothing was sent.";
        answer: u64, "Nanoseconds from the first data to the last ack before the first pause; 0: none.";
        answer_bytes: u64, "Bytes acknowledged until then.";
        rounds_saved: i64, "Against slow start from ten packets.";
        limited: [u64; LIMITS.len()], "Nanoseconds of the answer by what held back its next packet.";
        record_live: u32, "Others with data in flight when it started.";
        scheme: u32, "`enum hs_scheme`.";
        arm: u32, "Index into [`ARMS`].";
        source: u32, "Index into [`SOURCES`].";
        refusal: u32, "Index into [`REFUSALS`].";
        flights: u32, "Flights planned.";
        record_outcome: u32, "Index into [`RECORD_OUTCOMES`].";
        phases: u32, "Number of the phases.";
        phase: [u32; REPORTED_PHASES], "Phase and result of each, as `note()` codes them.";
        phase_at: [u32; REPORTED_PHASES], "Microseconds since it began to send.";
        control: String, "The congestion control of the connection before, and after the start.";
    }

    /// One event of a vector, run on the loaded object by `BPF_PROG_TEST_RUN`.
    struct Replay(Copy, Default) = "hs_replay" {
        params: Params, "Of the scheme.";
        start: Start, "State before and after it.";
        prior: Prior, "`HS_EVENT_ESTABLISH`; `HS_EVENT_OUTCOME`: the answer.";
        sent: Sent, "`HS_EVENT_SENT`.";
        ack: Ack, "`HS_EVENT_ACK`.";
        congestion: Congestion, "`HS_EVENT_CONGESTION`, `HS_EVENT_TIMEOUT`.";
        event: u64, "`enum hs_event`.";
    }

    /// The bytes of a hint's option, and the rate read from them.
    struct ReplayHint(Copy, Default) = "hs_replay_hint_args" {
        option: [u8; 12], "As `bpf_load_hdr_opt()` leaves it.";
        found: i32, "Length that `bpf_load_hdr_opt()` returned.";
        rate: u64, "Bytes per second; 0: malformed.";
    }

    /// Time that the history takes to insert or find peers, out of cache order.
    struct ReplayPeers(Copy, Default) = "hs_peers" {
        count: u32, "Of peers.";
        inserts: bool, "Inserts them; else finds them.";
        found: u64, "Successes.";
        took: u64, "Nanoseconds.";
    }
}

names! {
    /// The schemes, in the object's order; `WiseStart` has two names here ([`Params::adaptation`]).
    SCHEMES: 8 = hs_scheme {
        HS_SLOW_START = "slow-start", HS_JUMP_START = "jump-start", HS_S_CUBIC = "s-cubic",
        HS_TCP_CACHE = "tcp-cache", HS_WISE_START = "wise-start", HS_CAREFUL_RESUME = "careful-resume",
        HS_BLITZSTART = "blitzstart", HS_HEADSTART = "headstart",
    }
    /// The phases, in the object's order. Idle is before the first data and after the start;
    /// growing is after the flight of `JumpStart` and Headstart, and Careful Resume's Normal.
    PHASES: 15 = hs_phase {
        HS_IDLE = "slow-start", HS_SENDING = "Sending", HS_MAINTENANCE = "Maintenance", HS_DRAIN = "Drain",
        HS_PACED = "paced", HS_CACHED = "cached", HS_JUMP = "jump-start", HS_GROWING = "growing",
        HS_RECOVERY = "recovery", HS_RECONNAISSANCE = "Reconnaissance", HS_UNVALIDATED = "Unvalidated",
        HS_VALIDATING = "Validating", HS_RETREAT = "Safe-Retreat", HS_SPREAD = "spread",
        HS_FIRST_FLIGHT = "first-flight",
    }
    /// The states of Headstart's pause, as of `growth.rs`.
    PAUSES: 4 = hs_pause {
        HS_WATCHING = "watching", HS_ASSUMED = "assumed", HS_PAUSED = "paused", HS_OVER = "over",
    }
    /// In charge after an event: the scheme, or the kernel. It grows from the window, avoids with
    /// the start's threshold, or answers the event itself and cuts.
    NEXT: 4 = hs_next { HS_STAY = "stay", HS_GROW = "grow", HS_AVOID = "avoid", HS_CUT = "cut" }
    /// The reasons for which a record is refused; the first is none, the others are those of
    /// [`headstart_startup::history::Refusal`] in its order.
    REFUSALS: 8 = hs_refusal {
        HS_ACCEPTED = "accepted", HS_NO_RECORD = "no-record", HS_EXPIRED = "expired", HS_IN_USE = "in-use",
        HS_RTT_TOO_SMALL = "rtt-too-small", HS_RTT_TOO_LARGE = "rtt-too-large",
        HS_NOTHING_TO_GAIN = "nothing-to-gain", HS_CONGESTED = "congested",
    }
    /// Events of a peer ([`PeerEvent`]).
    PEER_EVENTS: 3 = hs_peer_event_kind {
        HS_PEER_CONNECTS = "connects", HS_PEER_SAVED = "saved", HS_PEER_DROPPED = "dropped",
    }
    /// The arms, by the names of the QUIC server.
    ARMS: 5 = hs_arm {
        HS_UNDECIDED = "undecided", HS_TREATMENT = "treatment", HS_CONTROL = "control",
        HS_INELIGIBLE = "ineligible", HS_STOPPED = "stopped",
    }
    /// The sources of a first flight.
    SOURCES: 4 = hs_source {
        HS_FROM_NOTHING = "nothing", HS_FROM_FLOW_SIZE = "flow-size", HS_FROM_HISTORY = "history",
        HS_FROM_HINT = "hint",
    }
    /// Fate of the record.
    RECORD_OUTCOMES: 4 = hs_record_outcome {
        HS_OPEN = "open", HS_SAVED = "saved", HS_LEFT_NOTHING = "nothing", HS_DROPPED = "dropped",
    }
    /// Reasons that held back the next packet, in the order of
    /// [`headstart_startup::sending::LimitedBy::ALL`].
    LIMITS: 7 = hs_limit {
        HS_BY_HANDSHAKE = "handshake", HS_BY_WINDOW = "window", HS_BY_PACER = "pacer",
        HS_BY_RECEIVER = "receiver", HS_BY_APPLICATION = "application", HS_BY_RECOVERY = "recovery",
        HS_BY_PATH = "path",
    }
    /// Events of a vector; after the outcome, the prior has the credit that follows it.
    EVENTS: 6 = hs_event {
        HS_EVENT_ESTABLISH = "establish", HS_EVENT_SENT = "sent", HS_EVENT_ACK = "ack",
        HS_EVENT_CONGESTION = "congestion", HS_EVENT_TIMEOUT = "timeout", HS_EVENT_OUTCOME = "outcome",
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
    /// A connection of the peer may come.
    Connects,
    /// The peer's record was written.
    Saved,
    /// The peer's record misled a start and was removed.
    Dropped,
}

impl PeerEvent {
    /// From a [`PeerMessage`]; `None` if it has another size or kind.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<(IpAddr, Self)> {
        let PeerMessage { peer, kind } = PeerMessage::from_bytes(bytes)?;
        let kind = match *PEER_EVENTS.get(usize::try_from(kind).ok()?)? {
            "connects" => Self::Connects,
            "saved" => Self::Saved,
            _ => Self::Dropped,
        };
        Some((peer, kind))
    }
}

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
        let all = self.phase.iter().zip(self.phase_at);
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
    fn the_limits_are_those_of_the_quic_server() {
        assert_eq!(LIMITS, headstart_startup::sending::LimitedBy::ALL.map(|limit| limit.as_str()));
    }

    #[test]
    fn an_ipv6_site_is_one_peer_and_a_mapped_address_its_ipv4_one() {
        let at = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert_eq!(key(at("2001:db8:1:2:3:4:5:6")), key(at("2001:db8:1:2::1")));
        assert_eq!(key(at("::ffff:192.0.2.7")), key(at("192.0.2.7")));
        assert_eq!(peer(&key(at("192.0.2.7"))), Some(at("192.0.2.7")));
        assert_eq!(peer(&[0; 15]), None);
    }

    #[test]
    fn the_header_of_the_object_has_these_declarations() {
        let header = format!(
            "/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */\n\
             /* Written from src/layout.rs by a test, with HEADSTART_WRITE_DOCS=1. */\n\
             #define HS_NONE {NONE:#x}ULL\n\
             #define HS_MAX_RATE {}ULL\n\
             #define HS_MAX_WINDOW {}ULL\n\
             #define HS_REPORTED_PHASES {REPORTED_PHASES}\n\n{}\n\
             /* A peer: its address, of IPv6 the first 64 bits, IPv4 as mapped IPv6. */\n\
             struct hs_key {{\n\t__u32 address[4];\n}};\n{}",
            MAX_RATE.as_bytes_per_sec(),
            MAX_WINDOW.get(),
            enumerations(),
            declarations()
        );
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bpf/layout.h");
        if std::env::var_os("HEADSTART_WRITE_DOCS").is_some() {
            std::fs::write(path, &header).expect("the header is written");
        }
        let found = std::fs::read_to_string(path).expect("the header");
        assert_eq!(found, header, "write it with HEADSTART_WRITE_DOCS=1, and run build.sh");
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
