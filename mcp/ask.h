/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/ask.h - ask the client's person or model something in the middle of a call
 *
 * Since 2026-07-28 such a call ends with "input_required", and the client sends it again with the
 * answers; before, questions are requests in the call's own stream, and the answers come in as messages.
 * A tool does not see the difference: its start() runs again from the beginning when there are answers,
 * and finds those of the last round only. What it must remember goes into the state.
 *
 *	answer = ask_answer(c, "name");
 *	if (!answer) {
 *		ask_add(c, "name", ASK_ELICITATION, params);
 *		ask_send(c, NULL);
 *		return;
 *	}
 */
#pragma once

#include <stdbool.h>

#include "mcp/call.h"

enum ask_kind { ASK_ELICITATION, ASK_SAMPLING, ASK_ROOTS };

enum { ASK_KEY_MAX = 32, ASK_STATE_MAX = 1024 };

/* ask_answer() - an object as the client sent it; NULL: none, or nothing usable. */
const struct json *ask_answer(const struct call *c, const char *key);

/* ask_state() - what ask_send() was given in the round before, proven to be ours; NULL: first round. */
const char *ask_state(const struct call *c);

/* ask_add() - one more question. params: an object as JSON text. Left out when the client has not declared
 * that it can be asked this. */
void ask_add(struct call *c, const char *key, enum ask_kind kind, const char *params);

/* ask_send() - ask, and be started again with what comes. With no question left the call is refused for
 * what the client cannot do. state: text, or NULL. The call may be gone afterwards. */
void ask_send(struct call *c, const char *state);

/* ---- for the server ---- */

/* ask_caps() - CAP_* bits of a client's declaration. */
unsigned int ask_caps(const struct json *capabilities);

/* ask_refuse() - end the call: the client lacks these capabilities. */
void ask_refuse(struct call *c, unsigned int missing);

/* ask_open() - a call that may ask begins. Return: RPC_OK, or what is wrong with the answers or the state in
 * its message. */
enum rpc_failure ask_open(struct call *c, const struct rpc_message *m, const char **ret_why);

/* ask_take() - a response of a client: the call that waits for it goes on. Anything else is dropped. */
void ask_take(struct server *s, const struct peer *peer, struct rpc_message *m);

void ask_done(struct call *c);
