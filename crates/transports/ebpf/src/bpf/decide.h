/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The decisions of the start-up schemes, in integers: prior and events in, window and pace out.
 *
 * Each function is the C twin of one in crates/schemes/startup/src/scheme. None reads a clock or a
 * socket: the Rust schemes' vectors replay on the loaded object (replay() in headstart.bpf.c).
 *
 * Units: bytes, nanoseconds, bytes per second. Differences from the Rust schemes:
 *   - no rate above HS_MAX_RATE, no window above HS_MAX_WINDOW: there is no 128-bit arithmetic;
 *   - where a Rust scheme goes on in slow start, HS_GROW leaves that to the kernel's CUBIC;
 *   - `share` divides the estimates by the number of connections to the peer with data in flight.
 *     Above one WiseStart does not probe: each would find spare capacity, and all would take it.
 */
#ifndef HEADSTART_DECIDE_H
#define HEADSTART_DECIDE_H

#include "layout.h"

#define HS_SECOND 1000000000ULL

#define HS_INLINE static __always_inline
#define HS_CALL static __attribute__((noinline, unused))
/* Verified once, and not in each caller; the verifier wants each pointer to be checked. */
#ifndef HS_GLOBAL
#define HS_GLOBAL __attribute__((noinline))
#endif

HS_INLINE __u64 hs_min(__u64 a, __u64 b) { return a < b ? a : b; }
HS_INLINE __u64 hs_max(__u64 a, __u64 b) { return a > b ? a : b; }
HS_INLINE __u64 hs_less(__u64 a, __u64 b) { return a > b ? a - b : 0; }
HS_INLINE __u64 hs_clamp(__u64 x, __u64 low, __u64 high) { return hs_max(low, hs_min(x, high)); }

/* Bytes that `rate` moves in `time`, rounded down. */
HS_INLINE __u64 hs_moved(__u64 rate, __u64 time)
{
	__u64 seconds = time / HS_SECOND, rest = time - seconds * HS_SECOND;

	rate = hs_min(rate, HS_MAX_RATE);
	if (seconds > 1000000)
		return HS_MAX_WINDOW;
	return hs_min(rate * seconds + rate * rest / HS_SECOND, HS_MAX_WINDOW);
}

/* The rate that moves `bytes` in `time`, rounded down. */
HS_INLINE __u64 hs_rate(__u64 bytes, __u64 time)
{
	if (!time)
		return HS_MAX_RATE;
	return hs_min(hs_min(bytes, HS_MAX_WINDOW) * HS_SECOND / time, HS_MAX_RATE);
}

/* Time that `bytes` take at `rate`, rounded up. */
HS_INLINE __u64 hs_time(__u64 bytes, __u64 rate)
{
	__u64 product = hs_min(bytes, HS_MAX_WINDOW) * HS_SECOND, whole;

	if (!rate)
		return HS_NONE;
	whole = product / rate;
	return whole + (whole * rate < product);
}

/* Bytes of `count` segments, at most HS_MAX_WINDOW. */
HS_INLINE __u64 hs_segments(__u64 mss, __u64 count) { return hs_min(hs_min(mss, 1 << 20) * count, HS_MAX_WINDOW); }

/* history::Record::contradicted_by */
HS_INLINE __u32 hs_contradicted(__u64 rt_prop, __u64 rtt)
{
	if (rtt <= rt_prop / 2)
		return HS_RTT_TOO_SMALL;
	if (rtt > rt_prop * 10)
		return HS_RTT_TOO_LARGE;
	return HS_ACCEPTED;
}

/* ---- Est_SendRate: path/sending.rs ---- */

HS_INLINE void hs_unblock(struct hs_start *s, __u64 now)
{
	if (s->blocked_since != HS_NONE)
		s->blocked += hs_less(now, s->blocked_since);
	s->blocked_since = HS_NONE;
}

HS_INLINE int hs_is_app_limited(const struct hs_start *s, __u64 now)
{
	__u64 elapsed = s->began == HS_NONE ? 0 : hs_less(now, s->began);

	elapsed = hs_less(elapsed, s->blocked);
	return s->due < elapsed * 9 / 10;
}

/* ---- A scheme's own first recovery: first_recovery.rs ---- */

HS_INLINE __u64 hs_inherited(const struct hs_start *s)
{
	return hs_max(s->through * s->kept / 100, s->mss * 2);
}

HS_INLINE void hs_recover(struct hs_start *s, __u64 in_flight)
{
	s->phase = HS_RECOVERY;
	s->in_flight = in_flight;
	s->pace = 0;
	s->window = hs_max(hs_inherited(s), in_flight + s->mss);
}

/* ---- Headstart: scheme/headstart.rs, with the defaults of its parameters ---- */

#define HS_FLOOR 10				/* segments */
#define HS_BURST 2				/* segments */
#define HS_SEGMENT 1448				/* bytes, of a first contact's credit */
#define HS_EARNED 16				/* bytes delivered for one more of credit */
#define HS_TAKEN 4				/* of a flight that the path spread, so many bytes for one */
#define HS_PRICE 32
#define HS_SLOWER 4				/* the doubt in records: history/credit.rs */
#define HS_MILLION 1000000ULL
#define HS_CAUTION 8
#define HS_SHORT 10000000ULL			/* ns */
#define HS_NOISE 1000000ULL			/* ns */
#define HS_RISES 8
#define HS_MARK 8
#define HS_PROBE 2
#define HS_TRAIN 8				/* packets */
#define HS_HELD_BACK 100000ULL			/* ns */
#define HS_OWN_FROM 8				/* outcomes: history/credit.rs */
#define HS_LARGEST_PART 3			/* bits: an eighth of the credit of all */
#define HS_PAUSE_SAMPLES 4
#define HS_LEAST_DELAY 4000000ULL		/* ns: RFC 9406 */
#define HS_MOST_DELAY 16000000ULL		/* ns */

/* Arrival::is_spread, of a train that is long enough. */
HS_INLINE int hs_is_spread(const struct hs_start *s)
{
	return s->acked >= s->mss * HS_TRAIN && s->due > s->blocked * 118 / 100;
}

/* Revision::earned and Revision::spent. */
HS_INLINE __u64 hs_earned(const struct hs_start *s)
{
	return hs_less(s->flight, s->lost) / HS_EARNED / (hs_is_spread(s) ? HS_TAKEN : 1);
}

HS_INLINE __u64 hs_spent(const struct hs_start *s) { return s->lost / HS_EARNED * HS_PRICE; }

/* history::Revision::of: the credit after the first flight. */
HS_INLINE __u64 hs_revised(const struct hs_start *s, __u64 credit)
{
	__u64 before = credit ? credit : s->cold, spent = hs_spent(s);
	__u64 earned = hs_earned(s), most = (s->flight + s->beside) * 2;
	__u64 least = hs_segments(s->mss, HS_FLOOR), raised;

	if (spent > earned + least)
		before = hs_min(before, most);
	raised = hs_max(before, hs_min(before + earned, most));
	return hs_min(raised, hs_max(hs_less(raised, spent), least));
}

/* Revision::doubt_after: millionths. */
HS_INLINE __u64 hs_doubted(const struct hs_start *s, __u64 doubt)
{
	__u64 quarters = s->flight * HS_SLOWER;

	if (s->flight <= hs_segments(s->mss, HS_FLOOR))
		return doubt;
	doubt = hs_less(doubt, hs_min(hs_earned(s) * HS_MILLION / quarters, HS_MILLION));
	return hs_min(doubt + hs_min(hs_spent(s) * HS_MILLION / quarters, HS_MILLION), HS_MILLION);
}

HS_INLINE __u64 hs_allowed(const struct hs_start *s, const struct hs_prior *p, int known)
{
	__u64 least = known ? p->rt_prop : p->handshake_rtt, credit = p->credit ? p->credit : s->cold, room;
	__u64 queue = hs_less(hs_less(p->handshake_rtt, least), HS_NOISE);

	if (known) {
		credit = hs_min(hs_max(credit, hs_moved(p->btl_bw, p->rt_prop) * 3 / 4), HS_MAX_WINDOW);
		credit = hs_max(credit * hs_less(HS_MILLION, p->doubt) / HS_MILLION, hs_min(credit, s->cold));
	}
	room = queue ? hs_moved(hs_rate(credit, least + queue * HS_CAUTION), least) : credit;
	return hs_clamp(hs_min(room, hs_less(credit, s->beside)), hs_segments(s->mss, HS_FLOOR), HS_MAX_WINDOW);
}

HS_INLINE void hs_credited_flight(struct hs_start *s, const struct hs_params *params, const struct hs_prior *p)
{
	__u64 mss = hs_max(p->mss, 1), floor = hs_segments(mss, HS_FLOOR), least = p->handshake_rtt;
	__u64 limit, segments;
	int known = p->rt_prop > 0;

	s->kept = 50;
	s->cold = hs_segments(HS_SEGMENT, params->initial_window);
	s->beside = p->reserved;
	if (known)
		least = hs_min(least, p->rt_prop);
	limit = hs_min(least < HS_SHORT ? floor : hs_allowed(s, p, known), p->receive_window);
	segments = limit / mss;
	if (p->flow_size != HS_NONE) {
		__u64 wanted = p->flow_size / mss;

		segments = hs_min(segments, wanted + (wanted * mss < p->flow_size));
	}
	s->window = segments > HS_FLOOR ? mss * segments : floor;
	s->burst = segments > HS_FLOOR ? hs_min(s->window, mss * HS_BURST) : floor;
	s->flight = hs_min(p->flow_size, s->window);
	/* A flight shorter than the limit has at most twice its own rate, and the path's. */
	s->pace = hs_rate(hs_min(limit, s->flight * HS_PROBE), p->handshake_rtt);
	if (known)
		s->pace = hs_min(s->pace, p->btl_bw);
	s->pace = segments > HS_FLOOR ? hs_max(s->pace, hs_rate(s->window, p->handshake_rtt)) : 0;
	s->phase = s->pace ? HS_FIRST_FLIGHT : HS_GROWING;
	if (!s->pace)
		s->pause = HS_OVER;
	else if (known && p->btl_bw && s->flight >= hs_moved(p->btl_bw, p->rt_prop))
		s->pause = HS_ASSUMED;
}

/* path/train.rs, FlightTrain: `acks` is its state, 0 before it, 1 in it and 2 after it. */
HS_INLINE void hs_flight_train(struct hs_start *s, const struct hs_ack *a)
{
	int several = a->newly_acked >= s->mss * 2;

	if (s->acks > 1)
		return;
	if (!s->acks) {
		s->acks = 1;
		s->first_at = s->last_sent_at = a->now;
		s->first_sent_at = a->newest_sent_at;
		s->thinned = several;
		return;
	}
	if (a->newest_sent_at >= s->first_at) {
		s->acks = 2;
		return;
	}
	s->thinned |= several;
	if (hs_less(a->now, s->first_at) <= HS_HELD_BACK) {
		s->last_sent_at = a->now;
		s->first_sent_at = a->newest_sent_at;
		return;
	}
	s->pipe_size += a->newly_acked;
	if (several || !s->thinned) {
		s->acked += s->pipe_size;
		s->pipe_size = 0;
		s->due = hs_less(a->now, s->last_sent_at);
		s->blocked = hs_less(a->newest_sent_at, s->first_sent_at);
	}
}

/* Headstart::rate: that of the record, from the one measured and the one of the record before. */
HS_INLINE __u64 hs_recorded(const struct hs_start *s, __u64 measured, __u64 before)
{
	__u64 span = hs_max(s->due, s->blocked), rate = measured;

	if (span && s->acked >= s->mss * HS_TRAIN) {
		rate = hs_rate(s->acked, span);
		if (!s->lost && !hs_is_spread(s))
			rate = hs_min(rate * HS_PROBE, HS_MAX_RATE);
	} else if (!s->lost && before) {
		rate = before;
	}
	return s->lost ? rate : hs_max(rate, measured);
}

/* save_record(): the smallest RTT on record rises slowly. */
HS_INLINE __u64 hs_risen(__u64 before, __u64 measured)
{
	return before < measured ? before + (measured - before) / HS_RISES : measured;
}

/* ---- Establishment ---- */

/* Record::window_and_rate. Returns 0 without a usable record. */
HS_INLINE int hs_window_and_rate(const struct hs_prior *p, __u64 *window, __u64 *rate)
{
	__u64 least = (__u64)p->mss * 2;

	if (!p->btl_bw || !p->rt_prop)
		return 0;
	*rate = hs_min(p->btl_bw, HS_MAX_RATE);
	*window = hs_moved(*rate, p->rt_prop);
	if (*window < least) {
		*window = least;
		*rate = hs_max(*rate, hs_rate(least, p->handshake_rtt));
	}
	return 1;
}

/* scheme/flights.rs: as much as receive window and cap allow, over one round trip. */
HS_INLINE void hs_first_flight(struct hs_start *s, const struct hs_params *params, const struct hs_prior *p)
{
	__u64 mss = hs_max(p->mss, 1), segments, paced, limit;

	segments = hs_min(hs_min(p->receive_window, params->cap), HS_MAX_WINDOW) / mss;
	if (p->flow_size != HS_NONE) {
		__u64 wanted = p->flow_size / mss;

		segments = hs_min(segments, wanted + (wanted * mss < p->flow_size));
	}
	segments = hs_max(segments, 1);
	paced = params->burst ? hs_max(hs_less(segments, params->burst), 1) : segments;
	s->window = mss * segments;
	s->burst = mss * hs_clamp(params->burst, 1, segments);
	s->flight = hs_min(p->flow_size, s->window);
	s->pace = hs_rate(mss * paced, p->handshake_rtt);
	if (p->initial_window && s->flight <= p->initial_window) {
		limit = hs_min(hs_min(params->cap, p->receive_window), HS_MAX_WINDOW);
		s->window = hs_max(hs_min(p->initial_window, limit), s->window);
		s->burst = s->window;
		s->pace = 0;
	}
}

/*
 * The first flight. `next`, which is returned (a function of eBPF must not leave the caller its
 * stack's address), is HS_GROW where the scheme has nothing to add to slow start.
 */
HS_GLOBAL __u32 hs_establish(struct hs_start *s, const struct hs_params *params, const struct hs_prior *p)
{
	__u64 mss, initial, window = 0, rate = 0;
	int known;

	if (!s || !params || !p)
		return HS_GROW;
	mss = p->mss;
	initial = hs_segments(mss, params->initial_window);
	known = hs_window_and_rate(p, &window, &rate);

	*s = (struct hs_start){
		.window = initial,
		.burst = initial,
		.flight = initial,
		.ssthresh = HS_NONE,
		.mss = mss,
		.scheme = params->scheme,
		.share = 1,
		.kept = 70,
		.min_rtt = HS_NONE,
		.least_rtt = HS_NONE,
		.paused_at = HS_NONE,
		.began = HS_NONE,
		.blocked_since = HS_NONE,
		.first_sent_at = HS_NONE,
		.next = HS_GROW,
	};
	switch (params->scheme) {
	case HS_JUMP_START:
		hs_first_flight(s, params, p);
		s->kept = 50;
		s->phase = s->pace ? HS_JUMP : HS_GROWING;
		break;
	case HS_S_CUBIC:
	case HS_WISE_START:
		if (!known)
			return HS_GROW;
		s->window = s->flight = window;
		s->burst = mss;
		s->btl_bw = rate;
		s->rt_prop = p->rt_prop;
		s->pace = params->scheme == HS_WISE_START ? hs_min(rate * 2, 2 * HS_MAX_RATE) : rate;
		s->phase = params->scheme == HS_WISE_START ? HS_SENDING : HS_PACED;
		break;
	case HS_TCP_CACHE:
		if (!p->btl_bw)
			return HS_GROW;
		s->window = hs_clamp(p->window, initial, HS_MAX_WINDOW);
		s->burst = s->flight = s->window;
		s->ssthresh = p->ssthresh;
		s->phase = HS_CACHED;
		break;
	case HS_CAREFUL_RESUME:
		s->phase = HS_GROWING;
		s->btl_bw = hs_min(p->btl_bw, HS_MAX_RATE);
		s->rt_prop = p->rt_prop;
		if (!known) {
			s->refusal = HS_NO_RECORD;
		} else if (hs_less(p->now, p->saved_at) > params->lifetime) {
			s->refusal = HS_EXPIRED;
			s->discards = 1;
		} else if (p->live) {
			s->refusal = HS_IN_USE;
		} else {
			s->phase = HS_RECONNAISSANCE;
			s->flight = 0;	/* the initial data, counted as it leaves */
		}
		break;
	case HS_BLITZSTART:
		if (p->hint && p->handshake_rtt) {
			__u64 rtt = p->rt_prop ? hs_min(p->handshake_rtt, p->rt_prop) : p->handshake_rtt;

			s->window = hs_max(hs_moved(p->hint, rtt), mss * 2);
			s->flight = s->window;
			s->burst = hs_min(hs_segments(mss, params->burst), s->window);
			s->pace = hs_rate(s->window, p->handshake_rtt * 3 / 4);
			s->phase = HS_PACED;
		} else {
			s->burst = hs_min(mss * 10, initial);
			s->pace = hs_rate(initial, p->handshake_rtt / 2);
			s->phase = HS_SPREAD;
		}
		break;
	case HS_HEADSTART:
		hs_credited_flight(s, params, p);
		break;
	default:
		return HS_GROW;
	}
	s->next = HS_STAY;
	return HS_STAY;
}

/* ---- Sending ---- */

/* Careful Resume, Unvalidated Phase (Check flight_size). */
HS_INLINE void hs_end_unvalidated(struct hs_start *s, __u64 initial, __u64 flight_size)
{
	s->pace = 0;
	if (flight_size < initial || flight_size <= s->pipe_size) {
		s->window = hs_max(s->pipe_size, initial);
		s->phase = HS_GROWING;
	} else {
		s->window = flight_size;
		s->phase = HS_VALIDATING;
	}
}

HS_CALL void hs_on_sent(struct hs_start *s, const struct hs_params *params, const struct hs_sent *e)
{
	__u64 kappa = hs_segments(s->mss, params->kappa), initial = hs_segments(s->mss, params->initial_window);

	switch (s->phase) {
	case HS_SENDING:
	case HS_MAINTENANCE:
		hs_unblock(s, e->now);
		if (s->began == HS_NONE)
			s->began = e->now;
		if (s->pace)
			s->due += hs_time(e->bytes, s->pace);
		if (e->in_flight + s->mss > s->window)
			s->blocked_since = e->now;
		if (s->pace && e->in_flight >= hs_min(s->window, kappa))
			s->pace = hs_max(s->btl_bw / 2, 1);
		if (s->pace && e->in_flight >= hs_min(s->window, kappa * 3 / 2))
			s->pace = s->btl_bw;
		break;
	case HS_RECONNAISSANCE:
		if (!s->acked)
			s->flight += e->bytes;
		break;
	case HS_UNVALIDATED:
		if (s->first_sent_at == HS_NONE)
			s->first_sent_at = e->now;
		s->last_sent_at = e->now;
		if (hs_less(e->now, s->first_at) > s->rtt || e->in_flight + s->mss > s->window)
			hs_end_unvalidated(s, initial, e->in_flight);
		break;
	default:
		break;
	}
}

/* ---- Acknowledgements ---- */

HS_INLINE void hs_set_window(struct hs_start *s, __u64 window)
{
	s->window = hs_clamp(window, s->mss * 2, HS_MAX_WINDOW);
}

HS_INLINE void hs_drain(struct hs_start *s, const struct hs_ack *a)
{
	hs_set_window(s, hs_min(s->window, hs_max(a->in_flight, s->est_bdp)));
	if (a->in_flight <= s->est_bdp) {
		s->ssthresh = s->window;
		s->next = HS_AVOID;
	}
}

/* WiseStart, Algorithm 1, lines 23 to 31, and the Decision phase of its section 3.4. */
HS_INLINE void hs_decide(struct hs_start *s, const struct hs_params *params, const struct hs_ack *a)
{
	__u64 rtt = s->min_rtt == HS_NONE ? a->min_rtt : s->min_rtt;
	int is_filled;

	s->est_btl_bw = hs_rate(s->acked, hs_less(a->now, s->first_at));
	s->est_bdp = hs_moved(s->est_btl_bw, rtt) / hs_max(s->share, 1);
	s->est_bdp = hs_clamp(s->est_bdp, s->mss * 2, HS_MAX_WINDOW);
	if (params->adaptation && s->pace && hs_is_app_limited(s, a->now)) {
		__u64 sent = hs_rate(s->acked, hs_less(a->newest_sent_at, s->first_sent_at));

		is_filled = s->est_btl_bw < sent * 3 / 4;
	} else {
		is_filled = s->window >= s->est_bdp;
	}
	s->pace = 0;
	if (s->share > 1) {
		s->window = hs_max(s->window, s->est_bdp);
		is_filled = 1;
	}
	if (is_filled) {
		s->phase = HS_DRAIN;
		hs_drain(s, a);
	} else {
		s->next = HS_GROW;
	}
}

/* Careful Resume: the path is confirmed. */
HS_INLINE void hs_begin_unvalidated(struct hs_start *s, const struct hs_params *params, const struct hs_ack *a)
{
	__u64 jump = hs_min(hs_moved(s->btl_bw, s->rt_prop) / 2, params->cap);

	s->refusal = hs_contradicted(s->rt_prop, a->min_rtt);
	if (!s->refusal && jump <= s->window)
		s->refusal = HS_NOTHING_TO_GAIN;
	if (s->refusal) {
		s->phase = HS_GROWING;
		return;
	}
	s->window = jump;
	s->pipe_size = a->in_flight;
	s->first_sent_at = HS_NONE;
	s->last_sent_at = a->now;
	s->first_at = a->now;
	s->rtt = a->smoothed;
	s->phase = HS_UNVALIDATED;
	s->pace = hs_rate(s->window, s->rtt);
}

HS_INLINE void hs_grow(struct hs_start *s, const struct hs_ack *a)
{
	if (a->is_window_limited)
		s->window = hs_min(s->window + a->newly_acked, HS_MAX_WINDOW);
}

/* growth.rs, Pause: one round trip without growth from the fourth RTT sample of a queue. */
HS_INLINE int hs_pauses(struct hs_start *s, const struct hs_ack *a)
{
	if (s->pause == HS_OVER)
		return 0;
	if (s->pause != HS_WATCHING) {
		if (s->paused_at == HS_NONE) {
			s->paused_at = a->now;
		} else if (a->newest_sent_at >= s->paused_at) {
			s->pause = HS_OVER;
			return 0;
		}
	}
	if (a->rtt_sample != HS_NONE) {
		s->least_rtt = hs_min(s->least_rtt, a->rtt_sample);
		s->samples++;
	}
	if (s->samples == HS_PAUSE_SAMPLES) {
		__u64 threshold = hs_clamp(a->min_rtt / 8, HS_LEAST_DELAY, HS_MOST_DELAY);

		if (hs_less(s->least_rtt, a->min_rtt) >= threshold) {
			if (s->pause == HS_WATCHING)
				s->paused_at = a->now;
			s->pause = HS_PAUSED;
		} else {
			s->pause = s->pause == HS_PAUSED ? HS_OVER : HS_WATCHING;
		}
		s->least_rtt = HS_NONE;
		s->samples = 0;
	}
	return s->pause == HS_ASSUMED || s->pause == HS_PAUSED;
}

HS_CALL void hs_on_ack(struct hs_start *s, const struct hs_params *params, const struct hs_ack *a)
{
	__u64 initial = hs_segments(s->mss, params->initial_window);
	int is_valid;

	s->next = HS_STAY;
	hs_unblock(s, a->now);
	s->through += a->first_flight_acked;
	if (s->scheme == HS_HEADSTART)
		hs_flight_train(s, a);
	if (s->phase != HS_RECOVERY && s->through + s->lost >= s->flight)
		s->settled = 1;
	switch (s->phase) {
	case HS_SENDING:
		s->phase = HS_MAINTENANCE;
		s->acks = 1;
		s->first_at = a->now;
		s->first_sent_at = a->newest_sent_at;
		s->acked = 0;
		s->min_rtt = a->rtt_sample;
		if (!params->adaptation || !s->pace || !hs_is_app_limited(s, a->now)) {
			s->pace = 0;
			hs_set_window(s, a->in_flight + a->newly_acked);
		}
		break;
	case HS_MAINTENANCE:
		s->acks++;
		s->acked += a->newly_acked;
		s->min_rtt = hs_min(s->min_rtt, a->rtt_sample);
		if (s->acks >= hs_max(params->gamma, 2) && a->now > s->first_at)
			hs_decide(s, params, a);
		else if (!s->pace)
			hs_set_window(s, a->in_flight + a->newly_acked);
		break;
	case HS_DRAIN:
		hs_drain(s, a);
		break;
	case HS_PACED:
		s->pace = 0;
		s->ssthresh = s->window;
		s->next = HS_AVOID;
		break;
	case HS_SPREAD:
		s->pace = 0;
		hs_grow(s, a);
		s->next = HS_GROW;
		break;
	case HS_CACHED:
		if (a->is_window_limited && s->window < s->ssthresh)
			s->window = hs_min(s->window + a->newly_acked, s->ssthresh);
		s->next = HS_AVOID;
		break;
	case HS_JUMP:
		if (a->delivered + a->in_flight >= s->flight) {
			s->flight = hs_min(s->flight, a->delivered + a->in_flight);
			s->pace = 0;
			s->phase = HS_GROWING;
		}
		hs_grow(s, a);
		break;
	case HS_FIRST_FLIGHT:
		if (a->delivered + a->in_flight >= s->flight) {
			s->pace = 0;
			s->phase = HS_GROWING;
		}
		if (!hs_pauses(s, a))
			hs_grow(s, a);
		break;
	case HS_GROWING:
		if (s->scheme != HS_HEADSTART || !hs_pauses(s, a))
			hs_grow(s, a);
		break;
	case HS_RECOVERY:
		hs_recover(s, a->in_flight);
		if (!a->in_recovery) {
			s->settled = 1;
			s->window = s->ssthresh = hs_inherited(s);
			s->next = HS_AVOID;
		}
		break;
	case HS_RECONNAISSANCE:
		s->acked += a->newly_acked;
		hs_grow(s, a);
		if (s->acked >= s->flight && a->is_window_limited)
			hs_begin_unvalidated(s, params, a);
		break;
	case HS_UNVALIDATED:
		s->pipe_size += a->newly_acked;
		s->rtt = a->smoothed;
		is_valid = s->first_sent_at != HS_NONE && a->newest_sent_at >= s->first_sent_at;
		if (is_valid || hs_less(a->now, s->first_at) > s->rtt)
			hs_end_unvalidated(s, initial, a->in_flight);
		else
			s->pace = hs_rate(s->window, s->rtt);
		break;
	case HS_VALIDATING:
		s->pipe_size += a->newly_acked;
		hs_grow(s, a);
		if (a->newest_sent_at >= s->last_sent_at)
			s->phase = HS_GROWING;
		break;
	case HS_RETREAT:
		s->pipe_size += a->newly_acked;
		if (a->newest_sent_at >= s->last_sent_at) {
			s->ssthresh = hs_max(s->pipe_size / 2, s->mss * 2);
			s->next = HS_AVOID;
		}
		break;
	default:
		s->next = HS_GROW;
		break;
	}
}

/* Headstart::last_credit_revision: the known part of a flight counts at the end. */
HS_INLINE void hs_on_end(struct hs_start *s)
{
	if (!s->settled)
		s->flight = hs_min(s->flight, s->through + s->lost);
	s->settled = 1;
}

/*
 * Headstart: all is acknowledged and nothing is queued. The kernel has no size of the answer, which
 * was shorter than its flight; the window is slow start's.
 */
HS_INLINE void hs_on_drained(struct hs_start *s)
{
	hs_on_end(s);
	s->pace = 0;
	s->phase = HS_GROWING;
	s->window = hs_min(s->window, hs_segments(s->mss, HS_FLOOR) + s->through);
	s->next = HS_GROW;
}

/* ---- Congestion ---- */

HS_CALL void hs_on_timeout(struct hs_start *s, const struct hs_congestion *c)
{
	if (!s->settled)
		s->lost = hs_max(s->lost, hs_less(s->flight, s->through));
	s->settled = 1;
	s->pace = 0;
	s->next = HS_CUT;
	switch (s->phase) {
	case HS_JUMP:
	case HS_RECOVERY:
		s->window = s->through;
		break;
	case HS_FIRST_FLIGHT:
	case HS_GROWING:
		if ((s->scheme == HS_JUMP_START || s->scheme == HS_HEADSTART) && c->delivered < s->flight)
			s->window = s->through;
		break;
	case HS_RECONNAISSANCE:
		s->refusal = HS_CONGESTED;
		break;
	case HS_UNVALIDATED:
	case HS_VALIDATING:
	case HS_RETREAT:
		s->discards = 1;
		s->window = hs_max(hs_min(s->window, s->pipe_size), s->mss * 2);
		break;
	default:
		break;
	}
}

HS_CALL void hs_on_congestion(struct hs_start *s, const struct hs_congestion *c)
{
	int is_governed;

	s->next = HS_CUT;
	s->lost += c->first_flight_lost;
	if (c->is_mark && !s->settled)
		s->lost += s->flight / HS_MARK;
	switch (s->phase) {
	case HS_SENDING:
	case HS_MAINTENANCE:
	case HS_DRAIN:
		hs_set_window(s, hs_less(s->window, c->lost));
		s->pace = 0;
		break;
	case HS_JUMP:
	case HS_FIRST_FLIGHT:
	case HS_GROWING:
		is_governed = s->scheme == HS_JUMP_START ||
			      (s->scheme == HS_HEADSTART && s->flight > hs_segments(s->mss, HS_FLOOR));
		if (is_governed && !c->is_mark && c->first_flight_lost) {
			hs_recover(s, c->in_flight);
			s->next = HS_STAY;
		} else {
			s->settled = 1;
		}
		break;
	case HS_RECOVERY:
		hs_recover(s, c->in_flight);
		s->next = HS_STAY;
		break;
	case HS_RECONNAISSANCE:
		s->refusal = HS_CONGESTED;
		break;
	case HS_UNVALIDATED:
	case HS_VALIDATING:
		s->discards = 1;
		s->pace = 0;
		s->window = hs_max(s->pipe_size / 2, s->mss * 2);
		s->phase = HS_RETREAT;
		s->next = HS_STAY;
		break;
	case HS_RETREAT:
		s->next = HS_STAY;
		break;
	default:
		break;
	}
}

#endif
