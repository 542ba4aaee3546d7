/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/lookup.c - one name asked of the name servers
 *
 * Runs in the egress proxy. Addresses of both families are asked for at once, each from a socket of its
 * own with a random port and id that takes datagrams from one server only. A name is sent as it was
 * matched: no search domains, no hosts file.
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { TCP_PREFIX = 2 };

static void ask(struct lookup *l);

static void stop_query(struct lookup_query *q)
{
	int fd = q->source.fd;

	if (fd >= 0) {
		loop_remove(&q->source);
		close_fd(&fd);
	}
	free(q->tcp);
	q->tcp = NULL;
	q->tcp_len = 0;
}

void lookup_cancel(struct lookup *l)
{
	if (!l->proxy)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(l->queries); i++)
		stop_query(&l->queries[i]);
	loop_timer_cancel(l->proxy->loop, &l->timer);
}

static void finish(struct lookup *l, enum dial_result result)
{
	lookup_cancel(l);
	l->fn(l, result);
}

static void check_finished(struct lookup *l)
{
	bool answered = l->queries[0].answered && l->queries[1].answered;

	if (!answered)
		return;
	if (l->v4.count + l->v6.count > 0)
		finish(l, DIAL_OK);
	else
		finish(l, l->failed && !l->no_name ? DIAL_NO_SERVER : DIAL_NO_NAME);
}

static void start_tcp(struct lookup_query *q);

static void take_answer(struct lookup_query *q, const uint8_t *msg, size_t len)
{
	struct lookup *l = q->lookup;
	struct dns_addresses *into = q == &l->queries[0] ? &l->v4 : &l->v6;
	enum dns_result r = dns_parse_answer(msg, len, q->query, q->query_len, into);

	if (r == DNS_NOT_OURS)
		return;
	if (r == DNS_TRUNCATED && !q->over_tcp) {
		start_tcp(q);
		return;
	}
	q->answered = true;
	l->no_name = l->no_name || r == DNS_NO_NAME;
	l->failed = l->failed || r == DNS_FAILED || r == DNS_TRUNCATED;
	stop_query(q);
	check_finished(l);
}

static void on_datagram(struct loop_source *s, uint32_t events)
{
	struct lookup_query *q = s->ctx;
	uint8_t msg[DNS_UDP_MAX];
	ssize_t n = recv(s->fd, msg, sizeof(msg), MSG_DONTWAIT);

	(void)events;
	if (n > 0)
		take_answer(q, msg, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		stop_query(q); /* nobody listens there: the timer tries the next one */
}

/* Over TCP the query is sent when the connection stands, then a length and a message arrive. */
static void on_stream(struct loop_source *s, uint32_t events)
{
	struct lookup_query *q = s->ctx;
	uint8_t out[TCP_PREFIX + DNS_QUERY_MAX];
	size_t want;
	ssize_t n;

	if (!q->tcp) {
		q->tcp = malloc(TCP_PREFIX + DNS_MESSAGE_MAX);
		out[0] = (uint8_t)(q->query_len >> 8);
		out[1] = (uint8_t)q->query_len;
		memcpy(out + TCP_PREFIX, q->query, q->query_len);
		n = send(s->fd, out, TCP_PREFIX + q->query_len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (!q->tcp || n != (ssize_t)(TCP_PREFIX + q->query_len) ||
		    loop_modify(s, EPOLLIN) < 0)
			stop_query(q);
		return;
	}
	(void)events;
	want = q->tcp_len < TCP_PREFIX ? TCP_PREFIX :
					 TCP_PREFIX + (size_t)(q->tcp[0] << 8 | q->tcp[1]);
	n = recv(s->fd, q->tcp + q->tcp_len, want - q->tcp_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stop_query(q);
		return;
	}
	q->tcp_len += (size_t)n;
	if (q->tcp_len > TCP_PREFIX &&
	    q->tcp_len == TCP_PREFIX + (size_t)(q->tcp[0] << 8 | q->tcp[1]))
		take_answer(q, q->tcp + TCP_PREFIX, q->tcp_len - TCP_PREFIX);
}

static const struct net_addr *server_of(const struct lookup *l)
{
	return &l->proxy->servers[(l->tries - 1) % l->proxy->server_count];
}

static int open_query(struct lookup_query *q, int type, uint32_t events, loop_source_fn *fn)
{
	struct lookup *l = q->lookup;
	struct sockaddr_storage ss;
	_cleanup_fd_ int fd = -1;
	struct err ignored;
	socklen_t len;

	if (l->proxy->server_count == 0) /* the host has lost its last one meanwhile */
		return -1;
	len = net_addr_sockaddr(server_of(l), DNS_PORT, &ss);
	fd = socket(ss.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS))
		return -1;
	if (type == SOCK_DGRAM && send(fd, q->query, q->query_len, MSG_NOSIGNAL) < 0)
		return -1;
	if (loop_add(l->proxy->loop, &q->source, fd, events, fn, q, &ignored) < 0) {
		q->source.fd = -1;
		return -1;
	}
	(void)take_fd(&fd);
	return 0;
}

static void start_tcp(struct lookup_query *q)
{
	stop_query(q);
	q->over_tcp = true;
	(void)open_query(q, SOCK_STREAM, EPOLLOUT, on_stream);
}

static void on_timer(struct loop_timer *t)
{
	struct lookup *l = t->ctx;
	unsigned int tries = (unsigned int)l->proxy->server_count * LOOKUP_ROUNDS;

	if (l->v4.count + l->v6.count > 0) { /* one family is enough */
		finish(l, DIAL_OK);
		return;
	}
	if (l->tries >= tries) {
		finish(l, l->no_name ? DIAL_NO_NAME : DIAL_NO_SERVER);
		return;
	}
	ask(l);
}

static void ask(struct lookup *l)
{
	l->tries++;
	for (size_t i = 0; i < ARRAY_SIZE(l->queries); i++) {
		struct lookup_query *q = &l->queries[i];
		uint16_t id;

		if (q->answered)
			continue;
		stop_query(q);
		if (getrandom(&id, sizeof(id), 0) != sizeof(id))
			continue;
		q->over_tcp = false;
		q->query_len = dns_build_query(q->query, id, l->name,
					       i == 0 ? DNS_TYPE_A : DNS_TYPE_AAAA);
		(void)open_query(q, SOCK_DGRAM, EPOLLIN, on_datagram);
	}
	(void)loop_timer_set(l->proxy->loop, &l->timer, LOOKUP_TRY_MS, on_timer, l);
}

void lookup_start(struct lookup *l, struct proxy *p, const char *name, lookup_fn *fn, void *ctx)
{
	memset(l, 0, sizeof(*l));
	l->proxy = p;
	l->fn = fn;
	l->ctx = ctx;
	memcpy(l->name, name, strnlen(name, sizeof(l->name) - 1));
	for (size_t i = 0; i < ARRAY_SIZE(l->queries); i++) {
		l->queries[i].lookup = l;
		l->queries[i].source.fd = -1;
	}
	if (p->server_count > 0)
		ask(l);
	else
		(void)loop_timer_set(p->loop, &l->timer, 0, on_timer, l);
}
