/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/base/fd.c - descriptors: whole reads and writes, safe opens, passing between processes
 *
 * Runs in every process. Paths given to fd_open_beneath() and messages received are untrusted.
 */
#include "runtime/base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/cleanup.h"
#include "runtime/base/sys.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3 */
#endif

ssize_t fd_read_full(int fd, void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int fd_write_full(int fd, const void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

ssize_t fd_read_file_at(int dir_fd, const char *name, char *text, size_t size)
{
	_cleanup_fd_ int fd = -1;
	ssize_t len;
	char more;

	if (size == 0) {
		errno = EINVAL;
		return -1;
	}
	text[0] = '\0';
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -1;
	len = fd_read_full(fd, text, size - 1);
	if (len < 0)
		return -1;
	text[len] = '\0';
	if ((size_t)len == size - 1 && fd_read_full(fd, &more, 1) != 0) {
		errno = EFBIG;
		return -1;
	}
	return len;
}

int fd_write_file_at(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t len = strlen(text);
	ssize_t n;

	if (fd < 0)
		return -1;
	do {
		n = write(fd, text, len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	if ((size_t)n != len) {
		errno = EIO; /* a control file that takes half a value has set something else */
		return -1;
	}
	return 0;
}

int fd_open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
	enum { TRIES = 16 };
	const uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
				 RESOLVE_NO_XDEV;
	/* openat2 refuses a mode that has no use */
	bool creates = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
	int fd = -1;

	/* EAGAIN: a component was renamed while ".." was being resolved (openat2(2)); whoever renames
	 * in a loop gets an error, not our time. */
	for (int i = 0; i < TRIES; i++) {
		fd = sys_openat2(dir_fd, path, (uint64_t)(unsigned int)(flags | O_CLOEXEC),
				 creates ? mode : 0, resolve);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd;
}

/* memfd_create_with() - kernels before 6.3 refuse the flags that say whether the file may be
 * executed, and let every one be. */
static int memfd_create_with(const char *name, unsigned int exec_flag)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | exec_flag);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

int fd_memfd_sealed(const char *name, const void *data, size_t len, mode_t mode, bool executable)
{
	_cleanup_fd_ int fd = memfd_create_with(name, executable ? MFD_EXEC : MFD_NOEXEC_SEAL);

	if (fd < 0 || fd_write_full(fd, data, len) < 0)
		return -1;
	if (fchmod(fd, mode) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -1;
	return take_fd(&fd);
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -1;
	return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

int fd_set_cloexec(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFD);

	if (flags < 0)
		return -1;
	return fcntl(fd, F_SETFD, on ? flags | FD_CLOEXEC : flags & ~FD_CLOEXEC);
}

/* ---- messages ---- */

union control {
	char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
	struct cmsghdr align;
};

static void control_fill(struct msghdr *msg, union control *control, const int *fds, size_t count)
{
	struct cmsghdr *c;

	memset(control, 0, sizeof(*control));
	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(count * sizeof(int));
	c = CMSG_FIRSTHDR(msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
}

int fd_send_msg(int sock, const void *data, size_t len, const int *fds, size_t fd_count)
{
	struct iovec iov = { .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	ssize_t n;

	if (fd_count > FD_PASS_MAX) {
		errno = EINVAL;
		return -1;
	}
	memcpy(&iov.iov_base, &data, sizeof(data)); /* iovec has no const; sendmsg does not write */
	if (fd_count > 0)
		control_fill(&msg, &control, fds, fd_count);
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	if ((size_t)n != len) {
		errno = EMSGSIZE;
		return -1;
	}
	return 0;
}

/* control_take() - move received descriptors to fds. Return: how many. */
static size_t control_take(struct msghdr *msg, int *fds, size_t room)
{
	size_t taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (taken < room)
				fds[taken++] = fd;
			else
				close_fd(&fd);
		}
	}
	return taken;
}

ssize_t fd_recv_msg(int sock, void *data, size_t size, int *ret_fds, size_t *ret_fd_count)
{
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t room = ret_fds && ret_fd_count ? *ret_fd_count : 0, taken = 0;
	union control control;
	ssize_t n;

	if (room > FD_PASS_MAX)
		room = FD_PASS_MAX;
	if (room > 0) {
		msg.msg_control = control.bytes;
		/* CMSG_LEN, not CMSG_SPACE: padding would be room for one descriptor more */
		msg.msg_controllen = CMSG_LEN(room * sizeof(int));
	}
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	if (room > 0)
		taken = control_take(&msg, ret_fds, room);
	if ((msg.msg_flags & MSG_TRUNC) || (room > 0 && (msg.msg_flags & MSG_CTRUNC))) {
		while (taken > 0)
			close_fd(&ret_fds[--taken]);
		errno = EMSGSIZE;
		return -1;
	}
	if (ret_fd_count)
		*ret_fd_count = taken;
	return n;
}
