/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/lists.c - results that change only with what is registered: capabilities, instructions, lists
 *
 * Runs in the front, without privilege, on the program's own tables and the keeper's hello. There is
 * one page of everything: many clients do not ask for a second one.
 */
#include "mcp/lists.h"

#include <inttypes.h>

#include "mcp/json_write.h"
#include "mcp/protocol.h"

enum { TEXT_MAX = 256 * 1024, WORDS_MAX = 8 * 1024 };

static const char *bool_text(bool value)
{
	return value ? "true" : "false";
}

/* ---- a tool ---- */

static void write_schema(struct buf *b, const struct tool *t, const struct api_hello *h)
{
	const char *separator = "";

	if (t->schema) {
		buf_append_str(b, t->schema);
		return;
	}
	buf_append_str(b, "{\"type\":\"object\",\"properties\":{");
	for (const struct tool_parameter *p = t->parameters; p->name; p++) {
		if (p->with_user && !h->as_user)
			continue;
		buf_printf(b, "%s\"%s\":{\"type\":\"%s\",\"description\":", p == t->parameters ? "" : ",",
			   p->name, p->type);
		json_write_string(b, p->description);
		if (p->header)
			buf_printf(b, ",\"x-mcp-header\":\"%s\"", p->header);
		buf_append_str(b, "}");
	}
	buf_append_str(b, "},\"required\":[");
	for (const struct tool_parameter *p = t->parameters; p->name; p++) {
		if (!p->required)
			continue;
		buf_printf(b, "%s\"%s\"", separator, p->name);
		separator = ",";
	}
	buf_append_str(b, "],\"additionalProperties\":false}");
}

static void write_annotations(struct buf *b, const struct tool *t, const struct api_hello *h)
{
	bool open_world = (t->hints & TOOL_NEEDS_NET) && h->net != NET_NONE;

	buf_append_str(b, "{\"title\":");
	json_write_string(b, t->title);
	buf_printf(b, ",\"readOnlyHint\":%s,\"destructiveHint\":%s,\"idempotentHint\":%s,"
		      "\"openWorldHint\":%s}",
		   bool_text(t->hints & TOOL_READ_ONLY), bool_text(t->hints & TOOL_DESTRUCTIVE),
		   bool_text(t->hints & TOOL_IDEMPOTENT), bool_text(open_world));
}

/* Fixed words, or what is made of the settings. */
static void write_words(struct buf *b, const char *fixed, void (*words)(struct buf *b, const struct api_hello *h),
			const struct api_hello *h)
{
	struct buf text;

	if (fixed) {
		json_write_string(b, fixed);
		return;
	}
	buf_init(&text, WORDS_MAX);
	words(&text, h);
	json_write_string(b, text.data);
	b->overflow |= text.overflow;
	buf_done(&text);
}

static void write_description(struct buf *b, const struct tool *t, const struct api_hello *h)
{
	write_words(b, t->description, t->describe, h);
}

static void write_tool(struct buf *b, const struct tool *t, const struct api_hello *h, enum era era)
{
	buf_printf(b, "{\"name\":\"%s\",", t->name);
	if (era == ERA_MODERN) {
		buf_append_str(b, "\"title\":");
		json_write_string(b, t->title);
		buf_append_str(b, ",");
	}
	buf_append_str(b, "\"description\":");
	write_description(b, t, h);
	buf_append_str(b, ",\"inputSchema\":");
	write_schema(b, t, h);
	buf_append_str(b, ",\"annotations\":");
	write_annotations(b, t, h);
	if (t->result_chars)
		buf_printf(b, ",\"_meta\":{\"anthropic/alwaysLoad\":true,"
			      "\"anthropic/maxResultSizeChars\":%" PRIu32 "}",
			   t->result_chars);
	buf_append_str(b, "}");
}

static void write_prompt(struct buf *b, const struct tool *t, const struct api_hello *h)
{
	buf_printf(b, "{\"name\":\"%s\",\"description\":", t->name);
	write_description(b, t, h);
	buf_append_str(b, ",\"arguments\":[");
	for (const struct tool_parameter *p = t->parameters; p->name; p++) {
		buf_printf(b, "%s{\"name\":\"%s\",\"description\":", p == t->parameters ? "" : ",", p->name);
		json_write_string(b, p->description);
		buf_printf(b, ",\"required\":%s}", bool_text(p->required));
	}
	buf_append_str(b, "]}");
}

static void write_resource(struct buf *b, const struct resource *r, const struct api_hello *h)
{
	buf_printf(b, "{\"%s\":", resource_is_template(r) ? "uriTemplate" : "uri");
	json_write_string(b, r->uri);
	buf_printf(b, ",\"name\":\"%s\",\"description\":", r->as.name);
	write_description(b, &r->as, h);
	buf_printf(b, ",\"mimeType\":\"%s\"}", r->mime);
}

/* ---- lists ---- */

static const char *comma(const struct buf *b, size_t start)
{
	return b->len == start ? "" : ",";
}

static void write_tools(struct buf *b, const struct registry *g, const struct api_hello *h, enum era era)
{
	size_t start = b->len;

	for (const struct tool *const *t = g->tools; t && *t; t++) {
		if (!registry_is_offered(g, *t, h))
			continue;
		buf_append_str(b, comma(b, start));
		write_tool(b, *t, h, era);
	}
}

static void write_prompts(struct buf *b, const struct registry *g, const struct api_hello *h)
{
	size_t start = b->len;

	for (const struct prompt *const *p = g->prompts; p && *p; p++) {
		if (!registry_is_offered(g, &(*p)->as, h))
			continue;
		buf_append_str(b, comma(b, start));
		write_prompt(b, &(*p)->as, h);
	}
}

static void write_resources(struct buf *b, const struct registry *g, const struct api_hello *h, bool templates)
{
	size_t start = b->len;

	for (const struct resource *const *r = g->resources; r && *r; r++) {
		if (resource_is_template(*r) != templates || !registry_is_offered(g, &(*r)->as, h))
			continue;
		buf_append_str(b, comma(b, start));
		write_resource(b, *r, h);
	}
}

static void write_list(struct buf *b, enum list list, enum era era, const struct registry *g,
		       const struct api_hello *h)
{
	static const char *const members[] = { "tools", "prompts", "resources", "resourceTemplates" };

	buf_printf(b, "{%s\"%s\":[", era == ERA_MODERN ? "\"resultType\":\"complete\"," : "", members[list]);
	if (list == LIST_TOOLS)
		write_tools(b, g, h, era);
	else if (list == LIST_PROMPTS)
		write_prompts(b, g, h);
	else
		write_resources(b, g, h, list == LIST_TEMPLATES);
	buf_append_str(b, "]");
	if (era == ERA_MODERN)
		buf_append_str(b, ",\"ttlMs\":300000,\"cacheScope\":\"public\",\"_meta\":{"
				  META_SERVER_INFO "}");
	buf_append_str(b, "}");
}

/* ---- what the server is ---- */

static void write_capabilities(struct buf *b, const struct registry *g)
{
	const char *changed = g->changes ? "\"listChanged\":true" : "";
	unsigned int offers = registry_offers(g);
	size_t start;

	buf_append_str(b, "\"capabilities\":{");
	start = b->len;
	if (offers & OFFER_TOOLS)
		buf_printf(b, "\"tools\":{%s}", changed);
	if (offers & OFFER_PROMPTS)
		buf_printf(b, "%s\"prompts\":{%s}", comma(b, start), changed);
	if (offers & OFFER_RESOURCES)
		buf_printf(b, "%s\"resources\":{%s%s}", comma(b, start), changed,
			   g->changes ? ",\"subscribe\":true" : "");
	if (offers & OFFER_COMPLETIONS)
		buf_printf(b, "%s\"completions\":{}", comma(b, start));
	if (offers & OFFER_LOGS)
		buf_printf(b, "%s\"logging\":{}", comma(b, start));
	buf_append_str(b, "}");
}

static void write_discover(struct buf *b, const struct registry *g, const struct api_hello *h)
{
	buf_append_str(b, "{\"resultType\":\"complete\",\"supportedVersions\":[\"" PROTOCOL_MODERN "\"],");
	write_capabilities(b, g);
	buf_append_str(b, ",\"instructions\":");
	write_words(b, g->instructions, g->write_instructions, h);
	buf_append_str(b, ",\"ttlMs\":3600000,\"cacheScope\":\"public\",\"_meta\":{"
			  META_SERVER_INFO "}}");
}

static void write_initialize(struct buf *b, const struct registry *g, const struct api_hello *h)
{
	write_capabilities(b, g);
	buf_append_str(b, ",\"serverInfo\":" SERVER_INFO ",\"instructions\":");
	write_words(b, g->instructions, g->write_instructions, h);
	buf_append_str(b, "}");
}

static void restart(struct buf *b)
{
	buf_done(b);
	buf_init(b, TEXT_MAX);
}

int lists_make(struct lists *l, const struct registry *g, const struct api_hello *h, struct err *e)
{
	int overflow = 0;

	for (int list = 0; list < LIST_COUNT; list++) {
		for (int era = 0; era < ERA_COUNT; era++) {
			struct buf *b = &l->list[list][era];

			restart(b);
			write_list(b, (enum list)list, (enum era)era, g, h);
			overflow |= b->overflow;
		}
	}
	restart(&l->discover);
	write_discover(&l->discover, g, h);
	restart(&l->initialize);
	write_initialize(&l->initialize, g, h);
	if (overflow || l->discover.overflow || l->initialize.overflow)
		return err_set(e, ERR_NOMEM, "no memory for the server's texts");
	return 0;
}

void lists_done(struct lists *l)
{
	for (int list = 0; list < LIST_COUNT; list++)
		for (int era = 0; era < ERA_COUNT; era++)
			buf_done(&l->list[list][era]);
	buf_done(&l->discover);
	buf_done(&l->initialize);
}
