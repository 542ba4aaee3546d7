/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/call.h - one tools/call in flight, from its arguments to its result */
#pragma once

#include <stdarg.h>

#include "mcp/server.h"

struct asks;
struct json;
struct request;
struct rpc_message;
struct tool;

/* What a call answers, and so what its result looks like. */
enum call_kind { CALL_TOOL, CALL_PROMPT, CALL_RESOURCE, CALL_LISTEN };

/* Of log messages, from the least to the most severe. */
enum severity { SEVERITY_DEBUG, SEVERITY_INFO, SEVERITY_NOTICE, SEVERITY_WARNING, SEVERITY_ERROR,
		SEVERITY_CRITICAL, SEVERITY_ALERT, SEVERITY_EMERGENCY, SEVERITY_COUNT };

struct call {
	struct server *server;
	struct peer *peer;
	struct sink *sink;
	const struct tool *tool;
	enum call_kind kind;
	enum era era;
	unsigned int caps;  /* CAP_* of the client */
	int log_from;       /* enum severity; SEVERITY_COUNT: the client wants no log messages */
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
	unsigned int blocks; /* in it, by mcp/content.h */
	struct json *root; /* the message, for a tool that asks or keeps it */
	struct asks *asks; /* mcp/ask.c */
	void *state; /* the tool's, freed by tool->drop */
};

/* call_start() - answers by itself when the call cannot be started. */
void call_start(const struct request *r, const struct tool *tool, enum call_kind kind, const struct json *args);

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

/* call_report() - progress that the tool knows better than the clock does: it must rise. */
void call_report(struct call *c, uint64_t progress, uint64_t total);

/* call_log() - a line for the client's log, if it wants to see such. */
void call_log(struct call *c, enum severity severity, const char *text);

/* call_severity() - by the name in the protocol. Return: SEVERITY_COUNT when there is none of it. */
enum severity call_severity(const char *name);

/* call_is_stream() - can the client be sent more than the result? */
bool call_is_stream(const struct call *c);

/* call_reply_begin() - where to write the result, any JSON value. call_reply_end(): it is sent and the
 * call is gone. */
struct buf *call_reply_begin(struct call *c);
void call_reply_end(struct call *c);

/* call_result_begin() - where to write the content blocks, separated by commas.
 * call_result_end() - the result is sent and the call is gone. meta: further members of the result's
 * _meta as JSON text, or "". */
struct buf *call_result_begin(struct call *c);
void call_result_end(struct call *c, bool is_error, const char *meta);

/* call_write_text_head()/_tail() - around the escaped inside of a text block. */
void call_write_text_head(struct buf *b);
void call_write_text_tail(struct buf *b);

/* call_refuse() - the result is "<prefix><message>" and, on its own line, the remedy; isError.
 * Prompts and resources have no such result: there it is an error of the protocol. */
void call_refuse(struct call *c, const char *prefix, const char *message, const char *remedy);

/* call_fail() - the call ends with an error of the protocol; data is JSON text or NULL. */
void call_fail(struct call *c, enum rpc_failure f, const char *message, const char *data);
