/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/lost.h - commands whose end nobody was told of, until their label's next answer
 *
 * A command is lost when its keeper dies: it is killed, what it wrote stays in /output. It is unanswered
 * when only the front died: it ran to its end, its result had no taker. Either way the model has seen
 * a broken connection, and the label's next result says what became of it.
 */
#pragma once

#include <stdint.h>

#include "runtime/spec.h"

enum { LOST_NOTES_MAX = 256 }; /* labels; the oldest is dropped with a line in the log */

struct registry;

struct lost {
	uint32_t commands, unanswered;
};

struct lost_note {
	char owner[OWNER_ID_LEN + 1]; /* "": free */
	char key[KEY_MAX];
	struct lost lost;
};

struct lost_notes {
	struct lost_note *note; /* LOST_NOTES_MAX of them, allocated with the first */
	unsigned int next;
};

void lost_add(struct registry *reg, const char *owner, const char *key, struct lost more);
struct lost lost_of(const struct registry *reg, const char *owner, const char *key);

/* lost_take() - the same, and it counts as told. */
struct lost lost_take(struct registry *reg, const char *owner, const char *key);
void lost_done(struct registry *reg);
