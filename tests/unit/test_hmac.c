/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_hmac.c - base64 (RFC 4648 vectors and what is refused), signatures over fields */
#include "mcp/base64.h"
#include "mcp/hmac.h"

#include "tests/unit/tap.h"

static void test_base64(void)
{
	static const struct {
		const char *bytes, *standard, *url;
	} rows[] = {
		{ "", "", "" }, { "f", "Zg==", "Zg" }, { "fo", "Zm8=", "Zm8" }, { "foo", "Zm9v", "Zm9v" },
		{ "foob", "Zm9vYg==", "Zm9vYg" }, { "fooba", "Zm9vYmE=", "Zm9vYmE" },
		{ "foobar", "Zm9vYmFy", "Zm9vYmFy" }, { "\xfb\xef\xff", "++//", "--__" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *texts[] = { rows[i].standard, rows[i].url };

		for (int kind = BASE64_STANDARD; kind <= BASE64_URL; kind++) {
			size_t len = strlen(rows[i].bytes);
			char text[16] = "", bytes[16] = "";

			base64_encode(kind, rows[i].bytes, len, text);
			tap_str(text, texts[kind], "encode %zu bytes, kind %d", len, kind);
			tap_int(base64_length(kind, len), strlen(text), "its length");
			tap_int(base64_decode(kind, text, strlen(text), bytes), len, "decode it");
			tap_str(bytes, rows[i].bytes, "gives the bytes");
		}
	}
}

static void test_base64_refused(void)
{
	static const struct {
		const char *desc, *text;
		enum base64_kind kind;
	} rows[] = {
		{ "no padding", "Zg", BASE64_STANDARD }, { "half the padding", "Zg=", BASE64_STANDARD },
		{ "too much padding", "Zm9v====", BASE64_STANDARD }, { "three", "Z===", BASE64_STANDARD },
		{ "padding in the middle", "Zg==Zm9v", BASE64_STANDARD },
		{ "unused bits set", "Zh==", BASE64_STANDARD }, { "and here", "Zm9=", BASE64_STANDARD },
		{ "white space", "Zm 9v", BASE64_STANDARD }, { "a line break", "Zm9v\n", BASE64_STANDARD },
		{ "the other alphabet", "--__", BASE64_STANDARD }, { "not ASCII", "Zm9\xc3", BASE64_STANDARD },
		{ "the other alphabet", "++//", BASE64_URL }, { "padding", "Zg==", BASE64_URL },
		{ "one character", "Z", BASE64_URL }, { "unused bits set", "Zh", BASE64_URL },
	};
	char bytes[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		tap_int(base64_decode(rows[i].kind, rows[i].text, strlen(rows[i].text), bytes), -1,
			"refused: %s (%s)", rows[i].desc, rows[i].text);
}

static void test_fields(void)
{
	const struct hmac_field a[] = { { "ab", 2 }, { "c", 1 } }, b[] = { { "a", 1 }, { "bc", 2 } };
	uint8_t mac[HMAC_LEN], other[HMAC_LEN];

	tap_int(hmac_sign("key", 3, "link", a, 2, mac), 0, "a signature");
	tap_ok(hmac_verify("key", 3, "link", a, 2, mac), "is right");
	tap_ok(!hmac_verify("key", 3, "link", b, 2, mac), "not for fields that are cut elsewhere");
	tap_ok(!hmac_verify("key", 3, "session", a, 2, mac), "not for another purpose");
	tap_ok(!hmac_verify("kex", 3, "link", a, 2, mac), "not with another key");
	tap_ok(!hmac_verify("key", 3, "link", a, 1, mac), "not for fewer fields");
	(void)hmac_sign("key", 3, "link", a, 2, other);
	tap_ok(memcmp(mac, other, sizeof(mac)) == 0, "the same again");
	mac[31] ^= 1;
	tap_ok(!hmac_verify("key", 3, "link", a, 2, mac), "not with one bit changed");
	tap_int(hmac_sign("key", 3, "link", a, HMAC_FIELDS_MAX + 1, mac), -1, "too many fields");
}

int main(void)
{
	test_base64();
	test_base64_refused();
	test_fields();
	return tap_done();
}
