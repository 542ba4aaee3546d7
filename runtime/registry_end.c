/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/registry_end.c - how a sandbox ends: teardown, reset, removal
 *
 * Runs in the keeper. The order is what keeps files safe: kill -> every process reaped -> cgroup removed
 * -> reset or remove -> lock released. Two overlays on one layer lose files, and the kernel does not
 * refuse the second mount.
 */
#include "runtime/registry.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/base/sys.h"
#include "runtime/egress.h"
#include "runtime/label.h"
#include "runtime/registry_net.h"

enum {
	STOP_DEADLINE_MS = 10 * 1000,
	STOP_RETRY_MS = 5,
	STOP_RETRY_OVERDUE_MS = 1000,
};

static void kill_all(struct sandbox *sb)
{
	if (sb->box.dir_fd >= 0 && cgroup_box_kill(&sb->box) < 0)
		log_warn("%s: cgroup.kill: %s", sb->key, strerror(errno));
	if (sb->launched && sb->init.pid > 0 && sb->launch.pidfd >= 0)
		(void)sys_pidfd_send_signal(sb->launch.pidfd, SIGKILL);
}

void registry_stop(struct sandbox *sb, const struct err *why)
{
	if (sb->state == SANDBOX_STOPPING)
		return;
	sandbox_set_state(sb, SANDBOX_STOPPING);
	sb->why = *why;
	sb->stop_deadline_ns = loop_now_ns() + STOP_DEADLINE_MS * UINT64_C(1000000);
	if (sb->status.fd >= 0)
		loop_remove(&sb->status);
	kill_all(sb);
	sb->reg->hooks.stopping(sb);
	/* Steps are taken from the loop: whoever stops it may still be looking at it. */
	sandbox_set_timer(sb, 0);
}

static void close_drains(struct sandbox *sb)
{
	while (sb->drains) {
		struct output *out = sb->drains;

		sb->drains = out->next;
		output_done(out);
		free(out);
	}
	sb->drain_count = 0;
}

/* Return: true when nothing of the sandbox is left but its entry. */
static bool is_torn_down(struct sandbox *sb)
{
	bool detached = registry_net_detach(sb);

	if (!detached || sb->init.pid > 0 || sb->joiners > 0)
		return false;
	egress_detach(sb);
	if (sb->box.dir_fd >= 0 && cgroup_box_remove(sb->reg->tree, &sb->box) < 0) {
		if (errno == EBUSY) {
			kill_all(sb);
			return false;
		}
		log_warn("%s: its cgroup stays: %s", sb->key, strerror(errno));
		cgroup_box_done(&sb->box);
		sb->box.dir_fd = -1;
	}
	return true;
}

static void tell_when_empty(struct registry *reg)
{
	if (reg->closing && registry_is_empty(reg))
		reg->hooks.empty(reg);
}

static void sweep_on(struct registry *reg);

static void on_swept(struct reap_child *c, struct reap_status status)
{
	struct registry *reg = c->ctx;

	(void)status;
	if (!reg->closing)
		sweep_on(reg);
	tell_when_empty(reg);
}

/* Return: the ids of owner number i of this keeper; NULL: nobody. */
static const struct idrange *ids_in_turn(const struct registry *reg, size_t i)
{
	const struct owner_range *r;

	if (i == 0)
		return reg->owners->first;
	r = &reg->owners->range[i - 1];
	return r->id[0] ? &r->ids : NULL;
}

/* A worker has rights over one owner's ids: the owners take turns, whoever has nothing is skipped. */
static void sweep_on(struct registry *reg)
{
	struct err e = { 0 };

	while (reg->sweep_next <= OWNERS_MAX) {
		const struct idrange *ids = ids_in_turn(reg, reg->sweep_next++);
		pid_t pid = ids ? store_sweep_start(reg->store, ids, &e) : 0;

		if (pid < 0 ||
		    (pid > 0 && reap_watch(reg->reaper, &reg->sweeper, pid, on_swept, reg) < 0))
			log_warn("the trash stays for now: %s", e.message);
		else if (pid > 0)
			return;
		if (reg->sweep_next > OWNERS_MAX && reg->sweep_again) {
			reg->sweep_again = false;
			reg->sweep_next = 0;
		}
	}
}

void registry_sweep(struct registry *reg)
{
	reg->sweep_again = reg->sweeper.pid > 0;
	if (reg->sweep_again)
		return;
	reg->sweep_next = 0;
	sweep_on(reg);
}

static bool is_removing(const struct key_op *op)
{
	return op->req.op == API_RESET || op->req.op == API_REMOVE;
}

/* Needs: the lock, nothing mounted. The tree is only renamed here; a worker deletes it. */
static void run_key_op(struct registry *reg, struct store_label *label, struct key_op *op)
{
	if (is_removing(op) && store_label_reset(reg->store, label, op->workspace, &op->error) < 0)
		return;
	op->error.code = ERR_NONE;
}

/* A sandbox of one call whose call was cut off by the end: whoever would have had it removed is gone. */
static void remove_throwaway(struct sandbox *sb)
{
	struct err e = { 0 };

	if (!sb->reg->closing || sb->ops || strncmp(sb->key, KEY_THROWAWAY, strlen(KEY_THROWAWAY)) != 0)
		return;
	if (store_label_reset(sb->reg->store, &sb->label, true, &e) < 0)
		log_warn("%s: its directory stays for now: %s", sb->key, e.message);
	else
		registry_sweep(sb->reg);
}

/* After the lock was released: who is told may use the label at once. */
static void answer_key_op(struct registry *reg, struct key_op *op)
{
	struct api_done msg = { .was_running = op->was_running };
	bool swept = is_removing(op) && op->error.code == ERR_NONE;

	if (op->error.code != ERR_NONE)
		request_fail(&op->req, &op->error);
	else
		request_answer(&op->req, API_DONE, &msg, sizeof(msg), NULL, 0);
	free(op);
	if (swept)
		registry_sweep(reg);
}

static void release(struct sandbox *sb)
{
	struct registry *reg = sb->reg;
	struct command *waiting;
	struct key_op *ops = sb->ops;

	loop_timer_cancel(reg->loop, &sb->timer);
	reg->hooks.gone(sb);
	waiting = sb->commands;
	close_drains(sb);
	launch_done(&sb->launch);
	remove_throwaway(sb);
	for (struct key_op *op = ops; op; op = op->next)
		run_key_op(reg, &sb->label, op);
	close_fd(&sb->image_fd);
	store_label_done(&sb->label);
	if (!sb->overdue)
		reg->stopping--;
	sandbox_free(sb);
	while (ops) {
		struct key_op *op = ops;

		ops = op->next;
		answer_key_op(reg, op);
	}
	reg->hooks.released(reg, waiting);
	registry_start_queued(reg);
	tell_when_empty(reg);
}

static void say_overdue(struct sandbox *sb)
{
	struct err e = { 0 };

	sb->overdue = true;
	sb->reg->stopping--; /* others shall not wait for its place */
	log_error("%s: still not stopped after %d s", sb->key, STOP_DEADLINE_MS / 1000);
	sandbox_does_not_stop(sb, &e);
	sb->why = e;
	sb->reg->hooks.stopping(sb); /* whoever waits for it to come back */
	while (sb->ops) {
		struct key_op *op = sb->ops;

		sb->ops = op->next;
		request_fail(&op->req, &e);
		free(op);
	}
	registry_start_queued(sb->reg);
}

void registry_step(struct sandbox *sb)
{
	if (sb->state != SANDBOX_STOPPING)
		return;
	if (is_torn_down(sb)) {
		release(sb);
		return;
	}
	if (!sb->overdue && loop_now_ns() >= sb->stop_deadline_ns)
		say_overdue(sb);
	sandbox_set_timer(sb, sb->overdue ? STOP_RETRY_OVERDUE_MS : STOP_RETRY_MS);
}

/* ---- stop, reset, remove ---- */

static int key_op_without_sandbox(struct registry *reg, struct key_op *op, const char *owner,
				  const char *key, struct err *e)
{
	const struct idrange *ids = owners_ids(reg->owners, owner, false, e);
	struct store_label label;
	pid_t holder = 0;

	if (!ids || store_label_open(reg->store, ids, owner, key, false, &label, &holder, e) < 0)
		return -1;
	run_key_op(reg, &label, op);
	store_label_done(&label);
	answer_key_op(reg, op);
	return 0;
}

int registry_key_op(struct registry *reg, struct key_op *op, const char *owner, const char *key,
		    struct err *e)
{
	struct sandbox *sb = registry_find(reg, owner, key);
	struct err why = { 0 };

	if (!sb)
		return key_op_without_sandbox(reg, op, owner, key, e);
	if (sb->overdue) {
		sandbox_does_not_stop(sb, e);
		return -1;
	}
	op->was_running = sb->state == SANDBOX_READY;
	op->next = sb->ops;
	sb->ops = op;
	(void)err_set(&why, ERR_GONE, "the sandbox was stopped by request");
	registry_stop(sb, &why);
	return 0;
}

/* ---- leaving ---- */

static void kill_marked(struct sandbox *sb)
{
	for (unsigned int i = 0; i < CGROUP_LEAVES; i++) {
		if (sb->leaf[i].commands > 0 && cgroup_leaf_kill(&sb->box, i) < 0)
			log_warn("%s: cgroup.kill: %s", sb->key, strerror(errno));
	}
}

void registry_leave(struct registry *reg)
{
	reg->closing = true;
	for (struct sandbox *sb = reg->all; sb; sb = sb->next) {
		if (sb->state == SANDBOX_READY)
			kill_marked(sb);
	}
	lost_done(reg); /* the sandboxes' records have the numbers */
}
