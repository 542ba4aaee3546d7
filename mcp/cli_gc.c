/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_gc.c - "gc": remove labels whose workspace nobody has written to for long
 *
 * Runs as the user (root of the storage namespace), from a timer or by hand. A label is judged and removed
 * under its lock, which whoever runs it holds: what is in use is never touched, and what cannot be
 * judged is kept. The label goes whole, its workspace, its layer and its output, through the trash.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mcp/cli.h"
#include "mcp/cli_start.h"
#include "runtime/age.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/owners.h"
#include "runtime/store.h"

enum { SECONDS_PER_DAY = 24 * 3600 };

struct gc {
	struct start start;
	struct store store;
	int64_t now, oldest; /* written to before it: old enough */
	bool apply;
	uint64_t removed, kept, unknown, busy, failed;
	const char *owner; /* at work on */
	struct idrange ids;
};

static int remove_label(struct gc *g, struct store_label *label, int64_t newest, struct err *e)
{
	int64_t days = (g->now - newest) / SECONDS_PER_DAY;

	if (g->apply && store_label_reset(&g->store, label, true, e) < 0)
		return -1;
	g->removed++;
	printf("%s %s %s (%" PRId64 " days)\n", g->apply ? "removed" : "would remove", g->owner, label->key, days);
	return 0;
}

static int judge_label(struct gc *g, struct store_label *label, struct err *e)
{
	int64_t newest = 0;
	int known = label->workspace_fd < 0 ? 0 : age_newest(&g->ids, label->workspace_fd, &newest, e);

	if (known < 0)
		return -1;
	if (known == 0) {
		g->unknown++;
		fprintf(stderr, "mcp-sandbox: kept %s %s: not everything in it can be looked at\n", g->owner,
			label->key);
		return 0;
	}
	if (newest < g->oldest)
		return remove_label(g, label, newest, e);
	g->kept++;
	return 0;
}

static void collect_label(struct gc *g, const char *key)
{
	struct err e = { 0 };
	struct store_label label;
	pid_t holder = 0;
	int r = store_label_open(&g->store, &g->ids, g->owner, key, false, &label, &holder, &e);

	if (r < 0 && e.code == ERR_BUSY) {
		g->busy++;
		return;
	}
	if (r == 0) {
		r = judge_label(g, &label, &e);
		store_label_done(&label);
	}
	if (r < 0 && e.code != ERR_NOT_FOUND) {
		g->failed++;
		cli_print_error(&e);
	}
}

typedef void gc_name_fn(struct gc *g, const char *name);

/* Names are gathered before anything is removed: directories are not read while they change. */
static int for_each(struct gc *g, int parent_fd, const char *path, bool (*is_ours)(const char *name),
		    gc_name_fn *fn, struct err *e)
{
	int fd = fd_open_beneath(parent_fd, path, O_RDONLY | O_DIRECTORY, 0);
	struct dirent **names = NULL;
	char self[64];
	int count;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "gc: open the state directory");
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	count = scandir(self, &names, NULL, alphasort);
	close_fd(&fd);
	if (count < 0)
		return err_sys(e, "gc: read the state directory");
	for (int i = 0; i < count; i++) {
		if (is_ours(names[i]->d_name))
			fn(g, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	return 0;
}

static void sweep(struct gc *g)
{
	struct err e = { 0 };
	pid_t worker = store_sweep_start(&g->store, &g->ids, &e);

	if (worker > 0)
		(void)waitpid(worker, NULL, 0);
	else if (worker < 0)
		cli_print_error(&e);
}

static void collect_owner(struct gc *g, const char *owner)
{
	struct err e = { 0 };

	if (owners_range_init(&g->store, g->start.settings.subid, owner, false, &g->ids, &e) < 0) {
		g->failed++;
		cli_print_error(&e);
		return;
	}
	g->owner = owner;
	if (for_each(g, g->store.owners_fd, owner, str_is_key, collect_label, &e) < 0) {
		g->failed++;
		cli_print_error(&e);
	}
	if (g->apply)
		sweep(g);
	userns_range_done(&g->ids);
}

static int collect(struct gc *g, struct err *e)
{
	if (for_each(g, g->store.owners_fd, ".", str_is_owner_id, collect_owner, e) < 0)
		return -1;
	fprintf(stderr, "mcp-sandbox: %" PRIu64 " %s, %" PRIu64 " kept, %" PRIu64 " in use, %" PRIu64
		" that cannot be judged%s\n", g->removed, g->apply ? "removed" : "would be removed", g->kept,
		g->busy, g->unknown, g->apply ? "" : "; nothing was changed (--apply)");
	return g->failed ? CLI_FAILURE : CLI_OK;
}

int cli_gc(struct cli_call *call, struct err *e)
{
	struct gc g = { .now = (int64_t)time(NULL) };
	int status = -1;

	g.apply = cli_option(call, "apply") != NULL || config_number(&call->config, CONFIG_DRY_RUN) == 0;
	g.oldest = g.now - (int64_t)config_number(&call->config, CONFIG_MAX_AGE_DAYS) * SECONDS_PER_DAY;
	if (start_settings(call, &g.start, e) == 0 && start_ids(call, &g.start, e) == 0 &&
	    store_open(&g.store, g.start.settings.home, e) == 0) {
		status = collect(&g, e);
		store_done(&g.store);
	}
	start_done(&g.start);
	return status;
}
