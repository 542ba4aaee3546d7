/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/link.c - download links: signed, for a time, good for one file of one workspace
 *
 * Pure functions in the front, on settings of the operator and on bytes that anybody on the network sent.
 * A link is taken apart, its bytes are decoded once, and the signature is computed over what would be
 * served. Then the whole link is written again and compared: another spelling of the same link (other
 * hexadecimal digits, an escaped letter, a leading zero) is refused, so that no proxy or cache in front
 * can be brought to see another path than we do.
 */
#include "mcp/link.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mcp/base64.h"
#include "mcp/hmac.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"

enum {
	EXPIRY_DIGITS_MAX = 12,
	SIGNATURE_TEXT = 43, /* HMAC_LEN bytes in BASE64_URL */
	URL_PATH_MAX = 3 * API_PATH_MAX + 256,
	NAME_PART_MAX = OWNER_ID_LEN + 1 + KEY_MAX,
};

static const char purpose[] = "mcp-sandbox download 1";

const char *link_missing(const struct links *l)
{
	if (!l->base[0])
		return "MCP_PUBLIC_BASE";
	return l->sign_key[0] ? NULL : "MCP_SIGN_KEY";
}

bool link_path_is_plain(const char *path)
{
	for (;;) {
		size_t len = strcspn(path, "/");

		if (len == 0 || (len == 1 && path[0] == '.') || (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (path[len] == '\0')
			return true;
		path += len + 1;
	}
}

/* ---- writing ---- */

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("-._~", c) != NULL);
}

void link_write_escaped(struct buf *b, const char *text)
{
	for (; *text; text++) {
		if (*text == '/' || is_unreserved(*text))
			(void)buf_append(b, text, 1);
		else
			buf_printf(b, "%%%02X", (unsigned char)*text);
	}
}

enum { SIGNED_FIELDS = 4 };

static void list_fields(const struct link_target *t, const char *expiry,
			struct hmac_field ret[SIGNED_FIELDS])
{
	ret[0] = (struct hmac_field){ t->owner, strlen(t->owner) };
	ret[1] = (struct hmac_field){ t->key, strlen(t->key) };
	ret[2] = (struct hmac_field){ t->path, strlen(t->path) };
	ret[3] = (struct hmac_field){ expiry, strlen(expiry) };
}

/* Everything from LINK_PREFIX on. */
static void write_path(struct buf *b, const struct link_target *t, const char *expiry,
		       const uint8_t mac[HMAC_LEN])
{
	char text[SIGNATURE_TEXT + 1] = { 0 };

	base64_encode(BASE64_URL, mac, HMAC_LEN, text);
	buf_printf(b, LINK_PREFIX "%s/%s/", expiry, text);
	if (strcmp(t->owner, OWNER_DEFAULT) != 0)
		buf_printf(b, "%s.", t->owner);
	buf_printf(b, "%s/", t->key);
	link_write_escaped(b, t->path);
}

int link_write(struct buf *b, const struct links *l, const struct link_target *t, uint64_t now_s)
{
	char expiry[EXPIRY_DIGITS_MAX + 1];
	struct hmac_field fields[SIGNED_FIELDS];
	uint8_t mac[HMAC_LEN];

	(void)snprintf(expiry, sizeof(expiry), "%" PRIu64, now_s + l->ttl_ms / 1000);
	list_fields(t, expiry, fields);
	if (hmac_sign(l->sign_key, strlen(l->sign_key), purpose, fields, SIGNED_FIELDS, mac) < 0)
		return -1;
	buf_append_str(b, l->base);
	write_path(b, t, expiry, mac);
	return b->overflow ? -1 : 0;
}

/* ---- reading ---- */

/* take_part() - up to the next '/', which is passed over. Return: false when it is empty, does not fit, or
 * nothing follows. */
static bool take_part(struct http_text *rest, char *ret, size_t size)
{
	const char *slash = memchr(rest->data, '/', rest->len);
	size_t len = slash ? (size_t)(slash - rest->data) : 0;

	if (len == 0 || len >= size || memchr(rest->data, '\0', len))
		return false;
	memcpy(ret, rest->data, len);
	ret[len] = '\0';
	rest->data += len + 1;
	rest->len -= len + 1;
	return true;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Once: "%2541" is "%41", not "A". */
static bool decode(struct http_text text, char *ret, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c == '%') {
			int high = text.len - i > 2 ? hex_value(text.data[i + 1]) : -1;
			int low = text.len - i > 2 ? hex_value(text.data[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (c == '\0' || n + 1 >= size)
			return false;
		ret[n++] = c;
	}
	ret[n] = '\0';
	return n > 0;
}

/* "<key>", or "<owner>.<key>". */
static bool read_name(char *name, struct link_target *ret)
{
	char *dot = strchr(name, '.');

	if (dot)
		*dot = '\0';
	return str_copy(ret->owner, sizeof(ret->owner), dot ? name : OWNER_DEFAULT) == 0 &&
	       str_copy(ret->key, sizeof(ret->key), dot ? dot + 1 : name) == 0 &&
	       str_is_owner_id(ret->owner) && str_is_key(ret->key);
}

static bool is_spelt_like(struct http_text path, const struct link_target *t, const char *expiry,
			  const uint8_t mac[HMAC_LEN])
{
	struct buf again;
	bool same;

	buf_init(&again, URL_PATH_MAX);
	write_path(&again, t, expiry, mac);
	same = !again.overflow && again.len == path.len && memcmp(again.data, path.data, path.len) == 0;
	buf_done(&again);
	return same;
}

static bool is_signed(const struct links *l, const struct link_target *t, const char *expiry,
		      const uint8_t mac[HMAC_LEN])
{
	struct hmac_field fields[SIGNED_FIELDS];

	list_fields(t, expiry, fields);
	return hmac_verify(l->sign_key, strlen(l->sign_key), purpose, fields, SIGNED_FIELDS, mac);
}

bool link_read(const struct links *l, struct http_text path, uint64_t now_s, struct link_target *ret)
{
	char expiry[EXPIRY_DIGITS_MAX + 1], signature[SIGNATURE_TEXT + 1], name[NAME_PART_MAX + 1];
	struct http_text rest = path;
	uint8_t mac[HMAC_LEN + 2];
	size_t prefix = strlen(LINK_PREFIX);
	uint64_t expires_s;

	memset(ret, 0, sizeof(*ret));
	if (link_missing(l) || path.len < prefix || memcmp(path.data, LINK_PREFIX, prefix) != 0)
		return false;
	rest.data += prefix;
	rest.len -= prefix;
	if (!take_part(&rest, expiry, sizeof(expiry)) || !take_part(&rest, signature, sizeof(signature)) ||
	    !take_part(&rest, name, sizeof(name)) || !read_name(name, ret) ||
	    !decode(rest, ret->path, sizeof(ret->path)) || !link_path_is_plain(ret->path))
		return false;
	if (base64_decode(BASE64_URL, signature, strlen(signature), mac) != HMAC_LEN)
		return false;
	/* The signature before the time: only who holds a link learns that its time is over. */
	return is_signed(l, ret, expiry, mac) && is_spelt_like(path, ret, expiry, mac) &&
	       str_parse_u64(expiry, 1, UINT64_MAX, &expires_s) == 0 && now_s < expires_s;
}
