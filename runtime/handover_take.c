/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/handover_take.c - what a keeper that has executed itself finds
 *
 * Runs in a service's keeper while it starts. The file is this process's own, sealed; another build may
 * have written it, so its layout is compared and each number is checked before it is used.
 */
#include "runtime/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/lock.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/handover_rows.h"

struct handover {
	char *bytes;
	size_t len;
	struct handover_head head;
	const int32_t *fds;
	const struct handover_peer *peer;
	const struct handover_command *command;
	const struct handover_drain *drain;
	const struct lost_note *note;
	struct peer *peers[PEER_MAX]; /* by row */
	int front; /* the row; -1: none */
};

/* ---- reading ---- */

static char *read_file(int fd, size_t *ret_len)
{
	struct stat st;
	char *bytes;

	if (fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(struct handover_head) ||
	    st.st_size > HANDOVER_MAX)
		return NULL;
	bytes = malloc((size_t)st.st_size);
	if (bytes && pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size) {
		free(bytes);
		return NULL;
	}
	*ret_len = (size_t)st.st_size;
	return bytes;
}

/* take_rows() - count rows of a size from *at on. Return: the first, NULL when there are not so many. */
static const void *take_rows(const struct handover *h, size_t *at, uint32_t count, size_t size)
{
	const char *rows = h->bytes + *at;

	if (count > (h->len - *at) / size)
		return NULL;
	*at += count * size;
	return rows;
}

_Static_assert(sizeof(struct handover_peer) % 8 == 0 && sizeof(struct handover_command) % 8 == 0 &&
		       sizeof(struct handover_drain) % 8 == 0, "rows are read where they lie");

static bool find_rows(struct handover *h)
{
	const struct handover_head *head = &h->head;
	size_t at = sizeof(*head);

	h->fds = take_rows(h, &at, head->fd_count, sizeof(*h->fds));
	if (!h->fds)
		return false;
	for (uint32_t i = 0; i < head->fd_count; i++)
		(void)fd_set_cloexec(h->fds[i], true);
	if (head->version != HANDOVER_VERSION || head->layout != handover_layout() ||
	    head->peers != PEER_MAX || head->lock_count > head->fd_count)
		return false;
	at += handover_pad(at);
	h->peer = at <= h->len ? take_rows(h, &at, head->peers, sizeof(*h->peer)) : NULL;
	h->command = h->peer ? take_rows(h, &at, head->commands, sizeof(*h->command)) : NULL;
	h->drain = h->command ? take_rows(h, &at, head->drains, sizeof(*h->drain)) : NULL;
	h->note = h->drain ? take_rows(h, &at, head->notes, sizeof(*h->note)) : NULL;
	return h->note && at == h->len;
}

static void close_all(const struct handover *h)
{
	for (uint32_t i = 0; h->fds && i < h->head.fd_count; i++) {
		int fd = h->fds[i];

		close_fd(&fd);
	}
}

static int marked_fd(void)
{
	const char *text = getenv(HANDOVER_MARKER);
	uint64_t fd = 0;
	bool given = text && str_parse_u64(text, STDERR_FILENO + 1, INT32_MAX, &fd) == 0;

	(void)unsetenv(HANDOVER_MARKER);
	return given ? (int)fd : -1;
}

static struct handover *take(struct handover *h)
{
	if (h->bytes)
		memcpy(&h->head, h->bytes, sizeof(h->head));
	if (h->bytes && h->head.magic == HANDOVER_MAGIC && find_rows(h) &&
	    lock_inherit(h->fds, h->head.lock_count) == 0)
		return h;
	/* As after a crash: the sandboxes are still there, the commands are not. */
	log_error("what the program before left cannot be used: commands in flight are lost");
	close_all(h);
	free(h->bytes);
	free(h);
	return NULL;
}

struct handover *handover_open(void)
{
	_cleanup_fd_ int fd = marked_fd();
	struct handover *h = fd < 0 ? NULL : calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->bytes = read_file(fd, &h->len);
	h->front = -1;
	h = take(h);
	for (uint32_t i = 0; h && i < h->head.peers; i++) {
		if (h->peer[i].is_main && h->peer[i].fd >= 0)
			h->front = (int)i;
	}
	return h;
}

int handover_front(struct handover *h, pid_t *ret_pid)
{
	if (!h || h->front < 0)
		return -1;
	*ret_pid = h->peer[h->front].pid;
	return h->peer[h->front].fd;
}

size_t handover_listening(struct handover *h, int ret_fds[FD_PASS_MAX])
{
	size_t count = h->head.listen_count < FD_PASS_MAX ? h->head.listen_count : FD_PASS_MAX;

	for (size_t i = 0; i < count; i++)
		ret_fds[i] = h->head.listen_fds[i];
	return count;
}

/* ---- using ---- */

void handover_peers(struct handover *h, struct peers *ps, struct peer *main_peer)
{
	struct err e = { 0 };

	for (uint32_t i = 0; i < h->head.peers; i++) {
		if ((int)i == h->front)
			h->peers[i] = main_peer;
		else if (h->peer[i].fd >= 0)
			h->peers[i] = peer_add(ps, h->peer[i].fd, h->peer[i].kind, &e);
	}
}

static struct peer *peer_of(const struct handover *h, const struct handover_command *row)
{
	return row->peer >= 0 && row->peer < PEER_MAX ? h->peers[row->peer] : NULL;
}

static void close_output(const struct output_state *s)
{
	int fds[] = { s->pipe_fd, s->log_fd, s->ring_fd };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close_fd(&fds[i]);
}

static struct output *restore_output(struct sandbox *sb, const struct output_state *s)
{
	struct output *out = calloc(1, sizeof(*out));
	struct err e = { 0 };

	if (!out) {
		close_output(s);
		return NULL;
	}
	if (output_restore(out, sb->reg->loop, &sb->logs, s, &e) == 0)
		return out;
	log_error("%s: output is not read any more: %s", sb->key, e.message);
	free(out);
	return NULL;
}

/* Its words, from the file they travelled in. */
static int restore_text(struct command *cmd, const struct handover_command *row)
{
	int fd = row->text_fd;

	cmd->text_len = row->text_len;
	cmd->cwd = strndup(row->cwd, sizeof(row->cwd) - 1);
	if (row->text_in_file) {
		cmd->text_fd = fd;
	} else {
		cmd->text = calloc(1, row->text_len + 1);
		if (cmd->text && pread(fd, cmd->text, row->text_len, 0) != (ssize_t)row->text_len)
			free(take_ptr(cmd->text));
		close_fd(&fd);
	}
	return cmd->cwd && (cmd->text || cmd->text_fd >= 0) ? 0 : -1;
}

static struct command *make_command(struct registry *reg, const struct handover_command *row)
{
	struct command *cmd = calloc(1, sizeof(*cmd));

	if (!cmd)
		return NULL;
	cmd->reg = reg;
	memcpy(cmd->owner, row->owner, sizeof(cmd->owner));
	memcpy(cmd->key, row->key, sizeof(cmd->key));
	cmd->req.orphaned = row->orphaned;
	cmd->mode = row->mode;
	cmd->exec_flags = row->exec_flags;
	cmd->flags = row->flags;
	cmd->state = row->state;
	cmd->timeout_ms = row->timeout_ms;
	cmd->started_ns = row->started_ns;
	cmd->ended_ns = row->ended_ns;
	cmd->settle_until_ns = row->settle_until_ns;
	cmd->leaf = row->leaf < CGROUP_LEAVES ? row->leaf : -1;
	cmd->exited = row->exited;
	cmd->exit = row->exit;
	cmd->before = row->before;
	cmd->text_fd = cmd->status.fd = -1;
	for (size_t i = 0; i < ARRAY_SIZE(cmd->client_fds); i++)
		cmd->inside_fds[i] = cmd->client_fds[i] = -1;
	return cmd;
}

/* It goes on as if nothing had been: its process is our child still. */
static int restore_command(struct handover *h, struct sandbox *sb, const struct handover_command *row)
{
	struct command *cmd = make_command(sb->reg, row);

	if (!cmd)
		return -1;
	if (row->has_out)
		cmd->out = restore_output(sb, &row->out);
	if ((row->has_out && !cmd->out) ||
	    (cmd->state == COMMAND_WAITING && restore_text(cmd, row) < 0) ||
	    command_resume(cmd, sb, peer_of(h, row), row->request_id, row->deadline_ns) < 0) {
		command_free(cmd);
		return -1;
	}
	sb->launch.replaced = row->replaced;
	if (row->pid > 0 && !cmd->exited && command_watch(cmd, row->pid) < 0)
		log_warn("%s: command %d is not our child", cmd->key, row->pid);
	return 0;
}

/* Its sandbox could not be taken over, or there is no memory: whoever waits is told. */
static void refuse_command(struct handover *h, struct registry *reg, const struct handover_command *row)
{
	struct peer *p = peer_of(h, row);
	struct api_header header = { .op = API_EXEC, .id = row->request_id };
	struct request req = { 0 };
	struct err e = { 0 };

	if (row->has_out)
		close_output(&row->out);
	lost_add(reg, row->owner, row->key, (struct lost){ .commands = p ? 0 : 1 });
	if (!p || request_begin(p, &req, &header, NULL, &e) < 0)
		return;
	(void)err_set(&e, ERR_GONE, "the command was lost while the server was replaced");
	request_fail(&req, &e);
}

void handover_commands(struct handover *h, struct registry *reg)
{
	for (uint32_t i = 0; i < h->head.commands; i++) {
		const struct handover_command *row = &h->command[i];
		struct sandbox *sb = registry_find(reg, row->owner, row->key);

		if (!sb || restore_command(h, sb, row) < 0)
			refuse_command(h, reg, row);
	}
	for (uint32_t i = 0; i < h->head.drains; i++) {
		struct sandbox *sb = registry_find(reg, h->drain[i].owner, h->drain[i].key);

		if (sb)
			sandbox_drain(sb, restore_output(sb, &h->drain[i].out));
		else
			close_output(&h->drain[i].out);
	}
	for (uint32_t i = 0; i < h->head.notes; i++)
		lost_add(reg, h->note[i].owner, h->note[i].key, h->note[i].lost);
	for (struct sandbox *sb = reg->all; sb; sb = sb->next)
		sandbox_pump(sb);
}

void handover_done(struct handover *h)
{
	if (!h)
		return;
	lock_inherited_done();
	free(h->bytes);
	free(h);
}
