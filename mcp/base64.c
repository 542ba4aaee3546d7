/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/base64.c - RFC 4648, strict: one text for each value
 *
 * Runs in the front, on hostile text. Leniency here would let two texts that differ name the same thing.
 */
#include "mcp/base64.h"

#include <stdint.h>

static const char alphabets[2][65] = {
	[BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	[BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

size_t base64_length(enum base64_kind kind, size_t len)
{
	return kind == BASE64_STANDARD ? (len + 2) / 3 * 4 : (len * 4 + 2) / 3;
}

void base64_encode(enum base64_kind kind, const void *bytes, size_t len, char *text)
{
	const uint8_t *in = bytes;
	const char *alphabet = alphabets[kind];
	size_t i;

	for (i = 0; i + 2 < len; i += 3) {
		*text++ = alphabet[in[i] >> 2];
		*text++ = alphabet[(in[i] & 3) << 4 | in[i + 1] >> 4];
		*text++ = alphabet[(in[i + 1] & 15) << 2 | in[i + 2] >> 6];
		*text++ = alphabet[in[i + 2] & 63];
	}
	if (i == len)
		return;
	*text++ = alphabet[in[i] >> 2];
	*text++ = alphabet[(in[i] & 3) << 4 | (i + 1 < len ? in[i + 1] >> 4 : 0)];
	if (i + 1 < len)
		*text++ = alphabet[(in[i + 1] & 15) << 2];
	if (kind == BASE64_URL)
		return;
	*text++ = '=';
	if (i + 1 == len)
		*text = '=';
}

static int value_of(enum base64_kind kind, char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == alphabets[kind][62])
		return 62;
	return c == alphabets[kind][63] ? 63 : -1;
}

/* Return: characters before the padding, -1 when that is not right. */
static long strip_padding(enum base64_kind kind, const char *text, size_t len)
{
	if (kind == BASE64_URL)
		return len % 4 == 1 ? -1 : (long)len;
	if (len % 4)
		return -1;
	for (int i = 0; i < 2 && len > 0 && text[len - 1] == '='; i++)
		len--;
	return (long)len;
}

long base64_decode(enum base64_kind kind, const char *text, size_t len, void *ret)
{
	long chars = strip_padding(kind, text, len);
	uint8_t *out = ret;
	uint32_t bits = 0;
	int have = 0;

	for (long i = 0; i < chars; i++) {
		int value = value_of(kind, text[i]);

		if (value < 0)
			return -1;
		bits = bits << 6 | (uint32_t)value;
		have += 6;
		if (have >= 8) {
			have -= 8;
			*out++ = (uint8_t)(bits >> have);
		}
	}
	if (chars < 0 || (bits & ((1U << have) - 1)))
		return -1;
	return (long)(out - (uint8_t *)ret);
}
