/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net.c - the inside of a sandbox's own network namespace; the only user of libnl
 *
 * net_plan_init() runs in the keeper and touches nothing but memory. net_apply() runs in the child,
 * as the sandbox's root, in a network namespace that holds a loopback interface and nothing else; its
 * input is the keeper's plan, its only peer the kernel.
 */
#include "runtime/net.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netlink/msg.h>
#include <netlink/route/link.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"

enum { LOOPBACK_INDEX = 1 }; /* the first interface of every network namespace */

static int plan_append(struct net_plan *plan, struct nl_msg *msg)
{
	struct nlmsghdr *header = nlmsg_hdr(msg);
	size_t len = NLMSG_ALIGN(header->nlmsg_len);

	if (plan->count == NET_PLAN_MESSAGES_MAX || plan->len + len > sizeof(plan->bytes)) {
		errno = ENOBUFS;
		return -1;
	}
	header->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	header->nlmsg_seq = plan->count + 1;
	header->nlmsg_pid = 0;
	memcpy(plan->bytes + plan->len, header, header->nlmsg_len);
	plan->message_len[plan->count++] = len;
	plan->len += len;
	return 0;
}

static int plan_link_up(struct net_plan *plan, int index)
{
	struct rtnl_link *link = rtnl_link_alloc();
	struct rtnl_link *change = rtnl_link_alloc();
	struct nl_msg *msg = NULL;
	int r = -1;

	errno = ENOMEM;
	if (link != NULL && change != NULL) {
		rtnl_link_set_ifindex(link, index);
		rtnl_link_set_flags(change, IFF_UP);
		if (rtnl_link_build_change_request(link, change, 0, &msg) == 0)
			r = plan_append(plan, msg);
	}
	nlmsg_free(msg);
	rtnl_link_put(change);
	rtnl_link_put(link);
	return r;
}

int net_plan_init(struct net_plan *plan, enum net_mode mode, struct err *e)
{
	(void)mode;
	memset(plan, 0, sizeof(*plan));
	if (plan_link_up(plan, LOOPBACK_INDEX) < 0)
		return err_sys(e, "build the netlink message that brings the loopback interface up");
	return 0;
}

/* read_answer() - one acknowledgement. Return: 0, -1 with the errno the kernel answered. */
static int read_answer(int sock, uint32_t seq)
{
	union {
		struct nlmsghdr header;
		unsigned char bytes[1024]; /* an error answer repeats the request */
	} answer;
	const struct nlmsgerr *error;
	ssize_t len = recv(sock, &answer, sizeof(answer), 0);

	if (len < 0)
		return -1;
	error = NLMSG_DATA(&answer.header);
	if ((size_t)len < NLMSG_LENGTH(sizeof(*error)) ||
	    answer.header.nlmsg_type != NLMSG_ERROR || answer.header.nlmsg_seq != seq) {
		errno = EPROTO;
		return -1;
	}
	errno = -error->error;
	return error->error == 0 ? 0 : -1;
}

/* send_plan() - one message, one answer: rtnetlink works inside sendmsg(), so the answer is there
 * when it returns and nothing here can wait. */
static int send_plan(const struct net_plan *plan)
{
	_cleanup_fd_ int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	const unsigned char *at = plan->bytes;

	if (sock < 0)
		return -1;
	for (unsigned int i = 0; i < plan->count; i++) {
		if (send(sock, at, plan->message_len[i], 0) < 0 || read_answer(sock, i + 1) < 0)
			return -1;
		at += plan->message_len[i];
	}
	return 0;
}

int net_apply(const struct net_plan *plan, int proc_sys_fd)
{
	if (send_plan(plan) < 0)
		return -1;
	/* Both hold for this namespace only. Every inside group may send ICMP echo (CAP_NET_RAW is not
	 * there); every inside user may listen on port 80. */
	if (fd_write_file_at(proc_sys_fd, "net/ipv4/ping_group_range", "0 65534") < 0)
		return -1;
	return fd_write_file_at(proc_sys_fd, "net/ipv4/ip_unprivileged_port_start", "0");
}
