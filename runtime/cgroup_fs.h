/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/cgroup_fs.h - cgroupfs directories and files, shared by cgroup*.c only */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup_controller {
	const char *name;
	unsigned int bit; /* CGROUP_* */
};

enum { CGROUP_CONTROLLER_COUNT = 3 };

extern const struct cgroup_controller cgroup_controllers[CGROUP_CONTROLLER_COUNT];

/* cgroup_fs_open() - a directory beneath dir_fd, one component. Return: descriptor, -1. */
int cgroup_fs_open(int dir_fd, const char *name);

/* cgroup_fs_make() - the same, made first when missing. */
int cgroup_fs_make(int dir_fd, const char *name);

/* cgroup_fs_lock() - hold a directory without waiting; released with its last descriptor. The
 * directories are 0700, so only their owner can. Return: 0, -1 (EWOULDBLOCK). */
int cgroup_fs_lock(int *dir_fd);

/* cgroup_fs_counter() - a "name value" line of a file. Return: the value, 0 when there is none. */
uint64_t cgroup_fs_counter(int dir_fd, const char *file, const char *name);

/* cgroup_fs_enable() - give children those of the wanted controllers that there are, one write each
 * so that a refused one does not take the others along. Return: CGROUP_* in force, read back. */
unsigned int cgroup_fs_enable(int dir_fd, unsigned int wanted);

/* cgroup_fs_has_controller() - in cgroup.controllers: whether its parent gives it. */
bool cgroup_fs_has_controller(int dir_fd, const char *name);

/* cgroup_fs_wait_empty() - wait until no process is left. Return: 0, -1 with errno EBUSY. */
int cgroup_fs_wait_empty(int dir_fd, int timeout_ms);

/* cgroup_fs_sweep() - remove every sandbox's directories beneath a tree that nobody holds and that
 * have no process. */
void cgroup_fs_sweep(int root_fd);

/* cgroup_fs_each_pid() - call fn for each entry named by a number: the private trees of keepers. */
void cgroup_fs_each_pid(int base_fd, void (*fn)(int base_fd, const char *name));

/* cgroup_fs_remove_box() - rmdir leaves and key, then the owner when that was its last. Return: 0, -1. */
int cgroup_fs_remove_box(int root_fd, const char *owner, const char *key);

/* cgroup_fs_each_box() - call fn for every directory named <owner-id>/<key>. */
void cgroup_fs_each_box(int root_fd, void (*fn)(const char *owner, const char *key, void *ctx),
			void *ctx);

/* cgroup_record_marked() - whether a leaf's command has had no answer. */
bool cgroup_record_marked(int leaf_fd);

struct cgroup_box;
struct err;

/* Shared by cgroup.c and cgroup_adopt.c. */
void cgroup_box_none(struct cgroup_box *box);
int cgroup_box_set_limits(struct cgroup_box *box, unsigned int controllers, bool best_effort,
			  struct err *e);
void cgroup_leaf_name(char *text, size_t size, unsigned int i);
