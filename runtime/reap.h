/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/reap.h - every child of the keeper, reaped at once
 *
 * Commands are children of the keeper but live in a sandbox's pid namespace: the kernel does not let
 * a sandbox's pid 1 die before somebody outside has reaped them, so a late reaper turns a teardown of
 * one millisecond into two seconds. Orphans (the keeper is a subreaper) are reaped too.
 *
 * A command may be dead before its joiner has reported its pid. While a report is expected, exits of
 * unknown children are remembered and handed out by reap_watch_reported().
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/base/loop.h"

struct reap_status {
	int exit_code; /* 0..255, or 128 + signal */
	int signal;    /* 0: exited by itself */
};

struct reap_child;
typedef void reap_fn(struct reap_child *child, struct reap_status status);

struct reap_child { /* embedded in its owner */
	pid_t pid; /* 0: not watched */
	reap_fn *fn;
	void *ctx;
	struct reap_child *next;
};

enum { REAP_BUCKETS = 128, REAP_EARLY_MAX = 64 };

struct reaper {
	struct loop_source source; /* signalfd of SIGCHLD */
	struct reap_child *bucket[REAP_BUCKETS];
	unsigned int expected; /* pid reports still to come */
	unsigned int early_next;
	struct {
		pid_t pid;
		struct reap_status status;
	} early[REAP_EARLY_MAX];
};

/* reap_start() - block SIGCHLD, become a subreaper, serve from the loop. */
int reap_start(struct reaper *r, struct loop *l, struct err *e);
void reap_stop(struct reaper *r);

/* reap_watch() - call fn once when pid, a child just forked, has been reaped.
 * Return: 0, -1 when pid is no child of ours (then nothing is watched). */
int reap_watch(struct reaper *r, struct reap_child *c, pid_t pid, reap_fn *fn, void *ctx);

/* reap_watch_reported() - the same for a pid that a joiner has reported: it may have ended, and been
 * reaped, already; then fn is called from here. */
int reap_watch_reported(struct reaper *r, struct reap_child *c, pid_t pid, reap_fn *fn, void *ctx);
void reap_forget(struct reaper *r, struct reap_child *c);

/* reap_expect() - a pid report is on its way (delta 1) or has arrived or failed (-1). */
void reap_expect(struct reaper *r, int delta);

/* reap_now() - reap everything that has ended, without waiting. */
void reap_now(struct reaper *r);
