/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/mounts_dev.c - /dev of a sandbox: six devices and its own terminals
 *
 * mounts_part_devices() runs in the keeper, the rest in the child as the sandbox's root, between the other
 * steps of mounts.c. Trusted: the host's /dev, whose nodes are looked at before one is shown. Nothing of
 * the image or the layer is used.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/mounts_part.h"

static const struct device {
	const char *name;
	unsigned int major, minor;
} devices[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },	 { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static bool is_device(const struct stat *st, const struct device *device)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(device->major, device->minor);
}

static bool has_devices(int dir_fd)
{
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (fstatat(dir_fd, devices[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_device(&st, &devices[i]))
			return false;
	}
	return true;
}

/* Nodes of this sandbox's own, so that it shares no inode with the host or with another
 * sandbox: a lock on one and a watch of one stay inside. Making nodes would take CAP_MKNOD, which the
 * keeper gives up; an overlay has inodes of its own for the nodes below it. It has to have two layers,
 * and both are of the kind that holds devices. In a user namespace no node of it can be opened, and where
 * each node of the host's /dev is a mount of its own, as in some containers, it shows the places below them;
 * then, or where it cannot be mounted, m->devices_fd stays -1 and the host's own nodes are shown. */
void mounts_part_devices(struct mounts *m, const struct idrange *ids)
{
	const struct mounts_option options[] = {
		{ "lowerdir", "/dev:/dev/pts" }, { "index", "off" },	{ "xino", "off" },
		{ "redirect_dir", "nofollow" },	 { "metacopy", "off" },
	};
	_cleanup_fd_ int fd = -1, probe_fd = -1;

	if (ids->in_storage)
		return;
	fd = mounts_part_fs("overlay", options, ARRAY_SIZE(options),
			    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0 || !has_devices(fd))
		return;
	probe_fd = openat(fd, devices[0].name, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (probe_fd >= 0)
		m->devices_fd = take_fd(&fd);
}

static const struct link {
	const char *name, *text;
} device_links[] = {
	{ "fd", "/proc/self/fd" },	 { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

/* bind_device() - one node, after looking at what it is: a container host may have put something else
 * in its place. Read-only keeps the sandbox from touching the inode (times, attributes) and does not
 * keep it from writing to the device. */
static int bind_device(struct mounts *m, const struct device *device)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
	};
	_cleanup_fd_ int fd = -1, place_fd = -1;
	struct stat st;

	m->object = device->name;
	fd = open_tree(m->devices_fd, device->name,
		       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!is_device(&st, device)) {
		errno = ENODEV;
		return -1;
	}
	place_fd = openat(m->dev_fd, device->name, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	if (place_fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -1;
	return move_mount(fd, "", m->dev_fd, device->name, MOVE_MOUNT_F_EMPTY_PATH);
}

static int mount_devpts(struct mounts *m)
{
	/* An instance of its own is the default since Linux 4.7. gid 5 is Debian's tty. */
	const struct mounts_option options[] = {
		{ "mode", "620" }, { "gid", "5" }, { "ptmxmode", "666" }, { "max", "64" }
	};
	_cleanup_fd_ int fd = -1;

	m->object = "/dev/pts";
	fd = mounts_part_fs("devpts", options, ARRAY_SIZE(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0 || mkdirat(m->dev_fd, "pts", 0755) < 0)
		return -1;
	return move_mount(fd, "", m->dev_fd, "pts", MOVE_MOUNT_F_EMPTY_PATH);
}

int mounts_dev(struct mounts *m)
{
	m->object = "/dev";
	if (m->devices_fd < 0)
		m->devices_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (m->devices_fd < 0)
		return -1;
	m->dev_fd = mounts_part_tmpfs("0755", "65536", "64", MOUNT_ATTR_NOEXEC);
	if (mounts_part_attach(m, MOUNTS_TARGET_DEV, m->dev_fd) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		if (bind_device(m, &devices[i]) < 0)
			return -1;
	}
	m->object = "/dev";
	for (size_t i = 0; i < ARRAY_SIZE(device_links); i++) {
		if (symlinkat(device_links[i].text, m->dev_fd, device_links[i].name) < 0)
			return -1;
	}
	return mount_devpts(m);
}
