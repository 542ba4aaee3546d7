/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/lost.c - which labels have not been told yet what became of their commands
 *
 * Runs in the keeper. Almost always empty, so nothing here is made to be fast.
 */
#include "runtime/lost.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/registry.h"

static struct lost_note *find(const struct registry *reg, const char *owner, const char *key)
{
	for (unsigned int i = 0; reg->lost.note && i < LOST_NOTES_MAX; i++) {
		struct lost_note *n = &reg->lost.note[i];

		if (strcmp(n->owner, owner) == 0 && strcmp(n->key, key) == 0)
			return n;
	}
	return NULL;
}

static struct lost_note *make(struct registry *reg, const char *owner, const char *key)
{
	struct lost_notes *all = &reg->lost;
	struct lost_note *n;

	if (!all->note)
		all->note = calloc(LOST_NOTES_MAX, sizeof(*all->note));
	if (!all->note)
		return NULL;
	n = &all->note[all->next++ % LOST_NOTES_MAX];
	if (n->owner[0] != '\0')
		log_warn("%s: %u lost commands will not be reported", n->key, n->lost.commands);
	memset(n, 0, sizeof(*n));
	(void)str_copy(n->owner, sizeof(n->owner), owner);
	(void)str_copy(n->key, sizeof(n->key), key);
	return n;
}

void lost_add(struct registry *reg, const char *owner, const char *key, struct lost more)
{
	struct lost_note *n;

	if (more.commands == 0 && more.unanswered == 0)
		return;
	n = find(reg, owner, key);
	if (!n)
		n = make(reg, owner, key);
	if (!n) {
		log_error("%s: no memory to report a lost command", key);
		return;
	}
	n->lost.commands += more.commands;
	n->lost.unanswered += more.unanswered;
}

struct lost lost_of(const struct registry *reg, const char *owner, const char *key)
{
	const struct lost_note *n = find(reg, owner, key);

	return n ? n->lost : (struct lost){ 0 };
}

struct lost lost_take(struct registry *reg, const char *owner, const char *key)
{
	struct lost_note *n = find(reg, owner, key);
	struct lost taken = { 0 };

	if (n) {
		taken = n->lost;
		memset(n, 0, sizeof(*n));
	}
	return taken;
}

void lost_done(struct registry *reg)
{
	free(reg->lost.note);
	reg->lost.note = NULL;
}
