/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_ranges.c - where no sandbox may go, whatever a name resolves to
 *
 * Pure data and pure functions, used by the keeper (routes) and by the egress proxy, whose addresses
 * come from hostile name servers. The documentation prefixes (192.0.2.0/24, 198.51.100.0/24,
 * 203.0.113.0/24, 2001:db8::/32) are left out knowingly: they lead nowhere, so nothing is lost by
 * them, and tests have addresses that count as public.
 */
#include "runtime/net_ranges.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/cleanup.h"

enum { NAT64_LEN = 96 };

#define V4(a, b, c, d, n, k) { { AF_INET, { a, b, c, d } }, n, k }
#define V6(n, k, ...) { { AF_INET6, { __VA_ARGS__ } }, n, k }

static const struct net_prefix table[] = {
	V4(0, 0, 0, 0, 8, NET_RANGE_RESERVED),          /* "this" network: Linux takes 0.0.0.0 for itself */
	V4(10, 0, 0, 0, 8, NET_RANGE_LAN),              /* RFC 1918 */
	V4(100, 64, 0, 0, 10, NET_RANGE_LAN),           /* carrier-grade NAT; overlay networks */
	V4(100, 100, 100, 200, 32, NET_RANGE_METADATA), /* Alibaba Cloud */
	V4(127, 0, 0, 0, 8, NET_RANGE_LOOPBACK),
	V4(168, 63, 129, 16, 32, NET_RANGE_METADATA),   /* Azure: a public address, served by the host */
	V4(169, 254, 0, 0, 16, NET_RANGE_LINK_LOCAL),
	V4(169, 254, 169, 254, 32, NET_RANGE_METADATA),
	V4(172, 16, 0, 0, 12, NET_RANGE_LAN),           /* RFC 1918 */
	V4(192, 0, 0, 0, 24, NET_RANGE_RESERVED),       /* IETF protocols */
	V4(192, 0, 0, 192, 32, NET_RANGE_METADATA),     /* Oracle Cloud */
	V4(192, 88, 99, 0, 24, NET_RANGE_RESERVED),     /* 6to4 relays */
	V4(192, 168, 0, 0, 16, NET_RANGE_LAN),          /* RFC 1918 */
	V4(198, 18, 0, 0, 15, NET_RANGE_LAN),           /* benchmarks; fake addresses of VPN clients */
	V4(224, 0, 0, 0, 4, NET_RANGE_MULTICAST),
	V4(240, 0, 0, 0, 4, NET_RANGE_RESERVED),        /* and 255.255.255.255 */

	V6(96, NET_RANGE_RESERVED, 0),                  /* ::, and IPv4-compatible addresses */
	V6(128, NET_RANGE_LOOPBACK, [15] = 1),
	V6(96, NET_RANGE_RESERVED, [10] = 0xff, 0xff),  /* IPv4-mapped: on no wire */
	V6(48, NET_RANGE_LAN, 0, 0x64, 0xff, 0x9b, 0, 1), /* NAT64 of somebody's own prefix */
	V6(64, NET_RANGE_RESERVED, 1),                  /* discard-only */
	V6(32, NET_RANGE_RESERVED, 0x20, 0x01),         /* Teredo: IPv4 addresses in disguise */
	V6(16, NET_RANGE_RESERVED, 0x20, 0x02),         /* 6to4, the same */
	V6(16, NET_RANGE_RESERVED, 0x5f),               /* segment routing */
	V6(7, NET_RANGE_LAN, 0xfc),                     /* unique local */
	V6(128, NET_RANGE_METADATA, 0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54), /* AWS: fd00:ec2::254 */
	V6(10, NET_RANGE_LINK_LOCAL, 0xfe, 0x80),
	V6(10, NET_RANGE_LAN, 0xfe, 0xc0),              /* site-local, deprecated */
	V6(8, NET_RANGE_MULTICAST, 0xff),
};

static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };
static const uint8_t six_to_four[2] = { 0x20, 0x02 };

size_t net_ranges_all(struct net_prefix ret[NET_PREFIXES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table) && n < NET_PREFIXES_MAX; i++)
		ret[n++] = table[i];
	for (size_t i = 0; i < ARRAY_SIZE(table) && n < NET_PREFIXES_MAX; i++) {
		if (table[i].addr.family != AF_INET)
			continue;
		ret[n] = table[i];
		ret[n].addr.family = AF_INET6;
		memcpy(ret[n].addr.bytes, nat64, sizeof(nat64));
		memcpy(ret[n].addr.bytes + sizeof(nat64), table[i].addr.bytes, 4);
		ret[n++].len = (uint8_t)(NAT64_LEN + table[i].len);
	}
	return n;
}
_Static_assert(2 * ARRAY_SIZE(table) <= NET_PREFIXES_MAX, "raise NET_PREFIXES_MAX");

static struct net_addr embedded(const uint8_t *bytes)
{
	struct net_addr v4 = { .family = AF_INET };

	memcpy(v4.bytes, bytes, 4);
	return v4;
}

struct net_addr net_addr_unwrap(const struct net_addr *addr)
{
	if (addr->family == AF_INET6 && (memcmp(addr->bytes, mapped, sizeof(mapped)) == 0 ||
					 memcmp(addr->bytes, nat64, sizeof(nat64)) == 0))
		return embedded(addr->bytes + sizeof(mapped));
	return *addr;
}

static bool matches(const struct net_prefix *p, const struct net_addr *addr)
{
	size_t whole = p->len / 8;
	uint8_t mask = (uint8_t)(0xff00 >> (p->len % 8));

	return p->addr.family == addr->family && memcmp(p->addr.bytes, addr->bytes, whole) == 0 &&
	       (p->len % 8 == 0 || ((p->addr.bytes[whole] ^ addr->bytes[whole]) & mask) == 0);
}

static const struct net_prefix *longest_match(const struct net_addr *addr)
{
	const struct net_prefix *best = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (matches(&table[i], addr) && (!best || table[i].len > best->len))
			best = &table[i];
	}
	return best;
}

enum net_range_kind net_range_of(const struct net_addr *addr)
{
	struct net_addr real = net_addr_unwrap(addr);
	const struct net_prefix *p;

	if (real.family == AF_INET6 && memcmp(real.bytes, six_to_four, sizeof(six_to_four)) == 0) {
		/* Denied as a whole; what it stands for is the better explanation. */
		struct net_addr inner = embedded(real.bytes + sizeof(six_to_four));

		p = longest_match(&inner);
		if (p)
			return p->kind;
	}
	p = longest_match(&real);
	return p ? p->kind : NET_RANGE_PUBLIC;
}

const char *net_range_name(enum net_range_kind kind)
{
	static const char *const names[NET_RANGE_KINDS] = {
		[NET_RANGE_PUBLIC] = "public",
		[NET_RANGE_LAN] = "LAN",
		[NET_RANGE_LOOPBACK] = "loopback",
		[NET_RANGE_LINK_LOCAL] = "link-local",
		[NET_RANGE_METADATA] = "cloud metadata",
		[NET_RANGE_MULTICAST] = "multicast",
		[NET_RANGE_RESERVED] = "reserved",
		[NET_RANGE_HOST] = "this host",
	};

	return kind < NET_RANGE_KINDS ? names[kind] : "unknown";
}

int net_addr_parse(const char *text, struct net_addr *ret)
{
	struct net_addr addr = { .family = AF_INET };

	if (inet_pton(AF_INET, text, addr.bytes) != 1) {
		addr.family = AF_INET6;
		if (inet_pton(AF_INET6, text, addr.bytes) != 1)
			return -1;
	}
	*ret = addr;
	return 0;
}

const char *net_addr_format(const struct net_addr *addr, char *text, size_t size)
{
	if (!inet_ntop(addr->family, addr->bytes, text, (socklen_t)size))
		(void)snprintf(text, size, "?");
	return text;
}

socklen_t net_addr_sockaddr(const struct net_addr *addr, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;

	memset(ret, 0, sizeof(*ret));
	if (addr->family == AF_INET6) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, addr->bytes, sizeof(v6->sin6_addr));
		return sizeof(*v6);
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	memcpy(&v4->sin_addr, addr->bytes, sizeof(v4->sin_addr));
	return sizeof(*v4);
}
