/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/keeper_ops.c - what may be asked of the keeper, by whom, checked how
 *
 * Runs in the keeper. operations[] is the whole attack surface of a front or a command line. A check
 * looks at every field although the sender did, and a message that fails it is the end of its sender;
 * refusals that a well-behaved sender may meet (label in use) are answers instead.
 */
#include "runtime/keeper_ops.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/exec.h"
#include "runtime/present.h"

typedef int operation_fn(struct registry *reg, struct peer *p, const void *message, struct err *e);

/* ---- checks ---- */

static bool is_terminated(const char *field, size_t size)
{
	return memchr(field, '\0', size) != NULL;
}

static int check_owner_key(const struct registry *reg, const char *owner, const char *key, struct err *e)
{
	if (!is_terminated(owner, OWNER_ID_LEN + 1) || !str_is_owner_id(owner))
		return err_set(e, ERR_PROTOCOL, "damaged owner");
	/* With tokens it is a matter of the moment, and operation_serve() answers it. */
	if (!reg->tokens && strcmp(owner, reg->settings->owner) != 0)
		return err_set(e, ERR_PROTOCOL, "owner %s is not served here", owner);
	if (!is_terminated(key, KEY_MAX) || !str_is_key(key))
		return err_set(e, ERR_PROTOCOL, "damaged key");
	return 0;
}

static int check_stage(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_stage *msg = message;

	(void)reg;
	(void)p;
	if (msg->len == 0 || msg->len > API_STAGE_MAX || msg->h.size != sizeof(*msg) + msg->len)
		return err_set(e, ERR_PROTOCOL, "damaged stage message");
	return 0;
}

static int check_exec(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_exec *msg = message;

	if (msg->len > API_MSG_MAX || msg->h.size != sizeof(*msg) + msg->len)
		return err_set(e, ERR_PROTOCOL, "damaged exec message");
	if (check_owner_key(reg, msg->owner, msg->key, e) < 0)
		return -1;
	if (msg->mode > API_EXEC_ARGV ||
	    (msg->flags & ~(uint32_t)(API_EXEC_STREAM | API_EXEC_ROOT)) ||
	    ((msg->flags & API_EXEC_STREAM) && p->kind != PEER_CONTROL))
		return err_set(e, ERR_PROTOCOL, "unknown exec mode or flag");
	if (msg->staged > API_COMMAND_MAX || msg->staged + msg->len > API_COMMAND_MAX)
		return err_set(e, ERR_PROTOCOL, "command too long");
	if (!is_terminated(msg->cwd, sizeof(msg->cwd)))
		return err_set(e, ERR_PROTOCOL, "damaged cwd");
	if (msg->mode == API_EXEC_SHELL && memchr(msg->bytes, '\0', msg->len))
		return err_set(e, ERR_PROTOCOL, "NUL in a command");
	if (msg->mode == API_EXEC_ARGV && msg->staged + msg->len == 0)
		return err_set(e, ERR_PROTOCOL, "no argument");
	return 0;
}

static int check_signal(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_signal *msg = message;

	(void)reg;
	(void)p;
	if (msg->signal != SIGINT && msg->signal != SIGTERM)
		return err_set(e, ERR_PROTOCOL, "signal %d may not be sent", msg->signal);
	return 0;
}

static int check_key_request(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_key_request *msg = message;

	(void)p;
	if (msg->workspace > 1)
		return err_set(e, ERR_PROTOCOL, "damaged request");
	return check_owner_key(reg, msg->owner, msg->key, e);
}

/* A front clears away the sandboxes that live for one call; kept files are the command line's to remove. */
static int check_remove(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	if (p->kind == PEER_FRONT && !reg->settings->profile->workspace_tmpfs_bytes)
		return err_set(e, ERR_PROTOCOL, "a front may not remove what is kept");
	return check_key_request(reg, p, message, e);
}

static int check_info(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_key_request *msg = message;

	(void)reg;
	(void)p;
	if (!is_terminated(msg->owner, sizeof(msg->owner)) || !str_is_owner_id(msg->owner))
		return err_set(e, ERR_PROTOCOL, "damaged owner");
	return 0;
}

static int check_present(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_present *msg = message;

	(void)p;
	if (check_owner_key(reg, msg->owner, msg->key, e) < 0)
		return -1;
	if (msg->copy > 1 || !is_terminated(msg->path, sizeof(msg->path)) || msg->path[0] == '\0' ||
	    msg->path[0] == '/')
		return err_set(e, ERR_PROTOCOL, "damaged path");
	return 0;
}

static int check_nothing(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	(void)reg;
	(void)p;
	(void)message;
	(void)e;
	return 0;
}

/* ---- handlers ---- */

static int do_stage(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_stage *msg = message;

	(void)reg;
	return stage_append(p, msg->h.id, msg->bytes, msg->len, e);
}

static int do_exec(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	return exec_begin(reg, p, message, e);
}

static int do_cancel(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_cancel *msg = message;
	struct request *req = request_find(p, msg->h.id);

	(void)reg;
	(void)e;
	stage_drop(p, msg->h.id);
	if (req && (req->op == API_EXEC || req->op == API_PRESENT))
		request_cancel(req);
	return 0;
}

static int do_signal(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_signal *msg = message;
	struct request *req = request_find(p, msg->h.id);

	(void)reg;
	(void)e;
	if (req && req->op == API_EXEC)
		exec_signal(req, msg->signal);
	return 0;
}

static int do_peek(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_peek *msg = message;
	struct request *req = request_find(p, msg->h.id);

	(void)reg;
	(void)e;
	if (req && req->op == API_EXEC)
		exec_peek(req);
	return 0;
}

static uint32_t count_commands(const struct sandbox *sb)
{
	uint32_t n = 0;

	for (const struct command *c = sb->commands; c; c = c->next)
		n++;
	return n;
}

static void fill_row(const struct sandbox *sb, struct api_info_row *row)
{
	uint64_t now = loop_now_ns();
	int processes = sb->box.dir_fd >= 0 ? cgroup_box_count(&sb->box) : 0;

	memcpy(row->key, sb->key, sizeof(row->key));
	row->state = sandbox_api_state(sb);
	row->commands = count_commands(sb);
	row->processes = processes > 0 ? (uint32_t)processes : 0;
	row->memory_bytes = sb->box.dir_fd >= 0 ? cgroup_box_memory(&sb->box) : 0;
	if (sb->created_ns)
		row->age_ms = (now - sb->created_ns) / 1000000;
	if (row->state == API_IDLE)
		row->idle_for_ms = (now - sb->idle_since_ns) / 1000000;
}

static int do_info(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_key_request *msg = message;
	struct request req = { 0 };
	struct {
		struct api_info_done done;
		struct api_info_row rows[API_INFO_MAX];
	} reply = { .done.max_sandboxes = reg->settings->max_sandboxes };
	struct sandbox *sb;

	if (request_begin(p, &req, &msg->h, NULL, e) < 0)
		return -1;
	for (sb = reg->all; sb; sb = sb->next) {
		if (strcmp(sb->owner, msg->owner) != 0)
			reply.done.others++;
		else if (reply.done.count < API_INFO_MAX)
			fill_row(sb, &reply.rows[reply.done.count++]);
	}
	request_answer(&req, API_INFO_DONE, &reply,
		       sizeof(reply.done) + reply.done.count * sizeof(reply.rows[0]), NULL, 0);
	return 0;
}

static int do_present(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	return present_begin(reg, p, message, e);
}

static int do_key_request(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_key_request *msg = message;
	struct key_op *op = calloc(1, sizeof(*op));
	struct err why = { 0 };

	if (!op)
		return err_set(e, ERR_NOMEM, "no memory for a request");
	op->workspace = msg->h.op == API_REMOVE && msg->workspace == 1;
	if (request_begin(p, &op->req, &msg->h, NULL, e) < 0) {
		free(op);
		return -1;
	}
	if (registry_key_op(reg, op, msg->owner, msg->key, &why) < 0) {
		request_fail(&op->req, &why);
		free(op);
	}
	return 0;
}

static int do_tokens_read(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_header *h = message;
	struct api_done msg = { 0 };
	struct request req = { 0 };
	struct err why = { 0 };

	if (request_begin(p, &req, h, NULL, e) < 0)
		return -1;
	if (reg->hooks.read_tokens && reg->hooks.read_tokens(reg, &why) < 0)
		request_fail(&req, &why);
	else
		request_answer(&req, API_DONE, &msg, sizeof(msg), NULL, 0);
	return 0;
}

static int check_serving(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_serving *msg = message;

	(void)reg;
	(void)p;
	return msg->refused > 1 ? err_set(e, ERR_PROTOCOL, "damaged serving message") : 0;
}

static int do_serving(struct registry *reg, struct peer *p, const void *message, struct err *e)
{
	const struct api_serving *msg = message;

	(void)p;
	(void)e;
	if (reg->hooks.serving)
		reg->hooks.serving(reg, msg->refused);
	return 0;
}

/* ---- the table ---- */

enum { ANYBODY = PEER_FRONT | PEER_CONTROL };

static const struct operation {
	uint16_t op;
	uint8_t who;
	bool answered;   /* gets the reason when there can be no sandbox */
	bool exact;      /* size is the size, else the least */
	uint32_t size;
	operation_fn *check, *serve;
} operations[] = {
	{ API_STAGE, ANYBODY, false, false, sizeof(struct api_stage), check_stage, do_stage },
	{ API_EXEC, ANYBODY, true, false, offsetof(struct api_exec, bytes), check_exec, do_exec },
	{ API_CANCEL, ANYBODY, false, true, sizeof(struct api_cancel), check_nothing, do_cancel },
	{ API_PEEK, ANYBODY, false, true, sizeof(struct api_peek), check_nothing, do_peek },
	{ API_INFO, ANYBODY, true, true, sizeof(struct api_key_request), check_info, do_info },
	{ API_PRESENT, ANYBODY, true, true, sizeof(struct api_present), check_present, do_present },
	{ API_TOKENS_READ, PEER_CONTROL, false, true, sizeof(struct api_header), check_nothing,
	  do_tokens_read },
	{ API_SERVING, PEER_FRONT, false, true, sizeof(struct api_serving), check_serving, do_serving },
	{ API_SIGNAL, PEER_CONTROL, false, true, sizeof(struct api_signal), check_signal, do_signal },
	{ API_STOP, PEER_CONTROL, true, true, sizeof(struct api_key_request), check_key_request,
	  do_key_request },
	{ API_RESET, PEER_CONTROL, true, true, sizeof(struct api_key_request), check_key_request,
	  do_key_request },
	{ API_REMOVE, ANYBODY, true, true, sizeof(struct api_key_request), check_remove,
	  do_key_request },
};

static const struct operation *operation_find(uint16_t op)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		if (operations[i].op == op)
			return &operations[i];
	}
	return NULL;
}

static int refuse(struct peer *p, const struct api_header *h, const struct err *why, struct err *e)
{
	struct request req = { 0 };

	if (request_begin(p, &req, h, NULL, e) < 0)
		return -1;
	request_fail(&req, why);
	return 0;
}

/* owner_of() - whose sandboxes a request is about; NULL when it is about none. */
static const char *owner_of(const struct api_header *h)
{
	switch (h->op) {
	case API_EXEC:
		return ((const struct api_exec *)(const void *)h)->owner;
	case API_PRESENT:
		return ((const struct api_present *)(const void *)h)->owner;
	case API_INFO:
	case API_STOP:
	case API_RESET:
	case API_REMOVE:
		return ((const struct api_key_request *)(const void *)h)->owner;
	default:
		return NULL;
	}
}

/* A front may act for who has a token, the command line for everybody. */
static int check_token(const struct registry *reg, const struct peer *p, const struct api_header *h,
		       struct err *e)
{
	const char *owner = owner_of(h);

	if (!owner || !reg->tokens || p->kind == PEER_CONTROL || tokens_have_owner(reg->tokens, owner))
		return 0;
	return err_set(e, ERR_DENIED, "this token has been removed");
}

int operation_serve(struct registry *reg, const struct err *failure, struct peer *p,
		    const struct api_header *h, struct err *e)
{
	const struct operation *op = operation_find(h->op);
	struct err denied = { 0 };

	if (!op)
		return err_set(e, ERR_PROTOCOL, "unknown operation %u", h->op);
	if (!(op->who & p->kind))
		return err_set(e, ERR_PROTOCOL, "operation %u is not for this peer", h->op);
	if (h->size < op->size || (op->exact && h->size != op->size))
		return err_set(e, ERR_PROTOCOL, "operation %u with a wrong size", h->op);
	if (op->check(reg, p, h, e) < 0)
		return -1;
	if (failure->code != ERR_NONE)
		return op->answered ? refuse(p, h, failure, e) : 0;
	if (check_token(reg, p, h, &denied) < 0) {
		stage_drop(p, h->id);
		return refuse(p, h, &denied, e);
	}
	return op->serve(reg, p, h, e);
}
