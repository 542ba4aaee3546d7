/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tools.h - the tools of a sandbox, and what is said about it in more than one of them */
#pragma once

#include "mcp/registry.h"

#define TOOL_ERROR "[sandbox error] "
#define TOOL_PRESENT_ERROR "[present error] "

extern const struct tool tool_run_command, tool_present_file, tool_sandbox_info, tool_run_sandboxed;

/* What mcp-sandbox registers. */
extern const struct registry sandbox_registry;

/* tools_write_projects() - the operator's folders in every sandbox, one sentence each. */
void tools_write_projects(struct buf *b, const struct api_hello *h);

/* tools_write_limits() - limits and network policy in force, one line. */
void tools_write_limits(struct buf *b, const struct api_hello *h);
