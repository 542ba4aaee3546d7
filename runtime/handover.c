/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/handover.c - what a keeper gives to the program that it becomes
 *
 * Runs in a service's keeper. Until execve() succeeds nothing is changed that cannot be put back.
 */
#include "runtime/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/handover_rows.h"

/* ---- when ---- */

static bool peer_is_quiet(const struct peer *p)
{
	if (p->source.fd < 0)
		return true;
	for (size_t i = 0; i < PEER_STAGES_MAX; i++) {
		if (p->stages[i].id)
			return false;
	}
	for (const struct request *r = p->requests; r; r = r->next) {
		if (r->op != API_EXEC)
			return false;
	}
	return !p->failed && !p->unsent;
}

static bool sandbox_is_quiet(const struct sandbox *sb)
{
	if (sb->state != SANDBOX_READY && sb->state != SANDBOX_QUEUED)
		return false;
	for (const struct command *c = sb->commands; c; c = c->next) {
		if (c->state == COMMAND_STARTING)
			return false;
	}
	return sb->joiners == 0;
}

bool handover_is_quiet(const struct registry *reg, const struct peers *ps)
{
	for (const struct sandbox *sb = reg->all; sb; sb = sb->next) {
		if (!sandbox_is_quiet(sb))
			return false;
	}
	for (size_t i = 0; i < PEER_MAX; i++) {
		if (!peer_is_quiet(&ps->peer[i]))
			return false;
	}
	return true;
}

/* ---- what ---- */

struct writer {
	const struct handover_from *from;
	struct buf rows;
	int *fds; /* kept open across the execution; the locks first */
	size_t fd_count, fd_room;
	int text_fds[PEER_MAX * API_REQUESTS_MAX]; /* made here: closed again when it fails */
	size_t text_count;
	struct handover_head head;
	bool failed;
};

static void keep(struct writer *w, int fd)
{
	if (fd < 0)
		return;
	if (w->fd_count == w->fd_room) {
		size_t room = w->fd_room ? 2 * w->fd_room : 64;
		int *more = realloc(w->fds, room * sizeof(*more));

		if (!more) {
			w->failed = true;
			return;
		}
		w->fds = more;
		w->fd_room = room;
	}
	w->fds[w->fd_count++] = fd;
}

static void keep_locks(struct writer *w)
{
	keep(w, w->from->home_lock);
	for (const struct sandbox *sb = w->from->reg->all; sb; sb = sb->next) {
		keep(w, sb->label.lock_fd);
		keep(w, sb->box.dir_fd);
		keep(w, sb->image_fd);
	}
	w->head.lock_count = (uint32_t)w->fd_count;
}

static void keep_listening(struct writer *w)
{
	for (size_t i = 0; i < w->from->listen_count && i < FD_PASS_MAX; i++) {
		keep(w, w->from->listen_fds[i]);
		w->head.listen_fds[w->head.listen_count++] = w->from->listen_fds[i];
	}
}

static void keep_output(struct writer *w, const struct output *out, struct output_state *ret)
{
	output_save(out, ret);
	keep(w, ret->pipe_fd);
	keep(w, ret->log_fd);
	keep(w, ret->ring_fd);
}

static void add(struct writer *w, const void *row, size_t size, uint32_t *count)
{
	if (buf_append(&w->rows, row, size) < 0)
		w->failed = true;
	(*count)++;
}

static void add_peers(struct writer *w)
{
	for (size_t i = 0; i < PEER_MAX; i++) {
		const struct peer *p = &w->from->peers->peer[i];
		struct handover_peer row = { .fd = p->source.fd, .kind = p->kind,
					     .is_main = p == w->from->main_peer };

		if (row.is_main)
			row.pid = w->from->front_pid;
		keep(w, row.fd);
		add(w, &row, sizeof(row), &w->head.peers); /* free ones too: the row is the number */
	}
}

/* A command that has not been started: its words. */
static void save_text(struct writer *w, const struct command *cmd, struct handover_command *row)
{
	row->text_len = cmd->text_len;
	row->text_in_file = cmd->text_fd >= 0;
	row->text_fd = cmd->text_fd;
	if (cmd->text) {
		row->text_fd = fd_memfd_sealed("command", cmd->text, cmd->text_len, 0400, false);
		if (row->text_fd < 0 || w->text_count >= ARRAY_SIZE(w->text_fds))
			w->failed = true;
		else
			w->text_fds[w->text_count++] = row->text_fd;
	}
	keep(w, row->text_fd);
	if (cmd->cwd && str_copy(row->cwd, sizeof(row->cwd), cmd->cwd) < 0)
		w->failed = true;
}

static int peer_row(const struct writer *w, const struct command *cmd)
{
	return cmd->req.peer ? (int)(cmd->req.peer - w->from->peers->peer) : -1;
}

static void add_command(struct writer *w, const struct sandbox *sb, const struct command *cmd)
{
	struct handover_command row;

	memset(&row, 0, sizeof(row));
	memcpy(row.owner, cmd->owner, sizeof(row.owner));
	memcpy(row.key, cmd->key, sizeof(row.key));
	row.peer = peer_row(w, cmd);
	row.orphaned = cmd->req.orphaned;
	row.request_id = cmd->req.id;
	row.mode = cmd->mode;
	row.exec_flags = cmd->exec_flags;
	row.flags = cmd->flags;
	row.state = cmd->state;
	row.replaced = sb->launch.replaced;
	row.timeout_ms = cmd->timeout_ms;
	row.started_ns = cmd->started_ns;
	row.ended_ns = cmd->ended_ns;
	row.settle_until_ns = cmd->settle_until_ns;
	row.deadline_ns = cmd->timer.deadline_ns;
	row.leaf = cmd->leaf;
	row.pid = cmd->child.pid;
	row.exited = cmd->exited;
	row.exit = cmd->exit;
	row.before = cmd->before;
	row.has_out = cmd->out != NULL;
	row.text_fd = -1;
	if (cmd->out)
		keep_output(w, cmd->out, &row.out);
	if (cmd->state == COMMAND_WAITING)
		save_text(w, cmd, &row);
	add(w, &row, sizeof(row), &w->head.commands);
}

static void add_commands(struct writer *w)
{
	for (const struct sandbox *sb = w->from->reg->all; sb; sb = sb->next) {
		for (const struct command *c = sb->commands; c; c = c->next)
			add_command(w, sb, c);
	}
}

static void add_drains(struct writer *w)
{
	for (const struct sandbox *sb = w->from->reg->all; sb; sb = sb->next) {
		for (const struct output *out = sb->drains; out; out = out->next) {
			struct handover_drain row;

			memset(&row, 0, sizeof(row));
			memcpy(row.owner, sb->owner, sizeof(row.owner));
			memcpy(row.key, sb->key, sizeof(row.key));
			keep_output(w, out, &row.out);
			add(w, &row, sizeof(row), &w->head.drains);
		}
	}
}

/* Labels with a sandbox have the numbers in its record. */
static void add_notes(struct writer *w)
{
	struct registry *reg = w->from->reg;

	for (size_t i = 0; reg->lost.note && i < LOST_NOTES_MAX; i++) {
		const struct lost_note *n = &reg->lost.note[i];

		if (n->owner[0] != '\0' && !registry_find(reg, n->owner, n->key))
			add(w, n, sizeof(*n), &w->head.notes);
	}
}

static int write_file(struct writer *w, struct err *e)
{
	_cleanup_(buf_done) struct buf all;
	const uint64_t none = 0;
	int fd = -1;

	buf_init(&all, HANDOVER_MAX);
	w->head.magic = HANDOVER_MAGIC;
	w->head.version = HANDOVER_VERSION;
	w->head.layout = handover_layout();
	w->head.fd_count = (uint32_t)w->fd_count;
	(void)buf_append(&all, &w->head, sizeof(w->head));
	(void)buf_append(&all, w->fds, w->fd_count * sizeof(*w->fds));
	(void)buf_append(&all, &none, handover_pad(all.len)); /* rows hold 64-bit numbers */
	(void)buf_append(&all, w->rows.data, w->rows.len);
	if (!w->failed && !all.overflow)
		fd = fd_memfd_sealed("handover", all.data, all.len, 0400, false);
	return fd < 0 ? err_set(e, ERR_NOMEM, "no memory for a handover") : fd;
}

/* ---- away ---- */

static void set_kept(const struct writer *w, bool kept)
{
	for (size_t i = 0; i < w->fd_count; i++)
		(void)fd_set_cloexec(w->fds[i], !kept);
}

static int execute(struct writer *w, int file_fd, struct err *e)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", file_fd);
	if (setenv(HANDOVER_MARKER, number, 1) < 0)
		return err_sys(e, "set the environment");
	if (w->from->reg->owners->first->in_storage && setenv(USERNS_STORAGE_MARKER, "1", 1) < 0)
		return err_sys(e, "set the environment");
	set_kept(w, true);
	(void)fd_set_cloexec(file_fd, false);
	(void)execv(w->from->program, w->from->argv);
	(void)err_sys(e, "execute %s", w->from->program);
	set_kept(w, false);
	(void)unsetenv(HANDOVER_MARKER);
	(void)unsetenv(USERNS_STORAGE_MARKER);
	return -1;
}

int handover_exec(const struct handover_from *from, struct err *e)
{
	struct writer *w = calloc(1, sizeof(*w));
	_cleanup_fd_ int file_fd = -1;

	if (!w)
		return err_set(e, ERR_NOMEM, "no memory for a handover");
	w->from = from;
	buf_init(&w->rows, HANDOVER_MAX);
	keep_locks(w);
	keep_listening(w);
	add_peers(w);
	add_commands(w);
	add_drains(w);
	add_notes(w);
	file_fd = write_file(w, e);
	if (file_fd >= 0)
		(void)execute(w, file_fd, e);
	for (size_t i = 0; i < w->text_count; i++)
		close_fd(&w->text_fds[i]);
	buf_done(&w->rows);
	free(w->fds);
	free(w);
	return -1;
}
