/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/bench_join.c - the bare cost of a command in a sandbox that somebody else runs
 *
 * bench_join INIT-PID LEAF: for every line on standard input, "bash -lc true" is started in the sandbox
 * of that process 1 by the joiner alone, in the cgroup directory LEAF, and the time from its start to reaped
 * is printed in microseconds. tools/bench takes turns between this and run_command over stdio, so that
 * what server, protocol and client add is measured in one run. Runs as root.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/sys.h"
#include "runtime/caps.h"
#include "runtime/enter.h"
#include "runtime/seccomp.h"
#include "runtime/spec.h"
#include "tests/bench/figures.h"

static pid_t wait_for_exec(int status_fd)
{
	struct enter_status message;
	pid_t pid = -1;

	while (read(status_fd, &message, sizeof(message)) == sizeof(message)) {
		if (message.kind == ENTER_FAILED) {
			fprintf(stderr, "bench_join: %s: errno %d\n", enter_stage_text(message.stage),
				message.error);
			return -1;
		}
		if (message.kind == ENTER_PID)
			pid = message.value;
	}
	return pid;
}

static int run_once(struct enter_command *cmd)
{
	int ends[2], status = -1;
	pid_t joiner, pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	cmd->status_fd = ends[1];
	joiner = enter_start_joiner(cmd);
	(void)close(ends[1]);
	pid = joiner > 0 ? wait_for_exec(ends[0]) : -1;
	(void)close(ends[0]);
	if (joiner <= 0 || waitpid(joiner, NULL, 0) != joiner)
		return -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	static char bash[] = "/bin/bash", login[] = "-lc", text[] = "true", path[] = "PATH=/usr/bin:/bin",
		    home[] = "HOME=/root";
	char *const command[] = { bash, login, text, NULL }, *const env[] = { path, home, NULL };
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct seccomp_program program;
	struct enter_rights rights = { .seccomp = &program.prog };
	struct enter_command cmd = { .script_fd = -1, .cwd = "/workspace", .argv = command, .envp = env,
				     .rights = &rights, .stdin_fd = null_fd, .stdout_fd = null_fd,
				     .stderr_fd = null_fd };
	struct err e;
	char line[16];

	if (argc != 3 || null_fd < 0)
		return 2;
	cmd.init_pidfd = sys_pidfd_open((pid_t)atoi(argv[1]), 0);
	cmd.leaf_fd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cmd.init_pidfd < 0 || cmd.leaf_fd < 0 || caps_plan_init(&rights.caps, SANDBOX_CAPS, &e) < 0 ||
	    seccomp_compile(SECCOMP_SANDBOX, "native", &program, &e) < 0) {
		perror("bench_join: open the sandbox");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		double start = now_us();

		if (run_once(&cmd) < 0)
			return 1;
		printf("%.1f\n", now_us() - start);
		(void)fflush(stdout);
	}
	seccomp_program_done(&program);
	return 0;
}
