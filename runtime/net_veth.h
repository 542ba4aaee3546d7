/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_veth.h - the uplink of a root keeper: a veth pair for each sandbox, masqueraded
 *
 * No bridge and no address on the host's end: both ends know the other's hardware address, so nobody
 * is asked, and the host has a route to the one address of each sandbox. Sandboxes share no link.
 */
#pragma once

#include "runtime/net_uplink.h"

/* net_veth_prepare() - take a number. Return: 0, -1. */
int net_veth_prepare(struct uplink *u, struct net_inside *ret, unsigned int *ret_link, struct err *e);

/* net_veth_connect() - Return: 0, -1 with errno. The pair goes with the sandbox's namespace. */
int net_veth_connect(struct uplink *u, const struct net_inside *inside, unsigned int link,
		     pid_t child);
