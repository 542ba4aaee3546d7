/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/output.h - what a command writes: pipe -> /output/<n>.log, tail in a ring
 *
 * One pipe for stdout and stderr, so their order is kept. The keeper moves it into a numbered log of
 * the label, up to a cap; beyond the cap, or when the disk is full, a ring in a memory file keeps the
 * last 64 KiB. The pipe is read on after the answer, so that background children do not die of SIGPIPE.
 * Work per wake-up is bounded: `yes` costs its share and no more.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/err.h"
#include "runtime/base/loop.h"

enum {
	OUTPUT_LOGS_KEPT = 16,
	OUTPUT_TOTAL_FACTOR = 4, /* a label's logs together: at most this many times the cap of one */
	OUTPUT_RING_SIZE = 64 * 1024,
	OUTPUT_DRAINS_MAX = 32, /* pipes a sandbox's background work may keep open */
};

/* The logs of one label: the newest are numbers next-1, next-2, ... */
struct output;
struct output_logs {
	int dir_fd; /* borrowed; -1: no logs at all */
	uint64_t next;
	uint64_t cap; /* bytes of one log */
	uint64_t total;
	uint64_t size[OUTPUT_LOGS_KEPT]; /* by number modulo */
	struct output *writing;		 /* logs of commands without an answer: never removed */
};

/* output_logs_init() - find the newest number and the sizes kept; removes what is over the bounds. */
int output_logs_init(struct output_logs *logs, int dir_fd, uint64_t cap, struct err *e);

typedef void output_eof_fn(struct output *out, void *ctx);

struct output {
	struct loop_source source; /* the pipe's read end */
	struct output_logs *logs;
	int log_fd, ring_fd;
	uint64_t log_number, log_bytes, ring_bytes, total_bytes;
	bool spilled;  /* no more into the log */
	bool answered; /* nobody reads the ring any more */
	output_eof_fn *on_eof;
	void *ctx;
	struct output *next;
	struct output *next_writing;
};

/* output_start() - make the pipe, owned by uid/gid so that /dev/stdout can be opened inside, and read
 * it from the loop. Return: the write end (the caller's), -1. */
int output_start(struct output *out, struct loop *l, struct output_logs *logs, uint32_t uid,
		 uint32_t gid, output_eof_fn *on_eof, void *ctx, struct err *e);

/* What an output is made of, for a handover; descriptors by number, -1: none. */
struct output_state {
	int32_t pipe_fd, log_fd, ring_fd;
	uint32_t spilled, answered;
	uint64_t log_number, log_bytes, ring_bytes, total_bytes;
};
void output_save(const struct output *out, struct output_state *ret);

/* output_restore() - the same output again, reading on; the descriptors are its own from here on, and
 * closed on failure. Return: 0, -1. */
int output_restore(struct output *out, struct loop *l, struct output_logs *logs,
		   const struct output_state *state, struct err *e);

/* output_settle() - take what is in the pipe now, bounded, without waiting. */
void output_settle(struct output *out);

struct output_result {
	int fds[2]; /* read-only; the caller closes */
	size_t fd_count;
	uint64_t total_bytes, log_bytes, log_number, tail_bytes, tail_start;
};

/* output_result() - what there is so far; from here on the ring is not written any more. */
void output_result(struct output *out, struct output_result *ret);

bool output_is_open(const struct output *out); /* some process still holds the write end */
void output_done(struct output *out);

/* output_pipe() - a pipe for a command: inside_end (0 or 1) is chowned to uid/gid and left blocking.
 * Return: 0, -1. */
int output_pipe(int ret_fds[2], int inside_end, uint32_t uid, uint32_t gid, struct err *e);
