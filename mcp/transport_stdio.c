/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/transport_stdio.c - one JSON message per line on standard input and output
 *
 * Runs in the front, without privilege; every byte of input is hostile. Standard output carries
 * messages and nothing else. A client that does not read is not listened to (its own pipe fills up),
 * so that queued output stays bounded; a line that is too long is dropped as it comes in.
 * End of input: calls that are about to end are still answered, then everything is cancelled.
 */
#include "mcp/transport_stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/bounds.h"
#include "mcp/listen.h"
#include "runtime/base/log.h"

enum { READ_SIZE = 64 * 1024, LINE_CAP_MAX = LIMIT_MESSAGE + READ_SIZE, KEEP_CAP = 256 * 1024 };

static struct transport_stdio *from_sink(struct sink *s)
{
	return (struct transport_stdio *)s; /* its first member */
}

static void stop(struct transport_stdio *t, int status)
{
	t->stopped = true;
	loop_stop(t->loop, status);
}

/* ---- output ---- */

static void on_writable(struct loop_source *source, uint32_t events);

static bool wait_writable(struct transport_stdio *t)
{
	struct err e;

	return t->out_source.loop || loop_add(t->loop, &t->out_source, t->out_fd, EPOLLOUT,
					      on_writable, t, &e) == 0;
}

/* A burst should not hold its memory for ever. */
static void shrink(struct buf *b)
{
	if (!b->len && b->cap > KEEP_CAP)
		buf_done(b);
}

static bool is_over(const struct transport_stdio *t)
{
	return t->ended && !t->server->call_count && !t->out.len;
}

static void flush(struct transport_stdio *t)
{
	while (t->out.len && !t->stopped) {
		ssize_t n = write(t->out_fd, t->out.data, t->out.len);

		if (n >= 0) {
			buf_consume(&t->out, (size_t)n);
		} else if (errno == EAGAIN) {
			if (!wait_writable(t))
				stop(t, 1);
			return;
		} else if (errno != EINTR) {
			stop(t, 0); /* nobody reads any more */
		}
	}
	loop_remove(&t->out_source);
	shrink(&t->out);
	if (is_over(t))
		stop(t, t->status);
}

static void on_writable(struct loop_source *source, uint32_t events)
{
	struct transport_stdio *t = source->ctx;
	bool was_ready = t->sink.is_ready(&t->sink);

	(void)events;
	flush(t);
	if (!was_ready && t->sink.is_ready(&t->sink))
		server_resume(t->server);
	transport_stdio_update(t);
}

static struct buf *sink_begin(struct sink *s)
{
	struct transport_stdio *t = from_sink(s);

	t->writing = true;
	return &t->out;
}

static void sink_end(struct sink *s, int status, bool final)
{
	struct transport_stdio *t = from_sink(s);

	(void)status;
	(void)final;
	if (t->writing)
		buf_append(&t->out, "\n", 1);
	t->writing = false;
	if (t->out.overflow) {
		log_error("no memory for a reply");
		stop(t, 1);
	} else if (!t->handling && !t->out_source.loop) {
		flush(t);
	}
}

static bool sink_is_ready(struct sink *s)
{
	return from_sink(s)->out.len < LIMIT_OUT_HIGH;
}

static bool sink_is_stream(struct sink *s)
{
	(void)s;
	return true;
}

/* ---- lines ---- */

static bool is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

static void handle_line(struct transport_stdio *t, const char *line, size_t len)
{
	if (t->skipping)
		t->skipping = false;
	else if (len > LIMIT_MESSAGE)
		server_refuse(&t->sink, "message too long");
	else if (!is_blank(line, len))
		server_receive(t->server, &t->peer, &t->sink, line, len);
}

static bool may_listen(const struct transport_stdio *t)
{
	return !t->stopped && t->out.len < LIMIT_OUT_HIGH &&
	       !keeper_client_is_congested(t->server->keeper);
}

/* Return: false when there is no whole line. */
static bool handle_next_line(struct transport_stdio *t)
{
	const char *line = t->line + t->start, *lf;
	size_t len;

	lf = t->scanned < t->end ? memchr(t->line + t->scanned, '\n', t->end - t->scanned) : NULL;
	if (!lf) {
		t->scanned = t->end;
		return false;
	}
	len = (size_t)(lf - line);
	t->start += len + 1;
	t->scanned = t->start;
	handle_line(t, line, len);
	return true;
}

/* The unfinished line may not be kept whole. */
static void drop_long_line(struct transport_stdio *t)
{
	size_t len = t->end - t->start;

	if (!t->skipping && len <= LIMIT_MESSAGE)
		return;
	if (!t->skipping)
		server_refuse(&t->sink, "message too long");
	t->skipping = true;
	t->start = t->end = t->scanned = 0;
}

static void handle_lines(struct transport_stdio *t)
{
	bool more = true;

	t->handling = true;
	while (more && may_listen(t))
		more = handle_next_line(t);
	if (!more)
		drop_long_line(t);
	if (!more && t->ended && t->end > t->start) {
		handle_line(t, t->line + t->start, t->end - t->start);
		t->start = t->end;
	}
	t->handling = false;
	if (t->start == t->end)
		t->start = t->end = t->scanned = 0;
	if (t->out.len && !t->out_source.loop)
		flush(t);
}

/* ---- input ---- */

static bool make_room(struct transport_stdio *t)
{
	size_t cap = t->line_cap ? t->line_cap : READ_SIZE;
	char *line;

	if (t->start == 0 && t->end == 0 && t->line_cap > KEEP_CAP) {
		free(t->line);
		t->line = NULL;
		t->line_cap = 0;
		cap = READ_SIZE;
	}
	if (t->start && t->line_cap - t->end < READ_SIZE) {
		memmove(t->line, t->line + t->start, t->end - t->start);
		t->end -= t->start;
		t->scanned -= t->start;
		t->start = 0;
	}
	while (cap - t->end < READ_SIZE / 2 && cap < LINE_CAP_MAX)
		cap = cap * 2 < LINE_CAP_MAX ? cap * 2 : LINE_CAP_MAX;
	if (cap == t->line_cap)
		return true;
	line = realloc(t->line, cap);
	if (!line)
		return false;
	t->line = line;
	t->line_cap = cap;
	return true;
}

static void on_grace(struct loop_timer *timer)
{
	struct transport_stdio *t = timer->ctx;

	server_cancel_peer(t->server, &t->peer);
	stop(t, t->status);
}

/* No more input. What is running gets a moment to be answered: scripts that pipe requests in close
 * their end at once. */
static void end_input(struct transport_stdio *t)
{
	t->ended = true;
	handle_lines(t);
	listen_end(t->server);
	if (is_over(t))
		stop(t, t->status);
	else if (!t->grace.deadline_ns)
		(void)loop_timer_set(t->loop, &t->grace, EOF_GRACE_MS, on_grace, t);
}

static void read_input(struct transport_stdio *t)
{
	ssize_t n;

	if (!make_room(t)) {
		log_error("no memory for a message");
		stop(t, 1);
		return;
	}
	n = read(t->in_fd, t->line + t->end, t->line_cap - t->end);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_input(t);
		return;
	}
	t->end += (size_t)n;
	handle_lines(t);
}

static void on_readable(struct loop_source *source, uint32_t events)
{
	struct transport_stdio *t = source->ctx;

	(void)events;
	read_input(t);
	transport_stdio_update(t);
}

static void on_in_timer(struct loop_timer *timer)
{
	struct transport_stdio *t = timer->ctx;

	t->listening = false;
	read_input(t);
	transport_stdio_update(t);
}

static void listen_on(struct transport_stdio *t)
{
	struct err e;

	t->listening = true;
	if (t->in_watchable &&
	    loop_add(t->loop, &t->in_source, t->in_fd, EPOLLIN, on_readable, t, &e) == 0)
		return;
	t->in_watchable = false; /* a regular file or /dev/null: always readable */
	if (loop_timer_set(t->loop, &t->in_timer, 0, on_in_timer, t) < 0)
		stop(t, 1);
}

/* Removed instead of masked: a hang-up is reported whatever the mask. */
static void listen_off(struct transport_stdio *t)
{
	t->listening = false;
	loop_remove(&t->in_source);
	loop_timer_cancel(t->loop, &t->in_timer);
}

void transport_stdio_update(struct transport_stdio *t)
{
	bool listen;

	if (t->end > t->start && may_listen(t))
		handle_lines(t);
	listen = may_listen(t) && !t->ended;
	if (listen && !t->listening)
		listen_on(t);
	else if (!listen && t->listening)
		listen_off(t);
}

/* ---- life ---- */

/* Only what another process cannot be surprised by is made non-blocking: a terminal is shared with
 * the shell that started us, and a file never blocks. */
static void set_nonblocking(struct transport_stdio *t)
{
	struct stat st;
	int flags = fcntl(t->out_fd, F_GETFL);

	t->out_flags = -1;
	if (flags < 0 || (flags & O_NONBLOCK) || fstat(t->out_fd, &st) < 0)
		return;
	if (!S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
		return;
	if (fcntl(t->out_fd, F_SETFL, flags | O_NONBLOCK) == 0)
		t->out_flags = flags;
}

int transport_stdio_start(struct transport_stdio *t, struct server *server, int in_fd, int out_fd,
			  struct err *e)
{
	*t = (struct transport_stdio){
		.sink = { sink_begin, sink_end, sink_is_ready, sink_is_stream },
		.peer = { .streams = true },
		.server = server,
		.loop = server->loop,
		.in_fd = in_fd,
		.out_fd = out_fd,
		.in_source.fd = -1,
		.out_source.fd = -1,
		.in_watchable = true,
	};
	buf_init(&t->out, LIMIT_OUT_MAX);
	if (fcntl(in_fd, F_GETFD) < 0 || fcntl(out_fd, F_GETFD) < 0)
		return err_sys(e, "standard input and output");
	set_nonblocking(t);
	transport_stdio_update(t);
	return 0;
}

void transport_stdio_end(struct transport_stdio *t, int status)
{
	t->status = status;
	t->ended = true;
	listen_off(t);
	t->start = t->end = t->scanned = 0;
	if (is_over(t))
		stop(t, status);
	else if (!t->grace.deadline_ns)
		(void)loop_timer_set(t->loop, &t->grace, EOF_GRACE_MS, on_grace, t);
}

void transport_stdio_done(struct transport_stdio *t)
{
	listen_off(t);
	loop_remove(&t->out_source);
	loop_timer_cancel(t->loop, &t->grace);
	if (t->out_flags >= 0)
		(void)fcntl(t->out_fd, F_SETFL, t->out_flags);
	buf_done(&t->out);
	free(t->line);
}
