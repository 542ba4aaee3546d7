/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tools.h - the tools: one table, from which tools/list is made */
#pragma once

#include <stdbool.h>

#include "runtime/api.h"

struct buf;
struct call;
struct json;

#define TOOL_ERROR "[sandbox error] "
#define TOOL_PRESENT_ERROR "[present error] "

struct tool_parameter {
	const char *name, *type, *description;
	bool required;
	bool with_user; /* only where commands run as an ordinary user */
};

enum { TOOL_READ_ONLY = 1, TOOL_DESTRUCTIVE = 2, TOOL_IDEMPOTENT = 4, TOOL_NEEDS_NET = 8 };

enum { TOOL_PARAMETERS_MAX = 5 };

struct tool {
	const char *name, *title;
	bool safe_shell; /* offered by the safe-shell profile, else by all others */
	unsigned int hints; /* TOOL_*: annotations */
	uint32_t result_chars; /* anthropic/maxResultSizeChars */
	void (*describe)(struct buf *b, const struct api_hello *h);
	struct tool_parameter parameters[TOOL_PARAMETERS_MAX + 1];
	/* start() - begin the call; it ends by call_result_end() or call_refuse(), now or later.
	 * args is an object, or NULL; it is gone when start() returns. */
	void (*start)(struct call *c, const struct json *args);
	/* drop() - free c->state; also on cancellation. NULL: the call has none. */
	void (*drop)(struct call *c);
};

extern const struct tool tool_run_command, tool_present_file, tool_sandbox_info, tool_run_sandboxed;

/* tools_find() - among the tools of this server's profile. */
const struct tool *tools_find(const struct api_hello *h, const char *name);

/* tools_write_list() - the array of tools/list; modern adds what only 2026-07-28 clients expect. */
void tools_write_list(struct buf *b, const struct api_hello *h, bool modern);

/* tools_write_instructions() - plain text for the model, the label rule first. */
void tools_write_instructions(struct buf *b, const struct api_hello *h);

/* tools_write_projects() - the operator's folders in every sandbox, one sentence each. */
void tools_write_projects(struct buf *b, const struct api_hello *h);

/* tools_write_limits() - limits and network policy in force, one line. */
void tools_write_limits(struct buf *b, const struct api_hello *h);
