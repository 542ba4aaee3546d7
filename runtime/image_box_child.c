/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_box_child.c - from a fresh clone to a program over a minimal view of the host
 *
 * Runs in: the box, as root of its own user namespace. Trusts: the host's own directories below /usr and
 * /etc, which it can only read.
 *
 * Order matters: ids before the first mount (a mount belongs to who made it), proc before the old
 * root is detached (the kernel wants to see a complete proc already there), rights last.
 */
#include "runtime/image_box_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/enter.h"

/* Bound read-only where they exist; symbolic links (a merged /usr) are copied as links. */
static const char *const host_programs[] = { "/usr",   "/bin",	 "/sbin",  "/lib",
					     "/lib32", "/lib64", "/libx32" };
static const char *const host_loader[] = { "/etc/ld.so.cache" };
static const char *const host_bootstrap[] = { "/etc", "/var/lib/apt", "/var/lib/dpkg" };

static int set_mount_flags(int dir_fd, const char *path, uint64_t flags, bool recursive)
{
	struct mount_attr attr = { .attr_set = flags };

	return (int)syscall(SYS_mount_setattr, dir_fd, path,
			    AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &attr, sizeof(attr));
}

/* make_parents() - the directories above a relative path. */
static int make_parents(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

/* bind_host() - give the box one path of the host, read-only. The working directory is the new root. */
static int bind_host(const char *path)
{
	const char *at = path + 1;
	char target[PATH_MAX];
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -1;
	if (make_parents(at) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		ssize_t len = readlink(path, target, sizeof(target) - 1);

		if (len < 0)
			return -1;
		target[len] = '\0';
		return symlink(target, at);
	}
	if (S_ISDIR(st.st_mode) ? mkdir(at, 0755) < 0 : mknod(at, S_IFREG | 0644, 0) < 0)
		return -1;
	if (mount(path, at, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -1;
	return set_mount_flags(AT_FDCWD, at,
			       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, true);
}

static int bind_host_list(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (bind_host(paths[i]) < 0)
			return -1;
	}
	return 0;
}

static int step_ids(const struct box_child *c)
{
	char byte;

	if (fd_read_full(c->go_fd, &byte, 1) != 1)
		return -1; /* the parent failed or is gone */
	if (enter_offer_to_oom() < 0) /* by the id it still has: the file is that one's */
		return -1;
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static int step_session(const struct box_child *c)
{
	struct pollfd parent = { .fd = c->parent_fd, .events = 0 };

	/* After the id change, which clears it. The parent may have died just before. */
	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -1;
	if (poll(&parent, 1, 0) < 0)
		return -1;
	if (parent.revents & POLLHUP) {
		errno = ESRCH;
		return -1;
	}
	umask(022);
	return sethostname("box", 3);
}

static int step_private(const struct box_child *c)
{
	(void)c;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* scratch() - a small writable directory on the otherwise read-only root. */
static int scratch(const char *at, const char *options)
{
	if (mkdir(at, 0755) < 0)
		return -1;
	return mount("scratch", at, "tmpfs", MS_NOSUID | MS_NODEV, options);
}

static int step_root(const struct box_child *c)
{
	if (mount("box", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") < 0)
		return -1;
	if (chdir("/tmp") < 0)
		return -1;
	if (c->box->role != BOX_BOOTSTRAP)
		return 0;
	if (scratch("tmp", "mode=1777,size=256m") < 0)
		return -1;
	return scratch("run", "mode=0755,size=16m");
}

static int step_host(const struct box_child *c)
{
	if (bind_host_list(host_programs, ARRAY_SIZE(host_programs)) < 0)
		return -1;
	if (c->box->role != BOX_BOOTSTRAP)
		return bind_host_list(host_loader, ARRAY_SIZE(host_loader));
	if (bind_host_list(host_bootstrap, ARRAY_SIZE(host_bootstrap)) < 0)
		return -1;
	return c->resolver[0] ? bind_host(c->resolver) : 0;
}

static int step_trees(const struct box_child *c)
{
	for (size_t i = 0; i < c->box->mount_count; i++) {
		const struct box_mount *m = &c->box->mounts[i];
		uint64_t flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				 (m->writable ? 0 : MOUNT_ATTR_RDONLY);

		if (mkdir(m->at + 1, 0755) < 0)
			return -1;
		if (syscall(SYS_move_mount, m->tree_fd, "", AT_FDCWD, m->at + 1,
			    MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -1;
		if (set_mount_flags(AT_FDCWD, m->at + 1, flags, true) < 0)
			return -1;
	}
	return 0;
}

static int step_proc(const struct box_child *c)
{
	(void)c;
	if (mkdir("proc", 0755) < 0)
		return -1;
	return mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int bind_device(const char *name)
{
	char from[64], at[64];

	snprintf(from, sizeof(from), "/dev/%s", name);
	snprintf(at, sizeof(at), "dev/%s", name);
	if (mknod(at, S_IFREG | 0666, 0) < 0)
		return -1;
	return mount(from, at, NULL, MS_BIND, NULL);
}

static int step_dev(const struct box_child *c)
{
	static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

	if (mkdir("dev", 0755) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (bind_device(devices[i]) < 0)
			return -1;
	}
	if (symlink("/proc/self/fd", "dev/fd") < 0)
		return -1;
	if (c->box->role != BOX_BOOTSTRAP)
		return 0;
	if (mkdir("dev/pts", 0755) < 0 || mkdir("dev/shm", 0777) < 0 ||
	    symlink("pts/ptmx", "dev/ptmx") < 0)
		return -1;
	return mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		     "newinstance,ptmxmode=0666,mode=0620,max=64");
}

static int step_pivot(const struct box_child *c)
{
	(void)c;
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
		return -1;
	if (chdir("/") < 0)
		return -1;
	return set_mount_flags(AT_FDCWD, "/", MOUNT_ATTR_RDONLY, false);
}

/* step_stdio() - descriptors 0..2 as asked for, 3 the status pipe, nothing else. */
static int step_stdio(struct box_child *c)
{
	const int wanted[3] = { c->box->stdin_fd, c->box->stdout_fd, c->box->stderr_fd };
	int moved[4];

	for (int i = 0; i < 3; i++) {
		int from = wanted[i] >= 0 ? wanted[i] : open("/dev/null", O_RDWR | O_CLOEXEC);

		moved[i] = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, 8);
		if (moved[i] < 0)
			return -1;
	}
	moved[3] = fcntl(c->status_fd, F_DUPFD_CLOEXEC, 8);
	if (moved[3] < 0)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (dup3(moved[i], i, i == 3 ? O_CLOEXEC : 0) < 0) {
			if (errno != EINVAL)
				return -1;
		}
	}
	c->status_fd = 3;
	return (int)syscall(SYS_close_range, 4U, ~0U, 0U);
}

/* drop_bootstrap_rights() - the tool mounts and changes roots, so no filter; everything it does not
 * need is gone from the bounding set. */
static int drop_bootstrap_rights(const struct box_child *c)
{
	for (int cap = 0; cap <= c->caps.last_cap; cap++) {
		if (!(c->caps.keep >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -1;
	}
	if (syscall(SYS_capset, &c->caps.header, c->caps.data) < 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int step_rights(const struct box_child *c)
{
	struct enter_rights rights = { .caps = c->caps, .seccomp = &c->filter.prog };
	struct rlimit no_core = { 0, 0 };

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return -1;
	if (c->box->role == BOX_BOOTSTRAP)
		return drop_bootstrap_rights(c);
	return enter_apply_rights(&rights) ? -1 : 0;
}

__attribute__((noreturn)) static void fail(const struct box_child *c, uint32_t stage)
{
	struct box_status status = { .stage = stage, .error = errno };

	(void)fd_write_full(c->status_fd, &status, sizeof(status));
	_exit(127);
}

static void reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noreturn)) static void payload(struct box_child *c)
{
	if (!c->box->argv) {
		(void)close(c->status_fd);
		_exit(c->box->fn(c->box->ctx));
	}
	(void)execve(c->box->argv[0], c->box->argv, c->box->envp);
	fail(c, BOX_STAGE_EXEC);
}

/* supervise() - pid 1 of the box: reap until the payload has ended. Whatever is left then ends too. */
__attribute__((noreturn)) static void supervise(pid_t child)
{
	int status;
	pid_t pid;

	(void)syscall(SYS_close_range, 0U, ~0U, 0U); /* pipes end with the payload */
	do {
		pid = waitpid(-1, &status, 0);
	} while (pid != child && (pid > 0 || errno == EINTR));
	if (pid != child)
		_exit(127);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

void box_child_main(struct box_child *c)
{
	static const struct {
		uint32_t stage;
		int (*run)(const struct box_child *c);
	} steps[] = {
		{ BOX_STAGE_IDS, step_ids },	     { BOX_STAGE_SESSION, step_session },
		{ BOX_STAGE_PRIVATE, step_private }, { BOX_STAGE_ROOT, step_root },
		{ BOX_STAGE_HOST, step_host },	     { BOX_STAGE_TREES, step_trees },
		{ BOX_STAGE_PROC, step_proc },	     { BOX_STAGE_DEV, step_dev },
		{ BOX_STAGE_PIVOT, step_pivot },
	};
	pid_t child;

	reset_signals();
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (steps[i].run(c) < 0)
			fail(c, steps[i].stage);
	}
	if (step_stdio(c) < 0)
		fail(c, BOX_STAGE_STDIO);
	if (step_rights(c) < 0)
		fail(c, BOX_STAGE_RIGHTS);
	child = fork();
	if (child < 0)
		fail(c, BOX_STAGE_EXEC);
	if (child == 0)
		payload(c);
	supervise(child);
}
