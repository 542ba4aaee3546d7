/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_protocol.c - whatever lines come in, only JSON messages on single lines go out */
#include <string.h>

#include "mcp/json.h"
#include "mcp/json_scan.h"
#include "mcp/server.h"
#include "mcp/tools.h"
#include "tests/fuzz/fuzz.h"

struct collector {
	struct sink sink;
	struct buf out;
	unsigned int begun, ended;
};

static struct buf *on_begin(struct sink *s)
{
	struct collector *c = (struct collector *)s;

	c->begun++;
	buf_consume(&c->out, c->out.len);
	return &c->out;
}

static void on_end(struct sink *s, int status, bool final)
{
	struct collector *c = (struct collector *)s;
	struct json *root;
	const char *why;

	c->ended += final;
	FUZZ_MUST(status >= 200 && status < 500);
	if (!c->out.len)
		return;
	root = json_parse(c->out.data, c->out.len, &why);
	FUZZ_MUST(root && json_kind(root) == JSON_OBJECT && !memchr(c->out.data, '\n', c->out.len));
	FUZZ_MUST(!json_member(root, "result") != !json_member(root, "error"));
	json_free(root);
	buf_consume(&c->out, c->out.len);
}

static bool on_ready(struct sink *s)
{
	(void)s;
	return true;
}

/* A keeper that is not there refuses every request at once. */
static void init(struct server *s, struct keeper_client *keeper)
{
	struct err e;

	keeper->source.fd = -1;
	memcpy(keeper->hello.owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
	memcpy(keeper->hello.profile, "code", 5);
	FUZZ_MUST(server_init(s, loop_new(&e), keeper, &sandbox_registry, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct keeper_client keeper;
	static struct server server;
	struct collector c = { .sink = { on_begin, on_end, on_ready } };
	struct peer peer = { 0 };
	const char *line = (const char *)data, *end = line + size;
	unsigned int lines = 0;

	if (!server.loop)
		init(&server, &keeper);
	buf_init(&c.out, 1 << 24);
	while (line < end) {
		const char *lf = memchr(line, '\n', (size_t)(end - line));
		size_t len = lf ? (size_t)(lf - line) : (size_t)(end - line);

		server_receive(&server, &peer, &c.sink, line, len);
		lines++;
		FUZZ_MUST(c.ended == lines && c.begun <= lines && !server.call_count);
		line += len + 1;
	}
	buf_done(&c.out);
	return 0;
}
