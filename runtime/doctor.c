/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doctor.c - the table of checks, and the process each of them runs in
 *
 * Runs as the user who asks, outside the storage namespace. A check may make namespaces, mount and
 * load filters: it does so in a child that ends afterwards, under an alarm, and sends its row back.
 * A child that dies is a finding, not a failure of the report.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/doctor.h"
#include "runtime/doctor_try.h"

enum { CHECK_SECONDS = 30 };

static const struct {
	const char *id;
	doctor_check_fn *check;
} checks[] = {
	{ "system-calls", doctor_try_syscalls },
	{ "user-namespaces", doctor_try_userns },
	{ "id-range", doctor_try_ids },
	{ "overlay", doctor_try_overlay },
	{ "proc-mount", doctor_try_proc },
	{ "memfd-exec", doctor_try_memfd },
	{ "seccomp", doctor_try_seccomp },
	{ "landlock", doctor_try_landlock },
	{ "cgroup", doctor_look_cgroup },
	{ "memory-limit", doctor_look_memory },
	{ "pids-limit", doctor_look_pids },
	{ "cpu-limit", doctor_look_cpu },
	{ "image", doctor_look_image },
	{ "disk-free", doctor_look_disk },
	{ "inotify", doctor_look_inotify },
	{ "tun-device", doctor_look_tun },
	{ "network", doctor_try_network },
	{ "linger", doctor_look_linger },
};

void doctor_say(struct doctor_row *row, enum doctor_status status, const char *found, ...)
{
	va_list ap;

	row->status = status;
	va_start(ap, found);
	(void)vsnprintf(row->found, sizeof(row->found), found, ap);
	va_end(ap);
}

void doctor_fix(struct doctor_row *row, const char *remedy, ...)
{
	va_list ap;

	va_start(ap, remedy);
	(void)vsnprintf(row->remedy, sizeof(row->remedy), remedy, ap);
	va_end(ap);
}

void doctor_say_error(struct doctor_row *row, enum doctor_status status, const struct err *e)
{
	doctor_say(row, status, "%s", e->message);
	doctor_fix(row, "%s", e->remedy);
}

static void __attribute__((noreturn)) run_check(const struct doctor_host *host, struct doctor_row *row,
						doctor_check_fn *check, int out_fd)
{
	(void)alarm(CHECK_SECONDS);
	check(host, row);
	_exit(fd_write_full(out_fd, row, sizeof(*row)) < 0);
}

/* The child sent no row: say how it ended. */
static void explain_silence(struct doctor_row *row, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		doctor_say(row, DOCTOR_MISSING, "no answer within %d seconds", CHECK_SECONDS);
	else if (WIFSIGNALED(status))
		doctor_say(row, DOCTOR_MISSING, "the check was killed by signal %d", WTERMSIG(status));
	else
		doctor_say(row, DOCTOR_MISSING, "the check ended with status %d and no answer",
			   WEXITSTATUS(status));
	doctor_fix(row, "dmesg | tail");
}

static void run_in_child(const struct doctor_host *host, struct doctor_row *row, doctor_check_fn *check)
{
	const char *id = row->id;
	int pipe_fds[2], status = 0;
	pid_t pid;
	ssize_t n;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		doctor_say(row, DOCTOR_MISSING, "no pipe for the check: %m");
		return;
	}
	pid = fork();
	if (pid == 0)
		run_check(host, row, check, pipe_fds[1]);
	close_fd(&pipe_fds[1]);
	n = fd_read_full(pipe_fds[0], row, sizeof(*row));
	row->id = id;
	close_fd(&pipe_fds[0]);
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	if (pid < 0)
		doctor_say(row, DOCTOR_MISSING, "no process for the check");
	else if (n != (ssize_t)sizeof(*row))
		explain_silence(row, status);
}

void doctor_run(const struct doctor_host *host, struct doctor_row *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		ret[i] = (struct doctor_row){ .id = checks[i].id };
		run_in_child(host, &ret[i], checks[i].check);
	}
}

size_t doctor_count(void)
{
	return ARRAY_SIZE(checks);
}

enum doctor_status doctor_worst(const struct doctor_row *rows, size_t count)
{
	enum doctor_status worst = DOCTOR_OK;

	for (size_t i = 0; i < count; i++) {
		if (rows[i].status > worst)
			worst = rows[i].status;
	}
	return worst;
}

const char *doctor_status_text(enum doctor_status status)
{
	static const char *const names[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_DEGRADED] = "degraded",
		[DOCTOR_MISSING] = "missing",
	};

	return names[status];
}
