/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_reenter.c - an ordinary user's new keeper finds the storage namespace of the old one
 *
 * A sandbox can be joined only from the namespace that owns its user namespace. Run as an ordinary
 * user. The test starts itself three times: "make" is a keeper that dies and leaves a sandbox behind;
 * "reenter" is the next keeper, which is shown where the sandbox's cgroup is; "fresh" is not, and
 * is the control: it must not get in.
 */
#include "tests/sys/box.h"

#define CGROUP_DIR "00000000/box-0a1b2c/init"

static void write_number(int dir_fd, const char *name, unsigned long value)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || dprintf(fd, "%lu\n", value) < 0)
		tap_bail("write %s", name);
	(void)close(fd);
}

static unsigned long read_number(int dir_fd, const char *name)
{
	char text[64];

	return fd_read_file_at(dir_fd, name, text, sizeof(text)) > 0 ? strtoul(text, NULL, 10) : 0;
}

static unsigned long own_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) < 0 ? 0 : st.st_ino;
}

/* make() - leave a sandbox, its number where a cgroup would have it, and our namespace's number. */
static int make(int dir_fd)
{
	static struct box b;
	int fd;

	box_open(&b);
	if (box_start(&b) < 0) {
		tap_diag("%s | %s", b.e.message, b.e.remedy);
		return 1;
	}
	write_number(dir_fd, CGROUP_DIR "/cgroup.procs", (unsigned long)b.l.pid);
	write_number(dir_fd, "namespace", own_namespace());
	fd = openat(dir_fd, "home", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0 && fd_write_full(fd, b.home, strlen(b.home)) == 0 ? 0 : 1;
}

enum { SAME_NAMESPACE = 1, CAN_JOIN = 2 };

/* look() - what a keeper can do about the sandbox that was left. */
static int look(int dir_fd)
{
	int pidfd = sys_pidfd_open((pid_t)read_number(dir_fd, CGROUP_DIR "/cgroup.procs"), 0);
	int found = own_namespace() == read_number(dir_fd, "namespace") ? SAME_NAMESPACE : 0;

	if (pidfd >= 0 && setns(pidfd, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) == 0)
		found |= CAN_JOIN;
	return found;
}

/* clean() - the sandbox's files belong to ids that exist only in a storage namespace. */
static int clean(int dir_fd)
{
	char home[128];

	if (fd_read_file_at(dir_fd, "home", home, sizeof(home)) <= 0)
		return 1;
	return nftw(home, box_remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0;
}

/* run_mode() - this program again. Return: its exit status. */
static int run_mode(const char *mode, const char *dir)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)execl("/proc/self/exe", "reenter", mode, dir, (char *)NULL);
		_exit(126);
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int in_mode(char **argv)
{
	int dir_fd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool knows = strcmp(argv[1], "reenter") == 0;
	struct err e;

	if (userns_enter_storage(knows ? dir_fd : -1, "", argv, &e) < 0)
		tap_bail("%s; %s", e.message, e.remedy);
	if (strcmp(argv[1], "make") == 0)
		return make(dir_fd);
	return strcmp(argv[1], "clean") == 0 ? clean(dir_fd) : look(dir_fd);
}

static void orchestrate(const char *dir)
{
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t init;

	if (!tap_int(run_mode("make", dir), 0, "a keeper makes a sandbox and dies"))
		return;
	init = (pid_t)read_number(dir_fd, CGROUP_DIR "/cgroup.procs");
	tap_int(kill(init, 0), 0, "the sandbox is still there");
	tap_int(run_mode("fresh", dir), 0,
		"a keeper with a storage namespace of its own cannot join it");
	tap_int(run_mode("reenter", dir), SAME_NAMESPACE | CAN_JOIN,
		"one that finds it takes over its storage namespace and can");
	tap_int(kill(init, SIGKILL), 0, "end the sandbox");
	write_number(dir_fd, CGROUP_DIR "/cgroup.procs", 0);
	tap_int(run_mode("reenter", dir) & SAME_NAMESPACE, 0,
		"without a sandbox there is a new storage namespace");
	tap_int(run_mode("clean", dir), 0, "its files can be removed from any");
	(void)close(dir_fd);
}

int main(int argc, char **argv)
{
	char dir[] = "/var/tmp/mcpt-reenter-XXXXXX";
	int fd;

	if (argc == 3)
		return in_mode(argv);
	if (getuid() == 0)
		return tap_skip_all("root has no storage namespace");
	if (mkdtemp(dir) == NULL || (fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	    mkdirat(fd, "00000000", 0755) < 0 || mkdirat(fd, "00000000/box-0a1b2c", 0755) < 0 ||
	    mkdirat(fd, CGROUP_DIR, 0755) < 0)
		tap_bail("make %s", dir);
	orchestrate(dir);
	(void)close(fd);
	if (nftw(dir, box_remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0)
		tap_diag("cannot remove %s", dir);
	return tap_done();
}
