/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_net.c - the network namespace of a sandbox: what is there in each mode, and that what
 * was made inside is served from outside */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/sys/box.h"

static struct sockaddr_in inside_address(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };

	(void)inet_pton(AF_INET, NET_INSIDE_ADDRESS, &at.sin_addr);
	return at;
}

/* A box_fn: connect to a port of ours and say a word. Return: 0, errno. */
static int say_by_tcp(void *arg)
{
	struct sockaddr_in at = inside_address(*(const uint16_t *)arg);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		return errno;
	return fd_write_full(fd, "word", 4) < 0 ? errno : 0;
}

/* The same by UDP; a connected socket hears of a closed port on its second call. */
static int say_by_udp(void *arg)
{
	struct sockaddr_in at = inside_address(*(const uint16_t *)arg);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char reply;

	if (connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || send(fd, "word", 4, 0) != 4)
		return errno;
	return recv(fd, &reply, 1, MSG_DONTWAIT) < 0 && errno != EAGAIN ? errno : 0;
}

static void expect_word(int fd, const char *what)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char word[8] = "";

	tap_ok(poll(&p, 1, 2000) == 1 && read(fd, word, sizeof(word)) == 4 &&
		       strncmp(word, "word", 4) == 0,
	       "%s arrives outside", what);
}

static void test_tcp(struct box *b, enum net_socket which, uint16_t port)
{
	_cleanup_fd_ int fd = -1;

	tap_int(box_inside(b, true, say_by_tcp, &port), 0, "port %u answers inside", port);
	fd = accept4(b->l.socket[which], NULL, NULL, SOCK_CLOEXEC);
	if (tap_ok(fd >= 0, "  and is accepted outside"))
		expect_word(fd, "  what was said");
	close_fd(&b->l.socket[which]);
	tap_int(box_inside(b, true, say_by_tcp, &port), ECONNREFUSED,
		"  when nobody serves it, it is refused");
}

static void test_udp(struct box *b)
{
	uint16_t port = NET_DNS_PORT;

	tap_int(box_inside(b, true, say_by_udp, &port), 0, "the resolver's datagram port is there");
	expect_word(b->l.socket[NET_SOCKET_DNS_UDP], "  a datagram");
	close_fd(&b->l.socket[NET_SOCKET_DNS_UDP]);
	tap_int(box_inside(b, true, say_by_udp, &port), ECONNREFUSED, "  nobody serves it: refused");
}

/* The kernel looks at who made a netlink socket and at who uses it: the keeper may both. */
static void test_route_socket(struct box *b)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg route;
		struct rtattr attr;
		uint8_t dst[4];
	} msg = {
		.header = { sizeof(msg), RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE, 1, 0 },
		.route = { .rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_table = RT_TABLE_MAIN,
			   .rtm_protocol = RTPROT_STATIC, .rtm_type = RTN_UNREACHABLE },
		.attr = { RTA_LENGTH(4), RTA_DST },
		.dst = { 203, 0, 113, 9 },
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	int fd = b->l.socket[NET_SOCKET_ROUTE];
	static char path[] = "/proc/net/route";

	tap_int(box_inside(b, false, box_cat, path), 0, "the routes inside can be read");
	tap_ok(strstr(b->text, "097100CB") == NULL, "  there is none of ours yet");
	tap_ok(send(fd, &msg, sizeof(msg), 0) == sizeof(msg) &&
		       recv(fd, &answer, sizeof(answer), 0) > 0 && answer.error.error == 0,
	       "the keeper's socket adds a route");
	tap_int(box_inside(b, false, box_cat, path), 0, "the routes inside can be read again");
	tap_ok(strstr(b->text, "097100CB") != NULL, "  and the route is inside");
}

/* A box_fn: keep the resolver's port. */
static int squat(void *arg)
{
	struct sockaddr_in at = inside_address(NET_DNS_PORT);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	(void)arg;
	/* the other side has it most of the time */
	while (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
		if (errno != EADDRINUSE)
			return errno;
	(void)!write(1, "x", 1);
	(void)pause();
	return 0;
}

/* A keeper that takes over makes the sockets again, unless somebody inside was faster. */
static void test_rejoin(struct box *b)
{
	struct err e = { 0 };
	bool patient = true;
	pid_t pid;

	net_close_sockets(b->l.socket);
	if (tap_int(net_rejoin_sockets(b->l.pidfd, true, &patient, b->l.socket, &e), 0, "taken over"))
		test_tcp(b, NET_SOCKET_PROXY, NET_PROXY_PORT);
	else
		tap_diag("%s", e.message);
	net_close_sockets(b->l.socket);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(box_inside(b, true, squat, NULL));
	for (int i = 0; i < 100; i++) {
		if (net_rejoin_sockets(b->l.pidfd, true, &patient, b->l.socket, &e) < 0)
			break;
		net_close_sockets(b->l.socket);
		(void)usleep(20000);
	}
	tap_ok(e.code == ERR_PROTOCOL && !patient, "a port that stays taken inside is an error, and waited for once");
	tap_int(b->l.socket[NET_SOCKET_PROXY], -1, "  and then there is no socket");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void test_none(struct box *b)
{
	uint16_t port = NET_DNS_PORT;

	b->req.uplink = NULL;
	if (!tap_int(box_start(b), 0, "a sandbox without a network"))
		return;
	for (size_t i = 0; i < NET_SOCKET_COUNT; i++)
		tap_int(b->l.socket[i], -1, "  has no socket %zu", i);
	tap_int(box_inside(b, true, say_by_tcp, &port), ECONNREFUSED, "  there is no resolver");
	tap_int(box_inside(b, true, say_by_udp, &port), ECONNREFUSED, "  by neither protocol");
	box_end(b);
}

static void test_allowlist(struct box *b)
{
	static struct uplink uplink;

	if (uplink_open(&uplink, NET_ALLOWLIST, !b->ids.in_storage, &b->e) < 0)
		tap_bail("%s", b->e.message);
	box_net(b, &uplink);
	if (!tap_int(box_start(b), 0, "a sandbox with an allowlist"))
		tap_bail("%s", b->e.message);
	test_route_socket(b);
	test_tcp(b, NET_SOCKET_PROXY, NET_PROXY_PORT);
	test_tcp(b, NET_SOCKET_DNS_TCP, NET_DNS_PORT);
	test_udp(b);
	test_rejoin(b);
	box_end(b);
}

int main(int argc, char **argv)
{
	static struct box b;

	(void)argc;
	box_enter(argv);
	box_open(&b);
	test_none(&b);
	test_allowlist(&b);
	box_close(&b);
	return tap_done();
}
