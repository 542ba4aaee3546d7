/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/file_type.c - what kind of file a sandbox hands out, by a few bytes or by its name
 *
 * Pure functions in the front. Content is never decoded: whoever looks at it does that, on the person's
 * side.
 */
#include "mcp/file_type.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "runtime/base/cleanup.h"

/* An information header of a known size, or it is text that begins with "BM". */
static bool is_bmp(const unsigned char *b, size_t len)
{
	static const unsigned char sizes[] = { 12, 40, 52, 56, 64, 108, 124 };

	return len >= 18 && !memcmp(b, "BM", 2) && !memcmp(b + 6, "\0\0\0\0", 4) &&
	       memchr(sizes, b[14], sizeof(sizes)) && !memcmp(b + 15, "\0\0\0", 3);
}

const char *file_picture_type(const unsigned char *b, size_t len)
{
	if (len >= 8 && !memcmp(b, "\x89PNG\r\n\x1a\n", 8))
		return "image/png";
	if (len >= 3 && !memcmp(b, "\xff\xd8\xff", 3))
		return "image/jpeg";
	if (len >= 6 && (!memcmp(b, "GIF87a", 6) || !memcmp(b, "GIF89a", 6)))
		return "image/gif";
	if (len >= 12 && !memcmp(b, "RIFF", 4) && !memcmp(b + 8, "WEBP", 4))
		return "image/webp";
	return is_bmp(b, len) ? "image/bmp" : NULL;
}

const char *file_type(const char *name)
{
	static const char *const types[][2] = {
		{ "csv", "text/csv" },         { "gif", "image/gif" },
		{ "gz", "application/gzip" },  { "html", "text/html" },
		{ "jpg", "image/jpeg" },       { "json", "application/json" },
		{ "md", "text/markdown" },     { "mp3", "audio/mpeg" },
		{ "mp4", "video/mp4" },        { "pdf", "application/pdf" },
		{ "png", "image/png" },        { "svg", "image/svg+xml" },
		{ "txt", "text/plain" },       { "wav", "audio/wav" },
		{ "webp", "image/webp" },      { "xml", "application/xml" },
		{ "zip", "application/zip" },
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
		if (!strcasecmp(dot + 1, types[i][0]))
			return types[i][1];
	return "application/octet-stream";
}
