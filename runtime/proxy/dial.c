/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/dial.c - from a host to a connected socket: look up, check, connect
 *
 * Runs in the egress proxy. Every address is checked before a packet goes to it, and the socket is
 * connected to that address: what a name server says the second time does not matter, because nobody
 * asks it. The upstream proxy's address is the operator's choice and may be in the local network.
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { CANDIDATES_MAX = 2 * DNS_ADDRESSES_MAX };

struct dial {
	struct proxy *proxy;
	dial_fn *fn;
	void *ctx;
	bool checked; /* false: the upstream proxy */
	uint16_t port;
	struct lookup lookup;
	struct net_addr candidates[CANDIDATES_MAX];
	size_t count, next;
	struct net_addr addr; /* being tried */
	struct loop_source source;
	struct loop_timer timer, deadline;
	enum dial_result result; /* of the last attempt */
	enum net_range_kind kind;
};

static void try_next(struct dial *d);

enum net_range_kind dial_check(struct proxy *p, const struct net_addr *addr)
{
	struct net_addr real = net_addr_unwrap(addr);
	enum net_range_kind kind = net_range_of(&real);

	return kind != NET_RANGE_PUBLIC ? kind : route_kind(p->route_fd, &real);
}

static void close_attempt(struct dial *d)
{
	int fd = d->source.fd;

	if (fd < 0)
		return;
	loop_remove(&d->source);
	close_fd(&fd);
}

void dial_cancel(struct dial *d)
{
	lookup_cancel(&d->lookup);
	close_attempt(d);
	loop_timer_cancel(d->proxy->loop, &d->timer);
	loop_timer_cancel(d->proxy->loop, &d->deadline);
	free(d);
}

/* fd: the attempt's descriptor on success, else -1. The dial is gone before its owner hears of it. */
static void finish(struct dial *d, enum dial_result result, int fd)
{
	dial_fn *fn = d->fn;
	void *ctx = d->ctx;
	enum net_range_kind kind = d->kind;
	struct net_addr addr = d->addr;

	dial_cancel(d);
	fn(ctx, result, kind, fd, &addr);
}

static enum dial_result result_of(int error)
{
	switch (error) {
	case ECONNREFUSED:
		return DIAL_REFUSED;
	case ETIMEDOUT:
		return DIAL_TIMEOUT;
	default:
		return DIAL_UNREACHABLE;
	}
}

static void on_connected(struct loop_source *s, uint32_t events)
{
	struct dial *d = s->ctx;
	int error = 0, fd = s->fd;
	socklen_t len = sizeof(error);

	(void)events;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		d->result = result_of(error);
		close_attempt(d);
		try_next(d);
		return;
	}
	loop_remove(&d->source);
	finish(d, DIAL_OK, fd);
}

static void on_slow(struct loop_timer *t)
{
	struct dial *d = t->ctx;

	d->result = DIAL_TIMEOUT;
	close_attempt(d);
	try_next(d);
}

/* Return: 0 under way, -1 failed at once. */
static int attempt(struct dial *d)
{
	struct sockaddr_storage ss;
	socklen_t len = net_addr_sockaddr(&d->addr, d->port, &ss);
	_cleanup_fd_ int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;
	struct err ignored;

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS)
		return -1;
	if (loop_add(d->proxy->loop, &d->source, fd, EPOLLOUT, on_connected, d, &ignored) < 0) {
		d->source.fd = -1;
		return -1;
	}
	(void)take_fd(&fd);
	return 0;
}

static void try_next(struct dial *d)
{
	loop_timer_cancel(d->proxy->loop, &d->timer);
	while (d->next < d->count) {
		enum net_range_kind kind;

		d->addr = d->candidates[d->next++];
		kind = d->checked ? dial_check(d->proxy, &d->addr) : NET_RANGE_PUBLIC;
		if (kind != NET_RANGE_PUBLIC) {
			/* What a person is told: the deepest reason, but never instead of a real attempt. */
			if (d->result == DIAL_NO_NAME) {
				d->result = DIAL_DENIED;
				d->kind = kind;
			}
			continue;
		}
		if (attempt(d) == 0) {
			if (d->next < d->count)
				(void)loop_timer_set(d->proxy->loop, &d->timer, CONNECT_TIMEOUT_MS,
						     on_slow, d);
			return;
		}
		d->result = result_of(errno);
	}
	finish(d, d->result, -1);
}

static void on_looked_up(struct lookup *l, enum dial_result result)
{
	struct dial *d = l->ctx;

	if (result != DIAL_OK) {
		finish(d, result, -1);
		return;
	}
	for (size_t i = 0; i < l->v4.count; i++)
		d->candidates[d->count++] = l->v4.addr[i];
	for (size_t i = 0; i < l->v6.count; i++)
		d->candidates[d->count++] = l->v6.addr[i];
	try_next(d);
}

static void on_deadline(struct loop_timer *t)
{
	struct dial *d = t->ctx;

	finish(d, DIAL_TIMEOUT, -1);
}

static void on_start(struct loop_timer *t)
{
	try_next(t->ctx);
}

struct dial *dial_start(struct proxy *p, const struct net_dest *host, uint16_t port, dial_fn *fn,
			void *ctx)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->proxy = p;
	d->fn = fn;
	d->ctx = ctx;
	d->checked = !p->has_upstream;
	d->port = p->has_upstream ? p->upstream_port : port;
	d->source.fd = -1;
	d->result = DIAL_NO_NAME;
	if (loop_timer_set(p->loop, &d->deadline, DIAL_TIMEOUT_MS, on_deadline, d) < 0) {
		free(d);
		return NULL;
	}
	if (p->has_upstream)
		host = &p->upstream;
	if (host->is_address) {
		d->candidates[d->count++] = host->addr;
		(void)loop_timer_set(p->loop, &d->timer, 0, on_start, d);
	} else {
		lookup_start(&d->lookup, p, host->name, on_looked_up, d);
	}
	return d;
}
