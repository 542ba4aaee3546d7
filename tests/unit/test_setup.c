/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_setup.c - one entry into a configuration of others: nothing else changes, or nothing at all */
#include "mcp/cli_setup.h"
#include "tests/unit/tap.h"

static const struct row {
	const char *desc, *text, *want; /* want NULL: refused */
} json_rows[] = {
	{ "empty", "{}\n", "{\n  \"S\": { \"n\": {\"c\":1} }\n}\n" },
	{ "other things stay byte for byte", "{\"big\": 9007199254740993, \"x\":\t[1.0]}",
	  "{\n  \"S\": { \"n\": {\"c\":1} },\"big\": 9007199254740993, \"x\":\t[1.0]}" },
	{ "no server yet", "{\"S\": { }}", "{\"S\": {\n  \"n\": {\"c\":1}\n }}" },
	{ "beside another", "{\"S\": {\"m\": {}}}", "{\"S\": {\n  \"n\": {\"c\":1},\"m\": {}}}" },
	{ "ours is exchanged", "{\"S\": {\"m\": {}, \"n\" : {\"old\": [\"}\"]} }, \"z\": 0}",
	  "{\"S\": {\"m\": {}, \"n\" : {\"c\":1} }, \"z\": 0}" },
	{ "the same name elsewhere is not ours", "{\"n\": 5, \"S\": {}}", "{\"n\": 5, \"S\": {\n  \"n\": {\"c\":1}\n}}" },
	{ "a comment", "{ // servers\n }", NULL },
	{ "a trailing comma", "{\"S\": {},}", NULL },
	{ "cut off", "{\"S\": {", NULL },
	{ "an array", "[]", NULL },
	{ "servers are a list", "{\"S\": []}", NULL },
}, toml_rows[] = {
	{ "empty", "", "\n[t]\n" },
	{ "after others", "a = 1\n[mcp_servers.x]\ncommand = \"y\"", "a = 1\n[mcp_servers.x]\ncommand = \"y\"\n\n[t]\n" },
	{ "there already", "[mcp_servers.n]\n", NULL },
	{ "there already, quoted", "[mcp_servers.\"n\"]\n", NULL },
	{ "a string of several lines", "a = \"\"\"\n[x]\n\"\"\"\n", NULL },
};

static void check(const struct row *row, int r, const struct buf *b)
{
	if (!row->want)
		tap_int(r, -1, "%s: refused", row->desc);
	else
		tap_str(r == 0 ? b->data : "(refused)", row->want, "%s", row->desc);
}

int main(void)
{
	struct err e = { 0 };
	struct buf b;

	for (size_t i = 0; i < sizeof(json_rows) / sizeof(json_rows[0]); i++) {
		buf_init(&b, 4096);
		check(&json_rows[i], setup_merge_json(json_rows[i].text, "S", "n", "{\"c\":1}", &b, &e), &b);
		buf_done(&b);
	}
	for (size_t i = 0; i < sizeof(toml_rows) / sizeof(toml_rows[0]); i++) {
		buf_init(&b, 4096);
		check(&toml_rows[i], setup_merge_toml(toml_rows[i].text, "n", "[t]\n", &b, &e), &b);
		buf_done(&b);
	}
	return tap_done();
}
