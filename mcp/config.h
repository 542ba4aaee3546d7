/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/config.h - every setting, in one table
 *
 * The table drives the parser of the environment, the env file and the command line, --help,
 * --dump-config and the README's settings table. A value is taken from the first of: command line,
 * environment, env file, the profile, the default.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"
#include "runtime/spec.h"

enum config_id {
	CONFIG_PROFILE,
	CONFIG_MEMORY,
	CONFIG_CPUS,
	CONFIG_PIDS,
	CONFIG_DISK,
	CONFIG_LIMITS,
	CONFIG_IDLE,
	CONFIG_MAX,
	CONFIG_MAX_TIMEOUT,
	CONFIG_MIN_FREE,
	CONFIG_LINK_TTL,
	CONFIG_IMAGE_MAX,
	CONFIG_HOST,
	CONFIG_PORT,
	CONFIG_PATH,
	CONFIG_TLS_CERT,
	CONFIG_TLS_KEY,
	CONFIG_BEHIND_PROXY,
	CONFIG_PUBLIC_BASE,
	CONFIG_SIGN_KEY,
	CONFIG_TOKEN,
	CONFIG_NO_TOKEN,
	CONFIG_ALLOWED_HOSTS,
	CONFIG_NET,
	CONFIG_NET_ALLOW,
	CONFIG_NET_LISTS,
	CONFIG_OWNER_NET,
	CONFIG_DNS,
	CONFIG_UPSTREAM_PROXY,
	CONFIG_EXTRA_CA,
	CONFIG_IMAGE,
	CONFIG_HOME,
	CONFIG_CGROUP,
	CONFIG_SUBID,
	CONFIG_OUTPUT_MAX,
	CONFIG_PRESENT_DIR,
	CONFIG_MAX_AGE_DAYS,
	CONFIG_DRY_RUN,
	CONFIG_LOG,
	CONFIG_COUNT,
};

enum config_source { CONFIG_FROM_DEFAULT, CONFIG_FROM_FILE, CONFIG_FROM_ENVIRONMENT, CONFIG_FROM_COMMAND_LINE };

enum { CONFIG_FILE_MAX = 256 * 1024, CONFIG_VALUE_MAX = 4096 };

struct config_value {
	enum config_source source;
	uint64_t number; /* bytes, milliseconds, thousandths, choice index, 0/1 by type; 0 for text */
	char *text;      /* canonical form, owned; "" when unset; NULL before config_finish() for a default */
};

struct config {
	struct config_value value[CONFIG_COUNT];
	char file[PATH_MAX]; /* the env file that was read; "" when none */
};

void config_init(struct config *c);
void config_done(struct config *c);

/* config_set() - one value by id; the text is checked against the row's type and range.
 * A weaker source never replaces a stronger one. Return: 0, -1 (ERR_CONFIG names the setting). */
int config_set(struct config *c, enum config_id id, const char *text, enum config_source source,
	       struct err *e);

/* config_find_env()/config_find_option() - Return: the row's id, -1 when there is none. */
int config_find_env(const char *name);
int config_find_option(const char *name);
/* config_nearest_env() and _option() - the known name most like this one. */
const char *config_nearest_env(const char *name);
const char *config_nearest_option(const char *name);
bool config_is_flag(enum config_id id);

/* config_parse_text() - the text of an env file in systemd's EnvironmentFile syntax. name is for
 * errors. Keys that are neither settings nor start with SANDBOX_ or MCP_ are ignored. */
int config_parse_text(struct config *c, const char *text, size_t len, const char *name,
		      struct err *e);

/* config_load_environment() - settings from environ-style strings; an unknown SANDBOX_ or MCP_ name
 * is an error, except names that MCP clients are known to export to the servers they start. */
int config_load_environment(struct config *c, char *const *env, struct err *e);

/* config_load_file() - the env file: explicit_path (--config), else the default of this user. Never
 * looked for in the working directory. Refused when others may write it, or read the secrets in it. */
int config_load_file(struct config *c, const char *explicit_path, struct err *e);

/* config_finish() - fill defaults (default_profile is the verb's) and check values against each
 * other. Return: 0, -1 (ERR_CONFIG). */
int config_finish(struct config *c, const char *default_profile, struct err *e);

/* config_export() - put every setting that was given into the environment, so that this program
 * re-executed under another id (where the env file cannot be read) sees the same. */
int config_export(const struct config *c, struct err *e);

/* config_settings() - what the runtime is told. Needs: config_finish(). */
int config_settings(const struct config *c, struct settings *ret, struct err *e);

const char *config_text(const struct config *c, enum config_id id);
uint64_t config_number(const struct config *c, enum config_id id);

struct buf;
/* config_dump() - every setting as an env file; parsing it and dumping again gives the same bytes.
 * Secrets are not shown: a comment says that they are set. */
int config_dump(const struct config *c, struct buf *out);
/* config_help() - the rows as option help; config_markdown() - as the README's table. */
int config_help(struct buf *out);
int config_markdown(struct buf *out);
/* config_json() - the table as an array of objects. Return: 0, -1 (out of memory). */
int config_json(struct buf *out);
