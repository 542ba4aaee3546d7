/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_adopt.c - take over the cgroup of a sandbox whose keeper is gone
 *
 * Runs in a keeper that starts. Whether what runs there may be kept is not decided here (adopt.c): this
 * file locks, counts, kills and removes. The lock is what no two keepers can have at once.
 */
#include "runtime/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/cgroup_fs.h"

enum { CLEAR_WAIT_MS = 100, KILL_WAIT_MS = 100 };

void cgroup_each_box(const struct cgroup_tree *tree, cgroup_box_fn *fn, void *ctx)
{
	if (tree->root_fd >= 0)
		cgroup_fs_each_box(tree->root_fd, fn, ctx);
}

int cgroup_box_hold(const struct cgroup_tree *tree, const char *owner, const char *key)
{
	_cleanup_fd_ int owner_fd = cgroup_fs_open(tree->root_fd, owner);
	_cleanup_fd_ int fd = owner_fd < 0 ? -1 : cgroup_fs_open(owner_fd, key);

	if (fd < 0 || cgroup_fs_lock(&fd) < 0)
		return -1;
	return take_fd(&fd);
}

pid_t cgroup_box_init_pid(int dir_fd)
{
	char text[64];
	uint64_t pid;
	ssize_t len = fd_read_file_at(dir_fd, "init/cgroup.procs", text, sizeof(text));

	if (len <= 0 || text[len - 1] != '\n')
		return 0;
	text[len - 1] = '\0';
	return str_parse_u64(text, 1, INT_MAX, &pid) < 0 ? 0 : (pid_t)pid;
}

static int open_leaf(int dir_fd, unsigned int i)
{
	char name[16];

	cgroup_leaf_name(name, sizeof(name), i);
	return cgroup_fs_open(dir_fd, name);
}

uint32_t cgroup_box_marks(int dir_fd)
{
	uint32_t count = 0;

	for (unsigned int i = 0; i < CGROUP_LEAVES; i++) {
		_cleanup_fd_ int fd = open_leaf(dir_fd, i);

		count += fd >= 0 && cgroup_record_marked(fd);
	}
	return count;
}

/* adopt_leaf() - background work stays where it is. A command without an answer is killed: its pipes
 * have lost their reader and its exit status goes to somebody else. */
static int adopt_leaf(struct cgroup_box *box, unsigned int i, bool keep_marked, uint32_t *ret_lost,
		      struct err *e)
{
	char name[16];

	box->leaf_fd[i] = open_leaf(box->dir_fd, i);
	if (box->leaf_fd[i] < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open a cgroup of sandbox %s", box->key);
	if (keep_marked && cgroup_record_marked(box->leaf_fd[i]))
		return 0;
	if (cgroup_record_marked(box->leaf_fd[i])) {
		(*ret_lost)++;
		if (cgroup_leaf_kill(box, i) < 0)
			return err_sys(e, "kill a command of sandbox %s", box->key);
		cgroup_leaf_unmark(box, i);
		(void)cgroup_fs_wait_empty(box->leaf_fd[i], KILL_WAIT_MS);
	}
	cgroup_leaf_name(name, sizeof(name), i);
	if (unlinkat(box->dir_fd, name, AT_REMOVEDIR) < 0)
		return errno == EBUSY ? 0 : err_sys(e, "remove a cgroup of sandbox %s", box->key);
	close_fd(&box->leaf_fd[i]);
	box->leaf_spent &= ~(UINT32_C(1) << i);
	return 0;
}

static int adopt(const struct cgroup_tree *tree, bool best_effort, bool keep_marked,
		 struct cgroup_box *box, uint32_t *ret_lost, struct err *e)
{
	if (cgroup_box_set_limits(box, tree->controllers, best_effort, e) < 0)
		return -1;
	box->init_fd = cgroup_fs_open(box->dir_fd, "init");
	if (box->init_fd < 0)
		return err_sys(e, "open cgroup %s/init", box->key);
	for (unsigned int i = 0; i < CGROUP_LEAVES; i++) {
		if (adopt_leaf(box, i, keep_marked, ret_lost, e) < 0)
			return -1;
	}
	return 0;
}

int cgroup_box_adopt(const struct cgroup_tree *tree, int dir_fd, const char *owner, const char *key,
		     const struct limits *limits, bool best_effort, bool keep_marked,
		     struct cgroup_box *box, uint32_t *ret_lost, struct err *e)
{
	struct cgroup_box made;

	cgroup_box_none(&made);
	made.dir_fd = dir_fd;
	made.limits = *limits;
	*ret_lost = 0;
	if (str_copy(made.owner, sizeof(made.owner), owner) < 0 ||
	    str_copy(made.key, sizeof(made.key), key) < 0 ||
	    adopt(tree, best_effort, keep_marked, &made, ret_lost, e) < 0) {
		cgroup_box_done(&made);
		return -1;
	}
	*box = made;
	return 0;
}

int cgroup_box_clear(const struct cgroup_tree *tree, int dir_fd, const char *owner, const char *key)
{
	_cleanup_fd_ int fd = dir_fd; /* the lock goes last */

	if (fd_write_file_at(fd, "cgroup.kill", "1") < 0 || cgroup_fs_wait_empty(fd, CLEAR_WAIT_MS) < 0)
		return -1;
	return cgroup_fs_remove_box(tree->root_fd, owner, key);
}
