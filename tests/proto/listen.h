/* SPDX-License-Identifier: Apache-2.0 */
/* tests/proto/listen.h - what the servers of the HTTP tests begin with */
#pragma once

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static inline _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* On a free port of 127.0.0.1, which is printed. */
static inline int listen_somewhere(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 4096) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		die("listen");
	printf("%u\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}
