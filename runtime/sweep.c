/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/sweep.c - empty the trash
 *
 * Runs in a forked worker confined by helper_enter(): the helper's id, a user namespace that maps the
 * sandbox's ids only, DAC_OVERRIDE and FOWNER there, descriptors of trash/<owner> and nothing else.
 * The trees were written by sandboxes: names are bytes, depth and number have no bound.
 *
 * The walk is iterative over a fixed stack of open directories. What lies deeper than the stack is
 * moved up into trash/<owner> and comes later. Every open is one component, refuses links and other
 * mounts; unlink never follows. What cannot be removed (immutable files, mounts of the host's
 * administrator) is counted, reported once and left: the walk ends when a whole pass has removed
 * nothing. It can be killed at any time; the next one goes on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"
#include "runtime/helper.h"
#include "runtime/store.h"

enum { DEPTH_MAX = 32, OWNERS_MAX = 17, BUFFER_BYTES = 8192 };

static const uint64_t sweep_caps = UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_FOWNER;

/* as the kernel writes it; glibc's struct dirent64 is the same but promises nothing */
struct kernel_dirent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct frame {
	int fd;
	bool progress; /* something was removed in this pass */
	bool stuck;    /* something could not be, here or further down, and has been counted */
	size_t pos, len;
	char name[NAME_MAX + 1]; /* in the frame below */
	_Alignas(8) char buffer[BUFFER_BYTES];
};

struct sweep {
	struct frame frame[DEPTH_MAX]; /* [0] is trash/<owner> */
	int depth;                     /* index of the current frame */
	unsigned long long removed, failed, moved;
	int first_error;
	char first_name[NAME_MAX + 1];
};

/* next_entry() - Return: the next name of the current directory, NULL at its end. */
static const struct kernel_dirent *next_entry(struct frame *f)
{
	for (;;) {
		const struct kernel_dirent *d;

		if (f->pos >= f->len) {
			long n = syscall(SYS_getdents64, f->fd, f->buffer, BUFFER_BYTES);

			if (n <= 0)
				return NULL;
			f->pos = 0;
			f->len = (size_t)n;
		}
		d = (const void *)(f->buffer + f->pos);
		f->pos += d->reclen;
		if (strcmp(d->name, ".") != 0 && strcmp(d->name, "..") != 0)
			return d;
	}
}

static void note_failure(struct sweep *s, const char *name)
{
	s->frame[s->depth].stuck = true;
	if (s->failed++ == 0) {
		s->first_error = errno;
		(void)str_copy(s->first_name, sizeof(s->first_name), name);
	}
}

static void note_removal(struct sweep *s)
{
	s->frame[s->depth].progress = true;
	s->removed++;
}

/* hoist() - the stack is full: move the directory up. Its new name must not meet one of an earlier run;
 * an empty directory there is replaced, which is as good. */
static void hoist(struct sweep *s, const char *name)
{
	char target[32];
	int r;

	do {
		(void)snprintf(target, sizeof(target), "deep.%llu", s->moved++);
		r = renameat(s->frame[s->depth].fd, name, s->frame[0].fd, target);
	} while (r < 0 && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR));
	if (r < 0) {
		note_failure(s, name);
		return;
	}
	s->frame[s->depth].progress = true;
	s->frame[0].progress = true;
}

static void descend(struct sweep *s, const char *name)
{
	struct frame *f;
	int fd;

	if (s->depth + 1 == DEPTH_MAX) {
		hoist(s, name);
		return;
	}
	fd = fd_open_beneath(s->frame[s->depth].fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0) {
		note_failure(s, name);
		return;
	}
	f = &s->frame[++s->depth];
	f->fd = fd;
	f->progress = f->stuck = false;
	f->pos = f->len = 0;
	(void)str_copy(f->name, sizeof(f->name), name);
}

static void remove_entry(struct sweep *s, const struct kernel_dirent *d)
{
	int dir_fd = s->frame[s->depth].fd;

	if (d->type != DT_DIR) {
		if (unlinkat(dir_fd, d->name, 0) == 0) {
			note_removal(s);
			return;
		}
		if (errno != EISDIR) {
			note_failure(s, d->name);
			return;
		}
	}
	if (unlinkat(dir_fd, d->name, AT_REMOVEDIR) == 0)
		note_removal(s);
	else if (errno == ENOTEMPTY || errno == EEXIST)
		descend(s, d->name);
	else
		note_failure(s, d->name);
}

static void rewind_frame(struct frame *f)
{
	f->progress = f->stuck = false;
	f->pos = f->len = 0;
	(void)lseek(f->fd, 0, SEEK_SET);
}

/* leave() - the end of a directory above the first. A file system may skip names while others are being
 * removed, so one that is not empty is read again as long as that helps. */
static void leave(struct sweep *s)
{
	struct frame *f = &s->frame[s->depth];
	struct frame *below = f - 1;
	bool full;

	if (unlinkat(below->fd, f->name, AT_REMOVEDIR) == 0) {
		below->progress = true;
		s->removed++;
		close_fd(&f->fd);
		s->depth--;
		return;
	}
	full = errno == ENOTEMPTY || errno == EEXIST;
	if (full && f->progress) {
		rewind_frame(f);
		return;
	}
	close_fd(&f->fd);
	s->depth--;
	if (full && f->stuck)
		below->stuck = true;
	else
		note_failure(s, f->name);
}

/* sweep_tree() - remove everything below fd. Return: how many names are left. */
static unsigned long long sweep_tree(struct sweep *s, int fd)
{
	s->depth = 0;
	s->frame[0].fd = fd;
	rewind_frame(&s->frame[0]);
	for (;;) {
		const struct kernel_dirent *d = next_entry(&s->frame[s->depth]);

		if (d) {
			remove_entry(s, d);
		} else if (s->depth > 0) {
			leave(s);
		} else if (s->frame[0].progress) {
			s->failed = 0; /* they are met again */
			rewind_frame(&s->frame[0]);
		} else {
			return s->failed;
		}
	}
}

static int worker(const struct idrange *ids, int *fds, size_t count)
{
	static struct sweep s; /* a quarter of a megabyte that only a worker touches */
	char name[4 * NAME_MAX];
	unsigned long long left = 0;
	struct err e;

	if (helper_enter_trash(ids, fds, count, sweep_caps, &e) < 0) {
		log_error("sweep: %s", e.message);
		return 1;
	}
	for (size_t i = 1; i < count; i++) /* [0] is the trash itself */
		left += sweep_tree(&s, fds[i]);
	if (left == 0)
		return 0;
	log_warn("sweep: %llu entries in the trash cannot be removed; the first is %s: %s", left,
		 str_escape(name, sizeof(name), s.first_name, strlen(s.first_name)),
		 strerror(s.first_error));
	return 1;
}

/* ---- in the keeper ---- */

static bool dir_is_empty(int fd)
{
	_Alignas(8) char buffer[1024]; /* "." and ".." and one name fit */
	long n = syscall(SYS_getdents64, fd, buffer, sizeof(buffer));
	int names = 0;

	for (long pos = 0; pos < n; names++)
		pos += ((const struct kernel_dirent *)(const void *)(buffer + pos))->reclen;
	return names <= 2;
}

/* collect_owner() - trash/<name>, when there is work for these ids in it. */
static int collect_owner(const struct store *s, const struct idrange *ids, const char *name)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (!str_is_owner_id(name))
		return -1;
	fd = fd_open_beneath(s->trash_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != ids->base + ID_SANDBOX_ROOT ||
	    dir_is_empty(fd))
		return -1;
	return take_fd(&fd);
}

/* collect() - [0] is the trash, the owners follow; more of them than fit get their turn the next time. */
static int collect(const struct store *s, const struct idrange *ids, int fds[OWNERS_MAX],
		   size_t *ret_count, struct err *e)
{
	int fd = fd_open_beneath(s->trash_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *d;

	if (!dir) {
		close_fd(&fd);
		return err_sys(e, "open the trash");
	}
	fds[0] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	*ret_count = fds[0] >= 0;
	while (*ret_count > 0 && *ret_count < OWNERS_MAX && (d = readdir(dir))) {
		fds[*ret_count] = collect_owner(s, ids, d->d_name);
		if (fds[*ret_count] >= 0)
			++*ret_count;
	}
	(void)closedir(dir);
	return *ret_count > 0 ? 0 : err_set(e, ERR_SYSTEM, "no descriptor for the trash");
}

pid_t store_sweep_start(const struct store *s, const struct idrange *ids, struct err *e)
{
	int fds[OWNERS_MAX];
	size_t count;
	pid_t pid;

	if (collect(s, ids, fds, &count, e) < 0)
		return -1;
	pid = count > 1 ? fork() : 0; /* nothing to do: no worker */
	if (pid == 0 && count > 1)
		_exit(worker(ids, fds, count));
	if (pid < 0)
		(void)err_sys(e, "fork a worker for the trash");
	while (count > 0)
		close_fd(&fds[--count]);
	return pid;
}
