/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_budget.c - head, tail and the exact number between, for every way to add the text */
#include "mcp/budget.h"
#include "tests/unit/tap.h"

enum { ALL = 20, HEAD = 10, TAIL = 5 };

/* Text of n characters: digits in turn, or two-byte letters in turn. */
static size_t make_text(char *text, size_t n, bool wide)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (wide)
			text[len++] = (char)0xc3;
		text[len++] = (char)(wide ? 0xa0 + i % 10 : '0' + i % 10);
	}
	text[len] = 0;
	return len;
}

static void check(size_t n, size_t step, bool wide)
{
	char text[1000];
	size_t len = make_text(text, n, wide), width = wide ? 2 : 1, tail_len;
	bool cut = n > ALL;
	struct budget b;
	const char *tail;

	budget_init(&b, ALL, HEAD, TAIL);
	for (size_t at = 0; at < len; at += step * width)
		budget_add(&b, text + at, at + step * width < len ? step * width : len - at);
	tail = budget_tail(&b, &tail_len);
	tap_ok(b.cut == cut && b.characters == n && budget_omitted(&b) == (cut ? n - HEAD - TAIL : 0) &&
		       b.first.len == (cut ? HEAD * width : len) && !memcmp(b.first.data, text, b.first.len) &&
		       tail_len == (cut ? TAIL * width : 0) && !memcmp(tail, text + len - tail_len, tail_len),
	       "%zu %s characters, %zu at a time", n, wide ? "wide" : "narrow", step);
	budget_done(&b);
}

static void gap(size_t before, size_t after)
{
	char text[1000];
	size_t len = make_text(text, before, false), tail_len, head = before < HEAD ? before : HEAD;
	size_t kept = after < TAIL ? after : TAIL;
	struct budget b;

	budget_init(&b, ALL, HEAD, TAIL);
	budget_add(&b, text, len);
	budget_skip(&b, 1000);
	len = make_text(text, after, false);
	budget_add(&b, text, len);
	(void)budget_tail(&b, &tail_len);
	tap_ok(b.cut && b.first.len == head && tail_len == kept &&
		       budget_omitted(&b) == before - head + 1000 + after - kept,
	       "%zu characters, a gap, %zu characters", before, after);
	budget_done(&b);
}

static void trim(const char *in, const char *head, const char *want_tail)
{
	struct budget b;
	size_t tail_len;
	const char *tail;

	budget_init(&b, ALL, HEAD, TAIL);
	budget_add(&b, in, strlen(in));
	budget_trim(&b);
	tap_str(b.first.data, head, "trimmed text of %zu bytes", strlen(in));
	tail = budget_tail(&b, &tail_len);
	tap_ok(tail_len == strlen(want_tail) && !memcmp(tail, want_tail, tail_len), "and its tail");
	budget_done(&b);
}

int main(void)
{
	static const size_t sizes[] = { 0, 1, 5, 9, 10, 11, 15, 19, 20, 21, 22, 25, 26, 30, 40, 41, 99, 400 };
	static const size_t steps[] = { 1, 2, 3, 7, 20, 21, 50, 400 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
			check(sizes[i], steps[j], false);
			check(sizes[i], steps[j], true);
		}
	gap(0, 0);
	gap(0, 100);
	gap(3, 3);
	gap(15, 2);
	gap(20, 5);
	gap(21, 6);
	gap(100, 100);
	trim(" \n\t a b \n", "a b", "");
	trim("\n \n", "", "");
	trim("", "", "");
	trim("  345678901234567890123   ", "34567890", "90123");
	return tap_done();
}
