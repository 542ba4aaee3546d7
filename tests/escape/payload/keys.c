/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/keys.c - a key in the session keyring, and every way to find it
 *
 * keys plant NAME SECRET PROGRAM [ARG...]: put it into a new session keyring and run a program with that.
 * keys find NAME: look for it; prints "<call> FOUND" or "<call> <error>". */
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void show(const char *call, long result)
{
	if (result >= 0)
		printf("%s FOUND\n", call);
	else
		printf("%s %s\n", call, strerrorname_np(errno));
}

static int plant(char **argv)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ||
	    syscall(SYS_add_key, "user", argv[0], argv[1], strlen(argv[1]),
		    KEY_SPEC_SESSION_KEYRING) < 0) {
		perror("plant");
		return 2;
	}
	/* possessor and user may do everything, others may look */
	syscall(SYS_keyctl, KEYCTL_SETPERM,
		syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", argv[0], 0),
		0x3f3f3f3f);
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 126;
}

int main(int argc, char **argv)
{
	if (argc >= 5 && strcmp(argv[1], "plant") == 0)
		return plant(argv + 2);
	if (argc != 3)
		return 2;
	show("search-session",
	     syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", argv[2], 0));
	show("search-user",
	     syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_SESSION_KEYRING, "user", argv[2], 0));
	show("request", syscall(SYS_request_key, "user", argv[2], NULL, 0));
	show("add", syscall(SYS_add_key, "user", "mine", "x", 1, KEY_SPEC_PROCESS_KEYRING));
	show("join", syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
	return 0;
}
