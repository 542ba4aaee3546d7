/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/config.c - parse, rank, default and hand out settings
 *
 * Runs at start, before any privilege is used or dropped, in the process the user started. Trusts
 * nothing: the environment of a stdio server is whatever its client passed on. Every value is checked
 * here once; the keeper gets numbers in struct settings and never sees the text again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "mcp/config.h"
#include "mcp/config_table.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/net_owner.h"
#include "runtime/net_policy.h"

void config_init(struct config *c)
{
	memset(c, 0, sizeof(*c));
}

void config_done(struct config *c)
{
	for (size_t i = 0; i < CONFIG_COUNT; i++)
		free(c->value[i].text);
	config_init(c);
}

int config_find_env(const char *name)
{
	for (int i = 0; i < CONFIG_COUNT; i++) {
		if (!strcmp(config_table[i].env, name))
			return i;
	}
	return -1;
}

int config_find_option(const char *name)
{
	for (int i = 0; i < CONFIG_COUNT; i++) {
		if (!strcmp(config_table[i].option, name))
			return i;
	}
	return -1;
}

bool config_is_flag(enum config_id id)
{
	return config_table[id].type == CONFIG_TYPE_FLAG;
}

/* Edits between two names, a swap of neighbours counting as one (optimal string alignment). */
static unsigned int edit_distance(const char *a, const char *b)
{
	enum { MAX = 48 };
	size_t la = strnlen(a, MAX), lb = strnlen(b, MAX);
	unsigned int d[MAX + 1][MAX + 1];

	for (size_t i = 0; i <= la; i++)
		d[i][0] = (unsigned int)i;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = (unsigned int)j;
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			unsigned int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[la][lb];
}

static int nearest(const char *name, const char *(*name_of)(int id))
{
	unsigned int best = UINT32_MAX;
	int found = 0;

	for (int i = 0; i < CONFIG_COUNT; i++) {
		unsigned int distance = edit_distance(name, name_of(i));

		if (distance < best) {
			best = distance;
			found = i;
		}
	}
	return found;
}

static const char *env_name(int id)
{
	return config_table[id].env;
}

static const char *option_name(int id)
{
	return config_table[id].option;
}

const char *config_nearest_env(const char *name)
{
	return env_name(nearest(name, env_name));
}

const char *config_nearest_option(const char *name)
{
	return option_name(nearest(name, option_name));
}

static int parse_choice(const struct config_row *row, const char *text, uint64_t *ret)
{
	for (size_t i = 0; row->choices[i]; i++) {
		if (!strcmp(row->choices[i], text)) {
			*ret = i;
			return 0;
		}
	}
	return -1;
}

static int parse_flag(const char *text, uint64_t *ret)
{
	static const char *const words[][2] = {
		{ "0", "1" }, { "no", "yes" }, { "false", "true" }, { "off", "on" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		for (size_t v = 0; v < 2; v++) {
			if (!strcmp(words[i][v], text)) {
				*ret = v;
				return 0;
			}
		}
	}
	return -1;
}

/* Text to number by type. Return: 0, -1 when it is not of the type (range is checked elsewhere). */
static int parse_number(const struct config_row *row, const char *text, uint64_t *ret)
{
	uint32_t milli;

	switch (row->type) {
	case CONFIG_TYPE_NUMBER:
		return str_parse_u64(text, 0, UINT64_MAX, ret);
	case CONFIG_TYPE_SIZE:
		return str_parse_size(text, ret);
	case CONFIG_TYPE_DURATION:
		return str_parse_duration_ms(text, ret);
	case CONFIG_TYPE_CPUS:
		if (str_parse_cpus(text, &milli) < 0)
			return -1;
		*ret = milli;
		return 0;
	case CONFIG_TYPE_FLAG:
		return parse_flag(text, ret);
	case CONFIG_TYPE_CHOICE:
		return parse_choice(row, text, ret);
	case CONFIG_TYPE_TEXT:
		break;
	}
	return row->check(text) ? 0 : -1;
}

static void describe_choices(const struct config_row *row, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; row->choices[i] && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 row->choices[i]);
}

/* What a value of this row has to look like, for a remedy. */
static void describe_shape(const struct config_row *row, char *text, size_t size)
{
	static const char *const units[] = {
		[CONFIG_TYPE_NUMBER] = "a whole number",
		[CONFIG_TYPE_SIZE] = "bytes, or a number with K, M or G",
		[CONFIG_TYPE_DURATION] = "seconds, or a number with s, m, h or d",
		[CONFIG_TYPE_CPUS] = "a number of processors such as 2 or 0.5",
	};
	char low[32], high[32];

	if (row->type == CONFIG_TYPE_TEXT) {
		snprintf(text, size, "%s", row->shape);
	} else if (row->type == CONFIG_TYPE_FLAG) {
		snprintf(text, size, "0 or 1");
	} else if (row->type == CONFIG_TYPE_CHOICE) {
		describe_choices(row, text, size);
	} else {
		config_format_number(row, row->min, low, sizeof(low));
		config_format_number(row, row->max, high, sizeof(high));
		snprintf(text, size, "%s, from %s to %s", units[row->type], low, high);
	}
}

static int refuse(const struct config_row *row, const char *text, enum config_source source,
		  struct err *e)
{
	char shown[80], shape[ERR_REMEDY_MAX / 2];
	bool option = source == CONFIG_FROM_COMMAND_LINE;

	str_escape(shown, sizeof(shown), text, strlen(text));
	describe_shape(row, shape, sizeof(shape));
	err_set(e, ERR_CONFIG, "%s%s: \"%s\" is not accepted", option ? "--" : "",
		option ? row->option : row->env, row->secret ? "(not shown)" : shown);
	return err_remedy(e, "give %s", shape);
}

/* The one spelling of a value, so that a dump parsed and dumped again is the same. */
static char *canonical(const struct config_row *row, const char *text, uint64_t number)
{
	char formatted[32];
	size_t len;
	char *copy;

	if (row->type != CONFIG_TYPE_TEXT) {
		config_format_number(row, number, formatted, sizeof(formatted));
		return strdup(formatted);
	}
	copy = strdup(text);
	if (!copy || !row->trim_slash)
		return copy;
	for (len = strlen(copy); len > 1 && copy[len - 1] == '/'; len--)
		copy[len - 1] = '\0';
	return copy;
}

/* No setting needs a control character; in a path or a header it would be an attack. */
static bool is_clean_text(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	}
	return len <= CONFIG_VALUE_MAX && str_utf8_is_valid(text, len);
}

int config_set(struct config *c, enum config_id id, const char *text, enum config_source source,
	       struct err *e)
{
	const struct config_row *row = &config_table[id];
	struct config_value *value = &c->value[id];
	uint64_t number = 0;
	char *copy;

	/* "" stands for the default: a stronger source can so undo a weaker one. */
	if (text[0] != '\0') {
		if (!is_clean_text(text) || parse_number(row, text, &number) < 0)
			return refuse(row, text, source, e);
		if (row->type != CONFIG_TYPE_TEXT && (number < row->min || number > row->max))
			return refuse(row, text, source, e);
	}
	if (value->text && value->source > source)
		return 0;
	copy = text[0] ? canonical(row, text, number) : strdup("");
	if (!copy)
		return err_set(e, ERR_NOMEM, "settings: out of memory");
	free(value->text);
	*value = (struct config_value){ .source = source, .number = number, .text = copy };
	return 0;
}

/* Names that are not ours although they look so: settings of MCP clients that a stdio server inherits
 * from them. */
static bool is_foreign(const char *name)
{
	static const char *const names[] = {
		"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MCP_CONNECTION_NONBLOCKING",
		"MCP_SERVER_CONNECTION_BATCH_SIZE", "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE",
		"MCP_OAUTH_CALLBACK_PORT", "MCP_CLIENT_SECRET", "SANDBOX_RUNTIME",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], name))
			return true;
	}
	return false;
}

int config_unknown_name(const char *name, struct err *e)
{
	char shown[80];

	if (strncmp(name, "SANDBOX_", 8) && strncmp(name, "MCP_", 4))
		return 0;
	str_escape(shown, sizeof(shown), name, strlen(name));
	err_set(e, ERR_CONFIG, "%s: no such setting", shown);
	return err_remedy(e, "did you mean %s? Otherwise remove it",
			  config_nearest_env(name));
}

int config_load_environment(struct config *c, char *const *env, struct err *e)
{
	for (; *env; env++) {
		const char *equals = strchr(*env, '=');
		char name[64];
		int id;

		if (!equals || (size_t)(equals - *env) >= sizeof(name))
			continue;
		memcpy(name, *env, (size_t)(equals - *env));
		name[equals - *env] = '\0';
		id = config_find_env(name);
		if (id >= 0) {
			if (config_set(c, (enum config_id)id, equals + 1, CONFIG_FROM_ENVIRONMENT, e) < 0)
				return -1;
		} else if (!is_foreign(name) && config_unknown_name(name, e) < 0) {
			return err_wrap(e, "environment");
		}
	}
	return 0;
}

static int set_default(struct config *c, enum config_id id, const char *text, struct err *e)
{
	enum config_source source = c->value[id].source;

	if (c->value[id].text && c->value[id].text[0] != '\0')
		return 0;
	free(c->value[id].text);
	c->value[id] = (struct config_value){ .source = source };
	return config_set(c, id, text, source, e);
}

static int set_profile_default(struct config *c, enum config_id id, const struct profile *profile,
			       struct err *e)
{
	const struct config_row *row = &config_table[id];
	char text[32];

	config_format_number(row, row->by_profile(profile), text, sizeof(text));
	return set_default(c, id, text, e);
}

/* $XDG_DATA_HOME/mcp-sandbox, or ~/.local/share/mcp-sandbox; the service's directory for root. */
static int set_default_home(struct config *c, struct err *e)
{
	char path[PATH_MAX];

	if (config_user_path("XDG_DATA_HOME", ".local/share", "/var/lib/mcp-sandbox", "mcp-sandbox", path,
			     sizeof(path)) < 0) {
		if (c->value[CONFIG_HOME].text && c->value[CONFIG_HOME].text[0])
			return 0;
		err_set(e, ERR_CONFIG, "SANDBOX_HOME: neither XDG_DATA_HOME nor HOME is an absolute path");
		return err_remedy(e, "set SANDBOX_HOME");
	}
	return set_default(c, CONFIG_HOME, path, e);
}

/* What "apt" stands for does not matter yet. */
static int check_net_lists(const struct config *c, struct err *e)
{
	static struct net_policy policy;

	return net_policy_parse(&policy, NET_ALLOWLIST, c->value[CONFIG_NET_ALLOW].text,
				c->value[CONFIG_NET_LISTS].text, "", e);
}

/* Rules between settings. */
static int check_together(const struct config *c, struct err *e)
{
	bool cert = c->value[CONFIG_TLS_CERT].text[0], key = c->value[CONFIG_TLS_KEY].text[0];

	if (cert != key) {
		err_set(e, ERR_CONFIG, "%s is set without %s", cert ? "SANDBOX_TLS_CERT" : "SANDBOX_TLS_KEY",
			cert ? "SANDBOX_TLS_KEY" : "SANDBOX_TLS_CERT");
		return err_remedy(e, "set both or neither");
	}
	if (c->value[CONFIG_PROFILE].number == PROFILE_SAFE_SHELL &&
	    c->value[CONFIG_NET].number != NET_NONE) {
		err_set(e, ERR_CONFIG, "SANDBOX_NET: the profile safe-shell has no network");
		return err_remedy(e, "leave SANDBOX_NET out, or choose another profile");
	}
	return check_net_lists(c, e);
}

int config_finish(struct config *c, const char *default_profile, struct err *e)
{
	const struct profile *profile;

	if (set_default(c, CONFIG_PROFILE, default_profile, e) < 0)
		return -1;
	profile = &profile_table[c->value[CONFIG_PROFILE].number];
	if (set_default_home(c, e) < 0)
		return -1;
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_row *row = &config_table[id];
		int r = 0;

		if (row->by_profile)
			r = set_profile_default(c, (enum config_id)id, profile, e);
		else if (row->initial)
			r = set_default(c, (enum config_id)id, row->initial, e);
		if (r < 0)
			return -1;
	}
	return check_together(c, e);
}

int config_export(const struct config *c, struct err *e)
{
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_value *value = &c->value[id];

		if (id != CONFIG_HOME && id != CONFIG_PROFILE && value->source == CONFIG_FROM_DEFAULT)
			continue;
		if (setenv(config_table[id].env, value->text, 1) < 0)
			return err_sys(e, "hand %s on", config_table[id].env);
	}
	if (setenv(CONFIG_STAGE_ENV, c->file, 1) < 0)
		return err_sys(e, "hand the settings on");
	return 0;
}

const char *config_text(const struct config *c, enum config_id id)
{
	return c->value[id].text ? c->value[id].text : "";
}

uint64_t config_number(const struct config *c, enum config_id id)
{
	return c->value[id].number;
}

static int copy_network(const struct config *c, struct settings *s)
{
	const char *upstream = config_text(c, CONFIG_UPSTREAM_PROXY);

	if (upstream[0])
		upstream += strlen("http://");
	if (str_copy(s->net_allow, sizeof(s->net_allow), config_text(c, CONFIG_NET_ALLOW)) < 0 ||
	    str_copy(s->net_lists, sizeof(s->net_lists), config_text(c, CONFIG_NET_LISTS)) < 0 ||
	    str_copy(s->net_dns, sizeof(s->net_dns), config_text(c, CONFIG_DNS)) < 0)
		return -1;
	return str_copy(s->net_upstream, sizeof(s->net_upstream), upstream);
}

int config_settings(const struct config *c, struct settings *ret, struct err *e)
{
	const struct profile *profile = &profile_table[config_number(c, CONFIG_PROFILE)];
	struct settings s = {
		.profile = profile,
		.limits = {
			.memory_bytes = config_number(c, CONFIG_MEMORY),
			.cpu_milli = (uint32_t)config_number(c, CONFIG_CPUS),
			.pids = (uint32_t)config_number(c, CONFIG_PIDS),
			.disk_bytes = config_number(c, CONFIG_DISK),
		},
		.limits_best_effort = config_number(c, CONFIG_LIMITS) == 1,
		.disk_wanted = c->value[CONFIG_DISK].source != CONFIG_FROM_DEFAULT &&
			       config_text(c, CONFIG_DISK)[0] != '\0',
		.net = (enum net_mode)config_number(c, CONFIG_NET),
		.max_sandboxes = (uint32_t)config_number(c, CONFIG_MAX),
		.idle_ms = config_number(c, CONFIG_IDLE),
		.timeout_default_ms = profile->timeout_default_s * UINT64_C(1000),
		.timeout_max_ms = config_number(c, CONFIG_MAX_TIMEOUT),
		.min_free_bytes = config_number(c, CONFIG_MIN_FREE),
		.output_max_bytes = config_number(c, CONFIG_OUTPUT_MAX),
		.image_max_bytes = config_number(c, CONFIG_IMAGE_MAX),
		.owner = OWNER_DEFAULT,
	};

	if (s.timeout_default_ms > s.timeout_max_ms)
		s.timeout_default_ms = s.timeout_max_ms;
	if (str_copy(s.image, sizeof(s.image), config_text(c, CONFIG_IMAGE)) < 0 ||
	    str_copy(s.home, sizeof(s.home), config_text(c, CONFIG_HOME)) < 0 ||
	    str_copy(s.cgroup, sizeof(s.cgroup), config_text(c, CONFIG_CGROUP)) < 0 ||
	    str_copy(s.subid, sizeof(s.subid), config_text(c, CONFIG_SUBID)) < 0 ||
	    str_copy(s.present_dir, sizeof(s.present_dir), config_text(c, CONFIG_PRESENT_DIR)) < 0 ||
	    str_copy(s.config_file, sizeof(s.config_file), c->file) < 0)
		return err_set(e, ERR_CONFIG, "settings: a path is too long");
	if (copy_network(c, &s) < 0)
		return err_set(e, ERR_CONFIG, "settings: a list of the network is too long");
	if (net_owners_parse(&s, config_text(c, CONFIG_OWNER_NET), e) < 0)
		return -1;
	*ret = s;
	return 0;
}
