/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/http.c - heads of HTTP/1 messages, chunk lengths, SOCKS5 requests
 *
 * Pure functions over hostile bytes, from the sandbox (requests) and from servers (responses). Refused is
 * what two programs in a row may read differently: bare line feeds, folded fields, blanks before a
 * colon, two lengths, a length beside chunks, anything but "chunked" as a transfer coding.
 */
#include "runtime/proxy/http.h"

#include <string.h>
#include <strings.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"

enum { STATUS_BAD = 400, STATUS_NOT_IMPLEMENTED = 501, STATUS_VERSION = 505, NO_CONTENT = 204,
       NOT_MODIFIED = 304, METHOD_LEN_MAX = 32 };

/* ---- lines ---- */

size_t http_head_end(const char *bytes, size_t len, size_t from)
{
	size_t start = from > 3 ? from - 3 : 0;
	const char *end = memmem(bytes + start, len - start, "\r\n\r\n", 4);

	return end ? (size_t)(end - bytes) + 4 : 0;
}

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static size_t token_len(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && is_token_char(text[n]))
		n++;
	return n;
}

static bool is_clean(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static struct http_slice slice(const struct http_head *h, const char *at, size_t len)
{
	return (struct http_slice){ (uint16_t)(at - h->text), (uint16_t)len };
}

static bool is_field(const struct http_head *h, struct http_slice line, const char *name)
{
	size_t len = strlen(name);

	return line.len > len && h->text[line.at + len] == ':' &&
	       strncasecmp(h->text + line.at, name, len) == 0;
}

/* The value of a field, without blanks around it. */
static struct http_slice value_of(const struct http_head *h, struct http_slice line)
{
	const char *text = h->text + line.at;
	const char *colon = memchr(text, ':', line.len);
	const char *end = text + line.len, *p = colon + 1;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	return slice(h, p, (size_t)(end - p));
}

/* Is the word one of the comma-separated ones? */
static bool lists_word(const char *text, size_t len, const char *word, size_t word_len)
{
	while (len > 0) {
		const char *comma = memchr(text, ',', len);
		size_t item = comma ? (size_t)(comma - text) : len, start = 0, end = item;

		while (start < end && (text[start] == ' ' || text[start] == '\t'))
			start++;
		while (end > start && (text[end - 1] == ' ' || text[end - 1] == '\t'))
			end--;
		if (end - start == word_len && strncasecmp(text + start, word, word_len) == 0)
			return true;
		text += item + (comma != NULL);
		len -= item + (comma != NULL);
	}
	return false;
}

static bool connection_says(const struct http_head *h, const char *word)
{
	return lists_word(h->text + h->connection.at, h->connection.len, word, strlen(word));
}

static const char *take_length(struct http_head *h, struct http_slice value)
{
	char digits[24];

	if (h->has_length)
		return "two lengths";
	if (value.len == 0 || value.len >= sizeof(digits))
		return "a length that is no number";
	memcpy(digits, h->text + value.at, value.len);
	digits[value.len] = '\0';
	if (str_parse_u64(digits, 0, INT64_MAX, &h->length) < 0)
		return "a length that is no number";
	h->has_length = true;
	return NULL;
}

static const char *take_field(struct http_head *h, struct http_slice line)
{
	struct http_slice value = value_of(h, line);

	if (is_field(h, line, "Content-Length"))
		return take_length(h, value);
	if (is_field(h, line, "Transfer-Encoding")) {
		if (h->chunked || value.len != 7 ||
		    strncasecmp(h->text + value.at, "chunked", 7) != 0)
			return "a transfer coding that is not known here";
		h->chunked = true;
	} else if (is_field(h, line, "Connection")) {
		if (h->connection.len)
			return "two Connection fields";
		h->connection = value;
	}
	return NULL;
}

/* Return: NULL, or what is wrong. */
static const char *parse_fields(struct http_head *h, const char *p)
{
	const char *end = h->text + h->len - 2; /* the empty line */

	while (p < end) {
		const char *lf = memchr(p, '\n', (size_t)(h->text + h->len - p));
		size_t len = lf && lf > p && lf[-1] == '\r' ? (size_t)(lf - 1 - p) : 0;
		size_t name = token_len(p, len);
		const char *why;

		if (name == 0 || p[name] != ':' || !is_clean(p, len))
			return "a damaged header field";
		if (h->line_count == HTTP_LINES_MAX)
			return "too many header fields";
		h->lines[h->line_count] = slice(h, p, len);
		why = take_field(h, h->lines[h->line_count++]);
		if (why)
			return why;
		p = lf + 1;
	}
	if (h->has_length && h->chunked)
		return "a length beside chunks";
	if (h->chunked && h->minor == 0)
		return "chunks in HTTP/1.0";
	h->keep_alive = h->minor == 1 ? !connection_says(h, "close") : connection_says(h, "keep-alive");
	return NULL;
}

static void head_init(struct http_head *h, const char *text, size_t len)
{
	memset(h, 0, offsetof(struct http_head, lines));
	h->connection = (struct http_slice){ 0, 0 };
	h->text = text;
	h->len = len;
}

/* ---- requests ---- */

/* http://authority/path; of CONNECT the target is the authority. */
static int split_target(struct http_head *h, const char **ret_why)
{
	static const char scheme[] = "http://";
	const char *text = h->text + h->target.at;
	size_t len = h->target.len, skip = strlen(scheme), host;

	if (h->is_connect) {
		h->authority = h->target;
		return 0;
	}
	if (len > 8 && strncasecmp(text, "https://", 8) == 0) {
		*ret_why = "https is reached by CONNECT";
		return STATUS_NOT_IMPLEMENTED;
	}
	if (len <= skip || strncasecmp(text, scheme, skip) != 0) {
		*ret_why = "this is a proxy: the whole http:// address is wanted";
		return STATUS_BAD;
	}
	for (host = skip; host < len && !strchr("/?#", text[host]); host++)
		;
	h->authority = slice(h, text + skip, host - skip);
	h->path = slice(h, text + host, len - host);
	if (memchr(text, '#', len)) {
		*ret_why = "a fragment in an address";
		return STATUS_BAD;
	}
	return 0;
}

static int parse_version(struct http_head *h, const char *text, size_t len)
{
	if (len != 8 || memcmp(text, "HTTP/1.", 7) != 0 || (text[7] != '0' && text[7] != '1'))
		return -1;
	h->minor = (uint8_t)(text[7] - '0');
	return 0;
}

static int parse_request_line(struct http_head *h, size_t line, const char **ret_why)
{
	const char *text = h->text, *target, *version;
	size_t method = token_len(text, line);

	*ret_why = "a damaged request line";
	if (method == 0 || method > METHOD_LEN_MAX || method + 1 >= line || text[method] != ' ')
		return STATUS_BAD;
	h->method = slice(h, text, method);
	h->is_connect = method == 7 && memcmp(text, "CONNECT", 7) == 0;
	target = text + method + 1;
	version = memchr(target, ' ', line - method - 1);
	if (!version || version == target || !is_clean(target, (size_t)(version - target)) ||
	    memchr(target, '\t', (size_t)(version - target)))
		return STATUS_BAD;
	h->target = slice(h, target, (size_t)(version - target));
	version++;
	if (parse_version(h, version, line - (size_t)(version - text)) < 0) {
		*ret_why = "not HTTP/1.0 or HTTP/1.1";
		return STATUS_VERSION;
	}
	return split_target(h, ret_why);
}

int http_parse_request(struct http_head *h, const char *text, size_t len, const char **ret_why)
{
	const char *cr = memmem(text, len, "\r\n", 2);
	int status;

	head_init(h, text, len);
	*ret_why = "a damaged request";
	if (len < 4 || len > HTTP_HEAD_MAX || !cr || memcmp(text + len - 4, "\r\n\r\n", 4) != 0)
		return STATUS_BAD;
	status = parse_request_line(h, (size_t)(cr - text), ret_why);
	if (status)
		return status;
	*ret_why = parse_fields(h, cr + 2);
	if (*ret_why)
		return STATUS_BAD;
	return 0;
}

enum http_body http_request_body(const struct http_head *h)
{
	if (h->is_connect)
		return HTTP_BODY_NONE;
	if (h->chunked)
		return HTTP_BODY_CHUNKED;
	return h->has_length && h->length > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
}

/* ---- responses ---- */

int http_parse_response(struct http_head *h, const char *text, size_t len)
{
	const char *cr = memmem(text, len, "\r\n", 2);
	size_t line = cr ? (size_t)(cr - text) : 0;
	char digits[4];
	uint64_t status;

	head_init(h, text, len);
	if (len < 4 || len > HTTP_HEAD_MAX || memcmp(text + len - 4, "\r\n\r\n", 4) != 0 || line < 12 ||
	    !is_clean(text, line) || parse_version(h, text, 8) < 0 || text[8] != ' ' ||
	    (line > 12 && text[12] != ' '))
		return -1;
	memcpy(digits, text + 9, 3);
	digits[3] = '\0';
	if (str_parse_u64(digits, 100, 599, &status) < 0)
		return -1;
	h->status = (uint16_t)status;
	h->target = slice(h, text + 8, line - 8); /* " 200 OK" */
	return parse_fields(h, cr + 2) ? -1 : 0;
}

enum http_body http_response_body(const struct http_head *h, bool to_head)
{
	if (to_head || h->status < 200 || h->status == NO_CONTENT || h->status == NOT_MODIFIED)
		return HTTP_BODY_NONE;
	if (h->chunked)
		return HTTP_BODY_CHUNKED;
	if (h->has_length)
		return h->length > 0 ? HTTP_BODY_LENGTH : HTTP_BODY_NONE;
	return HTTP_BODY_CLOSE;
}

/* ---- heads as they go on ---- */

/* Fields that concern one hop, and those that Connection names. */
static bool is_hop_field(const struct http_head *h, struct http_slice line)
{
	static const char *const names[] = { "Connection", "Proxy-Connection", "Keep-Alive", "TE", "Upgrade",
					     "Proxy-Authorization", "Proxy-Authenticate" };
	const char *text = h->text + line.at;
	size_t name = token_len(text, line.len);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (is_field(h, line, names[i]))
			return true;
	}
	if (is_field(h, line, "Content-Length") || is_field(h, line, "Transfer-Encoding"))
		return false; /* whatever Connection says: they are what the body is read by */
	return lists_word(h->text + h->connection.at, h->connection.len, text, name);
}

static void write_fields(struct buf *out, const struct http_head *h, bool skip_host)
{
	for (size_t i = 0; i < h->line_count; i++) {
		struct http_slice line = h->lines[i];

		if (is_hop_field(h, line) || (skip_host && is_field(h, line, "Host")))
			continue;
		(void)buf_append(out, h->text + line.at, line.len);
		(void)buf_append_str(out, "\r\n");
	}
}

void http_write_request(struct buf *out, const struct http_head *h, const char *host_port,
			bool absolute)
{
	(void)buf_append(out, h->text + h->method.at, h->method.len);
	(void)buf_printf(out, " %s%s%s", absolute ? "http://" : "", absolute ? host_port : "",
			 h->path.len && h->text[h->path.at] == '/' ? "" : "/");
	(void)buf_append(out, h->text + h->path.at, h->path.len);
	(void)buf_printf(out, " HTTP/1.%u\r\nHost: %s\r\n", h->minor, host_port);
	write_fields(out, h, true);
	(void)buf_printf(out, "%sVia: 1.%u mcp-sandbox\r\n\r\n",
			 h->minor == 0 ? "Connection: close\r\n" : "", h->minor);
}

void http_write_response(struct buf *out, const struct http_head *h, bool keep_alive)
{
	(void)buf_append_str(out, "HTTP/1.1");
	(void)buf_append(out, h->text + h->target.at, h->target.len);
	(void)buf_append_str(out, "\r\n");
	write_fields(out, h, false);
	if (h->status >= 200) /* the announcement of a response says nothing about what follows it */
		(void)buf_printf(out, "Connection: %s\r\n", keep_alive ? "keep-alive" : "close");
	(void)buf_append_str(out, "\r\n");
}

/* ---- chunked bodies ---- */

enum { CHUNK_DIGITS_MAX = 15 };

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int size_char(struct http_chunks *c, char ch)
{
	int digit = hex_digit(ch);

	if (digit >= 0) {
		c->left = c->left << 4 | (unsigned int)digit;
		return ++c->digits <= CHUNK_DIGITS_MAX ? 0 : -1;
	}
	if (c->digits == 0 || (ch != '\r' && ch != ';'))
		return -1;
	c->state = ch == '\r' ? CHUNK_SIZE_LF : CHUNK_EXTENSION;
	return 0;
}

/* A line whose content does not matter, up to its end. */
static int line_char(struct http_chunks *c, char ch, enum http_chunk_state next)
{
	if (++c->line > HTTP_HEAD_MAX || ch == '\n' || ch == '\0')
		return -1;
	if (ch == '\r')
		c->state = next;
	return 0;
}

static int expect(struct http_chunks *c, char ch, char want, enum http_chunk_state next)
{
	c->state = next;
	return ch == want ? 0 : -1;
}

/* One byte that is not data. */
static int chunk_char(struct http_chunks *c, char ch)
{
	switch (c->state) {
	case CHUNK_SIZE:
		return size_char(c, ch);
	case CHUNK_EXTENSION:
		return line_char(c, ch, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		c->digits = 0;
		return expect(c, ch, '\n', c->left ? CHUNK_DATA : CHUNK_TRAILER_START);
	case CHUNK_DATA_CR:
		return expect(c, ch, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		return expect(c, ch, '\n', CHUNK_SIZE);
	case CHUNK_TRAILER_START:
		if (ch == '\r') {
			c->state = CHUNK_END_LF;
			return 0;
		}
		c->state = CHUNK_TRAILER;
		return line_char(c, ch, CHUNK_TRAILER_LF);
	case CHUNK_TRAILER:
		return line_char(c, ch, CHUNK_TRAILER_LF);
	case CHUNK_TRAILER_LF:
		return expect(c, ch, '\n', CHUNK_TRAILER_START);
	case CHUNK_END_LF:
		return expect(c, ch, '\n', CHUNK_DONE);
	case CHUNK_DATA:
	case CHUNK_DONE:
		break;
	}
	return -1;
}

long http_chunks_scan(struct http_chunks *c, const char *bytes, size_t len)
{
	size_t at = 0;

	while (at < len && c->state != CHUNK_DONE) {
		if (c->state == CHUNK_DATA) {
			size_t n = len - at < c->left ? len - at : (size_t)c->left;

			at += n;
			c->left -= n;
			if (c->left == 0)
				c->state = CHUNK_DATA_CR;
		} else if (chunk_char(c, bytes[at++]) < 0) {
			return -1;
		}
	}
	return (long)at;
}

/* ---- SOCKS5 ---- */

enum { SOCKS_CONNECT = 1, SOCKS_IPV4 = 1, SOCKS_NAME = 3, SOCKS_IPV6 = 4, SOCKS_FIXED = 4 };

int socks_greeting(const uint8_t *bytes, size_t len)
{
	if (len < 2)
		return 0;
	if (bytes[0] != SOCKS_VERSION)
		return -1;
	if (len < 2u + bytes[1])
		return 0;
	return memchr(bytes + 2, 0, bytes[1]) ? 2 + bytes[1] : -1;
}

static int socks_host(const uint8_t *at, size_t len, uint8_t type, struct net_dest *ret)
{
	if (type == SOCKS_NAME)
		return net_dest_parse((const char *)at, len, ret);
	memset(ret, 0, sizeof(*ret));
	ret->is_address = true;
	ret->addr.family = type == SOCKS_IPV4 ? AF_INET : AF_INET6;
	memcpy(ret->addr.bytes, at, len);
	(void)net_addr_format(&ret->addr, ret->name, sizeof(ret->name));
	return 0;
}

int socks_request(const uint8_t *bytes, size_t len, struct net_dest *ret, uint16_t *ret_port,
		  enum socks_reply *ret_reply)
{
	const uint8_t *at = bytes + SOCKS_FIXED;
	size_t host, total;

	*ret_reply = SOCKS_BAD_COMMAND;
	if (len < SOCKS_FIXED + 1)
		return 0;
	if (bytes[0] != SOCKS_VERSION || bytes[1] != SOCKS_CONNECT || bytes[2] != 0)
		return -1;
	*ret_reply = SOCKS_BAD_ADDRESS;
	if (bytes[3] != SOCKS_IPV4 && bytes[3] != SOCKS_IPV6 && bytes[3] != SOCKS_NAME)
		return -1;
	host = bytes[3] == SOCKS_IPV4 ? 4 : bytes[3] == SOCKS_IPV6 ? 16 : bytes[4];
	at += bytes[3] == SOCKS_NAME;
	total = (size_t)(at - bytes) + host + 2;
	if (len < total)
		return 0;
	*ret_reply = SOCKS_NOT_ALLOWED;
	*ret_port = (uint16_t)(at[host] << 8 | at[host + 1]);
	if (socks_host(at, host, bytes[3], ret) < 0)
		return -1;
	return (int)total;
}
