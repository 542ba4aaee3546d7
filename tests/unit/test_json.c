/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_json.c - the strict scanner, against an unreadable page; the tree; the writer */
#include "mcp/bounds.h"
#include "mcp/json.h"
#include "mcp/json_scan.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "tests/unit/tap.h"

#define TEXT(s) s, sizeof(s) - 1

static const struct scan_row {
	const char *text;
	size_t len;
	const char *why; /* NULL: accepted */
} scan_rows[] = {
	{ TEXT("{}"), NULL },
	{ TEXT("[]"), NULL },
	{ TEXT(" \t\r\n[ 1 , \"a\" , { \"k\" : null } , true , false ] \n"), NULL },
	{ TEXT("\"\""), NULL },
	{ TEXT("0"), NULL },
	{ TEXT("-0"), NULL },
	{ TEXT("-12.50E+03"), NULL },
	{ TEXT("1e-400"), NULL },
	{ TEXT("1e999"), NULL },
	{ TEXT("9007199254740993"), NULL },
	{ TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\ud83d\\ude00\""), NULL },
	{ TEXT("\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \x7f\""), NULL },
	{ TEXT("\"\xf4\x8f\xbf\xbf\""), NULL },
	{ TEXT(""), "text ends too early" },
	{ TEXT("  "), "text ends too early" },
	{ TEXT("{"), "text ends too early" },
	{ TEXT("["), "text ends too early" },
	{ TEXT("[1"), "text ends too early" },
	{ TEXT("[1,"), "text ends too early" },
	{ TEXT("{\"a\":"), "text ends too early" },
	{ TEXT("{\"a\""), "expected a colon" },
	{ TEXT("{\"a\" 1}"), "expected a colon" },
	{ TEXT("{\"a\":1,}"), "expected a key" },
	{ TEXT("{a:1}"), "expected a key" },
	{ TEXT("{1:1}"), "expected a key" },
	{ TEXT("[1,]"), "unexpected character" },
	{ TEXT("[,1]"), "unexpected character" },
	{ TEXT("[1 2]"), "expected a comma or the end" },
	{ TEXT("[1}"), "expected a comma or the end" },
	{ TEXT("{\"a\":1]"), "expected a comma or the end" },
	{ TEXT("]"), "unexpected character" },
	{ TEXT("{} {}"), "something follows the JSON text" },
	{ TEXT("{}\0"), "something follows the JSON text" },
	{ TEXT("nul"), "unexpected character" },
	{ TEXT("nulL"), "unexpected character" },
	{ TEXT("nullx"), "something follows the JSON text" },
	{ TEXT("True"), "unexpected character" },
	{ TEXT("NaN"), "unexpected character" },
	{ TEXT("Infinity"), "unexpected character" },
	{ TEXT("/* x */ 1"), "unexpected character" },
	{ TEXT("\xef\xbb\xbf{}"), "unexpected character" },
	{ TEXT("01"), "something follows the JSON text" },
	{ TEXT("-01"), "something follows the JSON text" },
	{ TEXT("+1"), "unexpected character" },
	{ TEXT(".5"), "unexpected character" },
	{ TEXT("-"), "bad number" },
	{ TEXT("1."), "bad number" },
	{ TEXT("1.e1"), "bad number" },
	{ TEXT("1e"), "bad number" },
	{ TEXT("1e+"), "bad number" },
	{ TEXT("0x10"), "something follows the JSON text" },
	{ TEXT("11111111112222222222333333333344444444445"), "number too long" },
	{ TEXT("\""), "text ends inside a string" },
	{ TEXT("\"a"), "text ends inside a string" },
	{ TEXT("\"\\"), "text ends inside a string" },
	{ TEXT("\"\\u"), "bad \\u escape" },
	{ TEXT("\"\\u12"), "bad \\u escape" },
	{ TEXT("\"\\u12g4\""), "bad \\u escape" },
	{ TEXT("\"\\x41\""), "unknown escape in a string" },
	{ TEXT("\"\\\0\""), "unknown escape in a string" },
	{ TEXT("\"\\u0000\""), "\\u0000 is not accepted" },
	{ TEXT("\"a\\u0000b\""), "\\u0000 is not accepted" },
	{ TEXT("\"\\ud83d\""), "lone surrogate" },
	{ TEXT("\"\\ud83d\\n\""), "lone surrogate" },
	{ TEXT("\"\\ud83d\\ud83d\""), "lone surrogate" },
	{ TEXT("\"\\ude00\""), "lone surrogate" },
	{ TEXT("\"\\ud83d\\u"), "bad \\u escape" },
	{ TEXT("\"a\nb\""), "raw control character in a string" },
	{ TEXT("\"a\0b\""), "raw control character in a string" },
	{ TEXT("\"\x1f\""), "raw control character in a string" },
	{ TEXT("\"\xff\""), "not UTF-8" },
	{ TEXT("\"\xc3\""), "not UTF-8" },
	{ TEXT("\"\xc3"), "not UTF-8" },
	{ TEXT("\"\xc0\xaf\""), "not UTF-8" },
	{ TEXT("\"\xed\xa0\x80\""), "not UTF-8" },
	{ TEXT("\"\xf4\x90\x80\x80\""), "not UTF-8" },
	{ TEXT("{\"\xff\":1}"), "not UTF-8" },
	{ TEXT("{\"\\u0000\":1}"), "\\u0000 is not accepted" },
};

static void scan_all(void)
{
	for (size_t i = 0; i < sizeof(scan_rows) / sizeof(scan_rows[0]); i++) {
		const struct scan_row *row = &scan_rows[i];
		struct tap_guard g = tap_guard_new(row->text, row->len);
		const char *why = json_scan(g.data, g.len);

		tap_str(why ? why : "", row->why ? row->why : "", "scan row %zu", i);
		/* every prefix must be refused or accepted without a read beyond its end */
		for (size_t len = 0; len < row->len; len++) {
			struct tap_guard p = tap_guard_new(row->text, len);

			(void)json_scan(p.data, p.len);
			tap_guard_free(&p);
		}
		tap_guard_free(&g);
	}
}

/* What the scanner accepts cJSON must parse, and what a row says is refused must stay refused. */
static void parse_all(void)
{
	for (size_t i = 0; i < sizeof(scan_rows) / sizeof(scan_rows[0]); i++) {
		struct tap_guard g = tap_guard_new(scan_rows[i].text, scan_rows[i].len);
		const char *why;
		struct json *root = json_parse(g.data, g.len, &why);

		tap_ok(!root == !!scan_rows[i].why, "parse row %zu", i);
		json_free(root);
		tap_guard_free(&g);
	}
}

static const char *nested(char *text, int depth)
{
	memset(text, '[', (size_t)depth);
	memset(text + depth, ']', (size_t)depth);
	text[2 * depth] = 0;
	return text;
}

static void bounds(void)
{
	char text[200], *wide = malloc(2 * LIMIT_JSON_NODES + 10);
	size_t len = 0;

	tap_ok(!json_scan(nested(text, 64), 128), "64 levels");
	tap_str(json_scan(nested(text, 65), 130), "nested too deeply", "65 levels");
	wide[len++] = '[';
	for (int i = 1; i < LIMIT_JSON_NODES - 1; i++) {
		wide[len++] = '0';
		wide[len++] = ',';
	}
	wide[len++] = '0';
	wide[len++] = ']';
	tap_ok(!json_scan(wide, len), "as many values as allowed");
	wide[len - 1] = ',';
	wide[len++] = '0';
	wide[len++] = ']';
	tap_str(json_scan(wide, len), "too many values", "one value more");
	free(wide);
}

static void duplicates(void)
{
	static const struct {
		const char *text;
		bool twice;
	} rows[] = {
		{ "{\"a\":1,\"b\":2}", false },
		{ "{\"a\":1,\"A\":2}", false },
		{ "{\"a\":{\"a\":1},\"b\":{\"a\":1}}", false },
		{ "{\"a\":1,\"a\":1}", true },
		{ "{\"a\":1,\"b\":2,\"\\u0061\":1}", true },
		{ "{\"\":1,\"\":1}", true },
		{ "[[{\"x\":[{\"a\":1,\"b\":1,\"c\":1,\"a\":2}]}]]", true },
		{ "{\"1\":1,\"2\":1,\"3\":1,\"4\":1,\"5\":1,\"6\":1,\"7\":1,\"8\":1,\"9\":1,\"10\":1,\"11\":1,"
		  "\"12\":1,\"13\":1,\"14\":1,\"15\":1,\"16\":1,\"17\":1,\"1\":1}", true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why;
		struct json *root = json_parse(rows[i].text, strlen(rows[i].text), &why);

		tap_ok(!root == rows[i].twice, "duplicate keys row %zu", i);
		if (!root)
			tap_str(why, "a key occurs twice in one object", "and says so");
		json_free(root);
	}
}

static void members(void)
{
	static const struct {
		const char *text, *name, *want; /* want NULL: no such member */
	} rows[] = {
		{ "{\"id\":1}", "id", "1" },
		{ "{\"id\": 9007199254740993 }", "id", "9007199254740993" },
		{ " { \"x\" : [ 1, {\"id\":2} ] , \"id\" : \"a\\u0062\" } ", "id", "\"a\\u0062\"" },
		{ "{\"\\u0069\\u0064\":-1.50e+3}", "id", "-1.50e+3" },
		{ "{\"i\\u0064x\":1,\"id\":{\"a\":[]}}", "id", "{\"a\":[]}" },
		{ "{\"idx\":1}", "id", NULL },
		{ "{\"i\":1}", "id", NULL },
		{ "{\"ID\":1}", "id", NULL },
		{ "{\"\\n\":1}", "n", NULL },
		{ "{\"\\n\":7}", "\n", "7" },
		{ "{\"\xc3\xa4\":1}", "id", NULL },
		{ "{\"\\u00e4\":1}", "id", NULL },
		{ "{}", "id", NULL },
		{ "[\"id\"]", "id", NULL },
		{ "\"id\"", "id", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_new(rows[i].text, strlen(rows[i].text));
		const char *text = NULL;
		char got[64] = "";
		size_t len = 0;
		bool found = json_scan_member(g.data, g.len, rows[i].name, &text, &len);

		if (found)
			memcpy(got, text, len);
		tap_ok(found == !!rows[i].want, "member row %zu", i);
		tap_str(got, rows[i].want ? rows[i].want : "", "its text");
		tap_guard_free(&g);
	}
}

static void tree(void)
{
	static const char text[] =
		"{\"s\":\"x\\ty\",\"n\":2.5,\"b\":true,\"o\":{\"K\":null},\"a\":[],\"big\":1e999}";
	const char *why;
	struct json *root = json_parse(text, strlen(text), &why);

	tap_str(json_text(json_member(root, "s")), "x\ty", "a string");
	tap_ok(json_number(json_member(root, "n")) == 2.5, "a number");
	tap_ok(json_is_true(json_member(root, "b")), "true");
	tap_int(json_kind(json_member(root, "o")), JSON_OBJECT, "an object");
	tap_int(json_kind(json_member(root, "a")), JSON_ARRAY, "an array");
	tap_ok(json_member(json_member(root, "o"), "K"), "a null member is there");
	tap_ok(!json_member(json_member(root, "o"), "k"), "names keep their case");
	tap_ok(!json_member(json_member(root, "a"), "0"), "an array has no names");
	tap_int(json_kind(NULL), JSON_NULL, "a missing value is null");
	tap_ok(!json_text(json_member(root, "n")) && !json_text(NULL), "no string");
	tap_ok(json_number(json_member(root, "s")) == 0, "no number");
	tap_ok(json_number(json_member(root, "big")) > 1e308, "too large is infinity");
	json_free(root);
}

static void writer(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *want;
	} rows[] = {
		{ TEXT(""), "" },
		{ TEXT("plain"), "plain" },
		{ TEXT("\"\\\b\f\n\r\t"), "\\\"\\\\\\b\\f\\n\\r\\t" },
		{ TEXT("a\0b\x01\x1f\x7f"), "a\\u0000b\\u0001\\u001f\\u007f" },
		{ TEXT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ TEXT("a\xff\xc3(\xe2\x82"), "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd" },
		{ TEXT("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_new(rows[i].bytes, rows[i].len);
		struct buf b;

		buf_init(&b, 1000);
		json_write_escaped(&b, g.data, g.len);
		tap_str(b.data, rows[i].want, "write row %zu", i);
		buf_done(&b);
		tap_guard_free(&g);
	}
}

static void base64(void)
{
	static const char *const rows[][2] = { { "", "" },	     { "f", "Zg==" },
					       { "fo", "Zm8=" },     { "foo", "Zm9v" },
					       { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
					       { "foobar", "Zm9vYmFy" }, { "\xff\xfe\xfd", "//79" } };
	struct buf b;
	char zeros[10000] = "";
	bool same = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_new(rows[i][0], strlen(rows[i][0]));

		buf_init(&b, 100);
		json_write_base64(&b, g.data, g.len);
		tap_str(b.data, rows[i][1], "base64 row %zu", i);
		buf_done(&b);
		tap_guard_free(&g);
	}
	buf_init(&b, 100000);
	json_write_base64(&b, zeros, sizeof(zeros));
	for (size_t i = 0; i < b.len - 2; i++)
		same = same && b.data[i] == 'A';
	tap_ok(b.len == 13336 && same && !strcmp(b.data + b.len - 2, "=="), "base64 over its own buffer");
	buf_done(&b);
}

int main(void)
{
	scan_all();
	parse_all();
	bounds();
	duplicates();
	members();
	tree();
	writer();
	base64();
	return tap_done();
}
