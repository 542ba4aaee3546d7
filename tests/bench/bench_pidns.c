/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/bench_pidns.c - what the kernel alone takes to end a pid namespace
 *
 * For every line on standard input, a number, that many "sleep" run below the process 1 of a new pid
 * namespace and of nothing else; process 1 is killed, and the time until it could be reaped, which is when
 * the last of them is gone, is printed in microseconds. tools/bench takes turns between this and a sandbox.
 * Runs as root.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/sys.h"
#include "tests/bench/figures.h"

enum { PROCESSES_MAX = 1000 };

static _Noreturn void run_init(int processes, int ready_fd)
{
	static char name[] = "sleep", time[] = "600", path[] = "PATH=/usr/bin:/bin";
	char *const argv[] = { name, time, NULL }, *const env[] = { path, NULL };
	pid_t pid;

	(void)signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < processes; i++) {
		if (posix_spawnp(&pid, name, NULL, NULL, argv, env) != 0)
			_exit(1);
	}
	if (write(ready_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

static int run_once(int processes, double *ret_us)
{
	struct clone_args args = { .flags = CLONE_NEWPID, .exit_signal = SIGCHLD };
	int ends[2], status = -1;
	char byte;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid = sys_clone3(&args, sizeof(args));
	if (pid == 0)
		run_init(processes, ends[1]);
	(void)close(ends[1]);
	if (pid < 0 || read(ends[0], &byte, 1) != 1)
		return -1;
	(void)close(ends[0]);
	double start = now_us();
	(void)kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status))
		return -1;
	*ret_us = now_us() - start;
	return 0;
}

int main(void)
{
	char line[16];
	double us;

	while (fgets(line, sizeof(line), stdin)) {
		int processes = atoi(line);

		if (processes < 0 || processes > PROCESSES_MAX || run_once(processes, &us) < 0) {
			fprintf(stderr, "bench_pidns: cannot make a pid namespace with processes here\n");
			return 1;
		}
		printf("%.1f\n", us);
		(void)fflush(stdout);
	}
	return 0;
}
