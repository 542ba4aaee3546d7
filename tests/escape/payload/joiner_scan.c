/* SPDX-License-Identifier: Apache-2.0 */
/* tests/escape/payload/joiner_scan.c - catch a process of the server on its way into a sandbox
 *
 * usage: joiner_scan STOPFILE CANARY DEV:INO...
 *
 * Runs inside, with whatever rights a command has, and looks at every process of /proc as fast as it can
 * until STOPFILE exists: executable, environment, descriptors, root, working directory, memory, tracing.
 * Other commands are fair game and not reported; what is reported belongs to the server: CANARY stands in
 * its environment, DEV:INO are its program and its directories. Prints "FOUND <what> <pid>" and a summary.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *canary;
static char **foreign;
static int foreign_count;
static struct stat own_root;
static unsigned long looked, hidden, found;

static void report(const char *what, int pid)
{
	if (found++ < 50)
		printf("FOUND %s %d\n", what, pid);
	fflush(stdout);
}

static int is_foreign(const struct stat *st)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)st->st_dev,
		 (unsigned long long)st->st_ino);
	for (int i = 0; i < foreign_count; i++)
		if (strcmp(text, foreign[i]) == 0)
			return 1;
	return 0;
}

static int open_in(int dir, const char *name, int flags)
{
	return openat(dir, name, flags | O_CLOEXEC);
}

static void try_exe(int dir, int pid)
{
	struct stat st;
	char link[256] = "";
	int fd = open_in(dir, "exe", O_RDONLY);

	if (fd >= 0) {
		if (fstat(fd, &st) == 0 && is_foreign(&st))
			report("exe", pid);
		close(fd);
	}
	if (readlinkat(dir, "exe", link, sizeof(link) - 1) > 0 && strstr(link, "mcp-sandbox"))
		report("exe link", pid);
	fd = open_in(dir, "exe", O_WRONLY);
	if (fd >= 0) {
		if (fstat(fd, &st) == 0 && is_foreign(&st))
			report("writable exe", pid);
		close(fd);
	}
}

static void try_text(int dir, int pid, const char *name, const char *needle)
{
	static char text[65536];
	int fd = open_in(dir, name, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text));
	if (n > 0 && memmem(text, (size_t)n, needle, strlen(needle)))
		report(name, pid);
	close(fd);
}

static void try_fds(int dir, int pid)
{
	int fd_dir = open_in(dir, "fd", O_RDONLY | O_DIRECTORY);
	DIR *d = fd_dir >= 0 ? fdopendir(fd_dir) : NULL;
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0 && is_foreign(&st))
			report("descriptor", pid);
	if (d)
		closedir(d);
}

static void try_places(int dir, int pid)
{
	struct stat st;
	char link[256] = "";

	if (fstatat(dir, "root/.", &st, 0) == 0 &&
	    (st.st_dev != own_root.st_dev || st.st_ino != own_root.st_ino))
		report("root", pid);
	if (fstatat(dir, "cwd/.", &st, 0) == 0 && is_foreign(&st))
		report("cwd", pid);
	if (readlinkat(dir, "cwd", link, sizeof(link) - 1) > 0 && strncmp(link, "(unreach", 8) == 0)
		report("cwd outside", pid);
}

static int is_hidden(int dir)
{
	char link[16];

	return readlinkat(dir, "exe", link, sizeof(link)) < 0 && (errno == EACCES || errno == EPERM);
}

/* A success counts while the process still hides: a moment later it has executed and is a command like
 * others, which may be traced. */
static void report_hidden(const char *what, int dir, int pid)
{
	if (is_hidden(dir))
		report(what, pid);
}

static void try_ptrace(int dir, int pid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, pid, 0, 0) < 0)
		return;
	report_hidden("ptrace", dir, pid);
	/* it has to stop before it can be let go, and nobody else can reap it until then */
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) == 0 && waitpid(pid, &status, __WALL) == pid &&
	    WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, pid, 0, 0);
}

/* Only on processes that hide: the others are commands, and tracing them would disturb them. */
static void try_attach(int dir, int pid)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { (void *)1, 1 };
	int pidfd, fd;

	try_ptrace(dir, pid);
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT)
		report_hidden("process_vm_readv", dir, pid);
	if (syscall(SYS_kcmp, getpid(), pid, 0, 0, 0) >= 0)
		report_hidden("kcmp", dir, pid);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	for (int i = 0; pidfd >= 0 && i < 16; i++) {
		fd = (int)syscall(SYS_pidfd_getfd, pidfd, i, 0);
		if (fd >= 0) {
			report_hidden("pidfd_getfd", dir, pid);
			close(fd);
		}
	}
	if (pidfd >= 0)
		close(pidfd);
}

static void look_at(const char *name)
{
	char path[300];
	int pid = atoi(name), dir, mem;

	snprintf(path, sizeof(path), "/proc/%s", name);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	looked++;
	try_exe(dir, pid);
	try_text(dir, pid, "environ", canary);
	try_text(dir, pid, "maps", "mcp-sandbox");
	try_fds(dir, pid);
	try_places(dir, pid);
	if (is_hidden(dir)) {
		hidden += pid != 1;
		mem = open_in(dir, "mem", O_RDONLY);
		if (mem >= 0) {
			report_hidden("mem", dir, pid);
			close(mem);
		}
		try_attach(dir, pid);
	}
	close(dir);
}

int main(int argc, char **argv)
{
	char self[16];

	if (argc < 3)
		return 2;
	canary = argv[2];
	foreign = argv + 3;
	foreign_count = argc - 3;
	snprintf(self, sizeof(self), "%d", getpid());
	if (stat("/", &own_root) < 0)
		return 2;
	printf("scanning\n");
	fflush(stdout);
	while (access(argv[1], F_OK) < 0) {
		DIR *d = opendir("/proc");
		struct dirent *e;

		while (d && (e = readdir(d)))
			if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && strcmp(e->d_name, self) != 0)
				look_at(e->d_name);
		if (d)
			closedir(d);
	}
	printf("looked %lu hidden %lu found %lu\n", looked, hidden, found);
	return 0;
}
