/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Written from src/layout.rs by a test, with HEADSTART_WRITE_DOCS=1. */
#define HS_NONE 0xffffffffffffffffULL
#define HS_MAX_RATE 12500000000ULL
#define HS_MAX_WINDOW 1073741824ULL
#define HS_REPORTED_PHASES 8

enum hs_scheme { HS_SLOW_START, HS_JUMP_START, HS_S_CUBIC, HS_TCP_CACHE, HS_WISE_START, HS_CAREFUL_RESUME, HS_BLITZSTART, HS_HEADSTART, HS_SCHEMES };
enum hs_phase { HS_IDLE, HS_SENDING, HS_MAINTENANCE, HS_DRAIN, HS_PACED, HS_CACHED, HS_JUMP, HS_GROWING, HS_RECOVERY, HS_RECONNAISSANCE, HS_UNVALIDATED, HS_VALIDATING, HS_RETREAT, HS_SPREAD, HS_FIRST_FLIGHT, HS_PHASES };
enum hs_pause { HS_WATCHING, HS_ASSUMED, HS_PAUSED, HS_OVER, HS_PAUSES };
enum hs_next { HS_STAY, HS_GROW, HS_AVOID, HS_CUT, HS_NEXT };
enum hs_refusal { HS_ACCEPTED, HS_NO_RECORD, HS_EXPIRED, HS_IN_USE, HS_RTT_TOO_SMALL, HS_RTT_TOO_LARGE, HS_NOTHING_TO_GAIN, HS_CONGESTED, HS_REFUSALS };
enum hs_peer_event_kind { HS_PEER_CONNECTS, HS_PEER_SAVED, HS_PEER_DROPPED, HS_PEER_EVENTS };
enum hs_arm { HS_UNDECIDED, HS_TREATMENT, HS_CONTROL, HS_INELIGIBLE, HS_STOPPED, HS_ARMS };
enum hs_source { HS_FROM_NOTHING, HS_FROM_FLOW_SIZE, HS_FROM_HISTORY, HS_FROM_HINT, HS_SOURCES };
enum hs_record_outcome { HS_OPEN, HS_SAVED, HS_LEFT_NOTHING, HS_DROPPED, HS_RECORD_OUTCOMES };
enum hs_limit { HS_BY_HANDSHAKE, HS_BY_WINDOW, HS_BY_PACER, HS_BY_RECEIVER, HS_BY_APPLICATION, HS_BY_RECOVERY, HS_BY_PATH, HS_LIMITS };
enum hs_event { HS_EVENT_ESTABLISH, HS_EVENT_SENT, HS_EVENT_ACK, HS_EVENT_CONGESTION, HS_EVENT_TIMEOUT, HS_EVENT_OUTCOME, HS_EVENTS };

/* A peer: its address, of IPv6 the first 64 bits, IPv4 as mapped IPv6. */
struct hs_key {
	__u32 address[4];
};

struct hs_params {
	__u32 scheme;	/* `enum hs_scheme`. */
	__u32 initial_window;	/* Segments of the initial window; Headstart: of 1448 bytes, of a first contact. */
	__u32 gamma;	/* `WiseStart`: the ack that decides. */
	__u32 kappa;	/* `WiseStart`: segments at twice the rate. */
	__u32 adaptation;	/* `WiseStart`: adapt to a limiting application. */
	__u32 burst;	/* `JumpStart` and Blitzstart: segments that leave at once. */
	__u64 cap;	/* `JumpStart`: most bytes of the flight; Careful Resume: most bytes of the jump. */
	__u64 lifetime;	/* Careful Resume: lifetime of a record, in nanoseconds. */
};

struct hs_prior {
	__u64 now;	/* Nanoseconds. */
	__u64 handshake_rtt;	/* Nanoseconds. */
	__u64 flow_size;	/* Bytes; `NONE`: not known. */
	__u64 receive_window;	/* Bytes. */
	__u64 initial_window;	/* Of the transport, in bytes; 0: one flow for each connection. */
	__u64 saved_at;	/* Nanoseconds. */
	__u64 btl_bw;	/* Bytes per second; 0: no record. */
	__u64 rt_prop;	/* Nanoseconds. */
	__u64 window;	/* TCP-Cache: bytes. */
	__u64 ssthresh;	/* TCP-Cache: bytes. */
	__u64 hint;	/* Bytes per second; 0: none. */
	__u64 credit;	/* Headstart, `history::SharedCredit`: bytes; 0: none yet. */
	__u64 reserved;	/* Headstart, `history::SharedCredit`: bytes. */
	__u32 live;	/* Others that began from the record. */
	__u32 mss;	/* Bytes. */
	__u32 lossy;	/* The start that left the record had a loss or a mark. */
	__u32 doubt;	/* Headstart, `history::SharedCredit`: millionths. */
};

struct hs_sent {
	__u64 now;	/* Nanoseconds. */
	__u64 bytes;	/* Bytes. */
	__u64 in_flight;	/* These included. */
};

struct hs_ack {
	__u64 now;	/* Nanoseconds. */
	__u64 newest_sent_at;	/* Nanoseconds. */
	__u64 newly_acked;	/* Bytes. */
	__u64 first_flight_acked;	/* Bytes. */
	__u64 rtt_sample;	/* Nanoseconds; `NONE`: ambiguous. */
	__u64 min_rtt;	/* Nanoseconds. */
	__u64 smoothed;	/* Nanoseconds. */
	__u64 in_flight;	/* Bytes. */
	__u64 delivered;	/* Bytes. */
	__u32 is_window_limited;	/* The window holds data back. */
	__u32 in_recovery;	/* Losses are being repaired. */
};

struct hs_congestion {
	__u64 lost;	/* Bytes. */
	__u64 first_flight_lost;	/* Bytes. */
	__u64 in_flight;	/* Bytes. */
	__u64 delivered;	/* Bytes. */
	__u32 is_mark;	/* A CE mark, not a loss. */
	__u32 is_timeout;	/* Neither: nothing was acknowledged for long. */
};

struct hs_start {
	__u64 window;	/* Bytes. */
	__u64 pace;	/* 0: none. */
	__u64 ssthresh;	/* With `HS_AVOID`. */
	__u64 flight;	/* Bytes. */
	__u64 burst;	/* Bytes. */
	__u64 mss;	/* Bytes. */
	__u64 btl_bw;	/* Last_BtlBw. */
	__u64 rt_prop;	/* Of the record. */
	__u64 est_btl_bw;	/* Est_BtlBw, once decided. */
	__u64 est_bdp;	/* Bytes. */
	__u64 first_at;	/* WiseStart, Headstart: first ack; Careful Resume: when Unvalidated began. */
	__u64 first_sent_at;	/* Departure of what that acknowledged. */
	__u64 last_sent_at;	/* Headstart: arrival of the last ack of the first instant. */
	__u64 acked;	/* Bytes. */
	__u64 min_rtt;	/* Of the connection. */
	__u64 rtt;	/* Careful Resume: for pacing. */
	__u64 pipe_size;	/* Headstart: acked by single packets since the train's end. */
	__u64 through;	/* Of the first flight, as originals: bytes. */
	__u64 in_flight;	/* Bytes. */
	__u64 began;	/* Est_SendRate: since when. */
	__u64 due;	/* Est_SendRate: what the bytes should have taken; Headstart: arrival of the train. */
	__u64 blocked;	/* Est_SendRate: time that the window was full; Headstart: departure of the train. */
	__u64 blocked_since;	/* `NONE`: the window has room. */
	__u64 lost;	/* Headstart: bytes of the first flight. */
	__u64 beside;	/* Others' first flights to the peer when this one began: bytes. */
	__u64 cold;	/* Credit of a first contact before any outcome: bytes. */
	__u32 scheme;	/* `enum hs_scheme`. */
	__u32 phase;	/* `enum hs_phase`. */
	__u32 acks;	/* Number so far. */
	__u32 share;	/* Connections that divide the estimates. */
	__u32 kept;	/* Window after a loss, in percent of the delivered bytes. */
	__u32 refusal;	/* `enum hs_refusal`. */
	__u32 discards;	/* The record was wrong. */
	__u32 next;	/* `enum hs_next` of the last event. */
	__u32 settled;	/* Headstart: the outcome of the first flight is known. */
	__u32 thinned;	/* Headstart: an ack has covered two packets or more. */
	__u64 least_rtt;	/* Headstart: the least of the latest samples. */
	__u64 paused_at;	/* Headstart: when growth stopped; `NONE`: at no ack yet. */
	__u32 pause;	/* Headstart: `enum hs_pause`. */
	__u32 samples;	/* Headstart: number of the latest samples. */
};

struct hs_settings {
	struct hs_params params;	/* The scheme. */
	__u64 max_rate;	/* The most that a record or a hint may claim, in bytes per second. */
	__u64 max_window;	/* The most bytes of a first flight. */
	__u64 lifetime;	/* Lifetime of a record, in nanoseconds. */
	__u64 hint_rate;	/* The most that a hint may claim, in bytes per second. */
	__u32 hundredths;	/* Percent, times 100, of the eligible connections that get the scheme. */
	__u32 stopped;	/* The kill switch. */
	__u32 same_path;	/* Refuse a record of another RTT. */
	__u32 shares;	/* Several live starts to one peer share its rate; else the record is refused while in use. */
	__u32 traces;	/* The ring buffer of why records has a reader. */
	__u32 reads_hint;	/* Read the hint option. */
	__u32 restarts_after_idle;	/* Start fast again after idle. */
	__u32 outgoing;	/* Take the connections that this host opens, too. */
	__u32 window;	/* Level `window`: segments of the initial window. */
	__u32 is_default;	/* The object replaces the default of the network namespace. */
	__u32 is_exchanged;	/* The ring buffer of peers has a reader. */
	__u32 unused;	/* Nothing. */
	__u64 window_rate;	/* Level `window`: pacing limit until the first ack, in bytes per second; 0 is none. */
	__u64 cgroup;	/* Number of the cgroup whose listeners carry the control; 0: none does. */
	char native[16];	/* The default of the network namespace before: in charge after a start. */
};

struct hs_record {
	__s64 saved_at;	/* Nanoseconds since boot; negative before it. */
	__u64 btl_bw;	/* Bytes per second. */
	__u64 rt_prop;	/* Nanoseconds. */
	__u64 window;	/* Bytes. */
	__u64 ssthresh;	/* Bytes; [`NONE`] if none was ever set. */
	__u32 ended;	/* 0 clean, 1 lossy. */
	__u32 trust;	/* Percent: agreement of the last records of the peer. */
	__u64 credit;	/* Bytes that concurrent first flights to the peer may hold together; 0: none yet. */
};

struct hs_peer_event {
	struct hs_key peer;	/* The peer. */
	__u64 kind;	/* `enum hs_peer_event_kind`. */
};

struct hs_arm_counters {
	__u64 connections;	/* Connections that ended. */
	__u64 sources[4];	/* Ended connections by the source of their first flight. */
	__s64 rounds_saved;	/* Round trips saved against slow start from ten packets, summed up. */
	__u64 sent;	/* Payload bytes sent, retransmissions included. */
	__u64 lost;	/* Bytes declared lost. */
	__u64 first_flight;	/* Bytes of first flights. */
	__u64 first_flight_lost;	/* Bytes of first flights declared lost. */
	__u64 retransmitted;	/* Bytes retransmitted. */
	__u64 marks;	/* Congestion marks that ended a start. */
	__u64 timeouts;	/* Timeouts that ended a start. */
	__u64 saved;	/* Records written. */
	__u64 dropped;	/* Records dropped because they were wrong. */
	__u64 restarts;	/* Fast starts after idle. */
};

struct hs_counters {
	struct hs_arm_counters arms[5];	/* By arm. */
	__u64 refusals[8];	/* Records not used, by reason. */
	__u64 hints[3];	/* Hints received, cut, malformed. */
	__u64 taken;	/* Connections taken over. */
	__u64 recoveries;	/* First flights repaired by their own recovery. */
};

struct hs_report {
	struct hs_key peer;	/* The peer. */
	__u64 handshake_rtt;	/* Nanoseconds. */
	__u64 record_rate;	/* Bytes per second; 0: there was no record. */
	__u64 record_rtt;	/* Nanoseconds. */
	__u64 hint;	/* Bytes per second; 0: none. */
	__u64 granted;	/* Bytes per second. */
	__u64 burst;	/* Bytes. */
	__u64 first_flight;	/* Bytes. */
	__u64 pace;	/* Bytes per second; 0 leaves the pace to the kernel. */
	__u64 first_round;	/* Bytes sent before the first ack. */
	__u64 sent;	/* Bytes. */
	__u64 lost;	/* Bytes. */
	__u64 first_flight_lost;	/* Bytes. */
	__u64 min_rtt;	/* Nanoseconds. */
	__u64 rate;	/* Bytes per second; 0 without a measurement. */
	__u64 mss;	/* Bytes. */
	__u64 lasted;	/* Nanoseconds since the first data; 0: nothing was sent. */
	__u64 answer;	/* Nanoseconds from the first data to the last ack before the first pause; 0: none. */
	__u64 answer_bytes;	/* Bytes acknowledged until then. */
	__s64 rounds_saved;	/* Against slow start from ten packets. */
	__u64 limited[7];	/* Nanoseconds of the answer by what held back its next packet. */
	__u32 record_live;	/* Others with data in flight when it started. */
	__u32 scheme;	/* `enum hs_scheme`. */
	__u32 arm;	/* Index into [`ARMS`]. */
	__u32 source;	/* Index into [`SOURCES`]. */
	__u32 refusal;	/* Index into [`REFUSALS`]. */
	__u32 flights;	/* Flights planned. */
	__u32 record_outcome;	/* Index into [`RECORD_OUTCOMES`]. */
	__u32 phases;	/* Number of the phases. */
	__u32 phase[8];	/* Phase and result of each, as `note()` codes them. */
	__u32 phase_at[8];	/* Microseconds since it began to send. */
	char control[16];	/* The congestion control of the connection before, and after the start. */
};

struct hs_replay {
	struct hs_params params;	/* Of the scheme. */
	struct hs_start start;	/* State before and after it. */
	struct hs_prior prior;	/* `HS_EVENT_ESTABLISH`; `HS_EVENT_OUTCOME`: the answer. */
	struct hs_sent sent;	/* `HS_EVENT_SENT`. */
	struct hs_ack ack;	/* `HS_EVENT_ACK`. */
	struct hs_congestion congestion;	/* `HS_EVENT_CONGESTION`, `HS_EVENT_TIMEOUT`. */
	__u64 event;	/* `enum hs_event`. */
};

struct hs_replay_hint_args {
	__u8 option[12];	/* As `bpf_load_hdr_opt()` leaves it. */
	__s32 found;	/* Length that `bpf_load_hdr_opt()` returned. */
	__u64 rate;	/* Bytes per second; 0: malformed. */
};

struct hs_peers {
	__u32 count;	/* Of peers. */
	__u32 inserts;	/* Inserts them; else finds them. */
	__u64 found;	/* Successes. */
	__u64 took;	/* Nanoseconds. */
};
