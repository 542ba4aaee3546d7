/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/egress.h - the keeper's side of the egress proxies
 *
 * One proxy (runtime/proxy) per owner, started with the first sandbox that needs it, ended with the last,
 * replaced when it dies. The keeper hands it sockets that were made inside sandboxes and learns from it
 * what was blocked; of what sandboxes and servers say to each other it sees nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/api.h"
#include "runtime/base/err.h"

struct registry;
struct sandbox;

/* egress_attach() - the sandbox's pid 1 runs: have the sockets in sb->launch served that its network
 * mode wants served, close the others. Return: 0, -1. */
int egress_attach(struct sandbox *sb, struct err *e);

/* egress_detach() - the sandbox is gone: its sockets and connections are closed. */
void egress_detach(struct sandbox *sb);

/* egress_has_proxy() - does what its commands connect to go through the proxy? */
bool egress_has_proxy(const struct sandbox *sb);

/* egress_mark() - a point in time for egress_blocked(). */
uint64_t egress_mark(const struct sandbox *sb);

/* egress_blocked() - what was refused to the sandbox since the mark. Reads first what the proxies have
 * said until now. Return: how many different destinations; ret gets the first API_BLOCKED_MAX. */
uint32_t egress_blocked(struct sandbox *sb, uint64_t mark,
			char ret[API_BLOCKED_MAX][API_BLOCKED_TEXT_MAX]);

/* egress_done() - the keeper ends: the proxies too. */
void egress_done(struct registry *reg);
