/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_accept.c - without descriptors the loop rests; with them every connection is served */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/accept.h"
#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

enum { CLIENTS = 3, WATCH_MS = 5 * ACCEPT_PAUSE_MS };

static struct loop *loop;
static struct acceptor acceptor;
static unsigned int calls, refused, taken;
static int last_error;

static void on_connection(struct loop_source *s, uint32_t events)
{
	int fd = acceptor_take(acceptor_of(s), NULL, NULL);

	(void)events;
	calls++;
	last_error = errno;
	if (fd < 0) {
		refused++;
		return;
	}
	taken++;
	close_fd(&fd);
}

/* What everybody would write: the negative control. */
static void on_connection_naive(struct loop_source *s, uint32_t events)
{
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);

	(void)events;
	calls++;
	if (fd >= 0)
		close_fd(&fd);
}

static void on_time(struct loop_timer *t)
{
	(void)t;
	loop_stop(loop, 0);
}

static void serve(unsigned int ms)
{
	struct loop_timer t = { 0 };
	struct err e;

	calls = refused = taken = 0;
	if (loop_timer_set(loop, &t, ms, on_time, NULL) < 0 || loop_run(loop, &e) < 0)
		tap_bail("loop");
}

/* As if every descriptor were taken: none above those that are open may be made. */
static struct rlimit exhaust(void)
{
	struct rlimit was, none;
	int free_fd = dup(STDERR_FILENO);

	if (free_fd < 0 || getrlimit(RLIMIT_NOFILE, &was) < 0)
		tap_bail("limit");
	none = (struct rlimit){ .rlim_cur = (rlim_t)free_fd, .rlim_max = was.rlim_max };
	close_fd(&free_fd);
	if (setrlimit(RLIMIT_NOFILE, &none) < 0)
		tap_bail("limit");
	return was;
}

static int listening(void)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* A name the kernel chooses, in no directory. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(sa_family_t)) < 0 || listen(fd, CLIENTS) < 0)
		tap_bail("listen");
	return fd;
}

static int connected(int listen_fd)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;
	socklen_t len = sizeof(address);

	if (fd < 0 || getsockname(listen_fd, (struct sockaddr *)&address, &len) < 0 ||
	    connect(fd, (struct sockaddr *)&address, len) < 0)
		tap_bail("connect");
	return fd;
}

static void test_shortage(int fd)
{
	struct rlimit was;

	was = exhaust();
	serve(WATCH_MS);
	tap_ok(refused > 1 && taken == 0 && last_error == EAGAIN, "no descriptors: tried again (%u times)", refused);
	tap_ok(calls <= 1 + WATCH_MS / ACCEPT_PAUSE_MS, "and rested in between");
	(void)setrlimit(RLIMIT_NOFILE, &was);
	serve(WATCH_MS);
	tap_int(taken, CLIENTS, "with descriptors, every connection that waited is served");
	acceptor_rest(&acceptor);
	acceptor_remove(&acceptor);
	serve(2 * ACCEPT_PAUSE_MS);
	tap_ok(calls == 0 && acceptor.source.fd < 0, "one that is removed while it rests stays so");
	acceptor_remove(&acceptor);
	close_fd(&fd);
}

static void test_naive(int fd)
{
	struct loop_source source = { .fd = -1 };
	struct rlimit was;
	struct err e;

	if (loop_add(loop, &source, fd, EPOLLIN, on_connection_naive, NULL, &e) < 0)
		tap_bail("%s", e.message);
	was = exhaust();
	serve(WATCH_MS);
	tap_ok(calls > 10 * WATCH_MS / ACCEPT_PAUSE_MS, "(one that only tries again spins: %u times)", calls);
	(void)setrlimit(RLIMIT_NOFILE, &was);
	loop_remove(&source);
}

int main(void)
{
	int client[CLIENTS], fd = listening();
	struct err e;

	loop = loop_new(&e);
	if (!loop)
		tap_bail("%s", e.message);
	for (int i = 0; i < CLIENTS; i++)
		client[i] = connected(fd);
	test_naive(fd);
	acceptor.source.fd = -1;
	if (acceptor_add(loop, &acceptor, fd, on_connection, NULL, &e) < 0)
		tap_bail("%s", e.message);
	test_shortage(fd);
	for (int i = 0; i < CLIENTS; i++)
		close_fd(&client[i]);
	loop_free(loop);
	return tap_done();
}
