/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli.c - parse the command line against the verb table and the settings table
 *
 * Runs first, as the user who started the program. One rule for all verbs: the verb comes first, then
 * options and arguments in any order, then, where a verb runs a command, "--" and the command. What
 * is not known is refused with the nearest name that is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"

enum { HELP_MAX = 64 * 1024 };

const struct cli_option cli_common_options[] = {
	{ "config", "FILE", "env file to read instead of the user's or the system's" },
	{ "dump-config", NULL, "print the settings in force and end" },
	{ "help", NULL, "say what there is, or what a verb takes, and end" },
	{ "version", NULL, "print the version and end" },
	{ NULL },
};

const char *cli_option(const struct cli_call *call, const char *name)
{
	const struct cli_option *options = call->verb->options;

	for (size_t i = 0; options && options[i].name; i++) {
		if (!strcmp(options[i].name, name))
			return call->option[i];
	}
	return NULL;
}

static int usage(struct err *e, const struct cli_verb *verb)
{
	e->code = ERR_USAGE;
	return err_remedy(e, "mcp-sandbox %s%s--help", verb ? verb->name : "", verb ? " " : "");
}

/* The verb at argv[1], or of two words at argv[1] and argv[2]. Return: words used, 0 when none. */
static int match_verb(const struct cli_verb *verb, int argc, char **argv)
{
	const char *space = strchr(verb->name, ' ');
	size_t first = space ? (size_t)(space - verb->name) : strlen(verb->name);

	if (argc < 2 || strlen(argv[1]) != first || memcmp(argv[1], verb->name, first))
		return 0;
	if (!space)
		return 1;
	return argc > 2 && !strcmp(argv[2], space + 1) ? 2 : 0;
}

static int find_verb(struct cli_call *call, const struct cli_verb *verbs, size_t count, int argc,
		     char **argv, struct err *e)
{
	char shown[80];

	for (size_t i = 0; i < count; i++) {
		int words = match_verb(&verbs[i], argc, argv);

		if (words) {
			call->verb = &verbs[i];
			return words;
		}
	}
	if (argc < 2)
		err_set(e, ERR_USAGE, "command line: no verb");
	else
		err_set(e, ERR_USAGE, "command line: \"%s\" is not a verb of this version",
			str_escape(shown, sizeof(shown), argv[1], strlen(argv[1])));
	return usage(e, NULL);
}

/* One "--name[=value]" while it is taken apart. */
struct option_word {
	char name[64];
	const char *value; /* after "=", or NULL */
};

static int split_option(const char *arg, struct option_word *ret, struct err *e)
{
	size_t len = strcspn(arg + 2, "=");
	char shown[80];

	if (arg[1] != '-' || len == 0 || len >= sizeof(ret->name))
		return err_set(e, ERR_USAGE, "command line: %s is not an option",
			       str_escape(shown, sizeof(shown), arg, strlen(arg)));
	memcpy(ret->name, arg + 2, len);
	ret->name[len] = '\0';
	ret->value = arg[2 + len] == '=' ? arg + 2 + len + 1 : NULL;
	return 0;
}

/* The value of an option that needs one: after "=", or the next word. */
static int take_value(struct option_word *word, char **argv, int argc, int *i, struct err *e)
{
	if (word->value)
		return 0;
	if (*i + 1 >= argc)
		return err_set(e, ERR_USAGE, "command line: --%s needs a value", word->name);
	word->value = argv[++*i];
	return 0;
}

/* Options of every verb that are no settings. */
struct common_options {
	const char *config_path;
	bool help, version, dump;
};

static int take_repeat(struct cli_call *call, const struct option_word *word, struct err *e)
{
	if (call->repeated_count == CLI_REPEATS_MAX)
		return err_set(e, ERR_USAGE, "command line: --%s too often", word->name);
	call->repeated[call->repeated_count++] = word->value;
	return 1;
}

static int take_own_option(struct cli_call *call, struct option_word *word, int argc, char **argv,
			   int *i, struct err *e)
{
	const struct cli_option *options = call->verb->options;

	for (size_t n = 0; options && options[n].name; n++) {
		if (strcmp(options[n].name, word->name))
			continue;
		if (!options[n].value && word->value)
			return err_set(e, ERR_USAGE, "command line: --%s takes no value", word->name);
		if (options[n].value && take_value(word, argv, argc, i, e) < 0)
			return -1;
		call->option[n] = options[n].value ? word->value : "";
		return options[n].repeats ? take_repeat(call, word, e) : 1;
	}
	return 0;
}

static int take_common_option(struct common_options *common, struct option_word *word, int argc,
			      char **argv, int *i, struct err *e)
{
	if (!strcmp(word->name, "config")) {
		if (take_value(word, argv, argc, i, e) < 0)
			return -1;
		common->config_path = word->value;
		return 1;
	}
	if (word->value)
		return 0;
	if (!strcmp(word->name, "help"))
		common->help = true;
	else if (!strcmp(word->name, "version"))
		common->version = true;
	else if (!strcmp(word->name, "dump-config"))
		common->dump = true;
	else
		return 0;
	return 1;
}

static int take_setting(struct cli_call *call, struct option_word *word, int argc, char **argv, int *i,
			struct err *e)
{
	int id = config_find_option(word->name);

	if (id < 0) {
		err_set(e, ERR_USAGE, "command line: no option --%s", word->name);
		return err_remedy(e, "did you mean --%s? See mcp-sandbox --help",
				  config_nearest_option(word->name));
	}
	if (config_is_flag((enum config_id)id) && !word->value)
		word->value = "1";
	if (take_value(word, argv, argc, i, e) < 0)
		return -1;
	return config_set(&call->config, (enum config_id)id, word->value, CONFIG_FROM_COMMAND_LINE, e);
}

static int take_option(struct cli_call *call, struct common_options *common, int argc, char **argv,
		       int *i, struct err *e)
{
	struct option_word word;
	int taken;

	if (!strcmp(argv[*i], "-h")) {
		common->help = true;
		return 0;
	}
	if (split_option(argv[*i], &word, e) < 0)
		return -1;
	taken = call->verb ? take_own_option(call, &word, argc, argv, i, e) : 0;
	if (taken == 0)
		taken = take_common_option(common, &word, argc, argv, i, e);
	if (taken == 0)
		taken = take_setting(call, &word, argc, argv, i, e);
	return taken < 0 ? -1 : 0;
}

/* Words from argv[i] on: options are taken, the rest is gathered into args, "--" ends it. */
static int take_words(struct cli_call *call, struct common_options *common, int argc, char **argv,
		      int i, struct err *e)
{
	call->args = calloc((size_t)argc + 1, sizeof(*call->args));
	if (!call->args)
		return err_set(e, ERR_NOMEM, "command line: out of memory");
	for (; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			call->command = argv + i + 1;
			call->command_count = (size_t)(argc - i - 1);
			return 0;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			call->args[call->arg_count++] = argv[i];
		else if (take_option(call, common, argc, argv, &i, e) < 0)
			return -1;
	}
	return 0;
}

static int check_arguments(const struct cli_call *call, struct err *e)
{
	const struct cli_verb *verb = call->verb;

	if (call->arg_count < verb->args_min || call->arg_count > verb->args_max) {
		err_set(e, ERR_USAGE, "%s: %s argument%s: %s", verb->name,
			call->arg_count < verb->args_min ? "missing" : "too many",
			call->arg_count < verb->args_min && verb->args_min == 1 ? "" : "s",
			verb->synopsis);
		return usage(e, verb);
	}
	if (verb->takes_command && call->command_count == 0) {
		err_set(e, ERR_USAGE, "%s: no command after --: %s", verb->name, verb->synopsis);
		return usage(e, verb);
	}
	if (!verb->takes_command && call->command) {
		err_set(e, ERR_USAGE, "%s: takes no command after --", verb->name);
		return usage(e, verb);
	}
	return 0;
}

static int print_dump(const struct config *config, struct err *e)
{
	struct buf out;
	int r;

	buf_init(&out, HELP_MAX);
	r = config_dump(config, &out);
	if (r == 0 && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0))
		r = err_sys(e, "standard output");
	else if (r < 0)
		err_set(e, ERR_NOMEM, "settings: out of memory");
	buf_done(&out);
	return r;
}

static const char *default_profile(const struct cli_call *call)
{
	return call->verb && call->verb->profile ? call->verb->profile : "code";
}

/* Return: 1 when the option did all there is to do, 0 go on, -1. */
static int serve_common(struct cli_call *call, const struct common_options *common,
			const struct cli_verb *verbs, size_t count, struct err *e)
{
	if (common->help) {
		cli_help(verbs, count, call->verb);
		return 1;
	}
	if (common->version) {
		printf("mcp-sandbox %s\n", MCP_SANDBOX_VERSION);
		return 1;
	}
	if (!call->verb && !common->dump)
		return 0;
	if (config_load_environment(&call->config, environ, e) < 0 ||
	    config_load_file(&call->config, common->config_path, e) < 0 ||
	    config_finish(&call->config, default_profile(call), e) < 0)
		return -1;
	if (common->dump)
		return print_dump(&call->config, e) < 0 ? -1 : 1;
	return 0;
}

int cli_parse(struct cli_call *call, const struct cli_verb *verbs, size_t verb_count, int argc,
	      char **argv, struct err *e)
{
	struct common_options common = { 0 };
	int words = 0, r;

	*call = (struct cli_call){ .argv = argv };
	config_init(&call->config);
	/* "mcp-sandbox --help": options without a verb. */
	if (argc < 2 || argv[1][0] != '-') {
		words = find_verb(call, verbs, verb_count, argc, argv, e);
		if (words < 0)
			return -1;
	}
	if (take_words(call, &common, argc, argv, 1 + words, e) < 0)
		return e->remedy[0] || e->code != ERR_USAGE ? -1 : usage(e, call->verb);
	r = serve_common(call, &common, verbs, verb_count, e);
	if (r != 0)
		return r;
	if (!call->verb) {
		err_set(e, ERR_USAGE, "command line: no verb");
		return usage(e, NULL);
	}
	return check_arguments(call, e);
}

void cli_call_done(struct cli_call *call)
{
	config_done(&call->config);
	free(call->args);
	call->args = NULL;
}

static void help_options(const struct cli_option *options)
{
	for (size_t i = 0; options && options[i].name; i++) {
		char option[64];

		snprintf(option, sizeof(option), "--%s %s", options[i].name,
			 options[i].value ? options[i].value : "");
		printf("  %-24s %s\n", option, options[i].help);
	}
}

static void help_verb(const struct cli_verb *verb)
{
	printf("usage: mcp-sandbox %s %s\n\n%s\n\n", verb->name, verb->synopsis, verb->help);
	help_options(verb->options);
}

static void help_verbs(const struct cli_verb *verbs, size_t count)
{
	printf("usage: mcp-sandbox VERB [OPTION...] [ARGUMENT...]\n\n"
	       "A disposable Debian Linux sandbox as an MCP server.\n\n");
	for (size_t i = 0; i < count; i++) {
		if (!verbs[i].hidden)
			printf("  %s %s\n      %s\n", verbs[i].name, verbs[i].synopsis, verbs[i].help);
	}
	printf("\n\"mcp-sandbox VERB --help\" names the options of a verb.\n");
}

void cli_help(const struct cli_verb *verbs, size_t verb_count, const struct cli_verb *verb)
{
	struct buf settings;

	if (verb)
		help_verb(verb);
	else
		help_verbs(verbs, verb_count);
	help_options(cli_common_options);
	printf("\nSettings, as options of every verb, in the environment, or in the env file\n"
	       "(/etc/mcp-sandbox/mcp-sandbox.env for root, else\n"
	       "$XDG_CONFIG_HOME/mcp-sandbox/mcp-sandbox.env). Three defaults are those of the profiles\n"
	       "chat, code and safe-shell. Other users can see a command line: give tokens in the file.\n\n");
	buf_init(&settings, HELP_MAX);
	if (config_help(&settings) == 0)
		fwrite(settings.data, 1, settings.len, stdout);
	buf_done(&settings);
	fflush(stdout);
}

void cli_print_error(const struct err *e)
{
	char message[ERR_MESSAGE_MAX * 4], remedy[ERR_REMEDY_MAX * 4];

	fprintf(stderr, "mcp-sandbox: %s\n",
		str_escape(message, sizeof(message), e->message, strlen(e->message)));
	if (e->remedy[0])
		fprintf(stderr, "  remedy: %s\n",
			str_escape(remedy, sizeof(remedy), e->remedy, strlen(e->remedy)));
}
