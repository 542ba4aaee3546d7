/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/tool_info.c - sandbox_info: the caller's sandboxes, and the limits in force
 *
 * Runs in the front, without privilege, on the keeper's figures.
 */
#include <inttypes.h>

#include "mcp/call.h"
#include "mcp/content.h"
#include "mcp/result.h"
#include "mcp/tools.h"
#include "runtime/base/str.h"

static const char *state_name(uint32_t state)
{
	static const char *const names[] = { "starting", "running", "idle", "stopping" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

static void write_row(struct buf *b, const struct api_info_row *row)
{
	char size[32];

	buf_printf(b, "- %.*s: %s, started ", KEY_MAX, row->key, state_name(row->state));
	result_duration(b, row->age_ms);
	buf_append_str(b, " ago");
	if (row->state == API_IDLE) {
		buf_append_str(b, ", idle for ");
		result_duration(b, row->idle_for_ms);
	}
	buf_printf(b, ", %" PRIu32 " commands running, %" PRIu32 " processes, %s of memory\n",
		   row->commands, row->processes,
		   str_format_size(row->memory_bytes, size, sizeof(size)));
}

static void write_info(struct buf *text, const struct api_hello *h, const struct api_info_done *info)
{
	buf_printf(text, "sandboxes running (%" PRIu32 "/%" PRIu32 ")%s\n", info->count,
		   info->max_sandboxes, info->count ? ":" : "");
	for (uint32_t i = 0; i < info->count; i++)
		write_row(text, &info->rows[i]);
	if (info->others)
		buf_printf(text, "other users have %" PRIu32 " of the %" PRIu32 "\n", info->others, info->max_sandboxes);
	buf_append_str(text, "a sandbox is recycled after ");
	result_duration(text, h->idle_ms);
	buf_append_str(text, " without a command: processes end, files stay\n");
	tools_write_projects(text, h);
	tools_write_limits(text, h);
	if (h->net != NET_NONE) {
		buf_append_str(text, "\nAllowed: ");
		result_net_allowed(text, h);
	}
}

static void on_reply(struct keeper_request *r, const struct api_header *h, int *fds,
		     size_t fd_count)
{
	struct call *c = r->ctx;
	struct buf text;

	(void)fds;
	(void)fd_count;
	if (h->op == API_FAILED) {
		const struct err *e = &((const struct api_failed *)h)->error;

		call_refuse(c, TOOL_ERROR, e->message, e->remedy);
		return;
	}
	if (h->op != API_INFO_DONE) {
		call_refuse(c, TOOL_ERROR, "unexpected answer from the sandbox service", "");
		return;
	}
	buf_init(&text, 64 * 1024);
	write_info(&text, keeper_client_hello(c->server->keeper, c->peer->owner), (const struct api_info_done *)h);
	if (c->peer->ops) {
		buf_append_str(&text, "\n");
		c->peer->ops->write_headers(c->peer, &text);
	}
	(void)call_result_begin(c);
	content_text(c, text.data);
	buf_done(&text);
	call_result_end(c, false, "");
}

static void start_info(struct call *c, const struct json *args)
{
	(void)args;
	c->request.fn = on_reply;
	keeper_client_info(c->server->keeper, &c->request);
}

static void describe_info(struct buf *b, const struct api_hello *h)
{
	(void)h;
	buf_append_str(b, "List your running sandboxes (state, age, processes, memory) and the limits "
			  "and network policy in force. Changes nothing.");
}

const struct tool tool_sandbox_info = {
	.name = "sandbox_info",
	.title = "Sandbox information",
	.hints = TOOL_READ_ONLY | TOOL_IDEMPOTENT,
	.describe = describe_info,
	.start = start_info,
};
