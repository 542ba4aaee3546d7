/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/digest.h - SHA-256 and HMAC-SHA-256; its .c is the only user of mbedTLS's md.h */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_SHA256_LEN = 32 };

/* digest_equal() - are len bytes the same? Takes the same time wherever they differ. */
bool digest_equal(const void *a, const void *b, size_t len);

/* Return: 0, -1 when the library refuses (no memory). */
int digest_sha256(const void *data, size_t len, uint8_t ret[DIGEST_SHA256_LEN]);
int digest_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
		       uint8_t ret[DIGEST_SHA256_LEN]);
