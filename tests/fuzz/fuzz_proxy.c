/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_proxy.c - everything the egress proxy parses
 *
 * The first byte chooses the parser. A request that passes is written as the server gets it, and that
 * must be read again with the same host, path and body: no two programs may see two requests in it. Bodies
 * in chunks are read at once and byte by byte with one result. A host that passes is its own form.
 */
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/proxy/dns.h"
#include "runtime/proxy/http.h"
#include "tests/fuzz/fuzz.h"

static void check_host(const struct net_dest *host)
{
	struct net_dest again;

	FUZZ_MUST(strlen(host->name) < NET_NAME_MAX);
	FUZZ_MUST(net_dest_parse(host->name, strlen(host->name), &again) == 0);
	FUZZ_MUST(again.is_address == host->is_address && strcmp(again.name, host->name) == 0);
}

static void fuzz_request(const char *data, size_t len)
{
	static struct http_head h, again;
	struct net_dest host;
	const char *why;
	struct buf out;
	uint16_t port;

	if (http_head_end(data, len, 0) != len || http_parse_request(&h, data, len, &why) != 0)
		return;
	if (net_dest_port_parse(h.text + h.authority.at, h.authority.len, 80, &host, &port) < 0)
		return;
	check_host(&host);
	if (h.is_connect)
		return;
	buf_init(&out, 2 * HTTP_HEAD_MAX);
	http_write_request(&out, &h, "host.example", true);
	FUZZ_MUST(!out.overflow);
	if (out.len > HTTP_HEAD_MAX || h.line_count + 4 > HTTP_LINES_MAX) {
		buf_done(&out);
		return;
	}
	FUZZ_MUST(http_head_end(out.data, out.len, 0) == out.len);
	FUZZ_MUST(http_parse_request(&again, out.data, out.len, &why) == 0);
	FUZZ_MUST(again.authority.len == strlen("host.example"));
	FUZZ_MUST(http_request_body(&again) == http_request_body(&h) && again.length == h.length);
	FUZZ_MUST(again.method.len == h.method.len && again.path.len >= h.path.len);
	buf_done(&out);
}

static void fuzz_response(const char *data, size_t len)
{
	static struct http_head h, again;
	struct buf out;

	if (http_head_end(data, len, 0) != len || http_parse_response(&h, data, len) < 0)
		return;
	buf_init(&out, 2 * HTTP_HEAD_MAX);
	http_write_response(&out, &h, true);
	FUZZ_MUST(!out.overflow);
	if (out.len <= HTTP_HEAD_MAX && h.line_count + 1 <= HTTP_LINES_MAX && h.minor == 1) {
		FUZZ_MUST(http_parse_response(&again, out.data, out.len) == 0);
		FUZZ_MUST(again.status == h.status);
		FUZZ_MUST(http_response_body(&again, false) == http_response_body(&h, false));
	}
	buf_done(&out);
}

static void fuzz_chunks(const char *data, size_t len)
{
	struct http_chunks whole = { .state = CHUNK_SIZE }, single = { .state = CHUNK_SIZE };
	long n = http_chunks_scan(&whole, data, len), at = 0, r = 0;

	while ((size_t)at < len && r >= 0 && single.state != CHUNK_DONE) {
		r = http_chunks_scan(&single, data + at, 1);
		at += r > 0 ? r : 0;
	}
	FUZZ_MUST((n < 0) == (r < 0));
	FUZZ_MUST(n < 0 || (n == at && whole.state == single.state && whole.left == single.left));
	FUZZ_MUST(n <= (long)len);
}

static void fuzz_socks(const uint8_t *data, size_t len)
{
	enum socks_reply reply;
	struct net_dest host;
	uint16_t port;
	int n = socks_request(data, len, &host, &port, &reply);

	FUZZ_MUST(n <= (int)len && n <= SOCKS_REQUEST_MAX);
	if (n > 0)
		check_host(&host);
	FUZZ_MUST(socks_greeting(data, len) <= (int)len);
}

static void fuzz_dns(const uint8_t *data, size_t len)
{
	struct dns_addresses found = { 0 };
	uint8_t query[DNS_QUERY_MAX];
	size_t query_len = dns_build_query(query, 0x1234, "a.example", DNS_TYPE_A);
	struct net_dest host;

	FUZZ_MUST(query_len <= sizeof(query));
	(void)dns_parse_answer(data, len, query, query_len, &found);
	FUZZ_MUST(found.count <= DNS_ADDRESSES_MAX);
	if (dns_query_name(data, len, &host) == 0 && host.name[0])
		check_host(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* The parsers get memory of their own size, so that a look beyond it is noticed. */
	char *copy = malloc(size ? size : 1);

	FUZZ_MUST(copy);
	if (size > 1) {
		memcpy(copy, data + 1, size - 1);
		switch (data[0]) {
		case 'q':
			fuzz_request(copy, size - 1);
			break;
		case 'r':
			fuzz_response(copy, size - 1);
			break;
		case 'c':
			fuzz_chunks(copy, size - 1);
			break;
		case 's':
			fuzz_socks((const uint8_t *)copy, size - 1);
			break;
		default:
			fuzz_dns((const uint8_t *)copy, size - 1);
			break;
		}
	}
	free(copy);
	return 0;
}
