/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_msg.h - rtnetlink messages as bytes, and sending them
 *
 * A plan is built with libnl-route, which allocates, and sent with plain system calls: by the child
 * inside its new namespace, or by the keeper through a socket of whichever namespace is meant.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/net_ranges.h"

enum { NET_PLAN_BYTES_MAX = 24 * 1024, NET_PLAN_MESSAGES_MAX = 320, NET_MAC_LEN = 6 };

struct net_plan {
	size_t len;
	unsigned int count; /* message i carries sequence number i + 1; the last asks for an answer */
	size_t last;        /* where the last one begins */
	_Alignas(8) unsigned char bytes[NET_PLAN_BYTES_MAX];
};

static inline void net_plan_clear(struct net_plan *plan)
{
	plan->len = plan->last = plan->count = 0;
}

/* net_msg_link_up() - bring an interface up. Return: 0, -1 with errno; so do all of these. */
int net_msg_link_up(struct net_plan *plan, int index);

/* net_msg_veth() - a pair: one end here, down, the other in the network namespace of a process. */
struct net_veth_end {
	const char *name;
	int index; /* 0 in both: the kernel's choice */
	const uint8_t *mac;
};
int net_msg_veth(struct net_plan *plan, const struct net_veth_end *here,
		 const struct net_veth_end *there, pid_t pid);

/* net_msg_address() - an address of the interface's own, with no network around it. */
int net_msg_address(struct net_plan *plan, int index, const struct net_addr *addr);

/* net_msg_neighbour() - addr is at mac, for good: nobody is asked. */
int net_msg_neighbour(struct net_plan *plan, int index, const struct net_addr *addr,
		      const uint8_t *mac);

/* net_msg_default() - the default route; the gateway is on the link whatever other routes say of it. */
int net_msg_default(struct net_plan *plan, int index, const struct net_addr *gateway);

/* net_msg_host() - a route to one address, directly over an interface. */
int net_msg_host(struct net_plan *plan, int index, const struct net_addr *addr);

/* net_msg_unreachable() - connecting there fails at once. again: it may be there already. */
int net_msg_unreachable(struct net_plan *plan, const struct net_prefix *prefix, int again);

/* net_plan_send() - send everything and read until the last one is answered; rtnetlink works inside
 * sendmsg(), so the answers are there when it returns and nothing waits. Events among them are
 * skipped. Must not allocate. Return: 0, -1 with the errno of the first message that was refused. */
int net_plan_send(int sock, const struct net_plan *plan);
