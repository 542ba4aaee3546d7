/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_msg.c - rtnetlink messages as bytes, and sending them; the only user of libnl
 *
 * Building runs in the keeper and touches nothing but memory. Sending runs in the keeper, or in the child
 * as the sandbox's root; its only peer is the kernel.
 */
#include "runtime/net_msg.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/neighbour.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/net_host.h"


/* append() - take the message over into the plan. It is freed in any case. */
static int append(struct net_plan *plan, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg), *before;
	size_t len = NLMSG_ALIGN(header->nlmsg_len);

	if (plan->count == NET_PLAN_MESSAGES_MAX || plan->len + len > sizeof(plan->bytes)) {
		nlmsg_free(msg);
		errno = ENOBUFS;
		return -1;
	}
	header->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	header->nlmsg_seq = plan->count + 1;
	header->nlmsg_pid = 0;
	if (plan->count > 0) {
		before = (struct nlmsghdr *)(void *)(plan->bytes + plan->last);
		before->nlmsg_flags &= (uint16_t)~NLM_F_ACK;
	}
	memset(plan->bytes + plan->len, 0, len);
	memcpy(plan->bytes + plan->len, header, header->nlmsg_len);
	plan->last = plan->len;
	plan->len += len;
	plan->count++;
	nlmsg_free(msg);
	return 0;
}

/* built() - what a build function of libnl-route has returned. */
static int built(struct net_plan *plan, int error, struct nl_msg **msg)
{
	if (error == 0)
		return append(plan, *msg);
	errno = error == -NLE_NOMEM ? ENOMEM : EINVAL;
	return -1;
}

static size_t address_len(const struct net_addr *addr)
{
	return addr->family == AF_INET6 ? 16 : 4;
}

/* address_of() - Return: NULL without memory. */
static struct nl_addr *address_of(const struct net_addr *addr, unsigned int prefix)
{
	struct nl_addr *a = nl_addr_build(addr->family, addr->bytes, address_len(addr));

	if (a)
		nl_addr_set_prefixlen(a, (int)prefix);
	return a;
}

static struct nl_addr *whole_address(const struct net_addr *addr)
{
	return address_of(addr, (unsigned int)address_len(addr) * 8);
}

int net_msg_link_up(struct net_plan *plan, int index)
{
	struct rtnl_link *link = rtnl_link_alloc();
	struct rtnl_link *change = rtnl_link_alloc();
	struct nl_msg *msg = NULL;
	int r = -1;

	errno = ENOMEM;
	if (link && change) {
		rtnl_link_set_ifindex(link, index);
		rtnl_link_set_flags(change, IFF_UP);
		r = built(plan, rtnl_link_build_change_request(link, change, 0, &msg), &msg);
	}
	rtnl_link_put(change);
	rtnl_link_put(link);
	return r;
}

/* Attribute by attribute: the library's own veth object leaves out the number of the far end. */
static int put_end(struct nl_msg *msg, const struct net_veth_end *end)
{
	struct ifinfomsg info = { .ifi_index = end->index };

	return nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) < 0 ||
			       nla_put_string(msg, IFLA_IFNAME, end->name) < 0 ||
			       nla_put(msg, IFLA_ADDRESS, NET_MAC_LEN, end->mac) < 0 ?
		       -1 :
		       0;
}

static int put_far_end(struct nl_msg *msg, const struct net_veth_end *there, pid_t pid)
{
	struct nlattr *link = nla_nest_start(msg, IFLA_LINKINFO), *data, *peer;

	if (!link || nla_put_string(msg, IFLA_INFO_KIND, "veth") < 0)
		return -1;
	data = nla_nest_start(msg, IFLA_INFO_DATA);
	peer = data ? nla_nest_start(msg, VETH_INFO_PEER) : NULL;
	if (!peer || put_end(msg, there) < 0 || nla_put_u32(msg, IFLA_NET_NS_PID, (uint32_t)pid) < 0)
		return -1;
	nla_nest_end(msg, peer);
	nla_nest_end(msg, data);
	nla_nest_end(msg, link);
	return 0;
}

int net_msg_veth(struct net_plan *plan, const struct net_veth_end *here,
		 const struct net_veth_end *there, pid_t pid)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);

	if (msg && put_end(msg, here) == 0 && put_far_end(msg, there, pid) == 0)
		return append(plan, msg);
	nlmsg_free(msg);
	errno = ENOMEM;
	return -1;
}

int net_msg_address(struct net_plan *plan, int index, const struct net_addr *addr)
{
	struct rtnl_addr *a = rtnl_addr_alloc();
	struct nl_addr *local = whole_address(addr);
	struct nl_msg *msg = NULL;
	int r = -1;

	errno = ENOMEM;
	if (a && local) {
		rtnl_addr_set_ifindex(a, index);
		if (addr->family == AF_INET6) /* nobody else is on the link: nothing to detect */
			rtnl_addr_set_flags(a, IFA_F_NODAD);
		r = rtnl_addr_set_local(a, local);
		if (r == 0)
			r = rtnl_addr_build_add_request(a, NLM_F_EXCL, &msg);
		r = built(plan, r, &msg);
	}
	nl_addr_put(local);
	rtnl_addr_put(a);
	return r;
}

int net_msg_neighbour(struct net_plan *plan, int index, const struct net_addr *addr,
		      const uint8_t *mac)
{
	struct rtnl_neigh *n = rtnl_neigh_alloc();
	struct nl_addr *dst = whole_address(addr);
	struct nl_addr *link = nl_addr_build(AF_LLC, mac, NET_MAC_LEN);
	struct nl_msg *msg = NULL;
	int r = -1;

	errno = ENOMEM;
	if (n && dst && link) {
		rtnl_neigh_set_ifindex(n, index);
		rtnl_neigh_set_state(n, NUD_PERMANENT);
		rtnl_neigh_set_lladdr(n, link);
		r = rtnl_neigh_set_dst(n, dst);
		if (r == 0)
			r = rtnl_neigh_build_add_request(n, NLM_F_CREATE | NLM_F_REPLACE, &msg);
		r = built(plan, r, &msg);
	}
	nl_addr_put(link);
	nl_addr_put(dst);
	rtnl_neigh_put(n);
	return r;
}

/* Freed with the route it is added to. */
static int add_next_hop(struct rtnl_route *route, int index, const struct net_addr *gateway)
{
	struct rtnl_nexthop *hop = rtnl_route_nh_alloc();
	struct nl_addr *via = gateway ? whole_address(gateway) : NULL;

	if (!hop || (gateway && !via)) {
		nl_addr_put(via);
		rtnl_route_nh_free(hop);
		errno = ENOMEM;
		return -1;
	}
	rtnl_route_nh_set_ifindex(hop, index);
	if (via) {
		rtnl_route_nh_set_gateway(hop, via);
		rtnl_route_nh_set_flags(hop, RTNH_F_ONLINK);
	}
	nl_addr_put(via);
	rtnl_route_add_nexthop(route, hop);
	return 0;
}

/* index 0: a route without a way, of the given type. */
static int add_route(struct net_plan *plan, const struct net_prefix *to, uint8_t type, int index,
		     const struct net_addr *gateway, int flags)
{
	struct rtnl_route *route = rtnl_route_alloc();
	struct nl_addr *dst = address_of(&to->addr, to->len);
	struct nl_msg *msg = NULL;
	int r = -1;

	errno = ENOMEM;
	if (route && dst && (index == 0 || add_next_hop(route, index, gateway) == 0)) {
		rtnl_route_set_type(route, type);
		rtnl_route_set_protocol(route, NET_ROUTE_PROTOCOL);
		rtnl_route_set_table(route, RT_TABLE_MAIN);
		rtnl_route_set_scope(route, index > 0 && !gateway ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE);
		r = rtnl_route_set_dst(route, dst);
		if (r == 0)
			r = rtnl_route_build_add_request(route, NLM_F_CREATE | flags, &msg);
		r = built(plan, r, &msg);
	}
	nl_addr_put(dst);
	if (route)
		rtnl_route_put(route);
	return r;
}

int net_msg_default(struct net_plan *plan, int index, const struct net_addr *gateway)
{
	struct net_prefix all = { { .family = gateway->family }, 0, 0 };

	return add_route(plan, &all, RTN_UNICAST, index, gateway, NLM_F_EXCL);
}

int net_msg_host(struct net_plan *plan, int index, const struct net_addr *addr)
{
	struct net_prefix one = { *addr, (uint8_t)(address_len(addr) * 8), 0 };

	return add_route(plan, &one, RTN_UNICAST, index, NULL, NLM_F_EXCL);
}

int net_msg_unreachable(struct net_plan *plan, const struct net_prefix *prefix, int again)
{
	return add_route(plan, prefix, RTN_UNREACHABLE, 0, NULL, again ? NLM_F_REPLACE : NLM_F_EXCL);
}

/* ---- sending ---- */

/* Return: 1 the last message is answered, 0 something else, with *failed set when it was a refusal. */
static int look_at(const struct nlmsghdr *h, uint32_t last, int *failed)
{
	const struct nlmsgerr *error = NLMSG_DATA(h);

	if (h->nlmsg_type != NLMSG_ERROR || h->nlmsg_len < NLMSG_LENGTH(sizeof(*error)))
		return 0;
	if (*failed == 0)
		*failed = -error->error;
	return h->nlmsg_seq == last;
}

int net_plan_send(int sock, const struct net_plan *plan)
{
	union {
		struct nlmsghdr header;
		unsigned char bytes[4096]; /* an error answer repeats the request */
	} answer;
	int failed = 0, done = 0;

	if (plan->count == 0)
		return 0;
	if (send(sock, plan->bytes, plan->len, 0) < 0)
		return -1;
	while (!done) {
		ssize_t len = recv(sock, &answer, sizeof(answer), MSG_DONTWAIT);

		/* ENOBUFS: events that nobody has read have filled the socket; answers come all the same. */
		if (len < 0 && (errno == EINTR || errno == ENOBUFS))
			continue;
		if (len < (ssize_t)sizeof(answer.header)) {
			if (len >= 0 || errno == EAGAIN)
				errno = EPROTO;
			return -1;
		}
		done = look_at(&answer.header, plan->count, &failed);
	}
	errno = failed;
	return failed == 0 ? 0 : -1;
}
