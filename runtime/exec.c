/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/exec.c - commands: from the request to a place in a sandbox
 *
 * Runs in the keeper. The command's text, working directory and arguments are bytes it hands on and
 * never interprets. A command belongs to a sandbox's list from the moment its label is known until it
 * is answered; requests for a sandbox that is being created or stopped wait there.
 */
#include "runtime/exec.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"

static void place(struct command *cmd);

static struct command *command_of(struct request *req)
{
	return (struct command *)((char *)req - offsetof(struct command, req));
}

static void on_timer(struct loop_timer *t)
{
	command_on_timer(t->ctx);
}

void command_timer(struct command *cmd, uint64_t delay_ms)
{
	if (loop_timer_set(cmd->reg->loop, &cmd->timer, delay_ms, on_timer, cmd) < 0)
		log_error("%s: no memory for a timer", cmd->key);
}

/* ---- attaching to a sandbox ---- */

static void attach(struct command *cmd, struct sandbox *sb)
{
	struct command **p = &sb->commands;

	while (*p)
		p = &(*p)->next;
	cmd->next = NULL;
	*p = cmd;
	cmd->sandbox = sb;
	registry_busy(sb);
}

static void leave_leaf(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;

	if (cmd->leaf >= 0) {
		cgroup_leaf_unmark(&sb->box, (unsigned int)cmd->leaf);
		sb->leaf[cmd->leaf].commands--;
		sb->leaf[cmd->leaf].last_ns = loop_now_ns();
	}
	cmd->leaf = -1;
}

void command_detach(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;
	struct command **p;

	command_give_up(cmd, false);
	if (!sb)
		return;
	for (p = &sb->commands; *p; p = &(*p)->next) {
		if (*p == cmd) {
			*p = cmd->next;
			break;
		}
	}
	leave_leaf(cmd);
	cmd->sandbox = NULL;
	registry_settle(sb);
}

void command_free(struct command *cmd)
{
	loop_timer_cancel(cmd->reg->loop, &cmd->timer);
	reap_forget(cmd->reg->reaper, &cmd->child);
	if (cmd->out) {
		output_done(cmd->out);
		free(cmd->out);
	}
	close_fd(&cmd->text_fd);
	free(cmd->text);
	free(cmd->cwd);
	free(cmd);
}

void command_refuse(struct command *cmd, const struct err *error)
{
	request_fail(&cmd->req, error);
	command_detach(cmd);
	command_free(cmd);
}

void command_abort(struct command *cmd, const struct err *error)
{
	struct sandbox *sb = cmd->sandbox;

	request_fail(&cmd->req, error);
	command_give_up(cmd, true);
	command_detach(cmd);
	command_free(cmd);
	/* Without a cgroup nothing else finds what the joiner may have made. */
	if (sb->box.dir_fd < 0)
		registry_stop(sb, error);
	sandbox_pump(sb);
}

/* Opening comes with it: a leaf that was killed is made anew, which fails while it is still dying. */
static bool leaf_is_free(struct sandbox *sb, unsigned int i)
{
	struct leaf_use *leaf = &sb->leaf[i];
	struct err ignored = { 0 };

	if (leaf->used && cgroup_leaf_count(&sb->box, i) == 0 &&
	    cgroup_leaf_open(&sb->box, i, &ignored) >= 0)
		leaf->used = false;
	return !leaf->used;
}

/* A leaf of its own for each command, so that a timeout kills nothing else. When background work
 * holds every one, the one that has been left alone longest is shared.
 * Return: index, -1 when a command runs in each. */
static int choose_leaf(struct sandbox *sb, bool *ret_shared)
{
	int oldest = -1;

	*ret_shared = false;
	for (int i = 0; i < CGROUP_LEAVES; i++) {
		struct leaf_use *leaf = &sb->leaf[i];

		if (leaf->commands > 0)
			continue;
		if (leaf_is_free(sb, (unsigned int)i))
			return i;
		if (oldest < 0 || leaf->last_ns < sb->leaf[oldest].last_ns)
			oldest = i;
	}
	*ret_shared = oldest >= 0;
	return oldest;
}

static void take_leaf(struct command *cmd, int leaf, bool shared)
{
	struct sandbox *sb = cmd->sandbox;

	cmd->leaf = leaf;
	if (leaf >= 0) {
		sb->leaf[leaf].commands++;
		sb->leaf[leaf].used = true;
	}
	if (shared)
		cmd->flags |= API_LEAF_SHARED;
}

int command_change_leaf(struct command *cmd)
{
	struct sandbox *sb = cmd->sandbox;
	bool shared = false;
	int leaf;

	cgroup_leaf_spend(&sb->box, (unsigned int)cmd->leaf);
	leave_leaf(cmd);
	leaf = choose_leaf(sb, &shared);
	take_leaf(cmd, leaf, shared);
	return leaf < 0 ? -1 : 0;
}

static void start_in_leaf(struct command *cmd, int leaf, bool shared)
{
	struct err e = { 0 };

	take_leaf(cmd, leaf, shared);
	if (command_start(cmd, &e) < 0)
		command_refuse(cmd, &e);
}

void sandbox_pump(struct sandbox *sb)
{
	struct command *next;

	if (sb->state != SANDBOX_READY || sb->reg->paused)
		return;
	for (struct command *cmd = sb->commands; cmd; cmd = next) {
		bool shared = false;
		int leaf = -1;

		next = cmd->next;
		if (cmd->state != COMMAND_WAITING)
			continue;
		if (sb->box.dir_fd >= 0) {
			leaf = choose_leaf(sb, &shared);
			if (leaf < 0)
				return;
		}
		start_in_leaf(cmd, leaf, shared);
		if (sb->state != SANDBOX_READY)
			return;
	}
}

static void place(struct command *cmd)
{
	struct err e = { 0 };
	bool created = false;
	struct sandbox *sb = registry_get(cmd->reg, cmd->owner, cmd->key, &created, &e);

	if (!sb) {
		command_refuse(cmd, &e);
		return;
	}
	if (created)
		cmd->flags |= API_CREATED;
	attach(cmd, sb);
	sandbox_pump(sb);
}

/* ---- what happens to the sandbox ---- */

static void on_sandbox_stopping(struct sandbox *sb)
{
	struct command *next;

	for (struct command *cmd = sb->commands; cmd; cmd = next) {
		next = cmd->next;
		switch (cmd->state) {
		case COMMAND_WAITING:
			command_refuse(cmd, &sb->why);
			break;
		case COMMAND_STARTING:
			command_abort(cmd, &sb->why);
			break;
		case COMMAND_RUNNING:
		case COMMAND_TERMINATING:
		case COMMAND_KILLING:
		case COMMAND_SETTLING:
			cmd->flags |= API_RECYCLED;
			break;
		}
	}
}

/* Every process of the sandbox is dead and reaped. */
static void on_sandbox_gone(struct sandbox *sb)
{
	struct command *next;

	for (struct command *cmd = sb->commands; cmd; cmd = next) {
		next = cmd->next;
		if (cmd->state != COMMAND_WAITING)
			command_answer(cmd);
	}
}

static void on_sandbox_released(struct registry *reg, struct command *waiting)
{
	(void)reg;
	while (waiting) {
		struct command *cmd = waiting;

		waiting = cmd->next;
		cmd->next = NULL;
		cmd->sandbox = NULL;
		place(cmd);
	}
}

void exec_init(struct registry *reg)
{
	reg->hooks = (struct registry_hooks){
		.ready = sandbox_pump,
		.stopping = on_sandbox_stopping,
		.gone = on_sandbox_gone,
		.released = on_sandbox_released,
	};
}

/* ---- requests ---- */

/* Nobody waits for the answer any more: the client is gone or has cancelled. When it is the front that
 * died, the client may well be back in a moment. */
static void on_abandoned(struct request *req)
{
	struct command *cmd = command_of(req);
	struct err why = { 0 };

	if (req->orphaned && cmd->state != COMMAND_WAITING)
		return; /* it goes on: see command_answer() */
	if (req->orphaned)
		lost_add(cmd->reg, cmd->owner, cmd->key, (struct lost){ .commands = 1 });
	(void)err_set(&why, ERR_GONE, "cancelled");
	switch (cmd->state) {
	case COMMAND_WAITING:
		command_refuse(cmd, &why);
		return;
	case COMMAND_STARTING:
		command_abort(cmd, &why);
		return;
	case COMMAND_RUNNING:
	case COMMAND_TERMINATING:
		command_kill(cmd);
		return;
	case COMMAND_KILLING:
	case COMMAND_SETTLING:
		return;
	}
}

int command_resume(struct command *cmd, struct sandbox *sb, struct peer *p, uint64_t request_id,
		   uint64_t deadline_ns)
{
	struct api_header h = { .op = API_EXEC, .id = request_id };
	uint64_t now = loop_now_ns();
	struct err e = { 0 };

	if (p && request_begin(p, &cmd->req, &h, on_abandoned, &e) < 0) {
		log_error("%s: a command cannot go on: %s", cmd->key, e.message);
		return -1;
	}
	attach(cmd, sb);
	if (cmd->leaf >= 0) {
		sb->leaf[cmd->leaf].commands++;
		sb->leaf[cmd->leaf].used = true;
	}
	if (cmd->state != COMMAND_WAITING)
		command_timer(cmd, deadline_ns > now ? (deadline_ns - now) / 1000000 : 0);
	return 0;
}

static uint64_t clamp_timeout(const struct settings *s, uint64_t wanted_ms, uint32_t *flags)
{
	if (wanted_ms == 0)
		wanted_ms = s->timeout_default_ms;
	if (wanted_ms <= s->timeout_max_ms)
		return wanted_ms;
	*flags |= API_TIMEOUT_CLAMPED;
	return s->timeout_max_ms;
}

/* Relative to /workspace, like every path a client names. */
static char *absolute_cwd(const char *cwd)
{
	char *path = NULL;

	if (cwd[0] == '/')
		return strdup(cwd);
	if (cwd[0] == '\0')
		return strdup("/workspace");
	return asprintf(&path, "/workspace/%s", cwd) < 0 ? NULL : path;
}

static char *read_staged(int fd, size_t staged, const struct api_exec *msg)
{
	char *text = malloc(staged + msg->len + 1);

	if (!text)
		return NULL;
	if (staged > 0 && pread(fd, text, staged, 0) != (ssize_t)staged) {
		free(text);
		return NULL;
	}
	memcpy(text + staged, msg->bytes, msg->len);
	text[staged + msg->len] = '\0';
	return text;
}

/* A shell command too long for one argument stays in its memory file; everything else is short, or
 * has to be split into arguments, and is taken into memory. */
static int take_text(struct command *cmd, struct peer *p, const struct api_exec *msg, struct err *e)
{
	size_t staged = 0;
	_cleanup_fd_ int fd = stage_take(p, msg->h.id, &staged);

	if (staged != msg->staged)
		return err_set(e, ERR_PROTOCOL, "staged bytes do not match");
	if (staged + msg->len > API_COMMAND_MAX)
		return err_set(e, ERR_PROTOCOL, "command longer than %d bytes", API_COMMAND_MAX);
	cmd->text_len = staged + msg->len;
	if (msg->mode == API_EXEC_SHELL && cmd->text_len > API_ARG_INLINE_MAX) {
		if (fd_write_full(fd, msg->bytes, msg->len) < 0)
			return err_sys(e, "store a command");
		cmd->text_fd = take_fd(&fd);
		return 0;
	}
	cmd->text = read_staged(fd, staged, msg);
	return cmd->text ? 0 : err_set(e, ERR_NOMEM, "no memory for a command");
}

static struct command *command_new(struct registry *reg, const struct api_exec *msg)
{
	struct command *cmd = calloc(1, sizeof(*cmd));

	if (!cmd)
		return NULL;
	cmd->reg = reg;
	cmd->mode = msg->mode;
	cmd->exec_flags = msg->flags;
	cmd->text_fd = cmd->leaf = cmd->status.fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(cmd->client_fds); i++)
		cmd->inside_fds[i] = cmd->client_fds[i] = -1;
	memcpy(cmd->owner, msg->owner, sizeof(cmd->owner));
	memcpy(cmd->key, msg->key, sizeof(cmd->key));
	cmd->timeout_ms = clamp_timeout(reg->settings, msg->timeout_ms, &cmd->flags);
	cmd->cwd = absolute_cwd(msg->cwd);
	if (!cmd->cwd) {
		free(cmd);
		return NULL;
	}
	return cmd;
}

int exec_begin(struct registry *reg, struct peer *p, const struct api_exec *msg, struct err *e)
{
	struct command *cmd = command_new(reg, msg);

	if (!cmd)
		return err_set(e, ERR_NOMEM, "no memory for a command");
	if (take_text(cmd, p, msg, e) < 0 ||
	    request_begin(p, &cmd->req, &msg->h, on_abandoned, e) < 0) {
		command_free(cmd);
		return -1;
	}
	place(cmd);
	return 0;
}

void exec_signal(struct request *req, int signal)
{
	struct command *cmd = command_of(req);

	if (cmd->state == COMMAND_RUNNING && cmd->child.pid > 0)
		(void)kill(-cmd->child.pid, signal);
}

void exec_peek(struct request *req)
{
	struct command *cmd = command_of(req);
	struct api_progress msg = { .total_bytes = cmd->out ? cmd->out->total_bytes : 0 };

	request_note(req, API_PROGRESS, &msg, sizeof(msg), NULL, 0);
}
