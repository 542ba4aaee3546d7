/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_http1.c - heads and chunked bodies: rows of bytes and what must become of them
 *
 * Every input ends at an unreadable page. Each row is also given in two pieces cut at every place.
 */
#include "mcp/http1.h"
#include "runtime/base/str.h"
#include "tests/unit/tap.h"

#define GOOD "Host: h\r\n\r\n"

/* status 0: accepted. */
static const struct {
	int status;
	const char *desc, *bytes;
} head_rows[] = {
	{ 0, "the least there can be", "GET / HTTP/1.1\r\nHost: h\r\n\r\n" },
	{ 0, "HTTP/1.0 without a Host", "GET / HTTP/1.0\r\n\r\n" },
	{ 0, "a higher minor version", "GET / HTTP/1.7\r\n" GOOD },
	{ 0, "one empty line before the request (9112, 2.2)", "\r\nGET / HTTP/1.1\r\n" GOOD },
	{ 0, "a method of its own", "M-SEARCH / HTTP/1.1\r\n" GOOD },
	{ 0, "white space around a value", "GET / HTTP/1.1\r\nHost: \t h \t\r\n\r\n" },
	{ 0, "an empty value", "GET / HTTP/1.1\r\nX:\r\n" GOOD },
	{ 0, "bytes above 127 in a value", "GET / HTTP/1.1\r\nX: \xc3\xa4\xff\r\n" GOOD },
	{ 0, "a tab inside a value", "GET / HTTP/1.1\r\nX: a\tb\r\n" GOOD },
	{ 0, "absolute form that agrees with Host", "GET http://H:80/x?y HTTP/1.1\r\nHost: h:80\r\n\r\n" },
	{ 0, "an IPv6 host with a port", "GET / HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n" },
	{ 0, "a length", "POST / HTTP/1.1\r\nContent-Length: 00012\r\n" GOOD },
	{ 0, "chunked in any case", "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n" GOOD },
	{ 0, "an expectation", "POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n" GOOD },
	{ 0, "any expectation in HTTP/1.0 (9110, 10.1.1)", "POST / HTTP/1.0\r\nExpect: x\r\n" GOOD },

	{ 400, "line ends with LF alone", "GET / HTTP/1.1\nHost: h\r\n\r\n" },
	{ 400, "a field ends with LF alone", "GET / HTTP/1.1\r\nHost: h\n\r\n" },
	{ 400, "the empty line is LF alone", "GET / HTTP/1.1\r\nHost: h\r\n\n" },
	{ 400, "CR alone", "GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n" },
	{ 400, "two CR", "GET / HTTP/1.1\r\nHost: h\r\r\n\r\n" },
	{ 400, "two empty lines before the request", "\r\n\r\nGET / HTTP/1.1\r\n" GOOD },
	{ 400, "a TLS handshake", "\x16\x03\x01\x02\x00\x01" },
	{ 400, "HTTP/0.9", "GET /\r\n\r\n" },
	{ 400, "no method", " / HTTP/1.1\r\n" GOOD },
	{ 400, "a method that is no token", "GE(T / HTTP/1.1\r\n" GOOD },
	{ 400, "a method without end", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\n" GOOD },
	{ 400, "two blanks after the method", "GET  / HTTP/1.1\r\n" GOOD },
	{ 400, "a tab after the method", "GET\t/ HTTP/1.1\r\n" GOOD },
	{ 400, "two blanks before the version", "GET /  HTTP/1.1\r\n" GOOD },
	{ 400, "something after the version", "GET / HTTP/1.1 \r\n" GOOD },
	{ 400, "a blank in the target", "GET /a b HTTP/1.1\r\n" GOOD },
	{ 400, "a version in small letters", "GET / http/1.1\r\n" GOOD },
	{ 400, "a version of three digits", "GET / HTTP/1.10\r\n" GOOD },
	{ 400, "a version that is no number", "GET / HTTP/1.x\r\n" GOOD },
	{ 505, "HTTP/2 by its preface", "PRI * HTTP/2.0\r\n\r\n" },
	{ 505, "HTTP/0.9 by name", "GET / HTTP/0.9\r\n" GOOD },
	{ 505, "HTTP/3", "GET / HTTP/3.0\r\n" GOOD },
	{ 400, "a fragment", "GET /a#b HTTP/1.1\r\n" GOOD },
	{ 400, "a backslash", "GET /a\\b HTTP/1.1\r\n" GOOD },
	{ 400, "bytes above 127 in the target", "GET /\xc3\xa4 HTTP/1.1\r\n" GOOD },
	{ 400, "DEL in the target", "GET /\x7f HTTP/1.1\r\n" GOOD },
	{ 400, "half an escape", "GET /%2 HTTP/1.1\r\n" GOOD },
	{ 400, "an escape that is none", "GET /%zz HTTP/1.1\r\n" GOOD },
	{ 400, "a relative target", "GET x HTTP/1.1\r\n" GOOD },
	{ 400, "asterisk form", "OPTIONS * HTTP/1.1\r\n" GOOD },
	{ 400, "authority form", "CONNECT h:443 HTTP/1.1\r\n" GOOD },
	{ 400, "another scheme", "GET ftp://h/ HTTP/1.1\r\n" GOOD },
	{ 400, "absolute form of another host", "GET http://other/ HTTP/1.1\r\n" GOOD },
	{ 400, "absolute form without a host", "GET http:/// HTTP/1.1\r\n" GOOD },
	{ 400, "absolute form without a path", "GET http://h HTTP/1.1\r\n" GOOD },

	{ 400, "no Host", "GET / HTTP/1.1\r\n\r\n" },
	{ 400, "two Hosts", "GET / HTTP/1.1\r\nHost: h\r\nhost: h\r\n\r\n" },
	{ 400, "two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n" },
	{ 400, "an empty Host", "GET / HTTP/1.1\r\nHost: \r\n\r\n" },
	{ 400, "a Host list", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n" },
	{ 400, "a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n" },
	{ 400, "a Host with a user", "GET / HTTP/1.1\r\nHost: u@h\r\n\r\n" },
	{ 400, "a Host with an escape", "GET / HTTP/1.1\r\nHost: %68\r\n\r\n" },
	{ 400, "a port that is no number", "GET / HTTP/1.1\r\nHost: h:x\r\n\r\n" },
	{ 400, "an empty port", "GET / HTTP/1.1\r\nHost: h:\r\n\r\n" },
	{ 400, "an open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n" },
	{ 400, "empty brackets", "GET / HTTP/1.1\r\nHost: []\r\n\r\n" },
	{ 400, "a name in brackets", "GET / HTTP/1.1\r\nHost: [evil]\r\n\r\n" },

	{ 400, "a folded field (9112, 5.2)", "GET / HTTP/1.1\r\nX: a\r\n b\r\n" GOOD },
	{ 400, "a field that begins with a tab", "GET / HTTP/1.1\r\n\tX: a\r\n" GOOD },
	{ 400, "a blank before the colon (9112, 5.1)", "GET / HTTP/1.1\r\nX : a\r\n" GOOD },
	{ 400, "no colon", "GET / HTTP/1.1\r\nX\r\n" GOOD },
	{ 400, "no name", "GET / HTTP/1.1\r\n: a\r\n" GOOD },
	{ 400, "a name that is no token", "GET / HTTP/1.1\r\nX(y): a\r\n" GOOD },
	{ 400, "a name above 127", "GET / HTTP/1.1\r\nX\xc3: a\r\n" GOOD },
	{ 400, "a control character in a value", "GET / HTTP/1.1\r\nX: a\x01\r\n" GOOD },
	{ 400, "a vertical tab before a value", "GET / HTTP/1.1\r\nX:\x0b" "a\r\n" GOOD },
	{ 400, "DEL in a value", "GET / HTTP/1.1\r\nX: \x7f\r\n" GOOD },
	{ 400, "two Authorizations", "GET / HTTP/1.1\r\nAuthorization: a\r\nauthorization: b\r\n" GOOD },
	{ 400, "two Origins", "GET / HTTP/1.1\r\nOrigin: a\r\nOrigin: b\r\n" GOOD },

	/* Smuggling: two readers must never see two lengths. */
	{ 400, "two lengths", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n" GOOD },
	{ 400, "the same length twice", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n" GOOD },
	{ 400, "a list of lengths", "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n" GOOD },
	{ 400, "a signed length", "POST / HTTP/1.1\r\nContent-Length: +1\r\n" GOOD },
	{ 400, "a negative length", "POST / HTTP/1.1\r\nContent-Length: -1\r\n" GOOD },
	{ 400, "a hexadecimal length", "POST / HTTP/1.1\r\nContent-Length: 0x1\r\n" GOOD },
	{ 400, "a length with a blank inside", "POST / HTTP/1.1\r\nContent-Length: 1 2\r\n" GOOD },
	{ 400, "an empty length", "POST / HTTP/1.1\r\nContent-Length:\r\n" GOOD },
	{ 413, "a length beyond 63 bits", "POST / HTTP/1.1\r\nContent-Length: 18446744073709551617\r\n" GOOD },
	{ 400, "length and chunked", "POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n" GOOD },
	{ 400, "chunked and length", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n" GOOD },
	{ 400, "two codings", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n" GOOD },
	{ 501, "chunked twice", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, chunked\r\n" GOOD },
	{ 501, "another coding", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n" GOOD },
	{ 501, "chunked not last", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n" GOOD },
	{ 501, "almost chunked", "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n" GOOD },
	{ 501, "chunked in quotes", "POST / HTTP/1.1\r\nTransfer-Encoding: \"chunked\"\r\n" GOOD },
	{ 501, "an empty coding", "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n" GOOD },
	{ 400, "chunked after a vertical tab", "POST / HTTP/1.1\r\nTransfer-Encoding: \x0b" "chunked\r\n" GOOD },
	{ 400, "a blank in the name of the coding", "POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n" GOOD },
	{ 400, "a folded coding", "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n" GOOD },
	{ 400, "chunked in HTTP/1.0 (9112, 6.1)", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" GOOD },
	{ 417, "another expectation", "POST / HTTP/1.1\r\nExpect: 200-ok\r\n" GOOD },
};

static long parse(struct http1_head *head, const char *bytes, size_t len, struct http1_refusal *r)
{
	struct tap_guard g = tap_guard_new(bytes, len);
	long used = http1_parse_head(head, g.data, g.len, r);

	tap_guard_free(&g);
	return used;
}

/* The same bytes cut anywhere: more is wanted, or it is refused already, never accepted. */
static bool prefixes_are_incomplete(const char *bytes, size_t len)
{
	struct http1_head head;
	struct http1_refusal r;

	for (size_t i = 0; i < len; i++)
		if (parse(&head, bytes, i, &r) >= 0)
			return false;
	return true;
}

static bool scans_in_pieces(const char *bytes, size_t len, long want)
{
	struct tap_guard g = tap_guard_new(bytes, len);
	struct http1_refusal r;
	bool same = true;

	for (size_t i = 0; i < len; i++) {
		size_t scanned = 0;
		long first = http1_scan_head(g.data, i, &scanned, &r);

		same &= first == -2 ? http1_scan_head(g.data, len, &scanned, &r) == want
				    : first == want;
	}
	tap_guard_free(&g);
	return same;
}

static void test_heads(void)
{
	for (size_t i = 0; i < sizeof(head_rows) / sizeof(head_rows[0]); i++) {
		const char *bytes = head_rows[i].bytes;
		/* a row with a NUL inside is one of a fixed length */
		size_t len = bytes[0] == '\x16' ? 6 : strlen(bytes), scanned = 0;
		struct http1_refusal r = { 0 };
		struct http1_head head;
		long used = parse(&head, bytes, len, &r);
		long scan = http1_scan_head(bytes, len, &scanned, &r);

		tap_int(used < 0 ? r.status : 0, head_rows[i].status, "%s", head_rows[i].desc);
		tap_ok(used < 0 || (size_t)used == len, "... all of it");
		tap_ok(prefixes_are_incomplete(bytes, len), "... and nothing less is accepted");
		tap_ok(scans_in_pieces(bytes, len, scan), "... in whatever pieces it comes");
	}
}

static void test_views(void)
{
	static const char bytes[] = "POST /dl/a%20b?x=1?y HTTP/1.1\r\nhOST: Example.org:80\r\n"
				    "X-Two: a\r\nX-Two:  b \r\nConnection: foo , Close\r\n"
				    "Content-Length: 18\r\n\r\nGET /next HTTP/1.1";
	struct http1_refusal r;
	struct http1_head h;
	size_t count = 0;
	long used = http1_parse_head(&h, bytes, sizeof(bytes) - 1, &r);
	const struct http_text *two = http1_field(&h, "x-two", &count);

	tap_int(used, strstr(bytes, "GET") - bytes, "what follows the head is left alone");
	tap_int(h.method, HTTP_POST, "method");
	tap_ok(http_text_is(h.path, "/dl/a%20b"), "the path ends at the first question mark");
	tap_ok(http_text_is(h.query, "x=1?y"), "the query is the rest");
	tap_ok(http_text_is(h.host, "Example.org:80"), "Host, in any case");
	tap_ok(two && http_text_is(*two, "a") && count == 2, "the first of two fields, counted");
	tap_ok(!http1_field(&h, "X-Tw", NULL) && !http1_field(&h, "X-Twoo", NULL), "no other field");
	tap_ok(!h.keep_alive, "close in a list");
	tap_ok(h.has_length && h.length == 18 && !h.chunked, "length");
}

static bool keeps_alive(const char *bytes)
{
	struct http1_refusal r;
	struct http1_head h;

	return http1_parse_head(&h, bytes, strlen(bytes), &r) > 0 && h.keep_alive;
}

static void test_connection(void)
{
	tap_ok(keeps_alive("GET / HTTP/1.1\r\n" GOOD), "HTTP/1.1 stays");
	tap_ok(!keeps_alive("GET / HTTP/1.0\r\n" GOOD), "HTTP/1.0 does not");
	tap_ok(keeps_alive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n" GOOD), "unless it asks");
	tap_ok(!keeps_alive("GET / HTTP/1.1\r\nConnection: keep-alive\r\nConnection: CLOSE\r\n" GOOD),
	       "close wins");
	tap_ok(keeps_alive("GET / HTTP/1.1\r\nConnection: closed\r\n" GOOD), "closed is not close");
}

/* A head of len bytes, all of it fields. */
static long parse_long(size_t len, const char *start, char fill, int *ret_status)
{
	char *bytes = malloc(len);
	struct http1_refusal r = { 0 };
	struct http1_head h;
	long used;

	memset(bytes, fill, len);
	memcpy(bytes, start, strlen(start));
	memcpy(bytes + len - 4, "\r\n\r\n", 4);
	used = parse(&h, bytes, len, &r);
	*ret_status = r.status;
	free(bytes);
	return used;
}

/* Write text, and a NUL, at an offset. Return: the offset behind it. */
static size_t put(char *bytes, size_t size, size_t at, const char *text)
{
	if (str_copy(bytes + at, size - at, text) < 0)
		tap_bail("%zu bytes are too few", size);
	return at + strlen(text);
}

static void test_bounds(void)
{
	char many[HTTP1_HEAD_MAX] = "GET / HTTP/1.1\r\nHost: h\r\n";
	size_t len = strlen(many);
	struct http1_refusal r;
	struct http1_head h;
	int status;

	tap_int(parse_long(HTTP1_HEAD_MAX, "GET / HTTP/1.1\r\nHost: h\r\nX: ", 'x', &status), HTTP1_HEAD_MAX,
		"a head of the greatest length");
	tap_ok(parse_long(HTTP1_HEAD_MAX + 1, "GET / HTTP/1.1\r\nHost: h\r\nX: ", 'x', &status) == -1 &&
		       status == 431,
	       "one byte more: 431");
	tap_ok(parse_long(HTTP1_HEAD_MAX + 4, "GET /", 'x', &status) == -1 && status == 414,
	       "a request line without end: 414");
	tap_ok(parse_long(HTTP1_TARGET_MAX + 100, "GET / HTTP/1.1\r\nHost: h\r\nX: ", 'x', &status) > 0,
	       "a long field is no long target");
	for (int i = 1; i < HTTP1_FIELDS_MAX; i++)
		len = put(many, sizeof(many), len, "X: y\r\n");
	(void)put(many, sizeof(many), len, "\r\n");
	tap_ok(parse(&h, many, strlen(many), &r) > 0, "as many fields as there may be");
	(void)put(many, sizeof(many), len, "X: y\r\n\r\n");
	tap_ok(parse(&h, many, strlen(many), &r) == -1 && r.status == 431, "one more: 431");
	memset(many, 'a', sizeof(many));
	memcpy(many, "GET /", 5);
	(void)put(many, sizeof(many), 4 + HTTP1_TARGET_MAX, " HTTP/1.1\r\n" GOOD);
	tap_ok(parse(&h, many, strlen(many), &r) > 0, "a target of the greatest length");
	(void)put(many, sizeof(many), 4 + HTTP1_TARGET_MAX, "a HTTP/1.1\r\n" GOOD);
	tap_ok(parse(&h, many, strlen(many), &r) == -1 && r.status == 414, "one byte more: 414");
}

/* result: 1 whole, -1 malformed, -2 more wanted. rest: bytes behind the body. */
static const struct {
	int result;
	const char *desc, *bytes, *payload;
	size_t rest;
} chunk_rows[] = {
	{ 1, "two chunks", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", 0 },
	{ 1, "none", "0\r\n\r\n", "", 0 },
	{ 1, "hexadecimal in both cases", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n",
	  "01234567890123456789", 0 },
	{ 1, "leading zeros", "0003\r\nabc\r\n000\r\n\r\n", "abc", 0 },
	{ 1, "extensions", "3;a=b;c=\"d e\"\r\nabc\r\n0;x\r\n\r\n", "abc", 0 },
	{ 1, "trailers", "0\r\nX: y\r\nZ:\r\n\r\n", "", 0 },
	{ 1, "the next request stays", "1\r\na\r\n0\r\n\r\nGET /", "a", 5 },
	{ 1, "payload that looks like an end", "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n", "\r\n0\r\n\r\n", 0 },
	{ -2, "cut in a chunk", "5\r\nabc", "abc", 0 },
	{ -2, "cut in a size", "5", "", 0 },
	{ -2, "cut before the last line", "0\r\n", "", 0 },
	{ -1, "no size", "\r\nabc", "", 0 },
	{ -1, "a size that is no number", "x\r\nabc", "", 0 },
	{ -1, "a size with a prefix", "0x3\r\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "a signed size", "+3\r\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "a blank before the size", " 3\r\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "a blank after the size", "3 \r\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "a size of nine digits", "000000003\r\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "a size that would wrap", "100000000\r\nabc", "", 0 },
	{ -1, "LF alone after a size", "3\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "CR alone after a size", "3\rabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "a chunk longer than its size", "3\r\nabcd\r\n0\r\n\r\n", "abc", 0 },
	{ -1, "a chunk shorter than its size", "3\r\nab\r\n0\r\n\r\n", "ab\r", 0 },
	{ -1, "LF alone after a chunk", "3\r\nabc\n0\r\n\r\n", "abc", 0 },
	{ -1, "LF alone in an extension", "3;a\nb\r\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "a control character in an extension", "3;\x01\r\nabc\r\n0\r\n\r\n", "", 0 },
	{ -1, "LF alone at the end", "0\r\n\n", "", 0 },
	{ -1, "a folded trailer", "0\r\nX: y\r\n z\r\n\r\n", "", 0 },
	{ -1, "a trailer without a colon", "0\r\nX\r\n\r\n", "", 0 },
	{ -1, "a trailer without a name", "0\r\n: y\r\n\r\n", "", 0 },
};

/* Decode in two pieces, the second one starting at cut. */
static int decode(const char *bytes, size_t cut, char *payload, size_t *ret_used)
{
	struct http1_chunked c = { 0 };
	size_t total = strlen(bytes), at[3] = { 0, cut, total }, out = 0;
	int result = -2;

	*ret_used = 0;
	for (int i = 0; i < 2 && result == -2; i++) {
		struct tap_guard g = tap_guard_new(bytes + at[i], at[i + 1] - at[i]);
		size_t len = g.len, used;

		result = http1_decode_chunked(&c, g.data, &len, &used);
		memcpy(payload + out, g.data, len);
		out += len;
		*ret_used += used;
		tap_guard_free(&g);
	}
	payload[out] = '\0';
	return result;
}

static void test_chunks(void)
{
	for (size_t i = 0; i < sizeof(chunk_rows) / sizeof(chunk_rows[0]); i++) {
		const char *bytes = chunk_rows[i].bytes;
		size_t len = strlen(bytes), used, wrong = 0;
		char payload[256];

		for (size_t cut = 0; cut <= len; cut++) {
			int result = decode(bytes, cut, payload, &used);

			wrong += result != chunk_rows[i].result || strcmp(payload, chunk_rows[i].payload) ||
				 (result == 1 && len - used != chunk_rows[i].rest) ||
				 (result == -2 && used != len);
		}
		tap_int(wrong, 0, "%s, cut at %zu places", chunk_rows[i].desc, len);
	}
}

static int decode_filled(const char *start, char fill, size_t fill_len, const char *end)
{
	size_t len = strlen(start) + fill_len + strlen(end), used;
	struct http1_chunked c = { 0 };
	char *bytes = malloc(len + 1);
	int result;

	memset(bytes, fill, len);
	memcpy(bytes, start, strlen(start));
	memcpy(bytes + len - strlen(end), end, strlen(end));
	result = http1_decode_chunked(&c, bytes, &len, &used);
	free(bytes);
	return result;
}

static void test_chunk_bounds(void)
{
	tap_int(decode_filled("0;", 'x', HTTP1_CHUNK_EXTRA_MAX, "\r\n\r\n"), 1, "a long extension");
	tap_int(decode_filled("0;", 'x', HTTP1_CHUNK_EXTRA_MAX + 1, "\r\n\r\n"), -1, "one byte more");
	tap_int(decode_filled("0\r\nX: ", 'x', HTTP1_CHUNK_EXTRA_MAX + 1, "\r\n\r\n"), -1, "a long trailer");
	tap_int(decode_filled("0\r\n", 'X', HTTP1_CHUNK_EXTRA_MAX + 1, ":\r\n\r\n"), -1,
		"a long trailer name");
}

int main(void)
{
	test_heads();
	test_views();
	test_connection();
	test_bounds();
	test_chunks();
	test_chunk_bounds();
	return tap_done();
}
