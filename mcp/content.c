/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/content.c - what a result is made of
 *
 * Runs in the front, without privilege.
 */
#include "mcp/content.h"

#include <string.h>

#include "mcp/call.h"
#include "mcp/json_write.h"

static struct buf *block_begin(struct call *c)
{
	if (c->blocks++)
		buf_append_str(c->reply, ",");
	if (c->kind == CALL_PROMPT)
		buf_append_str(c->reply, "{\"role\":\"user\",\"content\":");
	return c->reply;
}

static void block_end(struct call *c)
{
	if (c->kind == CALL_PROMPT)
		buf_append_str(c->reply, "}");
}

void content_text(struct call *c, const char *text)
{
	struct buf *b = block_begin(c);

	call_write_text_head(b);
	json_write_escaped(b, text, strlen(text));
	call_write_text_tail(b);
	block_end(c);
}

void content_media(struct call *c, const char *kind, const char *mime, const void *bytes, size_t len)
{
	struct buf *b = block_begin(c);

	buf_printf(b, "{\"type\":\"%s\",\"data\":\"", kind);
	json_write_base64(b, bytes, len);
	buf_printf(b, "\",\"mimeType\":\"%s\"}", mime);
	block_end(c);
}

/* Contents of a resource stand alone where it was asked for, and in a block of their own elsewhere. */
static struct buf *resource_begin(struct call *c, const char *uri, const char *mime)
{
	struct buf *b = block_begin(c);

	if (c->kind != CALL_RESOURCE)
		buf_append_str(b, "{\"type\":\"resource\",\"resource\":");
	buf_append_str(b, "{\"uri\":");
	json_write_string(b, uri);
	buf_printf(b, ",\"mimeType\":\"%s\"", mime);
	return b;
}

static void resource_end(struct call *c)
{
	buf_append_str(c->reply, c->kind == CALL_RESOURCE ? "}" : "}}");
	block_end(c);
}

void content_resource(struct call *c, const char *uri, const char *mime, const char *text)
{
	struct buf *b = resource_begin(c, uri, mime);

	buf_append_str(b, ",\"text\":");
	json_write_string(b, text);
	resource_end(c);
}

void content_blob(struct call *c, const char *uri, const char *mime, const void *bytes, size_t len)
{
	struct buf *b = resource_begin(c, uri, mime);

	buf_append_str(b, ",\"blob\":\"");
	json_write_base64(b, bytes, len);
	buf_append_str(b, "\"");
	resource_end(c);
}
