/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_http_front.c - what is decided from headers alone: names, tokens, sessions, agreement */
#include "mcp/auth.h"
#include "mcp/base64.h"
#include "mcp/hosts.h"
#include "mcp/mcp_headers.h"
#include "mcp/session.h"
#include "runtime/base/buf.h"

#include "runtime/base/str.h"
#include "tests/unit/tap.h"

static struct http1_head head;
static struct http_client client;
static struct http_request request = { .head = &head, .client = &client };

/* A head with these fields ("Name: value", one a line). */
static void set_head(const char *fields)
{
	static char text[8192];
	struct http1_refusal why;

	(void)snprintf(text, sizeof(text), "POST /mcp HTTP/1.1\r\nHost: x\r\n%s\r\n", fields);
	if (http1_parse_head(&head, text, strlen(text), &why) < 0)
		tap_bail("%s: %s", fields, why.why);
}

static struct http_text text_of(const char *s)
{
	return (struct http_text){ s, strlen(s) };
}

static void test_hosts(void)
{
	static const struct {
		const char *base, *allowed, *host;
		bool want;
	} rows[] = {
		{ "", "", "localhost", true }, { "", "", "LOCALHOST:8000", true }, { "", "", "127.0.0.1:1", true },
		{ "", "", "[::1]:8000", true }, { "", "", "[::1]", true }, { "", "", "", false },
		{ "", "", "localhost.evil.example", false }, { "", "", "localhost:evil", false },
		{ "", "", "localhost:", false }, { "", "", "localhost:123456", false },
		{ "", "", "127.0.0.1.evil.example", false }, { "", "", "evil.example", false },
		{ "", "", "10.0.0.1:8000", false }, { "", "", "localhost.", false },
		{ "https://box.example", "", "box.example", true },
		{ "https://box.example", "", "box.example:443", true },
		{ "https://box.example", "", "Box.Example", true },
		{ "https://box.example", "", "x.box.example", false },
		{ "https://box.example:8443/sub", "", "box.example:8443", true },
		{ "https://box.example:8443/sub", "", "box.example", false },
		{ "https://box.example:8443", "", "box.example:8444", false },
		{ "", "a.example,b.example:81", "a.example:9", true },
		{ "", "a.example,b.example:81", "b.example:81", true },
		{ "", "a.example,b.example:81", "b.example", false },
		{ "", "a.example,b.example:81", "example", false },
		{ "", "a.example,b.example:81", "a.example,b.example:81", false },
		{ "", "[fd00::1]", "[fd00::1]:8000", true }, { "", "[fd00::1]:80", "[fd00::1]", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hosts h = { rows[i].base, rows[i].allowed };

		tap_int(hosts_allow(&h, text_of(rows[i].host)), rows[i].want, "host \"%s\" (%s|%s)",
			rows[i].host, rows[i].base, rows[i].allowed);
	}
}

static void test_origins(void)
{
	static const struct {
		const char *origin;
		bool want;
	} rows[] = {
		{ "http://localhost:6274", true }, { "https://box.example", true }, { "null", false },
		{ "", false }, { "http://", false }, { "https://evil.example", false },
		{ "file://localhost", false }, { "localhost", false },
		{ "http://localhost@evil.example", false }, { "http://evil.example/localhost", false },
		{ "http://localhost/evil", false }, { "HTTP://LOCALHOST", true },
	};
	struct hosts h = { "https://box.example", "" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		tap_int(hosts_allow_origin(&h, text_of(rows[i].origin)), rows[i].want, "origin \"%s\"",
			rows[i].origin);
}

static struct auth auth;

static enum auth_verdict try(const char *fields, const char *address, uint64_t now_s)
{
	char owner[OWNER_ID_LEN + 1] = "";
	uint32_t wait_s = 0;
	enum auth_verdict v;

	set_head(fields);
	(void)snprintf(client.address, sizeof(client.address), "%s", address);
	client.is_loopback = strncmp(address, "127.", 4) == 0 || !strcmp(address, "::1");
	v = auth_check(&auth, &request, now_s, owner, &wait_s);
	if (v == AUTH_OK)
		tap_ok(!strcmp(owner, "2bd806c9") || !strcmp(owner, OWNER_DEFAULT), "as %s", owner);
	if (v == AUTH_LIMITED)
		tap_ok(wait_s > 0 && wait_s <= AUTH_WINDOW_S, "for %u s", wait_s);
	return v;
}

static void set_up_auth(bool no_token, bool behind_proxy)
{
	static struct {
		struct api_tokens head;
		struct api_token rows[2];
	} t = { .head.count = 2 };

	(void)str_copy(t.rows[0].owner, sizeof(t.rows[0].owner), OWNER_DEFAULT);
	(void)digest_sha256("first", 5, t.rows[0].hash);
	(void)str_copy(t.rows[1].owner, sizeof(t.rows[1].owner), "2bd806c9");
	(void)digest_sha256("second", 6, t.rows[1].hash);
	auth_init(&auth, no_token, behind_proxy);
	auth_set_tokens(&auth, &t.head);
}

static void test_tokens(void)
{
	static const struct {
		const char *fields;
		enum auth_verdict want;
	} rows[] = {
		{ "", AUTH_MISSING },
		{ "Authorization: Bearer first\r\n", AUTH_OK },
		{ "authorization: bearer second\r\n", AUTH_OK },
		{ "Authorization: Bearer   first  \r\n", AUTH_OK },
		{ "Authorization: Bearer firs\r\n", AUTH_WRONG },
		{ "Authorization: Bearer first1\r\n", AUTH_WRONG },
		{ "Authorization: Bearer\r\n", AUTH_WRONG },
		{ "Authorization: Bearer \r\n", AUTH_WRONG },
		{ "Authorization: Basic first\r\n", AUTH_WRONG },
		{ "Authorization: first\r\n", AUTH_WRONG },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_up_auth(false, false);
		tap_int(try(rows[i].fields, "192.0.2.1", 1000), rows[i].want, "%s", rows[i].fields);
	}
	set_up_auth(true, false);
	tap_int(try("", "127.0.0.1", 1000), AUTH_OK, "without tokens everybody is let in");
}

static void fail_times(int n, const char *fields, const char *address, uint64_t now_s)
{
	for (int i = 0; i < n; i++) {
		if (try(fields, address, now_s) != AUTH_WRONG)
			tap_ok(false, "failure %d of %d is a 401", i + 1, n);
	}
}

static void test_limit(void)
{
	static const char wrong[] = "Authorization: Bearer no\r\n", right[] = "Authorization: Bearer first\r\n";

	set_up_auth(false, false);
	fail_times(AUTH_FAILURES_MAX, wrong, "192.0.2.1", 1000);
	tap_int(try(wrong, "192.0.2.1", 1001), AUTH_LIMITED, "one too many");
	tap_int(try(right, "192.0.2.1", 1001), AUTH_OK, "a good token is let in all the same");
	tap_int(try(wrong, "192.0.2.1", 1001), AUTH_LIMITED, "and changes nothing for wrong ones");
	tap_int(try("", "192.0.2.1", 1001), AUTH_MISSING, "no token is no guess");
	tap_int(try(wrong, "192.0.2.2", 1001), AUTH_WRONG, "another address has its own count");
	tap_int(try(wrong, "192.0.2.1", 1000 + AUTH_WINDOW_S), AUTH_WRONG, "the time is over");
	fail_times(AUTH_FAILURES_MAX, wrong, "2001:db8::1", 2000);
	tap_int(try(wrong, "2001:db8::2", 2000), AUTH_LIMITED, "a /64 is one address");
	tap_int(try(wrong, "2001:db8:0:1::2", 2000), AUTH_WRONG, "the next /64 another");
	tap_int(try("X-Forwarded-For: 192.0.2.77\r\nAuthorization: Bearer no\r\n", "2001:db8::3", 2000), AUTH_LIMITED,
		"X-Forwarded-For is not believed");
}

static void test_proxy(void)
{
	static const char a[] = "X-Forwarded-For: 198.51.100.9, 192.0.2.1\r\nAuthorization: Bearer no\r\n";
	static const char b[] = "X-Forwarded-For: 198.51.100.10\r\nX-Forwarded-For: 192.0.2.1\r\n"
				"Authorization: Bearer no\r\n";
	static const char c[] = "X-Forwarded-For: 192.0.2.1, 192.0.2.3\r\nAuthorization: Bearer no\r\n";
	static const char d[] = "X-Forwarded-For: 192.0.2.1, junk\r\nAuthorization: Bearer no\r\n";

	set_up_auth(false, true);
	fail_times(AUTH_FAILURES_MAX, a, "127.0.0.1", 1000);
	tap_int(try(b, "127.0.0.1", 1000), AUTH_LIMITED, "the last hop of the last field counts");
	tap_int(try(c, "127.0.0.1", 1000), AUTH_WRONG, "and only that");
	tap_int(try(d, "127.0.0.1", 1000), AUTH_WRONG, "what is no address is the proxy's own");
	tap_int(try(a, "192.0.2.50", 1000), AUTH_WRONG, "from elsewhere the field is not believed");
}

/* More addresses than are remembered: nothing grows, and the limit still works for each in a row. */
static void test_flood(void)
{
	char address[32];
	int wrong = 0;

	set_up_auth(false, false);
	set_head("Authorization: Bearer no\r\n");
	for (int i = 0; i < 20000; i++) {
		char owner[OWNER_ID_LEN + 1];
		uint32_t wait_s;

		(void)snprintf(client.address, sizeof(client.address), "10.%d.%d.1", i / 250, i % 250);
		wrong += auth_check(&auth, &request, 1000 + (uint64_t)i / 1000, owner, &wait_s) == AUTH_WRONG;
	}
	tap_int(wrong, 20000, "each of 20000 addresses has its first failure");
	(void)snprintf(address, sizeof(address), "203.0.113.1");
	fail_times(AUTH_FAILURES_MAX, "Authorization: Bearer no\r\n", address, 1020);
	tap_int(try("Authorization: Bearer no\r\n", address, 1020), AUTH_LIMITED, "and the next is limited");
}

static void test_sessions(void)
{
	static struct sessions s, other = { .key = { 1 } };
	char id[SESSION_ID_MAX], second[SESSION_ID_MAX], scope[SESSION_SCOPE_MAX], again[SESSION_SCOPE_MAX];
	char bad[SESSION_ID_MAX];
	unsigned int caps;

	tap_int(session_make(&s, OWNER_DEFAULT, 5, id), 0, "an id: %s", id);
	tap_int(session_make(&s, OWNER_DEFAULT, 0, second), 0, "another");
	tap_ok(strcmp(id, second) != 0, "is another");
	tap_int(session_look(&s, text_of(id), OWNER_DEFAULT, scope, &caps), SESSION_VALID, "it is ours");
	tap_int(caps, 5, "and says what its client can be asked");
	tap_int(session_look(&s, text_of(second), OWNER_DEFAULT, again, &caps), SESSION_VALID, "so is the other");
	tap_ok(strcmp(scope, again) != 0, "each has its scope");
	tap_int(session_look(&s, text_of(id), "2bd806c9", scope, &caps), SESSION_NONE, "not with another owner's token");
	tap_int(session_look(&other, text_of(id), OWNER_DEFAULT, scope, &caps), SESSION_NONE, "not with another key");
	tap_int(session_look(&s, text_of("v1.abc"), OWNER_DEFAULT, scope, &caps), SESSION_NONE, "a short one");
	tap_int(session_look(&s, text_of(""), OWNER_DEFAULT, scope, &caps), SESSION_NONE, "an empty one");
	for (size_t i = 0; i < strlen(id); i += 7) {
		(void)str_copy(bad, sizeof(bad), id);
		bad[i] = bad[i] == 'A' ? 'B' : 'A';
		tap_int(session_look(&s, text_of(bad), OWNER_DEFAULT, scope, &caps), SESSION_NONE, "changed at %zu", i);
	}
	session_end(&s, text_of(id));
	tap_int(session_look(&s, text_of(id), OWNER_DEFAULT, scope, &caps), SESSION_ENDED, "ended");
	tap_int(session_look(&s, text_of(second), OWNER_DEFAULT, scope, &caps), SESSION_VALID, "the other goes on");
	for (int i = 0; i < SESSION_ENDED_MAX; i++) {
		(void)session_make(&s, OWNER_DEFAULT, 0, second);
		session_end(&s, text_of(second));
	}
	tap_int(session_look(&s, text_of(second), OWNER_DEFAULT, scope, &caps), SESSION_ENDED, "the newest are remembered");
	tap_int(session_look(&s, text_of(id), OWNER_DEFAULT, scope, &caps), SESSION_VALID, "the oldest is not");
}

#define ENVELOPE "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}"

static enum rpc_failure agree(const char *fields, const char *body)
{
	struct rpc_message m;
	enum rpc_failure f;
	const char *why = "";

	set_head(fields);
	if (rpc_parse(&m, body, strlen(body)))
		tap_bail("%s", body);
	f = headers_check_version(&head, &m, &why);
	if (!f)
		f = headers_check_names(&head, &m, &why);
	rpc_message_done(&m);
	return f;
}

#define V "MCP-Protocol-Version: 2026-07-28\r\n"
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\"," ENVELOPE "}}"

static void test_agreement(void)
{
	static const struct {
		const char *desc, *fields, *name;
		bool want;
	} rows[] = {
		{ "all there", V "Mcp-Method: tools/call\r\nMcp-Name: run\r\n", "run", true },
		{ "names in any case", "mcp-PROTOCOL-version: 2026-07-28\r\nMCP-METHOD: tools/call\r\nmcp-name: run\r\n",
		  "run", true },
		{ "white space around", V "Mcp-Method:  tools/call \r\nMcp-Name: \trun\r\n", "run", true },
		{ "no version", "Mcp-Method: tools/call\r\nMcp-Name: run\r\n", "run", false },
		{ "another version", "MCP-Protocol-Version: 2025-11-25\r\nMcp-Method: tools/call\r\nMcp-Name: run\r\n",
		  "run", false },
		{ "no method", V "Mcp-Name: run\r\n", "run", false },
		{ "another method", V "Mcp-Method: tools/list\r\nMcp-Name: run\r\n", "run", false },
		{ "method in another case", V "Mcp-Method: Tools/Call\r\nMcp-Name: run\r\n", "run", false },
		{ "no name", V "Mcp-Method: tools/call\r\n", "run", false },
		{ "another name", V "Mcp-Method: tools/call\r\nMcp-Name: wrong\r\n", "run", false },
		{ "name in another case", V "Mcp-Method: tools/call\r\nMcp-Name: Run\r\n", "run", false },
		{ "encoded", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?cnVu?=\r\n", "run", true },
		{ "encoded, not ASCII", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?w6Q=?=\r\n", "\xc3\xa4", true },
		{ "encoded without padding", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?w6Q?=\r\n", "\xc3\xa4", false },
		{ "encoded with too much", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?cnVu====?=\r\n", "run", false },
		{ "encoded in the other alphabet", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?-_8=?=\r\n", "x", false },
		{ "encoded, something else", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?cnVuMQ==?=\r\n", "run", false },
		{ "sentinel in capitals is text", V "Mcp-Method: tools/call\r\nMcp-Name: =?BASE64?cnVu?=\r\n", "run", false },
		{ "sentinel alone", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?=\r\n", "run", false },
		{ "an empty name", V "Mcp-Method: tools/call\r\nMcp-Name: =?base64?" "?=\r\n", "", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char body[512];

		(void)snprintf(body, sizeof(body), CALL, rows[i].name);
		tap_int(agree(rows[i].fields, body), rows[i].want ? RPC_OK : RPC_HEADER, "%s", rows[i].desc);
	}
	tap_int(agree(V "Mcp-Method: tools/list\r\n",
		      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" ENVELOPE "}}"),
		RPC_OK, "a method without a name needs no Mcp-Name");
}

static void test_legacy(void)
{
	static const struct {
		const char *fields;
		enum rpc_failure want;
	} rows[] = {
		{ "", RPC_OK },
		{ "MCP-Protocol-Version: 2025-11-25\r\n", RPC_OK },
		{ "MCP-Protocol-Version: 2024-11-05\r\n", RPC_OK },
		{ "MCP-Protocol-Version: 2026-07-28\r\n", RPC_PARAMS },
		{ "MCP-Protocol-Version: 1.0\r\n", RPC_REQUEST },
		{ "MCP-Protocol-Version: \r\n", RPC_REQUEST },
		{ "MCP-Protocol-Version: 2025-11-25-and-a-long-tail\r\n", RPC_REQUEST },
	};
	const char *why;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_head(rows[i].fields);
		tap_int(headers_check_legacy(&head, &why), rows[i].want, "legacy: %s", rows[i].fields);
	}
}

static void test_types(void)
{
	tap_ok(headers_has_type(text_of("application/json"), "application/json"), "alone");
	tap_ok(headers_has_type(text_of("Application/JSON; charset=utf-8"), "application/json"), "with a parameter");
	tap_ok(headers_has_type(text_of("text/event-stream;q=0.5 , application/json"), "application/json"), "second");
	tap_ok(!headers_has_type(text_of("application/jsonx"), "application/json"), "longer");
	tap_ok(!headers_has_type(text_of("x;application/json"), "application/json"), "as a parameter");
	tap_ok(!headers_has_type(text_of(""), "application/json"), "empty");
}

static void test_shown(void)
{
	struct buf b;

	set_head("Authorization: Bearer first\r\nX-Api-Key: 123\r\nUser-Agent: me\r\nCookie: a=b\r\n"
		 "X-Y: my-Token=1\r\n");
	buf_init(&b, 65536);
	headers_write(&head, &b);
	tap_str(b.data, "headers of this request:\n- Host: x\n- Authorization: [redacted]\n- X-Api-Key: [redacted]\n"
			"- User-Agent: me\n- Cookie: [redacted]\n- X-Y: [redacted]\n", "shown without secrets");
	buf_done(&b);
}

int main(void)
{
	test_hosts();
	test_origins();
	test_tokens();
	test_limit();
	test_proxy();
	test_flood();
	test_sessions();
	test_agreement();
	test_legacy();
	test_types();
	test_shown();
	return tap_done();
}
