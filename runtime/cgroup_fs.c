/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_fs.c - cgroupfs directories and files
 *
 * Runs in the keeper, with its privilege over the delegated subtree. Nothing inside a sandbox can
 * reach cgroupfs; names are ours, or read from directories only their owner can change.
 */
#include "runtime/cgroup_fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/lock.h"
#include "runtime/base/str.h"
#include "runtime/cgroup.h"
#include "runtime/cgroup_text.h"

const struct cgroup_controller cgroup_controllers[CGROUP_CONTROLLER_COUNT] = {
	{ "memory", CGROUP_MEMORY },
	{ "pids", CGROUP_PIDS },
	{ "cpu", CGROUP_CPU },
};

int cgroup_fs_open(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int cgroup_fs_make(int dir_fd, const char *name)
{
	if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
		return -1;
	return cgroup_fs_open(dir_fd, name);
}

int cgroup_fs_lock(int *dir_fd)
{
	return lock_take(dir_fd);
}

uint64_t cgroup_fs_counter(int dir_fd, const char *file, const char *name)
{
	char text[4096]; /* cpu.stat and memory.events are well below; memory.stat is never read */
	uint64_t value = 0;

	if (fd_read_file_at(dir_fd, file, text, sizeof(text)) < 0 ||
	    cgroup_text_counter(text, name, &value) != 1)
		return 0;
	return value;
}

static bool file_has_word(int dir_fd, const char *file, const char *word)
{
	char text[512];

	return fd_read_file_at(dir_fd, file, text, sizeof(text)) > 0 &&
	       cgroup_text_has_word(text, word);
}

bool cgroup_fs_has_controller(int dir_fd, const char *name)
{
	return file_has_word(dir_fd, "cgroup.controllers", name);
}

unsigned int cgroup_fs_enable(int dir_fd, unsigned int wanted)
{
	unsigned int have = 0;

	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		const struct cgroup_controller *c = &cgroup_controllers[i];
		char line[16];

		if (!(wanted & c->bit))
			continue;
		if (!file_has_word(dir_fd, "cgroup.subtree_control", c->name)) {
			(void)snprintf(line, sizeof(line), "+%s", c->name);
			(void)fd_write_file_at(dir_fd, "cgroup.subtree_control", line);
		}
		if (file_has_word(dir_fd, "cgroup.subtree_control", c->name))
			have |= c->bit;
	}
	return have;
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* populated() - Return: 1, 0, -1. The file is read through one descriptor: a change after the read
 * then wakes poll() for it. */
static int populated(int events_fd)
{
	char text[256];
	uint64_t value;
	ssize_t n = pread(events_fd, text, sizeof(text) - 1, 0);

	if (n < 0)
		return -1;
	text[n] = '\0';
	return cgroup_text_counter(text, "populated", &value) == 1 ? value != 0 : -1;
}

int cgroup_fs_wait_empty(int dir_fd, int timeout_ms)
{
	_cleanup_fd_ int fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	int64_t end = now_ms() + timeout_ms;

	if (fd < 0)
		return -1;
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLPRI };
		int state = populated(fd);
		int64_t left = end - now_ms();

		if (state <= 0)
			return state;
		if (left <= 0) {
			errno = EBUSY;
			return -1;
		}
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return -1;
	}
}

static int remove_leaf(int key_fd, const char *name)
{
	return unlinkat(key_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -1 : 0;
}

int cgroup_fs_remove_box(int root_fd, const char *owner, const char *key)
{
	_cleanup_fd_ int owner_fd = cgroup_fs_open(root_fd, owner);
	_cleanup_fd_ int key_fd = owner_fd < 0 ? -1 : cgroup_fs_open(owner_fd, key);

	if (key_fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (remove_leaf(key_fd, "init") < 0)
		return -1;
	for (unsigned int i = 0; i < CGROUP_LEAVES; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "exec-%u", i);
		if (remove_leaf(key_fd, name) < 0)
			return -1;
	}
	if (unlinkat(owner_fd, key, AT_REMOVEDIR) < 0)
		return -1;
	/* not empty: other sandboxes of this owner */
	(void)unlinkat(root_fd, owner, AT_REMOVEDIR);
	return 0;
}

static void sweep_key(int root_fd, int owner_fd, const char *owner, const char *key)
{
	_cleanup_fd_ int fd = cgroup_fs_open(owner_fd, key);

	if (fd < 0 || cgroup_fs_lock(&fd) < 0 || cgroup_fs_wait_empty(fd, 0) < 0)
		return;
	(void)cgroup_fs_remove_box(root_fd, owner, key);
}

static void closedir_p(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* open_dir() - a stream of its own, so that its position is nobody else's. */
static DIR *open_dir(int dir_fd, const char *name)
{
	_cleanup_fd_ int fd = cgroup_fs_open(dir_fd, name);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (dir)
		(void)take_fd(&fd);
	return dir;
}

static void each_key(int root_fd, const char *owner,
		     void (*fn)(const char *owner, const char *key, void *ctx), void *ctx)
{
	_cleanup_(closedir_p) DIR *keys = open_dir(root_fd, owner);
	struct dirent *d;

	while (keys && (d = readdir(keys))) {
		if (str_is_key(d->d_name))
			fn(owner, d->d_name, ctx);
	}
}

void cgroup_fs_each_box(int root_fd, void (*fn)(const char *owner, const char *key, void *ctx),
			void *ctx)
{
	_cleanup_(closedir_p) DIR *owners = open_dir(root_fd, ".");
	struct dirent *d;

	while (owners && (d = readdir(owners))) {
		if (str_is_owner_id(d->d_name))
			each_key(root_fd, d->d_name, fn, ctx);
	}
}

static void sweep_box(const char *owner, const char *key, void *ctx)
{
	const int *root_fd = ctx;
	_cleanup_fd_ int owner_fd = cgroup_fs_open(*root_fd, owner);

	if (owner_fd >= 0)
		sweep_key(*root_fd, owner_fd, owner, key);
}

void cgroup_fs_sweep(int root_fd)
{
	cgroup_fs_each_box(root_fd, sweep_box, &root_fd);
}

void cgroup_fs_each_pid(int base_fd, void (*fn)(int base_fd, const char *name))
{
	_cleanup_(closedir_p) DIR *dir = open_dir(base_fd, ".");
	struct dirent *d;
	uint64_t pid;

	while (dir && (d = readdir(dir))) {
		if (str_parse_u64(d->d_name, 1, INT_MAX, &pid) == 0)
			fn(base_fd, d->d_name);
	}
}
