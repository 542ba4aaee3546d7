/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_uplink.h - how sandboxes of this keeper get out, chosen once at its start
 *
 *   veth    the keeper is root with CAP_NET_ADMIN, the host forwards already, nobody else's rules refuse
 *           what is forwarded, and numbers are free: one pair for each sandbox, no bridge
 *   pasta, slirp4netns
 *           else, where the program is installed and /dev/net/tun can be opened by all: a tap device
 *           inside, and one process of that program for each sandbox (root: slirp4netns only)
 *   proxy   else
 *
 * Nothing of the host's is changed for it: its forwarding, its rules and its routes stay what they were,
 * beside a table of ours and, for each running sandbox, an interface with a route to one address. The
 * kernel removes both when their owner is gone, however it went.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/net.h"
#include "runtime/net_host.h"
#include "runtime/net_nft.h"

enum {
	NET_LINKS_MAX = 250, /* sandboxes with a pair of their own at one time */
	NET_REASON_MAX = 256,
};

struct uplink {
	enum net_mode mode;
	enum net_uplink kind;
	const char *tool;             /* the program's path, for pasta and slirp4netns */
	char why_not[NET_REASON_MAX]; /* why it is nothing faster; "" */
	char remedy[ERR_REMEDY_MAX];  /* of the first of these reasons */
	struct net_host host;
	bool patient; /* with what keepers before us have left in sandboxes (net_rejoin_sockets()) */
	/* veth */
	int route_fd, nft_fd, slot_fd;
	unsigned int slot, next;
	struct net_prefix block4, block6; /* what our sandboxes are numbered with; family 0: none */
	struct net_addr gateway[2];
	bool used[NET_LINKS_MAX + 1];
};

#define UPLINK_INIT { .patient = true, .route_fd = -1, .nft_fd = -1, .slot_fd = -1 }

/* uplink_open() - choose. root: this process is root of the host, not of a storage namespace. Mode none and allowlist have none, which is no failure, and neither is a host
 * that has none: NET_UPLINK_PROXY. Return: 0, -1. */
int uplink_open(struct uplink *u, enum net_mode mode, bool root, struct err *e);
void uplink_close(struct uplink *u);

/* uplink_kind() - the way out of a sandbox of this mode. */
enum net_uplink uplink_kind(const struct uplink *u, enum net_mode mode);

/* uplink_prepare() - before a sandbox of this mode, the uplink's or a narrower one, is cloned: what its
 * inside is to be. *ret_link is what was taken
 * for it, 0 for nothing; uplink_release() gives it back. Return: 0, -1. */
int uplink_prepare(struct uplink *u, enum net_mode mode, struct net_inside *ret,
		   unsigned int *ret_link, struct err *e);

/* uplink_connect() - when its namespace exists, before the child goes on: the pair. Never waits.
 * Return: 0, -1 with errno. */
int uplink_connect(struct uplink *u, const struct net_inside *inside, unsigned int link, pid_t child);
void uplink_release(struct uplink *u, unsigned int link);

/* uplink_follow() - the host's addresses have changed: read them again. Return: 0, -1. */
int uplink_follow(struct uplink *u, struct err *e);

/* uplink_follow_inside() - bring the routes of one sandbox up to date, through a route socket of its
 * namespace (NET_SOCKET_ROUTE). What is no longer the host's stays denied until it is created anew.
 * Return: 0, -1 with errno. */
int uplink_follow_inside(const struct uplink *u, int route_socket);

/* net_uplink_name() - "veth", "pasta", ...: what a person is told. */
const char *net_uplink_name(enum net_uplink kind);

/* net_check_tun() - can a sandbox's root open the device that pasta and slirp4netns need? Return: 0, -1. */
int net_check_tun(struct err *e);

/* The two halves, for the doctor: each tries without leaving anything behind but what u holds. */
int uplink_try_veth(struct uplink *u, struct err *e);
int uplink_try_tool(struct uplink *u, bool root, struct err *e);
