/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/call.h - one tools/call in flight, from its arguments to its result */
#pragma once

#include <stdarg.h>

#include "mcp/server.h"

struct json;
struct rpc_message;
struct tool;

struct call {
	struct server *server;
	struct peer *peer;
	struct sink *sink;
	const struct tool *tool;
	enum era era;
	struct call *next, **link;
	char *id, *token; /* as written by the client; token NULL: no progress wanted */
	size_t id_len, token_len;
	struct keeper_request request; /* ctx is the call */
	struct loop_timer progress, work;
	uint64_t started_ns, progress_s; /* progress_s: seconds told last */
	bool can_peek;  /* the request is a command that the keeper can be asked about */
	bool peek_sent; /* and has not answered yet */
	bool (*step)(struct call *c); /* work left to do on the loop; true when finished */
	struct buf *reply; /* between call_result_begin() and _end() */
	void *state; /* the tool's, freed by tool->drop */
};

/* call_start() - answers by itself when the call cannot be started. */
void call_start(struct server *s, struct peer *peer, struct sink *sink, enum era era,
		const struct tool *tool, const struct rpc_message *m, const struct json *args);

/* call_find() - the call in a peer's scope that has this id, compared as a value. Return: NULL also when
 * the id names several. */
struct call *call_find(struct server *s, const struct peer *peer, const char *id, size_t len);

/* call_is_in_scope() - do two peers name requests of the same scope? */
bool call_is_in_scope(const struct peer *a, const struct peer *b);

/* call_cancel() - end the call; its sink gets no message, only its end. */
void call_cancel(struct call *c);

/* call_work() - run step in turns with other work, and only while the sink is ready, until it
 * returns true (the call is then gone). */
void call_work(struct call *c, bool (*step)(struct call *c));
void call_resume(struct call *c);

/* call_progress() - the keeper's answer to a peek: tell the client. */
void call_progress(struct call *c, uint64_t total_bytes);

/* call_result_begin() - where to write the content blocks, separated by commas.
 * call_result_end() - the result is sent and the call is gone. meta: further members of the result's
 * _meta as JSON text, or "". */
struct buf *call_result_begin(struct call *c);
void call_result_end(struct call *c, bool is_error, const char *meta);

/* call_write_text_head()/_tail() - around the escaped inside of a text block. */
void call_write_text_head(struct buf *b);
void call_write_text_tail(struct buf *b);

/* call_refuse() - the result is "<prefix><message>" and, on its own line, the remedy; isError. */
void call_refuse(struct call *c, const char *prefix, const char *message, const char *remedy);
