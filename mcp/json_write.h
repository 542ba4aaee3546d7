/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/json_write.h - JSON text straight into a buffer
 *
 * Whatever bytes go in, valid UTF-8 JSON without raw control characters or line breaks comes out:
 * one invalid byte in a reply makes some clients hang. Failures show in buf->overflow.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct buf;

/* json_write_escaped() - the inside of a string. Whole code points per call, or they are replaced. */
void json_write_escaped(struct buf *b, const void *bytes, size_t len);

/* json_write_string() - with the quotes. */
void json_write_string(struct buf *b, const char *text);

/* json_write_base64() - the inside of a string. Split input only at multiples of three bytes. */
void json_write_base64(struct buf *b, const void *bytes, size_t len);
