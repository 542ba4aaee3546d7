/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/walk.c - look at every name below a directory, within bounds
 *
 * Runs in forked workers confined by helper.h, on trees that sandboxes or the operator's own programs
 * wrote. Iterative over a fixed stack of open directories; each open is one component and refuses links
 * and other mounts.
 */
#include "runtime/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"

enum { BUFFER_BYTES = 4096, CLOCK_EVERY = 256 };

/* as the kernel writes it */
struct kernel_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct frame {
	int fd;
	size_t pos, len;
	_Alignas(8) char buffer[BUFFER_BYTES];
};

static struct frame stack[WALK_DEPTH_MAX]; /* a quarter of a megabyte that only a worker touches */

static uint64_t now_ms(void)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* next_entry() - Return: 1 with the name, 0 at the end, -1 when the directory cannot be read. */
static int next_entry(struct frame *f, const char **ret_name)
{
	for (;;) {
		const struct kernel_dirent *d;

		if (f->pos >= f->len) {
			long n = syscall(SYS_getdents64, f->fd, f->buffer, BUFFER_BYTES);

			if (n <= 0)
				return n < 0 ? -1 : 0;
			f->pos = 0;
			f->len = (size_t)n;
		}
		d = (const void *)(f->buffer + f->pos);
		f->pos += d->reclen;
		if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0) {
			*ret_name = d->name;
			return 1;
		}
	}
}

/* push() - go into a directory. Return: false when a callback ends the walk. */
static bool push(struct walk *w, int *depth, const char *name)
{
	int fd;

	if (*depth + 1 == WALK_DEPTH_MAX) {
		w->partial = true;
		return true;
	}
	fd = fd_open_beneath(stack[*depth].fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno == EXDEV) { /* another file system: not part of this tree */
		w->partial = true;
		return true;
	}
	if (fd < 0)
		return errno == ENOENT || w->unreadable(w, name);
	stack[++*depth] = (struct frame){ .fd = fd };
	return true;
}

static bool look_at(struct walk *w, int *depth, const char *name)
{
	int dir_fd = stack[*depth].fd;
	struct stat st;

	w->entries++;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || w->unreadable(w, name); /* gone meanwhile is no trouble */
	if (!w->visit(w, dir_fd, name, &st))
		return false;
	return !S_ISDIR(st.st_mode) || push(w, depth, name);
}

static bool is_over(struct walk *w, uint64_t deadline_ms)
{
	if (w->entries >= w->entries_max || (w->entries % CLOCK_EVERY == 0 && now_ms() >= deadline_ms))
		w->partial = true;
	else
		return false;
	return true;
}

/* run() - the walk proper. Return: as walk_tree(). */
static bool run(struct walk *w, int *depth)
{
	uint64_t deadline_ms = now_ms() + w->ms_max;

	for (;;) {
		const char *name = NULL;
		int r = next_entry(&stack[*depth], &name);

		if (r < 0 && !w->unreadable(w, "."))
			return false;
		if (r > 0) {
			if (is_over(w, deadline_ms))
				return true;
			if (!look_at(w, depth, name))
				return false;
		} else if (*depth == 0) {
			return true;
		} else {
			close_fd(&stack[(*depth)--].fd);
		}
	}
}

bool walk_tree(struct walk *w, int fd)
{
	int depth = 0;
	bool ended;

	w->entries = 0;
	w->partial = false;
	(void)lseek(fd, 0, SEEK_SET);
	stack[0] = (struct frame){ .fd = fd };
	ended = run(w, &depth);
	while (depth > 0)
		close_fd(&stack[depth--].fd);
	return ended;
}
