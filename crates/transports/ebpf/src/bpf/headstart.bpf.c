// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * A fast start for Linux TCP.
 *
 * - headstart     a congestion control that owns the window during the start and is the kernel's
 *                 CUBIC after it: each callback calls the cubictcp_* one. Where the server had
 *                 another control, that one gets the connection back once the start is over, and
 *                 in the control arm as soon as the arm is drawn.
 * - headstart_fr  the same while a first flight with losses is repaired. The window follows the
 *                 delivered data, instead of the kernel's PRR of one packet for each delivered.
 * - headstart_lt  the same once a start is over and answers are short. It is CUBIC with two checks
 *                 (idle, more queued than a first window) that may return it to the first one. The
 *                 absent callbacks cost a server of small files nothing.
 * - select        sock_ops: gives connections of a cgroup that control, and reads the client's hint
 * - adopt         iter/tcp: gives listeners of the cgroup that control; accepted sockets inherit it
 * - migrate       iter/tcp: gives listeners and live connections back their control
 * - measure       tp_btf: times the answers of connections that have their own control back
 * - replay        syscall: applies one event of a test vector to the decisions above
 *
 * The programs for kernels without struct_ops are in window.bpf.c.
 *
 * A start is decided when more than a first window is queued (min_tso_segs, the only callback
 * before each group of segments). It is updated at each ack (pkts_acked), and over when the
 * kernel's CUBIC has the window. Connections with less to send are CUBIC's and have no state here.
 */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "hint.h"
#include "decide.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define MAIN "headstart"
#define REPAIR "headstart_fr"
#define LIGHT "headstart_lt"
#define NATIVE "cubic"

/* One connection. */
struct flow {
	struct hs_start start;
	struct hs_key peer;
	__u64 handshake_rtt;
	__u64 record_rate;
	__u64 record_rtt;
	__u64 hint;
	__u64 granted;
	__u64 began;		/* begin of the last flight, ns */
	__u64 hook_at;		/* when segments were last about to leave */
	__u64 bytes_sent;	/* seen so far */
	__u64 first_round;
	__u64 train_at;		/* first ack of the train */
	__u64 train_acked;	/* bytes since */
	__u64 train_rate;	/* the best estimate so far */
	__u64 planned;
	__u64 planned_burst;
	__u64 planned_pace;
	__u64 first_flights;	/* bytes, of all flights */
	__u64 first_flight_lost;
	__u64 flight_sent;	/* bytes of the last one */
	__u64 reserved;		/* bytes that it holds of the peer's credit */
	__u64 credit;		/* of a first contact: what its record begins with */
	__u64 answer_at;	/* begin of the first answer, ns */
	__u64 answer_end;	/* its last ack so far */
	__u64 limit_at;		/* up to when its limits are known, ns; 0: no process reads them */
	__u64 limited[HS_LIMITS];	/* its time under each until then */
	__u64 answer_limited[HS_LIMITS];	/* and until its last ack so far */
	__u32 delivered;	/* packets seen delivered */
	__u32 answer_from;	/* tp->snd_una when the first answer began */
	__u32 answer_una;	/* and at its last ack so far */
	__u32 written;		/* tp->write_seq at limit_at */
	__u32 flight_delivered;	/* tp->delivered when the flight began */
	__u32 flight_lost;	/* tp->lost then */
	__u32 lost_seen;	/* tp->lost, as reported to the scheme */
	__u32 flight_rtx;	/* tp->total_retrans then */
	__u32 through_seen;
	__u32 flight_end;	/* snd_nxt when its first ack came */
	__u32 una;
	__u32 train_acks;
	__u32 live;		/* others with data in flight when the flight began */
	__u32 arm;
	__u32 source;
	__u32 refusal;
	__u32 record_outcome;
	__u32 flights;
	__u32 marks;
	__u32 timeouts;
	__u32 recoveries;
	__u32 restarts;
	__u32 phases;
	__u32 phase[HS_REPORTED_PHASES];
	__u32 phase_at[HS_REPORTED_PHASES];
	__u8 ca_state;
	__u8 is_known;		/* peer and handshake RTT are set */
	__u8 is_decided;	/* a first flight has begun */
	__u8 is_busy;		/* has data in flight */
	__u8 is_live;		/* the scheme has the window */
	__u8 is_first_round;	/* nothing of the flight is acked */
	__u8 is_training;
	__u8 is_guarding;	/* packets of a fast first flight are outstanding */
	__u8 is_switching;
	__u8 is_idle_restart;
	__u8 keeps_pace;
	__u8 is_fresh;		/* the estimate is not in the history yet */
	__u8 short_answers;	/* in a row, after the start */
	__u8 is_stranger;	/* there was no record */
	__u8 is_answered;	/* the first pause has begun */
	__u8 is_drained;	/* all that was written is acknowledged */
	__u8 is_followed;	/* sock_ops is told when it is closed */
	__u8 is_handed_back;	/* it has its own control again */
	char original[16];	/* the control it had */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hs_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hs_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct hs_key);
	__type(value, struct hs_record);
} history SEC(".maps");

/* The connections to a peer with data in flight. */
struct hs_busy {
	__u64 reserved;		/* bytes of first flights whose outcome is not known yet */
	__u32 count;
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct hs_key);
	__type(value, struct hs_busy);
} busy SEC(".maps");

/* Headstart's credit of first contacts, in bytes; 0: none yet. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} strangers SEC(".maps");

/* Headstart: one prefix (history/credit.rs): its first contacts, and the doubt in its records. */
struct hs_prefix {
	__u64 credit;
	__u64 outcomes;
	__u64 doubt;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct hs_key);
	__type(value, struct hs_prefix);
} prefixes SEC(".maps");

/* Percent of an address's hinted rate that is credited; none: all of it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct hs_key);
	__type(value, __u32);
} credits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} reports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} peers SEC(".maps");

static const __u32 zero = 0;

#define INITIAL_WINDOW 10
/* RFC 5681, section 3.1. */
#define CROWDED_WINDOW 3
/* Answers in a row that fit the first window, after which a connection gets LIGHT. */
#define SHORT_ANSWERS 2
#define CREDIT_FULL 100
#define CREDIT_REGAINED 10
#define CREDIT_WORTHLESS 10
/* Depth of cgroups. */
#define MAX_CGROUP_LEVELS 32

#define INLINE static __always_inline
#define CALL static __attribute__((noinline, unused))

INLINE struct hs_settings *the_settings(void) { return bpf_map_lookup_elem(&settings, &zero); }
INLINE struct hs_counters *the_counters(void) { return bpf_map_lookup_elem(&counters, &zero); }
INLINE struct flow *flow_of(struct sock *sk) { return bpf_sk_storage_get(&flows, sk, 0, 0); }

INLINE int begins_with(const char *name, const char *beginning, __u32 length)
{
	__u32 i;

	for (i = 0; i < length; i++)
		if (name[i] != beginning[i])
			return 0;
	return 1;
}

INLINE __u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Queued data and data in flight fit any connection's first window. */
INLINE int is_short(const struct tcp_sock *tp)
{
	return tp->write_seq - tp->snd_una <= INITIAL_WINDOW * tp->mss_cache;
}

/* Gives the connection another of our controls; its state stays. */
#define SWITCH(f, sk, control)                                                          \
	do {                                                                            \
		if (f)                                                                  \
			(f)->is_switching = 1;                                          \
		bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, control, sizeof(control)); \
		if (f)                                                                  \
			(f)->is_switching = 0;                                          \
	} while (0)

/* The control that the connection had before; CUBIC is in charge after a start as it is. */
INLINE const char *own_control(const struct flow *f, const struct hs_settings *set)
{
	return f->original[0] ? f->original : set->native;
}

/*
 * The start is over, or there is none: the connection's own control takes over with the window as
 * it is. It makes its estimates anew, as after any change of the control.
 */
CALL void hand_back(struct flow *f, struct sock *sk, const struct hs_settings *set)
{
	char own[16];

	if (!f || !set || f->is_live || f->is_guarding || f->is_training || f->is_handed_back)
		return;
	__builtin_memcpy(own, own_control(f, set), sizeof(own));
	if (!own[0] || begins_with(own, NATIVE, sizeof(NATIVE)))
		return;
	f->is_handed_back = 1;
	/* Otherwise the connection is counted now, as one that ends. */
	f->is_switching = f->is_followed;
	if (bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, own, sizeof(own))) {
		/* The kernel has that control no longer: the start's own stays to the end. */
		f->is_handed_back = 0;
		__builtin_memcpy(f->original, NATIVE, sizeof(NATIVE));
	}
	f->is_switching = 0;
}

INLINE __u32 packets(const struct flow *f, __u64 bytes)
{
	return hs_clamp(bytes / hs_max(f->start.mss, 1), 1, TCP_INFINITE_SSTHRESH);
}

/* ---- Peers ---- */

INLINE void set_key6(struct hs_key *key, __u32 first, __u32 second, __u32 third, __u32 fourth)
{
	const __u32 mapped = bpf_htonl(0xffff);
	int is_mapped = !first && !second && third == mapped;

	key->address[0] = first;
	key->address[1] = second;
	key->address[2] = is_mapped ? mapped : 0;
	key->address[3] = is_mapped ? fourth : 0;
}

INLINE void set_key4(struct hs_key *key, __u32 address) { set_key6(key, 0, 0, bpf_htonl(0xffff), address); }

INLINE void key_of(struct hs_key *key, const struct sock_common *sk)
{
	const __u32 *six = sk->skc_v6_daddr.in6_u.u6_addr32;

	if (sk->skc_family == AF_INET6)
		set_key6(key, six[0], six[1], six[2], six[3]);
	else
		set_key4(key, sk->skc_daddr);
}

/* For the process that exchanges records with other hosts; lost if it falls behind. */
INLINE void report_peer(const struct hs_key *peer, __u64 kind)
{
	struct hs_settings *set = the_settings();
	struct hs_peer_event *event;

	if (!set || !set->is_exchanged)
		return;
	event = bpf_ringbuf_reserve(&peers, sizeof(*event), 0);
	if (!event)
		return;
	event->peer = *peer;
	event->kind = kind;
	bpf_ringbuf_submit(event, 0);
}

INLINE __u32 busy_at(const struct hs_key *peer)
{
	struct hs_busy *found = bpf_map_lookup_elem(&busy, peer);

	return found ? found->count : 0;
}

/* The connection has data in flight from now on. */
CALL void begin_busy(struct flow *f)
{
	struct hs_busy one = { .count = 1 }, *found = bpf_map_lookup_elem(&busy, &f->peer);

	f->is_busy = 1;
	if (found)
		__sync_fetch_and_add(&found->count, 1);
	else
		bpf_map_update_elem(&busy, &f->peer, &one, BPF_NOEXIST);
}

CALL void end_busy(struct flow *f)
{
	struct hs_busy *found;

	if (!f->is_busy)
		return;
	f->is_busy = 0;
	found = bpf_map_lookup_elem(&busy, &f->peer);
	/* An entry that was evicted meanwhile began anew at zero. */
	if (found && found->count && !__sync_fetch_and_sub(&found->count, 1))
		__sync_fetch_and_add(&found->count, 1);
}

/* ---- Headstart's credit, as the QUIC server's store keeps it (history/memory.rs) ---- */

INLINE __u64 revise(__u64 *credit, const struct hs_start *s)
{
	__u64 before, after = 0;
	int i;

	/* Flights that end at the same moment elsewhere count, too; the third in a row may not. */
	for (i = 0; i < 3; i++) {
		before = *credit;
		after = hs_revised(s, before);
		if (__sync_val_compare_and_swap(credit, before, after) == before)
			break;
	}
	return after;
}

/* Revision::of_all: a prefix that has had so many outcomes moves the credit of all by a part. */
INLINE void revise_all(__u64 *credit, const struct hs_start *s, __u64 outcomes)
{
	__u64 before, base, part, after;
	int i;

	for (i = 0; i < 3; i++) {
		before = *credit;
		base = before ? before : s->cold;
		part = base >> (HS_LARGEST_PART + (outcomes & (HS_OWN_FROM - 1)));
		after = hs_clamp(hs_revised(s, before), base - part, base + part);
		if (__sync_val_compare_and_swap(credit, before, after) == before)
			return;
	}
}

/* The /24 of IPv4, the /48 of IPv6. */
INLINE void prefix_of(struct hs_key *prefix, const struct hs_key *peer)
{
	*prefix = *peer;
	if (peer->address[2])
		prefix->address[3] &= bpf_htonl(0xffffff00);
	else
		prefix->address[1] &= bpf_htonl(0xffff0000);
}

/* history/credit.rs, FirstContacts::credit: of the prefix once it has outcomes of its own. */
HS_GLOBAL __u64 first_contact_credit(const struct hs_key *peer)
{
	struct hs_key key = {};
	struct hs_prefix *own;
	__u64 *all;

	if (!peer)
		return 0;
	prefix_of(&key, peer);
	own = bpf_map_lookup_elem(&prefixes, &key);
	if (own && own->outcomes >= HS_OWN_FROM)
		return own->credit;
	all = bpf_map_lookup_elem(&strangers, &zero);
	return all ? *all : 0;
}

/* FirstContacts::doubt. */
HS_GLOBAL __u64 doubt_in_records(const struct hs_key *peer)
{
	struct hs_key key = {};
	struct hs_prefix *own;

	if (!peer)
		return 0;
	prefix_of(&key, peer);
	own = bpf_map_lookup_elem(&prefixes, &key);
	return own ? own->doubt : 0;
}

/* FirstContacts::revise_doubt. */
HS_GLOBAL int revise_doubt(const struct hs_key *peer, const struct hs_start *s)
{
	struct hs_prefix first = {}, *own;
	struct hs_key key = {};
	__u64 before;
	int i;

	if (!peer || !s)
		return 0;
	prefix_of(&key, peer);
	own = bpf_map_lookup_elem(&prefixes, &key);
	if (!own) {
		first.doubt = hs_doubted(s, 0);
		if (first.doubt)
			bpf_map_update_elem(&prefixes, &key, &first, BPF_ANY);
		return 0;
	}
	for (i = 0; i < 3; i++) {
		before = own->doubt;
		if (__sync_val_compare_and_swap(&own->doubt, before, hs_doubted(s, before)) == before)
			break;
	}
	return 0;
}

/* FirstContacts::revise: of the prefix, which is returned, and of all. */
HS_GLOBAL __u64 revise_first_contacts(const struct hs_key *peer, const struct hs_start *s)
{
	__u64 *all = bpf_map_lookup_elem(&strangers, &zero);
	struct hs_prefix first = { .outcomes = 1 }, *own;
	struct hs_key key = {};
	__u64 outcomes = 0;

	if (!peer || !s || !all)
		return 0;
	prefix_of(&key, peer);
	own = bpf_map_lookup_elem(&prefixes, &key);
	if (own && own->outcomes) {
		outcomes = __sync_fetch_and_add(&own->outcomes, 1);
		first.credit = revise(&own->credit, s);
	} else {
		first.credit = hs_revised(s, *all);
		first.doubt = own ? own->doubt : 0;
		bpf_map_update_elem(&prefixes, &key, &first, BPF_ANY);
	}
	if (outcomes < HS_OWN_FROM)
		revise_all(all, s, outcomes);
	return first.credit;
}

/* Store::release: the reservation ends, and an outcome revises the credit. */
HS_GLOBAL int release_flight(struct flow *f)
{
	struct hs_record *record;
	struct hs_busy *found;
	__u64 held, before;

	if (!f || !f->reserved)
		return 0;
	held = f->reserved;
	f->reserved = 0;
	found = bpf_map_lookup_elem(&busy, &f->peer);
	if (found) {
		before = __sync_fetch_and_sub(&found->reserved, held);
		if (before < held)
			__sync_fetch_and_add(&found->reserved, held - before);
	}
	if (!f->start.settled)
		return 0;
	revise_doubt(&f->peer, &f->start);
	if (f->is_stranger)
		f->credit = revise_first_contacts(&f->peer, &f->start);
	record = bpf_map_lookup_elem(&history, &f->peer);
	if (record)
		revise(&record->credit, &f->start);
	return 0;
}

/*
 * Store::reserve: the room that other flights have left. All of the credit is taken until the
 * flight is planned, so that flights planned at the same moment do not add up to more.
 */
CALL void reserve_credit(struct flow *f, const struct hs_settings *set, struct hs_prior *p)
{
	struct hs_busy *found = bpf_map_lookup_elem(&busy, &f->peer);
	__u64 most = hs_min(set->max_window, hs_moved(set->max_rate, p->handshake_rtt));

	p->receive_window = hs_min(p->receive_window, most);
	if (!found)
		return;
	f->reserved = hs_max(p->credit, hs_segments(p->mss, set->params.initial_window));
	p->reserved = __sync_fetch_and_add(&found->reserved, f->reserved);
	if (!set->shares)
		p->reserved = 0;
}

/* The flight is planned: what it does not need is free again. */
CALL void reserve_flight(struct flow *f)
{
	struct hs_busy *found = bpf_map_lookup_elem(&busy, &f->peer);

	if (!found || f->start.flight >= f->reserved)
		return;
	__sync_fetch_and_sub(&found->reserved, f->reserved - f->start.flight);
	f->reserved = f->start.flight;
}

/* ---- Credit, as the QUIC server gives it (its limits.rs) ---- */

/* The credited part of `claimed`. */
INLINE __u64 limit_hint(const struct hs_key *peer, __u64 claimed)
{
	__u32 *credit = bpf_map_lookup_elem(&credits, peer);

	if (!credit)
		return claimed;
	if (*credit < CREDIT_WORTHLESS) {
		/* Slow recovery: each hint without credit regains one percent. */
		*credit += 1;
		return 0;
	}
	return hs_min(claimed, HS_MAX_RATE) * hs_min(*credit, CREDIT_FULL) / CREDIT_FULL;
}

/* The first flight from a hint is over: more than a tenth lost halves the credit. */
CALL void release_reservation(const struct flow *f)
{
	__u32 *credit = bpf_map_lookup_elem(&credits, &f->peer), now = credit ? *credit : CREDIT_FULL;

	if (f->first_flight_lost * 10 > hs_min(f->planned, f->flight_sent))
		now /= 2;
	else
		now = hs_min(now + CREDIT_REGAINED, CREDIT_FULL);
	if (credit)
		*credit = now;
	else if (now != CREDIT_FULL)
		bpf_map_update_elem(&credits, &f->peer, &now, BPF_ANY);
}

/* No packet of the first flight is outstanding, or it is no longer governed. */
INLINE void end_guard(struct flow *f, const struct tcp_sock *tp)
{
	if (!f->is_guarding)
		return;
	f->is_guarding = 0;
	f->first_flight_lost += (__u64)(tp->lost - f->flight_lost) * tp->mss_cache;
	if (f->source == HS_FROM_HINT)
		release_reservation(f);
}

/* ---- The history ---- */

/* Writes the path record. Agreement with the last raises trust, disagreement (a NAT) lowers it. */
CALL void save_record(struct flow *f, struct tcp_sock *tp)
{
	struct hs_record record = {}, *last;
	__u64 rate = f->train_rate, sample = 0;

	if (!tp->rate_app_limited && tp->rate_interval_us)
		sample = hs_rate((__u64)tp->rate_delivered * tp->mss_cache, (__u64)tp->rate_interval_us * 1000);
	rate = hs_max(rate, f->train_rate ? sample : 0);
	record.rt_prop = (__u64)tp->rtt_min.s[0].v * 1000;
	if (!rate || !record.rt_prop || tp->rtt_min.s[0].v == ~0U)
		return;
	record.saved_at = bpf_ktime_get_boot_ns();
	record.btl_bw = rate;
	record.window = (__u64)tp->snd_cwnd * tp->mss_cache;
	record.ssthresh = tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH ? HS_NONE
								    : (__u64)tp->snd_ssthresh * tp->mss_cache;
	record.ended = f->first_flight_lost > 0 || (f->start.scheme == HS_HEADSTART && f->start.lost > 0);
	record.trust = 100;
	record.credit = f->credit;
	last = bpf_map_lookup_elem(&history, &f->peer);
	if (f->start.scheme == HS_HEADSTART)
		rate = record.btl_bw = hs_recorded(&f->start, rate, last ? last->btl_bw : 0);
	if (last) {
		record.credit = hs_max(record.credit, last->credit);
		if (f->start.scheme == HS_HEADSTART && last->rt_prop)
			record.rt_prop = hs_risen(last->rt_prop, record.rt_prop);
		/* The rate of a shared path does not replace a larger one. */
		if (f->live && rate < last->btl_bw)
			return;
		if (rate > last->btl_bw * 2 || rate * 2 < last->btl_bw)
			record.trust = hs_max(last->trust / 2, 25);
		else
			record.trust = hs_min(last->trust + 25, 100);
	}
	bpf_map_update_elem(&history, &f->peer, &record, BPF_ANY);
	report_peer(&f->peer, HS_PEER_SAVED);
	f->is_fresh = 0;
	f->record_outcome = HS_SAVED;
}

/* ---- The window ---- */

INLINE void note_phase(struct flow *f, __u64 now)
{
	__u32 at = f->phases, code = f->start.phase << 8 | f->start.next;

	if (at && at <= HS_REPORTED_PHASES && f->phase[(at - 1) & (HS_REPORTED_PHASES - 1)] == code)
		return;
	if (at < HS_REPORTED_PHASES) {
		f->phase[at & (HS_REPORTED_PHASES - 1)] = code;
		f->phase_at[at & (HS_REPORTED_PHASES - 1)] = hs_less(now, f->began) / 1000;
		f->phases = at + 1;
	}
}

INLINE void set_pace(struct tcp_sock *tp, __u64 pace)
{
	struct sock *sk = &tp->inet_conn.icsk_inet.sk;

	if (pace) {
		sk->sk_pacing_rate = pace;
		if (sk->sk_pacing_status == PACING_NONE)
			sk->sk_pacing_status = PACING_NEEDED;
	} else if (sk->sk_pacing_status == PACING_NEEDED) {
		sk->sk_pacing_status = PACING_NONE;
	}
}

/* The start is over; the kernel's CUBIC goes on with window and threshold as they are. */
INLINE void finish(struct flow *f, struct tcp_sock *tp)
{
	f->is_live = 0;
	if (!f->keeps_pace)
		set_pace(tp, 0);
	release_flight(f);
}

/* Applies the scheme's answer. */
CALL void apply(struct flow *f, struct tcp_sock *tp, __u64 now)
{
	struct hs_start *s = &f->start;
	__u32 cwnd = hs_min(packets(f, s->window), tp->snd_cwnd_clamp);

	note_phase(f, now);
	switch (s->next) {
	case HS_STAY:
		tp->snd_cwnd = cwnd;
		if (f->ca_state < CA_CWR) {
			/* Not below the threshold: the kernel's HyStart must not act on this start. */
			tp->snd_ssthresh = cwnd;
		}
		if (s->phase == HS_GROWING) {
			/* Plain slow start, and no packet of the first flight is left to govern. */
			__u64 delivered = (__u64)(tp->delivered - f->flight_delivered) * s->mss;

			if ((s->scheme != HS_JUMP_START && s->scheme != HS_HEADSTART) || delivered >= s->flight) {
				s->settled = 1;
				tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
				finish(f, tp);
				return;
			}
		}
		set_pace(tp, s->pace);
		if (s->settled)
			release_flight(f);
		break;
	case HS_GROW:
		tp->snd_cwnd = cwnd;
		tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
		finish(f, tp);
		break;
	case HS_AVOID:
		tp->snd_cwnd = cwnd;
		tp->snd_ssthresh = s->ssthresh == HS_NONE ? TCP_INFINITE_SSTHRESH
							  : hs_max(packets(f, s->ssthresh), 2);
		finish(f, tp);
		break;
	default:
		finish(f, tp);
		break;
	}
}

/* ---- The time of the first answer, by what held back the next packet ---- */

/*
 * The time since the last event. Packets leave at events alone, so that the rest was held back from
 * then on. `acked` packets have been in flight until now.
 */
CALL void charge(struct flow *f, const struct tcp_sock *tp, __u64 now, __u32 acked)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	int is_full = in_flight(tp) + acked >= tp->snd_cwnd;
	__s32 unsent = f->written - tp->snd_nxt;
	__u32 by;

	/* A tail that is outstanding after a probe was lost, or its acks were. */
	if (f->ca_state >= CA_RECOVERY || tp->tlp_high_seq)
		by = HS_BY_RECOVERY;
	else if (unsent <= 0 || (unsent < (__s32)tp->mss_cache && !is_full))
		/* Nagle's algorithm or TCP_CORK holds back the rest: the application wrote no more. */
		by = HS_BY_PATH;
	else if (BPF_CORE_READ_BITFIELD(tp, chrono_type) == CHRONO_RWND_LIMITED)
		by = HS_BY_RECEIVER;
	else if (!is_full && sk->sk_pacing_status != PACING_NONE && tp->tcp_wstamp_ns > f->limit_at)
		by = HS_BY_PACER;
	else
		by = HS_BY_WINDOW;
	f->limited[by] += hs_less(now, f->limit_at);
	/* More was written after all: it was the application that had nothing. A FIN is one byte. */
	if ((__s32)(tp->write_seq - f->written) > 1) {
		f->limited[HS_BY_APPLICATION] += f->limited[HS_BY_PATH];
		f->limited[HS_BY_PATH] = 0;
	}
	f->limit_at = hs_max(now, f->limit_at);
	f->written = tp->write_seq;
}

/* The first answer ends at a pause of more than so many round trips. */
INLINE void note_pause(struct flow *f, const struct tcp_sock *tp, __u64 now, __u64 round_trips)
{
	if (f->is_drained && f->answer_end && hs_less(now, f->answer_end) > round_trips * (tp->srtt_us >> 3) * 1000)
		f->is_answered = 1;
}

INLINE int is_charged(const struct flow *f) { return f && f->limit_at && !f->is_answered; }

/* ---- The first flight ---- */

/* The record as far as it may be used; otherwise the reason in f->refusal. */
INLINE void admit(struct flow *f, const struct hs_settings *set, struct hs_prior *p)
{
	struct hs_record *record = bpf_map_lookup_elem(&history, &f->peer);
	__u64 now = bpf_ktime_get_boot_ns(), rate;

	f->refusal = HS_NO_RECORD;
	f->is_stranger = !record;
	p->credit = record ? record->credit : first_contact_credit(&f->peer);
	if (!record || !record->btl_bw || !record->rt_prop)
		return;
	f->record_rate = record->btl_bw;
	f->record_rtt = record->rt_prop;
	/* Headstart's records do not age, and its credit is shared by the bytes in flight. */
	if (set->params.scheme != HS_HEADSTART && (__s64)(now - record->saved_at) > (__s64)set->lifetime) {
		f->refusal = HS_EXPIRED;
		return;
	}
	if (!set->shares && f->live && set->params.scheme != HS_HEADSTART) {
		f->refusal = HS_IN_USE;
		return;
	}
	f->refusal = set->same_path ? hs_contradicted(record->rt_prop, p->handshake_rtt) : HS_ACCEPTED;
	if (f->refusal)
		return;
	rate = record->btl_bw * hs_clamp(record->trust, 1, 100) / 100;
	p->btl_bw = hs_min(rate, set->max_rate);
	p->rt_prop = record->rt_prop;
	p->lossy = record->ended;
	if (set->params.scheme == HS_HEADSTART)
		p->doubt = doubt_in_records(&f->peer);
	/* Its age, by CLOCK_BOOTTIME, which includes suspend; it may be older than the machine runs. */
	p->now = (__s64)(now - record->saved_at) > 0 ? now - record->saved_at : 0;
	p->saved_at = 0;
	p->window = record->window;
	p->ssthresh = record->ssthresh;
}

INLINE __u32 draw(const struct hs_settings *set, int is_eligible)
{
	if (set->stopped)
		return HS_STOPPED;
	if (!is_eligible)
		return HS_INELIGIBLE;
	return bpf_get_prandom_u32() % 10000 < set->hundredths ? HS_TREATMENT : HS_CONTROL;
}

/* Least window: the kernel's initial one; CROWDED_WINDOW in a crowd on a known path. */
INLINE __u64 least_window(const struct hs_start *s, const struct hs_params *params, __u32 share)
{
	return s->mss * hs_min(hs_max(params->initial_window, 1), share > 1 && s->btl_bw ? CROWDED_WINDOW : INITIAL_WINDOW);
}

/* Plans the scheme's flight from a share of record and hint. */
CALL void plan(struct flow *f, const struct hs_settings *set, struct hs_prior *p)
{
	__u32 share = set->shares ? f->live + 1 : 1;
	struct hs_start *s = &f->start;
	__u64 least;

	if (set->params.scheme == HS_HEADSTART) {
		share = 1;
		reserve_credit(f, set, p);
	}
	p->btl_bw /= share;
	p->hint /= share;
	p->window /= share;
	s->next = hs_establish(s, &set->params, p);
	if (set->params.scheme == HS_HEADSTART) {
		reserve_flight(f);
		return;
	}
	s->share = share;
	if (share > 1 && s->btl_bw && s->window < s->mss * INITIAL_WINDOW) {
		/*
		 * Less than an initial window is left: the connections before it have reserved the path. It
		 * starts as CUBIC does, but from fewer segments, since the kernel does not pace the first ten.
		 * With ten, or with their share, thirty connections at once lost half of the segments.
		 */
		f->refusal = HS_IN_USE;
		f->source = HS_FROM_NOTHING;
		s->window = s->burst = s->flight = s->mss * CROWDED_WINDOW;
		s->pace = 0;
		s->next = HS_GROW;
		return;
	}
	least = least_window(s, &set->params, share);
	s->window = hs_max(hs_min(s->window, set->max_window), least);
	if (share > 1 && set->params.scheme == HS_JUMP_START) {
		s->window = hs_max(s->window / share, least);
		s->pace /= share;
	}
	s->flight = hs_min(s->flight, s->window);
}

CALL void begin_flight(struct flow *f, struct tcp_sock *tp, const struct hs_settings *set, __u64 now)
{
	const struct hs_params *params = &set->params;
	struct hs_prior p = {
		.now = now,
		.handshake_rtt = f->handshake_rtt,
		.flow_size = HS_NONE,
		.receive_window = tp->snd_wnd,
		.mss = tp->mss_cache,
	};
	int is_eligible = 1, is_again = f->is_decided, as_kernel;
	struct hs_start *s = &f->start;

	release_flight(f);
	f->live = busy_at(&f->peer);
	if (f->is_busy && f->live)
		f->live--;
	if (is_again && tp->srtt_us)
		p.handshake_rtt = (__u64)(tp->srtt_us >> 3) * 1000;
	admit(f, set, &p);
	if (f->hint) {
		f->granted = limit_hint(&f->peer, hs_min(hs_min(f->hint, set->hint_rate), set->max_rate));
		p.hint = f->granted;
	}
	f->source = HS_FROM_NOTHING;
	switch (params->scheme) {
	case HS_JUMP_START:
		f->source = HS_FROM_FLOW_SIZE;
		is_eligible = p.handshake_rtt > 0;
		break;
	case HS_BLITZSTART:
		f->source = HS_FROM_HINT;
		is_eligible = p.hint > 0 && p.handshake_rtt > 0;
		break;
	case HS_SLOW_START:
		break;
	case HS_HEADSTART:
		f->source = p.btl_bw ? HS_FROM_HISTORY : HS_FROM_NOTHING;
		is_eligible = p.handshake_rtt > 0;
		break;
	default:
		f->source = HS_FROM_HISTORY;
		is_eligible = p.btl_bw > 0;
		break;
	}
	if (!is_again || f->arm == HS_INELIGIBLE)
		f->arm = draw(set, is_eligible);
	else if (set->stopped)
		f->arm = HS_STOPPED;
	if (f->arm == HS_INELIGIBLE && params->scheme != HS_BLITZSTART)
		p.btl_bw = p.hint = 0;
	f->is_decided = 1;
	f->is_first_round = 1;
	f->flight_sent = 0;
	f->is_training = 1;
	f->train_acks = 0;
	f->began = now;
	f->hook_at = now;
	f->una = tp->snd_una;
	f->flight_delivered = f->delivered = tp->delivered;
	f->flight_lost = f->lost_seen = tp->lost;
	f->flight_rtx = tp->total_retrans;
	f->through_seen = 0;
	f->is_guarding = 0;
	/* Data sent before so much was queued is of the flight, too. */
	f->bytes_sent = tp->bytes_sent - (tp->snd_nxt - tp->snd_una);
	if (!is_again) {
		f->phases = 0;
		f->answer_at = now;
		f->answer_from = f->answer_una = tp->snd_una;
		f->limit_at = set->traces ? now : 0;
		f->written = tp->write_seq;
	}
	f->flights++;
	if (f->arm == HS_CONTROL || f->arm == HS_STOPPED || (is_again && f->arm == HS_INELIGIBLE)) {
		f->source = HS_FROM_NOTHING;
		/* A train of another control than CUBIC measures its pace. */
		if (!begins_with(own_control(f, set), NATIVE, sizeof(NATIVE)))
			f->is_training = 0;
		return;
	}
	if (f->arm == HS_INELIGIBLE)
		f->source = HS_FROM_NOTHING;
	/* Without a record these schemes are slow start: usual where few clients return. */
	as_kernel = params->scheme != HS_SLOW_START && params->initial_window == INITIAL_WINDOW;
	s->next = HS_GROW;
	s->window = s->mss * INITIAL_WINDOW;
	if (!as_kernel || f->arm != HS_INELIGIBLE || params->scheme < HS_S_CUBIC || params->scheme > HS_WISE_START)
		plan(f, set, &p);
	if (as_kernel && s->next == HS_GROW && s->window == s->mss * INITIAL_WINDOW) {
		/* The same start as the kernel's: left to it. */
		note_phase(f, now);
		return;
	}
	f->restarts += is_again;
	f->planned = s->flight;
	f->planned_burst = s->burst;
	f->planned_pace = s->pace;
	f->is_live = s->next == HS_STAY;
	f->is_guarding = s->next == HS_STAY && f->arm == HS_TREATMENT;
	f->keeps_pace = params->scheme == HS_BLITZSTART && s->phase == HS_PACED;
	apply(f, tp, now);
}

/* More connections than when the flight was planned: a smaller share for its unsent part. */
INLINE void share_again(struct flow *f, struct tcp_sock *tp, const struct hs_settings *set)
{
	__u32 count = busy_at(&f->peer);
	struct hs_start *s = &f->start;
	__u64 least = least_window(s, &set->params, count);

	/* Headstart's is reserved: a later one takes less. */
	if (!set->shares || !f->is_first_round || count <= s->share || !s->pace || s->scheme == HS_HEADSTART)
		return;
	s->window = hs_max(s->window * s->share / count, least);
	s->pace = hs_max(s->pace * s->share / count, 1);
	s->btl_bw = s->btl_bw * s->share / count;
	s->share = count;
	tp->snd_cwnd = hs_min(packets(f, s->window), tp->snd_cwnd_clamp);
	tp->snd_ssthresh = tp->snd_cwnd;
}

/* Reports sent bytes to the scheme: groups of about a millisecond, by the time before each. */
INLINE void flush_sent(struct flow *f, struct tcp_sock *tp, const struct hs_settings *set)
{
	struct hs_sent sent = {
		.now = f->hook_at,
		.bytes = tp->bytes_sent - f->bytes_sent,
		.in_flight = tp->snd_nxt - f->una,
	};

	if (!sent.bytes)
		return;
	f->bytes_sent = tp->bytes_sent;
	if (f->is_live)
		hs_on_sent(&f->start, &set->params, &sent);
}

/* The first window is less than the kernel's own, so that even a short answer needs it set. */
INLINE int starts_small(const struct hs_settings *set)
{
	return set && set->params.scheme == HS_SLOW_START && set->params.initial_window < INITIAL_WINDOW;
}

CALL struct flow *begin_flow(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!f)
		return 0;
	key_of(&f->peer, &sk->__sk_common);
	f->handshake_rtt = (__u64)(tp->srtt_us >> 3) * 1000;
	f->delivered = tp->delivered;
	f->start.mss = tp->mss_cache;
	f->is_known = 1;
	return f;
}

/* Segments are about to leave. */
SEC("struct_ops")
__u32 BPF_PROG(hs_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct hs_settings *set;
	struct flow *f;
	__u64 now;

	/* No decision if everything fits any connection's window: most answers, and others' ends. */
	if (is_short(tp) && (tp->data_segs_out || !starts_small(the_settings()))) {
		set = the_settings();
		f = set && set->traces ? flow_of(sk) : 0;
		if (is_charged(f))
			charge(f, tp, bpf_ktime_get_ns(), 0);
		return 2;
	}
	f = flow_of(sk);
	if (!f || !f->is_known)
		f = begin_flow(sk);
	if (!f)
		return 2;
	if (!f->is_live && f->is_busy) {
		if (is_charged(f))
			charge(f, tp, bpf_ktime_get_ns(), 0);
		return 2;
	}
	set = the_settings();
	if (!set)
		return 2;
	now = bpf_ktime_get_ns();
	if (!f->is_busy) {
		note_pause(f, tp, now, 1);
		begin_busy(f);
		if (!f->is_decided || (f->is_idle_restart && set->restarts_after_idle)) {
			f->is_idle_restart = 0;
			begin_flight(f, tp, set, now);
			hand_back(f, sk, set);
		}
	}
	if (is_charged(f))
		charge(f, tp, now, 0);
	if (!f->is_live)
		return 2;
	flush_sent(f, tp, set);
	share_again(f, tp, set);
	f->hook_at = now;
	if (!f->start.pace)
		return 2;
	set_pace(tp, f->start.pace);
	return 1;
}

/* ---- Acknowledgements ---- */

/* Equation (1) of WiseStart over acks of packets that left as one train. */
INLINE void train(struct flow *f, const struct tcp_sock *tp, const struct hs_settings *set, __u32 acked, __u64 now)
{
	f->train_acks++;
	if (f->train_acks == 1) {
		f->train_at = now;
		f->train_acked = 0;
		return;
	}
	/* Segments that left after the first ack were clocked by it and measure nothing. */
	if ((__s32)(tp->snd_una - f->flight_end) > 0) {
		f->is_training = 0;
		return;
	}
	f->train_acked += (__u64)acked * tp->mss_cache;
	if (f->train_acked >= (__u64)tp->mss_cache * 5 && now > f->train_at) {
		__u64 rate = hs_rate(f->train_acked, now - f->train_at);

		/* Ten packets are a short train: later acks of the flight lengthen it during the start. */
		f->train_rate = rate;
		f->is_fresh = 1;
		if (f->train_acks >= set->params.gamma * 2 || f->train_acked >= (__u64)tp->mss_cache * 16)
			f->is_training = 0;
	}
}

INLINE void fill_ack(struct hs_ack *a, struct flow *f, const struct tcp_sock *tp, __u32 acked, __s32 rtt_us, __u64 now)
{
	__u64 mss = f->start.mss;
	__u32 rtx = tp->total_retrans - f->flight_rtx, through = tp->delivered - f->flight_delivered;

	rtx = rtx > tp->retrans_out ? rtx - tp->retrans_out : 0;
	through = through > rtx ? through - rtx : 0;
	a->now = now;
	a->rtt_sample = rtt_us > 0 ? (__u64)rtt_us * 1000 : HS_NONE;
	a->newest_sent_at = rtt_us > 0 ? hs_less(now, a->rtt_sample) : f->start.first_sent_at;
	a->newly_acked = acked * mss;
	a->first_flight_acked = through > f->through_seen ? (through - f->through_seen) * mss : 0;
	a->min_rtt = (__u64)tp->rtt_min.s[0].v * 1000;
	a->smoothed = (__u64)(tp->srtt_us >> 3) * 1000;
	a->in_flight = in_flight(tp) * mss;
	a->delivered = (tp->delivered - f->flight_delivered) * mss;
	a->is_window_limited = BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
	a->in_recovery = f->ca_state >= CA_RECOVERY;
	f->through_seen = hs_max(through, f->through_seen);
}

CALL void on_ack(struct flow *f, struct tcp_sock *tp, __u32 acked, __s32 rtt_us)
{
	struct hs_settings *set = the_settings();
	struct hs_ack a = {};
	__u64 now = tp->tcp_clock_cache;

	if (!set)
		return;
	if (f->is_first_round) {
		f->is_first_round = 0;
		f->flight_end = tp->snd_nxt;
		f->flight_sent = tp->snd_nxt - f->una;
		f->first_flights += f->flight_sent;
		/* A flight that any connection may send is repaired as any connection's. */
		if (f->flight_sent <= INITIAL_WINDOW * tp->mss_cache)
			f->is_guarding = 0;
		if (f->flights == 1)
			f->first_round = f->flight_sent;
	}
	if (f->is_training)
		train(f, tp, set, acked, now);
	if (f->is_live) {
		flush_sent(f, tp, set);
		f->una = tp->snd_una;
		fill_ack(&a, f, tp, acked, rtt_us, now);
		hs_on_ack(&f->start, &set->params, &a);
		apply(f, tp, now);
	}
	if ((__s32)(tp->snd_una - f->flight_end) >= 0)
		end_guard(f, tp);
}

/* An ack up to `una`: the first answer lasts up to it. `acked` packets are no longer in flight. */
CALL void time_answer(struct flow *f, const struct tcp_sock *tp, __u64 now, __u32 una, __u32 acked)
{
	/* Of a few segments, whose departure was not looked at, this is the first ack. */
	note_pause(f, tp, now, 2);
	f->is_drained = una == tp->snd_nxt && tp->write_seq == tp->snd_nxt;
	if (is_charged(f))
		charge(f, tp, now, acked);
	/* A FIN alone is one byte, and no part of the answer. */
	if (f->answer_at && !f->is_answered && una - f->answer_una > 1) {
		f->answer_end = now;
		f->answer_una = una;
		if (f->limit_at)
			__builtin_memcpy(f->answer_limited, f->limited, sizeof(f->limited));
	}
}

/*
 * A segment is about to be processed. While somebody reads the lines, this times the answers of
 * connections that have their own control back: no callback of ours sees their acks.
 */
SEC("tp_btf/tcp_probe")
int BPF_PROG(hs_measure, struct sock *sk, struct sk_buff *skb)
{
	struct tcp_skb_cb *control = (struct tcp_skb_cb *)skb->cb;
	struct hs_settings *set = the_settings();
	struct tcp_sock *tp;
	struct flow *f;
	__u32 una;

	if (!set || !set->traces)
		return 0;
	f = flow_of(sk);
	if (!f || !f->is_handed_back)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	una = BPF_CORE_READ(control, ack_seq);
	if (tp && (__s32)(una - tp->snd_una) > 0 && (__s32)(tp->snd_nxt - una) >= 0)
		time_answer(f, tp, bpf_ktime_get_ns(), una, 0);
	return 0;
}

SEC("struct_ops")
void BPF_PROG(hs_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f;
	__u32 acked;

	cubictcp_acked(sk, sample);
	f = flow_of(sk);
	if (!f || !f->is_known) {
		if (!tp->packets_out && tp->data_segs_out > INITIAL_WINDOW)
			SWITCH(f, sk, LIGHT);
		return;
	}
	time_answer(f, tp, tp->tcp_clock_cache, tp->snd_una, sample->pkts_acked);
	/* The repair is governed after the kernel has counted this ack's losses: hs_cong_control. */
	if (f->start.phase == HS_RECOVERY && f->is_live)
		goto idle;
	acked = tp->delivered - f->delivered;
	f->delivered = tp->delivered;
	if (acked && (f->is_live || f->is_training || f->is_guarding))
		on_ack(f, tp, acked, sample->rtt_us);
idle:
	if (tp->packets_out) {
		if (f->is_decided)
			hand_back(f, sk, the_settings());
		return;
	}
	if (f->is_live && f->start.scheme == HS_HEADSTART && f->start.phase != HS_RECOVERY &&
	    tp->write_seq == tp->snd_nxt) {
		hs_on_drained(&f->start);
		apply(f, tp, tp->tcp_clock_cache);
	}
	f->short_answers = f->is_busy || !f->is_drained ? 0 : f->short_answers + 1;
	end_busy(f);
	if (f->is_fresh)
		save_record(f, tp);
	if (f->is_decided)
		hand_back(f, sk, the_settings());
	if (f->short_answers >= SHORT_ANSWERS && !f->is_live && !f->is_training && !f->is_guarding) {
		f->short_answers = 0;
		SWITCH(f, sk, LIGHT);
	}
}

SEC("struct_ops")
void BPF_PROG(hs_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct flow *f = flow_of(sk);

	if (f && f->is_live)
		return;
	cubictcp_cong_avoid(sk, ack, acked);
}

/* Only in headstart_lt, after a start. */
SEC("struct_ops")
void BPF_PROG(hs_light_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	struct flow *f;

	if (is_short((struct tcp_sock *)sk)) {
		cubictcp_cong_avoid(sk, ack, acked);
		return;
	}
	f = flow_of(sk);
	SWITCH(f, sk, MAIN);
}

SEC("struct_ops")
void BPF_PROG(hs_light_cwnd_event, struct sock *sk, int event)
{
	struct flow *f;

	cubictcp_cwnd_event(sk, event);
	if (event != CA_EVENT_CWND_RESTART)
		return;
	f = flow_of(sk);
	if (f)
		f->is_idle_restart = 1;
	SWITCH(f, sk, MAIN);
}

/* Headstart's price: bytes of the first flight lost since it was told, at most all of it. */
INLINE __u64 newly_lost(struct flow *f, const struct tcp_sock *tp)
{
	__u64 lost = (__u64)(tp->lost - f->lost_seen) * f->start.mss;

	f->lost_seen = tp->lost;
	return hs_min(lost, hs_less(f->start.flight, f->start.lost));
}

/* Only in headstart_fr: the kernel has counted this ack, and the repair's window is due. */
SEC("struct_ops")
void BPF_PROG(hs_cong_control, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct hs_settings *set = the_settings();
	struct flow *f = flow_of(sk);
	struct hs_ack a = {};
	__u64 now = tp->tcp_clock_cache;
	__u32 acked;

	if (!f || !set)
		return;
	acked = tp->delivered - f->delivered;
	f->delivered = tp->delivered;
	if (f->is_live) {
		f->start.lost += newly_lost(f, tp);
		fill_ack(&a, f, tp, acked, 0, now);
		hs_on_ack(&f->start, &set->params, &a);
		if (f->start.next == HS_STAY)
			f->start.pace = f->train_rate;
		apply(f, tp, now);
		if (f->is_live && tp->snd_cwnd <= in_flight(tp))
			tp->snd_cwnd = in_flight(tp) + 1;
	}
	if (!f->is_live) {
		end_guard(f, tp);
		SWITCH(f, sk, MAIN);
		hand_back(f, sk, set);
	}
}

/* ---- Congestion ---- */

SEC("struct_ops")
__u32 BPF_PROG(hs_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);

	/* A first flight's size does not measure the path; its delivered part does. */
	if (f && f->is_guarding && tp->lost_out) {
		__u32 through = tp->delivered - f->flight_delivered;

		return hs_max(through * 7 / 10, 2);
	}
	return cubictcp_recalc_ssthresh(sk);
}

CALL void on_congestion(struct flow *f, struct tcp_sock *tp, __u8 state)
{
	__u64 now = tp->tcp_clock_cache, mss = hs_max(f->start.mss, 1);
	struct hs_congestion c = {
		.lost = (__u64)(tp->lost - f->flight_lost) * mss,
		.first_flight_lost = (__u64)(tp->lost - f->flight_lost) * mss,
		.in_flight = in_flight(tp) * mss,
		.delivered = (__u64)(tp->delivered - f->flight_delivered) * mss,
		.is_mark = state == CA_CWR,
		.is_timeout = state == CA_LOSS,
	};

	if (f->start.scheme == HS_HEADSTART) {
		c.first_flight_lost = newly_lost(f, tp);
		/* The kernel may mark the segments only after it has said so. */
		if (state == CA_RECOVERY && !f->start.settled)
			c.first_flight_lost = hs_max(c.first_flight_lost, mss);
	}

	f->marks += state == CA_CWR;
	f->timeouts += state == CA_LOSS;
	f->is_training = 0;
	if (state == CA_LOSS)
		hs_on_timeout(&f->start, &c);
	else
		hs_on_congestion(&f->start, &c);
	note_phase(f, now);
	if (state == CA_RECOVERY && f->is_guarding && f->start.phase != HS_RETREAT) {
		hs_recover(&f->start, c.in_flight);
		f->start.next = HS_STAY;
		f->recoveries++;
	}
}

SEC("struct_ops")
void BPF_PROG(hs_set_state, struct sock *sk, __u8 state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct flow *f = flow_of(sk);

	cubictcp_state(sk, state);
	if (!f)
		return;
	/* The wait that a timer ended was for a loss to be found. */
	if (state == CA_LOSS)
		f->ca_state = state;
	if (is_charged(f))
		charge(f, tp, tp->tcp_clock_cache, 0);
	f->ca_state = state;
	/* The peer may be gone: a connection that only retransmits takes no share. New data does again. */
	if (state == CA_LOSS)
		end_busy(f);
	if (state < CA_CWR)
		return;
	if (!f->is_live && !f->is_guarding) {
		/* Congestion of answers that fit a first window: its own control answers it. */
		f->is_training = 0;
		hand_back(f, sk, the_settings());
		return;
	}
	if (f->start.phase == HS_RECOVERY && f->is_live && state != CA_LOSS)
		return;
	on_congestion(f, tp, state);
	if (state == CA_RECOVERY && f->start.next == HS_STAY) {
		f->is_live = 1;
		SWITCH(f, sk, REPAIR);
		f->ca_state = state;
		return;
	}
	finish(f, tp);
	end_guard(f, tp);
	if (state == CA_LOSS && f->recoveries) {
		SWITCH(f, sk, MAIN);
	}
	hand_back(f, sk, the_settings());
}

SEC("struct_ops")
void BPF_PROG(hs_cwnd_event, struct sock *sk, int event)
{
	struct flow *f;

	cubictcp_cwnd_event(sk, event);
	if (event == CA_EVENT_CWND_RESTART) {
		f = flow_of(sk);
		if (f)
			f->is_idle_restart = 1;
	}
}

SEC("struct_ops")
__u32 BPF_PROG(hs_undo_cwnd, struct sock *sk)
{
	return tcp_reno_undo_cwnd(sk);
}

/* ---- Begin and end of a connection ---- */

SEC("struct_ops")
void BPF_PROG(hs_init, struct sock *sk)
{
	struct hs_settings *set = the_settings();
	struct hs_key peer;

	/* The namespace's default has no program that sees the SYN. */
	if (set && set->is_exchanged && set->is_default && !flow_of(sk)) {
		key_of(&peer, &sk->__sk_common);
		report_peer(&peer, HS_PEER_CONNECTS);
	}
	cubictcp_init(sk);
}

/*
 * The send buffer as a multiple of the kernel's window, when a connection begins and when it grows.
 * The window is still the kernel's then; a larger flight needs the room before it is planned.
 */
SEC("struct_ops")
__u32 BPF_PROG(hs_sndbuf_expand, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct hs_settings *set = the_settings();
	struct hs_record *record;
	struct flow *f = flow_of(sk);
	struct hs_key peer = {};
	__u64 window = 0;

	if (!set || set->stopped || !set->hundredths || (f && f->is_decided))
		return 2;
	switch (set->params.scheme) {
	case HS_JUMP_START:
		window = hs_min(set->params.cap, tp->snd_wnd);
		break;
	case HS_SLOW_START:
		window = (__u64)set->params.initial_window * tp->mss_cache;
		break;
	case HS_HEADSTART:
		key_of(&peer, &sk->__sk_common);
		record = bpf_map_lookup_elem(&history, &peer);
		window = hs_max(hs_segments(tp->mss_cache, set->params.initial_window),
				record ? record->credit : first_contact_credit(&peer));
		break;
	default:
		key_of(&peer, &sk->__sk_common);
		record = bpf_map_lookup_elem(&history, &peer);
		if (record)
			window = hs_max(hs_moved(record->btl_bw, record->rt_prop), record->window);
		if (f && f->hint)
			window = hs_max(window, hs_moved(hs_min(f->hint, set->hint_rate),
							 (__u64)(tp->srtt_us >> 3) * 1000));
		break;
	}
	window = hs_min(window, set->max_window) / hs_max(tp->mss_cache, 1);
	return 2 * hs_clamp(window / hs_max(tp->snd_cwnd, INITIAL_WINDOW) + 1, 1, 4096);
}

/* r(B) of the QUIC server's why records: rounds of slow start from ten packets for B. */
INLINE __s64 slow_start_rounds(__u64 bytes, __u64 mss)
{
	__u64 count = (bytes + mss - 1) / mss, sent = 0, window = 10;
	__s64 rounds = 0;
	int i;

	for (i = 0; i < 24 && sent < count; i++) {
		sent += window;
		window *= 2;
		rounds++;
	}
	return rounds;
}

/* A connection that never had more than a first window to send. */
CALL void account_short(const struct sock *sk)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;
	struct hs_counters *c = the_counters();

	/* Otherwise it goes on with another control. */
	if (!c || sk->__sk_common.skc_state != CLOSED)
		return;
	c->arms[HS_UNDECIDED].connections++;
	c->arms[HS_UNDECIDED].sources[HS_FROM_NOTHING]++;
	c->arms[HS_UNDECIDED].sent += tp->bytes_sent;
	c->arms[HS_UNDECIDED].lost += (__u64)tp->lost * tp->mss_cache;
	c->arms[HS_UNDECIDED].retransmitted += tp->bytes_retrans;
}

CALL void account(struct flow *f, struct tcp_sock *tp, __s64 saved)
{
	struct hs_counters *c = the_counters();
	struct hs_arm_counters *arm;
	__u32 at = f->arm;

	if (!c || at >= HS_ARMS)
		return;
	arm = &c->arms[at];
	arm->connections++;
	if (f->source < HS_SOURCES)
		arm->sources[f->source]++;
	arm->rounds_saved += saved;
	arm->sent += tp->bytes_sent;
	arm->lost += (__u64)tp->lost * tp->mss_cache;
	arm->first_flight += f->first_flights;
	arm->first_flight_lost += f->first_flight_lost;
	arm->retransmitted += tp->bytes_retrans;
	arm->marks += f->marks;
	arm->timeouts += f->timeouts;
	arm->saved += f->record_outcome == HS_SAVED;
	arm->dropped += f->record_outcome == HS_DROPPED;
	arm->restarts += f->restarts;
	c->recoveries += f->recoveries;
	if (f->refusal && f->refusal < 8)
		c->refusals[f->refusal]++;
	if (f->hint) {
		c->hints[0]++;
		c->hints[1] += f->granted < f->hint;
	}
}

CALL void report(struct flow *f, struct tcp_sock *tp, __s64 saved, const struct hs_settings *set)
{
	struct hs_report *r = bpf_ringbuf_reserve(&reports, sizeof(*r), 0);
	int i;

	if (!r)
		return;
	r->peer = f->peer;
	r->handshake_rtt = f->handshake_rtt;
	r->record_rate = f->record_rate;
	r->record_rtt = f->record_rtt;
	r->hint = f->hint;
	r->granted = f->granted;
	r->burst = f->planned_burst;
	r->first_flight = f->planned;
	r->pace = f->planned_pace;
	r->first_round = f->first_round;
	r->sent = tp->bytes_sent;
	r->lost = (__u64)tp->lost * tp->mss_cache;
	r->first_flight_lost = f->first_flight_lost;
	r->min_rtt = (__u64)tp->rtt_min.s[0].v * 1000;
	r->rate = f->train_rate;
	r->mss = f->start.mss;
	r->lasted = f->answer_at ? hs_less(bpf_ktime_get_ns(), f->answer_at) : 0;
	r->answer = f->answer_end ? hs_less(f->answer_end, f->answer_at) : 0;
	r->answer_bytes = f->answer_una - f->answer_from;
	r->rounds_saved = saved;
	r->record_live = f->live;
	__builtin_memcpy(r->control, own_control(f, set), sizeof(r->control));
	r->scheme = set->params.scheme;
	r->arm = f->arm;
	r->source = f->source;
	r->refusal = f->refusal;
	r->flights = f->flights;
	r->record_outcome = f->record_outcome ? f->record_outcome : HS_LEFT_NOTHING;
	r->phases = f->phases;
	for (i = 0; i < HS_REPORTED_PHASES; i++) {
		r->phase[i] = f->phase[i];
		r->phase_at[i] = f->phase_at[i];
	}
	__builtin_memcpy(r->limited, f->answer_limited, sizeof(r->limited));
	bpf_ringbuf_submit(r, 0);
}

/* The connection ends: its record, its counters and its line. */
CALL void settle(struct flow *f, struct tcp_sock *tp, const struct hs_settings *set)
{
	__s64 saved = 0;

	end_busy(f);
	end_guard(f, tp);
	if (f->start.scheme == HS_HEADSTART)
		hs_on_end(&f->start);
	release_flight(f);
	if (f->is_fresh)
		save_record(f, tp);
	if (f->start.discards && f->record_outcome != HS_SAVED) {
		bpf_map_delete_elem(&history, &f->peer);
		report_peer(&f->peer, HS_PEER_DROPPED);
		f->record_outcome = HS_DROPPED;
	}
	if (f->first_round && f->start.mss) {
		saved = slow_start_rounds(hs_less(f->first_round, f->first_flight_lost), f->start.mss) - 1 -
			(f->first_flight_lost > 0);
	}
	account(f, tp, saved);
	if (set->traces)
		report(f, tp, saved, set);
}

SEC("struct_ops")
void BPF_PROG(hs_release, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct hs_settings *set = the_settings();
	struct flow *f = flow_of(sk);

	if (!set || (f && f->is_switching))
		return;
	if (f && f->is_known)
		settle(f, tp, set);
	else
		account_short(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headstart = {
	.init = (void *)hs_init,
	.release = (void *)hs_release,
	.ssthresh = (void *)hs_ssthresh,
	.cong_avoid = (void *)hs_cong_avoid,
	.set_state = (void *)hs_set_state,
	.cwnd_event = (void *)hs_cwnd_event,
	.pkts_acked = (void *)hs_pkts_acked,
	.min_tso_segs = (void *)hs_min_tso_segs,
	.undo_cwnd = (void *)hs_undo_cwnd,
	.sndbuf_expand = (void *)hs_sndbuf_expand,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = MAIN,
};

SEC(".struct_ops.link")
struct tcp_congestion_ops headstart_lt = {
	.init = (void *)hs_init,
	.release = (void *)hs_release,
	.ssthresh = (void *)hs_ssthresh,
	.cong_avoid = (void *)hs_light_cong_avoid,
	.set_state = (void *)hs_set_state,
	.cwnd_event = (void *)hs_light_cwnd_event,
	.undo_cwnd = (void *)hs_undo_cwnd,
	.name = LIGHT,
};

SEC(".struct_ops.link")
struct tcp_congestion_ops headstart_fr = {
	.init = (void *)hs_init,
	.release = (void *)hs_release,
	.ssthresh = (void *)hs_ssthresh,
	.cong_control = (void *)hs_cong_control,
	.set_state = (void *)hs_set_state,
	.cwnd_event = (void *)hs_cwnd_event,
	.pkts_acked = (void *)hs_pkts_acked,
	.min_tso_segs = (void *)hs_min_tso_segs,
	.undo_cwnd = (void *)hs_undo_cwnd,
	.name = REPAIR,
};

/* ---- Selection ---- */

#define BYTES_PER_KBIT 125

/* The rate that an option of so many bytes hints, in bytes per second; 0 if malformed. */
INLINE __u64 hint_rate(const struct hint_option *option, int found)
{
	const __u8 *k = option->kbit;
	__u64 kbit = (__u64)k[0] << 24 | k[1] << 16 | k[2] << 8 | k[3];

	if (found != HINT_LENGTH || option->version != HINT_VERSION || option->access >= HINT_ACCESS_KINDS ||
	    kbit > HINT_MAX_KBIT)
		return 0;
	return kbit * BYTES_PER_KBIT;
}

/* headstart, headstart_fr and headstart_lt */
INLINE int is_ours(const char *name) { return begins_with(name, MAIN, sizeof(MAIN) - 1); }

/* The control of sockets that chose none: it is given back without state for each of them. */
INLINE int is_default_control(const struct hs_settings *set, const char *name)
{
	return begins_with(name, set->native, sizeof(set->native));
}

/* The rate that the handshake's last segment hints, in bytes per second; 0 for none. */
INLINE __u64 read_hint(struct bpf_sock_ops *ops)
{
	struct hint_option option = { .kind = HINT_KIND, .length = 4, .experiment = bpf_htons(HINT_EXPERIMENT) };
	struct hs_counters *c;
	__u64 rate;
	int found = bpf_load_hdr_opt(ops, &option, HINT_LENGTH, 0);

	if (found == -2 /* ENOENT: the common case */)
		return 0;
	rate = hint_rate(&option, found);
	if (!rate) {
		c = the_counters();
		if (c)
			c->hints[2]++;
	}
	return rate;
}

/* A SYN came, or is about to leave. There may be no full socket yet. */
INLINE void report_syn(struct bpf_sock_ops *ops)
{
	struct hs_key peer;

	if (ops->family == AF_INET6)
		set_key6(&peer, ops->remote_ip6[0], ops->remote_ip6[1], ops->remote_ip6[2], ops->remote_ip6[3]);
	else
		set_key4(&peer, ops->remote_ip4);
	report_peer(&peer, HS_PEER_CONNECTS);
}

/*
 * A connection that has its own control back changes its state. In FIN-WAIT-2 all is acknowledged;
 * the acks after a server's own FIN are no tcp_probe's.
 */
CALL void follow(struct bpf_sock *sk, const struct hs_settings *set, __u32 state)
{
	struct flow *f = bpf_sk_storage_get(&flows, sk, 0, 0);
	struct tcp_sock *tp;

	if (!f || !f->is_handed_back || !f->is_known)
		return;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return;
	if (state == FIN_WAIT_2 && set->traces)
		time_answer(f, tp, bpf_ktime_get_ns(), tp->snd_una, 0);
	if (state == CLOSED)
		settle(f, tp, set);
}

SEC("sockops")
int hs_select(struct bpf_sock_ops *ops)
{
	struct hs_settings *set;
	struct hs_counters *c;
	struct bpf_sock *sk = ops->sk;
	struct tcp_sock *tp;
	struct flow *f;
	char original[16] = {};
	int is_inherited, is_own, is_followed;
	__u64 hint = 0;

	if (ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB && ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ops->op != BPF_SOCK_OPS_TCP_LISTEN_CB && ops->op != BPF_SOCK_OPS_TIMEOUT_INIT &&
	    ops->op != BPF_SOCK_OPS_STATE_CB)
		return 1;
	set = the_settings();
	if (ops->op == BPF_SOCK_OPS_STATE_CB) {
		if (set && sk)
			follow(sk, set, ops->args[1]);
		return 1;
	}
	if (ops->op == BPF_SOCK_OPS_TIMEOUT_INIT) {
		if (set && set->is_exchanged && (!ops->is_fullsock || set->outgoing))
			report_syn(ops);
		return 1;
	}
	if (!set || !sk || (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && !set->outgoing))
		return 1;
	if (set->reads_hint && ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		hint = read_hint(ops);
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp)
		__builtin_memcpy(original, (const char *)tp->inet_conn.icsk_ca_ops->name, sizeof(original));
	if (ops->op == BPF_SOCK_OPS_TCP_LISTEN_CB) {
		/* Accepted sockets inherit it, which costs less than a change of each. */
		if (set->cgroup && is_default_control(set, original))
			bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, MAIN, sizeof(MAIN));
		return 1;
	}
	/* State only for a hint or another control: a connection costs less without. */
	is_inherited = is_ours(original);
	is_own = !(is_inherited || is_default_control(set, original));
	is_followed = is_own || !begins_with(set->native, NATIVE, sizeof(NATIVE));
	if (hint || is_followed) {
		f = bpf_sk_storage_get(&flows, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
		if (f) {
			f->hint = hint;
			f->is_followed = is_followed;
			if (is_own)
				__builtin_memcpy(f->original, original, sizeof(original));
		}
	}
	if (is_followed)
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	if (!is_inherited)
		bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, MAIN, sizeof(MAIN));
	c = the_counters();
	if (c)
		c->taken++;
	return 1;
}

/* ---- Detaching ---- */

SEC("iter/tcp")
int hs_migrate(struct bpf_iter__tcp *ctx)
{
	char native[16] = NATIVE, name[16] = {};
	struct sock_common *common = ctx->sk_common;
	struct hs_settings *set;
	struct tcp_sock *tp;
	struct flow *f;

	if (!common)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp)
		return 0;
	if (bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
		return 0;
	if (!is_ours(name))
		return 0;
	set = the_settings();
	if (set && set->native[0])
		__builtin_memcpy(native, set->native, sizeof(native));
	f = bpf_sk_storage_get(&flows, tp, 0, 0);
	if (f && f->original[0] && !is_ours(f->original))
		__builtin_memcpy(native, f->original, sizeof(native));
	if (f)
		f->is_live = f->is_guarding = 0;
	if (bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, native, sizeof(native))) {
		__builtin_memcpy(native, "reno", 5);
		bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, native, sizeof(native));
	}
	return 0;
}

/* ---- Attaching ---- */

/*
 * Listeners of the cgroup that were there before it was attached. Each is a line: the inode of its
 * socket and the control that it had. One that chose its control keeps it; only the sockets that it
 * accepts are changed.
 */
SEC("iter/tcp")
int hs_adopt(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct hs_settings *set = the_settings();
	struct seq_file *seq = ctx->meta->seq;
	struct socket_alloc *whole;
	struct cgroup *group;
	struct tcp_sock *tp;
	struct sock *sk;
	char name[16] = {};
	unsigned long inode;
	int i;

	if (!common || !set || !set->cgroup || common->skc_state != LISTENING)
		return 0;
	tp = bpf_skc_to_tcp_sock(common);
	if (!tp || bpf_getsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name)) || is_ours(name))
		return 0;
	sk = &tp->inet_conn.icsk_inet.sk;
	group = sk->sk_cgrp_data.cgroup;
	for (i = 0; i < MAX_CGROUP_LEVELS && group; i++) {
		if (BPF_CORE_READ(group, kn, id) == set->cgroup) {
			/* A socket and its inode are allocated together, the socket first. */
			whole = (struct socket_alloc *)BPF_CORE_READ(sk, sk_socket);
			inode = BPF_CORE_READ(whole, vfs_inode.i_ino);
			if (is_default_control(set, name))
				bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, MAIN, sizeof(MAIN));
			BPF_SEQ_PRINTF(seq, "%lu %s\n", inode, name);
			break;
		}
		/* `self` is its first field. */
		group = (struct cgroup *)BPF_CORE_READ(group, self.parent);
	}
	return 0;
}

/* ---- Vectors ---- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hs_replay);
} scratch SEC(".maps");

/* The parser of the hint alone, for malformed options. */
SEC("syscall")
int hs_replay_hint(struct hs_replay_hint_args *ctx)
{
	struct hint_option option = {};

	__builtin_memcpy(&option, ctx->option, HINT_LENGTH);
	ctx->rate = hint_rate(&option, ctx->found);
	return 0;
}

static long touch_peer(__u64 index, struct hs_peers *all)
{
	/* An odd factor permutes the numbers of a peer's address. */
	struct hs_key key = { .address = { 0, 0, bpf_htonl(0xffff), (__u32)index * 2654435769U } };
	struct hs_record record = { .btl_bw = index + 1 }, *found;

	if (all->inserts) {
		all->found += !bpf_map_update_elem(&history, &key, &record, BPF_ANY);
	} else {
		found = bpf_map_lookup_elem(&history, &key);
		all->found += found && found->btl_bw == index + 1;
	}
	return 0;
}

SEC("syscall")
int hs_replay_peers(struct hs_peers *ctx)
{
	struct hs_peers all = { .count = ctx->count, .inserts = ctx->inserts };
	__u64 began = bpf_ktime_get_ns();

	bpf_loop(all.count, touch_peer, &all, 0);
	ctx->took = bpf_ktime_get_ns() - began;
	ctx->found = all.found;
	return 0;
}

SEC("syscall")
int hs_replay(struct hs_replay *ctx)
{
	struct hs_replay *r = bpf_map_lookup_elem(&scratch, &zero);

	if (!r)
		return 1;
	__builtin_memcpy(r, ctx, sizeof(*r));
	switch (r->event) {
	case HS_EVENT_ESTABLISH:
		r->start.next = hs_establish(&r->start, &r->params, &r->prior);
		break;
	case HS_EVENT_SENT:
		hs_on_sent(&r->start, &r->params, &r->sent);
		break;
	case HS_EVENT_ACK:
		hs_on_ack(&r->start, &r->params, &r->ack);
		break;
	case HS_EVENT_CONGESTION:
		hs_on_congestion(&r->start, &r->congestion);
		break;
	case HS_EVENT_TIMEOUT:
		hs_on_timeout(&r->start, &r->congestion);
		break;
	case HS_EVENT_OUTCOME:
		hs_on_end(&r->start);
		ctx->prior.credit = hs_revised(&r->start, r->prior.credit);
		/*
		 * An IPv4 address, or the first half of an IPv6 one: a first contact of it, with the credit
		 * before and after.
		 */
		if (r->prior.hint) {
			__u32 high = r->prior.hint >> 32, low = (__u32)r->prior.hint;
			struct hs_key peer = {};

			if (high)
				set_key6(&peer, bpf_htonl(high), bpf_htonl(low), 0, 0);
			else
				set_key4(&peer, bpf_htonl(low));
			ctx->prior.doubt = doubt_in_records(&peer);
			revise_doubt(&peer, &r->start);
			ctx->prior.ssthresh = first_contact_credit(&peer);
			ctx->prior.hint = revise_first_contacts(&peer, &r->start);
		}
		ctx->prior.btl_bw = hs_recorded(&r->start, r->prior.window, r->prior.btl_bw);
		break;
	default:
		return 2;
	}
	__builtin_memcpy(&ctx->start, &r->start, sizeof(r->start));
	return 0;
}
