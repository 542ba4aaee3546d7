/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/complete.c - completion/complete: values for an argument that is being typed
 *
 * Runs in the front, without privilege, on hostile parameters.
 */
#include "mcp/complete.h"

#include <string.h>

#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/method.h"
#include "mcp/protocol.h"

enum { VALUES_MAX = 100, TEXT_MAX = 256 * 1024 };

struct completion {
	struct buf values;
	size_t count;
};

void complete_add(struct completion *to, const char *value)
{
	if (to->count++ >= VALUES_MAX)
		return;
	if (to->values.len)
		buf_append_str(&to->values, ",");
	json_write_string(&to->values, value);
}

/* A template is named as it is listed, not by a URI that fits it. */
static complete_fn *find_resource(const struct request *r, const char *uri)
{
	const struct registry *g = r->server->registry;

	for (const struct resource *const *at = g->resources; at && *at; at++)
		if (!strcmp((*at)->uri, uri) && registry_is_offered(g, &(*at)->as, &r->server->keeper->hello))
			return (*at)->complete;
	return NULL;
}

static complete_fn *find_prompt(const struct request *r, const char *name)
{
	const struct prompt *p = registry_prompt(r->server->registry, &r->server->keeper->hello, name);

	return p ? p->complete : NULL;
}

static complete_fn *find(const struct request *r)
{
	const struct json *ref = json_member(r->m->params, "ref");
	const char *type = json_text(json_member(ref, "type"));
	const char *name = json_text(json_member(ref, "name")), *uri = json_text(json_member(ref, "uri"));

	if (type && !strcmp(type, "ref/prompt") && name)
		return find_prompt(r, name);
	if (type && !strcmp(type, "ref/resource") && uri)
		return find_resource(r, uri);
	return NULL;
}

static void reply(const struct request *r, const struct completion *done)
{
	bool modern = r->era == ERA_MODERN;
	struct buf b;

	buf_init(&b, TEXT_MAX);
	buf_printf(&b, "{%s\"completion\":{\"values\":[", modern ? "\"resultType\":\"complete\"," : "");
	buf_append(&b, done->values.data ? done->values.data : "", done->values.len);
	buf_printf(&b, "],\"total\":%zu,\"hasMore\":%s}", done->count, done->count > VALUES_MAX ? "true" : "false");
	buf_append_str(&b, modern ? ",\"_meta\":{" META_SERVER_INFO "}}" : "}");
	if (b.overflow || done->values.overflow)
		method_fail(r, RPC_INTERNAL, "no memory for the values", NULL);
	else
		method_answer(r, b.data, b.len);
	buf_done(&b);
}

void on_complete(const struct request *r)
{
	const struct json *argument = json_member(r->m->params, "argument");
	const char *name = json_text(json_member(argument, "name"));
	const char *typed = json_text(json_member(argument, "value"));
	struct completion done = { .count = 0 };
	complete_fn *complete = find(r);

	if (!name || !typed) {
		method_fail(r, RPC_PARAMS, "params.argument must have a name and a value", NULL);
		return;
	}
	if (!complete) {
		method_fail(r, RPC_UNKNOWN_NAME, "params.ref names nothing with completions", NULL);
		return;
	}
	buf_init(&done.values, TEXT_MAX / 2);
	complete(&done, name, typed);
	reply(r, &done);
	buf_done(&done.values);
}
