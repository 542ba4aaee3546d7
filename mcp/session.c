/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/session.c - sessions of the era before 2026-07-28
 *
 * Runs in the front, on hostile headers. An id is "v1." and base64url of nonce and HMAC.
 */
#include "mcp/session.h"

#include <string.h>
#include <sys/random.h>

#include "mcp/base64.h"

#define PREFIX "v1."

enum { CAPS_AT = SESSION_NONCE - 1 };
enum { PREFIX_LEN = sizeof(PREFIX) - 1, RAW_LEN = SESSION_NONCE + HMAC_LEN, RAW_ROOM = RAW_LEN + 2 };

static int sign(const struct sessions *s, const char *owner, const uint8_t *nonce, uint8_t mac[HMAC_LEN])
{
	const struct hmac_field fields[] = { { owner, strlen(owner) }, { nonce, SESSION_NONCE } };

	return hmac_sign(s->key, sizeof(s->key), "mcp session", fields, 2, mac);
}

int session_make(const struct sessions *s, const char *owner, unsigned int caps, char ret[SESSION_ID_MAX])
{
	uint8_t raw[RAW_LEN];

	if (getrandom(raw, CAPS_AT, 0) != CAPS_AT)
		return -1;
	raw[CAPS_AT] = (uint8_t)caps;
	if (sign(s, owner, raw, raw + SESSION_NONCE) < 0)
		return -1;
	memcpy(ret, PREFIX, PREFIX_LEN);
	base64_encode(BASE64_URL, raw, sizeof(raw), ret + PREFIX_LEN);
	ret[PREFIX_LEN + base64_length(BASE64_URL, sizeof(raw))] = '\0';
	return 0;
}

static bool read_id(struct http_text id, uint8_t raw[RAW_ROOM])
{
	return id.len == PREFIX_LEN + base64_length(BASE64_URL, RAW_LEN) &&
	       memcmp(id.data, PREFIX, PREFIX_LEN) == 0 &&
	       base64_decode(BASE64_URL, id.data + PREFIX_LEN, id.len - PREFIX_LEN, raw) == RAW_LEN;
}

static bool has_ended(const struct sessions *s, const uint8_t *nonce)
{
	size_t count = s->ended_count < SESSION_ENDED_MAX ? s->ended_count : SESSION_ENDED_MAX;

	for (size_t i = 0; i < count; i++) {
		if (memcmp(s->ended[i], nonce, SESSION_NONCE) == 0)
			return true;
	}
	return false;
}

enum session_state session_look(const struct sessions *s, struct http_text id, const char *owner,
				char ret_scope[SESSION_SCOPE_MAX], unsigned int *ret_caps)
{
	uint8_t raw[RAW_ROOM], mac[HMAC_LEN];

	ret_scope[0] = '\0';
	*ret_caps = 0;
	if (!read_id(id, raw) || sign(s, owner, raw, mac) < 0 ||
	    !digest_equal(mac, raw + SESSION_NONCE, HMAC_LEN))
		return SESSION_NONE;
	*ret_caps = raw[CAPS_AT];
	base64_encode(BASE64_URL, raw, SESSION_NONCE, ret_scope);
	ret_scope[base64_length(BASE64_URL, SESSION_NONCE)] = '\0';
	return has_ended(s, raw) ? SESSION_ENDED : SESSION_VALID;
}

void session_end(struct sessions *s, struct http_text id)
{
	uint8_t raw[RAW_ROOM];

	if (read_id(id, raw))
		memcpy(s->ended[s->ended_count++ % SESSION_ENDED_MAX], raw, SESSION_NONCE);
}
