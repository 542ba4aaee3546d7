/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/str.c - strict parsing of numbers, sizes and durations; escaping; UTF-8
 *
 * Pure functions, used in every process on untrusted text.
 */
#include "runtime/base/str.h"

#include <stdio.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int str_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!text || !is_digit(*text))
		return -1;
	for (; *text; text++) {
		if (!is_digit(*text) || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -1;
	}
	if (value < min || value > max)
		return -1;
	*ret = value;
	return 0;
}

/* A decimal number as it is written: whole part, up to nine digits of fraction, and what follows. */
struct decimal {
	uint64_t whole;
	uint64_t fraction; /* in units of 1/scale */
	uint64_t scale;    /* 1 when there is no point */
	const char *rest;
};

static int parse_decimal(const char *text, struct decimal *ret)
{
	struct decimal d = { .scale = 1 };

	if (!text || !is_digit(*text))
		return -1;
	for (; is_digit(*text); text++) {
		if (__builtin_mul_overflow(d.whole, 10, &d.whole) ||
		    __builtin_add_overflow(d.whole, (uint64_t)(*text - '0'), &d.whole))
			return -1;
	}
	if (*text == '.') {
		if (!is_digit(*++text))
			return -1;
		for (; is_digit(*text); text++) {
			if (d.scale >= 1000000000U)
				return -1;
			d.fraction = d.fraction * 10 + (uint64_t)(*text - '0');
			d.scale *= 10;
		}
	}
	d.rest = text;
	*ret = d;
	return 0;
}

/* scale_decimal() - d * unit, rounded down. More than nothing may not become nothing. */
static int scale_decimal(const struct decimal *d, uint64_t unit, uint64_t *ret)
{
	unsigned __int128 part = (unsigned __int128)d->fraction * unit / d->scale;
	uint64_t value;

	if (__builtin_mul_overflow(d->whole, unit, &value) ||
	    __builtin_add_overflow(value, (uint64_t)part, &value))
		return -1;
	if (value == 0 && d->fraction > 0)
		return -1;
	*ret = value;
	return 0;
}

struct suffix {
	char letter;
	uint64_t unit;
};

/* parse_with_suffix() - a number and at most one suffix; a fraction needs one. */
static int parse_with_suffix(const char *text, const struct suffix *suffixes, uint64_t bare_unit,
			     uint64_t *ret)
{
	struct decimal d;

	if (parse_decimal(text, &d) < 0)
		return -1;
	if (*d.rest == '\0')
		return d.scale == 1 ? scale_decimal(&d, bare_unit, ret) : -1;
	if (d.rest[1] != '\0')
		return -1;
	for (; suffixes->letter; suffixes++)
		if (suffixes->letter == *d.rest)
			return scale_decimal(&d, suffixes->unit, ret);
	return -1;
}

int str_parse_size(const char *text, uint64_t *ret_bytes)
{
	static const struct suffix suffixes[] = {
		{ 'K', UINT64_C(1) << 10 }, { 'M', UINT64_C(1) << 20 }, { 'G', UINT64_C(1) << 30 },
		{ 'k', UINT64_C(1) << 10 }, { 'm', UINT64_C(1) << 20 }, { 'g', UINT64_C(1) << 30 },
		{ '\0', 0 },
	};

	return parse_with_suffix(text, suffixes, 1, ret_bytes);
}

int str_parse_duration_ms(const char *text, uint64_t *ret_ms)
{
	static const struct suffix suffixes[] = {
		{ 's', 1000 },     { 'm', 60 * 1000 }, { 'h', 3600 * 1000 },
		{ 'd', 86400000 }, { '\0', 0 },
	};

	return parse_with_suffix(text, suffixes, 1000, ret_ms);
}

int str_parse_cpus(const char *text, uint32_t *ret_milli)
{
	struct decimal d;
	uint64_t milli;

	if (parse_decimal(text, &d) < 0 || *d.rest != '\0' || d.scale > 1000)
		return -1;
	if (scale_decimal(&d, 1000, &milli) < 0 || milli > UINT32_MAX)
		return -1;
	*ret_milli = (uint32_t)milli;
	return 0;
}

const char *str_format_size(uint64_t bytes, char *text, size_t size)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned __int128 tenths = (unsigned __int128)bytes * 10;
	unsigned int i = 0;
	uint64_t unit = 1;

	/* one step up as soon as the rounded number would read 1024.0 */
	while (i < 6 && (tenths + unit / 2) / unit >= 10240) {
		unit *= 1024;
		i++;
	}
	tenths = (tenths + unit / 2) / unit;
	if (tenths % 10 == 0)
		(void)snprintf(text, size, "%llu %s", (unsigned long long)(tenths / 10), names[i]);
	else
		(void)snprintf(text, size, "%llu.%llu %s", (unsigned long long)(tenths / 10),
			       (unsigned long long)(tenths % 10), names[i]);
	return text;
}

int str_copy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	if (len >= size)
		return -1;
	memcpy(dst, src, len + 1);
	return 0;
}

/* ---- UTF-8 (Unicode 15, table 3-7) ---- */

/* sequence_of() - length of a sequence by its first byte and the range its second byte must be in;
 * the ranges exclude overlong forms, surrogates and what is above U+10FFFF. */
static int sequence_of(unsigned char lead, unsigned char *ret_low, unsigned char *ret_high)
{
	*ret_low = 0x80;
	*ret_high = 0xbf;
	if (lead < 0x80)
		return 1;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 2;
	if (lead >= 0xe0 && lead <= 0xef) {
		if (lead == 0xe0)
			*ret_low = 0xa0;
		if (lead == 0xed)
			*ret_high = 0x9f;
		return 3;
	}
	if (lead >= 0xf0 && lead <= 0xf4) {
		if (lead == 0xf0)
			*ret_low = 0x90;
		if (lead == 0xf4)
			*ret_high = 0x8f;
		return 4;
	}
	return 0;
}

int str_utf8_next(const unsigned char *bytes, size_t len, uint32_t *ret_cp)
{
	static const unsigned char lead_mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	unsigned char low, high;
	uint32_t cp;
	int need;

	if (len == 0)
		return -1;
	need = sequence_of(bytes[0], &low, &high);
	if (need == 0)
		return 0;
	cp = bytes[0] & lead_mask[need];
	for (int i = 1; i < need; i++) {
		if ((size_t)i >= len)
			return -1;
		if (bytes[i] < low || bytes[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
		cp = cp << 6 | (bytes[i] & 0x3f);
	}
	if (ret_cp)
		*ret_cp = cp;
	return need;
}

bool str_utf8_is_valid(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	while (len > 0) {
		int n = str_utf8_next(p, len, NULL);

		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* ---- escaping ---- */

/* escape_one() - one character of the input in printable form. Return: bytes of input used. */
static size_t escape_one(const unsigned char *p, size_t len, char piece[20], size_t *ret_len)
{
	uint32_t cp = 0;
	int n = str_utf8_next(p, len, &cp);
	size_t used = n > 0 ? (size_t)n : 1, out = 0;

	if (n == 1 && cp == '\\') {
		memcpy(piece, "\\\\", 2);
		*ret_len = 2;
		return 1;
	}
	if (n > 0 && cp >= 0x20 && (cp < 0x7f || cp > 0x9f)) {
		memcpy(piece, p, used);
		*ret_len = used;
		return used;
	}
	for (size_t i = 0; i < used; i++)
		out += (size_t)snprintf(piece + out, 20 - out, "\\x%02x", p[i]);
	*ret_len = out;
	return used;
}

const char *str_escape(char *dst, size_t size, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t out = 0, cut = 0; /* cut: the last place where "..." still fits */

	if (size == 0)
		return dst;
	while (len > 0) {
		char piece[20];
		size_t piece_len, used = escape_one(p, len, piece, &piece_len);

		if (out + 4 <= size)
			cut = out;
		if (piece_len >= size - out) {
			(void)snprintf(dst + cut, size - cut, "...");
			return dst;
		}
		memcpy(dst + out, piece, piece_len);
		out += piece_len;
		p += used;
		len -= used;
	}
	dst[out] = '\0';
	return dst;
}

/* ---- names ---- */

static bool is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c);
}

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_digit(text[i]) && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	return true;
}

bool str_is_key(const char *text)
{
	enum { SLUG_MAX = 24, DIGEST_LEN = 6 };
	size_t len = text ? strnlen(text, SLUG_MAX + 1 + DIGEST_LEN + 1) : 0;

	if (len < 1 + 1 + DIGEST_LEN || len > SLUG_MAX + 1 + DIGEST_LEN || !is_lower_alnum(text[0]))
		return false;
	len -= DIGEST_LEN + 1;
	for (size_t i = 0; i < len; i++)
		if (!is_lower_alnum(text[i]) && text[i] != '-')
			return false;
	return text[len] == '-' && is_hex(text + len + 1, DIGEST_LEN);
}

bool str_is_owner_id(const char *text)
{
	enum { LEN = 8 };

	return text && strnlen(text, LEN + 1) == LEN && is_hex(text, LEN);
}

bool str_is_name(const char *text, size_t max)
{
	size_t len = text ? strnlen(text, max + 1) : 0;

	if (len == 0 || len > max || !is_lower_alnum(text[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_lower_alnum(text[i]) && !strchr("._-", text[i]))
			return false;
	return true;
}
