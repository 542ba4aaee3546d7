/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/result.c - what a reply says about a command, in words
 *
 * Runs in the front, without privilege. Everything here comes from the keeper, which is trusted; no
 * byte a command wrote appears in these lines.
 */
#include "mcp/result.h"

#include <inttypes.h>
#include <string.h>

#include "mcp/json_write.h"
#include "runtime/base/buf.h"
#include "runtime/base/str.h"

struct bit_name {
	uint32_t bit;
	const char *name;
};

static void write_bits(struct buf *b, uint32_t bits, const struct bit_name *names, size_t count)
{
	const char *separator = "";

	for (size_t i = 0; i < count; i++) {
		if (!(bits & names[i].bit))
			continue;
		buf_append_str(b, separator);
		buf_append_str(b, names[i].name);
		separator = ", ";
	}
}

void result_controllers(struct buf *b, uint32_t bits)
{
	static const struct bit_name names[] = {
		{ CGROUP_MEMORY, "memory" },
		{ CGROUP_PIDS, "pids" },
		{ CGROUP_CPU, "cpu" },
		{ LIMIT_DISK, "disk" },
	};

	write_bits(b, bits, names, sizeof(names) / sizeof(names[0]));
}

static void write_replaced(struct buf *b, uint32_t bits)
{
	static const struct bit_name names[] = {
		{ LAUNCH_REPLACED_PROC, "/proc" },     { LAUNCH_REPLACED_DEV, "/dev" },
		{ LAUNCH_REPLACED_SYS, "/sys" },       { LAUNCH_REPLACED_TMP, "/tmp" },
		{ LAUNCH_REPLACED_RUN, "/run" },       { LAUNCH_REPLACED_WORKSPACE, "/workspace" },
		{ LAUNCH_REPLACED_OUTPUT, "/output" }, { LAUNCH_REPLACED_MNT, "/mnt" },
		{ LAUNCH_REPLACED_HOME, "/home" },
	};

	buf_append_str(b, " [not a directory, renamed aside: ");
	write_bits(b, bits, names, sizeof(names) / sizeof(names[0]));
	buf_append_str(b, "]");
}

void result_duration(struct buf *b, uint64_t ms)
{
	uint64_t s = ms / 1000, minutes = s / 60, hours = minutes / 60;

	if (s < 120)
		buf_printf(b, "%" PRIu64 " s", s);
	else if (minutes < 120)
		buf_printf(b, "%" PRIu64 " min", minutes);
	else if (hours < 48)
		buf_printf(b, "%" PRIu64 " h %" PRIu64 " min", hours, minutes % 60);
	else
		buf_printf(b, "%" PRIu64 " d %" PRIu64 " h", hours / 24, hours % 24);
}

static void write_limits_hit(struct buf *b, const struct api_exec_done *d)
{
	char size[32];

	if (d->flags & API_TIMED_OUT)
		buf_printf(b, " [timeout %" PRIu64 " s]", d->timeout_ms / 1000);
	if (d->flags & API_OUT_OF_MEMORY)
		buf_printf(b, " [out of memory: limit %s]",
			   str_format_size(d->memory_limit_bytes, size, sizeof(size)));
	if (d->flags & API_PIDS_REFUSED)
		buf_printf(b, " [process limit %" PRIu32 "]", d->pids_limit);
	if (d->throttled_usec >= 1000000)
		buf_printf(b, " [cpu throttled %" PRIu64 " s]", d->throttled_usec / 1000000);
}

/* The client saw a broken connection at most; what the commands wrote is still there. */
static void write_lost(struct buf *b, const struct api_exec_done *d)
{
	if (d->lost)
		buf_printf(b, " [lost in a server restart: %" PRIu32 " command%s; its output so far is in "
			   "/output]", d->lost, d->lost == 1 ? "" : "s");
	if (d->unanswered)
		buf_printf(b, " [ended without an answer: %" PRIu32 " command%s; the output is in "
			   "/output]", d->unanswered, d->unanswered == 1 ? "" : "s");
}

static void write_scan(struct buf *b, const struct api_exec_done *d)
{
	const char *least = d->flags & API_PROJECT_PARTIAL ? "at least " : "";

	if (d->project_unreadable)
		buf_printf(b, " [project: %s%" PRIu32 " files or directories cannot be read]", least,
			   d->project_unreadable);
	if (d->project_sockets)
		buf_printf(b, " [project: %s%" PRIu32 " sockets lead to programs of the host]", least,
			   d->project_sockets);
}

static void write_further_notes(struct buf *b, const struct api_exec_done *d)
{
	if (d->flags & API_TIMEOUT_CLAMPED)
		buf_printf(b, " [timeout lowered to the ceiling of %" PRIu64 " s]",
			   d->timeout_ms / 1000);
	if (d->flags & API_RECYCLED)
		buf_append_str(b, " [sandbox ended: its processes are gone, files stay]");
	else if ((d->flags & API_LEAF_SHARED) && (d->flags & API_TIMED_OUT))
		buf_append_str(b, " [background commands were killed too]");
	if (d->replaced)
		write_replaced(b, d->replaced);
	write_lost(b, d);
	write_scan(b, d);
}

void result_first_line(struct buf *b, const char *key, const struct api_exec_done *d)
{
	buf_printf(b, "[sandbox %s]%s [exit %" PRId32 "]", key,
		   d->flags & API_CREATED ? " [new]" : "", d->exit_code);
	write_limits_hit(b, d);
	if (d->left_running)
		buf_printf(b, " [still running: %" PRIu32 " processes]", d->left_running);
	if (d->not_enforced) {
		buf_append_str(b, " [limits not enforced: ");
		result_controllers(b, d->not_enforced);
		buf_append_str(b, "]");
	}
	write_further_notes(b, d);
}

void result_omitted(struct buf *b, const struct api_exec_done *d, uint64_t omitted, bool kept)
{
	buf_printf(b, "[... %" PRIu64 " characters omitted", omitted);
	if (kept && d->log_number && (d->flags & API_OUTPUT_CAPPED))
		buf_printf(b, "; first %" PRIu64 " of %" PRIu64 " bytes of output: /output/%" PRIu64 ".log",
			   d->log_bytes, d->total_bytes, d->log_number);
	else if (kept && d->log_number)
		buf_printf(b, "; whole output: /output/%" PRIu64 ".log (%" PRIu64 " bytes)",
			   d->log_number, d->log_bytes);
	buf_append_str(b, "]");
}

bool result_is_error(const struct api_exec_done *d)
{
	return d->flags & (API_TIMED_OUT | API_OUT_OF_MEMORY);
}

/* One line of our own; the destinations are what a command named, in the keeper's printable form. */
void result_blocked(struct buf *b, const struct api_exec_done *d, const struct api_hello *h)
{
	uint32_t shown = d->blocked_count < API_BLOCKED_MAX ? d->blocked_count : API_BLOCKED_MAX;

	if (shown == 0)
		return;
	for (uint32_t i = 0; i < shown; i++) {
		buf_append_str(b, "[blocked: ");
		json_write_escaped(b, d->blocked[i], strnlen(d->blocked[i], API_BLOCKED_TEXT_MAX));
		buf_append_str(b, "] ");
	}
	if (d->blocked_count > shown)
		buf_printf(b, "and %" PRIu32 " more ", d->blocked_count - shown);
	buf_append_str(b, "allowed: ");
	result_net_allowed(b, h);
	buf_append_str(b, "\\n");
}

void result_net_allowed(struct buf *b, const struct api_hello *h)
{
	if (h->net == NET_INTERNET)
		buf_append_str(b, "the internet, but not local networks and this host");
	else if (h->net == NET_ALLOWLIST && h->net_allow[0])
		buf_append_str(b, h->net_allow);
	else
		buf_append_str(b, "nothing");
}
