/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/methods.c - what each method does with a request of its era
 *
 * Runs in the front, without privilege, on hostile parameters.
 */
#include <stdio.h>

#include "mcp/call.h"
#include "mcp/json.h"
#include "mcp/method.h"
#include "mcp/protocol.h"

/* ---- the server ---- */

void on_discover(const struct request *r)
{
	const struct buf *b = &r->server->lists.discover;

	method_answer(r, b->data, b->len);
}

void on_initialize(const struct request *r)
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
	buf_append(b, r->server->lists.initialize.data, r->server->lists.initialize.len);
	buf_append_str(b, "}");
	r->sink->end(r->sink, 200, true);
}

void on_ping(const struct request *r)
{
	method_answer(r, "{}", 2);
}

/* ---- lists ---- */

/* A list has one page: a cursor cannot be one of ours. */
static void answer_list(const struct request *r, enum list list)
{
	const struct json *cursor = json_member(r->m->params, "cursor");
	const struct buf *b = &r->server->lists.list[list][r->era];
	const char *text = json_text(cursor);

	if (json_kind(cursor) != JSON_NULL && (!text || *text))
		method_fail(r, RPC_UNKNOWN_NAME, "Invalid cursor", NULL);
	else
		method_answer(r, b->data, b->len);
}

void on_tools_list(const struct request *r)
{
	answer_list(r, LIST_TOOLS);
}

/* ---- calls ---- */

static void unknown_name(const struct request *r, const char *what, const char *name)
{
	char message[80];

	(void)snprintf(message, sizeof(message), "Unknown %s: %.40s", what, name);
	method_fail(r, RPC_UNKNOWN_NAME, message, NULL);
}

/* Return: params.name, NULL when the request has been answered with what is wrong. */
static const char *name_and_arguments(const struct request *r, const struct json **ret_args)
{
	const char *name = json_text(json_member(r->m->params, "name"));

	*ret_args = json_member(r->m->params, "arguments");
	if (!name) {
		method_fail(r, RPC_PARAMS, "params.name must be a string", NULL);
		return NULL;
	}
	if (json_kind(*ret_args) != JSON_NULL && json_kind(*ret_args) != JSON_OBJECT) {
		method_fail(r, RPC_PARAMS, "params.arguments must be an object", NULL);
		return NULL;
	}
	return name;
}

void on_tools_call(const struct request *r)
{
	const struct json *args;
	const char *name = name_and_arguments(r, &args);
	const struct tool *tool;

	if (!name)
		return;
	tool = registry_tool(r->server->registry, &r->server->keeper->hello, name);
	if (!tool)
		unknown_name(r, "tool", name);
	else if (!r->peer->ids_shared && call_find(r->server, r->peer, r->m->id, r->m->id_len))
		method_fail(r, RPC_REQUEST, "id belongs to a request that is still running", NULL);
	else
		call_start(r->server, r->peer, r->sink, r->era, tool, r->m, args);
}
