/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The parts of the kernel's types that are used, by name. The loader relocates each access to the
 * field's place in the running kernel (CO-RE), so only names and widths matter here.
 */
#ifndef HEADSTART_KERNEL_H
#define HEADSTART_KERNEL_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10
#define SOL_SOCKET 1
#define SOL_TCP 6
#define SO_MAX_PACING_RATE 47
#define TCP_CONGESTION 13
#define TCP_SAVE_SYN 27

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct socket {
	short type;
};

struct inode {
	unsigned long i_ino;
};

struct socket_alloc {
	struct socket socket;
	struct inode vfs_inode;
};

struct sock {
	struct sock_common __sk_common;
	struct socket *sk_socket;
	struct sock_cgroup_data sk_cgrp_data;
	__u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
};

struct inet_sock {
	struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const struct tcp_congestion_ops *icsk_ca_ops;
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_wnd;
	__u32 mss_cache;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 retrans_out;
	__u32 packets_out;
	__u32 lost;
	__u32 delivered;
	__u32 delivered_ce;
	__u32 total_retrans;
	__u32 write_seq;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 srtt_us;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 data_segs_out;
	__u64 bytes_sent;
	__u64 bytes_retrans;
	__u64 tcp_clock_cache;
	__u64 tcp_wstamp_ns;
	__u32 tlp_high_seq;
	struct minmax rtt_min;
	__u8 is_cwnd_limited:1;
	__u8 rate_app_limited:1;
	__u8 chrono_type:2;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
	__u32 in_flight;
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, int ev);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, const void *unused);
	__u32 (*undo_cwnd)(struct sock *sk);
	__u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct tcp_skb_cb {
	__u32 ack_seq;
};

struct sk_buff {
	char cb[48];
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

#pragma clang attribute pop

/* Of tcp_ca_state, tcp_ca_event and the TCP states (the last): numbers that never changed. */
enum { CA_OPEN, CA_DISORDER, CA_CWR, CA_RECOVERY, CA_LOSS };
enum tcp_ca_event { CA_EVENT_TX_START, CA_EVENT_CWND_RESTART };
enum { FIN_WAIT_2 = 5, CLOSED = 7, LISTENING = 10 };
enum { PACING_NONE, PACING_NEEDED, PACING_FQ };
enum { CHRONO_RWND_LIMITED = 2 };

#define TCP_CONG_NON_RESTRICTED 1
#define TCP_INFINITE_SSTHRESH 0x7fffffff

extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

#endif
