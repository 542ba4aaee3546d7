/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/exchange.c - requests and responses of plain HTTP
 *
 * Runs in the egress proxy. A request's head is read whole, its destination checked, and then written
 * anew: the server sees the host that was checked, whatever the client's Host field said. Responses are
 * read by their framing, so that both connections can go on afterwards. The heads are kept as text and
 * parsed again where they are needed.
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

enum { PORT_HTTP = 80, STATUS_TOO_LARGE = 431, STATUS_SWITCH = 101, STATUS_FINAL = 200 };

static void drop(char **text, size_t *len)
{
	free(*text);
	*text = NULL;
	*len = 0;
}

/* ---- the request ---- */

static bool same_place(const struct conn *c, const struct net_dest *host, uint16_t port)
{
	return c->server_fd >= 0 && c->port == port && strcmp(c->host.name, host->name) == 0;
}

/* A server that has closed, or sends what nobody asked for, is not used again. */
static bool server_is_quiet(const struct conn *c)
{
	char byte;

	return c->server.fd >= 0 && recv(c->server_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

static void take_request(struct conn *c, const struct http_head *h)
{
	struct net_dest host;
	uint16_t port;
	int default_port = h->is_connect ? -1 : PORT_HTTP;

	if (net_dest_port_parse(h->text + h->authority.at, h->authority.len, default_port, &host, &port) < 0) {
		(void)snprintf(c->host.name, sizeof(c->host.name), "a damaged host name");
		c->host.is_address = false;
		c->port = 0;
		report_blocked(c, PROXY_BAD_NAME);
		conn_answer(c, 400, "the host in the request is neither a name nor an address with a port");
		return;
	}
	c->to_head = h->method.len == 4 && memcmp(h->text + h->method.at, "HEAD", 4) == 0;
	c->keep_alive = h->keep_alive;
	if (!h->is_connect && same_place(c, &host, port) && server_is_quiet(c)) {
		c->reused = true;
		exchange_connected(c);
		return;
	}
	conn_drop_server(c);
	c->tunnel = h->is_connect;
	c->host = host;
	c->port = port;
	conn_reach(c);
}

void exchange_read_request(struct conn *c)
{
	int len = conn_read_head(c->client_fd, &c->in, &c->in_len);
	struct http_head h;
	const char *why;
	int status;

	if (len == 0)
		return;
	if (len == -1) { /* the client has finished, or is broken */
		c->client_shut = true;
		return;
	}
	c->to_head = false;
	if (len == -2) {
		conn_answer(c, STATUS_TOO_LARGE, "the request's head is longer than %d bytes",
			    HTTP_HEAD_MAX);
		return;
	}
	status = http_parse_request(&h, c->in, (size_t)len, &why);
	if (status)
		conn_answer(c, (unsigned int)status, "%s", why);
	else
		take_request(c, &h);
}

static void write_host_port(const struct conn *c, char *text, size_t size)
{
	bool v6 = c->host.is_address && c->host.addr.family == AF_INET6;
	char port[8] = "";

	if (c->port != PORT_HTTP)
		(void)snprintf(port, sizeof(port), ":%u", c->port);
	(void)snprintf(text, size, "%s%s%s%s", v6 ? "[" : "", c->host.name, v6 ? "]" : "", port);
}

void exchange_connected(struct conn *c)
{
	char host_port[NET_NAME_MAX + 16];
	struct http_head h;
	const char *why;

	(void)http_parse_request(&h, c->in, c->in_len, &why); /* it has passed before */
	write_host_port(c, host_port, sizeof(host_port));
	http_write_request(&c->to_server, &h, host_port, c->box->proxy->has_upstream);
	c->sent_text += c->to_server.len;
	flow_begin(&c->up, http_request_body(&h), h.length);
	c->down.want_read = c->down.want_write = false;
	c->response_begun = c->response_done = false;
	drop(&c->response_in, &c->response_len);
	c->state = CONN_EXCHANGE;
	c->active_ns = loop_now_ns();
	conn_set_timer(c, IDLE_TIMEOUT_MS);
}

/* ---- the response ---- */

/* The server closed a connection that had been idle just when we used it: not the request's fault. */
static bool try_again(struct conn *c)
{
	struct http_head h;
	const char *why;

	if (!c->reused || c->response_len > 0 || c->up.bytes > 0 ||
	    http_parse_request(&h, c->in, c->in_len, &why) != 0 || http_request_body(&h) != HTTP_BODY_NONE)
		return false;
	conn_drop_server(c);
	buf_consume(&c->to_server, c->to_server.len);
	conn_reach(c);
	return true;
}

static int no_response(struct conn *c, const char *what)
{
	if (try_again(c))
		return 1;
	conn_drop_server(c);
	conn_answer(c, 502, "%s:%u: %s", c->host.name, c->port, what);
	return 1;
}

static void begin_response(struct conn *c, const struct http_head *h)
{
	enum http_body body = http_response_body(h, c->to_head);

	c->keep_alive = c->keep_alive && body != HTTP_BODY_CLOSE;
	c->server_keeps = h->keep_alive && body != HTTP_BODY_CLOSE;
	http_write_response(&c->to_client, h, c->keep_alive);
	flow_begin(&c->down, body, h->length);
	c->response_begun = true;
}

/* Return: 1 a head was read, 0 wait, -1 (never: what fails becomes an answer). */
static int read_response(struct conn *c)
{
	int len = conn_read_head(c->server_fd, &c->response_in, &c->response_len);
	struct http_head h;

	if (len == 0)
		return 0;
	if (len == -2)
		return no_response(c, "the response's head is too long");
	if (len < 0)
		return no_response(c, "the server closed without a response");
	if (http_parse_response(&h, c->response_in, (size_t)len) < 0 || h.status == STATUS_SWITCH)
		return no_response(c, "the server's response is not HTTP as it should be");
	c->received_text += (uint64_t)len;
	if (h.status < STATUS_FINAL)
		http_write_response(&c->to_client, &h, true);
	else
		begin_response(c, &h);
	drop(&c->response_in, &c->response_len);
	return 1;
}

static int finish(struct conn *c)
{
	if (!c->keep_alive || !c->up.done || c->to_server.len > 0) {
		conn_drop_server(c);
		c->state = CONN_LAST_WORDS;
		return 1;
	}
	if (!c->server_keeps)
		conn_drop_server(c);
	drop(&c->in, &c->in_len);
	c->state = CONN_REQUEST;
	conn_set_timer(c, KEEP_ALIVE_MS);
	return 1;
}

/* A server may answer without having read all of the request; then there is no next one. */
static void send_request(struct conn *c)
{
	bool broken = false;

	if (!conn_flush(&c->to_server, c->server_fd, &broken)) {
		if (!broken)
			return;
		buf_consume(&c->to_server, c->to_server.len);
		c->up.done = true;
		c->keep_alive = false;
		return;
	}
	if (flow_step(&c->up, c->client_fd, c->server_fd) < 0) {
		flow_done(&c->up);
		c->up.done = true;
		c->keep_alive = false;
	}
}

int exchange_step(struct conn *c)
{
	bool broken = false;

	send_request(c);
	if (!conn_flush(&c->to_client, c->client_fd, &broken))
		return broken ? -1 : 0;
	if (!c->response_begun)
		return read_response(c);
	if (flow_step(&c->down, c->server_fd, c->client_fd) < 0)
		return -1;
	return c->down.done ? finish(c) : 0;
}
