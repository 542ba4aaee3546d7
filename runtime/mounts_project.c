/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/mounts_project.c - the operator's folders in a sandbox's mount tree
 *
 * Runs in the child, between the other steps of mounts.c and with the same rights and the same mistrust of
 * what the layer holds. The mounts were made and restricted by the keeper (project_clone()); here they
 * are only put in place.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/mounts_part.h"

#define HOME_PARENT "home"
#define HOME_NAME "user"

/* On a file system of our own, which ends up read-only: nothing of the layer is between / and a folder,
 * and nobody inside can take its place. */
int mounts_projects(struct mounts *m)
{
	const struct mounts_option mode = { "mode", "0755" };
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd = -1;

	if (!m->has_mnt)
		return 0;
	fd = mounts_part_fs("ramfs", &mode, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (mounts_part_attach(m, MOUNTS_TARGET_MNT, fd) < 0)
		return -1;
	for (int i = 0; i < PROJECT_MAX; i++) {
		m->object = m->project_name[i];
		if (m->project_tree_fd[i] < 0)
			continue;
		if (mkdirat(fd, m->project_name[i], 0755) < 0 ||
		    move_mount(m->project_tree_fd[i], "", fd, m->project_name[i],
			       MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -1;
	}
	m->object = "mnt";
	return mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr));
}

/* /home/user on the layer. A read-only root has none: there HOME is /tmp. */
int mounts_home(struct mounts *m)
{
	_cleanup_fd_ int parent_fd = -1, fd = -1;

	if (!m->as_user || m->layer_tree_fd < 0)
		return 0;
	parent_fd = mounts_part_place(m, m->root_fd, HOME_PARENT, LAUNCH_REPLACED_HOME);
	if (parent_fd < 0)
		return -1;
	fd = mounts_part_place(m, parent_fd, HOME_NAME, LAUNCH_REPLACED_HOME);
	if (fd < 0)
		return -1;
	/* One that belongs to an id which does not exist in this sandbox stays as it is. */
	if (fchownat(fd, "", ID_USER_INSIDE, ID_USER_INSIDE, AT_EMPTY_PATH) < 0 && errno != EPERM &&
	    errno != EOVERFLOW)
		return -1;
	return 0;
}
