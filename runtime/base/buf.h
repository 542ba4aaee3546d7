/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/buf.h - a growable byte buffer with a hard maximum */
#pragma once

#include <stddef.h>

struct buf {
	char *data; /* NUL-terminated for convenience; len does not count it */
	size_t len;
	size_t cap;
	size_t max; /* an append beyond it fails and sets overflow */
	int overflow;
};

/* buf_init() - an empty buffer that may grow to max bytes; allocates nothing. */
void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

/* buf_append() and friends. Return: 0, -1 on overflow of max or no memory (overflow is then set and
 * stays set, so a sequence of appends needs one check at its end). */
int buf_append(struct buf *b, const void *data, size_t len);
int buf_append_str(struct buf *b, const char *text);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* buf_consume() - drop the first len bytes. */
void buf_consume(struct buf *b, size_t len);
