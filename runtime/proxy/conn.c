/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/conn.c - one client: which protocol, what it wants, whether it may
 *
 * Runs in the egress proxy. The client is a hostile process in a sandbox, the server whatever an allowed
 * name led to. Everything is non-blocking; conn_step() goes on as far as it goes and then says what to
 * wait for.
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { NS_PER_MS = 1000000 };

static void on_client(struct loop_source *s, uint32_t events);
static void on_server(struct loop_source *s, uint32_t events);

/* ---- life ---- */

static void on_timer(struct loop_timer *t)
{
	struct conn *c = t->ctx;
	uint64_t limit = c->dns ? DNS_IDLE_MS : IDLE_TIMEOUT_MS;
	uint64_t idle = (loop_now_ns() - c->active_ns) / NS_PER_MS;

	if ((c->state == CONN_TUNNEL || c->state == CONN_EXCHANGE) && idle < limit)
		conn_set_timer(c, limit - idle);
	else
		conn_close(c);
}

void conn_set_timer(struct conn *c, uint64_t ms)
{
	(void)loop_timer_set(c->box->proxy->loop, &c->timer, ms, on_timer, c);
}

void conn_drop_server(struct conn *c)
{
	if (c->server_fd < 0)
		return;
	if (!c->dns)
		report_egress(c->box->proxy,
			      &(struct egress_entry){ .key = c->box->key, .name = c->host.name,
						      .addr = &c->addr, .port = c->port,
						      .sent = c->up.bytes + c->sent_text,
						      .received = c->down.bytes + c->received_text,
						      .verdict = "allowed" });
	if (c->server.fd >= 0)
		loop_remove(&c->server);
	close_fd(&c->server_fd);
	flow_done(&c->up);
	flow_done(&c->down);
	flow_init(&c->up);
	flow_init(&c->down);
	c->sent_text = c->received_text = 0;
	c->reused = false;
}

static void free_text(struct conn *c)
{
	free(c->in);
	free(c->response_in);
	c->in = c->response_in = NULL;
	c->in_len = c->response_len = 0;
}

void conn_close(struct conn *c)
{
	struct proxy *p = c->box->proxy;

	if (c->dial)
		dial_cancel(c->dial);
	conn_drop_server(c);
	if (c->client.fd >= 0)
		loop_remove(&c->client);
	close_fd(&c->client_fd);
	loop_timer_cancel(p->loop, &c->timer);
	free_text(c);
	buf_done(&c->to_client);
	buf_done(&c->to_server);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->box->conn_count--;
	p->conn_count--;
	free(c);
}

static struct conn *conn_new(struct box *b, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct err ignored;
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (!c || loop_add(b->proxy->loop, &c->client, fd, EPOLLIN, on_client, c, &ignored) < 0) {
		free(c);
		close_fd(&fd);
		return NULL;
	}
	c->box = b;
	c->client_fd = fd;
	c->server_fd = c->server.fd = -1;
	flow_init(&c->up);
	flow_init(&c->down);
	buf_init(&c->to_client, CONN_TEXT_MAX);
	buf_init(&c->to_server, CONN_TEXT_MAX);
	c->next = b->conns;
	c->link = &b->conns;
	if (c->next)
		c->next->link = &c->next;
	b->conns = c;
	b->conn_count++;
	b->proxy->conn_count++;
	return c;
}

/* ---- answers ---- */

static void socks_reply(struct conn *c, enum socks_reply reply)
{
	const uint8_t bytes[] = { SOCKS_VERSION, (uint8_t)reply, 0, 1, 0, 0, 0, 0, 0, 0 };

	(void)buf_append(&c->to_client, bytes, sizeof(bytes));
	if (reply == SOCKS_OK)
		return;
	c->state = CONN_LAST_WORDS;
	conn_set_timer(c, HEAD_TIMEOUT_MS);
}

/* ---- where it wants to go ---- */

static void log_without_server(struct conn *c, const char *verdict, const char *reason)
{
	report_egress(c->box->proxy,
		      &(struct egress_entry){ .key = c->box->key, .name = c->host.name,
					      .addr = c->host.is_address ? &c->host.addr : NULL,
					      .port = c->port, .verdict = verdict, .reason = reason });
}

static void deny(struct conn *c, uint32_t reason)
{
	const struct proxy *p = c->box->proxy;

	report_blocked(c, reason);
	log_without_server(c, "denied", report_reason(reason));
	if (c->socks)
		socks_reply(c, SOCKS_NOT_ALLOWED);
	else if (p->policy.mode == NET_ALLOWLIST)
		conn_answer(c, 403, "%s:%u is blocked in this sandbox (%s). Allowed: %s", c->host.name,
			    c->port, report_reason(reason), p->allow[0] ? p->allow : "nothing");
	else
		conn_answer(c, 403,
			    "%s:%u is blocked in this sandbox (%s). Allowed: the internet without local "
			    "networks and this host",
			    c->host.name, c->port, report_reason(reason));
}

static void fail(struct conn *c, enum dial_result result)
{
	static const struct {
		unsigned int status;
		enum socks_reply socks;
		const char *text;
	} table[] = {
		[DIAL_OK] = { 502, SOCKS_FAILED, "failed" },
		[DIAL_DENIED] = { 403, SOCKS_NOT_ALLOWED, "blocked" },
		[DIAL_NO_NAME] = { 502, SOCKS_UNREACHABLE, "there is no such name" },
		[DIAL_NO_SERVER] = { 502, SOCKS_UNREACHABLE, "no name server answers" },
		[DIAL_REFUSED] = { 502, SOCKS_REFUSED, "connection refused" },
		[DIAL_UNREACHABLE] = { 502, SOCKS_UNREACHABLE, "unreachable" },
		[DIAL_TIMEOUT] = { 504, SOCKS_UNREACHABLE, "no answer in time" },
		[DIAL_NO_MEMORY] = { 502, SOCKS_FAILED, "no memory" },
	};

	log_without_server(c, "failed", table[result].text);
	if (c->socks)
		socks_reply(c, table[result].socks);
	else
		conn_answer(c, table[result].status, "%s:%u: %s", c->host.name, c->port,
			    table[result].text);
}

static void begin_tunnel(struct conn *c)
{
	if (c->socks)
		socks_reply(c, SOCKS_OK);
	else if (!c->dns)
		(void)buf_append_str(&c->to_client, "HTTP/1.1 200 Connection established\r\n\r\n");
	free_text(c);
	flow_begin(&c->up, HTTP_BODY_CLOSE, 0);
	flow_begin(&c->down, HTTP_BODY_CLOSE, 0);
	c->state = CONN_TUNNEL;
	c->active_ns = loop_now_ns();
	conn_set_timer(c, c->dns ? DNS_IDLE_MS : IDLE_TIMEOUT_MS);
}

static void ask_upstream(struct conn *c)
{
	bool v6 = c->host.is_address && c->host.addr.family == AF_INET6;
	char to[NET_NAME_MAX + 16];

	(void)snprintf(to, sizeof(to), "%s%s%s:%u", v6 ? "[" : "", c->host.name, v6 ? "]" : "", c->port);
	(void)buf_printf(&c->to_server, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to);
	c->state = CONN_UPSTREAM;
	conn_set_timer(c, HEAD_TIMEOUT_MS);
}

static int take_server(struct conn *c, int fd)
{
	struct err ignored;

	c->server_fd = fd;
	if (loop_add(c->box->proxy->loop, &c->server, fd, 0, on_server, c, &ignored) == 0)
		return 0;
	c->server.fd = -1;
	close_fd(&c->server_fd);
	return -1;
}

static void on_dialed(void *ctx, enum dial_result result, enum net_range_kind kind, int fd,
		      const struct net_addr *addr)
{
	struct conn *c = ctx;

	c->dial = NULL;
	if (result == DIAL_OK && take_server(c, fd) < 0)
		result = DIAL_NO_MEMORY;
	if (result == DIAL_OK) {
		c->addr = *addr;
		if (!c->tunnel)
			exchange_connected(c);
		else if (c->box->proxy->has_upstream)
			ask_upstream(c);
		else
			begin_tunnel(c);
	} else if (result == DIAL_DENIED) {
		deny(c, kind);
	} else {
		fail(c, result);
	}
	conn_step(c);
}

void conn_reach(struct conn *c)
{
	struct proxy *p = c->box->proxy;
	enum net_range_kind kind =
		c->host.is_address ? dial_check(p, &c->host.addr) : NET_RANGE_PUBLIC;

	if (kind != NET_RANGE_PUBLIC) {
		deny(c, kind);
		return;
	}
	if (!net_policy_allows(&p->policy, &c->host, c->port)) {
		deny(c, PROXY_UNLISTED);
		return;
	}
	c->state = CONN_DIALING;
	loop_timer_cancel(p->loop, &c->timer); /* the dial has its own */
	c->dial = dial_start(p, &c->host, c->port, on_dialed, c);
	if (!c->dial)
		fail(c, DIAL_NO_MEMORY);
}

/* ---- SOCKS5 ---- */

/* Exactly len bytes, which were peeked before. */
static int take_bytes(struct conn *c, uint8_t *bytes, int len)
{
	return recv(c->client_fd, bytes, (size_t)len, MSG_DONTWAIT) == len ? 0 : -1;
}

static int step_greeting(struct conn *c, uint8_t *bytes, ssize_t n)
{
	int len = socks_greeting(bytes, (size_t)n);

	if (len == 0)
		return 0;
	if (len < 0) { /* it wants a password */
		(void)buf_append(&c->to_client, "\x05\xff", 2);
		c->state = CONN_LAST_WORDS;
		conn_set_timer(c, HEAD_TIMEOUT_MS);
		return 1;
	}
	if (take_bytes(c, bytes, len) < 0 || buf_append(&c->to_client, "\x05\x00", 2) < 0)
		return -1;
	c->socks = c->tunnel = true;
	c->state = CONN_SOCKS;
	return 1;
}

static int step_socks(struct conn *c, uint8_t *bytes, ssize_t n)
{
	enum socks_reply reply;
	int len = socks_request(bytes, (size_t)n, &c->host, &c->port, &reply);

	if (len == 0)
		return 0;
	if (len < 0) {
		if (reply == SOCKS_NOT_ALLOWED)
			report_blocked(c, PROXY_BAD_NAME);
		socks_reply(c, reply);
		return 1;
	}
	if (take_bytes(c, bytes, len) < 0)
		return -1;
	conn_reach(c);
	return 1;
}

/* The first bytes, while they are still in the socket. Return: 1 the state changed, 0 wait, -1. */
static int step_first(struct conn *c)
{
	uint8_t bytes[SOCKS_REQUEST_MAX];
	ssize_t n = recv(c->client_fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (n == 0)
		return -1;
	if (c->state == CONN_SOCKS)
		return step_socks(c, bytes, n);
	if (bytes[0] == SOCKS_VERSION)
		return step_greeting(c, bytes, n);
	c->state = CONN_REQUEST;
	return 1;
}

/* ---- steps ---- */

static int step_upstream(struct conn *c)
{
	struct http_head h;
	bool broken = false;
	int len;

	if (!conn_flush(&c->to_server, c->server_fd, &broken))
		return broken ? -1 : 0;
	len = conn_read_head(c->server_fd, &c->response_in, &c->response_len);
	if (len == 0)
		return 0;
	if (len < 0 || http_parse_response(&h, c->response_in, (size_t)len) < 0) {
		conn_drop_server(c);
		fail(c, DIAL_UNREACHABLE);
	} else if (h.status / 100 != 2) {
		unsigned int status = h.status;

		conn_drop_server(c);
		if (c->socks)
			socks_reply(c, SOCKS_NOT_ALLOWED);
		else
			conn_answer(c, 502, "%s:%u: the upstream proxy answered %u", c->host.name,
				    c->port, status);
	} else {
		begin_tunnel(c);
	}
	return 1;
}

static int step_tunnel(struct conn *c)
{
	bool broken = false;

	if (!conn_flush(&c->to_client, c->client_fd, &broken))
		return broken ? -1 : 0;
	if (flow_step(&c->up, c->client_fd, c->server_fd) < 0 ||
	    flow_step(&c->down, c->server_fd, c->client_fd) < 0)
		return -1;
	if (c->up.done && !c->server_shut) {
		c->server_shut = true;
		(void)shutdown(c->server_fd, SHUT_WR);
	}
	if (c->down.done && !c->client_shut) {
		c->client_shut = true;
		(void)shutdown(c->client_fd, SHUT_WR);
	}
	return c->up.done && c->down.done ? -1 : 0;
}

static int step_last_words(struct conn *c)
{
	bool broken = false;

	if (!conn_flush(&c->to_client, c->client_fd, &broken))
		return broken ? -1 : 0;
	/* Closing with unread input would reset the connection and take the answer away. */
	(void)shutdown(c->client_fd, SHUT_WR);
	c->state = CONN_LINGER;
	conn_set_timer(c, LINGER_MS);
	return 1;
}

static int step_linger(struct conn *c)
{
	static char ignored[16 * 1024];
	ssize_t n = recv(c->client_fd, ignored, sizeof(ignored), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	c->lingered += (uint64_t)n;
	return n == 0 || c->lingered > LINGER_BYTES_MAX ? -1 : 0;
}

/* Return: 1 another step may be possible, 0 wait, -1 the end. */
static int step_once(struct conn *c)
{
	bool broken = false;

	switch (c->state) {
	case CONN_SOCKS:
		if (!conn_flush(&c->to_client, c->client_fd, &broken))
			return broken ? -1 : 0;
		return step_first(c);
	case CONN_SNIFF:
		return step_first(c);
	case CONN_REQUEST:
		exchange_read_request(c);
		return c->state == CONN_REQUEST ? (c->client_shut ? -1 : 0) : 1;
	case CONN_DIALING:
		return 0;
	case CONN_UPSTREAM:
		return step_upstream(c);
	case CONN_TUNNEL:
		return step_tunnel(c);
	case CONN_EXCHANGE:
		return exchange_step(c);
	case CONN_LAST_WORDS:
		return step_last_words(c);
	case CONN_LINGER:
		return step_linger(c);
	}
	return -1;
}

static bool reads_client(const struct conn *c)
{
	return c->state == CONN_SNIFF || c->state == CONN_SOCKS || c->state == CONN_REQUEST ||
	       c->state == CONN_LINGER ||
	       ((c->state == CONN_TUNNEL || c->state == CONN_EXCHANGE) && c->up.want_read);
}

static bool reads_server(const struct conn *c)
{
	return c->state == CONN_UPSTREAM || (c->state == CONN_EXCHANGE && !c->response_begun) ||
	       ((c->state == CONN_TUNNEL || c->state == CONN_EXCHANGE) && c->down.want_read);
}

static int set_events(struct loop_source *s, bool in, bool out)
{
	uint32_t events = (in ? EPOLLIN : 0u) | (out ? EPOLLOUT : 0u);

	return s->fd < 0 || s->events == events ? 0 : loop_modify(s, events);
}

static uint64_t bytes_moved(const struct conn *c)
{
	return c->up.bytes + c->down.bytes;
}

/* A side that has hung up is not watched any more: nobody would say that the rest of its last words can
 * be read. There is as much of them as a socket holds. */
static bool has_last_words(const struct conn *c)
{
	return (c->server_fd >= 0 && c->server.fd < 0 && c->down.want_read) ||
	       (c->client.fd < 0 && c->up.want_read);
}

void conn_step(struct conn *c)
{
	uint64_t before = bytes_moved(c), last;
	int r;

	do {
		last = bytes_moved(c);
		r = step_once(c);
	} while (r > 0 || (r == 0 && bytes_moved(c) != last && has_last_words(c)));
	if (bytes_moved(c) != before)
		c->active_ns = loop_now_ns();
	if (r == 0 &&
	    (set_events(&c->client, reads_client(c), c->to_client.len > 0 || c->down.want_write) < 0 ||
	     set_events(&c->server, reads_server(c), c->to_server.len > 0 || c->up.want_write) < 0))
		r = -1;
	if (r < 0)
		conn_close(c);
}

static void on_client(struct loop_source *s, uint32_t events)
{
	struct conn *c = s->ctx;

	/* It has gone. Only what it sent before may still be of use, and only to a tunnel. */
	if (events & (EPOLLHUP | EPOLLERR)) {
		loop_remove(&c->client);
		c->client.fd = -1;
		if (c->state != CONN_TUNNEL || !c->down.done) {
			conn_close(c);
			return;
		}
	}
	conn_step(c);
}

static void on_server(struct loop_source *s, uint32_t events)
{
	struct conn *c = s->ctx;

	/* Nothing can be sent any more; what it has sent is in the socket and is read without waiting. */
	if (events & (EPOLLHUP | EPOLLERR)) {
		loop_remove(&c->server);
		c->server.fd = -1;
		flow_done(&c->up);
		c->up.done = true;
		c->keep_alive = false;
		if (c->state == CONN_REQUEST) {
			conn_drop_server(c);
			return;
		}
	}
	conn_step(c);
}

static void begin_dns(struct conn *c)
{
	struct proxy *p = c->box->proxy;
	struct sockaddr_storage ss;
	socklen_t len;
	int fd;

	if (p->server_count == 0) {
		conn_close(c);
		return;
	}
	len = net_addr_sockaddr(&p->servers[0], DNS_PORT, &ss);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || (connect(fd, (struct sockaddr *)&ss, len) < 0 && errno != EINPROGRESS) ||
	    take_server(c, fd) < 0) {
		close_fd(&fd);
		conn_close(c);
		return;
	}
	begin_tunnel(c);
	conn_step(c);
}

void conn_accept(struct listener *l, int fd)
{
	struct conn *c = conn_new(l->box, fd);

	if (!c)
		return;
	c->dns = l->kind == PROXY_LISTEN_DNS_TCP;
	if (c->dns)
		begin_dns(c);
	else
		conn_set_timer(c, HEAD_TIMEOUT_MS);
}
