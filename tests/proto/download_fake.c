/* SPDX-License-Identifier: Apache-2.0 */
/* tests/proto/download_fake.c - download links over HTTP, with a keeper that opens files of a directory
 *
 * "download-fake BASE KEY TTL_S DIRECTORY" listens on 127.0.0.1 and prints its port; the workspace of an
 * owner's label is DIRECTORY/OWNER/KEY. Files named "slow" take a second to open. Serves until standard
 * input ends; "link OWNER KEY PATH" on it prints a link.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mcp/download.h"
#include "mcp/http_server.h"
#include "runtime/base/buf.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/log.h"
#include "tests/proto/listen.h"

static struct http_server server;
static struct keeper_client keeper;
static struct links links;
static struct downloads downloads;
static struct loop *loop;

/* ---- the keeper ---- */

static void answer_present(int sock, int dir, const struct api_present *m)
{
	struct api_present_done done = { .h = { API_VERSION, API_PRESENT_DONE, sizeof(done), m->h.id } };
	struct api_failed failed = { .h = { API_VERSION, API_FAILED, sizeof(failed), m->h.id } };
	char path[API_PATH_MAX + 64];
	struct stat st;
	int fd;

	if (strcmp(m->path, "slow") == 0)
		sleep(1);
	(void)snprintf(path, sizeof(path), "%s/%s/%s", m->owner, m->key, m->path);
	fd = fd_open_beneath(dir, path, O_RDONLY | O_NONBLOCK, 0);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		done.size = (uint64_t)st.st_size;
		(void)fd_send_msg(sock, &done, sizeof(done), &fd, 1);
	} else {
		(void)err_set(&failed.error, ERR_NOT_FOUND, "no such file in the workspace");
		(void)fd_send_msg(sock, &failed, sizeof(failed), NULL, 0);
	}
	close_fd(&fd);
}

static void run_keeper(int sock, const char *directory)
{
	struct api_hello hello = { .h = { API_VERSION, API_HELLO, sizeof(hello), 1 }, .owner = OWNER_DEFAULT };
	int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static char message[API_MSG_MAX];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dir < 0 || fd_send_msg(sock, &hello, sizeof(hello), NULL, 0) < 0)
		die(directory);
	while (fd_recv_msg(sock, message, sizeof(message), NULL, NULL) > 0) {
		const struct api_present *m = (const void *)message;

		if (m->h.op == API_PRESENT)
			answer_present(sock, dir, m);
	}
	exit(0);
}

static int start_keeper(const char *directory)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die("socketpair");
	if (fork() == 0) {
		close(pair[0]);
		run_keeper(pair[1], directory);
	}
	close(pair[1]);
	return pair[0];
}

/* ---- the server ---- */

static void on_head(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	(void)ctx;
	if (downloads_own(r->head->path))
		downloads_on_head(&downloads, x, r);
}

static void on_request(void *ctx, struct http_exchange *x, const struct http_request *r)
{
	char text[64];
	int len;

	(void)ctx;
	if (downloads_own(r->head->path)) {
		downloads_on_request(&downloads, x, r);
		return;
	}
	len = snprintf(text, sizeof(text), "opening=%zu connections=%zu\n", downloads.count, server.conn_count);
	http_reply(x, &(struct http_answer){ .status = 200, .type = "text/plain" }, text, (size_t)len);
}

static void print_link(const char *line)
{
	struct link_target t = { 0 };
	struct buf b;

	if (sscanf(line, "link %8s %31s %4095[^\n]", t.owner, t.key, t.path) != 3)
		die(line);
	buf_init(&b, 65536);
	if (link_write(&b, &links, &t, (uint64_t)time(NULL)) < 0)
		die("link");
	printf("%s\n", b.data);
	fflush(stdout);
	buf_done(&b);
}

static void on_input(struct loop_source *source, uint32_t events)
{
	char line[8192];
	ssize_t n = read(source->fd, line, sizeof(line) - 1);

	(void)events;
	if (n <= 0) {
		loop_stop(loop, 0);
		return;
	}
	line[n] = '\0';
	print_link(line);
}

int main(int argc, char **argv)
{
	static const struct http_handler handler = { on_head, on_request, NULL, NULL };
	struct loop_source input;
	struct err e = { 0 };
	int status;

	if (argc != 5)
		return 2;
	log_init("download-fake", LOG_LEVEL_WARN);
	(void)signal(SIGPIPE, SIG_IGN);
	links = (struct links){ argv[1], argv[2], strtoull(argv[3], NULL, 10) * 1000 };
	loop = loop_new(&e);
	if (keeper_client_init(&keeper, start_keeper(argv[4]), &e) < 0 ||
	    keeper_client_watch(&keeper, loop, &e) < 0)
		die(e.message);
	downloads_init(&downloads, &keeper, &links);
	http_server_init(&server, loop, &handler);
	if (loop_add(loop, &input, STDIN_FILENO, EPOLLIN, on_input, NULL, &e) < 0 ||
	    http_server_listen(&server, listen_somewhere(), &e) < 0)
		die(e.message);
	status = loop_run(loop, &e);
	downloads_done(&downloads);
	http_server_done(&server);
	keeper_client_done(&keeper);
	loop_free(loop);
	return status;
}
