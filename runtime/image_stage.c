/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/image_stage.c - images appear and disappear in one rename
 *
 * Runs in: the command line's "image" verbs, as host root or root of the storage namespace. Looks at
 * directories of images/ only; what is below rootfs/ is moved to trash/ and removed by the sweeper.
 *
 * Locks: images/.lock is held for moments, while names change; a stage's directory is locked while its
 * maker lives (the kernel lets go of a flock whatever kills it); a sandbox holds a shared lock on
 * the rootfs directory it stands on (store_image_open()).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/image.h"

#define STAGE_PREFIX ".new-"
#define MANIFEST     "manifest.json"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY };

/* lock_names() - Return: a descriptor that holds the lock until it is closed, -1. */
static int lock_names(const struct store *s, struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->images_fd, ".lock", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_sys(e, "lock the images");
	return take_fd(&fd);
}

/* run_sweeper() - empty trash/ and wait for it: who removes an image wants the room. */
static int run_sweeper(const struct store *s, const struct idrange *ids, struct err *e)
{
	pid_t pid = store_sweep_start(s, ids, e);
	int status;

	while (pid > 0 && waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return err_sys(e, "wait for the sweeper");
	}
	return pid < 0 ? -1 : 0;
}

/* dismantle() - a directory of images/ that no name leads to any more. */
static int dismantle(const struct store *s, const struct idrange *ids, const char *name,
		     struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->images_fd, name, DIR_FLAGS, 0);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open the left-over %s", name);
	if (store_trash_tree(s, ids, fd, "rootfs", e) < 0)
		return -1;
	if ((unlinkat(fd, MANIFEST, 0) < 0 && errno != ENOENT) ||
	    (unlinkat(fd, STORE_IMAGE_ARCH, 0) < 0 && errno != ENOENT))
		return err_sys(e, "remove a manifest");
	if (unlinkat(s->images_fd, name, AT_REMOVEDIR) < 0)
		return err_sys(e, "remove the left-over %s", name);
	return 0;
}

/* sweep_stage() - when nobody holds its lock, its maker is dead. Needs: the lock on names. */
static int sweep_stage(const struct store *s, const struct idrange *ids, const char *name,
		       struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(s->images_fd, name, DIR_FLAGS, 0);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	return dismantle(s, ids, name, e);
}

static int sweep_stages(const struct store *s, const struct idrange *ids, struct err *e)
{
	int fd = fd_open_beneath(s->images_fd, ".", DIR_FLAGS, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		close_fd(&fd);
		return err_sys(e, "list the images");
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, STAGE_PREFIX, sizeof(STAGE_PREFIX) - 1) == 0)
			r = sweep_stage(s, ids, entry->d_name, e);
	}
	(void)closedir(dir);
	return r < 0 ? r : run_sweeper(s, ids, e);
}

static int make_stage(const struct store *s, const struct idrange *ids, struct image_stage *st,
		      struct err *e)
{
	uint32_t root = ids->base + ID_SANDBOX_ROOT;
	uint64_t nonce;

	if (getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce))
		return err_sys(e, "get a random number");
	(void)snprintf(st->dir_name, sizeof(st->dir_name), STAGE_PREFIX "%016llx",
		       (unsigned long long)nonce);
	if (mkdirat(s->images_fd, st->dir_name, 0700) < 0)
		return err_sys(e, "make a directory for the new image");
	st->dir_fd = fd_open_beneath(s->images_fd, st->dir_name, DIR_FLAGS, 0);
	if (st->dir_fd < 0 || flock(st->dir_fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, "lock the new image");
	if (mkdirat(st->dir_fd, "rootfs", 0755) < 0)
		return err_sys(e, "make the root directory of the new image");
	st->rootfs_fd = fd_open_beneath(st->dir_fd, "rootfs", DIR_FLAGS, 0);
	if (st->rootfs_fd < 0 || fchown(st->rootfs_fd, root, root) < 0 ||
	    fchmod(st->rootfs_fd, 0755) < 0)
		return err_sys(e, "hand the new image to the sandboxes' root");
	return 0;
}

int image_stage_arch(const struct image_stage *stage, const char *arch, struct err *e)
{
	_cleanup_fd_ int fd = fd_open_beneath(stage->dir_fd, STORE_IMAGE_ARCH,
					      O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0 || fd_write_full(fd, arch, strlen(arch)) < 0)
		return err_sys(e, "write the architecture of the new image");
	return 0;
}

int image_stage_begin(const struct store *s, const struct idrange *ids, struct image_stage *ret,
		      struct err *e)
{
	struct image_stage st = { .dir_fd = -1, .rootfs_fd = -1 };
	_cleanup_fd_ int lock_fd = lock_names(s, e);

	if (lock_fd < 0 || sweep_stages(s, ids, e) < 0)
		return -1;
	if (make_stage(s, ids, &st, e) < 0) {
		image_stage_abandon(s, ids, &st);
		return -1;
	}
	*ret = st;
	return 0;
}

void image_stage_abandon(const struct store *s, const struct idrange *ids,
			 struct image_stage *stage)
{
	if (stage->dir_fd >= 0) {
		(void)dismantle(s, ids, stage->dir_name, NULL);
		(void)run_sweeper(s, ids, NULL);
	}
	close_fd(&stage->rootfs_fd);
	close_fd(&stage->dir_fd);
}

/* lock_root() - exclusively, while no sandbox stands on it. Return: descriptor, -1; *ret_missing tells
 * that there is no such image. */
static int lock_root(const struct store *s, const char *name, bool *ret_missing, struct err *e)
{
	char path[NAME_MAX_LEN + sizeof("/rootfs")];
	_cleanup_fd_ int fd = -1;

	*ret_missing = false;
	if (!str_is_name(name, NAME_MAX_LEN - 1))
		return err_set(e, ERR_USAGE, "malformed image name");
	(void)snprintf(path, sizeof(path), "%s/rootfs", name);
	fd = fd_open_beneath(s->images_fd, path, DIR_FLAGS, 0);
	if (fd < 0) {
		*ret_missing = errno == ENOENT;
		return err_sys(e, "open image %s", name);
	}
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return take_fd(&fd);
	if (errno != EWOULDBLOCK)
		return err_sys(e, "lock image %s", name);
	(void)err_set(e, ERR_BUSY, "image \"%s\" is in use by a sandbox", name);
	return err_remedy(e, "end it first: mcp-sandbox ps, mcp-sandbox stop <label>");
}

int image_in_use(const struct store *s, const char *name, struct err *e)
{
	bool missing;
	_cleanup_fd_ int fd = lock_root(s, name, &missing, e);

	return fd >= 0 || missing ? 0 : -1;
}

/* sync_stage() - the name must never lead to half an image after a power cut. */
static int sync_stage(const struct image_stage *stage, struct err *e)
{
	if (syncfs(stage->dir_fd) < 0 || fsync(stage->dir_fd) < 0)
		return err_sys(e, "write the new image to disk");
	return 0;
}

/* swap_in() - Needs: the lock on names. Afterwards the stage's name leads to what was replaced. */
static int swap_in(const struct store *s, const struct image_stage *stage, const char *name,
		   bool replace, struct err *e)
{
	unsigned int flags = replace ? RENAME_EXCHANGE : RENAME_NOREPLACE;

	if (renameat2(s->images_fd, stage->dir_name, s->images_fd, name, flags) < 0)
		return err_sys(e, "name the new image %s", name);
	if (fsync(s->images_fd) < 0)
		return err_sys(e, "write the list of images to disk");
	return 0;
}

int image_stage_publish(const struct store *s, const struct idrange *ids,
			struct image_stage *stage, const char *name, bool *ret_replaced,
			struct err *e)
{
	_cleanup_fd_ int lock_fd = -1, old_fd = -1;
	bool missing;

	if (sync_stage(stage, e) < 0)
		return -1;
	lock_fd = lock_names(s, e);
	if (lock_fd < 0)
		return -1;
	old_fd = lock_root(s, name, &missing, e);
	if (old_fd < 0 && !missing)
		return -1;
	if (swap_in(s, stage, name, !missing, e) < 0)
		return -1;
	*ret_replaced = !missing;
	if (!missing && (dismantle(s, ids, stage->dir_name, e) < 0 || run_sweeper(s, ids, e) < 0))
		return -1;
	close_fd(&stage->rootfs_fd);
	close_fd(&stage->dir_fd);
	return 0;
}

int image_remove(const struct store *s, const struct idrange *ids, const char *name, struct err *e)
{
	_cleanup_fd_ int lock_fd = lock_names(s, e), old_fd = -1;
	char aside[NAME_MAX_LEN + sizeof(STAGE_PREFIX)];
	bool missing;

	if (lock_fd < 0)
		return -1;
	old_fd = lock_root(s, name, &missing, e);
	if (missing)
		return err_set(e, ERR_NOT_FOUND, "no image \"%s\"", name);
	if (old_fd < 0)
		return -1;
	(void)snprintf(aside, sizeof(aside), STAGE_PREFIX "%s", name);
	if (renameat(s->images_fd, name, s->images_fd, aside) < 0)
		return err_sys(e, "take image %s away", name);
	return dismantle(s, ids, aside, e) < 0 ? -1 : run_sweeper(s, ids, e);
}

/* after and ret_name may be the same buffer: the answer is the next question. */
int image_next(const struct store *s, const char *after, char ret_name[NAME_MAX_LEN], struct err *e)
{
	int fd = fd_open_beneath(s->images_fd, ".", DIR_FLAGS, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	char best[NAME_MAX_LEN] = "";
	struct dirent *entry;

	if (!dir) {
		close_fd(&fd);
		return err_sys(e, "list the images");
	}
	while ((entry = readdir(dir))) {
		if (str_is_name(entry->d_name, NAME_MAX_LEN - 1) && strcmp(entry->d_name, after) > 0 &&
		    (!best[0] || strcmp(entry->d_name, best) < 0))
			(void)str_copy(best, sizeof(best), entry->d_name);
	}
	(void)closedir(dir);
	return best[0] && str_copy(ret_name, NAME_MAX_LEN, best) == 0;
}
