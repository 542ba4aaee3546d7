/* SPDX-License-Identifier: Apache-2.0 */
/* mcp/cli_client.c - requests to a keeper, one at a time
 *
 * Runs in the command line's process. The keeper is trusted (same user), yet every size is checked: it
 * may be of another version of this program.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mcp/cli_client.h"
#include "runtime/base/cleanup.h"
#include "runtime/base/fd.h"
#include "runtime/base/str.h"
#include "runtime/keeper.h"

static int wait_ready(int sock, short events, struct err *e)
{
	struct pollfd p = { .fd = sock, .events = events };

	while (poll(&p, 1, -1) < 0) {
		if (errno != EINTR)
			return err_sys(e, "wait for the keeper");
	}
	return 0;
}

int client_send(const struct client *c, const void *message, struct err *e)
{
	const struct api_header *h = message;

	while (fd_send_msg(c->sock, message, h->size, NULL, 0) < 0) {
		if (errno != EAGAIN)
			return err_sys(e, "ask the keeper");
		if (wait_ready(c->sock, POLLOUT, e) < 0)
			return -1;
	}
	return 0;
}

int client_receive(const struct client *c, void *message, size_t size, int *ret_fds,
		   size_t *ret_fd_count, struct err *e)
{
	const struct api_header *h = message;
	ssize_t len;

	if (wait_ready(c->sock, POLLIN, e) < 0)
		return -1;
	len = fd_recv_msg(c->sock, message, size, ret_fds, ret_fd_count);
	if (len < 0)
		return err_sys(e, "hear the keeper");
	if (len == 0)
		return err_set(e, ERR_GONE, "the keeper ended");
	if ((size_t)len < sizeof(*h) || h->size != (size_t)len)
		return err_set(e, ERR_PROTOCOL, "the keeper sent a damaged message");
	if (h->version != API_VERSION) {
		err_set(e, ERR_PROTOCOL, "the keeper speaks version %u, this program %u", h->version,
			API_VERSION);
		return err_remedy(e, "restart the server, or use the program it was started from");
	}
	return 0;
}

int client_adopt(struct client *c, int sock, pid_t keeper_pid, struct err *e)
{
	*c = (struct client){ .sock = sock, .keeper_pid = keeper_pid };
	if (client_receive(c, &c->hello, sizeof(c->hello), NULL, NULL, e) < 0)
		return -1;
	if (c->hello.h.op != API_HELLO || c->hello.h.size != sizeof(c->hello))
		return err_set(e, ERR_PROTOCOL, "the keeper did not introduce itself");
	if (c->hello.start_failure.code != ERR_NONE) {
		*e = c->hello.start_failure;
		return -1;
	}
	return 0;
}

int client_connect(struct client *c, const struct store *store, pid_t pid, struct err *e)
{
	int sock = keeper_connect(store->run_fd, pid, e);

	if (sock < 0) {
		*c = (struct client){ .sock = -1 };
		return -1;
	}
	return client_adopt(c, sock, 0, e);
}

void client_close(struct client *c)
{
	close_fd(&c->sock);
	while (c->keeper_pid > 0 && waitpid(c->keeper_pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	c->keeper_pid = 0;
}

/* The answer to a request that has no data: DONE, or FAILED with the keeper's error. */
static int await_done(const struct client *c, struct err *e)
{
	union {
		struct api_header h;
		struct api_done done;
		struct api_failed failed;
	} answer;

	if (client_receive(c, &answer, sizeof(answer), NULL, NULL, e) < 0)
		return -1;
	if (answer.h.op == API_DONE && answer.h.size == sizeof(answer.done))
		return 0;
	if (answer.h.op == API_FAILED && answer.h.size == sizeof(answer.failed)) {
		*e = answer.failed.error;
		return -1;
	}
	return err_set(e, ERR_PROTOCOL, "the keeper gave an answer to another question");
}

int client_request(const struct client *c, const void *message, struct err *e)
{
	return client_send(c, message, e) < 0 ? -1 : await_done(c, e);
}

int client_key_request(const struct client *c, uint16_t op, const char *owner, const char *key,
		       bool workspace, struct err *e)
{
	struct api_key_request request = {
		.h = { .version = API_VERSION, .op = op, .size = sizeof(request), .id = 1 },
		.workspace = workspace,
	};

	if (str_copy(request.owner, sizeof(request.owner), owner) < 0 ||
	    str_copy(request.key, sizeof(request.key), key) < 0)
		return err_set(e, ERR_USAGE, "label: too long");
	return client_request(c, &request, e);
}

/* "<pid>.sock" -> pid, 0 for any other name. */
static pid_t pid_of_socket(const char *name)
{
	char digits[16];
	size_t len = strspn(name, "0123456789");
	uint64_t pid;

	if (len == 0 || len >= sizeof(digits) || strcmp(name + len, ".sock"))
		return 0;
	memcpy(digits, name, len);
	digits[len] = '\0';
	return str_parse_u64(digits, 1, INT32_MAX, &pid) < 0 ? 0 : (pid_t)pid;
}

ssize_t client_list_keepers(const struct store *store, pid_t *ret, size_t max, struct err *e)
{
	DIR *dir;
	size_t count = 0;
	struct dirent *entry;
	int fd = openat(store->run_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "list the keepers");
	dir = fdopendir(fd);
	if (!dir) {
		err_sys(e, "list the keepers");
		close_fd(&fd);
		return -1;
	}
	while (count < max && (entry = readdir(dir))) {
		pid_t pid = pid_of_socket(entry->d_name);

		if (pid > 0)
			ret[count++] = pid;
	}
	(void)closedir(dir);
	return (ssize_t)count;
}
