/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/registry.c - which sandboxes there are, who has to give way, and how each begins
 *
 * Runs in the keeper. Input are keys that were checked and the settings; nothing a sandbox wrote is
 * read here. How one ends is in registry_end.c.
 */
#include "runtime/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/proc.h"
#include "runtime/base/str.h"
#include "runtime/egress.h"
#include "runtime/registry_net.h"

enum { CREATE_DEADLINE_MS = 15 * 1000 };

static void begin(struct sandbox *sb);
static void on_timer(struct loop_timer *t);

/* ---- the table ---- */

static unsigned int bucket_of(const char *key)
{
	/* A key ends in six digits of a hash of its label. */
	size_t len = strlen(key);
	unsigned int h = 0;

	for (size_t i = len > 3 ? len - 3 : 0; i < len; i++)
		h = h * 31 + (unsigned char)key[i];
	return h % REGISTRY_BUCKETS;
}

struct sandbox *registry_find(struct registry *reg, const char *owner, const char *key)
{
	struct sandbox *sb = reg->bucket[bucket_of(key)];

	while (sb && (strcmp(sb->key, key) != 0 || strcmp(sb->owner, owner) != 0))
		sb = sb->next_in_bucket;
	return sb;
}

bool registry_has_owner(const char *owner, void *ctx)
{
	const struct registry *reg = ctx;
	const struct sandbox *sb = reg->all;

	while (sb && strcmp(sb->owner, owner) != 0)
		sb = sb->next;
	return sb != NULL;
}

struct sandbox *sandbox_new(struct registry *reg, const struct idrange *ids,
			    struct store_label *label)
{
	struct sandbox *sb = calloc(1, sizeof(*sb));
	unsigned int b = bucket_of(label->key);

	if (!sb)
		return NULL;
	sb->reg = reg;
	sb->ids = ids;
	sb->label = *label;
	sb->image_fd = -1;
	memcpy(sb->owner, label->owner, sizeof(sb->owner));
	memcpy(sb->key, label->key, sizeof(sb->key));
	sb->status.fd = sb->init_watch.fd = sb->device.fd = sb->tool_hold = -1;
	sb->box.dir_fd = sb->box.init_fd = -1;
	for (size_t i = 0; i < CGROUP_LEAVES; i++)
		sb->box.leaf_fd[i] = -1;
	sb->launch = (struct launch)LAUNCH_INIT;
	sb->generation = ++reg->generation;
	sb->next_in_bucket = reg->bucket[b];
	reg->bucket[b] = sb;
	sb->next = reg->all;
	sb->link = &reg->all;
	if (sb->next)
		sb->next->link = &sb->next;
	reg->all = sb;
	return sb;
}

void sandbox_free(struct sandbox *sb)
{
	struct sandbox **p = &sb->reg->bucket[bucket_of(sb->key)];

	while (*p != sb)
		p = &(*p)->next_in_bucket;
	*p = sb->next_in_bucket;
	*sb->link = sb->next;
	if (sb->next)
		sb->next->link = sb->link;
	free(sb);
}

static uint32_t *counter_of(struct registry *reg, enum sandbox_state state)
{
	switch (state) {
	case SANDBOX_QUEUED:
		return &reg->queued;
	case SANDBOX_STOPPING:
		return &reg->stopping;
	case SANDBOX_CREATING:
	case SANDBOX_READY:
		break;
	}
	return &reg->live;
}

void sandbox_set_state(struct sandbox *sb, enum sandbox_state state)
{
	(*counter_of(sb->reg, sb->state))--;
	(*counter_of(sb->reg, state))++;
	sb->state = state;
}

void sandbox_set_timer(struct sandbox *sb, uint64_t delay_ms)
{
	if (loop_timer_set(sb->reg->loop, &sb->timer, delay_ms, on_timer, sb) < 0)
		log_error("%s: no memory for a timer", sb->key);
}

/* ---- making room ---- */

static bool is_idle(const struct sandbox *sb)
{
	return sb->state == SANDBOX_READY && !sb->commands;
}

/* owner NULL: of anybody's. */
static struct sandbox *least_recently_used(struct registry *reg, const char *owner)
{
	struct sandbox *oldest = NULL;

	for (struct sandbox *sb = reg->all; sb; sb = sb->next) {
		if (!is_idle(sb) || (owner && strcmp(sb->owner, owner) != 0))
			continue;
		if (!oldest || sb->idle_since_ns < oldest->idle_since_ns)
			oldest = sb;
	}
	return oldest;
}

/* A place among max_sandboxes, possibly one that is still being vacated. Owners share them: whoever wants
 * more gives one of its own first, and nobody's running command ever gives way. */
static int make_room(struct registry *reg, const char *owner, struct err *e)
{
	struct err why = { 0 };
	struct sandbox *victim;

	if (reg->live + reg->queued < reg->settings->max_sandboxes)
		return 0;
	victim = least_recently_used(reg, owner);
	if (!victim)
		victim = least_recently_used(reg, NULL);
	if (!victim)
		return err_set(e, ERR_BUSY,
			       "all %u sandboxes are in use; try again when one is free",
			       reg->settings->max_sandboxes);
	log_info("%s: stopped to make room", victim->key);
	(void)err_set(&why, ERR_GONE, "the sandbox was stopped to make room for another");
	registry_stop(victim, &why);
	return 0;
}

void registry_start_queued(struct registry *reg)
{
	struct sandbox *oldest;

	while (!reg->paused && reg->queued > 0 && reg->live + reg->stopping < reg->settings->max_sandboxes) {
		oldest = NULL;
		for (struct sandbox *sb = reg->all; sb; sb = sb->next) {
			if (sb->state == SANDBOX_QUEUED)
				oldest = sb; /* newest first: the last one found has waited longest */
		}
		if (!oldest)
			return;
		begin(oldest);
	}
}

/* ---- creation ---- */

void sandbox_init_ended(struct sandbox *sb)
{
	struct err why = { 0 };

	if (sb->state == SANDBOX_READY)
		log_warn("%s: pid 1 ended", sb->key);
	(void)err_set(&why, ERR_GONE, "the sandbox ended while it was being used");
	registry_stop(sb, &why);
	registry_step(sb);
}

static void on_init_reaped(struct reap_child *c, struct reap_status status)
{
	(void)status;
	sandbox_init_ended(c->ctx);
}

void sandbox_write_record(struct sandbox *sb)
{
	const struct settings *s = sb->reg->settings;
	struct lost lost = lost_of(sb->reg, sb->owner, sb->key);
	struct cgroup_record rec = { .limits = s->limits, .best_effort = s->limits_best_effort, .net = sb->launch.inside.mode,
				     .uplink = sb->launch.inside.uplink, .id_base = sb->ids->base, .keeper_pid = getpid(),
				     .init_pid = sb->launch.pid,
				     .init_start_time = proc_start_time(sb->launch.pid),
				     .generation = sb->generation, .created_ns = sb->created_ns,
				     .trust = s->trust ? s->trust->id : 0,
				     .lost = lost.commands, .unanswered = lost.unanswered };

	if (sb->box.dir_fd < 0)
		return;
	(void)str_copy(rec.profile, sizeof(rec.profile), s->profile->name);
	(void)str_copy(rec.image, sizeof(rec.image), s->image);
	(void)proc_boot_id(rec.boot_id);
	if (cgroup_record_write(&sb->box, &rec) < 0)
		log_warn("%s: no record on its cgroup: %s", sb->key, strerror(errno));
}

void sandbox_connected(struct sandbox *sb)
{
	sandbox_set_state(sb, SANDBOX_READY);
	sb->idle_since_ns = loop_now_ns();
	loop_timer_cancel(sb->reg->loop, &sb->timer);
	sandbox_write_record(sb);
	sb->reg->hooks.ready(sb);
	registry_settle(sb);
}

static void on_status(struct loop_source *s, uint32_t events)
{
	struct sandbox *sb = s->ctx;
	struct err e = { 0 };
	int rc = launch_progress(&sb->launch, &e);

	(void)events;
	if (rc == 0)
		return;
	loop_remove(&sb->status);
	if (rc < 0) {
		(void)err_wrap(&e, "start sandbox %s", sb->key);
		registry_stop(sb, &e);
		return;
	}
	close_fd(&sb->launch.status_fd);
	rc = egress_attach(sb, &e) < 0 ? -1 : registry_net_attach(sb, &e);
	if (rc > 0)
		sandbox_connected(sb);
	if (rc < 0) {
		(void)err_wrap(&e, "start sandbox %s", sb->key);
		registry_stop(sb, &e);
	}
}

static int launch(struct sandbox *sb, struct err *e)
{
	struct registry *reg = sb->reg;
	const struct profile *p = reg->settings->profile;
	struct launch_request req = {
		.key = sb->key,
		.profile = p,
		.ids = sb->ids,
		.uplink = &reg->uplink,
		.net = net_grant_of(reg->settings, sb->owner).mode,
		.lower_fd = sb->image_fd,
		.layer_fd = p->layer_kept ? sb->label.layer_fd : -1,
		.workspace_fd = p->workspace_tmpfs_bytes ? -1 : sb->label.workspace_fd,
		.output_fd = sb->label.output_fd,
		.projects = reg->projects,
		.trust = reg->settings->trust,
		.cgroup_fd = sb->box.init_fd,
		.pids = reg->settings->limits.pids,
		.die_with_keeper = !reg->survives,
		.rights = reg->rights,
	};

	if (launch_start(&req, &sb->launch, e) < 0)
		return -1;
	sb->launched = true;
	if (reap_watch(reg->reaper, &sb->init, sb->launch.pid, on_init_reaped, sb) < 0)
		return err_set(e, ERR_SYSTEM, "pid 1 is not our child");
	return loop_add(reg->loop, &sb->status, sb->launch.status_fd, EPOLLIN, on_status, sb, e);
}

static int create(struct sandbox *sb, struct err *e)
{
	struct registry *reg = sb->reg;

	if (output_logs_init(&sb->logs, sb->label.output_fd, reg->settings->output_max_bytes, e) < 0)
		return -1;
	sb->image_fd = store_image_open(reg->store, reg->settings->image, e);
	if (sb->image_fd < 0)
		return -1;
	if (cgroup_box_create(reg->tree, sb->owner, sb->key, &reg->settings->limits,
			      reg->settings->limits_best_effort, &sb->box, e) < 0)
		return -1;
	return launch(sb, e);
}

static void begin(struct sandbox *sb)
{
	struct err e = { 0 };

	sandbox_set_state(sb, SANDBOX_CREATING);
	sb->created_ns = loop_now_ns();
	sandbox_set_timer(sb, CREATE_DEADLINE_MS);
	if (create(sb, &e) < 0) {
		(void)err_wrap(&e, "start sandbox %s", sb->key);
		registry_stop(sb, &e);
	}
}

void sandbox_does_not_stop(const struct sandbox *sb, struct err *e)
{
	(void)err_set(e, ERR_TIMEOUT, "sandbox %s does not stop: a process in it cannot be killed",
		      sb->key);
}

static int check_disk(struct registry *reg, struct err *e)
{
	if (store_min_free(reg->store, reg->settings->min_free_bytes, e) == 0)
		return 0;
	if (e->code == ERR_NOSPACE)
		return err_set(e, ERR_NOSPACE, "host disk almost full, refusing to start a sandbox");
	return -1;
}

struct sandbox *registry_get(struct registry *reg, const char *owner, const char *key,
			     bool *ret_created, struct err *e)
{
	struct sandbox *sb = registry_find(reg, owner, key);
	const struct idrange *ids;
	struct store_label label;
	pid_t holder = 0;

	*ret_created = false;
	if (sb && sb->overdue) {
		sandbox_does_not_stop(sb, e);
		return NULL;
	}
	if (sb)
		return sb;
	if (reg->closing) {
		(void)err_set(e, ERR_GONE, "the server is ending");
		return NULL;
	}
	/* Everything that can refuse this label comes before an idle sandbox has to give way. */
	if (check_disk(reg, e) < 0)
		return NULL;
	ids = owners_ids(reg->owners, owner, true, e);
	if (!ids || store_label_open(reg->store, ids, owner, key, true, &label, &holder, e) < 0)
		return NULL;
	if (make_room(reg, owner, e) < 0) {
		store_label_done(&label);
		return NULL;
	}
	sb = sandbox_new(reg, ids, &label);
	if (!sb) {
		store_label_done(&label);
		(void)err_set(e, ERR_NOMEM, "no memory for a sandbox");
		return NULL;
	}
	sb->state = SANDBOX_QUEUED;
	reg->queued++;
	/* Begun from the loop: the caller is still about to attach its command. */
	sandbox_set_timer(sb, 0);
	*ret_created = true;
	return sb;
}

static void on_timer(struct loop_timer *t)
{
	struct sandbox *sb = t->ctx;
	struct err why = { 0 };

	switch (sb->state) {
	case SANDBOX_QUEUED:
		registry_start_queued(sb->reg); /* full: goes on when a place is vacated */
		return;
	case SANDBOX_CREATING:
		(void)err_set(&why, ERR_TIMEOUT, "sandbox %s did not start within %d s", sb->key,
			      CREATE_DEADLINE_MS / 1000);
		registry_stop(sb, &why);
		return;
	case SANDBOX_READY:
		if (!is_idle(sb))
			return;
		log_info("%s: stopped after its idle time", sb->key);
		(void)err_set(&why, ERR_GONE, "the sandbox was stopped after its idle time");
		registry_stop(sb, &why);
		return;
	case SANDBOX_STOPPING:
		registry_step(sb);
		return;
	}
}

void registry_busy(struct sandbox *sb)
{
	if (sb->state == SANDBOX_READY)
		loop_timer_cancel(sb->reg->loop, &sb->timer);
}

void registry_settle(struct sandbox *sb)
{
	if (!is_idle(sb))
		return;
	sb->idle_since_ns = loop_now_ns();
	if (sb->reg->settings->idle_ms > 0)
		sandbox_set_timer(sb, sb->reg->settings->idle_ms);
}

void registry_close(struct registry *reg, const struct err *why)
{
	reg->closing = true;
	for (struct sandbox *sb = reg->all; sb; sb = sb->next)
		registry_stop(sb, why);
}

bool registry_is_empty(const struct registry *reg)
{
	return !reg->all && reg->sweeper.pid == 0;
}

enum api_state sandbox_api_state(const struct sandbox *sb)
{
	switch (sb->state) {
	case SANDBOX_QUEUED:
	case SANDBOX_CREATING:
		return API_CREATING;
	case SANDBOX_STOPPING:
		return API_STOPPING;
	case SANDBOX_READY:
		break;
	}
	return is_idle(sb) ? API_IDLE : API_RUNNING;
}
