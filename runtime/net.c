/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net.c - the inside of a sandbox's own network namespace
 *
 * net_plan_init() runs in the keeper and touches nothing but memory. The rest runs in the child, as the
 * sandbox's root, in a network namespace that holds a loopback interface and, with an uplink, one more;
 * its input is the keeper's plan, its only peer the kernel. Nothing of the sandbox runs yet, and
 * what runs later has no capability to undo any of it.
 */
#include "runtime/net.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"

/* ---- the keeper ---- */

static bool has_family(const struct net_inside *inside, uint8_t family)
{
	return inside->address[family == AF_INET6].family == family;
}

/* Before there is a way out, so that no packet ever leaves for one of them. */
static int plan_denied(struct net_plan *plan, const struct net_inside *inside)
{
	struct net_prefix all[NET_PREFIXES_MAX];
	size_t count = net_ranges_all(all);

	for (size_t i = 0; i < count; i++) {
		if (has_family(inside, all[i].addr.family) &&
		    net_msg_unreachable(plan, &all[i], false) < 0)
			return -1;
	}
	for (size_t i = 0; i < inside->deny_count; i++) {
		if (has_family(inside, inside->deny[i].addr.family) &&
		    net_msg_unreachable(plan, &inside->deny[i], false) < 0)
			return -1;
	}
	return 0;
}

static int plan_device(struct net_plan *plan, const struct net_inside *inside)
{
	if (net_msg_link_up(plan, NET_INSIDE_INDEX) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		if (inside->address[i].family == 0)
			continue;
		if (net_msg_address(plan, NET_INSIDE_INDEX, &inside->address[i]) < 0 ||
		    (inside->gateway_mac &&
		     net_msg_neighbour(plan, NET_INSIDE_INDEX, &inside->gateway[i],
				       inside->gateway_mac) < 0) ||
		    net_msg_default(plan, NET_INSIDE_INDEX, &inside->gateway[i]) < 0)
			return -1;
	}
	return 0;
}

int net_plan_init(struct net_plan *plan, const struct net_inside *inside, struct err *e)
{
	net_plan_clear(plan);
	if (net_msg_link_up(plan, NET_LOOPBACK_INDEX) == 0 &&
	    (!net_has_device(inside->uplink) ||
	     (plan_denied(plan, inside) == 0 && plan_device(plan, inside) == 0)))
		return 0;
	return err_sys(e, "build the netlink messages of a sandbox's network");
}

/* ---- the child ---- */

/* Persistent: it is there, with its addresses and routes, before the process that serves it, and still
 * there when that process has to be started again. */
int net_make_tap(void)
{
	struct ifreq req = { .ifr_name = NET_INSIDE_NAME, .ifr_flags = IFF_TAP | IFF_NO_PI };
	_cleanup_fd_ int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	unsigned int index = NET_INSIDE_INDEX;

	if (fd < 0 || ioctl(fd, TUNSETIFINDEX, &index) < 0 || ioctl(fd, TUNSETIFF, &req) < 0)
		return -1;
	return ioctl(fd, TUNSETPERSIST, 1);
}

static int write_optional(int proc_sys_fd, const char *name, const char *text)
{
	/* A kernel without IPv6 has none of these. */
	return fd_write_file_at(proc_sys_fd, name, text) < 0 && errno != ENOENT ? -1 : 0;
}

/* Addresses and routes are what we say: nothing is made up from the link or learnt from it. Before the
 * device comes up. */
static int quiet_ipv6(const struct net_inside *inside, int proc_sys_fd)
{
	if (!net_has_device(inside->uplink))
		return 0;
	if (write_optional(proc_sys_fd, "net/ipv6/conf/" NET_INSIDE_NAME "/addr_gen_mode", "1") < 0 ||
	    write_optional(proc_sys_fd, "net/ipv6/conf/" NET_INSIDE_NAME "/accept_ra", "0") < 0)
		return -1;
	if (has_family(inside, AF_INET6))
		return 0;
	return write_optional(proc_sys_fd, "net/ipv6/conf/" NET_INSIDE_NAME "/disable_ipv6", "1");
}

static int send_plan(const struct net_plan *plan)
{
	_cleanup_fd_ int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return sock < 0 ? -1 : net_plan_send(sock, plan);
}

int net_apply(const struct net_plan *plan, const struct net_inside *inside, int proc_sys_fd)
{
	if (quiet_ipv6(inside, proc_sys_fd) < 0 || send_plan(plan) < 0)
		return -1;
	/* Both hold for this namespace only. Every inside group may send ICMP echo (CAP_NET_RAW is not
	 * there); every inside user may listen on port 80. */
	if (fd_write_file_at(proc_sys_fd, "net/ipv4/ping_group_range", "0 65534") < 0)
		return -1;
	return fd_write_file_at(proc_sys_fd, "net/ipv4/ip_unprivileged_port_start", "0");
}

/* ---- the resolver's address ---- */

static const char resolver_text[] =
	"# The resolver of this sandbox; it cannot reach the local network.\n"
	"nameserver " NET_INSIDE_ADDRESS "\n";

static bool has_text(int dir_fd, const char *name)
{
	char text[sizeof(resolver_text) + 1];
	_cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return len == (ssize_t)sizeof(resolver_text) - 1 &&
	       memcmp(text, resolver_text, sizeof(resolver_text) - 1) == 0;
}

void net_write_resolver(void)
{
	_cleanup_fd_ int etc = openat(AT_FDCWD, "/etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_fd_ int fd = -1;

	if (etc < 0 || has_text(etc, "resolv.conf"))
		return;
	(void)unlinkat(etc, "resolv.conf", 0);
	fd = openat(etc, "resolv.conf", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0)
		(void)fd_write_full(fd, resolver_text, sizeof(resolver_text) - 1);
}
