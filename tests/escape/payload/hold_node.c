/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/hold_node.c - hold NODE READY: lock a device node and watch it being opened
 *
 * Creates READY when both are in place; prints "told" or "not told" when somebody has opened the node or
 * nobody has for a while. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/inotify.h>

enum { WAIT_MS = 1500 };

int main(int argc, char **argv)
{
	int node = argc == 3 ? open(argv[1], O_WRONLY) : -1;
	int watch = inotify_init1(IN_CLOEXEC);
	struct pollfd p = { .fd = watch, .events = POLLIN };

	if (node < 0 || flock(node, LOCK_EX | LOCK_NB) < 0 || inotify_add_watch(watch, argv[1], IN_OPEN) < 0 ||
	    open(argv[2], O_WRONLY | O_CREAT, 0644) < 0) {
		perror("hold_node");
		return 2;
	}
	puts(poll(&p, 1, WAIT_MS) > 0 ? "told" : "not told");
	return 0;
}
