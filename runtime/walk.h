/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/walk.h - look at every name below a directory, within bounds
 *
 * For workers: names are hostile bytes, depth and number have no bound of their own. Nothing is followed,
 * no mount is crossed, nothing is changed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum { WALK_DEPTH_MAX = 64 };

struct walk {
	uint64_t entries_max; /* names looked at */
	uint64_t ms_max;
	/* visit() - one name; st is its own, not of what a link leads to. false ends the walk. */
	bool (*visit)(struct walk *w, int dir_fd, const char *name, const struct stat *st);
	/* unreadable() - a name that cannot be looked at, or a directory that cannot be read. */
	bool (*unreadable)(struct walk *w, const char *name);
	void *ctx;
	/* result */
	uint64_t entries;
	bool partial; /* a bound was reached, or something is deeper than WALK_DEPTH_MAX */
};

/* walk_tree() - fd is read from its start and stays open. Return: true when the walk came to its end
 * (look at partial all the same), false when a callback ended it. */
bool walk_tree(struct walk *w, int fd);
