/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/range.c - which bytes of a file a request wants (RFC 9110, 14); a pure function of the front */
#include "mcp/range.h"

#include <stdbool.h>
#include <string.h>

#include "runtime/base/str.h"

enum { DIGITS_MAX = 20 };

/* Digits at *at, which is moved behind them. Return: 1 a number, 0 no digit, -1 too large. */
static int take_number(const char **at, const char *end, uint64_t *ret)
{
	char digits[DIGITS_MAX + 1];
	size_t n = 0;

	while (*at < end && **at >= '0' && **at <= '9') {
		if (n == DIGITS_MAX)
			return -1;
		digits[n++] = *(*at)++;
	}
	digits[n] = '\0';
	if (n == 0)
		return 0;
	return str_parse_u64(digits, 0, UINT64_MAX, ret) < 0 ? -1 : 1;
}

/* "first-last", "first-" and "-suffix" as written. Return: false for anything else. */
static bool take_apart(const char *at, const char *end, bool *has_first, uint64_t *first, bool *has_last,
		       uint64_t *last)
{
	int r = take_number(&at, end, first);

	*has_first = r == 1;
	if (r < 0 || at == end || *at++ != '-')
		return false;
	r = take_number(&at, end, last);
	*has_last = r == 1;
	return r >= 0 && at == end && (*has_first || *has_last);
}

enum range_kind range_read(const struct http_text *text, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
{
	static const char unit[] = "bytes=";
	size_t prefix = sizeof(unit) - 1;
	bool has_first, has_last;
	uint64_t first = 0, last = 0;

	*ret_first = 0;
	*ret_len = size;
	if (!text || text->len <= prefix || memcmp(text->data, unit, prefix) != 0 ||
	    !take_apart(text->data + prefix, text->data + text->len, &has_first, &first, &has_last, &last))
		return RANGE_ALL;
	if (has_first && has_last && last < first)
		return RANGE_ALL; /* not a range at all */
	if (!has_first) { /* the last bytes */
		if (last == 0 || size == 0)
			return RANGE_NONE;
		*ret_len = last < size ? last : size;
		*ret_first = size - *ret_len;
		return RANGE_PART;
	}
	if (first >= size)
		return RANGE_NONE;
	*ret_first = first;
	*ret_len = has_last && last < size - 1 ? last - first + 1 : size - first;
	return RANGE_PART;
}
