/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/peer.h - who talks to the keeper, and what each still waits for
 *
 * A peer is a SOCK_SEQPACKET socket. It is untrusted: a message that breaks a rule, or a peer that
 * does not read its answers, ends the connection. A socket's buffer holds fewer answers than a peer may
 * have requests in flight, and how large it may be is the host's setting: the rest is queued here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/api.h"
#include "runtime/base/err.h"
#include "runtime/base/fd.h"
#include "runtime/base/loop.h"

enum {
	PEER_MAX = 65, /* a front and 64 command lines */
	PEER_STAGES_MAX = 8,
	/* What waits for a peer to read: as if every request it may have in flight were answered at once with
	 * the longest message and all descriptors there can be. Who is beyond that does not read. */
	PEER_UNSENT_MAX = API_REQUESTS_MAX * API_MSG_MAX,
	PEER_UNSENT_FDS_MAX = API_REQUESTS_MAX * FD_PASS_MAX,
	PEER_STALL_MS = 30 * 1000, /* without a message read while some wait: it does not read either */
};

enum peer_kind { /* bits: the operation table says who may */
	PEER_FRONT = 1,   /* the MCP server's front: run, look, take a file */
	PEER_CONTROL = 2, /* a command line of the same user: also stop, reset, remove */
};

struct peer;
struct request;

/* The peer has cancelled it or is gone; nobody waits for an answer (request->peer is NULL). */
typedef void request_abandon_fn(struct request *req);

struct request { /* embedded in whatever serves it */
	struct peer *peer;
	uint64_t id;
	uint16_t op;
	bool orphaned; /* abandoned because a front died that is replaced */
	request_abandon_fn *abandon;
	struct request *next, **link;
};

struct stage { /* command bytes sent ahead of an EXEC */
	uint64_t id; /* 0: free */
	int fd;      /* memory file */
	size_t len;
};

struct peer {
	struct loop_source source; /* fd -1: this slot is free */
	struct loop_timer drop;    /* a failed peer is dropped from the loop, never from inside a handler */
	struct loop_timer stall;   /* armed while messages wait */
	enum peer_kind kind;
	bool failed;
	bool replaced; /* when it dies, another takes its place: its requests are orphaned */
	unsigned int in_flight;
	struct request *requests;
	struct unsent *unsent, **unsent_end; /* in order; NULL: everything was sent */
	size_t unsent_bytes, unsent_fds;
	struct stage stages[PEER_STAGES_MAX];
};

struct peers {
	struct loop *loop;
	void *keeper;
	uint64_t stall_ms; /* PEER_STALL_MS */
	/* One message; header and size are already checked. Return: 0, -1 to drop the peer (the error
	 * says which rule it broke). */
	int (*on_message)(struct peer *p, const struct api_header *h, struct err *e);
	void (*on_gone)(struct peer *p); /* after its requests were abandoned; the slot is free next */
	struct peer peer[PEER_MAX];
	uint64_t buffer[API_MSG_MAX / sizeof(uint64_t)]; /* one message at a time, aligned */
};

void peers_init(struct peers *ps, struct loop *l, void *keeper);

/* peer_add() - serve a connected socket (made non-blocking; owned from here on, closed on failure
 * too). Return: the peer, NULL when there is no free slot. */
struct peer *peer_add(struct peers *ps, int fd, enum peer_kind kind, struct err *e);

/* peers_have_room() - is a slot free? */
bool peers_have_room(const struct peers *ps);
void peer_remove(struct peers *ps, struct peer *p);

/* peer_fail() - log the rule that was broken and drop the peer as soon as the loop is reached. */
void peer_fail(struct peer *p, const char *why);

/* request_begin() - an answer is owed. Return: 0, -1 when the id is in use or too many are in flight
 * (a peer that does this is broken). */
int request_begin(struct peer *p, struct request *req, const struct api_header *h,
		  request_abandon_fn *abandon, struct err *e);

/* request_find() - by id. Return: the request or NULL. */
struct request *request_find(const struct peer *p, uint64_t id);

/* request_note() - a message that does not end the request (API_STARTED); fills in the header. */
void request_note(struct request *req, enum api_op op, void *msg, size_t size, const int *fds,
		  size_t fd_count);

/* request_answer(), request_fail() - answer and forget; nothing happens when nobody waits. */
void request_answer(struct request *req, enum api_op op, void *msg, size_t size, const int *fds,
		    size_t fd_count);
void request_fail(struct request *req, const struct err *error);

/* request_cancel() - nobody waits any more: forget the request and tell its owner. */
void request_cancel(struct request *req);

/* stage_append() - bytes of a command that does not fit in one message. Return: 0, -1: broken rule. */
int stage_append(struct peer *p, uint64_t id, const char *bytes, size_t len, struct err *e);

/* stage_take() - the staged bytes of a request; the memory file is the caller's. Return: descriptor,
 * -1 when nothing was staged. */
int stage_take(struct peer *p, uint64_t id, size_t *ret_len);
void stage_drop(struct peer *p, uint64_t id);

/* peer_send() - any message outside a request (API_HELLO). */
void peer_send(struct peer *p, enum api_op op, uint64_t id, void *msg, size_t size);
void peer_send_fds(struct peer *p, enum api_op op, uint64_t id, void *msg, size_t size, const int *fds,
		   size_t fd_count);
