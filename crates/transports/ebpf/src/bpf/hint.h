/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* The TCP option of a client's hint. */
#ifndef HEADSTART_HINT_H
#define HEADSTART_HINT_H

#include <linux/types.h>

/* Kind 254 of RFC 6994, then the value of the QUIC server's hint parameter. */
struct hint_option {
	__u8 kind;
	__u8 length;
	__be16 experiment;
	__u8 version;
	__u8 access;
	__u8 kbit[4];
	__u8 padding[2];
} __attribute__((packed));

#define HINT_KIND 254
#define HINT_LENGTH 10
#define HINT_EXPERIMENT 0x4853	/* "HS" */
#define HINT_VERSION 1
#define HINT_ACCESS_KINDS 7
#define HINT_MAX_KBIT 400000000	/* 400 Gbit/s */

#endif
