/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_exec.h - one command in a sandbox, with descriptors of this process as its input and output */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mcp/cli_start.h"
#include "runtime/base/buf.h"

struct exec_request {
	const char *owner, *key;
	uint64_t timeout_ms; /* 0: the default */
	uint32_t mode, flags; /* API_EXEC_... */
	struct buf bytes;     /* a shell command, or arguments separated by NUL */
	int fds[3];           /* input, output, error; -1: none. They stay the caller's */
	bool throw_away;      /* the label and all it holds, afterwards */
};

/* exec_run() - by the keeper that holds the label, else by one of our own. Blocks SIGINT and SIGTERM for good,
 * which are passed on to the command. Return: the command's status, CLI_TIMEOUT, -1. */
int exec_run(const struct start *start, const struct exec_request *r, struct err *e);
