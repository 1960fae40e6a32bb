// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * Programs for kernels without struct_ops or without type information of their own: nothing in this
 * object is relocated, and it has no global data.
 *
 *   window        sock_ops: a larger, paced first window
 *   hint          sock_ops of a client: writes the hint into its first segments
 */
/* No decision is made here. */
#define HS_GLOBAL static __attribute__((noinline, unused))
#include "kernel.h"
#include <bpf/bpf_endian.h>
#include "hint.h"
#include "decide.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

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

/* Level "window": sock_ops only, on the connection's own control. */
SEC("sockops")
int hs_window(struct bpf_sock_ops *ops)
{
	__u32 zero = 0;
	struct hs_settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct hs_counters *c;
	__u32 none = ~0U, rate;
	int segments;

	if (!set || set->stopped)
		return 1;
	if (ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		segments = set->window;
		bpf_setsockopt(ops, SOL_TCP, TCP_BPF_IW, &segments, sizeof(segments));
		rate = hs_min(set->window_rate, ~0U - 1);
		if (rate) {
			bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
			bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_RTT_CB_FLAG);
		}
		c = bpf_map_lookup_elem(&counters, &zero);
		if (c)
			c->taken++;
	} else if (ops->op == BPF_SOCK_OPS_RTT_CB) {
		/* The first ack: the flight has been paced. */
		bpf_setsockopt(ops, SOL_SOCKET, SO_MAX_PACING_RATE, &none, sizeof(none));
		bpf_sock_ops_cb_flags_set(ops, 0);
	}
	return 1;
}

/* The hint that a client writes into its SYN, its handshake's last segment and its first data. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);	/* version, access technology, kbit/s, as on the wire */
} hinted SEC(".maps");

SEC("sockops")
int hs_hint(struct bpf_sock_ops *ops)
{
	struct hint_option option = {
		.kind = HINT_KIND,
		.length = HINT_LENGTH,
		.experiment = bpf_htons(HINT_EXPERIMENT),
	};
	__u32 zero = 0;
	__u64 *value;

	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		/* Until the server has acknowledged data: a hint read later has no effect. */
		if (ops->bytes_acked > 1)
			bpf_sock_ops_cb_flags_set(ops, 0);
		else
			bpf_reserve_hdr_opt(ops, HINT_LENGTH, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		value = bpf_map_lookup_elem(&hinted, &zero);
		if (value && ops->bytes_acked <= 1) {
			__builtin_memcpy(&option.version, value, 6);
			bpf_store_hdr_opt(ops, &option, HINT_LENGTH, 0);
		}
		break;
	}
	return 1;
}
