/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup.c - the cgroup of one sandbox: limits, leaves, kill, evidence, record
 *
 * Runs in the keeper. Everything goes through descriptors of directories in the delegated subtree;
 * sandboxes see cgroupfs nowhere, so what stands in these files was written by the kernel or by us.
 * A limit counts as enforced only after it was read back: a host without the memory controller takes
 * the directories and silently limits nothing.
 *
 * memory.high is left alone on purpose: without swap it does not stop a process that allocates, it
 * slows it to a crawl, and a command that should have ended with "out of memory" hangs instead.
 */
#include "runtime/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/cgroup_fs.h"
#include "runtime/cgroup_text.h"

enum {
	LEFT_OVER_WAIT_MS = 100,
	TAKE_TRIES = 8,
	CPU_PERIOD_USEC = 100000,
	CPU_PERIOD_LONG_USEC = 1000000, /* for shares whose quota would be below the kernel's 1 ms */
	CPU_QUOTA_MIN_USEC = 1000,
};

#define REMEDY_BEST_EFFORT "or set SANDBOX_LIMITS=best-effort to run without this limit"

void cgroup_box_none(struct cgroup_box *box)
{
	*box = (struct cgroup_box){ .dir_fd = -1, .init_fd = -1 };
	for (unsigned int i = 0; i < CGROUP_LEAVES; i++)
		box->leaf_fd[i] = -1;
}

void cgroup_box_done(struct cgroup_box *box)
{
	close_fd(&box->init_fd);
	for (unsigned int i = 0; i < CGROUP_LEAVES; i++)
		close_fd(&box->leaf_fd[i]);
	close_fd(&box->dir_fd);
}

void cgroup_leaf_name(char *text, size_t size, unsigned int i)
{
	(void)snprintf(text, size, "exec-%u", i);
}

/* ---- limits ---- */

/* set_checked() - write a value and insist that the kernel now says the same. */
static int set_checked(int dir_fd, const char *file, const char *value, struct err *e)
{
	char text[64];
	ssize_t len;

	if (fd_write_file_at(dir_fd, file, value) < 0)
		return err_sys(e, "write %s to %s", value, file);
	len = fd_read_file_at(dir_fd, file, text, sizeof(text));
	if (len < 0)
		return err_sys(e, "read %s back", file);
	text[strcspn(text, "\n")] = '\0';
	if (strcmp(text, value) != 0)
		return err_set(e, ERR_HOST, "%s says %s after %s was written", file, text, value);
	return 0;
}

/* host_has_swap() - /proc/swaps has a line for each below its heading. */
static bool host_has_swap(void)
{
	char text[4096];
	ssize_t len = fd_read_file_at(AT_FDCWD, "/proc/swaps", text, sizeof(text));

	return len < 0 ? errno != ENOENT : cgroup_text_lines(text, (size_t)len) > 1;
}

/* set_no_swap() - the file is missing where the kernel does not account swap: harmless without any. */
static int set_no_swap(int dir_fd, struct err *e)
{
	if (set_checked(dir_fd, "memory.swap.max", "0", e) == 0)
		return 0;
	if (e->sys_errno == ENOENT && !host_has_swap())
		return 0;
	return err_remedy(e, "boot without swapaccount=0 or turn swap off, " REMEDY_BEST_EFFORT);
}

static int set_memory(int dir_fd, const struct limits *limits, struct err *e)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char value[32];

	/* the kernel counts pages: what is read back is rounded down */
	(void)snprintf(value, sizeof(value), "%" PRIu64, limits->memory_bytes / page * page);
	if (set_no_swap(dir_fd, e) < 0)
		return -1;
	return set_checked(dir_fd, "memory.max", value, e);
}

static int set_pids(int dir_fd, const struct limits *limits, struct err *e)
{
	char value[32];

	(void)snprintf(value, sizeof(value), "%u", limits->pids);
	return set_checked(dir_fd, "pids.max", value, e);
}

static int set_cpu(int dir_fd, const struct limits *limits, struct err *e)
{
	uint64_t period = CPU_PERIOD_USEC, quota = limits->cpu_milli * period / 1000;
	char value[48];

	if (quota < CPU_QUOTA_MIN_USEC) {
		period = CPU_PERIOD_LONG_USEC;
		quota = limits->cpu_milli * period / 1000;
	}
	(void)snprintf(value, sizeof(value), "%" PRIu64 " %" PRIu64, quota, period);
	return set_checked(dir_fd, "cpu.max", value, e);
}

static const struct {
	unsigned int bit;
	const char *what;
	int (*set)(int dir_fd, const struct limits *limits, struct err *e);
} limit_table[] = {
	{ CGROUP_MEMORY, "memory", set_memory },
	{ CGROUP_PIDS, "processes", set_pids },
	{ CGROUP_CPU, "processor time", set_cpu },
};

int cgroup_box_set_limits(struct cgroup_box *box, unsigned int controllers, bool best_effort,
			  struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(limit_table); i++) {
		struct err why = { 0 };

		if (!(controllers & limit_table[i].bit))
			(void)err_set(&why, ERR_HOST, "the cgroup has no such controller");
		else if (limit_table[i].set(box->dir_fd, &box->limits, &why) == 0)
			box->enforced |= limit_table[i].bit;
		if ((box->enforced & limit_table[i].bit) || best_effort)
			continue;
		*e = why;
		if (e->remedy[0] == '\0')
			(void)err_remedy(e, "run \"mcp-sandbox doctor\", " REMEDY_BEST_EFFORT);
		return err_wrap(e, "cannot limit %s", limit_table[i].what);
	}
	return 0;
}

static int check_limits(const struct limits *limits, struct err *e)
{
	/* "0" would be taken by the kernel as "nothing may run here" */
	if (limits->memory_bytes < (uint64_t)sysconf(_SC_PAGESIZE) || limits->pids == 0 ||
	    limits->cpu_milli == 0)
		return err_set(e, ERR_CONFIG, "a limit of zero memory, processes or processors");
	return 0;
}

/* ---- creation ---- */

enum take { TAKE_OK, TAKE_AGAIN, TAKE_BUSY, TAKE_FAILED };

/* take_errno() - directories vanish when another keeper tidies up an owner that was just emptied. */
static enum take take_errno(void)
{
	return errno == ENOENT || errno == ENODEV ? TAKE_AGAIN : TAKE_FAILED;
}

/* clear_left_over() - Needs: the lock on key_fd. */
static enum take clear_left_over(const struct cgroup_tree *tree, const char *owner,
				 const char *key, int key_fd)
{
	if (fd_write_file_at(key_fd, "cgroup.kill", "1") < 0)
		return take_errno();
	if (cgroup_fs_wait_empty(key_fd, LEFT_OVER_WAIT_MS) < 0)
		return errno == EBUSY ? TAKE_BUSY : take_errno();
	return cgroup_fs_remove_box(tree->root_fd, owner, key) < 0 ? take_errno() : TAKE_AGAIN;
}

/* is_still() - whether a name still leads to an open directory: between making and locking it, a
 * keeper that starts may have taken it for a left-over and removed it. */
static bool is_still(int parent_fd, const char *name, int fd)
{
	struct stat named, opened;

	return fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(fd, &opened) == 0 && named.st_ino == opened.st_ino &&
	       named.st_dev == opened.st_dev;
}

/* take_key() - make the key's directory and lock it; the lock is what tells a left-over from the
 * sandbox of another keeper that is alive. */
static enum take take_key(const struct cgroup_tree *tree, const char *owner, const char *key,
			  int *ret_fd)
{
	_cleanup_fd_ int owner_fd = cgroup_fs_make(tree->root_fd, owner), fd = -1;
	bool fresh;

	if (owner_fd < 0)
		return take_errno();
	(void)cgroup_fs_enable(owner_fd, tree->controllers);
	fresh = mkdirat(owner_fd, key, 0700) == 0;
	if (!fresh && errno != EEXIST)
		return take_errno();
	fd = cgroup_fs_open(owner_fd, key);
	if (fd < 0)
		return take_errno();
	if (cgroup_fs_lock(&fd) < 0)
		return errno == EWOULDBLOCK ? TAKE_BUSY : TAKE_FAILED;
	if (!is_still(owner_fd, key, fd))
		return TAKE_AGAIN;
	if (!fresh)
		return clear_left_over(tree, owner, key, fd);
	*ret_fd = take_fd(&fd);
	return TAKE_OK;
}

static int take(const struct cgroup_tree *tree, const char *owner, const char *key, int *ret_fd,
		struct err *e)
{
	enum take result = TAKE_AGAIN;

	for (int i = 0; i < TAKE_TRIES && result != TAKE_OK; i++) {
		if (i > 0)
			(void)poll(NULL, 0, 1); /* whoever tidies up needs a moment; rare */
		result = take_key(tree, owner, key, ret_fd);
		if (result == TAKE_FAILED)
			return err_sys(e, "make cgroup %s/%s/%s", tree->path, owner, key);
	}
	if (result == TAKE_OK)
		return 0;
	return err_set(e, ERR_BUSY, "the cgroup of sandbox %s is still in use by another process",
		       key);
}

static int make_init(struct cgroup_box *box, unsigned int controllers, struct err *e)
{
	box->init_fd = cgroup_fs_make(box->dir_fd, "init");
	if (box->init_fd < 0)
		return err_sys(e, "make cgroup %s/init", box->key);
	/* nothing may ever fork beside pid 1: a process injected there would outlive every timeout */
	if ((controllers & CGROUP_PIDS) && set_checked(box->init_fd, "pids.max", "1", e) < 0)
		return -1;
	return 0;
}

static int fill(const struct cgroup_tree *tree, bool best_effort, struct cgroup_box *box,
		struct err *e)
{
	unsigned int leaf;

	if (take(tree, box->owner, box->key, &box->dir_fd, e) < 0 ||
	    cgroup_box_set_limits(box, tree->controllers, best_effort, e) < 0)
		return -1;
	/* leaves need these two for their evidence; processor time is counted and limited above them */
	leaf = cgroup_fs_enable(box->dir_fd, box->enforced & (CGROUP_MEMORY | CGROUP_PIDS));
	return make_init(box, leaf, e);
}

int cgroup_box_create(const struct cgroup_tree *tree, const char *owner, const char *key,
		      const struct limits *limits, bool best_effort, struct cgroup_box *box,
		      struct err *e)
{
	struct cgroup_box made;

	cgroup_box_none(&made);
	made.limits = *limits;
	if (!str_is_owner_id(owner) || !str_is_key(key) ||
	    str_copy(made.owner, sizeof(made.owner), owner) < 0 ||
	    str_copy(made.key, sizeof(made.key), key) < 0)
		return err_set(e, ERR_USAGE, "not an owner and a key");
	if (check_limits(limits, e) < 0)
		return -1;
	if (tree->root_fd < 0 && !best_effort)
		return err_set(e, ERR_HOST, "no cgroup to limit a sandbox with");
	if (tree->root_fd >= 0 && fill(tree, best_effort, &made, e) < 0) {
		if (made.dir_fd >= 0)
			(void)cgroup_fs_remove_box(tree->root_fd, owner, key);
		cgroup_box_done(&made);
		return -1;
	}
	*box = made;
	return 0;
}

/* ---- life ---- */

static int kill_all(int dir_fd)
{
	if (dir_fd < 0) {
		errno = EBADF;
		return -1;
	}
	return fd_write_file_at(dir_fd, "cgroup.kill", "1");
}

int cgroup_box_kill(const struct cgroup_box *box)
{
	return kill_all(box->dir_fd);
}

int cgroup_box_remove(const struct cgroup_tree *tree, struct cgroup_box *box)
{
	/* the lock goes last: a keeper that wants the key must find it gone, or held */
	if (box->dir_fd >= 0 && cgroup_fs_remove_box(tree->root_fd, box->owner, box->key) < 0)
		return -1;
	cgroup_box_done(box);
	return 0;
}

/* leaf_set_up() - a command that runs out of memory dies whole: half a pipeline is worse than none. */
static int leaf_set_up(const struct cgroup_box *box, int fd, struct err *e)
{
	if (!(box->enforced & CGROUP_MEMORY))
		return 0;
	return set_checked(fd, "memory.oom.group", "1", e);
}

/* leaf_discard() - the memory cgroup it may leave behind is paid for by a kill, which is rare. */
static int leaf_discard(struct cgroup_box *box, unsigned int i, const char *name, struct err *e)
{
	if (unlinkat(box->dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
		if (errno == EBUSY)
			return err_set(e, ERR_BUSY, "the killed command before it is still ending");
		return err_sys(e, "remove cgroup %s/%s", box->key, name);
	}
	close_fd(&box->leaf_fd[i]);
	box->leaf_spent &= ~(UINT32_C(1) << i);
	return 0;
}

int cgroup_leaf_open(struct cgroup_box *box, unsigned int i, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	char name[16];

	if (i >= CGROUP_LEAVES || box->dir_fd < 0)
		return err_set(e, ERR_USAGE, "no such cgroup leaf");
	cgroup_leaf_name(name, sizeof(name), i);
	if ((box->leaf_spent & (UINT32_C(1) << i)) && leaf_discard(box, i, name, e) < 0)
		return -1;
	if (box->leaf_fd[i] >= 0)
		return box->leaf_fd[i];
	fd = cgroup_fs_make(box->dir_fd, name);
	if (fd < 0)
		return err_sys(e, "make cgroup %s/%s", box->key, name);
	if (leaf_set_up(box, fd, e) < 0)
		return -1;
	box->leaf_fd[i] = take_fd(&fd);
	return box->leaf_fd[i];
}

void cgroup_leaf_spend(struct cgroup_box *box, unsigned int i)
{
	box->leaf_spent |= UINT32_C(1) << i;
}

int cgroup_leaf_kill(struct cgroup_box *box, unsigned int i)
{
	if (i >= CGROUP_LEAVES)
		return kill_all(-1);
	cgroup_leaf_spend(box, i);
	return kill_all(box->leaf_fd[i]);
}

/* ---- counting ---- */

static int count_processes(int dir_fd)
{
	_cleanup_fd_ int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char bytes[4096];
	size_t count = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		count += cgroup_text_lines(bytes, (size_t)n);
	return n < 0 ? -1 : (int)count;
}

int cgroup_leaf_count(const struct cgroup_box *box, unsigned int i)
{
	if (i >= CGROUP_LEAVES) {
		errno = EINVAL;
		return -1;
	}
	return box->leaf_fd[i] < 0 ? 0 : count_processes(box->leaf_fd[i]);
}

int cgroup_box_count(const struct cgroup_box *box)
{
	int total = 0, n;

	if (box->dir_fd < 0) {
		errno = EBADF;
		return -1;
	}
	n = count_processes(box->init_fd);
	for (unsigned int i = 0; n >= 0 && i < CGROUP_LEAVES; i++) {
		total += n;
		n = cgroup_leaf_count(box, i);
	}
	return n < 0 ? -1 : total + n;
}

uint64_t cgroup_box_memory(const struct cgroup_box *box)
{
	char text[32];
	uint64_t bytes = 0;

	if (box->dir_fd < 0 || fd_read_file_at(box->dir_fd, "memory.current", text, sizeof(text)) < 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return str_parse_u64(text, 0, UINT64_MAX, &bytes) < 0 ? 0 : bytes;
}

static int write_pids_max(const struct cgroup_box *box, unsigned int reserve)
{
	char value[32];

	(void)snprintf(value, sizeof(value), "%" PRIu64, (uint64_t)box->limits.pids + reserve);
	return fd_write_file_at(box->dir_fd, "pids.max", value);
}

int cgroup_pids_reserve(struct cgroup_box *box, bool on)
{
	int r = 0;

	if (!(box->enforced & CGROUP_PIDS))
		return 0;
	if (!on && box->reserves == 0) {
		errno = EINVAL;
		return -1;
	}
	/* only the first and the last change anything */
	if (box->reserves == (on ? 0u : 1u))
		r = write_pids_max(box, on ? CGROUP_PIDS_RESERVE : 0);
	if (r == 0 || !on)
		box->reserves += on ? 1u : -1u;
	return r;
}

int cgroup_evidence_read(const struct cgroup_box *box, unsigned int leaf,
			 struct cgroup_evidence *ret)
{
	int leaf_fd = leaf < CGROUP_LEAVES ? box->leaf_fd[leaf] : -1;

	*ret = (struct cgroup_evidence){ 0 };
	if (box->dir_fd < 0)
		return 0;
	/* before 6.11 a refused fork is counted where it was tried, since then where the limit is */
	ret->pids_refused = cgroup_fs_counter(box->dir_fd, "pids.events", "max");
	ret->throttled_usec = cgroup_fs_counter(box->dir_fd, "cpu.stat", "throttled_usec");
	if (leaf_fd >= 0) {
		ret->pids_refused += cgroup_fs_counter(leaf_fd, "pids.events", "max");
		/* "oom" is counted at the limit, one level up; kills where the process was */
		ret->oom_kills = cgroup_fs_counter(leaf_fd, "memory.events.local", "oom_kill");
	}
	return 0;
}
