/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_server.h - listening sockets and the connections that come from them */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "mcp/bounds.h"
#include "mcp/http.h"
#include "runtime/base/accept.h"
#include "runtime/base/loop.h"

struct http_conn;
struct tls_identity;

struct http_server {
	struct loop *loop;
	const struct http_handler *handler;
	struct tls_identity *identity; /* NULL: plain HTTP */
	struct acceptor listen[HTTP_LISTENERS_MAX];
	size_t listen_count;
	TAILQ_HEAD(http_conns, http_conn) conns; /* the one that has waited longest for its client first */
	size_t conn_count;
	size_t body_bytes; /* of all connections */
	char date[32];     /* as of date_s */
	int64_t date_s;
	char scratch[HTTP_READ_SIZE]; /* one read at a time */
};

void http_server_init(struct http_server *s, struct loop *loop, const struct http_handler *handler);

/* http_server_done() - close everything; every exchange's on_gone() is called. */
void http_server_done(struct http_server *s);

/* http_server_set_identity() - what connections accepted from now on speak TLS with; the server takes
 * the caller's reference. */
void http_server_set_identity(struct http_server *s, struct tls_identity *id);

/* http_server_listen() - serve what comes from a listening socket (made non-blocking, owned). */
int http_server_listen(struct http_server *s, int fd, struct err *e);
