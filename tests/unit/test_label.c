/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_label.c - the label rule, row by row, and a property over hostile bytes */
#include "runtime/label.h"

#include "runtime/base/str.h"
#include "tests/unit/tap.h"

static const struct {
	const char *desc, *label, *want; /* want NULL: refused */
} rows[] = {
	{ "two words", "Amber Otter", "amber-otter-cc3a29" },
	{ "its slug is the same sandbox", "amber-otter", "amber-otter-cc3a29" },
	{ "white space around", " \t Amber   OTTER \r\n", "amber-otter-cc3a29" },
	{ "punctuation", "__amber//otter!!", "amber-otter-cc3a29" },
	{ "a path", "../../etc/passwd", "etc-passwd-93a965" },
	{ "cut at 24", "abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnopqrstuvwx-71c480" },
	{ "cut at a dash", "abcdefghijklmnopqrstuvw xyz", "abcdefghijklmnopqrstuvw-ba774d" },
	{ "punctuation only", "!!!", "sb-e3b0c4" },
	{ "an embedded control byte", "a\x01" "b", "a-b-d44362" },
	{ "Chinese", "\xe7\x8c\xab", "sb-a810bf" },
	{ "other Chinese", "\xe7\x8b\x97", "sb-cecd67" },
	{ "mixed", "Caf\xc3\xa9", "caf-850f7d" },
	{ "mixed, lower", "caf\xc3\xa9", "caf-850f7d" },
	{ "non-ASCII case is kept", "caf\xc3\x89", "caf-39416d" },
	{ "empty", "", NULL },
	{ "white space only", " \t\r\n\v\f ", NULL },
	{ "Latin-1", "caf\xe9", NULL },
	{ "overlong", "a\xc0\xaf", NULL },
	{ "a surrogate", "a\xed\xa0\x80", NULL },
};

static void test_rows(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].label);
		struct tap_guard g = tap_guard_new(rows[i].label, len);
		char key[KEY_MAX] = "untouched";
		struct err e = { 0 };
		int r = label_to_key(g.data, len, key, &e);

		tap_int(r, rows[i].want ? 0 : -1, "%s: result", rows[i].desc);
		tap_str(key, rows[i].want ? rows[i].want : "untouched", "%s: key", rows[i].desc);
		if (!rows[i].want) {
			tap_int(e.code, ERR_USAGE, "%s: code", rows[i].desc);
			tap_str(e.remedy, LABEL_RULE, "%s: the rule is the remedy", rows[i].desc);
		}
		tap_guard_free(&g);
	}
}

static void test_length(void)
{
	char label[LABEL_MAX_BYTES + 1], key[KEY_MAX];
	struct tap_guard g;

	memset(label, 'x', sizeof(label));
	g = tap_guard_new(label, LABEL_MAX_BYTES);
	tap_int(label_to_key(g.data, LABEL_MAX_BYTES, key, NULL), 0, "256 bytes are accepted");
	tap_ok(str_is_key(key), "and make a key");
	tap_guard_free(&g);
	tap_int(label_to_key(label, LABEL_MAX_BYTES + 1, key, NULL), -1, "257 are not");
	tap_int(label_to_key("a\0b", 3, key, NULL), 0, "a NUL is a byte like others");
	tap_ok(strncmp(key, "a-b-", 4) == 0, "not an end");
}

/* Every byte pair: what is accepted is a key, and the key's slug is its own key's slug. */
static void test_property(void)
{
	unsigned int bad = 0, accepted = 0;

	for (unsigned int i = 0; i < 65536; i++) {
		char label[2] = { (char)(i >> 8), (char)i }, key[KEY_MAX];

		if (label_to_key(label, 2, key, NULL) < 0)
			continue;
		accepted++;
		bad += !str_is_key(key);
	}
	tap_int(bad, 0, "all pairs of bytes give keys or refusals");
	tap_ok(accepted > 16000 && accepted < 20000, "%u of them keys", accepted);
}

int main(void)
{
	test_rows();
	test_length();
	test_property();
	return tap_done();
}
