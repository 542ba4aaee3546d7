/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http1.h - HTTP/1.x request heads and chunked bodies: bytes in, struct out
 *
 * Pure functions on memory the caller keeps; nothing is allocated, no text is changed, every
 * result is a view into the input. Stricter than RFC 9112 allows a server to be, wherever two readers
 * of the same bytes might disagree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HTTP1_HEAD_MAX = 16 * 1024, /* request line and fields, with their line ends */
	HTTP1_FIELDS_MAX = 100,
	HTTP1_TARGET_MAX = 8 * 1024,
	HTTP1_METHOD_MAX = 32,
	HTTP1_CHUNK_DIGITS_MAX = 8,
	HTTP1_CHUNK_EXTRA_MAX = 4 * 1024, /* all extensions and trailers of a body */
};

struct http_text { /* a view; not NUL-terminated */
	const char *data;
	size_t len;
};

enum http_method { HTTP_OTHER, HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_DELETE, HTTP_OPTIONS };

struct http1_field {
	struct http_text name, value; /* without the white space around */
};

struct http1_head {
	enum http_method method;
	struct http_text method_text, target;
	struct http_text path;  /* as sent: starts with '/', still percent-encoded, up to '?' */
	struct http_text query; /* after '?'; data NULL when there is none */
	struct http_text host;  /* Host; "" for HTTP/1.0 without one */
	int minor;              /* HTTP/1.<minor>: 0 or 1 */
	bool keep_alive, chunked, expects_continue;
	bool has_length; /* Content-Length was there; a request has a body when chunked or length > 0 */
	uint64_t length;
	size_t field_count;
	struct http1_field fields[HTTP1_FIELDS_MAX];
};

/* What is wrong with a head: the status to answer and the reason in words. */
struct http1_refusal {
	int status;
	const char *why;
};

/* http1_scan_head() - look for the end of a head that arrives in pieces, each byte once; refuses what no
 * valid head can begin with. *scanned is 0 at first and kept by the caller.
 * Return: bytes of the head with its empty line; -1: refused; -2: incomplete. */
long http1_scan_head(const char *data, size_t len, size_t *scanned, struct http1_refusal *ret);

/* http1_parse_head() - parse one request head at the start of data. ret->status and why are set on -1.
 * Return: bytes of the head with its empty line; -1: refused; -2: incomplete, call again with more. */
long http1_parse_head(struct http1_head *head, const char *data, size_t len,
		      struct http1_refusal *ret);

/* http1_field() - the value of the field with this name (any case). Return: NULL when there is none;
 * *ret_count, where given, says how many there are: of several the first is returned. Fields that
 * RFC 9110 and MCP know only once (Host, Authorization, Content-Type, Origin, ...) never come twice:
 * the parser refuses them. */
const struct http_text *http1_field(const struct http1_head *head, const char *name,
				    size_t *ret_count);

/* http_text_is() - the same bytes; http_text_is_word() - the same in any case (ASCII). */
bool http_text_is(struct http_text t, const char *text);
bool http_text_is_word(struct http_text t, const char *text);

/* http_text_has_item() - is item in this comma-separated list (any case)? */
bool http_text_has_item(struct http_text list, const char *item);

/* A chunked body being decoded in place. Zero-initialise. */
struct http1_chunked {
	int state;
	uint64_t left; /* bytes of the present chunk still to come */
	size_t digits; /* of the present chunk size */
	size_t extra;  /* bytes of extensions and trailers so far */
};

/* http1_decode_chunked() - consume *len bytes of data, moving the payload to the front. On return
 * *len is the payload's length, *ret_used the bytes consumed (all of them, or up to the end of the
 * body). Return: 1: the body is complete, -1: malformed, -2: more is needed. */
int http1_decode_chunked(struct http1_chunked *c, char *data, size_t *len, size_t *ret_used);
