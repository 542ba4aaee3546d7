/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/exec_end.c - commands: from running to the answer
 *
 * Runs in the keeper. Time is kept here, not by anything inside. What the answer says about memory,
 * processes and processor time is the difference of two readings of the kernel's counters.
 */
#include "runtime/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/egress.h"

enum { EXIT_TIMED_OUT = 124, EXIT_KILLED = 128 + SIGKILL };

/* ---- the end of its time ---- */

static bool was_killed_by_us(const struct command *cmd)
{
	return cmd->state == COMMAND_TERMINATING || cmd->state == COMMAND_KILLING;
}

/* Without a cgroup nothing finds a process that has left its group and session, so the sandbox as a
 * whole ends. */
static void kill_tree(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;
	struct err why = { 0 };

	if (cmd->leaf >= 0) {
		if (cgroup_leaf_kill(&sb->box, (unsigned int)cmd->leaf) < 0)
			log_warn("%s: cgroup.kill: %s", sb->key, strerror(errno));
		return;
	}
	(void)err_set(&why, ERR_GONE, "the sandbox was ended together with a command in it");
	registry_stop(sb, &why);
}

void command_kill(struct command *cmd)
{
	cmd->state = COMMAND_KILLING;
	command_timer(cmd, EXEC_KILL_MS);
	kill_tree(cmd);
}

/* SIGKILL has no effect: it hangs in the kernel. The answer does not wait for that. */
static void give_up_killing(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;
	struct err why = { 0 };

	(void)err_set(&why, ERR_TIMEOUT, "a command in the sandbox could not be killed");
	registry_stop(sb, &why);
	command_answer(cmd);
}

static void terminate(struct command *cmd)
{
	cmd->flags |= API_TIMED_OUT;
	cmd->state = COMMAND_TERMINATING;
	/* Its own child, not yet reaped: the number cannot belong to anybody else. */
	if (cmd->child.pid > 0)
		(void)kill(-cmd->child.pid, SIGTERM);
	command_timer(cmd, EXEC_TERM_MS);
}

static void give_up_starting(struct command *cmd)
{
	struct err e = { 0 };

	(void)err_set(&e, ERR_TIMEOUT, "the command could not be started within %d s",
		      EXEC_START_MS / 1000);
	command_abort(cmd, &e);
}

/* ---- until the tree is gone ---- */

static void settle(struct command *cmd, uint64_t limit_ms)
{
	cmd->state = COMMAND_SETTLING;
	cmd->settle_until_ns = loop_now_ns() + limit_ms * UINT64_C(1000000);
	command_timer(cmd, EXEC_POLL_MS);
}

static void settle_step(struct command *cmd)
{
	bool late = loop_now_ns() >= cmd->settle_until_ns;
	bool killed = (cmd->flags & API_TIMED_OUT) || (!cmd->req.peer && !cmd->req.orphaned);

	if (!late && (!killed || (cmd->leaf >= 0 &&
				  cgroup_leaf_count(&cmd->sandbox->box, (unsigned int)cmd->leaf) > 0))) {
		command_timer(cmd, EXEC_POLL_MS);
		return;
	}
	if (late && killed)
		log_warn("%s: processes of a killed command are still there", cmd->key);
	command_answer(cmd);
}

/* Nothing may ever fork in pid 1's cgroup; if something could, a killed command may live on there. None
 * in it: pid 1 is dying, and waits for us to reap its commands. */
static bool init_is_alone(const struct sandbox *sb)
{
	char pids[64];
	ssize_t len;
	int lines = 0;

	if (sb->box.init_fd < 0)
		return true;
	len = fd_read_file_at(sb->box.init_fd, "cgroup.procs", pids, sizeof(pids));
	for (ssize_t i = 0; i < len; i++)
		lines += pids[i] == '\n';
	return lines == 1;
}

void command_end(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;

	cmd->ended_ns = loop_now_ns();
	loop_timer_cancel(cmd->reg->loop, &cmd->timer);
	if (sb->state == SANDBOX_STOPPING) {
		command_answer(cmd);
	} else if (was_killed_by_us(cmd)) {
		/* What was left of its tree by TERM, or by a process that ended on its own. */
		kill_tree(cmd);
		settle(cmd, EXEC_SETTLE_MS);
	} else if (cmd->exit.signal == SIGKILL) {
		/* Out of memory, killed from inside, or the first sign of the end of pid 1. */
		settle(cmd, init_is_alone(sb) ? EXEC_GRACE_MS : EXEC_SETTLE_MS);
	} else {
		command_answer(cmd);
	}
}

void command_on_timer(struct command *cmd)
{
	switch (cmd->state) {
	case COMMAND_WAITING:
		return;
	case COMMAND_STARTING:
		give_up_starting(cmd);
		return;
	case COMMAND_RUNNING:
		terminate(cmd);
		return;
	case COMMAND_TERMINATING:
		command_kill(cmd);
		return;
	case COMMAND_KILLING:
		give_up_killing(cmd);
		return;
	case COMMAND_SETTLING:
		settle_step(cmd);
		return;
	}
}

/* ---- the answer ---- */

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void add_evidence(struct command *cmd, struct api_exec_done *msg)
{
	struct sandbox *sb = cmd->sandbox;
	struct cgroup_evidence now = { 0 };
	int left;

	if (cmd->leaf < 0 || cgroup_evidence_read(&sb->box, (unsigned int)cmd->leaf, &now) < 0)
		return;
	if (grown(now.oom_kills, cmd->before.oom_kills) > 0)
		msg->flags |= API_OUT_OF_MEMORY;
	if (grown(now.pids_refused, cmd->before.pids_refused) > 0)
		msg->flags |= API_PIDS_REFUSED;
	msg->throttled_usec = grown(now.throttled_usec, cmd->before.throttled_usec);
	left = cgroup_leaf_count(&sb->box, (unsigned int)cmd->leaf);
	/* of a sandbox that is ending they are only not dead yet */
	msg->left_running = left > 0 && !(cmd->flags & API_RECYCLED) ? (uint32_t)left : 0;
}

static int exit_code_of(const struct command *cmd)
{
	if (cmd->flags & API_TIMED_OUT)
		return EXIT_TIMED_OUT;
	return cmd->exited ? cmd->exit.exit_code : EXIT_KILLED;
}

static void add_output(struct command *cmd, struct output_result *out, struct api_exec_done *msg)
{
	if (!cmd->out)
		return;
	output_settle(cmd->out);
	output_result(cmd->out, out);
	msg->total_bytes = out->total_bytes;
	msg->log_bytes = out->log_bytes;
	msg->log_number = out->log_number;
	msg->tail_bytes = out->tail_bytes;
	msg->tail_start = out->tail_start;
	if (out->log_bytes < out->total_bytes)
		msg->flags |= API_OUTPUT_CAPPED;
}

/* What the label's client has not been told yet is told to a front only: a person at a command line is
 * somebody else. */
static void add_lost(struct command *cmd, struct api_exec_done *msg)
{
	struct registry *reg = cmd->reg;
	struct lost told = { 0 };

	if (cmd->req.orphaned)
		lost_add(reg, cmd->owner, cmd->key, (struct lost){ .unanswered = 1 });
	else if (cmd->req.peer && cmd->req.peer->kind == PEER_FRONT)
		told = lost_take(reg, cmd->owner, cmd->key);
	msg->lost = told.commands;
	msg->unanswered = told.unanswered;
	if ((cmd->req.orphaned || told.commands || told.unanswered) &&
	    cmd->sandbox->state == SANDBOX_READY)
		sandbox_write_record(cmd->sandbox); /* it holds the same numbers */
}

/* Once for each sandbox: whoever uses it has to know, and not in every result. */
static void add_scan(struct command *cmd, struct api_exec_done *msg)
{
	const struct scan *scan = &cmd->reg->scan;

	if (!scan->done || cmd->sandbox->scan_told)
		return;
	cmd->sandbox->scan_told = true;
	msg->project_unreadable = scan->found.unreadable;
	msg->project_sockets = scan->found.sockets;
	if (scan->found.partial)
		msg->flags |= API_PROJECT_PARTIAL;
}

static void send_answer(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;
	const struct limits *limits = &cmd->reg->settings->limits;
	struct output_result out = { 0 };
	struct api_exec_done msg = {
		.exit_code = exit_code_of(cmd),
		.flags = cmd->flags,
		.replaced = (cmd->flags & API_CREATED) ? sb->launch.replaced : 0,
		.not_enforced = (CGROUP_ALL & ~sb->box.enforced) |
				(cmd->reg->settings->disk_wanted ? LIMIT_DISK : 0),
		.pids_limit = limits->pids,
		.timeout_ms = cmd->timeout_ms,
		.memory_limit_bytes = limits->memory_bytes,
		.duration_usec = grown(cmd->ended_ns ? cmd->ended_ns : loop_now_ns(),
				       cmd->started_ns) / 1000,
	};

	add_evidence(cmd, &msg);
	msg.blocked_count = egress_blocked(sb, cmd->egress_mark, msg.blocked);
	add_scan(cmd, &msg);
	add_output(cmd, &out, &msg);
	add_lost(cmd, &msg);
	request_answer(&cmd->req, API_EXEC_DONE, &msg, sizeof(msg), out.fds, out.fd_count);
	for (size_t i = 0; i < out.fd_count; i++)
		close_fd(&out.fds[i]);
}

static void on_drain_end(struct output *out, void *ctx)
{
	struct sandbox *sb = ctx;
	struct output **p = &sb->drains;

	while (*p != out)
		p = &(*p)->next;
	*p = out->next;
	sb->drain_count--;
	output_done(out);
	free(out);
}

/* Background children go on writing: somebody has to read, or they die of SIGPIPE. The oldest such
 * pipe goes when there are too many. */
void sandbox_drain(struct sandbox *sb, struct output *out)
{
	struct output **last = &sb->drains;

	if (!out)
		return;
	out->on_eof = on_drain_end;
	out->ctx = sb;
	out->next = sb->drains;
	sb->drains = out;
	if (++sb->drain_count <= OUTPUT_DRAINS_MAX)
		return;
	while ((*last)->next)
		last = &(*last)->next;
	on_drain_end(*last, sb);
}

static void leave_output(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;

	if (cmd->out && output_is_open(cmd->out) && sb->state != SANDBOX_STOPPING)
		sandbox_drain(sb, take_ptr(cmd->out));
}

void command_answer(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;
	struct err why = { 0 };
	bool recycle = (cmd->flags & API_TIMED_OUT) && sb->state == SANDBOX_READY &&
		       !init_is_alone(sb);

	if (recycle)
		cmd->flags |= API_RECYCLED;
	send_answer(cmd);
	leave_output(cmd);
	command_detach(cmd);
	command_free(cmd);
	if (recycle) {
		log_warn("%s: recycled: pid 1 is not alone in its cgroup", sb->key);
		(void)err_set(&why, ERR_GONE, "the sandbox was recycled after a timeout");
		registry_stop(sb, &why);
	} else {
		sandbox_pump(sb);
	}
}
