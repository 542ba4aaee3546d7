/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http1.c - HTTP/1.x request heads and chunked bodies: bytes in, struct out
 *
 * Runs in the front, without privilege; every byte is hostile. No allocation, no system call, no state
 * but what the caller keeps. Request smuggling lives where two readers of the same bytes disagree
 * (RFC 9112, 11.2), so whatever a lenient reader would repair is refused here: lines end with CR LF,
 * nothing is folded, a length is said once and in one way.
 */
#include "mcp/http1.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { CLASS_TOKEN = 1, CLASS_TARGET = 2, CLASS_HOST = 4 };

/* RFC 9110, 5.6.2 (tchar); RFC 3986, 3.3 and 3.4 (path and query); RFC 3986, 3.2.2 without
 * percent-encoding and sub-delims, which no DNS name or address has. */
static unsigned int class_of(unsigned char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return CLASS_TOKEN | CLASS_TARGET | CLASS_HOST;
	if (c == 0)
		return 0;
	return (strchr("!#$%&'*+-.^_`|~", c) ? CLASS_TOKEN : 0) |
	       (strchr("-._~!$&'()*+,;=:@/?%", c) ? CLASS_TARGET : 0) |
	       (strchr("-._~", c) ? CLASS_HOST : 0);
}

static bool is_class(struct http_text t, unsigned int class)
{
	for (size_t i = 0; i < t.len; i++)
		if (!(class_of((unsigned char)t.data[i]) & class))
			return false;
	return t.len > 0;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* RFC 9110, 5.5: what may stand in a field value besides its ends. */
static bool is_value_byte(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static long refuse(struct http1_refusal *ret, int status, const char *why)
{
	*ret = (struct http1_refusal){ status, why };
	return -1;
}

/* ---- views ---- */

bool http_text_is(struct http_text t, const char *text)
{
	return t.len == strlen(text) && (!t.len || memcmp(t.data, text, t.len) == 0);
}

bool http_text_is_word(struct http_text t, const char *text)
{
	return t.len == strlen(text) && (!t.len || strncasecmp(t.data, text, t.len) == 0);
}

static struct http_text trim(struct http_text t)
{
	while (t.len && (t.data[0] == ' ' || t.data[0] == '\t')) {
		t.data++;
		t.len--;
	}
	while (t.len && (t.data[t.len - 1] == ' ' || t.data[t.len - 1] == '\t'))
		t.len--;
	return t;
}

/* The text up to (not including) the first c; *t continues after it. Without c: all of it. */
static struct http_text cut(struct http_text *t, char c)
{
	const char *at = t->len ? memchr(t->data, c, t->len) : NULL;
	struct http_text first = *t;

	if (!at) {
		t->data += t->len;
		t->len = 0;
		return first;
	}
	first.len = (size_t)(at - t->data);
	t->data += first.len + 1;
	t->len -= first.len + 1;
	return first;
}

bool http_text_has_item(struct http_text list, const char *item)
{
	while (list.len)
		if (http_text_is_word(trim(cut(&list, ',')), item))
			return true;
	return false;
}

const struct http_text *http1_field(const struct http1_head *head, const char *name,
				    size_t *ret_count)
{
	const struct http_text *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < head->field_count; i++) {
		if (!http_text_is_word(head->fields[i].name, name))
			continue;
		if (!count++)
			first = &head->fields[i].value;
	}
	if (ret_count)
		*ret_count = count;
	return first;
}

/* ---- the request line: RFC 9112, 3 ---- */

static long parse_method(struct http1_head *head, struct http1_refusal *ret)
{
	static const struct {
		const char *name;
		enum http_method method;
	} known[] = { { "GET", HTTP_GET },	 { "HEAD", HTTP_HEAD }, { "POST", HTTP_POST },
		      { "PUT", HTTP_PUT },	 { "DELETE", HTTP_DELETE },
		      { "OPTIONS", HTTP_OPTIONS } };

	if (head->method_text.len > HTTP1_METHOD_MAX || !is_class(head->method_text, CLASS_TOKEN))
		return refuse(ret, 400, "the method is not a token");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (http_text_is(head->method_text, known[i].name))
			head->method = known[i].method;
	return 0;
}

/* "HTTP/" DIGIT "." DIGIT, in this case (2.3). A higher minor version is served as 1.1 (RFC 9110, 2.5). */
static long parse_version(struct http1_head *head, struct http_text t, struct http1_refusal *ret)
{
	if (t.len != 8 || memcmp(t.data, "HTTP/", 5) != 0 || !is_digit(t.data[5]) ||
	    t.data[6] != '.' || !is_digit(t.data[7]))
		return refuse(ret, 400, "the request line does not end with a version");
	if (t.data[5] != '1')
		return refuse(ret, 505, "this server speaks HTTP/1.0 and HTTP/1.1");
	head->minor = t.data[7] == '0' ? 0 : 1;
	return 0;
}

static bool has_bad_escape(struct http_text t)
{
	for (size_t i = 0; i < t.len; i++)
		if (t.data[i] == '%' && (i + 2 >= t.len || hex_value(t.data[i + 1]) < 0 ||
					 hex_value(t.data[i + 2]) < 0))
			return true;
	return false;
}

/* Origin form and absolute form (3.2.1, 3.2.2). An authority in the target goes to *ret_authority. */
static long parse_target(struct http1_head *head, struct http_text *ret_authority,
			 struct http1_refusal *ret)
{
	struct http_text t = head->target;

	if (t.len > HTTP1_TARGET_MAX)
		return refuse(ret, 414, "the request target is too long");
	if (!is_class(t, CLASS_TARGET) || has_bad_escape(t))
		return refuse(ret, 400, "the request target holds a character that must be encoded");
	for (size_t scheme = 7; scheme <= 8 && t.data[0] != '/'; scheme++) {
		if (t.len < scheme || strncasecmp(t.data, scheme == 7 ? "http://" : "https://", scheme))
			continue;
		t.data += scheme;
		t.len -= scheme;
		for (*ret_authority = t; t.len && t.data[0] != '/' && t.data[0] != '?'; t.len--)
			t.data++;
		ret_authority->len -= t.len;
		break;
	}
	if (!t.len || t.data[0] != '/')
		return refuse(ret, 400, "the request target is not a path");
	head->path = cut(&t, '?');
	if (head->path.data + head->path.len < head->target.data + head->target.len)
		head->query = t;
	return 0;
}

static long parse_request_line(struct http1_head *head, struct http_text line,
			       struct http_text *ret_authority, struct http1_refusal *ret)
{
	head->method_text = cut(&line, ' ');
	head->target = cut(&line, ' ');
	if (parse_method(head, ret) < 0 || parse_version(head, line, ret) < 0)
		return -1;
	return parse_target(head, ret_authority, ret);
}

/* ---- fields: RFC 9112, 5 ---- */

static long add_field(struct http1_head *head, struct http_text line, struct http1_refusal *ret)
{
	struct http1_field *f = &head->fields[head->field_count];
	struct http_text rest = line;

	if (line.data[0] == ' ' || line.data[0] == '\t') /* 5.2 */
		return refuse(ret, 400, "a field is folded over several lines");
	if (head->field_count == HTTP1_FIELDS_MAX)
		return refuse(ret, 431, "too many fields");
	f->name = cut(&rest, ':');
	if (f->name.len == line.len || !is_class(f->name, CLASS_TOKEN)) /* 5.1: also "Name :" */
		return refuse(ret, 400, "a field name is not a token followed by a colon");
	f->value = trim(rest);
	for (size_t i = 0; i < f->value.len; i++)
		if (!is_value_byte(f->value.data[i]))
			return refuse(ret, 400, "a field value holds a control character");
	head->field_count++;
	return 0;
}

/* Two of these mean two readers may take different ones. */
static long refuse_repeated(const struct http1_head *head, struct http1_refusal *ret)
{
	static const char *const once[] = {
		"Host", "Content-Length", "Transfer-Encoding", "Content-Type", "Content-Encoding",
		"Authorization", "Origin", "Expect", "Range", "If-Range", "If-None-Match",
		"Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method", "Mcp-Name",
	};
	size_t count;

	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
		if (http1_field(head, once[i], &count) && count > 1)
			return refuse(ret, 400, "a field that may come once comes twice");
	return 0;
}

/* ---- what the fields mean for the connection ---- */

/* uri-host [ ":" port ], RFC 9110, 7.2. */
static bool is_host(struct http_text host)
{
	struct http_text name = host, port;
	const char *end;

	if (host.len && host.data[0] == '[') {
		end = memchr(host.data, ']', host.len);
		if (!end || end == host.data + 1)
			return false;
		for (const char *p = host.data + 1; p < end; p++)
			if (hex_value(*p) < 0 && *p != ':' && *p != '.')
				return false;
		name.len = (size_t)(end - host.data) + 1;
	} else {
		name = cut(&(struct http_text){ host.data, host.len }, ':');
		if (!is_class(name, CLASS_HOST))
			return false;
	}
	port = (struct http_text){ host.data + name.len, host.len - name.len };
	if (!port.len)
		return true;
	for (size_t i = 1; i < port.len; i++)
		if (!is_digit(port.data[i]))
			return false;
	return port.data[0] == ':' && port.len >= 2 && port.len <= 6;
}

/* RFC 9112, 3.2: exactly one in HTTP/1.1. A target that names another host is refused instead of
 * preferred (3.2.2): no client of ours sends one, and a proxy in front may have looked at the other. */
static long check_host(struct http1_head *head, struct http_text authority,
		       struct http1_refusal *ret)
{
	const struct http_text *host = http1_field(head, "Host", NULL);

	if (!host && head->minor >= 1)
		return refuse(ret, 400, "no Host");
	if (host && !is_host(*host))
		return refuse(ret, 400, "Host is not a host name");
	if (authority.data &&
	    (!host || host->len != authority.len ||
	     strncasecmp(host->data, authority.data, host->len) != 0))
		return refuse(ret, 400, "the request target names another host than Host");
	if (host)
		head->host = *host;
	return 0;
}

/* RFC 9110, 8.6: digits and nothing else, no list. */
static long parse_length(struct http1_head *head, struct http_text t, struct http1_refusal *ret)
{
	uint64_t n = 0;

	for (size_t i = 0; i < t.len; i++) {
		if (!is_digit(t.data[i]))
			return refuse(ret, 400, "Content-Length is not a number");
		if (n > (UINT64_MAX >> 1) / 10 - 1)
			return refuse(ret, 413, "Content-Length is too large");
		n = n * 10 + (uint64_t)(t.data[i] - '0');
	}
	if (!t.len)
		return refuse(ret, 400, "Content-Length is empty");
	head->has_length = true;
	head->length = n;
	return 0;
}

/* RFC 9112, 6.1 and 6.3. */
static long check_framing(struct http1_head *head, struct http1_refusal *ret)
{
	const struct http_text *length = http1_field(head, "Content-Length", NULL);
	const struct http_text *coding = http1_field(head, "Transfer-Encoding", NULL);

	if (coding && head->minor == 0)
		return refuse(ret, 400, "Transfer-Encoding in HTTP/1.0");
	if (coding && length)
		return refuse(ret, 400, "both Transfer-Encoding and Content-Length");
	if (coding && !http_text_is_word(*coding, "chunked"))
		return refuse(ret, 501, "a transfer coding other than chunked");
	head->chunked = coding != NULL;
	return length ? parse_length(head, *length, ret) : 0;
}

/* RFC 9112, 9.3; RFC 9110, 7.6.1. */
static void check_connection(struct http1_head *head)
{
	bool says_close = false, says_keep = false;

	for (size_t i = 0; i < head->field_count; i++) {
		const struct http1_field *f = &head->fields[i];

		if (!http_text_is_word(f->name, "Connection"))
			continue;
		says_close |= http_text_has_item(f->value, "close");
		says_keep |= http_text_has_item(f->value, "keep-alive");
	}
	head->keep_alive = !says_close && (head->minor >= 1 || says_keep);
}

/* RFC 9110, 10.1.1. */
static long check_expect(struct http1_head *head, struct http1_refusal *ret)
{
	const struct http_text *expect = http1_field(head, "Expect", NULL);

	if (!expect || head->minor == 0)
		return 0;
	if (!http_text_is_word(*expect, "100-continue"))
		return refuse(ret, 417, "an expectation other than 100-continue");
	head->expects_continue = head->chunked || head->length > 0;
	return 0;
}

/* ---- heads ---- */

static long too_long(const char *data, size_t len, struct http1_refusal *ret)
{
	if (!memchr(data, '\n', len))
		return refuse(ret, 414, "the request line is too long");
	return refuse(ret, 431, "the head is too long");
}

long http1_scan_head(const char *data, size_t len, size_t *scanned, struct http1_refusal *ret)
{
	size_t max = len < HTTP1_HEAD_MAX ? len : HTTP1_HEAD_MAX;

	for (size_t i = *scanned; i < max; i++) {
		bool after_cr = i > 0 && data[i - 1] == '\r';

		if (data[i] == '\0' || after_cr != (data[i] == '\n')) /* 2.2 */
			return refuse(ret, 400, "a line does not end with CR LF");
		if (i >= 3 && data[i] == '\n' && memcmp(data + i - 3, "\r\n\r\n", 4) == 0)
			return (long)(i + 1);
	}
	*scanned = max;
	return max == HTTP1_HEAD_MAX ? too_long(data, max, ret) : -2;
}

static long parse_lines(struct http1_head *head, struct http_text rest,
			struct http_text *ret_authority, struct http1_refusal *ret)
{
	if (rest.len >= 2 && rest.data[0] == '\r') /* 2.2: one empty line before the request is ignored */
		(void)cut(&rest, '\n');
	for (bool first = true;; first = false) {
		struct http_text line = cut(&rest, '\n');

		line.len -= line.len > 0; /* its CR */
		if (!line.len && first)
			return refuse(ret, 400, "no request line");
		if (!line.len)
			return 0;
		if ((first ? parse_request_line(head, line, ret_authority, ret)
			   : add_field(head, line, ret)) < 0)
			return -1;
	}
}

long http1_parse_head(struct http1_head *head, const char *data, size_t len,
		      struct http1_refusal *ret)
{
	struct http_text authority = { NULL, 0 };
	size_t scanned = 0;
	long used = http1_scan_head(data, len, &scanned, ret);

	if (used < 0)
		return used;
	/* The fields behind field_count are never read. */
	memset(head, 0, offsetof(struct http1_head, fields));
	if (parse_lines(head, (struct http_text){ data, (size_t)used }, &authority, ret) < 0 ||
	    refuse_repeated(head, ret) < 0 || check_host(head, authority, ret) < 0 ||
	    check_framing(head, ret) < 0 || check_expect(head, ret) < 0)
		return -1;
	check_connection(head);
	return used;
}

/* ---- chunked bodies: RFC 9112, 7.1 ---- */

enum {
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	TRAILER_START,
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	BODY_LF,
	BODY_OVER,
};

static int size_byte(struct http1_chunked *c, char byte)
{
	int digit = hex_value(byte);

	if (digit >= 0 && c->digits++ < HTTP1_CHUNK_DIGITS_MAX) {
		c->left = c->left * 16 + (unsigned int)digit;
		return CHUNK_SIZE;
	}
	if (digit >= 0 || !c->digits)
		return -1;
	if (byte == ';')
		return CHUNK_EXTENSION;
	return byte == '\r' ? CHUNK_SIZE_LF : -1;
}

static int expect_byte(char byte, char expected, int next)
{
	return byte == expected ? next : -1;
}

/* Extensions and trailers are skipped (7.1.1, 7.1.2), but only so many and only well-formed ones. */
static int skip_byte(struct http1_chunked *c, char byte, int here, int at_end)
{
	if (byte == '\r')
		return at_end;
	return is_value_byte(byte) && ++c->extra <= HTTP1_CHUNK_EXTRA_MAX ? here : -1;
}

static int trailer_name_byte(struct http1_chunked *c, char byte)
{
	bool may_end = c->state == TRAILER_NAME;

	if (byte == ':' && may_end)
		return TRAILER_VALUE;
	return (class_of((unsigned char)byte) & CLASS_TOKEN) && ++c->extra <= HTTP1_CHUNK_EXTRA_MAX
		       ? TRAILER_NAME
		       : -1;
}

static int after_size(struct http1_chunked *c)
{
	c->digits = 0;
	return c->left ? CHUNK_DATA : TRAILER_START;
}

/* One byte that is not payload. Return: the next state, -1. */
static int chunk_byte(struct http1_chunked *c, char byte)
{
	switch (c->state) {
	case CHUNK_SIZE:
		return size_byte(c, byte);
	case CHUNK_EXTENSION:
		return skip_byte(c, byte, CHUNK_EXTENSION, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		return byte == '\n' ? after_size(c) : -1;
	case CHUNK_DATA_CR:
		return expect_byte(byte, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		return expect_byte(byte, '\n', CHUNK_SIZE);
	case TRAILER_START:
		return byte == '\r' ? BODY_LF : trailer_name_byte(c, byte);
	case TRAILER_NAME:
		return trailer_name_byte(c, byte);
	case TRAILER_VALUE:
		return skip_byte(c, byte, TRAILER_VALUE, TRAILER_LF);
	case TRAILER_LF:
		return expect_byte(byte, '\n', TRAILER_START);
	case BODY_LF:
		return expect_byte(byte, '\n', BODY_OVER);
	default:
		return -1;
	}
}

static size_t take_payload(struct http1_chunked *c, char *to, const char *from, size_t available)
{
	size_t n = available < c->left ? available : (size_t)c->left;

	memmove(to, from, n);
	c->left -= n;
	if (!c->left)
		c->state = CHUNK_DATA_CR;
	return n;
}

int http1_decode_chunked(struct http1_chunked *c, char *data, size_t *len, size_t *ret_used)
{
	size_t in = 0, out = 0;

	while (in < *len && c->state >= 0 && c->state != BODY_OVER) {
		if (c->state == CHUNK_DATA) {
			size_t n = take_payload(c, data + out, data + in, *len - in);

			in += n;
			out += n;
		} else {
			c->state = chunk_byte(c, data[in++]);
		}
	}
	*len = out;
	*ret_used = in;
	if (c->state < 0)
		return -1;
	return c->state == BODY_OVER ? 1 : -2;
}
