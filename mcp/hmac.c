/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/hmac.c - signatures over several fields: sessions and download links
 *
 * Runs in the front, which holds the keys and no other secret.
 */
#include "mcp/hmac.h"

#include <string.h>

#include "runtime/base/buf.h"

enum { TEXT_MAX = 64 * 1024 };

static void append_field(struct buf *b, const void *data, size_t len)
{
	uint8_t length[8];

	for (int i = 0; i < 8; i++)
		length[i] = (uint8_t)((uint64_t)len >> (56 - 8 * i));
	buf_append(b, length, sizeof(length));
	buf_append(b, data, len);
}

int hmac_sign(const void *key, size_t key_len, const char *purpose, const struct hmac_field *fields,
	      size_t count, uint8_t ret[HMAC_LEN])
{
	struct buf text;
	int r = -1;

	if (count > HMAC_FIELDS_MAX)
		return -1;
	buf_init(&text, TEXT_MAX);
	append_field(&text, purpose, strlen(purpose));
	for (size_t i = 0; i < count; i++)
		append_field(&text, fields[i].data, fields[i].len);
	if (!text.overflow)
		r = digest_hmac_sha256(key, key_len, text.data, text.len, ret);
	buf_done(&text);
	return r;
}

bool hmac_verify(const void *key, size_t key_len, const char *purpose, const struct hmac_field *fields,
		 size_t count, const uint8_t mac[HMAC_LEN])
{
	uint8_t right[HMAC_LEN];

	return hmac_sign(key, key_len, purpose, fields, count, right) == 0 &&
	       digest_equal(right, mac, HMAC_LEN);
}
