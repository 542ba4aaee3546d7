/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_answer.c - what handlers call to answer a request
 *
 * Runs in the front. Nothing here calls a handler back: what cannot be sent at once is queued, and what
 * follows from it happens when the loop is reached again. Texts that may come from a client or a sandbox
 * cannot end a line of a head.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "mcp/http_conn.h"
#include "runtime/base/cleanup.h"

/* ---- heads ---- */

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} known[] = {
		{ 200, "OK" },		       { 202, "Accepted" },
		{ 204, "No Content" },	       { 206, "Partial Content" },
		{ 304, "Not Modified" },       { 400, "Bad Request" },
		{ 401, "Unauthorized" },       { 403, "Forbidden" },
		{ 404, "Not Found" },	       { 405, "Method Not Allowed" },
		{ 408, "Request Timeout" },    { 413, "Content Too Large" },
		{ 414, "URI Too Long" },       { 415, "Unsupported Media Type" },
		{ 416, "Range Not Satisfiable" }, { 417, "Expectation Failed" },
		{ 429, "Too Many Requests" },  { 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" }, { 501, "Not Implemented" },
		{ 503, "Service Unavailable" }, { 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].status == status)
			return known[i].text;
	return "Other";
}

/* IMF-fixdate (RFC 9110, 5.6.7), made once a second. */
static const char *date(struct http_server *s)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct timespec now;
	struct tm tm;

	if (clock_gettime(CLOCK_REALTIME, &now) < 0 || now.tv_sec == s->date_s ||
	    !gmtime_r(&now.tv_sec, &tm))
		return s->date;
	s->date_s = now.tv_sec;
	(void)snprintf(s->date, sizeof(s->date), "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT",
		       days + 3 * tm.tm_wday, (unsigned int)tm.tm_mday % 100, months + 3 * tm.tm_mon,
		       (unsigned int)(tm.tm_year + 1900) % 10000, (unsigned int)tm.tm_hour % 100,
		       (unsigned int)tm.tm_min % 100, (unsigned int)tm.tm_sec % 100);
	return s->date;
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
			return false;
	return true;
}

static bool is_clean(const struct http_answer *a)
{
	if (a->type && !is_plain(a->type))
		return false;
	for (size_t i = 0; i < a->field_count; i++)
		if (!is_plain(a->fields[i].name) || !is_plain(a->fields[i].value))
			return false;
	return true;
}

static bool has_body(const struct http_answer *a)
{
	return a->status != 204 && a->status != 304;
}

enum framing { FRAMING_LENGTH, FRAMING_STREAM };

static void write_head(struct http_conn *c, const struct http_answer *a, enum framing framing,
		       uint64_t len)
{
	struct buf *b = &c->out;
	int minor = c->x ? c->x->head.minor : 1;

	buf_printf(b, "HTTP/1.1 %d %s\r\nDate: %s\r\n", a->status, reason(a->status), date(c->s));
	if (a->type)
		buf_printf(b, "Content-Type: %s\r\n", a->type);
	for (size_t i = 0; i < a->field_count; i++)
		buf_printf(b, "%s: %s\r\n", a->fields[i].name, a->fields[i].value);
	if (framing == FRAMING_STREAM && minor > 0)
		buf_append_str(b, "Transfer-Encoding: chunked\r\n");
	else if (framing == FRAMING_LENGTH && has_body(a))
		buf_printf(b, "Content-Length: %llu\r\n", (unsigned long long)len);
	if (!c->keep)
		buf_append_str(b, "Connection: close\r\n");
	else if (minor == 0)
		buf_append_str(b, "Connection: keep-alive\r\n");
	buf_append_str(b, "\r\n");
}

/* Begin the answer. Return: false when it has become another one (500). */
static bool begin(struct http_exchange *x, const struct http_answer *a, enum framing framing,
		  uint64_t len)
{
	static const struct http_answer dirty = { .status = 500 };
	struct http_conn *c = x->c;

	x->answered = true;
	if (!is_clean(a)) {
		c->keep = false;
		write_head(c, &dirty, FRAMING_LENGTH, 0);
		return false;
	}
	x->is_chunked = framing == FRAMING_STREAM && x->head.minor > 0;
	x->has_no_body = x->head.method == HTTP_HEAD || !has_body(a);
	c->keep = http_conn_can_keep(c) && (framing == FRAMING_LENGTH || x->is_chunked);
	write_head(c, a, framing, len);
	return true;
}

/* What could not be queued cannot be repaired: the client would take half an answer for a whole one. */
static void check_queue(struct http_conn *c)
{
	if (c->out.overflow)
		c->broken = true;
}

static void end(struct http_conn *c)
{
	check_queue(c);
	http_conn_answered(c);
}

/* ---- whole answers ---- */

void http_reply(struct http_exchange *x, const struct http_answer *a, const void *body, size_t len)
{
	struct http_conn *c = x->c;

	if (begin(x, a, FRAMING_LENGTH, len) && !x->has_no_body)
		buf_append(&c->out, body, len);
	end(c);
}

static const char *write_reason(const struct http_conn *c, int status, const char *why,
				struct buf *body)
{
	const struct http_handler *h = c->s->handler;

	if (h->write_error)
		return h->write_error(h->ctx, c->x ? &c->x->request : NULL, status, why, body);
	buf_printf(body, "%d %s: %s\n", status, reason(status), why);
	return "text/plain; charset=utf-8";
}

void http_refuse(struct http_exchange *x, const struct http_answer *a, const char *why)
{
	struct http_answer full = *a;
	struct buf body;

	buf_init(&body, HTTP_READ_SIZE);
	full.type = write_reason(x->c, a->status, why, &body);
	http_reply(x, &full, body.data, body.len);
	buf_done(&body);
}

void http_answer_unparsed(struct http_conn *c, int status, const char *why)
{
	struct http_answer a = { .status = status };
	struct buf body;

	buf_init(&body, HTTP_READ_SIZE);
	a.type = write_reason(c, status, why, &body);
	c->keep = false;
	write_head(c, &a, FRAMING_LENGTH, body.len);
	buf_append(&c->out, body.data, body.len);
	buf_done(&body);
	check_queue(c);
	http_conn_answered(c);
}

void http_send_file(struct http_exchange *x, const struct http_answer *a, int fd, uint64_t offset,
		    uint64_t len)
{
	struct http_conn *c = x->c;

	if (begin(x, a, FRAMING_LENGTH, len) && !x->has_no_body && len) {
		c->file_fd = take_fd(&fd);
		c->file_offset = offset;
		c->file_left = len;
	}
	close_fd(&fd);
	end(c);
}

/* ---- streams ---- */

void http_stream_begin(struct http_exchange *x, const struct http_answer *a)
{
	if (!begin(x, a, FRAMING_STREAM, 0))
		x->has_no_body = true;
	check_queue(x->c);
	http_conn_touch(x->c);
}

void http_stream(struct http_exchange *x, const void *data, size_t len)
{
	struct http_conn *c = x->c;

	if (x->has_no_body || !len)
		return;
	if (x->is_chunked)
		buf_printf(&c->out, "%zx\r\n", len);
	buf_append(&c->out, data, len);
	if (x->is_chunked)
		buf_append(&c->out, "\r\n", 2);
	check_queue(c);
	http_conn_touch(c);
}

void http_stream_end(struct http_exchange *x)
{
	if (x->is_chunked && !x->has_no_body)
		buf_append_str(&x->c->out, "0\r\n\r\n");
	end(x->c);
}

/* ---- the exchange ---- */

void http_abort(struct http_exchange *x)
{
	x->c->broken = true;
	http_conn_answered(x->c);
}

void http_watch(struct http_exchange *x, void (*on_gone)(void *ctx), void (*on_ready)(void *ctx),
		void *ctx)
{
	x->on_gone = on_gone;
	x->on_ready = on_ready;
	x->watch_ctx = ctx;
}

const struct http_request *http_request_of(const struct http_exchange *x)
{
	return &x->request;
}

void http_limit_body(struct http_exchange *x, size_t max)
{
	if (max < x->body_max)
		x->body_max = max;
}

bool http_is_ready(const struct http_exchange *x)
{
	struct http_conn *c = x->c;

	if (c->out.len - c->sent < LIMIT_OUT_HIGH)
		return true;
	c->was_full = true;
	return false;
}
