/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Read and written by the object and its loader (src/layout.rs), in the machine's byte order. */
#ifndef HEADSTART_SHARED_H
#define HEADSTART_SHARED_H

#include "decide.h"

/* Settings, the only element of the map `settings`. The loader may change any at any time. */
struct hs_settings {
	struct hs_params params;
	__u64 max_rate;		/* most that a record or hint may claim, bytes per second */
	__u64 max_window;	/* most bytes of a first flight */
	__u64 lifetime;		/* of a record, ns */
	__u64 hint_rate;	/* most that a hint may claim */
	__u32 hundredths;	/* percent x 100 of the eligible that get the scheme */
	__u32 stopped;		/* the kill switch */
	__u32 same_path;	/* check the RTT against the record's */
	__u32 shares;		/* several live starts to one peer share its rate */
	__u32 traces;		/* the ring buffer has a reader */
	__u32 reads_hint;	/* read the hint option */
	__u32 restarts_after_idle;	/* start fast again after idle */
	__u32 outgoing;		/* connections that this host opens are taken, too */
	__u32 window;		/* level "window": segments of the initial window */
	__u32 is_default;	/* it replaces the namespace's default */
	__u32 is_exchanged;	/* the ring buffer `peers` has a reader */
	__u32 unused;
	__u64 window_rate;	/* level "window": pacing limit until the first ack, bytes per second; 0: none */
	__u64 cgroup;		/* its number; listeners in it carry the control; 0: none does */
	char native[16];	/* the namespace's default before */
};

/* A record of a peer; the key is its address, of IPv6 the first 64 bits, IPv4 as mapped IPv6. */
struct hs_record {
	__s64 saved_at;		/* ns since boot (CLOCK_BOOTTIME); negative: before */
	__u64 btl_bw;		/* bytes per second */
	__u64 rt_prop;		/* ns */
	__u64 window;		/* bytes */
	__u64 ssthresh;		/* bytes; HS_NONE: none was ever set */
	__u32 ended;		/* 0 clean, 1 lossy */
	__u32 trust;		/* percent: how far the last records of the peer agreed */
	__u64 credit;		/* bytes; 0: none yet */
};

/* The connections to a peer with data in flight. */
struct hs_busy {
	__u64 reserved;		/* bytes of first flights whose outcome is not known yet */
	__u32 count;
	__u32 unused;
};

struct hs_key {
	__u32 address[4];
};

/* Sent to the ring buffer `peers`. */
enum hs_peer_event_kind {
	HS_PEER_CONNECTS,	/* a connection of it may come */
	HS_PEER_SAVED,		/* its record was written */
	HS_PEER_DROPPED,	/* its record misled a start and was removed */
};

struct hs_peer_event {
	struct hs_key peer;
	__u64 kind;
};

enum hs_arm { HS_UNDECIDED, HS_TREATMENT, HS_CONTROL, HS_INELIGIBLE, HS_STOPPED, HS_ARMS };
enum hs_source { HS_FROM_NOTHING, HS_FROM_FLOW_SIZE, HS_FROM_HISTORY, HS_FROM_HINT, HS_SOURCES };
enum hs_record_outcome { HS_OPEN, HS_SAVED, HS_LEFT_NOTHING, HS_DROPPED };

struct hs_arm_counters {
	__u64 connections;
	__u64 sources[HS_SOURCES];
	__s64 rounds_saved;
	__u64 sent;
	__u64 lost;
	__u64 first_flight;
	__u64 first_flight_lost;
	__u64 retransmitted;
	__u64 marks;
	__u64 timeouts;
	__u64 saved;
	__u64 dropped;
	__u64 restarts;		/* fast starts after idle */
};

struct hs_counters {
	struct hs_arm_counters arms[HS_ARMS];
	__u64 refusals[8];
	__u64 hints[3];		/* received, cut, malformed */
	__u64 taken;		/* connections taken over */
	__u64 recoveries;	/* first flights repaired by their own recovery */
};

#define HS_PHASES 8

/* The start report of a connection, sent to the ring buffer when it closes. */
struct hs_report {
	struct hs_key peer;
	__u64 handshake_rtt;
	__u64 record_rate;	/* 0: none */
	__u64 record_rtt;
	__u64 hint;
	__u64 granted;
	__u64 burst;
	__u64 first_flight;
	__u64 pace;
	__u64 first_round;	/* bytes sent before the first ack */
	__u64 sent;
	__u64 lost;
	__u64 first_flight_lost;
	__u64 min_rtt;
	__u64 rate;		/* measured; 0: nothing */
	__u64 mss;
	__u64 lasted;		/* since the first data, ns; 0: nothing was sent */
	__u64 answer;		/* first data to the last ack before the first pause, ns; 0: none */
	__u64 answer_bytes;
	__s64 rounds_saved;
	__u32 record_live;
	__u32 scheme;
	__u32 arm;
	__u32 source;
	__u32 refusal;
	__u32 flights;
	__u32 record_outcome;
	__u32 phases;
	__u32 phase[HS_PHASES];
	__u32 phase_at[HS_PHASES];	/* microseconds since it began to send */
};

/* replay(): one event of a vector, run on the loaded object by BPF_PROG_TEST_RUN. */
enum hs_event {
	HS_EVENT_ESTABLISH,
	HS_EVENT_SENT,
	HS_EVENT_ACK,
	HS_EVENT_CONGESTION,
	HS_EVENT_TIMEOUT,
	HS_EVENT_OUTCOME,	/* prior.credit becomes the credit after the first flight */
};

struct hs_replay {
	struct hs_params params;
	struct hs_start start;
	struct hs_prior prior;
	struct hs_sent sent;
	struct hs_ack ack;
	struct hs_congestion congestion;
	__u64 event;
};

/* replay_hint(): the bytes of an option, and the rate read from them. */
struct hs_replay_hint_args {
	__u8 option[12];
	__s32 found;		/* length returned by bpf_load_hdr_opt() */
	__u64 rate;		/* bytes per second; 0: malformed */
};

/* replay_peers(): time that the history takes to insert or find peers, out of cache order. */
struct hs_peers {
	__u32 count;
	__u32 inserts;		/* true: inserts them; false: finds them */
	__u64 found;
	__u64 took;		/* ns */
};

#endif
