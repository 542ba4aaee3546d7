/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_tokens.c - owners' names, and the token file: what is taken and what is refused */
#include "runtime/tokens.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/digest.h"
#include "tests/unit/tap.h"

#define H "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char home[] = "/tmp/mcpt-tokens-XXXXXX";
static struct store store;
static struct err error;

static void test_names(void)
{
	static const struct {
		const char *name;
		bool ok;
	} rows[] = {
		{ "a", true }, { "alice", true }, { "0123456789abcdef", true }, { "default", true },
		{ "", false }, { "0123456789abcdefg", false }, { "Alice", false }, { "a-b", false },
		{ "a b", false }, { "../x", false }, { "0a0b0c0d", false }, { "\xc3\xa4", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		tap_int(owner_name_is_valid(rows[i].name), rows[i].ok, "name \"%s\"", rows[i].name);
}

static void test_ids(void)
{
	char id[OWNER_ID_LEN + 1];

	tap_int(owner_id_of("alice", id, &error), 0, "a name has an id");
	tap_str(id, "2bd806c9", "the beginning of its SHA-256");
	tap_int(owner_id_of("default", id, &error), 0, "the default owner has a name");
	tap_str(id, OWNER_DEFAULT, "and the id of MCP_TOKEN's");
	tap_int(owner_parse("0a0b0c0d", id, &error), 0, "an id names itself");
	tap_str(id, "0a0b0c0d", "unchanged");
	tap_int(owner_parse("No", id, &error), -1, "what is neither is refused");
}

static void test_parse(void)
{
	static const struct {
		const char *desc, *text;
		int want;
	} rows[] = {
		{ "nothing", "", 0 },
		{ "two lines", "a " H "\nb " H "\n", 2 },
		{ "no line end", "a " H, -1 },
		{ "short hash", "a 0123\n", -1 },
		{ "long hash", "a " H "0\n", -1 },
		{ "upper case hash", "a 0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\n", -1 },
		{ "two spaces", "a  " H "\n", -1 },
		{ "no name", " " H "\n", -1 },
		{ "a name twice", "a " H "\na " H "\n", -1 },
		{ "empty line", "a " H "\n\n", -1 },
		{ "carriage return", "a " H "\r\n", -1 },
		{ "a bad name", "A " H "\n", -1 },
		{ "a long name", "abcdefghijklmnopq " H "\n", -1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct token_table t = { .count = 9 };
		int r = tokens_parse(rows[i].text, strlen(rows[i].text), &t, &error);

		tap_int(r, rows[i].want < 0 ? -1 : 0, "%s", rows[i].desc);
		tap_int(t.count, rows[i].want < 0 ? 9 : rows[i].want, "%s: rows", rows[i].desc);
	}
}

static void test_too_many(void)
{
	char text[(API_TOKENS_MAX + 1) * 80] = "", line[100];
	struct token_table t;
	size_t len = 0;

	for (int i = 0; i <= API_TOKENS_MAX; i++) {
		(void)snprintf(line, sizeof(line), "n%d " H "\n", i);
		if (i == API_TOKENS_MAX)
			tap_int(tokens_parse(text, strlen(text), &t, &error), 0, "as many as there may be");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", line);
	}
	tap_int(tokens_parse(text, strlen(text), &t, &error), -1, "one more");
}

static void test_file(void)
{
	char first[TOKEN_TEXT_MAX], second[TOKEN_TEXT_MAX];
	uint8_t hash[DIGEST_SHA256_LEN];
	struct token_table t;

	tap_int(tokens_read(&store, &t, &error), 0, "no file");
	tap_int(t.count, 0, "is no token");
	tap_int(tokens_add(&store, "alice", first, &error), 0, "one is made");
	tap_int(tokens_add(&store, "bob", second, &error), 0, "and another");
	tap_int(strlen(first), 64, "of 256 bits");
	tap_ok(strcmp(first, second) != 0, "not the same");
	tap_int(tokens_read(&store, &t, &error), 0, "read back");
	tap_int(t.count, 2, "both are there");
	(void)digest_sha256(first, strlen(first), hash);
	tap_ok(memcmp(hash, t.rows[0].hash, sizeof(hash)) == 0, "as its hash");
	tap_int(tokens_add(&store, "alice", second, &error), -1, "a name has one token");
	tap_int(tokens_add(&store, "Alice", second, &error), -1, "a bad name has none");
	tap_int(tokens_remove(&store, "carol", &error), -1, "an unknown one cannot be removed");
	tap_int(error.code, ERR_NOT_FOUND, "and is said to be unknown");
	tap_int(tokens_remove(&store, "alice", &error), 0, "a known one can");
	tap_int(tokens_read(&store, &t, &error), 0, "read back");
	tap_ok(t.count == 1 && strcmp(t.rows[0].name, "bob") == 0, "the other is left");
	tap_int(tokens_put_default(&t, "", &error), 0, "no MCP_TOKEN");
	tap_int(t.count, 1, "is no row");
	tap_int(tokens_put_default(&t, "secret", &error), 0, "MCP_TOKEN");
	tap_ok(t.count == 2 && strcmp(t.rows[1].owner, OWNER_DEFAULT) == 0, "is the default owner's");
	tap_ok(tokens_have_owner(&t, OWNER_DEFAULT) && !tokens_have_owner(&t, "2bd806c9"), "who has one");
}

static void test_refused(void)
{
	static const struct {
		const char *desc, *script;
	} rows[] = {
		{ "others may read it", "chmod 0640 tokens" },
		{ "a link", "mv tokens x; ln -s x tokens" },
		{ "a hard link", "ln tokens y" },
		{ "a directory", "rm -f tokens; mkdir tokens" },
		{ "a FIFO", "rm -rf tokens; mkfifo -m 0600 tokens" },
		{ "too long", "rm -rf tokens; (umask 077; head -c 100000 /dev/zero > tokens)" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct token_table t = { .count = 7 };
		char command[300];

		(void)snprintf(command, sizeof(command),
			       "cd %s && rm -rf tokens x y && (umask 077; echo a " H " > tokens) && %s",
			       home, rows[i].script);
		if (system(command) != 0)
			tap_bail("%s", command);
		tap_int(tokens_read(&store, &t, &error), -1, "refused: %s", rows[i].desc);
		tap_int(t.count, 7, "%s: nothing is taken over", rows[i].desc);
	}
}

int main(void)
{
	char command[64];

	if (!mkdtemp(home) || store_open(&store, home, &error) < 0)
		tap_bail("%s", error.message);
	test_names();
	test_ids();
	test_parse();
	test_too_many();
	test_file();
	test_refused();
	store_done(&store);
	(void)snprintf(command, sizeof(command), "rm -rf %s", home);
	return system(command) == 0 ? tap_done() : 1;
}
