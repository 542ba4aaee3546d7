/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/chroot_escape.c - the classic way out of a root directory; says whether it reached the other root
 *
 * usage: chroot_escape DEV:INO */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct stat st;
	char text[64];

	if (argc != 2)
		return 2;
	mkdir("/tmp/escape", 0755);
	if (chroot("/tmp/escape") < 0)
		perror("chroot");
	for (int i = 0; i < 100; i++)
		(void)!chdir("..");
	(void)!chroot(".");
	if (stat(".", &st) < 0)
		return 2;
	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	puts(strcmp(text, argv[1]) == 0 ? "ESCAPED" : "inside");
	return 0;
}
