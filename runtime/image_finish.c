/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_finish.c - from what a bootstrap tool leaves to what a sandbox wants
 *
 * Runs in: a box with the ids, capabilities and filter of a sandbox; the tree is the only thing it can
 * write. Trusts: nothing in the tree. Every path is opened beneath the tree with no link followed, and
 * files are made anew instead of written through.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/image.h"
#include "runtime/image_box.h"
#include "runtime/image_user.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY };

/* Directories a sandbox is mounted on (launch.c): they must be there when the root is read-only. */
static const struct {
	const char *name;
	mode_t mode;
} mount_points[] = { { "proc", 0555 }, { "sys", 0555 },	 { "dev", 0755 },	{ "tmp", 01777 },
		     { "run", 0755 },  { "mnt", 0755 },	 { "workspace", 0755 }, { "output", 0755 } };

/* Left by the tool: options of this one build, and names of this host. */
static const char *const leftovers[] = { "etc/apt/apt.conf.d/99mmdebstrap",
					 "etc/dpkg/dpkg.cfg.d/99mmdebstrap", "etc/machine-id",
					 "var/lib/dbus/machine-id", "var/cache/ldconfig/aux-cache" };

/* Emptied: package lists are stale within days and a third of a small image; "apt-get update" is
 * the first thing everybody runs. */
static const char *const emptied[] = { "var/lib/apt/lists", "var/cache/apt",
				       "var/cache/apt/archives", "var/log", "var/log/apt" };

/* What the box hands back: a stage and the name it was about. */
struct finish_result {
	enum { FINISH_OK, FINISH_MOUNT_POINT, FINISH_FILE, FINISH_LINK, FINISH_CLEAN } stage;
	int error;
	char name[128];
};

struct finish_ctx {
	const struct recipe *recipe;
	struct finish_result *result; /* mapped shared */
};

static int failed(const struct finish_ctx *c, int stage, const char *name)
{
	c->result->error = errno;
	c->result->stage = stage;
	(void)snprintf(c->result->name, sizeof(c->result->name), "%s", name);
	return -1;
}

static int make_mount_points(const struct finish_ctx *c, int root)
{
	for (size_t i = 0; i < ARRAY_SIZE(mount_points); i++) {
		_cleanup_fd_ int fd = -1;

		if (mkdirat(root, mount_points[i].name, mount_points[i].mode) < 0 && errno != EEXIST)
			return failed(c, FINISH_MOUNT_POINT, mount_points[i].name);
		fd = fd_open_beneath(root, mount_points[i].name, DIR_FLAGS, 0);
		if (fd < 0)
			return failed(c, FINISH_MOUNT_POINT, mount_points[i].name);
	}
	return 0;
}

/* open_parent() - the directory of a path, made where it is missing. Return: descriptor, -1. */
static int open_parent(int root, const char *path, const char **ret_name)
{
	_cleanup_fd_ int dir = fd_open_beneath(root, ".", DIR_FLAGS, 0);
	const char *slash;

	while (dir >= 0 && (slash = strchr(path, '/'))) {
		char part[NAME_MAX + 1];
		int next;

		if ((size_t)(slash - path) >= sizeof(part)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			return -1;
		next = fd_open_beneath(dir, part, DIR_FLAGS, 0);
		close_fd(&dir);
		dir = next;
		path = slash + 1;
	}
	*ret_name = path;
	return take_fd(&dir);
}

static int put_file(int root, const struct recipe_text *file)
{
	const char *name;
	_cleanup_fd_ int dir = open_parent(root, file->name, &name), fd = -1;

	if (dir < 0 || (unlinkat(dir, name, 0) < 0 && errno != ENOENT))
		return -1;
	fd = fd_open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	return fd < 0 ? -1 : fd_write_full(fd, file->text, strlen(file->text));
}

static int put_link(int root, const struct recipe_link *link)
{
	const char *name;
	_cleanup_fd_ int dir = open_parent(root, link->path + 1, &name);

	if (dir < 0 || (unlinkat(dir, name, 0) < 0 && errno != ENOENT))
		return -1;
	return symlinkat(link->target, dir, name);
}

/* remove_files() - the files of one directory, not what is in directories below it. */
static int remove_files(int root, const char *path)
{
	int fd = fd_open_beneath(root, path, DIR_FLAGS, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		close_fd(&fd);
		return errno == ENOENT ? 0 : -1;
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (unlinkat(fd, entry->d_name, 0) < 0 && errno != EISDIR && errno != ENOENT)
			r = -1;
	}
	(void)closedir(dir);
	return r;
}

static int remove_leftovers(const struct finish_ctx *c, int root)
{
	for (size_t i = 0; i < ARRAY_SIZE(leftovers); i++) {
		const char *name;
		_cleanup_fd_ int dir = open_parent(root, leftovers[i], &name);

		if (dir < 0 || (unlinkat(dir, name, 0) < 0 && errno != ENOENT))
			return failed(c, FINISH_CLEAN, leftovers[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(emptied); i++) {
		if (remove_files(root, emptied[i]) < 0)
			return failed(c, FINISH_CLEAN, emptied[i]);
	}
	return 0;
}

static int put_recipe(const struct finish_ctx *c, int root)
{
	if (remove_leftovers(c, root) < 0)
		return -1;
	for (const struct recipe_text *file = recipe_files; file->name; file++) {
		if (put_file(root, file) < 0)
			return failed(c, FINISH_FILE, file->name);
	}
	for (size_t i = 0; i < c->recipe->link_count; i++) {
		if (put_link(root, &c->recipe->link[i]) < 0)
			return failed(c, FINISH_LINK, c->recipe->link[i].path);
	}
	return 0;
}

static int finish(void *ctx)
{
	const struct finish_ctx *c = ctx;
	_cleanup_fd_ int root = open("/target", DIR_FLAGS | O_CLOEXEC);
	const char *name;

	(void)umask(0);
	if (root < 0)
		return failed(c, FINISH_CLEAN, "/target") < 0;
	if (make_mount_points(c, root) < 0 || (c->recipe && put_recipe(c, root) < 0))
		return 1;
	return image_name_user(root, &name) < 0 && failed(c, FINISH_FILE, name) < 0;
}

static int explain(const struct finish_result *result, struct err *e)
{
	char name[sizeof(result->name) * 4];

	str_escape(name, sizeof(name), result->name, strnlen(result->name, sizeof(result->name)));
	errno = result->error;
	switch (result->stage) {
	case FINISH_MOUNT_POINT:
		if (errno == ENOTDIR || errno == ELOOP)
			return err_set(e, ERR_DENIED, "/%s in the image is not a directory", name);
		return err_sys(e, "make /%s in the image", name);
	case FINISH_FILE:
	case FINISH_LINK:
		return err_sys(e, "write %s in the image", name);
	case FINISH_CLEAN:
		return err_sys(e, "clean %s in the image", name);
	default:
		return err_set(e, ERR_SYSTEM, "the image cannot be completed");
	}
}

int image_finish(const struct idrange *ids, int rootfs_fd, const struct recipe *recipe,
		 struct err *e)
{
	struct finish_ctx ctx = { .recipe = recipe };
	_cleanup_fd_ int tree = box_tree(rootfs_fd, "", e);
	struct box box = { .role = BOX_SANDBOX,
			   .mounts = { { tree, "/target", true } },
			   .mount_count = 1,
			   .stdin_fd = -1,
			   .stdout_fd = -1,
			   .stderr_fd = -1,
			   .fn = finish,
			   .ctx = &ctx };
	int r;

	if (tree < 0)
		return -1;
	ctx.result = mmap(NULL, sizeof(*ctx.result), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ctx.result == MAP_FAILED)
		return err_sys(e, "share memory with a helper process");
	r = box_run(ids, &box, e);
	if (r > 0)
		r = explain(ctx.result, e);
	(void)munmap(ctx.result, sizeof(*ctx.result));
	return r;
}
