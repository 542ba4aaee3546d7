/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/keeper_client.c - the front's end of the keeper's socket (runtime/api.h), asynchronous
 *
 * Runs in the front, without privilege. The keeper is trusted; its messages are checked all the same,
 * because a version mismatch must end in a sentence and not in a wild read.
 */
#include "mcp/keeper_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"

struct keeper_message { /* what the socket did not take yet */
	struct keeper_message *next;
	size_t len;
	char bytes[];
};

/* One message in each direction; single thread. Two, because a handler of a received message may send. */
static _Alignas(16) char send_buffer[API_MSG_MAX];
static _Alignas(16) char receive_buffer[API_MSG_MAX];

static void init_header(struct api_header *h, enum api_op op, size_t size, uint64_t id)
{
	*h = (struct api_header){
		.version = API_VERSION, .op = (uint16_t)op, .size = (uint32_t)size, .id = id
	};
}

/* Smallest size of each message the keeper sends; 0: not one of its messages. */
static size_t reply_size_min(uint16_t op)
{
	switch (op) {
	case API_HELLO:
		return sizeof(struct api_hello);
	case API_EXEC_DONE:
		return sizeof(struct api_exec_done);
	case API_INFO_DONE:
		return sizeof(struct api_info_done);
	case API_PRESENT_DONE:
		return sizeof(struct api_present_done);
	case API_DONE:
		return sizeof(struct api_done);
	case API_FAILED:
		return sizeof(struct api_failed);
	case API_PROGRESS:
		return sizeof(struct api_progress);
	case API_TOKENS:
		return sizeof(struct api_tokens);
	case API_HTTP:
		return sizeof(struct api_http);
	case API_TLS:
	case API_LISTEN:
		return sizeof(struct api_header);
	default:
		return 0;
	}
}

static bool message_is_valid(const struct api_header *h, size_t len)
{
	const struct api_info_done *info = (const void *)h;
	const struct api_tokens *tokens = (const void *)h;
	size_t min;

	if (len < sizeof(*h) || h->version != API_VERSION || h->size != len)
		return false;
	min = reply_size_min(h->op);
	if (!min || len < min)
		return false;
	if (h->op == API_TOKENS)
		return tokens->count <= API_TOKENS_MAX &&
		       len >= min + tokens->count * sizeof(struct api_token);
	return h->op != API_INFO_DONE || (info->count <= API_INFO_MAX &&
					  len >= min + info->count * sizeof(struct api_info_row));
}

/* ---- requests in flight ---- */

static void request_add(struct keeper_client *k, struct keeper_request *r)
{
	r->id = ++k->last_id;
	r->next = k->requests;
	r->link = &k->requests;
	if (r->next)
		r->next->link = &r->next;
	k->requests = r;
}

static void request_remove(struct keeper_request *r)
{
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	r->id = 0;
}

static struct keeper_request *request_find(const struct keeper_client *k, uint64_t id)
{
	struct keeper_request *r = k->requests;

	while (r && r->id != id)
		r = r->next;
	return r;
}

static void fail_all(struct keeper_client *k, const struct err *e)
{
	struct api_failed failed = { .error = *e };

	while (k->requests) {
		struct keeper_request *r = k->requests;

		init_header(&failed.h, API_FAILED, sizeof(failed), r->id);
		request_remove(r);
		r->fn(r, &failed.h, NULL, 0);
	}
}

static void keeper_gone(struct keeper_client *k, enum err_code code, const char *why)
{
	struct err e;

	if (!k->source.loop)
		return;
	loop_remove(&k->source);
	(void)err_set(&e, code, "%s", why);
	fail_all(k, &e);
	k->on_gone(k->ctx, &e);
}

/* ---- sending ---- */

static void enqueue(struct keeper_client *k, const void *bytes, size_t len)
{
	struct keeper_message *m = malloc(sizeof(*m) + len);

	if (!m) {
		keeper_gone(k, ERR_NOMEM, "no memory for a request");
		return;
	}
	*m = (struct keeper_message){ .len = len };
	memcpy(m->bytes, bytes, len);
	*k->queue_end = m;
	k->queue_end = &m->next;
	(void)loop_modify(&k->source, EPOLLIN | EPOLLOUT);
}

static void send_or_queue(struct keeper_client *k, const void *bytes, size_t len)
{
	if (!k->source.loop)
		return;
	if (!k->queue && fd_send_msg(k->fd, bytes, len, NULL, 0) == 0)
		return;
	if (k->queue || errno == EAGAIN)
		enqueue(k, bytes, len);
	/* every other error is the keeper's end: the socket reports it as readable */
}

static void drain_queue(struct keeper_client *k)
{
	while (k->queue) {
		struct keeper_message *m = k->queue;

		if (fd_send_msg(k->fd, m->bytes, m->len, NULL, 0) < 0 && errno == EAGAIN)
			return;
		k->queue = m->next;
		free(m);
	}
	k->queue_end = &k->queue;
	(void)loop_modify(&k->source, EPOLLIN);
	k->on_drained(k->ctx);
}

bool keeper_client_is_congested(const struct keeper_client *k)
{
	return k->queue;
}

static void send_stage(struct keeper_client *k, uint64_t id, const char *bytes, size_t len)
{
	struct api_stage *m = (struct api_stage *)send_buffer;

	init_header(&m->h, API_STAGE, sizeof(*m) + len, id);
	m->len = (uint32_t)len;
	memcpy(m->bytes, bytes, len);
	send_or_queue(k, m, m->h.size);
}

/* A request that the socket will never carry is failed like one the keeper refuses. */
static bool request_begin(struct keeper_client *k, struct keeper_request *r)
{
	struct api_failed failed;

	if (k->source.loop) {
		request_add(k, r);
		return true;
	}
	init_header(&failed.h, API_FAILED, sizeof(failed), 0);
	(void)err_set(&failed.error, ERR_GONE, "the sandbox service has ended");
	r->fn(r, &failed.h, NULL, 0);
	return false;
}

static const char *owner_of(const struct keeper_client *k, const char *owner)
{
	return owner ? owner : k->hello.owner;
}

void keeper_client_exec(struct keeper_client *k, struct keeper_request *r,
			const struct keeper_exec *x)
{
	struct api_exec *m = (struct api_exec *)send_buffer;
	size_t staged = 0;
	uint64_t id;

	if (!request_begin(k, r))
		return;
	id = r->id; /* sending may fail every request, and r is then gone */
	while (x->command_len - staged > API_STAGE_MAX) {
		send_stage(k, id, x->command + staged, API_STAGE_MAX);
		staged += API_STAGE_MAX;
	}
	memset(m, 0, sizeof(*m));
	init_header(&m->h, API_EXEC, sizeof(*m) + (x->command_len - staged), id);
	(void)str_copy(m->owner, sizeof(m->owner), owner_of(k, r->owner));
	(void)str_copy(m->key, sizeof(m->key), x->key);
	(void)str_copy(m->cwd, sizeof(m->cwd), x->cwd);
	m->mode = API_EXEC_SHELL;
	m->timeout_ms = x->timeout_ms;
	m->flags = x->as_root ? API_EXEC_ROOT : 0;
	m->staged = (uint32_t)staged;
	m->len = (uint32_t)(x->command_len - staged);
	memcpy(m->bytes, x->command + staged, m->len);
	send_or_queue(k, m, m->h.size);
}

void keeper_client_present(struct keeper_client *k, struct keeper_request *r, const char *key,
			   const char *path, bool copy)
{
	struct api_present *m = (struct api_present *)send_buffer;

	if (!request_begin(k, r))
		return;
	memset(m, 0, sizeof(*m));
	init_header(&m->h, API_PRESENT, sizeof(*m), r->id);
	(void)str_copy(m->owner, sizeof(m->owner), owner_of(k, r->owner));
	(void)str_copy(m->key, sizeof(m->key), key);
	(void)str_copy(m->path, sizeof(m->path), path);
	m->copy = copy;
	send_or_queue(k, m, m->h.size);
}

static void send_key_request(struct keeper_client *k, enum api_op op, uint64_t id, const char *owner,
			     const char *key, bool workspace)
{
	struct api_key_request m;

	memset(&m, 0, sizeof(m));
	init_header(&m.h, op, sizeof(m), id);
	(void)str_copy(m.owner, sizeof(m.owner), owner_of(k, owner));
	(void)str_copy(m.key, sizeof(m.key), key);
	m.workspace = workspace;
	send_or_queue(k, &m, sizeof(m));
}

void keeper_client_info(struct keeper_client *k, struct keeper_request *r)
{
	if (request_begin(k, r))
		send_key_request(k, API_INFO, r->id, r->owner, "", false);
}

void keeper_client_discard(struct keeper_client *k, const char *owner, const char *key)
{
	send_key_request(k, API_REMOVE, ++k->last_id, owner, key, true);
}

void keeper_client_peek(struct keeper_client *k, struct keeper_request *r)
{
	struct api_peek m;

	init_header(&m.h, API_PEEK, sizeof(m), r->id);
	if (!keeper_client_is_congested(k))
		send_or_queue(k, &m, sizeof(m));
}

void keeper_client_serving(struct keeper_client *k, bool refused)
{
	struct api_serving m = { .refused = refused };

	init_header(&m.h, API_SERVING, sizeof(m), ++k->last_id);
	send_or_queue(k, &m, sizeof(m));
}

void keeper_client_cancel(struct keeper_client *k, struct keeper_request *r)
{
	struct api_cancel m;

	if (!r->id)
		return;
	init_header(&m.h, API_CANCEL, sizeof(m), r->id);
	request_remove(r);
	send_or_queue(k, &m, sizeof(m));
}

/* ---- receiving ---- */

static void close_fds(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
}

/* A message for a request that is no longer known answers one that was cancelled. */
static void dispatch(struct keeper_client *k, const struct api_header *h, int *fds, size_t fd_count)
{
	struct keeper_request *r = request_find(k, h->id);

	if (h->op == API_TOKENS) {
		if (k->on_tokens)
			k->on_tokens(k->ctx, (const struct api_tokens *)h);
		return;
	}
	if ((h->op == API_HTTP || h->op == API_TLS || h->op == API_LISTEN) && k->on_doors)
		k->on_doors(k->ctx, h, fds, fd_count);
	if (!r)
		return;
	if (h->op != API_PROGRESS)
		request_remove(r);
	r->fn(r, h, fds, fd_count);
}

static void on_socket(struct loop_source *source, uint32_t events)
{
	struct keeper_client *k = source->ctx;
	const struct api_header *h = (const struct api_header *)receive_buffer;
	int fds[FD_PASS_MAX];
	size_t fd_count = FD_PASS_MAX;
	ssize_t len;

	if (events & EPOLLOUT)
		drain_queue(k);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || !k->source.loop)
		return;
	len = fd_recv_msg(k->fd, receive_buffer, sizeof(receive_buffer), fds, &fd_count);
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0) {
		keeper_gone(k, ERR_GONE, "the sandbox service has ended");
		return;
	}
	if (message_is_valid(h, (size_t)len))
		dispatch(k, h, fds, fd_count);
	else
		keeper_gone(k, ERR_PROTOCOL, "the sandbox service sent a message of another version");
	close_fds(fds, fd_count);
}

/* ---- set-up ---- */

int keeper_client_init(struct keeper_client *k, int fd, struct err *e)
{
	const struct api_hello *hello = (const struct api_hello *)receive_buffer;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t len;

	*k = (struct keeper_client){ .fd = fd, .source.fd = -1 };
	k->queue_end = &k->queue;
	while (poll(&p, 1, -1) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for the keeper");
	len = fd_recv_msg(fd, receive_buffer, sizeof(receive_buffer), NULL, NULL);
	if (len < 0)
		return err_sys(e, "read the keeper's first message");
	if (len == 0)
		return err_set(e, ERR_GONE, "the keeper ended before it had started");
	if (!message_is_valid(&hello->h, (size_t)len) || hello->h.op != API_HELLO)
		return err_set(e, ERR_PROTOCOL, "the keeper is of another version");
	k->hello = *hello;
	k->hello.profile[sizeof(k->hello.profile) - 1] = 0;
	k->hello.image[sizeof(k->hello.image) - 1] = 0;
	k->hello.owner[sizeof(k->hello.owner) - 1] = 0;
	k->hello.net_allow[sizeof(k->hello.net_allow) - 1] = 0;
	for (uint32_t i = 0; i < OWNER_NET_MAX; i++) {
		k->hello.owner_net[i].owner[OWNER_ID_LEN] = 0;
		k->hello.owner_net[i].allow[OWNER_ALLOW_MAX - 1] = 0;
	}
	k->hello.start_failure.message[ERR_MESSAGE_MAX - 1] = 0;
	k->hello.start_failure.remedy[ERR_REMEDY_MAX - 1] = 0;
	return 0;
}

const struct api_hello *keeper_client_hello(struct keeper_client *k, const char *owner)
{
	const struct api_hello *h = &k->hello;
	const struct owner_net *row = owner_net_find(h->owner_net, h->owner_net_count, owner_of(k, owner));

	if (!row)
		return h;
	k->view = *h;
	k->view.net = row->net;
	k->view.owner_net_count = 0;
	if (row->has_allow)
		(void)str_copy(k->view.net_allow, sizeof(k->view.net_allow), row->allow);
	return &k->view;
}

int keeper_client_watch(struct keeper_client *k, struct loop *loop, struct err *e)
{
	k->loop = loop;
	return loop_add(loop, &k->source, k->fd, EPOLLIN, on_socket, k, e);
}

void keeper_client_done(struct keeper_client *k)
{
	loop_remove(&k->source);
	while (k->queue) {
		struct keeper_message *m = k->queue;

		k->queue = m->next;
		free(m);
	}
	k->queue_end = &k->queue;
}
