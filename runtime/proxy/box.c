/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/proxy/box.c - a sandbox's listeners, and accepting from them
 *
 * Runs in the egress proxy. The sockets were made inside the sandbox's network namespace before anything
 * ran there; what connects to them is hostile. A sandbox that takes all its connections starves itself.
 */
#include "runtime/proxy/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"

enum { ACCEPTS_MAX = 32 /* of one event */ };

static bool has_room(const struct box *b)
{
	const struct proxy *p = b->proxy;

	return b->conn_count < CONNS_PER_BOX_MAX && p->conn_count < p->conns_max;
}

static void on_accept(struct listener *l)
{
	for (unsigned int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = acceptor_take(&l->on, NULL, NULL);

		if (fd < 0)
			return;
		if (has_room(l->box))
			conn_accept(l, fd);
		else
			close_fd(&fd);
	}
}

static void on_listener(struct loop_source *s, uint32_t events)
{
	struct listener *l = s->ctx;

	(void)events;
	if (l->kind == PROXY_LISTEN_DNS_UDP)
		relay_dns_datagram(l);
	else
		on_accept(l);
}

static struct box *box_find(struct proxy *p, uint64_t id)
{
	struct box *b = p->boxes;

	while (b && b->id != id)
		b = b->next;
	return b;
}

static struct box *box_new(struct proxy *p, const struct proxy_listen *msg)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->proxy = p;
	b->id = msg->box;
	memcpy(b->key, msg->key, sizeof(b->key));
	for (size_t i = 0; i < ARRAY_SIZE(b->listeners); i++)
		b->listeners[i] = (struct listener){ .on.source.fd = -1, .box = b };
	b->next = p->boxes;
	p->boxes = b;
	return b;
}

int box_listen(struct proxy *p, const struct proxy_listen *msg, int fd, struct err *e)
{
	struct box *b = box_find(p, msg->box);
	struct listener *l;

	if (msg->kind >= PROXY_LISTENERS_MAX || !memchr(msg->key, '\0', sizeof(msg->key)) ||
	    !str_is_key(msg->key))
		return err_set(e, ERR_PROTOCOL, "damaged message");
	if (!b)
		b = box_new(p, msg);
	if (!b)
		return err_set(e, ERR_NOMEM, "no memory for a sandbox");
	l = &b->listeners[msg->kind];
	if (l->on.source.fd >= 0)
		return err_set(e, ERR_PROTOCOL, "a second listener of the same kind");
	l->kind = (enum proxy_listener)msg->kind;
	if (acceptor_add(p->loop, &l->on, fd, on_listener, l, e) < 0) {
		l->on.source.fd = -1;
		return -1;
	}
	return 0;
}

static void box_free(struct box *b)
{
	while (b->conns)
		conn_close(b->conns);
	relay_dns_stop(b);
	for (size_t i = 0; i < ARRAY_SIZE(b->listeners); i++) {
		int fd = b->listeners[i].on.source.fd;

		if (fd < 0)
			continue;
		acceptor_remove(&b->listeners[i].on);
		close_fd(&fd);
	}
	free(b);
}

void box_forget(struct proxy *p, uint64_t id)
{
	struct box **at = &p->boxes, *b;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	b = *at;
	if (!b)
		return;
	*at = b->next;
	box_free(b);
}

void boxes_done(struct proxy *p)
{
	while (p->boxes)
		box_forget(p, p->boxes->id);
}
