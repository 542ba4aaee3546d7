/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/jsonrpc.c - JSON-RPC 2.0 messages: one text in, a checked envelope out; error texts
 *
 * Runs in the front, without privilege, on hostile text. Ids are echoed as the bytes the client
 * wrote: a double would lose the digits of 9007199254740993.
 */
#include "mcp/jsonrpc.h"

#include <string.h>

#include "mcp/json.h"
#include "mcp/json_scan.h"
#include "mcp/json_write.h"
#include "mcp/bounds.h"
#include "runtime/base/buf.h"

static const struct {
	int code, http_status;
} rpc_failures[] = {
	[RPC_OK] = { 0, 200 },
	[RPC_PARSE] = { -32700, 400 },
	[RPC_REQUEST] = { -32600, 400 },
	[RPC_METHOD] = { -32601, 404 },
	[RPC_PARAMS] = { -32602, 400 },
	[RPC_UNKNOWN_NAME] = { -32602, 200 },
	[RPC_NO_RESOURCE] = { -32002, 200 },
	[RPC_CAPABILITY] = { -32021, 400 },
	[RPC_VERSION] = { -32022, 400 },
	[RPC_HEADER] = { -32020, 400 },
	[RPC_SESSION] = { -32001, 404 },
	[RPC_INTERNAL] = { -32603, 200 },
};

int rpc_error_code(enum rpc_failure f)
{
	return rpc_failures[f].code;
}

int rpc_http_status(enum rpc_failure f)
{
	return rpc_failures[f].http_status;
}

static enum rpc_failure fail(struct rpc_message *m, enum rpc_failure f, const char *why)
{
	m->why = why;
	return f;
}

/* Only strings and numbers are ids; null would make the answer look like one to a parse error. */
static enum rpc_failure take_id(struct rpc_message *m)
{
	enum json_kind kind;
	const char *id;
	size_t len;

	if (!json_scan_member(m->text, m->len, "id", &id, &len))
		return RPC_OK;
	kind = json_kind(json_member(m->root, "id"));
	if (kind != JSON_STRING && kind != JSON_NUMBER)
		return fail(m, RPC_REQUEST, "id must be a string or a number");
	if (len > LIMIT_ID)
		return fail(m, RPC_REQUEST, "id is too long");
	m->id = id;
	m->id_len = len;
	return RPC_OK;
}

static enum rpc_failure take_kind(struct rpc_message *m)
{
	const struct json *method = json_member(m->root, "method");

	m->method = json_text(method);
	if (m->method) {
		m->kind = m->id ? RPC_CALL : RPC_NOTIFICATION;
		return RPC_OK;
	}
	if (method)
		return fail(m, RPC_REQUEST, "method must be a string");
	if (!json_member(m->root, "result") && !json_member(m->root, "error"))
		return fail(m, RPC_REQUEST, "method is missing");
	m->kind = RPC_RESPONSE;
	return RPC_OK;
}

static enum rpc_failure take_params(struct rpc_message *m)
{
	const struct json *params = json_member(m->root, "params");

	if (json_kind(params) == JSON_OBJECT)
		m->params = params;
	else if (json_kind(params) != JSON_NULL)
		return fail(m, RPC_PARAMS, "params must be an object");
	return RPC_OK;
}

/* Nothing but the id can be read of it; without one, nobody waits. */
static enum rpc_failure take_unreadable(struct rpc_message *m)
{
	const char *id;
	size_t len;

	if (!json_scan_is_json(m->why) || !json_scan_member(m->text, m->len, "id", &id, &len) || len > LIMIT_ID ||
	    !(id[0] == '"' || id[0] == '-' || (id[0] >= '0' && id[0] <= '9')) ||
	    json_scan(id, len) != NULL)
		return RPC_PARSE;
	m->id = id;
	m->id_len = len;
	return RPC_PARAMS;
}

enum rpc_failure rpc_parse(struct rpc_message *m, const char *text, size_t len)
{
	enum rpc_failure f;
	const char *version;

	*m = (struct rpc_message){ .text = text, .len = len };
	m->root = json_parse(text, len, &m->why);
	if (!m->root)
		return take_unreadable(m);
	if (json_kind(m->root) == JSON_ARRAY)
		return fail(m, RPC_REQUEST, "batches are not supported");
	if (json_kind(m->root) != JSON_OBJECT)
		return fail(m, RPC_REQUEST, "a message must be an object");
	f = take_id(m);
	if (f)
		return f;
	version = json_text(json_member(m->root, "jsonrpc"));
	if (!version || strcmp(version, "2.0") != 0)
		return fail(m, RPC_REQUEST, "jsonrpc must be \"2.0\"");
	f = take_kind(m);
	return f ? f : take_params(m);
}

void rpc_message_done(struct rpc_message *m)
{
	json_free(m->root);
	m->root = NULL;
}

int rpc_raw_param(const struct rpc_message *m, const char *first, const char *second,
		  const char **ret_text, size_t *ret_len)
{
	const char *path[] = { "params", first, second };
	const char *text = m->text;
	size_t len = m->len;

	for (size_t i = 0; i < 3 && path[i]; i++)
		if (!json_scan_member(text, len, path[i], &text, &len))
			return -1;
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static void write_id(struct buf *b, const char *id, size_t id_len)
{
	buf_append_str(b, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (id)
		buf_append(b, id, id_len);
	else
		buf_append_str(b, "null");
}

void rpc_write_error(struct buf *b, const char *id, size_t id_len, enum rpc_failure f,
		     const char *message, const char *data)
{
	write_id(b, id, id_len);
	buf_printf(b, ",\"error\":{\"code\":%d,\"message\":", rpc_error_code(f));
	json_write_string(b, message);
	if (data) {
		buf_append_str(b, ",\"data\":");
		buf_append_str(b, data);
	}
	buf_append_str(b, "}}");
}

void rpc_write_result_head(struct buf *b, const char *id, size_t id_len)
{
	write_id(b, id, id_len);
	buf_append_str(b, ",\"result\":");
}
