/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http.h - what a handler sees of HTTP: a request, and an exchange to answer it through
 *
 * Everything here runs in the front's loop. A connection serves one exchange at a time; further
 * requests on it wait. Order of events for each request:
 *
 *   on_head()    the head is complete and well-formed, no byte of the body was asked for yet
 *                ("Expect: 100-continue" is still unanswered). Decide what a head can decide: 401 403
 *                404 405 413 415 429. Answer now (the body is then never read), or return and read on.
 *   on_request() the whole body is here (at most the limit set with http_limit_body()). Answer now, or
 *                keep the exchange and answer later.
 *
 * Lifetime. A struct http_exchange * is valid until the call that ends it (http_reply(), http_refuse(),
 * http_send_file(), http_stream_end(), http_abort()) or until its on_gone() returns, whichever comes
 * first; exactly one of the two happens. Never use it afterwards. Every call below may be made from
 * inside on_head(), on_request(), on_ready() and from anywhere else in the loop; on_gone() and on_ready()
 * are never called from inside a call the handler made.
 * What struct http_request points to belongs to the connection: the head stays as long as the
 * exchange, the body only until on_request() returns. No text in it is NUL-terminated.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mcp/http1.h"
#include "runtime/base/buf.h"

struct http_exchange; /* one request and its answer; owned by its connection */

/* Where the request came from. */
struct http_client {
	char address[INET6_ADDRSTRLEN]; /* numeric; an IPv4-mapped one is shown as IPv4 */
	bool is_loopback;
};

struct http_request {
	const struct http1_head *head; /* method, target, path, query, header views (mcp/http1.h) */
	const struct http_client *client;
	bool is_tls;
	const char *body; /* NULL in on_head() */
	size_t body_len;
};

/* One header field of an answer. A value with a control character ends the exchange with 500: what
 * comes from a client or a sandbox can not add a line. */
struct http_field {
	const char *name, *value;
};

/* The head of an answer. Date, Content-Length or Transfer-Encoding and Connection are added. */
struct http_answer {
	int status;
	const char *type; /* Content-Type; NULL: none */
	const struct http_field *fields;
	size_t field_count;
};

/* What the program does with requests. One for the whole server. */
struct http_handler {
	void (*on_head)(void *ctx, struct http_exchange *x, const struct http_request *r);
	void (*on_request)(void *ctx, struct http_exchange *x, const struct http_request *r);
	/* The body of an answer that refuses, also those the connection makes itself (400 408 413 417 431
	 * 501 505). r is NULL when there is no well-formed head. Appends the body. Return: its
	 * Content-Type. NULL here: text/plain with the reason. */
	const char *(*write_error)(void *ctx, const struct http_request *r, int status,
				   const char *why, struct buf *body);
	void *ctx;
};

/* http_watch() - be told while the exchange is being answered. on_gone: the client closed the
 * connection or it broke, nothing can be sent any more; on_ready: what was queued has been
 * sent after http_is_ready() was false. Either may be NULL. Without on_gone an exchange that is kept
 * past on_request() would be lost: set it before returning. */
void http_watch(struct http_exchange *x, void (*on_gone)(void *ctx), void (*on_ready)(void *ctx),
		void *ctx);

/* http_request_of() - the request again; body is NULL after on_request(). */
const struct http_request *http_request_of(const struct http_exchange *x);

/* http_limit_body() - in on_head() only: a smaller limit than HTTP_BODY_MAX for this request. 0: a
 * request with a body is answered 413. */
void http_limit_body(struct http_exchange *x, size_t max);

/* http_reply() - a whole answer; body is copied. To HEAD only the head is sent. 204 and 304 have no
 * body. Ends the exchange. */
void http_reply(struct http_exchange *x, const struct http_answer *a, const void *body, size_t len);

/* http_refuse() - a whole answer whose body write_error() makes. fields such as Allow, Retry-After,
 * WWW-Authenticate; a->type is ignored. Ends the exchange. */
void http_refuse(struct http_exchange *x, const struct http_answer *a, const char *why);

/* http_send_file() - len bytes of fd from offset as the body. fd is a regular file and owned from here
 * on (closed after the last byte, or when the client goes). Read as it is sent: a file that grew gives
 * len bytes, one that shrank below makes the connection end early, never pads. Ends the exchange. */
void http_send_file(struct http_exchange *x, const struct http_answer *a, int fd, uint64_t offset,
		    uint64_t len);

/* http_stream_begin() - send the head now; pieces follow: chunked, or up to the end of the connection
 * for an HTTP/1.0 client. http_stream() - one piece, sent at once as far as the client takes it, the
 * rest queued up to HTTP_QUEUE_MAX (more breaks the connection: on_gone()). Pieces are not split
 * into several chunks. http_stream_end() - the last piece was sent. */
void http_stream_begin(struct http_exchange *x, const struct http_answer *a);
void http_stream(struct http_exchange *x, const void *data, size_t len);
void http_stream_end(struct http_exchange *x);

/* http_is_ready() - is little enough queued that more may be made? If not, on_ready() follows. */
bool http_is_ready(const struct http_exchange *x);

/* http_abort() - close the connection without a proper end: the client sees that it was cut. */
void http_abort(struct http_exchange *x);
