/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/userns_calls.c - every way to get a namespace; prints "<call> ok" or "<call> <error>" */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* raw: <sched.h> and <linux/sched.h> do not agree */
int setns(int fd, int type);

static long do_unshare(unsigned long flags) { return syscall(SYS_unshare, flags); }

static long do_clone(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		_exit(0);
	return pid;
}

static long do_clone3(unsigned long flags)
{
	struct clone_args args = { .flags = flags, .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return pid;
}

static const struct {
	const char *name;
	unsigned long flag;
} flags[] = {
	{ "user", CLONE_NEWUSER }, { "mnt", CLONE_NEWNS },   { "pid", CLONE_NEWPID },
	{ "net", CLONE_NEWNET },   { "ipc", CLONE_NEWIPC },  { "uts", CLONE_NEWUTS },
	{ "cgroup", CLONE_NEWCGROUP }, { "time", CLONE_NEWTIME },
	{ "user+mnt", CLONE_NEWUSER | CLONE_NEWNS },
	/* the high half must not hide the low one from the filter */
	{ "user-high", CLONE_NEWUSER | 1UL << 40 },
};

static void show(const char *call, const char *name, long result)
{
	if (result >= 0)
		printf("%s-%s ok\n", call, name);
	else
		printf("%s-%s %s\n", call, name, strerrorname_np(errno));
	fflush(stdout);
}

static void in_child(const char *call, const char *name, long (*fn)(unsigned long), unsigned long arg)
{
	fflush(stdout);
	if (fork() == 0) {
		show(call, name, fn(arg));
		_exit(0);
	}
	wait(NULL);
}

static long do_setns(unsigned long which)
{
	static const char *const paths[] = { "/proc/self/ns/user", "/proc/1/ns/user",
					     "/proc/1/ns/mnt", "/proc/1/ns/pid" };
	int fd = open(paths[which], O_RDONLY);

	return fd < 0 ? -1 : setns(fd, 0);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		in_child("unshare", flags[i].name, do_unshare, flags[i].flag);
		if (flags[i].flag != CLONE_NEWTIME) {
			in_child("clone", flags[i].name, do_clone, flags[i].flag);
			in_child("clone3", flags[i].name, do_clone3, flags[i].flag & 0xffffffffUL);
		}
	}
	in_child("setns", "self-user", do_setns, 0);
	in_child("setns", "init-user", do_setns, 1);
	in_child("setns", "init-mnt", do_setns, 2);
	in_child("setns", "init-pid", do_setns, 3);
	return 0;
}
