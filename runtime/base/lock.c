/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/lock.c - flocks that outlive an execve
 *
 * Runs in the keeper, and, without anything inherited, in command lines.
 */
#include "runtime/base/lock.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "runtime/base/cleanup.h"

static int inherited[LOCK_INHERITED_MAX];
static size_t inherited_count;

static bool is_same_file(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
	       one.st_ino == other.st_ino;
}

static int take_inherited(int *fd)
{
	for (size_t i = 0; i < inherited_count; i++) {
		if (inherited[i] < 0 || !is_same_file(inherited[i], *fd))
			continue;
		close_fd(fd);
		*fd = take_fd(&inherited[i]);
		return 0;
	}
	errno = EWOULDBLOCK;
	return -1;
}

int lock_take(int *fd)
{
	if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? take_inherited(fd) : -1;
}

int lock_inherit(const int *fds, size_t count)
{
	if (count > LOCK_INHERITED_MAX - inherited_count)
		return -1;
	for (size_t i = 0; i < count; i++)
		inherited[inherited_count++] = fds[i];
	return 0;
}

void lock_inherited_done(void)
{
	for (size_t i = 0; i < inherited_count; i++)
		close_fd(&inherited[i]);
	inherited_count = 0;
}
