/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/exec_start.c - commands: from a place in a sandbox to a running process
 *
 * Runs in the keeper. Everything the joiner needs is prepared here; then a joiner is forked and the
 * keeper goes on with its loop. What became of the command is read from the status pipe: its pid,
 * perhaps a failed step, and the end of file when it has executed or died.
 */
#include "runtime/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/egress.h"
#include "runtime/net.h"
#include "runtime/seccomp.h"

/* Longer than one argument may be: the shell reads it from descriptor 3, which is closed again for
 * the command (words are expanded before redirections). */
static char script_from_fd[] = "eval \"$(</proc/self/fd/3)\" 3<&-";
/* A program named without a path is searched for in PATH, with bash's own 126 and 127. */
static char search_path[] = "exec -- \"$@\"";
/* What follows is no option, whatever it begins with. */
static char end_of_options[] = "--";
static char bash_path[] = "/bin/bash", bash_name[] = "bash", login_flag[] = "-lc", plain_flag[] = "-c";

/* ---- what the joiner is given ---- */

enum { ENV_HOME = 1, ENV_USER = 2, ENV_KEY = 7 };

#define ENV_PROXY(name) (char[]){ name "=http://" NET_INSIDE_ADDRESS ":" NET_PROXY_PORT_TEXT }
#define NO_PROXY "localhost,127.0.0.1,::1"
#define JAVA_PROXY                                                                                 \
	"-Dhttp.proxyHost=" NET_INSIDE_ADDRESS " -Dhttp.proxyPort=" NET_PROXY_PORT_TEXT            \
	" -Dhttps.proxyHost=" NET_INSIDE_ADDRESS " -Dhttps.proxyPort=" NET_PROXY_PORT_TEXT

static char env_key[sizeof("SANDBOX=") + KEY_MAX];

/* Where an egress proxy is in force. Both cases, since programs differ: curl takes http_proxy in lower
 * case only. Below the line, those that do not look at these variables. */
static char *const proxy_environment[] = {
	ENV_PROXY("http_proxy"),
	ENV_PROXY("https_proxy"),
	ENV_PROXY("all_proxy"),
	ENV_PROXY("HTTP_PROXY"),
	ENV_PROXY("HTTPS_PROXY"),
	ENV_PROXY("ALL_PROXY"),
	(char[]){ "no_proxy=" NO_PROXY },
	(char[]){ "NO_PROXY=" NO_PROXY },
	/* ---- */
	(char[]){ "NODE_USE_ENV_PROXY=1" },
	ENV_PROXY("YARN_HTTP_PROXY"),
	ENV_PROXY("YARN_HTTPS_PROXY"),
	(char[]){ "MAVEN_OPTS=" JAVA_PROXY " -Daether.connector.http.useSystemProperties=true" },
	(char[]){ "GRADLE_OPTS=" JAVA_PROXY },
};

/* With a folder of the operator's: its owner is often none of the sandbox's users, and then git refuses
 * to look at it. What it protects from, other users of the same machine, does not exist in here. */
static char *const folder_environment[] = {
	(char[]){ "GIT_CONFIG_COUNT=1" },
	(char[]){ "GIT_CONFIG_KEY_0=safe.directory" },
	(char[]){ "GIT_CONFIG_VALUE_0=*" },
};

static char *environment[ENV_KEY + 1 + ARRAY_SIZE(proxy_environment) + ARRAY_SIZE(folder_environment) +
			 1] = {
	(char[]){ "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
	NULL, /* ENV_HOME */
	NULL, /* ENV_USER */
	(char[]){ "LANG=C.UTF-8" },
	(char[]){ "TERM=dumb" },
	(char[]){ "NO_COLOR=1" },
	(char[]){ "DEBIAN_FRONTEND=noninteractive" },
	env_key,
};

static char home_root[] = "HOME=/root", home_user[] = "HOME=/home/user", home_tmp[] = "HOME=/tmp";
static char user_root[] = "USER=root", user_user[] = "USER=user";

static bool runs_as_user(const struct command *cmd)
{
	return cmd->reg->projects->as_user && !(cmd->exec_flags & API_EXEC_ROOT);
}

static size_t append_variables(size_t n, char *const *variables, size_t count)
{
	memcpy(&environment[n], variables, count * sizeof(*variables));
	return n + count;
}

/* One table for all commands: it is copied by the joiner's exec before the next one changes it. */
static char *const *fill_environment(const struct command *cmd)
{
	bool user = runs_as_user(cmd);
	size_t n = ENV_KEY + 1;

	(void)snprintf(env_key, sizeof(env_key), "SANDBOX=%s", cmd->sandbox->key);
	environment[ENV_HOME] = !user				    ? home_root :
				cmd->reg->settings->profile->layer_kept ? home_user :
									    home_tmp;
	environment[ENV_USER] = user ? user_user : user_root;
	if (egress_has_proxy(cmd->sandbox))
		n = append_variables(n, proxy_environment, ARRAY_SIZE(proxy_environment));
	if (cmd->reg->projects->count > 0)
		n = append_variables(n, folder_environment, ARRAY_SIZE(folder_environment));
	environment[n] = NULL;
	return environment;
}

/* The caller frees the vector; the strings are borrowed from text. */
static char **split_arguments(char *text, size_t len, struct err *e)
{
	size_t count = 0, n = 0;
	bool search = strchr(text, '/') == NULL;
	char **argv;

	for (size_t i = 0; i <= len; i++)
		count += i == len || text[i] == '\0';
	argv = count > EXEC_ARGS_MAX ? NULL : calloc(count + 5, sizeof(*argv));
	if (!argv) {
		(void)err_set(e, ERR_LIMIT, "more than %d arguments", EXEC_ARGS_MAX);
		return NULL;
	}
	if (search) {
		argv[n++] = bash_path;
		argv[n++] = plain_flag;
		argv[n++] = search_path;
		argv[n++] = bash_name;
	}
	for (size_t i = 0; i <= len; i += strlen(text + i) + 1)
		argv[n++] = text + i;
	return argv;
}

static char **build_argv(struct command *cmd, struct err *e)
{
	char **argv;

	if (cmd->mode == API_EXEC_ARGV)
		return split_arguments(cmd->text, cmd->text_len, e);
	argv = calloc(5, sizeof(*argv));
	if (!argv) {
		(void)err_set(e, ERR_NOMEM, "no memory for a command");
		return NULL;
	}
	argv[0] = bash_path;
	argv[1] = cmd->reg->settings->profile->login_shell ? login_flag : plain_flag;
	argv[2] = end_of_options;
	argv[3] = cmd->text ? cmd->text : script_from_fd;
	return argv;
}

/* ---- pipes ---- */

/* One pipe for both, read here. */
static int make_log_pipe(struct command *cmd, struct err *e)
{
	const struct registry *reg = cmd->reg;
	uint32_t root = cmd->sandbox->ids->base + ID_SANDBOX_ROOT;
	int *inside = cmd->inside_fds;

	cmd->out = calloc(1, sizeof(*cmd->out));
	if (!cmd->out)
		return err_set(e, ERR_NOMEM, "no memory for a command");
	inside[1] = output_start(cmd->out, reg->loop, &cmd->sandbox->logs, root, root, NULL, NULL, e);
	if (inside[1] < 0) {
		free(cmd->out);
		cmd->out = NULL;
		return -1;
	}
	inside[0] = fcntl(reg->null_fd, F_DUPFD_CLOEXEC, 0);
	inside[2] = fcntl(inside[1], F_DUPFD_CLOEXEC, 0);
	if (inside[0] < 0 || inside[2] < 0)
		return err_sys(e, "standard input and output");
	return 0;
}

/* Three pipes whose other ends go to the client. */
static int make_client_pipes(struct command *cmd, struct err *e)
{
	uint32_t root = cmd->sandbox->ids->base + ID_SANDBOX_ROOT;

	for (int i = 0; i < 3; i++) {
		int fds[2], inside_end = i == 0 ? 0 : 1;

		if (output_pipe(fds, inside_end, root, root, e) < 0)
			return -1;
		cmd->inside_fds[i] = fds[inside_end];
		cmd->client_fds[i] = fds[1 - inside_end];
	}
	return 0;
}

static void close_pipes(struct command *cmd)
{
	for (size_t i = 0; i < ARRAY_SIZE(cmd->inside_fds); i++) {
		close_fd(&cmd->inside_fds[i]);
		close_fd(&cmd->client_fds[i]);
	}
}

static int seal_script(struct command *cmd, struct err *e)
{
	if (cmd->text_fd < 0)
		return 0;
	if (fcntl(cmd->text_fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_sys(e, "seal a command");
	return 0;
}

/* ---- the joiner ---- */

static void on_status(struct loop_source *s, uint32_t events);

static void report_arrived(struct command *cmd)
{
	if (cmd->expected)
		reap_expect(cmd->reg->reaper, -1);
	cmd->expected = false;
}

static void unreserve(struct command *cmd)
{
	if (cmd->reserved && cmd->sandbox && cgroup_pids_reserve(&cmd->sandbox->box, false) < 0)
		log_warn("%s: pids.max: %s", cmd->key, strerror(errno));
	cmd->reserved = false;
}

static void close_status(struct command *cmd)
{
	int fd = cmd->status.fd;

	if (fd >= 0)
		loop_remove(&cmd->status);
	close_fd(&fd);
	report_arrived(cmd);
	unreserve(cmd); /* also of a second start that came to no pipe */
}

/* A joiner outlives its command when a start is given up, and its sandbox must not be torn down
 * before it has left. */
struct joiner_watch {
	struct reap_child child;
	struct sandbox *sandbox;
	struct command *command; /* NULL when it was given up */
	int leaf;                /* then: held until the joiner is gone */
	bool kill;               /* then: whatever it has put there dies */
};

static void release_leaf(struct joiner_watch *w)
{
	struct sandbox *sb = w->sandbox;

	if (w->leaf < 0)
		return;
	if (w->kill && cgroup_leaf_kill(&sb->box, (unsigned int)w->leaf) < 0)
		log_warn("%s: cgroup.kill: %s", sb->key, strerror(errno));
	cgroup_leaf_unmark(&sb->box, (unsigned int)w->leaf);
	sb->leaf[w->leaf].commands--;
	sb->leaf[w->leaf].last_ns = loop_now_ns();
}

static void on_joiner_reaped(struct reap_child *c, struct reap_status status)
{
	struct joiner_watch *w = c->ctx;
	struct sandbox *sb = w->sandbox;

	(void)status;
	if (w->command)
		w->command->joiner = NULL;
	release_leaf(w);
	free(w);
	sb->joiners--;
	if (sb->state == SANDBOX_STOPPING)
		registry_step(sb);
	else
		sandbox_pump(sb);
}

static int watch_joiner(struct command *cmd, struct joiner_watch *w, pid_t pid, struct err *e)
{
	w->sandbox = cmd->sandbox;
	w->command = cmd;
	w->leaf = -1;
	if (reap_watch(cmd->reg->reaper, &w->child, pid, on_joiner_reaped, w) < 0)
		return err_sys(e, "watch a child");
	cmd->joiner = w;
	cmd->sandbox->joiners++;
	reap_expect(cmd->reg->reaper, 1);
	cmd->expected = true;
	return 0;
}

void command_give_up(struct command *cmd, bool kill_it)
{
	struct joiner_watch *w = cmd->joiner;

	if (kill_it && w)
		(void)kill(w->child.pid, SIGKILL);
	if (kill_it && cmd->leaf >= 0)
		(void)cgroup_leaf_kill(&cmd->sandbox->box, (unsigned int)cmd->leaf);
	if (w) { /* it may still be about to clone: its leaf is not free before it has gone */
		w->command = NULL;
		w->leaf = cmd->leaf;
		w->kill = kill_it;
		cmd->joiner = NULL;
		cmd->leaf = -1;
	}
	close_status(cmd);
	close_pipes(cmd);
}

static int read_baseline(struct command *cmd, struct err *e)
{
	struct sandbox *sb = cmd->sandbox;

	if (cmd->leaf < 0)
		return 0;
	if (cgroup_leaf_open(&sb->box, (unsigned int)cmd->leaf, e) < 0)
		return -1;
	if (cgroup_evidence_read(&sb->box, (unsigned int)cmd->leaf, &cmd->before) < 0)
		return err_sys(e, "read the sandbox's counters");
	/* Before there is anything to lose: the keeper after us reports what has this mark. */
	if (cmd->reg->survives && cgroup_leaf_mark(&sb->box, (unsigned int)cmd->leaf) < 0)
		return err_sys(e, "mark the command's cgroup");
	return 0;
}

static int fork_joiner(struct command *cmd, char **argv, int status_fd, struct err *e)
{
	struct sandbox *sb = cmd->sandbox;
	struct joiner_watch *w = calloc(1, sizeof(*w));
	struct enter_command ec = {
		.init_pidfd = sb->launch.pidfd,
		.leaf_fd = cmd->leaf < 0 ? -1 : sb->box.leaf_fd[cmd->leaf],
		.status_fd = status_fd,
		.stdin_fd = cmd->inside_fds[0],
		.stdout_fd = cmd->inside_fds[1],
		.stderr_fd = cmd->inside_fds[2],
		.script_fd = cmd->text_fd,
		.cwd = cmd->cwd,
		.argv = argv,
		.envp = fill_environment(cmd),
		.uid = runs_as_user(cmd) ? ID_USER_INSIDE : 0,
		.gid = runs_as_user(cmd) ? ID_USER_INSIDE : 0,
		.rights = runs_as_user(cmd) ? cmd->reg->user_rights : cmd->reg->rights,
	};
	pid_t pid;

	if (!w)
		return err_set(e, ERR_NOMEM, "no memory for a command");
	/* The joiner is a copy of this process: all that is prepared may be freed after the fork. */
	pid = enter_start_joiner(&ec);
	if (pid < 0)
		(void)err_sys(e, "fork");
	if (pid < 0 || watch_joiner(cmd, w, pid, e) < 0) {
		free(w);
		return -1;
	}
	return 0;
}

static int try_start(struct command *cmd, struct err *e)
{
	_cleanup_free_ char **argv = build_argv(cmd, e);
	_cleanup_fd_ int read_fd = -1, write_fd = -1;
	int fds[2];

	if (!argv || read_baseline(cmd, e) < 0)
		return -1;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, "make a status pipe");
	read_fd = fds[0];
	write_fd = fds[1];
	if (fcntl(read_fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "make a pipe non-blocking");
	if (loop_add(cmd->reg->loop, &cmd->status, read_fd, EPOLLIN, on_status, cmd, e) < 0)
		return -1;
	(void)take_fd(&read_fd);
	return fork_joiner(cmd, argv, write_fd, e);
}

int command_start(struct command *cmd, struct err *e)
{
	int rc = (cmd->exec_flags & API_EXEC_STREAM) ? make_client_pipes(cmd, e) :
						       make_log_pipe(cmd, e);

	if (rc < 0 || seal_script(cmd, e) < 0 || try_start(cmd, e) < 0)
		return -1;
	cmd->state = COMMAND_STARTING;
	cmd->egress_mark = egress_mark(cmd->sandbox);
	command_timer(cmd, EXEC_START_MS);
	return 0;
}

/* ---- what became of it ---- */

static void on_child_reaped(struct reap_child *c, struct reap_status status)
{
	struct command *cmd = c->ctx;

	cmd->exited = true;
	cmd->exit = status;
	if (cmd->state != COMMAND_STARTING) /* else the status pipe comes first */
		command_end(cmd);
}

int command_watch(struct command *cmd, pid_t pid)
{
	return reap_watch(cmd->reg->reaper, &cmd->child, pid, on_child_reaped, cmd);
}

/* Before its first instruction: the process limit is reached, or somebody else has killed the leaf. */
static bool may_try_again(const struct command *cmd, uint32_t stage, int error)
{
	return stage == ENTER_CLONE && (error == EAGAIN || error == ECANCELED) && cmd->leaf >= 0 &&
	       cmd->tries < EXEC_CLONE_TRIES;
}

/* A rescue command (pkill) must still start in a full sandbox (M 17). A leaf that a cgroup.kill of
 * somebody else has hit would kill every command from now on, see cgroup_leaf_kill(). */
static int try_again(struct command *cmd, int error, struct err *e)
{
	close_status(cmd);
	reap_forget(cmd->reg->reaper, &cmd->child);
	cmd->exited = false;
	if (cmd->joiner) { /* it exits by itself; the next one uses the same leaf */
		cmd->joiner->command = NULL;
		cmd->joiner = NULL;
	}
	cmd->tries++;
	if (error == ECANCELED && command_change_leaf(cmd) < 0)
		return -1;
	if (error == EAGAIN)
		cmd->reserved = cgroup_pids_reserve(&cmd->sandbox->box, true) == 0;
	return try_start(cmd, e);
}

/* A program that cannot be executed is an exit status, as a shell gives it. */
static void fail_like_a_shell(struct command *cmd, int error)
{
	char name[256], line[512];
	int len;

	(void)str_escape(name, sizeof(name), cmd->text, strlen(cmd->text));
	len = snprintf(line, sizeof(line), "mcp-sandbox: %s: %s\n", name, strerror(error));
	/* The pipe is empty, so this does not wait. */
	if (write(cmd->inside_fds[2], line, (size_t)len) < 0)
		log_debug("%s: no message: %s", cmd->key, strerror(errno));
	reap_forget(cmd->reg->reaper, &cmd->child);
	cmd->exited = true;
	cmd->exit = (struct reap_status){ .exit_code = error == ENOENT ? 127 : 126 };
	command_started(cmd);
}

static void explain(struct command *cmd, uint32_t stage, int error, struct err *e)
{
	char text[256];

	errno = error;
	if (error == ECANCELED) { /* in whatever stage it was */
		(void)err_set(e, ERR_GONE, "the command was killed before it could start");
	} else if (stage == ENTER_CWD) {
		(void)str_escape(text, sizeof(text), cmd->cwd, strlen(cmd->cwd));
		(void)err_sys(e, "cwd %s", text);
		e->code = ERR_NOT_FOUND;
	} else if (stage == ENTER_CLONE && error == EAGAIN) {
		(void)err_set(e, ERR_LIMIT, "process limit %u is reached: no command can start",
			      cmd->reg->settings->limits.pids);
		(void)err_remedy(e, "mcp-sandbox stop %s", cmd->key);
	} else if (stage == ENTER_JOIN && error == ESRCH) {
		(void)err_set(e, ERR_GONE, "the sandbox ended while it was being used");
	} else if (stage == ENTER_EXEC) {
		(void)err_sys(e, "run %s in the sandbox", bash_path);
		(void)err_remedy(e, "mcp-sandbox reset %s, or an image that has bash", cmd->key);
	} else {
		(void)err_sys(e, "start the command: %s", enter_stage_text(stage));
	}
}

static void on_failed(struct command *cmd, uint32_t stage, int error)
{
	struct sandbox *sb = cmd->sandbox;
	struct err e = { 0 };

	if (may_try_again(cmd, stage, error) && try_again(cmd, error, &e) == 0)
		return;
	if (stage == ENTER_EXEC && cmd->mode == API_EXEC_ARGV && strchr(cmd->text, '/')) {
		fail_like_a_shell(cmd, error);
		return;
	}
	explain(cmd, stage, error, &e);
	command_refuse(cmd, &e); /* it ends by itself; what shares its leaf lives on */
	sandbox_pump(sb);
}

/* Return: 1 go on reading, 0 nothing more for now, -1 the command is no longer starting. */
static int read_status(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;
	struct enter_status st;
	ssize_t n = read(cmd->status.fd, &st, sizeof(st));
	struct err e = { 0 };

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == sizeof(st) && st.kind == ENTER_PID) {
		if (cmd->child.pid > 0 || cmd->exited)
			return 1; /* said twice: killed just after the first time */
		if (reap_watch_reported(cmd->reg->reaper, &cmd->child, st.value, on_child_reaped,
					cmd) < 0)
			log_warn("%s: command %d is not our child", cmd->key, st.value);
		report_arrived(cmd);
		return 1;
	}
	if (n == sizeof(st) && st.kind == ENTER_FAILED) {
		on_failed(cmd, st.stage, st.error);
		return -1;
	}
	if (n == sizeof(st))
		return 1;
	if (n == 0 && (cmd->child.pid > 0 || cmd->exited)) {
		command_started(cmd);
		return -1;
	}
	(void)err_set(&e, ERR_GONE, "the command was killed before it could start");
	command_refuse(cmd, &e);
	sandbox_pump(sb);
	return -1;
}

static void on_status(struct loop_source *s, uint32_t events)
{
	struct command *cmd = s->ctx;

	(void)events;
	while (read_status(cmd) > 0)
		;
}

/* ---- running ---- */

static void tell_started(struct command *cmd)
{
	struct api_started msg = { .created = (cmd->flags & API_CREATED) != 0 };

	if (cmd->exec_flags & API_EXEC_STREAM)
		request_note(&cmd->req, API_STARTED, &msg, sizeof(msg), cmd->client_fds,
			     ARRAY_SIZE(cmd->client_fds));
}

/* The process has its own copy. */
static void forget_text(struct command *cmd)
{
	close_fd(&cmd->text_fd);
	free(cmd->text);
	free(cmd->cwd);
	cmd->text = cmd->cwd = NULL;
}

void command_started(struct command *cmd)
{
	close_status(cmd);
	tell_started(cmd);
	close_pipes(cmd);
	forget_text(cmd);
	cmd->state = COMMAND_RUNNING;
	cmd->started_ns = loop_now_ns();
	command_timer(cmd, cmd->timeout_ms);
	if (cmd->exited)
		command_end(cmd);
}
