/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/server.h - the MCP server without its transport: messages in, messages out through a sink */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "mcp/hmac.h"
#include "mcp/jsonrpc.h"
#include "mcp/keeper_client.h"
#include "mcp/lists.h"
#include "mcp/wishes.h"
#include "runtime/base/buf.h"
#include "runtime/base/loop.h"

/* Where the messages that answer one incoming message go. Given by the transport; lives until its
 * final message. */
struct sink {
	/* begin() - where to write the next message's JSON text. */
	struct buf *(*begin)(struct sink *s);
	/* end() - that message is complete. final: nothing more follows for the incoming message, which
	 * may also end without any (then begin() was not called). status: what HTTP would say. */
	void (*end)(struct sink *s, int status, bool final);
	/* is_ready() - may a large message be made now? If not, the transport calls
	 * server_resume() later. */
	bool (*is_ready)(struct sink *s);
	/* is_stream() - can messages before the final one be delivered? NULL: they cannot. */
	bool (*is_stream)(struct sink *s);
};

enum server_check { CHECK_VERSION, CHECK_NAMES, CHECK_LEGACY };

struct tool;

struct peer;
struct rpc_message;

/* What stands beside a message, for transports that have that. */
struct peer_ops {
	/* check() - does it agree with the message? Called in this order: for a message with a modern
	 * envelope CHECK_VERSION, and CHECK_NAMES when the envelope is in order; for any other
	 * CHECK_LEGACY. Return: RPC_OK, or what is wrong and *ret_why in words (valid until the next call). */
	enum rpc_failure (*check)(const struct peer *p, const struct rpc_message *m, enum server_check what,
				  const char **ret_why);
	/* check_parameters() - the same for the parameters of a tool that also stand there. */
	enum rpc_failure (*check_parameters)(const struct peer *p, const struct rpc_message *m,
					     const struct tool *tool, const char **ret_why);
	/* write_headers() - as text for sandbox_info, secrets left out. */
	void (*write_headers)(const struct peer *p, struct buf *b);
};

/* The other end: of a stream of messages, or of one that stands alone. */
struct peer {
	bool modern;      /* has spoken the modern era and never initialized */
	bool initialized; /* has sent initialize */
	const char *version; /* negotiated by initialize (static text), NULL before */
	unsigned int caps;   /* CAP_* it has declared with initialize */
	bool streams;        /* its sink lasts: what it did not ask for can be sent there, too */
	const char *owner; /* whose sandboxes; NULL: the one named in the keeper's hello */
	/* Request ids name requests of the same scope: of a stream, or of a session. ids_shared: several
	 * clients may be in it, so the same id twice is no mistake and names neither. */
	const char *scope;
	bool ids_shared;
	size_t calls_max; /* of an owner at once; 0: LIMIT_CALLS */
	const struct peer_ops *ops; /* NULL: nothing stands beside */
};

struct call;
struct links;

struct server {
	struct loop *loop;
	struct keeper_client *keeper;
	struct call *calls; /* in flight, newest first */
	size_t call_count;
	const struct links *links; /* files are handed over as links; NULL: they are copied for the person */
	const struct registry *registry;
	unsigned int offers; /* OFFER_* of it */
	struct lists lists;
	struct wishes wishes;
	uint8_t state_key[HMAC_LEN]; /* signs what clients keep for us (mcp/ask.c) */
};

int server_init(struct server *s, struct loop *loop, struct keeper_client *keeper,
		const struct registry *registry, struct err *e);
void server_done(struct server *s);

/* server_receive() - one message of a peer. Everything that answers it goes to sink, possibly before
 * this returns. */
void server_receive(struct server *s, struct peer *peer, struct sink *sink, const char *text,
		    size_t len);

/* server_set_key() - secret that outlives this process, so that what it signs does; without, a random one. */
void server_set_key(struct server *s, const uint8_t key[HMAC_LEN]);

/* server_refuse() - answer a message that the transport could not even take in. */
void server_refuse(struct sink *sink, const char *why);

/* server_resume() - sinks are ready again: continue the replies that waited. */
void server_resume(struct server *s);

/* server_cancel_peer() - end every call of a peer; nothing more is sent for them. */
void server_cancel_peer(struct server *s, const struct peer *peer);
