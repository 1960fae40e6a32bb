//! Options of the TCP model.

use headstart_units::{Bytes, Span};

/// Loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detection {
    /// RACK (RFC 8985): by the time at which later packets were delivered; finds lost
    /// retransmissions.
    #[default]
    Rack,
    /// RFC 6675: three segments delivered beyond; a lost retransmission waits for the timeout.
    Rfc6675,
    /// UDT's loss list, as the Halfback paper describes its transport: see [`super::udt`].
    Udt,
}

/// Probes before the retransmission timeout, when acks stop arriving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Probe {
    /// Nothing.
    None,
    /// Tail loss probe (RFC 8985 §7): one, outside of recovery.
    #[default]
    TailLoss,
    /// QUIC's probe timeout (RFC 9002 §6.2): in any state, with backoff, instead of a
    /// retransmission timeout.
    Quic,
}

/// When acknowledgements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Segments per ack; 1 acknowledges each immediately.
    pub every: u32,
    /// Longest time before an ack.
    pub timeout: Span,
    /// Number of first segments of a connection that are acknowledged immediately (Linux's quick
    /// acks).
    pub quick: u32,
    /// Segments that are acknowledged at once whatever `every` is. [`ImmediateAck::OutOfOrder`].
    pub immediate: ImmediateAck,
    /// So is the last segment of a buffer, which a sender [as Linux](TcpConfig::as_linux) marks.
    /// Linux does so since 6.7 (tcp_input.c, tcp_measure_rcv_mss: a full segment with PSH). No.
    pub ack_on_push: bool,
}

/// The segments that a receiver acknowledges at once though it delays other acks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImmediateAck {
    /// Any segment while one before it is missing, and any that fills a hole or is a duplicate (RFC
    /// 5681 §4.2).
    #[default]
    OutOfOrder,
    /// As QUIC, which never reuses a packet number: the first so many packets after each new gap,
    /// and a packet that was overtaken. RFC 9000 §13.2.1 has 1; Google QUIC had 4. Not for an old
    /// gap, nor for retransmissions.
    NewGap(u32),
}

impl DelayedAck {
    /// An ack for every segment.
    pub const IMMEDIATE: Self = Self {
        every: 1,
        timeout: Span::ZERO,
        quick: 0,
        immediate: ImmediateAck::OutOfOrder,
        ack_on_push: false,
    };
    /// Every second segment or after 200 ms (RFC 5681 §4.2 as ns-3 has it).
    pub const SECOND: Self = Self { every: 2, timeout: Span::from_millis(200), ..Self::IMMEDIATE };
}

/// Growth of the receiver's window, from [`TcpConfig::receive_window`] on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiveGrowth {
    /// None: the window is as large from the first byte on.
    #[default]
    Fixed,
    /// None, but the sender hears of the room only when an eighth of the window was read, as noq
    /// and quinn send MAX_DATA.
    Eighths,
    /// Linux's dynamic right-sizing up to 32 MiB; it begins with 64 240 bytes.
    Linux,
    /// Chromium's flow control of QUIC streams, up to 6 MiB.
    Chromium,
}

/// Pacing by the transport, where the scheme gives no pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Packets leave as the window opens.
    #[default]
    Off,
    /// As Linux paces: 200 % of the window per smoothed RTT in slow start, 120 % in avoidance,
    /// where the scheme gives no pace of its own.
    Linux,
    /// As `Linux`, and Linux carries out a scheme's pace too: the first ten segments leave at once,
    /// and later ones in bursts of about a millisecond. No scheme's first flight then has the pace
    /// that it gives: for comparisons with the kernel.
    LinuxAlways,
    /// As QUIC stacks pace where the scheme gives no pace: 125 % of the window per smoothed RTT
    /// (RFC 9002 §7.7), in bursts of two milliseconds. Quinn and noq make them ten packets at
    /// least, but no longer than ten milliseconds.
    Quic,
}

/// All settings of the TCP model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Payload of a full segment. 1448: 1500 bytes less IPv4, TCP and timestamps.
    pub mss: Bytes,
    /// Headers of a data packet, and size of an ack. 52.
    pub header: Bytes,
    /// Round trips of the handshake. 1; UDT has 2, the first for a cookie (draft-gg-udt-03 §5).
    ///
    /// 0: the receiver's SYN has its request, which the sender answers at once (RFC 7413; 0-RTT of
    /// RFC 9001 §4.6). Its address is validated, by a cookie or token. The RTT is that of the
    /// peer's record; without one the sender begins in slow start.
    pub handshakes: u8,
    /// Certificates that the accepting side sends in the last round trip of the handshake. 0.
    ///
    /// In the first round trip the opener's address is not validated (RFC 9000 §8.1). Up to its
    /// next packet it gets three times its first.
    pub certificate: Bytes,
    /// Size of a SYN or SYN-ACK. 60.
    pub syn: Bytes,
    /// The receiver's window. 141 kB: Halfback §4.1.
    pub receive_window: Bytes,
    /// Growth of the receiver's window: none, as in the papers.
    pub receive_growth: ReceiveGrowth,
    /// Loss detection.
    pub detection: Detection,
    /// A proactive copy counts as a transmission: its segment is not declared lost before a round
    /// trip after it. With [`Detection::Rfc6675`] and [`Detection::Udt`].
    pub copies_count: bool,
    /// A lost tail is repaired without a timeout, by rules 3 and 4 of NextSeg (RFC 6675 §4). With
    /// [`Detection::Rfc6675`].
    pub rescue: bool,
    /// Probes when acks stop arriving.
    pub probe: Probe,
    /// Proportional rate reduction (RFC 9937) while a base controller is in recovery; otherwise
    /// only the window limits.
    pub prr: bool,
    /// With proportional rate reduction, below the goal every ack allows one segment more than it
    /// delivered: RFC 6937's slow start reduction bound, which Linux and Google QUIC had until RFC
    /// 9937 restricted it (§4: only acks that show progress and no new loss).
    pub prr_slow_start: bool,
    /// Recovery ends once something that left after its beginning is acknowledged, and the loss of
    /// such a packet begins another (RFC 9002 §7.3.2). Else everything sent before it has to be
    /// acknowledged (RFC 6675).
    pub recovery_period: bool,
    /// When acknowledgements are sent.
    pub delayed_ack: DelayedAck,
    /// Lower bound of the retransmission timeout. 200 ms as in Linux; 1 s in RFC 6298 §2.4.
    pub min_rto: Span,
    /// Retransmission timeout before there is a sample, and of the SYN. 1 s: RFC 6298 §2.1.
    pub initial_rto: Span,
    /// Upper bound of the backed-off timeout. 60 s: RFC 6298 §2.5.
    pub max_rto: Span,
    /// Pacing where the scheme gives none.
    pub pacing: Pacing,
    /// Segments that a pacer releases at once. 1: ideal spacing; a real stack sends bursts of up to
    /// ten.
    pub quantum: u32,
    /// Negotiate ECN: marks instead of drops where a queue can.
    pub ecn: bool,
    /// After an idle time of a retransmission timeout the window starts again from the initial one
    /// (RFC 5681 §4.1).
    pub idle_restart: bool,
    /// With it the window halves for each such timeout instead, down to the initial one (RFC 2861
    /// §3, as Linux does). Slow start goes up to three quarters of it.
    pub idle_decay: bool,
    /// Instead of both, the window stays for five minutes in which less than half of it was used,
    /// and then halves. A loss in that time cuts the data that was used (RFC 7661 §4).
    pub pipe_ack: bool,
    /// Segments of that window. 10: RFC 6928 §2.
    pub restart_window: u64,
    /// Connections carry several answers: schemes get the initial window, of
    /// [`Self::restart_window`] segments, and a call when there is more to send
    /// ([`Startup::on_new_data`](headstart_startup::Startup::on_new_data)), as from the QUIC stack.
    /// No: the papers' models have one flow for each connection.
    pub several_responses: bool,
    /// The window grows only for acks of data that left while the window was the limit (RFC 9002
    /// §7.8, RFC 9438 §5.8); else for every ack.
    pub window_validation: bool,
    /// Instead the window grows up to what slow start or congestion avoidance makes of the most
    /// that was in flight since it was last cut (draft-ietf-ccwg-ratelimited-increase §3).
    pub rate_limited_increase: bool,
    /// Rules of Linux's sender that differ from the RFCs, or that these leave open. No; for
    /// comparisons with the kernel.
    ///
    /// - New data leaves in buffers of about a millisecond, two segments at least (tcp_output.c,
    ///   tcp_tso_autosize). A smaller one waits for an ack that is due within a millisecond
    ///   (tcp_tso_should_defer). The last segment of a buffer of several has PSH
    ///   (__tcp_transmit_skb).
    /// - The lower bound of the retransmission timeout bounds its variation: SRTT + max(4
    ///   RTTVAR, bound) (tcp_input.c, tcp_rtt_estimator).
    /// - A tail loss probe waits 2 SRTT and the least timeout for a single segment, 2 SRTT and 2 ms
    ///   for several, and never longer than the timeout (tcp_output.c, tcp_schedule_loss_probe).
    ///   The last is RFC 8985 §7.2 as well.
    /// - Samples are marked application-limited only if the application writes while it is the
    ///   limit (tcp.c, tcp_sendmsg_locked; tcp_rate_check_app_limited), the very first write
    ///   included: the shortage is detected at its next write.
    /// - Proportional rate reduction counts whole segments, rounded up (tcp_input.c,
    ///   tcp_cwnd_reduction).
    pub as_linux: bool,
    /// A record keeps the fastest delivery rate of all, even where the application limited it
    /// (WiseStart §3.2); else the rate of samples that were not limited, if there are any.
    pub records_limited: bool,
}

impl TcpConfig {
    /// The initial window that schemes get: zero where a connection is one flow.
    pub(crate) fn initial_window(&self) -> Bytes {
        if self.several_responses { self.mss * self.restart_window } else { Bytes::ZERO }
    }
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            mss: Bytes::new(1448),
            header: Bytes::new(52),
            handshakes: 1,
            certificate: Bytes::ZERO,
            syn: Bytes::new(60),
            receive_window: Bytes::new(141_000),
            receive_growth: ReceiveGrowth::Fixed,
            detection: Detection::default(),
            copies_count: false,
            rescue: true,
            probe: Probe::default(),
            prr: true,
            prr_slow_start: false,
            recovery_period: false,
            delayed_ack: DelayedAck::IMMEDIATE,
            min_rto: Span::from_millis(200),
            initial_rto: Span::from_secs(1),
            max_rto: Span::from_secs(60),
            pacing: Pacing::default(),
            quantum: 1,
            ecn: false,
            idle_restart: true,
            idle_decay: false,
            pipe_ack: false,
            window_validation: true,
            rate_limited_increase: false,
            restart_window: 10,
            several_responses: false,
            as_linux: false,
            records_limited: false,
        }
    }
}
