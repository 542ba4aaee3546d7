/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/session.h - sessions of the era before 2026-07-28, without a place to keep them
 *
 * The id says everything about its session and is signed: it outlives the server. What it is good for is
 * the scope of request ids, and what the client can be asked; authority comes from the token alone, whose
 * owner is part of what is signed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcp/hmac.h"
#include "mcp/http1.h"
#include "runtime/spec.h"

enum {
	SESSION_NONCE = 16, /* the last byte of it is no random one: what the client can be asked */
	SESSION_SCOPE_MAX = 32, /* the nonce as text, and its NUL */
	SESSION_ID_MAX = 96,
	SESSION_ENDED_MAX = 256, /* remembered: the oldest is forgotten, and then an id like any other */
};

struct sessions {
	uint8_t key[HMAC_LEN];
	uint8_t ended[SESSION_ENDED_MAX][SESSION_NONCE];
	size_t ended_count;
};

enum session_state { SESSION_NONE, SESSION_VALID, SESSION_ENDED };

/* session_make() - a new id for an owner and a client with these CAP_* bits. Return: 0, -1 (no random bytes,
 * no memory). */
int session_make(const struct sessions *s, const char *owner, unsigned int caps, char ret[SESSION_ID_MAX]);

/* session_look() - is this an id of ours for this owner? Anything else is as good as no session. */
enum session_state session_look(const struct sessions *s, struct http_text id, const char *owner,
				char ret_scope[SESSION_SCOPE_MAX], unsigned int *ret_caps);

/* session_end() - answered SESSION_ENDED from now on. */
void session_end(struct sessions *s, struct http_text id);
