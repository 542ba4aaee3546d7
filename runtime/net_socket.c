/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_socket.c - sockets made inside a sandbox's network namespace and served outside it
 *
 * The first half runs in the child, as the sandbox's root with every capability over its namespaces,
 * before anything of the sandbox runs, or in a fork of a keeper that takes it over: plain system calls,
 * no memory. The second half runs in the keeper and takes descriptors from that child only, by a message whose content it does not look at
 * beyond which sockets there are.
 */
#include "runtime/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"

_Static_assert((int)NET_SOCKET_COUNT <= (int)FD_PASS_MAX, "all sockets fit one message");

enum { REJOIN_MS = 2000, REJOIN_RETRY_MS = 10 };

/* What the child says with the descriptors: which they are, one bit each, lowest first. */
struct socket_message {
	uint32_t present;
};

/* ---- the child ---- */

/* A connection that a proxy has closed holds its port for a minute, unless both the socket it was accepted
 * on and the next one say this. While one listens it lets nobody else in. */
static int allow_again(int fd)
{
	const int yes = 1;

	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

static int bound_socket(int type, uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	_cleanup_fd_ int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || inet_pton(AF_INET, NET_INSIDE_ADDRESS, &at.sin_addr) != 1 ||
	    (type == SOCK_STREAM && allow_again(fd) < 0) ||
	    bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return -1;
	if (type == SOCK_STREAM && listen(fd, NET_BACKLOG) < 0)
		return -1;
	return take_fd(&fd);
}

/* Link events are subscribed to here: the keeper learns from them that a user-mode uplink serves. */
static int route_socket(void)
{
	struct sockaddr_nl at = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	_cleanup_fd_ int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return -1;
	return take_fd(&fd);
}

static int make_socket(enum net_socket which)
{
	switch (which) {
	case NET_SOCKET_PROXY:
		return bound_socket(SOCK_STREAM, NET_PROXY_PORT);
	case NET_SOCKET_DNS_UDP:
		return bound_socket(SOCK_DGRAM, NET_DNS_PORT);
	case NET_SOCKET_DNS_TCP:
		return bound_socket(SOCK_STREAM, NET_DNS_PORT);
	case NET_SOCKET_ROUTE:
		return route_socket();
	case NET_SOCKET_COUNT:
		break;
	}
	errno = EINVAL;
	return -1;
}

int net_send_sockets(int channel, bool proxy)
{
	struct socket_message msg = { 0 };
	int fds[NET_SOCKET_COUNT];
	size_t count = 0;
	int r = 0;

	for (unsigned int i = 0; i < NET_SOCKET_COUNT && r == 0; i++) {
		if (i == NET_SOCKET_PROXY && !proxy)
			continue;
		fds[count] = make_socket((enum net_socket)i);
		if (fds[count] < 0)
			r = -1;
		else
			count++;
		msg.present |= 1U << i;
	}
	if (r == 0)
		r = fd_send_msg(channel, &msg, sizeof(msg), fds, count);
	while (count > 0)
		close_fd(&fds[--count]);
	return r;
}

/* ---- the keeper ---- */

void net_close_sockets(int sockets[NET_SOCKET_COUNT])
{
	for (size_t i = 0; i < NET_SOCKET_COUNT; i++)
		close_fd(&sockets[i]);
}

int net_recv_sockets(int channel, int ret[NET_SOCKET_COUNT], struct err *e)
{
	struct socket_message msg = { 0 };
	int fds[FD_PASS_MAX];
	size_t count = FD_PASS_MAX, next = 0;
	ssize_t len = fd_recv_msg(channel, &msg, sizeof(msg), fds, &count);

	for (size_t i = 0; i < NET_SOCKET_COUNT; i++)
		ret[i] = -1;
	if (len < 0)
		return err_sys(e, "take the sockets of a new sandbox");
	for (size_t i = 0; i < NET_SOCKET_COUNT && next < count; i++) {
		if (msg.present & 1U << i)
			ret[i] = fds[next++];
	}
	while (next < count)
		close_fd(&fds[--count]);
	if (len == (ssize_t)sizeof(msg) &&
	    next == (size_t)__builtin_popcount(msg.present))
		return 0;
	net_close_sockets(ret);
	return err_set(e, ERR_PROTOCOL, "a new sandbox has sent %zu sockets in %zd bytes", next, len);
}

/* ---- taking over ---- */

/* The proxy of the keeper before us has the ports until it has noticed that its keeper is gone. Who started
 * this process ends it when that takes too long. */
static _Noreturn void rejoin(int pidfd, int channel, bool proxy, bool patient)
{
	const struct timespec pause = { .tv_nsec = REJOIN_RETRY_MS * 1000000L };

	if (setns(pidfd, CLONE_NEWUSER | CLONE_NEWNET) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(1);
	while (net_send_sockets(channel, proxy) < 0) {
		if (errno != EADDRINUSE || !patient)
			_exit(1);
		(void)nanosleep(&pause, NULL);
	}
	_exit(0);
}

int net_rejoin_sockets(int pidfd, bool proxy, bool *patient, int ret[NET_SOCKET_COUNT], struct err *e)
{
	_cleanup_fd_ int ours = -1, theirs = -1;
	struct pollfd p = { .events = POLLIN };
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_sys(e, "make the sockets of a sandbox again");
	p.fd = ours = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid == 0)
		rejoin(pidfd, theirs, proxy, *patient);
	if (pid < 0)
		return err_sys(e, "make the sockets of a sandbox again");
	close_fd(&theirs);
	if (poll(&p, 1, REJOIN_MS) <= 0) {
		(void)kill(pid, SIGKILL);
		*patient = false;
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return net_recv_sockets(ours, ret, e);
}
