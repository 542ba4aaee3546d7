/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/wishes.h - what clients of the era before 2026-07-28 have asked for, for the life of a session
 *
 * From which severity on they want log messages, and which resources they watch. Bounded: the oldest
 * is forgotten, as it is with a restart.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/spec.h"

enum { WISHES_MAX = 256, WISH_SCOPE_MAX = 64, WISH_URI_MAX = 256 };

struct wish {
	char owner[OWNER_ID_LEN + 1], scope[WISH_SCOPE_MAX + 1];
	bool taken;
	int severity;           /* of a wish without URI */
	char uri[WISH_URI_MAX]; /* "": log messages */
};

struct wishes {
	struct wish *rows; /* WISHES_MAX of them, made for the first */
	size_t count;      /* ever made: the next one goes into row count % WISHES_MAX */
};

/* Whose. NULL stands for the only peer of a stream. */
struct wisher {
	const char *owner, *scope;
};

/* wishes_set() - uri "" with a severity, or a resource's. Return: 0, -1 (too long, no memory). */
int wishes_set(struct wishes *w, const struct wisher *who, const char *uri, int severity);
void wishes_drop(struct wishes *w, const struct wisher *who, const char *uri);
const struct wish *wishes_find(const struct wishes *w, const struct wisher *who, const char *uri);
void wishes_done(struct wishes *w);
