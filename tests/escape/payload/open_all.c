/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/open_all.c - every file below that opens for writing; nothing is written
 *
 * usage: open_all DIRECTORY...
 *
 * Directories of processes are left out, but for the one of this process's reader: what a process may
 * write about itself is its own business. Prints "WRITABLE <path>" and the number of files tried.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned long tried;

static int is_process(const char *path)
{
	if (strncmp(path, "/proc/", 6) != 0)
		return 0;
	return (path[6] >= '0' && path[6] <= '9') || strncmp(path + 6, "self", 4) == 0 ||
	       strncmp(path + 6, "thread-self", 11) == 0;
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int fd;

	(void)ftw;
	if (is_process(path))
		return FTW_SKIP_SUBTREE;
	if (type != FTW_F || !S_ISREG(st->st_mode))
		return FTW_CONTINUE;
	tried++;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	if (fd >= 0) {
		printf("WRITABLE %s\n", path);
		close(fd);
	}
	return FTW_CONTINUE;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		(void)nftw(argv[i], visit, 32, FTW_PHYS | FTW_ACTIONRETVAL);
	printf("tried %lu\n", tried);
	return 0;
}
