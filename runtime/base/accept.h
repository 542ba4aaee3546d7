/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/accept.h - a listening socket that rests when there are no descriptors
 *
 * A connection that cannot be accepted stays in the kernel's queue and keeps the socket readable: an event
 * loop that only tries again spins until somebody else closes something.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "runtime/base/loop.h"

enum { ACCEPT_PAUSE_MS = 100 };

struct acceptor {
	struct loop_source source; /* fd -1: does not listen */
	struct loop_timer again;   /* armed while it rests */
	bool short_of;             /* the last attempt failed for want of something; logged once */
};

/* acceptor_add() - fn is called, with ctx in the source, when there may be connections. The socket, which is
 * non-blocking, stays the caller's. Return: 0, -1. */
int acceptor_add(struct loop *l, struct acceptor *a, int fd, loop_source_fn *fn, void *ctx, struct err *e);

/* acceptor_of() - whose source it is that fn was called with. */
struct acceptor *acceptor_of(struct loop_source *s);

/* acceptor_take() - one connection (close-on-exec, non-blocking). address may be NULL. When there are no
 * descriptors or no memory it rests for ACCEPT_PAUSE_MS. Return: descriptor; -1 with errno: EAGAIN for
 * nothing (more) now, EINTR or ECONNABORTED for one that is gone. */
int acceptor_take(struct acceptor *a, struct sockaddr *address, socklen_t *len);

/* acceptor_rest() - the kernel's queue holds what cannot be served now. */
void acceptor_rest(struct acceptor *a);

/* acceptor_remove() - safe for one that was never added, if its fd is -1. The socket is not closed. */
void acceptor_remove(struct acceptor *a);
