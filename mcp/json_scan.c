/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/json_scan.c - strict check of JSON text before any library sees it
 *
 * Runs in the front, without privilege, on bytes a client sent: all of them are hostile. Allocates
 * nothing, recurses nowhere, never reads at or beyond text + len.
 */
#include "mcp/json_scan.h"

#include <stdint.h>
#include <string.h>

#include "mcp/bounds.h"
#include "runtime/base/str.h"

struct scan {
	const unsigned char *p, *end;
	uint64_t objects; /* bit d: the container at depth d is an object */
	unsigned int depth, nodes;
	const char *refused; /* the first escape that is JSON and stands for no text */
};

static const char nul_escape[] = "\\u0000 is not accepted", lone_surrogate[] = "lone surrogate";

enum want { WANT_VALUE, WANT_VALUE_OR_END, WANT_KEY, WANT_KEY_OR_END, WANT_NEXT, WANT_NOTHING };

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static int hex_value(int c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int peek(const struct scan *s)
{
	return s->p < s->end ? *s->p : -1;
}

static void skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
		s->p++;
}

/* Four hexadecimal digits. Return: the code unit, -1. */
static int scan_hex4(struct scan *s)
{
	int unit = 0;

	if (s->end - s->p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(*s->p++);

		if (digit < 0)
			return -1;
		unit = unit * 16 + digit;
	}
	return unit;
}

static void refuse(struct scan *s, const char *why)
{
	if (!s->refused)
		s->refused = why;
}

/* After a high surrogate: its other half, or nothing is taken. */
static bool scan_low_surrogate(struct scan *s)
{
	const unsigned char *before = s->p;
	int unit;

	if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
		return false;
	s->p += 2;
	unit = scan_hex4(s);
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return true;
	s->p = before;
	return false;
}

/* After "\u". */
static const char *scan_unicode_escape(struct scan *s)
{
	int unit = scan_hex4(s);

	if (unit < 0)
		return "bad \\u escape";
	if (unit == 0)
		refuse(s, nul_escape);
	else if (unit >= 0xdc00 && unit <= 0xdfff)
		refuse(s, lone_surrogate);
	else if (unit >= 0xd800 && unit <= 0xdbff && !scan_low_surrogate(s))
		refuse(s, lone_surrogate);
	return NULL;
}

/* After the backslash. */
static const char *scan_escape(struct scan *s)
{
	int c = peek(s);

	if (c < 0)
		return "text ends inside a string";
	s->p++;
	if (c == 'u')
		return scan_unicode_escape(s);
	return strchr("\"\\/bfnrt", c) && c != 0 ? NULL : "unknown escape in a string";
}

/* At the opening quote. */
static const char *scan_string(struct scan *s)
{
	const char *why = NULL;

	s->p++;
	while (!why) {
		while (s->p < s->end && *s->p >= 0x20 && *s->p < 0x80 && *s->p != '"' && *s->p != '\\')
			s->p++;
		if (s->p == s->end)
			return "text ends inside a string";
		if (*s->p == '"') {
			s->p++;
			return NULL;
		}
		if (*s->p == '\\') {
			s->p++;
			why = scan_escape(s);
		} else if (*s->p < 0x20) {
			why = "raw control character in a string";
		} else {
			uint32_t cp;
			int n = str_utf8_next(s->p, (size_t)(s->end - s->p), &cp);

			if (n <= 0)
				return "not UTF-8";
			s->p += n;
		}
	}
	return why;
}

static bool scan_digits(struct scan *s)
{
	const unsigned char *start = s->p;

	while (is_digit(peek(s)))
		s->p++;
	return s->p > start;
}

static const char *scan_number(struct scan *s)
{
	const unsigned char *start = s->p;

	if (peek(s) == '-')
		s->p++;
	if (peek(s) == '0')
		s->p++;
	else if (!scan_digits(s))
		return "bad number";
	if (peek(s) == '.') {
		s->p++;
		if (!scan_digits(s))
			return "bad number";
	}
	if (peek(s) == 'e' || peek(s) == 'E') {
		s->p++;
		if (peek(s) == '+' || peek(s) == '-')
			s->p++;
		if (!scan_digits(s))
			return "bad number";
	}
	return s->p - start > LIMIT_JSON_NUMBER ? "number too long" : NULL;
}

static const char *scan_literal(struct scan *s)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(s->end - s->p) >= n && !memcmp(s->p, words[i], n)) {
			s->p += n;
			return NULL;
		}
	}
	return "unexpected character";
}

static const char *open_container(struct scan *s, bool object, enum want *want)
{
	if (s->depth == LIMIT_JSON_DEPTH)
		return "nested too deeply";
	s->p++;
	if (object)
		s->objects |= UINT64_C(1) << s->depth;
	else
		s->objects &= ~(UINT64_C(1) << s->depth);
	s->depth++;
	*want = object ? WANT_KEY_OR_END : WANT_VALUE_OR_END;
	return NULL;
}

static bool in_object(const struct scan *s)
{
	return s->objects >> (s->depth - 1) & 1;
}

static enum want after_value(const struct scan *s)
{
	return s->depth ? WANT_NEXT : WANT_NOTHING;
}

static const char *scan_value(struct scan *s, enum want *want)
{
	const char *why;
	int c = peek(s);

	if (++s->nodes > LIMIT_JSON_NODES)
		return "too many values";
	if (c == '{' || c == '[')
		return open_container(s, c == '{', want);
	if (c == '"')
		why = scan_string(s);
	else if (c == '-' || is_digit(c))
		why = scan_number(s);
	else
		why = scan_literal(s);
	*want = after_value(s);
	return why;
}

static const char *scan_key(struct scan *s, enum want *want)
{
	const char *why;

	if (peek(s) != '"')
		return "expected a key";
	why = scan_string(s);
	if (why)
		return why;
	skip_space(s);
	if (peek(s) != ':')
		return "expected a colon";
	s->p++;
	*want = WANT_VALUE;
	return NULL;
}

/* A comma, or the end of the innermost container. */
static const char *scan_next(struct scan *s, enum want *want)
{
	bool object = in_object(s);
	int c = peek(s);

	if (c == ',') {
		*want = object ? WANT_KEY : WANT_VALUE;
	} else if (c == (object ? '}' : ']')) {
		s->depth--;
		*want = after_value(s);
	} else {
		return "expected a comma or the end";
	}
	s->p++;
	return NULL;
}

static const char *scan_step(struct scan *s, enum want *want)
{
	switch (*want) {
	case WANT_VALUE_OR_END:
		if (peek(s) == ']')
			return scan_next(s, want);
		return scan_value(s, want);
	case WANT_KEY_OR_END:
		if (peek(s) == '}')
			return scan_next(s, want);
		return scan_key(s, want);
	case WANT_KEY:
		return scan_key(s, want);
	case WANT_NEXT:
		return scan_next(s, want);
	case WANT_VALUE:
	case WANT_NOTHING:
		break;
	}
	return scan_value(s, want);
}

/* One value of any kind; s->p is left behind it. */
static const char *scan_whole(struct scan *s)
{
	enum want want = WANT_VALUE;
	const char *why = NULL;

	while (!why && want != WANT_NOTHING) {
		skip_space(s);
		if (s->p == s->end)
			return "text ends too early";
		why = scan_step(s, &want);
	}
	return why;
}

const char *json_scan(const char *text, size_t len)
{
	struct scan s = { .p = (const unsigned char *)text };
	const char *why;

	s.end = s.p + len;
	why = scan_whole(&s);
	if (why)
		return why;
	skip_space(&s);
	return s.p == s.end ? s.refused : "something follows the JSON text";
}

bool json_scan_is_json(const char *why)
{
	return !why || why == nul_escape || why == lone_surrogate;
}

/* Next character of a string's content (p is not at the closing quote), escapes resolved; only
 * ASCII matters here, everything else gives -1. */
static int next_plain(const unsigned char **p)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *found;
	int c = *(*p)++, unit = 0;

	if (c != '\\')
		return c < 0x80 ? c : -1;
	c = *(*p)++;
	if (c != 'u') {
		found = strchr(from, c);
		return found ? to[found - from] : c;
	}
	for (int i = 0; i < 4; i++)
		unit = unit * 16 + hex_value(*(*p)++);
	return unit < 0x80 ? unit : -1;
}

/* Is the string at its opening quote this name? Keys may be written with escapes. */
static bool key_is(const unsigned char *p, const char *name)
{
	p++;
	for (; *name; name++)
		if (*p == '"' || next_plain(&p) != (unsigned char)*name)
			return false;
	return *p == '"';
}

bool json_scan_member(const char *text, size_t len, const char *name, const char **ret_text,
		      size_t *ret_len)
{
	struct scan s = { .p = (const unsigned char *)text };
	enum want want;

	s.end = s.p + len;
	skip_space(&s);
	if (peek(&s) != '{')
		return false;
	do {
		const unsigned char *value;
		bool found;

		s.p++;
		skip_space(&s);
		if (peek(&s) != '"')
			return false;
		found = key_is(s.p, name);
		if (scan_key(&s, &want))
			return false;
		skip_space(&s);
		value = s.p;
		s.nodes = 0;
		if (scan_whole(&s))
			return false;
		if (found) {
			*ret_text = (const char *)value;
			*ret_len = (size_t)(s.p - value);
			return true;
		}
		skip_space(&s);
	} while (peek(&s) == ',');
	return false;
}
