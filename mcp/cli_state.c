/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_state.c - "ps", "stop", "reset", "rm": look at and end sandboxes
 *
 * Runs as the user (root of the storage namespace). What runs belongs to the keeper that holds its
 * lock and is asked of it; what does not run is changed here, under the same lock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "mcp/cli.h"
#include "mcp/cli_client.h"
#include "mcp/cli_start.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/str.h"
#include "runtime/label.h"
#include "runtime/owners.h"
#include "runtime/store.h"

enum { KEEPERS_MAX = 256, LISTING_MAX = 4 * 1024 * 1024 };

/* The state directory of a call, opened. */
struct state {
	struct start start;
	struct store store;
	bool open;
	char key[KEY_MAX];
};

static int state_open(struct cli_call *call, struct state *s, struct err *e)
{
	*s = (struct state){ 0 };
	if (start_settings(call, &s->start, e) < 0)
		return -1;
	if (call->arg_count > 0 && label_to_key(call->args[0], strlen(call->args[0]), s->key, e) < 0)
		return -1;
	if (start_ids(call, &s->start, e) < 0 || store_open(&s->store, s->start.settings.home, e) < 0)
		return -1;
	s->open = true;
	return 0;
}

static void state_done(struct state *s)
{
	if (s->open)
		store_done(&s->store);
	start_done(&s->start);
}

struct listing {
	struct buf *out;
	bool json;
	size_t rows;
};

static const char *state_text(uint32_t state)
{
	static const char *const names[] = {
		[API_CREATING] = "creating",
		[API_RUNNING] = "running",
		[API_IDLE] = "idle",
		[API_STOPPING] = "stopping",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static void list_row_json(struct listing *l, const struct api_info_row *row, pid_t keeper)
{
	buf_printf(l->out,
		   "%s\n  {\"key\":\"%s\",\"state\":\"%s\",\"processes\":%" PRIu32 ",\"commands\":%" PRIu32
		   ",\"age_seconds\":%" PRIu64 ",\"idle_seconds\":%" PRIu64 ",\"memory_bytes\":%" PRIu64
		   ",\"keeper_pid\":%d}",
		   l->rows ? "," : "", row->key, state_text(row->state), row->processes, row->commands,
		   row->age_ms / 1000, row->idle_for_ms / 1000, row->memory_bytes, (int)keeper);
}

static void list_row_text(struct listing *l, const struct api_info_row *row, pid_t keeper)
{
	char memory[32];

	if (l->rows == 0)
		buf_printf(l->out, "%-32s %-9s %9s %8s %8s %10s %8s\n", "SANDBOX", "STATE", "PROCESSES",
			   "AGE", "IDLE", "MEMORY", "KEEPER");
	buf_printf(l->out, "%-32s %-9s %9" PRIu32 " %7" PRIu64 "s %7" PRIu64 "s %10s %8d\n", row->key,
		   state_text(row->state), row->processes, row->age_ms / 1000, row->idle_for_ms / 1000,
		   row->memory_bytes ? str_format_size(row->memory_bytes, memory, sizeof(memory)) : "-",
		   (int)keeper);
}

static int list_rows(struct listing *l, const struct api_info_done *info, size_t size, pid_t keeper,
		     struct err *e)
{
	if (info->h.op != API_INFO_DONE || info->count > API_INFO_MAX ||
	    size != sizeof(*info) + info->count * sizeof(info->rows[0]))
		return err_set(e, ERR_PROTOCOL, "ps: the keeper gave a damaged answer");
	for (uint32_t i = 0; i < info->count; i++) {
		if (!memchr(info->rows[i].key, '\0', KEY_MAX) || !str_is_key(info->rows[i].key))
			return err_set(e, ERR_PROTOCOL, "ps: the keeper gave a damaged answer");
		if (l->json)
			list_row_json(l, &info->rows[i], keeper);
		else
			list_row_text(l, &info->rows[i], keeper);
		l->rows++;
	}
	return 0;
}

/* A keeper that ended a moment ago, or left its socket when it was killed, has no sandbox. */
static int list_keeper(struct state *s, struct listing *l, pid_t keeper, struct err *e)
{
	struct api_key_request request = {
		.h = { .version = API_VERSION, .op = API_INFO, .size = sizeof(request), .id = 1 },
	};
	_cleanup_free_ struct api_info_done *info = malloc(API_MSG_MAX);
	struct err gone = { 0 };
	struct client c;
	int r;

	if (!info || str_copy(request.owner, sizeof(request.owner), s->start.settings.owner) < 0)
		return err_set(e, ERR_NOMEM, "ps: out of memory");
	if (client_connect(&c, &s->store, keeper, &gone) < 0) {
		client_close(&c);
		return 0;
	}
	if (client_send(&c, &request, &gone) < 0 ||
	    client_receive(&c, info, API_MSG_MAX, NULL, NULL, &gone) < 0)
		r = 0;
	else
		r = list_rows(l, info, info->h.size, keeper, e);
	client_close(&c);
	return r;
}

static int list_keepers(struct state *s, struct listing *l, struct err *e)
{
	pid_t keepers[KEEPERS_MAX];
	ssize_t count = client_list_keepers(&s->store, keepers, KEEPERS_MAX, e);

	for (ssize_t i = 0; i < count; i++) {
		if (list_keeper(s, l, keepers[i], e) < 0)
			return -1;
	}
	return count < 0 ? -1 : 0;
}

int cli_ps(struct cli_call *call, struct err *e)
{
	struct buf out;
	struct listing l = { .out = &out, .json = cli_option(call, "json") != NULL };
	struct state s;
	int status = -1;

	buf_init(&out, LISTING_MAX);
	if (l.json)
		buf_append_str(&out, "{\"sandboxes\":[");
	if (state_open(call, &s, e) == 0 && list_keepers(&s, &l, e) == 0)
		status = CLI_OK;
	if (l.json)
		buf_append_str(&out, l.rows ? "\n]}\n" : "]}\n");
	if (status == CLI_OK && out.len > 0 && fwrite(out.data, 1, out.len, stdout) != out.len)
		status = err_sys(e, "ps: standard output");
	buf_done(&out);
	state_done(&s);
	return status;
}

/* Ask whoever runs it. Return: 1 asked and done, 0 nobody runs it, -1. */
static int ask_holder(struct state *s, uint16_t op, bool workspace, struct err *e)
{
	const char *owner = s->start.settings.owner;
	pid_t holder = store_label_holder(&s->store, owner, s->key);
	struct client c;
	int r;

	if (holder < 0)
		return err_set(e, ERR_NOT_FOUND, "%s: no such sandbox", s->key);
	if (holder == 0)
		return 0;
	r = client_connect(&c, &s->store, holder, e);
	if (r == 0)
		r = client_key_request(&c, op, owner, s->key, workspace, e);
	client_close(&c);
	return r < 0 ? -1 : 1;
}

/* The rest of what was thrown away is deleted before the verb ends. */
static void sweep(struct state *s, const struct idrange *ids)
{
	struct err ignored = { 0 };
	pid_t worker = store_sweep_start(&s->store, ids, &ignored);

	if (worker > 0)
		(void)waitpid(worker, NULL, 0);
}

static int throw_away(struct state *s, bool workspace, struct err *e)
{
	const struct settings *settings = &s->start.settings;
	struct store_label label;
	struct idrange ids;
	pid_t holder = 0;
	int r;

	if (owners_range_init(&s->store, settings->subid, settings->owner, false, &ids, e) < 0)
		return -1;
	r = store_label_open(&s->store, &ids, settings->owner, s->key, false, &label, &holder, e);
	if (r == 0) {
		r = store_label_reset(&s->store, &label, workspace, e);
		store_label_done(&label);
		if (r == 0)
			sweep(s, &ids);
	}
	userns_range_done(&ids);
	return r;
}

static int change(struct cli_call *call, uint16_t op, bool workspace, struct err *e)
{
	struct state s;
	int r = state_open(call, &s, e);

	if (r == 0)
		r = ask_holder(&s, op, workspace, e);
	if (r == 0 && op != API_STOP)
		r = throw_away(&s, workspace, e);
	state_done(&s);
	return r < 0 ? -1 : CLI_OK;
}

int cli_stop(struct cli_call *call, struct err *e)
{
	return change(call, API_STOP, false, e);
}

int cli_reset(struct cli_call *call, struct err *e)
{
	return change(call, API_RESET, false, e);
}

int cli_rm(struct cli_call *call, struct err *e)
{
	return change(call, API_REMOVE, cli_option(call, "workspace") != NULL, e);
}
