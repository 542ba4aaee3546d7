/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_registry.c - the same of a server with everything registered: questions, state, news
 *
 * Input: lines of a client. Only JSON messages on single lines go out, and when the client goes, no call of
 * its is left.
 */
#include <string.h>

#include "mcp/json.h"
#include "mcp/server.h"
#include "tests/conformance/fixtures.h"
#include "tests/fuzz/fuzz.h"

struct collector {
	struct sink sink;
	struct buf out;
};

static struct buf *on_begin(struct sink *s)
{
	struct collector *c = (struct collector *)s;

	FUZZ_MUST(!c->out.len);
	return &c->out;
}

static void on_end(struct sink *s, int status, bool final)
{
	struct collector *c = (struct collector *)s;
	struct json *root;
	const char *why;

	FUZZ_MUST(status >= 200 && status < 500 && (final || c->out.len));
	if (!c->out.len)
		return;
	root = json_parse(c->out.data, c->out.len, &why);
	FUZZ_MUST(root && json_kind(root) == JSON_OBJECT && !memchr(c->out.data, '\n', c->out.len));
	FUZZ_MUST(!json_member(root, "result") + !json_member(root, "error") + !json_member(root, "method") == 2);
	FUZZ_MUST(!final || !json_member(root, "method"));
	json_free(root);
	buf_consume(&c->out, c->out.len);
}

static bool yes(struct sink *s)
{
	(void)s;
	return true;
}

static void init(struct server *s, struct keeper_client *keeper)
{
	struct err e;

	keeper->source.fd = -1;
	memcpy(keeper->hello.owner, OWNER_DEFAULT, sizeof(OWNER_DEFAULT));
	FUZZ_MUST(server_init(s, loop_new(&e), keeper, &fixtures, &e) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct keeper_client keeper;
	static struct server server;
	struct collector c = { .sink = { on_begin, on_end, yes, yes } };
	struct peer peer = { .streams = true };
	const char *line = (const char *)data, *end = line + size;

	if (!server.loop)
		init(&server, &keeper);
	buf_init(&c.out, 1 << 24);
	while (line < end) {
		const char *lf = memchr(line, '\n', (size_t)(end - line));
		size_t len = lf ? (size_t)(lf - line) : (size_t)(end - line);

		server_receive(&server, &peer, &c.sink, line, len);
		line += len + 1;
	}
	server_cancel_peer(&server, &peer);
	FUZZ_MUST(!server.calls && !server.call_count);
	buf_done(&c.out);
	return 0;
}
