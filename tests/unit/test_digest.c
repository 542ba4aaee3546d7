/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_digest.c - published vectors: FIPS 180-4 examples and RFC 4231 */
#include "runtime/base/digest.h"

#include "tests/unit/tap.h"

static const char *hex(const uint8_t digest[DIGEST_SHA256_LEN])
{
	static char text[2 * DIGEST_SHA256_LEN + 1];

	for (int i = 0; i < DIGEST_SHA256_LEN; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return text;
}

static const struct {
	const char *desc, *key, *data, *want;
} rows[] = {
	{ "sha256 of nothing", NULL, "",
	  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "sha256 of abc", NULL, "abc",
	  "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "sha256 of two blocks", NULL, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "hmac, RFC 4231 case 2", "Jefe", "what do ya want for nothing?",
	  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
	{ "hmac, RFC 4231 case 1",
	  "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b",
	  "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
};

int main(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t digest[DIGEST_SHA256_LEN];
		int r;

		if (rows[i].key)
			r = digest_hmac_sha256(rows[i].key, strlen(rows[i].key), rows[i].data,
					       strlen(rows[i].data), digest);
		else
			r = digest_sha256(rows[i].data, strlen(rows[i].data), digest);
		tap_int(r, 0, "%s: computed", rows[i].desc);
		tap_str(hex(digest), rows[i].want, "%s: value", rows[i].desc);
	}
	return tap_done();
}
