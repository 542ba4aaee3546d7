/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/label.c - label to key
 *
 * Pure; runs in the front and in the command line. The label is untrusted text; whatever it holds,
 * the key is made of [a-z0-9-] and can neither leave its directory nor look like another owner's.
 */
#include "runtime/label.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/digest.h"
#include "runtime/base/str.h"

enum { SLUG_IN_KEY = 24 };

static int refuse(struct err *e, const char *what)
{
	(void)err_set(e, ERR_USAGE, "the sandbox label %s", what);
	return err_remedy(e, "%s", LABEL_RULE);
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* trim_lower() - copy without surrounding white space. Return: the length left. */
static size_t trim_lower(const char *label, size_t len, char text[LABEL_MAX_BYTES])
{
	while (len > 0 && is_space(label[0])) {
		label++;
		len--;
	}
	while (len > 0 && is_space(label[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++)
		text[i] = lower(label[i]);
	return len;
}

static bool is_slug_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* make_slug() - runs of foreign characters become one '-', none at either end. */
static size_t make_slug(const char *text, size_t len, char slug[LABEL_MAX_BYTES])
{
	size_t out = 0;

	for (size_t i = 0; i < len; i++) {
		if (is_slug_char(text[i]))
			slug[out++] = text[i];
		else if (out > 0 && slug[out - 1] != '-')
			slug[out++] = '-';
	}
	while (out > 0 && slug[out - 1] == '-')
		out--;
	return out;
}

static bool is_ascii(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

static void format_key(const char *slug, size_t slug_len, const uint8_t *digest,
		       char ret_key[KEY_MAX])
{
	size_t head = slug_len < SLUG_IN_KEY ? slug_len : SLUG_IN_KEY;

	while (head > 0 && slug[head - 1] == '-')
		head--;
	if (head == 0) {
		slug = "sb";
		head = 2;
	}
	(void)snprintf(ret_key, KEY_MAX, "%.*s-%02x%02x%02x", (int)head, slug, digest[0], digest[1],
		       digest[2]);
}

int label_to_key(const char *label, size_t len, char ret_key[KEY_MAX], struct err *e)
{
	char text[LABEL_MAX_BYTES], slug[LABEL_MAX_BYTES];
	uint8_t digest[DIGEST_SHA256_LEN];
	size_t text_len, slug_len;
	int r;

	if (len > LABEL_MAX_BYTES)
		return refuse(e, "is longer than 256 bytes");
	if (!str_utf8_is_valid(label, len))
		return refuse(e, "is not UTF-8");
	text_len = trim_lower(label, len, text);
	if (text_len == 0)
		return refuse(e, "is empty");
	slug_len = make_slug(text, text_len, slug);
	if (is_ascii(text, text_len))
		r = digest_sha256(slug, slug_len, digest);
	else
		r = digest_sha256(text, text_len, digest);
	if (r < 0)
		return err_set(e, ERR_NOMEM, "no memory for the digest of a label");
	format_key(slug, slug_len, digest, ret_key);
	return 0;
}
