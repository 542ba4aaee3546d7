/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/route.c - is it this host, or next to it?
 *
 * Runs in the egress proxy. The table of ranges cannot know the host's own public addresses, nor a local
 * network with public ones: the kernel's routing is asked for each destination, so that an address the
 * host got a moment ago counts. The answers come from the kernel and are checked for their shape only.
 */
#include "runtime/proxy/internal.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/net_host.h"

enum { ANSWER_MAX = 4096 };

struct route_request {
	struct nlmsghdr h;
	struct rtmsg route;
	struct rtattr attr;
	uint8_t dst[16];
};

int route_open(struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? err_sys(e, "open a routing socket") : fd;
}

static size_t build(struct route_request *req, const struct net_addr *addr, uint32_t seq)
{
	size_t len = addr->family == AF_INET ? 4 : 16;

	*req = (struct route_request){
		.h = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = seq },
		.route = { .rtm_family = addr->family, .rtm_dst_len = (uint8_t)(len * 8),
			   .rtm_flags = RTM_F_FIB_MATCH },
		.attr = { .rta_type = RTA_DST, .rta_len = (uint16_t)RTA_LENGTH(len) },
	};
	memcpy(req->dst, addr->bytes, len);
	req->h.nlmsg_len = (uint32_t)(offsetof(struct route_request, dst) + len);
	return req->h.nlmsg_len;
}

static bool has_gateway(const struct nlmsghdr *h)
{
	const struct rtmsg *route = NLMSG_DATA(h);
	int left = (int)RTM_PAYLOAD(h);

	for (const struct rtattr *a = RTM_RTA(route); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_GATEWAY || a->rta_type == RTA_VIA ||
		    a->rta_type == RTA_MULTIPATH || a->rta_type == RTA_NH_ID)
			return true;
	}
	return false;
}

/* A network we are part of: its route came with an address of ours or by router advertisement, or is as
 * narrow as a network is. A route for half the internet into a tunnel has no gateway either. */
static bool is_neighbour(const struct nlmsghdr *h)
{
	const struct rtmsg *route = NLMSG_DATA(h);
	uint8_t narrow = route->rtm_family == AF_INET6 ? NET_CONNECTED_MIN6 : NET_CONNECTED_MIN4;

	return route->rtm_dst_len > 0 && !has_gateway(h) &&
	       (route->rtm_dst_len >= narrow || route->rtm_protocol == RTPROT_KERNEL ||
		route->rtm_protocol == RTPROT_RA);
}

static enum net_range_kind judge(const struct nlmsghdr *h)
{
	const struct rtmsg *route = NLMSG_DATA(h);

	switch (route->rtm_type) {
	case RTN_UNICAST:
		return is_neighbour(h) ? NET_RANGE_LAN : NET_RANGE_PUBLIC;
	case RTN_LOCAL:
	case RTN_ANYCAST:
		return NET_RANGE_HOST;
	case RTN_BROADCAST:
	case RTN_MULTICAST:
		return NET_RANGE_MULTICAST;
	case RTN_UNREACHABLE:
	case RTN_BLACKHOLE:
	case RTN_PROHIBIT:
	case RTN_THROW:
		return NET_RANGE_PUBLIC; /* connect() will say so */
	default:
		return NET_RANGE_RESERVED;
	}
}

enum net_range_kind route_kind(int fd, const struct net_addr *addr)
{
	static uint32_t seq;
	union {
		struct nlmsghdr h;
		unsigned char bytes[ANSWER_MAX];
	} answer;
	struct route_request req;
	size_t len = build(&req, addr, ++seq);
	ssize_t n;

	if (send(fd, &req, len, 0) != (ssize_t)len)
		return NET_RANGE_RESERVED;
	do { /* the kernel answers inside send(); what is older belongs to nobody */
		n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
		if (n < (ssize_t)sizeof(answer.h) || !NLMSG_OK(&answer.h, (size_t)n))
			return NET_RANGE_RESERVED;
	} while (answer.h.nlmsg_seq != seq);
	if (answer.h.nlmsg_type == NLMSG_ERROR)
		return NET_RANGE_PUBLIC; /* no route: connect() will say so */
	if (answer.h.nlmsg_type != RTM_NEWROUTE || answer.h.nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return NET_RANGE_RESERVED;
	return judge(&answer.h);
}
