/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/server.c - both eras of MCP on one stream: classify each message, then dispatch it
 *
 * Runs in the front, without privilege, on hostile messages. A message belongs to the modern era
 * (2026-07-28) exactly when its params._meta names a protocol version; everything else is legacy,
 * except that a peer which has only ever spoken the modern era forgot its envelope. Nothing here
 * depends on the transport; HTTP's additional checks come before server_receive().
 */
#include "mcp/server.h"

#include <string.h>
#include <sys/random.h>

#include "mcp/ask.h"
#include "mcp/call.h"
#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/jsonrpc.h"
#include "mcp/bounds.h"
#include "mcp/listen.h"
#include "mcp/method.h"
#include "mcp/protocol.h"

enum { IN_LEGACY = 1, IN_MODERN = 2 };

/* ---- answers ---- */

void method_fail(const struct request *r, enum rpc_failure f, const char *message,
		      const char *data)
{
	/* To an older client 404 says that its session is gone. */
	int status = f == RPC_METHOD && r->era == ERA_LEGACY ? 200 : rpc_http_status(f);

	rpc_write_error(r->sink->begin(r->sink), r->m->id, r->m->id_len, f, message, data);
	r->sink->end(r->sink, status, true);
}

void method_answer(const struct request *r, const char *result, size_t len)
{
	struct buf *b = r->sink->begin(r->sink);

	rpc_write_result_head(b, r->m->id, r->m->id_len);
	buf_append(b, result, len);
	buf_append_str(b, "}");
	r->sink->end(r->sink, 200, true);
}

/* ---- methods ---- */

/* The commonest first. A method whose OFFER_* the program has not registered is unknown. */
static const struct method {
	const char *name;
	unsigned int eras, offer;
	void (*fn)(const struct request *r);
} methods[] = {
	{ "tools/call", IN_LEGACY | IN_MODERN, OFFER_TOOLS, on_tools_call },
	{ "tools/list", IN_LEGACY | IN_MODERN, OFFER_TOOLS, on_tools_list },
	{ "server/discover", IN_MODERN, 0, on_discover },
	{ "initialize", IN_LEGACY, 0, on_initialize },
	{ "ping", IN_LEGACY, 0, on_ping },
	{ "prompts/list", IN_LEGACY | IN_MODERN, OFFER_PROMPTS, on_prompts_list },
	{ "prompts/get", IN_LEGACY | IN_MODERN, OFFER_PROMPTS, on_prompts_get },
	{ "resources/list", IN_LEGACY | IN_MODERN, OFFER_RESOURCES, on_resources_list },
	{ "resources/templates/list", IN_LEGACY | IN_MODERN, OFFER_RESOURCES, on_templates_list },
	{ "resources/read", IN_LEGACY | IN_MODERN, OFFER_RESOURCES, on_resources_read },
	{ "resources/subscribe", IN_LEGACY, OFFER_RESOURCES | OFFER_CHANGES, on_subscribe },
	{ "resources/unsubscribe", IN_LEGACY, OFFER_RESOURCES | OFFER_CHANGES, on_unsubscribe },
	{ "completion/complete", IN_LEGACY | IN_MODERN, OFFER_COMPLETIONS, on_complete },
	{ "logging/setLevel", IN_LEGACY, OFFER_LOGS, on_set_level },
	{ "subscriptions/listen", IN_MODERN, OFFER_CHANGES, on_listen },
};

/* ---- classification ---- */

bool method_agrees(const struct request *r, enum server_check what)
{
	const char *why = "";
	enum rpc_failure f = r->peer->ops ? r->peer->ops->check(r->peer, r->m, what, &why) : RPC_OK;

	if (f)
		method_fail(r, f, why, NULL);
	return !f;
}

/* Return: false when the message has been answered with what is wrong about its envelope. */
static bool check_envelope(struct request *r, const struct json *version)
{
	const char *text = json_text(version);
	const struct json *caps = json_member(json_member(r->m->params, "_meta"), META_PREFIX "clientCapabilities");
	struct buf data;

	if (!text) {
		method_fail(r, RPC_PARAMS, "_meta " META_PREFIX "protocolVersion must be a string", NULL);
		return false;
	}
	if (!method_agrees(r, CHECK_VERSION))
		return false;
	if (strcmp(text, PROTOCOL_MODERN) != 0) {
		buf_init(&data, LIMIT_ID);
		buf_append_str(&data, "{\"supported\":[\"" PROTOCOL_MODERN "\"],\"requested\":\"");
		json_write_escaped(&data, text, strnlen(text, 64));
		buf_append_str(&data, "\"}");
		method_fail(r, RPC_VERSION, "Unsupported protocol version", data.data);
		buf_done(&data);
		return false;
	}
	if (json_kind(caps) != JSON_OBJECT) {
		method_fail(r, RPC_PARAMS, "Missing _meta " META_PREFIX "clientCapabilities", NULL);
		return false;
	}
	r->caps = ask_caps(caps);
	return method_agrees(r, CHECK_NAMES);
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
	r->caps = r->peer->caps;
	if (!method_agrees(r, CHECK_LEGACY))
		return false;
	if (!r->peer->modern || !strcmp(r->m->method, "initialize"))
		return true;
	method_fail(r, RPC_PARAMS,
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
	method_fail(r, RPC_INTERNAL, message.data, data.data);
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
		const struct method *x = &methods[i];

		if ((x->eras & era) && (x->offer & ~r->server->offers) == 0 && !strcmp(x->name, r->m->method)) {
			x->fn(r);
			return;
		}
	}
	method_fail(r, RPC_METHOD, "Method not found", NULL);
}

/* ---- notifications ---- */

static void on_notification(const struct request *r)
{
	struct call *c = NULL;
	const char *id;
	size_t len;

	if (!strcmp(r->m->method, "notifications/cancelled") &&
	    rpc_raw_param(r->m, "requestId", NULL, &id, &len) == 0)
		c = call_find(r->server, r->peer, id, len);
	if (c)
		call_cancel(c);
	r->sink->end(r->sink, 202, true);
}

static void on_response(const struct request *r)
{
	ask_take(r->server, r->peer, r->m);
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
		method_fail(&r, f, m.why, NULL);
	else if (m.kind == RPC_CALL)
		dispatch(&r);
	else if (m.kind == RPC_NOTIFICATION)
		on_notification(&r);
	else
		on_response(&r);
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

/* ---- life ---- */

int server_init(struct server *s, struct loop *loop, struct keeper_client *keeper,
		const struct registry *registry, struct err *e)
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
	s->keeper = keeper;
	s->registry = registry;
	s->offers = registry_offers(registry);
	if (getrandom(s->state_key, sizeof(s->state_key), 0) != sizeof(s->state_key))
		return err_sys(e, "random bytes");
	return lists_make(&s->lists, registry, &keeper->hello, e);
}

void server_set_key(struct server *s, const uint8_t key[HMAC_LEN])
{
	memcpy(s->state_key, key, sizeof(s->state_key));
}

void server_done(struct server *s)
{
	listen_end(s);
	while (s->calls)
		call_cancel(s->calls);
	lists_done(&s->lists);
	wishes_done(&s->wishes);
}
