/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/flow.c - bytes from one socket to another
 *
 * Runs in the egress proxy; both ends are hostile. Bodies with a known length and tunnels go through a
 * pipe by splice() and are never in our memory; chunked bodies are looked at (peeked), sent on as they
 * are, and only then taken from the socket, so that nothing has to be kept here. A pipe is held only
 * while something is in it: an idle connection costs none.
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { POOL_MAX = 16, PEEK_MAX = 16 * 1024 };

static int pool[POOL_MAX][2];
static size_t pool_count;

static int pipe_get(struct flow *f)
{
	if (f->pipe[0] >= 0)
		return 0;
	if (pool_count > 0) {
		pool_count--;
		f->pipe[0] = pool[pool_count][0];
		f->pipe[1] = pool[pool_count][1];
		return 0;
	}
	return pipe2(f->pipe, O_CLOEXEC | O_NONBLOCK);
}

/* Only an empty pipe is anybody's. */
static void pipe_put(struct flow *f)
{
	if (f->pipe[0] < 0)
		return;
	if (f->in_pipe == 0 && pool_count < POOL_MAX) {
		pool[pool_count][0] = take_fd(&f->pipe[0]);
		pool[pool_count++][1] = take_fd(&f->pipe[1]);
		return;
	}
	close_fd(&f->pipe[0]);
	close_fd(&f->pipe[1]);
}

void flow_init(struct flow *f)
{
	*f = (struct flow){ .pipe = { -1, -1 }, .done = true };
}

void flow_begin(struct flow *f, enum http_body body, uint64_t length)
{
	f->body = body;
	f->left = length;
	f->chunks = (struct http_chunks){ .state = CHUNK_SIZE };
	f->eof = f->done = body == HTTP_BODY_NONE;
	f->want_read = f->want_write = false;
}

void flow_done(struct flow *f)
{
	pipe_put(f);
	f->in_pipe = 0;
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Return: 1 moved, 0 nothing to take now, -1 broken. */
static int fill(struct flow *f, int src)
{
	size_t want = f->body == HTTP_BODY_LENGTH && f->left < FLOW_CHUNK ? (size_t)f->left : FLOW_CHUNK;
	ssize_t n;

	if (f->eof)
		return 0;
	if (pipe_get(f) < 0)
		return -1;
	n = splice(src, NULL, f->pipe[1], NULL, want, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
	if (n < 0) {
		f->want_read = would_block();
		return would_block() ? 0 : -1;
	}
	if (n == 0) {
		f->eof = true;
		return f->body == HTTP_BODY_LENGTH ? -1 : 0;
	}
	f->in_pipe = (size_t)n;
	if (f->body == HTTP_BODY_LENGTH) {
		f->left -= (uint64_t)n;
		f->eof = f->left == 0;
	}
	return 1;
}

static int drain(struct flow *f, int dst)
{
	while (f->in_pipe > 0) {
		/* Never SPLICE_F_MORE: nobody knows here whether more comes, and it holds a last part
		 * back for 200 ms. */
		ssize_t n = splice(f->pipe[0], NULL, dst, NULL, f->in_pipe,
				   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

		if (n <= 0) {
			f->want_write = n < 0 && would_block();
			return f->want_write ? 0 : -1;
		}
		f->in_pipe -= (size_t)n;
		f->bytes += (uint64_t)n;
	}
	return 1;
}

static int step_splice(struct flow *f, int src, int dst)
{
	for (unsigned int i = 0; i < FLOW_ROUNDS_MAX; i++) {
		int r = f->in_pipe > 0 ? 1 : fill(f, src);

		if (r > 0)
			r = drain(f, dst);
		if (r < 0)
			return -1;
		if (f->in_pipe == 0)
			pipe_put(f);
		f->done = f->eof && f->in_pipe == 0;
		if (r == 0 || f->done)
			return 0;
	}
	f->want_read = true; /* there is more; the loop comes back */
	return 0;
}

static int step_chunks(struct flow *f, int src, int dst)
{
	static char peeked[PEEK_MAX];

	for (unsigned int i = 0; i < FLOW_ROUNDS_MAX && !f->done; i++) {
		struct http_chunks ahead = f->chunks;
		ssize_t n = recv(src, peeked, sizeof(peeked), MSG_PEEK | MSG_DONTWAIT), sent;
		long body;

		if (n <= 0) {
			f->want_read = n < 0 && would_block();
			return f->want_read ? 0 : -1;
		}
		body = http_chunks_scan(&ahead, peeked, (size_t)n);
		if (body < 0)
			return -1;
		sent = send(dst, peeked, (size_t)body, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0) {
			f->want_write = would_block();
			return f->want_write ? 0 : -1;
		}
		(void)http_chunks_scan(&f->chunks, peeked, (size_t)sent);
		if (recv(src, peeked, (size_t)sent, MSG_DONTWAIT) != sent)
			return -1;
		f->bytes += (uint64_t)sent;
		f->eof = f->done = f->chunks.state == CHUNK_DONE;
	}
	f->want_read = !f->done;
	return 0;
}

int flow_step(struct flow *f, int src, int dst)
{
	f->want_read = f->want_write = false;
	if (f->done)
		return 0;
	return f->body == HTTP_BODY_CHUNKED ? step_chunks(f, src, dst) : step_splice(f, src, dst);
}
