/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/store_image.c - the images of the state directory, and room on its disk
 *
 * Runs where store.c runs. Trusts: images/ and what lies directly in it, which only the command line
 * writes; what is below rootfs/ is not looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/arch.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/store.h"

enum { DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NONBLOCK };

int store_image_open_any(const struct store *s, const char *name, struct err *e)
{
	char path[NAME_MAX_LEN + sizeof("/rootfs")];
	_cleanup_fd_ int fd = -1;
	bool locked;

	if (!str_is_name(name, NAME_MAX_LEN - 1))
		return err_set(e, ERR_CONFIG, "malformed image name");
	(void)snprintf(path, sizeof(path), "%s/rootfs", name);
	fd = fd_open_beneath(s->images_fd, path, DIR_FLAGS, 0);
	if (fd < 0 && errno == ENOENT) {
		(void)err_set(e, ERR_NOT_FOUND, "no image \"%s\"", name);
		return err_remedy(e, "mcp-sandbox image build --name %s", name);
	}
	if (fd < 0)
		return err_sys(e, "open image %s", name);
	locked = flock(fd, LOCK_SH | LOCK_NB) == 0;
	if (!locked && errno != EWOULDBLOCK)
		return err_sys(e, "lock image %s", name);
	/* locked by who removes or replaces it, or moved away before we had the lock */
	if (!locked || !store_is_at(s->images_fd, path, fd))
		return err_set(e, ERR_BUSY, "image \"%s\" is being changed", name);
	return take_fd(&fd);
}

/* check_arch() - an image without the file was made before there were others. */
static int check_arch(const struct store *s, const char *name, struct err *e)
{
	char path[NAME_MAX_LEN + sizeof("/" STORE_IMAGE_ARCH)], arch[ARCH_NAME_MAX];

	(void)snprintf(path, sizeof(path), "%s/" STORE_IMAGE_ARCH, name);
	if (fd_read_file_at(s->images_fd, path, arch, sizeof(arch)) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "read the architecture of image %s", name);
	if (!arch_is_foreign(arch))
		return 0;
	(void)err_set(e, ERR_HOST, "image \"%s\" is for %s, and sandboxes here are %s", name, arch,
		      arch_own());
	return err_remedy(e, "build or import one for %s; this one can be exported, for import on a machine "
			     "of its own kind", arch_own());
}

int store_image_open(const struct store *s, const char *name, struct err *e)
{
	_cleanup_fd_ int fd = store_image_open_any(s, name, e);

	return fd < 0 || check_arch(s, name, e) < 0 ? -1 : take_fd(&fd);
}

int store_min_free(const struct store *s, uint64_t min_free_bytes, struct err *e)
{
	char free_text[32], wanted_text[32];
	struct statvfs vfs;
	uint64_t free_bytes;

	if (fstatvfs(s->home_fd, &vfs) < 0)
		return err_sys(e, "ask for the free space of SANDBOX_HOME");
	if (__builtin_mul_overflow((uint64_t)vfs.f_bavail, (uint64_t)vfs.f_frsize, &free_bytes) ||
	    free_bytes >= min_free_bytes)
		return 0;
	(void)err_set(e, ERR_NOSPACE, "host disk almost full, refusing to start a sandbox");
	return err_remedy(e, "%s are free below SANDBOX_HOME, SANDBOX_MIN_FREE asks for %s",
			  str_format_size(free_bytes, free_text, sizeof(free_text)),
			  str_format_size(min_free_bytes, wanted_text, sizeof(wanted_text)));
}
