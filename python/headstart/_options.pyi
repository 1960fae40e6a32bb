"""Types of keyword arguments, written by tests/test_options.py."""

from collections.abc import Iterable
from os import PathLike
from typing import TypedDict

from ._scheme import Scheme

class SharedOptions(TypedDict, total=False):
    path: str | None
    """A path by name; options override its numbers (`headstart list paths`: sources,
    buffers) (one of dsl, cable, fibre, lte, 5g, wifi, geo, datacentre, suite)"""
    plan: str | bytes | PathLike[str] | None
    """Options from a TOML file, by the same names, as `rate = "50 Mbit/s"`; those that are
    typed override them"""
    rate: str | None
    """Rate of the bottleneck, from sender to receiver [default: 15 Mbit/s]"""
    rate_bits_per_s: float | None
    """`rate` as a number, in bits per second"""
    rtt: str | None
    """Round-trip time without queues; several hosts' times as `20ms+60ms+120ms` [default:
    60 ms]"""
    rtt_s: float | None
    """`rtt` as a number, in seconds"""
    rtt_ms: float | None
    """`rtt` as a number, in milliseconds"""
    buffer: str | None
    """Buffer before the bottleneck: bytes, packets, time at the link's rate, or BDP [CoDel:
    1000 packets; FQ-CoDel: 10240 packets, RFC 8290] [default: 115 kB]"""
    buffer_bytes: float | None
    """`buffer` as a number, in bytes"""
    buffer_packets: float | None
    """`buffer` as a number, in packets"""
    buffer_s: float | None
    """`buffer` as a number, in seconds"""
    buffer_ms: float | None
    """`buffer` as a number, in milliseconds"""
    loss: str | None
    """Random loss after the bottleneck, each packet for itself [default: 0 %]"""
    loss_share: float | None
    """`loss` as a number, in 1 for 100 %"""
    trace: str | bytes | PathLike[str] | None
    """Trace that drives the bottleneck instead of a rate: packet deliveries as mahimahi has
    them, FILE.csv with rates (docs/data.md), or example:leo, example:5g, example:outage"""
    size: str | None
    """Size of a flow, or a distribution: mixed (100 kB, every tenth 1 MB), internet,
    data-center, enterprise, FILE.csv (docs/data.md) [default: 100 kB]"""
    size_bytes: float | None
    """`size` as a number, in bytes"""
    load: str | None
    """Offered load: payload as a share of the bottleneck's rate [default: 25 %]"""
    load_share: float | None
    """`load` as a number, in 1 for 100 %"""
    background: int | None
    """Long flows in the background, from the beginning to the end [default: 0]"""
    har: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | None
    """Pages instead of flows: HAR files that a browser saved; may be repeated"""
    duration: str | None
    """Simulated time during which flows arrive [default: 300 s]"""
    duration_s: float | None
    """`duration` as a number, in seconds"""
    duration_ms: float | None
    """`duration` as a number, in milliseconds"""
    transport: str | None
    """Transport: in the simulator its model of TCP, or the real QUIC stack in virtual time;
    in the emulator this machine's TCP, or the QUIC stack Over QUIC loss detection,
    acknowledgements and timers are the stack's own, and the options for them below change
    nothing. [default: tcp] (one of tcp, quic)"""
    queue: str | None
    """Queue discipline of the bottleneck's buffer [default: drop-tail] (one of drop-tail,
    netem, codel, red, pie, fq-codel, dualpi2, priority)"""
    policer: str | None
    """Policer before the bottleneck: rate and burst, as `5mbit,50kB` [default burst: 100 ms
    of the rate]"""
    burst_loss: str | None
    """Bursts of loss: share of packets that begin one, and mean length in packets, as
    `0.1%,5`"""
    jitter: str | None
    """Random extra delay up to this, in order [default: 0 ms]"""
    jitter_s: float | None
    """`jitter` as a number, in seconds"""
    jitter_ms: float | None
    """`jitter` as a number, in milliseconds"""
    reorder: bool | None
    """Let jitter reorder packets"""
    duplicate: str | None
    """Share of packets that arrive twice [default: 0 %]"""
    duplicate_share: float | None
    """`duplicate` as a number, in 1 for 100 %"""
    ip_options: str | None
    """A box before the bottleneck that drops packets with IP options, or removes
    Quick-Start requests, all or a share: `drop`, `remove`, `drop:30%`"""
    delay_trace: str | bytes | PathLike[str] | None
    """Recorded extra delay on the way there: a line of milliseconds for every 10 ms, over
    and over; or example:leo, example:5g"""
    trace_offset: str | None
    """Offset in the traces at which a run begins [default: another place for each seed;
    with `link` their beginning]"""
    trace_offset_s: float | None
    """`trace_offset` as a number, in seconds"""
    trace_offset_ms: float | None
    """`trace_offset` as a number, in milliseconds"""
    up_rate: str | None
    """Rate of the way back [default: --rate; with --trace its mean rate]"""
    up_rate_bits_per_s: float | None
    """`up_rate` as a number, in bits per second"""
    up_buffer: str | None
    """Buffer of the way back [default: --buffer]"""
    up_buffer_bytes: float | None
    """`up_buffer` as a number, in bytes"""
    up_buffer_packets: float | None
    """`up_buffer` as a number, in packets"""
    up_buffer_s: float | None
    """`up_buffer` as a number, in seconds"""
    up_buffer_ms: float | None
    """`up_buffer` as a number, in milliseconds"""
    up_trace: str | bytes | PathLike[str] | None
    """Trace that drives the way back"""
    routers: str | None
    """Signalling that the routers before the links support [default: none] (one of none,
    share, target, extreme, rcp, non-capable)"""
    hop: str | Iterable[str] | None
    """Another link behind the bottleneck, as `10mbit/5ms/50kB` (rate/delay/buffer); may be
    repeated"""
    router_share: str | float | None
    """Target, Extreme: share of the link up to which they grant; Share: share of the free
    capacity that it grants [default: 90 %, Share 50 %]"""
    router_measure: str | None
    """Measurement of the link's use: peak:N (of the last N intervals) or average:WEIGHT (of
    the newest interval) [default: peak:5]"""
    router_interval: str | None
    """Length of the intervals of --router-measure [default: 150 ms]"""
    router_interval_s: float | None
    """`router_interval` as a number, in seconds"""
    router_interval_ms: float | None
    """`router_interval` as a number, in milliseconds"""
    router_memory: str | None
    """Time during which a grant counts as used capacity [default: 150 ms]"""
    router_memory_s: float | None
    """`router_memory` as a number, in seconds"""
    router_memory_ms: float | None
    """`router_memory` as a number, in milliseconds"""
    router_memory_bins: int | None
    """Bins that the memory is kept in: a grant counts for one bin more at most; the
    authors' ns-2 router has 1 [default: 16]"""
    router_rates: str | None
    """Granularity of the rates that routers grant [default: four-bits] (one of four-bits,
    exact)"""
    router_denial: str | None
    """Action of a router on a request that it denies [default: zero] (one of ignore, zero,
    delete)"""
    router_requests: int | None
    """Rate of requests per second above which a router ignores further ones [default: no
    limit]"""
    router_extras: str | None
    """Extreme: further state: fair (no host gets all while others get nothing), scores (of
    hosts), both, none [default: both] (one of none, fair, scores, both)"""
    router_assumed_rate: str | None
    """Link rates that routers assume [default: the actual rates]"""
    router_assumed_rate_bits_per_s: float | None
    """`router_assumed_rate` as a number, in bits per second"""
    cap: str | None
    """Largest flow of a named distribution [default: 1 MB]"""
    cap_bytes: float | None
    """`cap` as a number, in bytes"""
    arrivals: str | bytes | PathLike[str] | None
    """Flows that arrive as a file says, start and size of each, in place of --load and
    --size: FILE.csv (docs/data.md)"""
    long_share: str | float | None
    """Share of the load that long flows bring, which arrive as the short ones do [default:
    0 %]"""
    long_size: str | None
    """Size of the flows of --long-share [default: 100 MB]"""
    long_size_bytes: float | None
    """`long_size` as a number, in bytes"""
    long_scheme: str | type[Scheme] | None
    """Scheme of long flows, those in the background too [default: iw10]"""
    long_window: str | None
    """Receive window of long flows, if it is larger than the others' [default: 4 MB]"""
    long_window_bytes: float | None
    """`long_window` as a number, in bytes"""
    media: str | None
    """Rate of a concurrent real-time flow that does not adapt (packets of 1200 bytes): its
    delay and loss are measured"""
    media_bits_per_s: float | None
    """`media` as a number, in bits per second"""
    attack: str | None
    """Concurrent requests for rates without connections: what Quick-Start routers grant
    them is wasted [default: none] (one of none, flood, one-host, spoofed, framing)"""
    attack_requests: int | None
    """Requests of the attack per second [default: 20]"""
    pages: str | None
    """Pages instead of flows: a hundred drawn from published statistics of front pages (one
    of archive2014, survey2010)"""
    page: str | None
    """Page of the HAR files: its id, or its number from 1 [default: the one with the
    earliest request]"""
    fetch: str | None
    """Connections that fetch pages: persistent:6, parallel:6, multiplexed [default: as a
    HAR says, multiplexed for HTTP/2 and 3; else persistent:6]"""
    answers: int | None
    """Answers of --size that a client asks for one after the other over one connection, or
    pages over its connections; times are of each [default: 1]"""
    think: str | None
    """Pause of the client before each answer but the first [default: 1 s]"""
    think_s: float | None
    """`think` as a number, in seconds"""
    think_ms: float | None
    """`think` as a number, in milliseconds"""
    peers: int | None
    """Different peers, equally likely: each has one record in a sender's history [default:
    20]"""
    history: int | None
    """Peers that a sender's host remembers [default: 100000]"""
    hint: str | None
    """Bandwidth that clients announce, as a multiple of the bottleneck's rate [default: 100
    %]"""
    hint_share: str | float | None
    """Share of the peers that announce it [default: all to a scheme that needs hints, none
    to others]"""
    hint_lie: str | None
    """Bandwidth that the other peers announce, as a multiple of the bottleneck's rate
    [default: none]"""
    hint_lie_share: float | None
    """`hint_lie` as a number, in 1 for 100 %"""
    opener: str | None
    """Side that opens connections [default: the sender; in the emulator always the
    receiver] (one of sender, receiver)"""
    for_: str | None
    """Server that is to run the scheme: others than it can carry are left out, and the
    verdict is for it (one of tcp, serve, quinn)"""
    reference: str | type[Scheme] | None
    """Scheme that the others are compared with; harm is measured on its flows [default:
    iw10; where a kernel runs, its own start]"""
    drain: str | None
    """Simulated time after the last arrival for flows to finish; what has not then counts
    with its age [default: 20 s]"""
    drain_s: float | None
    """`drain` as a number, in seconds"""
    drain_ms: float | None
    """`drain` as a number, in milliseconds"""
    seed: int | None
    """First seed [default: 1]"""
    large: bool | None
    """Run it although the estimate is above 4 h of processor time or 2 GB of memory"""
    crypto: str | None
    """Protection of QUIC packets in virtual time: as on the Internet, or none, which is
    quicker [default: tls] (one of tls, null)"""
    base: str | None
    """Congestion controller that the schemes hand over to [default: cubic] (one of cubic,
    cubic-linux, cubic-pair, cuback, abba, reno, reno-linux, reno-google)"""
    detection: str | None
    """Loss detection of the sender [default: rack] (one of rack, rfc6675, rfc6675-copies,
    udt)"""
    handshakes: int | None
    """Round trips of the handshake. UDT takes 2, TLS over TCP too; with 0 the request comes
    in the first packet, as with QUIC's 0-RTT and TCP Fast Open [default: 1]"""
    certificate: str | None
    """Certificates that the accepting side sends in the last round trip of the handshake.
    In the first one it may send three times what came (RFC 9000 §8.1), 3600 bytes [default:
    0 B]"""
    certificate_bytes: float | None
    """`certificate` as a number, in bytes"""
    mtu: str | None
    """Size of a full data packet on the link, headers included [default: 1500 B]"""
    mtu_bytes: float | None
    """`mtu` as a number, in bytes"""
    header: str | None
    """Headers of a data packet, which are in --mtu, and of an ack: 52 B are TCP's with
    timestamps over IPv4, 44 B UDT's [default: 52 B]"""
    header_bytes: float | None
    """`header` as a number, in bytes"""
    probe: str | None
    """Handling of lost tails: the sender's action when acks stop arriving [default: tlp]
    (one of none, tlp, quic)"""
    acks: str | None
    """When the receiver acknowledges [default: immediate] (one of immediate, delayed,
    linux, timer, quic, quic-gap, google, ngtcp2, tenth, linux-growing)"""
    min_rto: str | None
    """Smallest retransmission timeout [default: 200 ms]"""
    min_rto_s: float | None
    """`min_rto` as a number, in seconds"""
    min_rto_ms: float | None
    """`min_rto` as a number, in milliseconds"""
    initial_rto: str | None
    """Retransmission timeout before anything was measured, and of the SYN [default: 1 s]"""
    initial_rto_s: float | None
    """`initial_rto` as a number, in seconds"""
    initial_rto_ms: float | None
    """`initial_rto` as a number, in milliseconds"""
    pacing: str | None
    """Pacing where a scheme gives no pace of its own [default: off] (one of off, linux,
    quic, linux-always)"""
    quantum: int | None
    """Segments that a pacer lets go at once [default: 1]"""
    receive_window: str | None
    """The receiver's window [default: what Chromium grants to a QUIC stream; Halfback has
    141 kB] [default: 6 MB]"""
    receive_window_bytes: float | None
    """`receive_window` as a number, in bytes"""
    receive_growth: str | None
    """Growth of the receive window: in Linux up to 32 MiB from 64240 B (--receive-window),
    in Chromium up to 6 MiB [default: fixed] (one of fixed, linux, chromium)"""
    ecn: bool | None
    """Explicit congestion notification: CoDel and RED mark instead of dropping"""
    recovery_period: bool | None
    """End recovery at the first ack of data sent after it began, and begin another when
    such data is lost, as RFC 9002 does. Otherwise it waits for all that was sent before"""
    no_prr: bool | None
    """Let the window, not proportional rate reduction, limit recovery"""
    no_rescue: bool | None
    """Let a lost tail wait for the timeout, as in Halfback §3.4: with --detection rfc6675
    rules 3 and 4 of NextSeg (§4) are left out"""
    no_idle_restart: bool | None
    """Keep the window after an idle time, as RFC 9002 does; else it starts again from the
    initial one (RFC 5681)"""
    idle_decay: bool | None
    """Halve the window for each retransmission timeout of an idle time, as Linux does (RFC
    2861)"""
    pipe_ack: bool | None
    """Keep the window for five minutes in which less than half of it was used, and let a
    loss then cut what was used (RFC 7661)"""
    later_responses: str | None
    """Start of later responses of a page's connection, by schemes that send a flow at once
    (TCP model) [default: flights] (one of flights, window)"""
    no_window_validation: bool | None
    """Let the window grow for every ack, even where the application was the limit, as some
    stacks do; RFC 9002 does not"""
    rate_limited_increase: bool | None
    """Let the window grow to at most twice the largest flight since it was last cut, and in
    congestion avoidance to a segment more than that flight
    (draft-ietf-ccwg-ratelimited-increase)"""
    prr_slow_start: bool | None
    """Let proportional rate reduction send one segment more with every ack while it is
    below its goal, as RFC 6937 had it in 2013"""
    as_linux: bool | None
    """Let the sender depart from the RFCs as Linux does. Data leaves in buffers of a
    millisecond with PSH at the end of each. A timeout is SRTT + 200 ms at least, probes
    wait accordingly, and an application limits samples only by writing late"""
    as_quic: bool | None
    """Let the model do what the QUIC stack does, in a thirtieth of its computing time. The
    receiver opens connections with packets of 1200 bytes and acknowledges every second one.
    Probes, recovery and pacing are those of RFC 9002 (how near the two are:
    docs/records/quic-under-load.md)"""
    record_limited: bool | None
    """Let records keep the fastest delivery rate of all, even where the application was the
    limit"""

class RaceOptions(SharedOptions, total=False):
    in_: str | None
    """Place of the runs: simulated, or in real time on real packets, by this machine's TCP
    or by the QUIC stack [default: simulator] (one of simulator, emulator)"""
    schemes: str | type[Scheme] | Iterable[str | type[Scheme]] | None
    """Schemes to compare [default: all that the routers of the path allow: `headstart list
    schemes`]"""
    repeats: int | None
    """Repetitions with different seeds [default: 8]"""
    warm_up: str | None
    """Flows that begin earlier are left out of the figures [default: 0 s]"""
    warm_up_s: float | None
    """`warm_up` as a number, in seconds"""
    warm_up_ms: float | None
    """`warm_up` as a number, in milliseconds"""
    threads: int | None
    """Threads [default: all cores]; the results do not depend on it"""
    capacity: bool | None
    """Search the feasible capacity of every scheme too (minutes, not seconds; use
    --duration 600s)"""
    flows: str | bytes | PathLike[str] | None
    """Write every flow as a row, as .csv or .parquet: docs/data.md has the columns"""
    most_harm: str | None
    """Largest slowdown of other flows by a scheme that counts as harmless [default: 1 %]"""
    most_harm_share: float | None
    """`most_harm` as a number, in 1 for 100 %"""

class SweepOptions(TypedDict, total=False):
    path: str | Iterable[str] | None
    """A path by name; options override its numbers (`headstart list paths`: sources,
    buffers) (one of dsl, cable, fibre, lte, 5g, wifi, geo, datacentre, suite)"""
    rate: str | Iterable[str] | None
    """Rate of the bottleneck, from sender to receiver [default: 15 Mbit/s]"""
    rate_bits_per_s: float | Iterable[float] | None
    """`rate` as a number, in bits per second"""
    rtt: str | Iterable[str] | None
    """Round-trip time without queues; several hosts' times as `20ms+60ms+120ms` [default:
    60 ms]"""
    rtt_s: float | Iterable[float] | None
    """`rtt` as a number, in seconds"""
    rtt_ms: float | Iterable[float] | None
    """`rtt` as a number, in milliseconds"""
    buffer: str | Iterable[str] | None
    """Buffer before the bottleneck: bytes, packets, time at the link's rate, or BDP [CoDel:
    1000 packets; FQ-CoDel: 10240 packets, RFC 8290] [default: 115 kB]"""
    buffer_bytes: float | Iterable[float] | None
    """`buffer` as a number, in bytes"""
    buffer_packets: float | Iterable[float] | None
    """`buffer` as a number, in packets"""
    buffer_s: float | Iterable[float] | None
    """`buffer` as a number, in seconds"""
    buffer_ms: float | Iterable[float] | None
    """`buffer` as a number, in milliseconds"""
    loss: str | Iterable[str] | None
    """Random loss after the bottleneck, each packet for itself [default: 0 %]"""
    loss_share: float | Iterable[float] | None
    """`loss` as a number, in 1 for 100 %"""
    trace: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | None
    """Trace that drives the bottleneck instead of a rate: packet deliveries as mahimahi has
    them, FILE.csv with rates (docs/data.md), or example:leo, example:5g, example:outage"""
    size: str | Iterable[str] | None
    """Size of a flow, or a distribution: mixed (100 kB, every tenth 1 MB), internet,
    data-center, enterprise, FILE.csv (docs/data.md) [default: 100 kB]"""
    size_bytes: float | Iterable[float] | None
    """`size` as a number, in bytes"""
    load: str | Iterable[str] | None
    """Offered load: payload as a share of the bottleneck's rate [default: 25 %]"""
    load_share: float | Iterable[float] | None
    """`load` as a number, in 1 for 100 %"""
    background: str | int | Iterable[str | int] | None
    """Long flows in the background, from the beginning to the end [default: 0]"""
    har: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | Iterable[str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]]] | None
    """Pages instead of flows: HAR files that a browser saved; may be repeated"""
    in_: str | Iterable[str] | None
    """Place of the runs: simulated, or in real time on real packets, by this machine's TCP
    or by the QUIC stack [default: simulator] (one of simulator, emulator)"""
    schemes: str | type[Scheme] | Iterable[str | type[Scheme]] | None
    """Schemes to compare [default: all that the routers of the path allow: `headstart list
    schemes`]"""
    duration: str | Iterable[str] | None
    """Simulated time during which flows arrive [default: 300 s]"""
    duration_s: float | Iterable[float] | None
    """`duration` as a number, in seconds"""
    duration_ms: float | Iterable[float] | None
    """`duration` as a number, in milliseconds"""
    repeats: str | int | Iterable[str | int] | None
    """Repetitions with different seeds [default: 8]"""
    transport: str | Iterable[str] | None
    """Transport: in the simulator its model of TCP, or the real QUIC stack in virtual time;
    in the emulator this machine's TCP, or the QUIC stack Over QUIC loss detection,
    acknowledgements and timers are the stack's own, and the options for them below change
    nothing. [default: tcp] (one of tcp, quic)"""
    plan: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | None
    """Options from a TOML file, by the same names, as `rate = "50 Mbit/s"`; those that are
    typed override them"""
    queue: str | Iterable[str] | None
    """Queue discipline of the bottleneck's buffer [default: drop-tail] (one of drop-tail,
    netem, codel, red, pie, fq-codel, dualpi2, priority)"""
    policer: str | Iterable[str] | None
    """Policer before the bottleneck: rate and burst, as `5mbit,50kB` [default burst: 100 ms
    of the rate]"""
    burst_loss: str | Iterable[str] | None
    """Bursts of loss: share of packets that begin one, and mean length in packets, as
    `0.1%,5`"""
    jitter: str | Iterable[str] | None
    """Random extra delay up to this, in order [default: 0 ms]"""
    jitter_s: float | Iterable[float] | None
    """`jitter` as a number, in seconds"""
    jitter_ms: float | Iterable[float] | None
    """`jitter` as a number, in milliseconds"""
    reorder: bool | None
    """Let jitter reorder packets"""
    duplicate: str | Iterable[str] | None
    """Share of packets that arrive twice [default: 0 %]"""
    duplicate_share: float | Iterable[float] | None
    """`duplicate` as a number, in 1 for 100 %"""
    ip_options: str | Iterable[str] | None
    """A box before the bottleneck that drops packets with IP options, or removes
    Quick-Start requests, all or a share: `drop`, `remove`, `drop:30%`"""
    delay_trace: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | None
    """Recorded extra delay on the way there: a line of milliseconds for every 10 ms, over
    and over; or example:leo, example:5g"""
    trace_offset: str | Iterable[str] | None
    """Offset in the traces at which a run begins [default: another place for each seed;
    with `link` their beginning]"""
    trace_offset_s: float | Iterable[float] | None
    """`trace_offset` as a number, in seconds"""
    trace_offset_ms: float | Iterable[float] | None
    """`trace_offset` as a number, in milliseconds"""
    up_rate: str | Iterable[str] | None
    """Rate of the way back [default: --rate; with --trace its mean rate]"""
    up_rate_bits_per_s: float | Iterable[float] | None
    """`up_rate` as a number, in bits per second"""
    up_buffer: str | Iterable[str] | None
    """Buffer of the way back [default: --buffer]"""
    up_buffer_bytes: float | Iterable[float] | None
    """`up_buffer` as a number, in bytes"""
    up_buffer_packets: float | Iterable[float] | None
    """`up_buffer` as a number, in packets"""
    up_buffer_s: float | Iterable[float] | None
    """`up_buffer` as a number, in seconds"""
    up_buffer_ms: float | Iterable[float] | None
    """`up_buffer` as a number, in milliseconds"""
    up_trace: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | None
    """Trace that drives the way back"""
    routers: str | Iterable[str] | None
    """Signalling that the routers before the links support [default: none] (one of none,
    share, target, extreme, rcp, non-capable)"""
    hop: str | Iterable[str] | Iterable[str | Iterable[str]] | None
    """Another link behind the bottleneck, as `10mbit/5ms/50kB` (rate/delay/buffer); may be
    repeated"""
    router_share: str | float | Iterable[str | float] | None
    """Target, Extreme: share of the link up to which they grant; Share: share of the free
    capacity that it grants [default: 90 %, Share 50 %]"""
    router_measure: str | Iterable[str] | None
    """Measurement of the link's use: peak:N (of the last N intervals) or average:WEIGHT (of
    the newest interval) [default: peak:5]"""
    router_interval: str | Iterable[str] | None
    """Length of the intervals of --router-measure [default: 150 ms]"""
    router_interval_s: float | Iterable[float] | None
    """`router_interval` as a number, in seconds"""
    router_interval_ms: float | Iterable[float] | None
    """`router_interval` as a number, in milliseconds"""
    router_memory: str | Iterable[str] | None
    """Time during which a grant counts as used capacity [default: 150 ms]"""
    router_memory_s: float | Iterable[float] | None
    """`router_memory` as a number, in seconds"""
    router_memory_ms: float | Iterable[float] | None
    """`router_memory` as a number, in milliseconds"""
    router_memory_bins: str | int | Iterable[str | int] | None
    """Bins that the memory is kept in: a grant counts for one bin more at most; the
    authors' ns-2 router has 1 [default: 16]"""
    router_rates: str | Iterable[str] | None
    """Granularity of the rates that routers grant [default: four-bits] (one of four-bits,
    exact)"""
    router_denial: str | Iterable[str] | None
    """Action of a router on a request that it denies [default: zero] (one of ignore, zero,
    delete)"""
    router_requests: str | int | Iterable[str | int] | None
    """Rate of requests per second above which a router ignores further ones [default: no
    limit]"""
    router_extras: str | Iterable[str] | None
    """Extreme: further state: fair (no host gets all while others get nothing), scores (of
    hosts), both, none [default: both] (one of none, fair, scores, both)"""
    router_assumed_rate: str | Iterable[str] | None
    """Link rates that routers assume [default: the actual rates]"""
    router_assumed_rate_bits_per_s: float | Iterable[float] | None
    """`router_assumed_rate` as a number, in bits per second"""
    cap: str | Iterable[str] | None
    """Largest flow of a named distribution [default: 1 MB]"""
    cap_bytes: float | Iterable[float] | None
    """`cap` as a number, in bytes"""
    arrivals: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | None
    """Flows that arrive as a file says, start and size of each, in place of --load and
    --size: FILE.csv (docs/data.md)"""
    long_share: str | float | Iterable[str | float] | None
    """Share of the load that long flows bring, which arrive as the short ones do [default:
    0 %]"""
    long_size: str | Iterable[str] | None
    """Size of the flows of --long-share [default: 100 MB]"""
    long_size_bytes: float | Iterable[float] | None
    """`long_size` as a number, in bytes"""
    long_scheme: str | type[Scheme] | Iterable[str | type[Scheme]] | None
    """Scheme of long flows, those in the background too [default: iw10]"""
    long_window: str | Iterable[str] | None
    """Receive window of long flows, if it is larger than the others' [default: 4 MB]"""
    long_window_bytes: float | Iterable[float] | None
    """`long_window` as a number, in bytes"""
    media: str | Iterable[str] | None
    """Rate of a concurrent real-time flow that does not adapt (packets of 1200 bytes): its
    delay and loss are measured"""
    media_bits_per_s: float | Iterable[float] | None
    """`media` as a number, in bits per second"""
    attack: str | Iterable[str] | None
    """Concurrent requests for rates without connections: what Quick-Start routers grant
    them is wasted [default: none] (one of none, flood, one-host, spoofed, framing)"""
    attack_requests: str | int | Iterable[str | int] | None
    """Requests of the attack per second [default: 20]"""
    pages: str | Iterable[str] | None
    """Pages instead of flows: a hundred drawn from published statistics of front pages (one
    of archive2014, survey2010)"""
    page: str | Iterable[str] | None
    """Page of the HAR files: its id, or its number from 1 [default: the one with the
    earliest request]"""
    fetch: str | Iterable[str] | None
    """Connections that fetch pages: persistent:6, parallel:6, multiplexed [default: as a
    HAR says, multiplexed for HTTP/2 and 3; else persistent:6]"""
    answers: str | int | Iterable[str | int] | None
    """Answers of --size that a client asks for one after the other over one connection, or
    pages over its connections; times are of each [default: 1]"""
    think: str | Iterable[str] | None
    """Pause of the client before each answer but the first [default: 1 s]"""
    think_s: float | Iterable[float] | None
    """`think` as a number, in seconds"""
    think_ms: float | Iterable[float] | None
    """`think` as a number, in milliseconds"""
    peers: str | int | Iterable[str | int] | None
    """Different peers, equally likely: each has one record in a sender's history [default:
    20]"""
    history: str | int | Iterable[str | int] | None
    """Peers that a sender's host remembers [default: 100000]"""
    hint: str | Iterable[str] | None
    """Bandwidth that clients announce, as a multiple of the bottleneck's rate [default: 100
    %]"""
    hint_share: str | float | Iterable[str | float] | None
    """Share of the peers that announce it [default: all to a scheme that needs hints, none
    to others]"""
    hint_lie: str | Iterable[str] | None
    """Bandwidth that the other peers announce, as a multiple of the bottleneck's rate
    [default: none]"""
    hint_lie_share: float | Iterable[float] | None
    """`hint_lie` as a number, in 1 for 100 %"""
    opener: str | Iterable[str] | None
    """Side that opens connections [default: the sender; in the emulator always the
    receiver] (one of sender, receiver)"""
    for_: str | Iterable[str] | None
    """Server that is to run the scheme: others than it can carry are left out, and the
    verdict is for it (one of tcp, serve, quinn)"""
    reference: str | type[Scheme] | Iterable[str | type[Scheme]] | None
    """Scheme that the others are compared with; harm is measured on its flows [default:
    iw10; where a kernel runs, its own start]"""
    warm_up: str | Iterable[str] | None
    """Flows that begin earlier are left out of the figures [default: 0 s]"""
    warm_up_s: float | Iterable[float] | None
    """`warm_up` as a number, in seconds"""
    warm_up_ms: float | Iterable[float] | None
    """`warm_up` as a number, in milliseconds"""
    drain: str | Iterable[str] | None
    """Simulated time after the last arrival for flows to finish; what has not then counts
    with its age [default: 20 s]"""
    drain_s: float | Iterable[float] | None
    """`drain` as a number, in seconds"""
    drain_ms: float | Iterable[float] | None
    """`drain` as a number, in milliseconds"""
    seed: str | int | Iterable[str | int] | None
    """First seed [default: 1]"""
    threads: str | int | Iterable[str | int] | None
    """Threads [default: all cores]; the results do not depend on it"""
    large: bool | None
    """Run it although the estimate is above 4 h of processor time or 2 GB of memory"""
    crypto: str | Iterable[str] | None
    """Protection of QUIC packets in virtual time: as on the Internet, or none, which is
    quicker [default: tls] (one of tls, null)"""
    base: str | Iterable[str] | None
    """Congestion controller that the schemes hand over to [default: cubic] (one of cubic,
    cubic-linux, cubic-pair, cuback, abba, reno, reno-linux, reno-google)"""
    detection: str | Iterable[str] | None
    """Loss detection of the sender [default: rack] (one of rack, rfc6675, rfc6675-copies,
    udt)"""
    handshakes: str | int | Iterable[str | int] | None
    """Round trips of the handshake. UDT takes 2, TLS over TCP too; with 0 the request comes
    in the first packet, as with QUIC's 0-RTT and TCP Fast Open [default: 1]"""
    certificate: str | Iterable[str] | None
    """Certificates that the accepting side sends in the last round trip of the handshake.
    In the first one it may send three times what came (RFC 9000 §8.1), 3600 bytes [default:
    0 B]"""
    certificate_bytes: float | Iterable[float] | None
    """`certificate` as a number, in bytes"""
    mtu: str | Iterable[str] | None
    """Size of a full data packet on the link, headers included [default: 1500 B]"""
    mtu_bytes: float | Iterable[float] | None
    """`mtu` as a number, in bytes"""
    header: str | Iterable[str] | None
    """Headers of a data packet, which are in --mtu, and of an ack: 52 B are TCP's with
    timestamps over IPv4, 44 B UDT's [default: 52 B]"""
    header_bytes: float | Iterable[float] | None
    """`header` as a number, in bytes"""
    probe: str | Iterable[str] | None
    """Handling of lost tails: the sender's action when acks stop arriving [default: tlp]
    (one of none, tlp, quic)"""
    acks: str | Iterable[str] | None
    """When the receiver acknowledges [default: immediate] (one of immediate, delayed,
    linux, timer, quic, quic-gap, google, ngtcp2, tenth, linux-growing)"""
    min_rto: str | Iterable[str] | None
    """Smallest retransmission timeout [default: 200 ms]"""
    min_rto_s: float | Iterable[float] | None
    """`min_rto` as a number, in seconds"""
    min_rto_ms: float | Iterable[float] | None
    """`min_rto` as a number, in milliseconds"""
    initial_rto: str | Iterable[str] | None
    """Retransmission timeout before anything was measured, and of the SYN [default: 1 s]"""
    initial_rto_s: float | Iterable[float] | None
    """`initial_rto` as a number, in seconds"""
    initial_rto_ms: float | Iterable[float] | None
    """`initial_rto` as a number, in milliseconds"""
    pacing: str | Iterable[str] | None
    """Pacing where a scheme gives no pace of its own [default: off] (one of off, linux,
    quic, linux-always)"""
    quantum: str | int | Iterable[str | int] | None
    """Segments that a pacer lets go at once [default: 1]"""
    receive_window: str | Iterable[str] | None
    """The receiver's window [default: what Chromium grants to a QUIC stream; Halfback has
    141 kB] [default: 6 MB]"""
    receive_window_bytes: float | Iterable[float] | None
    """`receive_window` as a number, in bytes"""
    receive_growth: str | Iterable[str] | None
    """Growth of the receive window: in Linux up to 32 MiB from 64240 B (--receive-window),
    in Chromium up to 6 MiB [default: fixed] (one of fixed, linux, chromium)"""
    ecn: bool | None
    """Explicit congestion notification: CoDel and RED mark instead of dropping"""
    recovery_period: bool | None
    """End recovery at the first ack of data sent after it began, and begin another when
    such data is lost, as RFC 9002 does. Otherwise it waits for all that was sent before"""
    no_prr: bool | None
    """Let the window, not proportional rate reduction, limit recovery"""
    no_rescue: bool | None
    """Let a lost tail wait for the timeout, as in Halfback §3.4: with --detection rfc6675
    rules 3 and 4 of NextSeg (§4) are left out"""
    no_idle_restart: bool | None
    """Keep the window after an idle time, as RFC 9002 does; else it starts again from the
    initial one (RFC 5681)"""
    idle_decay: bool | None
    """Halve the window for each retransmission timeout of an idle time, as Linux does (RFC
    2861)"""
    pipe_ack: bool | None
    """Keep the window for five minutes in which less than half of it was used, and let a
    loss then cut what was used (RFC 7661)"""
    later_responses: str | Iterable[str] | None
    """Start of later responses of a page's connection, by schemes that send a flow at once
    (TCP model) [default: flights] (one of flights, window)"""
    no_window_validation: bool | None
    """Let the window grow for every ack, even where the application was the limit, as some
    stacks do; RFC 9002 does not"""
    rate_limited_increase: bool | None
    """Let the window grow to at most twice the largest flight since it was last cut, and in
    congestion avoidance to a segment more than that flight
    (draft-ietf-ccwg-ratelimited-increase)"""
    prr_slow_start: bool | None
    """Let proportional rate reduction send one segment more with every ack while it is
    below its goal, as RFC 6937 had it in 2013"""
    as_linux: bool | None
    """Let the sender depart from the RFCs as Linux does. Data leaves in buffers of a
    millisecond with PSH at the end of each. A timeout is SRTT + 200 ms at least, probes
    wait accordingly, and an application limits samples only by writing late"""
    as_quic: bool | None
    """Let the model do what the QUIC stack does, in a thirtieth of its computing time. The
    receiver opens connections with packets of 1200 bytes and acknowledges every second one.
    Probes, recovery and pacing are those of RFC 9002 (how near the two are:
    docs/records/quic-under-load.md)"""
    record_limited: bool | None
    """Let records keep the fastest delivery rate of all, even where the application was the
    limit"""
    flows: str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]] | None
    """Write every flow as a row, as .csv or .parquet: docs/data.md has the columns"""

class TraceOptions(SharedOptions, total=False):
    flow: int | None
    """Which flow of the run, counted from zero [default: one flow alone on the path]"""
    beside: str | type[Scheme] | Iterable[str | type[Scheme]] | None
    """Schemes whose flow the report shows with this one [default: iw10]"""

class ReproduceOptions(TypedDict, total=False):
    list: bool | None
    """List papers and figures"""
    in_: str | None
    """Place of the runs: the simulator; or the emulator, for the points of the paper that a
    real transport carries in real time. Those over the kernel's TCP need root and a build
    with `--features full,tcp` [default: simulator] (one of simulator, emulator)"""
    transport: str | None
    """Transport in the emulator: the kernel's TCP with the starts of `headstart tcp`, or
    QUIC [default: tcp] (one of tcp, quic)"""
    figure: str | Iterable[str] | None
    """Only these figures, as `12` or `figure-12`"""
    quick: bool | None
    """A cut-down run: fewer points, seeds and seconds"""
    set_ups: bool | None
    """Run the paper's figures under every variant of its set-up that they can have"""
    check: bool | None
    """Fail if a claim's outcome is not the one on record in claims.toml"""
    further_seeds: int | None
    """Add this number to every seed of the plans: the same figures from other random
    numbers [default: 0]"""
    traces: str | bytes | PathLike[str] | None
    """Packet-delivery traces (mahimahi format) in place of generated ones, where an
    experiment has networks of traces"""
    threads: int | None
    """Threads [default: all cores]; the results do not depend on it"""
    mutants: bool | None
    """Run the wrong versions of schemes that paper.toml lists as well, and count the claims
    that fail with each"""
    all: bool | None
    """Print every claim, figure by figure, and not only the headline results"""
    large: bool | None
    """Run it although the estimate is above 4 h of processor time or 2 GB of memory"""

class AssessOptions(TypedDict, total=False):
    quick: bool | None
    """A cut-down run: fewer seeds and seconds"""
    figure: str | Iterable[str] | None
    """Only the criteria of these plans, as `load,queues`; an unknown name lists them"""
    further_seeds: int | None
    """Add this number to every seed of the plans [default: 0]"""
    threads: int | None
    """Threads [default: all cores]; the results do not depend on it"""
    large: bool | None
    """Run it although the estimate is above 4 h of processor time or 2 GB of memory"""
