/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/mcp_headers.c - the headers of MCP over HTTP, against the message they came with
 *
 * Runs in the front, on hostile headers and messages.
 */
#include "mcp/mcp_headers.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "mcp/base64.h"
#include "mcp/bounds.h"
#include "mcp/json.h"
#include "mcp/protocol.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"

#define SENTINEL_HEAD "=?base64?"
#define SENTINEL_TAIL "?="

enum {
	SENTINEL_HEAD_LEN = sizeof(SENTINEL_HEAD) - 1,
	SENTINEL_TAIL_LEN = sizeof(SENTINEL_TAIL) - 1,
	SHOWN_MAX = 16 * 1024, /* of all headers in sandbox_info */
	PARAMETER_NAME_MAX = 80,
};

/* Why something was refused, for the length of one answer; single thread. */
static char why_text[160];

static enum rpc_failure mismatch(const char **ret_why, const char *header, const char *what)
{
	(void)snprintf(why_text, sizeof(why_text), "Header mismatch: %s %s", header, what);
	*ret_why = why_text;
	return RPC_HEADER;
}

/* ---- values ---- */

static bool is_sentinel(struct http_text v)
{
	return v.len >= SENTINEL_HEAD_LEN + SENTINEL_TAIL_LEN &&
	       memcmp(v.data, SENTINEL_HEAD, SENTINEL_HEAD_LEN) == 0 &&
	       memcmp(v.data + v.len - SENTINEL_TAIL_LEN, SENTINEL_TAIL, SENTINEL_TAIL_LEN) == 0;
}

static bool encoded_is(const char *data, size_t len, const char *text)
{
	_cleanup_free_ char *bytes = malloc(len / 4 * 3 + 3);
	long n = bytes ? base64_decode(BASE64_STANDARD, data, len, bytes) : -1;

	return n >= 0 && (size_t)n == strlen(text) && memcmp(bytes, text, (size_t)n) == 0;
}

/* What is not printable ASCII cannot stand in a header as it is: whoever sends it so is read differently
 * by different programs. */
static bool is_plain(struct http_text v)
{
	for (size_t i = 0; i < v.len; i++) {
		if ((unsigned char)v.data[i] < ' ' || (unsigned char)v.data[i] > '~')
			return false;
	}
	return true;
}

bool headers_value_is(struct http_text v, const char *text)
{
	if (is_sentinel(v))
		return encoded_is(v.data + SENTINEL_HEAD_LEN,
				  v.len - SENTINEL_HEAD_LEN - SENTINEL_TAIL_LEN, text);
	return is_plain(v) && http_text_is(v, text);
}

bool headers_has_type(struct http_text value, const char *type)
{
	const char *at = value.data, *end = value.data + value.len;

	while (at < end) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *next = comma ? comma : end;
		const char *stop = memchr(at, ';', (size_t)(next - at));
		struct http_text item = { at, (size_t)((stop ? stop : next) - at) };

		while (item.len && (*item.data == ' ' || *item.data == '\t')) {
			item.data++;
			item.len--;
		}
		while (item.len && (item.data[item.len - 1] == ' ' || item.data[item.len - 1] == '\t'))
			item.len--;
		if (http_text_is_word(item, type))
			return true;
		at = next + 1;
	}
	return false;
}

/* ---- versions ---- */

enum rpc_failure headers_check_version(const struct http1_head *head, const struct rpc_message *m,
				       const char **ret_why)
{
	size_t count = 0;
	const struct http_text *v = http1_field(head, "mcp-protocol-version", &count);
	const char *version = json_text(json_member(json_member(m->params, "_meta"),
						    META_PREFIX "protocolVersion"));

	if (!v)
		return mismatch(ret_why, "MCP-Protocol-Version", "is missing");
	if (count != 1 || !version || !http_text_is(*v, version))
		return mismatch(ret_why, "MCP-Protocol-Version",
				"is not the body's _meta " META_PREFIX "protocolVersion");
	return RPC_OK;
}

enum rpc_failure headers_check_legacy(const struct http1_head *head, const char **ret_why)
{
	size_t count = 0;
	const struct http_text *v = http1_field(head, "mcp-protocol-version", &count);
	char version[16];

	if (!v)
		return RPC_OK;
	if (http_text_is(*v, PROTOCOL_MODERN)) {
		*ret_why = "Missing _meta " META_PREFIX "protocolVersion, " META_PREFIX "clientCapabilities";
		return RPC_PARAMS;
	}
	(void)snprintf(version, sizeof(version), "%.*s", (int)v->len, v->data);
	if (count == 1 && v->len < sizeof(version) && protocol_legacy(version))
		return RPC_OK;
	*ret_why = "Unsupported MCP-Protocol-Version";
	return RPC_REQUEST;
}

/* ---- names ---- */

static const char *name_of(const struct rpc_message *m)
{
	static const struct {
		const char *method, *member;
	} rows[] = {
		{ "tools/call", "name" },
		{ "prompts/get", "name" },
		{ "resources/read", "uri" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strcmp(m->method, rows[i].method))
			return json_text(json_member(m->params, rows[i].member));
	}
	return NULL;
}

static enum rpc_failure check_value(const struct http1_head *head, const char *lower, const char *shown,
				    const char *want, const char **ret_why)
{
	size_t count = 0;
	const struct http_text *v = http1_field(head, lower, &count);

	if (!v)
		return mismatch(ret_why, shown, "is missing");
	if (count != 1 || !headers_value_is(*v, want))
		return mismatch(ret_why, shown, "is not what the body says");
	return RPC_OK;
}

enum rpc_failure headers_check_names(const struct http1_head *head, const struct rpc_message *m,
				     const char **ret_why)
{
	enum rpc_failure f = check_value(head, "mcp-method", "Mcp-Method", m->method, ret_why);
	const char *name = name_of(m);

	return f || !name ? f : check_value(head, "mcp-name", "Mcp-Name", name, ret_why);
}

/* ---- parameters ---- */

/* An argument as it stands in a header: text as it is, numbers as they were written. Return: false when there
 * is nothing to stand there. */
static bool write_argument(const struct rpc_message *m, const char *name, struct buf *ret)
{
	const struct json *v = json_member(json_member(m->params, "arguments"), name);
	const char *raw;
	size_t len;

	switch (json_kind(v)) {
	case JSON_STRING:
		buf_append_str(ret, json_text(v));
		return true;
	case JSON_NUMBER:
	case JSON_BOOL:
		if (rpc_raw_param(m, "arguments", name, &raw, &len) == 0)
			buf_append(ret, raw, len);
		return true;
	default:
		return false;
	}
}

static enum rpc_failure check_parameter(const struct http1_head *head, const struct rpc_message *m,
					const struct tool_parameter *p, const char **ret_why)
{
	char shown[PARAMETER_NAME_MAX], lower[PARAMETER_NAME_MAX];
	enum rpc_failure f = RPC_OK;
	struct buf want;
	size_t count = 0;

	(void)snprintf(shown, sizeof(shown), "Mcp-Param-%s", p->header);
	for (size_t i = 0; i < sizeof(lower); i++)
		lower[i] = (char)tolower((unsigned char)shown[i]);
	buf_init(&want, LIMIT_MESSAGE);
	if (write_argument(m, p->name, &want))
		f = check_value(head, lower, shown, want.data ? want.data : "", ret_why);
	else if (http1_field(head, lower, &count))
		f = mismatch(ret_why, shown, "is there, and its argument is not");
	buf_done(&want);
	return f;
}

enum rpc_failure headers_check_parameters(const struct http1_head *head, const struct rpc_message *m,
					  const struct tool *tool, const char **ret_why)
{
	enum rpc_failure f = RPC_OK;

	for (const struct tool_parameter *p = tool->parameters; p->name && !f; p++)
		if (p->header)
			f = check_parameter(head, m, p, ret_why);
	return f;
}

/* ---- sandbox_info ---- */

static bool may_be_secret(struct http_text t)
{
	static const char *const words[] = { "auth", "cookie", "key", "secret", "token" };

	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		size_t len = strlen(words[w]);

		for (size_t i = 0; i + len <= t.len; i++) {
			if (strncasecmp(t.data + i, words[w], len) == 0)
				return true;
		}
	}
	return false;
}

void headers_write(const struct http1_head *head, struct buf *b)
{
	size_t start = b->len;

	buf_append_str(b, "headers of this request:\n");
	for (size_t i = 0; i < head->field_count && b->len - start < SHOWN_MAX; i++) {
		const struct http1_field *f = &head->fields[i];
		bool hidden = may_be_secret(f->name) || may_be_secret(f->value);

		buf_append_str(b, "- ");
		buf_append(b, f->name.data, f->name.len);
		buf_append_str(b, ": ");
		if (hidden)
			buf_append_str(b, "[redacted]");
		else
			buf_append(b, f->value.data, f->value.len);
		buf_append_str(b, "\n");
	}
}
