/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/main.c - the verbs, and what happens first
 *
 * One binary, several roles: the process a user starts becomes the keeper (stdio), or a client of one
 * (exec, ps, stop, ...); "@front" is the unprivileged half that the keeper starts from this same file,
 * "@proxy" what carries sandboxes' connections.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_hold.h"
#include "mcp/cli_start.h"
#include "mcp/front.h"
#include "mcp/tools.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/cgroup.h"
#include "runtime/keeper.h"
#include "runtime/proxy/proxy.h"

static int verb_stdio(struct cli_call *call, struct err *e);
static int verb_settings_table(struct cli_call *call, struct err *e);
static int verb_tables(struct cli_call *call, struct err *e);

#define MOUNT_OPTION                                                                               \
	{ "mount", "ro|rw:HOSTDIR[:PATH]",                                                         \
	  "show a folder of this host in every sandbox, as /workspace or as /mnt/NAME", true }

static const struct cli_option stdio_options[] = {
	MOUNT_OPTION,
	{ "owner", "OWNER", "whose labels to use (name or id)" },
	{ NULL },
};

static const struct cli_option exec_options[] = {
	MOUNT_OPTION,
	{ "user", "root|user", "who runs it where a folder of yours is writable (default: user)" },
	{ "timeout", "TIME", "end the command after so long (default: the profile's)" },
	{ "owner", "OWNER", "whose label it is (name or id)" },
	{ NULL },
};

static const struct cli_option ps_options[] = {
	{ "json", NULL, "machine-readable" },
	{ "owner", "OWNER", "whose sandboxes (name or id)" },
	{ NULL },
};

static const struct cli_option owner_options[] = {
	{ "owner", "OWNER", "whose label it is (name or id)" },
	{ NULL },
};

static const struct cli_option rm_options[] = {
	{ "workspace", NULL, "also the workspace and everything in it" },
	{ "owner", "OWNER", "whose label it is (name or id)" },
	{ NULL },
};

static const struct cli_option tls_options[] = {
	{ "host", "NAME,...", "names and addresses clients use (default: this machine's loopback)" },
	{ NULL },
};

static const struct cli_option gc_options[] = {
	{ "apply", NULL, "really remove them; without it only what would go is listed" },
	{ NULL },
};

static const struct cli_option net_log_options[] = {
	{ "follow", NULL, "go on as lines are added" },
	{ "owner", "ID", "whose (a token's name, or eight hexadecimal digits)" },
	{ NULL },
};

static const struct cli_option net_policy_options[] = {
	{ "json", NULL, "machine-readable" },
	{ "owner", "OWNER", "of whose sandboxes (a token's name, or an id)" },
	{ NULL },
};

static const struct cli_option json_options[] = {
	{ "json", NULL, "machine-readable" },
	{ NULL },
};

static const struct cli_verb verbs[] = {
	{ .name = "stdio", .synopsis = "[--profile P] [--net MODE] [--mount ro|rw:HOSTDIR[:PATH]]... [--owner OWNER]",
	  .help = "serve MCP on standard input and output", .options = stdio_options,
	  .run = verb_stdio },
	{ .name = "serve", .synopsis = "[--profile P] [--net MODE] [--host ADDRESS] [--port N]",
	  .help = "serve MCP over HTTP, until told to end", .profile = "chat", .run = cli_serve },
	{ .name = "exec", .synopsis = "LABEL [--mount ro|rw:HOSTDIR[:PATH]]... [--timeout TIME] [--owner OWNER] -- COMMAND [ARGUMENT...]",
	  .help = "run a command in a sandbox (a single word is a bash command line)",
	  .options = exec_options, .args_min = 1, .args_max = 1, .takes_command = true,
	  .run = cli_exec },
	{ .name = "ps", .synopsis = "[--json]", .help = "list running sandboxes",
	  .options = ps_options, .run = cli_ps },
	{ .name = "stop", .synopsis = "LABEL", .help = "end a sandbox; its files and packages stay",
	  .options = owner_options, .args_min = 1, .args_max = 1, .run = cli_stop },
	{ .name = "reset", .synopsis = "LABEL",
	  .help = "end a sandbox and forget what it installed; its workspace stays",
	  .options = owner_options, .args_min = 1, .args_max = 1, .run = cli_reset },
	{ .name = "rm", .synopsis = "LABEL [--workspace]",
	  .help = "end a sandbox and remove its system, and with --workspace its files",
	  .options = rm_options, .args_min = 1, .args_max = 1, .run = cli_rm },
	{ .name = "gc", .synopsis = "[--apply]",
	  .help = "remove labels whose workspace nobody has written to for MAX_AGE_DAYS",
	  .options = gc_options, .run = cli_gc },
	{ .name = "workspace import", .synopsis = "LABEL DIR|TAR",
	  .help = "copy files into a workspace", .options = owner_options, .args_min = 2, .args_max = 2,
	  .run = cli_workspace_import },
	{ .name = "workspace export", .synopsis = "LABEL DIR|TAR",
	  .help = "copy a workspace out", .options = owner_options, .args_min = 2, .args_max = 2,
	  .run = cli_workspace_export },
	{ .name = "image build", .synopsis = "[minimal|default] [--name N] [--suite S] [--packages A,B] [--arch A]",
	  .help = "make an image from the distribution's packages", .options = cli_image_build_options,
	  .args_max = 1, .run = cli_image_build },
	{ .name = "image import", .synopsis = "FILE [--name N]", .help = "make an image from a tar file",
	  .options = cli_image_import_options, .args_min = 1, .args_max = 1, .run = cli_image_import },
	{ .name = "image export", .synopsis = "NAME FILE", .help = "write an image to a tar file",
	  .args_min = 1, .args_max = 2, .run = cli_image_export },
	{ .name = "image list", .synopsis = "[--json]", .help = "list images", .options = json_options,
	  .run = cli_image_list },
	{ .name = "image rm", .synopsis = "NAME", .help = "remove an image that nothing uses",
	  .args_min = 1, .args_max = 1, .run = cli_image_rm },
	{ .name = "setup", .synopsis = "claude-desktop|claude-code|cursor|codex|vscode|gemini|flowdown [--write] [--url URL]",
	  .help = "what the client's configuration needs", .options = cli_setup_options, .args_min = 1, .args_max = 1, .run = cli_setup },
	{ .name = "token add", .synopsis = "NAME",
	  .help = "let somebody in over HTTP: prints a token, once, for sandboxes of their own",
	  .args_min = 1, .args_max = 1, .run = cli_token_add },
	{ .name = "token list", .synopsis = "", .help = "names that have a token, and their owner ids",
	  .run = cli_token_list },
	{ .name = "token rm", .synopsis = "NAME", .help = "refuse a token from now on; files stay",
	  .args_min = 1, .args_max = 1, .run = cli_token_rm },
	{ .name = "tls self-signed", .synopsis = "[--host NAME,...]",
	  .help = "make a certificate and key; prints the settings that name them",
	  .options = tls_options, .run = cli_tls_self_signed },
	{ .name = "net log", .synopsis = "[--follow] [--owner ID]",
	  .help = "what sandboxes connected to, and what was refused", .options = net_log_options,
	  .run = cli_net_log },
	{ .name = "net policy", .synopsis = "[--json] [--owner OWNER]",
	  .help = "what sandboxes may reach with these settings", .options = net_policy_options,
	  .run = cli_net_policy },
	{ .name = "doctor", .synopsis = "[--json]",
	  .help = "try everything a sandbox needs and name the repair of what is missing",
	  .options = json_options, .run = cli_doctor },
	{ .name = "selftest", .synopsis = "--url URL [--token-file FILE] [--ca FILE] [--row ID]... [--json]",
	  .help = "see from outside whether a running server does what it promises", .options = cli_selftest_options,
	  .run = cli_selftest },
	{ .name = "attack", .synopsis = "[--json]",
	  .help = "run attacks inside a fresh sandbox on this host and see whether each is held",
	  .options = json_options, .run = cli_attack },
	{ .name = "@attack-program", .synopsis = "", .help = "the program that attack runs inside", .hidden = true,
	  .run = cli_attack_program },
	{ .name = "@attack-judge", .synopsis = "", .help = "judge what that program printed somewhere else",
	  .options = json_options, .hidden = true, .run = cli_attack_judge },
	{ .name = "@settings-table", .synopsis = "", .help = "the README's settings table",
	  .hidden = true, .run = verb_settings_table },
	{ .name = "@tables", .synopsis = "", .help = "all of this and the settings, for tools/gen-man",
	  .hidden = true, .run = verb_tables },
};

/* Serve requests with sandboxes, or, when there can be none, with the reason. */
static int serve_stdio(const struct start *s, const struct err *failure, struct err *e)
{
	struct projects projects = s->projects;
	struct keeper_start start = {
		.settings = &s->settings,
		.cgroup = &s->cgroup,
		.ids = &s->ids,
		.projects = &projects,
		.kind = KEEPER_STDIO,
		.start_failure = failure,
	};

	start.peer_fd = start_front(s, FRONT_STDIO, &start.peer_pid, e);
	if (start.peer_fd < 0)
		return -1;
	log_init("keeper", LOG_LEVEL_WARN);
	return keeper_run(&start, e);
}

/* A client shows its user nothing of standard error: the front answers its first request with the
 * reason. At a terminal nobody will send one. */
static int refuse_stdio(const struct start *s, const struct err *why, struct err *e)
{
	struct err ignored = { 0 };

	*e = *why;
	if (isatty(STDIN_FILENO))
		return -1;
	cli_print_error(why);
	(void)serve_stdio(s, why, &ignored);
	return err_exit_status(why->code);
}

static int verb_stdio(struct cli_call *call, struct err *e)
{
	struct err why = { 0 };
	struct start s;
	int status;

	if (start_settings(call, &s, e) < 0)
		return -1;
	if (start_host(call, &s, &why) < 0)
		status = refuse_stdio(&s, &why, e);
	else
		status = serve_stdio(&s, NULL, e);
	start_done(&s);
	return status;
}

static int verb_settings_table(struct cli_call *call, struct err *e)
{
	struct buf out;
	int status = CLI_OK;

	(void)call;
	buf_init(&out, 64 * 1024);
	if (config_markdown(&out) < 0 || fwrite(out.data, 1, out.len, stdout) != out.len)
		status = err_set(e, ERR_NOMEM, "settings table: cannot be written");
	buf_done(&out);
	return status;
}

static int verb_tables(struct cli_call *call, struct err *e)
{
	(void)call;
	return cli_tables(verbs, ARRAY_SIZE(verbs), e);
}

/* "@front ID stdio|http": started by start_front() and by nobody else. */
static int run_front(const char *id_text, const char *kind)
{
	struct err e = { 0 };
	uint64_t id;
	int status;

	if (str_parse_u64(id_text, 0, UINT32_MAX, &id) < 0)
		return CLI_USAGE;
	log_init("front", LOG_LEVEL_WARN);
	if (strcmp(kind, "http") == 0)
		status = front_http((uint32_t)id, &sandbox_registry, &e);
	else
		status = front_stdio((uint32_t)id, &sandbox_registry, &e);
	if (status >= 0)
		return status;
	cli_print_error(&e);
	return err_exit_status(e.code);
}

/* "@proxy ID": started by the keeper and by nobody else. */
static int run_proxy(const char *id_text)
{
	struct err e = { 0 };
	uint64_t id;
	int status;

	if (str_parse_u64(id_text, 0, UINT32_MAX, &id) < 0)
		return CLI_USAGE;
	log_init("proxy", LOG_LEVEL_WARN);
	status = proxy_run((uint32_t)id, &e);
	if (status >= 0)
		return status;
	cli_print_error(&e);
	return err_exit_status(e.code);
}

/* Closed standard descriptors would be taken by the next open(). */
static int open_standard_descriptors(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
		if (fd < 0)
			return -1;
	} while (fd <= STDERR_FILENO);
	return close(fd);
}

static int wrong_command_line(struct cli_call *call, const struct err *why)
{
	struct start s = { .cgroup.root_fd = -1, .trust.fd = -1, .ids = { .storage_ns_fd = -1, .lower_ns_fd = -1 } };
	struct err e = { 0 };

	if (call->verb && call->verb->run == verb_stdio) {
		s.settings.profile = &profile_table[PROFILE_CODE];
		if (refuse_stdio(&s, why, &e) >= 0)
			return err_exit_status(why->code);
	}
	cli_print_error(why);
	return err_exit_status(why->code);
}

int main(int argc, char **argv)
{
	struct cli_call call;
	struct err e = { 0 };
	int status;

	if (open_standard_descriptors() < 0)
		return CLI_FAILURE;
	(void)umask(022);
	if (argc == 4 && !strcmp(argv[1], "@front"))
		return run_front(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "@proxy"))
		return run_proxy(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "@hold"))
		return cli_hold();
	if (argc == 2 && !strcmp(argv[1], "@nothing")) /* doctor: the way here is all it wants to know */
		return CLI_OK;
	if (cgroup_scope_args(&argc, &argv, &e) < 0) { /* the words from before systemd-run */
		cli_print_error(&e);
		return err_exit_status(e.code);
	}
	status = cli_parse(&call, verbs, ARRAY_SIZE(verbs), argc, argv, &e);
	if (status < 0) {
		status = wrong_command_line(&call, &e);
	} else if (status == 0) {
		status = call.verb->run(&call, &e);
		if (status < 0) {
			cli_print_error(&e);
			status = err_exit_status(e.code);
		}
	} else {
		status = CLI_OK;
	}
	cli_call_done(&call);
	return status;
}
