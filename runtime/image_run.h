/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_run.h - wait for a set of boxes that belong together, and be interruptible */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/image.h"
#include "runtime/image_box.h"

enum { RUN_BOXES_MAX = 4, RUN_LINE_MAX = 400 };

/* The diagnostics of the boxes arrive on one pipe, line by line, escaped. */
struct image_run {
	struct box_proc proc[RUN_BOXES_MAX];
	int status[RUN_BOXES_MAX]; /* exit status once all have ended */
	size_t count;
	int log_read, log_write; /* log_write is for the boxes; closed by image_run_wait() */
	image_say_fn *say;       /* NULL: lines are not shown */
	const char *waiting;     /* said with the seconds passed when nothing else has been for a while */
	char line[RUN_LINE_MAX];
	size_t line_len;
	const char *mark;        /* stands in a line that tells what went wrong; "" */
	char blame[RUN_LINE_MAX]; /* the first such line; without one, the newest line of all */
	bool has_mark;
};

int image_run_init(struct image_run *run, struct err *e);

/* image_run_add() - start one more box; on failure those already running are ended. */
int image_run_add(struct image_run *run, const struct idrange *ids, const struct box *box,
		  struct err *e);

/* image_run_wait() - until every box has ended. Return: 0, -1 interrupted (all have been ended). */
int image_run_wait(struct image_run *run, struct err *e);

/* image_run_blame() - record a failure with the line that tells most about it. Return: -1. */
int image_run_blame(const struct image_run *run, struct err *e, const char *what);
void image_run_done(struct image_run *run);

/* image_interrupted() - whether a signal has arrived since image_signals_begin(). Return: 0, -1. */
int image_interrupted(struct err *e);

/* image_signal_fd() - to poll beside something else; -1 when image_signals_begin() was not called. */
int image_signal_fd(void);
