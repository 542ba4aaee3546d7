/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/budget.h - keep the first and last characters of a text that may be too long for a reply
 *
 * Text of at most `all` characters is kept whole; of a longer one the first `head` and the last
 * `tail`. Characters are code points; the number left out is exact. Memory: four bytes a character.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/buf.h"

struct budget {
	size_t all, head, tail; /* tail <= all, head <= all */
	struct buf first; /* everything while the text fits; then the head */
	struct buf last;  /* once it does not: at least the last `tail` characters */
	uint64_t characters;
	uint64_t unseen;  /* bytes that never came by */
	bool cut;
};

void budget_init(struct budget *b, size_t all, size_t head, size_t tail);
void budget_done(struct budget *b);

/* budget_add() - valid UTF-8, whole code points. */
void budget_add(struct budget *b, const char *text, size_t len);

/* budget_skip() - say that bytes are missing here (nobody kept them); what was added so far is the
 * beginning, what follows the end. */
void budget_skip(struct budget *b, uint64_t bytes);

/* budget_trim() - drop white space at both ends, after everything was added. */
void budget_trim(struct budget *b);

/* budget_tail() - the last characters, after everything was added. Return: "" and 0 when not cut. */
const char *budget_tail(const struct budget *b, size_t *ret_len);

/* budget_omitted() - characters in neither part (bytes never seen count as one each). */
uint64_t budget_omitted(const struct budget *b);
