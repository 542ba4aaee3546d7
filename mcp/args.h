/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/args.h - tolerant reading of tool arguments
 *
 * Some clients make every optional parameter required and nullable, others send numbers as strings.
 * null and "" are "not given"; "15" and 15.0 are whole numbers; unknown names are ignored. Everything
 * else that is wrong is an error whose message names the argument.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

struct json;

/* args_text() - *ret is borrowed from args. fallback NULL: the argument is required. */
int args_text(const struct json *args, const char *name, const char *fallback, size_t max,
	      const char **ret, struct err *e);

/* args_whole() - a whole number, clamped to -INT64_MAX..INT64_MAX; *ret is fallback when not given. */
int args_whole(const struct json *args, const char *name, int64_t fallback, int64_t *ret,
	       struct err *e);
