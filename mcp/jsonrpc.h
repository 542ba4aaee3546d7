/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/jsonrpc.h - JSON-RPC 2.0 messages: one text in, a checked envelope out; error texts */
#pragma once

#include <stddef.h>

struct buf;
struct json;

/* What can be wrong with a message. rpc_failures[] gives each its code and its HTTP status. */
enum rpc_failure {
	RPC_OK,
	RPC_PARSE,        /* not JSON as we accept it */
	RPC_REQUEST,      /* JSON, but no JSON-RPC message */
	RPC_METHOD,       /* unknown or removed method */
	RPC_PARAMS,       /* malformed parameters, missing envelope */
	RPC_UNKNOWN_NAME, /* well-formed, but names something that does not exist */
	RPC_NO_RESOURCE,  /* the same of a resource, before 2026-07-28 */
	RPC_CAPABILITY,   /* needs what the client has not declared */
	RPC_VERSION,      /* protocol version we do not speak */
	RPC_HEADER,       /* a header of HTTP says something else than the body */
	RPC_SESSION,      /* of a session that was ended */
	RPC_INTERNAL,     /* the server cannot work at all */
};

enum rpc_kind { RPC_CALL, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
	enum rpc_kind kind;
	struct json *root;  /* owned */
	const char *text;   /* borrowed: the message as received */
	size_t len;
	const char *id;     /* borrowed from text: the id exactly as written; NULL when there is none */
	size_t id_len;
	const char *method; /* borrowed from root */
	const struct json *params; /* an object, or NULL */
	const char *why;    /* of a failure */
};

/* rpc_parse() - text must outlive the message. After a failure m->id is still set when it was
 * readable, so that the error can carry it. Return: RPC_OK or what is wrong. */
enum rpc_failure rpc_parse(struct rpc_message *m, const char *text, size_t len);
void rpc_message_done(struct rpc_message *m);

/* rpc_raw_param() - a parameter's text as written, by path of up to two names (second may be NULL).
 * Return: 0, -1 when it is missing. */
int rpc_raw_param(const struct rpc_message *m, const char *first, const char *second,
		  const char **ret_text, size_t *ret_len);

int rpc_error_code(enum rpc_failure f);
int rpc_http_status(enum rpc_failure f);

/* rpc_write_error() - a whole error response. id NULL is null; data is JSON text or NULL. */
void rpc_write_error(struct buf *b, const char *id, size_t id_len, enum rpc_failure f,
		     const char *message, const char *data);

/* rpc_write_result_head() - up to and including "result": the caller writes one value and '}'. */
void rpc_write_result_head(struct buf *b, const char *id, size_t id_len);
