/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/http_server.c - accept connections, never more than there is room for
 *
 * Runs in the front on sockets that the keeper has opened. When every place is taken, the connection that
 * has kept us waiting longest without a request in hand is closed for the new one: a thousand silent
 * clients cannot keep others out, and an idle one loses nothing but its connection.
 */
#include "mcp/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "mcp/http_conn.h"
#include "mcp/tls.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"

enum { ACCEPTS_PER_TURN = 64 };

static bool is_loopback(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

static void name_client(struct http_client *ret, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	*ret = (struct http_client){ .address = "?" };
	if (address->ss_family == AF_INET) {
		ret->is_loopback = ((const unsigned char *)&v4->sin_addr)[0] == 127;
		(void)inet_ntop(AF_INET, &v4->sin_addr, ret->address, sizeof(ret->address));
	} else if (address->ss_family == AF_INET6) {
		ret->is_loopback = is_loopback(&v6->sin6_addr);
		if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
			(void)inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, ret->address,
					sizeof(ret->address));
		else
			(void)inet_ntop(AF_INET6, &v6->sin6_addr, ret->address, sizeof(ret->address));
	}
}

/* ---- room ---- */

/* Return: false when every connection has a request in hand. */
static bool make_room(struct http_server *s)
{
	if (s->conn_count < HTTP_CONNECTIONS_MAX)
		return true;
	for (struct http_conn *c = TAILQ_FIRST(&s->conns); c; c = TAILQ_NEXT(c, link)) {
		if (!http_conn_is_waiting(c))
			continue;
		http_conn_lose(c);
		http_conn_free(c);
		return true;
	}
	return false;
}

/* ---- accepting ---- */

/* Return: false when the queue is empty or has to wait. */
static bool accept_one(struct http_server *s, struct acceptor *listener)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	struct http_client client;
	_cleanup_fd_ int fd = -1;

	if (!make_room(s)) {
		acceptor_rest(listener);
		return false;
	}
	fd = acceptor_take(listener, (struct sockaddr *)&address, &len);
	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED;
	name_client(&client, &address);
	if (http_conn_new(s, fd, &client))
		(void)take_fd(&fd);
	return true;
}

static void on_connections(struct loop_source *source, uint32_t events)
{
	struct http_server *s = source->ctx;

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN && accept_one(s, acceptor_of(source)); i++)
		;
}

int http_server_listen(struct http_server *s, int fd, struct err *e)
{
	_cleanup_fd_ int owned = fd;

	if (s->listen_count == HTTP_LISTENERS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d listening sockets", HTTP_LISTENERS_MAX);
	if (fd_set_nonblock(fd, true) < 0)
		return err_sys(e, "listening socket");
	if (acceptor_add(s->loop, &s->listen[s->listen_count], fd, on_connections, s, e) < 0)
		return -1;
	s->listen_count++;
	(void)take_fd(&owned);
	return 0;
}

/* ---- life ---- */

void http_server_init(struct http_server *s, struct loop *loop, const struct http_handler *handler)
{
	*s = (struct http_server){ .loop = loop, .handler = handler, .date_s = -1 };
	TAILQ_INIT(&s->conns);
}

void http_server_set_identity(struct http_server *s, struct tls_identity *id)
{
	tls_identity_release(s->identity);
	s->identity = id;
}

void http_server_done(struct http_server *s)
{
	struct http_conn *c;

	for (size_t i = 0; i < s->listen_count; i++) {
		int fd = s->listen[i].source.fd;

		acceptor_remove(&s->listen[i]);
		close_fd(&fd);
	}
	s->listen_count = 0;
	while ((c = TAILQ_FIRST(&s->conns))) {
		http_conn_lose(c);
		http_conn_free(c);
	}
	http_server_set_identity(s, NULL);
}
