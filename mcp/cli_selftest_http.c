/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_selftest_http.c - checks of "selftest": the protocol, tokens, and files that are handed out
 *
 * Runs as whoever called it. Each function is one row of the table in cli_selftest.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mcp/cli_selftest.h"
#include "mcp/json.h"
#include "mcp/protocol.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/digest.h"
#include "runtime/base/str.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define JSON_FIELD "Content-Type: application/json\r\n"

enum { EXPIRY_WAIT_S = 20, FILE_BYTES = 300000, TARGET_MAX = 8 * 1024, FIELDS_MAX = 16 * 1024, SHA_TEXT = 64 };

/* ---- the protocol ---- */

enum selftest_verdict selftest_health(struct selftest *s)
{
	struct http_reply r;
	bool good;

	if (selftest_get(s, "GET", "/healthz", NULL, &r) < 0)
		return SELFTEST_FAILED;
	good = r.status == 200 && r.body.len >= 2 && memcmp(r.body.data, "ok", 2) == 0;
	if (!good)
		selftest_fail(s, "HTTP %d", r.status);
	http_reply_done(&r);
	return good ? SELFTEST_OK : SELFTEST_FAILED;
}

static bool tells_label_rule(const struct selftest *s, const struct json *result)
{
	const char *text = json_text(json_member(result, "instructions"));

	return text && (s->safe_shell || strstr(text, "pick a NEW short label"));
}

enum selftest_verdict selftest_initialize(struct selftest *s)
{
	_cleanup_(json_cleanup) struct json *root = NULL;
	const struct json *result;
	const char *name, *version;

	if (selftest_connect_legacy(s, &root) < 0)
		return SELFTEST_FAILED;
	result = json_member(root, "result");
	name = json_text(json_member(json_member(result, "serverInfo"), "name"));
	version = json_text(json_member(result, "protocolVersion"));
	if (!name || strcmp(name, "mcp-linux-sandbox") != 0 || !version || strcmp(version, PROTOCOL_LEGACY_NEWEST) != 0)
		return selftest_fail(s, "server %s, version %s", name ? name : "without a name", version ? version : "none");
	if (!*s->session)
		return selftest_fail(s, "no Mcp-Session-Id");
	return tells_label_rule(s, result) ? SELFTEST_OK : selftest_fail(s, "the instructions have no label rule");
}

enum selftest_verdict selftest_discover(struct selftest *s)
{
	_cleanup_(json_cleanup) struct json *root = NULL;
	int status = selftest_rpc(s, "server/discover", NULL, "{}", &root);
	const struct json *result = json_member(root, "result");
	const char *version = json_text(json_item(json_member(result, "supportedVersions"), 0));

	if (status != 200 || !version || strcmp(version, PROTOCOL_MODERN) != 0)
		return selftest_fail(s, "HTTP %d, version %s", status, version ? version : "none");
	return tells_label_rule(s, result) ? SELFTEST_OK : selftest_fail(s, "the instructions have no label rule");
}

static enum selftest_verdict check_tools(struct selftest *s)
{
	static const char *const chat[] = { "run_command", "present_file", "sandbox_info", NULL };
	static const char *const safe[] = { "run_sandboxed_command", NULL };
	const char *const *want = s->safe_shell ? safe : chat;
	_cleanup_(json_cleanup) struct json *root = NULL;
	const struct json *tools, *tool;
	size_t i;

	if (selftest_rpc(s, "tools/list", NULL, "{}", &root) != 200)
		return SELFTEST_FAILED;
	tools = json_member(json_member(root, "result"), "tools");
	for (i = 0; (tool = json_item(tools, i)) && want[i]; i++) {
		const char *name = json_text(json_member(tool, "name"));

		if (!name || strcmp(name, want[i]) != 0)
			return selftest_fail(s, "tool %zu is %s", i, name ? name : "without a name");
		if (json_kind(json_member(tool, "inputSchema")) != JSON_OBJECT)
			return selftest_fail(s, "%s has no schema", name);
	}
	return !tool && !want[i] ? SELFTEST_OK : selftest_fail(s, "%s tools than there should be", tool ? "more" : "fewer");
}

enum selftest_verdict selftest_tools(struct selftest *s)
{
	if (check_tools(s) != SELFTEST_OK)
		return SELFTEST_FAILED;
	if (selftest_connect_legacy(s, NULL) < 0)
		return SELFTEST_FAILED;
	return check_tools(s);
}

enum selftest_verdict selftest_get_405(struct selftest *s)
{
	struct http_reply r;
	int status;

	if (selftest_get(s, "GET", s->url.path, "Accept: text/event-stream\r\n", &r) < 0)
		return SELFTEST_FAILED;
	status = r.status;
	http_reply_done(&r);
	return status == 405 ? SELFTEST_OK : selftest_fail(s, "HTTP %d", status);
}

enum selftest_verdict selftest_no_oauth(struct selftest *s)
{
	static const char *const targets[] = { "/.well-known/oauth-protected-resource",
					       "/.well-known/oauth-authorization-server", "/register" };

	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		struct http_reply r;
		int status;

		if (selftest_get(s, "GET", targets[i], NULL, &r) < 0)
			return SELFTEST_FAILED;
		status = r.status;
		http_reply_done(&r);
		if (status != 404)
			return selftest_fail(s, "%s: HTTP %d", targets[i], status);
	}
	return SELFTEST_OK;
}

/* Return: the status of a ping with this Authorization field, -1. */
static int status_with(struct selftest *s, const char *authorization)
{
	char fields[512];
	struct http_reply r;
	int status;

	(void)snprintf(fields, sizeof(fields), JSON_FIELD "%s%s%s", authorization ? "Authorization: " : "",
		       authorization ? authorization : "", authorization ? "\r\n" : "");
	if (selftest_post(s, s->url.path, fields, PING, &r) < 0)
		return -1;
	status = r.status;
	http_reply_done(&r);
	return status;
}

enum selftest_verdict selftest_token(struct selftest *s)
{
	static const char wrong[] = "Bearer this-is-not-the-token-of-anybody-here";
	int without = status_with(s, NULL), with_wrong = status_with(s, wrong);
	char basic[256];

	if (without < 0 || with_wrong < 0)
		return SELFTEST_FAILED;
	if (without == 200 && !*s->token)
		return selftest_unseen(s, "this server asks for no token (SANDBOX_NO_TOKEN=1)");
	if (without != 401 || with_wrong != 401)
		return selftest_fail(s, "without a token HTTP %d, with a wrong one HTTP %d", without, with_wrong);
	(void)snprintf(basic, sizeof(basic), "Basic %.200s", s->token);
	if (status_with(s, basic) != 401)
		return selftest_fail(s, "the token is taken under another scheme than Bearer");
	return SELFTEST_OK;
}

enum selftest_verdict selftest_names(struct selftest *s)
{
	_cleanup_(json_cleanup) struct json *tool = NULL;
	_cleanup_(json_cleanup) struct json *method = NULL;
	int code;

	(void)selftest_rpc(s, "tools/call", "no_such_tool", "{\"name\":\"no_such_tool\",\"arguments\":{}}", &tool);
	code = (int)json_number(json_member(json_member(tool, "error"), "code"));
	if (code != -32602)
		return selftest_fail(s, "an unknown tool: code %d", code);
	(void)selftest_rpc(s, "no/such", NULL, "{}", &method);
	code = (int)json_number(json_member(json_member(method, "error"), "code"));
	return code == -32601 ? SELFTEST_OK : selftest_fail(s, "an unknown method: code %d", code);
}

enum selftest_verdict selftest_redacted(struct selftest *s)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
				   "\"sandbox_info\",\"arguments\":{}}}";
	char fields[2048];
	struct http_reply r;
	bool plain, hidden, shown;

	(void)snprintf(fields, sizeof(fields), JSON_FIELD "Accept: application/json, text/event-stream\r\n%s%s%s"
		       "X-Selftest: see-me-%s\r\nX-Selftest-Secret: hide-me-%s\r\nCookie: id=hide-me-%s\r\n",
		       *s->token ? "Authorization: Bearer " : "", s->token, *s->token ? "\r\n" : "", s->run, s->run, s->run);
	if (selftest_post(s, s->url.path, fields, body, &r) < 0)
		return SELFTEST_FAILED;
	plain = memmem(r.body.data, r.body.len, "see-me-", 7) != NULL;
	hidden = !memmem(r.body.data, r.body.len, "hide-me-", 8);
	shown = *s->token && memmem(r.body.data, r.body.len, s->token, strlen(s->token));
	http_reply_done(&r);
	if (!plain)
		return selftest_fail(s, "sandbox_info does not show the request's headers");
	return hidden && !shown ? SELFTEST_OK : selftest_fail(s, "sandbox_info shows a %s", shown ? "token" : "secret header");
}

/* ---- files ---- */

#define DOT "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/* Run a command that must succeed; *ret_output is malloc()ed where asked for. */
static int prepare(struct selftest *s, const char *label, const char *command, char **ret_output)
{
	struct selftest_answer a;
	int r;

	if (selftest_run(s, label, command, 0, &a) < 0)
		return -1;
	r = a.status == 0 ? 0 : -1;
	if (r < 0)
		selftest_fail(s, "preparing failed: %.300s", a.text);
	if (r == 0 && ret_output)
		*ret_output = strdup(a.output);
	selftest_answer_done(&a);
	return r < 0 || (ret_output && !*ret_output) ? -1 : 0;
}

enum selftest_verdict selftest_image(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX];
	struct selftest_answer a;
	const char *type, *data, *kind;
	enum selftest_verdict v = SELFTEST_OK;

	selftest_label(s, "files", label);
	/* A name that lies: what it is shows in its bytes. */
	if (prepare(s, label, "printf '" DOT "' | base64 -d > dot.txt", NULL) < 0 ||
	    selftest_present(s, label, "dot.txt", &a) < 0)
		return SELFTEST_FAILED;
	type = json_text(json_member(json_item(a.content, 0), "mimeType"));
	data = json_text(json_member(json_item(a.content, 0), "data"));
	kind = json_text(json_member(json_item(a.content, 0), "type"));
	if (a.is_error || !kind || strcmp(kind, "image") != 0 || !type || strcmp(type, "image/png") != 0)
		v = selftest_fail(s, "no image: %.200s", a.text);
	else if (!data || strcmp(data, DOT) != 0)
		v = selftest_fail(s, "the image is not the file's bytes");
	else if (!strstr(a.text, "dot.txt\n/workspace/dot.txt  (70 B)"))
		v = selftest_fail(s, "the text beside it: %.200s", a.text);
	selftest_answer_done(&a);
	return v;
}

/* The part of a link that this server serves, whatever name it is known by outside. */
static int make_link(struct selftest *s, const char *label, const char *path, char ret[TARGET_MAX])
{
	struct selftest_answer a;
	const struct json *block;
	const char *uri, *at = NULL, *kind;

	if (selftest_present(s, label, path, &a) < 0)
		return -1;
	block = json_item(a.content, 1);
	kind = json_text(json_member(block, "type"));
	uri = json_text(json_member(block, "uri"));
	if (!a.is_error && kind && strcmp(kind, "resource_link") == 0 && uri && strstr(a.text, "open in browser (valid "))
		at = strstr(uri, "/dl/");
	if (!at || str_copy(ret, TARGET_MAX, at) < 0)
		selftest_fail(s, "no link: %.300s", a.text);
	selftest_answer_done(&a);
	return at ? 0 : -1;
}

static int make_file(struct selftest *s, char label[SELFTEST_LABEL_MAX], char sum[SHA_TEXT + 1])
{
	_cleanup_free_ char *out = NULL;

	selftest_label(s, "files", label);
	if (prepare(s, label, "[ -e 'r \"1\".bin' ] || head -c 300000 /dev/urandom > 'r \"1\".bin'; sha256sum < 'r \"1\".bin'",
		    &out) < 0)
		return -1;
	(void)snprintf(sum, SHA_TEXT + 1, "%s", out);
	return strlen(sum) == SHA_TEXT ? 0 : (selftest_fail(s, "sha256sum said: %.100s", out), -1);
}

static bool has_sum(const struct buf *body, const char *sum)
{
	uint8_t digest[DIGEST_SHA256_LEN];
	char text[SHA_TEXT + 1];

	if (digest_sha256(body->data, body->len, digest) < 0)
		return false;
	for (size_t i = 0; i < sizeof(digest); i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return strcmp(text, sum) == 0;
}

static enum selftest_verdict check_safety(struct selftest *s, const struct http_reply *r)
{
	static const struct {
		const char *field, *begins;
	} wanted[] = {
		{ "referrer-policy", "no-referrer" },
		{ "x-content-type-options", "nosniff" },
		{ "content-security-policy", "sandbox" },
		{ "content-disposition", "attachment;" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct http_text v = http_reply_field(r, wanted[i].field);

		if (v.len < strlen(wanted[i].begins) || memcmp(v.data, wanted[i].begins, strlen(wanted[i].begins)) != 0)
			return selftest_fail(s, "%s is not %s...", wanted[i].field, wanted[i].begins);
	}
	return SELFTEST_OK;
}

enum selftest_verdict selftest_link(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], sum[SHA_TEXT + 1], target[TARGET_MAX];
	enum selftest_verdict v;
	struct http_reply r;

	if (make_file(s, label, sum) < 0 || make_link(s, label, "r \"1\".bin", target) < 0 ||
	    selftest_get(s, "GET", target, NULL, &r) < 0)
		return SELFTEST_FAILED;
	if (r.status != 200 || r.body.len != FILE_BYTES || !has_sum(&r.body, sum))
		v = selftest_fail(s, "HTTP %d, %zu bytes, not the file's", r.status, r.body.len);
	else
		v = check_safety(s, &r);
	http_reply_done(&r);
	return v;
}

/* One request on a link. Return: whether status, length of the body and a field are as expected. */
static bool part_is(struct selftest *s, const char *method, const char *target, const char *range, int status,
		    size_t len, const char *field, const char *value)
{
	struct http_reply r;
	bool good;

	if (selftest_get(s, method, target, range, &r) < 0)
		return false;
	good = r.status == status && (status == 416 || r.body.len == len) &&
	       (!field || http_text_is(http_reply_field(&r, field), value));
	if (!good)
		selftest_fail(s, "%s with %.40s: HTTP %d, %zu bytes", method, range ? range : "nothing", r.status, r.body.len);
	http_reply_done(&r);
	return good;
}

enum selftest_verdict selftest_link_parts(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], sum[SHA_TEXT + 1], target[TARGET_MAX];

	if (make_file(s, label, sum) < 0 || make_link(s, label, "r \"1\".bin", target) < 0)
		return SELFTEST_FAILED;
	return part_is(s, "HEAD", target, NULL, 200, 0, "content-length", "300000") &&
			       part_is(s, "GET", target, "Range: bytes=10-19\r\n", 206, 10, "content-range", "bytes 10-19/300000") &&
			       part_is(s, "GET", target, "Range: bytes=-7\r\n", 206, 7, "content-range", "bytes 299993-299999/300000") &&
			       part_is(s, "GET", target, "Range: bytes=300000-\r\n", 416, 0, "content-range", "bytes */300000") ?
		       SELFTEST_OK : SELFTEST_FAILED;
}

/* ---- links that are none ---- */

/* Everything a refused link's answer says, but when it was said. */
static int refusal(struct selftest *s, const char *target, struct buf *ret)
{
	struct http_reply r;
	const char *date, *rest;
	int status;

	buf_init(ret, 2 * FIELDS_MAX);
	if (selftest_get(s, "GET", target, NULL, &r) < 0)
		return -1;
	status = r.status;
	date = memmem(r.head.data, r.head.len, "\r\nDate: ", 8);
	rest = date ? memmem(date + 2, (size_t)(r.head.data + r.head.len - date - 2), "\r\n", 2) : NULL;
	buf_append(ret, r.head.data, rest ? (size_t)(date - r.head.data) : r.head.len);
	if (rest)
		buf_append(ret, rest, (size_t)(r.head.data + r.head.len - rest));
	buf_append(ret, r.body.data, r.body.len);
	http_reply_done(&r);
	return status;
}

/* A link's four parts; each of them changed is another link, which nobody signed. */
static void alter(char *target, size_t part)
{
	char *at = target + 4;

	while (part-- > 0 && strchr(at, '/'))
		at = strchr(at, '/') + 1;
	*at = *at == '1' ? '2' : '1';
}

enum selftest_verdict selftest_link_404(struct selftest *s)
{
	static const char *const parts[] = { "expiry", "signature", "sandbox", "path" };
	char label[SELFTEST_LABEL_MAX], sum[SHA_TEXT + 1], target[TARGET_MAX], altered[TARGET_MAX];
	struct buf unknown, other;
	enum selftest_verdict v = SELFTEST_OK;

	if (make_file(s, label, sum) < 0 || make_link(s, label, "r \"1\".bin", target) < 0)
		return SELFTEST_FAILED;
	if (refusal(s, "/dl/4102444800/AAAA/nobody-000000/nothing", &unknown) != 404)
		v = selftest_fail(s, "an unknown link is not 404");
	for (size_t i = 0; i < ARRAY_SIZE(parts) && v == SELFTEST_OK; i++) {
		int status;

		memcpy(altered, target, sizeof(altered));
		alter(altered, i);
		status = refusal(s, altered, &other);
		if (status != 404 || other.len != unknown.len || memcmp(other.data, unknown.data, other.len) != 0)
			v = selftest_fail(s, "another %s: HTTP %d, or another answer than for an unknown link", parts[i], status);
		buf_done(&other);
	}
	buf_done(&unknown);
	return v;
}

enum selftest_verdict selftest_link_expired(struct selftest *s)
{
	char label[SELFTEST_LABEL_MAX], sum[SHA_TEXT + 1], target[TARGET_MAX];
	long long left;
	struct buf text;
	int status;

	if (make_file(s, label, sum) < 0 || make_link(s, label, "r \"1\".bin", target) < 0)
		return SELFTEST_FAILED;
	left = strtoll(target + 4, NULL, 10) - (long long)time(NULL);
	if (left > EXPIRY_WAIT_S)
		return selftest_unseen(s, "links of this server live %lld s, which is not waited for; tests/proto/test_download.py",
				       left);
	if (left > 0)
		(void)sleep((unsigned int)left + 1);
	status = refusal(s, target, &text);
	buf_done(&text);
	return status == 404 ? SELFTEST_OK : selftest_fail(s, "HTTP %d after its time", status);
}

enum selftest_verdict selftest_link_swapped(struct selftest *s)
{
	static const char *const swaps[] = { "ln -sfn /etc/passwd swap", "rm swap; mkfifo swap", "rm swap; mkdir swap",
					     "rm -r swap" };
	char label[SELFTEST_LABEL_MAX], target[TARGET_MAX];
	struct buf text;

	selftest_label(s, "files", label);
	if (prepare(s, label, "rm -rf swap; echo good > swap", NULL) < 0 || make_link(s, label, "swap", target) < 0)
		return SELFTEST_FAILED;
	for (size_t i = 0; i < ARRAY_SIZE(swaps); i++) {
		int status;

		if (prepare(s, label, swaps[i], NULL) < 0)
			return SELFTEST_FAILED;
		status = refusal(s, target, &text);
		buf_done(&text);
		if (status != 404)
			return selftest_fail(s, "HTTP %d after: %s", status, swaps[i]);
	}
	return SELFTEST_OK;
}

enum selftest_verdict selftest_present_refused(struct selftest *s)
{
	static const char *const paths[] = { "link", "folder/../link", "way/inside", "pipe", "folder", "folder/", "../etc/passwd",
					     "a/../../etc/passwd", "/etc/passwd", "/proc/self/environ", "/workspace/../etc/passwd",
					     "/dev/zero", "missing", "" };
	char label[SELFTEST_LABEL_MAX];
	enum selftest_verdict v = SELFTEST_OK;

	selftest_label(s, "files", label);
	if (prepare(s, label, "rm -rf link way folder pipe; mkdir folder; echo x > folder/inside; ln -s /etc/passwd link; "
		    "ln -s folder way; mkfifo pipe", NULL) < 0)
		return SELFTEST_FAILED;
	for (size_t i = 0; i < ARRAY_SIZE(paths) && v == SELFTEST_OK; i++) {
		struct selftest_answer a;

		if (selftest_present(s, label, paths[i], &a) < 0)
			return SELFTEST_FAILED;
		if (!a.is_error || strncmp(a.text, "[present error] ", 16) != 0)
			v = selftest_fail(s, "\"%s\": %.200s", paths[i], a.text);
		selftest_answer_done(&a);
	}
	return v;
}
