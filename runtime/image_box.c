/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_box.c - start and end a process in namespaces of ours
 *
 * Runs in: the command line's "image" and "workspace" verbs, as host root or root of the storage
 * namespace. Trusts: nothing that runs in a box; what comes back is an exit status.
 */
#include "runtime/image_box.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/image_box_child.h"
#include "runtime/spec.h"

/* What mounting, chroot and unpacking packages needs. No network, module, trace or audit rights. */
#define BOOTSTRAP_CAPS                                                                             \
	(UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER |  \
	 UINT64_C(1) << CAP_FSETID | UINT64_C(1) << CAP_KILL | UINT64_C(1) << CAP_SETGID |         \
	 UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_SETPCAP | UINT64_C(1) << CAP_SETFCAP |     \
	 UINT64_C(1) << CAP_SYS_CHROOT | UINT64_C(1) << CAP_SYS_ADMIN)

static const char *const stage_text[] = {
	[BOX_STAGE_IDS] = "cannot become root of its user namespace",
	[BOX_STAGE_SESSION] = "cannot start its session",
	[BOX_STAGE_PRIVATE] = "cannot make its mounts private",
	[BOX_STAGE_ROOT] = "cannot mount its root",
	[BOX_STAGE_HOST] = "cannot bind the host's programs",
	[BOX_STAGE_TREES] = "cannot attach the tree to work on",
	[BOX_STAGE_PROC] = "cannot mount /proc",
	[BOX_STAGE_DEV] = "cannot make /dev",
	[BOX_STAGE_PIVOT] = "cannot change to its root",
	[BOX_STAGE_STDIO] = "cannot arrange its descriptors",
	[BOX_STAGE_RIGHTS] = "cannot give up rights",
	[BOX_STAGE_EXEC] = "cannot execute the program",
};

int box_tree(int dir_fd, const char *path, struct err *e)
{
	int fd = (int)syscall(SYS_open_tree, dir_fd, path,
			      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH |
				      AT_SYMLINK_NOFOLLOW);

	if (fd < 0)
		return err_sys(e, "cannot copy the mount of the directory to work on");
	return fd;
}

static int make_scratch(uint32_t id)
{
	_cleanup_fd_ int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", id);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", "16m", 0) < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "uid", number, 0) < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "gid", number, 0) < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
			    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

int box_scratch(const struct idrange *ids, const char *name, const void *data, size_t len,
		struct err *e)
{
	uint32_t id = ids->base + ID_SANDBOX_ROOT;
	_cleanup_fd_ int dir = make_scratch(id), fd = -1;

	if (dir < 0)
		return err_sys(e, "make a temporary file system");
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || fchown(fd, id, id) < 0 || fd_write_full(fd, data, len) < 0)
		return err_sys(e, "write a temporary file");
	return take_fd(&dir);
}

/* copy_map() - the caller's own ids, unchanged: each line "first here count" becomes "first first count",
 * which is the identity inside a child. */
static int copy_map(const char *own, int child_fd, struct err *e)
{
	char text[4096], map[4096];
	size_t used = 0;
	unsigned int first, count;

	if (fd_read_file_at(AT_FDCWD, own, text, sizeof(text)) < 0)
		return err_sys(e, "read %s", own);
	for (const char *p = text; p && sscanf(p, "%u %*u %u", &first, &count) == 2;
	     p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
		used += (size_t)snprintf(map + used, sizeof(map) - used, "%u %u %u\n", first, first,
					 count);
	if (used == 0 || used >= sizeof(map))
		return err_set(e, ERR_SYSTEM, "%s has an unknown form", own);
	return fd_write_full(child_fd, map, used) < 0 ? err_sys(e, "write an id map") : 0;
}

static int write_caller_maps(pid_t pid, struct err *e)
{
	static const char *const own[] = { "/proc/self/uid_map", "/proc/self/gid_map" };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		_cleanup_fd_ int fd = -1;

		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, own[i] + 11);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, "open an id map");
		if (copy_map(own[i], fd, e) < 0)
			return -1;
	}
	return 0;
}

/* find_resolver() - resolv.conf is often a link to below /run; the tool needs what it points to. */
static void find_resolver(char real[PATH_MAX])
{
	if (!realpath("/etc/resolv.conf", real) || strncmp(real, "/etc/", 5) == 0 ||
	    strncmp(real, "/usr/", 5) == 0)
		real[0] = '\0';
}

static int prepare_rights(const struct box *box, struct box_child *c, struct err *e)
{
	/* The caller's role may do in the one tree it sees what the caller may: read and write. */
	uint64_t keep = box->role == BOX_BOOTSTRAP ? BOOTSTRAP_CAPS :
			box->role == BOX_SANDBOX   ? SANDBOX_CAPS :
						     UINT64_C(1) << CAP_DAC_OVERRIDE;

	if (caps_plan_init(&c->caps, keep, e) < 0)
		return -1;
	if (box->role == BOX_BOOTSTRAP)
		return 0;
	return seccomp_compile(SECCOMP_SANDBOX, "native", &c->filter, e);
}

/* read_status() - until the child has executed or says what failed. */
static int read_status(int fd, struct err *e)
{
	struct box_status status;
	ssize_t n = fd_read_full(fd, &status, sizeof(status));

	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(status) || status.stage >= ARRAY_SIZE(stage_text) ||
	    !stage_text[status.stage])
		return err_set(e, ERR_SYSTEM, "the helper process ended before it started");
	errno = status.error;
	return err_sys(e, "the helper process %s", stage_text[status.stage]);
}

struct box_pipes {
	int go[2], parent[2], status[2];
};

static void pipes_done(struct box_pipes *p)
{
	for (int i = 0; i < 2; i++) {
		close_fd(&p->go[i]);
		close_fd(&p->parent[i]);
		close_fd(&p->status[i]);
	}
}

static int clone_box(const struct box *box, struct box_child *c, struct box_pipes *pipes,
		     struct box_proc *ret, struct err *e)
{
	struct clone_args args = {
		.flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_PIDFD | (box->role == BOX_BOOTSTRAP ? 0 : CLONE_NEWNET),
		.pidfd = (uint64_t)(uintptr_t)&ret->pidfd,
		.exit_signal = SIGCHLD,
	};

	ret->pid = sys_clone3(&args, sizeof(args));
	if (ret->pid < 0)
		return err_sys(e, "cannot make the namespaces of a helper process");
	if (ret->pid == 0) {
		(void)close(pipes->go[1]);
		(void)close(pipes->parent[1]);
		(void)close(pipes->status[0]);
		box_child_main(c);
	}
	close_fd(&pipes->go[0]);
	close_fd(&pipes->status[1]);
	return 0;
}

static int let_go(const struct idrange *ids, const struct box *box, struct box_pipes *pipes,
		  const struct box_proc *p, struct err *e)
{
	int mapped = box->role == BOX_CALLER ? write_caller_maps(p->pid, e) :
					       userns_write_maps(ids, p->pid, e);

	if (mapped < 0)
		return -1;
	if (fd_write_full(pipes->go[1], "g", 1) < 0)
		return err_sys(e, "cannot start a helper process");
	return read_status(pipes->status[0], e);
}

int box_start(const struct idrange *ids, const struct box *box, struct box_proc *ret,
	      struct err *e)
{
	struct box_pipes pipes = { { -1, -1 }, { -1, -1 }, { -1, -1 } };
	struct box_child c = { .box = box };
	int r = -1;

	*ret = (struct box_proc){ .pid = -1, .pidfd = -1 };
	if (prepare_rights(box, &c, e) < 0)
		return -1;
	find_resolver(c.resolver);
	if (pipe2(pipes.go, O_CLOEXEC) < 0 || pipe2(pipes.parent, O_CLOEXEC) < 0 ||
	    pipe2(pipes.status, O_CLOEXEC) < 0) {
		(void)err_sys(e, "cannot make a pipe");
		goto out;
	}
	c.go_fd = pipes.go[0];
	c.parent_fd = pipes.parent[0];
	c.status_fd = pipes.status[1];
	if (clone_box(box, &c, &pipes, ret, e) < 0)
		goto out;
	r = let_go(ids, box, &pipes, ret, e);
	if (r < 0) {
		box_kill(ret);
		(void)box_wait(ret);
	}
out:
	pipes_done(&pipes);
	seccomp_program_done(&c.filter);
	return r;
}

int box_wait(struct box_proc *p)
{
	siginfo_t info = { 0 };
	int r;

	do {
		r = waitid(P_PIDFD, (id_t)p->pidfd, &info, WEXITED);
	} while (r < 0 && errno == EINTR);
	close_fd(&p->pidfd);
	if (r < 0)
		return -1;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

void box_kill(const struct box_proc *p)
{
	if (p->pidfd >= 0)
		(void)sys_pidfd_send_signal(p->pidfd, SIGKILL);
}

int box_run(const struct idrange *ids, const struct box *box, struct err *e)
{
	struct box_proc p;

	return box_start(ids, box, &p, e) < 0 ? -1 : box_wait(&p);
}
