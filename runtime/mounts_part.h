/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/mounts_part.h - what the files of the mount tree share; the child's half where nothing else is said */
#pragma once

#include <stddef.h>

#include "runtime/mounts.h"

struct mounts_option {
	const char *key, *value; /* value NULL: a flag */
};

/* mounts_part_fs() - a new file system instance as a detached mount. Return: descriptor, -1. */
int mounts_part_fs(const char *type, const struct mounts_option *options, size_t count,
		   unsigned int attributes);

/* mounts_part_tmpfs() - the same, a tmpfs, nosuid and nodev. Return: descriptor, -1. */
int mounts_part_tmpfs(const char *mode, const char *bytes, const char *inodes, unsigned int attributes);

/* mounts_part_devices() - in the keeper: m->devices_fd, or -1 where the host's nodes have to do. */
void mounts_part_devices(struct mounts *m, const struct idrange *ids);

/* mounts_part_attach() - put a detached mount on a target, and see that it is what the name leads to
 * now. */
int mounts_part_attach(struct mounts *m, enum mounts_target target, int mount_fd);

/* mounts_part_place() - a directory of one component below dir_fd, on the root's own file system: the one
 * that is there, or a new one after whatever else had the name was renamed aside and noted in
 * m->replaced. Return: O_PATH descriptor, -1. */
int mounts_part_place(struct mounts *m, int dir_fd, const char *name, uint32_t replaced);
