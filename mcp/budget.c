/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/budget.c - keep the first and last characters of a text that may be too long for a reply
 *
 * Runs in the front, without privilege, behind the cleaner: the text is valid UTF-8.
 */
#include "mcp/budget.h"

enum { CODE_POINT_MAX = 4 };

void budget_init(struct budget *b, size_t all, size_t head, size_t tail)
{
	*b = (struct budget){ .all = all, .head = head, .tail = tail };
	buf_init(&b->first, all * CODE_POINT_MAX);
	buf_init(&b->last, 2 * tail * CODE_POINT_MAX);
}

void budget_done(struct budget *b)
{
	buf_done(&b->first);
	buf_done(&b->last);
}

static size_t count_characters(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* Bytes that the first n characters take. */
static size_t prefix_bytes(const char *text, size_t len, size_t n)
{
	size_t i = 0;

	for (; i < len; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	return i;
}

/* Bytes that the last n characters take. */
static size_t suffix_bytes(const char *text, size_t len, size_t n)
{
	size_t i = len;

	while (i > 0 && n > 0)
		n -= ((unsigned char)text[--i] & 0xc0) != 0x80;
	return len - i;
}

/* Only the last `tail` characters matter; room for twice as many makes moving them rare. */
static void add_last(struct budget *b, const char *text, size_t len)
{
	size_t half = b->tail * CODE_POINT_MAX, keep;

	if (len > half) {
		keep = suffix_bytes(text, len, b->tail);
		text += len - keep;
		len = keep;
	}
	if (b->last.len + len > 2 * half) {
		keep = suffix_bytes(b->last.data, b->last.len, b->tail);
		buf_consume(&b->last, b->last.len - keep);
	}
	buf_append(&b->last, text, len);
}

/* The text is too long: its end so far moves to `last`, and `first` becomes the head. */
static void begin_cut(struct budget *b)
{
	if (b->cut)
		return;
	b->cut = true;
	add_last(b, b->first.data, b->first.len);
	b->first.len = prefix_bytes(b->first.data, b->first.len, b->head);
}

void budget_add(struct budget *b, const char *text, size_t len)
{
	size_t n = count_characters(text, len), fill = 0;

	if (!b->cut && b->characters + n <= b->all) {
		buf_append(&b->first, text, len);
	} else {
		if (b->characters < b->all && !b->cut) {
			fill = prefix_bytes(text, len, b->all - b->characters);
			buf_append(&b->first, text, fill);
		}
		begin_cut(b);
		add_last(b, text + fill, len - fill);
	}
	b->characters += n;
}

void budget_skip(struct budget *b, uint64_t bytes)
{
	begin_cut(b);
	buf_consume(&b->last, b->last.len);
	b->unseen += bytes;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static void trim_end(struct buf *b)
{
	size_t len = b->len;

	while (len && is_space(b->data[len - 1]))
		len--;
	if (len < b->len)
		b->data[b->len = len] = '\0';
}

void budget_trim(struct budget *b)
{
	size_t spaces = 0;

	while (spaces < b->first.len && is_space(b->first.data[spaces]))
		spaces++;
	buf_consume(&b->first, spaces);
	trim_end(b->cut ? &b->last : &b->first);
}

const char *budget_tail(const struct budget *b, size_t *ret_len)
{
	*ret_len = 0;
	if (!b->cut)
		return "";
	*ret_len = suffix_bytes(b->last.data, b->last.len, b->tail);
	return b->last.data + b->last.len - *ret_len;
}

uint64_t budget_omitted(const struct budget *b)
{
	size_t tail_len;
	const char *tail = budget_tail(b, &tail_len);

	if (!b->cut)
		return 0;
	return b->unseen + b->characters - count_characters(b->first.data, b->first.len) -
	       count_characters(tail, tail_len);
}
