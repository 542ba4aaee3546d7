/* SPDX-License-Identifier: Apache-2.0 */
/* tests/sys/test_life.c - the host before, during and after a sandbox: mounts, processes, descriptors
 *
 * Each test works in a mount namespace of its own in which everything is shared, as systemd leaves a
 * host's: what leaks from a sandbox's tree would be seen there, and the other way round.
 */
#include <dirent.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "tests/sys/box.h"

enum { TEXT_MAX = 256 * 1024, ROUNDS = 20 };

static char mounts_before[TEXT_MAX], mounts_after[TEXT_MAX];

static void read_mounts(char text[TEXT_MAX])
{
	if (fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", text, TEXT_MAX) < 0)
		tap_bail("read mountinfo");
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir != NULL && readdir(dir) != NULL)
		count++;
	if (dir != NULL)
		(void)closedir(dir);
	return count;
}

static bool has_child(void)
{
	return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

static void test_nothing_left(struct box *b)
{
	int fds;

	/* The first one makes what the keeper keeps for its life. */
	if (!tap_int(box_start(b), 0, "a sandbox becomes ready in a tree where all is shared")) {
		tap_diag("%s | %s", b->e.message, b->e.remedy);
		return;
	}
	box_end(b);
	read_mounts(mounts_before);
	fds = count_fds();
	for (int i = 0; i < ROUNDS; i++) {
		if (box_start(b) < 0)
			tap_bail("round %d: %s", i, b->e.message);
		read_mounts(mounts_after);
		if (strcmp(mounts_before, mounts_after) != 0)
			break;
		box_end(b);
	}
	tap_str(mounts_after, mounts_before, "a running sandbox changes nothing in the host's mounts");
	read_mounts(mounts_after);
	tap_str(mounts_after, mounts_before, "nor does one that has ended");
	tap_int(count_fds(), fds, "no descriptor is left after %d sandboxes", ROUNDS);
	tap_ok(!has_child(), "no process is left");
}

static int exists(void *arg)
{
	return access(arg, F_OK) == 0 ? 0 : errno;
}

/* A mount that the host makes below the workspace while the sandbox runs stays outside. */
static void test_host_mount_stays_outside(struct box *b)
{
	char path[PATH_MAX], file[PATH_MAX + 8];

	(void)close(box_mkdir(b, "workspace/sub", 0755));
	if (!tap_int(box_start(b), 0, "start once more"))
		return;
	(void)snprintf(path, sizeof(path), "%s/workspace/sub", b->home);
	(void)snprintf(file, sizeof(file), "%s/file", path);
	if (mount("tmpfs", path, "tmpfs", 0, NULL) < 0)
		tap_bail("mount %s", path);
	(void)close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	tap_int(access(file, F_OK), 0, "the host has a mount below the workspace");
	tap_int(box_inside(b, true, exists, (void *)(uintptr_t) "/workspace/sub/file"), ENOENT,
		"it does not appear inside");
	(void)umount2(path, MNT_DETACH);
	box_end(b);
}

/* start_in_child() - a keeper of its own that starts the sandbox and is killed. Return: the host's
 * number of process 1. */
static pid_t start_and_kill_keeper(struct box *b)
{
	pid_t keeper, init = -1;
	int out[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		tap_bail("pipe");
	fflush(stdout);
	keeper = fork();
	if (keeper == 0) {
		if (box_start(b) == 0)
			(void)fd_write_full(out[1], &b->l.pid, sizeof(b->l.pid));
		for (;;)
			(void)pause();
	}
	(void)close(out[1]);
	(void)fd_read_full(out[0], &init, sizeof(init));
	(void)close(out[0]);
	(void)kill(keeper, SIGKILL);
	(void)waitpid(keeper, NULL, 0);
	return init;
}

/* ends_within() - we are the subreaper: process 1 becomes our child when its keeper dies. */
static bool ends_within(pid_t pid, int ms)
{
	for (int waited = 0; waited <= ms; waited += 10) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		(void)usleep(10000);
	}
	return false;
}

static void test_tether(struct box *b)
{
	pid_t init;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		tap_bail("become a subreaper");
	b->req.die_with_keeper = true;
	init = start_and_kill_keeper(b);
	tap_ok(init > 0 && ends_within(init, 2000), "a tethered sandbox ends with its keeper");
	b->req.die_with_keeper = false;
	init = start_and_kill_keeper(b);
	tap_ok(init > 0 && !ends_within(init, 300), "one that is not goes on");
	(void)kill(init, SIGKILL);
	tap_ok(ends_within(init, 2000), "and ends when it is killed");
}

/* Killed at every moment of its creation: never "ready", never stuck. */
static void test_killed_while_creating(struct box *b)
{
	int wrong = 0, failed = 0;

	for (int i = 0; i < 60; i++) {
		struct pollfd p;
		int r = 0;

		if (launch_start(&b->req, &b->l, &b->e) < 0)
			tap_bail("start: %s", b->e.message);
		(void)usleep((unsigned int)i * 50);
		(void)sys_pidfd_send_signal(b->l.pidfd, SIGKILL);
		p = (struct pollfd){ .fd = b->l.pidfd, .events = POLLIN };
		if (poll(&p, 1, BOX_WAIT_MS) != 1)
			tap_bail("a killed sandbox does not end");
		while (r == 0)
			r = launch_progress(&b->l, &b->e);
		wrong += r == 1;
		failed += r == -1 && b->e.code == ERR_GONE;
		box_end(b);
	}
	tap_int(wrong, 0, "a sandbox that was killed is never called ready");
	tap_int(failed, 60, "it is called killed each time");
	tap_ok(!has_child(), "and nothing of it is left");
}

/* Something else in the place of /proc: maps written through it could land anywhere. */
static void test_false_proc(struct box *b)
{
	if (mount("tmpfs", "/proc", "tmpfs", 0, NULL) < 0)
		tap_bail("mount over /proc");
	if (mkdir("/proc/4242", 0755) < 0)
		tap_bail("make a false process");
	tap_int(userns_write_maps(&b->ids, 4242, &b->e), -1, "no map is written through a false /proc");
	tap_int(b->e.code, ERR_DENIED, "because of what it is: %s", b->e.message);
	tap_ok(access("/proc/4242/uid_map", F_OK) < 0, "nothing was written");
	tap_int(box_start(b), -1, "and no sandbox starts");
	(void)umount2("/proc", MNT_DETACH);
	tap_ok(!has_child(), "no process is left");
}

int main(int argc, char **argv)
{
	static struct box b;

	(void)argc;
	box_enter(argv);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL) < 0)
		tap_bail("make a mount namespace where all is shared");
	box_open(&b);
	test_nothing_left(&b);
	test_host_mount_stays_outside(&b);
	test_tether(&b);
	test_killed_while_creating(&b);
	test_false_proc(&b);
	box_close(&b);
	return tap_done();
}
