/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/buf.c - a growable byte buffer with a hard maximum
 *
 * Runs in every process. The bytes are untrusted; the bound is what keeps a peer from choosing how
 * much memory we use.
 */
#include "runtime/base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 256 };

/* What data points to before the first append, so that it is a string at any time. Never written:
 * cap 0 says that nothing is owned. */
static char empty[1];

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .data = empty, .max = max };
}

void buf_done(struct buf *b)
{
	if (b->cap > 0)
		free(b->data);
	buf_init(b, b->max);
}

static int fail(struct buf *b)
{
	b->overflow = 1;
	return -1;
}

/* reserve() - room for len more bytes and the NUL. */
static int reserve(struct buf *b, size_t len)
{
	size_t need, cap;
	char *data;

	if (b->overflow || b->len > b->max || len > b->max - b->len || b->max == SIZE_MAX)
		return fail(b);
	need = b->len + len + 1;
	if (need <= b->cap)
		return 0;
	cap = b->cap > 0 ? b->cap : FIRST_CAP;
	while (cap < need)
		cap = cap > SIZE_MAX / 2 ? need : cap * 2;
	if (cap > b->max + 1)
		cap = b->max + 1;
	data = realloc(b->cap > 0 ? b->data : NULL, cap);
	if (!data)
		return fail(b);
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_append(struct buf *b, const void *data, size_t len)
{
	if (reserve(b, len) < 0)
		return -1;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_append_str(struct buf *b, const char *text)
{
	return buf_append(b, text, strlen(text));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		return fail(b);
	if (reserve(b, (size_t)len) < 0)
		return -1;
	va_start(ap, fmt);
	(void)vsnprintf(b->data + b->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)len;
	return 0;
}

void buf_consume(struct buf *b, size_t len)
{
	if (len > b->len)
		len = b->len;
	if (len == 0)
		return;
	b->len -= len;
	memmove(b->data, b->data + len, b->len);
	b->data[b->len] = '\0';
}
