/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/keeper_client.h - the front's end of the keeper's socket (runtime/api.h), asynchronous
 *
 * Requests are embedded in their owner. What the socket does not take at once is queued; the owner of
 * the client stops taking new work while keeper_client_is_congested().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/api.h"
#include "runtime/base/loop.h"

struct keeper_request;

/* Gets each message for a request. Every message but API_PROGRESS is the last one: the request is no
 * longer known to the client and may be used again. Descriptors left in fds are closed afterwards. */
typedef void keeper_reply_fn(struct keeper_request *r, const struct api_header *message, int *fds,
			     size_t fd_count);

struct keeper_request {
	uint64_t id; /* 0: not in flight */
	const char *owner; /* whose sandboxes it is about; NULL: the one named in the hello */
	keeper_reply_fn *fn;
	void *ctx;
	struct keeper_request *next, **link;
};

struct keeper_message;

struct keeper_client {
	struct loop *loop;
	int fd; /* borrowed */
	struct loop_source source;
	uint64_t last_id;
	struct keeper_request *requests;
	struct keeper_message *queue, **queue_end;
	struct api_hello hello;
	struct api_hello view; /* keeper_client_hello() */
	void (*on_drained)(void *ctx); /* the queue is empty again */
	void (*on_tokens)(void *ctx, const struct api_tokens *tokens); /* valid during the call; may be NULL */
	/* API_HTTP, API_TLS, API_LISTEN; descriptors left in fds are closed afterwards. May be NULL. */
	void (*on_doors)(void *ctx, const struct api_header *h, int *fds, size_t fd_count);
	void (*on_gone)(void *ctx, const struct err *e); /* after every request has been failed */
	void *ctx;
};

/* keeper_client_init() - wait for the keeper's hello on fd (blocking: nothing else can be done). */
int keeper_client_init(struct keeper_client *k, int fd, struct err *e);

/* keeper_client_hello() - the hello as it is for one owner (NULL: the one it names): what that one's
 * sandboxes reach. Return: valid until the next call. */
const struct api_hello *keeper_client_hello(struct keeper_client *k, const char *owner);

/* keeper_client_watch() - from now on replies come through the loop. */
int keeper_client_watch(struct keeper_client *k, struct loop *loop, struct err *e);
void keeper_client_done(struct keeper_client *k);

bool keeper_client_is_congested(const struct keeper_client *k);

/* The requests. r->fn, r->ctx and r->owner are set by the caller.
 * They cannot fail: what goes wrong arrives as API_FAILED. */
struct keeper_exec {
	const char *key, *cwd, *command;
	size_t command_len;
	uint64_t timeout_ms;
	bool as_root; /* where commands run as an ordinary user */
};

void keeper_client_exec(struct keeper_client *k, struct keeper_request *r,
			const struct keeper_exec *x);
void keeper_client_present(struct keeper_client *k, struct keeper_request *r, const char *key,
			   const char *path, bool copy);
void keeper_client_info(struct keeper_client *k, struct keeper_request *r);

/* keeper_client_discard() - remove a sandbox and everything of it; nobody waits for the answer. */
void keeper_client_discard(struct keeper_client *k, const char *owner, const char *key);

/* keeper_client_peek() - ask how much a running command has written (API_PROGRESS). */
void keeper_client_peek(struct keeper_client *k, struct keeper_request *r);

/* keeper_client_serving() - what API_TLS and API_LISTEN brought is in use, or (refused) cannot be. */
void keeper_client_serving(struct keeper_client *k, bool refused);

/* keeper_client_cancel() - kill the command; r->fn is not called any more. */
void keeper_client_cancel(struct keeper_client *k, struct keeper_request *r);
