/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/methods.c - what each method does with a request of its era
 *
 * Runs in the front, without privilege, on hostile parameters.
 */
#include <stdio.h>

#include "mcp/ask.h"
#include "mcp/call.h"
#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/listen.h"
#include "mcp/method.h"
#include "mcp/protocol.h"

enum { DATA_MAX = 64 * 1024 };

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
	bool hears = r->peer->streams && !r->peer->initialized && (r->server->offers & OFFER_CHANGES);

	r->peer->version = protocol_legacy(requested ? requested : "");
	if (!r->peer->version)
		r->peer->version = PROTOCOL_LEGACY_NEWEST;
	r->peer->initialized = true;
	r->peer->modern = false;
	r->peer->caps = ask_caps(json_member(r->m->params, "capabilities"));
	rpc_write_result_head(b, r->m->id, r->m->id_len);
	buf_printf(b, "{\"protocolVersion\":\"%s\",", r->peer->version);
	buf_append(b, r->server->lists.initialize.data, r->server->lists.initialize.len);
	buf_append_str(b, "}");
	r->sink->end(r->sink, 200, true);
	if (hears)
		listen_legacy(r->server, r->peer, r->sink);
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

void on_prompts_list(const struct request *r)
{
	answer_list(r, LIST_PROMPTS);
}

void on_resources_list(const struct request *r)
{
	answer_list(r, LIST_RESOURCES);
}

void on_templates_list(const struct request *r)
{
	answer_list(r, LIST_TEMPLATES);
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

void method_call(const struct request *r, const struct tool *tool, enum call_kind kind, const struct json *args)
{
	if (!r->peer->ids_shared && call_find(r->server, r->peer, r->m->id, r->m->id_len))
		method_fail(r, RPC_REQUEST, "id belongs to a request that is still running", NULL);
	else
		call_start(r, tool, kind, args);
}

void on_tools_call(const struct request *r)
{
	const struct json *args;
	const char *name = name_and_arguments(r, &args), *why;
	const struct peer_ops *ops = r->peer->ops;
	const struct tool *tool;
	enum rpc_failure f;

	if (!name)
		return;
	tool = registry_tool(r->server->registry, &r->server->keeper->hello, name);
	if (!tool) {
		unknown_name(r, "tool", name);
		return;
	}
	f = ops && r->era == ERA_MODERN ? ops->check_parameters(r->peer, r->m, tool, &why) : RPC_OK;
	if (f)
		method_fail(r, f, why, NULL);
	else
		method_call(r, tool, CALL_TOOL, args);
}

/* Return: false when the request has been answered: something that the prompt needs is missing. */
static bool has_arguments(const struct request *r, const struct prompt *prompt, const struct json *args)
{
	char message[80];

	for (const struct tool_parameter *p = prompt->as.parameters; p->name; p++) {
		if (!p->required || json_text(json_member(args, p->name)))
			continue;
		(void)snprintf(message, sizeof(message), "params.arguments.%.40s must be a string", p->name);
		method_fail(r, RPC_UNKNOWN_NAME, message, NULL);
		return false;
	}
	return true;
}

void on_prompts_get(const struct request *r)
{
	const struct json *args;
	const char *name = name_and_arguments(r, &args);
	const struct prompt *prompt;

	if (!name)
		return;
	prompt = registry_prompt(r->server->registry, &r->server->keeper->hello, name);
	if (!prompt)
		unknown_name(r, "prompt", name);
	else if (has_arguments(r, prompt, args))
		method_call(r, &prompt->as, CALL_PROMPT, args);
}

/* Return: NULL when the request has been answered: there is no such resource. */
static const struct resource *find_resource(const struct request *r)
{
	const char *uri = json_text(json_member(r->m->params, "uri"));
	const struct resource *resource;
	struct buf data;

	if (!uri) {
		method_fail(r, RPC_PARAMS, "params.uri must be a string", NULL);
		return NULL;
	}
	resource = registry_resource(r->server->registry, &r->server->keeper->hello, uri);
	if (resource)
		return resource;
	buf_init(&data, DATA_MAX);
	buf_append_str(&data, "{\"uri\":");
	json_write_string(&data, uri);
	buf_append_str(&data, "}");
	method_fail(r, r->era == ERA_MODERN ? RPC_UNKNOWN_NAME : RPC_NO_RESOURCE, "Resource not found",
		    data.overflow ? NULL : data.data);
	buf_done(&data);
	return NULL;
}

void on_resources_read(const struct request *r)
{
	const struct resource *resource = find_resource(r);

	if (resource)
		method_call(r, &resource->as, CALL_RESOURCE, r->m->params);
}

/* ---- what older clients ask for once, for their session ---- */

static void wish(const struct request *r, const char *uri, int severity)
{
	const struct wisher who = { r->peer->owner, r->peer->scope };

	if (wishes_set(&r->server->wishes, &who, uri, severity) < 0)
		method_fail(r, RPC_UNKNOWN_NAME, "params.uri is too long, or there is no memory for it", NULL);
	else
		method_answer(r, "{}", 2);
}

void on_subscribe(const struct request *r)
{
	if (find_resource(r))
		wish(r, json_text(json_member(r->m->params, "uri")), SEVERITY_COUNT);
}

void on_unsubscribe(const struct request *r)
{
	const struct wisher who = { r->peer->owner, r->peer->scope };
	const char *uri = json_text(json_member(r->m->params, "uri"));

	if (!uri || !*uri) {
		method_fail(r, RPC_PARAMS, "params.uri must be a string", NULL);
		return;
	}
	wishes_drop(&r->server->wishes, &who, uri);
	method_answer(r, "{}", 2);
}

void on_set_level(const struct request *r)
{
	const char *level = json_text(json_member(r->m->params, "level"));
	enum severity severity = call_severity(level ? level : "");

	if (severity == SEVERITY_COUNT)
		method_fail(r, RPC_PARAMS, "params.level must be debug, info, notice, warning, error, critical, alert "
					   "or emergency", NULL);
	else
		wish(r, "", (int)severity);
}
