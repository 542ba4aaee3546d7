/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/config_table.h - the shape of a settings row; private to mcp/config*.c and their tests */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mcp/config.h"
#include "runtime/spec.h"

enum config_type {
	CONFIG_TYPE_NUMBER,
	CONFIG_TYPE_SIZE,     /* bytes; K M G */
	CONFIG_TYPE_DURATION, /* milliseconds inside, seconds outside; s m h d */
	CONFIG_TYPE_CPUS,     /* thousandths inside */
	CONFIG_TYPE_FLAG,     /* 0 or 1 */
	CONFIG_TYPE_CHOICE,   /* index into choices */
	CONFIG_TYPE_TEXT,
};

struct config_row {
	const char *env;
	const char *option; /* without dashes */
	enum config_type type;
	const char *initial; /* default as text; NULL: by_profile, or found at run time */
	uint64_t min, max;   /* of number */
	uint64_t (*by_profile)(const struct profile *p);
	const char *const *choices; /* NULL-terminated */
	bool (*check)(const char *text); /* TEXT: is it well-formed? */
	const char *shape;               /* TEXT: what well-formed means, for the error */
	bool trim_slash;                 /* TEXT: "/x/" and "/x" are one value */
	bool secret;                     /* never shown */
	const char *found; /* how the default is found, for the help; NULL when initial says it */
	const char *help;
};

extern const struct config_row config_table[CONFIG_COUNT];

/* The mark of a process re-executed with every setting in its environment; its value is the path of
 * the env file they came from. */
#define CONFIG_STAGE_ENV "_MCP_SANDBOX_SETTINGS"

/* config_format_number() - canonical text of a number of this row. */
void config_format_number(const struct config_row *row, uint64_t number, char *text, size_t size);

/* config_unknown_name() - an error when the name claims to be one of ours (SANDBOX_, MCP_). */
int config_unknown_name(const char *name, struct err *e);

/* config_user_path() - root_path for root, else $<xdg>/<leaf>, else $HOME/<below_home>/<leaf>; only
 * absolute ones count. Return: 0, -1 when there is none. */
int config_user_path(const char *xdg, const char *below_home, const char *root_path, const char *leaf,
		     char *path, size_t size);
