/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/tokens.h - who may come in over HTTP: the token file
 *
 * $SANDBOX_HOME/tokens, mode 0600: one "NAME SHA256" a line, the hash of a token of 256 random bits.
 * The token itself is nowhere: it was shown once. Written by the command line, read by the keeper,
 * which hands the hashes to the front. MCP_TOKEN is a row of the table too, and never in the file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/api.h"
#include "runtime/base/err.h"
#include "runtime/owners.h"
#include "runtime/store.h"

enum { TOKEN_BYTES = 32, TOKEN_TEXT_MAX = 2 * TOKEN_BYTES + 1 };

struct token_row {
	char name[OWNER_NAME_MAX + 1];
	char owner[OWNER_ID_LEN + 1];
	uint8_t hash[API_TOKEN_HASH_LEN];
};

struct token_table {
	size_t count;
	struct token_row rows[API_TOKENS_MAX];
};

/* tokens_read() - the file's rows; no file is an empty table. Refused when it is a link, somebody else's,
 * open to others, or not exactly as we write it. Return: 0, -1 (*ret is unchanged). */
int tokens_read(const struct store *s, struct token_table *ret, struct err *e);

/* tokens_add() - make a token for a new name and record its hash. Return: 0, -1. */
int tokens_add(const struct store *s, const char *name, char ret_token[TOKEN_TEXT_MAX], struct err *e);

/* tokens_remove() - ERR_NOT_FOUND when there is no such name. */
int tokens_remove(const struct store *s, const char *name, struct err *e);

/* tokens_put_default() - MCP_TOKEN as one more row; "": none. */
int tokens_put_default(struct token_table *t, const char *token, struct err *e);

/* tokens_session_key() - the key of this state directory that signs session ids; made when missing. */
int tokens_session_key(const struct store *s, uint8_t ret[API_TOKEN_HASH_LEN], struct err *e);

/* tokens_have_owner() - the default owner is always one. */
bool tokens_have_owner(const struct token_table *t, const char *owner);

/* tokens_parse() - the file's text. Pure. */
int tokens_parse(const char *text, size_t len, struct token_table *ret, struct err *e);
