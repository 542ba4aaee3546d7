/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_conn.h - one connection: shared by http_conn.c (input), http_send.c (output) and
 * http_answer.c (what handlers call) */
#pragma once

#include "mcp/http_server.h"

enum http_conn_state {
	HTTP_CONN_HANDSHAKE,
	HTTP_CONN_IDLE, /* between two requests */
	HTTP_CONN_HEAD,
	HTTP_CONN_BODY,
	HTTP_CONN_SERVE, /* the handler has it */
	HTTP_CONN_SKIP,  /* answered; reading what is left of a short body */
	HTTP_CONN_SEND,  /* answered; sending */
	HTTP_CONN_LINGER, /* sent and shut down; waiting for the client to close */
	HTTP_CONN_DEAD,
};

enum http_conn_body { BODY_NONE, BODY_LENGTH, BODY_CHUNKED }; /* what is still to be read */

struct http_exchange {
	struct http_conn *c;
	struct http_request request;
	size_t body_max;
	bool answered; /* the head of the answer is queued */
	bool has_no_body, is_chunked; /* of the answer */
	bool told_to_go_on; /* 100 Continue was sent or is not needed */
	void (*on_gone)(void *ctx);
	void (*on_ready)(void *ctx);
	void *watch_ctx;
	struct http1_head head;
};

/* Buffers are empty, that is without memory, while a connection is idle. */
struct http_conn {
	struct http_server *s;
	TAILQ_ENTRY(http_conn) link;
	struct loop_source source;
	struct loop_timer deadline;
	struct loop_timer kick; /* go on from the loop, not from inside a handler */
	struct tls *tls;	/* NULL: plain */
	struct http_exchange *x;
	struct http_exchange *over; /* answered, still being sent */
	enum http_conn_state state;
	bool busy;	  /* conn_run() is on the stack */
	bool readable;	  /* reading may give something */
	bool peer_closed; /* the client sends nothing more */
	bool broken;
	bool keep; /* another request may follow this answer */
	bool must_close;
	bool was_full; /* somebody was told to wait for on_ready() */
	bool progressed; /* bytes were sent since the deadline was set */

	struct buf in;	  /* the head being read or served */
	size_t scanned;	  /* of in, by http1_scan_head() */
	struct buf ahead; /* read beyond that head */
	struct buf body;
	enum http_conn_body body_kind;
	uint64_t body_left;
	struct http1_chunked chunked;
	size_t body_step;	  /* read since the deadline was set */
	size_t skipped, lingered; /* bytes */

	struct buf out;
	size_t sent; /* of out */
	int file_fd; /* sent after out; -1: none */
	uint64_t file_offset, file_left;

	struct http_client client;
};

/* http_conn.c */
struct http_conn *http_conn_new(struct http_server *s, int fd, const struct http_client *client);
void http_conn_free(struct http_conn *c);

/* http_conn_lose() - the client is gone: tell whoever serves it. */
void http_conn_lose(struct http_conn *c);

/* http_conn_is_waiting() - no request is being read or served: may be closed to make room. */
bool http_conn_is_waiting(const struct http_conn *c);

/* http_conn_answered() - the exchange has its whole answer (queued or as a file) and is over. */
void http_conn_answered(struct http_conn *c);

/* http_conn_touch() - a handler queued something: send, and go on from the loop where that is not all. */
void http_conn_touch(struct http_conn *c);

/* http_conn_can_keep() - could the connection go on after an answer given now? */
bool http_conn_can_keep(const struct http_conn *c);

/* http_send.c: Return: 0 all was sent, 1 the client has to read first, -1 broken. */
int http_conn_flush(struct http_conn *c);
bool http_conn_has_output(const struct http_conn *c);

/* http_answer.c: answer a request that has no exchange. */
void http_answer_unparsed(struct http_conn *c, int status, const char *why);
