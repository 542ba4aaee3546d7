/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_ranges.h - where no sandbox may go, whatever a name resolves to
 *
 * One table for both enforcers: the unreachable routes of a sandbox with an address of its own, and
 * the egress proxy. An address that carries an IPv4 address (mapped, NAT64, 6to4) is judged by that
 * one. The host's own addresses and its neighbours are not in the table: they are asked of the kernel.
 */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

struct net_addr {
	uint8_t family;    /* AF_INET or AF_INET6 */
	uint8_t bytes[16]; /* network order; IPv4 uses the first four */
};

enum net_range_kind {
	NET_RANGE_PUBLIC, /* not in the table */
	NET_RANGE_LAN,    /* private and carrier-grade NAT addresses */
	NET_RANGE_LOOPBACK,
	NET_RANGE_LINK_LOCAL,
	NET_RANGE_METADATA, /* what clouds hand credentials out on */
	NET_RANGE_MULTICAST,
	NET_RANGE_RESERVED,
	NET_RANGE_HOST,   /* an address of this host: never in the table */
	NET_RANGE_KINDS,
};

struct net_prefix {
	struct net_addr addr;
	uint8_t len;
	uint8_t kind; /* enum net_range_kind, never PUBLIC */
};

enum { NET_PREFIXES_MAX = 64 };

/* net_ranges_all() - every denied prefix as it has to stand in a routing table, the IPv4 ones once more
 * behind NAT64. Loopback is among them: a namespace's own 127.0.0.0/8 and ::1 stay as they are by the
 * kernel's local table. Return: how many (<= NET_PREFIXES_MAX). */
size_t net_ranges_all(struct net_prefix ret[NET_PREFIXES_MAX]);

/* net_range_of() - what an address is, after unwrapping; the longest prefix says it. */
enum net_range_kind net_range_of(const struct net_addr *addr);

/* net_addr_unwrap() - the IPv4 address in an IPv4-mapped or NAT64 (64:ff9b::/96) address, which is
 * where its packets go; anything else unchanged. */
struct net_addr net_addr_unwrap(const struct net_addr *addr);

/* net_range_name() - "LAN", "loopback", ...: what a person is told. */
const char *net_range_name(enum net_range_kind kind);

/* net_addr_parse() - a numeric address exactly as inet_pton() reads it; no zone, no brackets.
 * Return: 0, -1. */
int net_addr_parse(const char *text, struct net_addr *ret);

/* net_addr_format() - Return: text. */
const char *net_addr_format(const struct net_addr *addr, char *text, size_t size);

/* net_addr_sockaddr() - Return: the length for connect(). */
socklen_t net_addr_sockaddr(const struct net_addr *addr, uint16_t port, struct sockaddr_storage *ret);
