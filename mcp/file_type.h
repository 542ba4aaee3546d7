/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/file_type.h - what kind of file a sandbox hands out, by a few bytes or by its name */
#pragma once

#include <stddef.h>

/* file_picture_type() - png, jpeg, gif, webp or bmp by the first bytes of the content (32 are enough);
 * NULL for everything else. */
const char *file_picture_type(const unsigned char *bytes, size_t len);

/* file_type() - media type by the name's ending, from a fixed list. */
const char *file_type(const char *name);
