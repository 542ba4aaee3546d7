/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/swap.c - "swap DIRECTORY": in the working directory, change places for ever between
 * a directory with a harmless file and a link to DIRECTORY, and between a harmless file and a link to
 * DIRECTORY/file
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, "harmless\n", 9) != 9)
		_exit(1);
	close(fd);
}

int main(int argc, char **argv)
{
	char target[4096];

	if (argc != 2)
		return 2;
	(void)mkdir("d", 0755);
	put("d/file");
	put("f");
	snprintf(target, sizeof(target), "%s/file", argv[1]);
	if (symlink(argv[1], "e") < 0 || symlink(target, "g") < 0)
		return 1;
	puts("swapping");
	fflush(stdout);
	for (;;) {
		(void)renameat2(AT_FDCWD, "d", AT_FDCWD, "e", RENAME_EXCHANGE);
		(void)renameat2(AT_FDCWD, "f", AT_FDCWD, "g", RENAME_EXCHANGE);
	}
}
