/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/reap.c - reap every child of the keeper as soon as it ends
 *
 * Runs in the keeper. waitid(P_ALL, WNOHANG) on SIGCHLD: one signal may stand for many children, so
 * the loop goes on until there is none. Nothing here waits.
 */
#include "runtime/reap.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "runtime/base/cleanup.h"

static struct reap_child **bucket_of(struct reaper *r, pid_t pid)
{
	return &r->bucket[(unsigned int)pid % REAP_BUCKETS];
}

static struct reap_child *take_child(struct reaper *r, pid_t pid)
{
	for (struct reap_child **p = bucket_of(r, pid); *p; p = &(*p)->next) {
		struct reap_child *c = *p;

		if (c->pid == pid) {
			*p = c->next;
			c->pid = 0;
			c->next = NULL;
			return c;
		}
	}
	return NULL;
}

static void remember_early(struct reaper *r, pid_t pid, struct reap_status status)
{
	unsigned int i = r->early_next++ % REAP_EARLY_MAX;

	r->early[i].pid = pid;
	r->early[i].status = status;
}

static struct reap_status status_of(const siginfo_t *si)
{
	struct reap_status status = { 0 };

	if (si->si_code == CLD_EXITED) {
		status.exit_code = si->si_status & 255;
	} else {
		status.signal = si->si_status;
		status.exit_code = 128 + si->si_status;
	}
	return status;
}

void reap_now(struct reaper *r)
{
	siginfo_t si;

	for (;;) {
		struct reap_child *c;

		memset(&si, 0, sizeof(si));
		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
			return;
		c = take_child(r, si.si_pid);
		if (c)
			c->fn(c, status_of(&si));
		else if (r->expected > 0)
			remember_early(r, si.si_pid, status_of(&si));
	}
}

static void on_sigchld(struct loop_source *s, uint32_t events)
{
	struct signalfd_siginfo buf[8];

	(void)events;
	while (read(s->fd, buf, sizeof(buf)) == (ssize_t)sizeof(buf))
		;
	reap_now(s->ctx);
}

int reap_start(struct reaper *r, struct loop *l, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	sigset_t set;

	memset(r, 0, sizeof(*r));
	r->source.fd = -1;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) < 0)
		return err_sys(e, "become a subreaper");
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, "block SIGCHLD");
	/* An inherited SIG_IGN would make the kernel throw exit statuses away. */
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR)
		return err_sys(e, "reset SIGCHLD");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "signalfd");
	if (loop_add(l, &r->source, fd, EPOLLIN, on_sigchld, r, e) < 0)
		return -1;
	(void)take_fd(&fd);
	return 0;
}

void reap_stop(struct reaper *r)
{
	int fd = r->source.fd;

	if (fd < 0)
		return;
	loop_remove(&r->source);
	close_fd(&fd);
}

/* True (and the status) when pid ended before anybody asked for it. */
static int take_early(struct reaper *r, pid_t pid, struct reap_status *ret)
{
	for (unsigned int i = 0; i < REAP_EARLY_MAX; i++) {
		if (r->early[i].pid == pid) {
			*ret = r->early[i].status;
			r->early[i].pid = 0;
			return 1;
		}
	}
	return 0;
}

int reap_watch(struct reaper *r, struct reap_child *c, pid_t pid, reap_fn *fn, void *ctx)
{
	siginfo_t si = { 0 };

	/* Asks whether this is our child at all; takes nothing. */
	if (pid <= 0 || waitid(P_PID, (id_t)pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		return -1;
	c->fn = fn;
	c->ctx = ctx;
	c->pid = pid;
	c->next = *bucket_of(r, pid);
	*bucket_of(r, pid) = c;
	return 0;
}

int reap_watch_reported(struct reaper *r, struct reap_child *c, pid_t pid, reap_fn *fn, void *ctx)
{
	struct reap_status status;

	if (!take_early(r, pid, &status))
		return reap_watch(r, c, pid, fn, ctx);
	c->ctx = ctx;
	fn(c, status);
	return 0;
}

void reap_forget(struct reaper *r, struct reap_child *c)
{
	if (c->pid > 0)
		(void)take_child(r, c->pid);
}

void reap_expect(struct reaper *r, int delta)
{
	r->expected += (unsigned int)delta;
	if (r->expected == 0) /* what is left was nobody's; its numbers may be used again */
		memset(r->early, 0, sizeof(r->early));
}
