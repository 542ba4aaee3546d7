/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/http.h - heads of HTTP/1 messages, chunk lengths, SOCKS5 requests
 *
 * No allocation, no copy: what is found is offsets into the caller's bytes. Strict where two readers
 * of one message could disagree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"
#include "runtime/net_policy.h"

enum {
	HTTP_HEAD_MAX = 16 * 1024, /* request or status line and header fields */
	HTTP_LINES_MAX = 128,
};

enum http_body { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_CLOSE };

struct http_slice {
	uint16_t at, len;
};

struct http_head {
	const char *text;
	size_t len;
	struct http_slice method, target; /* of a request */
	struct http_slice authority, path; /* of its target: CONNECT has no path */
	bool is_connect;
	uint16_t status; /* of a response */
	uint8_t minor;   /* HTTP/1.minor */
	bool keep_alive; /* the sender means to go on */
	bool has_length, chunked;
	uint64_t length;
	size_t line_count;
	struct http_slice lines[HTTP_LINES_MAX]; /* header fields, without the line ends */
	struct http_slice connection; /* value of Connection; len 0: none */
};

/* http_head_end() - length of the head in these bytes, the empty line included; 0: not complete. from is
 * how many of them were looked at before. */
size_t http_head_end(const char *bytes, size_t len, size_t from);

/* http_parse_request() - a whole head. *ret_why says what is wrong. Return: 0, or the status of the
 * answer (400, 501, 505). */
int http_parse_request(struct http_head *h, const char *text, size_t len, const char **ret_why);

/* http_parse_response() - Return: 0, -1. */
int http_parse_response(struct http_head *h, const char *text, size_t len);

/* http_request_body(), http_response_body() - how the body ends; request_method decides for responses. */
enum http_body http_request_body(const struct http_head *h);
enum http_body http_response_body(const struct http_head *h, bool to_head);

/* http_write_request() - the head as the server gets it: its own path, the checked host, none of the
 * fields that concern the way to us. absolute: for an upstream proxy, with the whole address. */
void http_write_request(struct buf *out, const struct http_head *h, const char *host_port,
			bool absolute);

/* http_write_response() - the head as the client gets it. */
void http_write_response(struct buf *out, const struct http_head *h, bool keep_alive);

/* ---- chunked bodies ---- */

enum http_chunk_state {
	CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_SIZE_LF, CHUNK_DATA, CHUNK_DATA_CR, CHUNK_DATA_LF,
	CHUNK_TRAILER_START, CHUNK_TRAILER, CHUNK_TRAILER_LF, CHUNK_END_LF, CHUNK_DONE,
};

struct http_chunks {
	enum http_chunk_state state;
	unsigned int digits;
	uint32_t line; /* bytes of extensions and trailers so far */
	uint64_t left; /* of this chunk */
};

/* http_chunks_scan() - how many of these bytes belong to the body. Return: the number, -1 when they are
 * no chunks; c->state CHUNK_DONE when the body ends there. */
long http_chunks_scan(struct http_chunks *c, const char *bytes, size_t len);

/* ---- SOCKS5 ---- */

enum { SOCKS_VERSION = 5, SOCKS_REQUEST_MAX = 4 + 1 + 255 + 2, SOCKS_GREETING_MAX = 2 + 255 };

enum socks_reply { SOCKS_OK = 0, SOCKS_FAILED = 1, SOCKS_NOT_ALLOWED = 2, SOCKS_UNREACHABLE = 4,
		   SOCKS_REFUSED = 5, SOCKS_BAD_COMMAND = 7, SOCKS_BAD_ADDRESS = 8 };

/* socks_greeting() - Return: its length when complete and it offers to go without a password, 0: more
 * is needed, -1: not for us. */
int socks_greeting(const uint8_t *bytes, size_t len);

/* socks_request() - Return: its length, 0: more is needed, -1 with *ret_reply. The host is the bytes
 * of the message: a name with a NUL in it is no name. */
int socks_request(const uint8_t *bytes, size_t len, struct net_dest *ret, uint16_t *ret_port,
		  enum socks_reply *ret_reply);
