/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/ask.c - ask the client's person or model something in the middle of a call
 *
 * Runs in the front, without privilege; answers and state are hostile. State travels through the
 * client signed: with whose call it is, of what, and until when.
 */
#include "mcp/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "mcp/base64.h"
#include "mcp/bounds.h"
#include "mcp/hmac.h"
#include "mcp/json.h"
#include "mcp/json_write.h"
#include "mcp/jsonrpc.h"
#include "mcp/protocol.h"

enum {
	ASK_ID_LEN = 16, /* hex digits: nobody can guess the question of somebody else's call */
	ASK_QUESTIONS_MAX = 8,
	EXPIRY_LEN = 8,
};

struct question {
	char key[ASK_KEY_MAX];
	char id[ASK_ID_LEN + 1]; /* of the request, before 2026-07-28 */
	enum ask_kind kind;
	char *params;
	struct json *answer; /* the message it came in */
};

struct asks {
	struct question questions[ASK_QUESTIONS_MAX];
	size_t count;
	unsigned int missing; /* CAP_* of questions that were left out */
	bool answered; /* start() runs with the answers: the next question begins another round */
	char *state;
	struct loop_timer timer;
};

static const struct {
	const char *method, *capability;
	unsigned int cap;
} kinds[] = {
	[ASK_ELICITATION] = { "elicitation/create", "elicitation", CAP_ELICITATION },
	[ASK_SAMPLING] = { "sampling/createMessage", "sampling", CAP_SAMPLING },
	[ASK_ROOTS] = { "roots/list", "roots", CAP_ROOTS },
};

/* ---- what a client can be asked ---- */

unsigned int ask_caps(const struct json *capabilities)
{
	unsigned int caps = 0;

	for (size_t i = 0; i < CAP_COUNT; i++)
		if (json_kind(json_member(capabilities, kinds[i].capability)) == JSON_OBJECT)
			caps |= kinds[i].cap;
	return caps;
}

static void write_capabilities(struct buf *b, unsigned int caps, bool as_json)
{
	const char *separator = "";

	for (size_t i = 0; i < CAP_COUNT; i++) {
		if (!(caps & kinds[i].cap))
			continue;
		buf_append_str(b, separator);
		if (as_json)
			buf_printf(b, "\"%s\":{}", kinds[i].capability);
		else
			buf_append_str(b, kinds[i].capability);
		separator = as_json ? "," : ", ";
	}
}

void ask_refuse(struct call *c, unsigned int missing)
{
	struct buf text;

	buf_init(&text, LIMIT_ID);
	if (c->era == ERA_MODERN) {
		buf_append_str(&text, "{\"requiredCapabilities\":{");
		write_capabilities(&text, missing, true);
		buf_append_str(&text, "}}");
		call_fail(c, RPC_CAPABILITY, "Missing required client capability", text.data);
	} else {
		buf_append_str(&text, "this needs a client that declares: ");
		write_capabilities(&text, missing, false);
		call_refuse(c, "", text.data, "");
	}
	buf_done(&text);
}

/* ---- signed state ---- */

static int sign(const struct call *c, const uint8_t *payload, size_t len, uint8_t mac[HMAC_LEN])
{
	const char *owner = c->peer->owner ? c->peer->owner : "";
	const struct hmac_field fields[] = {
		{ owner, strlen(owner) },
		{ &c->kind, sizeof(c->kind) },
		{ c->tool->name, strlen(c->tool->name) },
		{ payload, len },
	};

	return hmac_sign(c->server->state_key, sizeof(c->server->state_key), "mcp request state", fields, 4, mac);
}

/* "<expiry and text>.<HMAC>", both base64url. */
static void write_state(struct buf *b, const struct call *c, const char *state)
{
	uint8_t payload[EXPIRY_LEN + ASK_STATE_MAX], mac[HMAC_LEN];
	char text[EXPIRY_LEN * 2 + ASK_STATE_MAX * 2];
	uint64_t expiry = (uint64_t)time(NULL) + ASK_STATE_S;
	size_t len = strnlen(state, ASK_STATE_MAX);

	for (size_t i = 0; i < EXPIRY_LEN; i++)
		payload[i] = (uint8_t)(expiry >> (56 - 8 * i));
	memcpy(payload + EXPIRY_LEN, state, len);
	len += EXPIRY_LEN;
	if (sign(c, payload, len, mac) < 0) {
		b->overflow = 1;
		return;
	}
	base64_encode(BASE64_URL, payload, len, text);
	buf_append_str(b, ",\"requestState\":\"");
	buf_append(b, text, base64_length(BASE64_URL, len));
	base64_encode(BASE64_URL, mac, sizeof(mac), text);
	buf_append_str(b, ".");
	buf_append(b, text, base64_length(BASE64_URL, sizeof(mac)));
	buf_append_str(b, "\"");
}

static bool is_over(const uint8_t *payload)
{
	uint64_t expiry = 0;

	for (size_t i = 0; i < EXPIRY_LEN; i++)
		expiry = expiry << 8 | payload[i];
	return expiry <= (uint64_t)time(NULL);
}

/* Return: the state, to be freed; NULL when it is not ours, or too old. */
static char *read_state(const struct call *c, const char *text)
{
	enum { PAYLOAD_MAX = EXPIRY_LEN + ASK_STATE_MAX };
	uint8_t payload[PAYLOAD_MAX + 2], mac[HMAC_LEN + 2], right[HMAC_LEN];
	const char *dot = strchr(text, '.');
	long len, mac_len;

	if (!dot || (size_t)(dot - text) > base64_length(BASE64_URL, PAYLOAD_MAX) ||
	    strlen(dot + 1) != base64_length(BASE64_URL, HMAC_LEN))
		return NULL;
	len = base64_decode(BASE64_URL, text, (size_t)(dot - text), payload);
	mac_len = base64_decode(BASE64_URL, dot + 1, strlen(dot + 1), mac);
	if (len < EXPIRY_LEN || mac_len != HMAC_LEN || sign(c, payload, (size_t)len, right) < 0 ||
	    !digest_equal(right, mac, HMAC_LEN) || is_over(payload))
		return NULL;
	return strndup((const char *)payload + EXPIRY_LEN, (size_t)len - EXPIRY_LEN);
}

/* ---- answers ---- */

static const struct json *params_of(const struct call *c)
{
	return json_member(c->root, "params");
}

static const struct json *object_or_null(const struct json *v)
{
	return json_kind(v) == JSON_OBJECT ? v : NULL;
}

const struct json *ask_answer(const struct call *c, const char *key)
{
	if (c->era == ERA_MODERN)
		return object_or_null(json_member(json_member(params_of(c), "inputResponses"), key));
	for (size_t i = 0; c->asks->answered && i < c->asks->count; i++)
		if (!strcmp(c->asks->questions[i].key, key))
			return object_or_null(json_member(c->asks->questions[i].answer, "result"));
	return NULL;
}

const char *ask_state(const struct call *c)
{
	return c->asks->state;
}

enum rpc_failure ask_open(struct call *c, const struct rpc_message *m, const char **ret_why)
{
	const struct json *state = json_member(m->params, "requestState");
	enum json_kind answers = json_kind(json_member(m->params, "inputResponses"));

	c->asks = calloc(1, sizeof(*c->asks));
	*ret_why = "no memory";
	if (!c->asks)
		return RPC_INTERNAL;
	if (c->era == ERA_LEGACY)
		return RPC_OK;
	*ret_why = "params.inputResponses must be an object";
	if (answers != JSON_NULL && answers != JSON_OBJECT)
		return RPC_PARAMS;
	if (json_kind(state) == JSON_NULL)
		return RPC_OK;
	if (json_text(state))
		c->asks->state = read_state(c, json_text(state));
	*ret_why = "params.requestState is not this server's, not of this call, or too old";
	return c->asks->state ? RPC_OK : RPC_PARAMS;
}

/* ---- questions ---- */

static void forget(struct asks *a)
{
	for (size_t i = 0; i < a->count; i++) {
		free(a->questions[i].params);
		json_free(a->questions[i].answer);
	}
	memset(a->questions, 0, sizeof(a->questions));
	a->count = 0;
	a->missing = 0;
	a->answered = false;
}

void ask_add(struct call *c, const char *key, enum ask_kind kind, const char *params)
{
	struct asks *a = c->asks;
	struct question *q;

	if (a->answered)
		forget(a);
	if (!(c->caps & kinds[kind].cap)) {
		a->missing |= kinds[kind].cap;
		return;
	}
	if (a->count == ASK_QUESTIONS_MAX)
		return;
	q = &a->questions[a->count++];
	(void)snprintf(q->key, sizeof(q->key), "%s", key);
	q->kind = kind;
	q->params = strdup(params);
}

/* One result with all of them: the call is over, and comes again. */
static void send_result(struct call *c, const char *state)
{
	struct buf *b = call_reply_begin(c);

	buf_append_str(b, "{\"resultType\":\"input_required\",\"inputRequests\":{");
	for (size_t i = 0; i < c->asks->count; i++) {
		const struct question *q = &c->asks->questions[i];

		buf_append_str(b, i ? "," : "");
		json_write_string(b, q->key);
		buf_printf(b, ":{\"method\":\"%s\",\"params\":", kinds[q->kind].method);
		buf_append_str(b, q->params ? q->params : "{}");
		buf_append_str(b, "}");
	}
	buf_append_str(b, "}");
	if (state)
		write_state(b, c, state);
	buf_append_str(b, ",\"_meta\":{" META_SERVER_INFO "}}");
	call_reply_end(c);
}

static bool send_request(struct call *c, struct question *q)
{
	uint8_t random[ASK_ID_LEN / 2];
	struct buf *b;

	if (getrandom(random, sizeof(random), 0) != sizeof(random) || !q->params)
		return false;
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(q->id + 2 * i, 3, "%02x", random[i]);
	b = c->sink->begin(c->sink);
	buf_printf(b, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"%s\",\"params\":", q->id,
		   kinds[q->kind].method);
	buf_append_str(b, q->params);
	buf_append_str(b, "}");
	c->sink->end(c->sink, 200, false);
	return true;
}

static void on_timeout(struct loop_timer *t)
{
	call_refuse(t->ctx, "", "the client has not answered what this needs to know", "");
}

static void send_requests(struct call *c, const char *state)
{
	struct asks *a = c->asks;
	bool sent = call_is_stream(c);
	char *kept = state ? strdup(state) : NULL; /* it may be the one of the round before */

	free(a->state);
	a->state = kept;
	for (size_t i = 0; sent && i < a->count; i++)
		sent = send_request(c, &a->questions[i]);
	if (sent)
		(void)loop_timer_set(c->server->loop, &a->timer, ASK_TIMEOUT_MS, on_timeout, c);
	else
		call_refuse(c, "", "this needs to ask the client, which does not take an event stream", "");
}

void ask_send(struct call *c, const char *state)
{
	if (c->asks->answered)
		forget(c->asks);
	if (!c->asks->count)
		ask_refuse(c, c->asks->missing);
	else if (c->era == ERA_MODERN)
		send_result(c, state);
	else
		send_requests(c, state);
}

/* ---- responses ---- */

static struct question *find_question(const struct call *c, const char *id)
{
	for (size_t i = 0; i < c->asks->count; i++) {
		struct question *q = &c->asks->questions[i];

		if (*q->id && !q->answer && !strcmp(q->id, id))
			return q;
	}
	return NULL;
}

static bool is_waiting(const struct asks *a)
{
	for (size_t i = 0; i < a->count; i++)
		if (!a->questions[i].answer)
			return true;
	return false;
}

static void take_answer(struct call *c, struct question *q, struct rpc_message *m)
{
	const char *refusal = json_text(json_member(json_member(m->root, "error"), "message"));

	if (!json_member(m->root, "result")) {
		call_refuse(c, "the client refused: ", refusal ? refusal : "no reason given", "");
		return;
	}
	q->answer = m->root;
	m->root = NULL;
	if (is_waiting(c->asks))
		return;
	loop_timer_cancel(c->server->loop, &c->asks->timer);
	c->asks->answered = true;
	c->tool->start(c, c->kind == CALL_RESOURCE ? params_of(c) : json_member(params_of(c), "arguments"));
}

void ask_take(struct server *s, const struct peer *peer, struct rpc_message *m)
{
	const char *id = json_text(json_member(m->root, "id"));

	for (struct call *c = id ? s->calls : NULL; c; c = c->next) {
		struct question *q = c->asks && call_is_in_scope(c->peer, peer) ? find_question(c, id) : NULL;

		if (!q)
			continue;
		take_answer(c, q, m);
		return;
	}
}

void ask_done(struct call *c)
{
	if (c->asks) {
		loop_timer_cancel(c->server->loop, &c->asks->timer);
		forget(c->asks);
		free(c->asks->state);
		free(c->asks);
	}
	json_free(c->root);
}
