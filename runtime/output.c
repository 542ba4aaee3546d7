/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/output.c - move a command's output to its log without ever waiting for anybody
 *
 * Runs in the keeper. The bytes are hostile and are never looked at: splice(2) moves them. A disk that
 * is full, a log that cannot be made: the command goes on, the answer says that the log is short.
 */
#include "runtime/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"

enum {
	BYTES_PER_WAKEUP = 256 * 1024,
	SETTLE_MAX = 1024 * 1024, /* the largest pipe an unprivileged process can make */
	NAME_SIZE = 32,
	DIR_ENTRIES_MAX = 4096,
};

static char chunk[OUTPUT_RING_SIZE]; /* single thread; never holds anything between calls */

/* ---- the logs of a label ---- */

static void log_name(uint64_t number, char name[NAME_SIZE])
{
	(void)snprintf(name, NAME_SIZE, "%" PRIu64 ".log", number);
}

static uint64_t number_of(const char *name)
{
	char digits[NAME_SIZE];
	size_t len = strlen(name);
	uint64_t n;

	if (len < 5 || len >= sizeof(digits) || strcmp(name + len - 4, ".log") != 0)
		return 0;
	memcpy(digits, name, len - 4);
	digits[len - 4] = '\0';
	if (digits[0] == '0' || str_parse_u64(digits, 1, UINT64_MAX / 2, &n) < 0)
		return 0;
	return n;
}

static uint64_t oldest_kept(const struct output_logs *logs)
{
	return logs->next > OUTPUT_LOGS_KEPT ? logs->next - OUTPUT_LOGS_KEPT : 1;
}

/* The directory is written by the keeper alone and holds OUTPUT_LOGS_KEPT files; the bound is for a
 * directory somebody filled by hand. */
static int newest_number(int dir_fd, uint64_t *ret)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	uint64_t newest = 0;

	if (!dir) {
		close_fd(&fd);
		return -1;
	}
	for (int i = 0; i < DIR_ENTRIES_MAX && (entry = readdir(dir)) != NULL; i++) {
		uint64_t n = number_of(entry->d_name);

		if (n > newest)
			newest = n;
	}
	(void)closedir(dir);
	*ret = newest;
	return 0;
}

/* A command may run while many others come and go: its log is the answer that somebody waits for. */
static bool is_awaited(const struct output_logs *logs, uint64_t number)
{
	const struct output *out = logs->writing;

	while (out && out->log_number != number)
		out = out->next_writing;
	return out != NULL;
}

static void stop_awaiting(struct output *out)
{
	struct output **p = &out->logs->writing;

	while (*p && *p != out)
		p = &(*p)->next_writing;
	if (*p)
		*p = out->next_writing;
}

static void forget_log(struct output_logs *logs, uint64_t number)
{
	char name[NAME_SIZE];

	log_name(number, name);
	if (!is_awaited(logs, number) && unlinkat(logs->dir_fd, name, 0) < 0 && errno != ENOENT)
		log_warn("cannot remove old output %s: %s", name, strerror(errno));
	logs->total -= logs->size[number % OUTPUT_LOGS_KEPT];
	logs->size[number % OUTPUT_LOGS_KEPT] = 0;
}

/* Oldest first, until want more bytes fit; never this one (keep) nor one that is awaited. */
static bool make_room(struct output_logs *logs, uint64_t want, uint64_t keep)
{
	uint64_t limit = logs->cap > UINT64_MAX / OUTPUT_TOTAL_FACTOR ?
				 UINT64_MAX : logs->cap * OUTPUT_TOTAL_FACTOR;

	for (uint64_t n = oldest_kept(logs); n < logs->next && n < keep; n++) {
		if (logs->total + want <= limit)
			return true;
		if (logs->size[n % OUTPUT_LOGS_KEPT] > 0 && !is_awaited(logs, n))
			forget_log(logs, n);
	}
	return logs->total + want <= limit;
}

int output_logs_init(struct output_logs *logs, int dir_fd, uint64_t cap, struct err *e)
{
	uint64_t newest = 0;

	*logs = (struct output_logs){ .dir_fd = dir_fd, .cap = cap, .next = 1 };
	if (dir_fd < 0)
		return 0;
	if (newest_number(dir_fd, &newest) < 0)
		return err_sys(e, "read the output directory");
	logs->next = newest + 1;
	for (uint64_t n = oldest_kept(logs); n < logs->next; n++) {
		char name[NAME_SIZE];
		struct stat st;

		log_name(n, name);
		if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			logs->size[n % OUTPUT_LOGS_KEPT] = (uint64_t)st.st_size;
			logs->total += (uint64_t)st.st_size;
		}
	}
	(void)make_room(logs, 0, logs->next);
	return 0;
}

static void take_number(struct output *out)
{
	out->log_number = out->logs->next++;
	if (out->log_number > OUTPUT_LOGS_KEPT)
		forget_log(out->logs, out->log_number - OUTPUT_LOGS_KEPT);
}

/* Created at the first byte: a silent command leaves no file. */
static void open_log(struct output *out)
{
	struct output_logs *logs = out->logs;
	char name[NAME_SIZE];

	if (logs->dir_fd < 0) {
		out->spilled = true;
		return;
	}
	log_name(logs->next, name);
	out->log_fd = openat(logs->dir_fd, name,
			     O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (out->log_fd < 0) {
		log_warn("cannot make output %s: %s", name, strerror(errno));
		out->spilled = true;
		return;
	}
	(void)fchmod(out->log_fd, 0644); /* whatever the umask is */
	take_number(out);
	if (!out->answered) {
		out->next_writing = logs->writing;
		logs->writing = out;
	}
}

/* ---- pipe to log, pipe to ring ---- */

static bool log_was_pruned(const struct output *out)
{
	return out->log_number < oldest_kept(out->logs);
}

static size_t log_room(struct output *out, size_t want)
{
	uint64_t room = out->log_bytes < out->logs->cap ? out->logs->cap - out->log_bytes : 0;

	if (want > room)
		want = (size_t)room;
	if (log_was_pruned(out))
		return out->answered ? 0 : want; /* by number only: see renew_log() */
	return make_room(out->logs, want, out->log_number) ? want : 0;
}

static void count_logged(struct output *out, uint64_t bytes)
{
	out->log_bytes += bytes;
	if (log_was_pruned(out))
		return;
	out->logs->size[out->log_number % OUTPUT_LOGS_KEPT] += bytes;
	out->logs->total += bytes;
}

static ssize_t move_to_log(struct output *out, size_t want)
{
	off_t offset = (off_t)out->log_bytes;
	ssize_t n = splice(out->source.fd, NULL, out->log_fd, &offset, want,
			   SPLICE_F_NONBLOCK | SPLICE_F_MOVE);

	if (n > 0)
		count_logged(out, (uint64_t)n);
	return n;
}

static void ring_write(struct output *out, const char *bytes, size_t len)
{
	size_t at = out->ring_bytes % OUTPUT_RING_SIZE;
	size_t first = len < OUTPUT_RING_SIZE - at ? len : OUTPUT_RING_SIZE - at;

	if (out->ring_fd < 0)
		out->ring_fd = memfd_create("output-tail", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (out->ring_fd < 0)
		return;
	if (pwrite(out->ring_fd, bytes, first, (off_t)at) < 0 ||
	    (len > first && pwrite(out->ring_fd, bytes + first, len - first, 0) < 0)) {
		close_fd(&out->ring_fd); /* no memory for a tail; the log has the head */
		out->ring_bytes = 0;
		return;
	}
	out->ring_bytes += len;
}

/* The first bytes (before them there is no log), file systems without splice, and the ring. */
static ssize_t copy_chunk(struct output *out, size_t want)
{
	ssize_t n = read(out->source.fd, chunk, want < sizeof(chunk) ? want : sizeof(chunk));
	ssize_t logged = 0;
	size_t room;

	if (n <= 0)
		return n;
	if (out->log_fd < 0 && !out->spilled)
		open_log(out);
	room = out->spilled ? 0 : log_room(out, (size_t)n);
	if (room > 0) {
		logged = pwrite(out->log_fd, chunk, room, (off_t)out->log_bytes);
		if (logged < 0) {
			log_warn("output log cut short: %s", strerror(errno));
			logged = 0;
		}
		count_logged(out, (uint64_t)logged);
	}
	if (logged < n) {
		out->spilled = true;
		if (!out->answered)
			ring_write(out, chunk + logged, (size_t)(n - logged));
	}
	return n;
}

/* Return: bytes taken, 0 end of file, -1 with errno (EAGAIN: empty for now). */
static ssize_t take_some(struct output *out, size_t want)
{
	size_t room = 0;
	ssize_t n;

	if (!out->spilled && out->log_fd >= 0) {
		room = log_room(out, want);
		if (room == 0)
			out->spilled = true;
	}
	if (room == 0)
		return copy_chunk(out, want);
	n = move_to_log(out, room);
	if (n >= 0 || errno == EAGAIN)
		return n;
	if (errno != EINVAL) { /* EINVAL: this file system cannot splice */
		log_warn("output log cut short: %s", strerror(errno));
		out->spilled = true;
	}
	return copy_chunk(out, want);
}

static void reached_end(struct output *out)
{
	int fd = out->source.fd;

	loop_remove(&out->source);
	close_fd(&fd);
	if (out->on_eof)
		out->on_eof(out, out->ctx); /* may free out */
}

/* Take up to limit bytes. Return: false at end of file. */
static bool take(struct output *out, size_t limit)
{
	while (limit > 0) {
		ssize_t n = take_some(out, limit);

		if (n == 0)
			return false;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		out->total_bytes += (uint64_t)n;
		limit -= (size_t)n < limit ? (size_t)n : limit;
	}
	return true;
}

static void on_readable(struct loop_source *s, uint32_t events)
{
	struct output *out = s->ctx;

	(void)events;
	if (!take(out, BYTES_PER_WAKEUP))
		reached_end(out);
}

int output_pipe(int ret_fds[2], int inside_end, uint32_t uid, uint32_t gid, struct err *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, "make a pipe");
	if (fchown(fds[inside_end], uid, gid) < 0 ||
	    fchmod(fds[inside_end], inside_end ? 0622 : 0644) < 0) {
		(void)err_sys(e, "hand a pipe to the sandbox");
		close_fd(&fds[0]);
		close_fd(&fds[1]);
		return -1;
	}
	ret_fds[0] = fds[0];
	ret_fds[1] = fds[1];
	return 0;
}

int output_start(struct output *out, struct loop *l, struct output_logs *logs, uint32_t uid,
		 uint32_t gid, output_eof_fn *on_eof, void *ctx, struct err *e)
{
	int fds[2] = { -1, -1 };

	*out = (struct output){ .source = { .fd = -1 }, .logs = logs, .log_fd = -1, .ring_fd = -1,
				.on_eof = on_eof, .ctx = ctx };
	if (output_pipe(fds, 1, uid, gid, e) < 0)
		return -1;
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
		(void)err_sys(e, "make a pipe non-blocking");
	} else if (loop_add(l, &out->source, fds[0], EPOLLIN, on_readable, out, e) == 0) {
		return fds[1];
	}
	close_fd(&fds[0]);
	close_fd(&fds[1]);
	return -1;
}

void output_save(const struct output *out, struct output_state *ret)
{
	*ret = (struct output_state){
		.pipe_fd = out->source.fd, .log_fd = out->log_fd, .ring_fd = out->ring_fd,
		.spilled = out->spilled, .answered = out->answered, .log_number = out->log_number,
		.log_bytes = out->log_bytes, .ring_bytes = out->ring_bytes, .total_bytes = out->total_bytes,
	};
}

int output_restore(struct output *out, struct loop *l, struct output_logs *logs,
		   const struct output_state *state, struct err *e)
{
	*out = (struct output){
		.source = { .fd = -1 }, .logs = logs, .log_fd = state->log_fd, .ring_fd = state->ring_fd,
		.spilled = state->spilled, .answered = state->answered, .log_number = state->log_number,
		.log_bytes = state->log_bytes, .ring_bytes = state->ring_bytes,
		.total_bytes = state->total_bytes,
	};
	if (state->pipe_fd >= 0 &&
	    loop_add(l, &out->source, state->pipe_fd, EPOLLIN, on_readable, out, e) < 0) {
		int fd = state->pipe_fd;

		close_fd(&fd);
		close_fd(&out->log_fd);
		close_fd(&out->ring_fd);
		return -1;
	}
	if (out->log_fd >= 0 && !out->answered) {
		out->next_writing = logs->writing;
		logs->writing = out;
	}
	return 0;
}

void output_settle(struct output *out)
{
	int pending = 0;

	if (!output_is_open(out))
		return;
	if (ioctl(out->source.fd, FIONREAD, &pending) < 0 || pending < 0)
		pending = 0;
	if (pending > SETTLE_MAX)
		pending = SETTLE_MAX;
	/* One byte more than there is finds the end of file when nobody writes any more. */
	if (!take(out, (size_t)pending + 1)) {
		int fd = out->source.fd;

		loop_remove(&out->source);
		close_fd(&fd);
	}
}

static void attach(struct output_result *ret, int fd)
{
	if (fd >= 0)
		ret->fds[ret->fd_count++] = fd;
}

/* renew_log() - sixteen newer logs have come since this one was begun: it becomes the newest, or the
 * answer would name a file that is about to go. */
static void renew_log(struct output *out)
{
	struct output_logs *logs = out->logs;
	char old[NAME_SIZE], new[NAME_SIZE];

	log_name(out->log_number, old);
	log_name(logs->next, new);
	if (renameat(logs->dir_fd, old, logs->dir_fd, new) < 0) {
		log_warn("cannot rename output %s: %s", old, strerror(errno));
		return;
	}
	take_number(out);
	logs->size[out->log_number % OUTPUT_LOGS_KEPT] = out->log_bytes;
	logs->total += out->log_bytes;
	(void)make_room(logs, 0, out->log_number);
}

void output_result(struct output *out, struct output_result *ret)
{
	char name[NAME_SIZE];

	*ret = (struct output_result){ .total_bytes = out->total_bytes };
	stop_awaiting(out);
	out->answered = true;
	if (out->log_bytes > 0 && log_was_pruned(out))
		renew_log(out);
	if (out->log_bytes > 0) {
		int fd;

		/* A second, read-only description of the same file; a pruned one has no name. */
		log_name(out->log_number, name);
		fd = openat(out->logs->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0) {
			ret->log_bytes = out->log_bytes;
			ret->log_number = out->log_number;
		}
		attach(ret, fd);
	}
	if (out->ring_bytes > 0 && out->ring_fd >= 0) {
		bool full = out->ring_bytes >= OUTPUT_RING_SIZE;

		/* Written no more: sealed, the receiver cannot change it either. */
		(void)fcntl(out->ring_fd, F_ADD_SEALS,
			    F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
		ret->tail_bytes = full ? OUTPUT_RING_SIZE : out->ring_bytes;
		ret->tail_start = full ? out->ring_bytes % OUTPUT_RING_SIZE : 0;
		/* The tail is always the second: without a log, something of no bytes comes first. */
		if (ret->fd_count == 0)
			attach(ret, fcntl(out->ring_fd, F_DUPFD_CLOEXEC, 0));
		attach(ret, take_fd(&out->ring_fd));
	}
}

bool output_is_open(const struct output *out)
{
	return out->source.fd >= 0;
}

void output_done(struct output *out)
{
	int fd = out->source.fd;
	char name[NAME_SIZE];

	if (fd >= 0) {
		loop_remove(&out->source);
		close_fd(&fd);
	}
	stop_awaiting(out);
	if (out->log_fd >= 0 && !out->answered && log_was_pruned(out)) {
		log_name(out->log_number, name); /* nobody was told of it */
		(void)unlinkat(out->logs->dir_fd, name, 0);
	}
	close_fd(&out->log_fd);
	close_fd(&out->ring_fd);
}
