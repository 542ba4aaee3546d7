/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_buf.c - growth, the maximum, and what an overflow leaves behind */
#include "runtime/base/buf.h"

#include "tests/unit/tap.h"

static void test_growth(void)
{
	struct buf b;
	char chunk[1000];
	size_t bad = 0;

	buf_init(&b, 1000000);
	tap_str(b.data, "", "an empty buffer is an empty string");
	for (int i = 0; i < 1000; i++) {
		memset(chunk, 'a' + i % 26, sizeof(chunk));
		if (buf_append(&b, chunk, sizeof(chunk)) < 0)
			break;
	}
	tap_int(b.len, 1000000, "grows to exactly its maximum");
	for (size_t i = 0; i < b.len; i++)
		bad += b.data[i] != 'a' + (char)(i / 1000 % 26);
	tap_int(bad, 0, "with every byte in place");
	tap_int(b.data[b.len], 0, "and a NUL after them");
	tap_ok(b.cap <= 1000001, "without taking more memory than the maximum");
	buf_consume(&b, 999999);
	tap_int(b.len, 1, "bytes are dropped at the front");
	tap_int(b.data[0], 'a' + 999 % 26, "the rest moves up");
	buf_consume(&b, 500);
	tap_int(b.len, 0, "dropping more than there is empties it");
	buf_done(&b);
	tap_str(b.data, "", "a finished buffer is an empty one");
	tap_int(buf_append_str(&b, "again"), 0, "that can be used again");
	tap_str(b.data, "again", "from the start");
	buf_done(&b);
}

static void test_overflow(void)
{
	struct buf b;

	buf_init(&b, 8);
	tap_int(buf_append(&b, "12345678", 8), 0, "the maximum fits");
	tap_int(b.overflow, 0, "and is no overflow");
	tap_int(buf_append(&b, "", 0), 0, "nothing more fits too");
	tap_int(buf_append(&b, "9", 1), -1, "one byte more does not");
	tap_int(b.overflow, 1, "overflow is set");
	tap_str(b.data, "12345678", "the content is as before");
	buf_consume(&b, 8);
	tap_int(buf_append(&b, "x", 1), -1, "later appends fail: a gap would go unnoticed");
	buf_done(&b);
	buf_init(&b, 8);
	tap_int(buf_append(&b, "x", SIZE_MAX), -1, "an absurd length is an overflow");
	tap_str(b.data, "", "that touched nothing");
	buf_done(&b);
	buf_init(&b, 0);
	tap_int(buf_append(&b, "x", 1), -1, "nothing fits into nothing");
	buf_done(&b);
}

static void test_printf(void)
{
	struct buf b;

	buf_init(&b, 10);
	tap_int(buf_printf(&b, "%d-%s", 12, "ab"), 0, "formatted text");
	tap_str(b.data, "12-ab", "is appended");
	tap_int(buf_printf(&b, "%s", "67890"), 0, "up to the maximum");
	tap_int(buf_printf(&b, "%s", "x"), -1, "and not beyond");
	tap_str(b.data, "12-ab67890", "nothing of it is left half");
	buf_done(&b);
}

int main(void)
{
	test_growth();
	test_overflow();
	test_printf();
	return tap_done();
}
