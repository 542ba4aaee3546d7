/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/signals.c - reach processes of the host by number; prints "<call> <pid> ok" or the error
 *
 * usage: signals PID... */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void show(const char *call, int pid, long result)
{
	printf("%s %d %s\n", call, pid, result >= 0 ? "ok" : strerrorname_np(errno));
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int pid = atoi(argv[i]), fds[2];
		siginfo_t info = { .si_code = SI_QUEUE };

		show("kill", pid, kill(pid, 0));
		show("tgkill", pid, syscall(SYS_tgkill, pid, pid, 0));
		show("sigqueue", pid, syscall(SYS_rt_sigqueueinfo, pid, 0, &info));
		show("pidfd_open", pid, syscall(SYS_pidfd_open, pid, 0));
		/* a pipe that tells its owner: the owner is looked up when the number is given */
		if (pipe(fds) < 0)
			return 2;
		show("setown", pid, fcntl(fds[0], F_SETOWN, pid));
		fcntl(fds[0], F_SETSIG, SIGKILL);
		fcntl(fds[0], F_SETFL, O_ASYNC);
		(void)!write(fds[1], "x", 1);
	}
	return 0;
}
