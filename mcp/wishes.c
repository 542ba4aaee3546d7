/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/wishes.c - what clients of the era before 2026-07-28 have asked for
 *
 * Runs in the front, without privilege; URIs come from clients and are compared, never opened.
 */
#include "mcp/wishes.h"

#include <stdlib.h>
#include <string.h>

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static bool is_of(const struct wish *w, const struct wisher *who, const char *uri)
{
	return w->taken && !strcmp(w->owner, or_empty(who->owner)) && !strcmp(w->scope, or_empty(who->scope)) &&
	       !strcmp(w->uri, uri);
}

const struct wish *wishes_find(const struct wishes *w, const struct wisher *who, const char *uri)
{
	size_t count = w->count < WISHES_MAX ? w->count : WISHES_MAX;

	for (size_t i = 0; i < count; i++)
		if (is_of(&w->rows[i], who, uri))
			return &w->rows[i];
	return NULL;
}

void wishes_drop(struct wishes *w, const struct wisher *who, const char *uri)
{
	for (size_t i = 0; i < WISHES_MAX && i < w->count; i++)
		if (is_of(&w->rows[i], who, uri))
			w->rows[i].taken = false;
}

int wishes_set(struct wishes *w, const struct wisher *who, const char *uri, int severity)
{
	struct wish *row;

	if (!w->rows)
		w->rows = calloc(WISHES_MAX, sizeof(*w->rows));
	if (!w->rows || strlen(or_empty(who->owner)) > OWNER_ID_LEN || strlen(or_empty(who->scope)) > WISH_SCOPE_MAX ||
	    strlen(uri) >= WISH_URI_MAX)
		return -1;
	wishes_drop(w, who, uri);
	row = &w->rows[w->count++ % WISHES_MAX];
	memset(row, 0, sizeof(*row));
	strncpy(row->owner, or_empty(who->owner), sizeof(row->owner) - 1);
	strncpy(row->scope, or_empty(who->scope), sizeof(row->scope) - 1);
	strncpy(row->uri, uri, sizeof(row->uri) - 1);
	row->severity = severity;
	row->taken = true;
	return 0;
}

void wishes_done(struct wishes *w)
{
	free(w->rows);
	*w = (struct wishes){ 0 };
}
