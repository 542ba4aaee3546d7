/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/listen.c - tell clients what has changed
 *
 * Runs in the front, without privilege. What a client has not asked for is not sent to it; which URIs it
 * names is hostile text that is only compared.
 */
#include "mcp/listen.h"

#include <string.h>

#include "mcp/call.h"
#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/method.h"
#include "mcp/protocol.h"
#include "runtime/base/log.h"

static const struct {
	const char *wanted, *method;
	unsigned int offer;
} rows[] = {
	[LIST_TOOLS] = { "toolsListChanged", "notifications/tools/list_changed", OFFER_TOOLS },
	[LIST_PROMPTS] = { "promptsListChanged", "notifications/prompts/list_changed", OFFER_PROMPTS },
	[LIST_RESOURCES] = { "resourcesListChanged", "notifications/resources/list_changed", OFFER_RESOURCES },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* ---- one message to one client ---- */

static struct buf *message_begin(struct call *c, const char *method)
{
	struct buf *b = c->sink->begin(c->sink);

	buf_printf(b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":{", method);
	return b;
}

static void write_subscription(struct buf *b, const struct call *c)
{
	buf_append_str(b, "\"" META_PREFIX "subscriptionId\":");
	buf_append(b, c->id, c->id_len);
}

/* separator: a comma when the parameters have members already. */
static void message_end(struct call *c, struct buf *b, const char *separator)
{
	if (c->era == ERA_MODERN) {
		buf_printf(b, "%s\"_meta\":{", separator);
		write_subscription(b, c);
		buf_append_str(b, "}");
	}
	buf_append_str(b, "}}");
	c->sink->end(c->sink, 200, false);
}

/* ---- who listens ---- */

static const struct json *uris(const struct call *c)
{
	return json_member(json_member(json_member(c->root, "params"), "notifications"), "resourceSubscriptions");
}

static bool wants_list(const struct call *c, enum list what)
{
	const struct json *wanted = json_member(json_member(c->root, "params"), "notifications");

	if (!(c->server->offers & rows[what].offer))
		return false;
	return c->era == ERA_LEGACY || json_is_true(json_member(wanted, rows[what].wanted));
}

static bool wants_resource(const struct call *c, const char *uri)
{
	const struct wisher who = { c->peer->owner, c->peer->scope };

	if (c->era == ERA_LEGACY)
		return wishes_find(&c->server->wishes, &who, uri) != NULL;
	for (const struct json *v = json_item(uris(c), 0); v; v = json_next(v))
		if (json_text(v) && !strcmp(json_text(v), uri))
			return true;
	return false;
}

/* What of it the client will hear: only what there is. */
static void acknowledge(struct call *c)
{
	struct buf *b = message_begin(c, "notifications/subscriptions/acknowledged");
	const char *separator = "";

	buf_append_str(b, "\"notifications\":{");
	for (size_t i = 0; i < ROWS; i++) {
		if (!wants_list(c, (enum list)i))
			continue;
		buf_printf(b, "%s\"%s\":true", separator, rows[i].wanted);
		separator = ",";
	}
	if (c->server->offers & OFFER_RESOURCES && json_kind(uris(c)) == JSON_ARRAY) {
		buf_printf(b, "%s\"resourceSubscriptions\":[", separator);
		separator = "";
		for (const struct json *v = json_item(uris(c), 0); v; v = json_next(v)) {
			if (!json_text(v))
				continue;
			buf_append_str(b, separator);
			json_write_string(b, json_text(v));
			separator = ",";
		}
		buf_append_str(b, "]");
	}
	buf_append_str(b, "}");
	message_end(c, b, ",");
}

static void start_listening(struct call *c, const struct json *args)
{
	(void)args;
	if (!call_is_stream(c))
		call_fail(c, RPC_PARAMS, "subscriptions/listen needs a client that accepts text/event-stream", NULL);
	else if (c->era == ERA_MODERN)
		acknowledge(c);
}

/* A call that lasts: cancelled by its id, or with its client. */
static const struct tool listening = {
	.name = "subscriptions/listen",
	.keeps = true,
	.lasts = true,
	.start = start_listening,
};

void on_listen(const struct request *r)
{
	if (json_kind(json_member(r->m->params, "notifications")) != JSON_OBJECT)
		method_fail(r, RPC_PARAMS, "params.notifications must be an object", NULL);
	else
		method_call(r, &listening, CALL_LISTEN, NULL);
}

void listen_legacy(struct server *s, struct peer *peer, struct sink *sink)
{
	struct rpc_message none = { .id = "" };
	const struct request r = { s, peer, sink, &none, ERA_LEGACY, 0 };

	call_start(&r, &listening, CALL_LISTEN, NULL);
}

/* ---- news ---- */

void listen_changed(struct server *s, enum list what)
{
	struct err e;

	if (lists_make(&s->lists, s->registry, &s->keeper->hello, &e) < 0)
		log_error("%s", e.message);
	for (struct call *c = s->calls; c; c = c->next)
		if (c->tool == &listening && wants_list(c, what))
			message_end(c, message_begin(c, rows[what].method), "");
}

void listen_updated(struct server *s, const char *uri)
{
	struct buf *b;

	for (struct call *c = s->calls; c; c = c->next) {
		if (c->tool != &listening || !wants_resource(c, uri))
			continue;
		b = message_begin(c, "notifications/resources/updated");
		buf_append_str(b, "\"uri\":");
		json_write_string(b, uri);
		message_end(c, b, ",");
	}
}

static void say_goodbye(struct call *c)
{
	struct buf *b;

	if (c->era == ERA_LEGACY) {
		call_cancel(c);
		return;
	}
	b = call_reply_begin(c);
	buf_append_str(b, "{\"resultType\":\"complete\",\"_meta\":{");
	write_subscription(b, c);
	buf_append_str(b, "," META_SERVER_INFO "}}");
	call_reply_end(c);
}

void listen_end(struct server *s)
{
	for (struct call *c = s->calls, *next; c; c = next) {
		next = c->next;
		if (c->tool == &listening)
			say_goodbye(c);
	}
}
