/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tool_run.c - run_command and run_sandboxed_command
 *
 * Runs in the front, without privilege. Arguments come from a model, output from a hostile command;
 * both only ever become text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "mcp/args.h"
#include "mcp/call.h"
#include "mcp/excerpt.h"
#include "mcp/json_write.h"
#include "mcp/bounds.h"
#include "mcp/result.h"
#include "mcp/tools.h"
#include "runtime/base/str.h"
#include "runtime/label.h"

struct run {
	char key[KEY_MAX];
	uint64_t timeout_ms;
	bool timeout_raised;
	bool has_excerpt;
	struct excerpt excerpt;
};

static void run_drop(struct call *c)
{
	struct run *run = c->state;

	if (run->has_excerpt)
		excerpt_done(&run->excerpt);
	if (c->tool->safe_shell && *run->key)
		keeper_client_discard(c->server->keeper, c->peer->owner, run->key);
	free(run);
}

static void refuse(struct call *c, const struct err *e)
{
	call_refuse(c, TOOL_ERROR, e->message, e->remedy);
}

/* The ceiling is the keeper's to apply and to tell; "below 1 is 1" is ours. */
static int read_timeout(struct run *run, const struct json *args, struct err *e)
{
	int64_t seconds;

	if (args_whole(args, "timeout_seconds", INT64_MIN, &seconds, e) < 0)
		return -1;
	if (seconds == INT64_MIN)
		return 0; /* the keeper's default */
	run->timeout_raised = seconds < 1;
	if (seconds < 1)
		seconds = 1;
	if (seconds > INT32_MAX)
		seconds = INT32_MAX;
	run->timeout_ms = (uint64_t)seconds * 1000;
	return 0;
}

static struct run *run_new(struct call *c)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		call_refuse(c, TOOL_ERROR, "no memory", "");
	c->state = run;
	return run;
}

/* ---- the end of a command ---- */

/* What a program that reads replies may want without parsing text. */
static void write_meta(char *text, size_t size, const struct run *run)
{
	const struct api_exec_done *d = &run->excerpt.done;

	(void)snprintf(text, size,
		       "\"mcp-linux-sandbox/key\":\"%s\",\"mcp-linux-sandbox/exitCode\":%" PRId32
		       ",\"mcp-linux-sandbox/durationMs\":%" PRIu64
		       ",\"mcp-linux-sandbox/outputBytes\":%" PRIu64,
		       run->key, d->exit_code, d->duration_usec / 1000, d->total_bytes);
}

static bool step_command(struct call *c)
{
	struct run *run = c->state;
	char meta[256];
	struct buf *b;

	if (!excerpt_step(&run->excerpt))
		return false;
	b = call_result_begin(c);
	call_write_text_head(b);
	result_first_line(b, run->key, &run->excerpt.done);
	if (run->timeout_raised)
		buf_append_str(b, " [timeout raised to 1 s]");
	buf_append_str(b, "\\n");
	result_blocked(b, &run->excerpt.done, keeper_client_hello(c->server->keeper, c->peer->owner));
	excerpt_write(&run->excerpt, b, true);
	call_write_text_tail(b);
	write_meta(meta, sizeof(meta), run);
	call_result_end(c, result_is_error(&run->excerpt.done), meta);
	return true;
}

static void start_reading(struct call *c, const struct api_header *h, int *fds, size_t fd_count,
			  bool (*step)(struct call *c))
{
	struct run *run = c->state;

	excerpt_start(&run->excerpt, (const struct api_exec_done *)h, fds, fd_count);
	run->has_excerpt = true;
	call_work(c, step);
}

static void on_reply(struct keeper_request *r, const struct api_header *h, int *fds,
		     size_t fd_count)
{
	struct call *c = r->ctx;

	switch (h->op) {
	case API_PROGRESS:
		call_progress(c, ((const struct api_progress *)h)->total_bytes);
		break;
	case API_EXEC_DONE:
		start_reading(c, h, fds, fd_count, step_command);
		break;
	case API_FAILED:
		refuse(c, &((const struct api_failed *)h)->error);
		break;
	default:
		call_refuse(c, TOOL_ERROR, "unexpected answer from the sandbox service", "");
		break;
	}
}

/* ---- run_command ---- */

static int read_key(char *key, const struct json *args, struct err *e)
{
	const char *label;

	if (args_text(args, "sandbox", NULL, LABEL_MAX_BYTES, &label, e) < 0)
		return err_remedy(e, "%s", LABEL_RULE);
	return label_to_key(label, strlen(label), key, e);
}

/* A relative directory is meant from /workspace, where a command starts. */
static int read_cwd(char cwd[API_CWD_MAX], const struct json *args, struct err *e)
{
	const char *text;

	if (args_text(args, "cwd", "/workspace", API_CWD_MAX - sizeof("/workspace/"), &text, e) < 0)
		return -1;
	(void)snprintf(cwd, API_CWD_MAX, "%s%s", *text == '/' ? "" : "/workspace/", text);
	return 0;
}

/* "root" means something where commands run as a user; elsewhere everything is. */
static int read_user(struct keeper_exec *x, const struct json *args, struct err *e)
{
	const char *user;

	if (args_text(args, "user", "", 16, &user, e) < 0)
		return -1;
	if (*user && strcmp(user, "root") != 0 && strcmp(user, "user") != 0)
		return err_set(e, ERR_USAGE, "user: neither root nor user");
	x->as_root = !strcmp(user, "root");
	return 0;
}

static void start_command(struct call *c, const struct json *args)
{
	struct run *run = run_new(c);
	struct keeper_exec x = { 0 };
	char cwd[API_CWD_MAX];
	struct err e;

	if (!run)
		return;
	if (read_key(run->key, args, &e) < 0 ||
	    args_text(args, "command", NULL, API_COMMAND_MAX, &x.command, &e) < 0 ||
	    read_timeout(run, args, &e) < 0 || read_cwd(cwd, args, &e) < 0 ||
	    read_user(&x, args, &e) < 0) {
		refuse(c, &e);
		return;
	}
	x.key = run->key;
	x.cwd = cwd;
	x.command_len = strlen(x.command);
	x.timeout_ms = run->timeout_ms;
	c->request.fn = on_reply;
	c->can_peek = true;
	keeper_client_exec(c->server->keeper, &c->request, &x);
}

static void describe_command(struct buf *b, const struct api_hello *h)
{
	buf_printf(b, "Run a shell command (bash -lc) %sin a disposable Debian Linux sandbox ",
		   h->as_user ? "" : "as root ");
	buf_append_str(b, "and get its output. The label `sandbox`: " LABEL_RULE
			  ".\nA new label starts an empty sandbox in milliseconds. Files in /workspace "
			  "and everything installed stay for the label; processes end after ");
	result_duration(b, h->idle_ms);
	buf_append_str(b,
		       " without a command.\nThe result begins with [sandbox KEY] [exit N] and notes "
		       "(timeout, out of memory, ...), then stdout and stderr in the order written. "
		       "Exit codes are not tool errors. Output over 20000 characters loses its middle; "
		       "the whole is in the file named there (read it with sed -n or grep).\n"
		       "Every call is a new shell in cwd: cd and variables do not carry over, files do. "
		       "There is no terminal and no input: use -y flags. For a server or long job, "
		       "start it in the background: nohup CMD >/tmp/job.log 2>&1 &\n");
	tools_write_projects(b, h);
	tools_write_limits(b, h);
}

const struct tool tool_run_command = {
	.name = "run_command",
	.title = "Run a command",
	.hints = TOOL_DESTRUCTIVE | TOOL_NEEDS_NET,
	.result_chars = 100000,
	.describe = describe_command,
	.parameters = {
		{ "sandbox", "string",
		  "Label of this conversation's sandbox, for example amber-otter. New conversation: new "
		  "label; then always the same.",
		  true },
		{ "command", "string", "Shell command or script, up to 1 MiB.", true },
		{ "timeout_seconds", "integer",
		  "Kill the command and everything it started after this many seconds (default and "
		  "ceiling: see above).",
		  false },
		{ "cwd", "string", "Directory to start in. Default /workspace.", false },
		{ "user", "string", "root to install packages; otherwise leave it out.", false, .with_user = true },
	},
	.start = start_command,
	.drop = run_drop,
};

/* ---- run_sandboxed_command ---- */

static bool is_readonly(const struct api_hello *h, const char *path)
{
	for (uint32_t i = 0; i < h->project_count && i < PROJECT_MAX; i++) {
		if (!strcmp(h->project[i].path, path))
			return !h->project[i].writable;
	}
	return false;
}

/* Names only what can be written to in this sandbox, as whoever runs the commands. */
static void write_writable(struct buf *b, const struct api_hello *h)
{
	buf_append_str(b, "\\n\\nread-only file system: write to ");
	if (!is_readonly(h, "/workspace"))
		buf_append_str(b, "/workspace, ");
	for (uint32_t i = 0; i < h->project_count && i < PROJECT_MAX; i++) {
		if (h->project[i].writable && strcmp(h->project[i].path, "/workspace") != 0)
			buf_printf(b, "%s, ", h->project[i].path);
	}
	buf_append_str(b, h->as_user ? "/tmp or /dev/shm" : "/tmp, /dev/shm or /run");
}

/* The lines a model needs when the exit code alone does not explain what happened. */
static void write_causes(struct buf *b, const struct excerpt *x, const struct api_hello *h)
{
	const struct api_exec_done *d = &x->done;
	char size[32];

	if (d->flags & API_OUT_OF_MEMORY)
		buf_printf(b, "\\n\\nout of memory: the kernel killed a process of this command at the "
			      "limit of %s; SANDBOX_MEMORY raises it",
			   str_format_size(d->memory_limit_bytes, size, sizeof(size)));
	if (d->exit_code && excerpt_mentions(x, "Read-only file system"))
		write_writable(b, h);
	if (d->flags & API_PIDS_REFUSED)
		buf_printf(b, "\\n\\nprocess limit: the kernel refused a process above the limit of "
			      "%" PRIu32 "; SANDBOX_PIDS raises it",
			   d->pids_limit);
	if (d->not_enforced) {
		buf_append_str(b, "\\n\\nlimits not enforced: ");
		result_controllers(b, d->not_enforced);
	}
}

static bool step_sandboxed(struct call *c)
{
	struct run *run = c->state;
	struct excerpt *x = &run->excerpt;
	const struct api_exec_done *d = &x->done;
	bool silent;
	struct buf *b;

	if (!excerpt_step(x))
		return false;
	budget_trim(&x->budget);
	silent = !x->budget.first.len && !x->budget.cut;
	b = call_result_begin(c);
	call_write_text_head(b);
	if (d->flags & API_TIMED_OUT)
		buf_printf(b, "Execution timed out after %" PRIu64 " seconds.%s", d->timeout_ms / 1000,
			   silent ? "" : "\\n\\n");
	else if (silent)
		buf_printf(b, "Process exited with code %" PRId32, d->exit_code);
	excerpt_write(x, b, false);
	write_causes(b, x, &c->server->keeper->hello);
	call_write_text_tail(b);
	call_result_end(c, d->exit_code || (d->flags & API_TIMED_OUT), "");
	return true;
}

static void on_sandboxed_reply(struct keeper_request *r, const struct api_header *h, int *fds,
			       size_t fd_count)
{
	if (h->op == API_EXEC_DONE)
		start_reading(r->ctx, h, fds, fd_count, step_sandboxed);
	else
		on_reply(r, h, fds, fd_count);
}

/* Every call has a sandbox of its own, under a name no other call or server has. */
static int make_key(char key[KEY_MAX])
{
	static unsigned int count;
	static uint64_t server;

	if (!server && getrandom(&server, sizeof(server), 0) != sizeof(server))
		return -1;
	(void)snprintf(key, KEY_MAX, KEY_THROWAWAY "%016" PRIx64 "-%06x", server, count++ & 0xffffff);
	return 0;
}

static void start_sandboxed(struct call *c, const struct json *args)
{
	struct run *run = run_new(c);
	struct keeper_exec x = { .cwd = "" };
	struct err e;

	if (!run)
		return;
	if (args_text(args, "command", NULL, API_COMMAND_MAX, &x.command, &e) < 0 ||
	    read_timeout(run, args, &e) < 0) {
		refuse(c, &e);
		return;
	}
	if (make_key(run->key) < 0) {
		call_refuse(c, TOOL_ERROR, "no random number for a sandbox name", "");
		return;
	}
	x.key = run->key;
	x.command_len = strlen(x.command);
	x.timeout_ms = run->timeout_ms;
	c->request.fn = on_sandboxed_reply;
	c->can_peek = true;
	keeper_client_exec(c->server->keeper, &c->request, &x);
}

static void describe_sandboxed(struct buf *b, const struct api_hello *h)
{
	buf_append_str(b, "Run a command (bash -c) in a throw-away Linux sandbox that exists for this "
			  "call only: no network, the root file system is read-only, nothing persists. "
			  "Write to /workspace or /tmp. The result is what the command printed, or its "
			  "exit code when it printed nothing.\n");
	tools_write_projects(b, h);
	tools_write_limits(b, h);
}

const struct tool tool_run_sandboxed = {
	.name = "run_sandboxed_command",
	.title = "Run a sandboxed command",
	.safe_shell = true,
	.result_chars = 100000,
	.describe = describe_sandboxed,
	.parameters = {
		{ "command", "string", "Shell command to run.", true },
		{ "timeout_seconds", "integer", "Kill the command after this many seconds.", false },
	},
	.start = start_sandboxed,
	.drop = run_drop,
};
