/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/keeper.h - the privileged half: one epoll loop that owns every sandbox
 *
 * Runs as host root with a cut bounding set, or as root of the storage namespace. Parses no network
 * byte, no JSON, no file of a sandbox or an image. Never waits for a task that a sandbox can signal,
 * freeze, throttle or kill.
 */
#pragma once

#include "runtime/base/err.h"
#include "runtime/cgroup.h"
#include "runtime/project.h"
#include "runtime/spec.h"
#include "runtime/tokens.h"
#include "runtime/userns.h"

enum keeper_kind {
	KEEPER_STDIO, /* ends, with all its sandboxes, when the front ends */
	KEEPER_ONCE,  /* serves one control client (exec, stop, reset, rm), then ends the same way */
	KEEPER_SERVICE, /* holds SANDBOX_HOME; outlives its front and is outlived by its sandboxes, which
			 * the next one adopts */
};

struct doors;
struct handover;

struct keeper_start {
	const struct settings *settings;
	const struct cgroup_tree *cgroup; /* from cgroup_acquire(); root_fd -1: none (best-effort) */
	const struct idrange *ids; /* the default owner's */
	struct projects *projects; /* NULL: none */
	enum keeper_kind kind;
	int peer_fd;   /* our end of the socket to the front or the one-shot client; owned */
	pid_t peer_pid; /* child to reap; 0 when it is not our child */
	const struct token_table *fixed_tokens; /* NULL: settings->owner is the only one; else the token file
						 * counts, and these rows (MCP_TOKEN) besides */
	/* KEEPER_SERVICE: run another front, when the one before has died. Return: our end, -1. */
	int (*new_front)(void *ctx, pid_t *ret_pid, struct err *e);
	void *ctx; /* of new_front */
	struct doors *doors; /* NULL: the front speaks through its standard descriptors */
	struct handover *handover; /* what this process was before it executed itself; NULL: nothing */
	char *const *argv; /* KEEPER_SERVICE: to execute itself with, on SIGUSR2; NULL: it does not */
	const struct err *start_failure; /* NULL, or why no sandbox can be made: told in API_HELLO, and
					  * the answer to every request until the peer ends */
};

/* keeper_run() - serve until the peer is gone; then end commands and sandboxes. Files and layers stay.
 * A service's keeper serves until SIGTERM and leaves its sandboxes running.
 * Return: exit status; -1 when it could not start (the peer has been told in API_HELLO). */
int keeper_run(const struct keeper_start *start, struct err *e);

/* keeper_connect() - connect to the keeper with this pid through run/<pid>.sock. Return: socket, -1. */
int keeper_connect(int run_fd, pid_t pid, struct err *e);
