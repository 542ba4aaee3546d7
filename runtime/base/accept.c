/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/accept.c - accepting connections without spinning when there are no descriptors
 *
 * Runs in the keeper, the front and the egress proxy. Who connects is not trusted, and decides when.
 */
#include "runtime/base/accept.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>

#include "runtime/base/log.h"

int acceptor_add(struct loop *l, struct acceptor *a, int fd, loop_source_fn *fn, void *ctx, struct err *e)
{
	a->short_of = false;
	return loop_add(l, &a->source, fd, EPOLLIN, fn, ctx, e);
}

struct acceptor *acceptor_of(struct loop_source *s)
{
	return (struct acceptor *)((char *)s - offsetof(struct acceptor, source));
}

static void on_again(struct loop_timer *t)
{
	struct acceptor *a = t->ctx;

	(void)loop_modify(&a->source, EPOLLIN);
}

void acceptor_rest(struct acceptor *a)
{
	if (loop_timer_set(a->source.loop, &a->again, ACCEPT_PAUSE_MS, on_again, a) == 0)
		(void)loop_modify(&a->source, 0);
}

static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

int acceptor_take(struct acceptor *a, struct sockaddr *address, socklen_t *len)
{
	int fd = accept4(a->source.fd, address, len, SOCK_CLOEXEC | SOCK_NONBLOCK), error = errno;

	if (fd >= 0) {
		a->short_of = false;
		return fd;
	}
	if (is_shortage(error)) {
		if (!a->short_of)
			log_warn("no more connections for now: %s", strerror(error));
		a->short_of = true;
		acceptor_rest(a);
		error = EAGAIN;
	}
	errno = error;
	return -1;
}

void acceptor_remove(struct acceptor *a)
{
	if (a->source.fd < 0)
		return;
	loop_timer_cancel(a->source.loop, &a->again);
	loop_remove(&a->source);
}
