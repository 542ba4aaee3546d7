/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_net_ranges.c - which addresses are denied, at the edges of every range */
#include "runtime/net_ranges.h"

#include <string.h>

#include "tests/unit/tap.h"

static const struct {
	const char *addr;
	enum net_range_kind want;
} rows[] = {
	{ "0.0.0.0", NET_RANGE_RESERVED },
	{ "1.0.0.0", NET_RANGE_PUBLIC },
	{ "9.255.255.255", NET_RANGE_PUBLIC },
	{ "10.0.0.0", NET_RANGE_LAN },
	{ "10.255.255.255", NET_RANGE_LAN },
	{ "11.0.0.0", NET_RANGE_PUBLIC },
	{ "100.63.255.255", NET_RANGE_PUBLIC },
	{ "100.64.0.0", NET_RANGE_LAN },
	{ "100.100.100.200", NET_RANGE_METADATA },
	{ "100.127.255.255", NET_RANGE_LAN },
	{ "100.128.0.0", NET_RANGE_PUBLIC },
	{ "126.255.255.255", NET_RANGE_PUBLIC },
	{ "127.0.0.1", NET_RANGE_LOOPBACK },
	{ "127.255.255.255", NET_RANGE_LOOPBACK },
	{ "128.0.0.0", NET_RANGE_PUBLIC },
	{ "168.63.129.16", NET_RANGE_METADATA },
	{ "168.63.129.17", NET_RANGE_PUBLIC },
	{ "169.253.255.255", NET_RANGE_PUBLIC },
	{ "169.254.0.1", NET_RANGE_LINK_LOCAL },
	{ "169.254.169.254", NET_RANGE_METADATA },
	{ "169.255.0.0", NET_RANGE_PUBLIC },
	{ "172.15.255.255", NET_RANGE_PUBLIC },
	{ "172.16.0.0", NET_RANGE_LAN },
	{ "172.31.255.255", NET_RANGE_LAN },
	{ "172.32.0.0", NET_RANGE_PUBLIC },
	{ "192.0.0.192", NET_RANGE_METADATA },
	{ "192.0.0.8", NET_RANGE_RESERVED },
	{ "192.0.1.0", NET_RANGE_PUBLIC },
	{ "192.88.99.1", NET_RANGE_RESERVED },
	{ "192.167.255.255", NET_RANGE_PUBLIC },
	{ "192.168.0.0", NET_RANGE_LAN },
	{ "192.168.255.255", NET_RANGE_LAN },
	{ "192.169.0.0", NET_RANGE_PUBLIC },
	{ "198.17.255.255", NET_RANGE_PUBLIC },
	{ "198.18.0.0", NET_RANGE_LAN },
	{ "198.19.255.255", NET_RANGE_LAN },
	{ "198.20.0.0", NET_RANGE_PUBLIC },
	{ "203.0.113.1", NET_RANGE_PUBLIC },
	{ "223.255.255.255", NET_RANGE_PUBLIC },
	{ "224.0.0.1", NET_RANGE_MULTICAST },
	{ "239.255.255.255", NET_RANGE_MULTICAST },
	{ "240.0.0.0", NET_RANGE_RESERVED },
	{ "255.255.255.255", NET_RANGE_RESERVED },

	{ "::", NET_RANGE_RESERVED },
	{ "::1", NET_RANGE_LOOPBACK },
	{ "::7f00:1", NET_RANGE_RESERVED },
	{ "::ffff:127.0.0.1", NET_RANGE_LOOPBACK },
	{ "::ffff:10.1.2.3", NET_RANGE_LAN },
	{ "::ffff:169.254.169.254", NET_RANGE_METADATA },
	{ "::ffff:203.0.113.1", NET_RANGE_PUBLIC },
	{ "64:ff9b::10.1.2.3", NET_RANGE_LAN },
	{ "64:ff9b::169.254.169.254", NET_RANGE_METADATA },
	{ "64:ff9b::203.0.113.1", NET_RANGE_PUBLIC },
	{ "64:ff9b:1::1", NET_RANGE_LAN },
	{ "100::1", NET_RANGE_RESERVED },
	{ "2001::1", NET_RANGE_RESERVED },
	{ "2001:1::1", NET_RANGE_PUBLIC },
	{ "2001:db8::1", NET_RANGE_PUBLIC },
	{ "2002:a01:203::1", NET_RANGE_LAN },
	{ "2002:a9fe:a9fe::1", NET_RANGE_METADATA },
	{ "2002:cb00:7101::1", NET_RANGE_RESERVED },
	{ "2003::1", NET_RANGE_PUBLIC },
	{ "2606:4700::1111", NET_RANGE_PUBLIC },
	{ "5f00::1", NET_RANGE_RESERVED },
	{ "fbff:ffff::1", NET_RANGE_PUBLIC },
	{ "fc00::1", NET_RANGE_LAN },
	{ "fd00:ec2::254", NET_RANGE_METADATA },
	{ "fd00:ec2::253", NET_RANGE_LAN },
	{ "fdff:ffff::1", NET_RANGE_LAN },
	{ "fe00::1", NET_RANGE_PUBLIC },
	{ "fe80::1", NET_RANGE_LINK_LOCAL },
	{ "febf::1", NET_RANGE_LINK_LOCAL },
	{ "fec0::1", NET_RANGE_LAN },
	{ "ff02::1", NET_RANGE_MULTICAST },
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct net_addr addr;

		tap_int(net_addr_parse(rows[i].addr, &addr), 0, "%s is an address", rows[i].addr);
		tap_str(net_range_name(net_range_of(&addr)), net_range_name(rows[i].want), "%s is %s",
			rows[i].addr, net_range_name(rows[i].want));
	}
}

/* What inet_aton() and browsers read as an address is none here: it would be matched as a name and
 * resolved as an address. */
static void test_not_addresses(void)
{
	static const char *const texts[] = { "", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1",
					     "127.0.0.1.", " 127.0.0.1", "127.0.0.1 ", "[::1]",
					     "fe80::1%lo", "::ffff:1.2.3", "1.2.3.4:80", "localhost" };
	struct net_addr addr;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		tap_int(net_addr_parse(texts[i], &addr), -1, "\"%s\" is no address", texts[i]);
}

/* The routes say what the function says: for each prefix its first and last address are denied. */
static void test_prefixes_agree(void)
{
	struct net_prefix all[NET_PREFIXES_MAX];
	size_t count = net_ranges_all(all), nat64 = 0;
	bool agree = true, clean = true;

	for (size_t i = 0; i < count; i++) {
		struct net_addr last = all[i].addr;
		size_t bits = last.family == AF_INET ? 32 : 128;

		for (size_t bit = all[i].len; bit < bits; bit++)
			last.bytes[bit / 8] |= (uint8_t)(0x80 >> (bit % 8));
		for (size_t bit = all[i].len; bit < bits; bit++)
			clean = clean && !(all[i].addr.bytes[bit / 8] & (0x80 >> (bit % 8)));
		/* IPv4-mapped is denied on the wire as a whole and judged by its content as an address. */
		if (last.family == AF_INET6 && last.bytes[0] == 0 && last.bytes[10] == 0xff &&
		    last.bytes[1] == 0)
			continue;
		if (net_range_of(&all[i].addr) == NET_RANGE_PUBLIC ||
		    net_range_of(&last) == NET_RANGE_PUBLIC) {
			agree = false;
			tap_diag("prefix %zu: an end of it counts as public", i);
		}
		nat64 += last.family == AF_INET6 && all[i].addr.bytes[1] == 0x64 &&
			 all[i].len >= 96;
	}
	tap_ok(count > 20 && count <= NET_PREFIXES_MAX, "%zu prefixes", count);
	tap_ok(clean, "no prefix has a bit behind its length");
	tap_ok(agree, "both ends of every prefix are denied");
	tap_ok(nat64 >= 16, "the IPv4 prefixes stand behind NAT64 too");
}

static void test_sockaddr(void)
{
	struct sockaddr_storage ss;
	struct net_addr addr;
	char text[INET6_ADDRSTRLEN];

	(void)net_addr_parse("203.0.113.7", &addr);
	tap_int(net_addr_sockaddr(&addr, 443, &ss), sizeof(struct sockaddr_in), "an IPv4 address");
	tap_int(ntohs(((struct sockaddr_in *)&ss)->sin_port), 443, "its port");
	(void)net_addr_parse("2001:db8::7", &addr);
	tap_int(net_addr_sockaddr(&addr, 80, &ss), sizeof(struct sockaddr_in6), "an IPv6 address");
	tap_str(net_addr_format(&addr, text, sizeof(text)), "2001:db8::7", "and back to text");
	(void)net_addr_parse("::ffff:203.0.113.7", &addr);
	addr = net_addr_unwrap(&addr);
	tap_str(net_addr_format(&addr, text, sizeof(text)), "203.0.113.7", "unwrapped");
}

int main(void)
{
	test_rows();
	test_not_addresses();
	test_prefixes_agree();
	test_sockaddr();
	return tap_done();
}
