/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_setup.h - put one entry into a configuration that holds others */
#pragma once

#include "runtime/base/buf.h"
#include "runtime/base/err.h"

/* setup_merge_json() - the same text with member.name = entry in it; every other byte stays. Refused when
 * text is not strict JSON, or no object where one is needed. Return: 0, -1. */
int setup_merge_json(const char *text, const char *member, const char *name, const char *entry, struct buf *ret,
		     struct err *e);

/* setup_merge_toml() - the same text with a table at its end; refused when it has that table already, or
 * strings of several lines, among which no table can be told from text. Return: 0, -1. */
int setup_merge_toml(const char *text, const char *name, const char *table, struct buf *ret, struct err *e);
