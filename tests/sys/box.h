/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/box.h - a sandbox for tests: a small image, a layer, and a way to look around inside
 *
 * Works the same for root and for an ordinary user: box_main() first enters the storage namespace.
 * The image is a handful of directories made here; creation needs no program of the image.
 */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/launch.h"
#include "runtime/seccomp.h"
#include "tests/unit/tap.h"

enum { BOX_TEXT_MAX = 64 * 1024, BOX_WAIT_MS = 10000 };

struct box {
	char home[64];
	int home_fd, lower_fd, layer_fd, workspace_fd, output_fd;
	struct idrange ids;
	struct profile profile;
	struct seccomp_program filter;
	struct enter_rights rights;
	struct launch_request req;
	struct launch l;
	struct err e;
	char text[BOX_TEXT_MAX]; /* of box_inside() */
};

static inline int box_mkdir(struct box *b, const char *path, mode_t mode)
{
	uid_t root = b->ids.base + ID_SANDBOX_ROOT;

	if (mkdirat(b->home_fd, path, mode) < 0 || fchmodat(b->home_fd, path, mode, 0) < 0 ||
	    fchownat(b->home_fd, path, root, root, AT_SYMLINK_NOFOLLOW) < 0)
		tap_bail("make %s", path);
	return openat(b->home_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static inline void box_file(struct box *b, const char *path, const char *text)
{
	uid_t root = b->ids.base + ID_SANDBOX_ROOT;
	int fd = openat(b->home_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || fd_write_full(fd, text, strlen(text)) < 0 || fchown(fd, root, root) < 0)
		tap_bail("write %s", path);
	(void)close(fd);
}

static inline void box_image(struct box *b)
{
	static const char *const dirs[] = { "image/etc", "image/usr", "image/var", "image/root" };

	b->lower_fd = box_mkdir(b, "image", 0755);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		(void)close(box_mkdir(b, dirs[i], 0755));
	box_file(b, "image/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
	b->layer_fd = box_mkdir(b, "layer", 0700);
	(void)close(box_mkdir(b, "layer/upper", 0755));
	(void)close(box_mkdir(b, "layer/work", 0755));
	b->workspace_fd = box_mkdir(b, "workspace", 0755);
	b->output_fd = box_mkdir(b, "output", 0755);
}

static inline void box_request(struct box *b)
{
	b->profile = (struct profile){
		.name = "test", .layer_kept = true, .caps = SANDBOX_CAPS, .net = NET_NONE,
		.tmp_bytes = 64 << 20, .shm_bytes = 16 << 20, .run_bytes = 8 << 20,
		.limits = { .pids = 64 },
	};
	b->req = (struct launch_request){
		.key = "box-0a1b2c", .profile = &b->profile, .ids = &b->ids,
		.lower_fd = b->lower_fd, .layer_fd = b->layer_fd, .workspace_fd = b->workspace_fd,
		.output_fd = b->output_fd, .cgroup_fd = -1, .pids = 64, .rights = &b->rights,
	};
}

/* box_enter() - first thing in main(). */
static inline void box_enter(char **argv)
{
	struct err e;

	if (userns_enter_storage(-1, "", argv, &e) < 0)
		tap_bail("%s; %s", e.message, e.remedy);
}

static inline void box_open(struct box *b)
{
	memset(b, 0, sizeof(*b));
	(void)signal(SIGPIPE, SIG_IGN);
	(void)umask(022);
	if (userns_range_init(&b->ids, "", 0, &b->e) < 0 ||
	    seccomp_compile(SECCOMP_SANDBOX, "native", &b->filter, &b->e) < 0 ||
	    caps_plan_init(&b->rights.caps, SANDBOX_CAPS, &b->e) < 0)
		tap_bail("%s", b->e.message);
	b->rights.seccomp = &b->filter.prog;
	/* Not /tmp: a tmpfs there may have no user extended attributes (before Linux 6.6). */
	strcpy(b->home, "/var/tmp/mcpt-box-XXXXXX");
	if (mkdtemp(b->home) == NULL)
		tap_bail("mkdtemp");
	b->home_fd = open(b->home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	box_image(b);
	box_request(b);
}

static inline int box_remove_entry(const char *path, const struct stat *st, int type,
				   struct FTW *at)
{
	(void)st;
	(void)at;
	return type == FTW_DP || type == FTW_DNR ? rmdir(path) : unlink(path);
}

static inline void box_close(struct box *b)
{
	close_fd(&b->home_fd);
	close_fd(&b->lower_fd);
	close_fd(&b->layer_fd);
	close_fd(&b->workspace_fd);
	close_fd(&b->output_fd);
	if (nftw(b->home, box_remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
		tap_diag("cannot remove %s", b->home);
	seccomp_program_done(&b->filter);
	userns_range_done(&b->ids);
}

/* box_net() - what is started from now on gets out as @u allows; NULL: no network. */
static inline void box_net(struct box *b, struct uplink *u)
{
	b->req.uplink = u;
	b->req.net = u ? u->mode : NET_NONE;
}

/* box_end() - kill and reap. */
static inline void box_end(struct box *b)
{
	siginfo_t info;

	(void)sys_pidfd_send_signal(b->l.pidfd, SIGKILL);
	if (waitid((idtype_t)P_PIDFD, (id_t)b->l.pidfd, &info, WEXITED) < 0)
		tap_bail("waitid");
	launch_done(&b->l);
}

/* box_start() - Return: 0 ready, -1 failed and nothing left (b->e says why). */
static inline int box_start(struct box *b)
{
	int r;

	memset(&b->e, 0, sizeof(b->e));
	if (launch_start(&b->req, &b->l, &b->e) < 0)
		return -1;
	do {
		struct pollfd p = { .fd = b->l.status_fd, .events = POLLIN };

		if (poll(&p, 1, BOX_WAIT_MS) != 1)
			tap_bail("no word from the sandbox in %d ms", BOX_WAIT_MS);
		r = launch_progress(&b->l, &b->e);
	} while (r == 0);
	if (r < 0)
		box_end(b);
	return r < 0 ? -1 : 0;
}

typedef int box_fn(void *arg);

static inline _Noreturn void box_join_and_run(struct box *b, bool restricted, box_fn *fn, void *arg)
{
	int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC |
		    CLONE_NEWUTS;
	int status = 0;
	pid_t pid;

	if (setns(b->l.pidfd, flags) < 0)
		_exit(120);
	pid = fork();
	if (pid == 0) {
		(void)alarm(30);
		if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, 0, 0, 0) < 0 ||
		    syscall(SYS_setresuid, 0, 0, 0) < 0 || chdir("/") < 0)
			_exit(121);
		if (restricted && enter_apply_rights(&b->rights) != 0)
			_exit(122);
		_exit(fn(arg));
	}
	(void)waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 123);
}

/* box_inside() - run fn in the sandbox as its root, with its capabilities and filter (restricted) or
 * with every capability over it. What it prints is in b->text. Return: its exit status. */
static inline int box_inside(struct box *b, bool restricted, box_fn *fn, void *arg)
{
	int out[2], status = 0;
	ssize_t len;
	pid_t pid;

	fflush(stdout);
	if (pipe2(out, O_CLOEXEC) < 0)
		tap_bail("pipe");
	pid = fork();
	if (pid == 0) {
		(void)dup2(out[1], 1);
		box_join_and_run(b, restricted, fn, arg);
	}
	(void)close(out[1]);
	len = fd_read_full(out[0], b->text, sizeof(b->text) - 1);
	b->text[len > 0 ? len : 0] = '\0';
	(void)close(out[0]);
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* box_cat() - a box_fn: copy the file named by arg. */
static inline int box_cat(void *arg)
{
	char buf[4096];
	int fd = open(arg, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return errno;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		if (fd_write_full(1, buf, (size_t)n) < 0)
			return errno;
	}
	return n < 0 ? errno : 0;
}
