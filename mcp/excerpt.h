/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/excerpt.h - from a command's raw log to the cleaned beginning and end that a reply shows
 *
 * Works in slices: a log of 64 MiB must not keep other calls waiting. Reads only the descriptors the
 * keeper attached.
 */
#pragma once

#include <stdbool.h>

#include "mcp/budget.h"
#include "mcp/clean.h"
#include "runtime/api.h"

struct excerpt {
	struct api_exec_done done;
	int log_fd, tail_fd; /* -1: none; owned */
	uint64_t offset;     /* next byte of the log */
	struct clean clean;
	struct budget budget;
};

/* excerpt_start() - takes the descriptors out of fds. */
void excerpt_start(struct excerpt *x, const struct api_exec_done *d, int *fds, size_t fd_count);
void excerpt_done(struct excerpt *x);

/* excerpt_step() - one slice. Return: true when everything has been read. */
bool excerpt_step(struct excerpt *x);

/* excerpt_mentions() - does what will be shown contain this text? */
bool excerpt_mentions(const struct excerpt *x, const char *text);

/* excerpt_write() - the inside of a JSON string: the text, or head, omission line, tail. With kept
 * false the line names no file. */
void excerpt_write(const struct excerpt *x, struct buf *b, bool kept);
