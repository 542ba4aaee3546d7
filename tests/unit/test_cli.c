/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_cli.c - the command line parser against a verb table of its own */
#include <stdlib.h>
#include <string.h>

#include "mcp/cli.h"
#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

static int nothing(struct cli_call *call, struct err *e)
{
	(void)call;
	(void)e;
	return 0;
}

static const struct cli_option run_options[] = {
	{ "timeout", "TIME", "" },
	{ "json", NULL, "" },
	{ NULL },
};

static const struct cli_verb verbs[] = {
	{ .name = "run", .synopsis = "LABEL -- COMMAND", .options = run_options, .args_min = 1, .args_max = 1,
	  .takes_command = true, .run = nothing },
	{ .name = "image build", .synopsis = "[NAME]", .args_max = 1, .run = nothing },
	{ .name = "image list", .synopsis = "", .run = nothing },
};

enum { WORDS_MAX = 12 };

struct row {
	const char *desc;
	const char *words[WORDS_MAX];
	int code;            /* enum err_code; ERR_NONE: accepted */
	const char *says;    /* part of message or remedy */
	const char *verb;    /* when accepted */
	size_t args, command;
	const char *timeout; /* value of --timeout */
	const char *setting; /* SANDBOX_MAX afterwards */
};

static const struct row rows[] = {
	{ "a verb, its argument and command", { "run", "x", "--", "ls" }, .verb = "run", .args = 1, .command = 1 },
	{ "options of the verb, value in the next word", { "run", "x", "--timeout", "5", "--", "a", "b" },
	  .verb = "run", .args = 1, .command = 2, .timeout = "5" },
	{ "and after =", { "run", "--timeout=5", "x", "--", "a" }, .verb = "run", .args = 1, .command = 1,
	  .timeout = "5" },
	{ "options after -- are the command's", { "run", "x", "--", "ls", "--timeout", "5" }, .verb = "run",
	  .args = 1, .command = 3 },
	{ "a lone - is an argument", { "run", "-", "--", "ls" }, .verb = "run", .args = 1, .command = 1 },
	{ "a setting as an option", { "run", "--max", "7", "x", "--", "a" }, .verb = "run", .args = 1,
	  .command = 1, .setting = "7" },
	{ "a flag setting needs no value", { "run", "--dry-run", "x", "--", "a" }, .verb = "run", .args = 1,
	  .command = 1 },
	{ "a verb of two words", { "image", "build", "minimal" }, .verb = "image build", .args = 1 },
	{ "another of the same first word", { "image", "list" }, .verb = "image list" },
	{ "half a verb", { "image" }, ERR_USAGE, "\"image\" is not a verb" },
	{ "an unknown verb", { "destroy" }, ERR_USAGE, "destroy" },
	{ "no verb", { NULL }, ERR_USAGE, "no verb" },
	{ "no label", { "run", "--", "ls" }, ERR_USAGE, "missing argument" },
	{ "two labels", { "run", "x", "y", "--", "ls" }, ERR_USAGE, "too many" },
	{ "no command", { "run", "x" }, ERR_USAGE, "no command" },
	{ "an empty command", { "run", "x", "--" }, ERR_USAGE, "no command" },
	{ "a command for a verb that takes none", { "image", "list", "--", "ls" }, ERR_USAGE, "no command" },
	{ "an unknown option names the nearest", { "run", "--memroy", "1G", "x", "--", "a" }, ERR_USAGE,
	  "--memory" },
	{ "a short option", { "run", "-t", "5", "x", "--", "a" }, ERR_USAGE, "-t is not an option" },
	{ "an option without its value", { "run", "x", "--timeout" }, ERR_USAGE, "--timeout needs a value" },
	{ "a flag with a value", { "run", "x", "--json=1", "--", "a" }, ERR_USAGE, "takes no value" },
	{ "a bad setting", { "run", "--max", "0", "x", "--", "a" }, ERR_CONFIG, "--max" },
	{ "settings that do not fit together",
	  { "run", "--profile", "safe-shell", "--net", "internet", "x", "--", "a" }, ERR_CONFIG, "safe-shell" },
	{ "a missing --config file", { "run", "--config", "/nonexistent/f", "x", "--", "a" }, ERR_CONFIG,
	  "/nonexistent/f" },
};

static void check_accepted(const struct row *row, const struct cli_call *call)
{
	const char *timeout = cli_option(call, "timeout");

	tap_str(call->verb->name, row->verb, "%s: verb", row->desc);
	tap_int(call->arg_count, row->args, "%s: arguments", row->desc);
	tap_int(call->command_count, row->command, "%s: command", row->desc);
	if (row->timeout)
		tap_str(timeout, row->timeout, "%s: --timeout", row->desc);
	else
		tap_ok(!timeout, "%s: no --timeout", row->desc);
	if (row->setting)
		tap_str(config_text(&call->config, CONFIG_MAX), row->setting, "%s: setting", row->desc);
}

static void run_row(const struct row *row)
{
	char *argv[WORDS_MAX + 2] = { strdup("mcp-sandbox") };
	struct cli_call call;
	struct err e = { 0 };
	int argc = 1, r;

	for (; row->words[argc - 1]; argc++)
		argv[argc] = strdup(row->words[argc - 1]);
	r = cli_parse(&call, verbs, ARRAY_SIZE(verbs), argc, argv, &e);
	if (row->code == ERR_NONE) {
		if (tap_int(r, 0, "%s: accepted %s", row->desc, e.message))
			check_accepted(row, &call);
	} else {
		tap_ok(r < 0 && (int)e.code == row->code, "%s: refused with code %d", row->desc, e.code);
		tap_ok(strstr(e.message, row->says) || strstr(e.remedy, row->says), "%s: says %s: %s / %s",
		       row->desc, row->says, e.message, e.remedy);
		tap_ok(e.remedy[0], "%s: has a remedy", row->desc);
	}
	cli_call_done(&call);
	while (argc > 0)
		free(argv[--argc]);
}

int main(void)
{
	clearenv();
	setenv("HOME", "/nonexistent", 1);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		run_row(&rows[i]);
	return tap_done();
}
