/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tools.c - the tools of a sandbox: which there are, and the texts they share
 *
 * Runs in the front, without privilege. The texts are for a language model: plain words, the vital
 * facts first, below 2 KB because some clients cut there. Schemas are flat and use only the keywords
 * every client and model provider accepts.
 */
#include "mcp/tools.h"

#include <inttypes.h>
#include <string.h>

#include "mcp/result.h"
#include "runtime/base/buf.h"
#include "runtime/base/str.h"
#include "runtime/label.h"

static bool is_offered(const struct tool *t, const struct api_hello *h)
{
	return t->safe_shell == !strcmp(h->profile, "safe-shell");
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
		      " s by default, at most %" PRIu64 " s. Network: %s%s.",
		   h->limits.pids, h->timeout_default_ms / 1000, h->timeout_max_ms / 1000,
		   net_text(h->net), h->owner_net_count ? ", or what sandbox_info says" : "");
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

static void write_instructions(struct buf *b, const struct api_hello *h)
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

/* ---- the registry ---- */

/* In the order in which they are listed. */
static const struct tool *const tools[] = { &tool_run_command, &tool_present_file, &tool_sandbox_info,
					    &tool_run_sandboxed, NULL };

const struct registry sandbox_registry = {
	.tools = tools,
	.is_offered = is_offered,
	.write_instructions = write_instructions,
};
