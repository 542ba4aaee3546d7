/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/base64.h - RFC 4648, strict: one text for each value */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum base64_kind {
	BASE64_STANDARD, /* '+' and '/', padded */
	BASE64_URL,      /* '-' and '_', without padding */
};

/* base64_length() - of the text of len bytes. */
size_t base64_length(enum base64_kind kind, size_t len);

/* base64_encode() - base64_length() characters, no NUL. */
void base64_encode(enum base64_kind kind, const void *bytes, size_t len, char *text);

/* base64_decode() - refuses other characters, missing or superfluous padding, and unused bits that are not
 * zero. ret has room for len / 4 * 3 + 2 bytes. Return: bytes, -1. */
long base64_decode(enum base64_kind kind, const char *text, size_t len, void *ret);
