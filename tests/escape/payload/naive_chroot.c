/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/naive_chroot.c - look up a user after changing the root, with the caller's rights (CVE-2019-14271)
 *
 * usage: naive_chroot ROOT */
#include <pwd.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc != 2 || chroot(argv[1]) < 0 || chdir("/") < 0)
		return 2;
	return getpwnam("somebody") ? 0 : 1;
}
