/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/method.h - a request being answered, and the methods that answer
 *
 * mcp/server.c classifies a message and finds its method; each of these ends the request, now or by a
 * call (mcp/call.h).
 */
#pragma once

#include "mcp/call.h"
#include "mcp/server.h"

struct request {
	struct server *server;
	struct peer *peer;
	struct sink *sink;
	struct rpc_message *m;
	enum era era;
	unsigned int caps; /* CAP_* of the client */
};

/* method_fail() - answer with an error; data is JSON text or NULL. */
void method_fail(const struct request *r, enum rpc_failure f, const char *message, const char *data);

/* method_answer() - the whole result as JSON text. */
void method_answer(const struct request *r, const char *result, size_t len);

/* method_agrees() - with what stands beside it? Return: false when it has been answered. */
bool method_agrees(const struct request *r, enum server_check what);

/* method_call() - start a call, if the client may have one with this id. */
void method_call(const struct request *r, const struct tool *tool, enum call_kind kind, const struct json *args);

void on_discover(const struct request *r);
void on_initialize(const struct request *r);
void on_ping(const struct request *r);
void on_tools_list(const struct request *r);
void on_tools_call(const struct request *r);
void on_prompts_list(const struct request *r);
void on_prompts_get(const struct request *r);
void on_resources_list(const struct request *r);
void on_templates_list(const struct request *r);
void on_resources_read(const struct request *r);
void on_subscribe(const struct request *r);
void on_unsubscribe(const struct request *r);
void on_complete(const struct request *r);
void on_set_level(const struct request *r);
void on_listen(const struct request *r);
