/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/lists.h - results that change only with what is registered: made once, sent as they are */
#pragma once

#include "mcp/registry.h"
#include "runtime/base/buf.h"

/* Era of a message: 2026-07-28 (stateless, an envelope in every request) or everything before. */
enum era { ERA_LEGACY, ERA_MODERN, ERA_COUNT };

enum list { LIST_TOOLS, LIST_PROMPTS, LIST_RESOURCES, LIST_TEMPLATES, LIST_COUNT };

struct lists {
	struct buf discover;   /* the result of server/discover */
	struct buf initialize; /* of initialize, from behind the version on */
	struct buf list[LIST_COUNT][ERA_COUNT];
};

/* lists_make() - also again, when something has changed. */
int lists_make(struct lists *l, const struct registry *g, const struct api_hello *h, struct err *e);
void lists_done(struct lists *l);
