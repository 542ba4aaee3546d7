/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_selftest_mcp.c - "selftest" as a client of MCP over HTTP, in both eras
 *
 * Runs as whoever called it. The answers come from the server under test and are believed in nothing: they are
 * bounded by mcp/http_client.h and read by the strict parser.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/cli_selftest.h"
#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/protocol.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/loop.h"
#include "runtime/base/str.h"

enum { FIELDS_MAX = 8 * 1024, NS_PER_MS = 1000000 };

/* ---- verdicts ---- */

static void explain(struct selftest *s, const char *fmt, va_list ap)
{
	char raw[1024], shown[2048];

	(void)vsnprintf(raw, sizeof(raw), fmt, ap);
	if (s->why.len)
		buf_append_str(&s->why, "; ");
	buf_append_str(&s->why, str_escape(shown, sizeof(shown), raw, strlen(raw)));
}

enum selftest_verdict selftest_fail(struct selftest *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	explain(s, fmt, ap);
	va_end(ap);
	return SELFTEST_FAILED;
}

enum selftest_verdict selftest_unseen(struct selftest *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	explain(s, fmt, ap);
	va_end(ap);
	return SELFTEST_UNSEEN;
}

static void fail_with(struct selftest *s, const struct err *e, const char *otherwise)
{
	selftest_fail(s, "%s%s%s%s", e->code ? e->message : otherwise, *e->remedy ? " (" : "", e->remedy,
		      *e->remedy ? ")" : "");
}

const char *selftest_label(const struct selftest *s, const char *name, char ret[SELFTEST_LABEL_MAX])
{
	(void)snprintf(ret, SELFTEST_LABEL_MAX, "selftest %s %s", s->run, name);
	return ret;
}

/* ---- requests ---- */

static void add_token(const struct selftest *s, struct buf *fields)
{
	if (*s->token)
		buf_printf(fields, "Authorization: Bearer %s\r\n", s->token);
}

static void add_fields(const struct selftest *s, struct buf *fields, const char *method, const char *name)
{
	buf_append_str(fields, "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n");
	add_token(s, fields);
	if (s->era == SELFTEST_LEGACY) {
		if (*s->session)
			buf_printf(fields, "Mcp-Session-Id: %s\r\nMCP-Protocol-Version: " PROTOCOL_LEGACY_NEWEST "\r\n",
				   s->session);
		return;
	}
	buf_printf(fields, "MCP-Protocol-Version: " PROTOCOL_MODERN "\r\nMcp-Method: %s\r\n", method);
	if (name)
		buf_printf(fields, "Mcp-Name: %s\r\n", name);
}

/* params is an object's text; the modern era's envelope goes in front of its members. */
static void write_message(const struct selftest *s, struct buf *b, const char *method, const char *params)
{
	buf_printf(b, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{", s->number, method);
	if (s->era == SELFTEST_MODERN)
		buf_printf(b, "\"_meta\":{\"" META_PREFIX "protocolVersion\":\"" PROTOCOL_MODERN "\",\"" META_PREFIX
			      "clientCapabilities\":{}}%s", strcmp(params, "{}") ? "," : "");
	buf_append_str(b, params + 1);
	buf_append_str(b, "}");
}

static struct http_query *ask(struct selftest *s, const char *method, const char *name, const char *params)
{
	struct buf fields, body;
	struct http_query *q = NULL;
	struct err e = { 0 };

	s->number++;
	buf_init(&fields, FIELDS_MAX);
	buf_init(&body, SELFTEST_ARGS_MAX + FIELDS_MAX);
	add_fields(s, &fields, method, name);
	write_message(s, &body, method, params);
	if (!fields.overflow && !body.overflow)
		q = http_query_start(s->client, &(struct http_ask){ "POST", s->url.path, fields.data, body.data, body.len,
								    10 * SELFTEST_CALL_MS }, &e);
	if (!q)
		fail_with(s, &e, "the request is too long");
	buf_done(&fields);
	buf_done(&body);
	return q;
}

/* Of an event stream: the text of the last event. Comments and progress come before it. */
static struct http_text last_event(const struct buf *body)
{
	static const char mark[] = "data: ";
	struct http_text found = { NULL, 0 };
	const char *at = body->data, *end = body->data + body->len;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((stop ? stop : end) - at);

		if (len >= sizeof(mark) - 1 && memcmp(at, mark, sizeof(mark) - 1) == 0)
			found = (struct http_text){ at + sizeof(mark) - 1, len - (sizeof(mark) - 1) };
		at = stop ? stop + 1 : end;
	}
	return found;
}

static struct json *read_message(struct selftest *s, const struct http_reply *reply)
{
	struct http_text type = http_reply_field(reply, "content-type"), text = { reply->body.data, reply->body.len };
	struct json *root;
	const char *why = "no event with data";

	if (type.len >= 17 && memcmp(type.data, "text/event-stream", 17) == 0)
		text = last_event(&reply->body);
	root = text.data ? json_parse(text.data, text.len, &why) : NULL;
	if (!root)
		selftest_fail(s, "HTTP %d, and no JSON: %s", reply->status, why);
	return root;
}

static int hear(struct selftest *s, struct http_query *q, struct json **ret_root)
{
	struct http_reply reply;
	struct err e = { 0 };
	struct http_text session;
	int status;

	if (http_query_finish(q, &reply, &e) < 0) {
		fail_with(s, &e, "");
		return -1;
	}
	session = http_reply_field(&reply, "mcp-session-id");
	if (session.len && session.len < sizeof(s->session) && s->era == SELFTEST_LEGACY)
		(void)snprintf(s->session, sizeof(s->session), "%.*s", (int)session.len, session.data);
	*ret_root = read_message(s, &reply);
	status = *ret_root ? reply.status : -1;
	http_reply_done(&reply);
	return status;
}

int selftest_rpc(struct selftest *s, const char *method, const char *name, const char *params,
		 struct json **ret_root)
{
	struct http_query *q = ask(s, method, name, params);

	return q ? hear(s, q, ret_root) : -1;
}

int selftest_connect_legacy(struct selftest *s, struct json **ret_root)
{
	_cleanup_(json_cleanup) struct json *root = NULL;
	int status;

	s->era = SELFTEST_LEGACY;
	s->session[0] = '\0';
	status = selftest_rpc(s, "initialize", NULL,
			      "{\"protocolVersion\":\"" PROTOCOL_LEGACY_NEWEST "\",\"capabilities\":{},\"clientInfo\":"
			      "{\"name\":\"mcp-sandbox selftest\",\"version\":\"" MCP_SANDBOX_VERSION "\"}}", &root);
	if (status != 200 || !json_member(root, "result")) {
		selftest_fail(s, "initialize: HTTP %d", status);
		return -1;
	}
	if (ret_root)
		*ret_root = take_ptr(root);
	return 0;
}

/* ---- tools ---- */

struct http_query *selftest_start(struct selftest *s, const char *tool, const char *args)
{
	struct http_query *q;
	struct buf params;

	buf_init(&params, SELFTEST_ARGS_MAX);
	buf_printf(&params, "{\"name\":\"%s\",\"arguments\":%s}", tool, args);
	q = ask(s, "tools/call", tool, params.overflow ? "{}" : params.data);
	buf_done(&params);
	return q;
}

static void read_first_line(struct selftest_answer *a)
{
	const char *end = strchrnul(a->text, '\n'), *at;
	char line[512];
	size_t len;

	(void)snprintf(line, sizeof(line), "%.*s", (int)(end - a->text < 500 ? end - a->text : 500), a->text);
	a->output = *end ? end + 1 : end;
	a->is_new = strstr(line, " [new]") != NULL;
	at = strstr(line, " [exit ");
	a->status = at ? (int)strtol(at + 7, NULL, 10) : -1;
	if (strncmp(line, "[sandbox ", 9) != 0)
		return;
	len = strcspn(line + 9, "]");
	if (len < sizeof(a->key))
		memcpy(a->key, line + 9, len);
}

/* The first block of this kind. */
static const struct json *block_of(const struct json *content, const char *type)
{
	const struct json *block;

	for (size_t i = 0; (block = json_item(content, i)); i++) {
		const char *own = json_text(json_member(block, "type"));

		if (own && strcmp(own, type) == 0)
			return block;
	}
	return NULL;
}

static int take_answer(struct selftest *s, int status, struct selftest_answer *a)
{
	const struct json *result = json_member(a->root, "result");
	const char *message = json_text(json_member(json_member(a->root, "error"), "message"));

	if (status != 200 || !result) {
		selftest_fail(s, "HTTP %d: %s", status, message ? message : "no result");
		return -1;
	}
	a->is_error = json_is_true(json_member(result, "isError"));
	a->content = json_member(result, "content");
	a->text = json_text(json_member(block_of(a->content, "text"), "text"));
	if (!a->text)
		a->text = "";
	read_first_line(a);
	return 0;
}

static int hear_since(struct selftest *s, struct http_query *q, struct selftest_answer *a, uint64_t since_ns)
{
	int status;

	*a = (struct selftest_answer){ .text = "", .output = "", .status = -1 };
	status = q ? hear(s, q, &a->root) : -1;
	a->took_ms = (loop_now_ns() - since_ns) / NS_PER_MS;
	if (status >= 0 && take_answer(s, status, a) == 0)
		return 0;
	selftest_answer_done(a);
	return -1;
}

int selftest_hear(struct selftest *s, struct http_query *q, struct selftest_answer *ret)
{
	return hear_since(s, q, ret, loop_now_ns());
}

int selftest_call(struct selftest *s, const char *tool, const char *args, struct selftest_answer *ret)
{
	uint64_t since = loop_now_ns();

	return hear_since(s, selftest_start(s, tool, args), ret, since);
}

void selftest_answer_done(struct selftest_answer *a)
{
	json_cleanup(&a->root);
}

static void write_run(struct buf *args, const char *label, const char *command, unsigned int seconds)
{
	buf_init(args, SELFTEST_ARGS_MAX);
	buf_append_str(args, "{\"sandbox\":");
	json_write_string(args, label);
	buf_append_str(args, ",\"command\":");
	json_write_string(args, command);
	if (seconds)
		buf_printf(args, ",\"timeout_seconds\":%u", seconds);
	buf_append_str(args, "}");
}

/* What selftest_clean() has to empty. */
static void note_label(struct selftest *s, const char *label)
{
	for (unsigned int i = 0; i < s->label_count; i++) {
		if (strcmp(s->labels[i], label) == 0)
			return;
	}
	if (s->label_count < SELFTEST_LABELS_MAX && str_copy(s->labels[s->label_count], SELFTEST_LABEL_MAX, label) == 0)
		s->label_count++;
}

struct http_query *selftest_run_start(struct selftest *s, const char *label, const char *command,
				      unsigned int seconds)
{
	struct http_query *q;
	struct buf args;

	note_label(s, label);
	write_run(&args, label, command, seconds);
	q = selftest_start(s, "run_command", args.data);
	buf_done(&args);
	return q;
}

int selftest_run(struct selftest *s, const char *label, const char *command, unsigned int seconds,
		 struct selftest_answer *ret)
{
	uint64_t since = loop_now_ns();

	return hear_since(s, selftest_run_start(s, label, command, seconds), ret, since);
}

int selftest_present(struct selftest *s, const char *label, const char *path, struct selftest_answer *ret)
{
	struct buf args;
	int r;

	buf_init(&args, SELFTEST_ARGS_MAX);
	buf_append_str(&args, "{\"sandbox\":");
	json_write_string(&args, label);
	buf_append_str(&args, ",\"path\":");
	json_write_string(&args, path);
	buf_append_str(&args, "}");
	r = selftest_call(s, "present_file", args.data, ret);
	buf_done(&args);
	return r;
}

/* ---- without a tool ---- */

static int exchange(struct selftest *s, const struct http_ask *a, struct http_reply *ret)
{
	struct err e = { 0 };

	if (http_query(s->client, a, ret, &e) == 0)
		return 0;
	selftest_fail(s, "%s %s: %s", a->method, a->target, e.message);
	return -1;
}

int selftest_get(struct selftest *s, const char *method, const char *target, const char *fields,
		 struct http_reply *ret)
{
	return exchange(s, &(struct http_ask){ method, target, fields, NULL, 0, SELFTEST_CALL_MS }, ret);
}

int selftest_post(struct selftest *s, const char *target, const char *fields, const char *body,
		  struct http_reply *ret)
{
	return exchange(s, &(struct http_ask){ "POST", target, fields, body, strlen(body), SELFTEST_CALL_MS }, ret);
}

/* ---- what the server says of itself ---- */

/* The text between two marks. */
static void take_between(const char *text, const char *from, const char *to, char *ret, size_t size)
{
	const char *at = strstr(text, from), *end = at ? strstr(at + strlen(from), to) : NULL;

	*ret = '\0';
	if (end)
		(void)snprintf(ret, size, "%.*s", (int)(end - at - (long)strlen(from)), at + strlen(from));
}

static uint64_t size_of(const char *text)
{
	static const struct {
		const char *unit;
		double bytes;
	} units[] = { { " GiB", 1024.0 * 1024 * 1024 }, { " MiB", 1024.0 * 1024 }, { " KiB", 1024.0 }, { " B", 1 } };
	double value = strtod(text, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strstr(text, units[i].unit))
			return (uint64_t)(value * units[i].bytes);
	}
	return 0;
}

static int learn_limits(struct selftest *s, const char *text)
{
	const char *at = strstr(text, "Limits: memory ");
	char memory[32], cpus[32];
	unsigned long long pids;

	if (!at || sscanf(at, "Limits: memory %31[^,], %31[^,], %llu processes", memory, cpus, &pids) != 3)
		return -1;
	s->memory_bytes = size_of(memory);
	s->cpu_milli = (uint64_t)(strtod(cpus, NULL) * 1000 + 0.5);
	s->pids = pids;
	take_between(text, "Network: ", ".", s->net, sizeof(s->net));
	take_between(text, "NOT enforced on this host: ", ".", s->not_enforced, sizeof(s->not_enforced));
	return s->memory_bytes && s->pids && s->cpu_milli && *s->net ? 0 : -1;
}

int selftest_learn(struct selftest *s)
{
	struct selftest_answer a;
	_cleanup_(json_cleanup) struct json *list = NULL;
	const char *name;
	int r;

	if (selftest_rpc(s, "tools/list", NULL, "{}", &list) != 200) {
		name = json_text(json_member(json_member(list, "error"), "message"));
		if (name || !s->why.len)
			selftest_fail(s, "%s", name ? name : "it does not list its tools");
		return -1;
	}
	name = json_text(json_member(json_item(json_member(json_member(list, "result"), "tools"), 0), "name"));
	s->safe_shell = name && strcmp(name, "run_sandboxed_command") == 0;
	if (s->safe_shell)
		return 0;
	if (selftest_call(s, "sandbox_info", "{}", &a) < 0)
		return -1;
	r = sscanf(a.text, "sandboxes running (%u/%u)", &s->running, &s->max) == 2 ? learn_limits(s, a.text) : -1;
	if (r < 0)
		selftest_fail(s, "sandbox_info says nothing of sandboxes and limits: %.200s", a.text);
	selftest_answer_done(&a);
	return r;
}
