/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net.h - the inside of a sandbox's own network namespace
 *
 * The keeper turns a policy into netlink messages with libnl-route; the child sends those bytes from
 * inside its new namespace with plain system calls. So no library runs between clone and exec, and
 * what is sent can be unit-tested as bytes.
 *
 * What a mode is, inside:
 *
 *   none       the loopback interface is up; there is nothing else and no resolver
 *   allowlist  the same, and the sockets below: what leaves goes through the egress proxy
 *   internet   an interface with an address of ours and a default route, with every denied range
 *              (net_ranges.h) as an unreachable route; a resolver behind the sockets below. Where the host
 *              lets us have no uplink (NET_UPLINK_PROXY) it is built as allowlist is, and the proxy lets
 *              everything through but the denied ranges
 *
 * Sockets made inside and served outside: the child makes them when its loopback interface is up and
 * sends them to the keeper over a socket pair that was made for this one launch and that it closes
 * before it drops its rights. A socket belongs for good to the namespace it was made in, so whoever
 * holds the descriptor answers there, with no privilege over the sandbox, and whatever it connects to is
 * reached from its own namespace. The keeper finds them in struct launch when launch_progress() has
 * returned 1, and closes those that nobody takes (launch_done()). Holding one keeps the namespace, and
 * its interfaces, alive: whoever has taken one closes it when the sandbox ends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/err.h"
#include "runtime/net_msg.h"
#include "runtime/spec.h"

/* How packets of a sandbox in mode internet leave the host. */
enum net_uplink {
	NET_UPLINK_NONE,  /* the mode has none: none, allowlist */
	NET_UPLINK_VETH,  /* a veth pair, masqueraded by the host's kernel */
	NET_UPLINK_PASTA, /* a tap device served by a process of pasta */
	NET_UPLINK_SLIRP, /* the same with slirp4netns */
	NET_UPLINK_PROXY, /* no packet leaves: the egress proxy takes every connection but the denied */
};

/* Sockets made inside. */
enum net_socket {
	NET_SOCKET_PROXY,   /* TCP, listening on NET_INSIDE_ADDRESS:NET_PROXY_PORT; -1 with a real uplink */
	NET_SOCKET_DNS_UDP, /* bound to NET_INSIDE_ADDRESS:53 */
	NET_SOCKET_DNS_TCP, /* listening there */
	NET_SOCKET_ROUTE,   /* rtnetlink: the keeper changes routes inside through it (net_uplink.c) */
	NET_SOCKET_COUNT,
};

/* Our services inside; of 127.0.0.0/8 but not the address that programs of the sandbox listen on. */
#define NET_INSIDE_ADDRESS "127.0.0.53"
#define NET_PROXY_PORT_TEXT "3128"
enum { NET_PROXY_PORT = 3128, NET_DNS_PORT = 53, NET_BACKLOG = 512 };

/* The interface inside that leads out. A namespace may start with interfaces of other kinds, so the
 * number is chosen and not guessed. */
#define NET_INSIDE_NAME "eth0"
enum { NET_LOOPBACK_INDEX = 1, NET_INSIDE_INDEX = 100 };

/* What the keeper has settled before the clone. */
struct net_inside {
	enum net_mode mode;
	enum net_uplink uplink;
	/* IPv4 first, IPv6 second; family 0: the sandbox has no addresses of this kind */
	struct net_addr address[2], gateway[2];
	const uint8_t *gateway_mac;     /* NULL: the gateway is asked for it */
	const struct net_prefix *deny;  /* beyond the denied ranges: the host's own (net_host.h) */
	size_t deny_count;
};

/* net_has_sockets() - whether a mode has any of the sockets above. */
static inline bool net_has_sockets(enum net_mode mode)
{
	return mode != NET_NONE;
}

/* net_uses_proxy() - whether the egress proxy carries this sandbox's connections. */
static inline bool net_uses_proxy(enum net_mode mode, enum net_uplink uplink)
{
	return mode == NET_ALLOWLIST || (mode == NET_INTERNET && uplink == NET_UPLINK_PROXY);
}

/* net_has_tap() - whether packets leave through a process of ours. */
static inline bool net_has_tap(enum net_uplink uplink)
{
	return uplink == NET_UPLINK_PASTA || uplink == NET_UPLINK_SLIRP;
}

/* net_has_device() - whether the sandbox has an interface that leads out. */
static inline bool net_has_device(enum net_uplink uplink)
{
	return uplink == NET_UPLINK_VETH || net_has_tap(uplink);
}

/* net_plan_init() - the messages that make the inside what it is to be. Return: 0, -1. */
int net_plan_init(struct net_plan *plan, const struct net_inside *inside, struct err *e);

/* net_make_tap() - in the child: the device a user-mode uplink attaches to; it stays until the namespace
 * ends. Needs: CAP_NET_ADMIN over the namespace, the host's /dev. Must not allocate. Return: 0, -1. */
int net_make_tap(void);

/* net_apply() - in the child: set the namespace's own sysctls through a descriptor of a writable
 * /proc/sys (unprivileged ping and low ports, no IPv6 that configures itself) and send the plan.
 * Needs: CAP_NET_ADMIN over the namespace. Must not allocate. Return: 0, -1 with errno. */
int net_apply(const struct net_plan *plan, const struct net_inside *inside, int proc_sys_fd);

/* net_write_resolver() - in the child, inside its own root: /etc/resolv.conf names our resolver. Written
 * only when it does not yet, so an unchanged layer stays so. What a sandbox has made of its /etc is its own
 * affair: nothing is followed, nothing waits, and what cannot be written stays as it is.
 * Must not allocate. */
void net_write_resolver(void);

/* net_send_sockets() - in the child: make the sockets of this mode and send them through channel.
 * Needs: loopback up. Must not allocate. Return: 0, -1 with errno. */
int net_send_sockets(int channel, bool proxy);

/* net_recv_sockets() - in the keeper, once the child is past its last step: what it has sent, by
 * enum net_socket, -1 for what this sandbox does not have. Never waits. Return: 0, -1. */
int net_recv_sockets(int channel, int ret[NET_SOCKET_COUNT], struct err *e);

/* net_rejoin_sockets() - in a keeper that takes a sandbox over: a process of ours enters the namespace for
 * a moment, makes them again and ends; nothing inside sees it. Waits for it, also for a proxy on its way out
 * that still has them, at most two seconds; *patient is false from then on, so that a start is not delayed
 * by each sandbox that has taken one of these ports itself. Return: 0, -1. */
int net_rejoin_sockets(int pidfd, bool proxy, bool *patient, int ret[NET_SOCKET_COUNT], struct err *e);

/* net_close_sockets() - close those that are still there. */
void net_close_sockets(int sockets[NET_SOCKET_COUNT]);
