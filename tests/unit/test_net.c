/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_net.c - the netlink messages a network mode turns into */
#include "runtime/net.h"

#include <linux/rtnetlink.h>
#include <net/if.h>

#include "tests/unit/tap.h"

static void test_none(void)
{
	struct net_plan plan;
	const struct nlmsghdr *header = (const void *)plan.bytes;
	const struct ifinfomsg *link;
	struct err e;

	if (!tap_int(net_plan_init(&plan, NET_NONE, &e), 0, "a plan without a network"))
		return;
	tap_int(plan.count, 1, "it is one message");
	tap_int(plan.message_len[0], plan.len, "which is all of it");
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

int main(void)
{
	test_none();
	return tap_done();
}
