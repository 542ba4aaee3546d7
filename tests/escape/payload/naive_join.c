/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/naive_join.c - enter a container as no runtime should
 *
 * usage: naive_join PID MILLISECONDS PROGRAM [ARG...]
 *
 * The negative control of many tests: it joins the namespaces of PID and runs PROGRAM there, with the
 * environment, the descriptors, the dumpable flag, the capabilities and the (missing) filter it has. The
 * pause before exec is where others need luck.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int pidfd, status;
	pid_t pid;

	if (argc < 4)
		return 2;
	pidfd = (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0);
	if (setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0) {
		perror("setns");
		return 3;
	}
	pid = fork();
	if (pid == 0) {
		usleep((useconds_t)atoi(argv[2]) * 1000);
		execv(argv[3], argv + 3);
		perror(argv[3]);
		_exit(126);
	}
	if (waitpid(pid, &status, 0) < 0)
		return 4;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
