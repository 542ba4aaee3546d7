/* SPDX-License-Identifier: Apache-2.0 */
/* tests/proto/http_fake.c - the HTTP server alone, with a handler that does what the path says
 *
 * "http-fake [--tls CHAIN KEY] [FILE]" listens on 127.0.0.1, prints its port and serves until standard
 * input ends. SIGHUP reads CHAIN and KEY again.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/http_server.h"
#include "mcp/tls.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "tests/proto/listen.h"

struct work { /* an exchange that is answered later */
	struct http_exchange *x;
	struct loop_timer timer;
	unsigned long left, every_ms;
	size_t size; /* of a piece */
};

static struct http_server server;
static struct loop *loop;
static const char *chain_path, *key_path, *file_path;
static unsigned long heads, requests, gone, ready, works;

static bool starts_with(struct http_text t, const char *text)
{
	return t.len >= strlen(text) && memcmp(t.data, text, strlen(text)) == 0;
}

static unsigned long number(struct http_text t, const char *name, unsigned long otherwise)
{
	char text[512] = "&", key[32];
	const char *at;

	snprintf(text + 1, sizeof(text) - 1, "%.*s", (int)t.len, t.len ? t.data : "");
	snprintf(key, sizeof(key), "&%s=", name);
	at = strstr(text, key);
	return at ? strtoul(at + strlen(key), NULL, 10) : otherwise;
}

static void reply_text(struct http_exchange *x, int status, const char *text, size_t len)
{
	http_reply(x, &(struct http_answer){ .status = status, .type = "text/plain" }, text, len);
}

/* ---- later answers ---- */

static void work_free(struct work *w)
{
	loop_timer_cancel(loop, &w->timer);
	works--;
	free(w);
}

static void on_gone(void *ctx)
{
	gone++;
	work_free(ctx);
}

static void on_ready(void *ctx);

static void on_later(struct loop_timer *t)
{
	struct work *w = t->ctx;

	reply_text(w->x, 200, "later\n", 6);
	work_free(w);
}

static void on_piece(struct loop_timer *t)
{
	struct work *w = t->ctx;
	char *piece = malloc(w->size + 1);

	memset(piece, 'x', w->size);
	while (w->left && http_is_ready(w->x)) {
		snprintf(piece, w->size + 1, "%06lu", w->left % 1000000);
		piece[6 < w->size ? 6 : w->size] = '\n';
		http_stream(w->x, piece, w->size);
		w->left--;
		if (w->every_ms)
			break;
	}
	free(piece);
	if (!w->left) {
		http_stream_end(w->x);
		work_free(w);
	} else if (w->every_ms) {
		loop_timer_set(loop, &w->timer, w->every_ms, on_piece, w);
	}
}

static void on_ready(void *ctx)
{
	struct work *w = ctx;

	ready++;
	loop_timer_set(loop, &w->timer, 0, on_piece, w);
}

static struct work *work_new(struct http_exchange *x, struct http_text query)
{
	struct work *w = calloc(1, sizeof(*w));

	*w = (struct work){ .x = x, .left = number(query, "n", 3), .every_ms = number(query, "ms", 0),
			    .size = number(query, "size", 7) };
	works++;
	http_watch(x, on_gone, on_ready, w);
	return w;
}

/* ---- the handler ---- */

static void serve_head(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	static const struct http_field auth = { "WWW-Authenticate", "Bearer realm=\"mcp\"" };
	static const struct http_field allow = { "Allow", "POST" };

	(void)ctx;
	heads++;
	if (http_text_is(r->head->path, "/deny"))
		http_refuse(x, &(struct http_answer){ .status = 401, .fields = &auth, .field_count = 1 }, "no");
	else if (http_text_is(r->head->path, "/post") && r->head->method != HTTP_POST)
		http_refuse(x, &(struct http_answer){ .status = 405, .fields = &allow, .field_count = 1 }, "no");
	else if (http_text_is(r->head->path, "/small"))
		http_limit_body(x, 10);
}

static void reply_about(struct http_exchange *x, const struct http_request *r)
{
	char text[8192];
	int len = snprintf(text, sizeof(text), "%.*s|%.*s|%.*s|%.*s|%zu|%s|%d|%d\n",
			   (int)r->head->method_text.len, r->head->method_text.data,
			   (int)r->head->path.len, r->head->path.data, (int)r->head->query.len,
			   r->head->query.len ? r->head->query.data : "", (int)r->head->host.len,
			   r->head->host.len ? r->head->host.data : "", r->body_len, r->client->address,
			   r->client->is_loopback, r->is_tls);

	reply_text(x, 200, text, (size_t)len);
}

static void reply_counts(struct http_exchange *x)
{
	char text[256];
	int len = snprintf(text, sizeof(text), "heads=%lu requests=%lu gone=%lu ready=%lu works=%lu "
			   "connections=%zu bodies=%zu\n", heads, requests, gone, ready, works,
			   server.conn_count, server.body_bytes);

	reply_text(x, 200, text, (size_t)len);
}

static void reply_file(struct http_exchange *x, const struct http_request *r)
{
	int fd = open(file_path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		die(file_path);
	http_send_file(x, &(struct http_answer){ .status = 200, .type = "application/octet-stream" }, fd,
		       number(r->head->query, "from", 0), number(r->head->query, "len", (unsigned long)st.st_size));
}

static void serve(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	struct http_field field = { "X-Name", "a\r\nSet-Cookie: b" };
	struct http_text path = r->head->path, query = r->head->query;
	struct work *w;

	(void)ctx;
	requests++;
	if (http_text_is(path, "/echo")) {
		reply_text(x, 200, r->body, r->body_len);
	} else if (http_text_is(path, "/counts")) {
		reply_counts(x);
	} else if (http_text_is(path, "/later")) {
		w = work_new(x, query);
		loop_timer_set(loop, &w->timer, w->every_ms, on_later, w);
	} else if (http_text_is(path, "/stream")) {
		w = work_new(x, query);
		http_stream_begin(x, &(struct http_answer){ .status = 200, .type = "text/event-stream" });
		loop_timer_set(loop, &w->timer, w->every_ms, on_piece, w);
	} else if (http_text_is(path, "/file")) {
		reply_file(x, r);
	} else if (http_text_is(path, "/abort")) {
		http_abort(x);
	} else if (http_text_is(path, "/split")) {
		http_reply(x, &(struct http_answer){ .status = 200, .fields = &field, .field_count = 1 }, "x", 1);
	} else if (http_text_is(path, "/nothing")) {
		reply_text(x, 204, NULL, 0);
	} else if (starts_with(path, "/about")) {
		reply_about(x, r);
	} else {
		http_refuse(x, &(struct http_answer){ .status = 404 }, "nothing here");
	}
}

/* As the real one: JSON-RPC where the path is MCP's. */
static const char *write_error(void *ctx, const struct http_request *r, int status, const char *why,
			       struct buf *body)
{
	(void)ctx;
	if (r && http_text_is(r->head->path, "/small")) {
		buf_printf(body, "{\"error\":\"%s\"}", why);
		return "application/json";
	}
	buf_printf(body, "%d %s\n", status, why);
	return "text/plain";
}

/* ---- start ---- */

static char *read_file(const char *path, size_t *ret_len)
{
	char *text = malloc(65536);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : fd_read_full(fd, text, 65536);

	if (n < 0)
		die(path);
	close(fd);
	*ret_len = (size_t)n;
	return text;
}

static void load_identity(void)
{
	size_t chain_len, key_len;
	char *chain = read_file(chain_path, &chain_len), *key = read_file(key_path, &key_len);
	struct err e;
	struct tls_identity *id = tls_identity_new(chain, chain_len, key, key_len, &e);

	if (id)
		http_server_set_identity(&server, id);
	else
		printf("refused: %s\n", e.message);
	if (id)
		printf("identity\n");
	fflush(stdout);
	free(chain);
	free(key);
}

static void on_input(struct loop_source *source, uint32_t events)
{
	char c;

	(void)events;
	if (read(source->fd, &c, 1) <= 0)
		loop_stop(loop, 0);
}

static void on_signal(struct loop_source *source, uint32_t events)
{
	struct signalfd_siginfo si;

	(void)events;
	if (read(source->fd, &si, sizeof(si)) == sizeof(si))
		load_identity();
}

int main(int argc, char **argv)
{
	static const struct http_handler handler = { serve_head, serve, write_error, NULL };
	struct loop_source input, hangup;
	struct err e;
	sigset_t set;
	int status;

	log_init("http-fake", LOG_LEVEL_WARN);
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	loop = loop_new(&e);
	http_server_init(&server, loop, &handler);
	if (argc > 3 && !strcmp(argv[1], "--tls")) {
		chain_path = argv[2];
		key_path = argv[3];
		argv += 3;
		argc -= 3;
		load_identity();
	}
	file_path = argc > 1 ? argv[1] : "/dev/null";
	if (loop_add(loop, &input, STDIN_FILENO, EPOLLIN, on_input, NULL, &e) < 0 ||
	    loop_add(loop, &hangup, signalfd(-1, &set, SFD_CLOEXEC), EPOLLIN, on_signal, NULL, &e) < 0 ||
	    http_server_listen(&server, listen_somewhere(), &e) < 0)
		die(e.message);
	status = loop_run(loop, &e);
	http_server_done(&server);
	if (works)
		fprintf(stderr, "%lu exchanges were not told of their end\n", works);
	loop_free(loop);
	return works ? 1 : status;
}
