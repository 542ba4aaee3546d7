/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/mounts_trust.c - the operator's certificate authorities in a sandbox's root
 *
 * Runs in the child, as the sandbox's root, before the root is mounted. The certificates were checked by the
 * command line (mcp/cli_trust.c) and lie in a sealed memory file; the image's own bundle is copied byte for
 * byte and never looked into. So nobody outside a sandbox reads a file of an image.
 *
 * They are one more read-only directory between image and layer, and not mounts over single files: a package
 * that renews its bundle (update-ca-certificates) puts a new file in the place of the old, which a mount point
 * refuses; and as they also lie where an administrator adds certificates, the new one has them too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/sys.h"
#include "runtime/mounts.h"
#include "runtime/overlay.h"

enum { COPY_BLOCK = 16 * 1024, IMAGE_BUNDLE_MAX = 4 * 1024 * 1024 };

#define BUNDLE "etc/ssl/certs/ca-certificates.crt"
#define LOCAL  "usr/local/share/ca-certificates"

/* Parents first. In the image each is a directory, or not there: one that leads elsewhere would be hidden. */
static const char *const dirs[] = {
	"etc", "etc/ssl", "etc/ssl/certs", "usr", "usr/lib", "usr/lib/ssl",
	"usr/local", "usr/local/share", LOCAL,
};

static int open_image(const struct mounts *m, const char *path, int flags)
{
	_cleanup_fd_ int image_fd = openat(m->scratch_fd, OVERLAY_LOWER, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return image_fd < 0 ? -1 : sys_openat2(image_fd, path, flags | O_CLOEXEC, 0,
					       RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
}

static int make_dirs(struct mounts *m, int trust_fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		_cleanup_fd_ int seen_fd = open_image(m, dirs[i], O_PATH | O_DIRECTORY);

		m->object = dirs[i];
		if ((seen_fd < 0 && errno != ENOENT) || mkdirat(trust_fd, dirs[i], 0755) < 0)
			return -1;
	}
	return 0;
}

static int create(int trust_fd, const char *path)
{
	return openat(trust_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
}

/* copy() - the bytes from start to end, or to the end of the file when that comes first. */
static int copy(int from, size_t start, size_t end, int to)
{
	char block[COPY_BLOCK];

	while (start < end) {
		size_t want = end - start < sizeof(block) ? end - start : sizeof(block);
		ssize_t n = pread(from, block, want, (off_t)start);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return (int)n;
		if (fd_write_full(to, block, (size_t)n) < 0)
			return -1;
		start += (size_t)n;
	}
	return 0;
}

static int copy_image_bundle(const struct mounts *m, int to)
{
	_cleanup_fd_ int from = open_image(m, BUNDLE, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (from < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(from, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_size > IMAGE_BUNDLE_MAX) {
		errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
		return -1;
	}
	if (copy(from, 0, (size_t)st.st_size, to) < 0)
		return -1;
	return fd_write_full(to, "\n", 1); /* its last line may not have ended */
}

static int write_bundle(struct mounts *m, int trust_fd)
{
	_cleanup_fd_ int fd = create(trust_fd, BUNDLE);

	m->object = BUNDLE;
	if (fd < 0 || copy_image_bundle(m, fd) < 0)
		return -1;
	return copy(m->trust->fd, 0, m->trust->end[m->trust->count - 1], fd);
}

/* One certificate in a file, as update-ca-certificates wants them. */
static int write_local(struct mounts *m, int trust_fd)
{
	const struct trust *t = m->trust;
	char name[sizeof(LOCAL "/mcp-sandbox-99.crt")];

	_Static_assert(TRUST_MAX < 100, "two digits");
	m->object = LOCAL;
	for (size_t i = 0; i < t->count; i++) {
		_cleanup_fd_ int fd = -1;

		(void)snprintf(name, sizeof(name), LOCAL "/mcp-sandbox-%02u.crt", (unsigned int)(i + 1) % 100);
		fd = create(trust_fd, name);
		if (fd < 0 || copy(t->fd, i > 0 ? t->end[i - 1] : 0, t->end[i], fd) < 0)
			return -1;
	}
	return 0;
}

int mounts_trust(struct mounts *m)
{
	_cleanup_fd_ int trust_fd = -1;

	if (!m->trust)
		return 0;
	if (mkdirat(m->scratch_fd, OVERLAY_TRUST, 0755) < 0)
		return -1;
	trust_fd = openat(m->scratch_fd, OVERLAY_TRUST, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (trust_fd < 0 || make_dirs(m, trust_fd) < 0 || write_bundle(m, trust_fd) < 0 ||
	    write_local(m, trust_fd) < 0)
		return -1;
	/* Where OpenSSL looks that has not been told anything; the same link that Debian's package has. */
	m->object = "usr/lib/ssl/cert.pem";
	return symlinkat("/" BUNDLE, trust_fd, "usr/lib/ssl/cert.pem");
}
