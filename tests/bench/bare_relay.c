/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bench/bare_relay.c - the least a relay can be: accept, connect, splice both ways; a process each
 *
 * bare_relay PORT ADDRESS PORT. What the egress proxy's figures are compared with.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 64 * 1024, BACKLOG = 512 };

static struct sockaddr_in at(const char *address, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	(void)inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

static void pump(int from, int to)
{
	int pipe_fds[2];
	ssize_t n;

	if (pipe(pipe_fds) < 0)
		_exit(1);
	while ((n = splice(from, NULL, pipe_fds[1], NULL, CHUNK, SPLICE_F_MOVE)) > 0) {
		while (n > 0) {
			ssize_t out = splice(pipe_fds[0], NULL, to, NULL, (size_t)n, SPLICE_F_MOVE);

			if (out <= 0)
				_exit(1);
			n -= out;
		}
	}
	(void)shutdown(to, SHUT_WR);
}

static void serve(int client, const struct sockaddr_in *target)
{
	int server = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(server, (const struct sockaddr *)target, sizeof(*target)) < 0)
		_exit(1);
	if (fork() == 0) {
		pump(client, server);
		_exit(0);
	}
	pump(server, client);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in own, target;
	int on = 1, s = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 4)
		return 2;
	own = at("127.0.0.1", argv[1]);
	target = at(argv[2], argv[3]);
	(void)signal(SIGCHLD, SIG_IGN);
	(void)setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(s, (struct sockaddr *)&own, sizeof(own)) < 0 || listen(s, BACKLOG) < 0)
		return 1;
	for (;;) {
		int client = accept(s, NULL, NULL);

		if (client >= 0 && fork() == 0)
			serve(client, &target);
		(void)close(client);
	}
}
