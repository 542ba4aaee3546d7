/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/config_text.c - settings as text: dump, option help, the README's table
 *
 * Pure functions of the table and the values in force.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mcp/config_table.h"
#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"

static void format_scaled(uint64_t bytes, char *text, size_t size)
{
	static const char suffix[] = { 'G', 'M', 'K' };

	for (unsigned int i = 0; i < sizeof(suffix); i++) {
		uint64_t unit = UINT64_C(1) << (30 - 10 * i);

		if (bytes != 0 && bytes % unit == 0) {
			snprintf(text, size, "%" PRIu64 "%c", bytes / unit, suffix[i]);
			return;
		}
	}
	snprintf(text, size, "%" PRIu64, bytes);
}

/* A number of thousandths without trailing zeros: 2000 -> "2", 500 -> "0.5". */
static void format_milli(uint64_t milli, const char *unit, char *text, size_t size)
{
	unsigned int part = (unsigned int)(milli % 1000);
	int digits = part == 0 ? 0 : part % 100 == 0 ? 1 : part % 10 == 0 ? 2 : 3;
	unsigned int shown = digits == 1 ? part / 100 : digits == 2 ? part / 10 : part;

	if (digits == 0)
		snprintf(text, size, "%" PRIu64 "%s", milli / 1000, unit);
	else
		snprintf(text, size, "%" PRIu64 ".%0*u%s", milli / 1000, digits, shown, unit);
}

void config_format_number(const struct config_row *row, uint64_t number, char *text, size_t size)
{
	switch (row->type) {
	case CONFIG_TYPE_SIZE:
		format_scaled(number, text, size);
		break;
	case CONFIG_TYPE_DURATION:
		/* a fraction of a second is only understood with its unit */
		format_milli(number, number % 1000 ? "s" : "", text, size);
		break;
	case CONFIG_TYPE_CPUS:
		format_milli(number, "", text, size);
		break;
	case CONFIG_TYPE_CHOICE:
		snprintf(text, size, "%s", row->choices[number]);
		break;
	case CONFIG_TYPE_NUMBER:
	case CONFIG_TYPE_FLAG:
	case CONFIG_TYPE_TEXT:
		snprintf(text, size, "%" PRIu64, number);
		break;
	}
}

/* Quoted as systemd reads it, where the value is not plain. */
static void dump_value(struct buf *out, const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_./:,@%+*=-[]";

	if (text[strspn(text, plain)] == '\0') {
		buf_append_str(out, text);
		return;
	}
	buf_append_str(out, "\"");
	for (; *text; text++) {
		if (strchr("\"\\`$", *text))
			buf_append_str(out, "\\");
		buf_append(out, text, 1);
	}
	buf_append_str(out, "\"");
}

int config_dump(const struct config *c, struct buf *out)
{
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_row *row = &config_table[id];
		const char *text = config_text(c, (enum config_id)id);

		if (row->secret) {
			buf_printf(out, "# %s is %s\n", row->env, text[0] ? "set; not shown" : "not set");
			continue;
		}
		buf_printf(out, "%s=", row->env);
		dump_value(out, text);
		buf_append_str(out, "\n");
	}
	return out->overflow ? -1 : 0;
}

/* The default as a person reads it. */
static void describe_default(const struct config_row *row, char *text, size_t size)
{
	char value[PROFILE_COUNT][32];

	if (row->found) {
		snprintf(text, size, "%s", row->found);
	} else if (row->by_profile) {
		for (int i = 0; i < PROFILE_COUNT; i++)
			config_format_number(row, row->by_profile(&profile_table[i]), value[i],
					     sizeof(value[i]));
		snprintf(text, size, "%s, %s, %s", value[PROFILE_CHAT], value[PROFILE_CODE],
			 value[PROFILE_SAFE_SHELL]);
	} else {
		snprintf(text, size, "%s", row->initial[0] ? row->initial : "none");
	}
}

static const char *value_name(const struct config_row *row)
{
	static const char *const names[] = {
		[CONFIG_TYPE_NUMBER] = "N",     [CONFIG_TYPE_SIZE] = "SIZE", [CONFIG_TYPE_DURATION] = "TIME",
		[CONFIG_TYPE_CPUS] = "N.N",     [CONFIG_TYPE_FLAG] = "0|1",  [CONFIG_TYPE_CHOICE] = "WORD",
		[CONFIG_TYPE_TEXT] = "TEXT",
	};

	return names[row->type];
}

int config_help(struct buf *out)
{
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_row *row = &config_table[id];
		char option[64], initial[128];

		snprintf(option, sizeof(option), "--%s %s", row->option, value_name(row));
		describe_default(row, initial, sizeof(initial));
		buf_printf(out, "  %-24s %s\n", option, row->help);
		if (row->choices) {
			buf_printf(out, "  %-24s one of:", "");
			for (size_t i = 0; row->choices[i]; i++)
				buf_printf(out, " %s", row->choices[i]);
			buf_append_str(out, "\n");
		}
		buf_printf(out, "  %-24s %s; default %s\n", "", row->env, initial);
	}
	return out->overflow ? -1 : 0;
}

int config_markdown(struct buf *out)
{
	buf_append_str(out, "| setting | option | default | effect |\n|---|---|---|---|\n");
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_row *row = &config_table[id];
		char initial[128];

		describe_default(row, initial, sizeof(initial));
		buf_printf(out, "| `%s` | `--%s` | %s | %s", row->env, row->option, initial, row->help);
		for (size_t i = 0; row->choices && row->choices[i]; i++)
			buf_printf(out, "%s`%s`", i ? ", " : ": ", row->choices[i]);
		buf_append_str(out, " |\n");
	}
	return out->overflow ? -1 : 0;
}

static void json_choices(const struct config_row *row, struct buf *out)
{
	buf_append_str(out, "[");
	for (size_t i = 0; row->choices && row->choices[i]; i++) {
		buf_append_str(out, i ? ", " : "");
		json_write_string(out, row->choices[i]);
	}
	buf_append_str(out, "]");
}

int config_json(struct buf *out)
{
	for (int id = 0; id < CONFIG_COUNT; id++) {
		const struct config_row *row = &config_table[id];
		char initial[128];
		const char *const members[][2] = {
			{ "env", row->env }, { "option", row->option }, { "value", value_name(row) },
			{ "default", initial }, { "help", row->help }, { "shape", row->shape ? row->shape : "" },
		};

		describe_default(row, initial, sizeof(initial));
		buf_append_str(out, id ? ",\n" : "[\n");
		for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
			buf_append_str(out, i ? ", " : "{ ");
			json_write_string(out, members[i][0]);
			buf_append_str(out, ": ");
			json_write_string(out, members[i][1]);
		}
		buf_printf(out, ", \"secret\": %s, \"choices\": ", row->secret ? "true" : "false");
		json_choices(row, out);
		buf_append_str(out, " }");
	}
	buf_append_str(out, "]");
	return out->overflow ? -1 : 0;
}
