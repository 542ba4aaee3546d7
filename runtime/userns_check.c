/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/userns_check.c - is a running process's user namespace one that this keeper could have made?
 *
 * Runs in the keeper when it takes a sandbox over. Only the kernel's word counts: the parent of the
 * namespace, and its maps as seen from here.
 */
#include "runtime/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"

enum { MAP_MAX = 1024 };

/* A sandbox joins only from the namespace that owns it; the child of another one would look alive and
 * refuse every command. */
static int check_parent(pid_t pid, struct err *e)
{
	_cleanup_fd_ int ns_fd = -1, parent_fd = -1;
	struct stat parent, own;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	ns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (ns_fd < 0)
		return err_sys(e, "open %s", path);
	parent_fd = ioctl(ns_fd, NS_GET_PARENT);
	if (parent_fd < 0)
		return err_sys(e, "find the parent of its user namespace");
	if (fstat(parent_fd, &parent) < 0 || stat("/proc/self/ns/user", &own) < 0)
		return err_sys(e, "compare user namespaces");
	if (parent.st_ino != own.st_ino || parent.st_dev != own.st_dev)
		return err_set(e, ERR_DENIED, "its user namespace belongs to another storage namespace");
	return 0;
}

/* check_map() - inside 0 is the range's sandbox root, nothing outside the range but (an ordinary user's
 * project mount) this user, and inside nothing is ours. */
static int check_map(const struct idrange *r, pid_t pid, const char *file, struct err *e)
{
	char path[32], text[MAP_MAX];
	uint32_t inside, outside, count, root = UINT32_MAX;
	const char *at = text;
	int used = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	if (fd_read_file_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return err_sys(e, "read %s", path);
	while (sscanf(at, " %" SCNu32 " %" SCNu32 " %" SCNu32 "%n", &inside, &outside, &count, &used) == 3) {
		bool the_user = r->in_storage && outside == 0 && inside != 0 && count == 1;

		if (!the_user && (outside < r->base + ID_SANDBOX_ROOT || count > ID_BLOCK ||
				  outside - r->base > ID_BLOCK - count))
			return err_set(e, ERR_DENIED, "its %s has ids that are not a sandbox's", file);
		if (inside == 0)
			root = outside;
		at += used;
	}
	if (root != r->base + ID_SANDBOX_ROOT)
		return err_set(e, ERR_DENIED, "its %s does not begin at the sandbox's root", file);
	return 0;
}

int userns_check_sandbox(const struct idrange *r, pid_t pid, struct err *e)
{
	if (check_parent(pid, e) < 0 || check_map(r, pid, "uid_map", e) < 0)
		return -1;
	return check_map(r, pid, "gid_map", e);
}
