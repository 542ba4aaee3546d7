/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_clean.c - the cleaner: rows, and that splitting the input never changes the result */
#include "mcp/bounds.h"
#include "mcp/clean.h"
#include "runtime/base/str.h"
#include "tests/unit/tap.h"

#define TEXT(s) s, sizeof(s) - 1
#define BAD "\xef\xbf\xbd"

static const struct row {
	const char *desc, *in;
	size_t len;
	const char *want;
} rows[] = {
	{ "nothing", TEXT(""), "" },
	{ "plain text", TEXT("hello\nworld\n"), "hello\nworld\n" },
	{ "no last line break", TEXT("hello"), "hello" },
	{ "tab stays", TEXT("a\tb"), "a\tb" },
	{ "colours", TEXT("\x1b[1;31mred\x1b[0m\x1b[m!"), "red!" },
	{ "private and intermediate bytes", TEXT("\x1b[?25l\x1b[>0;276;0c\x1b[2 qx"), "x" },
	{ "8-bit CSI as UTF-8", TEXT("a\xc2\x9b""31mb"), "ab" },
	{ "window title, BEL", TEXT("\x1b]0;title\x07x"), "x" },
	{ "window title, ST", TEXT("\x1b]0;title\x1b\\x"), "x" },
	{ "hyperlink", TEXT("\x1b]8;;http://a/\x1b\\link\x1b]8;;\x1b\\!"), "link!" },
	{ "clipboard", TEXT("\x1b]52;c;ZWNobw==\x07ok"), "ok" },
	{ "DCS, APC, PM, SOS", TEXT("\x1bPq#0\x1b\\a\x1b_G\x1b\\b\x1b^m\x1b\\c\x1bXs\x1b\\d"), "abcd" },
	{ "8-bit string", TEXT("\xc2\x9d""0;t\xc2\x9cx"), "x" },
	{ "an unfinished string ends with its line", TEXT("\x1b]0;title\nnext\n"), "\nnext\n" },
	{ "a string aborted by another sequence", TEXT("\x1b]0;t\x1b[31mred"), "red" },
	{ "character sets", TEXT("\x1b(B\x1b)0\x1b%Gx\x0e\x0fy"), "xy" },
	{ "two-byte sequences", TEXT("\x1b" "7\x1b" "8\x1b=\x1b>\x1b" "Mx"), "x" },
	{ "lone ESC at the end", TEXT("x\x1b"), "x" },
	{ "ESC before a line break", TEXT("a\x1b\nb"), "a\nb" },
	{ "ESC before a letter outside ASCII", TEXT("\x1b\xc3\xa4"), "\xc3\xa4" },
	{ "unfinished CSI", TEXT("x\x1b[31"), "x" },
	{ "CSI broken by a line break", TEXT("\x1b[3\nx"), "\nx" },
	{ "CR LF", TEXT("a\r\nb\r\r\nc"), "a\nb\nc" },
	{ "progress", TEXT(" 1%\r 50%\r100%\ndone\n"), "100%\ndone\n" },
	{ "progress at the end", TEXT("1%\r2%\r"), "2%" },
	{ "progress with colour", TEXT("1%\r\x1b[K\x1b[32m2%\x1b[0m\n"), "2%\n" },
	{ "erase line and column 1", TEXT("one\x1b[2K\x1b[1Gtwo\x1b[Gthree\n"), "three\n" },
	{ "other columns are no return", TEXT("one\x1b[12Gtwo"), "onetwo" },
	{ "return and nothing", TEXT("kept\r\x1b[0m\n"), "kept\n" },
	{ "spinner", TEXT("-\b\\\b|\bdone"), "done" },
	{ "overstrike", TEXT("N\bNA\bAM\bM"), "NAM" },
	{ "backspace takes a whole character", TEXT("\xc3\xa4\xe2\x82\xac\b!"), "\xc3\xa4!" },
	{ "backspace at the line's start", TEXT("a\n\b\bb"), "a\nb" },
	{ "bell, DEL and other controls go", TEXT("a\x07\x7f\x01\x02\x16z"), "az" },
	{ "NUL is shown", TEXT("a\0b"), "a" BAD "b" },
	{ "form feed and vertical tab", TEXT("a\fb\vc"), "a\nb\nc" },
	{ "NEL", TEXT("a\xc2\x85" "b"), "a\nb" },
	{ "C1 goes", TEXT("a\xc2\x80\xc2\x99z"), "az" },
	{ "UTF-8", TEXT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "invalid bytes", TEXT("a\xff\xfe" "b"), "a" BAD BAD "b" },
	{ "one replacement per maximal prefix", TEXT("\xf0\x9f\x98z\xe2\x82"), BAD "z" BAD },
	{ "overlong", TEXT("\xc0\xaf\xe0\x80\xaf"), BAD BAD BAD BAD BAD },
	{ "surrogate", TEXT("\xed\xa0\x80"), BAD BAD BAD },
	{ "broken sequence before ESC", TEXT("\xe2\x82\x1b[31mx"), BAD "x" },
	{ "invalid inside a control string", TEXT("\x1b]0;\xff\x07x"), "x" },
	{ "no-break space and bidi stay", TEXT("\xc2\xa0\xe2\x80\xae"), "\xc2\xa0\xe2\x80\xae" },
};

static void collect(void *ctx, const char *text, size_t len)
{
	buf_append(ctx, text, len);
}

/* Feed len bytes in two pieces; 0 is one piece. */
static void clean_split(struct buf *out, const char *in, size_t len, size_t at)
{
	struct clean c;

	buf_init(out, 1 << 24);
	clean_init(&c, collect, out);
	clean_feed(&c, in, at);
	clean_feed(&c, in + at, len - at);
	clean_finish(&c);
	clean_done(&c);
}

static void clean_bytes(struct buf *out, const char *in, size_t len)
{
	struct clean c;

	buf_init(out, 1 << 24);
	clean_init(&c, collect, out);
	for (size_t i = 0; i < len; i++) {
		struct tap_guard g = tap_guard_new(in + i, 1);

		clean_feed(&c, g.data, 1);
		tap_guard_free(&g);
	}
	clean_finish(&c);
	clean_done(&c);
}

static void all_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_new(rows[i].in, rows[i].len);
		struct buf out;
		bool same = true;

		clean_split(&out, g.data, g.len, 0);
		tap_str(out.data, rows[i].want, "%s", rows[i].desc);
		buf_done(&out);
		for (size_t at = 1; at < g.len; at++) {
			clean_split(&out, g.data, g.len, at);
			same = same && !strcmp(out.data, rows[i].want);
			buf_done(&out);
		}
		clean_bytes(&out, g.data, g.len);
		tap_ok(same && !strcmp(out.data, rows[i].want), "%s, split anywhere", rows[i].desc);
		buf_done(&out);
		tap_guard_free(&g);
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Random pieces of what matters to the state machine. */
static size_t make_hostile(char *text, size_t size, uint32_t *seed)
{
	static const char *const pieces[] = { "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b\\", "\x07", "\r", "\n",
					      "\b", "\t", "m", "K", "2", "1", "G", ";", "x", "hello", "\xc2",
					      "\x9b", "\xe2\x82", "\xac", "\xf0\x9f", "\xff", "\x85", "(", " ",
					      "\xc3\xa4", "\x18", "\x7f" };
	size_t len = 0;

	while (len + 8 < size) {
		const char *piece = pieces[next_random(seed) % (sizeof(pieces) / sizeof(pieces[0]))];

		memcpy(text + len, piece, strlen(piece));
		len += strlen(piece);
	}
	return len;
}

static void random_texts(void)
{
	uint32_t seed = 20260728;
	bool same = true, valid = true;

	for (int round = 0; round < 300; round++) {
		char text[120];
		size_t len = make_hostile(text, sizeof(text), &seed);
		struct buf whole, part;

		clean_split(&whole, text, len, 0);
		valid = valid && str_utf8_is_valid(whole.data, whole.len) && !memchr(whole.data, 0x1b, whole.len) &&
			!memchr(whole.data, '\r', whole.len);
		for (size_t at = 1; at < len; at++) {
			clean_split(&part, text, len, at);
			same = same && part.len == whole.len && !memcmp(part.data, whole.data, whole.len);
			buf_done(&part);
		}
		buf_done(&whole);
	}
	tap_ok(same, "300 random texts: the same result for every split");
	tap_ok(valid, "and always UTF-8 without ESC and CR");
}

/* The bound on a held line shows, but not the split. */
static void long_lines(void)
{
	size_t len = 3 * LIMIT_LINE_HOLD, step[] = { 1, 7, 4096, LIMIT_LINE_HOLD - 1, LIMIT_LINE_HOLD,
						     LIMIT_LINE_HOLD + 1 };
	char *text = malloc(len);
	struct buf whole, part;
	struct clean c;

	memset(text, 'a', len);
	memcpy(text + LIMIT_LINE_HOLD - 1, "\xc3\xa4", 2);
	text[2 * LIMIT_LINE_HOLD] = '\r';
	clean_split(&whole, text, len, 0);
	/* HOLD - 1 bytes went out when the wide letter did not fit, HOLD more when the line was full again;
	 * the return then replaced the one byte still held, behind a line break. */
	tap_int(whole.len, 3 * LIMIT_LINE_HOLD - 1, "a return in a line over the bound");
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		buf_init(&part, 1 << 24);
		clean_init(&c, collect, &part);
		for (size_t at = 0; at < len; at += step[i])
			clean_feed(&c, text + at, at + step[i] < len ? step[i] : len - at);
		clean_finish(&c);
		tap_ok(part.len == whole.len && !memcmp(part.data, whole.data, whole.len),
		       "a line over the bound, %zu bytes at a time", step[i]);
		clean_done(&c);
		buf_done(&part);
	}
	buf_done(&whole);
	free(text);
}

static void long_sequences(void)
{
	char *text = malloc(2 * LIMIT_STRING);
	struct buf out;

	memset(text, '1', 1000);
	memcpy(text, "\x1b[", 2);
	clean_split(&out, text, 1000, 0);
	tap_int(out.len, 1000 - 2 - (LIMIT_SEQUENCE - 1), "a control sequence that never ends is given up");
	buf_done(&out);
	memset(text, 'A', 2 * LIMIT_STRING);
	memcpy(text, "\x1b]", 2);
	clean_split(&out, text, 2 * LIMIT_STRING, 0);
	tap_int(out.len, 2 * LIMIT_STRING - 2 - (LIMIT_STRING - 1), "and so is a control string");
	buf_done(&out);
	free(text);
}

static void used_again(void)
{
	struct buf out;
	struct clean c;

	buf_init(&out, 1000);
	clean_init(&c, collect, &out);
	clean_feed(&c, "a\x1b[3", 4);
	clean_finish(&c);
	clean_feed(&c, "1mb\r", 4);
	clean_finish(&c);
	clean_feed(&c, "c\xe2", 2);
	clean_finish(&c);
	tap_str(out.data, "a1mbc" BAD, "after its end the cleaner starts anew");
	clean_done(&c);
	buf_done(&out);
}

int main(void)
{
	all_rows();
	random_texts();
	long_lines();
	long_sequences();
	used_again();
	return tap_done();
}
