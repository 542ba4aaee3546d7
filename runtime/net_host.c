/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_host.c - what the host's own network is: asked of its kernel
 *
 * Runs in the keeper, with no privilege used. Its only peer is rtnetlink; what routers and name servers
 * said has been through the kernel's hands and arrives as numbers.
 */
#include "runtime/net_host.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { ANSWER_BYTES = 32 * 1024, ANSWERS_MAX = 4096 };

/* ---- lists ---- */

static bool is_covered(const struct net_prefix *p, const struct net_prefix *by)
{
	size_t whole = by->len / 8;
	uint8_t mask = (uint8_t)(0xff00 >> (by->len % 8));

	if (p->addr.family != by->addr.family || p->len < by->len ||
	    memcmp(p->addr.bytes, by->addr.bytes, whole) != 0)
		return false;
	return by->len % 8 == 0 || ((p->addr.bytes[whole] ^ by->addr.bytes[whole]) & mask) == 0;
}

static bool is_denied_anyway(const struct net_prefix *p)
{
	struct net_prefix all[NET_PREFIXES_MAX];
	size_t count = net_ranges_all(all);

	for (size_t i = 0; i < count; i++) {
		if (is_covered(p, &all[i]))
			return true;
	}
	return false;
}

static int add(struct net_prefix *list, size_t *count, size_t max, const struct net_prefix *p)
{
	for (size_t i = 0; i < *count; i++) {
		if (list[i].len == p->len &&
		    memcmp(&list[i].addr, &p->addr, sizeof(p->addr)) == 0)
			return 0;
	}
	if (*count == max) {
		errno = E2BIG;
		return -1;
	}
	list[(*count)++] = *p;
	return 0;
}

static int deny(struct net_host *host, const struct net_prefix *p)
{
	if (is_denied_anyway(p))
		return 0;
	return add(host->deny, &host->deny_count, NET_HOST_DENY_MAX, p);
}

static int use(struct net_host *host, const struct net_prefix *p)
{
	return add(host->used, &host->used_count, NET_HOST_USED_MAX, p);
}

bool net_host_uses(const struct net_host *host, const struct net_prefix *prefix)
{
	for (size_t i = 0; i < host->used_count; i++) {
		if (is_covered(prefix, &host->used[i]) || is_covered(&host->used[i], prefix))
			return true;
	}
	return false;
}

/* ---- messages ---- */

static uint8_t whole_len(uint8_t family)
{
	return family == AF_INET6 ? 128 : 32;
}

static bool take_address(const struct rtattr *a, uint8_t family, struct net_addr *ret)
{
	size_t len = whole_len(family) / 8;

	if (!a || RTA_PAYLOAD(a) < len)
		return false;
	*ret = (struct net_addr){ .family = family };
	memcpy(ret->bytes, RTA_DATA(a), len);
	return true;
}

static void index_attributes(const struct rtattr *a, int len, const struct rtattr **ret, int max)
{
	memset(ret, 0, sizeof(*ret) * (size_t)(max + 1));
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		int type = a->rta_type & NLA_TYPE_MASK;

		if (type <= max)
			ret[type] = a;
	}
}

static int look_at_address(struct net_host *host, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	const struct rtattr *attr[IFA_MAX + 1];
	struct net_prefix p = { .len = whole_len(m->ifa_family), .kind = NET_RANGE_HOST };

	index_attributes(IFA_RTA(m), (int)IFA_PAYLOAD(h), attr, IFA_MAX);
	if (!take_address(attr[IFA_LOCAL] ? attr[IFA_LOCAL] : attr[IFA_ADDRESS], m->ifa_family,
			  &p.addr))
		return 0;
	return use(host, &p) < 0 || deny(host, &p) < 0 ? -1 : 0;
}

static int deny_gateway(struct net_host *host, const struct rtattr *a, uint8_t family)
{
	struct net_prefix p = { .len = whole_len(family), .kind = NET_RANGE_LAN };

	return take_address(a, family, &p.addr) ? deny(host, &p) : 0;
}

/* RTA_VIA: a gateway of another family than the route's. */
static int deny_via(struct net_host *host, const struct rtattr *a)
{
	const struct rtvia *via = a ? RTA_DATA(a) : NULL;
	struct net_prefix p = { .kind = NET_RANGE_LAN };
	size_t len;

	if (!via || RTA_PAYLOAD(a) < sizeof(*via) ||
	    (via->rtvia_family != AF_INET && via->rtvia_family != AF_INET6))
		return 0;
	p.addr.family = (uint8_t)via->rtvia_family;
	p.len = whole_len(p.addr.family);
	len = RTA_PAYLOAD(a) - sizeof(*via);
	if (len < p.len / 8U)
		return 0;
	memcpy(p.addr.bytes, via->rtvia_addr, p.len / 8U);
	return deny(host, &p);
}

static int deny_multipath(struct net_host *host, const struct rtattr *a, uint8_t family)
{
	const struct rtnexthop *hop = RTA_DATA(a);
	int len = (int)RTA_PAYLOAD(a);

	while (RTNH_OK(hop, len)) {
		const struct rtattr *attr[RTA_MAX + 1];

		index_attributes(RTNH_DATA(hop), hop->rtnh_len - (int)sizeof(*hop), attr, RTA_MAX);
		if (deny_gateway(host, attr[RTA_GATEWAY], family) < 0 ||
		    deny_via(host, attr[RTA_VIA]) < 0)
			return -1;
		len -= NLMSG_ALIGN(hop->rtnh_len);
		hop = RTNH_NEXT(hop);
	}
	return 0;
}

static bool is_connected_network(const struct rtmsg *m, const struct rtattr *const *attr)
{
	uint8_t least = m->rtm_family == AF_INET6 ? NET_CONNECTED_MIN6 : NET_CONNECTED_MIN4;

	return !attr[RTA_GATEWAY] && !attr[RTA_VIA] && !attr[RTA_MULTIPATH] &&
	       m->rtm_dst_len >= least;
}

static void note_default(struct net_host *host, uint8_t family)
{
	if (family == AF_INET6)
		host->has_default6 = true;
	else
		host->has_default4 = true;
}

static int look_at_route(struct net_host *host, const struct nlmsghdr *h)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	const struct rtattr *attr[RTA_MAX + 1];
	struct net_prefix p = { .len = m->rtm_dst_len, .kind = NET_RANGE_LAN };

	/* A network is next to the host whichever table leads there. */
	if (m->rtm_table == RT_TABLE_LOCAL || m->rtm_type != RTN_UNICAST ||
	    m->rtm_flags & RTM_F_CLONED || m->rtm_protocol == NET_ROUTE_PROTOCOL)
		return 0;
	index_attributes(RTM_RTA(m), (int)RTM_PAYLOAD(h), attr, RTA_MAX);
	if (deny_gateway(host, attr[RTA_GATEWAY], m->rtm_family) < 0 ||
	    deny_via(host, attr[RTA_VIA]) < 0 ||
	    (attr[RTA_MULTIPATH] && deny_multipath(host, attr[RTA_MULTIPATH], m->rtm_family) < 0))
		return -1;
	if (m->rtm_dst_len == 0 && m->rtm_table == RT_TABLE_MAIN)
		note_default(host, m->rtm_family);
	if (m->rtm_dst_len == 0 || !take_address(attr[RTA_DST], m->rtm_family, &p.addr))
		return 0;
	if (use(host, &p) < 0)
		return -1;
	return is_connected_network(m, attr) ? deny(host, &p) : 0;
}

/* ---- asking ---- */

/* Return: 1 the dump is complete, 0 more will come, -1. */
static int look_at(struct net_host *host, const struct nlmsghdr *h, size_t len)
{
	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		int r = 0;

		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR) {
			errno = -((const struct nlmsgerr *)NLMSG_DATA(h))->error;
			return -1;
		}
		if (h->nlmsg_type == RTM_NEWADDR)
			r = look_at_address(host, h);
		else if (h->nlmsg_type == RTM_NEWROUTE)
			r = look_at_route(host, h);
		if (r < 0)
			return -1;
	}
	return 0;
}

static int dump(int sock, struct net_host *host, uint16_t type, uint8_t family)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg body; /* as long as an ifaddrmsg, or longer; the kernel wants the family */
	} ask = {
		.header = { sizeof(ask), type, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 },
		.body = { .rtm_family = family },
	};
	static _Alignas(8) unsigned char answer[ANSWER_BYTES]; /* one thread, one caller at a time */

	if (send(sock, &ask, sizeof(ask), 0) < 0)
		return -1;
	for (int i = 0; i < ANSWERS_MAX; i++) {
		ssize_t len = recv(sock, answer, sizeof(answer), MSG_DONTWAIT);
		int r;

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -1;
		r = look_at(host, (const struct nlmsghdr *)(const void *)answer, (size_t)len);
		if (r != 0)
			return r < 0 ? -1 : 0;
	}
	errno = E2BIG;
	return -1;
}

/* A kernel without IPv6 answers its dumps with an error. */
static int dump_family(int sock, struct net_host *host, uint8_t family)
{
	if (dump(sock, host, RTM_GETADDR, family) == 0 &&
	    dump(sock, host, RTM_GETROUTE, family) == 0)
		return 0;
	return family == AF_INET6 && (errno == EAFNOSUPPORT || errno == EOPNOTSUPP) ? 0 : -1;
}

int net_host_read(struct net_host *host, struct err *e)
{
	_cleanup_fd_ int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	host->deny_count = host->used_count = 0;
	host->has_default4 = host->has_default6 = false;
	if (sock >= 0 && dump_family(sock, host, AF_INET) == 0 &&
	    dump_family(sock, host, AF_INET6) == 0)
		return 0;
	if (errno != E2BIG)
		return err_sys(e, "read the host's addresses and routes");
	err_set(e, ERR_LIMIT, "this host has more than %d routes or %d public addresses and networks",
		NET_HOST_USED_MAX, NET_HOST_DENY_MAX);
	return err_remedy(e, "use SANDBOX_NET=allowlist, or run the server in a network namespace "
			     "with fewer routes");
}

/* ---- following ---- */

int net_host_watch(struct err *e)
{
	struct sockaddr_nl at = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
			     RTMGRP_IPV6_ROUTE,
	};
	_cleanup_fd_ int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return err_sys(e, "watch the host's addresses");
	return take_fd(&fd);
}

static bool is_change(const struct nlmsghdr *h, size_t len)
{
	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		const struct rtmsg *m = NLMSG_DATA(h);

		if (h->nlmsg_type == RTM_NEWADDR || h->nlmsg_type == RTM_DELADDR)
			return true;
		if ((h->nlmsg_type == RTM_NEWROUTE || h->nlmsg_type == RTM_DELROUTE) &&
		    m->rtm_table == RT_TABLE_MAIN && m->rtm_protocol != NET_ROUTE_PROTOCOL)
			return true;
	}
	return false;
}

bool net_host_changed(int watch_fd)
{
	_Alignas(8) unsigned char event[4096];
	bool changed = false;

	for (;;) {
		ssize_t len = recv(watch_fd, event, sizeof(event), MSG_DONTWAIT);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == ENOBUFS) {
			changed = true;
			continue;
		}
		if (len <= 0)
			return changed;
		if (is_change((const struct nlmsghdr *)(const void *)event, (size_t)len))
			changed = true;
	}
}
