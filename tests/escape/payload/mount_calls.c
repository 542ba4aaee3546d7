/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/mount_calls.c - every way to change what is mounted; prints "<call> ok" or "<call> <error>" */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif

static long do_umount_mask(void) { return umount2("/proc/keys", 0); }
static long do_umount_sys(void) { return umount2("/proc/sys", MNT_DETACH); }
static long do_umount_proc(void) { return umount2("/proc", MNT_DETACH); }
static long do_proc(void) { return mount("proc", "/tmp/m", "proc", 0, NULL); }
static long do_sysfs(void) { return mount("sysfs", "/tmp/m", "sysfs", 0, NULL); }
static long do_tmpfs(void) { return mount("x", "/tmp/m", "tmpfs", 0, NULL); }
static long do_cgroup2(void) { return mount("x", "/tmp/m", "cgroup2", 0, NULL); }
static long do_cgroup1(void) { return mount("x", "/tmp/m", "cgroup", 0, "none,name=mcpt"); }
static long do_bind(void) { return mount("/etc", "/tmp/m", NULL, MS_BIND, NULL); }
static long do_remount(void) { return mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL); }
static long do_remount_root(void) { return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL); }
static long do_propagation(void) { return mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL); }
static long do_pivot(void) { return syscall(SYS_pivot_root, "/tmp", "/tmp/m"); }
static long do_fsopen(void) { return syscall(SYS_fsopen, "proc", 0); }
static long do_fsopen_overlay(void) { return syscall(SYS_fsopen, "overlay", 0); }
/* recursive: a part of /proc that hides what is mounted below it may not be cloned by anybody */
static long do_open_tree(void)
{
	return syscall(SYS_open_tree, AT_FDCWD, "/proc", 1 /* CLONE */ | 0x8000 /* AT_RECURSIVE */);
}
static long do_move(void)
{
	int fd = open("/proc", O_PATH);

	return syscall(SYS_move_mount, fd, "", AT_FDCWD, "/tmp/m", MOVE_MOUNT_F_EMPTY_PATH);
}
static long do_setattr(void)
{
	unsigned long long attr[4] = { 0, 1 /* RDONLY */, 0, 0 };

	return syscall(SYS_mount_setattr, AT_FDCWD, "/proc/sys", 0, attr, sizeof(attr));
}
static long do_unshare(void) { return unshare(CLONE_NEWNS); }
static long do_unshare_user(void) { return unshare(CLONE_NEWUSER | CLONE_NEWNS); }

static const struct {
	const char *name;
	long (*call)(void);
} rows[] = {
	{ "umount-mask", do_umount_mask },	 { "umount-proc-sys", do_umount_sys },
	{ "umount-proc", do_umount_proc },	 { "mount-proc", do_proc },
	{ "mount-sysfs", do_sysfs },		 { "mount-tmpfs", do_tmpfs },
	{ "mount-cgroup2", do_cgroup2 },	 { "mount-cgroup", do_cgroup1 },
	{ "bind", do_bind },			 { "remount-proc-sys", do_remount },
	{ "remount-root", do_remount_root },	 { "shared", do_propagation },
	{ "pivot_root", do_pivot },		 { "fsopen", do_fsopen },
	{ "fsopen-overlay", do_fsopen_overlay }, { "open_tree", do_open_tree },
	{ "move_mount", do_move },		 { "mount_setattr", do_setattr },
	{ "unshare-mount", do_unshare },	 { "unshare-user-mount", do_unshare_user },
};

int main(void)
{
	mkdir("/tmp/m", 0755);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* a child each: what succeeds must not change the next one's chances */
		fflush(stdout);
		if (fork() == 0) {
			errno = 0;
			if (rows[i].call() >= 0)
				printf("%s ok\n", rows[i].name);
			else
				printf("%s %s\n", rows[i].name, strerrorname_np(errno));
			fflush(stdout);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
