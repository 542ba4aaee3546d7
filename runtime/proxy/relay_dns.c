/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/relay_dns.c - the resolver of sandboxes that have an address of their own
 *
 * Runs in the egress proxy. One datagram in, one out: a question goes to the host's name server from a
 * socket of its own, and the first datagram with the question's id comes back as it is. What an answer
 * points to does not matter here: routes deny it. Over TCP the same server is connected to (conn.c).
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { DATAGRAMS_MAX = 16 /* of one event */ };

struct dns_query {
	struct box *box;
	struct dns_query *next;
	struct loop_source source;
	struct loop_timer timer;
	struct sockaddr_storage client;
	socklen_t client_len;
	int listener_fd;
	unsigned int tries;
	size_t len;
	uint8_t message[DNS_UDP_MAX];
};

static void stop_try(struct dns_query *q)
{
	int fd = q->source.fd;

	if (fd < 0)
		return;
	loop_remove(&q->source);
	close_fd(&fd);
}

static void query_free(struct dns_query *q)
{
	struct box *b = q->box;
	struct dns_query **at = &b->queries;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
	b->query_count--;
	stop_try(q);
	loop_timer_cancel(b->proxy->loop, &q->timer);
	free(q);
}

void relay_dns_stop(struct box *b)
{
	while (b->queries)
		query_free(b->queries);
}

static void on_answer(struct loop_source *s, uint32_t events)
{
	static uint8_t msg[DNS_MESSAGE_MAX];
	struct dns_query *q = s->ctx;
	ssize_t n = recv(s->fd, msg, sizeof(msg), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		stop_try(q); /* nobody listens there: the timer tries the next one */
		return;
	}
	if (n < DNS_HEADER_LEN || memcmp(msg, q->message, 2) != 0)
		return;
	(void)sendto(q->listener_fd, msg, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL,
		     (struct sockaddr *)&q->client, q->client_len);
	query_free(q);
}

static int open_try(struct dns_query *q, const struct net_addr *server)
{
	struct sockaddr_storage ss;
	socklen_t len = net_addr_sockaddr(server, DNS_PORT, &ss);
	_cleanup_fd_ int fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct err ignored;

	if (fd < 0 || connect(fd, (struct sockaddr *)&ss, len) < 0 ||
	    send(fd, q->message, q->len, MSG_NOSIGNAL) < 0)
		return -1;
	if (loop_add(q->box->proxy->loop, &q->source, fd, EPOLLIN, on_answer, q, &ignored) < 0) {
		q->source.fd = -1;
		return -1;
	}
	(void)take_fd(&fd);
	return 0;
}

static void on_timer(struct loop_timer *t)
{
	struct dns_query *q = t->ctx;
	struct proxy *p = q->box->proxy;

	stop_try(q);
	if (q->tries >= p->server_count) {
		query_free(q);
		return;
	}
	(void)open_try(q, &p->servers[q->tries++]);
	(void)loop_timer_set(p->loop, &q->timer, DNS_TRY_MS, on_timer, q);
}

static void note_name(struct box *b, const struct net_dest *host)
{
	struct egress_entry entry = { .key = b->key, .name = host->name, .port = DNS_PORT,
				      .verdict = "asked" };

	if (host->name[0])
		report_egress(b->proxy, &entry);
}

static void begin(struct listener *l, const uint8_t *msg, size_t len, const struct sockaddr_storage *from,
		  socklen_t from_len)
{
	struct box *b = l->box;
	struct net_dest host;
	struct dns_query *q;

	if (b->query_count >= DNS_PER_BOX_MAX || dns_query_name(msg, len, &host) < 0)
		return;
	q = calloc(1, sizeof(*q));
	if (!q)
		return;
	note_name(b, &host);
	q->box = b;
	q->source.fd = -1;
	q->client = *from;
	q->client_len = from_len;
	q->listener_fd = l->on.source.fd;
	q->len = len;
	memcpy(q->message, msg, len);
	q->next = b->queries;
	b->queries = q;
	b->query_count++;
	on_timer(&(struct loop_timer){ .ctx = q }); /* the first try */
}

void relay_dns_datagram(struct listener *l)
{
	for (unsigned int i = 0; i < DATAGRAMS_MAX; i++) {
		uint8_t msg[DNS_UDP_MAX];
		struct sockaddr_storage from;
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(l->on.source.fd, msg, sizeof(msg), MSG_DONTWAIT | MSG_TRUNC,
				     (struct sockaddr *)&from, &from_len);

		if (n < 0)
			return;
		if (n <= (ssize_t)sizeof(msg))
			begin(l, msg, (size_t)n, &from, from_len);
	}
}
