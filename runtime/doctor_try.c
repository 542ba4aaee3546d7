/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/doctor_try.c - checks that do what a sandbox does: namespaces, mounts, filters
 *
 * Each runs in its own child (doctor.c) as the user who asks. Where a namespace is wanted for itself,
 * the caller's id alone is mapped; the id range has its own check, on the path the keeper takes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/doctor_try.h"
#include "runtime/seccomp.h"
#include "runtime/userns.h"

void doctor_try_syscalls(const struct doctor_host *host, struct doctor_row *row)
{
	struct clone_args args = { .flags = CLONE_PIDFD, .exit_signal = SIGCHLD };
	_cleanup_fd_ int dir_fd = sys_openat2(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS);
	int pidfd = -1;
	pid_t pid;

	(void)host;
	args.pidfd = (uint64_t)(uintptr_t)&pidfd;
	doctor_fix(row, "use Linux 6.1 or later; in a container, allow clone3, openat2 and pidfd calls");
	if (dir_fd < 0) {
		doctor_say(row, DOCTOR_MISSING, "openat2: %m");
		return;
	}
	pid = sys_clone3(&args, sizeof(args));
	if (pid == 0)
		_exit(0);
	if (pid < 0) {
		doctor_say(row, DOCTOR_MISSING, "clone3: %m");
		return;
	}
	if (waitid((idtype_t)P_PIDFD, (id_t)pidfd, &(siginfo_t){ 0 }, WEXITED) < 0) {
		doctor_say(row, DOCTOR_MISSING, "waiting by pidfd: %m");
		return;
	}
	doctor_fix(row, "%s", "");
	doctor_say(row, DOCTOR_OK, "clone3, openat2 and pidfd work");
}

static int write_map(const char *path, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : fd_write_full(fd, text, strlen(text));
}

/* A user namespace whose root is this user, with more namespaces. Return: 0, -1. */
static int become_namespace_root(int flags)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char text[64];

	if (unshare(CLONE_NEWUSER | flags) < 0 || write_map("/proc/self/setgroups", "deny") < 0)
		return -1;
	snprintf(text, sizeof(text), "0 %u 1", uid);
	if (write_map("/proc/self/uid_map", text) < 0)
		return -1;
	snprintf(text, sizeof(text), "0 %u 1", gid);
	return write_map("/proc/self/gid_map", text);
}

/* Namespaces were refused: the setting that did it, found by the runtime's own explanation. */
static void say_refused(struct doctor_row *row, const char *what)
{
	struct err e = { 0 };
	int error = errno;

	err_sys(&e, "%s", what);
	(void)userns_explain_refusal(error, &e);
	doctor_say_error(row, DOCTOR_MISSING, &e);
}

void doctor_try_userns(const struct doctor_host *host, struct doctor_row *row)
{
	(void)host;
	if (become_namespace_root(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET) < 0) {
		say_refused(row, "new user namespace");
		return;
	}
	/* Ubuntu lets the namespace be made and then takes its capabilities away. */
	if (sethostname("doctor", 6) < 0 || mount("doctor", "/tmp", "tmpfs", 0, NULL) < 0) {
		say_refused(row, "root of a user namespace has no rights");
		return;
	}
	doctor_say(row, DOCTOR_OK, "user, mount, network, IPC and UTS namespaces work");
}

/* Root: maps of the block, written to a child as for a sandbox. */
static int try_maps(const struct settings *s, struct err *e)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	struct idrange ids;
	pid_t pid;
	int r;

	if (userns_range_init(&ids, s->subid, 0, e) < 0)
		return -1;
	pid = sys_clone3(&args, sizeof(args));
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	r = pid < 0 ? err_sys(e, "new user namespace") : userns_write_maps(&ids, pid, e);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, __WALL);
	}
	userns_range_done(&ids);
	return r;
}

/* An ordinary user: the real way in, newuidmap and all. On success this process is replaced by
 * "mcp-sandbox @nothing", whose exit status is 0, and the row is written by its parent. */
static int try_storage(const struct settings *s, struct err *e)
{
	char *argv[] = { (char[]){ "mcp-sandbox" }, (char[]){ "@nothing" }, NULL };
	int pipe_fds[2], status;
	pid_t pid;
	ssize_t n;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_sys(e, "id range");
	pid = fork();
	if (pid == 0) {
		(void)userns_enter_storage(-1, s->subid, argv, e);
		_exit(fd_write_full(pipe_fds[1], e, sizeof(*e)) < 0 ? 1 : 2);
	}
	close_fd(&pipe_fds[1]);
	n = fd_read_full(pipe_fds[0], e, sizeof(*e));
	close_fd(&pipe_fds[0]);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return err_sys(e, "id range");
	if (n == (ssize_t)sizeof(*e))
		return -1;
	if (status != 0)
		return err_set(e, ERR_HOST, "the storage namespace could not be entered");
	return 0;
}

void doctor_try_ids(const struct doctor_host *host, struct doctor_row *row)
{
	struct err e = { 0 };
	bool root = geteuid() == 0;

	if ((root ? try_maps(host->settings, &e) : try_storage(host->settings, &e)) < 0)
		doctor_say_error(row, DOCTOR_MISSING, &e);
	else
		doctor_say(row, DOCTOR_OK, "%s", root ? "a block of 65536 ids can be mapped" :
							"newuidmap and newgidmap map the subordinate ids");
}

/* The existing directory that the state directory is, or will be made, in. */
static int open_state_parent(const char *home, char *path, size_t size)
{
	int fd;

	snprintf(path, size, "%s", home);
	while ((fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		*slash = '\0';
	}
	return fd;
}

static const char *const overlay_dirs[] = { "lower", "lower/gone", "upper", "work", "root" };

static int make_overlay_dirs(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(overlay_dirs); i++) {
		if (mkdir(overlay_dirs[i], 0700) < 0)
			return -1;
	}
	return 0;
}

/* Child in the directory: an overlay as a sandbox mounts it, and the whiteout that needs the file
 * system's extended attributes. */
static int mount_overlay(void)
{
	if (become_namespace_root(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	if (mount("overlay", "root", "overlay", MS_NOSUID | MS_NODEV,
		  "userxattr,index=off,xino=off,redirect_dir=nofollow,metacopy=off,"
		  "lowerdir=lower,upperdir=upper,workdir=work") < 0)
		return errno;
	if (rmdir("root/gone") < 0 || mkdir("root/gone", 0700) < 0)
		return errno;
	return 0;
}

/* The kernel keeps a whiteout there for re-use. */
static void empty_directory(const char *path)
{
	DIR *dir;
	const struct dirent *entry;

	(void)chmod(path, 0700);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		(void)closedir(dir);
}

static void remove_overlay_dirs(void)
{
	empty_directory("work/work");
	(void)rmdir("work/work");
	(void)rmdir("upper/gone");
	for (size_t i = ARRAY_SIZE(overlay_dirs); i > 0; i--)
		(void)rmdir(overlay_dirs[i - 1]);
}

static int try_overlay_here(void)
{
	int status = 0;
	pid_t pid;

	if (make_overlay_dirs() < 0)
		return errno;
	pid = fork();
	if (pid == 0)
		_exit(mount_overlay());
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return errno;
	remove_overlay_dirs();
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

void doctor_try_overlay(const struct doctor_host *host, struct doctor_row *row)
{
	char path[PATH_MAX], name[] = ".mcp-sandbox-doctor-XXXXXX";
	_cleanup_fd_ int fd = open_state_parent(host->settings->home, path, sizeof(path));
	int error;

	if (fd < 0 || fchdir(fd) < 0 || !mkdtemp(name)) {
		doctor_say(row, DOCTOR_MISSING, "nothing can be written in %s: %m", path);
		doctor_fix(row, "set SANDBOX_HOME to a directory of this user on ext4, xfs or btrfs");
		return;
	}
	error = chdir(name) < 0 ? errno : try_overlay_here();
	if (error) {
		doctor_say(row, DOCTOR_MISSING, "overlay with userxattr on %s: %s", path, strerror(error));
		doctor_fix(row, "set SANDBOX_HOME to a directory on ext4, xfs or btrfs, or: modprobe overlay");
	} else {
		doctor_say(row, DOCTOR_OK, "overlay with userxattr works on %s", path);
	}
	if (fchdir(fd) < 0 || unlinkat(fd, name, AT_REMOVEDIR) < 0) {
		doctor_say(row, DOCTOR_DEGRADED, "%s/%s could not be removed: %m", path, name);
		doctor_fix(row, "rm -r %s/%s", path, name);
	}
}

void doctor_try_proc(const struct doctor_host *host, struct doctor_row *row)
{
	int status = 0;
	pid_t pid;

	(void)host;
	if (become_namespace_root(CLONE_NEWNS | CLONE_NEWPID) < 0) {
		say_refused(row, "new pid namespace");
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0 ? errno : 0);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status)) {
		doctor_say(row, DOCTOR_MISSING, "a process in a new pid namespace: %m");
		return;
	}
	if (WEXITSTATUS(status) == 0) {
		doctor_say(row, DOCTOR_OK, "a fresh /proc can be mounted");
		return;
	}
	doctor_say(row, DOCTOR_MISSING, "a fresh /proc cannot be mounted: %s", strerror(WEXITSTATUS(status)));
	doctor_fix(row, "the /proc of this container is masked: run it with "
			"--security-opt unmask=ALL (podman) or --security-opt systempaths=unconfined (docker)");
}

void doctor_try_memfd(const struct doctor_host *host, struct doctor_row *row)
{
	_cleanup_fd_ int fd = fd_memfd_sealed("doctor", "x", 1, 0111, true);

	(void)host;
	if (fd >= 0) {
		doctor_say(row, DOCTOR_OK, "executable memory files are allowed");
		return;
	}
	doctor_say(row, DOCTOR_MISSING, "executable memory file: %m");
	doctor_fix(row, "sysctl -w vm.memfd_noexec=1");
}

void doctor_try_seccomp(const struct doctor_host *host, struct doctor_row *row)
{
	struct seccomp_program program = { 0 };
	struct err e = { 0 };

	(void)host;
	if (seccomp_compile(SECCOMP_SANDBOX, "native", &program, &e) < 0) {
		doctor_say_error(row, DOCTOR_MISSING, &e);
		return;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program.prog) < 0) {
		doctor_say(row, DOCTOR_MISSING, "the kernel does not load a seccomp filter: %m");
		doctor_fix(row, "use a kernel with CONFIG_SECCOMP_FILTER");
	} else {
		doctor_say(row, DOCTOR_OK, "the filter of %u instructions is loaded", program.prog.len);
	}
	seccomp_program_done(&program);
}

void doctor_try_landlock(const struct doctor_host *host, struct doctor_row *row)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	(void)host;
	if (abi > 0) {
		doctor_say(row, DOCTOR_OK, "Landlock ABI %ld", abi);
		return;
	}
	doctor_say(row, DOCTOR_DEGRADED, "no Landlock (%m): seccomp alone confines the front");
	doctor_fix(row, "add landlock to the lsm= list of the kernel command line");
}
