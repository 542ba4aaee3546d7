/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_client.c - a small, strict HTTP/1.1 client
 *
 * Runs in the command line's process, as whoever called it. The server is not trusted: all it sends is bounded,
 * framing that is ambiguous is a failure, and every wait ends at the request's deadline (name
 * resolution at that of the system's resolver).
 */
#include "mcp/http_client.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcp/tls_client.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/loop.h"
#include "runtime/base/str.h"

enum { READ_SIZE = 16 * 1024, REQUEST_MAX = 16 * 1024 * 1024, NS_PER_MS = 1000000, STATUS_LINE_LEN = 12 };

struct http_client {
	struct http_url url;
	struct tls_trust *trust; /* NULL: plain */
};

struct http_query {
	int fd;
	uint64_t deadline_ns;
	struct tls_client *tls; /* NULL: plain */
	bool is_head;
};

/* ---- addresses ---- */

static int bad_url(struct err *e)
{
	err_set(e, ERR_USAGE, "--url is not http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]");
	return err_remedy(e, "give the address clients use, for example https://sandbox.example.com/mcp");
}

/* Return: what follows the host, NULL when there is none. */
static const char *take_host(const char *at, struct http_url *u)
{
	bool bracket = *at == '[';
	size_t len = bracket ? strcspn(at + 1, "]") : strcspn(at, ":/");

	at += bracket;
	if (len == 0 || len >= sizeof(u->host) || (bracket && at[len] != ']'))
		return NULL;
	memcpy(u->host, at, len);
	u->host[len] = '\0';
	return at + len + bracket;
}

static const char *take_port(const char *at, struct http_url *u)
{
	size_t len = *at == ':' ? strcspn(at + 1, "/") : 0;
	uint64_t port;

	(void)str_copy(u->port, sizeof(u->port), u->tls ? "443" : "80");
	if (*at != ':')
		return at;
	if (len == 0 || len >= sizeof(u->port))
		return NULL;
	memcpy(u->port, at + 1, len);
	u->port[len] = '\0';
	return str_parse_u64(u->port, 1, UINT16_MAX, &port) < 0 ? NULL : at + 1 + len;
}

int http_url_parse(const char *text, struct http_url *ret, struct err *e)
{
	struct http_url u = { .tls = strncasecmp(text, "https://", 8) == 0 };
	const char *at = text + (u.tls ? 8 : 7);

	if (!u.tls && strncasecmp(text, "http://", 7) != 0)
		return bad_url(e);
	for (const char *p = text; *p; p++) {
		if (*p <= ' ' || *p > '~' || *p == '@' || *p == '#' || *p == '?')
			return bad_url(e);
	}
	at = take_host(at, &u);
	at = at ? take_port(at, &u) : NULL;
	if (!at || (*at && *at != '/') || str_copy(u.path, sizeof(u.path), *at ? at : "/") < 0)
		return bad_url(e);
	*ret = u;
	return 0;
}

struct http_client *http_client_new(const struct http_url *url, const char *ca_path, struct err *e)
{
	struct http_client *c = calloc(1, sizeof(*c));

	if (!c) {
		err_set(e, ERR_NOMEM, "no memory for a client");
		return NULL;
	}
	c->url = *url;
	c->trust = url->tls ? tls_trust_new(ca_path, e) : NULL;
	if (url->tls && !c->trust)
		free(take_ptr(c));
	return c;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	tls_trust_free(c->trust);
	free(c);
}

/* ---- bytes, up to the deadline ---- */

static int await(const struct http_query *q, short events)
{
	struct pollfd p = { .fd = q->fd, .events = events };
	uint64_t now = loop_now_ns();
	int r = 0;

	if (now < q->deadline_ns)
		r = poll(&p, 1, (int)((q->deadline_ns - now) / NS_PER_MS) + 1);
	if (r == 0)
		errno = ETIMEDOUT;
	return r > 0 || (r < 0 && errno == EINTR) ? 0 : -1;
}

static ssize_t wire_read(void *ctx, void *data, size_t size)
{
	const struct http_query *q = ctx;
	ssize_t n;

	while ((n = recv(q->fd, data, size, 0)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || await(q, POLLIN) < 0)
			return -1;
	}
	return n;
}

static ssize_t wire_write(void *ctx, const void *data, size_t len)
{
	const struct http_query *q = ctx;
	ssize_t n;

	while ((n = send(q->fd, data, len, MSG_NOSIGNAL)) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN || await(q, POLLOUT) < 0)
			return -1;
	}
	return n;
}

static ssize_t read_some(struct http_query *q, void *data, size_t size)
{
	return q->tls ? tls_client_read(q->tls, data, size) : wire_read(q, data, size);
}

static int write_all(struct http_query *q, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = q->tls ? tls_client_write(q->tls, data, len) : wire_write(q, data, len);

		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* ---- connecting ---- */

static int connect_to(struct http_query *q, const struct addrinfo *a)
{
	socklen_t len = sizeof(int);
	int error = 0;

	q->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->fd < 0)
		return -1;
	if (connect(q->fd, a->ai_addr, a->ai_addrlen) == 0)
		return 0;
	if (errno == EINPROGRESS && await(q, POLLOUT) == 0 &&
	    getsockopt(q->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0) {
		if (error == 0)
			return 0;
		errno = error;
	}
	close_fd(&q->fd);
	return -1;
}

static int reach(struct http_query *q, const struct http_url *u, struct err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV }, *list;
	int r = getaddrinfo(u->host, u->port, &hints, &list);

	if (r != 0)
		return err_set(e, ERR_NOT_FOUND, "%s: %s", u->host, gai_strerror(r));
	for (const struct addrinfo *a = list; a && q->fd < 0; a = a->ai_next) {
		if (connect_to(q, a) < 0)
			err_sys(e, "connect to %s port %s", u->host, u->port);
	}
	freeaddrinfo(list);
	return q->fd < 0 ? -1 : 0;
}

/* ---- asking ---- */

static int write_request(struct http_query *q, const struct http_url *u, const struct http_ask *ask,
			 struct err *e)
{
	bool bracket = strchr(u->host, ':') != NULL;
	struct buf b;
	int r;

	buf_init(&b, REQUEST_MAX);
	buf_printf(&b, "%s %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nConnection: close\r\n%s", ask->method, ask->target,
		   bracket ? "[" : "", u->host, bracket ? "]" : "", u->port, ask->fields ? ask->fields : "");
	if (ask->body)
		buf_printf(&b, "Content-Length: %zu\r\n", ask->len);
	buf_append_str(&b, "\r\n");
	if (ask->body)
		buf_append(&b, ask->body, ask->len);
	r = b.overflow ? err_set(e, ERR_LIMIT, "the request is too long") : write_all(q, b.data, b.len);
	if (r < 0 && !b.overflow)
		err_sys(e, "send to %s", u->host);
	if (b.cap)
		explicit_bzero(b.data, b.cap); /* it may hold a token */
	buf_done(&b);
	return r;
}

struct http_query *http_query_start(struct http_client *c, const struct http_ask *ask, struct err *e)
{
	struct http_query *q = calloc(1, sizeof(*q));
	struct tls_wire wire = { wire_read, wire_write, q };

	if (!q) {
		err_set(e, ERR_NOMEM, "no memory for a request");
		return NULL;
	}
	q->fd = -1;
	q->is_head = strcmp(ask->method, "HEAD") == 0;
	q->deadline_ns = loop_now_ns() + ask->timeout_ms * NS_PER_MS;
	if (reach(q, &c->url, e) == 0 &&
	    (!c->trust || (q->tls = tls_client_new(c->trust, c->url.host, &wire, e))) &&
	    write_request(q, &c->url, ask, e) == 0)
		return q;
	http_query_drop(q);
	return NULL;
}

void http_query_drop(struct http_query *q)
{
	if (!q)
		return;
	tls_client_free(q->tls);
	close_fd(&q->fd);
	free(q);
}

/* ---- the answer ---- */

static int malformed(struct err *e, const char *what)
{
	return err_set(e, ERR_PROTOCOL, "the answer is not HTTP/1.1 as it should be: %s", what);
}

static int cut_off(struct err *e, ssize_t n)
{
	return n < 0 ? err_sys(e, "hear the answer") : err_set(e, ERR_GONE, "the answer was cut off");
}

/* Up to and with the empty line; what came with it stays behind in rest. */
static int read_head(struct http_query *q, struct buf *head, struct buf *rest, struct err *e)
{
	char chunk[READ_SIZE];

	for (;;) {
		const char *end = rest->len ? memmem(rest->data, rest->len, "\r\n\r\n", 4) : NULL;
		ssize_t n;

		if (end) {
			size_t len = (size_t)(end - rest->data) + 4;
			int r = buf_append(head, rest->data, len);

			buf_consume(rest, len);
			return r < 0 ? malformed(e, "its head is too long") : 0;
		}
		if (rest->len > HTTP_REPLY_HEAD_MAX)
			return malformed(e, "its head is too long");
		n = read_some(q, chunk, sizeof(chunk));
		if (n <= 0)
			return cut_off(e, n);
		if (buf_append(rest, chunk, (size_t)n) < 0)
			return malformed(e, "too long");
	}
}

static int parse_status(struct http_reply *reply, struct err *e)
{
	const char *line = reply->head.data;
	char digits[4] = "";
	uint64_t status;

	if (reply->head.len < STATUS_LINE_LEN || memcmp(line, "HTTP/1.1 ", 9) != 0)
		return malformed(e, "no status line");
	memcpy(digits, line + 9, 3);
	if (str_parse_u64(digits, 100, 599, &status) < 0 || (line[12] != ' ' && line[12] != '\r'))
		return malformed(e, "no status");
	reply->status = (int)status;
	return 0;
}

static struct http_text trim(const char *data, size_t len)
{
	while (len && (*data == ' ' || *data == '\t')) {
		data++;
		len--;
	}
	while (len && (data[len - 1] == ' ' || data[len - 1] == '\t'))
		len--;
	return (struct http_text){ data, len };
}

/* From one line on; *count says how many fields have this name. */
static struct http_text find_field(const struct buf *head, const char *name, size_t *count)
{
	const char *at = memmem(head->data, head->len, "\r\n", 2), *end = head->data + head->len;
	struct http_text found = { NULL, 0 };

	for (*count = 0; at && end - at > 4;) {
		const char *line = at + 2, *stop = memmem(line, (size_t)(end - line), "\r\n", 2);
		const char *colon = stop ? memchr(line, ':', (size_t)(stop - line)) : NULL;

		if (colon && http_text_is_word((struct http_text){ line, (size_t)(colon - line) }, name)) {
			if ((*count)++ == 0)
				found = trim(colon + 1, (size_t)(stop - colon - 1));
		}
		at = stop;
	}
	return found;
}

struct http_text http_reply_field(const struct http_reply *reply, const char *name)
{
	size_t count;

	return find_field(&reply->head, name, &count);
}

static int take_chunked(struct http_query *q, struct buf *rest, struct buf *body, struct err *e)
{
	struct http1_chunked state = { 0 };
	char chunk[READ_SIZE];

	for (;;) {
		size_t len = rest->len < sizeof(chunk) ? rest->len : sizeof(chunk), used;
		ssize_t n = (ssize_t)len;
		int r;

		if (len > 0) {
			memcpy(chunk, rest->data, len);
			buf_consume(rest, len);
		} else {
			n = read_some(q, chunk, sizeof(chunk));
			if (n <= 0)
				return cut_off(e, n);
		}
		len = (size_t)n;
		r = http1_decode_chunked(&state, chunk, &len, &used);
		if (r == -1)
			return malformed(e, "its chunks");
		if (buf_append(body, chunk, len) < 0)
			return err_set(e, ERR_LIMIT, "the answer is too long");
		if (r == 1)
			return 0;
	}
}

/* size UINT64_MAX: until the connection ends. */
static int take_plain(struct http_query *q, struct buf *rest, struct buf *body, uint64_t size, struct err *e)
{
	char chunk[READ_SIZE];
	size_t first = rest->len < size ? rest->len : (size_t)size;

	if (buf_append(body, rest->data, first) < 0)
		return err_set(e, ERR_LIMIT, "the answer is too long");
	while (body->len < size) {
		size_t want = size - body->len < sizeof(chunk) ? (size_t)(size - body->len) : sizeof(chunk);
		ssize_t n = read_some(q, chunk, want);

		if (n == 0 && size == UINT64_MAX)
			return 0;
		if (n <= 0)
			return cut_off(e, n);
		if (buf_append(body, chunk, (size_t)n) < 0)
			return err_set(e, ERR_LIMIT, "the answer is too long");
	}
	return 0;
}

static int take_body(struct http_query *q, struct http_reply *reply, struct buf *rest, struct err *e)
{
	size_t lengths, codings;
	struct http_text length = find_field(&reply->head, "content-length", &lengths);
	struct http_text coding = find_field(&reply->head, "transfer-encoding", &codings);
	char digits[24];
	uint64_t size = UINT64_MAX;

	if (lengths > 1 || codings > 1 || (lengths && codings))
		return malformed(e, "its length is said twice");
	if (codings && !http_text_is_word(coding, "chunked"))
		return malformed(e, "an unknown transfer coding");
	if (lengths) {
		(void)snprintf(digits, sizeof(digits), "%.*s", (int)(length.len < 23 ? length.len : 23), length.data);
		if (length.len > 19 || str_parse_u64(digits, 0, INT64_MAX, &size) < 0)
			return malformed(e, "its length");
	}
	if (q->is_head || reply->status == 204 || reply->status == 304)
		return 0;
	return codings ? take_chunked(q, rest, &reply->body, e) : take_plain(q, rest, &reply->body, size, e);
}

static int hear(struct http_query *q, struct http_reply *reply, struct err *e)
{
	struct buf rest;
	int r;

	buf_init(&rest, HTTP_REPLY_HEAD_MAX + READ_SIZE + 1);
	do { /* 100 and its like come before the answer */
		buf_done(&reply->head);
		buf_init(&reply->head, HTTP_REPLY_HEAD_MAX);
		r = read_head(q, &reply->head, &rest, e);
		if (r == 0)
			r = parse_status(reply, e);
	} while (r == 0 && reply->status < 200);
	if (r == 0)
		r = take_body(q, reply, &rest, e);
	buf_done(&rest);
	return r;
}

int http_query_finish(struct http_query *q, struct http_reply *reply, struct err *e)
{
	int r;

	*reply = (struct http_reply){ 0 };
	buf_init(&reply->head, HTTP_REPLY_HEAD_MAX);
	buf_init(&reply->body, HTTP_REPLY_BODY_MAX);
	r = hear(q, reply, e);
	http_query_drop(q);
	if (r < 0)
		http_reply_done(reply);
	return r;
}

void http_reply_done(struct http_reply *reply)
{
	buf_done(&reply->head);
	buf_done(&reply->body);
}

int http_query(struct http_client *c, const struct http_ask *ask, struct http_reply *reply, struct err *e)
{
	struct http_query *q = http_query_start(c, ask, e);

	return q ? http_query_finish(q, reply, e) : -1;
}
