/* SPDX-License-Identifier: Apache-2.0 */
/* tests/conformance/mcp-conformance-server.c - the front as it is shipped, with the suite's fixtures registered
 *
 *	mcp-conformance-server              HTTP on a port of loopback, without a token: "URL" on standard output;
 *	                                    until standard input ends
 *	mcp-conformance-server @front ID    standard input and output, the keeper's socket is descriptor 3
 *
 * Never installed. A keeper has to be there: this is one that can hand in a socket and nothing else. No
 * fixture needs more.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mcp/front.h"
#include "runtime/api.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "tests/conformance/fixtures.h"

enum { KEY_BYTE = 'k' }; /* of the secret: tests/proto/test_registry.py signs with it, too */

static int keeper = -1;

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		die("listen");
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void say(struct api_header *h, enum api_op op, size_t size, const int *fds, size_t fd_count)
{
	*h = (struct api_header){ .version = API_VERSION, .op = (uint16_t)op, .size = (uint32_t)size };
	if (fd_send_msg(keeper, h, size, fds, fd_count) < 0)
		die("tell the front");
}

static void set_up_front(int listener)
{
	static struct api_hello hello = { .profile = "code", .owner = OWNER_DEFAULT };
	static struct api_http http = { .flags = API_HTTP_NO_TOKEN, .path = "/mcp" };
	static struct api_tokens tokens; /* nobody's */
	struct api_header plain;

	memset(tokens.session_key, KEY_BYTE, sizeof(tokens.session_key));
	say(&hello.h, API_HELLO, sizeof(hello), NULL, 0);
	say(&tokens.h, API_TOKENS, sizeof(tokens), NULL, 0);
	say(&http.h, API_HTTP, sizeof(http), NULL, 0);
	say(&plain, API_LISTEN, sizeof(plain), &listener, 1);
}

static void run_front(int sock)
{
	struct err e = { 0 };

	if (dup2(sock, FRONT_API_FD) < 0 || front_http(FRONT_KEEP_ID, &fixtures, &e) < 0)
		fprintf(stderr, "front: %s\n", e.message);
	_exit(1);
}

static int serve(void)
{
	struct api_serving serving;
	uint16_t port;
	char byte;
	int pair[2], listener = listen_somewhere(&port);

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		run_front(pair[1]);
	}
	close(pair[1]);
	keeper = pair[0];
	set_up_front(listener);
	if (recv(keeper, &serving, sizeof(serving), 0) != (ssize_t)sizeof(serving) || serving.refused)
		die("the front does not serve");
	printf("http://127.0.0.1:%u/mcp\n", port);
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0; /* the front ends with its keeper */
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	int status;

	log_init("conformance", LOG_LEVEL_WARN);
	if (argc < 3 || strcmp(argv[1], "@front") != 0)
		return serve();
	status = front_stdio((uint32_t)strtoul(argv[2], NULL, 10), &fixtures, &e);
	if (status < 0)
		fprintf(stderr, "front: %s\n", e.message);
	return status < 0 ? 1 : status;
}
