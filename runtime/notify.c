/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/notify.c - tell the service manager how far we are
 *
 * Runs in the keeper. The socket's name comes from the manager's own environment.
 */
#include "runtime/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"

void notify(const char *lines)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = -1;
	socklen_t len;

	/* A path or, with '@', an abstract name. */
	if (!name || (name[0] != '/' && name[0] != '@') || strlen(name) >= sizeof(a.sun_path))
		return;
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
	memcpy(a.sun_path, name, strlen(name));
	if (name[0] == '@')
		a.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (struct sockaddr *)&a, len);
}

void notify_reloading(void)
{
	struct timespec now;
	char lines[64];

	if (clock_gettime(CLOCK_MONOTONIC, &now) < 0)
		return;
	(void)snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		       (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	notify(lines);
}
