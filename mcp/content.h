/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/content.h - what a result is made of, between call_result_begin() and call_result_end()
 *
 * A block of a tool's result, a message of a prompt's, or a resource's contents, as the call asks for.
 */
#pragma once

#include <stddef.h>

struct call;

void content_text(struct call *c, const char *text);

/* content_media() - kind: "image" or "audio". */
void content_media(struct call *c, const char *kind, const char *mime, const void *bytes, size_t len);

/* content_resource() - a resource's text; content_blob() - its bytes. */
void content_resource(struct call *c, const char *uri, const char *mime, const char *text);
void content_blob(struct call *c, const char *uri, const char *mime, const void *bytes, size_t len);
