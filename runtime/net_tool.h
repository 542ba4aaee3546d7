/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/net_tool.h - the process of pasta or slirp4netns that serves one sandbox
 *
 * A guard, a fork of the keeper, is its parent and ends it when the keeper says so or is gone: these
 * programs change their user namespace, and the kernel then forgets whose death was to be theirs.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/net.h"

/* net_tool_start() - serve the tap device of the sandbox whose process 1 this is. *ret_hold: the tool
 * lives while it is open. Return: the guard's pid, a child to reap; -1. */
pid_t net_tool_start(enum net_uplink kind, const char *path, const struct net_inside *inside,
		     pid_t init, int *ret_hold, struct err *e);

/* net_tool_serves() - take what the sandbox's route socket has. Return: 1 the device has somebody to
 * serve it, 0 not yet, -1 with errno. */
int net_tool_serves(int route_socket);
