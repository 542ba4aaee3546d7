/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/scan.c - what in the operator's folders a sandbox cannot read, or had better not reach
 *
 * scan_main() runs in a forked worker: for a root keeper the helper with the file rights of the sandbox's
 * root, which the folders' idmapped mounts show their owner as; for an ordinary user's keeper
 * that user without a capability where sandboxes run commands as that user, else the same as for
 * root, to which the files are a stranger's. That
 * is, each time, who a command is to the files. The names are hostile, the figures are all that comes
 * back.
 */
#include "runtime/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/helper.h"
#include "runtime/walk.h"

enum { SCAN_ENTRIES_MAX = 500 * 1000, SCAN_MS = 10 * 1000 };

static const uint64_t scan_caps = UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_DAC_READ_SEARCH;

/* ---- the worker ---- */

static bool on_unreadable(struct walk *w, const char *name)
{
	struct scan_found *found = w->ctx;

	(void)name;
	found->unreadable++;
	return true;
}

static bool on_name(struct walk *w, int dir_fd, const char *name, const struct stat *st)
{
	struct scan_found *found = w->ctx;
	int fd;

	if (S_ISSOCK(st->st_mode))
		found->sockets++;
	if (!S_ISREG(st->st_mode))
		return true;
	/* Trying is the only way to know: modes say nothing of access lists and idmapped mounts. */
	fd = fd_open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		found->unreadable++;
	close_fd(&fd);
	return true;
}

static void scan_folder(int tree_fd, struct scan_found *found)
{
	struct walk w = { .entries_max = SCAN_ENTRIES_MAX, .ms_max = SCAN_MS, .visit = on_name,
			  .unreadable = on_unreadable, .ctx = found };
	_cleanup_fd_ int fd = fd_open_beneath(tree_fd, ".", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0) {
		found->unreadable++; /* the whole of it */
		return;
	}
	(void)walk_tree(&w, fd);
	found->partial |= w.partial;
}

static void __attribute__((noreturn)) scan_main(const struct idrange *ids, struct projects *p,
						int pipe_fd)
{
	struct scan_found found = { 0 };
	int fds[PROJECT_MAX + 1], count = 0;
	struct err e = { 0 };
	int r;

	fds[count++] = pipe_fd;
	for (size_t i = 0; i < p->count; i++)
		fds[count++] = p->item[i].tree_fd;
	r = p->as_user ? helper_enter_as_user(fds, (size_t)count, &e) :
			 helper_enter_owner(ids, fds, (size_t)count, scan_caps, &e);
	if (r < 0) {
		log_error("scan of the project folders: %s", e.message);
		_exit(1);
	}
	for (int i = 1; i < count; i++)
		scan_folder(fds[i], &found);
	_exit(fd_write_full(fds[0], &found, sizeof(found)) < 0);
}

/* ---- the keeper ---- */

static void on_reaped(struct reap_child *c, struct reap_status status)
{
	(void)c;
	(void)status; /* what it had to say is in the pipe */
}

static void on_figures(struct loop_source *source, uint32_t events)
{
	struct scan *s = source->ctx;
	int fd = source->fd;
	ssize_t n = read(fd, &s->found, sizeof(s->found));

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	s->done = n == (ssize_t)sizeof(s->found);
	loop_remove(source);
	close_fd(&fd);
}

int scan_start(struct scan *s, struct loop *loop, struct reaper *reaper, const struct idrange *ids,
	       struct projects *projects, struct err *e)
{
	int ends[2];
	pid_t pid;

	s->source.fd = -1;
	s->reaper = reaper;
	if (projects->count == 0)
		return 0;
	for (size_t i = 0; i < projects->count; i++) {
		if (project_use(&projects->item[i], ids, e) < 0)
			return -1;
	}
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "make a pipe");
	pid = fork();
	if (pid == 0)
		scan_main(ids, projects, ends[1]);
	close_fd(&ends[1]);
	if (pid < 0 || reap_watch(reaper, &s->worker, pid, on_reaped, s) < 0 ||
	    loop_add(loop, &s->source, ends[0], EPOLLIN, on_figures, s, e) < 0) {
		close_fd(&ends[0]);
		s->source.fd = -1;
		return err_set(e, ERR_SYSTEM, "the scan of the project folders cannot be started");
	}
	return 0;
}

void scan_stop(struct scan *s)
{
	int fd = s->source.fd;

	if (!s->reaper)
		return;
	if (s->worker.pid > 0)
		(void)kill(s->worker.pid, SIGKILL);
	reap_forget(s->reaper, &s->worker);
	if (fd >= 0 && s->source.ctx) {
		loop_remove(&s->source);
		close_fd(&fd);
	}
}
