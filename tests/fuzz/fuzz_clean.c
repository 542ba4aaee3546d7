/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_clean.c - any split of any output gives the same clean text, within the budget */
#include <string.h>

#include "mcp/budget.h"
#include "mcp/clean.h"
#include "runtime/base/buf.h"
#include "runtime/base/str.h"
#include "tests/fuzz/fuzz.h"

static void collect(void *ctx, const char *text, size_t len)
{
	FUZZ_MUST(len > 0 && str_utf8_is_valid(text, len));
	buf_append(ctx, text, len);
}

static void clean_in_steps(struct buf *out, const uint8_t *data, size_t size, size_t step)
{
	struct clean c;

	buf_init(out, 4 * size + 64);
	clean_init(&c, collect, out);
	for (size_t at = 0; at < size; at += step)
		clean_feed(&c, data + at, size - at < step ? size - at : step);
	clean_finish(&c);
	clean_done(&c);
	FUZZ_MUST(!out->overflow);
}

static void check_budget(const struct buf *text)
{
	struct budget b;
	size_t tail_len, characters = 0;

	budget_init(&b, 20, 10, 5);
	budget_add(&b, text->data, text->len);
	for (size_t i = 0; i < text->len; i++)
		characters += ((unsigned char)text->data[i] & 0xc0) != 0x80;
	(void)budget_tail(&b, &tail_len);
	FUZZ_MUST(b.characters == characters && b.cut == (characters > 20));
	FUZZ_MUST(budget_omitted(&b) == (b.cut ? characters - 15 : 0));
	FUZZ_MUST(str_utf8_is_valid(b.first.data, b.first.len));
	budget_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, part;

	clean_in_steps(&whole, data, size, size + 1);
	for (size_t step = 1; step < 8; step += 2) {
		clean_in_steps(&part, data, size, step);
		FUZZ_MUST(part.len == whole.len && !memcmp(part.data, whole.data, whole.len));
		buf_done(&part);
	}
	FUZZ_MUST(!memchr(whole.data, 0x1b, whole.len) && !memchr(whole.data, 0, whole.len) &&
		  !memchr(whole.data, '\r', whole.len));
	check_budget(&whole);
	buf_done(&whole);
	return 0;
}
