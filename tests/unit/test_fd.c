/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/test_fd.c - opens that must not leave a directory, sealed memory, message passing */
#include "runtime/base/fd.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "runtime/base/cleanup.h"
#include "tests/unit/tap.h"

static char tmp_path[] = "/tmp/mcpt-fd-XXXXXX";
static int dir_fd = -1;

static void make_tree(void)
{
	int fd;

	if (!mkdtemp(tmp_path))
		tap_bail("mkdtemp");
	dir_fd = open(tmp_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || mkdirat(dir_fd, "base", 0700) < 0 || mkdirat(dir_fd, "base/d", 0700) < 0 ||
	    mkdirat(dir_fd, "secret", 0700) < 0)
		tap_bail("make the tree");
	fd = openat(dir_fd, "base/d/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, "inside", 6) < 0)
		tap_bail("make a file");
	close_fd(&fd);
	fd = openat(dir_fd, "secret/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, "outside", 7) < 0)
		tap_bail("make a file");
	close_fd(&fd);
	if (symlinkat("d/file", dir_fd, "base/link") < 0 ||
	    symlinkat("d", dir_fd, "base/dirlink") < 0 ||
	    symlinkat("../secret/file", dir_fd, "base/uplink") < 0 ||
	    symlinkat("/etc/hostname", dir_fd, "base/abslink") < 0 ||
	    symlinkat("/proc/self/exe", dir_fd, "base/magic") < 0 ||
	    symlinkat("nowhere", dir_fd, "base/dangling") < 0 ||
	    mkfifoat(dir_fd, "base/fifo", 0600) < 0)
		tap_bail("make links");
}

static void test_beneath(int base)
{
	static const struct {
		const char *desc, *path;
		int flags, want; /* 0, or the errno */
	} rows[] = {
		{ "a file", "d/file", O_RDONLY, 0 },
		{ "a directory", "d", O_RDONLY | O_DIRECTORY, 0 },
		{ "up and down inside", "d/../d/file", O_RDONLY, 0 },
		{ "dot", ".", O_RDONLY | O_DIRECTORY, 0 },
		{ "a fifo does not block", "fifo", O_RDONLY | O_NONBLOCK, 0 },
		{ "nothing", "", O_RDONLY, ENOENT },
		{ "a missing file", "d/none", O_RDONLY, ENOENT },
		{ "a file as directory", "d/file/x", O_RDONLY, ENOTDIR },
		{ "a link at the end", "link", O_RDONLY, ELOOP },
		{ "a link at the end, as a path", "link", O_PATH, ELOOP },
		{ "the link itself", "link", O_PATH | O_NOFOLLOW, 0 },
		{ "a link in the middle", "dirlink/file", O_RDONLY, ELOOP },
		{ "a link out", "uplink", O_RDONLY, ELOOP },
		{ "an absolute link", "abslink", O_RDONLY, ELOOP },
		{ "a magic link", "magic", O_RDONLY, ELOOP },
		{ "a dangling link is not created through", "dangling", O_WRONLY | O_CREAT, ELOOP },
		{ "up and out", "../secret/file", O_RDONLY, EXDEV },
		{ "deep up and out", "d/../../secret/file", O_RDONLY, EXDEV },
		{ "the parent", "..", O_RDONLY | O_DIRECTORY, EXDEV },
		{ "absolute", "/etc/passwd", O_RDONLY, EXDEV },
		{ "the root", "/", O_RDONLY | O_DIRECTORY, EXDEV },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_guard g = tap_guard_str(rows[i].path);
		_cleanup_fd_ int fd = -1;

		errno = 0;
		fd = fd_open_beneath(base, g.data, rows[i].flags, 0600);
		tap_int(fd < 0 ? errno : 0, rows[i].want, "beneath: %s", rows[i].desc);
		if (fd >= 0)
			tap_ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "beneath: %s: close-on-exec",
			       rows[i].desc);
		tap_guard_free(&g);
	}
	tap_int(faccessat(base, "nowhere", F_OK, 0), -1, "nothing was created through the link");
}

static void test_xdev(void)
{
	_cleanup_fd_ int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;

	fd = fd_open_beneath(root, "proc/self/status", O_RDONLY, 0);
	tap_ok(fd < 0 && errno == EXDEV, "beneath: another mount is refused");
}

/* A directory is exchanged with a link to the outside as fast as the machine can. */
static void test_race(int base)
{
	int wrong = 0, opened = 0, refused = 0;
	pid_t pid;

	if (symlinkat("../secret", dir_fd, "base/swap") < 0 || mkdirat(base, "race", 0700) < 0)
		tap_bail("set up the race");
	if (linkat(base, "d/file", base, "race/file", 0) < 0)
		tap_bail("link");
	pid = fork();
	if (pid == 0)
		for (;;)
			(void)syscall(SYS_renameat2, base, "race", base, "swap", RENAME_EXCHANGE);
	for (int i = 0; i < 20000; i++) {
		_cleanup_fd_ int fd = fd_open_beneath(base, "race/file", O_RDONLY, 0);
		char text[16] = "";

		if (fd < 0) {
			refused++;
			continue;
		}
		opened++;
		if (fd_read_full(fd, text, sizeof(text)) != 6 || memcmp(text, "inside", 6) != 0)
			wrong++;
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	tap_int(wrong, 0, "race: 20000 opens never reach the outside");
	tap_ok(opened > 0 && refused > 0, "race: both states were met (%d opened, %d refused)",
	       opened, refused);
}

static void test_read_write(void)
{
	char text[8], exact[7];
	int fds[2];

	tap_int(fd_read_file_at(dir_fd, "base/d/file", text, sizeof(text)), 6, "a small file");
	tap_str(text, "inside", "with its NUL");
	tap_int(fd_read_file_at(dir_fd, "base/d/file", exact, sizeof(exact)), 6, "that just fits");
	tap_int(fd_read_file_at(dir_fd, "base/d/file", text, 6), -1, "one that does not fit");
	tap_int(errno, EFBIG, "is too big");
	tap_int(fd_read_file_at(dir_fd, "base/link", text, sizeof(text)), -1, "a link is not read");
	tap_int(fd_write_file_at(dir_fd, "base/link", "x"), -1, "nor written through");
	tap_int(fd_write_file_at(dir_fd, "base/new", "x"), -1, "nor is a file made");
	tap_int(fd_write_file_at(dir_fd, "base/d/file", "INside"), 0, "an existing one is written");
	(void)fd_read_file_at(dir_fd, "base/d/file", text, sizeof(text));
	tap_str(text, "INside", "with the text");
	if (pipe2(fds, O_CLOEXEC) < 0)
		tap_bail("pipe");
	(void)!write(fds[1], "ab", 2);
	close_fd(&fds[1]);
	tap_int(fd_read_full(fds[0], text, sizeof(text)), 2, "end of file ends a full read");
	(void)signal(SIGPIPE, SIG_IGN);
	if (pipe2(fds, O_CLOEXEC) < 0)
		tap_bail("pipe");
	close_fd(&fds[0]);
	tap_int(fd_write_full(fds[1], "x", 1), -1, "a write without a reader fails");
	close_fd(&fds[1]);
}

static void test_memfd(void)
{
	_cleanup_fd_ int fd = fd_memfd_sealed("test", "content", 7, 0444, false);
	_cleanup_fd_ int exe = fd_memfd_sealed("test", "#!/bin/true\n", 12, 0111, true);
	struct stat st;
	char text[8] = "";

	if (!tap_ok(fd >= 0 && exe >= 0, "sealed memory is made"))
		return;
	tap_int(read(fd, text, sizeof(text)), 7, "at offset 0");
	tap_str(text, "content", "with the content");
	tap_int(pwrite(fd, "X", 1, 0), -1, "it cannot be written");
	tap_int(ftruncate(fd, 1), -1, "nor cut");
	tap_int(ftruncate(fd, 100), -1, "nor grown");
	tap_int(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1, "nor sealed otherwise");
	tap_ok(mmap(NULL, 7, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED,
	       "nor mapped for writing");
	tap_int(fstat(fd, &st), 0, "its mode");
	tap_int(st.st_mode & 07777, 0444, "is the one asked for");
	tap_int(fstat(exe, &st), 0, "an executable's mode");
	tap_int(st.st_mode & 07777, 0111, "allows nothing but execution");
}

static void test_flags(void)
{
	_cleanup_fd_ int fd = open("/dev/null", O_RDONLY);

	tap_int(fd_set_nonblock(fd, true), 0, "non-blocking");
	tap_ok(fcntl(fd, F_GETFL) & O_NONBLOCK, "is set");
	tap_int(fd_set_nonblock(fd, false), 0, "blocking");
	tap_ok(!(fcntl(fd, F_GETFL) & O_NONBLOCK), "again");
	tap_int(fd_set_cloexec(fd, true), 0, "close-on-exec");
	tap_ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "is set");
	tap_int(fd_set_cloexec(fd, false), 0, "kept on exec");
	tap_ok(!(fcntl(fd, F_GETFD) & FD_CLOEXEC), "again");
	tap_int(fd_set_nonblock(-1, true) + fd_set_cloexec(-1, true), -2, "no descriptor, no success");
}

/* ---- messages ---- */

static int open_count(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void test_pass(int a, int b)
{
	int send[FD_PASS_MAX] = { 0, 1, 2, 0 }, got[FD_PASS_MAX], before = open_count();
	char text[64];
	size_t count = FD_PASS_MAX;

	tap_int(fd_send_msg(a, "hello", 5, send, FD_PASS_MAX), 0, "a message with four descriptors");
	tap_int(fd_recv_msg(b, text, sizeof(text), got, &count), 5, "arrives");
	tap_int(count, FD_PASS_MAX, "with all of them");
	tap_ok(fcntl(got[0], F_GETFD) & FD_CLOEXEC, "close-on-exec");
	for (size_t i = 0; i < count; i++)
		close_fd(&got[i]);
	tap_int(fd_send_msg(a, "x", 1, send, FD_PASS_MAX + 1), -1, "five are refused");

	tap_int(fd_send_msg(a, "hello", 5, send, 2), 0, "two descriptors");
	count = 1;
	tap_int(fd_recv_msg(b, text, sizeof(text), got, &count), -1, "do not fit in room for one");
	tap_int(errno, EMSGSIZE, "which is an error");
	tap_int(fd_send_msg(a, "hello", 5, send, 3), 0, "three descriptors");
	tap_int(fd_recv_msg(b, text, sizeof(text), NULL, NULL), 5, "to a receiver that wants none");
	tap_int(open_count(), before, "no descriptor is left behind");
}

static void test_sizes(int a, int b)
{
	char text[4], big[512] = "";
	int got[FD_PASS_MAX], before = open_count(), fd = 1;
	size_t count = FD_PASS_MAX;

	tap_int(fd_send_msg(a, "12345", 5, &fd, 1), 0, "a message larger than the receiver's room");
	tap_int(fd_recv_msg(b, text, sizeof(text), got, &count), -1, "is not cut silently");
	tap_int(errno, EMSGSIZE, "but an error");
	tap_int(open_count(), before, "that leaves no descriptor behind");
	for (count = 0; count < 100000 && fd_send_msg(a, big, sizeof(big), NULL, 0) == 0; count++)
		;
	tap_int(errno, EAGAIN, "a peer that does not read is noticed, not waited for");
}

static void test_messages(void)
{
	int pair[2];
	char text[8];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		tap_bail("socketpair");
	test_pass(pair[0], pair[1]);
	test_sizes(pair[0], pair[1]);
	close_fd(&pair[1]);
	(void)signal(SIGPIPE, SIG_DFL);
	tap_int(fd_send_msg(pair[0], "x", 1, NULL, 0), -1, "a dead peer does not kill by SIGPIPE");
	close_fd(&pair[0]);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		tap_bail("socketpair");
	close_fd(&pair[0]);
	tap_int(fd_recv_msg(pair[1], text, sizeof(text), NULL, NULL), 0, "end of file is 0");
	close_fd(&pair[1]);
}

int main(void)
{
	_cleanup_fd_ int base = -1;
	char command[64];

	make_tree();
	base = openat(dir_fd, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	test_beneath(base);
	test_xdev();
	test_race(base);
	test_read_write();
	test_memfd();
	test_flags();
	test_messages();
	(void)snprintf(command, sizeof(command), "rm -rf %s", tmp_path);
	(void)!system(command);
	return tap_done();
}
