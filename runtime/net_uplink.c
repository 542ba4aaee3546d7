/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_uplink.c - how sandboxes of this keeper get out, chosen once at its start
 *
 * Runs in the keeper. Input is what the host's kernel says of its network; nothing a sandbox or a peer on
 * the network sent is read here.
 */
#include "runtime/net_uplink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/net_veth.h"

const char *net_uplink_name(enum net_uplink kind)
{
	switch (kind) {
	case NET_UPLINK_NONE:
		break;
	case NET_UPLINK_VETH:
		return "veth";
	case NET_UPLINK_PASTA:
		return "pasta";
	case NET_UPLINK_SLIRP:
		return "slirp4netns";
	case NET_UPLINK_PROXY:
		return "proxy";
	}
	return "none";
}

/* ---- user-mode programs ---- */

static const struct tool {
	enum net_uplink kind;
	const char *path;
	bool for_root; /* net_tool.c says why */
} tools[] = {
	{ NET_UPLINK_PASTA, "/usr/bin/pasta", false },
	{ NET_UPLINK_SLIRP, "/usr/bin/slirp4netns", true },
};

/* The child opens the device as the sandbox's root, an id that no rule of the host's names. */
int net_check_tun(struct err *e)
{
	_cleanup_fd_ int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0) {
		err_sys(e, "open /dev/net/tun");
		return err_remedy(e, "modprobe tun && chmod 0666 /dev/net/tun");
	}
	if (fstat(fd, &st) < 0 || (st.st_mode & 06) == 06)
		return 0;
	err_set(e, ERR_HOST, "/dev/net/tun is not for all users (mode %04o)", st.st_mode & 07777);
	return err_remedy(e, "chmod 0666 /dev/net/tun");
}

int uplink_try_tool(struct uplink *u, bool root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if ((root && !tools[i].for_root) || access(tools[i].path, X_OK) < 0)
			continue;
		/* It takes its own addresses from there, and ends where there is none. */
		if (tools[i].kind == NET_UPLINK_PASTA && !u->host.has_default4)
			continue;
		if (net_check_tun(e) < 0)
			return -1;
		u->kind = tools[i].kind;
		u->tool = tools[i].path;
		return 0;
	}
	if (root) {
		err_set(e, ERR_HOST, "slirp4netns is not installed");
		return err_remedy(e, "apt-get install slirp4netns");
	}
	err_set(e, ERR_HOST, u->host.has_default4 ? "neither pasta nor slirp4netns is installed" :
						    "this host has no default route, which pasta needs");
	return err_remedy(e, "apt-get install passt slirp4netns");
}

/* What a user-mode program serves is in a namespace of its own: the same numbers for all. */
static const struct net_addr tap_address = { AF_INET, { 198, 18, 0, 15 } };
static const struct net_addr tap_gateway = { AF_INET, { 198, 18, 0, 2 } };

/* ---- all of them ---- */

static void note(struct uplink *u, const struct err *e)
{
	size_t len = strlen(u->why_not);

	if (len == 0)
		memcpy(u->remedy, e->remedy, sizeof(u->remedy));
	(void)snprintf(u->why_not + len, sizeof(u->why_not) - len, "%s%s", len > 0 ? "; " : "",
		       e->message);
}

int uplink_open(struct uplink *u, enum net_mode mode, bool root, struct err *e)
{
	struct err why = { 0 };

	*u = (struct uplink)UPLINK_INIT;
	u->mode = mode;
	if (mode != NET_INTERNET)
		return 0;
	if (net_host_read(&u->host, e) < 0)
		return -1;
	if (root && uplink_try_veth(u, &why) == 0)
		return 0;
	if (root)
		note(u, &why);
	if (uplink_try_tool(u, root, &why) == 0)
		return 0;
	note(u, &why);
	u->kind = NET_UPLINK_PROXY;
	return 0;
}

void uplink_close(struct uplink *u)
{
	close_fd(&u->route_fd);
	close_fd(&u->nft_fd);
	close_fd(&u->slot_fd);
}

enum net_uplink uplink_kind(const struct uplink *u, enum net_mode mode)
{
	return mode == NET_INTERNET ? u->kind : NET_UPLINK_NONE;
}

int uplink_prepare(struct uplink *u, enum net_mode mode, struct net_inside *ret, unsigned int *ret_link,
		   struct err *e)
{
	*ret = (struct net_inside){ .mode = mode, .uplink = uplink_kind(u, mode), .deny = u->host.deny,
				    .deny_count = u->host.deny_count };
	*ret_link = 0;
	if (ret->uplink == NET_UPLINK_VETH)
		return net_veth_prepare(u, ret, ret_link, e);
	if (net_has_tap(ret->uplink)) {
		ret->address[0] = tap_address;
		ret->gateway[0] = tap_gateway;
	}
	return 0;
}

int uplink_connect(struct uplink *u, const struct net_inside *inside, unsigned int link, pid_t child)
{
	return inside->uplink == NET_UPLINK_VETH ? net_veth_connect(u, inside, link, child) : 0;
}

void uplink_release(struct uplink *u, unsigned int link)
{
	u->used[link] = false;
}

/* ---- following ---- */

int uplink_follow(struct uplink *u, struct err *e)
{
	static struct net_host now; /* too large for the stack of an event; one thread */

	if (net_host_read(&now, e) < 0)
		return -1;
	u->host = now;
	return 0;
}

int uplink_follow_inside(const struct uplink *u, int route_socket)
{
	static struct net_plan plan;
	bool has_six = u->kind == NET_UPLINK_VETH && u->block6.addr.family != 0;

	net_plan_clear(&plan);
	for (size_t i = 0; i < u->host.deny_count; i++) {
		const struct net_prefix *p = &u->host.deny[i];

		if ((p->addr.family == AF_INET || has_six) &&
		    net_msg_unreachable(&plan, p, true) < 0)
			return -1;
	}
	return net_plan_send(route_socket, &plan);
}
