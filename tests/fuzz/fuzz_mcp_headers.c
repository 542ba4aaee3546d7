/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_mcp_headers.c - what agrees with its headers is said by both; a value has one meaning
 *
 * Input: the head of a request, and behind it the message.
 */
#include <string.h>

#include "mcp/base64.h"
#include "mcp/http1.h"
#include "mcp/json.h"
#include "mcp/mcp_headers.h"
#include "runtime/base/buf.h"
#include "tests/fuzz/fuzz.h"

static const struct tool marked = {
	.name = "t",
	.parameters = { { .name = "region", .type = "string", .header = "Region" },
			{ .name = "count", .type = "integer", .header = "Count" } },
};

static const struct http_text *only(const struct http1_head *h, const char *name)
{
	size_t count = 0;
	const struct http_text *v = http1_field(h, name, &count);

	return count == 1 ? v : NULL;
}

/* Whoever reads the header alone, as a proxy does, must come to the same value. */
static void check_agreement(const struct http1_head *h, const char *header, const char *value)
{
	const struct http_text *v = only(h, header);
	char text[HTTP1_HEAD_MAX], encoded[2 * HTTP1_HEAD_MAX];
	size_t len = strlen(value);

	FUZZ_MUST(v && headers_value_is(*v, value));
	FUZZ_MUST(len < sizeof(text));
	if (http_text_is(*v, value))
		return;
	base64_encode(BASE64_STANDARD, value, len, encoded);
	FUZZ_MUST(v->len == strlen("=?base64?") + base64_length(BASE64_STANDARD, len) + strlen("?="));
	FUZZ_MUST(!memcmp(v->data + strlen("=?base64?"), encoded, base64_length(BASE64_STANDARD, len)));
}

static void check_names(const struct http1_head *h, const struct rpc_message *m)
{
	const char *why = NULL, *name = json_text(json_member(m->params, "name"));
	enum rpc_failure f = headers_check_names(h, m, &why);

	FUZZ_MUST(f == RPC_OK || (f == RPC_HEADER && why && strlen(why) < 160));
	if (f)
		return;
	check_agreement(h, "mcp-method", m->method);
	if (name && !strcmp(m->method, "tools/call"))
		check_agreement(h, "mcp-name", name);
}

static void check_parameters(const struct http1_head *h, const struct rpc_message *m)
{
	const struct json *region = json_member(json_member(m->params, "arguments"), "region");
	const char *why = NULL;
	enum rpc_failure f = headers_check_parameters(h, m, &marked, &why);
	size_t count = 0;

	FUZZ_MUST(f == RPC_OK || (f == RPC_HEADER && why && strlen(why) < 160));
	if (f)
		return;
	if (json_text(region))
		check_agreement(h, "mcp-param-region", json_text(region));
	else if (json_kind(region) == JSON_NULL || json_kind(region) == JSON_OBJECT || json_kind(region) == JSON_ARRAY)
		FUZZ_MUST(!http1_field(h, "mcp-param-region", &count));
}

static void check_versions(const struct http1_head *h, const struct rpc_message *m)
{
	const char *why = NULL;
	enum rpc_failure f = headers_check_version(h, m, &why);

	FUZZ_MUST(f == RPC_OK || (f == RPC_HEADER && why));
	FUZZ_MUST(f || only(h, "mcp-protocol-version"));
	f = headers_check_legacy(h, &why);
	FUZZ_MUST(f == RPC_OK || ((f == RPC_PARAMS || f == RPC_REQUEST) && why));
}

static void check_shown(const struct http1_head *h)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	headers_write(h, &b);
	FUZZ_MUST(!b.overflow && b.len < 2 * HTTP1_HEAD_MAX + 64 * h->field_count + 64);
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct http1_refusal r = { 0 };
	struct http1_head h;
	struct rpc_message m;
	long used = http1_parse_head(&h, text, size, &r);

	if (used <= 0)
		return 0;
	check_shown(&h);
	if (rpc_parse(&m, text + used, size - (size_t)used) == RPC_OK && m.kind == RPC_CALL) {
		check_versions(&h, &m);
		check_names(&h, &m);
		check_parameters(&h, &m);
	}
	rpc_message_done(&m);
	return 0;
}
