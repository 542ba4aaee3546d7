/* SPDX-License-Identifier: Apache-2.0 */
/* tests/proto/front_http_main.c - the front alone, over HTTP
 *
 *   front-http @front ID     with the keeper's socket as descriptor 3
 *
 * Listens on a port of loopback that it writes to standard output, and serves until standard input
 * ends. FRONT_HTTP in the environment: words "no-token", "proxy", "base=URL", "hosts=LIST", "path=PATH".
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcp/front.h"
#include "mcp/http_server.h"
#include "mcp/tools.h"
#include "mcp/transport_http.h"
#include "runtime/base/log.h"

static struct http_server http;
static struct transport_http transport;
static struct server server;
static struct keeper_client keeper;
static struct loop_source input;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void on_head(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	(void)ctx;
	if (transport_http_owns(&transport, r->head->path))
		transport_http_on_head(&transport, x, r);
	else
		http_refuse(x, &(struct http_answer){ .status = 404 }, "not found");
}

static void on_request(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	(void)ctx;
	transport_http_on_request(&transport, x, r);
}

static const char *write_error(void *ctx, const struct http_request *r, int status, const char *why,
			       struct buf *body)
{
	(void)ctx;
	if (r && transport_http_owns(&transport, r->head->path))
		return transport_http_write_error(status, why, body);
	buf_printf(body, "%s\n", why);
	return "text/plain";
}

static const struct http_handler handler = { on_head, on_request, write_error, NULL };

static void on_drained(void *ctx)
{
	(void)ctx;
}

static void on_tokens(void *ctx, const struct api_tokens *tokens)
{
	(void)ctx;
	transport_http_set_tokens(&transport, tokens);
}

static void on_keeper_gone(void *ctx, const struct err *e)
{
	(void)ctx;
	(void)e;
	loop_stop(server.loop, 1);
}

static void on_input(struct loop_source *s, uint32_t events)
{
	char byte;

	(void)events;
	if (read(s->fd, &byte, 1) <= 0)
		loop_stop(server.loop, 0);
}

static int listen_anywhere(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		die("listen");
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

static void set_up(void)
{
	static char words[1024];
	struct hosts hosts = { "", "" };
	bool no_token = false, proxy = false;
	const char *path = "/mcp", *env = getenv("FRONT_HTTP");

	snprintf(words, sizeof(words), "%s", env ? env : "");
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
		if (!strcmp(word, "no-token"))
			no_token = true;
		else if (!strcmp(word, "proxy"))
			proxy = true;
		else if (!strncmp(word, "base=", 5))
			hosts.public_base = word + 5;
		else if (!strncmp(word, "hosts=", 6))
			hosts.allowed = word + 6;
		else if (!strncmp(word, "path=", 5))
			path = word + 5;
	}
	transport_http_init(&transport, &server);
	transport_http_configure(&transport, path, &hosts, no_token, proxy);
}

int main(void)
{
	struct err e = { 0 };
	struct loop *loop = loop_new(&e);
	int status;

	log_init("front", LOG_LEVEL_WARN);
	if (!loop || keeper_client_init(&keeper, FRONT_API_FD, &e) < 0)
		die(e.message);
	keeper.on_drained = on_drained;
	keeper.on_gone = on_keeper_gone;
	keeper.on_tokens = on_tokens;
	set_up();
	http_server_init(&http, loop, &handler);
	if (server_init(&server, loop, &keeper, &sandbox_registry, &e) < 0 || keeper_client_watch(&keeper, loop, &e) < 0 ||
	    loop_add(loop, &input, STDIN_FILENO, EPOLLIN, on_input, NULL, &e) < 0 ||
	    http_server_listen(&http, listen_anywhere(), &e) < 0)
		die(e.message);
	status = loop_run(loop, &e);
	keeper_client_done(&keeper);
	server_done(&server);
	transport_http_done(&transport);
	http_server_done(&http);
	loop_remove(&input);
	loop_free(loop);
	return status;
}
