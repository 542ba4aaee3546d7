/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli.h - the command line: one row per verb, one parser for all of them
 *
 * Every setting is a long option of every verb (mcp/config.h); a verb adds its own options here.
 * A verb returns its exit status, or -1 with the error that main() prints.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "mcp/config.h"
#include "runtime/base/err.h"

enum { CLI_OPTIONS_MAX = 8, CLI_REPEATS_MAX = 8 };

/* Exit statuses of the command line (product-wide; a command's own status is passed through). */
enum { CLI_OK = 0, CLI_FAILURE = 1, CLI_USAGE = 2, CLI_DEGRADED = 3, CLI_TIMEOUT = 124, CLI_OUR_ERROR = 125 };

struct cli_option {
	const char *name;  /* without dashes; NULL ends the list */
	const char *value; /* name of its value in the help; NULL: a flag */
	const char *help;
	bool repeats; /* may be given several times; at most one such option per verb */
};

struct cli_call {
	const struct cli_verb *verb;
	char **argv; /* as given to main(), for re-execution */
	struct config config;
	const char *option[CLI_OPTIONS_MAX]; /* as in verb->options: NULL absent, "" a flag that was given */
	const char *repeated[CLI_REPEATS_MAX]; /* values of the option that repeats */
	size_t repeated_count;
	char **args; /* positional arguments before "--" */
	size_t arg_count;
	char **command; /* what follows "--"; NULL when there was none */
	size_t command_count;
};

struct cli_verb {
	const char *name; /* "exec", or two words: "image build" */
	const char *synopsis; /* arguments, for the help */
	const char *help;
	const struct cli_option *options; /* NULL: none of its own */
	size_t args_min, args_max;
	bool takes_command; /* "-- argv..." is required */
	bool hidden;
	const char *profile; /* default of SANDBOX_PROFILE; NULL: code */
	int (*run)(struct cli_call *call, struct err *e);
};

/* cli_option() - value of one of the verb's own options: NULL absent, "" for a flag. */
const char *cli_option(const struct cli_call *call, const char *name);

/* cli_parse() - fill a call from the command line, the environment and the env file.
 * Return: 0, -1 (ERR_USAGE or ERR_CONFIG). */
int cli_parse(struct cli_call *call, const struct cli_verb *verbs, size_t verb_count, int argc,
	      char **argv, struct err *e);
void cli_call_done(struct cli_call *call);

/* What every verb takes and is no setting. */
extern const struct cli_option cli_common_options[];

/* cli_tables() - verbs, options and settings on standard output, as JSON. Return: exit status, -1. */
int cli_tables(const struct cli_verb *verbs, size_t count, struct err *e);

/* cli_help() - the general help on standard output, or a verb's with its settings. */
void cli_help(const struct cli_verb *verbs, size_t verb_count, const struct cli_verb *verb);

/* cli_print_error() - "mcp-sandbox: <what>: <cause>" and "  remedy: ..." on standard error. */
void cli_print_error(const struct err *e);

/* The verbs (main.c has the table). */
int cli_serve(struct cli_call *call, struct err *e);
int cli_tls_self_signed(struct cli_call *call, struct err *e);
int cli_exec(struct cli_call *call, struct err *e);
int cli_ps(struct cli_call *call, struct err *e);
int cli_stop(struct cli_call *call, struct err *e);
int cli_reset(struct cli_call *call, struct err *e);
int cli_rm(struct cli_call *call, struct err *e);
int cli_gc(struct cli_call *call, struct err *e);
int cli_doctor(struct cli_call *call, struct err *e);
int cli_image_build(struct cli_call *call, struct err *e);
int cli_image_import(struct cli_call *call, struct err *e);
int cli_image_export(struct cli_call *call, struct err *e);
int cli_image_list(struct cli_call *call, struct err *e);
int cli_image_rm(struct cli_call *call, struct err *e);
int cli_setup(struct cli_call *call, struct err *e);
extern const struct cli_option cli_setup_options[]; /* cli_setup.c */
int cli_attack(struct cli_call *call, struct err *e);
int cli_attack_program(struct cli_call *call, struct err *e);
int cli_attack_judge(struct cli_call *call, struct err *e);
int cli_selftest(struct cli_call *call, struct err *e);
extern const struct cli_option cli_selftest_options[]; /* cli_selftest.c */
int cli_token_add(struct cli_call *call, struct err *e);
int cli_token_list(struct cli_call *call, struct err *e);
int cli_token_rm(struct cli_call *call, struct err *e);
int cli_net_log(struct cli_call *call, struct err *e);
int cli_net_policy(struct cli_call *call, struct err *e);
int cli_workspace_import(struct cli_call *call, struct err *e);
int cli_workspace_export(struct cli_call *call, struct err *e);

extern const struct cli_option cli_image_build_options[]; /* cli_image.c */
extern const struct cli_option cli_image_import_options[];

/* cli_enter_state() - for verbs that work on the state directory without a keeper: become root of
 * the storage namespace (ordinary user; re-executes once). Return: 0, -1. */
int cli_enter_state(struct cli_call *call, struct settings *ret, struct err *e);
