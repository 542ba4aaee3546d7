/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_link.c - download links: one spelling, no other owner, key, path or time */
#include <stdlib.h>
#include <string.h>

#include "mcp/link.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

enum { NOW = 1900000000 };

static const struct links links = { "https://sandbox.example/x", "0123456789abcdef", 600 * 1000 };

static struct link_target target(const char *owner, const char *key, const char *path)
{
	struct link_target t = { 0 };

	(void)snprintf(t.owner, sizeof(t.owner), "%s", owner);
	(void)snprintf(t.key, sizeof(t.key), "%s", key);
	(void)snprintf(t.path, sizeof(t.path), "%s", path);
	return t;
}

/* The path part of a link that link_write() makes; freed by the caller. */
static char *make(const struct links *l, const char *owner, const char *key, const char *path)
{
	struct link_target t = target(owner, key, path);
	struct buf b;
	char *text;

	buf_init(&b, 64 * 1024);
	if (link_write(&b, l, &t, NOW) < 0 || strncmp(b.data, l->base, strlen(l->base)) != 0)
		tap_bail("no link");
	text = strdup(b.data + strlen(l->base));
	buf_done(&b);
	return text;
}

/* Read from memory that ends where the text ends. */
static bool reads(const struct links *l, const char *text, size_t len, uint64_t now, struct link_target *ret)
{
	struct tap_guard g = tap_guard_new(text, len);
	bool ok = link_read(l, (struct http_text){ (const char *)g.data, len }, now, ret);

	tap_guard_free(&g);
	return ok;
}

static bool good(const char *text, uint64_t now)
{
	struct link_target t;

	return reads(&links, text, strlen(text), now, &t);
}

static void test_round_trips(void)
{
	static const struct {
		const char *owner, *key, *path, *shown;
	} rows[] = {
		{ OWNER_DEFAULT, "amber-otter-f0a1b2", "report.pdf", "/amber-otter-f0a1b2/report.pdf" },
		{ "0a1b2c3d", "sb-123456", "a/b/c", "/0a1b2c3d.sb-123456/a/b/c" },
		{ OWNER_DEFAULT, "sb-123456", "sp ace/\"q\";%41?#&+.txt", "/sb-123456/sp%20ace/%22q%22%3B%2541%3F%23%26%2B.txt" },
		{ OWNER_DEFAULT, "sb-123456", "\xc3\xa9t\xc3\xa9", "/sb-123456/%C3%A9t%C3%A9" },
		{ OWNER_DEFAULT, "sb-123456", "line\r\nbreak", "/sb-123456/line%0D%0Abreak" },
		{ OWNER_DEFAULT, "sb-123456", "..a/b..", "/sb-123456/..a/b.." },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *text = make(&links, rows[i].owner, rows[i].key, rows[i].path);
		size_t len = strlen(text), tail = strlen(rows[i].shown);
		struct link_target t;

		tap_ok(len > tail && strcmp(text + len - tail, rows[i].shown) == 0, "spelt: %s", rows[i].shown);
		tap_ok(reads(&links, text, len, NOW, &t) && strcmp(t.owner, rows[i].owner) == 0 &&
			       strcmp(t.key, rows[i].key) == 0 && strcmp(t.path, rows[i].path) == 0,
		       "and read back");
	}
}

static void test_time_and_key(void)
{
	_cleanup_free_ char *text = make(&links, OWNER_DEFAULT, "sb-123456", "file");
	struct links other = links, none = links;
	struct link_target t;

	tap_ok(good(text, NOW) && good(text, NOW + 599), "good until its last second");
	tap_ok(!good(text, NOW + 600) && !good(text, UINT64_MAX), "and no longer");
	other.sign_key = "fedcba9876543210";
	tap_ok(!reads(&other, text, strlen(text), NOW, &t), "another key: no link of it is good");
	none.sign_key = "";
	tap_ok(!reads(&none, text, strlen(text), NOW, &t), "no key: no link");
	tap_str(link_missing(&none), "MCP_SIGN_KEY", "which is told");
	none.base = "";
	tap_str(link_missing(&none), "MCP_PUBLIC_BASE", "and the base first");
	tap_ok(link_missing(&links) == NULL, "nothing is missing");
}

/* Every single byte matters, each way it can be changed. */
static void test_mutations(void)
{
	_cleanup_free_ char *text = make(&links, "0a1b2c3d", "amber-otter-f0a1b2", "dir/\xc3\xa9 x.html");
	size_t len = strlen(text);
	unsigned int accepted = 0;
	struct link_target t;

	for (size_t i = 0; i < len; i++) {
		char kept = text[i];

		for (int c = 0; c < 256; c++) {
			text[i] = (char)c;
			accepted += text[i] != kept && reads(&links, text, len, NOW, &t);
		}
		text[i] = kept;
	}
	tap_int(accepted, 0, "every byte set to every other value: not one is a link");
	tap_ok(good(text, NOW), "the link itself is");
	for (size_t i = 0; i < len; i++)
		accepted += reads(&links, text, i, NOW, &t);
	tap_int(accepted, 0, "cut anywhere: none is a link");
}

/* The signature holds; only the spelling differs, or the fields are cut elsewhere. */
static void test_spellings(void)
{
	static const struct {
		const char *from, *to, *desc;
	} rows[] = {
		{ "%C3", "%c3", "lower-case digits" },
		{ "dir/", "%64ir/", "an escaped letter" },
		{ "dir/", "dir%2F", "an escaped slash" },
		{ "dir/", "dir//", "a double slash" },
		{ "dir/", "./dir/", "a dot" },
		{ "dir/", "x/../dir/", "two dots" },
		{ "dir/", "x/%2e%2e/dir/", "escaped dots" },
		{ "dir/", "dir%252F", "escaped twice" },
		{ "dir/", "dir;x/", "a parameter" },
		{ "%20", "+", "a plus for a space" },
		{ "%20", " ", "a bare space" },
		{ ".html", ".html/", "a slash behind" },
		{ ".html", ".html%00", "a NUL behind" },
		{ ".html", ".html%", "a cut escape" },
		{ ".html", ".html%2", "a shorter cut escape" },
		{ "/dl/1", "/dl/01", "a leading zero in the time" },
		{ "/dl/1", "/dl/+1", "a sign in the time" },
		{ "/dl/1", "/dl//1", "an empty part" },
		{ "sb-123456", "00000000.sb-123456", "the default owner's name" },
		{ "sb-123456", "0a1b2c3d.sb-123456", "another owner" },
		{ "sb-123456", "sb-123457", "another key" },
		{ "sb-123456", "SB-123456", "upper case" },
	};
	_cleanup_free_ char *text = make(&links, OWNER_DEFAULT, "sb-123456", "dir/\xc3\xa9 x.html");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *at = strstr(text, rows[i].from);
		char other[1024];

		if (!at)
			tap_bail("%s is not in the link", rows[i].from);
		(void)snprintf(other, sizeof(other), "%.*s%s%s", (int)(at - text), text, rows[i].to,
			       at + strlen(rows[i].from));
		tap_ok(!good(other, NOW), "no link: %s", rows[i].desc);
	}
}

/* A byte moved from one signed field to the next is another text. */
static void test_fields(void)
{
	_cleanup_free_ char *a = make(&links, OWNER_DEFAULT, "aa-123456", "b/c");
	_cleanup_free_ char *b = make(&links, OWNER_DEFAULT, "aa-123456", "bc");
	char *sig_a = strchr(a + 4, '/') + 1, *sig_b = strchr(b + 4, '/') + 1;

	tap_ok(strncmp(sig_a, sig_b, 43) != 0, "two paths, two signatures");
	memcpy(sig_b, sig_a, 43);
	tap_ok(!good(b, NOW), "one's signature is none for the other");
}

static void test_plain(void)
{
	static const char *const bad[] = { "", "/a", "a/", "a//b", ".", "..", "a/./b", "a/..", "../a" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		tap_ok(!link_path_is_plain(bad[i]), "not plain: \"%s\"", bad[i]);
	tap_ok(link_path_is_plain("a") && link_path_is_plain("...") && link_path_is_plain(".a/b"), "plain");
}

int main(void)
{
	test_round_trips();
	test_time_and_key();
	test_mutations();
	test_spellings();
	test_fields();
	test_plain();
	return tap_done();
}
