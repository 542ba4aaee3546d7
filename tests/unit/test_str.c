/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_str.c - hostile rows for every parser; each input ends at an unreadable page */
#include "runtime/base/str.h"

#include "tests/unit/tap.h"

#define REFUSED UINT64_MAX

struct row {
	const char *text;
	uint64_t want; /* REFUSED: the parser says -1 */
};

static int parse_any_u64(const char *text, uint64_t *ret)
{
	return str_parse_u64(text, 0, UINT64_MAX, ret);
}

static int parse_5_to_10(const char *text, uint64_t *ret)
{
	return str_parse_u64(text, 5, 10, ret);
}

static int parse_cpus(const char *text, uint64_t *ret)
{
	uint32_t milli = 0;
	int r = str_parse_cpus(text, &milli);

	if (r == 0)
		*ret = milli;
	return r;
}

/* printable() - for the protocol's lines, by nothing of what is tested here. */
static const char *printable(const char *text)
{
	static char out[64];
	size_t i = 0;

	for (; text[i] && i < sizeof(out) - 1; i++)
		out[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
	out[i] = '\0';
	return out;
}

static void run_rows(const char *name, int (*parse)(const char *, uint64_t *),
		     const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct tap_guard g = tap_guard_str(rows[i].text);
		const char *text = printable(rows[i].text);
		uint64_t value = 0x5a5a;
		int r = parse(g.data, &value);

		if (rows[i].want == REFUSED) {
			tap_int(r, -1, "%s: \"%s\" is refused", name, text);
			tap_int(value, 0x5a5a, "%s: \"%s\" leaves the result alone", name, text);
		} else if (tap_int(r, 0, "%s: \"%s\" is accepted", name, text)) {
			tap_ok(value == rows[i].want, "%s: \"%s\" = %llu", name, text,
			       (unsigned long long)value);
		}
		tap_guard_free(&g);
	}
}

static void test_numbers(void)
{
	static const struct row u64[] = {
		{ "0", 0 }, { "7", 7 }, { "007", 7 }, { "18446744073709551614", UINT64_MAX - 1 },
		{ "18446744073709551616", REFUSED }, { "99999999999999999999999", REFUSED },
		{ "", REFUSED }, { " 1", REFUSED }, { "1 ", REFUSED }, { "+1", REFUSED },
		{ "-1", REFUSED }, { "0x10", REFUSED }, { "1e3", REFUSED }, { "1\n", REFUSED },
		{ "1.0", REFUSED }, { "\xd9\xa1", REFUSED /* an Arabic digit */ },
	};
	static const struct row bounded[] = {
		{ "4", REFUSED }, { "5", 5 }, { "10", 10 }, { "11", REFUSED },
	};
	static const struct row size[] = {
		{ "0", 0 }, { "17", 17 }, { "1K", 1024 }, { "512M", 536870912 },
		{ "1G", 1073741824 }, { "1g", 1073741824 }, { "1.5M", 1572864 },
		{ "1.3K", 1331 }, { "0.001K", 1 }, { "0.0001K", REFUSED }, { "0.0K", 0 },
		{ "17179869183G", UINT64_C(17179869183) << 30 }, { "17179869184G", REFUSED },
		{ "1.5", REFUSED }, { "1.", REFUSED }, { ".5M", REFUSED }, { "1.M", REFUSED },
		{ "M", REFUSED }, { "1MB", REFUSED }, { "1MiB", REFUSED }, { "1 M", REFUSED },
		{ "1T", REFUSED }, { "-1M", REFUSED }, { "1.5.5M", REFUSED },
		{ "1.0000000001M", REFUSED }, { "", REFUSED }, { "1K\n", REFUSED },
	};
	static const struct row duration[] = {
		{ "0", 0 }, { "120", 120000 }, { "15s", 15000 }, { "2m", 120000 },
		{ "1h", 3600000 }, { "7d", 604800000 }, { "0.5s", 500 }, { "1.5h", 5400000 },
		{ "0.0001s", REFUSED }, { "1.5", REFUSED }, { "1ms", REFUSED }, { "1M", REFUSED },
		{ "1w", REFUSED }, { "-1", REFUSED }, { "", REFUSED }, { "s", REFUSED },
		{ "18446744073709551615", REFUSED }, { "213503982335d", REFUSED },
	};
	static const struct row cpus[] = {
		{ "2", 2000 }, { "0.5", 500 }, { "0.05", 50 }, { "1.125", 1125 }, { "0", 0 },
		{ "1.0625", REFUSED }, { "4294967", 4294967000 }, { "4294968", REFUSED },
		{ "2s", REFUSED }, { "1,5", REFUSED }, { "", REFUSED }, { "1e3", REFUSED },
	};

	run_rows("u64", parse_any_u64, u64, sizeof(u64) / sizeof(u64[0]));
	run_rows("5..10", parse_5_to_10, bounded, sizeof(bounded) / sizeof(bounded[0]));
	run_rows("size", str_parse_size, size, sizeof(size) / sizeof(size[0]));
	run_rows("duration", str_parse_duration_ms, duration,
		 sizeof(duration) / sizeof(duration[0]));
	run_rows("cpus", parse_cpus, cpus, sizeof(cpus) / sizeof(cpus[0]));
	uint64_t value;
	tap_int(str_parse_u64(NULL, 0, 1, &value), -1, "no text is no number");
	tap_int(parse_any_u64("18446744073709551615", &value), 0, "the largest number is accepted");
	tap_ok(value == UINT64_MAX, "and is itself");
}

static void test_format_size(void)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} rows[] = {
		{ 0, "0 B" }, { 17, "17 B" }, { 1023, "1023 B" }, { 1024, "1 KiB" },
		{ 1536, "1.5 KiB" }, { 1572864, "1.5 MiB" }, { 536870912, "512 MiB" },
		{ 1073741824, "1 GiB" }, { 1073741823, "1 GiB" }, { 10737418240, "10 GiB" },
		{ 1048524, "1023.9 KiB" }, { 1048575, "1 MiB" },
		{ UINT64_C(1) << 40, "1 TiB" }, { UINT64_MAX, "16 EiB" },
	};
	char text[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		tap_str(str_format_size(rows[i].bytes, text, sizeof(text)), rows[i].want,
			"%llu bytes", (unsigned long long)rows[i].bytes);
}

static void test_copy(void)
{
	char dst[4] = "old";

	tap_int(str_copy(dst, sizeof(dst), "abcd"), -1, "a text without room for its NUL is refused");
	tap_str(dst, "old", "and nothing is copied");
	tap_int(str_copy(dst, sizeof(dst), "abc"), 0, "one that just fits is copied");
	tap_str(dst, "abc", "whole");
	tap_int(str_copy(dst, 0, ""), -1, "no room at all");
}

struct utf8_row {
	const char *desc, *bytes;
	size_t len;
	int want;
	uint32_t cp;
};

static void test_utf8_next(void)
{
	static const struct utf8_row rows[] = {
		{ "ASCII", "a", 1, 1, 'a' },
		{ "NUL", "\0", 1, 1, 0 },
		{ "two bytes", "\xc3\xa4", 2, 2, 0xe4 },
		{ "three bytes", "\xe2\x82\xac", 3, 3, 0x20ac },
		{ "four bytes", "\xf0\x9f\xa6\xa6", 4, 4, 0x1f9a6 },
		{ "the last code point", "\xf4\x8f\xbf\xbf", 4, 4, 0x10ffff },
		{ "one beyond", "\xf4\x90\x80\x80", 4, 0, 0 },
		{ "one beyond, cut", "\xf4\x90", 2, 0, 0 },
		{ "overlong slash", "\xc0\xaf", 2, 0, 0 },
		{ "overlong in three", "\xe0\x80\xaf", 3, 0, 0 },
		{ "overlong in three, cut", "\xe0\x9f", 2, 0, 0 },
		{ "overlong in four", "\xf0\x8f\xbf\xbf", 4, 0, 0 },
		{ "first after overlong", "\xe0\xa0\x80", 3, 3, 0x800 },
		{ "surrogate", "\xed\xa0\x80", 3, 0, 0 },
		{ "before surrogates", "\xed\x9f\xbf", 3, 3, 0xd7ff },
		{ "after surrogates", "\xee\x80\x80", 3, 3, 0xe000 },
		{ "lone continuation", "\x80", 1, 0, 0 },
		{ "C1", "\xc1\xbf", 2, 0, 0 },
		{ "F5", "\xf5\x80\x80\x80", 4, 0, 0 },
		{ "FF", "\xff", 1, 0, 0 },
		{ "nothing", "", 0, -1, 0 },
		{ "two bytes, cut", "\xc3", 1, -1, 0 },
		{ "three bytes, cut", "\xe2\x82", 2, -1, 0 },
		{ "four bytes, cut", "\xf0\x9f\xa6", 3, -1, 0 },
		{ "bad second byte", "\xc3\x28", 2, 0, 0 },
		{ "bad third byte", "\xe2\x82\x28", 3, 0, 0 },
		{ "bad fourth byte", "\xf0\x9f\xa6\xff", 4, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_new(rows[i].bytes, rows[i].len);
		uint32_t cp = 0;

		tap_int(str_utf8_next((unsigned char *)g.data, rows[i].len, &cp), rows[i].want,
			"utf8_next: %s", rows[i].desc);
		if (rows[i].want > 0)
			tap_int(cp, rows[i].cp, "utf8_next: %s: code point", rows[i].desc);
		tap_int(str_utf8_is_valid(g.data, rows[i].len),
			rows[i].want > 0 || rows[i].len == 0, "utf8_is_valid: %s", rows[i].desc);
		tap_guard_free(&g);
	}
	tap_ok(str_utf8_is_valid("a\xc3\xa4" "b", 4), "a mixed text is valid");
	tap_ok(!str_utf8_is_valid("ab\xc3", 3), "a text that ends inside a character is not");
}

static void test_escape(void)
{
	static const struct {
		const char *desc, *in;
		size_t len, size;
		const char *want;
	} rows[] = {
		{ "plain", "abc", 3, 32, "abc" },
		{ "nothing", "", 0, 32, "" },
		{ "a terminal's escape", "\x1b]52;c;x\a", 9, 32, "\\x1b]52;c;x\\x07" },
		{ "line ends", "a\r\nb", 4, 32, "a\\x0d\\x0ab" },
		{ "NUL and DEL", "\0\x7f", 2, 32, "\\x00\\x7f" },
		{ "a C1 control", "\xc2\x9b", 2, 32, "\\xc2\\x9b" },
		{ "the letter after C1", "\xc2\xa0", 2, 32, "\xc2\xa0" },
		{ "a backslash", "\\x41", 4, 32, "\\\\x41" },
		{ "letters beyond ASCII", "\xc3\xa4\xe2\x82\xac", 5, 32, "\xc3\xa4\xe2\x82\xac" },
		{ "invalid UTF-8", "a\xff" "b", 3, 32, "a\\xff" "b" },
		{ "cut UTF-8", "a\xe2\x82", 3, 32, "a\\xe2\\x82" },
		{ "just fits", "abcdefg", 7, 8, "abcdefg" },
		{ "does not fit", "abcdefgh", 8, 8, "abcd..." },
		{ "never half an escape", "abc\x01" "def", 7, 8, "abc..." },
		{ "never half a character", "ab\xe2\x82\xac\xe2\x82\xac", 8, 8, "ab..." },
		{ "room for dots only", "abcdefgh", 8, 4, "..." },
		{ "no room for dots", "abcdefgh", 8, 3, ".." },
		{ "room for NUL only", "abc", 3, 1, "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard in = tap_guard_new(rows[i].in, rows[i].len);
		char filler[64];
		struct tap_guard out;

		memset(filler, '#', sizeof(filler));
		out = tap_guard_new(filler, rows[i].size);
		tap_str(str_escape(out.data, rows[i].size, in.data, rows[i].len), rows[i].want,
			"escape: %s", rows[i].desc);
		tap_guard_free(&in);
		tap_guard_free(&out);
	}
}

static void test_names(void)
{
	static const struct {
		const char *text;
		bool key, owner, name;
	} rows[] = {
		{ "amber-otter-c7e9c7", true, false, true },
		{ "a-000000", true, false, true },
		{ "a--000000", true, false, true },
		{ "-a-000000", false, false, false },
		{ "a-00000g", false, false, true },
		{ "a-00000F", false, false, false },
		{ "a-00000", false, false, true },
		{ "-000000", false, false, false },
		{ "000000", false, false, true },
		{ "abcdefghijklmnopqrstuvwx-123456", true, false, true },
		{ "abcdefghijklmnopqrstuvwxy-123456", false, false, true },
		{ "a.b-000000", false, false, true },
		{ "a/b-000000", false, false, false },
		{ "..", false, false, false },
		{ ".", false, false, false },
		{ ".a", false, false, false },
		{ "", false, false, false },
		{ "00000000", false, true, true },
		{ "0000000", false, false, true },
		{ "000000000", false, false, true },
		{ "deadbeef", false, true, true },
		{ "DEADBEEF", false, false, false },
		{ "debian_12.x-y", false, false, true },
		{ "de bian", false, false, false },
		{ "a\n", false, false, false },
		{ "\xc3\xa4", false, false, false },
	};
	char longest[66];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_str(rows[i].text);
		const char *text = printable(rows[i].text);

		tap_int(str_is_key(g.data), rows[i].key, "is_key: \"%s\"", text);
		tap_int(str_is_owner_id(g.data), rows[i].owner, "is_owner_id: \"%s\"", text);
		tap_int(str_is_name(g.data, 64), rows[i].name, "is_name: \"%s\"", text);
		tap_guard_free(&g);
	}
	memset(longest, 'a', sizeof(longest));
	longest[64] = '\0';
	tap_ok(str_is_name(longest, 64), "is_name: the longest");
	tap_ok(!str_is_name(longest, 63), "is_name: one too long");
	tap_ok(!str_is_key(NULL) && !str_is_owner_id(NULL) && !str_is_name(NULL, 64),
	       "no text is no name");
}

int main(void)
{
	test_numbers();
	test_format_size();
	test_copy();
	test_utf8_next();
	test_escape();
	test_names();
	return tap_done();
}
