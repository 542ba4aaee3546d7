/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/age.c - when was a workspace last written to?
 *
 * For the command line's gc. A sandbox wrote the tree: the walk is done by a forked worker with the
 * helper's id and DAC_READ_SEARCH over the ids of the sandbox, which reads names and times and nothing
 * else. Whatever it cannot look at might be new, so one such name makes the answer "cannot be told".
 */
#include "runtime/age.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/helper.h"
#include "runtime/walk.h"

enum { AGE_ENTRIES_MAX = 10 * 1000 * 1000, AGE_MS = 10 * 60 * 1000 };

static const uint64_t age_caps = UINT64_C(1) << CAP_DAC_READ_SEARCH;

struct age_found {
	int64_t newest;
	uint32_t known, reserved;
};

static void note(struct age_found *found, const struct stat *st)
{
	if (st->st_mtim.tv_sec > found->newest)
		found->newest = st->st_mtim.tv_sec;
}

static bool on_name(struct walk *w, int dir_fd, const char *name, const struct stat *st)
{
	(void)dir_fd;
	(void)name;
	note(w->ctx, st);
	return true;
}

static bool on_unreadable(struct walk *w, const char *name)
{
	(void)w;
	(void)name;
	return false;
}

static void __attribute__((noreturn)) worker(const struct idrange *ids, int workspace_fd, int pipe_fd)
{
	struct age_found found = { .newest = INT64_MIN };
	struct walk w = { .entries_max = AGE_ENTRIES_MAX, .ms_max = AGE_MS, .visit = on_name,
			  .unreadable = on_unreadable, .ctx = &found };
	int fds[2] = { workspace_fd, pipe_fd }, fd;
	struct err e = { 0 };
	struct stat st;

	if (helper_enter_trash(ids, fds, 2, age_caps, &e) < 0) {
		log_error("age of a workspace: %s", e.message);
		_exit(1);
	}
	fd = fd_open_beneath(fds[0], ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && fstat(fd, &st) == 0) {
		note(&found, &st);
		found.known = walk_tree(&w, fd) && !w.partial;
	}
	_exit(fd_write_full(fds[1], &found, sizeof(found)) < 0);
}

int age_newest(const struct idrange *ids, int workspace_fd, int64_t *ret_time, struct err *e)
{
	_cleanup_fd_ int read_fd = -1, write_fd = -1;
	struct age_found found = { 0 };
	int ends[2], status = -1;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	read_fd = ends[0];
	write_fd = ends[1];
	pid = fork();
	if (pid == 0)
		worker(ids, workspace_fd, write_fd);
	close_fd(&write_fd);
	if (pid < 0)
		return err_sys(e, "fork a worker");
	n = fd_read_full(read_fd, &found, sizeof(found));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(found) || status != 0)
		return err_set(e, ERR_SYSTEM, "the worker that looks at a workspace has failed");
	*ret_time = found.newest;
	return found.known ? 1 : 0;
}
