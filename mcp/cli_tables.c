/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_tables.c - the verbs and settings as JSON, for tools/gen-man
 *
 * Runs at build time only, as whoever builds: what the man pages and the shell completion say is what the
 * parser (cli.c, config.c) goes by. Nothing is read but the tables.
 */
#include <stdio.h>

#include "mcp/cli.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"

enum { TABLES_MAX = 256 * 1024 };

static void write_member(struct buf *b, const char *name, const char *text)
{
	json_write_string(b, name);
	(void)buf_append_str(b, ": ");
	if (text)
		json_write_string(b, text);
	else
		(void)buf_append_str(b, "null");
}

static void write_options(struct buf *b, const struct cli_option *options)
{
	(void)buf_append_str(b, "[");
	for (size_t i = 0; options && options[i].name; i++) {
		(void)buf_append_str(b, i ? ",\n  { " : "\n  { ");
		write_member(b, "name", options[i].name);
		(void)buf_append_str(b, ", ");
		write_member(b, "value", options[i].value);
		(void)buf_append_str(b, ", ");
		write_member(b, "help", options[i].help);
		(void)buf_append_str(b, " }");
	}
	(void)buf_append_str(b, "]");
}

static void write_verb(struct buf *b, const struct cli_verb *verb)
{
	(void)buf_append_str(b, "{ ");
	write_member(b, "name", verb->name);
	(void)buf_append_str(b, ", ");
	write_member(b, "synopsis", verb->synopsis);
	(void)buf_append_str(b, ", ");
	write_member(b, "help", verb->help);
	(void)buf_append_str(b, ", \"options\": ");
	write_options(b, verb->options);
	(void)buf_append_str(b, " }");
}

int cli_tables(const struct cli_verb *verbs, size_t count, struct err *e)
{
	const char *comma = "";
	struct buf out;
	int status = CLI_OK;

	buf_init(&out, TABLES_MAX);
	(void)buf_append_str(&out, "{ ");
	write_member(&out, "version", MCP_SANDBOX_VERSION);
	(void)buf_append_str(&out, ",\n\"verbs\": [\n");
	for (size_t i = 0; i < count; i++) {
		if (verbs[i].hidden)
			continue;
		(void)buf_append_str(&out, comma);
		write_verb(&out, &verbs[i]);
		comma = ",\n";
	}
	(void)buf_append_str(&out, "],\n\"common\": ");
	write_options(&out, cli_common_options);
	(void)buf_append_str(&out, ",\n\"settings\": ");
	if (config_json(&out) < 0 || buf_append_str(&out, " }\n") < 0 ||
	    fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		status = err_set(e, ERR_NOMEM, "tables: cannot be written");
	buf_done(&out);
	return status;
}
