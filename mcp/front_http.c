/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/front_http.c - the front of serve: which path goes where, and what the keeper hands in
 *
 * Starts with the keeper's id and gives it up before the first byte of input. Everything it will ever
 * use comes over the keeper's socket, which it trusts: settings, TLS files, listening sockets, files
 * of workspaces. TLS files are parsed here, behind the same walls as what clients send.
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mcp/download.h"
#include "mcp/front.h"
#include "mcp/front_confine.h"
#include "mcp/http_server.h"
#include "mcp/keeper_client.h"
#include "mcp/tls.h"
#include "mcp/transport_http.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"

enum {
	TLS_FILE_MAX = 256 * 1024,
	DESCRIPTORS = 3 * HTTP_CONNECTIONS_MAX, /* a socket, a file and room for what the keeper passes */
};

struct front_http {
	struct loop *loop;
	struct keeper_client keeper;
	struct http_server http;
	struct server server;
	struct transport_http mcp;
	struct links links;
	struct downloads downloads;
	struct api_http settings;
	bool tls_failed; /* it was asked for, and there is none */
};

/* ---- routes ---- */

static void answer_health(struct http_exchange *x, const struct http_request *r)
{
	static const struct http_field allow = { "Allow", "GET, HEAD" };

	if (r->head->method == HTTP_GET || r->head->method == HTTP_HEAD)
		http_reply(x, &(struct http_answer){ .status = 200, .type = "text/plain" }, "ok", 2);
	else
		http_refuse(x, &(struct http_answer){ .status = 405, .fields = &allow, .field_count = 1 },
			    "only GET and HEAD");
}

/* Also what clients look for when they hope for OAuth (/.well-known/..., /register): a plain 404 is the
 * one answer that makes all of them use the token they have. */
static void on_head(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct front_http *f = ctx;

	if (transport_http_owns(&f->mcp, r->head->path))
		transport_http_on_head(&f->mcp, x, r);
	else if (downloads_own(r->head->path))
		downloads_on_head(&f->downloads, x, r);
	else if (http_text_is(r->head->path, "/healthz"))
		answer_health(x, r);
	else
		http_refuse(x, &(struct http_answer){ .status = 404 }, "nothing here");
}

static void on_request(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct front_http *f = ctx;

	if (downloads_own(r->head->path))
		downloads_on_request(&f->downloads, x, r);
	else
		transport_http_on_request(&f->mcp, x, r);
}

static const char *write_error(void *ctx, const struct http_request *r, int status, const char *why,
			       struct buf *body)
{
	const struct front_http *f = ctx;

	if (r && transport_http_owns(&f->mcp, r->head->path))
		return transport_http_write_error(status, why, body);
	buf_printf(body, "%s\n", why);
	return "text/plain";
}

/* ---- what the keeper hands in ---- */

static void take_settings(struct front_http *f, const struct api_http *msg)
{
	struct hosts hosts = { f->settings.public_base, f->settings.allowed_hosts };

	f->settings = *msg;
	f->settings.path[API_HTTP_TEXT_MAX - 1] = '\0';
	f->settings.public_base[API_HTTP_TEXT_MAX - 1] = '\0';
	f->settings.allowed_hosts[API_HTTP_TEXT_MAX - 1] = '\0';
	f->settings.sign_key[API_HTTP_TEXT_MAX - 1] = '\0';
	f->links = (struct links){ f->settings.public_base, f->settings.sign_key, msg->link_ttl_ms };
	f->server.links = &f->links;
	transport_http_configure(&f->mcp, f->settings.path, &hosts, msg->flags & API_HTTP_NO_TOKEN,
				 msg->flags & API_HTTP_BEHIND_PROXY);
}

static int read_file(int fd, char *text, size_t *ret_len, const char *what, struct err *e)
{
	ssize_t n = fd_read_full(fd, text, TLS_FILE_MAX);

	if (n < 0)
		return err_sys(e, "read the TLS %s", what);
	if (n == TLS_FILE_MAX)
		return err_set(e, ERR_CONFIG, "the TLS %s is larger than %d bytes", what, TLS_FILE_MAX);
	*ret_len = (size_t)n;
	return 0;
}

static struct tls_identity *read_identity(const int *fds, struct err *e)
{
	static char chain[TLS_FILE_MAX], key[TLS_FILE_MAX];
	struct tls_identity *id = NULL;
	size_t chain_len = 0, key_len = 0;

	if (read_file(fds[0], chain, &chain_len, "certificate", e) == 0 &&
	    read_file(fds[1], key, &key_len, "key", e) == 0)
		id = tls_identity_new(chain, chain_len, key, key_len, e);
	explicit_bzero(key, sizeof(key));
	return id;
}

/* Connections that are open keep the certificate they began with. */
static void take_tls(struct front_http *f, const int *fds, size_t fd_count)
{
	struct tls_identity *id;
	struct err e = { 0 };

	if (fd_count != 2)
		return;
	id = read_identity(fds, &e);
	if (id) {
		http_server_set_identity(&f->http, id);
	} else if (f->http.identity) {
		log_error("the certificate stays as it was: %s", e.message);
	} else {
		log_error("%s%s%s", e.message, *e.remedy ? "; remedy: " : "", e.remedy);
		f->tls_failed = true;
	}
}

static void take_sockets(struct front_http *f, int *fds, size_t fd_count)
{
	struct err e = { 0 };

	for (size_t i = 0; i < fd_count && !f->tls_failed; i++)
		if (http_server_listen(&f->http, take_fd(&fds[i]), &e) < 0)
			log_error("%s", e.message);
	keeper_client_serving(&f->keeper, f->tls_failed || !f->http.listen_count);
}

static void on_doors(void *ctx, const struct api_header *h, int *fds, size_t fd_count)
{
	struct front_http *f = ctx;

	if (h->op == API_HTTP)
		take_settings(f, (const struct api_http *)h);
	else if (h->op == API_TLS)
		take_tls(f, fds, fd_count);
	else
		take_sockets(f, fds, fd_count);
}

static void on_tokens(void *ctx, const struct api_tokens *tokens)
{
	struct front_http *f = ctx;

	transport_http_set_tokens(&f->mcp, tokens);
}

/* ---- life ---- */

static void on_drained(void *ctx)
{
	(void)ctx;
}

static void on_gone(void *ctx, const struct err *e)
{
	struct front_http *f = ctx;

	log_info("%s", e->message);
	loop_stop(f->loop, 0);
}

static int serve(struct front_http *f, const struct registry *registry, struct err *e)
{
	const struct http_handler handler = { on_head, on_request, write_error, f };
	int status = -1;

	f->keeper.on_drained = on_drained;
	f->keeper.on_doors = on_doors;
	f->keeper.on_tokens = on_tokens;
	f->keeper.on_gone = on_gone;
	f->keeper.ctx = f;
	http_server_init(&f->http, f->loop, &handler);
	transport_http_init(&f->mcp, &f->server);
	f->links = (struct links){ "", "", 0 };
	downloads_init(&f->downloads, &f->keeper, &f->links);
	if (server_init(&f->server, f->loop, &f->keeper, registry, e) == 0 &&
	    keeper_client_watch(&f->keeper, f->loop, e) == 0)
		status = loop_run(f->loop, e);
	keeper_client_done(&f->keeper);
	server_done(&f->server);
	downloads_done(&f->downloads);
	transport_http_done(&f->mcp);
	http_server_done(&f->http);
	return status;
}

/* As many as the caller lets us have; fewer only means fewer connections. */
static void raise_descriptor_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur >= DESCRIPTORS)
		return;
	rl.rlim_cur = rl.rlim_max < DESCRIPTORS ? rl.rlim_max : DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &rl);
}

int front_http(uint32_t id, const struct registry *registry, struct err *e)
{
	static struct front_http front;
	int status;

	(void)signal(SIGPIPE, SIG_IGN);
	raise_descriptor_limit();
	if (front_become(id, e) < 0 || tls_start(e) < 0 ||
	    keeper_client_init(&front.keeper, FRONT_API_FD, e) < 0 || front_confine(e) < 0)
		return -1;
	front.loop = loop_new(e);
	if (!front.loop)
		return -1;
	status = serve(&front, registry, e);
	loop_free(front.loop);
	return status;
}
