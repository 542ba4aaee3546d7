/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_tree.h - what the "image" and "workspace" verbs have in common */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mcp/cli.h"
#include "runtime/image.h"
#include "runtime/store.h"
#include "runtime/userns.h"

struct cli_tree {
	struct settings settings;
	struct idrange ids;
	struct store store;
};

/* cli_tree_begin() - become root of the storage namespace (ordinary user; re-executes once), open the
 * state directory, and from then on turn INT, TERM and HUP into an error that is cleaned up after. */
int cli_tree_begin(struct cli_call *call, struct cli_tree *ret, struct err *e);
void cli_tree_done(struct cli_tree *t);

/* cli_tree_say() - one line of progress on standard error. */
void cli_tree_say(const char *text);

/* cli_tree_say_report() - what was left out of an archive or changed, one line each; nothing if nothing. */
void cli_tree_say_report(const struct tar_report *report);

/* cli_tree_room() - how much may be unpacked: what the disk has above SANDBOX_MIN_FREE, at most cap. */
int cli_tree_room(const struct cli_tree *t, uint64_t cap, uint64_t *ret, struct err *e);

/* cli_tree_open_archive() - a regular file, or "-" for standard input. Return: descriptor, -1. */
int cli_tree_open_archive(const char *file, struct err *e);

/* A file that appears under its name only when it is complete, or standard output ("-"). */
struct cli_archive_out {
	int fd;
	const char *file;
	char temporary[PATH_MAX]; /* "" for standard output */
};

int cli_archive_create(struct cli_archive_out *out, const char *file, struct err *e);

/* cli_archive_finish() - result 0: give it its name; else remove it. Return: result, or -1. */
int cli_archive_finish(struct cli_archive_out *out, int result, struct err *e);
