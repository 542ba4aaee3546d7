/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/digest.c - SHA-256 and HMAC-SHA-256 by mbedTLS
 *
 * Runs in every process; the only user of mbedTLS's digests. The calls exist unchanged in 2.28 and 3.6.
 */
#include "runtime/base/digest.h"

#include <mbedtls/constant_time.h>
#include <mbedtls/md.h>

int digest_sha256(const void *data, size_t len, uint8_t ret[DIGEST_SHA256_LEN])
{
	const mbedtls_md_info_t *info = mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);

	return info && mbedtls_md(info, data, len, ret) == 0 ? 0 : -1;
}

int digest_hmac_sha256(const void *key, size_t key_len, const void *data, size_t len,
		       uint8_t ret[DIGEST_SHA256_LEN])
{
	const mbedtls_md_info_t *info = mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);

	return info && mbedtls_md_hmac(info, key, key_len, data, len, ret) == 0 ? 0 : -1;
}

bool digest_equal(const void *a, const void *b, size_t len)
{
	return mbedtls_ct_memcmp(a, b, len) == 0;
}
