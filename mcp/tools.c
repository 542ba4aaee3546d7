/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tools.c - the tools: one table, from which tools/list is made
 *
 * Runs in the front, without privilege. The texts are for a language model: plain words, the vital
 * facts first, below 2 KB because some clients cut there. Schemas are flat and use only the keywords
 * every client and model provider accepts.
 */
#include "mcp/tools.h"

#include <inttypes.h>
#include <string.h>

#include "mcp/json_write.h"
#include "mcp/result.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/label.h"

/* In the order in which they are listed. */
static const struct tool *const tools[] = { &tool_run_command, &tool_present_file,
					    &tool_sandbox_info, &tool_run_sandboxed };

static bool is_offered(const struct tool *t, const struct api_hello *h)
{
	return t->safe_shell == !strcmp(h->profile, "safe-shell");
}

const struct tool *tools_find(const struct api_hello *h, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++)
		if (is_offered(tools[i], h) && !strcmp(tools[i]->name, name))
			return tools[i];
	return NULL;
}

/* ---- texts ---- */

static const char *net_text(uint32_t net)
{
	switch (net) {
	case NET_INTERNET:
		return "internet (the local network and this host are blocked)";
	case NET_ALLOWLIST:
		return "some internet hosts only";
	default:
		return "none";
	}
}

void tools_write_projects(struct buf *b, const struct api_hello *h)
{
	for (uint32_t i = 0; i < h->project_count && i < PROJECT_MAX; i++)
		buf_printf(b, "%s is a project folder of the person's own machine, %s.\n", h->project[i].path,
			   h->project[i].writable ? "writable: changes there are real and at once" :
						    "read-only: write elsewhere");
}

void tools_write_limits(struct buf *b, const struct api_hello *h)
{
	char size[32];

	buf_printf(b, "Limits: memory %s, %" PRIu32, 
		   str_format_size(h->limits.memory_bytes, size, sizeof(size)),
		   h->limits.cpu_milli / 1000);
	if (h->limits.cpu_milli % 1000)
		buf_printf(b, ".%03" PRIu32, h->limits.cpu_milli % 1000);
	buf_printf(b, " cpus, %" PRIu32 " processes per sandbox; timeout %" PRIu64
		      " s by default, at most %" PRIu64 " s. Network: %s.",
		   h->limits.pids, h->timeout_default_ms / 1000, h->timeout_max_ms / 1000,
		   net_text(h->net));
	if (h->not_enforced) {
		buf_append_str(b, " NOT enforced on this host: ");
		result_controllers(b, h->not_enforced);
		buf_append_str(b, ".");
	}
}

static void write_safe_shell_instructions(struct buf *b, const struct api_hello *h)
{
	buf_append_str(b, "run_sandboxed_command runs one command in a throw-away Linux sandbox. Nothing "
			  "persists between calls.\n");
	tools_write_projects(b, h);
	tools_write_limits(b, h);
}

void tools_write_instructions(struct buf *b, const struct api_hello *h)
{
	if (is_offered(&tool_run_sandboxed, h)) {
		write_safe_shell_instructions(b, h);
		return;
	}
	buf_append_str(b,
		       "Label rule: " LABEL_RULE ". The label is the `sandbox` argument (two random words "
		       "do well: amber-otter); it names this conversation's own Linux sandbox.\n"
		       "run_command runs shell commands in it");
	if (!h->as_user)
		buf_append_str(b, " as root");
	buf_append_str(b,
		       " (Debian). Files in /workspace and "
		       "installed packages stay for the label.\n"
		       "present_file hands a file from /workspace to the person: they cannot see the "
		       "sandbox themselves.\n"
		       "sandbox_info shows the running sandboxes and the limits.\n");
	tools_write_projects(b, h);
	tools_write_limits(b, h);
}

/* ---- tools/list ---- */

static void write_schema(struct buf *b, const struct tool *t, const struct api_hello *h)
{
	const char *separator = "";

	buf_append_str(b, "{\"type\":\"object\",\"properties\":{");
	for (const struct tool_parameter *p = t->parameters; p->name; p++) {
		if (p->with_user && !h->as_user)
			continue;
		buf_printf(b, "%s\"%s\":{\"type\":\"%s\",\"description\":", p == t->parameters ? "" : ",",
			   p->name, p->type);
		json_write_string(b, p->description);
		buf_append_str(b, "}");
	}
	buf_append_str(b, "},\"required\":[");
	for (const struct tool_parameter *p = t->parameters; p->name; p++) {
		if (!p->required)
			continue;
		buf_printf(b, "%s\"%s\"", separator, p->name);
		separator = ",";
	}
	buf_append_str(b, "],\"additionalProperties\":false}");
}

static const char *bool_text(bool value)
{
	return value ? "true" : "false";
}

static void write_annotations(struct buf *b, const struct tool *t, const struct api_hello *h)
{
	bool open_world = (t->hints & TOOL_NEEDS_NET) && h->net != NET_NONE;

	buf_append_str(b, "{\"title\":");
	json_write_string(b, t->title);
	buf_printf(b, ",\"readOnlyHint\":%s,\"destructiveHint\":%s,\"idempotentHint\":%s,"
		      "\"openWorldHint\":%s}",
		   bool_text(t->hints & TOOL_READ_ONLY), bool_text(t->hints & TOOL_DESTRUCTIVE),
		   bool_text(t->hints & TOOL_IDEMPOTENT), bool_text(open_world));
}

static void write_description(struct buf *b, const struct tool *t, const struct api_hello *h)
{
	struct buf text;

	buf_init(&text, 8 * 1024);
	t->describe(&text, h);
	json_write_string(b, text.data);
	b->overflow |= text.overflow;
	buf_done(&text);
}

static void write_tool(struct buf *b, const struct tool *t, const struct api_hello *h, bool modern)
{
	buf_printf(b, "{\"name\":\"%s\",", t->name);
	if (modern) {
		buf_append_str(b, "\"title\":");
		json_write_string(b, t->title);
		buf_append_str(b, ",");
	}
	buf_append_str(b, "\"description\":");
	write_description(b, t, h);
	buf_append_str(b, ",\"inputSchema\":");
	write_schema(b, t, h);
	buf_append_str(b, ",\"annotations\":");
	write_annotations(b, t, h);
	if (t->result_chars)
		buf_printf(b, ",\"_meta\":{\"anthropic/alwaysLoad\":true,"
			      "\"anthropic/maxResultSizeChars\":%" PRIu32 "}",
			   t->result_chars);
	buf_append_str(b, "}");
}

void tools_write_list(struct buf *b, const struct api_hello *h, bool modern)
{
	const char *separator = "";

	buf_append_str(b, "[");
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		if (!is_offered(tools[i], h))
			continue;
		buf_append_str(b, separator);
		write_tool(b, tools[i], h, modern);
		separator = ",";
	}
	buf_append_str(b, "]");
}
