/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/excerpt.c - from a command's raw log to the cleaned beginning and end that a reply shows
 *
 * Runs in the front, without privilege. The bytes are a hostile command's; the descriptors are
 * read-only and came from the keeper. Background processes may still be appending: only the bytes the
 * keeper counted are read.
 */
#include "mcp/excerpt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "mcp/json_write.h"
#include "mcp/bounds.h"
#include "mcp/result.h"
#include "runtime/base/cleanup.h"

static char slice[LIMIT_SLICE]; /* single thread */

static void on_text(void *ctx, const char *text, size_t len)
{
	budget_add(ctx, text, len);
}

void excerpt_start(struct excerpt *x, const struct api_exec_done *d, int *fds, size_t fd_count)
{
	*x = (struct excerpt){ .done = *d, .log_fd = -1, .tail_fd = -1 };
	if (fd_count > 0)
		x->log_fd = take_fd(&fds[0]);
	if (fd_count > 1)
		x->tail_fd = take_fd(&fds[1]);
	budget_init(&x->budget, LIMIT_OUTPUT_ALL, LIMIT_OUTPUT_HEAD, LIMIT_OUTPUT_TAIL);
	clean_init(&x->clean, on_text, &x->budget);
}

void excerpt_done(struct excerpt *x)
{
	close_fd(&x->log_fd);
	close_fd(&x->tail_fd);
	clean_done(&x->clean);
	budget_done(&x->budget);
}

/* Return: bytes read at offset, at most len; 0 at the end or when the file cannot be read. */
static size_t read_slice(int fd, uint64_t offset, uint64_t len)
{
	ssize_t n;

	if (len > sizeof(slice))
		len = sizeof(slice);
	do {
		n = pread(fd, slice, (size_t)len, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? (size_t)n : 0;
}

static void feed_ring_part(struct excerpt *x, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t n = read_slice(x->tail_fd, from, to - from);

		if (!n)
			return;
		clean_feed(&x->clean, slice, n);
		from += n;
	}
}

/* The ring holds the last bytes of an output that was longer than its log may be. What lies between
 * is gone; the cleaner starts anew behind the gap. The ring is small. */
static void feed_tail(struct excerpt *x)
{
	const struct api_exec_done *d = &x->done;
	uint64_t gap = d->total_bytes - d->log_bytes;

	gap = gap > d->tail_bytes ? gap - d->tail_bytes : 0;
	if (gap) {
		clean_finish(&x->clean);
		budget_skip(&x->budget, gap);
	}
	if (x->tail_fd < 0)
		return;
	feed_ring_part(x, d->tail_start, d->tail_bytes);
	feed_ring_part(x, 0, d->tail_start < d->tail_bytes ? d->tail_start : d->tail_bytes);
}

bool excerpt_step(struct excerpt *x)
{
	size_t n = 0;

	if (x->log_fd >= 0 && x->offset < x->done.log_bytes)
		n = read_slice(x->log_fd, x->offset, x->done.log_bytes - x->offset);
	if (n) {
		clean_feed(&x->clean, slice, n);
		x->offset += n;
		if (x->offset < x->done.log_bytes)
			return false;
	}
	if (x->done.total_bytes > x->done.log_bytes)
		feed_tail(x);
	clean_finish(&x->clean);
	return true;
}

bool excerpt_mentions(const struct excerpt *x, const char *text)
{
	const struct buf *first = &x->budget.first;
	size_t tail_len;
	const char *tail = budget_tail(&x->budget, &tail_len);

	return memmem(first->data, first->len, text, strlen(text)) ||
	       memmem(tail, tail_len, text, strlen(text));
}

void excerpt_write(const struct excerpt *x, struct buf *b, bool kept)
{
	const struct buf *first = &x->budget.first;
	size_t tail_len;
	const char *tail = budget_tail(&x->budget, &tail_len);

	json_write_escaped(b, first->data, first->len);
	if (!x->budget.cut)
		return;
	if (first->len && first->data[first->len - 1] != '\n')
		buf_append_str(b, "\\n");
	result_omitted(b, &x->done, budget_omitted(&x->budget), kept);
	buf_append_str(b, "\\n");
	json_write_escaped(b, tail, tail_len);
}
