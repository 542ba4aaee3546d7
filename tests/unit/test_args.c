/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_args.c - which arguments are tolerated and which are refused, by row */
#include "mcp/args.h"
#include "mcp/json.h"
#include "tests/unit/tap.h"

enum { FALLBACK = 120 };

static const struct {
	const char *json; /* NULL: not given */
	int64_t want;
	bool refused;
} whole_rows[] = {
	{ NULL, FALLBACK, false },
	{ "null", FALLBACK, false },
	{ "\"\"", FALLBACK, false },
	{ "0", 0, false },
	{ "15", 15, false },
	{ "15.0", 15, false },
	{ "1.5e1", 15, false },
	{ "\"15\"", 15, false },
	{ "\"15.00\"", 15, false },
	{ "\"-3\"", -3, false },
	{ "-3", -3, false },
	{ "9007199254740993", 9007199254740992, false },
	{ "1e30", INT64_MAX, false },
	{ "-1e30", -INT64_MAX, false },
	{ "1e999", INT64_MAX, false },
	{ "\"99999999999999999999999999999999999999999999\"", INT64_MAX, false },
	{ "\"-9999999999999999999\"", -INT64_MAX, false },
	{ "15.5", 0, true },
	{ "\"15.5\"", 0, true },
	{ "\"1e3\"", 0, true },
	{ "\" 15\"", 0, true },
	{ "\"15 \"", 0, true },
	{ "\"+15\"", 0, true },
	{ "\"0x1f\"", 0, true },
	{ "\"15s\"", 0, true },
	{ "\"-\"", 0, true },
	{ "\".\"", 0, true },
	{ "\".0\"", 0, true },
	{ "\"1.\"", 0, true },
	{ "\"1.0.0\"", 0, true },
	{ "true", 0, true },
	{ "false", 0, true },
	{ "[]", 0, true },
	{ "[15]", 0, true },
	{ "{}", 0, true },
};

static const struct {
	const char *json, *fallback, *want; /* want NULL: refused */
} text_rows[] = {
	{ NULL, "d", "d" },
	{ "null", "d", "d" },
	{ "\"\"", "d", "d" },
	{ "\"x\"", "d", "x" },
	{ "\"12345678\"", "d", "12345678" },
	{ "\"123456789\"", "d", NULL },
	{ "1", "d", NULL },
	{ "true", "d", NULL },
	{ "[\"x\"]", "d", NULL },
	{ NULL, NULL, NULL },
	{ "null", NULL, NULL },
	{ "\"\"", NULL, NULL },
	{ "\" \"", NULL, " " },
};

static struct json *object(const char *value)
{
	char text[200] = "{}";
	const char *why;

	if (value)
		snprintf(text, sizeof(text), "{\"arg\":%s,\"other\":1}", value);
	return json_parse(text, strlen(text), &why);
}

int main(void)
{
	struct err e;

	for (size_t i = 0; i < sizeof(whole_rows) / sizeof(whole_rows[0]); i++) {
		struct json *args = object(whole_rows[i].json);
		int64_t got = 77;
		int r = args_whole(args, "arg", FALLBACK, &got, &e);

		if (whole_rows[i].refused)
			tap_ok(r < 0 && strstr(e.message, "arg must be a whole number"), "whole %s refused",
			       whole_rows[i].json);
		else
			tap_ok(r == 0 && got == whole_rows[i].want, "whole %s", whole_rows[i].json);
		json_free(args);
	}
	for (size_t i = 0; i < sizeof(text_rows) / sizeof(text_rows[0]); i++) {
		struct json *args = object(text_rows[i].json);
		const char *got = "";
		int r = args_text(args, "arg", text_rows[i].fallback, 8, &got, &e);

		if (!text_rows[i].want)
			tap_ok(r < 0 && strstr(e.message, "arg "), "text row %zu refused", i);
		else if (tap_int(r, 0, "text row %zu", i))
			tap_str(got, text_rows[i].want, "its value");
		json_free(args);
	}
	return tap_done();
}
