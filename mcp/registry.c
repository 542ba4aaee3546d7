/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/registry.c - look up what a program offers
 *
 * Runs in the front, without privilege; names and URIs come from clients.
 */
#include "mcp/registry.h"

#include <string.h>

bool registry_is_offered(const struct registry *g, const struct tool *t, const struct api_hello *h)
{
	return !g->is_offered || g->is_offered(t, h);
}

static bool completes(const struct registry *g)
{
	for (const struct prompt *const *p = g->prompts; p && *p; p++)
		if ((*p)->complete)
			return true;
	for (const struct resource *const *r = g->resources; r && *r; r++)
		if ((*r)->complete)
			return true;
	return false;
}

unsigned int registry_offers(const struct registry *g)
{
	return (g->tools ? OFFER_TOOLS : 0U) | (g->prompts ? OFFER_PROMPTS : 0U) |
	       (g->resources ? OFFER_RESOURCES : 0U) | (completes(g) ? OFFER_COMPLETIONS : 0U) |
	       (g->logs ? OFFER_LOGS : 0U) | (g->changes ? OFFER_CHANGES : 0U);
}

const struct tool *registry_tool(const struct registry *g, const struct api_hello *h, const char *name)
{
	for (const struct tool *const *t = g->tools; t && *t; t++)
		if (!strcmp((*t)->name, name) && registry_is_offered(g, *t, h))
			return *t;
	return NULL;
}

const struct prompt *registry_prompt(const struct registry *g, const struct api_hello *h, const char *name)
{
	for (const struct prompt *const *p = g->prompts; p && *p; p++)
		if (!strcmp((*p)->as.name, name) && registry_is_offered(g, &(*p)->as, h))
			return *p;
	return NULL;
}

bool resource_is_template(const struct resource *r)
{
	return strchr(r->uri, '{') != NULL;
}

const char *resource_variable(const struct resource *r, const char *uri, size_t *ret_len)
{
	const char *open = strchr(r->uri, '{'), *close = open ? strchr(open, '}') : NULL;
	size_t head = open ? (size_t)(open - r->uri) : 0, len = strlen(uri), tail;

	if (!close)
		return NULL;
	tail = strlen(close + 1);
	if (len <= head + tail || memcmp(uri, r->uri, head) != 0 ||
	    memcmp(uri + len - tail, close + 1, tail) != 0 || memchr(uri + head, '/', len - head - tail))
		return NULL;
	*ret_len = len - head - tail;
	return uri + head;
}

static bool is_at(const struct resource *r, const char *uri)
{
	size_t len;

	return resource_is_template(r) ? resource_variable(r, uri, &len) != NULL : !strcmp(r->uri, uri);
}

const struct resource *registry_resource(const struct registry *g, const struct api_hello *h, const char *uri)
{
	for (const struct resource *const *r = g->resources; r && *r; r++)
		if (is_at(*r, uri) && registry_is_offered(g, &(*r)->as, h))
			return *r;
	return NULL;
}
