/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/handover.h - a keeper executes itself: another program, the same process
 *
 * It stays the parent of its commands and keeps its descriptors, so nothing is lost, not even a command
 * that somebody waits for. Sandboxes are taken over as by any other keeper (adopt.h), under locks that
 * are never let go of. What only memory knew travels in a sealed memory file whose number is in the
 * environment: peers, commands, the pipes of background work, labels that have not been told of a loss.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/err.h"
#include "runtime/base/fd.h"
#include "runtime/peer.h"
#include "runtime/registry.h"

/* In the environment between the two executions; no setting, so not named like one. */
#define HANDOVER_MARKER "_MCP_SANDBOX_HANDOVER"

struct handover_from {
	struct registry *reg;
	struct peers *peers;
	const struct peer *main_peer;
	pid_t front_pid;
	int home_lock;
	const int *listen_fds; /* the front that stays has copies; another one will want them */
	size_t listen_count;
	const char *program; /* absolute path */
	char *const *argv;
};

/* handover_is_quiet() - nothing is under way but what can be handed over: no start, no end, no file on its
 * way out. With reg->paused it becomes so soon. */
bool handover_is_quiet(const struct registry *reg, const struct peers *ps);

/* handover_exec() - does not return on success. On failure everything is as before. Return: -1. */
int handover_exec(const struct handover_from *from, struct err *e);

struct handover;

/* handover_open() - after an execution: what came through. The locks are inherited from here on.
 * Return: NULL when nothing came, or nothing this program understands (its descriptors are closed then). */
struct handover *handover_open(void);

/* handover_front() - the front that is still there. Return: its socket (the caller's), -1. */
int handover_front(struct handover *h, pid_t *ret_pid);

/* handover_listening() - the sockets it listens on, the caller's. Return: how many. */
size_t handover_listening(struct handover *h, int ret_fds[FD_PASS_MAX]);

/* handover_peers(), then, when the sandboxes were taken over, handover_commands(). */
void handover_peers(struct handover *h, struct peers *ps, struct peer *main_peer);
void handover_commands(struct handover *h, struct registry *reg);
void handover_done(struct handover *h); /* lets go of locks nobody wanted again */
