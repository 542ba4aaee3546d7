/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/server.c - both eras of MCP on one stream: classify each message, then dispatch it
 *
 * Runs in the front, without privilege, on hostile messages. A message belongs to the modern era
 * (2026-07-28) exactly when its params._meta names a protocol version; everything else is legacy,
 * except that a peer which has only ever spoken the modern era forgot its envelope. Nothing here
 * depends on the transport; HTTP's additional checks come before server_receive().
 */
#include "mcp/server.h"

#include <stdio.h>
#include <string.h>

#include "mcp/call.h"
#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/jsonrpc.h"
#include "mcp/bounds.h"
#include "mcp/protocol.h"
#include "mcp/tools.h"

/* One request being answered. */
struct request {
	struct server *server;
	struct peer *peer;
	struct sink *sink;
	const struct rpc_message *m;
	enum era era;
};

enum { IN_LEGACY = 1, IN_MODERN = 2 };

/* ---- answers ---- */

static void fail_with(const struct request *r, enum rpc_failure f, const char *message,
		      const char *data)
{
	/* To an older client 404 says that its session is gone. */
	int status = f == RPC_METHOD && r->era == ERA_LEGACY ? 200 : rpc_http_status(f);

	rpc_write_error(r->sink->begin(r->sink), r->m->id, r->m->id_len, f, message, data);
	r->sink->end(r->sink, status, true);
}

static void answer(const struct request *r, const char *result, size_t len)
{
	struct buf *b = r->sink->begin(r->sink);

	rpc_write_result_head(b, r->m->id, r->m->id_len);
	buf_append(b, result, len);
	buf_append_str(b, "}");
	r->sink->end(r->sink, 200, true);
}

/* ---- methods ---- */

static void on_discover(const struct request *r)
{
	answer(r, r->server->discover.data, r->server->discover.len);
}

static void on_ping(const struct request *r)
{
	answer(r, "{}", 2);
}

static void on_initialize(const struct request *r)
{
	struct buf *b = r->sink->begin(r->sink);
	const char *requested = json_text(json_member(r->m->params, "protocolVersion"));

	r->peer->version = protocol_legacy(requested ? requested : "");
	if (!r->peer->version)
		r->peer->version = PROTOCOL_LEGACY_NEWEST;
	r->peer->initialized = true;
	r->peer->modern = false;
	rpc_write_result_head(b, r->m->id, r->m->id_len);
	buf_printf(b, "{\"protocolVersion\":\"%s\",", r->peer->version);
	buf_append(b, r->server->initialize.data, r->server->initialize.len);
	buf_append_str(b, "}");
	r->sink->end(r->sink, 200, true);
}

/* The list has one page: a cursor cannot be one of ours. */
static void on_tools_list(const struct request *r)
{
	const struct json *cursor = json_member(r->m->params, "cursor");
	const char *text = json_text(cursor);

	if (json_kind(cursor) != JSON_NULL && (!text || *text))
		fail_with(r, RPC_UNKNOWN_NAME, "Invalid cursor", NULL);
	else
		answer(r, r->server->tools[r->era].data, r->server->tools[r->era].len);
}

static struct call *find_call(const struct request *r, const char *id, size_t len);

static void unknown_tool(const struct request *r, const char *name)
{
	char message[80];

	(void)snprintf(message, sizeof(message), "Unknown tool: %.40s", name);
	fail_with(r, RPC_UNKNOWN_NAME, message, NULL);
}

static void on_tools_call(const struct request *r)
{
	const struct json *args = json_member(r->m->params, "arguments");
	const char *name = json_text(json_member(r->m->params, "name"));
	const struct tool *tool;

	if (!name) {
		fail_with(r, RPC_PARAMS, "params.name must be a string", NULL);
		return;
	}
	if (json_kind(args) != JSON_NULL && json_kind(args) != JSON_OBJECT) {
		fail_with(r, RPC_PARAMS, "params.arguments must be an object", NULL);
		return;
	}
	tool = tools_find(&r->server->keeper->hello, name);
	if (!tool)
		unknown_tool(r, name);
	else if (!r->peer->ids_shared && find_call(r, r->m->id, r->m->id_len))
		fail_with(r, RPC_REQUEST, "id belongs to a request that is still running", NULL);
	else
		call_start(r->server, r->peer, r->sink, r->era, tool, r->m, args);
}

static const struct method {
	const char *name;
	unsigned int eras;
	void (*fn)(const struct request *r);
} methods[] = {
	{ "tools/call", IN_LEGACY | IN_MODERN, on_tools_call },
	{ "tools/list", IN_LEGACY | IN_MODERN, on_tools_list },
	{ "server/discover", IN_MODERN, on_discover },
	{ "initialize", IN_LEGACY, on_initialize },
	{ "ping", IN_LEGACY, on_ping },
};

/* ---- classification ---- */

/* Return: false when the message has been answered with what does not agree with it. */
static bool check_beside(const struct request *r, enum server_check what)
{
	const char *why = "";
	enum rpc_failure f = r->peer->ops ? r->peer->ops->check(r->peer, r->m, what, &why) : RPC_OK;

	if (f)
		fail_with(r, f, why, NULL);
	return !f;
}

/* Return: false when the message has been answered with what is wrong about its envelope. */
static bool check_envelope(const struct request *r, const struct json *version)
{
	const char *text = json_text(version);
	const struct json *meta = json_member(r->m->params, "_meta");
	struct buf data;

	if (!text) {
		fail_with(r, RPC_PARAMS, "_meta " META_PREFIX "protocolVersion must be a string", NULL);
		return false;
	}
	if (!check_beside(r, CHECK_VERSION))
		return false;
	if (strcmp(text, PROTOCOL_MODERN) != 0) {
		buf_init(&data, LIMIT_ID);
		buf_append_str(&data, "{\"supported\":[\"" PROTOCOL_MODERN "\"],\"requested\":\"");
		json_write_escaped(&data, text, strnlen(text, 64));
		buf_append_str(&data, "\"}");
		fail_with(r, RPC_VERSION, "Unsupported protocol version", data.data);
		buf_done(&data);
		return false;
	}
	if (json_kind(json_member(meta, META_PREFIX "clientCapabilities")) != JSON_OBJECT) {
		fail_with(r, RPC_PARAMS, "Missing _meta " META_PREFIX "clientCapabilities", NULL);
		return false;
	}
	return check_beside(r, CHECK_NAMES);
}

static bool classify(struct request *r)
{
	const struct json *version = json_member(json_member(r->m->params, "_meta"),
						 META_PREFIX "protocolVersion");

	if (version) {
		r->era = ERA_MODERN;
		if (!check_envelope(r, version))
			return false;
		r->peer->modern = !r->peer->initialized;
		return true;
	}
	r->era = ERA_LEGACY;
	if (!check_beside(r, CHECK_LEGACY))
		return false;
	if (!r->peer->modern || !strcmp(r->m->method, "initialize"))
		return true;
	fail_with(r, RPC_PARAMS,
		  "Missing _meta " META_PREFIX "protocolVersion, " META_PREFIX "clientCapabilities",
		  NULL);
	return false;
}

/* The sandbox side could not start: the client is told so whatever it asks. */
static void answer_start_failure(const struct request *r)
{
	const struct err *e = &r->server->keeper->hello.start_failure;
	struct buf data, message;

	buf_init(&message, 2 * sizeof(*e));
	buf_init(&data, 8 * sizeof(*e));
	buf_append_str(&message, e->message);
	if (*e->remedy)
		buf_printf(&message, "; remedy: %s", e->remedy);
	buf_append_str(&data, "{\"remedy\":");
	json_write_string(&data, e->remedy);
	buf_append_str(&data, "}");
	fail_with(r, RPC_INTERNAL, message.data, data.data);
	buf_done(&message);
	buf_done(&data);
}

static void dispatch(struct request *r)
{
	unsigned int era;

	if (r->server->keeper->hello.start_failure.code != ERR_NONE) {
		answer_start_failure(r);
		return;
	}
	if (!classify(r))
		return;
	era = r->era == ERA_MODERN ? IN_MODERN : IN_LEGACY;
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if ((methods[i].eras & era) && !strcmp(methods[i].name, r->m->method)) {
			methods[i].fn(r);
			return;
		}
	}
	fail_with(r, RPC_METHOD, "Method not found", NULL);
}

/* ---- notifications ---- */

/* Ids are compared as values: "a" may be written "\u0061". */
static bool id_equals(const struct call *c, const char *id, size_t len)
{
	struct json *a, *b;
	const char *why;
	bool equal;

	if (c->id_len == len && !memcmp(c->id, id, len))
		return true;
	if (!len || *id != '"' || *c->id != '"' ||
	    (!memchr(id, '\\', len) && !memchr(c->id, '\\', c->id_len)))
		return false;
	a = json_parse(c->id, c->id_len, &why);
	b = json_parse(id, len, &why);
	equal = a && b && !strcmp(json_text(a), json_text(b));
	json_free(a);
	json_free(b);
	return equal;
}

static bool is_in_scope(const struct peer *a, const struct peer *b)
{
	return a == b || (a->owner && b->owner && !strcmp(a->owner, b->owner) && !strcmp(a->scope, b->scope));
}

/* NULL also when the id names several. */
static struct call *find_call(const struct request *r, const char *id, size_t len)
{
	struct call *found = NULL;

	for (struct call *c = r->server->calls; c; c = c->next) {
		if (!is_in_scope(c->peer, r->peer) || !id_equals(c, id, len))
			continue;
		if (found)
			return NULL;
		found = c;
	}
	return found;
}

static void on_notification(const struct request *r)
{
	struct call *c = NULL;
	const char *id;
	size_t len;

	if (!strcmp(r->m->method, "notifications/cancelled") &&
	    rpc_raw_param(r->m, "requestId", NULL, &id, &len) == 0)
		c = find_call(r, id, len);
	if (c)
		call_cancel(c);
	r->sink->end(r->sink, 202, true);
}

/* ---- doors ---- */

void server_receive(struct server *s, struct peer *peer, struct sink *sink, const char *text,
		    size_t len)
{
	struct rpc_message m;
	enum rpc_failure f = rpc_parse(&m, text, len);
	struct request r = { .server = s, .peer = peer, .sink = sink, .m = &m };

	if (f == RPC_PARAMS && m.kind == RPC_NOTIFICATION)
		sink->end(sink, 202, true); /* a notification is never answered */
	else if (f)
		fail_with(&r, f, m.why, NULL);
	else if (m.kind == RPC_CALL)
		dispatch(&r);
	else if (m.kind == RPC_NOTIFICATION)
		on_notification(&r);
	else
		sink->end(sink, 202, true); /* we ask nothing, so it answers nothing */
	rpc_message_done(&m);
}

void server_refuse(struct sink *sink, const char *why)
{
	rpc_write_error(sink->begin(sink), NULL, 0, RPC_REQUEST, why, NULL);
	sink->end(sink, 413, true);
}

void server_resume(struct server *s)
{
	for (struct call *c = s->calls; c; c = c->next)
		call_resume(c);
}

void server_cancel_peer(struct server *s, const struct peer *peer)
{
	struct call *c = s->calls;

	while (c) {
		struct call *next = c->next;

		if (c->peer == peer)
			call_cancel(c);
		c = next;
	}
}

/* ---- what never changes ---- */

static void write_instructions(struct buf *b, const struct api_hello *h)
{
	struct buf text;

	buf_init(&text, 8 * 1024);
	tools_write_instructions(&text, h);
	json_write_string(b, text.data);
	b->overflow |= text.overflow;
	buf_done(&text);
}

static void write_discover(struct buf *b, const struct api_hello *h)
{
	buf_append_str(b, "{\"resultType\":\"complete\",\"supportedVersions\":[\"" PROTOCOL_MODERN
			  "\"],\"capabilities\":{\"tools\":{}},\"instructions\":");
	write_instructions(b, h);
	buf_append_str(b, ",\"ttlMs\":3600000,\"cacheScope\":\"public\",\"_meta\":{"
			  META_SERVER_INFO "}}");
}

/* Everything of the initialize result that follows the version. */
static void write_initialize(struct buf *b, const struct api_hello *h)
{
	buf_append_str(b, "\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER_INFO
			  ",\"instructions\":");
	write_instructions(b, h);
	buf_append_str(b, "}");
}

static void write_tools(struct buf *b, const struct api_hello *h, enum era era)
{
	buf_append_str(b, era == ERA_MODERN ? "{\"resultType\":\"complete\",\"tools\":"
					    : "{\"tools\":");
	tools_write_list(b, h, era == ERA_MODERN);
	if (era == ERA_MODERN)
		buf_append_str(b, ",\"ttlMs\":300000,\"cacheScope\":\"public\",\"_meta\":{"
				  META_SERVER_INFO "}");
	buf_append_str(b, "}");
}

int server_init(struct server *s, struct loop *loop, struct keeper_client *keeper, struct err *e)
{
	*s = (struct server){ .loop = loop, .keeper = keeper };
	buf_init(&s->discover, 64 * 1024);
	buf_init(&s->initialize, 64 * 1024);
	buf_init(&s->tools[ERA_LEGACY], 64 * 1024);
	buf_init(&s->tools[ERA_MODERN], 64 * 1024);
	write_discover(&s->discover, &keeper->hello);
	write_initialize(&s->initialize, &keeper->hello);
	write_tools(&s->tools[ERA_LEGACY], &keeper->hello, ERA_LEGACY);
	write_tools(&s->tools[ERA_MODERN], &keeper->hello, ERA_MODERN);
	if (s->discover.overflow || s->initialize.overflow || s->tools[0].overflow ||
	    s->tools[1].overflow)
		return err_set(e, ERR_NOMEM, "no memory for the server's texts");
	return 0;
}

void server_done(struct server *s)
{
	while (s->calls)
		call_cancel(s->calls);
	buf_done(&s->discover);
	buf_done(&s->initialize);
	buf_done(&s->tools[ERA_LEGACY]);
	buf_done(&s->tools[ERA_MODERN]);
}
