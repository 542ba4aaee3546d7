/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/owners.h - whose sandboxes there are, and which ids their files carry
 *
 * An owner is a token's holder; eight hexadecimal digits name it everywhere but on the command line.
 * Root gives each a block of 65536 ids of its own; the owner of owners/<id> on disk is the record of
 * which. An ordinary user has one range, and all owners share it: what keeps them apart is then what
 * keeps sandboxes apart (namespaces, directories that are never mounted elsewhere), not their ids.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"
#include "runtime/store.h"
#include "runtime/userns.h"

enum { OWNERS_MAX = 64, OWNER_NAME_MAX = 16 };

struct owner_range {
	char id[OWNER_ID_LEN + 1]; /* "": free */
	struct idrange ids;
};

struct owners {
	const struct store *store;
	const char *subid; /* SANDBOX_SUBID */
	const struct idrange *first; /* the default owner's; borrowed */
	bool (*in_use)(const char *owner, void *ctx); /* has it a sandbox? NULL: nobody's place is given away */
	void *ctx;
	struct owner_range range[OWNERS_MAX];
};

void owners_init(struct owners *o, const struct store *store, const char *subid, const struct idrange *first);
void owners_done(struct owners *o);

/* owners_ids() - an owner's ids; with create, one that was never seen gets a free block. Owners come and go:
 * when every place is taken, one that is not in use makes room.
 * Return: borrowed until owners_ids() is asked again, and as long as it is in use; NULL (no such label, no
 * block left, ...). */
const struct idrange *owners_ids(struct owners *o, const char *owner, bool create, struct err *e);

/* owners_range_init() - the same for the command line: the caller's own range, ended with
 * userns_range_done(). */
int owners_range_init(const struct store *store, const char *subid, const char *owner, bool create,
		      struct idrange *ret, struct err *e);

/* owner_name_is_valid() - [a-z0-9]{1,16}, and not what an id looks like. */
bool owner_name_is_valid(const char *name);

/* owner_parse() - an owner as a user names it: an id, or a token's name. */
int owner_parse(const char *text, char ret[OWNER_ID_LEN + 1], struct err *e);

/* owner_id_of() - a name's id: the first 32 bits of its SHA-256. "default" is OWNER_DEFAULT. */
int owner_id_of(const char *name, char ret[OWNER_ID_LEN + 1], struct err *e);
