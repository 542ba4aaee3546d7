/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/call.c - one tools/call in flight, from its arguments to its result
 *
 * Runs in the front, without privilege. Owns the rules that all tools share: how many at once,
 * cancellation (then not one more byte for that id), progress, and that making a large reply never
 * keeps other calls waiting or grows the queue of a client that does not read.
 */
#include "mcp/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/ask.h"
#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/jsonrpc.h"
#include "mcp/bounds.h"
#include "mcp/method.h"
#include "mcp/protocol.h"
#include "mcp/tools.h"
#include "runtime/base/str.h"

/* ---- life ---- */

static void call_link(struct call *c)
{
	struct server *s = c->server;

	c->next = s->calls;
	c->link = &s->calls;
	if (c->next)
		c->next->link = &c->next;
	s->calls = c;
	s->call_count++;
}

/* The call is gone; its sink is told next, because a transport may end the loop when none is left. */
static void call_free(struct call *c)
{
	struct server *s = c->server;

	if (c->tool->drop && c->state)
		c->tool->drop(c);
	ask_done(c);
	loop_timer_cancel(s->loop, &c->progress);
	loop_timer_cancel(s->loop, &c->work);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	s->call_count--;
	free(c);
}

static void progress_arm(struct call *c);

/* Return: the raw text of the progress token when there is a usable one. */
static const char *find_token(const struct rpc_message *m, size_t *ret_len)
{
	const struct json *token =
		json_member(json_member(m->params, "_meta"), "progressToken");
	enum json_kind kind = json_kind(token);
	const char *text = NULL;

	*ret_len = 0;
	if (kind != JSON_STRING && kind != JSON_NUMBER)
		return NULL;
	if (rpc_raw_param(m, "_meta", "progressToken", &text, ret_len) < 0 || *ret_len > LIMIT_ID)
		return NULL;
	return text;
}

static struct call *call_new(const struct rpc_message *m)
{
	size_t token_len;
	const char *token = find_token(m, &token_len);
	struct call *c = calloc(1, sizeof(*c) + m->id_len + token_len);

	if (!c)
		return NULL;
	c->id = (char *)(c + 1);
	c->id_len = m->id_len;
	memcpy(c->id, m->id, m->id_len);
	if (token) {
		c->token = c->id + m->id_len;
		c->token_len = token_len;
		memcpy(c->token, token, token_len);
	}
	return c;
}

/* What the client wants to see of the log: said with the request, or before 2026-07-28 once for all. */
static int log_from(const struct request *r)
{
	const struct wisher who = { r->peer->owner, r->peer->scope };
	const struct json *level = json_member(json_member(r->m->params, "_meta"), META_PREFIX "logLevel");
	const struct wish *wish;

	if (!(r->server->offers & OFFER_LOGS))
		return SEVERITY_COUNT;
	if (r->era == ERA_MODERN)
		return json_text(level) ? (int)call_severity(json_text(level)) : SEVERITY_COUNT;
	wish = wishes_find(&r->server->wishes, &who, "");
	return wish ? wish->severity : SEVERITY_COUNT;
}

/* Calls like this one, of everybody and of its owner. */
static void count_calls(const struct call *of, size_t *ret_all, size_t *ret_own)
{
	const struct peer *peer = of->peer;

	*ret_all = *ret_own = 0;
	for (const struct call *c = of->server->calls; c; c = c->next) {
		if (c->tool->lasts != of->tool->lasts)
			continue;
		++*ret_all;
		*ret_own += c->peer == peer ||
			    (c->peer->owner && peer->owner && !strcmp(c->peer->owner, peer->owner));
	}
}

/* An owner must not take every place from the others. */
static bool has_room(struct call *c)
{
	size_t all_max = LIMIT_CALLS, own_max = c->peer->calls_max ? c->peer->calls_max : LIMIT_CALLS, all, own;
	char why[80];

	if (c->tool->lasts) {
		all_max = LIMIT_LISTENERS;
		own_max = LIMIT_LISTENERS_OWNER;
	}
	count_calls(c, &all, &own);
	if (all <= all_max && own <= own_max)
		return true;
	if (!c->id_len) {
		call_cancel(c); /* nobody waits for an answer */
		return false;
	}
	(void)snprintf(why, sizeof(why), "%zu calls are running already; wait for one to end",
		       all > all_max ? all_max : own_max);
	call_refuse(c, TOOL_ERROR, why, "");
	return false;
}

/* Return: false when the client has been told what it lacks, or what is wrong with its answers. */
static bool open_message(struct call *c, struct rpc_message *m)
{
	unsigned int missing = c->tool->needs & ~c->caps;
	const char *why;
	enum rpc_failure f;

	if (missing) {
		ask_refuse(c, missing);
		return false;
	}
	f = c->tool->asks ? ask_open(c, m, &why) : RPC_OK;
	if (f)
		call_fail(c, f, why, NULL);
	return !f;
}

void call_start(const struct request *r, const struct tool *tool, enum call_kind kind, const struct json *args)
{
	struct call *c = call_new(r->m);

	if (!c) {
		method_fail(r, RPC_INTERNAL, "no memory", NULL);
		return;
	}
	c->server = r->server;
	c->peer = r->peer;
	c->sink = r->sink;
	c->era = r->era;
	c->caps = r->caps;
	c->tool = tool;
	c->kind = kind;
	c->log_from = log_from(r);
	c->request.ctx = c;
	c->request.owner = r->peer->owner;
	call_link(c);
	if (tool->keeps || tool->asks) {
		c->root = r->m->root;
		r->m->root = NULL;
	}
	if (!has_room(c) || !open_message(c, r->m))
		return;
	if (c->token)
		progress_arm(c);
	tool->start(c, args);
}

void call_cancel(struct call *c)
{
	struct sink *sink = c->sink;

	keeper_client_cancel(c->server->keeper, &c->request);
	call_free(c);
	sink->end(sink, 200, true);
}

/* ---- ids ---- */

/* Ids are compared as values: "a" may be written "\u0061". */
static bool id_equals(const struct call *c, const char *id, size_t len)
{
	struct json *a, *b;
	const char *why;
	bool equal;

	if (c->id_len == len && !memcmp(c->id, id, len))
		return true;
	if (!len || !c->id_len || *id != '"' || *c->id != '"' ||
	    (!memchr(id, '\\', len) && !memchr(c->id, '\\', c->id_len)))
		return false;
	a = json_parse(c->id, c->id_len, &why);
	b = json_parse(id, len, &why);
	equal = a && b && !strcmp(json_text(a), json_text(b));
	json_free(a);
	json_free(b);
	return equal;
}

bool call_is_in_scope(const struct peer *a, const struct peer *b)
{
	return a == b || (a->owner && b->owner && !strcmp(a->owner, b->owner) && !strcmp(a->scope, b->scope));
}

struct call *call_find(struct server *s, const struct peer *peer, const char *id, size_t len)
{
	struct call *found = NULL;

	for (struct call *c = s->calls; c; c = c->next) {
		if (!call_is_in_scope(c->peer, peer) || !id_equals(c, id, len))
			continue;
		if (found)
			return NULL;
		found = c;
	}
	return found;
}

/* ---- work in turns ---- */

static void work_run(struct call *c);

static void on_work(struct loop_timer *t)
{
	work_run(t->ctx);
}

static void work_run(struct call *c)
{
	if (!c->sink->is_ready(c->sink) || c->step(c))
		return; /* waits for call_resume(), or is gone */
	(void)loop_timer_set(c->server->loop, &c->work, 0, on_work, c);
}

void call_work(struct call *c, bool (*step)(struct call *c))
{
	c->step = step;
	work_run(c);
}

void call_resume(struct call *c)
{
	if (c->step && !c->work.deadline_ns)
		(void)loop_timer_set(c->server->loop, &c->work, 0, on_work, c);
}

/* ---- progress ---- */

static struct buf *progress_begin(struct call *c)
{
	struct buf *b = c->sink->begin(c->sink);

	buf_append_str(b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
			  "{\"progressToken\":");
	buf_append(b, c->token, c->token_len);
	return b;
}

static void write_progress(struct call *c, uint64_t seconds, const uint64_t *bytes)
{
	struct buf *b = progress_begin(c);
	char size[32];

	buf_printf(b, ",\"progress\":%" PRIu64 ",\"message\":\"running %" PRIu64 " s", seconds,
		   seconds);
	if (bytes)
		buf_printf(b, ", %s output", str_format_size(*bytes, size, sizeof(size)));
	buf_append_str(b, "\"}}");
	c->sink->end(c->sink, 200, false);
}

/* Progress must rise with every notification. */
static void tell_progress(struct call *c, const uint64_t *bytes)
{
	uint64_t seconds = (loop_now_ns() - c->started_ns) / 1000000000U;

	if (seconds <= c->progress_s || !c->sink->is_ready(c->sink))
		return;
	c->progress_s = seconds;
	write_progress(c, seconds, bytes);
}

static void on_progress(struct loop_timer *t)
{
	struct call *c = t->ctx;

	if (!c->can_peek || !c->request.id || c->peek_sent)
		tell_progress(c, NULL);
	c->peek_sent = c->can_peek && c->request.id;
	if (c->peek_sent)
		keeper_client_peek(c->server->keeper, &c->request);
	(void)loop_timer_set(c->server->loop, &c->progress, PROGRESS_EVERY_MS, on_progress, c);
}

static void progress_arm(struct call *c)
{
	c->started_ns = loop_now_ns();
	(void)loop_timer_set(c->server->loop, &c->progress, PROGRESS_EVERY_MS, on_progress, c);
}

void call_progress(struct call *c, uint64_t total_bytes)
{
	c->peek_sent = false;
	if (c->token)
		tell_progress(c, &total_bytes);
}

void call_report(struct call *c, uint64_t progress, uint64_t total)
{
	if (!c->token)
		return;
	loop_timer_cancel(c->server->loop, &c->progress);
	buf_printf(progress_begin(c), ",\"progress\":%" PRIu64 ",\"total\":%" PRIu64 "}}", progress, total);
	c->sink->end(c->sink, 200, false);
}

/* ---- log ---- */

static const char *const severities[] = { "debug", "info", "notice", "warning", "error", "critical", "alert",
					  "emergency" };

enum severity call_severity(const char *name)
{
	int i = 0;

	while (i < SEVERITY_COUNT && strcmp(severities[i], name) != 0)
		i++;
	return (enum severity)i;
}

void call_log(struct call *c, enum severity severity, const char *text)
{
	struct buf *b;

	if ((int)severity < c->log_from)
		return;
	b = c->sink->begin(c->sink);
	buf_printf(b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"%s\",\"data\":",
		   severities[severity]);
	json_write_string(b, text);
	buf_append_str(b, "}}");
	c->sink->end(c->sink, 200, false);
}

/* ---- results ---- */

bool call_is_stream(const struct call *c)
{
	return c->sink->is_stream && c->sink->is_stream(c->sink);
}

struct buf *call_reply_begin(struct call *c)
{
	c->reply = c->sink->begin(c->sink);
	rpc_write_result_head(c->reply, c->id, c->id_len);
	return c->reply;
}

/* The result itself has been written; what is left is the end of the message. */
void call_reply_end(struct call *c)
{
	struct sink *sink = c->sink;

	buf_append_str(c->reply, "}");
	call_free(c);
	sink->end(sink, 200, true);
}

struct buf *call_result_begin(struct call *c)
{
	static const char *const members[] = { "content", "messages", "contents" };
	struct buf *b = call_reply_begin(c);

	c->blocks = 0;
	buf_printf(b, "{%s\"%s\":[", c->era == ERA_MODERN ? "\"resultType\":\"complete\"," : "", members[c->kind]);
	return b;
}

static void write_result_end(struct call *c, bool is_error, const char *meta)
{
	enum era era = c->era;
	struct buf *b = c->reply;

	buf_append_str(b, is_error ? "],\"isError\":true" : "]");
	if (era == ERA_MODERN && c->kind == CALL_RESOURCE)
		buf_append_str(b, ",\"ttlMs\":0,\"cacheScope\":\"private\"");
	if (era == ERA_MODERN || *meta) {
		buf_append_str(b, ",\"_meta\":{");
		buf_append_str(b, meta);
		if (era == ERA_MODERN) {
			buf_append_str(b, *meta ? "," : "");
			buf_append_str(b, META_SERVER_INFO);
		}
		buf_append_str(b, "}");
	}
	buf_append_str(b, "}");
}

void call_result_end(struct call *c, bool is_error, const char *meta)
{
	write_result_end(c, is_error, meta);
	call_reply_end(c);
}

void call_fail(struct call *c, enum rpc_failure f, const char *message, const char *data)
{
	struct sink *sink = c->sink;

	rpc_write_error(sink->begin(sink), c->id, c->id_len, f, message, data);
	call_free(c);
	sink->end(sink, rpc_http_status(f), true);
}

void call_write_text_head(struct buf *b)
{
	buf_append_str(b, "{\"type\":\"text\",\"text\":\"");
}

void call_write_text_tail(struct buf *b)
{
	buf_append_str(b, "\"}");
}

void call_refuse(struct call *c, const char *prefix, const char *message, const char *remedy)
{
	struct buf *b;

	if (c->kind != CALL_TOOL) {
		call_fail(c, RPC_INTERNAL, message, NULL);
		return;
	}
	b = call_result_begin(c);
	call_write_text_head(b);
	buf_append_str(b, prefix);
	json_write_escaped(b, message, strlen(message));
	if (*remedy) {
		buf_append_str(b, "\\nremedy: ");
		json_write_escaped(b, remedy, strlen(remedy));
	}
	call_write_text_tail(b);
	call_result_end(c, true, "");
}
