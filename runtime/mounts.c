/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/mounts.c - the sandbox's mount tree
 *
 * mounts_prepare() runs in the keeper. Everything else runs in the child, as the sandbox's root with
 * full capabilities over its own namespaces, before any other process of the sandbox exists.
 *
 * Trusted: the keeper's descriptors, the host's /dev. Hostile: whatever the layer and the image hold,
 * because commands wrote it. So nothing below the new root is ever reached by a path: a mount point is
 * one component, opened with openat2() so that no link is followed and no mount crossed, and mounts
 * are put on that descriptor (CVE-2021-30465 and its many successors). A mount point that is not a
 * directory is renamed aside rather than refused: refusing would lose the label for good. What the
 * other steps name lies on file systems mounted here a moment ago, which hold only what the kernel or
 * this file put there.
 *
 * Everything happens attached to the tree: composing on a detached mount fails before Linux 6.15.
 */
#include "runtime/mounts_part.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/sys.h"
#include "runtime/overlay.h"

/* One page per inode on average, and never so few that a small file system is useless. */
enum { BYTES_PER_INODE = 4096, INODES_MIN = 1024 };

#define DEVICES	  "n" /* below the scratch mount: the nodes that /dev is made of */
#define MASK_DIR  "e"   /* below the scratch mount: read-only, holds the two masks */
#define MASK_NONE "e/d" /* an empty directory */
#define MASK_FILE "e/f" /* an empty file */

static const char *const target_names[MOUNTS_TARGET_COUNT] = {
	[MOUNTS_TARGET_PROC] = "proc",	 [MOUNTS_TARGET_DEV] = "dev",
	[MOUNTS_TARGET_SYS] = "sys",	 [MOUNTS_TARGET_TMP] = "tmp",
	[MOUNTS_TARGET_RUN] = "run",	 [MOUNTS_TARGET_WORKSPACE] = "workspace",
	[MOUNTS_TARGET_OUTPUT] = "output",	 [MOUNTS_TARGET_MNT] = "mnt",
};

/* The keeper's half */

/* clone_tree() - a detached private copy of the mount a directory lies on, rooted at the directory.
 * Private: a member of the host's peer group would carry our mounts back to the host. */
static int clone_tree(int dir_fd, uint64_t attributes, int *ret_fd, const char *what,
		      struct err *e)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attributes,
		.propagation = MS_PRIVATE,
	};
	_cleanup_fd_ int fd = -1;

	if (dir_fd < 0)
		return 0;
	fd = open_tree(dir_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (fd < 0)
		return err_sys(e, "clone the mount of the %s", what);
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_sys(e, "restrict the mount of the %s", what);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* translate_tree() - show the image to an owner of another block of ids: its files carry the first. */
static int translate_tree(int tree_fd, int ns_fd, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns_fd };

	if (ns_fd < 0 || mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) == 0)
		return 0;
	(void)err_sys(e, "show the image to this owner (an idmapped mount)");
	if (errno == EINVAL || errno == EOPNOTSUPP)
		return err_remedy(e, "put SANDBOX_HOME on ext4, xfs or btrfs; only the default owner can do without");
	return -1;
}

static void spell_size(char bytes_text[MOUNTS_NUMBER_MAX], char inodes_text[MOUNTS_NUMBER_MAX],
		       uint64_t bytes)
{
	uint64_t inodes = bytes / BYTES_PER_INODE;

	if (inodes < INODES_MIN)
		inodes = INODES_MIN;
	(void)snprintf(bytes_text, MOUNTS_NUMBER_MAX, "%" PRIu64, bytes);
	(void)snprintf(inodes_text, MOUNTS_NUMBER_MAX, "%" PRIu64, inodes);
}

static void mounts_clear(struct mounts *m)
{
	memset(m, 0, sizeof(*m));
	m->lower_tree_fd = m->layer_tree_fd = m->workspace_tree_fd = m->output_tree_fd = -1;
	m->devices_fd = -1;
	m->scratch_fd = m->root_fd = m->proc_fd = m->dev_fd = m->proc_sys_fd = -1;
	for (int i = 0; i < PROJECT_MAX; i++)
		m->project_tree_fd[i] = -1;
	for (int i = 0; i < MOUNTS_TARGET_COUNT; i++)
		m->target_fd[i] = -1;
	m->object = "";
}

static int clone_projects(struct mounts *m, const struct mounts_sources *src, struct err *e)
{
	struct projects *p = src->projects;

	for (size_t i = 0; p && i < p->count; i++) {
		struct project *item = &p->item[i];
		int fd = project_clone(item, src->ids, e);

		if (fd < 0)
			return -1;
		if (strcmp(item->target, PROJECT_WORKSPACE) == 0) {
			m->workspace_tree_fd = fd;
			m->workspace_is_project = true;
			continue;
		}
		m->project_tree_fd[i] = fd;
		(void)stpcpy(m->project_name[i], item->target + strlen(PROJECT_MNT));
		m->has_mnt = true;
	}
	m->as_user = p && p->as_user;
	return 0;
}

int mounts_prepare(struct mounts *m, const struct mounts_sources *src,
		   const struct profile *profile, struct err *e)
{
	struct timespec now = { 0 };

	mounts_clear(m);
	m->tmp_noexec = profile->tmp_noexec;
	m->trust = src->trust;
	spell_size(m->tmp_bytes, m->tmp_inodes, profile->tmp_bytes);
	spell_size(m->shm_bytes, m->shm_inodes, profile->shm_bytes);
	spell_size(m->run_bytes, m->run_inodes, profile->run_bytes);
	spell_size(m->workspace_bytes, m->workspace_inodes, profile->workspace_tmpfs_bytes);
	/* To the nanosecond: a script may start the same sandbox many times in a second. */
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(m->aside_suffix, sizeof(m->aside_suffix), "-%" PRIu64 ".%09ld",
		       (uint64_t)now.tv_sec, now.tv_nsec);
	mounts_part_devices(m, src->ids);
	if (clone_tree(src->lower_fd, MOUNT_ATTR_RDONLY, &m->lower_tree_fd, "image", e) < 0 ||
	    translate_tree(m->lower_tree_fd, src->lower_ns_fd, e) < 0 ||
	    clone_tree(src->layer_fd, 0, &m->layer_tree_fd, "layer", e) < 0 ||
	    clone_projects(m, src, e) < 0 ||
	    (m->workspace_tree_fd < 0 &&
	     clone_tree(src->workspace_fd, 0, &m->workspace_tree_fd, "workspace", e) < 0) ||
	    clone_tree(src->output_fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, &m->output_tree_fd,
		       "output directory", e) < 0) {
		mounts_done(m);
		return -1;
	}
	return 0;
}

void mounts_done(struct mounts *m)
{
	close_fd(&m->lower_tree_fd);
	close_fd(&m->layer_tree_fd);
	close_fd(&m->workspace_tree_fd);
	close_fd(&m->output_tree_fd);
	close_fd(&m->devices_fd);
	for (int i = 0; i < PROJECT_MAX; i++)
		close_fd(&m->project_tree_fd[i]);
}

/* The child's half: small helpers */

int mounts_part_fs(const char *type, const struct mounts_option *options, size_t count,
		   unsigned int attributes)
{
	_cleanup_fd_ int fs_fd = fsopen(type, FSOPEN_CLOEXEC);

	if (fs_fd < 0 || fsconfig(fs_fd, FSCONFIG_SET_STRING, "source", type, 0) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (fsconfig(fs_fd, FSCONFIG_SET_STRING, options[i].key, options[i].value, 0) < 0)
			return -1;
	}
	if (fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return fsmount(fs_fd, FSMOUNT_CLOEXEC, attributes);
}

int mounts_part_tmpfs(const char *mode, const char *bytes, const char *inodes,
		      unsigned int attributes)
{
	const struct mounts_option options[] = {
		{ "mode", mode }, { "size", bytes }, { "nr_inodes", inodes }
	};

	return mounts_part_fs("tmpfs", options, ARRAY_SIZE(options),
		       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | attributes);
}

/* open_target() - a mount point on the new root, or -1 when it is missing (ENOENT) or not a directory
 * (ELOOP, ENOTDIR). across: also when something is mounted there. */
static int open_target(int root_fd, const char *name, bool across)
{
	return sys_openat2(root_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0,
			   RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
				   (across ? 0 : RESOLVE_NO_XDEV));
}

int mounts_part_attach(struct mounts *m, enum mounts_target target, int mount_fd)
{
	_cleanup_fd_ int seen_fd = -1;
	struct stat want, seen;

	m->object = target_names[target];
	if (mount_fd < 0)
		return -1;
	if (move_mount(mount_fd, "", m->target_fd[target], "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -1;
	seen_fd = open_target(m->root_fd, target_names[target], true);
	if (seen_fd < 0 || fstat(seen_fd, &seen) < 0 || fstat(mount_fd, &want) < 0)
		return -1;
	if (seen.st_dev != want.st_dev || seen.st_ino != want.st_ino) {
		errno = ESTALE;
		return -1;
	}
	return 0;
}

/* Steps, in launch.c's order */

int mounts_make_private(struct mounts *m)
{
	m->object = "/";
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

/* fill_scratch() - empty mount points for the trees, the skeleton of a read-only root, the masks. */
static int fill_scratch(const struct mounts *m)
{
	static const char *const dirs[] = { OVERLAY_LOWER, OVERLAY_LAYER, OVERLAY_SKELETON,
					    OVERLAY_ROOT,  MASK_DIR,	  MASK_NONE };
	_cleanup_fd_ int skeleton_fd = -1, file_fd = -1;

	if (m->devices_fd >= 0 && mkdirat(m->scratch_fd, DEVICES, 0700) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		if (mkdirat(m->scratch_fd, dirs[i], 0755) < 0)
			return -1;
	}
	file_fd = openat(m->scratch_fd, MASK_FILE, O_CREAT | O_EXCL | O_RDONLY | O_CLOEXEC, 0444);
	if (file_fd < 0)
		return -1;
	if (m->layer_tree_fd >= 0)
		return 0;
	skeleton_fd = openat(m->scratch_fd, OVERLAY_SKELETON, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < MOUNTS_TARGET_COUNT; i++) {
		if (mkdirat(skeleton_fd, target_names[i], 0755) < 0)
			return -1;
	}
	return 0;
}

/* attach_masks() - a read-only mount, so that every clone of a piece of it is read-only as well. */
static int attach_masks(const struct mounts *m)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd = open_tree(m->scratch_fd, MASK_DIR, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -1;
	return move_mount(fd, "", m->scratch_fd, MASK_DIR, MOVE_MOUNT_F_EMPTY_PATH);
}

int mounts_scratch(struct mounts *m)
{
	const struct mounts_option mode = { "mode", "0755" };

	m->object = "/proc";
	/* ramfs, not tmpfs: it has no accounting to set up, df does not list it, and nothing but this
	 * file ever writes to it. Over the host's /proc, which every host has and we need no more. */
	m->scratch_fd = mounts_part_fs("ramfs", &mode, 1,
				MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (m->scratch_fd < 0 ||
	    move_mount(m->scratch_fd, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	if (fill_scratch(m) < 0 || attach_masks(m) < 0)
		return -1;
	m->object = "/dev";
	if (m->devices_fd >= 0 &&
	    move_mount(m->devices_fd, "", m->scratch_fd, DEVICES, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	m->object = "image";
	if (move_mount(m->lower_tree_fd, "", m->scratch_fd, OVERLAY_LOWER,
		       MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -1;
	if (m->layer_tree_fd < 0)
		return 0;
	m->object = "layer";
	return move_mount(m->layer_tree_fd, "", m->scratch_fd, OVERLAY_LAYER,
			  MOVE_MOUNT_F_EMPTY_PATH);
}

int mounts_root(struct mounts *m)
{
	m->object = "root";
	if (overlay_mount(m->scratch_fd, m->layer_tree_fd >= 0, m->trust != NULL) < 0)
		return -1;
	m->root_fd = openat(m->scratch_fd, OVERLAY_ROOT,
			    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return m->root_fd < 0 ? -1 : 0;
}

/* rename_aside() - NAME becomes .replaced-NAME-TIME beside it, where its owner finds it again. */
static int rename_aside(struct mounts *m, int dir_fd, const char *name)
{
	static const char prefix[] = ".replaced-";
	char aside[sizeof(prefix) + MOUNTS_ASIDE_MAX + 16];
	char *end = stpcpy(aside, prefix);

	end = stpcpy(end, name);
	(void)stpcpy(end, m->aside_suffix);
	return renameat2(dir_fd, name, dir_fd, aside, RENAME_NOREPLACE);
}

int mounts_part_place(struct mounts *m, int dir_fd, const char *name, uint32_t replaced)
{
	int fd = open_target(dir_fd, name, false);

	m->object = name;
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR)) {
		if (rename_aside(m, dir_fd, name) < 0)
			return -1;
		m->replaced |= replaced;
		errno = ENOENT;
	}
	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(dir_fd, name, 0755) < 0)
			return -1;
		fd = open_target(dir_fd, name, false);
	}
	return fd;
}

static bool is_wanted(const struct mounts *m, int target)
{
	return !(target == MOUNTS_TARGET_OUTPUT && m->output_tree_fd < 0) &&
	       !(target == MOUNTS_TARGET_MNT && !m->has_mnt);
}

int mounts_targets(struct mounts *m)
{
	for (int i = 0; i < MOUNTS_TARGET_COUNT; i++) {
		if (!is_wanted(m, i))
			continue;
		m->target_fd[i] = mounts_part_place(m, m->root_fd, target_names[i], 1U << i);
		if (m->target_fd[i] < 0)
			return -1;
	}
	return 0;
}

int mounts_proc(struct mounts *m)
{
	m->object = "proc";
	m->proc_fd = mounts_part_fs("proc", NULL, 0,
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return mounts_part_attach(m, MOUNTS_TARGET_PROC, m->proc_fd);
}

static int mount_shm(struct mounts *m)
{
	_cleanup_fd_ int fd = -1;

	m->object = "/dev/shm";
	fd = mounts_part_tmpfs("1777", m->shm_bytes, m->shm_inodes,
			m->tmp_noexec ? MOUNT_ATTR_NOEXEC : 0);
	if (fd < 0 || mkdirat(m->dev_fd, "shm", 0755) < 0)
		return -1;
	return move_mount(fd, "", m->dev_fd, "shm", MOVE_MOUNT_F_EMPTY_PATH);
}

int mounts_tmpfs(struct mounts *m)
{
	unsigned int noexec = m->tmp_noexec ? MOUNT_ATTR_NOEXEC : 0;
	_cleanup_fd_ int tmp_fd = mounts_part_tmpfs("1777", m->tmp_bytes, m->tmp_inodes, noexec);
	_cleanup_fd_ int run_fd = -1;

	if (mounts_part_attach(m, MOUNTS_TARGET_TMP, tmp_fd) < 0)
		return -1;
	run_fd = mounts_part_tmpfs("0755", m->run_bytes, m->run_inodes, noexec);
	if (mounts_part_attach(m, MOUNTS_TARGET_RUN, run_fd) < 0)
		return -1;
	if (mkdirat(run_fd, "lock", 01777) < 0) /* /var/lock leads here on Debian */
		return -1;
	return mount_shm(m);
}

int mounts_workspace(struct mounts *m)
{
	_cleanup_fd_ int fd = -1;

	m->object = target_names[MOUNTS_TARGET_WORKSPACE];
	/* The label's own belongs to the sandbox's root; who commands run as shall write there. */
	if (m->as_user && !m->workspace_is_project && m->workspace_tree_fd >= 0 &&
	    fchmodat(m->workspace_tree_fd, ".", 01777, 0) < 0)
		return -1;
	if (m->workspace_tree_fd >= 0)
		return mounts_part_attach(m, MOUNTS_TARGET_WORKSPACE, m->workspace_tree_fd);
	fd = mounts_part_tmpfs(m->as_user ? "1777" : "0755", m->workspace_bytes, m->workspace_inodes, 0);
	return mounts_part_attach(m, MOUNTS_TARGET_WORKSPACE, fd);
}

int mounts_output(struct mounts *m)
{
	if (m->output_tree_fd < 0)
		return 0;
	return mounts_part_attach(m, MOUNTS_TARGET_OUTPUT, m->output_tree_fd);
}

int mounts_keep_proc_sys(struct mounts *m)
{
	m->object = "/proc/sys";
	m->proc_sys_fd = sys_openat2(m->proc_fd, "sys", O_PATH | O_DIRECTORY | O_CLOEXEC, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	return m->proc_sys_fd < 0 ? -1 : 0;
}

/* What of /proc speaks about the host instead of the sandbox, or acts on it. Most of it is closed to
 * unmapped ids anyway; a mask holds whatever the kernel's file modes are. A kernel without an entry
 * needs no mask for it. */
static const struct mask {
	const char *name;
	bool is_dir;
} masks[] = {
	{ "sysrq-trigger", false }, /* acts */
	{ "kcore", false },	    /* memory of the kernel */
	{ "kmsg", false },
	{ "kallsyms", false }, /* where the kernel's code is */
	{ "modules", false },
	{ "config.gz", false },
	{ "cmdline", false }, /* the host's boot line: disk ids, now and then secrets */
	{ "keys", false },    /* other users' keys */
	{ "key-users", false },
	{ "interrupts", false }, /* activity of the host: keystrokes, network */
	{ "softirqs", false },
	{ "timer_list", false },
	{ "sched_debug", false },
	{ "schedstat", false },
	{ "latency_stats", false },
	{ "diskstats", false },
	{ "partitions", false },
	{ "swaps", false },
	{ "mdstat", false },
	{ "mtrr", false },
	{ "iomem", false }, /* what hardware there is; its addresses read as 0 without privilege */
	{ "ioports", false },
	{ "acpi", true }, /* hardware */
	{ "asound", true },
	{ "bus", true },
	{ "driver", true },
	{ "dynamic_debug", true },
	{ "fs", true }, /* names of the host's disks */
	{ "irq", true },
	{ "pressure", true }, /* load of the host, and a way to make the kernel measure it */
	{ "scsi", true },
};

static int mask_one(const struct mounts *m, const struct mask *mask)
{
	_cleanup_fd_ int fd = open_tree(m->scratch_fd, mask->is_dir ? MASK_NONE : MASK_FILE,
					OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd < 0)
		return -1;
	if (move_mount(fd, "", m->proc_fd, mask->name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return errno == ENOENT ? 0 : -1;
	return 0;
}

/* A sandbox's root could write its own namespaces' sysctls: forwarding, message queue sizes, the next
 * process number. */
static int make_proc_sys_readonly(struct mounts *m)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_fd_ int fd = -1;

	m->object = "/proc/sys";
	fd = open_tree(m->proc_fd, "sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0 || mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -1;
	return move_mount(fd, "", m->proc_fd, "sys", MOVE_MOUNT_F_EMPTY_PATH);
}

int mounts_masks(struct mounts *m)
{
	_cleanup_fd_ int sys_fd = -1;

	if (make_proc_sys_readonly(m) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(masks); i++) {
		m->object = masks[i].name;
		if (mask_one(m, &masks[i]) < 0)
			return -1;
	}
	/* No sysfs: nothing a sandbox is for needs it (C libraries, node, Java and Go fall back to
	 * /proc), and it is the widest window on the host there is. An empty read-only directory
	 * instead of the image's, so that nothing can pretend to be one. */
	sys_fd = open_tree(m->scratch_fd, MASK_NONE, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return mounts_part_attach(m, MOUNTS_TARGET_SYS, sys_fd);
}

int mounts_pivot(struct mounts *m)
{
	struct stat want, seen;

	m->object = "/";
	/* pivot_root(".", "."): the old root lands on top of the new one and is taken away with
	 * everything on it, the scratch mount too (pivot_root(2)). */
	if (fchdir(m->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -1;
	/* ".." of the root crosses into whatever is mounted over it; "/" would not. */
	if (fstat(m->root_fd, &want) < 0 || stat("/..", &seen) < 0)
		return -1;
	if (want.st_dev != seen.st_dev || want.st_ino != seen.st_ino) {
		errno = ESTALE;
		return -1;
	}
	return 0;
}
