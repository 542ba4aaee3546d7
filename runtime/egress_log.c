/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/egress_log.c - egress/<owner>.log in the state directory
 *
 * Runs in the keeper and in the command line. The files are never parsed here.
 */
#include "runtime/egress_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"

enum { NAME_LEN = OWNER_ID_LEN + 8 };

static int open_dir(const struct store *s, bool create, struct err *e)
{
	int fd;

	if (create && mkdirat(s->home_fd, "egress", 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create the egress log's directory");
	fd = fd_open_beneath(s->home_fd, "egress", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no egress log yet");
	return fd < 0 ? err_sys(e, "open the egress log's directory") : fd;
}

static int name_of(char name[NAME_LEN], const char *owner, unsigned int generation, struct err *e)
{
	if (!str_is_owner_id(owner))
		return err_set(e, ERR_PROTOCOL, "damaged owner");
	(void)snprintf(name, NAME_LEN, generation ? "%s.log.1" : "%s.log", owner);
	return 0;
}

/* Needs: the directory's lock, or two that find the same full log would put the new one aside too. */
static void put_aside(int dir_fd, const char *name, const char *old)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size >= EGRESS_LOG_MAX_BYTES)
		(void)renameat(dir_fd, name, dir_fd, old);
}

int egress_log_open(const struct store *s, const char *owner, struct err *e)
{
	_cleanup_fd_ int dir_fd = open_dir(s, true, e);
	char name[NAME_LEN], old[NAME_LEN];
	int fd;

	if (dir_fd < 0 || name_of(name, owner, 0, e) < 0 || name_of(old, owner, 1, e) < 0)
		return -1;
	/* Never waits: whoever holds it is doing the same. */
	if (flock(dir_fd, LOCK_EX | LOCK_NB) == 0)
		put_aside(dir_fd, name, old);
	fd = fd_open_beneath(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT, 0600);
	return fd < 0 ? err_sys(e, "open the egress log") : fd;
}

int egress_log_read(const struct store *s, const char *owner, unsigned int generation, struct err *e)
{
	_cleanup_fd_ int dir_fd = open_dir(s, false, e);
	char name[NAME_LEN];
	int fd;

	if (dir_fd < 0 || name_of(name, owner, generation, e) < 0)
		return -1;
	fd = fd_open_beneath(dir_fd, name, O_RDONLY, 0);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no egress log yet");
	return fd < 0 ? err_sys(e, "open the egress log") : fd;
}
