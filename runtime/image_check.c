/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_check.c - an image is good when a sandbox starts on it and its commands run there
 *
 * Runs in: the command line's "image build" and "image import", in the keeper's place: it makes one
 * sandbox by the same code (launch.c, enter.c), with a read-only root, no network, no workspace, and
 * asks it questions. Everything that comes back is text of a program in the image: bounded, and judged
 * in image_facts.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/loop.h"
#include "runtime/base/str.h"
#include "runtime/base/sys.h"
#include "runtime/image.h"
#include "runtime/image_run.h"
#include "runtime/launch.h"
#include "runtime/seccomp.h"

enum {
	START_TIMEOUT_MS = 30 * 1000,
	COMMAND_TIMEOUT_MS = 300 * 1000, /* node on a Pi, cold */
	SCRIPT_MAX = 64 * 1024,
	CHECK_PIDS = 128,
};

#define MIB (UINT64_C(1) << 20)

static char *const check_env[] = {
	(char[]){ "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" },
	(char[]){ "HOME=/tmp" }, (char[]){ "USER=root" }, (char[]){ "LANG=C.UTF-8" },
	(char[]){ "TERM=dumb" }, NULL
};

struct check {
	struct launch launch;
	struct profile profile;
	struct seccomp_program filter;
	struct enter_rights rights;
	bool running;
};

/* ---- the sandbox ---- */

static int prepare(struct check *c, struct err *e)
{
	c->profile = *profile_find("safe-shell");
	c->profile.caps = SANDBOX_CAPS;
	c->profile.tmp_noexec = false;
	c->profile.tmp_bytes = 256 * MIB;
	if (caps_plan_init(&c->rights.caps, c->profile.caps, e) < 0 ||
	    seccomp_compile(SECCOMP_SANDBOX, "native", &c->filter, e) < 0)
		return -1;
	c->rights.seccomp = &c->filter.prog;
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 ? err_sys(e, "become a reaper") : 0;
}

/* wait_readable() - for fd, the user's Ctrl-C, or the deadline. Return: 1 readable, -1. */
static int wait_readable(int fd, uint64_t deadline_ns, const char *what, struct err *e)
{
	for (;;) {
		struct pollfd fds[2] = { { .fd = fd, .events = POLLIN },
					 { .fd = image_signal_fd(), .events = POLLIN } };
		uint64_t now = loop_now_ns();
		int left_ms = now < deadline_ns ? (int)((deadline_ns - now) / 1000000) + 1 : 0;
		int n = poll(fds, 2, left_ms);

		if (n < 0 && errno != EINTR)
			return err_sys(e, "wait for the sandbox");
		if (n > 0 && fds[1].revents && image_interrupted(e) < 0)
			return -1;
		if (n > 0 && fds[0].revents)
			return 1;
		if (n == 0)
			return err_set(e, ERR_TIMEOUT, "%s took too long", what);
	}
}

static uint64_t deadline(unsigned int ms)
{
	return loop_now_ns() + (uint64_t)ms * UINT64_C(1000000);
}

static int start(struct check *c, const struct idrange *ids, int rootfs_fd, struct err *e)
{
	struct launch_request req = {
		.key = "image-check-000000",
		.profile = &c->profile,
		.ids = ids,
		.lower_fd = rootfs_fd,
		.layer_fd = -1,
		.workspace_fd = -1,
		.output_fd = -1,
		.cgroup_fd = -1,
		.pids = CHECK_PIDS,
		.die_with_keeper = true,
		.rights = &c->rights,
	};
	uint64_t end = deadline(START_TIMEOUT_MS);
	int r;

	if (launch_start(&req, &c->launch, e) < 0)
		return -1;
	c->running = true;
	do {
		if (wait_readable(c->launch.status_fd, end, "the start of a sandbox", e) < 0)
			return -1;
		r = launch_progress(&c->launch, e);
	} while (r == 0);
	return r < 0 ? -1 : 0;
}

/* end() - kill pid 1, and with it everything inside; then reap whatever became our child. */
static void end(struct check *c)
{
	if (c->running) {
		(void)sys_pidfd_send_signal(c->launch.pidfd, SIGKILL);
		while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
			;
		launch_done(&c->launch);
	}
	seccomp_program_done(&c->filter);
}

/* ---- one command in it ---- */

struct question {
	const char *script;
	struct buf answer;
	int status; /* as a shell gives it */
};

/* read_status() - from the joiner's fork to the command's exec. Return: the command's pid, -1. */
static pid_t read_status(int fd, uint64_t end_ns, struct err *e)
{
	struct enter_status status;
	pid_t pid = -1;

	for (;;) {
		ssize_t n;

		if (wait_readable(fd, end_ns, "the start of a command", e) < 0)
			return -1;
		n = fd_read_full(fd, &status, sizeof(status));
		if (n == 0)
			return pid > 0 ? pid : err_set(e, ERR_GONE, "a command did not start");
		if (n != (ssize_t)sizeof(status))
			return err_sys(e, "read a command's status");
		if (status.kind == ENTER_PID)
			pid = status.value;
		if (status.kind != ENTER_FAILED)
			continue;
		if (status.stage == ENTER_EXEC && status.error == ENOENT)
			return err_set(e, ERR_DENIED, "no /bin/bash in the image");
		errno = status.error;
		return err_sys(e, "%s", enter_stage_text(status.stage));
	}
}

static int read_answer(int fd, struct question *q, uint64_t end_ns, struct err *e)
{
	char text[8192];

	for (;;) {
		ssize_t n;

		if (wait_readable(fd, end_ns, "a command of the image", e) < 0)
			return -1;
		n = read(fd, text, sizeof(text));
		if (n <= 0)
			return n == 0 ? 0 : err_sys(e, "read a command's output");
		if (buf_append(&q->answer, text, (size_t)n) < 0)
			return err_set(e, ERR_LIMIT, "a command of the image says too much");
	}
}

static int reap_command(pid_t pid, struct question *q, struct err *e)
{
	int status;

	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return err_sys(e, "wait for a command");
	}
	q->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}

static int ask(const struct check *c, struct question *q, struct err *e)
{
	char *argv[] = { (char[]){ "/bin/bash" }, (char[]){ "-c" }, NULL, NULL };
	_cleanup_fd_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	_cleanup_fd_ int out_read = -1, out_write = -1, status_read = -1, status_write = -1;
	uint64_t end_ns = deadline(COMMAND_TIMEOUT_MS);
	struct enter_command cmd = { .init_pidfd = c->launch.pidfd, .leaf_fd = -1, .script_fd = -1,
				     .cwd = "/", .argv = argv, .envp = check_env,
				     .rights = &c->rights };
	int out[2], status[2];
	pid_t joiner, pid;

	if (null_fd < 0 || pipe2(out, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	out_read = out[0];
	out_write = out[1];
	if (pipe2(status, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	status_read = status[0];
	status_write = status[1];
	argv[2] = strdup(q->script);
	if (!argv[2])
		return err_set(e, ERR_NOMEM, "no memory for a script");
	cmd.stdin_fd = null_fd;
	cmd.stdout_fd = out_write;
	cmd.stderr_fd = out_write;
	cmd.status_fd = status_write;
	joiner = enter_start_joiner(&cmd);
	free(argv[2]);
	if (joiner < 0)
		return err_sys(e, "start a command in the sandbox");
	close_fd(&out_write);
	close_fd(&status_write);
	pid = read_status(status_read, end_ns, e);
	if (pid < 0 || read_answer(out_read, q, end_ns, e) < 0)
		return -1;
	return reap_command(pid, q, e);
}

/* ---- the questions ---- */

/* Each promised command runs with empty input; the first line of what a failing one said is kept. */
#define TRY_FUNCTION                                                                               \
	"try() { local said status; said=$(\"$@\" 2>&1 </dev/null); status=$?\n"                   \
	"[ $status = 0 ] || { bad=1; echo \"$1: status $status: ${said%%$'\\n'*}\"; }; }\n"        \
	"bad=0\n"

/* One fact per line, packages last; a system without dpkg has none. */
#define FACTS_SCRIPT                                                                               \
	"[ ! -r /etc/os-release ] || . /etc/os-release\n"                                          \
	"echo \"${PRETTY_NAME:-}\"; echo \"${VERSION_CODENAME:-}\"\n"                              \
	"dpkg-query -W -f='${Package} ${Version}\\n' 2>/dev/null; exit 0\n"

static int check_commands(const struct check *c, const struct recipe *recipe, struct err *e)
{
	struct question q = { .status = -1 };
	struct buf script;
	int r;

	buf_init(&script, SCRIPT_MAX);
	buf_init(&q.answer, IMAGE_FACTS_TEXT_MAX);
	(void)buf_append_str(&script, TRY_FUNCTION);
	for (size_t i = 0; i < recipe->command_count; i++)
		(void)buf_printf(&script, "try %s\n", recipe->command[i]);
	r = buf_append_str(&script, "exit $bad\n") < 0 ? err_set(e, ERR_LIMIT, "too many commands") : 0;
	q.script = script.data;
	if (r == 0)
		r = ask(c, &q, e);
	if (r == 0 && q.status != 0) {
		char text[400];

		str_escape(text, sizeof(text), q.answer.data ? q.answer.data : "", q.answer.len);
		r = err_set(e, ERR_HOST, "commands that the recipe promises do not run in a sandbox: %s",
			    text);
	}
	buf_done(&script);
	buf_done(&q.answer);
	return r;
}

static int read_facts(const struct check *c, struct image_facts *ret, struct err *e)
{
	struct question q = { .script = FACTS_SCRIPT };
	int r;

	buf_init(&q.answer, IMAGE_FACTS_TEXT_MAX);
	r = ask(c, &q, e);
	if (r == 0)
		r = image_facts_parse(q.answer.data, ret, e);
	buf_done(&q.answer);
	return r;
}

/* has_bash() - before anything is started, so that the sentence is the right one. */
static int has_bash(int rootfs_fd, struct err *e)
{
	_cleanup_fd_ int fd = sys_openat2(rootfs_fd, "bin/bash", O_PATH | O_CLOEXEC, 0,
					  RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	if (fd >= 0)
		return 0;
	(void)err_set(e, ERR_DENIED, "no /bin/bash in the image");
	return err_remedy(e, "commands run in bash: add it to the image");
}

int image_check(const struct idrange *ids, int rootfs_fd, const struct recipe *recipe,
		struct image_facts *ret, struct err *e)
{
	struct check c = { .launch = LAUNCH_INIT };
	int r = -1;

	*ret = (struct image_facts){ 0 };
	if (has_bash(rootfs_fd, e) < 0)
		return -1;
	if (prepare(&c, e) == 0 && start(&c, ids, rootfs_fd, e) == 0 &&
	    check_commands(&c, recipe, e) == 0)
		r = read_facts(&c, ret, e);
	end(&c);
	return r;
}
