/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/hmac.h - signatures over several fields: sessions and download links
 *
 * Each field is preceded by its length, so that moving a byte from one to the next gives another text;
 * the first says what is signed, so that a signature for one thing is none for another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/digest.h"

enum { HMAC_LEN = DIGEST_SHA256_LEN, HMAC_FIELDS_MAX = 8 };

struct hmac_field {
	const void *data;
	size_t len;
};

/* hmac_sign() - HMAC-SHA256 over purpose and fields. Return: 0, -1 (no memory, more than
 * HMAC_FIELDS_MAX fields). */
int hmac_sign(const void *key, size_t key_len, const char *purpose, const struct hmac_field *fields,
	      size_t count, uint8_t ret[HMAC_LEN]);

/* hmac_verify() - is mac that signature? In constant time; false also when it cannot be told. */
bool hmac_verify(const void *key, size_t key_len, const char *purpose, const struct hmac_field *fields,
		 size_t count, const uint8_t mac[HMAC_LEN]);
