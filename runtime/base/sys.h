/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/sys.h - system calls without a usable C library wrapper
 *
 * glibc 2.36 wraps neither clone3 nor openat2. Nothing here decides by kernel version: a missing
 * call fails with ENOSYS and the caller says what that means.
 */
#pragma once

#include <linux/openat2.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* sys_clone3() - clone3(2), Linux 5.3; CLONE_INTO_CGROUP since 5.7. Return: pid, 0 in the child, -1. */
static inline pid_t sys_clone3(struct clone_args *args, size_t size)
{
	return (pid_t)syscall(SYS_clone3, args, size);
}

/* sys_openat2() - openat2(2), Linux 5.6. Return: descriptor or -1. */
static inline int sys_openat2(int dir_fd, const char *path, uint64_t flags, uint64_t mode,
			      uint64_t resolve)
{
	struct open_how how = { .flags = flags, .mode = mode, .resolve = resolve };

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* pidfd calls go through syscall(): the wrappers' header clashes with linux/sched.h in glibc 2.36. */
static inline int sys_pidfd_open(pid_t pid, unsigned int flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

static inline int sys_pidfd_send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}
