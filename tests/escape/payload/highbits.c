/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/highbits.c - arguments whose high half hides the low one from a 64-bit comparison (CVE-2019-7303) */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGH (1UL << 32)
#define TIOCSTI 0x5412
#define TIOCLINUX 0x541c

static void show(const char *name, long result)
{
	printf("%s %s\n", name, result >= 0 ? "ok" : strerrorname_np(errno));
}

/* a terminal of our own, as controlling terminal, where injection would be allowed */
static int own_terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), fd;

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return -1;
	setsid();
	fd = open(ptsname(master), O_RDWR);
	return fd;
}

int main(void)
{
	int tty = own_terminal();
	char x = 'x';

	printf("terminal %s\n", tty >= 0 ? "ok" : strerrorname_np(errno));
	show("tiocsti", syscall(SYS_ioctl, tty, (unsigned long)TIOCSTI, &x));
	show("tiocsti-high", syscall(SYS_ioctl, tty, TIOCSTI | HIGH, &x));
	show("tioclinux", syscall(SYS_ioctl, tty, (unsigned long)TIOCLINUX, &x));
	show("tioclinux-high", syscall(SYS_ioctl, tty, TIOCLINUX | HIGH, &x));
	show("vsock", syscall(SYS_socket, 40UL, 1UL, 0UL));
	show("vsock-high", syscall(SYS_socket, 40 | HIGH, 1UL, 0UL));
	show("packet-high", syscall(SYS_socket, 17 | HIGH, 3UL, 0UL));
	show("netfilter-high", syscall(SYS_socket, 16 | HIGH, 3UL, 12 | HIGH));
	show("personality-high", syscall(SYS_personality, 0x0400000UL | HIGH));
	return 0;
}
