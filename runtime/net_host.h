/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_host.h - what the host's own network is: asked of its kernel
 *
 * Beyond the ranges that are denied everywhere (net_ranges.h) a sandbox must not reach the host's own
 * public addresses, its gateways, and the networks it is connected to: with IPv6 every neighbour on
 * the LAN has a public address. And what we number sandboxes with must not be in use here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/err.h"
#include "runtime/net_ranges.h"

enum {
	NET_HOST_DENY_MAX = 128,
	NET_HOST_USED_MAX = 1024,
	/* A route without a gateway is a network of neighbours only when it is narrow: a VPN may have the
	 * whole internet on its device. */
	NET_CONNECTED_MIN4 = 16,
	NET_CONNECTED_MIN6 = 48,
	/* Routes of ours are told from those of others by this number; it is nobody else's in
	 * rtnetlink.h or in iproute2's list. */
	NET_ROUTE_PROTOCOL = 109,
};

struct net_host {
	size_t deny_count, used_count;
	bool has_default4, has_default6;
	struct net_prefix deny[NET_HOST_DENY_MAX]; /* none of them in a denied range already */
	struct net_prefix used[NET_HOST_USED_MAX]; /* every address, network and route but the default's */
};

/* net_host_read() - of the network namespace this process is in. Never waits.
 * Return: 0, -1 (more of them than fit is an error, not a shorter list). */
int net_host_read(struct net_host *host, struct err *e);

/* net_host_uses() - whether a prefix shares an address with something of the host. */
bool net_host_uses(const struct net_host *host, const struct net_prefix *prefix);

/* net_host_watch() - a netlink socket that becomes readable when an address or a route of the host has
 * changed. Return: descriptor, -1. */
int net_host_watch(struct err *e);

/* net_host_changed() - take what the socket has; changes of our own routes do not count. Events that
 * did not fit into its buffer count as a change. Return: whether to read the host again. */
bool net_host_changed(int watch_fd);
