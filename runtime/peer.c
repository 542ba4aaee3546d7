/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/peer.c - the keeper's side of the API socket
 *
 * Runs in the keeper. Everything received is untrusted; messages are taken without a control buffer,
 * so a descriptor a peer attaches is dropped by the kernel. Sends never block: what the socket does not
 * take at once waits here, within bounds.
 */
#include "runtime/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"

enum {
	MESSAGES_PER_WAKEUP = 8,
	REMOVALS_MAX = 4096, /* one for each sandbox there may be */
};

struct unsent { /* a message the socket had no room for */
	struct unsent *next;
	size_t len, fd_count;
	int fds[FD_PASS_MAX]; /* copies of our own */
	unsigned char bytes[];
};

static void on_drop(struct loop_timer *t);
static void unsent_drop(struct peer *p, struct unsent *u);
static void send_unsent(struct peer *p);

void peers_init(struct peers *ps, struct loop *l, void *keeper)
{
	ps->loop = l;
	ps->keeper = keeper;
	ps->stall_ms = PEER_STALL_MS;
	for (size_t i = 0; i < PEER_MAX; i++)
		ps->peer[i].source.fd = -1;
}

static struct peers *peers_of(struct peer *p)
{
	return p->source.ctx;
}

void peer_fail(struct peer *p, const char *why)
{
	struct peers *ps = peers_of(p);

	if (p->failed)
		return;
	p->failed = true;
	if (why)
		log_warn("dropped a peer: %s", why);
	(void)loop_modify(&p->source, 0);
	if (loop_timer_set(ps->loop, &p->drop, 0, on_drop, p) < 0)
		log_error("no memory to drop a peer");
}

static void on_drop(struct loop_timer *t)
{
	struct peer *p = t->ctx;

	peer_remove(peers_of(p), p);
}

/* Return: 1 a message was served, 0 nothing more for now, -1 the peer is gone or failed. */
static int serve_one(struct peers *ps, struct peer *p)
{
	const struct api_header *h = (const struct api_header *)ps->buffer;
	struct err e = { 0 };
	ssize_t n = fd_recv_msg(p->source.fd, ps->buffer, sizeof(ps->buffer), NULL, NULL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == ECONNRESET)
		return 1; /* said once: it left without its answers, what it had asked for is still here */
	if (n <= 0) {
		peer_fail(p, n < 0 && errno == EMSGSIZE ? "message too long" : NULL);
		return -1;
	}
	if ((size_t)n < sizeof(*h) || h->size != (size_t)n || h->version != API_VERSION ||
	    h->id == 0) {
		peer_fail(p, "damaged message header");
		return -1;
	}
	if (ps->on_message(p, h, &e) < 0) {
		peer_fail(p, e.message);
		return -1;
	}
	return 1;
}

static void on_event(struct loop_source *s, uint32_t events)
{
	struct peers *ps = s->ctx;
	struct peer *p = (struct peer *)((char *)s - offsetof(struct peer, source));

	if (p->failed)
		return;
	if (events & EPOLLOUT)
		send_unsent(p);
	/* Bounded, so that a peer that floods cannot starve the others. */
	for (int i = 0; i < MESSAGES_PER_WAKEUP && !p->failed; i++) {
		if (serve_one(ps, p) <= 0)
			break;
	}
	if (!p->failed && (events & (EPOLLHUP | EPOLLERR)) && !(events & EPOLLIN))
		peer_fail(p, NULL);
}

struct peer *peer_add(struct peers *ps, int fd, enum peer_kind kind, struct err *e)
{
	_cleanup_fd_ int owned = fd;

	for (size_t i = 0; i < PEER_MAX; i++) {
		struct peer *p = &ps->peer[i];

		if (p->source.fd >= 0)
			continue;
		memset(p, 0, sizeof(*p));
		p->source.fd = -1;
		p->unsent_end = &p->unsent;
		p->kind = kind;
		if (fd_set_nonblock(fd, true) < 0) {
			(void)err_sys(e, "make a socket non-blocking");
			return NULL;
		}
		if (loop_add(ps->loop, &p->source, fd, EPOLLIN, on_event, ps, e) < 0)
			return NULL;
		(void)take_fd(&owned);
		return p;
	}
	(void)err_set(e, ERR_LIMIT, "too many control connections");
	return NULL;
}

bool peers_have_room(const struct peers *ps)
{
	for (size_t i = 0; i < PEER_MAX; i++) {
		if (ps->peer[i].source.fd < 0)
			return true;
	}
	return false;
}

void peer_remove(struct peers *ps, struct peer *p)
{
	int fd = p->source.fd;

	if (fd < 0)
		return;
	p->failed = true;
	loop_timer_cancel(ps->loop, &p->drop);
	loop_timer_cancel(ps->loop, &p->stall);
	while (p->unsent)
		unsent_drop(p, p->unsent);
	while (p->requests) {
		p->requests->orphaned = p->replaced;
		request_cancel(p->requests);
	}
	for (size_t i = 0; i < PEER_STAGES_MAX; i++) {
		if (p->stages[i].id)
			stage_drop(p, p->stages[i].id);
	}
	loop_remove(&p->source);
	close_fd(&fd);
	if (ps->on_gone)
		ps->on_gone(p);
}

/* ---- requests ---- */

struct request *request_find(const struct peer *p, uint64_t id)
{
	for (struct request *r = p->requests; r; r = r->next) {
		if (r->id == id)
			return r;
	}
	return NULL;
}

static unsigned int count_removals(const struct peer *p)
{
	unsigned int n = 0;

	for (const struct request *r = p->requests; r; r = r->next)
		n += r->op == API_REMOVE;
	return n;
}

/* A sandbox of one call is removed when its call is over and the next one has begun: what takes its time
 * to end must not be held against the calls. */
static bool has_too_many(const struct peer *p, uint16_t op)
{
	unsigned int removals = count_removals(p);

	return op == API_REMOVE ? removals >= REMOVALS_MAX : p->in_flight - removals >= API_REQUESTS_MAX;
}

int request_begin(struct peer *p, struct request *req, const struct api_header *h,
		  request_abandon_fn *abandon, struct err *e)
{
	if (request_find(p, h->id))
		return err_set(e, ERR_PROTOCOL, "request id used twice");
	if (has_too_many(p, h->op))
		return err_set(e, ERR_PROTOCOL, "more requests in flight than the %d there may be", API_REQUESTS_MAX);
	req->peer = p;
	req->id = h->id;
	req->op = h->op;
	req->abandon = abandon;
	req->next = p->requests;
	req->link = &p->requests;
	if (req->next)
		req->next->link = &req->next;
	p->requests = req;
	p->in_flight++;
	return 0;
}

static void request_end(struct request *req)
{
	*req->link = req->next;
	if (req->next)
		req->next->link = req->link;
	req->peer->in_flight--;
	req->peer = NULL;
	req->next = NULL;
	req->link = NULL;
}

/* ---- sending ---- */

/* The first one in the queue. */
static void unsent_drop(struct peer *p, struct unsent *u)
{
	p->unsent = u->next;
	if (!p->unsent)
		p->unsent_end = &p->unsent;
	p->unsent_bytes -= sizeof(*u) + u->len;
	p->unsent_fds -= u->fd_count;
	for (size_t i = 0; i < u->fd_count; i++)
		close_fd(&u->fds[i]);
	free(u);
}

static void on_stall(struct loop_timer *t)
{
	struct peer *p = t->ctx;

	/* Time goes on while the machine sleeps: the peer may have had none of it. */
	if (!p->failed)
		send_unsent(p);
	if (!p->failed && p->unsent && p->stall.deadline_ns == 0)
		peer_fail(p, "it does not read its answers");
}

static int wait_for_reader(struct peer *p)
{
	return loop_timer_set(peers_of(p)->loop, &p->stall, peers_of(p)->stall_ms, on_stall, p);
}

/* Nobody is there for an answer. The end comes when everything it had asked for was read: it may have been in
 * a hurry. */
static bool is_gone(int error)
{
	return error == EPIPE || error == ECONNRESET;
}

static void send_unsent(struct peer *p)
{
	bool moved = false;

	while (p->unsent && fd_send_msg(p->source.fd, p->unsent->bytes, p->unsent->len, p->unsent->fds,
					p->unsent->fd_count) == 0) {
		unsent_drop(p, p->unsent);
		moved = true;
	}
	if (!p->unsent) {
		loop_timer_cancel(peers_of(p)->loop, &p->stall);
		(void)loop_modify(&p->source, EPOLLIN);
	} else if (is_gone(errno)) {
		while (p->unsent)
			unsent_drop(p, p->unsent);
		send_unsent(p);
	} else if (errno != EAGAIN || (moved && wait_for_reader(p) < 0)) {
		peer_fail(p, NULL);
	}
}

static struct unsent *unsent_new(const void *msg, size_t size, const int *fds, size_t fd_count)
{
	struct unsent *u = calloc(1, sizeof(*u) + size);

	if (!u)
		return NULL;
	u->len = size;
	memcpy(u->bytes, msg, size);
	for (; u->fd_count < fd_count; u->fd_count++) {
		u->fds[u->fd_count] = fcntl(fds[u->fd_count], F_DUPFD_CLOEXEC, 0);
		if (u->fds[u->fd_count] >= 0)
			continue;
		while (u->fd_count > 0)
			close_fd(&u->fds[--u->fd_count]);
		free(u);
		return NULL;
	}
	return u;
}

static void keep_unsent(struct peer *p, const void *msg, size_t size, const int *fds, size_t fd_count)
{
	struct unsent *u;

	if (p->unsent_bytes + sizeof(*u) + size > PEER_UNSENT_MAX ||
	    p->unsent_fds + fd_count > PEER_UNSENT_FDS_MAX) {
		peer_fail(p, "it does not read its answers");
		return;
	}
	u = unsent_new(msg, size, fds, fd_count);
	if (!u || (!p->unsent && (wait_for_reader(p) < 0 || loop_modify(&p->source, EPOLLIN | EPOLLOUT) < 0)))
		peer_fail(p, "its answers cannot be kept");
	if (!u)
		return;
	*p->unsent_end = u;
	p->unsent_end = &u->next;
	p->unsent_bytes += sizeof(*u) + size;
	p->unsent_fds += fd_count;
}

static void send_msg(struct peer *p, enum api_op op, uint64_t id, void *msg, size_t size,
		     const int *fds, size_t fd_count)
{
	struct api_header *h = msg;

	if (p->failed)
		return;
	*h = (struct api_header){ .version = API_VERSION, .op = (uint16_t)op,
				  .size = (uint32_t)size, .id = id };
	if (!p->unsent && fd_send_msg(p->source.fd, msg, size, fds, fd_count) == 0)
		return;
	if (p->unsent || errno == EAGAIN)
		keep_unsent(p, msg, size, fds, fd_count);
	else if (!is_gone(errno))
		peer_fail(p, NULL);
}

void peer_send(struct peer *p, enum api_op op, uint64_t id, void *msg, size_t size)
{
	send_msg(p, op, id, msg, size, NULL, 0);
}

void peer_send_fds(struct peer *p, enum api_op op, uint64_t id, void *msg, size_t size, const int *fds,
		   size_t fd_count)
{
	send_msg(p, op, id, msg, size, fds, fd_count);
}

void request_note(struct request *req, enum api_op op, void *msg, size_t size, const int *fds,
		  size_t fd_count)
{
	if (req->peer)
		send_msg(req->peer, op, req->id, msg, size, fds, fd_count);
}

void request_answer(struct request *req, enum api_op op, void *msg, size_t size, const int *fds,
		    size_t fd_count)
{
	struct peer *p = req->peer;

	if (!p)
		return;
	request_end(req);
	send_msg(p, op, req->id, msg, size, fds, fd_count);
}

void request_fail(struct request *req, const struct err *error)
{
	struct api_failed msg = { .error = *error };

	if (error->code == ERR_NONE)
		(void)err_set(&msg.error, ERR_SYSTEM, "failed for an unknown reason");
	request_answer(req, API_FAILED, &msg, sizeof(msg), NULL, 0);
}

void request_cancel(struct request *req)
{
	request_end(req);
	if (req->abandon)
		req->abandon(req);
}

/* ---- staged commands ---- */

static struct stage *stage_find(struct peer *p, uint64_t id)
{
	for (size_t i = 0; i < PEER_STAGES_MAX; i++) {
		if (p->stages[i].id == id)
			return &p->stages[i];
	}
	return NULL;
}

static struct stage *stage_new(struct peer *p, uint64_t id, struct err *e)
{
	struct stage *s = stage_find(p, 0);

	if (!s) {
		(void)err_set(e, ERR_PROTOCOL, "more than %d commands staged", PEER_STAGES_MAX);
		return NULL;
	}
	s->fd = memfd_create("command", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0) {
		(void)err_sys(e, "memory file for a staged command");
		return NULL;
	}
	s->id = id;
	s->len = 0;
	return s;
}

int stage_append(struct peer *p, uint64_t id, const char *bytes, size_t len, struct err *e)
{
	struct stage *s = stage_find(p, id);

	if (request_find(p, id))
		return err_set(e, ERR_PROTOCOL, "bytes staged for a running request");
	if (!s)
		s = stage_new(p, id, e);
	if (!s)
		return -1;
	if (len > API_COMMAND_MAX - s->len)
		return err_set(e, ERR_PROTOCOL, "command longer than %d bytes", API_COMMAND_MAX);
	if (fd_write_full(s->fd, bytes, len) < 0)
		return err_sys(e, "stage a command");
	s->len += len;
	return 0;
}

int stage_take(struct peer *p, uint64_t id, size_t *ret_len)
{
	struct stage *s = stage_find(p, id);

	if (!s)
		return -1;
	*ret_len = s->len;
	s->id = 0;
	return take_fd(&s->fd);
}

void stage_drop(struct peer *p, uint64_t id)
{
	struct stage *s = stage_find(p, id);

	if (!s || id == 0)
		return;
	s->id = 0;
	close_fd(&s->fd);
}
