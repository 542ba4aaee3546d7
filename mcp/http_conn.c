/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_conn.c - a connection's way through its requests
 *
 * Runs in the front, without privilege; every byte read is hostile. One state machine: conn_run() takes
 * steps until one has to wait for the client, and is the only place that destroys a connection.
 * Handlers are called from it and from nowhere else, so that what they call never calls them.
 * While a request is served nothing is read: pipelined requests wait in the socket and are answered in
 * order; only the client's going away is watched for.
 */
#include "mcp/http_conn.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcp/tls.h"
#include "runtime/base/cleanup.h"

enum { STEPS_PER_TURN = 32 };

static void conn_run(struct http_conn *c);

/* ---- deadlines ---- */

static void refuse_late(struct http_conn *c)
{
	static const struct http_answer late = { .status = 408 };

	c->must_close = true;
	if (c->state == HTTP_CONN_BODY && c->x)
		http_refuse(c->x, &late, "the body took too long");
	else if (c->state == HTTP_CONN_HEAD && c->in.len)
		http_answer_unparsed(c, 408, "the request took too long");
	else
		c->broken = true;
}

static void on_deadline(struct loop_timer *t)
{
	struct http_conn *c = t->ctx;

	c->busy = true; /* what is queued here is sent below */
	refuse_late(c);
	conn_run(c);
}

/* Without a deadline the client could stay for ever. */
static void set_deadline(struct http_conn *c, uint64_t ms)
{
	c->progressed = false;
	if (loop_timer_set(c->s->loop, &c->deadline, ms, on_deadline, c) < 0)
		c->broken = true;
}

static void on_kick(struct loop_timer *t)
{
	struct http_conn *c = t->ctx;

	c->readable = true; /* what TLS has decrypted is announced by nobody */
	conn_run(c);
}

static void kick(struct http_conn *c)
{
	if (!c->kick.deadline_ns && loop_timer_set(c->s->loop, &c->kick, 0, on_kick, c) < 0)
		(void)shutdown(c->source.fd, SHUT_RDWR); /* the hang-up comes through the loop, too */
}

/* ---- states ---- */

static void wait_in(struct http_conn *c, enum http_conn_state state, uint64_t ms)
{
	c->state = state;
	set_deadline(c, ms);
	TAILQ_REMOVE(&c->s->conns, c, link);
	TAILQ_INSERT_TAIL(&c->s->conns, c, link);
}

bool http_conn_is_waiting(const struct http_conn *c)
{
	return c->state == HTTP_CONN_HANDSHAKE || c->state == HTTP_CONN_IDLE || c->state == HTTP_CONN_HEAD ||
	       c->state == HTTP_CONN_LINGER;
}

static void release_body(struct http_conn *c)
{
	c->s->body_bytes -= c->body.len;
	buf_done(&c->body);
}

static void release_exchanges(struct http_conn *c)
{
	release_body(c);
	free(take_ptr(c->x));
	free(take_ptr(c->over));
}

void http_conn_lose(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	c->state = HTTP_CONN_DEAD;
	if (x && x->on_gone)
		x->on_gone(x->watch_ctx);
	release_exchanges(c);
}

bool http_conn_can_keep(const struct http_conn *c)
{
	const struct http1_head *h = &c->x->head;

	if (!h->keep_alive || c->must_close || c->peer_closed)
		return false;
	if (c->body_kind == BODY_NONE)
		return true;
	return c->x->told_to_go_on && (h->chunked || c->body_left <= HTTP_SKIP_MAX);
}

/* The exchange stays in memory until the answer was sent: a handler may still look at the request after
 * it has answered. */
void http_conn_answered(struct http_conn *c)
{
	c->over = take_ptr(c->x);
	c->was_full = false;
	c->state = c->keep && c->body_kind != BODY_NONE ? HTTP_CONN_SKIP : HTTP_CONN_SEND;
	if (c->state == HTTP_CONN_SKIP)
		set_deadline(c, HTTP_BODY_TIMEOUT_MS);
	else
		loop_timer_cancel(c->s->loop, &c->deadline);
	http_conn_touch(c);
}

/* The answer was sent. */
static void next_request(struct http_conn *c)
{
	release_exchanges(c);
	buf_done(&c->in);
	buf_done(&c->out);
	if (!c->keep) {
		if (c->tls)
			tls_say_goodbye(c->tls);
		(void)shutdown(c->source.fd, SHUT_WR);
		c->readable = true;
		wait_in(c, HTTP_CONN_LINGER, HTTP_LINGER_MS);
		return;
	}
	c->in = c->ahead;
	buf_init(&c->ahead, 2 * HTTP_READ_SIZE);
	c->scanned = 0;
	if (c->tls && tls_has_input(c->tls))
		c->readable = true;
	if (c->in.len)
		wait_in(c, HTTP_CONN_HEAD, HTTP_HEAD_TIMEOUT_MS);
	else
		wait_in(c, HTTP_CONN_IDLE, HTTP_KEEP_ALIVE_MS);
}

/* ---- reading ---- */

/* Into the server's scratch buffer. Return: bytes, 0: the client sends no more, -1: EAGAIN or broken. */
static ssize_t receive(struct http_conn *c)
{
	ssize_t n;

	if (!c->readable) {
		errno = EAGAIN;
		return -1;
	}
	do
		n = c->tls ? tls_read(c->tls, c->s->scratch, HTTP_READ_SIZE)
			   : read(c->source.fd, c->s->scratch, HTTP_READ_SIZE);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		c->peer_closed = true;
	else if (n < 0 && errno != EAGAIN)
		c->broken = true;
	c->readable = c->tls ? n > 0 : n == HTTP_READ_SIZE;
	return n;
}

static bool give_up(struct http_conn *c)
{
	http_conn_lose(c);
	return true;
}

static bool step_handshake(struct http_conn *c)
{
	if (tls_handshake(c->tls) < 0)
		return errno == EAGAIN ? false : give_up(c);
	c->state = HTTP_CONN_HEAD; /* under the deadline that runs already */
	return true;
}

/* ---- heads ---- */

static void frame_body(struct http_conn *c, const struct http1_head *h)
{
	c->body_kind = h->chunked ? BODY_CHUNKED : h->length ? BODY_LENGTH : BODY_NONE;
	c->body_left = h->length;
	c->chunked = (struct http1_chunked){ 0 };
	c->body_step = c->skipped = 0;
}

static bool deliver(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	loop_timer_cancel(c->s->loop, &c->deadline);
	c->state = HTTP_CONN_SERVE;
	x->request.body = c->body.len ? c->body.data : "";
	x->request.body_len = c->body.len;
	c->s->handler->on_request(c->s->handler->ctx, x, &x->request);
	if (c->x) { /* kept: no other exchange can have begun in its place */
		c->x->request.body = NULL;
		c->x->request.body_len = 0;
	}
	release_body(c);
	return true;
}

static void refuse(struct http_conn *c, int status, const char *why)
{
	c->must_close = true;
	http_refuse(c->x, &(struct http_answer){ .status = status }, why);
}

static bool begin_body(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	if (c->body_kind == BODY_NONE)
		return deliver(c);
	if (x->head.length > x->body_max) {
		refuse(c, 413, "the body is too large");
		return true;
	}
	c->state = HTTP_CONN_BODY;
	set_deadline(c, HTTP_BODY_TIMEOUT_MS);
	if (!x->told_to_go_on && !c->ahead.len) /* RFC 9110, 10.1.1 */
		buf_append_str(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	x->told_to_go_on = true;
	return true;
}

/* The head is in->data[0..used): nothing moves it while the exchange lives. */
static bool begin_request(struct http_conn *c, size_t used)
{
	struct http_exchange *x = malloc(sizeof(*x));
	struct http1_refusal r = { 503, "no memory" };

	if (!x || buf_append(&c->ahead, c->in.data + used, c->in.len - used) < 0 ||
	    http1_parse_head(&x->head, c->in.data, used, &r) < 0) {
		free(x);
		http_answer_unparsed(c, r.status, r.why);
		return true;
	}
	memset(x, 0, offsetof(struct http_exchange, head));
	x->c = c;
	x->body_max = HTTP_BODY_MAX;
	x->told_to_go_on = !x->head.expects_continue;
	x->request = (struct http_request){ .head = &x->head, .client = &c->client, .is_tls = c->tls };
	c->x = x;
	frame_body(c, &x->head);
	loop_timer_cancel(c->s->loop, &c->deadline);
	c->state = HTTP_CONN_SERVE;
	c->s->handler->on_head(c->s->handler->ctx, x, &x->request);
	return c->x && !c->x->answered ? begin_body(c) : true;
}

static bool step_head(struct http_conn *c)
{
	struct http1_refusal r;
	ssize_t n;

	if (c->in.len > c->scanned) {
		long used = http1_scan_head(c->in.data, c->in.len, &c->scanned, &r);

		if (used > 0)
			return begin_request(c, (size_t)used);
		if (used == -1) {
			http_answer_unparsed(c, r.status, r.why);
			return true;
		}
	}
	n = receive(c);
	if (n <= 0)
		return n < 0 && errno == EAGAIN ? false : give_up(c);
	if (c->state == HTTP_CONN_IDLE)
		wait_in(c, HTTP_CONN_HEAD, HTTP_HEAD_TIMEOUT_MS);
	if (buf_append(&c->in, c->s->scratch, (size_t)n) < 0)
		return give_up(c);
	return true;
}

/* ---- bodies ---- */

/* Keep what was read of the body, unless it is only skipped. Return: a status to refuse with, 0. */
static int keep_body(struct http_conn *c, const char *data, size_t len)
{
	if (c->state == HTTP_CONN_SKIP) {
		c->skipped += len;
		return c->skipped > HTTP_SKIP_MAX ? 413 : 0;
	}
	if (len > c->x->body_max - c->body.len)
		return 413;
	if (len > HTTP_BODIES_MAX - c->s->body_bytes || buf_append(&c->body, data, len) < 0)
		return 503;
	c->s->body_bytes += len;
	return 0;
}

/* Take body bytes from what was read ahead. Return: 0, or the status to refuse with. */
static int take_body(struct http_conn *c)
{
	size_t len = c->ahead.len, used = len;
	int r = -2, status;

	if (c->body_kind == BODY_CHUNKED) {
		r = http1_decode_chunked(&c->chunked, c->ahead.data, &len, &used);
	} else {
		len = used = len < c->body_left ? len : (size_t)c->body_left;
		c->body_left -= len;
		r = c->body_left ? -2 : 1;
	}
	status = r == -1 ? 400 : keep_body(c, c->ahead.data, len);
	buf_consume(&c->ahead, used);
	if (r == 1)
		c->body_kind = BODY_NONE;
	return status;
}

static bool refuse_body(struct http_conn *c, int status)
{
	if (c->state == HTTP_CONN_SKIP) { /* answered already */
		c->keep = false;
		c->state = HTTP_CONN_SEND;
	} else {
		refuse(c, status,
		       status == 400 ? "the chunks of the body are malformed" :
		       status == 413 ? "the body is too large" :
				       "too many large requests at once");
	}
	return true;
}

static bool step_body(struct http_conn *c)
{
	ssize_t n;
	int status;

	if (http_conn_flush(c) < 0)
		return give_up(c);
	if (!c->ahead.len) {
		n = receive(c);
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? false : give_up(c);
		if (buf_append(&c->ahead, c->s->scratch, (size_t)n) < 0)
			return give_up(c);
		c->body_step += (size_t)n;
	}
	status = take_body(c);
	if (status)
		return refuse_body(c, status);
	if (c->body_kind != BODY_NONE) {
		if (c->body_step >= HTTP_BODY_STEP) {
			c->body_step = 0;
			set_deadline(c, HTTP_BODY_TIMEOUT_MS);
		}
		return true;
	}
	if (c->state == HTTP_CONN_BODY)
		return deliver(c);
	c->state = HTTP_CONN_SEND;
	loop_timer_cancel(c->s->loop, &c->deadline);
	return true;
}

/* ---- answers ---- */

static bool step_serve(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	if (http_conn_flush(c) < 0 || c->peer_closed)
		return give_up(c);
	if (!c->was_full || !http_is_ready(x))
		return false;
	c->was_full = false;
	if (x->on_ready)
		x->on_ready(x->watch_ctx);
	return true;
}

static bool step_send(struct http_conn *c)
{
	int r = http_conn_flush(c);

	if (r < 0)
		return give_up(c);
	if (r == 0)
		next_request(c);
	return r == 0;
}

static bool step_linger(struct http_conn *c)
{
	ssize_t n = receive(c);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n > 0)
		c->lingered += (size_t)n;
	return n <= 0 || c->lingered > HTTP_LINGER_MAX ? give_up(c) : true;
}

/* Return: false when it is the client's turn. */
static bool step(struct http_conn *c)
{
	if (c->broken)
		return give_up(c);
	switch (c->state) {
	case HTTP_CONN_HANDSHAKE:
		return step_handshake(c);
	case HTTP_CONN_IDLE:
	case HTTP_CONN_HEAD:
		return step_head(c);
	case HTTP_CONN_BODY:
	case HTTP_CONN_SKIP:
		return step_body(c);
	case HTTP_CONN_SERVE:
		return step_serve(c);
	case HTTP_CONN_SEND:
		return step_send(c);
	case HTTP_CONN_LINGER:
		return step_linger(c);
	default:
		return false;
	}
}

/* ---- the loop ---- */

static uint32_t interest(const struct http_conn *c)
{
	uint32_t events = 0;

	if (c->state != HTTP_CONN_SERVE && c->state != HTTP_CONN_SEND)
		events = c->peer_closed ? 0 : EPOLLIN | EPOLLRDHUP;
	else if (c->state == HTTP_CONN_SERVE)
		events = EPOLLRDHUP;
	return http_conn_has_output(c) ? events | EPOLLOUT : events;
}

/* A client that does not read is a client that is gone. */
static void watch_output(struct http_conn *c)
{
	if (c->state != HTTP_CONN_SERVE && c->state != HTTP_CONN_SEND)
		return;
	if (!http_conn_has_output(c))
		loop_timer_cancel(c->s->loop, &c->deadline);
	else if (!c->deadline.deadline_ns || c->progressed)
		set_deadline(c, HTTP_SEND_TIMEOUT_MS);
}

static void settle(struct http_conn *c)
{
	watch_output(c);
	if (c->broken || loop_modify(&c->source, interest(c)) < 0)
		kick(c);
}

static void conn_run(struct http_conn *c)
{
	unsigned int steps = 0;

	c->busy = true;
	while (c->state != HTTP_CONN_DEAD && steps < STEPS_PER_TURN && step(c))
		steps++;
	c->busy = false;
	if (c->state == HTTP_CONN_DEAD) {
		http_conn_free(c);
		return;
	}
	if (steps == STEPS_PER_TURN)
		kick(c);
	settle(c);
}

void http_conn_touch(struct http_conn *c)
{
	int r;

	if (c->busy)
		return;
	r = http_conn_flush(c);
	if (r == 0 && c->state == HTTP_CONN_SEND && c->keep && !c->ahead.len && !c->tls)
		next_request(c); /* nothing is left to do here and now */
	else if (r < 0 || c->state == HTTP_CONN_SKIP || (r == 0 && c->state == HTTP_CONN_SEND) ||
		 (c->was_full && http_is_ready(c->x)))
		kick(c);
	settle(c);
}

static void on_event(struct loop_source *source, uint32_t events)
{
	struct http_conn *c = source->ctx;

	if (events & EPOLLIN)
		c->readable = true;
	if (events & EPOLLRDHUP && (c->state == HTTP_CONN_SERVE || c->state == HTTP_CONN_SEND))
		c->peer_closed = true;
	if (events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN))
		c->broken = true;
	conn_run(c);
}

/* ---- life ---- */

struct http_conn *http_conn_new(struct http_server *s, int fd, const struct http_client *client)
{
	struct http_conn *c = calloc(1, sizeof(*c));
	struct err e;

	if (!c)
		return NULL;
	c->s = s;
	c->client = *client;
	c->file_fd = -1;
	buf_init(&c->in, 2 * HTTP_READ_SIZE);
	buf_init(&c->ahead, 2 * HTTP_READ_SIZE);
	buf_init(&c->body, HTTP_BODY_MAX);
	buf_init(&c->out, HTTP_QUEUE_MAX);
	c->tls = s->identity ? tls_new(s->identity, fd) : NULL;
	if ((s->identity && !c->tls) ||
	    loop_add(s->loop, &c->source, fd, EPOLLIN | EPOLLRDHUP, on_event, c, &e) < 0) {
		tls_free(c->tls);
		free(c);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&s->conns, c, link);
	s->conn_count++;
	wait_in(c, c->tls ? HTTP_CONN_HANDSHAKE : HTTP_CONN_HEAD, HTTP_HEAD_TIMEOUT_MS);
	settle(c);
	return c;
}

void http_conn_free(struct http_conn *c)
{
	int fd = c->source.fd;

	loop_timer_cancel(c->s->loop, &c->deadline);
	loop_timer_cancel(c->s->loop, &c->kick);
	loop_remove(&c->source);
	tls_free(c->tls);
	close_fd(&fd);
	close_fd(&c->file_fd);
	release_exchanges(c);
	buf_done(&c->in);
	buf_done(&c->ahead);
	buf_done(&c->out);
	TAILQ_REMOVE(&c->s->conns, c, link);
	c->s->conn_count--;
	free(c);
}
