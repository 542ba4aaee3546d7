/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_send.c - the bytes of an answer: what is queued, then a file
 *
 * Runs in the front. A file's content goes from the page cache to the socket without passing through
 * this process, except through TLS. How much there is was promised in the head; the file may have
 * changed since: one that has grown gives what was promised, one that has shrunk breaks the connection,
 * because padding would pass for content.
 */
#include <errno.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "mcp/http_conn.h"
#include "mcp/tls.h"
#include "runtime/base/cleanup.h"

enum { KEEP_CAP = 64 * 1024, CONSUME_AT = 1024 * 1024 };

bool http_conn_has_output(const struct http_conn *c)
{
	return c->sent < c->out.len || c->file_fd >= 0 || (c->tls && tls_wants_write(c->tls));
}

/* Return: 1 when the client has to read first, -1 when nothing can be sent any more. */
static int failed(struct http_conn *c)
{
	if (errno == EAGAIN)
		return 1;
	c->broken = true;
	return -1;
}

static ssize_t send_bytes(struct http_conn *c, const void *data, size_t len)
{
	ssize_t n;

	do
		n = c->tls ? tls_write(c->tls, data, len) : write(c->source.fd, data, len);
	while (n < 0 && errno == EINTR);
	c->progressed |= n > 0;
	return n;
}

static int send_queue(struct http_conn *c)
{
	while (c->sent < c->out.len) {
		ssize_t n = send_bytes(c, c->out.data + c->sent, c->out.len - c->sent);

		if (n < 0)
			return failed(c);
		c->sent += (size_t)n;
		if (c->sent >= CONSUME_AT && c->sent >= c->out.len / 2) {
			buf_consume(&c->out, c->sent);
			c->sent = 0;
		}
	}
	c->sent = 0;
	if (c->out.cap > KEEP_CAP)
		buf_done(&c->out);
	else
		buf_consume(&c->out, c->out.len);
	return 0;
}

/* Return: bytes taken; 0: the file is shorter than promised. */
static ssize_t send_file_part(struct http_conn *c, size_t len)
{
	off_t offset = (off_t)c->file_offset;
	ssize_t n;

	if (!c->tls)
		return sendfile(c->source.fd, c->file_fd, &offset, len);
	n = pread(c->file_fd, c->s->scratch, len < HTTP_READ_SIZE ? len : HTTP_READ_SIZE, offset);
	return n <= 0 ? n : send_bytes(c, c->s->scratch, (size_t)n);
}

static int send_file(struct http_conn *c)
{
	size_t slice = HTTP_FILE_SLICE;

	while (c->file_left) {
		size_t want = c->file_left < slice ? (size_t)c->file_left : slice;
		ssize_t n = want ? send_file_part(c, want) : 0;

		if (!want)
			return 1; /* the socket is still writable: the loop comes back */
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(c);
		if (n == 0) {
			c->broken = true;
			return -1;
		}
		c->progressed = true;
		c->file_offset += (uint64_t)n;
		c->file_left -= (uint64_t)n;
		slice -= (size_t)n;
	}
	close_fd(&c->file_fd);
	return 0;
}

int http_conn_flush(struct http_conn *c)
{
	int r = send_queue(c);

	if (r == 0 && c->file_fd >= 0)
		r = send_file(c);
	if (r == 0 && c->tls && c->state != HTTP_CONN_HANDSHAKE && tls_flush(c->tls) < 0)
		r = failed(c);
	return r;
}
