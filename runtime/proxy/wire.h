/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/wire.h - what the keeper and an egress proxy say to each other
 *
 * SOCK_SEQPACKET, fixed-size structs, strings NUL-terminated inside their field. Descriptors flow from
 * the keeper to the proxy only. The proxy trusts the keeper; the keeper re-checks every field of what
 * it is told, because whoever told it has parsed hostile bytes.
 */
#pragma once

#include <stdint.h>

#include "runtime/net_policy.h"
#include "runtime/spec.h"

enum {
	PROXY_KEEPER_FD = 3,   /* the socket, in the proxy */
	PROXY_LISTENERS_MAX = 3, /* of one sandbox: one of each kind */
	PROXY_WHAT_MAX = NET_NAME_MAX + 8, /* "name:port", cut when it does not fit */
};

enum proxy_op {
	/* keeper -> proxy */
	PROXY_CONFIG = 1, /* first message, once */
	PROXY_LISTEN,     /* one descriptor: serve it for a sandbox */
	PROXY_FORGET,     /* that sandbox is gone: close all of its */
	PROXY_RESOLV,     /* one descriptor: the host's resolv.conf, to be read now */
	PROXY_LOG,        /* one descriptor: append to this file from now on */
	/* proxy -> keeper */
	PROXY_BLOCKED = 64, /* sent before the sandbox is told */
	PROXY_LOG_FULL,     /* the log wants to be rotated */
};

struct proxy_header {
	uint32_t op, size; /* size of the whole message */
};

struct proxy_config {
	struct proxy_header h;
	uint32_t net; /* enum net_mode: what a name is checked against */
	char owner[OWNER_ID_LEN + 1];
	char allow[NET_TEXT_MAX];
	char lists[NET_TEXT_MAX];
	char apt_hosts[NET_APT_HOSTS_MAX];
	char dns[NET_SERVERS_TEXT_MAX];      /* SANDBOX_DNS, "" = resolv.conf */
	char upstream[NET_UPSTREAM_MAX]; /* SANDBOX_UPSTREAM_PROXY as host:port, "" = none */
	uint64_t log_max_bytes;
};

enum proxy_listener { PROXY_LISTEN_PROXY, PROXY_LISTEN_DNS_UDP, PROXY_LISTEN_DNS_TCP };

struct proxy_listen {
	struct proxy_header h;
	uint64_t box; /* the sandbox, never re-used */
	uint32_t kind;
	char key[KEY_MAX];
};

struct proxy_forget {
	struct proxy_header h;
	uint64_t box;
};

struct proxy_descriptor { /* PROXY_RESOLV, PROXY_LOG, PROXY_LOG_FULL */
	struct proxy_header h;
};

enum { PROXY_UNLISTED = NET_RANGE_KINDS, PROXY_BAD_NAME, PROXY_REASONS };

struct proxy_blocked {
	struct proxy_header h;
	uint64_t box;
	uint32_t reason; /* enum net_range_kind, or one of the above */
	char what[PROXY_WHAT_MAX]; /* printable ASCII */
};
