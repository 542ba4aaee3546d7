/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/json_write.c - JSON text straight into a buffer
 *
 * Runs in the front, without privilege, on bytes from commands and files: hostile.
 */
#include "mcp/json_write.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/str.h"

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void write_control(struct buf *b, unsigned char c)
{
	static const char from[] = "\b\f\n\r\t\"\\", to[] = "bfnrt\"\\";
	const char *found = c ? strchr(from, c) : NULL;
	char text[8];
	int n;

	if (found)
		n = snprintf(text, sizeof(text), "\\%c", to[found - from]);
	else
		n = snprintf(text, sizeof(text), "\\u%04x", c);
	buf_append(b, text, (size_t)n);
}

/* How many bytes go out as they are. */
static size_t plain_run(const unsigned char *p, size_t len)
{
	size_t i = 0;

	while (i < len) {
		uint32_t cp;
		int n = 1;

		if (p[i] >= 0x80)
			n = str_utf8_next(p + i, len - i, &cp);
		else if (!is_plain(p[i]))
			break;
		if (n <= 0)
			break;
		i += (size_t)n;
	}
	return i;
}

void json_write_escaped(struct buf *b, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	while (len) {
		size_t run = plain_run(p, len);

		if (run)
			buf_append(b, p, run);
		p += run;
		len -= run;
		if (!len)
			break;
		if (*p >= 0x80)
			buf_append_str(b, "\xef\xbf\xbd");
		else
			write_control(b, *p);
		p++;
		len--;
	}
}

void json_write_string(struct buf *b, const char *text)
{
	buf_append(b, "\"", 1);
	json_write_escaped(b, text, strlen(text));
	buf_append(b, "\"", 1);
}

void json_write_base64(struct buf *b, const void *bytes, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = bytes;
	char out[4 * 1024];
	size_t n = 0;

	for (; len >= 3; p += 3, len -= 3) {
		out[n++] = digits[p[0] >> 2];
		out[n++] = digits[(p[0] & 3) << 4 | p[1] >> 4];
		out[n++] = digits[(p[1] & 15) << 2 | p[2] >> 6];
		out[n++] = digits[p[2] & 63];
		if (n == sizeof(out)) {
			buf_append(b, out, n);
			n = 0;
		}
	}
	if (len) {
		unsigned int second = len == 2 ? p[1] : 0;

		out[n++] = digits[p[0] >> 2];
		out[n++] = digits[(p[0] & 3) << 4 | second >> 4];
		out[n++] = len == 2 ? digits[(second & 15) << 2] : '=';
		out[n++] = '=';
	}
	buf_append(b, out, n);
}
