/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_range.c - Range fields, and names in Content-Disposition */
#include <string.h>

#include "mcp/download.h"
#include "mcp/range.h"
#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

static void test_ranges(void)
{
	static const struct {
		const char *text;
		uint64_t size;
		enum range_kind kind;
		uint64_t first, len;
	} rows[] = {
		{ "bytes=0-0", 10, RANGE_PART, 0, 1 },
		{ "bytes=0-9", 10, RANGE_PART, 0, 10 },
		{ "bytes=3-5", 10, RANGE_PART, 3, 3 },
		{ "bytes=3-", 10, RANGE_PART, 3, 7 },
		{ "bytes=-4", 10, RANGE_PART, 6, 4 },
		{ "bytes=-40", 10, RANGE_PART, 0, 10 },
		{ "bytes=5-500", 10, RANGE_PART, 5, 5 },
		{ "bytes=9-18446744073709551615", 10, RANGE_PART, 9, 1 },
		{ "bytes=10-", 10, RANGE_NONE, 0, 10 },
		{ "bytes=10-11", 10, RANGE_NONE, 0, 10 },
		{ "bytes=-0", 10, RANGE_NONE, 0, 10 },
		{ "bytes=0-", 0, RANGE_NONE, 0, 0 },
		{ "bytes=-1", 0, RANGE_NONE, 0, 0 },
		{ "bytes=5-3", 10, RANGE_ALL, 0, 10 },
		{ "bytes=", 10, RANGE_ALL, 0, 10 },
		{ "bytes=-", 10, RANGE_ALL, 0, 10 },
		{ "bytes=a-b", 10, RANGE_ALL, 0, 10 },
		{ "bytes=1", 10, RANGE_ALL, 0, 10 },
		{ "bytes=+1-2", 10, RANGE_ALL, 0, 10 },
		{ "bytes=1 -2", 10, RANGE_ALL, 0, 10 },
		{ "bytes=0-1,4-5", 10, RANGE_ALL, 0, 10 },
		{ "bytes=1-2-3", 10, RANGE_ALL, 0, 10 },
		{ "items=0-1", 10, RANGE_ALL, 0, 10 },
		{ "bytes=0-18446744073709551616", 10, RANGE_ALL, 0, 10 },
		{ "bytes=99999999999999999999999-", 10, RANGE_ALL, 0, 10 },
		{ "", 10, RANGE_ALL, 0, 10 },
	};
	uint64_t first, len;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tap_guard g = tap_guard_new(rows[i].text, strlen(rows[i].text));
		struct http_text text = { (const char *)g.data, strlen(rows[i].text) };
		enum range_kind kind = range_read(&text, rows[i].size, &first, &len);

		tap_ok(kind == rows[i].kind && first == rows[i].first && len == rows[i].len,
		       "\"%s\" of %llu bytes", rows[i].text, (unsigned long long)rows[i].size);
		tap_guard_free(&g);
	}
	tap_ok(range_read(NULL, 7, &first, &len) == RANGE_ALL && first == 0 && len == 7, "no field: all of it");
}

static void test_names(void)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{ "report.pdf", "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf" },
		{ "a b", "attachment; filename=\"a b\"; filename*=UTF-8''a%20b" },
		{ "\xc3\xa9.txt", "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%A9.txt" },
		{ "a\r\nSet-Cookie: x", "attachment; filename=\"a__Set-Cookie: x\"; filename*=UTF-8''a__Set-Cookie%3A%20x" },
		{ "q\"\\;%41", "attachment; filename=\"q____41\"; filename*=UTF-8''q%22%5C%3B%2541" },
		{ "x\xe2\x80\xaegpj.exe", "attachment; filename=\"x_gpj.exe\"; filename*=UTF-8''x_gpj.exe" },
		{ "\xff\xfe", "attachment; filename=\"__\"; filename*=UTF-8''__" },
		{ "\xe2\x80", "attachment; filename=\"__\"; filename*=UTF-8''__" },
		{ "\xf0\x9f\x98\x80", "attachment; filename=\"_\"; filename*=UTF-8''%F0%9F%98%80" },
		{ "\xe0\xb8\x81", "attachment; filename=\"_\"; filename*=UTF-8''%E0%B8%81" },
		{ "-rf", "attachment; filename=\"-rf\"; filename*=UTF-8''-rf" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf b;

		buf_init(&b, 4096);
		download_disposition(&b, rows[i].name);
		tap_str(b.data, rows[i].want, "a file's name, row %zu", i);
		buf_done(&b);
	}
}

int main(void)
{
	test_ranges();
	test_names();
	return tap_done();
}
