/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/auth.h - who may come in over HTTP: bearer tokens, and a limit on guessing
 *
 * Only hashes are known here. Every request is compared with all of them, in constant time; a good token
 * is let in whatever its address did before, so nobody can lock somebody else out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mcp/http.h"
#include "runtime/api.h"

enum {
	AUTH_TOKEN_MAX = 4096,
	AUTH_FAILURES_MAX = 10, /* wrong tokens of an address ... */
	AUTH_WINDOW_S = 60,     /* ... within this time */
	AUTH_SETS = 128,
	AUTH_WAYS = 8, /* addresses remembered: AUTH_SETS * AUTH_WAYS; the oldest of a set makes room */
	AUTH_ADDRESS_LEN = 16,
};

enum auth_verdict {
	AUTH_OK,
	AUTH_MISSING, /* no token: 401 */
	AUTH_WRONG,   /* 401 */
	AUTH_LIMITED, /* a wrong one, and too many before it: 429 */
};

struct auth_failures {
	uint8_t address[AUTH_ADDRESS_LEN];
	uint64_t since_s; /* 0: free */
	uint32_t count;
};

struct auth {
	bool no_token;     /* everybody is the default owner */
	bool behind_proxy; /* the last hop of X-Forwarded-For is the address, when loopback says so */
	uint32_t count;
	struct api_token tokens[API_TOKENS_MAX];
	uint64_t seed; /* of the sets: nobody outside knows which addresses share one */
	struct auth_failures failures[AUTH_SETS][AUTH_WAYS];
};

void auth_init(struct auth *a, bool no_token, bool behind_proxy);
void auth_set_tokens(struct auth *a, const struct api_tokens *tokens);

/* auth_check() - *ret_owner (eight digits and NUL) with AUTH_OK; *ret_wait_s with AUTH_LIMITED. */
enum auth_verdict auth_check(struct auth *a, const struct http_request *r, uint64_t now_s,
			     char ret_owner[OWNER_ID_LEN + 1], uint32_t *ret_wait_s);

/* auth_address() - whom failures are counted for: of IPv6 the first 64 bits. */
void auth_address(const struct auth *a, const struct http_request *r, uint8_t ret[AUTH_ADDRESS_LEN]);
