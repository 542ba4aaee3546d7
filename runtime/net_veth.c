/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_veth.c - the uplink of a root keeper: a veth pair for each sandbox, masqueraded
 *
 * Runs in the keeper with CAP_NET_ADMIN over its network namespace. Peers: rtnetlink, nfnetlink and
 * the host's own /proc/sys, of which only what belongs to interfaces made here is written.
 *
 * Numbers. Several keepers may work in one network namespace. Each holds a slot, which is the name of
 * an abstract socket it is bound to: the kernel gives a name to one process only and takes it back when
 * that one ends. A slot has its own addresses, interface names and table.
 */
#include "runtime/net_veth.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"

enum {
	SLOTS = 64,
	BLOCK_BITS = 18,        /* 64 slots of 256 addresses */
	SLOT_BITS = 24,
	GATEWAY_NUMBER = 254,   /* within a slot; sandboxes have 1..NET_LINKS_MAX */
	BLOCK6_BITS = 48, SLOT6_BITS = 64,
	SYSCTL_PATH_MAX = 96,
	/* The kernel takes our number for the inner end only with one for the outer end: far beyond what
	 * it counts up to, and by slot and link nobody else's. */
	HOST_INDEX_FIRST = 1000000, LINKS_BITS = 8,
};

_Static_assert((int)NET_LINKS_MAX < (int)GATEWAY_NUMBER, "no sandbox has the gateway's address");

static const uint8_t host_mac[NET_MAC_LEN] = { 0x02, 0x6d, 0x63, 0x70, 0x73, 0x01 };
static const uint8_t inside_mac[NET_MAC_LEN] = { 0x02, 0x6d, 0x63, 0x70, 0x73, 0x02 };

/* Where nothing public is and hardly anybody's LAN: the benchmark network first. The first block that
 * shares no address with anything of the host is taken. */
static const struct net_prefix blocks4[] = {
	{ { AF_INET, { 198, 18, 64 } }, BLOCK_BITS, 0 },
	{ { AF_INET, { 198, 18, 192 } }, BLOCK_BITS, 0 },
	{ { AF_INET, { 198, 19, 64 } }, BLOCK_BITS, 0 },
	{ { AF_INET, { 198, 19, 192 } }, BLOCK_BITS, 0 },
	{ { AF_INET, { 10, 213, 64 } }, BLOCK_BITS, 0 },
	{ { AF_INET, { 172, 29, 64 } }, BLOCK_BITS, 0 },
	{ { AF_INET, { 100, 121, 64 } }, BLOCK_BITS, 0 },
};
static const struct net_prefix blocks6[] = {
	{ { AF_INET6, { 0xfd, 0x6d, 0x63, 0x70, 0x73, 0x01 } }, BLOCK6_BITS, 0 },
	{ { AF_INET6, { 0xfd, 0x6d, 0x63, 0x70, 0x73, 0x02 } }, BLOCK6_BITS, 0 },
};

/* ---- choosing ---- */

static bool is_on(const char *sysctl)
{
	char text[8];

	return fd_read_file_at(AT_FDCWD, sysctl, text, sizeof(text)) > 0 && text[0] == '1';
}

/* A host that forwards is a router for every network it has; that is its owner's decision, and it would
 * stay on after us. */
static int check_forwarding(struct err *e)
{
	if (is_on("/proc/sys/net/ipv4/ip_forward"))
		return 0;
	err_set(e, ERR_HOST, "this host does not forward packets");
	return err_remedy(e, "sysctl -w net.ipv4.ip_forward=1 (and keep it in /etc/sysctl.d) makes "
			     "it a router between its networks");
}

static int check_other_rules(struct err *e)
{
	char who[NET_NFT_NAME_MAX] = "";
	int r = net_nft_forward_refused(who, e);

	if (r <= 0)
		return r;
	err_set(e, ERR_HOST, "the host's packet rules refuse what is forwarded (table %s)", who);
	return err_remedy(e, "apt-get install slirp4netns: its way out needs no forwarding");
}

static int take_slot(struct uplink *u, struct err *e)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		struct sockaddr_un at = { .sun_family = AF_UNIX };
		int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "mcp-sandbox/net/%u", i);
		socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);

		u->slot_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (u->slot_fd < 0)
			return err_sys(e, "make a socket");
		if (bind(u->slot_fd, (const struct sockaddr *)&at, size) == 0) {
			u->slot = i;
			return 0;
		}
		close_fd(&u->slot_fd);
		if (errno != EADDRINUSE)
			return err_sys(e, "take a block of addresses");
	}
	return err_set(e, ERR_LIMIT, "%d servers on this host have sandboxes with a network", SLOTS);
}

static const struct net_prefix *free_block(const struct net_host *host, const struct net_prefix *blocks,
					   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!net_host_uses(host, &blocks[i]))
			return &blocks[i];
	}
	return NULL;
}

static struct net_addr number4(const struct uplink *u, unsigned int n)
{
	struct net_addr a = u->block4.addr;

	a.bytes[3] = (uint8_t)n;
	return a;
}

static struct net_addr number6(const struct uplink *u, unsigned int n)
{
	struct net_addr a = u->block6.addr;

	a.bytes[15] = (uint8_t)n;
	return a;
}

/* IPv6 where the host has a way out with it and forwards it; without, the inside has none and programs
 * do not wait for it. */
static void choose_block6(struct uplink *u)
{
	const struct net_prefix *block = NULL;

	if (u->host.has_default6 && is_on("/proc/sys/net/ipv6/conf/all/forwarding"))
		block = free_block(&u->host, blocks6, ARRAY_SIZE(blocks6));
	if (!block)
		return;
	u->block6 = *block;
	u->block6.len = SLOT6_BITS;
	u->block6.addr.bytes[7] = (uint8_t)u->slot;
	u->gateway[1] = number6(u, GATEWAY_NUMBER);
}

static int choose_blocks(struct uplink *u, struct err *e)
{
	const struct net_prefix *block = free_block(&u->host, blocks4, ARRAY_SIZE(blocks4));

	if (!block)
		return err_set(e, ERR_HOST, "every block of addresses for sandboxes is in use here");
	u->block4 = *block;
	u->block4.len = SLOT_BITS;
	u->block4.addr.bytes[2] = (uint8_t)(block->addr.bytes[2] + u->slot);
	u->gateway[0] = number4(u, GATEWAY_NUMBER);
	choose_block6(u);
	return 0;
}

static int try_veth(struct uplink *u, struct err *e)
{
	char table[NET_NFT_NAME_MAX];

	if (check_forwarding(e) < 0 || check_other_rules(e) < 0 ||
	    take_slot(u, e) < 0 || choose_blocks(u, e) < 0)
		return -1;
	u->route_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (u->route_fd < 0)
		return err_sys(e, "make a netlink socket");
	(void)snprintf(table, sizeof(table), "mcp-sandbox-%u", u->slot);
	u->nft_fd = net_nft_open(table, e);
	if (u->nft_fd < 0)
		return -1;
	/* Names of a keeper before us in this slot may still be on their way out. */
	u->next = (unsigned int)getpid() % NET_LINKS_MAX;
	u->kind = NET_UPLINK_VETH;
	return 0;
}

int uplink_try_veth(struct uplink *u, struct err *e)
{
	if (try_veth(u, e) == 0)
		return 0;
	uplink_close(u);
	return -1;
}

/* ---- one sandbox ---- */

static void link_name(const struct uplink *u, unsigned int link, char ret[IF_NAMESIZE])
{
	(void)snprintf(ret, IF_NAMESIZE, NET_VETH_PREFIX "%02x%02x", u->slot, link);
}

/* A pair may be there without being ours to count: of a sandbox taken over from a keeper before us, or one
 * that the kernel is still taking away. */
static bool is_free(const struct uplink *u, unsigned int link)
{
	char name[IF_NAMESIZE];

	link_name(u, link, name);
	return !u->used[link] && if_nametoindex(name) == 0;
}

int net_veth_prepare(struct uplink *u, struct net_inside *ret, unsigned int *ret_link, struct err *e)
{
	unsigned int n = 0;

	for (unsigned int tries = 0; tries < NET_LINKS_MAX && n == 0; tries++) {
		u->next = u->next % NET_LINKS_MAX + 1;
		if (is_free(u, u->next))
			n = u->next;
	}
	if (n == 0)
		return err_set(e, ERR_LIMIT, "%d sandboxes of this server have a network",
			       NET_LINKS_MAX);
	u->used[n] = true;
	*ret_link = n;
	ret->gateway_mac = host_mac;
	ret->address[0] = number4(u, n);
	ret->gateway[0] = u->gateway[0];
	if (u->block6.addr.family != 0) {
		ret->address[1] = number6(u, n);
		ret->gateway[1] = u->gateway[1];
	}
	return 0;
}

static int set_sysctl(const char *family, const char *name, const char *key, const char *value)
{
	char path[SYSCTL_PATH_MAX];

	(void)snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, name, key);
	return fd_write_file_at(AT_FDCWD, path, value);
}

/* Before it is up. What a sandbox sends has its own address or is not taken; the host has no address and
 * learns nothing on it. */
static int set_up_host_end(const char *name, bool six)
{
	if (set_sysctl("ipv4", name, "rp_filter", "1") < 0 ||
	    set_sysctl("ipv4", name, "forwarding", "1") < 0 ||
	    set_sysctl("ipv4", name, "send_redirects", "0") < 0)
		return -1;
	if (set_sysctl("ipv6", name, "addr_gen_mode", "1") < 0 && errno != ENOENT)
		return -1;
	if (!six)
		return set_sysctl("ipv6", name, "disable_ipv6", "1") < 0 && errno != ENOENT ? -1 : 0;
	return set_sysctl("ipv6", name, "accept_ra", "0");
}

static int make_pair(const struct uplink *u, const char *name, int index, pid_t child)
{
	const struct net_veth_end here = { name, index, host_mac };
	const struct net_veth_end there = { NET_INSIDE_NAME, NET_INSIDE_INDEX, inside_mac };
	static struct net_plan plan; /* too large for the stack; one thread */

	net_plan_clear(&plan);
	if (net_msg_veth(&plan, &here, &there, child) < 0)
		return -1;
	return net_plan_send(u->route_fd, &plan);
}

static int route_pair(const struct uplink *u, const struct net_inside *inside, int index)
{
	static struct net_plan plan;

	net_plan_clear(&plan);
	if (net_msg_link_up(&plan, index) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		if (inside->address[i].family == 0)
			continue;
		if (net_msg_neighbour(&plan, index, &inside->address[i], inside_mac) < 0 ||
		    net_msg_host(&plan, index, &inside->address[i]) < 0)
			return -1;
	}
	return net_plan_send(u->route_fd, &plan);
}

int net_veth_connect(struct uplink *u, const struct net_inside *inside, unsigned int link, pid_t child)
{
	char name[IF_NAMESIZE];
	int index = HOST_INDEX_FIRST + (int)(u->slot << LINKS_BITS | link);

	link_name(u, link, name);
	if (make_pair(u, name, index, child) < 0 ||
	    set_up_host_end(name, inside->address[1].family != 0) < 0)
		return -1;
	return route_pair(u, inside, index);
}
