/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz_http1.c - a head means the same however it comes; views stay inside; chunks never grow */
#include <string.h>

#include "mcp/http1.h"
#include "tests/fuzz/fuzz.h"

static bool is_inside(struct http_text t, const char *text, size_t len)
{
	return !t.data ? !t.len : t.data >= text && t.data + t.len <= text + len;
}

static void check_head(const struct http1_head *h, const char *text, size_t used)
{
	FUZZ_MUST(used <= HTTP1_HEAD_MAX && memcmp(text + used - 4, "\r\n\r\n", 4) == 0);
	FUZZ_MUST(is_inside(h->method_text, text, used) && is_inside(h->target, text, used));
	FUZZ_MUST(is_inside(h->path, text, used) && is_inside(h->query, text, used));
	FUZZ_MUST(h->path.len && h->path.data[0] == '/' && !(h->chunked && h->has_length));
	FUZZ_MUST(h->minor == 0 || h->host.len);
	for (size_t i = 0; i < h->field_count; i++) {
		FUZZ_MUST(is_inside(h->fields[i].name, text, used) && h->fields[i].name.len);
		FUZZ_MUST(is_inside(h->fields[i].value, text, used));
		FUZZ_MUST(!memchr(h->fields[i].value.data, '\n', h->fields[i].value.len));
	}
}

static void check_heads(const char *text, size_t len)
{
	struct http1_refusal r = { 0 };
	struct http1_head h;
	long used = http1_parse_head(&h, text, len, &r), scan;
	size_t scanned = 0, middle = len / 2;

	scan = http1_scan_head(text, middle, &scanned, &r);
	if (scan == -2)
		scan = http1_scan_head(text, len, &scanned, &r);
	FUZZ_MUST((used == -2) == (scan == -2) && (used < 0 || used == scan));
	FUZZ_MUST(used != -1 || (r.status >= 400 && r.why));
	if (used > 0)
		check_head(&h, text, (size_t)used);
}

/* One call, and one byte at a time. */
static void check_chunks(const char *text, size_t len)
{
	struct http1_chunked whole = { 0 }, bytewise = { 0 };
	char *copy = malloc(len + 1);
	size_t out = len, used, used_sum = 0, out_sum = 0;
	int result, step = -2;

	memcpy(copy, text, len);
	result = http1_decode_chunked(&whole, copy, &out, &used);
	FUZZ_MUST(out <= used && used <= len);
	for (size_t i = 0; i < len && step == -2; i++) {
		char byte = text[i];
		size_t n = 1, one;

		step = http1_decode_chunked(&bytewise, &byte, &n, &one);
		FUZZ_MUST(n == 0 || (out_sum < out && copy[out_sum] == byte));
		used_sum += one;
		out_sum += n;
	}
	FUZZ_MUST(step == result && out_sum == out && (result == -1 || used_sum == used));
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_heads((const char *)data, size);
	check_chunks((const char *)data, size);
	return 0;
}
