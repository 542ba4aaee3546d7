/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_net.c - the netlink messages a network mode turns into */
#include "runtime/net.h"
#include "runtime/net_host.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "tests/unit/tap.h"

static struct net_plan plan;

static void test_none(enum net_mode mode)
{
	struct net_inside inside = { .mode = mode };
	const struct nlmsghdr *header = (const void *)plan.bytes;
	const struct ifinfomsg *link;
	struct err e;

	if (!tap_int(net_plan_init(&plan, &inside, &e), 0, "a plan for mode %d", mode))
		return;
	tap_int(plan.count, 1, "it is one message");
	tap_ok(header->nlmsg_len <= plan.len && NLMSG_ALIGN(header->nlmsg_len) == plan.len,
	       "the header has its length");
	tap_ok(header->nlmsg_type == RTM_NEWLINK || header->nlmsg_type == RTM_SETLINK,
	       "it changes a link");
	tap_int(header->nlmsg_flags & (NLM_F_REQUEST | NLM_F_ACK), NLM_F_REQUEST | NLM_F_ACK,
		"it is a request and wants an answer");
	tap_int(header->nlmsg_flags & (NLM_F_CREATE | NLM_F_EXCL), 0, "it creates nothing");
	tap_int(header->nlmsg_seq, 1, "it is number one");
	link = NLMSG_DATA(header);
	tap_int(link->ifi_index, 1, "the link is loopback");
	tap_int(link->ifi_flags & IFF_UP, IFF_UP, "it goes up");
	tap_int(link->ifi_change, IFF_UP, "and nothing else about it changes");
}

/* What is found in a plan, by walking its bytes. */
struct found {
	unsigned int messages, acks, unreachable4, unreachable6, defaults, addresses, neighbours;
	bool denied_after_up, in_order;
};

static void look_at(const struct nlmsghdr *h, struct found *f, bool *up)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	const struct ifinfomsg *link = NLMSG_DATA(h);

	f->messages++;
	f->in_order = f->in_order && h->nlmsg_seq == f->messages;
	f->acks += (h->nlmsg_flags & NLM_F_ACK) != 0;
	f->addresses += h->nlmsg_type == RTM_NEWADDR;
	f->neighbours += h->nlmsg_type == RTM_NEWNEIGH;
	if (h->nlmsg_type == RTM_NEWLINK || h->nlmsg_type == RTM_SETLINK)
		*up = *up || link->ifi_index == NET_INSIDE_INDEX;
	if (h->nlmsg_type != RTM_NEWROUTE)
		return;
	if (m->rtm_type == RTN_UNREACHABLE) {
		f->denied_after_up = f->denied_after_up || *up;
		f->unreachable4 += m->rtm_family == AF_INET;
		f->unreachable6 += m->rtm_family == AF_INET6;
	} else {
		f->defaults += m->rtm_dst_len == 0;
	}
}

static struct found walk(void)
{
	struct found f = { .in_order = true };
	size_t at = 0;
	bool up = false;

	while (at < plan.len) {
		const struct nlmsghdr *h = (const void *)(plan.bytes + at);

		if (h->nlmsg_len < sizeof(*h) || NLMSG_ALIGN(h->nlmsg_len) > plan.len - at)
			tap_bail("a message at %zu has length %u", at, h->nlmsg_len);
		look_at(h, &f, &up);
		at += NLMSG_ALIGN(h->nlmsg_len);
	}
	return f;
}

static unsigned int denied_of(int family)
{
	struct net_prefix all[NET_PREFIXES_MAX];
	size_t count = net_ranges_all(all);
	unsigned int n = 0;

	for (size_t i = 0; i < count; i++)
		n += all[i].addr.family == family;
	return n;
}

static void test_internet(void)
{
	static const uint8_t mac[NET_MAC_LEN] = { 2 };
	static const struct net_prefix own[] = {
		{ { AF_INET, { 203, 0, 113, 1 } }, 32, NET_RANGE_HOST },
		{ { AF_INET6, { 0x20, 0x01, 0x0d, 0xb8 } }, 64, NET_RANGE_LAN },
	};
	struct net_inside inside = {
		.mode = NET_INTERNET, .uplink = NET_UPLINK_VETH, .gateway_mac = mac,
		.address = { { AF_INET, { 198, 18, 64, 1 } } },
		.gateway = { { AF_INET, { 198, 18, 64, 254 } } }, .deny = own, .deny_count = 2,
	};
	struct found f;
	struct err e;

	if (!tap_int(net_plan_init(&plan, &inside, &e), 0, "a plan with IPv4"))
		return;
	f = walk();
	tap_ok(f.in_order, "  messages are numbered in order");
	tap_int(f.acks, 1, "  only the last asks for an answer");
	tap_int(f.messages, plan.count, "  as many as it says");
	tap_int(f.unreachable4, denied_of(AF_INET) + 1, "  all denied ranges and the host's own");
	tap_int(f.unreachable6, 0, "  nothing about IPv6, which it has not");
	tap_ok(!f.denied_after_up, "  all of them before the interface is up");
	tap_int(f.defaults, 1, "  one default route");
	tap_int(f.addresses, 1, "  one address");
	tap_int(f.neighbours, 1, "  one neighbour");
	(void)net_addr_parse("fd6d::1", &inside.address[1]);
	(void)net_addr_parse("fd6d::2", &inside.gateway[1]);
	if (!tap_int(net_plan_init(&plan, &inside, &e), 0, "a plan with both"))
		return;
	f = walk();
	tap_int(f.unreachable6, denied_of(AF_INET6) + 1, "  the IPv6 ranges too");
	tap_int(f.defaults, 2, "  two default routes");
	inside.uplink = NET_UPLINK_PROXY;
	if (tap_int(net_plan_init(&plan, &inside, &e), 0, "with the proxy alone"))
		tap_int(plan.count, 1, "  there is only loopback");
}

/* The largest plan there can be fits. */
static void test_largest(void)
{
	static struct net_prefix own[NET_HOST_DENY_MAX];
	struct net_inside inside = {
		.mode = NET_INTERNET, .uplink = NET_UPLINK_PASTA, .deny = own,
		.deny_count = NET_HOST_DENY_MAX,
	};
	struct err e;

	(void)net_addr_parse("198.18.0.1", &inside.address[0]);
	(void)net_addr_parse("198.18.0.2", &inside.gateway[0]);
	(void)net_addr_parse("fd6d::1", &inside.address[1]);
	(void)net_addr_parse("fd6d::2", &inside.gateway[1]);
	for (size_t i = 0; i < NET_HOST_DENY_MAX; i++)
		own[i] = (struct net_prefix){ { AF_INET6, { 0x20, 1, [14] = 1, [15] = (uint8_t)i } }, 128,
					      NET_RANGE_HOST };
	tap_int(net_plan_init(&plan, &inside, &e), 0, "the largest plan fits");
	tap_diag("%u messages, %zu bytes", plan.count, plan.len);
}

int main(void)
{
	test_none(NET_NONE);
	test_none(NET_ALLOWLIST);
	test_internet();
	test_largest();
	return tap_done();
}
