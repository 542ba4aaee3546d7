/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/control.c - the keeper's control socket
 *
 * Runs in the keeper; keeper_connect() runs in the command line. The socket's directory is 0700 and
 * the socket 0600; the kernel's word on the peer's uid is checked on top of that. Inside the storage
 * namespace the user is uid 0, so one comparison serves both modes.
 */
#include "runtime/control.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/log.h"
#include "runtime/base/str.h"

enum { BACKLOG = 16, STALE_MAX = 256, NAME_SIZE = 32 };

static void socket_name(pid_t pid, char name[NAME_SIZE])
{
	(void)snprintf(name, NAME_SIZE, "%d.sock", pid);
}

/* sun_path is short; a path through the directory's descriptor always fits, and names exactly it. */
static void socket_address(int run_fd, pid_t pid, struct sockaddr_un *ret)
{
	char name[NAME_SIZE];

	socket_name(pid, name);
	memset(ret, 0, sizeof(*ret));
	ret->sun_family = AF_UNIX;
	(void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", run_fd, name);
}

static pid_t pid_of(const char *name)
{
	char digits[NAME_SIZE];
	size_t len = strlen(name);
	uint64_t pid;

	if (len < 6 || len >= sizeof(digits) || strcmp(name + len - 5, ".sock") != 0)
		return 0;
	memcpy(digits, name, len - 5);
	digits[len - 5] = '\0';
	return str_parse_u64(digits, 1, INT32_MAX, &pid) < 0 ? 0 : (pid_t)pid;
}

static void remove_stale(int run_fd)
{
	int fd = openat(run_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (!dir) {
		close_fd(&fd);
		return;
	}
	for (int i = 0; i < STALE_MAX && (entry = readdir(dir)) != NULL; i++) {
		pid_t pid = pid_of(entry->d_name);

		if (pid > 0 && kill(pid, 0) < 0 && errno == ESRCH)
			(void)unlinkat(run_fd, entry->d_name, 0);
	}
	(void)closedir(dir);
}

int control_listen(int run_fd, struct err *e)
{
	_cleanup_fd_ int fd = -1;
	struct sockaddr_un address;

	remove_stale(run_fd);
	control_unlink(run_fd);
	socket_address(run_fd, getpid(), &address);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, "make the control socket");
	/* Before it has a name, so that nobody can be quicker; bind() takes this mode. */
	if (fchmod(fd, 0600) < 0)
		return err_sys(e, "mode of the control socket");
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(e, "open the control socket");
	return take_fd(&fd);
}

void control_unlink(int run_fd)
{
	char name[NAME_SIZE];

	socket_name(getpid(), name);
	(void)unlinkat(run_fd, name, 0);
}

int control_accept(struct acceptor *listener)
{
	_cleanup_fd_ int fd = acceptor_take(listener, NULL, NULL);
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof(peer)) {
		log_warn("control connection without credentials: %s", strerror(errno));
		return -1;
	}
	if (peer.uid != geteuid() && peer.uid != 0) {
		log_warn("control connection of uid %u refused", peer.uid);
		return -1;
	}
	return take_fd(&fd);
}

int keeper_connect(int run_fd, pid_t pid, struct err *e)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	if (fd < 0)
		return err_sys(e, "make a socket");
	socket_address(run_fd, pid, &address);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			return err_set(e, ERR_BUSY, "process %d does not listen", pid);
		return err_sys(e, "connect to process %d", pid);
	}
	return take_fd(&fd);
}
