/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_client.h - HTTP/1.1 requests to one server, over TCP or TLS; every wait has an end
 *
 * One connection per request: several requests can be under way at once, and none sees what another
 * left behind.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcp/http1.h"
#include "runtime/base/buf.h"
#include "runtime/base/err.h"

enum {
	HTTP_URL_HOST_MAX = 256,
	HTTP_URL_PATH_MAX = 2048,
	HTTP_REPLY_HEAD_MAX = 64 * 1024,
	HTTP_REPLY_BODY_MAX = 64 * 1024 * 1024,
};

struct http_url {
	bool tls;
	char host[HTTP_URL_HOST_MAX]; /* without the brackets of an IPv6 address */
	char port[6];
	char path[HTTP_URL_PATH_MAX]; /* begins with '/' */
};

/* http_url_parse() - http:// or https://, a host, perhaps a port and a path; nothing else. Return: 0, -1. */
int http_url_parse(const char *text, struct http_url *ret, struct err *e);

struct http_client; /* a server, and whom to trust to be it */
struct http_query;  /* a request that was sent */

struct http_ask {
	const char *method, *target;
	const char *fields; /* "Name: value\r\n"...; Host, Connection and Content-Length are ours */
	const void *body;
	size_t len;
	uint64_t timeout_ms; /* from connecting to the last byte of the answer */
};

struct http_reply {
	int status;
	struct buf head, body;
};

/* http_client_new() - ca_path: PEM file of those trusted to sign, NULL: the system's. url is copied. */
struct http_client *http_client_new(const struct http_url *url, const char *ca_path, struct err *e);
void http_client_free(struct http_client *c);

/* http_query_start() - connect and send. Return: NULL on failure. */
struct http_query *http_query_start(struct http_client *c, const struct http_ask *ask, struct err *e);

/* http_query_finish() - hear the answer; frees the query in any case. An answer that ends before its time is a
 * failure. Return: 0 (the caller gives reply to http_reply_done()), -1. */
int http_query_finish(struct http_query *q, struct http_reply *reply, struct err *e);
void http_query_drop(struct http_query *q);

/* http_query() - both. */
int http_query(struct http_client *c, const struct http_ask *ask, struct http_reply *reply, struct err *e);

/* http_reply_field() - the first field with this name (any case); data NULL: there is none. */
struct http_text http_reply_field(const struct http_reply *reply, const char *name);
void http_reply_done(struct http_reply *reply);
